//! What a run is given: the path, the two hosts, the workload. Plain data; times in integer nanoseconds.

use crate::profile::{Congestion, Profile};
use std::fmt;
use tcpwhy_base::{Nanos, Step, Turn, Workload};

/// One experiment.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Client to server, and back.
    pub links: [Link; 2],
    /// Largest IP packet that the hosts send.
    pub mtu: u64,
    /// Client and server.
    pub hosts: [Host; 2],
    /// What the applications do.
    pub workload: Workload,
    /// Clients at once, each with a connection of its own.
    pub connections: u32,
    /// Time between the starts of two of them.
    pub stagger: Nanos,
    /// Of every random choice.
    pub seed: u64,
    /// Where the hosts' ticks fall, client and server: timers run up to a tick late, by this.
    pub phase: [Nanos; 2],
    /// Virtual time after which the run is cut off.
    pub limit: Nanos,
    /// Events after which it is cut off.
    pub max_events: u64,
}

impl Default for Scenario {
    fn default() -> Scenario {
        Scenario {
            links: [Link::default(), Link::default()],
            mtu: 1500,
            hosts: [Host::default(), Host::default()],
            workload: Workload::default(),
            connections: 1,
            stagger: Nanos::ZERO,
            seed: 1,
            // Half a tick of a 250 Hz host: timers run as late as they do on average.
            phase: [Nanos::millis(2), Nanos::millis(2)],
            limit: Nanos::secs(3600),
            // Enough for the largest message; what is kept of a run grows with it, about 0.1 KB each.
            max_events: 4_000_000,
        }
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
    /// Times (start, length) in which nothing arrives.
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
    /// Pure acknowledgements.
    Acks,
}

/// Packets to lose; numbers from 1, of the given connection from 0.
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
    /// The nth packet with neither payload nor SYN.
    Ack(u64),
    /// So many packets that carry the payload byte `at`, from 0.
    Seq {
        /// Which byte.
        at: u64,
        /// How many packets.
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

/// One host: its stack, its socket options, how its application writes and reads.
#[derive(Clone, Debug)]
pub struct Host {
    /// The stack.
    pub profile: Profile,
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
    /// Initial window, instead of the profile's.
    pub initcwnd: Option<u32>,
    /// `tcp_slow_start_after_idle`, instead of the profile's.
    pub idle_restart: Option<bool>,
    /// Congestion control, instead of the profile's.
    pub congestion: Option<Congestion>,
    /// `tcp_mtu_probing` = 1.
    pub mtu_probing: bool,
    /// Largest single write; none: as the workload says.
    pub write_chunk: Option<u64>,
    /// Largest single read.
    pub read_chunk: u64,
    /// The application stops reading when it has read so much, for so long.
    pub read_pauses: Vec<(u64, Nanos)>,
    /// Bytes a second that the application reads, at most.
    pub read_rate: Option<u64>,
    /// From the moment that a socket is ready until its application runs.
    pub wake: Nanos,
    /// Bytes a second that a `write` copies: what a writer leaves its peer time for.
    pub copy_rate: u64,
    /// Server: of `listen`.
    pub backlog: u32,
    /// Server: when it first accepts.
    pub accept_start: Nanos,
    /// Server: its work before each `accept`.
    pub accept_delay: Nanos,
}

impl Default for Host {
    fn default() -> Host {
        Host {
            profile: Profile::default(),
            nodelay: false,
            cork: Cork::Never,
            more: false,
            quickack: false,
            sndbuf: None,
            rcvbuf: None,
            notsent_lowat: None,
            initcwnd: None,
            idle_restart: None,
            congestion: None,
            mtu_probing: false,
            write_chunk: None,
            read_chunk: 256 << 10,
            read_pauses: Vec::new(),
            read_rate: None,
            // A wake-up on an idle machine takes some tens of microseconds, a copy some tenths of a nanosecond a byte
            // (measured beside the captures of the lab: 65,448 bytes in 40 to 50 µs).
            wake: Nanos::micros(50),
            copy_rate: 1_500_000_000,
            backlog: 4096,
            accept_start: Nanos::ZERO,
            accept_delay: Nanos::ZERO,
        }
    }
}

/// A scenario that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impossible(pub String);

impl fmt::Display for Impossible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Impossible {}

/// Largest message: what a run can move within its event limit.
pub const MOST_BYTES: u64 = 1 << 30;

impl Scenario {
    /// A symmetric path.
    pub fn with_path(rtt: Nanos, rate: Option<u64>, queue: Option<u64>, mtu: u64) -> Scenario {
        let link = Link { delay: rtt.part(2), rate, queue_bytes: queue, ..Link::default() };
        Scenario { links: [link.clone(), link], mtu, ..Scenario::default() }
    }

    /// Refuses what cannot be, with the reason.
    pub fn check(&self) -> Result<(), Impossible> {
        let no = |why: String| Err(Impossible(why));
        // 68: IPv4's least (RFC 791). 40 bytes of headers and 12 of timestamps leave 16.
        if !(68..=65_535).contains(&self.mtu) {
            return no(format!("an MTU of {}: IPv4 allows 68 to 65535", self.mtu));
        }
        for link in &self.links {
            if link.delay < Nanos::ZERO || link.jitter < Nanos::ZERO {
                return no("a delay below zero".into());
            }
            if link.rate == Some(0) {
                return no("a rate of 0: nothing would ever arrive".into());
            }
            if link.queue_bytes.is_some_and(|q| q < self.mtu) || link.queue_packets == Some(0) {
                return no(format!(
                    "a queue that does not hold one packet of {} bytes: nothing of full size would pass",
                    self.mtu
                ));
            }
            if link.black_hole_over.is_some_and(|n| n < 68) {
                return no("a path that no packet passes".into());
            }
        }
        for host in &self.hosts {
            if host.sndbuf == Some(0) || host.rcvbuf == Some(0) {
                return no("a buffer of 0: nothing could be sent; leave it out for an automatic one".into());
            }
            if host.initcwnd == Some(0) {
                return no("an initial window of 0: nothing could be sent".into());
            }
            if host.read_chunk == 0 || host.write_chunk == Some(0) || host.read_rate == Some(0) {
                return no("an application that reads or writes 0 bytes at a time".into());
            }
        }
        self.check_workload()
    }

    fn check_workload(&self) -> Result<(), Impossible> {
        let no = |why: &str| Err(Impossible(why.into()));
        let w = &self.workload;
        if w.turns.is_empty() || w.requests == 0 || self.connections == 0 {
            return no("no request at all");
        }
        for turn in &w.turns {
            let steps = || turn.request.iter().chain(&turn.response);
            let waits = steps().filter_map(|s| if let Step::Pause(t) = s { Some(*t) } else { None });
            if waits.chain([turn.before, turn.think]).any(|t| t < Nanos::ZERO) {
                return no("a time below zero");
            }
            let (up, down) = (Turn::bytes(&turn.request), Turn::bytes(&turn.response));
            if up == 0 && down == 0 {
                return no("a request and a response of 0 bytes: nothing would be sent");
            }
            if up > MOST_BYTES || down > MOST_BYTES {
                return Err(Impossible(format!(
                    "{} bytes in one message: the model takes up to {MOST_BYTES}",
                    up.max(down)
                )));
            }
        }
        if self.limit <= Nanos::ZERO {
            return no("no time at all");
        }
        Ok(())
    }

    /// Base round trip of a small packet.
    pub fn rtt(&self) -> Nanos {
        self.links[0].delay + self.links[1].delay
    }
}
