// Marks on a canvas: what a panel shows between two moments.

import { css } from './dom';
import { FLAG, lower, MARK, type Track } from './packets';
import type { Direction, Series } from './series';

/** A plot area in device pixels, and what it shows. */
export interface Area {
  c: CanvasRenderingContext2D;
  left: number;
  top: number;
  width: number;
  height: number;
  from: number;
  to: number;
  lo: number;
  hi: number;
  /** Device pixels in a CSS pixel. */
  r: number;
}

export function X(a: Area, t: number): number {
  return a.left + ((t - a.from) / (a.to - a.from)) * a.width;
}
export function Y(a: Area, v: number): number {
  return a.top + a.height - ((v - a.lo) / (a.hi - a.lo)) * a.height;
}

/** A line that keeps its value until the next point. */
export function steps(a: Area, s: Series, colour: string, width: number, dash: number[] = []): void {
  const { c, r } = a;
  c.beginPath();
  let y = NaN;
  const before = s.at(a.from);
  if (!Number.isNaN(before)) {
    y = Y(a, before);
    c.moveTo(a.left, y);
  }
  s.columns(a.from, a.to, a.width / r, (column, lo, hi, last) => {
    const x = a.left + column * r;
    if (Number.isNaN(y)) c.moveTo(x, Y(a, last));
    else c.lineTo(x, y);
    if (lo !== hi) {
      c.moveTo(x, Y(a, lo));
      c.lineTo(x, Y(a, hi));
      c.moveTo(x, Y(a, last));
    }
    y = Y(a, last);
    c.lineTo(x, y);
  });
  if (!Number.isNaN(y) && s.t.length) c.lineTo(Math.min(a.left + a.width, X(a, s.t[s.t.length - 1])), y);
  stroke(a, colour, width, dash);
}

/** The area below a line that keeps its value. */
export function below(a: Area, s: Series, colour: string, alpha: number): void {
  const { c, r } = a;
  const floor = a.top + a.height;
  c.globalAlpha = alpha;
  c.fillStyle = colour;
  let x = a.left,
    value = s.at(a.from);
  const fill = (to: number) => {
    if (value > 0) {
      const y = Y(a, value);
      c.fillRect(x, y, Math.max(to - x, r), floor - y);
    }
  };
  s.columns(a.from, a.to, a.width / r, (column, _lo, hi, last) => {
    const at = a.left + column * r;
    fill(at);
    if (hi > last) {
      const y = Y(a, hi);
      c.fillRect(at, y, r, floor - y);
    }
    x = at;
    value = last;
  });
  fill(s.t.length ? Math.min(a.left + a.width, X(a, s.t[s.t.length - 1])) : x);
  c.globalAlpha = 1;
}

export function dots(a: Area, s: Series, colour: string, size: number): void {
  const { c, r } = a;
  c.fillStyle = colour;
  const few = lower(s.t, a.to) - lower(s.t, a.from) < 3000;
  if (few) {
    for (let i = lower(s.t, a.from); i < s.t.length && s.t[i] <= a.to; i++) {
      c.beginPath();
      c.arc(X(a, s.t[i]), Y(a, s.hi[i]), size * r, 0, 7);
      c.fill();
    }
    return;
  }
  s.columns(a.from, a.to, a.width / r, (column, lo, hi) => {
    const y = Y(a, hi);
    c.fillRect(a.left + column * r, y, r, Math.max(2 * r, Y(a, lo) - y));
  });
}

export function stroke(a: Area, colour: string, width: number, dash: number[] = []): void {
  a.c.strokeStyle = colour;
  a.c.lineWidth = width * a.r;
  a.c.setLineDash(dash.map(d => d * a.r));
  a.c.stroke();
  a.c.setLineDash([]);
}

/** A horizontal line with a name. */
export function level(a: Area, value: number, name: string, colour: string): void {
  const y = Y(a, value);
  if (y < a.top || y > a.top + a.height) return;
  a.c.beginPath();
  a.c.moveTo(a.left, y);
  a.c.lineTo(a.left + a.width, y);
  stroke(a, colour, 1.2, [6, 4]);
  // Above the line, unless that is out of the plot.
  label(a, name, a.left + a.width - 6 * a.r, y - 16 * a.r < a.top ? y + 13 * a.r : y - 5 * a.r, colour, 'right');
}

