// Pieces that the first screen and the page of a connection share.

import { patch } from './causes';
import type { Data } from './data';
import { h } from './dom';
import { bytes, count, duration, percent, range } from './format';
import type { Cause, Finding, Fix, Frames } from './types';

const CLASS: Record<string, string> = { T: 'TCP or host', A: 'application', I: 'path and sizes', U: 'not known' };

/** Where the time went: a bar, and what its parts are. */
export function timeBar(data: Data, times: [string, number][], total: number, pick: (cause: Cause) => void): HTMLElement {
  const known = times.flatMap(([id, ns]) => { const cause = data.causes.get(id); return cause && ns > 0 ? [{ cause, ns }] : []; });
  const sum = Math.max(total, known.reduce((s, k) => s + k.ns, 0));
  // TCP first: it is what the page is about.
  const rank = { T: 0, U: 1, A: 2, I: 3 };
  known.sort((a, b) => rank[a.cause.class] - rank[b.cause.class] || b.ns - a.ns);
  const bar = h('div', { class: 'bar', role: 'img', 'aria-label': 'where the time went' }, ...known.map(({ cause, ns }) => {
    const share = ns / sum;
    const text = `${cause.title}: ${duration(ns)} (${percent(share)})`;
    return h('button', { type: 'button', class: `part g-${cause.group}`, style: `flex:${share} 1 0`, title: text, 'aria-label': text, click: () => pick(cause) },
      share > 0.09 ? h('span', {}, h('b', {}, percent(share)), ` ${cause.id}`) : null);
  }));
  const key = h('ul', { class: 'bar-key' }, ...known.slice().sort((a, b) => b.ns - a.ns).map(({ cause, ns }) =>
    h('li', {}, h('button', { type: 'button', 'data-cause': cause.id, click: () => pick(cause) }, patch(cause),
      h('span', { class: 'name' }, cause.title), h('span', { class: 'class' }, CLASS[cause.class]),
      h('b', { class: 'time' }, duration(ns)), h('span', { class: 'share' }, percent(ns / sum))))));
  return h('div', {}, bar, key);
}

/** A finding: what was lost, why, what would fix it. */
export function finding(data: Data, f: Finding, go: (f: Finding) => void, page: (cause: Cause) => void): HTMLElement {
  const cause = data.causes.get(f.cause);
  const waited = f.lost_ns - f.after_last_byte_ns;
  const times = cause?.span && f.occurrences > 0 ? f.occurrences === 1 ? 'Once. ' : `${f.occurrences} times, ${range(f.shortest_ns, f.longest_ns)} each. ` : '';
  const on = f.connection_count > 1 ? `On ${count(f.connection_count, 'connection')}. ` : '';
  const note = f.class === 'A' ? 'not TCP' : f.side ? `side: ${f.side}` : '';
  const frames = f.evidence.filter(e => e.first).slice(0, 5).map(chain).join(', ');
  const saved = f.fixes.find(x => predicted(x) && x.saves_ns !== null && x.saves_ns > 0) ?? f.fixes.find(x => x.saves_ns !== null && x.saves_ns > 0);
  return h('article', { class: `finding class-${f.class}`, 'data-finding': f.id },
    h('div', { class: 'lost' }, h('b', {}, duration(waited)), h('span', {}, percent(f.share))),
    h('div', { class: 'what' },
      h('h3', {}, patch(cause), h('button', { type: 'button', class: 'link', click: () => cause && page(cause), title: 'what this cause is' }, f.title),
        note ? h('span', { class: 'note' }, note) : null),
      h('p', {}, times + on + f.why),
      frames ? h('p', { class: 'frames' }, `frames ${frames}${f.occurrences > 5 ? ', …' : ''}`) : null,
      ...fixes(f.fixes, f.class === 'A' ? 0 : 2),
      f.example ? h('button', { type: 'button', class: 'go', click: () => go(f) },
        f.example.exchange ? `See it: connection ${f.example.connection}, exchange ${f.example.exchange}` : `See it: connection ${f.example.connection}`) : null),
    h('div', { class: 'gain' }, saved && f.class !== 'A' ? gain(saved) : null));
}

/** The model was run again with this fix: `saves_ns` is its answer. */
const predicted = (fix: Fix): boolean => fix.basis === 'predicted';

/** What a fix wins: what the model predicts where it did, else the bound. */
export function gain(fix: Fix): HTMLElement {
  return h('span', { class: 'saves' }, predicted(fix) ? 'predicted to save ' : 'saves up to ', h('b', {}, duration(fix.saves_ns ?? 0)));
}

export function fixes(list: Fix[], open: number): HTMLElement[] {
  const one = (fix: Fix, lead: string): HTMLElement => h('div', { class: 'fix' }, h('p', {}, h('b', {}, lead), fix.title,
    h('span', { class: 'where' }, fix.where === 'host' ? '' : ` on the ${fix.where}`),
    predicted(fix) ? h('span', { class: 'where' }, ` · predicted to save ${duration(fix.saves_ns ?? 0)}`) : null),
    h('ul', {}, ...fix.how.map(how => h('li', {}, how.replace(/^Any: /, '')))));
  const shown: HTMLElement[] = list.slice(0, open).map((fix, i) => {
    const rest = fix.how.length > 1;
    const element = one({ ...fix, how: rest ? fix.how.slice(0, 1) : fix.how }, i ? 'or: ' : 'fix: ');
    if (rest) element.append(h('details', {}, h('summary', {}, `${count(fix.how.length - 1, 'other system')}`),
      h('ul', {}, ...fix.how.slice(1).map(how => h('li', {}, how)))));
    return element;
  });
  if (list.length > open)
    shown.push(h('details', { class: 'more-fixes' }, h('summary', {}, `${count(list.length - open, open ? 'other fix' : 'thing')} ${open ? '' : 'to try'}`.replace('fixs', 'fixes')),
      ...list.slice(open).map(fix => one(fix, ''))));
  return shown;
}

/** `16 › 17 › 18`. */
export function chain(f: Frames): string {
  if (f.key.length) return f.key.join('>');
  return f.first === f.last ? String(f.first) : `${f.first}-${f.last}`;
}

/** A bar of the causes of one row. */
export function miniBar(data: Data, times: [string, number][]): HTMLElement {
  const sum = times.reduce((s, t) => s + t[1], 0) || 1;
  return h('span', { class: 'mini', 'aria-hidden': 'true' }, ...times.filter(t => t[1] / sum > 0.01).map(([id, ns]) =>
    h('i', { class: `g-${data.causes.get(id)?.group}`, style: `flex:${ns / sum} 1 0`, title: `${id} ${duration(ns)}` })));
}

export { bytes, count, duration };
