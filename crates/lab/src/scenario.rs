//! An experiment as data: the link, the two hosts, the workload. Keys that are not known are refused, so that a
//! misspelt one cannot silently do nothing.

mod expect;
mod kinds;
mod parse;

pub use expect::{Control, Expect, Stated, Sweep};
pub use kinds::{Bind, Connects, Need, Programs};
pub(crate) use parse::put;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One experiment.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What the experiment shows.
    pub title: String,
    /// Article, issue or rule that it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Start value of every random choice.
    #[serde(default = "one")]
    pub seed: u64,
    /// After so many seconds the run is cut off.
    #[serde(default = "sixty")]
    pub limit_s: f64,
    /// `tcp_info` of every socket is read this often; 0: only at close.
    #[serde(default = "ten")]
    pub sample_ms: f64,
    /// The path.
    #[serde(default)]
    pub link: Link,
    /// The host that connects.
    #[serde(default)]
    pub client: Host,
    /// The host that listens.
    #[serde(default)]
    pub server: Host,
    /// What the applications do; not given where one of the next two is.
    #[serde(default)]
    pub workload: Workload,
    /// Instead: connections that are only made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connects: Option<Connects>,
    /// Instead: real programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub programs: Option<Programs>,
    /// What should be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
    /// The experiment is made once for each value of a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<Sweep>,
}

/// The path between the hosts. What stands here holds for both directions unless `up` or `down` says otherwise.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Link {
    /// Round trip time; each direction has half of it.
    pub rtt_ms: f64,
    /// Largest IP packet that the hosts send.
    pub mtu: u32,
    /// Rate in IP bytes; none: as fast as the machine can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_mbit: Option<f64>,
    /// What may wait for the rate; the rest is dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_bytes: Option<u64>,
    /// Segments of up to 64 KB pass whole, as between a host and a card that cuts them (TSO, GRO).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub offload: bool,
    /// Client to server.
    pub up: Direction,
    /// Server to client.
    pub down: Direction,
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
pub struct Direction {
    /// One-way delay, instead of half the round trip time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<f64>,
    /// Uniform addition to the delay that keeps the order.
    pub jitter_ms: f64,
    /// Instead of the link's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_mbit: Option<f64>,
    /// Instead of the link's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_bytes: Option<u64>,
    /// How many packets may wait for the rate, the one being sent included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_packets: Option<usize>,
    /// Added to each packet's size where the rate is reckoned (Ethernet: 38).
    pub overhead_bytes: u64,
    /// Probability that a packet is lost.
    pub loss: f64,
    /// Which packets `loss` takes.
    pub loss_of: LossOf,
    /// Packets that are lost by choice.
    pub drops: Vec<Chosen>,
    /// Packets that are overtaken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder: Option<Reorder>,
    /// Probability that a packet arrives twice.
    pub duplicate: f64,
    /// Packets larger than this vanish without ICMP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub black_hole_over: Option<u32>,
    /// Packets larger than this are lost, and their sender is told by ICMP "fragmentation needed" (RFC 1191).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_mtu: Option<u32>,
    /// Times in which nothing arrives; what would have, arrives at their end.
    pub pauses: Vec<Stretch>,
    /// Times in which everything is lost.
    pub cuts: Vec<Stretch>,
    /// Further nodes behind this one, in the order in which packets pass them. Each has its own delay (0 unless
    /// given), rate, queue and losses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<Direction>,
}

/// What random loss is applied to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LossOf {
    /// Every packet.
    #[default]
    All,
    /// Packets with payload.
    Data,
    /// Packets without payload, SYN and FIN excepted.
    Acks,
}

/// A choice of packets to lose, of the `connection`th connection (1-based, 1 unless given).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "lowercase", deny_unknown_fields)]
pub enum Chosen {
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
pub struct Reorder {
    /// Every so many.
    #[serde(default)]
    pub every: u32,
    /// Or the nth, 1-based.
    #[serde(default)]
    pub n: Vec<u32>,
    /// How long.
    pub hold_ms: f64,
}

/// A time, counted from the first packet on the link.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stretch {
    /// Its start.
    pub at_ms: f64,
    /// Its length.
    pub for_ms: f64,
}

