// Made by `make web` from docs/schema/explain-1.json (scripts/page_types.py).

import type { Finding, OwnerName, SpanCause } from './findings';

import type { Connection } from './connections';

/**
 * The whole document of `tcpwhy explain --json`. Within schema 1 changes are additive; readers ignore unknown
 * fields. Times are integer nanoseconds from the earliest packet.
 */
export interface Report {
  /** Always `tcpwhy`. */
  tool: string;
  /** Version of the program. */
  version: string;
  /** Version of this contract. */
  schema: number;
  /** The answer as a whole. */
  summary: Summary;
  /** In the order of their first packets. */
  connections: Connection[];
  /** Over the whole capture, worst first. */
  findings: Finding[];
  /** The input as a whole. */
  capture: CaptureInfo;
}

/** Requests that took about equally long. */
export interface Band {
  /** They took at least so long. */
  from_ns: number;
  /** And less than this. */
  to_ns: number;
  /** How many. */
  requests: number;
  /** Their time by cause, added up. */
  causes: Record<string, number>;
}

/** The input as a whole. */
export interface CaptureInfo {
  /** Names of the inputs, in the order in which they were read. */
  files: string[];
  /** Frames read, TCP or not. */
  packets: number;
  /** TCP packets among them. */
  tcp_packets: number;
  /** Moment 0 (RFC 3339 with nanoseconds); null without any packet. */
  start: string | null;
  /** Earliest to latest frame. */
  duration_ns: number;
  /** Connections listed. */
  connections: number;
  /** What packets were wrapped in, and how many. */
  encapsulations: Wrappings;
  /** What limits what can be said. */
  warnings: WarningInfo[];
}

/** The time of one cause. */
export interface CauseTime {
  /** Which. */
  cause: SpanCause;
  /** Who has to act. */
  owner: OwnerName;
  /** In requests and setups. */
  requests_ns: number;
  /** That as a share of `request_ns`; they add up to 1. */
  share_of_requests: number;
  /** Between requests. */
  idle_ns: number;
  /** After the last byte of connections: nobody waited. */
  after_last_byte_ns: number;
}

/** A cause and what there is more of it. */
export interface More {
  /** Which. */
  cause: SpanCause;
  /** How much more, on average. */
  more_ns: number;
}

/** Time by who has to act. */
export interface Owners {
  /** Who wrote or runs the programs. */
  application: number;
  /** The two TCP stacks and their settings. */
  tcp: number;
  /** The network between. */
  path: number;
  /** Not known. */
  none: number;
}

/** The requests to one address and port. */
export interface Server {
  /** Address and port. */
  server: string;
  /**
   * The server that makes these requests while it answers its own, where one does: each lies within one of that
   * one's and their time is part of it.
   */
  within: string | null;
  /** How many connections. */
  connections: number;
  /** How many of them a reset answered at once. */
  refused: number;
  /**
   * How many requests (exchanges); over the whole capture those that were made while another one was answered (see
   * `servers`) are part of that one: neither they nor their time count twice.
   */
  requests: number;
  /** The time of requests and of setups, added up. */
  request_ns: number;
  /** Gaps between requests, before the last byte of each connection, added up: no request was on its way. */
  idle_ns: number;
  /** From the start of the first request or setup to the end of the last. */
  clock_ns: number;
  /** Connections were in use at the same time: `request_ns` and `idle_ns` are no one's time. */
  at_once: boolean;
  /**
   * How many of them took time: where nothing came back, or all packets have one stamp, nobody knows how long they
   * took. The percentiles are of these, unless there are none.
   */
  timed: number;
  /** Of a hundred requests fifty took no longer; this and the other percentile are right to a thousandth. */
  median_ns: number | null;
  /** Ninety-five took no longer. */
  p95_ns: number | null;
  /** The longest. */
  max_ns: number | null;
  /** `request_ns` by cause. */
  causes: Record<string, number>;
  /** The requests that took about as long as the median. */
  typical: Band | null;
  /** The requests that took about as long as the 95th percentile. */
  slow: Band | null;
  /** What these have more of than typical ones, where that is a tenth of their time or more. */
  slow_because: More | null;
  /**
   * All requests by how long they took, the shortest first: eight bands for each factor of two, those without
   * requests left out.
   */
  distribution: Band[];
}

/** An exchange that took long. */
export interface Slow {
  /** Id of its connection. */
  connection: number;
  /** Its id within that. */
  exchange: number;
  /** Who answered. */
  server: string;
  /** When it began. */
  start_ns: number;
  /** How long it took. */
  duration_ns: number;
  /** What most of its time went to. */
  cause: SpanCause | null;
  /** The time of that. */
  cause_ns: number;
}

/** Whose time it was, and where it went. Shares are of `request_ns`. */
export interface Summary {
  /** The verdict in a few sentences. */
  headline: string;
  /**
   * How many requests (exchanges); over the whole capture those that were made while another one was answered (see
   * `servers`) are part of that one: neither they nor their time count twice.
   */
  requests: number;
  /** The time of requests and of setups, added up. */
  request_ns: number;
  /** Gaps between requests, before the last byte of each connection, added up: no request was on its way. */
  idle_ns: number;
  /** From the start of the first request or setup to the end of the last. */
  clock_ns: number;
  /** Connections were in use at the same time: `request_ns` and `idle_ns` are no one's time. */
  at_once: boolean;
  /**
   * How many of them took time: where nothing came back, or all packets have one stamp, nobody knows how long they
   * took. The percentiles are of these, unless there are none.
   */
  timed: number;
  /** Of a hundred requests fifty took no longer; this and the other percentile are right to a thousandth. */
  median_ns: number | null;
  /** Ninety-five took no longer. */
  p95_ns: number | null;
  /** The longest. */
  max_ns: number | null;
  /** `request_ns` by who has to act. */
  owners: Owners;
  /** All time by cause: by that of requests, the longest first. */
  causes: CauseTime[];
  /**
   * The part of `request_ns` whose cause was judged with little confidence (below 0.7); what is `unexplained` is
   * not among it.
   */
  unsure_ns: number;
  /** Requests by who answered them, the one that took most time first; at most a thousand. */
  servers: Server[];
  /** Connections to other servers. */
  servers_omitted: number;
  /**
   * Connections of a single packet without payload that are not listed: those of a scan (see the finding), and of
   * others all but the first thousand. They are part of the count of connections, and have numbers. `--exchanges
   * all` lists them.
   */
  connections_omitted: number;
  /** The longest exchanges over all connections that are kept in detail, the longest first; at most ten. */
  slowest: Slow[];
}

/** Something that limits what can be said. */
export interface WarningInfo {
  /** Stable word for programs. */
  code: string;
  /** A plain sentence with the next step. */
  text: string;
  /** How often. */
  count: number;
}

export type Wrappings = Record<string, number>;
