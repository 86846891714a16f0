// What the graphs draw, derived once from the packets; and the way from many points to a few pixels.

import { FLAG, lower, MARK, scaled, type Track } from './packets';

/** Each level above holds the extremes of so many of the one below. */
const RADIX = 16;

/** What was found for bins of one width, so that moving sideways costs only the bins that come into sight. */
interface Bins {
  width: number;
  first: number;
  n: number;
  lo: Float64Array;
  hi: Float64Array;
  last: Float64Array;
}

/** Points in the order of time, each a range of values, with the extremes of every 16, 256, ... */
export class Series {
  private lows: Float64Array[];
  private highs: Float64Array[];
  private bins: Bins | null = null;

  constructor(
    readonly t: Float64Array,
    readonly lo: Float64Array,
    readonly hi: Float64Array,
  ) {
    this.lows = [lo];
    this.highs = [hi];
    for (let n = t.length; n > RADIX; n = Math.ceil(n / RADIX)) {
      const [lower, upper] = [this.lows[this.lows.length - 1], this.highs[this.highs.length - 1]];
      const [lows, highs] = [
        new Float64Array(Math.ceil(n / RADIX)).fill(Infinity),
        new Float64Array(Math.ceil(n / RADIX)).fill(-Infinity),
      ];
      for (let i = 0; i < n; i++) {
        const b = (i / RADIX) | 0;
        if (lower[i] < lows[b]) lows[b] = lower[i];
        if (upper[i] > highs[b]) highs[b] = upper[i];
      }
      this.lows.push(lows);
      this.highs.push(highs);
    }
  }

  /** The least and the greatest value between two indices. */
  extremes(a: number, b: number): [number, number] {
    let min = Infinity,
      max = -Infinity;
    for (let level = 0; a < b; level++) {
      const lows = this.lows[level],
        highs = this.highs[level];
      const top = level + 1 === this.lows.length;
      const take = (i: number) => {
        if (lows[i] < min) min = lows[i];
        if (highs[i] > max) max = highs[i];
      };
      while (a < b && (top || a % RADIX)) take(a++);
      while (a < b && b % RADIX) take(--b);
      a /= RADIX;
      b /= RADIX;
    }
    return [min, max];
  }

  /** For each pixel column with points: its least and greatest value, and the last one. */
  columns(
    from: number,
    to: number,
    width: number,
    each: (x: number, lo: number, hi: number, last: number) => void,
  ): void {
    const bins = this.binned(from, to, width);
    const shift = from / bins.width;
    for (let i = 0; i < bins.n; i++) {
      if (bins.lo[i] <= bins.hi[i]) each(bins.first + i - shift, bins.lo[i], bins.hi[i], bins.last[i]);
    }
  }

  private binned(from: number, to: number, columns: number): Bins {
    let width = (to - from) / columns;
    const old = this.bins;
    const same = old !== null && Math.abs(width / old.width - 1) < 1e-9;
    if (same) width = old.width;
    const first = Math.floor(from / width);
    const n = Math.ceil(to / width) - first;
    if (same && old.first === first && old.n === n) return old;
    const bins: Bins = {
      width,
      first,
      n,
      lo: new Float64Array(n).fill(Infinity),
      hi: new Float64Array(n).fill(-Infinity),
      last: new Float64Array(n),
    };
    let a = 0,
      b = 0;
    if (same) {
      [a, b] = [Math.max(first, old.first), Math.min(first + n, old.first + old.n)];
      for (const name of ['lo', 'hi', 'last'] as const)
        if (a < b) bins[name].set(old[name].subarray(a - old.first, b - old.first), a - first);
    }
    if (a < b) {
      this.fill(bins, first, a);
      this.fill(bins, b, first + n);
    } else this.fill(bins, first, first + n);
    this.bins = bins;
    return bins;
  }

  private fill(bins: Bins, from: number, to: number): void {
    const { t, hi } = this;
    let i = lower(t, from * bins.width);
    const end = lower(t, to * bins.width);
    while (i < end) {
      const k = Math.min(to - 1, Math.max(from, Math.floor(t[i] / bins.width)));
      // Near ones by steps, far ones by bisection.
      const until = (k + 1) * bins.width;
      let stop = i + 1;
      while (stop < end && stop < i + 32 && t[stop] < until) stop++;
      if (stop === i + 32 && stop < end && t[stop] < until) stop = Math.min(end, lower(t, until));
      const [min, max] = this.extremes(i, stop);
      const b = k - bins.first;
      if (min < bins.lo[b]) bins.lo[b] = min;
      if (max > bins.hi[b]) bins.hi[b] = max;
      bins.last[b] = hi[stop - 1];
      i = stop;
    }
  }

  /** The value that holds at `time`: of the last point before. */
  at(time: number): number {
    const i = lower(this.t, time);
    return i > 0 ? this.hi[i - 1] : NaN;
  }
}

/** One direction: what its sender sent, and what the other end said of it. */
export interface Direction {
  /** Segments with sequence space, and the packet of each. */
  data: Series;
  packet: Uint32Array;
  /** Places in `data` that are odd. */
  odd: number[];
  ack: Series;
  /** Empty (but for a SYN's) where the scale of the windows is not known. */
  edge: Series;
  ackPacket: Uint32Array;
  /** SACK blocks: times, left and right edges. */
  sackT: Float64Array;
  sackLo: Float64Array;
  sackHi: Float64Array;
  flight: Series;
  window: Series;
  cwnd: Series;
  rtt: Series;
  /** New bytes up to each moment. */
  sum: Series;
  bytes: number;
}

