// The graphs of a connection: panels that share one axis of time, with the causes behind them. uPlot draws axes and
// cursor; everything between the axes is drawn here, by pixel column.

import uPlot from 'uplot';
import { axisLabels, DECIMALS, type Kind, POWERS, timeLabel } from './axis';
import { pattern } from './causes';
import { type Data, frameName } from './data';
import { css, h } from './dom';
import { type Area, below, dots, label, level, rates, sequence, steps, stroke, X, Y } from './draw';
import { bitRate, bytes, duration, moment } from './format';
import { listen } from './pointer';
import { flagText, lower, markText, type Track } from './packets';
import { type Band, overview, ribbon } from './ribbon';
import { type Direction, directions } from './series';
import type { Connection, Span } from './types';

export interface Placed { span: Span; exchange: number }

export interface Host {
  data: Data;
  connection: Connection;
  spans: Placed[];
  pickSpan: (placed: Placed) => void;
  pickExchange: (exchange: number) => void;
  /** The view has moved. */
  moved: (from: number, to: number) => void;
}

interface Panel {
  title: string;
  keys: [string, string][];
  height: number;
  /** Least and greatest value in sight. */
  range: () => [number, number];
  draw: (a: Area) => void;
  kind: Kind;
  direction?: number;
  plot?: uPlot;
  visible: boolean;
  lo: number;
  hi: number;
}

/** Nobody sees less than this, in nanoseconds. */
const CLOSEST = 2000;

export class Graphs {
  readonly element: HTMLElement;
  from: number;
  to: number;
  private limits: [number, number];
  private panels: Panel[] = [];
  private series: [Direction, Direction];
  private track: Track;
  private whole: { track: Track; series: [Direction, Direction] };
  private ribbon = h('canvas', { class: 'ribbon', title: 'causes: click for the evidence' });
  private map = h('canvas', { class: 'map', title: 'the whole connection: drag to move' });
  private tip = h('div', { class: 'tip', hidden: true });
  private frame = 0;
  private chosen: Span | null = null;
  private axis = 0;
  private width = 0;
  /** Frames drawn, for tests. */
  drawn = 0;

  constructor(private host: Host, track: Track) {
    const c = host.connection;
    const pad = Math.max((c.end_ns - c.start_ns) * 0.01, CLOSEST);
    this.limits = [c.start_ns - pad, c.end_ns + pad];
    [this.from, this.to] = this.limits;
    this.track = track;
    this.series = directions(track, c.path.rtt_ns);
    this.whole = { track, series: this.series };
    this.panels = this.plan();
    this.element = h('div', {
      class: 'graphs', tabindex: '0', role: 'application',
      'aria-label': 'Graphs of the connection. Plus and minus zoom, arrows move, 0 shows all, n and p go to the next and previous cause.',
      keydown: (e: KeyboardEvent) => this.key(e),
    }, this.map, this.ribbon, ...this.panels.map(p => h('div', { class: 'panel' },
      h('div', { class: 'panel-head' }, h('b', {}, p.title),
        ...p.keys.map(([kind, name]) => h('span', { class: 'key' }, h('i', { class: `k-${kind}` }), name))),
      h('div', { class: 'plot' }))), this.tip);
    listen(this.ribbon, false, this);
    this.listenMap();
    new ResizeObserver(() => this.resize()).observe(this.element);
    const watch = new IntersectionObserver(entries => {
      for (const e of entries) this.panels[holders.indexOf(e.target)].visible = e.isIntersecting;
      this.later();
    }, { rootMargin: '80px' });
    const holders: Element[] = [...this.element.querySelectorAll('.panel')];
    for (const holder of holders) watch.observe(holder);
    addEventListener('beforeprint', () => { for (const p of this.panels) p.visible = true; this.redraw(); this.draw(); });
  }

  /** Shows a stretch of time. */
  show(from: number, to: number): void {
    const least = Math.max(CLOSEST, to - from);
    const most = this.limits[1] - this.limits[0];
    const length = Math.min(least, most);
    const middle = (from + to) / 2;
    this.from = Math.min(Math.max(middle - length / 2, this.limits[0]), this.limits[1] - length);
    this.to = this.from + length;
    this.later();
    this.host.moved(this.from, this.to);
  }

