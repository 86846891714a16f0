// One connection: who, where its time went, its graphs, an exchange as a ladder, its findings.

import { type Data, detail, frameName, spansOf, timesOf, track as tracked } from './data';
import type { Drawer } from './drawer';
import { h } from './dom';
import { bitRate, bytes, count, duration, moment } from './format';
import { Graphs, type Placed } from './graphs';
import { ladder, packetTable, type LadderHost } from './ladder';
import { exchangeTable, type Links } from './overview';
import type { Track } from './packets';
import { finding, timeBar } from './parts';
import type { Connection, End, Exchange, Finding, Span } from './types';

export interface Place {
  exchange?: number;
  span?: string;
}

export class ConnectionView {
  readonly element = h('div', { class: 'connection' });
  readonly ready: Promise<void>;
  graphs: Graphs | null = null;
  private track: Track | null = null;
  private spans: Placed[];
  private exchange: Exchange | undefined;
  private chosen: Span | null = null;
  private exchangeBox = h('section', { class: 'exchange', hidden: true });
  private graphBox = h('section', { class: 'graph-box' }, h('p', { class: 'dim' }, 'reading the packets …'));
  private thin = h('p', { class: 'dim thin', hidden: true });
  private list: ReturnType<typeof exchangeTable>['table'];
  private timer = 0;

  constructor(
    private data: Data,
    readonly c: Connection,
    private links: Links,
    private drawer: Drawer,
    private go: (place: Place) => void,
  ) {
    this.spans = spansOf(c);
    const { table } = exchangeTable(
      data,
      [c],
      (_c, x) => this.go({ exchange: x.id }),
      false,
      r => r.x === this.exchange,
    );
    this.list = table;
    const omitted = c.exchanges_omitted;
    this.element.append(
      h(
        'section',
        { class: 'head' },
        h('h1', {}, `Connection ${c.id}  `, h('span', { class: 'ends' }, `${c.client} → ${c.server}`)),
        h('p', { class: 'facts' }, facts(data, c)),
        timeBar(data, timesOf(c), c.end_ns - c.start_ns, links.cause),
      ),
      this.graphBox,
      this.exchangeBox,
      c.exchanges.length
        ? h(
            'section',
            {},
            h('h2', {}, 'Exchanges'),
            this.list.element,
            omitted
              ? h(
                  'p',
                  { class: 'dim' },
                  `${omitted.count} more (${duration(omitted.duration_ns)}) are summed above; --exchanges all lists them`,
                )
              : null,
          )
        : h('span'),
      c.findings.length
        ? h(
            'section',
            {},
            h('h2', {}, 'What was found on it'),
            ...found(data, c).map(f => finding(data, f, links.example, links.cause)),
          )
        : h('span'),
      h('section', {}, h('h2', {}, 'The two ends'), ends(c)),
    );
    this.ready = this.start();
  }

  private async start(): Promise<void> {
    this.track = await tracked(this.data, this.c.id);
    if (!this.track) {
      this.graphBox.replaceChildren(
        h(
          'p',
          { class: 'dim' },
          `The page holds no packets of this connection. tcpwhy explain FILE --connection ${this.c.id} --html OTHER.html has them.`,
        ),
      );
      return;
    }
    const graphs = new Graphs(
      {
        data: this.data,
        connection: this.c,
        spans: this.spans,
        pickSpan: p => this.go({ exchange: p.exchange || undefined, span: p.span.id }),
        pickExchange: id => this.go({ exchange: id }),
        moved: () => this.moved(),
      },
      this.track,
    );
    this.graphs = graphs;
    const button = (text: string, title: string, action: () => void) =>
      h('button', { type: 'button', title, 'aria-label': title, click: action }, text);
    this.graphBox.replaceChildren(
      h(
        'div',
        { class: 'tools' },
        h('h2', {}, 'Over time'),
        h(
          'div',
          { class: 'buttons' },
          button('+', 'closer (+)', () => graphs.zoom(0.5)),
          button('−', 'further away (-)', () => graphs.zoom(2)),
          button('←', 'earlier (left arrow)', () => graphs.pan(-0.3)),
          button('→', 'later (right arrow)', () => graphs.pan(0.3)),
          button('all', 'the whole connection (0)', () => graphs.reset()),
        ),
        h(
          'p',
          { class: 'dim hint' },
          'drag: move · shift-drag: choose · wheel: zoom (after a click) · n, p: next, previous cause · click: evidence',
        ),
      ),
      graphs.element,
      this.thin,
    );
  }

