// Above the graphs: exchanges and causes by name, and the whole connection with what is in sight of it.

import { pattern } from './causes';
import { css } from './dom';
import { type Area, X } from './draw';
import { duration } from './format';
import type { Exchange, Span } from './types';

/** A span and the pixels that it takes. */
export interface Band {
  span: Span;
  exchange: number;
  x0: number;
  x1: number;
}

/** Exchanges and causes of the view, with their names. */
export function ribbon(
  a: Area,
  exchanges: Exchange[],
  bands: Band[],
  chosen: Span | null,
  group: (s: Span) => string,
  wide: boolean,
): void {
  const { c, r } = a;
  c.font = `${11 * r}px ${css('--font')}`;
  c.fillStyle = css('--muted');
  c.textAlign = 'right';
  c.textBaseline = 'middle';
  c.fillText(wide ? 'exchange' : 'exch.', a.left - 6 * r, 10 * r);
  c.fillText('cause', a.left - 6 * r, 34 * r);
  const spread = (x: Exchange) => [Math.max(a.left, X(a, x.start_ns)), Math.min(a.left + a.width, X(a, x.end_ns))];
  let lastX = -1;
  for (const x of exchanges) {
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
  for (const { span, x0, x1 } of bands) {
    c.fillStyle = pattern(c, group(span));
    c.fillRect(x0, 22 * r, x1 - x0, 24 * r);
    if (span === chosen) {
      c.strokeStyle = css('--ink');
      c.lineWidth = 2 * r;
      c.strokeRect(x0 + r, 23 * r, Math.max(2 * r, x1 - x0 - 2 * r), 22 * r);
    }
  }
  // Neighbours of one cause share a name.
  const runs: { cause: string; time: number; x0: number; x1: number }[] = [];
  for (const { span, x0, x1 } of bands) {
    const run = runs[runs.length - 1];
    const time = span.end_ns - span.start_ns;
    if (run && run.cause === span.cause && x0 - run.x1 <= r) {
      run.x1 = x1;
      run.time += time;
    } else runs.push({ cause: span.cause, time, x0, x1 });
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

/** The whole connection, and which part of it is in sight; nothing where that is all: the lane below shows the same. */
export function overview(a: Area, bands: Band[], [x0, x1]: [number, number], group: (s: Span) => string): void {
  const { c, r } = a;
  if (x1 - x0 > 0.999 * (a.to - a.from)) return;
  for (const { span, x0: from, x1: to } of bands) {
    c.fillStyle = pattern(c, group(span));
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
