// The graphs of a connection: panels that share one axis of time, with the causes behind them. uPlot draws axes and
// cursor; everything between the axes is drawn here, by pixel column.

import uPlot from 'uplot';
import { axisLabels, DECIMALS, POWERS, timeLabel } from './axis';
import { Bands } from './bands';
import type { Data } from './data';
import { css, h } from './dom';
import { type Area, choice } from './draw';
import { type Panel, panels, type Placed, type Sight } from './panels';
import { listen } from './pointer';
import type { Track } from './packets';
import { overview, ribbon } from './ribbon';
import { type Direction, directions } from './series';
import { Tip } from './tip';
import type { Connection, Span } from './types';

export type { Placed } from './panels';

export interface Host {
  data: Data;
  connection: Connection;
  spans: Placed[];
  pickSpan: (placed: Placed) => void;
  pickExchange: (exchange: number) => void;
  pickStretch: (stretch: [number, number]) => void;
  /** The view has moved. */
  moved: (from: number, to: number) => void;
}

/** A panel on the screen. */
interface Shown extends Panel {
  plot?: uPlot;
  visible: boolean;
  lo: number;
  hi: number;
}

/** Nobody sees less than this, in nanoseconds. */
const CLOSEST = 2000;
/** CSS pixels to the right of every plot. */
const MARGIN = 14;
/** Half of what `105.25 ms` takes. */
const HALF_LABEL = 28;

export class Graphs implements Sight {
  readonly element: HTMLElement;
  from: number;
  to: number;
  width = 0;
  track: Track;
  series: [Direction, Direction];
  private limits: [number, number];
  private panels: Shown[];
  private whole: { track: Track; series: [Direction, Direction] };
  private bands: Bands;
  private ribbon = h('canvas', { class: 'ribbon', title: 'causes: click for the evidence' });
  private map = h('canvas', { class: 'map', title: 'the whole connection: drag to move' });
  private tip = new Tip();
  private frame = 0;
  private chosen: Span | null = null;
  private stretch: [number, number] | null = null;
  private axis = 0;
  /** Frames drawn, for tests. */
  drawn = 0;

  constructor(
    private host: Host,
    track: Track,
  ) {
    const c = host.connection;
    const pad = Math.max((c.end_ns - c.start_ns) * 0.01, CLOSEST);
    this.limits = [c.start_ns - pad, c.end_ns + pad];
    [this.from, this.to] = this.limits;
    this.track = track;
    this.series = directions(track, c.path.rtt_ns);
    this.whole = { track, series: this.series };
    this.bands = new Bands(host.spans, s => this.group(s));
    this.panels = panels(c, host.spans, this).map(p => ({ ...p, lo: 0, hi: 1, visible: true }));
    this.element = h(
      'div',
      {
        class: 'graphs',
        tabindex: '0',
        role: 'application',
        'aria-label':
          'Graphs of the connection. Plus and minus zoom, arrows move, 0 shows all, n and p go to the next and previous cause, s chooses what is in sight, for its sum.',
      },
      this.map,
      this.ribbon,
      ...this.panels.map(p =>
        h(
          'div',
          { class: 'panel' },
          h(
            'div',
            { class: 'panel-head' },
            h('b', {}, p.title),
            ...p.keys.map(([kind, name]) => h('span', { class: 'key' }, h('i', { class: `k-${kind}` }), name)),
          ),
          h('div', { class: 'plot' }),
        ),
      ),
      this.tip.element,
    );
    listen(this.ribbon, false, this);
    this.listenMap();
    new ResizeObserver(() => this.resize()).observe(this.element);
    const watch = new IntersectionObserver(
      entries => {
        for (const e of entries) this.panels[holders.indexOf(e.target)].visible = e.isIntersecting;
        this.later();
      },
      { rootMargin: '80px' },
    );
    const holders: Element[] = [...this.element.querySelectorAll('.panel')];
    for (const holder of holders) watch.observe(holder);
  }

  /** Shows a stretch of time. */
  show(from: number, to: number): void {
    [this.from, this.to] = this.bounded(from, to);
    this.later();
    this.host.moved(this.from, this.to);
  }

