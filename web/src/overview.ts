// The first screen: the verdict, where the time went, what was found, and all connections and exchanges.

import { changes } from './changes';
import { type Data, gapsOf, tcpTime, timesOf, worst } from './data';
import { h } from './dom';
import { bytes, count, duration, moment, percent } from './format';
import { byRequests, finding, miniBar, timeBar } from './parts';
import { servers } from './servers';
import { type Column, Table } from './table';
import type { Cause, Connection, Exchange, Finding } from './types';

export interface Links {
  connection: (id: number, exchange?: number) => void;
  example: (f: Finding) => void;
  cause: (cause: Cause) => void;
}

export function overview(data: Data, links: Links): HTMLElement {
  const { report } = data;
  const { summary } = report;
  // What is too small is named, no more.
  const some = byRequests(report.findings);
  const findings = some.filter(f => !f.minor);
  const minor = some.filter(f => f.minor);
  const times = summary.causes.map((c): [string, number] => [c.cause, c.requests_ns]);
  const said = new Set<string>();
  const show = (f: Finding) => finding(data, f, links.example, links.cause, said);
  return h(
    'div',
    { class: 'overview' },
    h(
      'section',
      { class: 'verdict' },
      h('h1', {}, summary.headline),
      times.length ? timeBar(data, times, links.cause) : null,
      between(data),
      report.connections.length && summary.request_ns > 0
        ? changes(data, findings, times, summary.request_ns, f => reveal(f))
        : null,
    ),
    findings.length
      ? h(
          'section',
          {},
          h('h2', {}, 'What was found'),
          ...findings.map(show),
          minor.length
            ? h('p', { class: 'dim' }, `smaller: ${minor.map(f => `${f.title} ${duration(f.requests_ns)}`).join(', ')}`)
            : null,
        )
      : null,
    servers(data),
    notes(data),
    report.connections.length ? lists(data, links) : null,
  );
}

/** The time in which no request was on its way. */
function between(data: Data): HTMLElement | null {
  const { causes, idle_ns, at_once } = data.report.summary;
  const parts = causes.filter(c => c.idle_ns > 0).sort((a, b) => b.idle_ns - a.idle_ns);
  if (!parts.length) return null;
  const name = (id: string) => data.causes.get(id)?.title ?? id;
  return h(
    'p',
    { class: 'dim' },
    `Idle between requests: ${duration(idle_ns)}${at_once ? ' added up' : ''} (${parts
      .map(c => `${name(c.cause)} ${duration(c.idle_ns)}`)
      .join(', ')})`,
  );
}

/** Brings the card of a finding into sight. */
function reveal(f: Finding): void {
  const card = document.querySelector<HTMLElement>(`.overview [data-finding="${CSS.escape(f.id)}"]`);
  const folded = card?.closest('details');
  if (folded) folded.open = true;
  card?.scrollIntoView({ block: 'center' });
  card?.querySelector<HTMLElement>('.link')?.focus({ preventScroll: true });
}

function notes(data: Data): HTMLElement | null {
  const { warnings, encapsulations } = data.report.capture;
  const through = Object.entries(encapsulations).map(([name, n]) => `${name} (${count(n, 'packet')})`);
  if (!warnings.length && !through.length) return null;
  return h(
    'section',
    { class: 'notes' },
    h('h2', {}, 'What the capture cannot show'),
    h(
      'ul',
      {},
      ...warnings.map(w => h('li', {}, `${w.text}${w.count > 1 ? ` (${w.count} times)` : ''}`)),
      through.length ? h('li', {}, `seen through: ${through.join(', ')}`) : null,
    ),
  );
}