/** A stretch that was chosen: what lies beside it fades. */
export function choice(a: Area, [from, to]: [number, number]): void {
  const { c, r } = a;
  const end = a.left + a.width;
  const [x0, x1] = [from, to].map(t => Math.min(end, Math.max(a.left, X(a, t))));
  c.fillStyle = css('--veil');
  c.fillRect(a.left, a.top, x0 - a.left, a.height);
  c.fillRect(x1, a.top, end - x1, a.height);
  c.fillStyle = css('--accent');
  c.fillRect(x0, a.top, r, a.height);
  c.fillRect(x1 - r, a.top, r, a.height);
}

/** Text with the background behind it. */
export function label(a: Area, text: string, x: number, y: number, colour: string, align: CanvasTextAlign): void {
  const { c, r } = a;
  c.font = `${11 * r}px ${css('--font')}`;
  c.textAlign = align;
  c.textBaseline = 'alphabetic';
  c.lineWidth = 3 * r;
  c.strokeStyle = css('--paper');
  c.lineJoin = 'round';
  c.strokeText(text, x, y);
  c.fillStyle = colour;
  c.fillText(text, x, y);
}

/** Sequence numbers over time, as tcptrace draws them. */
export function sequence(a: Area, d: Direction, track: Track): void {
  const { c, r } = a;
  steps(a, d.edge, css('--edge'), 1.3, [5, 3]);
  steps(a, d.ack, css('--ack'), 1.5);
  const visible = lower(d.data.t, a.to) - lower(d.data.t, a.from);
  const near = visible < 600;
  c.fillStyle = css('--segment');
  if (near) segments(a, d, track);
  else {
    d.data.columns(a.from, a.to, a.width / r, (column, lo, hi) => {
      const y = Y(a, hi);
      c.fillRect(a.left + column * r, y, r, Math.max(r, Y(a, lo) - y));
    });
  }
  selective(a, d);
  odd(a, d, track, near);
  if (near) acks(a, d, track);
}

/** Each segment with its ends; a diamond on those with PSH. */
function segments(a: Area, d: Direction, track: Track): void {
  const { c, r } = a;
  for (let i = lower(d.data.t, a.from); i < d.data.t.length && d.data.t[i] <= a.to; i++) {
    const x = X(a, d.data.t[i]),
      y0 = Y(a, d.data.lo[i]),
      y1 = Y(a, d.data.hi[i]);
    c.fillRect(x - r, y1, 2 * r, Math.max(r, y0 - y1));
    c.fillRect(x - 3 * r, y1 - r / 2, 6 * r, r);
    c.fillRect(x - 3 * r, y0 - r / 2, 6 * r, r);
    if (track.flags[d.packet[i]] & FLAG.PSH) {
      c.beginPath();
      c.moveTo(x, y1 - 4 * r);
      c.lineTo(x + 3 * r, y1);
      c.lineTo(x, y1 + 4 * r);
      c.lineTo(x - 3 * r, y1);
      c.fill();
    }
  }
}

/** Bytes that arrived out of order, as the receiver reported them. */
function selective(a: Area, d: Direction): void {
  const { c, r } = a;
  c.fillStyle = css('--sack');
  let lastX = -1,
    lastY = -1;
  for (let i = lower(d.sackT, a.from); i < d.sackT.length && d.sackT[i] <= a.to; i++) {
    const x = Math.round(X(a, d.sackT[i])),
      y = Math.round(Y(a, d.sackHi[i]));
    if (x === lastX && y === lastY) continue;
    [lastX, lastY] = [x, y];
    c.fillRect(x - r / 2, y, 1.5 * r, Math.max(1.5 * r, Y(a, d.sackLo[i]) - y));
  }
}

const ODD: [number, string, string][] = [
  [MARK.RETRANSMITTED, 'R', '--again'],
  [MARK.LATE, 'R', '--again'],
  [MARK.OUT_OF_ORDER, 'O', '--order'],
  [MARK.PROBE, 'P', '--order'],
];
const CONTROL: [number, string][] = [
  [FLAG.SYN, 'SYN'],
  [FLAG.FIN, 'FIN'],
  [FLAG.RST, 'RST'],
  [FLAG.URG, 'U'],
];

