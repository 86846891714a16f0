//! A scenario as it is written: the keys of the TOML file, in milliseconds and Mbit/s, with what stands once for both
//! directions. Keys that are not known are refused, so that a misspelt one cannot silently do nothing. Nothing runs on
//! this: [`super::meant`] makes of it what is meant.

use super::steps;
use super::{Connects, Expect, Programs, Sweep};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tcpwhy_base::{Cork, LossOf, Step};

/// One experiment: the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Written {
    /// What the experiment shows.
    pub(crate) title: String,
    /// Article, issue or rule that it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<String>,
    /// Start value of every random choice.
    #[serde(default = "one")]
    pub(crate) seed: u64,
    /// After so many seconds the run is cut off.
    #[serde(default = "sixty")]
    pub(crate) limit_s: f64,
    /// `tcp_info` of every socket is read this often; 0: only at close.
    #[serde(default = "ten")]
    pub(crate) sample_ms: f64,
    /// The path.
    #[serde(default)]
    pub(crate) link: Link,
    /// The host that connects.
    #[serde(default)]
    pub(crate) client: Host,
    /// The host that listens.
    #[serde(default)]
    pub(crate) server: Host,
    /// What the applications do; not given where one of the next two is.
    #[serde(default)]
    pub(crate) workload: Workload,
    /// Instead: connections that are only made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) connects: Option<Connects>,
    /// Instead: real programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) programs: Option<Programs>,
    /// What should be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expect: Option<Expect>,
    /// The experiment is made once for each value of a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sweep: Option<Sweep>,
}

/// The path between the hosts. What stands here holds for both directions unless `up` or `down` says otherwise.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Link {
    /// Round trip time; each direction has half of it.
    pub(crate) rtt_ms: f64,
    /// Largest IP packet that the hosts send.
    pub(crate) mtu: u32,
    /// Rate in IP bytes; none: as fast as the machine can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rate_mbit: Option<f64>,
    /// What may wait for the rate; the rest is dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) queue_bytes: Option<u64>,
    /// Segments of up to 64 KB pass whole, as between a host and a card that cuts them (TSO, GRO).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) offload: bool,
    /// Client to server.
    pub(crate) up: Direction,
    /// Server to client.
    pub(crate) down: Direction,
}

impl Default for Link {
    fn default() -> Link {
        Link {
            rtt_ms: 0.0,
            mtu: 1500,
            rate_mbit: None,
            queue_bytes: None,
            offload: false,
            up: Direction::default(),
            down: Direction::default(),
        }
    }
}

/// One direction of the path.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Direction {
    /// One-way delay, instead of half the round trip time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) delay_ms: Option<f64>,
    /// Uniform addition to the delay that keeps the order.
    pub(crate) jitter_ms: f64,
    /// Instead of the link's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rate_mbit: Option<f64>,
    /// Instead of the link's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) queue_bytes: Option<u64>,
    /// How many packets may wait for the rate, the one being sent included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) queue_packets: Option<usize>,
    /// Added to each packet's size where the rate is reckoned (Ethernet: 38).
    pub(crate) overhead_bytes: u64,
    /// Probability that a packet is lost.
    pub(crate) loss: f64,
    /// Which packets `loss` takes.
    #[serde(with = "LossOfWords")]
    pub(crate) loss_of: LossOf,
    /// Packets that are lost by choice.
    pub(crate) drops: Vec<Chosen>,
    /// Packets that are overtaken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reorder: Option<Reorder>,
    /// Probability that a packet arrives twice.
    pub(crate) duplicate: f64,
    /// Packets larger than this vanish without ICMP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) black_hole_over: Option<u32>,
    /// Packets larger than this are lost, and their sender is told by ICMP "fragmentation needed" (RFC 1191).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path_mtu: Option<u32>,
    /// Times in which nothing arrives; what would have, arrives at their end.
    pub(crate) pauses: Vec<Stretch>,
    /// Times in which everything is lost.
    pub(crate) cuts: Vec<Stretch>,
    /// Further nodes behind this one, in the order in which packets pass them. Each has its own delay (0 unless
    /// given), rate, queue and losses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) hops: Vec<Direction>,
}

