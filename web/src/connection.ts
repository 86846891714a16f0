// One connection: who, where its time went, its graphs, an exchange as a ladder, its findings.

import { beside, nameOf, pickOf } from './beside';
import { type Data, detail, frameName, type Place, spansOf, timesOf, track as tracked } from './data';
import type { Drawer } from './drawer';
import { h, scroll } from './dom';
import { bitRate, bytes, count, duration, moment, range } from './format';
import { Graphs, type Placed } from './graphs';
import { EMPTY, ladder, packetTable, type LadderHost } from './ladder';
import { exchangeTable, type Links } from './overview';
import type { Track } from './packets';
import { stretch } from './stretch';
import { byRequests, finding, fixesOn, inherentOn, timeBar } from './parts';
import type { Connection, End, Exchange, Finding, Span } from './types';

/** The room within an element, in CSS pixels. */
function inside(element: HTMLElement): number {
  const { paddingLeft, paddingRight } = getComputedStyle(element);
  const padding = [paddingLeft, paddingRight].reduce((sum, p) => sum + (Number.parseFloat(p) || 0), 0);
  return Math.floor((element.clientWidth || 900) - padding);
}

/** Whether a view shows a span, and as more than a line. */
function shows([from, to]: [number, number], span: Span): boolean {
  return span.end_ns >= from && span.start_ns <= to && span.end_ns - span.start_ns >= (to - from) / 400;
}

export class ConnectionView {
  readonly element = h('div', { class: 'connection' });
  readonly ready: Promise<void>;
  graphs: Graphs | null = null;
  private track: Track | null = null;
  private spans: Placed[];
  private exchange: Exchange | undefined;
  private chosen: Span | null = null;
  private place: Place = {};
  private exchangeBox = h('section', { class: 'exchange', hidden: true });
  private besideBox = h('div');
  private graphBox = h('section', { class: 'graph-box' }, h('p', { class: 'dim' }, 'reading the packets …'));
  private thin = h('p', { class: 'dim thin', hidden: true });
  private list: ReturnType<typeof exchangeTable>['table'];
  private timer = 0;
  private settling = 0;
  private width = 0;
  /** The span was chosen in the ladder: there it is to be seen. */
  private byLadder = false;

  constructor(
    private data: Data,
    readonly c: Connection,
    private links: Links,
    private drawer: Drawer,
    private go: (place: Place) => void,
    /** What is in sight has changed, and stands still. */
    private settled: () => void,
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
    const shown = found(data, c);
    this.element.append(
      h(
        'section',
        { class: 'head' },
        h('h1', {}, `Connection ${c.id}  `, h('span', { class: 'ends' }, `${c.client} → ${c.server}`)),
        h('p', { class: 'facts' }, facts(data, c)),
        timeBar(data, timesOf(c), links.cause),
      ),
      this.graphBox,
      this.exchangeBox,
      this.besideBox,
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
      shown.length
        ? h(
            'section',
            {},
            h('h2', {}, 'What was found on it'),
            ...shown.map(f => finding(data, f, links.example, links.cause)),
          )
        : h('span'),
      h('section', {}, h('h2', {}, 'The two ends'), scroll('the two ends', ends(c))),
    );
    this.ready = this.start();
    // Beside the drawer there is less room.
    new ResizeObserver(() => {
      const width = this.element.clientWidth;
      if (!width || width === this.width) return;
      this.width = width;
      requestAnimationFrame(() => this.drawExchange());
    }).observe(this.element);
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
        pickSpan: p => this.turn({ exchange: p.exchange || undefined, span: p.span.id }),
        pickExchange: id => this.go({ exchange: id }),
        pickStretch: s => this.turn({ exchange: this.place.exchange, stretch: s }),
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
          button('sum', 'sum of what is in sight (s)', () => graphs.select(graphs.from, graphs.to)),
        ),
        h(
          'p',
          { class: 'dim hint' },
          'drag: move · shift-drag: sum of a stretch · wheel: zoom (after a click) · n, p: next, previous cause · click: evidence',
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
    const span = this.spanOf(place);
    this.chosen = span;
    this.place = place;
    if (x !== this.exchange) {
      this.exchange = x;
      this.list.redraw();
      if (x) this.list.reveal(r => r.x === x);
    }
    this.drawExchange();
    this.graphs?.choose(span, place.stretch ?? null);
    this.graphs?.show(...(place.view ?? this.natural(place)));
    if (place.stretch) {
      const closer = () => this.graphs?.closer();
      this.drawer.other(...stretch(this.data, this.c, this.spans, this.track, place.stretch, this.links.cause, closer));
      if (this.graphs) this.drawer.leaveInSight(this.graphs.element);
    } else if (span) {
      this.drawer.span(this.data, this.c, this.exchange, span, this.track);
      const shows = this.byLadder ? this.exchangeBox.querySelector('.band.chosen') : this.graphs?.element;
      if (shows) this.drawer.leaveInSight(shows);
    } else this.drawer.close();
    this.byLadder = false;
  }

  private spanOf(place: Place): Span | null {
    return this.spans.find(s => s.span.id === place.span)?.span ?? null;
  }

  /** What a place shows unless somebody moves: the exchange, or the span alone where it would be too small there. */
  private natural(place: Place): [number, number] {
    const g = this.graphs;
    if (!g) return [0, 1];
    const x = this.c.exchanges.find(e => e.id === place.exchange);
    const pad = x ? Math.max((x.end_ns - x.start_ns) * 0.04, 5000) : 0;
    const view = x ? g.bounded(x.start_ns - pad, x.end_ns + pad) : g.all;
    const span = this.spanOf(place);
    if (!span || shows(view, span)) return view;
    const room = Math.max((span.end_ns - span.start_ns) * 1.5, 20_000);
    return g.bounded(span.start_ns - room, span.end_ns + room);
  }

