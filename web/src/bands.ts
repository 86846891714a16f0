// The causes behind the graphs: which spans are in sight, and their colours as a sheet that all panels copy.

import { colour } from './causes';
import { css } from './dom';
import { type Area, X } from './draw';
import type { Placed } from './panels';
import type { Band } from './ribbon';
import type { Span } from './types';

/** How much of its colour a cause has behind a graph. */
const TINT = 0.17;

export class Bands {
  private sheet = document.createElement('canvas');
  private drawn = '';
  private seen: { key: string; bands: Band[] }[] = [];

  constructor(
    private spans: Placed[],
    private group: (span: Span) => string,
  ) {}

  /** After a change of colours. */
  forget(): void {
    this.drawn = '';
  }

  /** Draws the causes into a panel; their names stand in the lane above. */
  draw(a: Area, chosen: Span | null): void {
    const { c, r } = a;
    const bands = this.inSight(a);
    this.prepare(a, bands);
    if (a.width >= 1 && a.height >= 1)
      c.drawImage(this.sheet, a.left, 0, a.width, a.height, a.left, a.top, a.width, a.height);
    if (!chosen || chosen.end_ns < a.from || chosen.start_ns > a.to) return;
    const [x0, x1] = [Math.max(a.left, X(a, chosen.start_ns)), Math.min(a.left + a.width, X(a, chosen.end_ns))];
    c.strokeStyle = css('--ink');
    c.lineWidth = 1.5 * r;
    c.strokeRect(x0 + r, a.top + r, Math.max(r, x1 - x0 - 2 * r), a.height - 2 * r);
  }

  /** Laid out once and copied to each panel. */
  private prepare(a: Area, bands: Band[]): void {
    const key = `${a.from} ${a.to} ${a.left} ${a.width}`;
    if (this.drawn === key) return;
    this.drawn = key;
    this.sheet.width = a.left + a.width;
    this.sheet.height = Math.ceil(320 * a.r);
    const s = this.sheet.getContext('2d');
    if (!s) return;
    // A tint: what lies behind data has no lines of its own.
    s.globalAlpha = TINT;
    for (const { span, x0, x1 } of bands) {
      s.fillStyle = colour(this.group(span));
      s.fillRect(x0, 0, x1 - x0, this.sheet.height);
    }
    s.globalAlpha = 1;
  }

  /** The spans in sight, at most one for each pixel: the first that begins there. Panels share what was found. */
  inSight(a: Area): Band[] {
    const key = `${a.from} ${a.to} ${a.left} ${a.width}`;
    const known = this.seen.find(s => s.key === key);
    if (known) return known.bands;
    const spans = this.spans;
    const right = a.left + a.width;
    const bands: Band[] = [];
    // The first span that ends after a moment: spans follow each other.
    const after = (time: number, low: number) => {
      let high = spans.length;
      while (low < high) {
        const m = (low + high) >> 1;
        if (spans[m].span.end_ns <= time) low = m + 1;
        else high = m;
      }
      return low;
    };
    let i = after(a.from, 0);
    while (i < spans.length && spans[i].span.start_ns < a.to) {
      const { span, exchange } = spans[i];
      const last = bands[bands.length - 1];
      const x0 = Math.max(a.left, Math.round(X(a, span.start_ns)), last ? last.x1 : 0);
      const x1 = Math.min(right, Math.max(x0 + a.r, Math.round(X(a, span.end_ns))));
      if (x1 > x0) bands.push({ span, exchange, x0, x1 });
      const next = a.from + ((x1 + 0.5 - a.left) / a.width) * (a.to - a.from);
      i = i + 1 < spans.length && spans[i + 1].span.end_ns > next ? i + 1 : Math.max(i + 1, after(next, i + 1));
    }
    this.seen = [...this.seen.slice(-2), { key, bands }];
    return bands;
  }
}
