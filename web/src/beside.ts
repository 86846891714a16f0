// Two exchanges beside each other: what one has that the other has not.

import { patch } from './causes';
import { address, type Data, track as tracked } from './data';
import { h, scroll } from './dom';
import { bytes, duration, percent } from './format';
import { EMPTY, ladder } from './ladder';
import type { Connection, Exchange } from './types';

/** An exchange, and the connection it is on. */
export interface Pick {
  c: Connection;
  x: Exchange;
}

/** `3/12`, as addresses and tables have it. */
export const nameOf = ({ c, x }: Pick): string => `${c.id}/${x.id}`;

/** The exchange of that name. */
export function pickOf(data: Data, name: string | null): Pick | undefined {
  const [connection, exchange] = (name ?? '').split('/').map(Number);
  const c = data.byId.get(connection);
  const x = c?.exchanges.find(e => e.id === exchange);
  return c && x ? { c, x } : undefined;
}

const length = ({ x }: Pick) => x.end_ns - x.start_ns;

function sums({ x }: Pick): Map<string, number> {
  const all = new Map<string, number>();
  for (const s of x.spans) all.set(s.cause, (all.get(s.cause) ?? 0) + s.end_ns - s.start_ns);
  return all;
}

/** The causes of an exchange in the order of its time, as long as it is beside the longer one. */
function strip(data: Data, pick: Pick, longest: number): HTMLElement {
  const { x } = pick;
  const runs: { cause: string; ns: number }[] = [];
  for (const s of x.spans) {
    const last = runs[runs.length - 1];
    if (last?.cause === s.cause) last.ns += s.end_ns - s.start_ns;
    else runs.push({ cause: s.cause, ns: s.end_ns - s.start_ns });
  }
  const all = Math.max(1, length(pick));
  return h(
    'div',
    { class: 'strip' },
    h(
      'p',
      {},
      h('a', { href: address({ connection: pick.c.id, exchange: x.id }) }, nameOf(pick)),
      ' ',
      x.name ? `${x.name} ` : null,
      h('b', {}, duration(length(pick))),
      h('span', { class: 'dim' }, ` request ${bytes(x.request_bytes)}, response ${bytes(x.response_bytes)}`),
    ),
    h(
      'div',
      { class: 'bar', style: `width:${Math.max(1, (100 * length(pick)) / Math.max(1, longest))}%` },
      ...runs.map(r =>
        h('i', {
          class: `part g-${data.causes.get(r.cause)?.group ?? 'unknown'}`,
          style: `flex:${r.ns / all} 1 0`,
          title: `${data.causes.get(r.cause)?.title ?? r.cause}: ${duration(r.ns)}`,
        }),
      ),
    ),
  );
}

/** What the second takes more or less than the first, by cause, the largest difference first. */
function differences(data: Data, a: Pick, b: Pick): HTMLElement {
  const [one, two] = [sums(a), sums(b)];
  const rows = [...new Set([...one.keys(), ...two.keys()])]
    .map(cause => ({ cause, a: one.get(cause) ?? 0, b: two.get(cause) ?? 0 }))
    .sort((x, y) => Math.abs(y.b - y.a) - Math.abs(x.b - x.a));
  const more = (ns: number) => (ns > 0 ? `+${duration(ns)}` : duration(ns));
  const cell = (ns: number) => h('td', {}, ns ? duration(ns) : '-');
  return h(
    'table',
    { class: 'two differences' },
    h('tr', {}, h('th', {}, 'cause'), h('th', {}, nameOf(a)), h('th', {}, nameOf(b)), h('th', {}, 'difference')),
    ...rows.map(r =>
      h(
        'tr',
        {},
        h('td', {}, patch(data.causes.get(r.cause)), data.causes.get(r.cause)?.title ?? r.cause),
        cell(r.a),
        cell(r.b),
        h('td', {}, more(r.b - r.a)),
      ),
    ),
    h(
      'tr',
      { class: 'all' },
      h('td', {}, 'together'),
      h('td', {}, duration(length(a))),
      h('td', {}, duration(length(b))),
      h('td', {}, more(length(b) - length(a))),
    ),
  );
}

/** One sentence: how much longer, and what most of it is. */
function sentence(data: Data, a: Pick, b: Pick): string {
  const [slow, fast] = length(b) >= length(a) ? [b, a] : [a, b];
  const by = length(slow) - length(fast);
  if (by <= 0) return 'Both take the same time.';
  const [one, two] = [sums(slow), sums(fast)];
  const [cause, ns] = [...one]
    .map(([id, ns]) => [id, ns - (two.get(id) ?? 0)] as const)
    .reduce((x, y) => (y[1] > x[1] ? y : x), ['', 0]);
  const most = ns > 0 ? `; ${percent(Math.min(1, ns / by))} of that: ${data.causes.get(cause)?.title ?? cause}` : '';
  return `${nameOf(slow)} takes ${duration(by)} longer${most}.`;
}

/** Both, `width` CSS pixels wide; `a` is the one that was put aside. */
export function beside(data: Data, a: Pick, b: Pick, width: number, remove: () => void): HTMLElement {
  const longest = Math.max(length(a), length(b));
  const ladders = h('div', { class: 'ladders' });
  const wide = width >= 760;
  void Promise.all([a, b].map(p => tracked(data, p.c.id))).then(tracks => {
    [a, b].forEach((p, i) => {
      const host = {
        data,
        connection: p.c,
        exchange: p.x,
        track: tracks[i] ?? EMPTY,
        chosen: () => null,
        pick: (span: { id: string }) => {
          location.hash = address({ connection: p.c.id, exchange: p.x.id, span: span.id });
        },
      };
      const picture = ladder(host, wide ? Math.floor((width - 24) / 2) : width);
      ladders.append(scroll(`packets of ${nameOf(p)}`, h('h3', {}, nameOf(p)), picture));
    });
  });
  return h(
    'section',
    { class: 'beside' },
    h(
      'div',
      { class: 'tools' },
      h('h2', {}, `${nameOf(a)} beside ${nameOf(b)}`),
      h('div', { class: 'buttons' }, h('button', { type: 'button', click: remove }, 'take away')),
    ),
    h('p', {}, sentence(data, a, b)),
    strip(data, a, longest),
    strip(data, b, longest),
    differences(data, a, b),
    h('details', {}, h('summary', {}, 'both as ladders'), ladders),
  );
}
