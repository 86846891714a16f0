// Requests by who answered them: how long they took, where the time of a typical and of a slow one goes.

import { patch } from './causes';
import { address, type Data } from './data';
import { h } from './dom';
import { count, duration, percent } from './format';
import { miniBar } from './parts';
import { type Column, Table } from './table';
import type { Band, Connection, Exchange, Server } from './types';

/** Fewer requests have no distribution worth a picture. */
const FEW = 5;

/** A table of servers if there are several, and the distribution of the one that is chosen. */
export function servers(data: Data): HTMLElement | null {
  const all = data.report.summary.servers.filter(s => s.requests > 0);
  if (!all.length) return null;
  // Of a single server and few requests the verdict has said it all.
  const [only] = all;
  if (all.length === 1 && only.requests < FEW && !only.refused && !only.within) return null;
  const holder = h('div', {});
  let chosen = all[0];
  const show = (s: Server) => {
    chosen = s;
    holder.replaceChildren(server(data, s, all.length > 1));
  };
  show(chosen);
  const table =
    all.length > 1
      ? serverTable(
          data,
          all,
          s => {
            show(s);
            table?.redraw();
          },
          s => s === chosen,
        )
      : null;
  const omitted = data.report.summary.servers_omitted;
  return h(
    'section',
    { class: 'servers' },
    h('h2', {}, all.length > 1 ? 'Requests, by server' : 'Requests'),
    table?.element,
    omitted ? h('p', { class: 'dim' }, `${count(omitted, 'connection')} to other servers are not listed.`) : null,
    holder,
  );
}

const sorted = (budget: Record<string, number>) => Object.entries(budget).sort((a, b) => b[1] - a[1]);
const title = (data: Data, cause: string) => data.causes.get(cause)?.title ?? cause;

function serverTable(data: Data, all: Server[], pick: (s: Server) => void, chosen: (s: Server) => boolean) {
  // Of a request of one packet nothing came back: it took no time that anybody saw.
  const time = (ns: number | null) => (ns ? duration(ns) : '-');
  const most = (s: Server) => sorted(s.causes)[0]?.[0] ?? '-';
  const more = (s: Server) => (s.slow_because ? title(data, s.slow_because.cause) : '-');
  const columns: Column<Server>[] = [
    { title: 'server', width: 'minmax(150px,1fr)', value: s => s.server },
    { title: 'requests', width: '78px', right: true, down: true, value: s => s.requests },
    {
      title: 'connections',
      width: '92px',
      right: true,
      down: true,
      rank: 4,
      value: s => s.connections,
    },
    {
      title: 'median',
      width: '76px',
      right: true,
      down: true,
      value: s => s.median_ns ?? -1,
      show: s => time(s.median_ns),
    },
    { title: 'p95', width: '76px', right: true, down: true, value: s => s.p95_ns ?? -1, show: s => time(s.p95_ns) },
    {
      title: 'longest',
      width: '76px',
      right: true,
      down: true,
      rank: 3,
      value: s => s.max_ns ?? -1,
      show: s => time(s.max_ns),
    },
    {
      title: 'time',
      hint: 'of its requests, added up',
      width: '76px',
      right: true,
      down: true,
      rank: 2,
      value: s => s.request_ns,
      show: s => duration(s.request_ns),
    },
    {
      title: 'most of it',
      width: 'minmax(180px,1fr)',
      value: most,
      show: s => h('span', { class: 'worst' }, miniBar(data, sorted(s.causes)), most(s)),
    },
    {
      title: 'slow ones have more',
      hint: 'what requests around p95 have more of than those around the median',
      width: 'minmax(150px,1fr)',
      rank: 1,
      value: more,
    },
  ];
  return new Table<Server>(all, columns, {
    label: 'Servers',
    pick,
    chosen,
    most: 8,
    lines: s => [
      `${s.server}  ${count(s.requests, 'request')}`,
      h(
        'span',
        { class: 'worst' },
        h('b', {}, time(s.median_ns)),
        `p95 ${time(s.p95_ns)}`,
        miniBar(data, sorted(s.causes)),
        most(s),
      ),
    ],
  });
}

/** One server: what its requests took, and what the slow ones have that typical ones have not. */
function server(data: Data, s: Server, named: boolean): HTMLElement {
  const none = s.distribution.find(b => b.from_ns === 0)?.requests ?? 0;
  const facts = [
    count(s.requests, 'request'),
    count(s.connections, 'connection'),
    s.refused ? `${s.refused} refused` : null,
    none && s.requests >= FEW ? `${count(none, 'request')} of 0 ns (nothing answered), not drawn` : null,
    s.within ? `made by ${s.within} while it answers: part of its time` : null,
  ];
  return h(
    'div',
    { class: 'server' },
    named ? h('h3', {}, s.server) : null,
    h('p', { class: 'dim' }, (named ? facts : facts.slice(1)).filter(Boolean).join(' · ')),
    s.requests >= FEW ? histogram(data, s) : null,
    s.requests >= FEW ? sides(data, s) : null,
  );
}

