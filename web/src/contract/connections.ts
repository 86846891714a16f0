// Made by `make web` from docs/schema/explain-1.json (scripts/page_types.py).

import type { Finding, Frames, Program, SideName, SpanCause } from './findings';

/** Another cause that the same packets allow. */
export interface Alternative {
  /** Which. */
  cause: SpanCause;
  /** How sure. */
  confidence: number;
}

/** An exchange that was made to answer another one. */
export interface Asks {
  /** Its connection. */
  connection: number;
  /** Its id within that. */
  exchange: number;
  /** How long it took. */
  time_ns: number;
}

/** One incarnation of a 4-tuple. */
export interface Connection {
  /** 1-based in the order of first packets. */
  id: number;
  /** The number that tshark and Wireshark give it (`tcp.stream`), where that is known. */
  tshark_stream: number | null;
  /** Address and port of who sent the SYN, or is inferred to. */
  client: string;
  /** Address and port of the other end. */
  server: string;
  /** `syn` or `inferred`. */
  roles: string;
  /** First packet. */
  start_ns: number;
  /** Last packet; where an answer was still waited for when the capture ended, the capture's. */
  end_ns: number;
  /** `handshake` or `midstream`. */
  opened: string;
  /** `fin`, `rst` or `open`. */
  closed: string;
  /** Where the capture was taken: `client`, `server`, `middle` or `unknown`. */
  vantage: string;
  /** What is spoken above TCP, where it shows. */
  protocol: string | null;
  /** The path. */
  path: Path;
  /** The two ends. */
  endpoints: Ends;
  /** New payload bytes sent. */
  bytes: Pair;
  /** Packets sent, copies left out. */
  packets: Pair;
  /** Packets that repeat bytes. */
  retransmitted: Pair;
  /** What limits what can be said: `midstream`, `one_sided`, `snaplen`, `capture_drops`, `offload`, ... */
  quality: QualityNames;
  /** Setup, where it was seen. */
  setup: Setup | null;
  /** The exchanges kept in detail, ascending. */
  exchanges: Exchange[];
  /** The others, summed. */
  exchanges_omitted: Omitted | null;
  /** The gaps kept in detail, ascending. */
  gaps: Gap[];
  /** The others, summed. */
  gaps_omitted: Omitted | null;
  /** Setup and all exchanges, omitted ones included. */
  budget: Times;
  /** All gaps. */
  gap_budget: Times;
  /** From the end of the last response to the server's FIN, where the client closed only after that. */
  closed_after_ns: number | null;
  /**
   * Worst first. With more than a thousand connections, only those that lost most to TCP have theirs; the budgets
   * hold the times of all.
   */
  findings: Finding[];
  /** First and last frame. */
  frames: Range;
  /** How many findings were left out. */
  findings_omitted?: number;
  /** What two taps say together, where there are two. */
  taps?: Taps | null;
}

/** What is known of one end. */
export interface End {
  /** MSS option it sent. */
  mss: number | null;
  /** Window scale option it sent; without its SYN, the scale read from how its window moved, once that was sure. */
  wscale: number | null;
  /** Bytes of its first flight, where it was seen to be limited. */
  initial_flight: number | null;
  /** Largest window it advertised, bytes. */
  max_window: number | null;
  /** Its stack, where it shows. */
  stack: Stack | null;
  /** Most bytes it had in flight. */
  max_flight: number;
  /** Copies of its packets, left out. */
  duplicates?: number;
  /** Keep-alives it sent. */
  keepalives?: number;
  /** A guess of the program that speaks there. */
  program?: Program | null;
  /** Late arrivals that were reordering and not repair. */
  reordered?: number;
  /** Repeats of its SYN or SYN-ACK. */
  syn_repeats?: number;
  /** Window probes it sent. */
  window_probes?: number;
  /** Zero windows it advertised. */
  zero_windows?: number;
}

/** The two ends. */
export interface Ends {
  /** Who sent the SYN. */
  client: End;
  /** Who listened. */
  server: End;
}

/** One request and its response. */
export interface Exchange {
  /** 1-based within its connection. */
  id: number;
  /** First byte of the request (or of the response, where the server speaks first). */
  start_ns: number;
  /** Last byte of the request before the response. */
  request_end_ns: number | null;
  /** First byte of the response. */
  response_start_ns: number | null;
  /** Last passage of payload not yet acknowledged. */
  end_ns: number;
  /** Setup and this exchange together, for the first exchange of a connection with setup. */
  with_setup_ns: number | null;
  /** New payload bytes of the client. */
  request_bytes: number;
  /** New payload bytes of the server. */
  response_bytes: number;
  /** Turns from client to server. */
  turns: number;
  /** The directions overlapped. */
  duplex: boolean;
  /** The answer (or the transfer) is whole. */
  complete: boolean;
  /** `complete`, `rst`, `silent` or `capture_end`. */
  ended: string;
  /** Tile the time. */
  spans: Span[];
  /**
   * The exchanges that its server made with others to answer it, where they lie within it alone; what those asked
   * in turn stands there.
   */
  asks?: Asks[];
  /** It began before `--from` or ended after `--to`: its times are those within, its bytes all. */
  cut?: boolean;
  /** What its request is called, from its first bytes; with `--names`, where the protocol is known: `POST /orders`. */
  name?: string | null;
  /** Status of an HTTP/1 response; with `--names`. */
  status?: number | null;
}