  /** What is shown if that is asked for. */
  bounded(from: number, to: number): [number, number] {
    const least = Math.max(CLOSEST, to - from);
    const most = this.limits[1] - this.limits[0];
    const length = Math.min(least, most);
    const middle = (from + to) / 2;
    const first = Math.min(Math.max(middle - length / 2, this.limits[0]), this.limits[1] - length);
    return [first, first + length];
  }

  /** The whole connection. */
  get all(): [number, number] {
    return this.limits;
  }

  reset(): void {
    this.show(...this.limits);
  }
  zoom(factor: number, at = (this.from + this.to) / 2): void {
    this.show(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }
  pan(share: number): void {
    const by = (this.to - this.from) * share;
    this.show(this.from + by, this.to + by);
  }

  choose(span: Span | null, stretch: [number, number] | null): void {
    this.chosen = span;
    this.stretch = stretch;
    this.later();
  }

  /** Chooses a stretch of time, for its sum. */
  select(from: number, to: number): void {
    const [a, b] = [Math.max(from, this.limits[0]), Math.min(to, this.limits[1])];
    if (b > a) this.host.pickStretch([Math.round(a), Math.round(b)]);
  }

  /** Shows what was chosen, and only that. */
  closer(): void {
    if (this.stretch) this.show(...this.stretch);
    else if (this.chosen) this.show(this.chosen.start_ns, this.chosen.end_ns);
  }

  /** Whether more packets than are here would show in this view. */
  get thinned(): boolean {
    return this.whole.track.n < this.whole.track.total;
  }

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
    this.bands.forget();
    for (const p of this.panels) {
      p.plot?.destroy();
      p.plot = undefined;
    }
    this.width = 0;
    this.resize();
    // At once: on the way to paper there is no next frame.
    const paper = document.body.classList.contains('on-paper');
    this.draw(paper);
  }

  private resize(): void {
    const width = this.element.clientWidth;
    if (!width || width === this.width) return;
    this.width = width;
    // Room for "200 kbit/s".
    this.axis = width < 600 ? 72 : 84;
    const holders = this.element.querySelectorAll<HTMLElement>('.plot');
    this.panels.forEach((p, i) => {
      if (p.plot) {
        p.plot.setSize({ width, height: p.height });
        return;
      }
      [p.lo, p.hi] = p.range();
      p.plot = this.plot(p, holders[i], width, i === this.panels.length - 1 || i === 1);
    });
    this.later();
  }

  private plot(p: Shown, holder: HTMLElement, width: number, last: boolean): uPlot {
    const grid = { stroke: css('--grid'), width: 1 };
    const font = `11px ${css('--font')}`;
    const plot = new uPlot(
      {
        width,
        height: p.height,
        padding: [6, MARGIN, last ? 0 : 4, 0],
        legend: { show: false },
        cursor: {
          y: false,
          points: { show: false },
          drag: { x: false, y: false, setScale: false },
          sync: { key: `c${this.host.connection.id}` },
        },
        scales: { x: { time: false, auto: false }, y: { auto: false } },
        series: [{}, { scale: 'y', show: true, points: { show: false }, width: 0 }],
        axes: [
          {
            stroke: css('--muted'),
            font,
            grid,
            ticks: { ...grid, size: 4 },
            size: last ? 34 : 22,
            space: 90,
            gap: 3,
            incrs: DECIMALS,
            values: (_u, splits, _i, _s, incr) => splits.map(v => (this.cut(v) ? '' : timeLabel(v, incr))),
          },
          {
            stroke: css('--muted'),
            font,
            grid,
            ticks: { ...grid, size: 4 },
            size: this.axis,
            space: 34,
            gap: 4,
            incrs: p.kind === 'bytes' ? POWERS : DECIMALS,
            values: (_u, splits) => axisLabels(splits, p.kind),
          },
        ],
        hooks: {
          drawClear: [u => this.bands.draw(this.area(u, p), this.chosen)],
          draw: [
            u => {
              const a = this.area(u, p);
              a.c.save();
              a.c.beginPath();
              a.c.rect(a.left, a.top, a.width, a.height);
              a.c.clip();
              p.draw(a);
              if (this.stretch) choice(a, this.stretch);
              a.c.restore();
            },
          ],
        },
      },
      [
        [this.from, this.to],
        [null, null],
      ],
      holder,
    );
    listen(plot.over, true, this, e => this.hover(e, p));
    return plot;
  }

