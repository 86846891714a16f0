// An exchange as a ladder: time runs down, each packet is an arrow between the two ends, and beside it stands who
// waited for what. Waits are drawn longer than trips, but not to scale: a pause of a second would push the rest away.

import { type Data, frameName } from './data';
import { h, svg } from './dom';
import { bytes, duration } from './format';
import { flagText, lower, MARK, markText, type Track, windowText } from './packets';
import { Table } from './table';
import type { Connection, Exchange, Span } from './types';

/** Longer runs of packets within one span are folded. */
const RUN = 9;
const ENDS = 3;
const MOST_ROWS = 400;

/** For a page that holds no packets. */
export const EMPTY: Track = {
  n: 0,
  total: 0,
  shift: [null, null],
  t: new Float64Array(0),
  frame: new Float64Array(0),
  from: new Uint8Array(0),
  flags: new Uint16Array(0),
  marks: new Uint8Array(0),
  seq: new Float64Array(0),
  len: new Float64Array(0),
  ack: new Float64Array(0),
  win: new Float64Array(0),
  sackAt: new Uint32Array(1),
  sack: new Float64Array(0),
};

interface Row {
  t: number;
  y: number;
  packet: number;
  folded?: { n: number; bytes: number; from: number };
}

export interface LadderHost {
  data: Data;
  connection: Connection;
  exchange: Exchange;
  track: Track;
  chosen: () => Span | null;
  pick: (span: Span) => void;
}

/** Indices of the packets of an exchange. */
function within(x: Exchange, k: Track): number[] {
  const out: number[] = [];
  for (let i = lower(k.t, x.start_ns - 1000); i < k.n && k.t[i] <= x.end_ns + 1000; i++) out.push(i);
  return out;
}

function rows(x: Exchange, k: Track): { rows: Row[]; left: number } {
  const all = within(x, k);
  const out: Row[] = [];
  let at = 0;
  for (const [i, span] of x.spans.entries()) {
    const run: number[] = [];
    const last = i === x.spans.length - 1;
    while (at < all.length && (k.t[all[at]] < span.end_ns || last)) run.push(all[at++]);
    const whole = run.length <= RUN;
    run.forEach((p, j) => {
      if (whole || j < ENDS || j >= run.length - ENDS) out.push({ t: k.t[p], y: 0, packet: p });
      else if (j === ENDS) {
        const folded = run.slice(ENDS, -ENDS);
        const sum = [0, 0];
        for (const q of folded) sum[k.from[q]] += k.len[q];
        out.push({
          t: k.t[p],
          y: 0,
          packet: p,
          folded: { n: folded.length, bytes: Math.max(...sum), from: sum[1] > sum[0] ? 1 : 0 },
        });
      }
    });
  }
  const left = Math.max(0, out.length - MOST_ROWS);
  return { rows: out.slice(0, MOST_ROWS), left };
}

/** Extra height for a wait: grows with its logarithm. */
function wait(ns: number): number {
  return ns < 20_000 ? 0 : Math.min(70, 9 * Math.log2(1 + ns / 50_000));
}