/** Time of a connection that belongs to neither setup nor an exchange. */
export interface Gap {
  /** Start. */
  start_ns: number;
  /** End. */
  end_ns: number;
  /** Tile the time. */
  spans: Span[];
}

/** A packet that never came to the other tap. */
export interface Loss {
  /** Who sent it: `client` (lost on the way there) or `server` (on the way back). */
  from: string;
  /** When it passed its sender's tap. */
  at_ns: number;
  /** Its frame there. */
  frame: number;
  /** Index of the input that holds it. */
  file: number;
  /** Its payload. */
  bytes: number;
  /** It was a SYN or SYN-ACK. */
  syn: boolean;
}

/** Parts left out of the detail, summed. */
export interface Omitted {
  /** How many. */
  count: number;
  /** Their durations. */
  duration_ns: number;
  /** Their time by cause. */
  budget: Times;
  /** New payload bytes of the client within (exchanges only). */
  request_bytes?: number | null;
  /** New payload bytes of the server within (exchanges only). */
  response_bytes?: number | null;
}

/** A number for each end. */
export interface Pair {
  /** Of the client. */
  client: number;
  /** Of the server. */
  server: number;
}

/** What is known of the path. */
export interface Path {
  /** Base round trip. */
  rtt_ns: number | null;
  /** Bottleneck rate, as far as it showed. */
  bandwidth_bps: number | null;
  /** Super-segments were seen. */
  offloaded: boolean;
  /** The part of the round trip from the tap to the client and back. */
  client_rtt_ns: number | null;
  /** The part of the round trip from the tap to the server and back. */
  server_rtt_ns: number | null;
}

export type QualityNames = string[];

/** First and last frame of something. */
export interface Range {
  /** Lowest frame. */
  first: number;
  /** Highest frame. */
  last: number;
  /** Index of the input that holds `first`, only where there are several. */
  file?: number | null;
  /** Index of the input that holds `last`, only where there are several. */
  last_file?: number | null;
}

export type Sentence = string;

/** First SYN to the client's first ACK of the SYN-ACK, and the TLS handshake if one follows. */
export interface Setup {
  /** The first SYN. */
  start_ns: number;
  /** The end of the handshake(s). */
  end_ns: number;
  /** Payload seen within. */
  bytes: Pair;
  /** Tile the time. */
  spans: Span[];
}

/** A stretch of time with exactly one cause. */
export interface Span {
  /** Connection, part and number: `1.s.1` in setup, `1.7.2` in exchange 7, `1.g3.1` in the third gap listed. */
  id: string;
  /** Why this time passed. */
  cause: SpanCause;
  /** What kind of it, where that is known. */
  detail: string | null;
  /** Who could change it. */
  side: SideName | null;
  /** Start, inclusive. */
  start_ns: number;
  /** End, exclusive. */
  end_ns: number;
  /** Evidence. */
  frames: Frames;
  /** How sure. */
  confidence: number;
  /** What else it could be. */
  alternatives: Alternative[];
  /** `inferred` from packets, or seen in the `kernel`. */
  source: string;
  /** One sentence with the figures. */
  why: Sentence;
  /** How many repeats of one pattern were folded into this span. */
  folded: number;
}

/** What shows of a TCP stack. */
export interface Stack {
  /** Guess of the operating system from the SYN. */
  os: string | null;
  /** Longest delay of an ACK that was delayed. */
  delayed_ack_max_ns?: number | null;
  /** Shortest delay of an ACK that was delayed. */
  delayed_ack_min_ns?: number | null;
  /** Shortest wait before a repeat. */
  min_rto_ns?: number | null;
}

/** Packets on their way between the taps. */
export interface Taps {
  /** Packets that passed the tap of their sender. */
  sent: Pair;
  /** Those of them that never came to the other tap; null where packets are joined or split on the way. */
  lost: Pair | null;
  /** Those of the lost that carried data. */
  lost_data: Pair | null;
  /** The lost ones, in the order of time; no more than some hundred. */
  losses: Loss[];
}

export type Times = Record<string, number>;
