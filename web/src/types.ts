// The part of docs/schema/explain-1.json that the page reads, and what the program adds to it.

export type Side = 'client' | 'server' | 'network';
export interface Frames { first: number; last: number; key: number[]; file?: number }
export interface Span {
  id: string; cause: string; detail: string | null; side: Side | null; start_ns: number; end_ns: number;
  frames: Frames; confidence: number; alternatives: { cause: string; confidence: number }[]; source: string;
  why: string; folded: number;
}
export interface Setup { start_ns: number; end_ns: number; bytes: Pair; spans: Span[] }
export interface Exchange {
  id: number; start_ns: number; request_end_ns: number | null; response_start_ns: number | null; end_ns: number;
  with_setup_ns: number | null; request_bytes: number; response_bytes: number; turns: number; duplex: boolean;
  complete: boolean; ended: string; spans: Span[];
}
export interface Gap { start_ns: number; end_ns: number; spans: Span[] }
export interface Pair { client: number; server: number }
export interface Omitted { count: number; duration_ns: number; budget: Record<string, number> }
export interface End {
  mss: number | null; wscale: number | null; initial_flight: number | null; max_window: number | null;
  stack: { os: string | null; delayed_ack_min_ns?: number; delayed_ack_max_ns?: number; min_rto_ns?: number } | null;
  max_flight: number; zero_windows?: number; window_probes?: number; keepalives?: number; reordered?: number;
  syn_repeats?: number; duplicates?: number;
}
export interface Fix {
  id: string; title: string; where: string; how: string[]; applies_to: Record<string, unknown>;
  saves_ns: number | null; predicted_ns: number | null; basis: string;
}
export interface Finding {
  id: string; cause: string; class: string; title: string; side: Side | null; lost_ns: number; share: number;
  after_last_byte_ns: number; occurrences: number; shortest_ns: number; longest_ns: number; connections: number[];
  connection_count: number;
  example: { connection: number; exchange: number | null; frames: Frames; display_filter: string } | null;
  why: string; evidence: Frames[]; fixes: Fix[]; model: Model | null;
}
/** The example of a finding, replayed in the model. */
export interface Model {
  connection: number; first_exchange: number;
  observed_ns: number; modelled_ns: number; error: number; trustworthy: boolean;
  no_help: { id: string; where: string; what: string }[];
}
export interface Connection {
  id: number; tshark_stream: number | null; client: string; server: string; roles: string; start_ns: number;
  end_ns: number; opened: string; closed: string; vantage: string; protocol: string | null;
  path: { rtt_ns: number | null; bandwidth_bps: number | null; offloaded: boolean;
    client_rtt_ns: number | null; server_rtt_ns: number | null };
  endpoints: { client: End; server: End }; bytes: Pair; packets: Pair; retransmitted: Pair; quality: string[];
  setup: Setup | null; exchanges: Exchange[]; exchanges_omitted: Omitted | null; gaps: Gap[];
  gaps_omitted: Omitted | null; budget: Record<string, number>; gap_budget: Record<string, number>;
  findings: Finding[]; frames: { first: number; last: number };
}
export interface Report {
  tool: string; version: string; schema: number; connections: Connection[]; findings: Finding[];
  capture: {
    files: string[]; packets: number; tcp_packets: number; start: string | null; duration_ns: number;
    connections: number; encapsulations: Record<string, number>;
    warnings: { code: string; text: string; count: number }[];
  };
}
export interface Cause {
  id: string; class: 'I' | 'A' | 'T' | 'U'; group: string; span: boolean; title: string; what: string; page: string;
}
export interface TrackRow { connection: number; chunk: number; at: number; kept: number; total: number }
export interface Page {
  verdict: string; total_ns: number; tcp_ns: number; exchanges: number; times: [string, number][];
  frames_before: number[]; causes: Cause[]; tracks: TrackRow[]; served: { name: string } | null;
}