class Points {
  t: number[] = [];
  v: number[] = [];

  add(t: number, v: number): void {
    this.t.push(t);
    this.v.push(v);
  }

  series(): Series {
    const v = Float64Array.from(this.v);
    return new Series(Float64Array.from(this.t), v, v);
  }
}

export function directions(track: Track, baseRtt: number | null): [Direction, Direction] {
  return [direction(track, 0, baseRtt), direction(track, 1, baseRtt)];
}

function direction(k: Track, d: number, baseRtt: number | null): Direction {
  const dataT: number[] = [],
    lo: number[] = [],
    hi: number[] = [],
    packet: number[] = [],
    odd: number[] = [];
  const ack = new Points(),
    edge = new Points(),
    flight = new Points(),
    window = new Points(),
    rtt = new Points();
  const sum = new Points();
  const ackPacket: number[] = [];
  const sackT: number[] = [],
    sackLo: number[] = [],
    sackHi: number[] = [];
  let high = NaN,
    una = NaN,
    right = NaN,
    first = NaN;
  // Ends and times of segments that wait for their ACK; repeated ones are left out (Karn).
  const waiting: { end: number; t: number; clean: boolean }[] = [];
  let head = 0;
  const repeated = MARK.RETRANSMITTED | MARK.LATE | MARK.OUT_OF_ORDER;
  for (let i = 0; i < k.n; i++) {
    const t = k.t[i];
    if (k.from[i] === d) {
      const control = (k.flags[i] & FLAG.SYN ? 1 : 0) + (k.flags[i] & FLAG.FIN ? 1 : 0);
      const end = k.seq[i] + k.len[i] + control;
      // Probes of a shut window hold no byte, and are shown all the same.
      if (end === k.seq[i] && !(k.flags[i] & FLAG.RST) && !(k.marks[i] & MARK.PROBE)) continue;
      if (k.marks[i] || k.flags[i] & (FLAG.SYN | FLAG.FIN | FLAG.RST | FLAG.URG)) odd.push(dataT.length);
      dataT.push(t);
      lo.push(k.seq[i]);
      hi.push(end);
      packet.push(i);
      if (k.flags[i] & FLAG.RST) continue;
      if (Number.isNaN(first)) first = k.seq[i];
      if (k.marks[i] & repeated) {
        for (let w = head; w < waiting.length; w++) if (waiting[w].end > k.seq[i]) waiting[w].clean = false;
      } else if (!(k.marks[i] & MARK.PROBE)) {
        waiting.push({ end, t, clean: true });
      }
      if (!(end <= high)) high = end;
      sum.add(t, high - first);
    } else {
      if (!(k.flags[i] & FLAG.ACK) || k.flags[i] & FLAG.RST) continue;
      if (!(k.ack[i] <= una)) una = k.ack[i];
      // A window that was taken back is drawn as it was said; one whose scale is not known has no edge to draw.
      const said = k.ack[i] + k.win[i];
      if (!scaled(k, i)) right = NaN;
      else right = k.ack[i] >= una || Number.isNaN(right) ? said : Math.max(right, said);
      ack.add(t, una);
      if (!Number.isNaN(right)) edge.add(t, right);
      ackPacket.push(i);
      for (let b = k.sackAt[i]; b < k.sackAt[i + 1]; b++) {
        sackT.push(t);
        sackLo.push(k.sack[2 * b]);
        sackHi.push(k.sack[2 * b + 1]);
      }
      let newest: { t: number; clean: boolean } | null = null;
      while (head < waiting.length && waiting[head].end <= una) newest = waiting[head++];
      if (newest?.clean) rtt.add(t, t - newest.t);
      if (head > 4096 && head * 2 > waiting.length) {
        waiting.splice(0, head);
        head = 0;
      }
    }
    if (!Number.isNaN(high)) {
      const base = Number.isNaN(una) ? first : una;
      flight.add(t, Math.max(0, high - base));
      if (!Number.isNaN(right)) window.add(t, Math.max(0, right - base));
    }
  }
  const f = flight.series();
  const flat = (a: number[]) => Float64Array.from(a);
  return {
    data: new Series(flat(dataT), flat(lo), flat(hi)),
    packet: Uint32Array.from(packet),
    odd,
    ack: ack.series(),
    edge: edge.series(),
    ackPacket: Uint32Array.from(ackPacket),
    sackT: flat(sackT),
    sackLo: flat(sackLo),
    sackHi: flat(sackHi),
    flight: f,
    window: window.series(),
    cwnd: peaks(f, baseRtt ?? 1e6),
    rtt: rtt.series(),
    sum: sum.series(),
    bytes: sum.v.length ? sum.v[sum.v.length - 1] : 0,
  };
}

/** The most in flight within the round trip before each moment: what the congestion window was at least. */
function peaks(flight: Series, rtt: number): Series {
  const { t, hi } = flight;
  const out = new Float64Array(t.length);
  const queue: number[] = [];
  let head = 0;
  for (let i = 0; i < t.length; i++) {
    while (queue.length > head && hi[queue[queue.length - 1]] <= hi[i]) queue.pop();
    queue.push(i);
    while (t[queue[head]] < t[i] - rtt) head++;
    if (head > 4096) {
      queue.splice(0, head);
      head = 0;
    }
    out[i] = hi[queue[head]];
  }
  return new Series(t, out, out);
}
