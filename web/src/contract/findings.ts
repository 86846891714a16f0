// Made by `make web` from docs/schema/explain-1.json (scripts/page_types.py).

export type AnyCause =
  | SpanCause
  | 'send_queue'
  | 'chatty'
  | 'short_connections'
  | 'scan'
  | 'explicit_buffer'
  | 'no_window_scaling'
  | 'small_mss';

export type ClassLetter = 'I' | 'A' | 'T' | 'U';

/** Several changes at once. */
export interface Combined {
  /** Ids of fixes, each with where it is made. */
  fixes: [string, string][];
  /** Time of the replayed part with all of them. */
  predicted_ns: number;
}

/** The span that shows a finding best. */
export interface Example {
  /** Its connection. */
  connection: number;
  /** Its exchange; null in setup or a gap. */
  exchange: number | null;
  /** Its frames. */
  frames: Frames;
  /** When it begins. */
  start_ns: number;
  /** When it ends. */
  end_ns: number;
  /** Shows the key frames in Wireshark. */
  display_filter: string;
}

/** A cause rolled up over spans. */
export interface Finding {
  /** `f1`, `f2`, ... over the capture; `3.f1` within connection 3. */
  id: string;
  /** Which cause. */
  cause: AnyCause;
  /** Whose time it is. */
  class: ClassLetter;
  /** Who has to act. */
  owner: OwnerName;
  /** A few words for a heading. */
  title: string;
  /** The side that holds most of its time. */
  side: SideName | null;
  /** Sum of its spans (or, for a finding without spans, its cost). */
  lost_ns: number;
  /** Share of setup, exchanges, and gaps before the last byte. */
  share: number;
  /** The part of `lost_ns` in requests and setups; of a server, without that of requests to another one. */
  requests_ns: number;
  /** That as a share of the time of requests (`summary.request_ns`; within a connection of its own). */
  share_of_requests: number;
  /** The part of `lost_ns` between requests. */
  idle_ns: number;
  /** The part of `lost_ns` after the last byte of a connection, which nobody waited for: not in `share`. */
  after_last_byte_ns: number;
  /** Too little to be worth an advice: no span of a millisecond, and less than a hundredth of the time. */
  minor: boolean;
  /** How sure, on average over its time. */
  confidence: number;
  /** How many spans. */
  occurrences: number;
  /** Shortest of them. */
  shortest_ns: number;
  /** Longest of them. */
  longest_ns: number;
  /** Connections that show it, the worst first, bounded. */
  connections: number[];
  /** How many connections show it. */
  connection_count: number;
  /** The span that shows it best. */
  example: Example | null;
  /** Sentences with the figures. */
  why: string;
  /** Frames of some of its spans. */
  evidence: Frames[];
  /** What to do, best first. */
  fixes: Fix[];
  /**
   * Exchanges that show it by name, those first that hold most of its time; with `--names`, of those kept in
   * detail.
   */
  exchange_names?: NameCount[];
  /**
   * Of `server_think`: the server whose requests waited longest for each other, if all its exchanges are kept
   * (rule 161).
   */
  in_turn?: InTurn | null;
  /**
   * For this part of `requests_ns` transfers filled a link: no fix of one saves all; of `bandwidth`, of other
   * causes.
   */
  link_full?: LinkFull | null;
  /** The example replayed in the model; absent where it could not be. */
  model?: Model | null;
  /**
   * Settings that are often advised and do nothing here by the kernel's rules; what a replay shows to have no
   * effect stands in `model`.
   */
  no_help?: NoEffect[];
  /** Fixes for this cause that the capture, or a replay of it, shows not to help here. */
  refuted?: Refuted[];
}

/** Something a person can do about a finding. */
export interface Fix {
  /** Stable id. */
  id: string;
  /** What to do, in a few words. */
  title: string;
  /** `client`, `server`, `host` or `path`. */
  where: string;
  /** Exact settings or code changes. */
  how: string[];
  /** Parameters for programs. */
  applies_to: Parameters;
  /**
   * What it saves of the finding's time: at most, or as the model predicts it from its example. A faster link for
   * transfers that filled it (`link_full`) saves of the time of other findings, too, and this may be more than
   * that of its own.
   */
  saves_ns: number | null;
  /**
   * Time of the replayed part (`model` of the finding) with this fix; none where a shared link (`link_full`) was
   * full for most of it.
   */
  predicted_ns: number | null;
  /** Where the saving comes from: `bound`, `predicted`, `replayed` or `applied`. */
  basis: string;
  /** The guessed program that stands first in `how` (behind the line that says when to look, where there is one). */
  program?: Program | null;
}