/** How many requests took how long, each bar with the causes of their time; times grow by factors. */
function histogram(data: Data, s: Server): HTMLElement | null {
  const bands = s.distribution.filter(b => b.from_ns > 0);
  if (!bands.length) return null;
  // Half an octave at least, so that one band is no wall.
  const [first, last] = [bands[0].from_ns, bands[bands.length - 1].to_ns];
  const middle = Math.sqrt(first * last);
  const [lo, hi] = [Math.min(first, middle / 1.4), Math.max(last, middle * 1.4)];
  const at = (ns: number) => (100 * Math.log(Math.max(ns, lo) / lo)) / Math.log(hi / lo);
  const most = Math.max(...bands.map(b => b.requests));
  const bar = (b: Band) => {
    const total = Math.max(
      1,
      Object.values(b.causes).reduce((x, y) => x + y, 0),
    );
    const text = `${count(b.requests, 'request')} of ${duration(b.from_ns)} to ${duration(b.to_ns)}: ${sorted(b.causes)
      .slice(0, 3)
      .map(([id, ns]) => `${title(data, id)} ${percent(ns / total)}`)
      .join(', ')}`;
    return h(
      'div',
      {
        class: 'column',
        title: text,
        style: `left:${at(b.from_ns)}%;width:${at(b.to_ns) - at(b.from_ns)}%;height:${(100 * b.requests) / most}%`,
      },
      // The largest lies at the bottom of each, so that columns can be compared.
      ...sorted(b.causes)
        .reverse()
        .map(([id, ns]) =>
          h('i', { class: `g-${data.causes.get(id)?.group ?? 'unknown'}`, style: `flex:${ns / total} 1 0` }),
        ),
    );
  };
  const mark = (ns: number | null, name: string) =>
    // What took no time has no place where times grow by factors.
    !ns
      ? null
      : h(
          'div',
          { class: `mark ${name}${at(ns) > 70 ? ' left' : ''}`, style: `left:${at(ns)}%` },
          h('span', {}, `${name} ${duration(ns)}`),
        );
  return h(
    'figure',
    { class: 'histogram' },
    h(
      'div',
      { class: 'columns', role: 'img', 'aria-label': `how long ${count(s.requests, 'request')} took, by cause` },
      ...bands.map(bar),
      mark(s.median_ns, 'median'),
      mark(s.p95_ns, 'p95'),
    ),
    h(
      'figcaption',
      { class: 'dim' },
      h('span', {}, duration(lo)),
      h('span', {}, 'how long requests took, by factors; heights: how many; colours: causes of their time'),
      h('span', {}, duration(hi)),
    ),
  );
}

/** The mean of a band by cause. */
const mean = (b: Band) => new Map(Object.entries(b.causes).map(([id, ns]) => [id, ns / Math.max(1, b.requests)]));
const sum = (m: Map<string, number>) => [...m.values()].reduce((x, y) => x + y, 0);

/** A typical and a slow request on one scale, and the difference by cause. */
function sides(data: Data, s: Server): HTMLElement | null {
  const { typical, slow } = s;
  if (!typical || !slow) return null;
  const [a, b] = [mean(typical), mean(slow)];
  const longest = Math.max(sum(a), sum(b), 1);
  const strip = (name: string, band: Band, m: Map<string, number>) =>
    h(
      'div',
      { class: 'strip' },
      h(
        'p',
        {},
        `${name} `,
        h('b', {}, duration(sum(m))),
        h('span', { class: 'dim' }, ` on average of ${count(band.requests, 'request')} like it`),
      ),
      h(
        'div',
        { class: 'bar', style: `width:${(100 * sum(m)) / longest}%` },
        ...[...m]
          .sort((x, y) => y[1] - x[1])
          .map(([id, ns]) =>
            h('i', {
              class: `part g-${data.causes.get(id)?.group ?? 'unknown'}`,
              style: `flex:${ns / Math.max(1, sum(m))} 1 0`,
              title: `${title(data, id)}: ${duration(ns)}`,
            }),
          ),
      ),
    );
  const rows = [...new Set([...a.keys(), ...b.keys()])]
    .map(id => ({ id, a: a.get(id) ?? 0, b: b.get(id) ?? 0 }))
    .filter(r => Math.max(r.a, r.b) >= 0.01 * longest)
    .sort((x, y) => Math.max(y.a, y.b) - Math.max(x.a, x.b));
  const cell = (ns: number) => h('td', {}, ns ? duration(ns) : '-');
  const by = (ns: number) => (ns > 0 ? `+${duration(ns)}` : duration(ns));
  const more = s.slow_because;
  const examples = [s.median_ns, s.p95_ns].map(ns => nearest(data, s, ns));
  const [one, two] = examples;
  return h(
    'div',
    { class: 'sides' },
    strip('a typical one (median)', typical, a),
    strip('a slow one (p95)', slow, b),
    more
      ? h('p', { class: 'more' }, `Slow ones have ${duration(more.more_ns)} more of: ${title(data, more.cause)}.`)
      : null,
    h(
      'table',
      { class: 'two differences' },
      h('tr', {}, h('th', {}, 'cause'), h('th', {}, 'typical'), h('th', {}, 'slow'), h('th', {}, 'difference')),
      ...rows.map(r =>
        h(
          'tr',
          {},
          h('td', {}, patch(data.causes.get(r.id)), title(data, r.id)),
          cell(r.a),
          cell(r.b),
          h('td', {}, by(r.b - r.a)),
        ),
      ),
    ),
    one && two && one.x !== two.x
      ? h(
          'p',
          {},
          h(
            'a',
            {
              href: address({
                connection: two.c.id,
                exchange: two.x.id,
                beside: `${one.c.id}/${one.x.id}`,
              }),
            },
            `One of each beside each other: exchange ${one.c.id}/${one.x.id} and ${two.c.id}/${two.x.id}`,
          ),
        )
      : null,
  );
}

/** The exchange of a server, of those on the page, whose time is nearest to this. */
function nearest(data: Data, s: Server, ns: number | null): { c: Connection; x: Exchange } | null {
  if (ns === null) return null;
  let best: { c: Connection; x: Exchange } | null = null;
  let least = Infinity;
  for (const c of data.report.connections)
    if (c.server === s.server)
      for (const x of c.exchanges) {
        const off = Math.abs(x.end_ns - x.start_ns - ns);
        if (off < least) [least, best] = [off, { c, x }];
      }
  return best;
}