export function ladder(host: LadderHost, width: number): SVGElement {
  const { exchange: x, track: k, data } = host;
  const narrow = width < 620;
  const side = narrow ? 124 : 310;
  const [client, server] = [narrow ? 80 : 96, width - side];
  const { rows: list, left } = rows(x, k);
  let y = 44,
    t = x.start_ns;
  const times: number[] = [x.start_ns],
    ys: number[] = [y];
  for (const row of list) {
    y += wait(Math.max(0, row.t - t)) + 19;
    row.y = y;
    t = Math.max(t, row.t);
    times.push(t);
    ys.push(y);
  }
  y += wait(Math.max(0, x.end_ns - t)) + 16;
  if (!left) {
    times.push(Math.max(x.end_ns, t));
    ys.push(y);
  }
  const height = y + (left ? 40 : 18);
  const place = (time: number) => {
    for (let i = 1; i < times.length; i++)
      if (time <= times[i]) {
        const span = times[i] - times[i - 1];
        return span > 0 ? ys[i - 1] + ((ys[i] - ys[i - 1]) * Math.max(0, time - times[i - 1])) / span : ys[i - 1];
      }
    return ys[ys.length - 1];
  };
  const bands = svg('g'),
    text = svg('g'),
    arrows = svg('g');
  let labelled = -Infinity;
  x.spans.forEach(span => {
    const [y0, y1] = [place(span.start_ns), place(span.end_ns)];
    const cause = data.causes.get(span.cause);
    const tall = Math.max(2, y1 - y0);
    const name = `${cause?.title ?? span.cause}: ${duration(span.end_ns - span.start_ns)}`;
    const pick = () => host.pick(span);
    const group = svg(
      'g',
      {
        class: `band${host.chosen() === span ? ' chosen' : ''}`,
        click: pick,
        tabindex: '0',
        role: 'button',
        'aria-label': name,
        keydown: (e: KeyboardEvent) => {
          if (e.key === 'Enter') pick();
        },
      },
      svg('title', {}, name),
      svg('rect', { x: client, y: y0, width: server - client, height: tall, class: `pale s-${cause?.group}` }),
      svg('rect', { x: server + 12, y: y0, width: 16, height: tall, class: `fill s-${cause?.group}` }),
      svg('rect', { x: server + 12, y: y0, width: 16, height: tall, fill: `url(#p-${cause?.group}) none` }),
    );
    const bar = (at: number) =>
      svg('rect', { x: at - 4, y: y0, width: 8, height: tall, class: `fill s-${cause?.group}` });
    if (span.side === 'client') group.append(bar(client));
    if (span.side === 'server') group.append(bar(server));
    bands.append(group);
    const middle = (y0 + y1) / 2;
    if (tall >= 9 && middle - labelled > (narrow ? 26 : 15)) {
      labelled = middle;
      const length = duration(span.end_ns - span.start_ns);
      if (narrow) {
        const lines = tall >= 44 ? broken(span.cause) : [short(span.cause)];
        const top = middle - 6 * (lines.length - 1);
        lines.forEach((line, i) => {
          text.append(svg('text', { x: server + 34, y: top + 12 * i, class: 'cause' }, line));
        });
        text.append(svg('text', { x: server + 34, y: top + 12 * lines.length, class: 'dim' }, length));
      } else {
        text.append(
          svg(
            'text',
            { x: server + 36, y: middle + 4, class: 'cause' },
            `${span.cause} `,
            svg('tspan', { class: 'dim' }, length + (span.side && span.side !== 'network' ? ` · ${span.side}` : '')),
          ),
        );
      }
    }
  });
  let lastTime = -Infinity;
  for (const row of list) {
    const p = row.packet;
    const from = row.folded ? row.folded.from : k.from[p];
    const [a, b] = from === 0 ? [client, server] : [server, client];
    const dy = 7;
    const odd = k.marks[p] & (MARK.RETRANSMITTED | MARK.LATE);
    const cls = row.folded ? 'many' : odd ? 'again' : k.len[p] > 0 ? 'data' : 'bare';
    arrows.append(
      svg('line', { x1: a, y1: row.y - dy / 2, x2: b + (a < b ? -6 : 6), y2: row.y + dy / 2, class: `arrow ${cls}` }),
      svg('path', { d: head(b, row.y + dy / 2, a < b), class: `head ${cls}` }),
    );
    const words = row.folded
      ? `… ${row.folded.n} packets, ${bytes(row.folded.bytes)}`
      : `${frameName(data, k.frame[p])}  ${flagText(k.flags[p])}${k.len[p] ? `  ${k.len[p]} B` : ''}${markText(k.marks[p]) && !narrow ? `  ${markText(k.marks[p])}` : ''}`;
    arrows.append(
      svg('text', { x: (client + server) / 2, y: row.y - 5, class: `on ${cls}`, 'text-anchor': 'middle' }, words),
    );
    if (row.y - lastTime >= 13) {
      lastTime = row.y;
      text.append(
        svg('text', { x: client - 10, y: row.y + 2, class: 'dim', 'text-anchor': 'end' }, offset(row.t - x.start_ns)),
      );
    }
  }
  const ends = svg(
    'g',
    {},
    ...(
      [
        [client, 'client'],
        [server, 'server'],
      ] as [number, string][]
    ).flatMap(([at, name]) => [
      svg('line', { x1: at, y1: 34, x2: at, y2: height - 8, class: 'life' }),
      svg('text', { x: at, y: 22, class: 'end', 'text-anchor': 'middle' }, name),
    ]),
  );
  if (left)
    text.append(
      svg(
        'text',
        { x: (client + server) / 2, y: height - 12, class: 'dim', 'text-anchor': 'middle' },
        `and ${left} more: the table has all of them`,
      ),
    );
  return svg(
    'svg',
    {
      class: 'ladder',
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: 'img',
      'aria-label': `Ladder of exchange ${x.id}`,
    },
    patterns(),
    bands,
    ends,
    arrows,
    text,
  );
}

function short(cause: string): string {
  return cause.length > 11 ? `${cause.slice(0, 10)}…` : cause;
}