/** Connections and exchanges, with a search and a filter by cause. */
function lists(data: Data, links: Links): HTMLElement {
  const { report } = data;
  const rows = report.connections.map(c => {
    const times = timesOf(c);
    return {
      c,
      times,
      tcp: tcpTime(data, c),
      worst: worst(times) ?? worst(gapsOf(c)),
      text: `${c.id} ${c.client} ${c.server} ${c.protocol ?? ''} ${c.quality.join(' ')} ${times.map(t => t[0]).join(' ')}`.toLowerCase(),
    };
  });
  type Row = (typeof rows)[number];
  const columns: Column<Row>[] = [
    { title: 'id', width: '44px', right: true, value: r => r.c.id },
    { title: 'client', width: 'minmax(150px,1fr)', rank: 2, value: r => r.c.client },
    { title: 'server', width: 'minmax(150px,1fr)', value: r => r.c.server },
    {
      title: 'start',
      hint: 'since the start of the capture',
      width: '100px',
      right: true,
      rank: 4,
      value: r => r.c.start_ns,
      show: r => moment(r.c.start_ns),
    },
    {
      title: 'duration',
      width: '76px',
      right: true,
      down: true,
      value: r => r.c.end_ns - r.c.start_ns,
      show: r => duration(r.c.end_ns - r.c.start_ns),
    },
    {
      title: 'exchanges',
      hint: 'requests with their responses',
      width: '84px',
      right: true,
      down: true,
      rank: 3,
      value: r => r.c.exchanges.length + (r.c.exchanges_omitted?.count ?? 0),
    },
    {
      title: 'bytes',
      width: '80px',
      right: true,
      down: true,
      rank: 5,
      value: r => r.c.bytes.client + r.c.bytes.server,
      show: r => bytes(r.c.bytes.client + r.c.bytes.server),
    },
    {
      title: 'RTT',
      hint: 'shortest round trip seen',
      width: '70px',
      right: true,
      down: true,
      rank: 6,
      value: r => r.c.path.rtt_ns ?? -1,
      show: r => (r.c.path.rtt_ns === null ? '-' : duration(r.c.path.rtt_ns)),
    },
    {
      title: 'TCP',
      hint: 'time that is of TCP or the hosts, and can be won back',
      width: '72px',
      right: true,
      down: true,
      value: r => r.tcp,
      show: r => (r.tcp ? duration(r.tcp) : '-'),
    },
    {
      title: 'worst cause',
      hint: 'the worst of TCP if it holds 5 %, else the largest',
      width: 'minmax(184px,1.2fr)',
      value: r => r.worst?.[0] ?? '',
      show: r => h('span', { class: 'worst' }, miniBar(data, r.times), r.worst ? r.worst[0] : '-'),
    },
  ];
  const connections = new Table<Row>(rows, columns, {
    label: 'Connections',
    pick: r => links.connection(r.c.id),
    empty: 'no connection matches',
    clear: () => clear(),
    lines: r => [
      `${r.c.id}  ${r.c.client} → ${r.c.server}`,
      h(
        'span',
        { class: 'worst' },
        h('b', {}, duration(r.c.end_ns - r.c.start_ns)),
        r.tcp ? `TCP ${duration(r.tcp)}` : null,
        miniBar(data, r.times),
        r.worst ? r.worst[0] : '-',
      ),
    ],
  });
  if (rows.length > 1) connections.sort(8, true);
  const {
    table: exchanges,
    text: exchangeText,
    times: exchangeTimes,
  } = exchangeTable(
    data,
    report.connections,
    (c, x) => links.connection(c.id, x.id),
    true,
    undefined,
    () => clear(),
  );
  const listed = report.connections.reduce((n, c) => n + c.exchanges.length, 0);
  const left = data.page.exchanges - listed;
  const unlisted = report.summary.connections_omitted;
  let tab = 0;
  const holder = h('div', {});
  const counted = h('span', { class: 'counted', role: 'status' });
  const search = h('input', {
    type: 'search',
    id: 'search',
    placeholder: 'search: address, port, cause, protocol, name',
    'aria-label': 'search',
    input: () => update(),
  });
  const present = [...new Set(rows.flatMap(r => r.times.map(t => t[0])))]
    .map(id => data.causes.get(id))
    .filter(c => c !== undefined);
  const select = h(
    'select',
    { id: 'cause', 'aria-label': 'cause', change: () => update() },
    h('option', { value: '' }, 'any cause'),
    ...present.map(c => h('option', { value: c.id }, `${c.id}: ${c.title}`)),
  );
  const tabs = ['Connections', 'Exchanges'].map((name, i) =>
    h(
      'button',
      {
        type: 'button',
        role: 'tab',
        class: 'tab',
        click: () => {
          tab = i;
          update();
        },
      },
      name,
    ),
  );
  const clear = () => {
    search.value = '';
    select.value = '';
    update();
    search.focus();
  };
  const update = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const cause = select.value;
    const match = (text: string, times: [string, number][]) =>
      words.every(w => text.includes(w)) && (!cause || times.some(t => t[0] === cause));
    for (const [i, t] of tabs.entries()) t.setAttribute('aria-selected', String(i === tab));
    if (tab === 0) connections.filter(r => match(r.text, r.times));
    else exchanges.filter(r => match(exchangeText(r), exchangeTimes(r)));
    const table = tab === 0 ? connections : exchanges;
    holder.replaceChildren(table.element);
    const more =
      tab === 1 && left > 0
        ? `; ${left} shorter ones are summed in their connections (--exchanges all lists them)`
        : tab === 0 && unlisted > 0
          ? `; ${unlisted} more in the sums only (--json has all that carried data)`
          : '';
    counted.textContent =
      (tab === 0
        ? `${count(table.count, 'connection')} of ${rows.length}`
        : `${count(table.count, 'exchange')} of ${listed}`) + more;
  };
  update();
  return h(
    'section',
    { class: 'lists' },
    h('div', { class: 'tabs', role: 'tablist' }, ...tabs),
    h('p', { class: 'dim about' }, 'An exchange is one request and the response to it. A row opens its graphs.'),
    h('div', { class: 'find' }, search, select, counted),
    holder,
  );
}