  /** Shows an exchange and a span, as the address says. */
  async at(place: Place): Promise<void> {
    await this.ready;
    const x = this.c.exchanges.find(e => e.id === place.exchange);
    const span = this.spans.find(s => s.span.id === place.span)?.span ?? null;
    this.chosen = span;
    if (x !== this.exchange) {
      this.exchange = x;
      this.list.redraw();
      if (x) {
        const pad = Math.max((x.end_ns - x.start_ns) * 0.04, 5000);
        this.graphs?.show(x.start_ns - pad, x.end_ns + pad);
        this.list.reveal(r => r.x === x);
      }
    }
    this.drawExchange();
    this.graphs?.choose(span);
    if (span) {
      const g = this.graphs;
      if (g && (span.end_ns < g.from || span.start_ns > g.to || span.end_ns - span.start_ns < (g.to - g.from) / 400)) {
        const pad = Math.max((span.end_ns - span.start_ns) * 1.5, 20_000);
        g.show(span.start_ns - pad, span.end_ns + pad);
      }
      this.drawer.span(this.data, this.c, this.exchange, span, this.track);
    } else this.drawer.close();
  }

  /** Draws everything again, as after a change of size or colours. */
  redraw(): void {
    this.graphs?.redraw();
    this.drawExchange();
  }

  private drawExchange(): void {
    const x = this.exchange;
    this.exchangeBox.hidden = !x;
    if (!x) return;
    const host: LadderHost = {
      data: this.data,
      connection: this.c,
      exchange: x,
      track: this.track ?? EMPTY,
      chosen: () => this.chosen,
      pick: span => this.go({ exchange: x.id, span: span.id }),
    };
    const step = (by: number) => {
      const list = this.c.exchanges;
      const next = list[list.indexOf(x) + by];
      return h(
        'button',
        { type: 'button', disabled: !next, click: () => next && this.go({ exchange: next.id }) },
        by < 0 ? '← previous' : 'next →',
      );
    };
    const width = Math.max(320, Math.min(this.element.clientWidth || 900, 1180) - 2);
    const ended = x.complete ? '' : `, ended: ${x.ended}`;
    const times = new Map<string, number>();
    for (const s of x.spans) times.set(s.cause, (times.get(s.cause) ?? 0) + s.end_ns - s.start_ns);
    this.exchangeBox.replaceChildren(
      h(
        'div',
        { class: 'tools' },
        h('h2', {}, `Exchange ${x.id}`),
        h(
          'div',
          { class: 'buttons' },
          step(-1),
          step(1),
          h('button', { type: 'button', click: () => this.go({}) }, 'close'),
        ),
      ),
      h(
        'p',
        { class: 'facts' },
        `${duration(x.end_ns - x.start_ns)} at ${moment(x.start_ns)}: request ${bytes(x.request_bytes)}, response ${bytes(x.response_bytes)}${ended}${x.turns > 1 ? `, ${x.turns} turns` : ''}`,
      ),
      timeBar(
        this.data,
        [...times].sort((a, b) => b[1] - a[1]),
        x.end_ns - x.start_ns,
        this.links.cause,
      ),
      h(
        'p',
        { class: 'dim' },
        'Time runs down, not to scale; bars stand at the end that could change it. Arrows slope only to show their direction.',
      ),
      h('div', { class: 'scroll' }, ladder(host, width)),
      packetTable(host).element,
    );
  }

  private moved(): void {
    const g = this.graphs;
    if (!g?.thinned) return;
    this.thin.hidden = false;
    const t = this.track;
    this.thin.textContent = t
      ? `${count(t.total, 'packet')}, of which the page holds ${t.n}: the extremes of each stretch of time, and all around what was found.`
      : '';
    if (!this.data.page.served) return;
    clearTimeout(this.timer);
    this.timer = window.setTimeout(async () => {
      if (g.to - g.from > (this.c.end_ns - this.c.start_ns) / 3) {
        g.replace(null);
        return;
      }
      const [from, to] = [g.from, g.to];
      const full = await detail(this.data, this.c.id, from, to);
      if (full && g.from === from && g.to === to) g.replace(full);
    }, 200);
  }
}

