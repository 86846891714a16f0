// The graphs of a connection: panels that share one axis of time, with the causes behind them. uPlot draws axes and
// cursor; everything between the axes is drawn here, by pixel column.

import uPlot from 'uplot';
import { pattern } from './causes';
import { type Data, frameName } from './data';
import { css, h } from './dom';
import { type Area, below, dots, label, level, rates, sequence, steps, stroke, X, Y } from './draw';
import { bitRate, bytes, duration, moment } from './format';
import { flagText, lower, markText, type Track } from './packets';
import { type Direction, directions } from './series';
import type { Connection, Exchange, Span } from './types';

export interface Placed { span: Span; exchange: number }

interface Band { span: Span; exchange: number; x0: number; x1: number }

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
  kind: 'bytes' | 'time' | 'rate';
  direction?: number;
  plot?: uPlot;
  visible: boolean;
  lo: number;
  hi: number;
}

const POWERS = Array.from({ length: 44 }, (_, i) => 2 ** i);
const DECIMALS = Array.from({ length: 14 }, (_, i) => [1, 2, 5].map(n => n * 10 ** i)).flat();
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
    this.listen(this.ribbon, false);
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
    this.listen(plot.over, true, p);
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

  /** Exchanges and causes of the view, with their names. */
  private drawRibbon(): void {
    const a = this.canvas(this.ribbon, 48);
    if (!a) return;
    const { c, r } = a;
    c.font = `${11 * r}px ${css('--font')}`;
    c.fillStyle = css('--muted');
    c.textAlign = 'right';
    c.textBaseline = 'middle';
    c.fillText(this.axis > 60 ? 'exchange' : 'exch.', a.left - 6 * r, 10 * r);
    c.fillText('cause', a.left - 6 * r, 34 * r);
    const spread = (x: Exchange) => [Math.max(a.left, X(a, x.start_ns)), Math.min(a.left + a.width, X(a, x.end_ns))];
    let lastX = -1;
    for (const x of this.host.connection.exchanges) {
      if (x.end_ns < a.from || x.start_ns > a.to) continue;
      const [x0, x1] = spread(x);
      if (x1 < lastX + 1) continue;
      lastX = x1;
      c.fillStyle = css('--box');
      c.fillRect(x0, 2 * r, Math.max(r, x1 - x0 - r), 16 * r);
      c.fillStyle = css('--ink');
      c.textAlign = 'center';
      if (x1 - x0 > 22 * r) c.fillText(String(x.id), (x0 + x1) / 2, 10.5 * r);
    }
    for (const { span, x0, x1 } of this.inSight(a)) {
      c.fillStyle = pattern(c, this.group(span), true);
      c.fillRect(x0, 22 * r, x1 - x0, 24 * r);
      if (span === this.chosen) {
        c.strokeStyle = css('--ink');
        c.lineWidth = 2 * r;
        c.strokeRect(x0 + r, 23 * r, Math.max(2 * r, x1 - x0 - 2 * r), 22 * r);
      }
    }
    // Neighbours of one cause share a name.
    const runs: { cause: string; time: number; x0: number; x1: number }[] = [];
    for (const { span, x0, x1 } of this.inSight(a)) {
      const run = runs[runs.length - 1];
      const time = span.end_ns - span.start_ns;
      if (run && run.cause === span.cause && x0 - run.x1 <= r) { run.x1 = x1; run.time += time; } else runs.push({ cause: span.cause, time, x0, x1 });
    }
    for (const { cause, time, x0, x1 } of runs) {
      if (x1 - x0 < 40 * r) continue;
      for (const t of [`${cause} ${duration(time)}`, cause]) {
        const w = c.measureText(t).width;
        if (w + 14 * r > x1 - x0) continue;
        const middle = (x0 + x1) / 2;
        c.fillStyle = css('--chip');
        c.beginPath();
        c.roundRect(middle - w / 2 - 4 * r, 26 * r, w + 8 * r, 16 * r, 3 * r);
        c.fill();
        c.fillStyle = css('--ink');
        c.textAlign = 'center';
        c.fillText(t, middle, 34.5 * r);
        break;
      }
    }
  }

  /** The whole connection, and which part of it is in sight. */
  private drawMap(): void {
    const a = this.canvas(this.map, 22);
    if (!a) return;
    const { c, r } = a;
    const [x0, x1] = [this.from, this.to];
    [a.from, a.to] = this.limits;
    for (const { span, x0: from, x1: to } of this.inSight(a)) {
      c.fillStyle = pattern(c, this.group(span), true);
      c.fillRect(from, 4 * r, to - from, 14 * r);
    }
    c.fillStyle = css('--veil');
    c.fillRect(a.left, 0, X(a, x0) - a.left, 22 * r);
    c.fillRect(X(a, x1), 0, a.left + a.width - X(a, x1), 22 * r);
    c.strokeStyle = css('--ink');
    c.lineWidth = 1.5 * r;
    c.strokeRect(X(a, x0), r, Math.max(3 * r, X(a, x1) - X(a, x0)), 20 * r);
    c.fillStyle = css('--muted');
    c.font = `${11 * r}px ${css('--font')}`;
    c.textAlign = 'right';
    c.textBaseline = 'middle';
    c.fillText('all', a.left - 6 * r, 11 * r);
  }

  private timeAt(clientX: number): number {
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

  /** Drag moves, with shift it chooses a stretch; the wheel zooms, two fingers too; a click picks. */
  private listen(on: HTMLElement, plot: boolean, p?: Panel): void {
    const fingers = new Map<number, number>();
    let start = 0, moved = false, chosen: HTMLElement | null = null;
    on.addEventListener('pointerdown', e => {
      fingers.set(e.pointerId, e.clientX);
      on.setPointerCapture(e.pointerId);
      start = e.clientX;
      moved = false;
      if (e.shiftKey && plot) { chosen = h('div', { class: 'choice' }); on.append(chosen); }
    });
    on.addEventListener('pointermove', e => {
      const before = fingers.get(e.pointerId);
      if (before === undefined) { if (p) this.hover(e, p); return; }
      if (fingers.size === 2) {
        const other = [...fingers].find(([id]) => id !== e.pointerId)?.[1] ?? e.clientX;
        const [a, b] = [Math.abs(before - other), Math.abs(e.clientX - other)];
        if (a > 10 && b > 10) this.zoom(a / b, this.timeAt(other));
        moved = true;
      } else if (Math.abs(e.clientX - start) > 4 || moved) {
        moved = true;
        this.tip.hidden = true;
        if (chosen) {
          const box = on.getBoundingClientRect();
          const [x0, x1] = [Math.min(start, e.clientX), Math.max(start, e.clientX)];
          chosen.style.left = `${x0 - box.left}px`;
          chosen.style.width = `${x1 - x0}px`;
        } else {
          const by = this.timeAt(before) - this.timeAt(e.clientX);
          this.show(this.from + by, this.to + by);
        }
      }
      fingers.set(e.pointerId, e.clientX);
    });
    const end = (e: PointerEvent) => {
      fingers.delete(e.pointerId);
      if (chosen) {
        chosen.remove();
        chosen = null;
        if (moved && e.type === 'pointerup') {
          const [a, b] = [this.timeAt(start), this.timeAt(e.clientX)];
          this.show(Math.min(a, b), Math.max(a, b));
        }
      } else if (!moved && e.type === 'pointerup') this.click(e, plot);
    };
    on.addEventListener('pointerup', end);
    on.addEventListener('pointercancel', end);
    on.addEventListener('pointerleave', () => { this.tip.hidden = true; });
    on.addEventListener('dblclick', () => this.reset());
    on.addEventListener('wheel', e => {
      // A page that cannot be scrolled past a graph is a trap: the wheel zooms once the graph has the focus.
      if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) this.pan(e.deltaX / 800);
      else if (e.ctrlKey || this.element.contains(document.activeElement)) this.zoom(1.0015 ** e.deltaY, this.timeAt(e.clientX));
      else return;
      e.preventDefault();
    }, { passive: false });
  }

  private click(e: PointerEvent, plot: boolean): void {
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

function timeLabel(ns: number, step: number): string {
  const [per, unit] = Math.abs(ns) < 1e6 && step < 1e6 ? [1e3, 'µs'] : step < 1e6 || Math.abs(ns) < 1e9 && step < 1e9 ? [1e6, 'ms'] : [1e9, 's'];
  const digits = Math.max(0, Math.ceil(Math.log10(per / step) - 1e-9));
  return `${(ns / per).toFixed(Math.min(digits, 6))} ${unit}`;
}

function axisLabels(splits: number[], kind: Panel['kind']): string[] {
  const max = Math.max(...splits.map(Math.abs));
  const step = splits.length > 1 ? splits[1] - splits[0] : max || 1;
  const units: [number, string][] = kind === 'bytes' ? [[2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [1024, 'KiB'], [1, 'B']]
    : kind === 'time' ? [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']]
      : [[1e9, 'Gbit/s'], [1e6, 'Mbit/s'], [1e3, 'kbit/s'], [1, 'bit/s']];
  const [per, unit] = units.find(u => max >= u[0] * 0.999) ?? units[units.length - 1];
  const digits = step >= per ? 0 : step * 10 >= per ? 1 : 2;
  return splits.map(v => `${(v / per).toFixed(v === 0 ? 0 : digits)} ${unit}`);
}