  /** Whether the name of a moment would be cut off at the right. */
  private cut(t: number): boolean {
    return (this.to - t) / this.perPixel < HALF_LABEL - MARGIN;
  }

  private area(u: uPlot, p: Shown): Area {
    const { left, top, width, height } = u.bbox;
    return {
      c: u.ctx,
      left,
      top,
      width,
      height,
      from: this.from,
      to: this.to,
      lo: p.lo,
      hi: p.hi,
      r: devicePixelRatio,
    };
  }

  private group(span: Span): string {
    return this.host.data.causes.get(span.cause)?.group ?? 'unknown';
  }

  private later(): void {
    if (!this.frame)
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.draw();
      });
  }

  private draw(all = false): void {
    for (const p of this.panels) {
      // What is scrolled out of sight is drawn when it comes back.
      if (!p.plot || !(p.visible || all)) continue;
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
    return {
      c,
      left,
      top: 0,
      width: canvas.width - left - MARGIN * r,
      height: height * r,
      from: this.from,
      to: this.to,
      lo: 0,
      hi: 1,
      r,
    };
  }

  private drawRibbon(): void {
    const a = this.canvas(this.ribbon, 48);
    if (a)
      ribbon(
        a,
        this.host.connection.exchanges,
        this.bands.inSight(a),
        this.chosen,
        s => this.group(s),
        this.width >= 600,
      );
  }

  private drawMap(): void {
    const a = this.canvas(this.map, 22);
    if (!a) return;
    const seen: [number, number] = [this.from, this.to];
    [a.from, a.to] = this.limits;
    overview(a, this.bands.inSight(a), seen, s => this.group(s));
  }

  /** Nanoseconds in a CSS pixel. */
  private get perPixel(): number {
    return (this.to - this.from) / (this.width - this.axis - MARGIN);
  }

  timeAt(clientX: number): number {
    return this.from + (clientX - this.ribbon.getBoundingClientRect().left - this.axis) * this.perPixel;
  }

  private listenMap(): void {
    const move = (e: PointerEvent) => {
      if (e.type === 'pointermove' && !(e.buttons & 1)) return;
      const box = this.map.getBoundingClientRect();
      const share = (e.clientX - box.left - this.axis) / (this.width - this.axis - MARGIN);
      const middle = this.limits[0] + share * (this.limits[1] - this.limits[0]);
      const half = (this.to - this.from) / 2;
      if (e.type === 'pointerdown') this.map.setPointerCapture(e.pointerId);
      this.show(middle - half, middle + half);
    };
    this.map.addEventListener('pointerdown', move);
    this.map.addEventListener('pointermove', move);
  }

  leave(): void {
    this.tip.hide();
  }
  focused(): boolean {
    return this.element.contains(document.activeElement);
  }

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

  private hover(e: PointerEvent, p: Shown): void {
    const under =
      p.direction === undefined || !p.plot
        ? null
        : {
            direction: p.direction,
            y: e.offsetY,
            height: p.plot.over.clientHeight,
            lo: p.lo,
            hi: p.hi,
            perPixel: this.perPixel,
          };
    this.tip.say(this.host.data, this, this.timeAt(e.clientX), under, t => this.spanAt(t)?.span);
    const box = this.element.getBoundingClientRect();
    this.tip.place(e.clientX - box.left, e.clientY - box.top, box.width);
  }

  /** Does what a key means; whether it means anything. */
  key(key: string): boolean {
    const step = (forward: boolean) => {
      const spans = this.host.spans;
      const at = this.chosen
        ? spans.findIndex(s => s.span === this.chosen)
        : spans.findIndex(s => s.span.end_ns > this.from) - (forward ? 1 : 0);
      const next = spans[at + (forward ? 1 : -1)];
      if (next) this.host.pickSpan(next);
    };
    const actions: Record<string, () => void> = {
      '+': () => this.zoom(0.6),
      '=': () => this.zoom(0.6),
      '-': () => this.zoom(1 / 0.6),
      ArrowLeft: () => this.pan(-0.15),
      ArrowRight: () => this.pan(0.15),
      '0': () => this.reset(),
      s: () => this.select(this.from, this.to),
      z: () => this.closer(),
      n: () => step(true),
      p: () => step(false),
    };
    const action = actions[key];
    action?.();
    return action !== undefined;
  }
}
