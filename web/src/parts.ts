// Pieces that the first screen and the page of a connection share.

import { patch } from './causes';
import { address, type Data, placeOf, timesOf } from './data';
import { coded, h } from './dom';
import { bytes, count, duration, percent, range } from './format';
import type { Cause, Connection, Finding, Fix, Frames } from './types';

const OWNER = { tcp: 'TCP', application: 'application', path: 'path', none: 'not known' };

/** Who has to act. */
export function whose(cause: Pick<Cause, 'owner' | 'class'> & { cause?: string }, side?: string | null): string {
  const owner = OWNER[cause.owner];
  // A host that ignores SYNs is at fault for what is the path's elsewhere.
  if (cause.cause === 'syn_retransmit' && side === 'server') return 'at the server';
  if (cause.owner === 'path') return cause.class === 'I' ? 'path, unavoidable here' : owner;
  return side && cause.owner !== 'none' ? `${owner}, at the ${side}` : owner;
}

/** How sure something is, in a word: as `sureness` in report/src/answer has it. */
function sureness(confidence: number): string {
  return confidence >= 0.9 ? 'sure' : confidence >= 0.7 ? 'likely' : 'a guess';
}

/** Where the time went: a bar, and what its parts are. */
export function timeBar(data: Data, times: [string, number][], pick: (cause: Cause) => void): HTMLElement {
  const known = times.flatMap(([id, ns]) => {
    const cause = data.causes.get(id);
    return cause && ns > 0 ? [{ cause, ns }] : [];
  });
  const sum = known.reduce((s, k) => s + k.ns, 0);
  known.sort((a, b) => b.ns - a.ns);
  const bar = h(
    'div',
    { class: 'bar', role: 'group', 'aria-label': 'where the time went' },
    ...known.map(({ cause, ns }) => {
      const share = ns / sum;
      const text = `${cause.title}: ${duration(ns)} (${percent(share)})`;
      return h(
        'button',
        {
          type: 'button',
          class: `part g-${cause.group}`,
          style: `flex:${share} 1 0`,
          title: text,
          'aria-label': text,
          click: () => pick(cause),
        },
        share > 0.09 ? h('span', {}, h('b', {}, percent(share)), h('span', {}, ` ${cause.title}`)) : null,
      );
    }),
  );
  const row = ({ cause, ns }: (typeof known)[number]) =>
    h(
      'li',
      {},
      h(
        'button',
        { type: 'button', 'data-cause': cause.id, click: () => pick(cause) },
        patch(cause),
        h(
          'span',
          { class: 'name' },
          cause.title,
          h('span', { class: 'class' }, h('code', {}, cause.id), ` · ${whose(cause)}`),
        ),
        h('b', { class: 'time' }, duration(ns)),
        h('span', { class: 'share' }, percent(ns / sum)),
      ),
    );
  // What nobody would see in the bar is listed on demand, if it is more than a line.
  const small = known.filter((k, i) => i > 1 && k.ns < 0.01 * sum);
  const rest = small.length > 2 ? small : [];
  const key = (list: typeof known) => h('ul', { class: 'bar-key' }, ...list.map(row));
  return h(
    'div',
    {},
    bar,
    key(known.slice(0, known.length - rest.length)),
    rest.length
      ? h(
          'details',
          {},
          h('summary', {}, `${rest.length} smaller, ${duration(rest.reduce((s, k) => s + k.ns, 0))} together`),
          key(rest),
        )
      : null,
  );
}

/** Those that hold time of requests, by that time. */
export function byRequests(findings: Finding[]): Finding[] {
  return findings.filter(f => f.requests_ns > 0).sort((a, b) => b.requests_ns - a.requests_ns);
}

/** The fix of a finding that wins most: what a replay says counts before a bound. */
export function best(f: Finding): Fix | undefined {
  const wins = (x: Fix) => x.saves_ns !== null && x.saves_ns > 0;
  return f.fixes.find(x => wins(x) && predicted(x)) ?? f.fixes.find(wins) ?? f.fixes[0];
}

/** Fixes with what they win taken away: it would be that of others, too. */
const bare = (fix: Fix): Fix => ({ ...fix, saves_ns: null, basis: '' });

/**
 * The fixes of a cause on a connection: its own; those of the capture where they are made for it; of those for another
 * connection what names none.
 */