/** In two lines where it is long, broken between words. */
function broken(cause: string): string[] {
  const at = cause.length > 11 ? cause.lastIndexOf('_', 11) + 1 : 0;
  return at ? [cause.slice(0, at), short(cause.slice(at))] : [short(cause)];
}

function head(x: number, y: number, right: boolean): string {
  const d = right ? -8 : 8;
  return `M${x} ${y}l${d} -4v8z`;
}

/** Milliseconds throughout, so that the eye can subtract. */
export function offset(ns: number): string {
  const ms = ns / 1e6;
  return `+${ms.toFixed(ms < 100 ? 3 : ms < 1000 ? 2 : 1)} ms`;
}

/** Patterns in the ink of the page, to lie over the colours. */
function patterns(): SVGElement {
  const of = (id: string, d: string) =>
    svg(
      'pattern',
      { id: `p-${id}`, width: 8, height: 8, patternUnits: 'userSpaceOnUse' },
      svg('path', { d, class: 'hatch' }),
    );
  return svg(
    'defs',
    {},
    of('congestion', 'M0 0L8 8M-1 7L1 9M7 -1L9 1'),
    of('windows', 'M0 8L8 0M-1 1L1 -1M7 9L9 7'),
    of('opening', 'M4 0V8'),
    of('unknown', 'M3 4h2'),
  );
}

/** The packets of an exchange. */
export function packetTable(host: LadderHost): Table<number> {
  const { exchange: x, track: k, data } = host;
  const list = within(x, k);
  const before = new Map(list.map((p, i) => [p, i ? k.t[p] - k.t[list[i - 1]] : 0]));
  const spanOf = (p: number) =>
    x.spans.find(s => k.t[p] >= s.start_ns && k.t[p] < s.end_ns) ?? x.spans[x.spans.length - 1];
  return new Table<number>(
    list,
    [
      { title: 'frame', width: '72px', right: true, value: p => k.frame[p], show: p => frameName(data, k.frame[p]) },
      { title: 'since start', width: '110px', right: true, value: p => k.t[p], show: p => offset(k.t[p] - x.start_ns) },
      {
        title: 'since last',
        width: '86px',
        right: true,
        rank: 2,
        value: p => before.get(p) ?? 0,
        show: p => duration(before.get(p) ?? 0),
      },
      { title: 'direction', width: '92px', value: p => k.from[p], show: p => (k.from[p] ? '← server' : 'client →') },
      {
        title: 'flags',
        hint: 'as tcpdump writes them: . is ACK, P is PSH',
        width: '60px',
        value: p => flagText(k.flags[p]),
      },
      {
        title: 'seq',
        hint: 'sequence number, from the start of the connection',
        width: '96px',
        right: true,
        rank: 3,
        value: p => k.seq[p],
      },
      { title: 'ack', width: '96px', right: true, rank: 4, value: p => k.ack[p] },
      { title: 'length', hint: 'payload in bytes', width: '66px', right: true, value: p => k.len[p] },
      {
        title: 'window',
        hint: 'receive window in bytes, or as it stands in the header (unscaled) where the scale is not known',
        width: k.shift.includes(null) ? '118px' : '82px',
        right: true,
        rank: 5,
        value: p => k.win[p],
        show: p => windowText(k, p),
      },
      {
        title: 'cause',
        width: 'minmax(150px,1fr)',
        value: p => spanOf(p)?.cause ?? '',
        show: p => {
          const span = spanOf(p);
          const odd = markText(k.marks[p]);
          return h(
            'span',
            {},
            span ? h('i', { class: `patch g-${data.causes.get(span.cause)?.group}` }) : null,
            span?.cause ?? '',
            odd ? h('em', {}, ` ${odd}`) : null,
          );
        },
      },
    ],
    {
      label: `Packets of exchange ${x.id}`,
      most: 12,
      pick: p => {
        const s = spanOf(p);
        if (s) host.pick(s);
      },
      empty: 'the page holds no packets of this exchange',
      lines: p => [
        `${frameName(data, k.frame[p])}  ${k.from[p] ? '← server' : 'client →'}  ${flagText(k.flags[p])}  ${k.len[p]} B${markText(k.marks[p]) ? `  ${markText(k.marks[p])}` : ''}`,
        h(
          'span',
          { class: 'worst' },
          h('b', {}, offset(k.t[p] - x.start_ns)),
          spanOf(p) ? h('i', { class: `patch g-${data.causes.get(spanOf(p).cause)?.group}` }) : null,
          spanOf(p)?.cause ?? '',
        ),
      ],
    },
  );
}
