// Made by `make web` from docs/schema/explain-1.json (scripts/page_types.py).

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

/** Another cause that the same packets allow. */
export interface Alternative {
  /** Which. */
  cause: SpanCause;
  /** How sure. */
  confidence: number;
}

export type AnyCause =
  | SpanCause
  | 'send_queue'
  | 'chatty'
  | 'short_connections'
  | 'scan'
  | 'explicit_buffer'
  | 'no_window_scaling'
  | 'small_mss';

/** An exchange that was made to answer another one. */
export interface Asks {
  /** Its connection. */
  connection: number;
  /** Its id within that. */
  exchange: number;
  /** How long it took. */
  time_ns: number;
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

export type ClassLetter = 'I' | 'A' | 'T' | 'U';

/** Several changes at once. */
export interface Combined {
  /** Ids of fixes, each with where it is made. */
  fixes: [string, string][];
  /** Time of the replayed part with all of them. */
  predicted_ns: number;
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

/** Time of a connection that belongs to neither setup nor an exchange. */
export interface Gap {
  /** Start. */
  start_ns: number;
  /** End. */
  end_ns: number;
  /** Tile the time. */
  spans: Span[];
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

/** A cause and what there is more of it. */
export interface More {
  /** Which. */
  cause: SpanCause;
  /** How much more, on average. */
  more_ns: number;
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

export type OwnerName = 'application' | 'tcp' | 'path' | 'none';

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

/** A number for each end. */
export interface Pair {
  /** Of the client. */
  client: number;
  /** Of the server. */
  server: number;
}

export type Parameters = Record<string, number | string>;

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

/** A program as it was guessed. */
export interface Program {
  /** Its name, or that of the language that it is written in. */
  name: string;
  /** What told: `first_bytes` of the connection (a header, a greeting), or the well-known `port`. */
  told_by: string;
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

/** A fix that is not offered. */
export interface Refuted {
  /** Id of the fix. */
  id: string;
  /** The rest of a sentence that begins with "because". */
  because: string;
}

export type Sentence = string;

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

export type SideName = 'client' | 'server' | 'network';

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