export function fixesOn(data: Data, c: Connection, cause: string, side: string | null): Fix[] {
  const same = (f: Finding) => f.cause === cause && f.side === side;
  const f = c.findings.find(same);
  const own = f?.fixes.length ? f.fixes : data.page.fixes[f?.id ?? ''];
  if (own) return own;
  const at = data.report.findings.findIndex(same);
  const whole = data.report.findings[at];
  if (!whole) return [];
  const ours = (fix: Fix) => fix.applies_to.connection === c.id;
  if (whole.fixes.every(ours)) return whole.connection_count > 1 ? whole.fixes.map(bare) : whole.fixes;
  return whole.fixes.map((fix, i) => {
    const general = new Set(data.page.general[at]?.[i]);
    return { ...bare(fix), how: fix.how.filter((_, k) => general.has(k)), program: undefined };
  });
}

/** What is inherent in the requests of a connection, of which its own findings say nothing: the distance, a link that was busy. */
export function inherentOn(data: Data, c: Connection): Finding[] {
  const { connections, summary, findings } = data.report;
  const alone = connections.length === 1 && !summary.connections_omitted;
  const times = timesOf(c);
  const sum = times.reduce((s, [, ns]) => s + ns, 0);
  return times.flatMap(([id, ns]): Finding[] => {
    const cause = data.causes.get(id);
    const whole = findings.find(f => f.cause === id);
    if (cause?.class !== 'I' || !whole || c.findings.some(f => f.cause === id)) return [];
    // Those of the capture are of this connection, if there is no other.
    if (alone) return [whole];
    const parts = [{ id: 0, spans: c.setup?.spans ?? [] }, ...c.exchanges].flatMap(x =>
      x.spans.filter(s => s.cause === id).map(span => ({ x: x.id, span, ns: span.end_ns - span.start_ns })),
    );
    if (!parts.length) return [];
    const longest = parts.reduce((a, b) => (b.ns > a.ns ? b : a));
    const { frames, start_ns, end_ns, confidence, side, why } = longest.span;
    return [
      {
        ...whole,
        id: `${c.id}.${id}`,
        requests_ns: ns,
        share_of_requests: ns / sum,
        minor: longest.ns < 1e6 && ns < 0.01 * sum,
        confidence,
        side,
        why,
        // Those that are summed, and not listed, are not counted.
        occurrences: c.exchanges_omitted ? 0 : parts.reduce((n, p) => n + Math.max(1, p.span.folded), 0),
        shortest_ns: Math.min(...parts.map(p => p.ns)),
        longest_ns: longest.ns,
        connection_count: 1,
        example: {
          connection: c.id,
          exchange: longest.x || null,
          frames,
          start_ns,
          end_ns,
          display_filter: '',
        },
        evidence: [],
        exchange_names: [],
        model: null,
        fixes: fixesOn(data, c, id, whole.side).map(bare),
      },
    ];
  });
}

/** The time is an application's own: its fixes say where to look next. */
export function isNext(cause: Cause | undefined): boolean {
  return cause?.class === 'A' && cause.span;
}

/** How many servers hold time of these findings, unless nearly all of it is that of `named`: as `spread` in report/src/answer. */
function spread(data: Data, named: string, against: Finding[]): number | null {
  // Those of a connection are of one; of what is inherent connections are not counted.
  const whole = against.filter(f => data.report.findings.includes(f));
  if (!whole.some(f => f.connection_count > 1 || f.class === 'I')) return null;
  const time = (causes: Record<string, number>) => against.reduce((sum, f) => sum + (causes[f.cause] ?? 0), 0);
  const held = data.report.summary.servers.map(s => ({ server: s.server, ns: time(s.causes) })).filter(s => s.ns > 0);
  const all = held.reduce((sum, s) => sum + s.ns, 0);
  const own = held.find(s => s.server === named)?.ns ?? 0;
  return held.length > 1 && own * 10 < all * 9 ? held.length : null;
}

/** ` (on the client)`, where it is known; of several servers which one, or on how many, where it takes them all. */
export function place(data: Data, fix: Fix, against: Finding[]): string {
  const { server } = fix.applies_to;
  if (fix.where === 'server' && server && data.report.summary.servers.length > 1) {
    // Where to look next is one of them.
    const several = fix.id === 'application' ? null : spread(data, String(server), against);
    return several ? ` (on ${several} servers)` : ` (on ${server})`;
  }
  return ['client', 'server', 'path'].includes(fix.where) ? ` (on the ${fix.where})` : '';
}