/** Frame numbers that prove something, 1-based as Wireshark counts them. */
export interface Frames {
  /** Lowest frame involved. */
  first: number;
  /** Highest frame involved. */
  last: number;
  /** The frames that decide, ascending. */
  key: number[];
  /** Index of the input, only where there are several. */
  file?: number | null;
}

/** Requests to one server that waited for their turn. */
export interface InTurn {
  /** Address and port of the server. */
  server: string;
  /** How many requests. */
  requests: number;
  /** On so many it worked at a time. */
  at_once: number;
  /** So many were there at once, at the most. */
  most: number;
  /** How long one takes by itself; the median. */
  each_ns: number;
  /** How long they waited for others, summed. */
  waited_ns: number;
}

/** A link that was full, shared by several transfers from one host to another. */
export interface LinkFull {
  /** How long, of all such links; what follows is of the one with most of it. */
  time_ns: number;
  /** How many requests or answers. */
  transfers: number;
  /** Their payload that crossed the link meanwhile. */
  bytes: number;
  /** Bits of payload a second that they carried together. */
  carried_bps: number;
  /** The rate that was measured. */
  bandwidth_bps: number;
}

/** The example of a finding, replayed in the model of both ends and the path. */
export interface Model {
  /** Which connection. */
  connection: number;
  /** First exchange of the replayed part. */
  first_exchange: number;
  /** Its last exchange. */
  last_exchange: number;
  /** Its time in the capture: exchanges, and the setup if the first is 1. */
  observed_ns: number;
  /** Its time in the model. */
  modelled_ns: number;
  /** Model less capture, as a share of the capture. */
  error: number;
  /** The error is at most 15 %; else nothing is predicted from it. */
  trustworthy: boolean;
  /** What did not show and was assumed. */
  assumed: string[];
  /** The best changes together. */
  together: Combined | null;
  /** Changes that are often advised and do not help here. */
  no_help: NoEffect[];
}

/** Exchanges of one name. */
export interface NameCount {
  /** As in `exchanges[].name`. */
  name: string;
  /** How many. */
  count: number;
}

/** A change that does not help. */
export interface NoEffect {
  /** Id of the fix, or of a setting that is none. */
  id: string;
  /** `client`, `server`, `both` or `path`. */
  where: string;
  /** In a few words. */
  what: string;
  /** What it saves of the replayed part: nothing, or below zero. */
  saves_ns: number;
}

export type OwnerName = 'application' | 'tcp' | 'path' | 'none';

export type Parameters = Record<string, number | string>;

/** A program as it was guessed. */
export interface Program {
  /** Its name, or that of the language that it is written in. */
  name: string;
  /** What told: `first_bytes` of the connection (a header, a greeting), or the well-known `port`. */
  told_by: string;
}

/** A fix that is not offered. */
export interface Refuted {
  /** Id of the fix. */
  id: string;
  /** The rest of a sentence that begins with "because". */
  because: string;
}

export type SideName = 'client' | 'server' | 'network';

export type SpanCause =
  | 'handshake'
  | 'tls_handshake'
  | 'syn_retransmit'
  | 'accept_queue_full'
  | 'syn_queue_full'
  | 'refused'
  | 'port_exhaustion'
  | 'client_think'
  | 'server_think'
  | 'sender_pause'
  | 'reader_late'
  | 'slow_reader'
  | 'application_window'
  | 'mutual_block'
  | 'nagle_delayed_ack'
  | 'nagle'
  | 'delayed_ack'
  | 'cork'
  | 'silly_window'
  | 'send_buffer'
  | 'receive_window'
  | 'memory_pressure'
  | 'slow_start'
  | 'idle_restart'
  | 'congestion_window'
  | 'pacing'
  | 'host_delay'
  | 'fast_recovery'
  | 'retransmission_timeout'
  | 'tail_loss_probe'
  | 'spurious_recovery'
  | 'path_mtu'
  | 'bandwidth'
  | 'queueing'
  | 'path_delay'
  | 'keepalive_or_dead_peer'
  | 'unexplained';
