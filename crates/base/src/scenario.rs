//! An experiment: the path, the two hosts, the workload. The model runs it in virtual time, the lab over a real kernel;
//! what only one of them knows of a host stands in [`Host::stack`].

use crate::{Nanos, Workload};

/// One experiment. `S` is what is known of a host's stack beyond its sockets.
#[derive(Clone, Debug)]
pub struct Scenario<S> {
    /// Client to server, and back.
    pub links: [Link; 2],
    /// Largest IP packet that the hosts send.
    pub mtu: u64,
    /// Client and server.
    pub hosts: [Host<S>; 2],
    /// What the applications do.
    pub workload: Workload,
    /// Clients at once, each with a connection of its own.
    pub connections: u32,
    /// Time between the starts of two of them.
    pub stagger: Nanos,
    /// Of every random choice.
    pub seed: u64,
    /// Time after which the run is cut off.
    pub limit: Nanos,
}

impl<S: Default> Default for Scenario<S> {
    fn default() -> Scenario<S> {
        Scenario {
            links: [Link::default(), Link::default()],
            mtu: 1500,
            hosts: [Host::default(), Host::default()],
            workload: Workload::default(),
            connections: 1,
            stagger: Nanos::ZERO,
            seed: 1,
            limit: Nanos::secs(3600),
        }
    }
}

impl<S: Default> Scenario<S> {
    /// A symmetric path.
    pub fn with_path(rtt: Nanos, rate: Option<u64>, queue: Option<u64>, mtu: u64) -> Scenario<S> {
        let link = Link { delay: rtt.part(2), rate, queue_bytes: queue, ..Link::default() };
        Scenario { links: [link.clone(), link], mtu, ..Scenario::default() }
    }
}

impl<S> Scenario<S> {
    /// Base round trip of a small packet.
    pub fn rtt(&self) -> Nanos {
        self.links[0].delay + self.links[1].delay
    }
}

/// One direction of the path: a rate with a queue before it, then a delay.
#[derive(Clone, Debug, Default)]
pub struct Link {
    /// One way.
    pub delay: Nanos,
    /// Bits a second of IP packets; none: no bottleneck.
    pub rate: Option<u64>,
    /// Bytes that may wait, the packet being sent included; the rest is dropped.
    pub queue_bytes: Option<u64>,
    /// Packets that may wait, the one being sent included.
    pub queue_packets: Option<usize>,
    /// Added to each packet's size where the rate is reckoned (Ethernet: 38).
    pub overhead: u64,
    /// Probability of a loss in parts per million.
    pub loss_ppm: u32,
    /// Which packets that takes.
    pub loss_of: LossOf,
    /// Packets lost by choice.
    pub drops: Vec<Chosen>,
    /// Packets with payload that are overtaken.
    pub reorder: Option<Reorder>,
    /// Probability that a packet arrives twice, in parts per million.
    pub duplicate_ppm: u32,
    /// Uniform addition to the delay that keeps the order.
    pub jitter: Nanos,
    /// Packets larger than this vanish without ICMP.
    pub black_hole_over: Option<u64>,
    /// Times (start, length) in which nothing arrives; what would have, arrives at their end. From the first packet.
    pub pauses: Vec<(Nanos, Nanos)>,
    /// Times in which everything is lost.
    pub cuts: Vec<(Nanos, Nanos)>,
}

/// What random loss is applied to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossOf {
    /// Every packet.
    #[default]
    All,
    /// Packets with payload.
    Data,
    /// Pure acknowledgements: packets without payload, SYN and FIN excepted.
    Acks,
}

/// Packets to lose; numbers from 1, of the given connection from 0. Retransmissions are counted too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Which.
    pub what: What,
    /// Of which connection.
    pub connection: u32,
}

/// How a packet is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The nth SYN or SYN-ACK.
    Syn(u64),
    /// The nth packet with payload.
    Data(u64),
    /// The nth packet with neither payload nor SYN; from the client, 1 is the third packet of the handshake.
    Ack(u64),
    /// So many packets that carry the payload byte `at`, from 0.
    Seq {
        /// Which byte.
        at: u64,
        /// How many packets: 2 loses the first retransmission too.
        copies: u32,
    },
    /// So many packets that carry the last byte, or one so many full segments before.
    Last {
        /// Segments before the last.
        back: u64,
        /// How many packets.
        copies: u32,
    },
}

/// Packets with payload that are held on the link.
#[derive(Clone, Debug, Default)]
pub struct Reorder {
    /// Every so many; 0: none.
    pub every: u64,
    /// And the nth.
    pub nth: Vec<u64>,
    /// How long.
    pub hold: Nanos,
}

/// When TCP_CORK is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cork {
    /// Not at all.
    #[default]
    Never,
    /// Around each message.
    Message,
    /// From the start, and never cleared.
    Always,
}

/// One host: the options of its sockets, how its application writes, reads and accepts, and its stack.
#[derive(Clone, Debug)]
pub struct Host<S> {
    /// TCP_NODELAY.
    pub nodelay: bool,
    /// TCP_CORK.
    pub cork: Cork,
    /// MSG_MORE on all writes of a message but the last.
    pub more: bool,
    /// TCP_QUICKACK after each read (or the route option `quickack`).
    pub quickack: bool,
    /// SO_SNDBUF, as asked for.
    pub sndbuf: Option<u64>,
    /// SO_RCVBUF, as asked for.
    pub rcvbuf: Option<u64>,
    /// TCP_NOTSENT_LOWAT.
    pub notsent_lowat: Option<u64>,
    /// Initial window in segments, instead of the stack's.
    pub initcwnd: Option<u32>,
    /// Largest single write; none: as the workload says.
    pub write_chunk: Option<u64>,
    /// Largest single read.
    pub read_chunk: u64,
    /// The application stops reading when it has read so much of the connection, for so long.
    pub read_pauses: Vec<(u64, Nanos)>,
    /// Bytes a second that the application reads, at most.
    pub read_rate: Option<u64>,
    /// Server: of `listen`.
    pub backlog: u32,
    /// Server: when it first accepts.
    pub accept_start: Nanos,
    /// Server: its work before each `accept`.
    pub accept_delay: Nanos,
    /// What the model or the lab knows of the stack.
    pub stack: S,
}

impl<S: Default> Default for Host<S> {
    fn default() -> Host<S> {
        Host {
            nodelay: false,
            cork: Cork::Never,
            more: false,
            quickack: false,
            sndbuf: None,
            rcvbuf: None,
            notsent_lowat: None,
            initcwnd: None,
            write_chunk: None,
            read_chunk: 256 << 10,
            read_pauses: Vec::new(),
            read_rate: None,
            backlog: 4096,
            accept_start: Nanos::ZERO,
            accept_delay: Nanos::ZERO,
            stack: S::default(),
        }
    }
}

impl<S> Host<S> {
    /// The same host with another stack.
    pub fn with_stack<T>(&self, stack: T) -> Host<T> {
        Host {
            nodelay: self.nodelay,
            cork: self.cork,
            more: self.more,
            quickack: self.quickack,
            sndbuf: self.sndbuf,
            rcvbuf: self.rcvbuf,
            notsent_lowat: self.notsent_lowat,
            initcwnd: self.initcwnd,
            write_chunk: self.write_chunk,
            read_chunk: self.read_chunk,
            read_pauses: self.read_pauses.clone(),
            read_rate: self.read_rate,
            backlog: self.backlog,
            accept_start: self.accept_start,
            accept_delay: self.accept_delay,
            stack,
        }
    }
}