/// One host: kernel, route and socket settings, and how its application reads and writes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Host {
    /// Congestion control, set by the route: a namespace may not choose every one by sysctl.
    pub congestion: String,
    /// Initial window in segments, set by the route.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initcwnd: Option<u32>,
    /// Initial receive window in segments, set by the route.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initrwnd: Option<u32>,
    /// Sysctls of the namespace, such as `"net.ipv4.tcp_slow_start_after_idle" = 0`.
    pub sysctl: BTreeMap<String, toml::Value>,
    /// `TCP_NODELAY`.
    pub nodelay: bool,
    /// `TCP_CORK`.
    pub cork: Cork,
    /// `MSG_MORE` on all writes of a message but the last.
    pub more: bool,
    /// `TCP_QUICKACK` after each read.
    pub quickack: bool,
    /// `SO_SNDBUF`, before the connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sndbuf: Option<i32>,
    /// `SO_RCVBUF`, before the connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rcvbuf: Option<i32>,
    /// `TCP_NOTSENT_LOWAT`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notsent_lowat: Option<i32>,
    /// Bytes that all sockets of this host's application may use together, by a control group; not with programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_memory: Option<u64>,
    /// Keep-alive: idle seconds, interval, probes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keepalive: Option<[i32; 3]>,
    /// Largest single write; none: a message's part in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_chunk: Option<usize>,
    /// Largest single read.
    pub read_chunk: usize,
    /// The application stops reading.
    pub read_pauses: Vec<ReadPause>,
    /// Writes by `epoll` on a socket that does not block, as event loops do.
    pub epoll: bool,
    /// The application follows the classic Nagle rule of RFC 896: it writes full segments as they come, and a
    /// partial one only when nothing is unacknowledged (Linux itself has Minshall's variant).
    pub classic_nagle: bool,
    /// Bytes a second that the application reads, at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_rate: Option<f64>,
    /// The application resets the connection when it has read so much of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset_after_bytes: Option<u64>,
    /// Server: of `listen`.
    pub backlog: i32,
    /// Server: wait before the first `accept`.
    pub accept_start_ms: f64,
    /// Server: wait before each `accept`.
    pub accept_delay_ms: f64,
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

/// When `TCP_CORK` is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cork {
    /// Not at all.
    #[default]
    Never,
    /// Around each message.
    Message,
    /// From the start, and never cleared.
    Always,
}

/// A stop of the reading application.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadPause {
    /// When it has read so much of the connection.
    pub at_bytes: u64,
    /// For how long.
    pub ms: f64,
}

/// What the applications do. A message is a list of writes in bytes; a number below 1 is a pause in seconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Workload {
    /// Clients at once, each with a connection of its own.
    pub connections: u32,
    /// Time between the starts of two of them.
    pub stagger_ms: f64,
    /// Requests of each client.
    pub requests: u32,
    /// The client's message. Empty: the server speaks first.
    pub request: Vec<f64>,
    /// The server's message. Empty: the transfer is one-way.
    pub response: Vec<f64>,
    /// Instead of `request` and `response`: those of the first request of a connection, of the second, and so on,
    /// then from the start again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<Turn>,
    /// The server's work between request and response.
    pub think_ms: f64,
    /// The client's work between response and next request.
    pub gap_ms: f64,
    /// A new connection for every so many requests; 0: one for all.
    pub reconnect_every: u32,
    /// The client writes all requests of a connection before it reads the first answer.
    pub pipeline: bool,
    /// The server closes first.
    pub server_closes: bool,
    /// The server reads requests and never answers.
    pub no_answer: bool,
    /// How long the client waits for an answer.
    pub patience_ms: f64,
}

/// One request and its answer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Turn {
    /// The client's message.
    pub request: Vec<f64>,
    /// The server's message.
    pub response: Vec<f64>,
    /// The server's further work in between.
    pub think_ms: f64,
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

impl Workload {
    /// Bytes of a message.
    pub fn bytes(message: &[f64]) -> u64 {
        message.iter().filter(|&&step| step >= 1.0).map(|&step| step as u64).sum()
    }

    /// What the nth request of a connection, from 0, and its answer consist of.
    pub(crate) fn turn(&self, n: u32) -> Turn {
        let plain = || Turn {
            request: self.request.clone(),
            response: self.response.clone(),
            think_ms: self.think_ms,
        };
        let repeats = self.turns.len().max(1);
        self.turns
            .get(n as usize % repeats)
            .map_or_else(plain, |turn| Turn { think_ms: self.think_ms + turn.think_ms, ..turn.clone() })
    }

    /// Bytes that one connection carries up and down.
    pub(crate) fn totals(&self) -> (u64, u64) {
        (0..self.requests_each()).map(|n| self.turn(n)).fold((0, 0), |(up, down), turn| {
            (up + Workload::bytes(&turn.request), down + Workload::bytes(&turn.response))
        })
    }

    /// Requests of one connection.
    pub fn requests_each(&self) -> u32 {
        if self.reconnect_every == 0 { self.requests } else { self.reconnect_every.min(self.requests) }
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