  reset(): void { this.show(...this.limits); }
  zoom(factor: number, at = (this.from + this.to) / 2): void {
    this.show(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }
  pan(share: number): void {
    const by = (this.to - this.from) * share;
    this.show(this.from + by, this.to + by);
  }

  choose(span: Span | null): void {
    this.chosen = span;
    this.later();
  }

  /** Whether more packets than are here would show in this view. */
  get thinned(): boolean { return this.whole.track.n < this.whole.track.total; }

  /** All packets of the view, from the server; null: back to what the page holds. */
  replace(track: Track | null): void {
    if (track) {
      this.track = track;
      this.series = directions(track, this.host.connection.path.rtt_ns);
    } else {
      ({ track: this.track, series: this.series } = this.whole);
    }
    this.later();
  }

  /** Draws again, as after a change of colours. */
  redraw(): void {
    this.sheetKey = '';
    for (const p of this.panels) { p.plot?.destroy(); p.plot = undefined; }
    this.width = 0;
    this.resize();
  }

  private plan(): Panel[] {
    const c = this.host.connection;
    const [up, down] = this.series.map(d => d.bytes);
    const small = Math.min(up, down) < 0.05 * Math.max(up, down);
    const order = down >= up ? [1, 0] : [0, 1];
    const name = (d: number) => d === 0 ? 'client → server' : 'server → client';
    const big = order[0];
    const keys: [string, string][] = [['segment', 'segment'], ['again', 'sent again'], ['sack', 'SACK'], ['ack', 'acknowledged'], ['edge', 'window edge']];
    const out: Panel[] = order.map((d, i) => ({
      title: `Sequence numbers, ${name(d)}`, keys: i ? [] : keys, height: i && small ? 130 : i ? 210 : 300, kind: 'bytes', direction: d, lo: 0, hi: 1, visible: true,
      range: () => this.sequenceRange(this.series[d]),
      draw: a => sequence(a, this.series[d], this.track),
    }));
    const buffer = this.plateaus(big);
    out.push({
      title: `In flight, ${name(big)}`, kind: 'bytes', height: 190, lo: 0, hi: 1, visible: true,
      keys: [['flight', 'in flight'], ['edge', 'window'], ['cwnd', 'congestion window at least (most in flight in a round trip)'],
        ...(buffer.length ? [['buffer', 'send buffer'] as [string, string]] : [])],
      range: () => {
        const d = this.series[big];
        const max = this.most(d.flight);
        const window = this.most(d.window);
        // A window far above what is used would flatten the rest.
        return [0, Math.max(1, window < 4 * max ? window : max * 1.25) * 1.06];
      },
      draw: a => {
        const d = this.series[big];
        below(a, d.flight, css('--segment'), 0.3);
        steps(a, d.flight, css('--segment'), 1);
        steps(a, d.cwnd, css('--cwnd'), 1.5, [2, 3]);
        steps(a, d.window, css('--edge'), 1.4, [5, 3]);
        for (const b of buffer) if (b.to > a.from && b.from < a.to) this.plateau(a, b);
        const window = d.window.at(a.to);
        if (window > a.hi * 1.02) label(a, `window ${bytes(Math.round(window))} ↑`, a.left + a.width - 6 * a.r, a.top + 14 * a.r, css('--edge'), 'right');
      },
    });
    out.push({
      title: 'Round trips seen from the tap', kind: 'time', height: 150, lo: 0, hi: 1, visible: true,
      keys: [['up', 'client → server'], ['down', 'server → client'], ['base', 'base round trip; above it: queues and late ACKs']],
      range: () => [0, Math.max(1000, ...this.series.map(d => this.most(d.rtt)), (c.path.rtt_ns ?? 0)) * 1.1],
      draw: a => {
        if (c.path.rtt_ns) {
          const y = Y(a, c.path.rtt_ns);
          a.c.globalAlpha = 0.08;
          a.c.fillStyle = css('--again');
          a.c.fillRect(a.left, a.top, a.width, y - a.top);
          a.c.globalAlpha = 1;
        }
        dots(a, this.series[0].rtt, css('--up'), 2.2);
        dots(a, this.series[1].rtt, css('--down'), 2.2);
        if (c.path.rtt_ns) level(a, c.path.rtt_ns, `base ${duration(c.path.rtt_ns)}`, css('--muted'));
      },
    });
    const bandwidth = c.path.bandwidth_bps;
    out.push({
      title: 'Throughput', kind: 'rate', height: 150, lo: 0, hi: 1, visible: true,
      keys: [['up', 'client → server'], ['down', 'server → client'], ...(bandwidth ? [['base', 'bottleneck'] as [string, string]] : [])],
      range: () => {
        const a = { from: this.from, to: this.to, width: Math.max(200, this.width), r: 1 } as Area;
        let max = 1;
        for (const d of this.series) for (const r of rates(a, d, c.path.rtt_ns ?? 0)) max = Math.max(max, r.bps);
        return [0, max * 1.1];
      },
      draw: a => {
        this.series.forEach((d, i) => {
          a.c.beginPath();
          for (const r of rates(a, d, c.path.rtt_ns ?? 0)) {
            const y = Y(a, r.bps);
            a.c.lineTo(X(a, r.t), y);
            a.c.lineTo(X(a, r.t + r.width), y);
          }
          stroke(a, css(i ? '--down' : '--up'), 1.6, i ? [] : [4, 2]);
        });
        if (bandwidth) level(a, bandwidth, `bottleneck ${bitRate(bandwidth)}`, css('--muted'));
      },
    });
    return out;
  }

  /** The most in flight during each wait for the send buffer: what the buffer holds. */
  private plateaus(d: number): { from: number; to: number; bytes: number }[] {
    const side = d === 0 ? 'client' : 'server';
    const out: { from: number; to: number; bytes: number }[] = [];
    for (const { span } of this.host.spans) {
      if (span.cause !== 'send_buffer' || (span.side && span.side !== side)) continue;
      const f = this.series[d].flight;
      const a = Math.max(0, lower(f.t, span.start_ns) - 1), b = lower(f.t, span.end_ns + 1);
      const held = b > a ? f.extremes(a, b)[1] : 0;
      const last = out[out.length - 1];
      if (last && span.start_ns - last.to < 3 * (this.host.connection.path.rtt_ns ?? 1e7)) {
        last.to = span.end_ns;
        last.bytes = Math.max(last.bytes, held);
      } else if (held > 0) out.push({ from: span.start_ns, to: span.end_ns, bytes: held });
    }
    return out;
  }

  private plateau(a: Area, b: { from: number; to: number; bytes: number }): void {
    const y = Y(a, b.bytes), x0 = Math.max(a.left, X(a, b.from)), x1 = Math.min(a.left + a.width, X(a, b.to));
    a.c.beginPath();
    a.c.moveTo(x0, y);
    a.c.lineTo(x1, y);
    stroke(a, css('--buffer'), 2.5);
    if (x1 - x0 > 120 * a.r) label(a, `send buffer holds ${bytes(b.bytes)}`, (x0 + x1) / 2, y - 6 * a.r, css('--buffer'), 'center');
  }

  private most(s: { t: Float64Array; extremes: (a: number, b: number) => [number, number] }): number {
    const a = Math.max(0, lower(s.t, this.from) - 1);
    return Math.max(0, s.extremes(a, lower(s.t, this.to))[1]);
  }

  private sequenceRange(d: Direction): [number, number] {
    let lo = Infinity, hi = -Infinity;
    for (const s of [d.data, d.ack]) {
      const b = lower(s.t, this.to), a = Math.max(0, lower(s.t, this.from) - 1);
      const [x, y] = s.extremes(a, b);
      lo = Math.min(lo, x);
      hi = Math.max(hi, y);
    }
    if (lo > hi) return [0, 1];
    // The window edge is shown where that does not flatten the rest.
    const b = lower(d.edge.t, this.to);
    const edge = d.edge.extremes(Math.max(0, lower(d.edge.t, this.from) - 1), b)[1];
    const span = Math.max(hi - lo, 100);
    if (edge - lo < 3 * span) hi = Math.max(hi, edge);
    else hi += span * 0.2;
    const pad = Math.max(hi - lo, 10) * 0.06;
    return [lo - pad, hi + pad];
  }

  private resize(): void {
    const width = this.element.clientWidth;
    if (!width || width === this.width) return;
    this.width = width;
    this.axis = width < 600 ? 58 : 84;
    const holders = this.element.querySelectorAll<HTMLElement>('.plot');
    this.panels.forEach((p, i) => {
      if (p.plot) { p.plot.setSize({ width, height: p.height }); return; }
      [p.lo, p.hi] = p.range();
      p.plot = this.plot(p, holders[i], width, i === this.panels.length - 1 || i === 1);
    });
    this.later();
  }

  private plot(p: Panel, holder: HTMLElement, width: number, last: boolean): uPlot {
    const grid = { stroke: css('--grid'), width: 1 };
    const font = `11px ${css('--font')}`;
    const plot = new uPlot({
      width, height: p.height, padding: [6, 14, last ? 0 : 4, 0], legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false, setScale: false }, sync: { key: `c${this.host.connection.id}` } },
      scales: { x: { time: false, auto: false }, y: { auto: false } },
      series: [{}, { scale: 'y', show: true, points: { show: false }, width: 0 }],
      axes: [
        { stroke: css('--muted'), font, grid, ticks: { ...grid, size: 4 }, size: last ? 34 : 22, space: 90, gap: 3,
          incrs: DECIMALS, values: (_u, splits, _i, _s, incr) => splits.map(v => timeLabel(v, incr)) },
        { stroke: css('--muted'), font, grid, ticks: { ...grid, size: 4 }, size: this.axis, space: 34, gap: 4,
          incrs: p.kind === 'bytes' ? POWERS : DECIMALS, values: (_u, splits) => axisLabels(splits, p.kind) },
      ],
      hooks: {
        drawClear: [u => this.bands(this.area(u, p), p === this.panels[0])],
        draw: [u => {
          const a = this.area(u, p);
          a.c.save();
          a.c.beginPath();
          a.c.rect(a.left, a.top, a.width, a.height);
          a.c.clip();
          p.draw(a);
          a.c.restore();
        }],
      },
    }, [[this.from, this.to], [null, null]], holder);
    listen(plot.over, true, this, e => this.hover(e, p));
    return plot;
  }

  private area(u: uPlot, p: Panel): Area {
    const { left, top, width, height } = u.bbox;
    return { c: u.ctx, left, top, width, height, from: this.from, to: this.to, lo: p.lo, hi: p.hi, r: devicePixelRatio };
  }

  /** The causes behind a graph. */
  private bands(a: Area, named: boolean): void {
    const { c, r } = a;
    const bands = this.inSight(a);
    // Patterns are dear without a graphics card: they are laid out once and copied to each panel.
    const sheet = this.sheet;
    const key = `${a.from} ${a.to} ${a.left} ${a.width}`;
    if (this.sheetKey !== key) {
      this.sheetKey = key;
      sheet.width = a.left + a.width;
      sheet.height = Math.ceil(320 * r);
      const s = sheet.getContext('2d');
      if (!s) return;
      for (const { span, x0, x1 } of bands) {
        s.fillStyle = pattern(s, this.group(span), false);
        s.fillRect(x0, 0, x1 - x0, sheet.height);
      }
    }
    if (a.width >= 1 && a.height >= 1) c.drawImage(sheet, a.left, 0, a.width, a.height, a.left, a.top, a.width, a.height);
    if (named) for (const { span, x0, x1 } of bands) {
      if (x1 - x0 > 60 * r) {
        c.font = `${11 * r}px ${css('--font')}`;
        if (c.measureText(span.cause).width < x1 - x0 - 8 * r) label(a, span.cause, (x0 + x1) / 2, a.top + 14 * r, css('--muted'), 'center');
      }
    }
    const chosen = this.chosen;
    if (!chosen || chosen.end_ns < a.from || chosen.start_ns > a.to) return;
    const [x0, x1] = [Math.max(a.left, X(a, chosen.start_ns)), Math.min(a.left + a.width, X(a, chosen.end_ns))];
    c.strokeStyle = css('--ink');
    c.lineWidth = 1.5 * r;
    c.strokeRect(x0 + r, a.top + r, Math.max(r, x1 - x0 - 2 * r), a.height - 2 * r);
  }

  private sheet = document.createElement('canvas');
  private sheetKey = '';
  private seen: { key: string; bands: Band[] }[] = [];

  /** The spans in sight, at most one for each pixel: the first that begins there. Panels share what was found. */
  private inSight(a: Area): Band[] {
    const key = `${a.from} ${a.to} ${a.left} ${a.width}`;
    const known = this.seen.find(s => s.key === key);
    if (known) return known.bands;
    const spans = this.host.spans;
    const right = a.left + a.width;
    const bands: Band[] = [];
    // The first span that ends after a moment: spans follow each other.
    const after = (time: number, low: number) => {
      let high = spans.length;
      while (low < high) { const m = (low + high) >> 1; if (spans[m].span.end_ns <= time) low = m + 1; else high = m; }
      return low;
    };
    let i = after(a.from, 0);
    while (i < spans.length && spans[i].span.start_ns < a.to) {
      const { span, exchange } = spans[i];
      const last = bands[bands.length - 1];
      const x0 = Math.max(a.left, Math.round(X(a, span.start_ns)), last ? last.x1 : 0);
      const x1 = Math.min(right, Math.max(x0 + a.r, Math.round(X(a, span.end_ns))));
      if (x1 > x0) bands.push({ span, exchange, x0, x1 });
      const next = a.from + (x1 + 0.5 - a.left) / a.width * (a.to - a.from);
      i = i + 1 < spans.length && spans[i + 1].span.end_ns > next ? i + 1 : Math.max(i + 1, after(next, i + 1));
    }
    this.seen = [...this.seen.slice(-2), { key, bands }];
    return bands;
  }

  private group(span: Span): string { return this.host.data.causes.get(span.cause)?.group ?? 'unknown'; }

  private later(): void {
    if (!this.frame) this.frame = requestAnimationFrame(() => { this.frame = 0; this.draw(); });
  }

  private draw(): void {
    for (const p of this.panels) {
      // What is scrolled out of sight is drawn when it comes back.
      if (!p.plot || !p.visible) continue;
      [p.lo, p.hi] = p.range();
      const plot = p.plot;
      plot.batch(() => {
        plot.setScale('x', { min: this.from, max: this.to });
        plot.setScale('y', { min: p.lo, max: p.hi });
      });
    }
    this.drawRibbon();
    this.drawMap();
    this.drawn++;
  }

  private canvas(canvas: HTMLCanvasElement, height: number): Area | null {
    const r = devicePixelRatio;
    const width = this.width;
    if (canvas.width !== Math.round(width * r) || canvas.height !== Math.round(height * r)) {
      canvas.width = Math.round(width * r);
      canvas.height = Math.round(height * r);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    const c = canvas.getContext('2d');
    if (!c) return null;
    c.clearRect(0, 0, canvas.width, canvas.height);
    const left = this.axis * r;
    return { c, left, top: 0, width: canvas.width - left - 14 * r, height: height * r, from: this.from, to: this.to, lo: 0, hi: 1, r };
  }

  private drawRibbon(): void {
    const a = this.canvas(this.ribbon, 48);
    if (a) ribbon(a, this.host.connection.exchanges, this.inSight(a), this.chosen, s => this.group(s), this.axis > 60);
  }

  private drawMap(): void {
    const a = this.canvas(this.map, 22);
    if (!a) return;
    const seen: [number, number] = [this.from, this.to];
    [a.from, a.to] = this.limits;
    overview(a, this.inSight(a), seen, s => this.group(s));
  }

  timeAt(clientX: number): number {
    const box = this.ribbon.getBoundingClientRect();
    const share = (clientX - box.left - this.axis) / (this.width - this.axis - 14);
    return this.from + share * (this.to - this.from);
  }

  private listenMap(): void {
    const move = (e: PointerEvent) => {
      if (e.type === 'pointermove' && !(e.buttons & 1)) return;
      const box = this.map.getBoundingClientRect();
      const share = (e.clientX - box.left - this.axis) / (this.width - this.axis - 14);
      const middle = this.limits[0] + share * (this.limits[1] - this.limits[0]);
      const half = (this.to - this.from) / 2;
      if (e.type === 'pointerdown') this.map.setPointerCapture(e.pointerId);
      this.show(middle - half, middle + half);
    };
    this.map.addEventListener('pointerdown', move);
    this.map.addEventListener('pointermove', move);
  }

  leave(): void { this.tip.hidden = true; }
  focused(): boolean { return this.element.contains(document.activeElement); }

  click(e: PointerEvent, plot: boolean): void {
    this.element.focus({ preventScroll: true });
    const t = this.timeAt(e.clientX);
    if (!plot && e.clientY - this.ribbon.getBoundingClientRect().top < 20) {
      const x = this.host.connection.exchanges.find(x => x.start_ns <= t && t <= x.end_ns);
      if (x) this.host.pickExchange(x.id);
      return;
    }
    const found = this.spanAt(t);
    if (found) this.host.pickSpan(found);
  }

  spanAt(t: number): Placed | undefined {
    return this.host.spans.find(s => s.span.start_ns <= t && t < s.span.end_ns);
  }

  private hover(e: PointerEvent, p: Panel): void {
    const t = this.timeAt(e.clientX);
    const lines: string[] = [];
    const i = p.direction === undefined || !p.plot ? -1 : this.nearest(t, e.offsetY, p, p.direction);
    if (i >= 0) {
      const k = this.track;
      const odd = markText(k.marks[i]);
      lines.push(`frame ${frameName(this.host.data, k.frame[i])}  ${k.from[i] ? 'server → client' : 'client → server'}`,
        `${moment(k.t[i])}  ${flagText(k.flags[i])}`,
        `seq ${k.seq[i]}  ack ${k.ack[i]}  len ${k.len[i]}  win ${k.win[i]}`);
      if (odd) lines.push(odd);
    } else lines.push(moment(t));
    const span = this.spanAt(i >= 0 ? this.track.t[i] : t)?.span;
    if (span) lines.push(`${this.host.data.causes.get(span.cause)?.title ?? span.cause}: ${duration(span.end_ns - span.start_ns)}`);
    this.tip.replaceChildren(...lines.map(l => h('div', {}, l)));
    this.tip.hidden = false;
    const box = this.element.getBoundingClientRect();
    const x = e.clientX - box.left;
    this.tip.style.left = x > box.width / 2 ? 'auto' : `${x + 16}px`;
    this.tip.style.right = x > box.width / 2 ? `${box.width - x + 16}px` : 'auto';
    this.tip.style.top = `${e.clientY - box.top + 14}px`;
  }

  /** The packet under the cursor, among those within some pixels. */
  private nearest(t: number, y: number, p: Panel, direction: number): number {
    const d = this.series[direction];
    const perPixel = (this.to - this.from) / (this.width - this.axis - 14);
    const height = p.plot?.over.clientHeight ?? 1;
    const toY = (v: number) => height - (v - p.lo) / (p.hi - p.lo) * height;
    let best = -1, least = 12;
    const look = (s: { t: Float64Array; lo: Float64Array; hi: Float64Array }, packets: Uint32Array) => {
      const a = lower(s.t, t - 10 * perPixel), b = Math.min(lower(s.t, t + 10 * perPixel), a + 5000);
      for (let i = a; i < b; i++) {
        const dx = Math.abs(s.t[i] - t) / perPixel;
        const [y0, y1] = [toY(s.hi[i]), toY(s.lo[i])];
        const distance = dx + (y < y0 ? y0 - y : y > y1 ? y - y1 : 0);
        if (distance < least) { least = distance; best = packets[i]; }
      }
    };
    look(d.data, d.packet);
    look(d.ack, d.ackPacket);
    return best;
  }

  private key(e: KeyboardEvent): void {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const step = (forward: boolean) => {
      const spans = this.host.spans;
      const at = this.chosen ? spans.findIndex(s => s.span === this.chosen) : spans.findIndex(s => s.span.end_ns > this.from) - (forward ? 1 : 0);
      const next = spans[at + (forward ? 1 : -1)];
      if (next) this.host.pickSpan(next);
    };
    const actions: Record<string, () => void> = {
      '+': () => this.zoom(0.6), '=': () => this.zoom(0.6), '-': () => this.zoom(1 / 0.6),
      'ArrowLeft': () => this.pan(-0.15), 'ArrowRight': () => this.pan(0.15),
      '0': () => this.reset(), 'Home': () => this.reset(), 'n': () => step(true), 'p': () => step(false),
    };
    const action = actions[e.key];
    if (!action) return;
    action();
    e.preventDefault();
    e.stopPropagation();
  }
}