/** TCP's first, with the fixes that the whole capture proposes; what they would save there is not what they save here. */
function found(data: Data, c: Connection): Finding[] {
  const known = (f: Finding) =>
    data.report.findings.find(g => g.cause === f.cause && g.side === f.side) ??
    data.report.findings.find(g => g.cause === f.cause);
  return c.findings
    .map(f =>
      f.fixes.length ? f : { ...f, fixes: (known(f)?.fixes ?? []).map(x => ({ ...x, saves_ns: null, basis: '' })) },
    )
    .sort((a, b) => Number(b.class === 'T') - Number(a.class === 'T') || b.lost_ns - a.lost_ns);
}

const EMPTY: Track = {
  n: 0,
  total: 0,
  shift: [0, 0],
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

function facts(data: Data, c: Connection): string {
  const vantage: Record<string, string> = {
    client: 'captured at the client',
    server: 'captured at the server',
    middle: 'captured between the ends',
    unknown: 'where it was captured does not show',
  };
  const before = data.page.frames_before.length < 2;
  return [
    `${duration(c.end_ns - c.start_ns)} from ${moment(c.start_ns)}${before ? `, frames ${frameName(data, c.frames.first)} to ${frameName(data, c.frames.last)}` : ''}`,
    c.protocol,
    c.opened === 'handshake' ? 'opened by a handshake' : 'already open when the capture began',
    c.closed === 'fin' ? 'closed by FIN' : c.closed === 'rst' ? 'closed by a reset' : 'still open at the end',
    c.roles === 'inferred' ? 'who is the client is inferred' : null,
    vantage[c.vantage],
    c.path.rtt_ns === null ? null : `round trip ${duration(c.path.rtt_ns)}`,
    c.path.bandwidth_bps === null ? null : `bottleneck about ${bitRate(c.path.bandwidth_bps)}`,
    c.quality.length ? `quality: ${c.quality.join(', ')}` : null,
  ]
    .filter(Boolean)
    .join(' · ');
}

function ends(c: Connection): HTMLElement {
  const rows: [string, (e: End, side: 'client' | 'server') => string | null | undefined][] = [
    ['bytes', (_e, s) => bytes(c.bytes[s])],
    ['packets', (_e, s) => String(c.packets[s])],
    ['sent again', (_e, s) => (c.retransmitted[s] ? String(c.retransmitted[s]) : null)],
    ['MSS', e => (e.mss === null ? null : String(e.mss))],
    ['window scale', e => (e.wscale === null ? null : String(e.wscale))],
    ['largest window', e => (e.max_window === null ? null : bytes(e.max_window))],
    ['first flight', e => (e.initial_flight === null ? null : bytes(e.initial_flight))],
    ['most in flight', e => (e.max_flight ? bytes(e.max_flight) : null)],
    ['stack', e => e.stack?.os],
    [
      'delays ACKs by',
      e =>
        e.stack?.delayed_ack_min_ns == null
          ? null
          : `${duration(e.stack.delayed_ack_min_ns)} to ${duration(e.stack.delayed_ack_max_ns ?? 0)}`,
    ],
    ['shortest timeout', e => (e.stack?.min_rto_ns == null ? null : duration(e.stack.min_rto_ns))],
    ['SYN repeats', e => num(e.syn_repeats)],
    ['zero windows', e => num(e.zero_windows)],
    ['window probes', e => num(e.window_probes)],
    ['keep-alives', e => num(e.keepalives)],
    ['reordered', e => num(e.reordered)],
    ['copies left out', e => num(e.duplicates)],
  ];
  const table = h('table', { class: 'two' }, h('tr', {}, h('th'), h('th', {}, 'client'), h('th', {}, 'server')));
  for (const [name, of] of rows) {
    const [a, b] = [of(c.endpoints.client, 'client'), of(c.endpoints.server, 'server')];
    if (a || b) table.append(h('tr', {}, h('td', {}, name), h('td', {}, a || '-'), h('td', {}, b || '-')));
  }
  return table;
}

function num(n: number | undefined): string | null {
  return n ? String(n) : null;
}