export interface ExchangeRow {
  c: Connection;
  x: Exchange;
}

/** Exchanges of some connections. */
export function exchangeTable(
  data: Data,
  connections: Connection[],
  pick: (c: Connection, x: Exchange) => void,
  all: boolean,
  chosen?: (row: ExchangeRow) => boolean,
  clear?: () => void,
) {
  const rows: ExchangeRow[] = connections.flatMap(c => c.exchanges.map(x => ({ c, x })));
  const cache = new Map<Exchange, [string, number][]>();
  const times = ({ x }: ExchangeRow) => {
    let known = cache.get(x);
    if (!known) {
      const sums = new Map<string, number>();
      for (const s of x.spans) sums.set(s.cause, (sums.get(s.cause) ?? 0) + s.end_ns - s.start_ns);
      known = [...sums].sort((a, b) => b[1] - a[1]);
      cache.set(x, known);
    }
    return known;
  };
  const text = (r: ExchangeRow) =>
    `${r.c.id}/${r.x.id} ${r.x.name ?? ''} ${r.c.client} ${r.c.server} ${r.c.protocol ?? ''} ${r.x.ended} ${times(r)
      .map(t => t[0])
      .join(' ')}`.toLowerCase();
  const shown = (r: ExchangeRow) => {
    const w = worst(times(r));
    const total = Math.max(1, r.x.end_ns - r.x.start_ns);
    return h(
      'span',
      { class: 'worst' },
      miniBar(data, times(r)),
      w ? `${w[0]} ${duration(w[1])} (${percent(w[1] / total)})` : '-',
    );
  };
  const columns: Column<ExchangeRow>[] = [
    ...(all ? [{ title: 'connection', width: '92px', right: true, value: (r: ExchangeRow) => r.c.id }] : []),
    { title: 'exchange', width: '84px', right: true, value: r => r.x.id },
    ...(rows.some(r => r.x.name)
      ? [
          {
            title: 'name',
            hint: 'from the first bytes of the request',
            width: 'minmax(120px,240px)',
            value: (r: ExchangeRow) => r.x.name ?? '-',
          },
        ]
      : []),
    {
      title: 'start',
      hint: 'since the start of the capture',
      width: '112px',
      right: true,
      rank: 3,
      value: r => r.x.start_ns,
      show: r => moment(r.x.start_ns),
    },
    {
      title: 'duration',
      width: '88px',
      right: true,
      down: true,
      value: r => r.x.end_ns - r.x.start_ns,
      show: r => duration(r.x.end_ns - r.x.start_ns),
    },
    {
      title: 'request',
      width: '90px',
      right: true,
      down: true,
      rank: 1,
      value: r => r.x.request_bytes,
      show: r => bytes(r.x.request_bytes),
    },
    {
      title: 'response',
      width: '90px',
      right: true,
      down: true,
      rank: 2,
      value: r => r.x.response_bytes,
      show: r => bytes(r.x.response_bytes),
    },
    {
      title: 'ended',
      hint: 'how, where it was not completed',
      width: '96px',
      rank: 4,
      value: r => r.x.ended,
      show: r => (r.x.complete ? '' : r.x.ended),
    },
    { title: 'worst cause', width: 'minmax(260px,1fr)', value: r => worst(times(r))?.[0] ?? '', show: shown },
  ];
  const table = new Table<ExchangeRow>(rows, columns, {
    label: 'Exchanges',
    pick: r => pick(r.c, r.x),
    chosen,
    most: all ? 14 : 9,
    empty: 'no exchange matches',
    clear,
    lines: r => [
      `${all ? `${r.c.id}/` : ''}${r.x.id}${r.x.name ? ` ${r.x.name}` : ''}  at ${moment(r.x.start_ns)}: ${bytes(r.x.request_bytes)} → ${bytes(r.x.response_bytes)}${r.x.complete ? '' : `, ${r.x.ended}`}`,
      h('span', { class: 'worst' }, h('b', {}, duration(r.x.end_ns - r.x.start_ns)), shown(r)),
    ],
  });
  if (rows.length > 1)
    table.sort(
      columns.findIndex(c => c.title === (all ? 'duration' : 'exchange')),
      all,
    );
  return { table, text, times };
}
