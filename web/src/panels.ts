// What each panel of the graphs shows, and between which values.

import type { Kind } from './axis';
import { css } from './dom';
import { type Area, below, dots, label, level, rates, sequence, steps, stroke, X, Y } from './draw';
import { bitRate, bytes, duration } from './format';
import { lower, type Track } from './packets';
import type { Direction, Series } from './series';
import type { Connection, Span } from './types';

/** A span, and the exchange that holds it (0: none). */
export interface Placed {
  span: Span;
  exchange: number;
}

/** What is in sight; it changes with every move. */
export interface Sight {
  readonly from: number;
  readonly to: number;
  /** CSS pixels. */
  readonly width: number;
  readonly track: Track;
  readonly series: [Direction, Direction];
}

export interface Panel {
  title: string;
  keys: [string, string][];
  height: number;
  /** Least and greatest value in sight. */
  range: () => [number, number];
  draw: (a: Area) => void;
  kind: Kind;
  /** Of sequence numbers: whose. */
  direction?: number;
}

/** The panels of a connection, from above. */
export function panels(c: Connection, spans: Placed[], sight: Sight): Panel[] {
  const [up, down] = sight.series.map(d => d.bytes);
  const small = Math.min(up, down) < 0.05 * Math.max(up, down);
  const order = down >= up ? [1, 0] : [0, 1];
  return [
    ...order.map((d, i) =>
      sequencePanel(sight, d, i ? [] : sequenceKeys(sight.track), i && small ? 130 : i ? 210 : 300),
    ),
    flightPanel(c, spans, sight, order[0]),
    tripPanel(c, sight),
    ratePanel(c, sight),
  ];
}

const sequenceKeys = (k: Track): [string, string][] => [
  ['segment', 'segment'],
  ['again', 'retransmitted'],
  ['sack', 'SACK'],
  ['ack', 'acknowledged'],
  ...(k.shift.some(s => s !== null) ? [['edge', 'window edge'] as [string, string]] : []),
];

const name = (d: number) => (d === 0 ? 'client → server' : 'server → client');

function sequencePanel(sight: Sight, d: number, keys: [string, string][], height: number): Panel {
  return {
    title: `Sequence numbers, ${name(d)}`,
    keys,
    height,
    kind: 'bytes',
    direction: d,
    range: () => sequenceRange(sight, sight.series[d]),
    draw: a => sequence(a, sight.series[d], sight.track),
  };
}

function flightPanel(c: Connection, spans: Placed[], sight: Sight, d: number): Panel {
  const buffer = plateaus(c, spans, sight.series[d].flight, d === 0 ? 'client' : 'server');
  return {
    title: `In flight (sent, not acknowledged), ${name(d)}`,
    kind: 'bytes',
    height: 190,
    keys: [
      ['flight', 'in flight'],
      // The other end's window bounds what this one sends.
      ['edge', sight.track.shift[1 - d] === null ? 'window: not drawn, its scale is not known' : 'window'],
      ['cwnd', 'congestion window at least (most in flight in a round trip)'],
      ...(buffer.length ? [['buffer', 'send buffer'] as [string, string]] : []),
    ],
    range: () => {
      const max = most(sight, sight.series[d].flight);
      const window = most(sight, sight.series[d].window);
      // A window far above what is used would flatten the rest.
      return [0, Math.max(1, window < 4 * max ? Math.max(window, max) : max * 1.25) * 1.06];
    },
    draw: a => {
      const { flight, cwnd, window } = sight.series[d];
      below(a, flight, css('--segment'), 0.3);
      steps(a, flight, css('--segment'), 1);
      steps(a, cwnd, css('--cwnd'), 1.5, [2, 3]);
      steps(a, window, css('--edge'), 1.4, [5, 3]);
      for (const b of buffer) if (b.to > a.from && b.from < a.to) plateau(a, b);
      const last = window.at(a.to);
      if (last > a.hi * 1.02)
        label(
          a,
          `window ${bytes(Math.round(last))} ↑`,
          a.left + a.width - 6 * a.r,
          a.top + 14 * a.r,
          css('--edge'),
          'right',
        );
    },
  };
}