/// The words for what random loss is applied to.
#[derive(Serialize, Deserialize)]
#[serde(remote = "LossOf", rename_all = "lowercase")]
enum LossOfWords {
    All,
    Data,
    Acks,
}

/// A choice of packets to lose, of the `connection`th connection (1-based, 1 unless given).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Chosen {
    /// The nth SYN, or SYN-ACK if the direction is `down`.
    Syn {
        /// 1-based.
        n: Vec<u32>,
        /// Which connection.
        #[serde(default = "first")]
        connection: u32,
    },
    /// The nth packet with payload, retransmissions counted.
    Data {
        /// 1-based.
        n: Vec<u32>,
        /// Which connection.
        #[serde(default = "first")]
        connection: u32,
    },
    /// The nth packet with neither payload nor SYN; of `up`, 1 is the third packet of the handshake.
    Ack {
        /// 1-based.
        n: Vec<u32>,
        /// Which connection.
        #[serde(default = "first")]
        connection: u32,
    },
    /// Packets that carry the payload byte `at`, counted from 0.
    Seq {
        /// Which byte.
        at: u64,
        /// How many of them: 2 loses the first retransmission too.
        #[serde(default = "first")]
        copies: u32,
        /// Which connection.
        #[serde(default = "first")]
        connection: u32,
    },
    /// Packets that carry the last byte of the connection, or one so many full segments before it.
    Last {
        /// 0 is the last segment, 1 the one before.
        #[serde(default)]
        back: u32,
        /// How many of them: 2 loses the first retransmission too.
        #[serde(default = "first")]
        copies: u32,
        /// Which connection.
        #[serde(default = "first")]
        connection: u32,
    },
}

/// Packets with payload that are held.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reorder {
    /// Every so many.
    #[serde(default)]
    pub(crate) every: u32,
    /// Or the nth, 1-based.
    #[serde(default)]
    pub(crate) n: Vec<u32>,
    /// How long.
    pub(crate) hold_ms: f64,
}

/// A time, counted from the first packet on the link.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stretch {
    /// Its start.
    pub(crate) at_ms: f64,
    /// Its length.
    pub(crate) for_ms: f64,
}

/// One host: kernel, route and socket settings, and how its application reads and writes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Host {
    /// Congestion control, set by the route: a namespace may not choose every one by sysctl.
    pub(crate) congestion: String,
    /// Initial window in segments, set by the route.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) initcwnd: Option<u32>,
    /// Initial receive window in segments, set by the route.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) initrwnd: Option<u32>,
    /// Sysctls of the namespace, such as `"net.ipv4.tcp_slow_start_after_idle" = 0`.
    pub(crate) sysctl: BTreeMap<String, toml::Value>,
    /// `TCP_NODELAY`.
    pub(crate) nodelay: bool,
    /// `TCP_CORK`.
    #[serde(with = "CorkWords")]
    pub(crate) cork: Cork,
    /// `MSG_MORE` on all writes of a message but the last.
    pub(crate) more: bool,
    /// `TCP_QUICKACK` after each read.
    pub(crate) quickack: bool,
    /// `SO_SNDBUF`, before the connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sndbuf: Option<u32>,
    /// `SO_RCVBUF`, before the connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rcvbuf: Option<u32>,
    /// `TCP_NOTSENT_LOWAT`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) notsent_lowat: Option<u32>,
    /// Bytes that all sockets of this host's application may use together, by a control group; not with programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tcp_memory: Option<u64>,
    /// Keep-alive: idle seconds, interval, probes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) keepalive: Option<[i32; 3]>,
    /// Largest single write; none: a message's part in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) write_chunk: Option<u64>,
    /// Largest single read.
    pub(crate) read_chunk: u64,
    /// The application stops reading.
    pub(crate) read_pauses: Vec<ReadPause>,
    /// Writes by `epoll` on a socket that does not block, as event loops do.
    pub(crate) epoll: bool,
    /// The application follows the classic Nagle rule of RFC 896: it writes full segments as they come, and a
    /// partial one only when nothing is unacknowledged (Linux itself has Minshall's variant).
    pub(crate) classic_nagle: bool,
    /// Bytes a second that the application reads, at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) read_rate: Option<f64>,
    /// The application resets the connection when it has read so much of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reset_after_bytes: Option<u64>,
    /// Server: of `listen`.
    pub(crate) backlog: u32,
    /// Server: wait before the first `accept`.
    pub(crate) accept_start_ms: f64,
    /// Server: wait before each `accept`.
    pub(crate) accept_delay_ms: f64,
}