/** How near the model comes, and what would be done in vain. */
function replayed(data: Data, f: Finding, said: Set<string>): HTMLElement | null {
  const m = f.model;
  // Findings of one example share the replay: it is said once.
  if (!m || said.has(`${m.connection}/${m.first_exchange}`)) return null;
  said.add(`${m.connection}/${m.first_exchange}`);
  const [ours, seen] = [duration(m.modelled_ns), duration(m.observed_ns)];
  // Without the part a reader takes the times for those of the capture.
  const [n, all] = [m.last_exchange - m.first_exchange + 1, data.report.summary.requests];
  const part = `connection ${m.connection}, ${n < all ? `${n} of ${count(all, 'request')}` : count(n, 'request')}`;
  const error = `${m.error < 0 ? '-' : '+'}${Math.abs(m.error * 100).toFixed(0)} %`;
  if (!m.trustworthy)
    return h(
      'p',
      { class: 'model' },
      `Saving not predicted: the simulation of ${part} (${ours}) does not match this capture (${seen}, ${error}).`,
    );
  const helps = (id: string) => f.fixes.some(x => x.id === id && (x.saves_ns ?? 0) > 0);
  const vain = m.no_help
    .filter(v => !helps(v.id) && (v.where === 'both' || !m.no_help.some(o => o.id === v.id && o.where === 'both')))
    .map(v => (v.where === 'path' ? v.what : `${v.what} (${v.where})`));
  return h(
    'p',
    { class: 'model' },
    `Replayed: ${part}: ${ours} simulated, ${seen} measured (${error})${n < all ? '; gains are scaled to all' : ''}.${vain.length ? ` Would not help: ${vain.join(', ')}.` : ''}`,
  );
}

/** `among them 27 x POST /orders, 3 x GET /`: the exchanges that show it, by name. */
function called(f: Finding): string {
  return `among them ${(f.exchange_names ?? []).map(n => `${n.count} x ${n.name}`).join(', ')}`;
}

/** A finding: what was lost, why, what would fix it. */
export function finding(
  data: Data,
  f: Finding,
  go: (f: Finding) => void,
  page: (cause: Cause) => void,
  said = new Set<string>(),
): HTMLElement {
  const cause = data.causes.get(f.cause);
  const times =
    cause?.span && f.occurrences > 0
      ? f.occurrences === 1
        ? 'Once. '
        : `${f.occurrences} times, ${range(f.shortest_ns, f.longest_ns)} each. `
      : '';
  const on = f.connection_count > 1 ? `On ${count(f.connection_count, 'connection')}. ` : '';
  const note = whose(f, f.side) + (f.owner === 'none' ? '' : ` · ${sureness(f.confidence)}`);
  const frames = f.evidence
    .filter(e => e.first)
    .slice(0, 5)
    .flatMap((e, i) => {
      const place = placeOf(data, f.cause, e);
      const link = place ? h('a', { href: address(place) }, chain(e)) : chain(e);
      return i ? [', ', link] : [link];
    });
  const saved = best(f);
  return h(
    'article',
    { class: `finding class-${f.class}`, 'data-finding': f.id },
    h('div', { class: 'lost' }, h('b', {}, duration(f.requests_ns)), h('span', {}, percent(f.share_of_requests))),
    h(
      'div',
      { class: 'what' },
      h(
        'h3',
        {},
        patch(cause),
        h(
          'span',
          {},
          h(
            'button',
            { type: 'button', class: 'link', click: () => cause && page(cause), title: `what ${f.cause} is` },
            f.title,
          ),
          h('span', { class: 'note' }, note),
        ),
      ),
      h('p', {}, times + on + f.why),
      f.exchange_names?.length ? h('p', {}, called(f)) : null,
      frames.length
        ? h(
            'p',
            {
              class: 'frames',
              title:
                'numbers of packets in the capture, as Wireshark counts them; a>b>c: these packets, in this order, decide',
            },
            'frames ',
            ...frames,
            f.occurrences > 5 ? ', …' : null,
          )
        : null,
      // That requests wait for each other need not be.
      ...fixes(data, f.fixes, isNext(cause) && !f.in_turn, [f]),
      f.class === 'A' ? null : replayed(data, f, said),
      f.example
        ? h(
            'button',
            { type: 'button', class: 'go', click: () => go(f) },
            f.example.exchange
              ? `See it: connection ${f.example.connection}, exchange ${f.example.exchange}`
              : `See it: connection ${f.example.connection}`,
          )
        : null,
    ),
    h('div', { class: 'gain' }, saved?.saves_ns && saved.saves_ns > 0 && f.class !== 'A' ? gain(saved) : null),
  );
}