  /** A place with what is in sight now, where that is not what the place shows by itself. */
  private seen(place: Place): Place {
    const g = this.graphs;
    if (!g) return place;
    const view: [number, number] = [g.from, g.to];
    const natural = this.natural(place);
    const same = view.every((t, i) => Math.abs(t - natural[i]) < 1e-4 * (g.to - g.from) + 1);
    return { ...place, view: same ? undefined : view };
  }

  /** To another place without moving, if it is in sight. */
  private turn(place: Place): void {
    const g = this.graphs;
    const span = this.spanOf(place);
    const next = { ...place, beside: this.place.beside };
    this.go(g && (!span || shows([g.from, g.to], span)) ? this.seen(next) : next);
  }

  /** What is shown now, for the address. */
  get now(): Place {
    return this.seen(this.place);
  }

  /** Draws everything again, as after a change of size or colours. */
  redraw(): void {
    this.graphs?.redraw();
    this.drawExchange();
  }

  private drawExchange(): void {
    const x = this.exchange;
    this.exchangeBox.hidden = !x;
    if (!x) {
      this.besideBox.replaceChildren();
      return;
    }
    const host: LadderHost = {
      data: this.data,
      connection: this.c,
      exchange: x,
      track: this.track ?? EMPTY,
      chosen: () => this.chosen,
      pick: span => {
        this.byLadder = span !== this.chosen;
        this.turn({ exchange: x.id, span: span.id });
      },
    };
    const step = (by: number) => {
      const list = this.c.exchanges;
      const next = list[list.indexOf(x) + by];
      const { beside } = this.place;
      return h(
        'button',
        { type: 'button', disabled: !next, click: () => next && this.go({ exchange: next.id, beside }) },
        by < 0 ? '← previous' : 'next →',
      );
    };
    const width = Math.max(300, inside(this.exchangeBox));
    const ended = x.complete ? '' : `, ended: ${x.ended}`;
    const times = new Map<string, number>();
    for (const s of x.spans) times.set(s.cause, (times.get(s.cause) ?? 0) + s.end_ns - s.start_ns);
    this.drawBeside(x);
    this.exchangeBox.replaceChildren(
      h(
        'div',
        { class: 'tools' },
        h('h2', {}, `Exchange ${x.id}${x.name ? `: ${x.name}` : ''}`),
        h(
          'div',
          { class: 'buttons' },
          step(-1),
          step(1),
          h(
            'button',
            {
              type: 'button',
              title: 'keep this exchange, and look at another one beside it',
              click: () => this.go({ ...this.place, beside: nameOf({ c: this.c, x }) }),
            },
            'put aside',
          ),
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
        this.links.cause,
      ),
      h(
        'p',
        { class: 'dim' },
        'Time runs down, not to scale; bars stand at the end that could change it. Arrows slope only to show their direction.',
      ),
      scroll('packets of the exchange', ladder(host, width)),
      packetTable(host).element,
    );
  }

  /** The exchange that was put aside, beside the one that is open. */
  private drawBeside(x: Exchange): void {
    const kept = pickOf(this.data, this.place.beside ?? null);
    const remove = () => this.go({ ...this.place, beside: undefined });
    if (!kept) this.besideBox.replaceChildren();
    else if (kept.x === x)
      this.besideBox.replaceChildren(
        h(
          'section',
          { class: 'beside' },
          h('p', {}, `Exchange ${nameOf(kept)} is put aside: open another one, and both stand here beside each other.`),
          h('div', { class: 'buttons' }, h('button', { type: 'button', click: remove }, 'take away')),
        ),
      );
    else {
      const width = Math.max(300, inside(this.exchangeBox));
      this.besideBox.replaceChildren(beside(this.data, kept, { c: this.c, x }, width, remove));
    }
  }

  private moved(): void {
    clearTimeout(this.settling);
    this.settling = window.setTimeout(() => this.settled(), 250);
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

/** Those that hold time of its requests, with the fixes for this connection. */
function found(data: Data, c: Connection): Finding[] {
  const own = c.findings.map(f => ({ ...f, fixes: fixesOn(data, c, f.cause, f.side) }));
  return byRequests([...own, ...inherentOn(data, c)]).filter(f => !f.minor);
}

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

/** The capture was made beside the other end. */
const isAfar = (c: Connection, side: 'client' | 'server') =>
  c.vantage === 'client' ? side === 'server' : c.vantage === 'server' && side === 'client';

function ends(c: Connection): HTMLElement {
  const rows: [string, (e: End, side: 'client' | 'server') => string | null | undefined][] = [
    ['bytes', (_e, s) => bytes(c.bytes[s])],
    ['packets', (_e, s) => String(c.packets[s])],
    ['retransmitted', (_e, s) => (c.retransmitted[s] ? String(c.retransmitted[s]) : null)],
    ['MSS', e => (e.mss === null ? null : String(e.mss))],
    ['window scale', e => (e.wscale === null ? null : String(e.wscale))],
    ['largest window', e => (e.max_window === null ? null : bytes(e.max_window))],
    ['first flight', e => (e.initial_flight === null ? null : bytes(e.initial_flight))],
    // Beside its receiver what is in flight is acknowledged as it passes.
    ['most in flight', (e, s) => (e.max_flight && !isAfar(c, s) ? bytes(e.max_flight) : null)],
    ['stack', e => e.stack?.os],
    [
      'delays ACKs by',
      e =>
        e.stack?.delayed_ack_min_ns == null ? null : range(e.stack.delayed_ack_min_ns, e.stack.delayed_ack_max_ns ?? 0),
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