function tripPanel(c: Connection, sight: Sight): Panel {
  const base = c.path.rtt_ns ?? 0;
  return {
    title: 'Round trips, seen where the capture was taken',
    kind: 'time',
    height: 150,
    keys: [
      ['up', 'client → server'],
      ['down', 'server → client'],
      ['base', 'base round trip; above it: queues and late ACKs'],
    ],
    range: () => [0, Math.max(1000, ...sight.series.map(d => most(sight, d.rtt)), base) * 1.1],
    draw: a => {
      dots(a, sight.series[0].rtt, css('--up'), 2.2);
      dots(a, sight.series[1].rtt, css('--down'), 2.2);
      if (base) level(a, base, `base ${duration(base)}`, css('--muted'));
    },
  };
}

function ratePanel(c: Connection, sight: Sight): Panel {
  const { bandwidth_bps: bandwidth, rtt_ns: rtt } = c.path;
  return {
    title: 'Throughput',
    kind: 'rate',
    height: 150,
    keys: [
      ['up', 'client → server'],
      ['down', 'server → client'],
      ...(bandwidth ? [['base', 'bottleneck'] as [string, string]] : []),
    ],
    range: () => {
      const a = { from: sight.from, to: sight.to, width: Math.max(200, sight.width), r: 1 } as Area;
      let max = 1;
      for (const d of sight.series) for (const r of rates(a, d, rtt ?? 0)) max = Math.max(max, r.bps);
      return [0, max * 1.1];
    },
    draw: a => {
      sight.series.forEach((d, i) => {
        a.c.beginPath();
        for (const r of rates(a, d, rtt ?? 0)) {
          const y = Y(a, r.bps);
          a.c.lineTo(X(a, r.t), y);
          a.c.lineTo(X(a, r.t + r.width), y);
        }
        stroke(a, css(i ? '--down' : '--up'), 1.6, i ? [] : [4, 2]);
      });
      if (bandwidth) level(a, bandwidth, `bottleneck ${bitRate(bandwidth)}`, css('--muted'));
    },
  };
}

interface Plateau {
  from: number;
  to: number;
  bytes: number;
}

/** The most in flight during each wait for the send buffer: what the buffer holds. */
function plateaus(c: Connection, spans: Placed[], flight: Series, side: string): Plateau[] {
  const out: Plateau[] = [];
  for (const { span } of spans) {
    if (span.cause !== 'send_buffer' || (span.side && span.side !== side)) continue;
    const a = Math.max(0, lower(flight.t, span.start_ns) - 1),
      b = lower(flight.t, span.end_ns + 1);
    const held = b > a ? flight.extremes(a, b)[1] : 0;
    const last = out[out.length - 1];
    if (last && span.start_ns - last.to < 3 * (c.path.rtt_ns ?? 1e7)) {
      last.to = span.end_ns;
      last.bytes = Math.max(last.bytes, held);
    } else if (held > 0) out.push({ from: span.start_ns, to: span.end_ns, bytes: held });
  }
  return out;
}

function plateau(a: Area, b: Plateau): void {
  const y = Y(a, b.bytes),
    x0 = Math.max(a.left, X(a, b.from)),
    x1 = Math.min(a.left + a.width, X(a, b.to));
  a.c.beginPath();
  a.c.moveTo(x0, y);
  a.c.lineTo(x1, y);
  stroke(a, css('--buffer'), 2.5);
  if (x1 - x0 > 120 * a.r)
    label(a, `send buffer holds ${bytes(b.bytes)}`, (x0 + x1) / 2, y - 6 * a.r, css('--buffer'), 'center');
}

/** The greatest value in sight, that which holds at its begin among them. */
function most(sight: Sight, s: Series): number {
  const a = Math.max(0, lower(s.t, sight.from) - 1);
  return Math.max(0, s.extremes(a, lower(s.t, sight.to))[1]);
}

function sequenceRange(sight: Sight, d: Direction): [number, number] {
  let lo = Infinity,
    hi = -Infinity;
  for (const s of [d.data, d.ack]) {
    const b = lower(s.t, sight.to),
      a = Math.max(0, lower(s.t, sight.from) - 1);
    const [x, y] = s.extremes(a, b);
    lo = Math.min(lo, x);
    hi = Math.max(hi, y);
  }
  if (lo > hi) return [0, 1];
  // The window edge is shown where that does not flatten the rest.
  const b = lower(d.edge.t, sight.to);
  const edge = d.edge.extremes(Math.max(0, lower(d.edge.t, sight.from) - 1), b)[1];
  const span = Math.max(hi - lo, 100);
  if (edge - lo < 3 * span) hi = Math.max(hi, edge);
  else hi += span * 0.2;
  const pad = Math.max(hi - lo, 10) * 0.06;
  return [lo - pad, hi + pad];
}