impl Default for Host {
    fn default() -> Host {
        Host {
            congestion: "cubic".into(),
            initcwnd: None,
            initrwnd: None,
            sysctl: BTreeMap::new(),
            nodelay: false,
            cork: Cork::Never,
            more: false,
            quickack: false,
            sndbuf: None,
            rcvbuf: None,
            notsent_lowat: None,
            tcp_memory: None,
            keepalive: None,
            write_chunk: None,
            epoll: false,
            classic_nagle: false,
            read_chunk: 256 << 10,
            read_pauses: Vec::new(),
            read_rate: None,
            reset_after_bytes: None,
            backlog: 128,
            accept_start_ms: 0.0,
            accept_delay_ms: 0.0,
        }
    }
}

/// The words for when `TCP_CORK` is set.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Cork", rename_all = "lowercase")]
enum CorkWords {
    Never,
    Message,
    Always,
}

/// A stop of the reading application.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadPause {
    /// When it has read so much of the connection.
    pub(crate) at_bytes: u64,
    /// For how long.
    pub(crate) ms: f64,
}

/// What the applications do. A message is a list of writes in bytes and pauses, `{ pause_ms = 41 }`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Workload {
    /// Clients at once, each with a connection of its own.
    pub(crate) connections: u32,
    /// Time between the starts of two of them.
    pub(crate) stagger_ms: f64,
    /// Requests of each client.
    pub(crate) requests: u32,
    /// The client's message. Empty: the server speaks first.
    #[serde(with = "steps")]
    pub(crate) request: Vec<Step>,
    /// The server's message. Empty: the transfer is one-way.
    #[serde(with = "steps")]
    pub(crate) response: Vec<Step>,
    /// Instead of `request` and `response`: those of the first request of a connection, of the second, and so on,
    /// then from the start again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) turns: Vec<Turn>,
    /// The server's work between request and response.
    pub(crate) think_ms: f64,
    /// The client's work between response and next request.
    pub(crate) gap_ms: f64,
    /// A new connection for every so many requests; 0: one for all.
    pub(crate) reconnect_every: u32,
    /// The client writes all requests of a connection before it reads the first answer.
    pub(crate) pipeline: bool,
    /// The server closes first.
    pub(crate) server_closes: bool,
    /// The server reads requests and never answers.
    pub(crate) no_answer: bool,
    /// How long the client waits for an answer.
    pub(crate) patience_ms: f64,
}

/// One request and its answer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Turn {
    /// The client's message.
    #[serde(with = "steps")]
    pub(crate) request: Vec<Step>,
    /// The server's message.
    #[serde(with = "steps")]
    pub(crate) response: Vec<Step>,
    /// The server's further work in between.
    pub(crate) think_ms: f64,
}

impl Default for Workload {
    fn default() -> Workload {
        Workload {
            connections: 1,
            stagger_ms: 0.0,
            requests: 1,
            request: Vec::new(),
            response: Vec::new(),
            turns: Vec::new(),
            think_ms: 0.0,
            gap_ms: 0.0,
            reconnect_every: 0,
            pipeline: false,
            server_closes: false,
            no_answer: false,
            patience_ms: 1e6,
        }
    }
}

fn one() -> u64 {
    1
}

fn first() -> u32 {
    1
}

fn ten() -> f64 {
    10.0
}

fn sixty() -> f64 {
    60.0
}
