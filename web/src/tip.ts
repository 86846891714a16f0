// What stands beside the cursor: the packet under it, and the cause of that moment.

import { type Data, frameName } from './data';
import { h } from './dom';
import { duration, moment } from './format';
import { flagText, lower, markText, windowText } from './packets';
import type { Sight } from './panels';
import type { Span } from './types';

/** Where the cursor is in a panel of sequence numbers, and what the panel shows. */
export interface Under {
  direction: number;
  /** CSS pixels from the top of the plot, and the height of it. */
  y: number;
  height: number;
  lo: number;
  hi: number;
  /** Nanoseconds in a CSS pixel. */
  perPixel: number;
}

/** Packets are found within so many CSS pixels. */
const NEAR = 12;

export class Tip {
  readonly element = h('div', { class: 'tip', hidden: true });

  hide(): void {
    this.element.hidden = true;
  }

  /** Says what is at a moment: of the packet that is nearest, or of the moment itself. */
  say(data: Data, sight: Sight, t: number, under: Under | null, spanAt: (t: number) => Span | undefined): void {
    const lines: string[] = [];
    const i = under ? nearest(sight, t, under) : -1;
    if (i >= 0) {
      const k = sight.track;
      const odd = markText(k.marks[i]);
      lines.push(
        `frame ${frameName(data, k.frame[i])}  ${k.from[i] ? 'server → client' : 'client → server'}`,
        `${moment(k.t[i])}  ${flagText(k.flags[i])}`,
        `seq ${k.seq[i]}  ack ${k.ack[i]}  len ${k.len[i]}  win ${windowText(k, i)}`,
      );
      if (odd) lines.push(odd);
    } else lines.push(moment(t));
    const span = spanAt(i >= 0 ? sight.track.t[i] : t);
    if (span)
      lines.push(`${data.causes.get(span.cause)?.title ?? span.cause}: ${duration(span.end_ns - span.start_ns)}`);
    this.element.replaceChildren(...lines.map(l => h('div', {}, l)));
    this.element.hidden = false;
  }

  /** Beside a point, on the side with more room. */
  place(x: number, y: number, width: number): void {
    const { style } = this.element;
    style.left = x > width / 2 ? 'auto' : `${x + 16}px`;
    style.right = x > width / 2 ? `${width - x + 16}px` : 'auto';
    style.top = `${y + 14}px`;
  }
}

/** The packet under the cursor; -1: none is near. */
function nearest(sight: Sight, t: number, { direction, y, height, lo, hi, perPixel }: Under): number {
  const d = sight.series[direction];
  const toY = (v: number) => height - ((v - lo) / (hi - lo)) * height;
  let best = -1,
    least = NEAR;
  const look = (s: { t: Float64Array; lo: Float64Array; hi: Float64Array }, packets: Uint32Array) => {
    const a = lower(s.t, t - 10 * perPixel),
      b = Math.min(lower(s.t, t + 10 * perPixel), a + 5000);
    for (let i = a; i < b; i++) {
      const dx = Math.abs(s.t[i] - t) / perPixel;
      const [y0, y1] = [toY(s.hi[i]), toY(s.lo[i])];
      const distance = dx + (y < y0 ? y0 - y : y > y1 ? y - y1 : 0);
      if (distance < least) {
        least = distance;
        best = packets[i];
      }
    }
  };
  look(d.data, d.packet);
  look(d.ack, d.ackPacket);
  return best;
}
