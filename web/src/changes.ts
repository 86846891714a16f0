// What to change, in one look: the changes that win most, with what each wins.

import type { Data } from './data';
import { h } from './dom';
import { duration, percent } from './format';
import { place, predicted } from './parts';
import type { Finding, Fix } from './types';

/** What a change must win to be named: a share of the time of requests. */
const WORTH = 0.01;
const ROWS = 3;

export interface Change {
  fix: Fix;
  /** What it is against, the largest first. */
  against: Finding[];
  /** What it wins, of all these together; null: not known. */
  ns: number | null;
  predicted: boolean;
}

/** The fixes of a finding that tell what they win: those that were replayed, else the first, whose bound is that of all. */
function telling(f: Finding): Fix[] {
  const wins = f.fixes.filter(x => x.saves_ns !== null && x.saves_ns > 0);
  const replayed = wins.filter(predicted);
  return replayed.length ? replayed : (wins.length ? wins : f.fixes).slice(0, 1);
}

/** The change that wins most against these findings. */
function most(data: Data, findings: Finding[]): Change | null {
  const all = new Map<string, Change>();
  for (const f of findings)
    for (const fix of telling(f)) {
      const key = `${fix.id} ${fix.where}`;
      const known = all.get(key);
      if (!known) {
        all.set(key, { fix, against: [f], ns: fix.saves_ns, predicted: predicted(fix) });
        continue;
      }
      known.against.push(f);
      known.predicted &&= predicted(fix);
      // The causes of spans share no time, so what is won of them adds up; the other findings are made of the same spans.
      const own =
        data.causes.get(f.cause)?.span && known.against.slice(0, -1).every(g => data.causes.get(g.cause)?.span);
      known.ns = own ? (known.ns ?? 0) + (fix.saves_ns ?? 0) : Math.max(known.ns ?? 0, fix.saves_ns ?? 0);
    }
  return [...all.values()].reduce<Change | null>((a, b) => (a && weight(a) >= weight(b) ? a : b), null);
}

/** For the order: a gain that is not known is as much as was lost. */
function weight(c: Change): number {
  return c.ns ?? c.against.reduce((sum, f) => sum + f.requests_ns, 0);
}

/** The changes that are worth it, each against what those before it leave. What applications do with their time is
 * theirs, but for requests that wait for each other. */
export function ranked(data: Data, findings: Finding[], total: number): Change[] {
  let left = findings.filter(f => (f.class === 'T' || f.class === 'I' || f.in_turn) && f.fixes.length);
  const out: Change[] = [];
  while (out.length < ROWS) {
    const next = most(data, left);
    if (!next || weight(next) < WORTH * total) break;
    out.push(next);
    left = left.filter(f => !next.against.includes(f));
  }
  return out;
}

/** `times`: all the time by cause. */
export function changes(
  data: Data,
  findings: Finding[],
  times: [string, number][],
  total: number,
  pick: (f: Finding) => void,
): HTMLElement {
  const rows = ranked(data, findings, total);
  const one = ({ fix, against, ns, predicted }: Change) =>
    h(
      'li',
      {},
      h(
        'button',
        { type: 'button', title: 'to the finding', click: () => pick(against[0]) },
        h(
          'span',
          { class: 'won' },
          h('b', {}, ns === null ? '?' : `−${duration(ns)}`),
          h('span', {}, ns === null ? 'gain not known' : predicted ? 'predicted' : 'at most'),
        ),
        h(
          'span',
          { class: 'name' },
          `${fix.title}${place(data, fix, against)}`,
          h(
            'span',
            { class: 'class' },
            `${ns === null ? '' : `${duration(total)} → ${predicted ? '' : 'at least '}${duration(Math.max(0, total - ns))}; `}against: ${against.map(f => f.title).join('; ')}`,
          ),
        ),
      ),
    );
  const [largest] = times
    .flatMap(([id, ns]) => {
      const cause = data.causes.get(id);
      return cause ? [{ cause, ns }] : [];
    })
    .sort((a, b) => b.ns - a.ns);
  return h(
    'div',
    { class: 'changes' },
    h('h2', {}, 'What to change'),
    rows.length
      ? h('ol', {}, ...rows.map(one))
      : h(
          'p',
          {},
          `Nothing in TCP or the path: no change of them would win as much as ${percent(WORTH)} of the time.`,
          largest ? ` Most of it went here: ${largest.cause.title} (${duration(largest.ns)}).` : null,
        ),
    rows.length > 1 ? h('p', { class: 'dim' }, 'Each by itself; together they may save less than the sum.') : null,
  );
}
