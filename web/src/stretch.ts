// A stretch of time that was chosen: what filled it.

import type { Data } from './data';
import { h } from './dom';
import { bytes, count, duration, moment } from './format';
import { lower, type Track } from './packets';
import type { Placed } from './panels';
import { timeBar } from './parts';
import type { Cause, Connection } from './types';

export type Stretch = [number, number];

/** Time by cause within a stretch, the longest first; spans that reach beyond it count with what is in it. */
export function sumOf(spans: Placed[], [from, to]: Stretch): [string, number][] {
  const sums = new Map<string, number>();
  for (const { span } of spans) {
    const ns = Math.min(span.end_ns, to) - Math.max(span.start_ns, from);
    if (ns > 0) sums.set(span.cause, (sums.get(span.cause) ?? 0) + ns);
  }
  return [...sums].sort((a, b) => b[1] - a[1]);
}

/** What the drawer says of a stretch. */
export function stretch(
  data: Data,
  c: Connection,
  spans: Placed[],
  track: Track | null,
  chosen: Stretch,
  pick: (cause: Cause) => void,
  closer: () => void,
): HTMLElement[] {
  const [from, to] = chosen;
  const times = sumOf(spans, chosen);
  const covered = times.reduce((sum, t) => sum + t[1], 0);
  const left = to - from - covered;
  const row = (name: string, value: string | null) => (value === null ? [] : [h('dt', {}, name), h('dd', {}, value)]);
  const exchanges = c.exchanges.filter(x => x.start_ns < to && x.end_ns > from);
  const sent = [0, 0];
  let packets = 0;
  if (track)
    for (let i = lower(track.t, from); i < track.n && track.t[i] <= to; i++) {
      packets++;
      sent[track.from[i]] += track.len[i];
    }
  const whole = track !== null && track.n === track.total;
  const omitted = c.exchanges_omitted?.count ?? 0;
  return [
    h('h2', {}, 'A stretch of time'),
    h('p', { class: 'big' }, h('b', {}, duration(to - from)), ` of connection ${c.id}`),
    h(
      'dl',
      {},
      ...row('from', moment(from)),
      ...row('to', moment(to)),
      ...row('exchanges', exchanges.length ? String(exchanges.length) : 'none'),
      ...row(
        'packets',
        whole ? `${packets}: ${bytes(sent[0])} from the client, ${bytes(sent[1])} from the server` : null,
      ),
    ),
    h('h3', {}, 'Where its time went'),
    times.length ? timeBar(data, times, pick) : h('p', {}, 'No span lies in it.'),
    left > 1
      ? h(
          'p',
          { class: 'dim' },
          `${duration(left)} of it before, between or after what is listed${omitted ? ` (${count(omitted, 'exchange')} of this connection are only summed)` : ''}.`,
        )
      : h('span'),
    h('div', { class: 'buttons' }, h('button', { type: 'button', click: closer }, 'show only this (z)')),
  ];
}