/** The model was run again with this fix: `saves_ns` is its answer. */
export const predicted = (fix: Fix): boolean => fix.basis === 'predicted';

/** What a fix wins: what the model predicts where it did, else the bound. */
export function gain(fix: Fix): HTMLElement {
  return h(
    'span',
    { class: 'saves' },
    predicted(fix) ? 'predicted to save ' : 'saves up to ',
    h('b', {}, duration(fix.saves_ns ?? 0)),
  );
}

/** `nginx is a guess from the first bytes of the connection`. */
function guessed(list: Fix[]): string | null {
  const program = list.find(fix => fix.program)?.program;
  if (!program) return null;
  const by = program.told_by === 'port' ? 'the port' : 'the first bytes of the connection';
  return `(${program.name} is a guess from ${by})`;
}

/** The rows of a fix that stand there at once: the one for the program in sight, behind the one that says when to look. */
const ROWS = (fix: Fix) => (fix.id === 'application' ? 2 : 1);

/** `next`: they say where to look, and save nothing by themselves. */
export function fixes(data: Data, list: Fix[], next: boolean, against: Finding[]): HTMLElement[] {
  const open = next ? 1 : 2;
  const one = (fix: Fix, lead: string): HTMLElement =>
    h(
      'div',
      { class: 'fix' },
      h(
        'p',
        {},
        h('b', {}, lead),
        fix.title,
        h('span', { class: 'where' }, place(data, fix, against)),
        predicted(fix) ? h('span', { class: 'where' }, ` · predicted to save ${duration(fix.saves_ns ?? 0)}`) : null,
      ),
      fix.how.length ? h('ul', {}, ...fix.how.map(how => h('li', {}, ...coded(how.replace(/^Any: /, ''))))) : null,
    );
  const shown: HTMLElement[] = list.slice(0, open).map((fix, i) => {
    const rows = ROWS(fix);
    const element = one({ ...fix, how: fix.how.slice(0, rows) }, i ? 'or: ' : next ? 'next: ' : 'fix: ');
    if (fix.how.length > rows)
      element.append(
        h(
          'details',
          {},
          h('summary', {}, `${count(fix.how.length - rows, 'other system')}`),
          h('ul', {}, ...fix.how.slice(rows).map(how => h('li', {}, ...coded(how)))),
        ),
      );
    return element;
  });
  const guess = guessed(list.slice(0, open));
  if (guess) shown.push(h('p', { class: 'guess' }, guess));
  if (list.length > open)
    shown.push(
      h(
        'details',
        { class: 'more-fixes' },
        h('summary', {}, list.length - open === 1 ? '1 other fix' : `${list.length - open} other fixes`),
        ...list.slice(open).map(fix => one(fix, '')),
      ),
    );
  return shown;
}

/** `16>17>18`: what decides, in its order. */
export function chain(f: Frames): string {
  if (f.key.length) return f.key.join('>');
  return f.first === f.last ? String(f.first) : `${f.first}-${f.last}`;
}

/** A bar of the causes of one row. */
export function miniBar(data: Data, times: [string, number][]): HTMLElement {
  const sum = times.reduce((s, t) => s + t[1], 0) || 1;
  return h(
    'span',
    { class: 'mini', 'aria-hidden': 'true' },
    ...times
      .filter(t => t[1] / sum > 0.01)
      .map(([id, ns]) =>
        h('i', {
          class: `g-${data.causes.get(id)?.group}`,
          style: `flex:${ns / sum} 1 0`,
          title: `${id} ${duration(ns)}`,
        }),
      ),
  );
}

export { bytes, count, duration };