function odd(a: Area, d: Direction, track: Track, near: boolean): void {
  const { c, r } = a;
  // The odd ones among all, by bisection: they are in the order of time.
  let low = 0,
    high = d.odd.length;
  while (low < high) {
    const m = (low + high) >> 1;
    if (d.data.t[d.odd[m]] < a.from) low = m + 1;
    else high = m;
  }
  let last = -1,
    shown = -1;
  for (let k = low; k < d.odd.length; k++) {
    const i = d.odd[k];
    if (d.data.t[i] > a.to) break;
    const p = d.packet[i],
      x = X(a, d.data.t[i]),
      y0 = Y(a, d.data.lo[i]),
      y1 = Y(a, d.data.hi[i]);
    // Marks are wider than a pixel: where they would lie upon each other, one stands for all.
    const cell = Math.round(x / (2 * r)) * 65536 + Math.round(y1 / (2 * r));
    if (cell === last || (cell === shown && !near)) continue;
    shown = last;
    last = cell;
    for (const [bit, letter, colour] of ODD) {
      if (!(track.marks[p] & bit)) continue;
      c.fillStyle = css(colour);
      c.fillRect(x - 1.5 * r, y1, 3 * r, Math.max(3 * r, y0 - y1));
      c.beginPath();
      c.moveTo(x - 4 * r, y1 - 4 * r);
      c.lineTo(x + 4 * r, y1 - 4 * r);
      c.lineTo(x, y1 + r);
      c.fill();
      if (near) label(a, letter, x + 6 * r, y1 - 2 * r, css(colour), 'left');
      break;
    }
    for (const [bit, name] of CONTROL) {
      if (!(track.flags[p] & bit)) continue;
      c.fillStyle = css('--ink');
      c.fillRect(x - 4 * r, y1 - r, 8 * r, 2 * r);
      if (near || name !== 'U')
        if (x > a.left + a.width - 40 * r)
          // Beside the mark, where the plot goes on.
          label(a, name, x - 6 * r, y1 + 12 * r, css('--ink'), 'right');
        else label(a, name, x + 6 * r, y1 - 3 * r, css('--ink'), 'left');
    }
  }
}

/** Single ACKs: ticks, 3 at the third duplicate, Z where the window is shut, marks of congestion. */
function acks(a: Area, d: Direction, track: Track): void {
  const { c, r } = a;
  const start = lower(d.ack.t, a.from);
  const end = lower(d.ack.t, a.to);
  if (end - start > 1500) return;
  let copies = 0;
  for (let i = start; i < end; i++) {
    const p = d.ackPacket[i],
      x = X(a, d.ack.t[i]),
      y = Y(a, d.ack.hi[i]);
    const marks = track.marks[p],
      flags = track.flags[p];
    copies = marks & MARK.DUPLICATE_ACK ? copies + 1 : 0;
    c.fillStyle = css('--ack');
    c.fillRect(x - r / 2, y, 1.5 * r, (copies ? 7 : 4) * r);
    if (copies === 3) label(a, '3', x + 4 * r, y + 13 * r, css('--ack'), 'left');
    // A shut window ends where the bytes end that were taken.
    if (marks & MARK.ZERO_WINDOW) label(a, 'Z', x, y - 4 * r, css('--again'), 'center');
    if (flags & FLAG.ECE) label(a, 'ECE', x + 4 * r, y + 22 * r, css('--order'), 'left');
  }
  for (let i = lower(d.data.t, a.from); i < d.data.t.length && d.data.t[i] <= a.to; i++)
    if (track.flags[d.packet[i]] & FLAG.CWR && !(track.flags[d.packet[i]] & FLAG.SYN))
      label(a, 'CWR', X(a, d.data.t[i]) + 4 * r, Y(a, d.data.hi[i]) + 10 * r, css('--order'), 'left');
}

/** Bits per second, over stretches of at least eight pixels and one round trip. */
export function rates(a: Area, d: Direction, rtt: number): { t: number; width: number; bps: number }[] {
  const width = Math.max(((a.to - a.from) / (a.width / a.r)) * 8, rtt);
  const first = Math.floor(a.from / width);
  const out: { t: number; width: number; bps: number }[] = [];
  for (let k = first; k * width < a.to; k++) {
    const before = d.sum.at(k * width) || 0,
      after = d.sum.at((k + 1) * width) || 0;
    out.push({ t: k * width, width, bps: ((after - before) * 8e9) / width });
  }
  return out;
}
