use crate::{Endpoint, Nanos, Segment, Seq};

/// Who says what a stretch of time was spent on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// It was inferred from packets.
    #[default]
    Inferred,
    /// A kernel that was watched said so.
    Kernel,
}

impl Source {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Source::Inferred => "inferred",
            Source::Kernel => "kernel",
        }
    }
}

/// Something that was seen of a connection: all that an analysis takes. Borrowed, for a segment is 200 bytes.
#[derive(Clone, Copy, Debug)]
pub enum Observation<'a> {
    /// A packet passed a tap.
    Segment(&'a Segment),
    /// A packet of a connection passed a second tap, beside its server; on the clock of the first.
    Elsewhere(&'a Segment),
    /// A kernel did something to a socket.
    Socket(&'a SocketEvent),
    /// The kernel beside that second tap did.
    SocketElsewhere(&'a SocketEvent),
    /// A router said that a segment was too large.
    TooBig(&'a TooBig),
    /// A capture has ended.
    Watched(&'a Watched),
}

impl Observation<'_> {
    /// When it was seen.
    pub const fn time(&self) -> Nanos {
        match self {
            Observation::Segment(segment) | Observation::Elsewhere(segment) => segment.time,
            Observation::Socket(event) | Observation::SocketElsewhere(event) => event.time,
            Observation::TooBig(told) => told.time,
            Observation::Watched(watched) => watched.to,
        }
    }

    /// Who saw it.
    pub const fn source(&self) -> Source {
        match self {
            Observation::Socket(_) | Observation::SocketElsewhere(_) => Source::Kernel,
            _ => Source::Inferred,
        }
    }
}

/// A router says that a segment was too large for the rest of its way: ICMP "fragmentation needed" (RFC
/// 1191), ICMPv6 "packet too big" (RFC 4443, 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooBig {
    /// When that passed the tap.
    pub time: Nanos,
    /// 1-based number of its frame in its file.
    pub frame: u64,
    /// Who had sent the segment.
    pub src: Endpoint,
    /// To whom.
    pub dst: Endpoint,
    /// As [`Segment::link`].
    pub link: u32,
    /// Its sequence number.
    pub seq: Seq,
    /// The largest packet that goes on; zero where the router does not say.
    pub mtu: u32,
}

/// From when to when a tap was watched: what passed there meanwhile is known, of whatever connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watched {
    /// Index of the capture, as [`Segment::file`].
    pub file: u16,
    /// Its connections are none of other captures: it is no continuation of those before it.
    pub apart: bool,
    /// Its first packet, of whatever protocol, behind the last hour in which none passed.
    pub from: Nanos,
    /// Its last one.
    pub to: Nanos,
}

/// What a kernel did to a socket of a connection, on the clock of the capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketEvent {
    /// When.
    pub time: Nanos,
    /// The end that the socket belongs to.
    pub local: Endpoint,
    /// The other end.
    pub remote: Endpoint,
    /// What.
    pub change: SocketChange,
}

/// A change of a socket that decides when data leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketChange {
    /// The application writes (`tcp_sendmsg` is entered): its first byte will have this sequence number.
    Write {
        /// The next sequence number to be written (`write_seq`).
        from: Seq,
        /// How many bytes.
        bytes: u32,
        /// Up to which number of the other end the writer had read by then (`copied_seq`), where that is
        /// known: whether it asks for something else, or goes on before it has seen all of an answer.
        read: Option<Seq>,
    },
    /// A writer goes on that had waited for room in the send buffer (`sk_stream_wait_memory` returns).
    Room {
        /// When it had begun to wait.
        since: Nanos,
    },
    /// Nagle's algorithm is on or off from now on (`TCP_NODELAY`).
    NoDelay(bool),
    /// Partial segments are held back or not from now on (`TCP_CORK`, `MSG_MORE`).
    Cork(bool),
    /// The application reads what had lain there.
    Read {
        /// Since when data was there that it did not read.
        since: Nanos,
        /// It has read up to this number of the other end (`copied_seq`).
        upto: Seq,
        /// Bytes that are left to be read.
        left: u32,
    },
    /// The connection opens or ends, or has been open before; what its socket is set up with.
    State(SocketState),
    /// A timer fires, and what it sends follows.
    Timer(Timer),
    /// The congestion window, bytes.
    Cwnd(u32),
    /// What holds back unsent bytes is another thing than before, as the next ACK comes in.
    Held(Held),
}

/// What holds back bytes that an application has written, in the order in which `tcp_write_xmit` asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// There are none.
    Nothing,
    /// The congestion window.
    CongestionWindow {
        /// It is below the slow start threshold (RFC 5681, 3.1).
        slow_start: bool,
    },
    /// The window of the other end.
    Window,
    /// Neither: pacing, queues below TCP, Nagle's algorithm.
    Other,
}

impl Held {
    /// By which number it is kept; with it, whether in slow start.
    pub const fn number(self) -> (u32, bool) {
        match self {
            Held::Nothing => (1, false),
            Held::CongestionWindow { slow_start } => (2, slow_start),
            Held::Window => (3, false),
            Held::Other => (4, false),
        }
    }

    /// The one that is kept so; `None` if there is none.
    pub const fn from_number(number: u32, slow_start: bool) -> Option<Held> {
        match number {
            1 => Some(Held::Nothing),
            2 => Some(Held::CongestionWindow { slow_start }),
            3 => Some(Held::Window),
            4 => Some(Held::Other),
            _ => None,
        }
    }
}

/// How a socket is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketState {
    /// It is open; else it has ended.
    pub open: bool,
    /// Scales of the window that the other end offers, and of the own one; `None` without window scaling.
    pub scales: Option<[u8; 2]>,
    /// `SO_SNDBUF` and `SO_RCVBUF`, and whether the application has set them.
    pub buffers: [u32; 2],
    /// See there.
    pub set: [bool; 2],
    /// Late reads of this socket are told ([`SocketChange::Read`]): where none is, it reads at once.
    pub reads: bool,
}

/// A timer of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// The retransmission timeout (RFC 6298).
    Retransmission,
    /// The tail loss probe (RFC 8985, 7).
    Probe,
    /// That of a delayed ACK (RFC 9293, 3.8.6.3).
    DelayedAck,
}

/// What a kernel knows about the release of one segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Witness {
    /// When the application wrote its last byte.
    pub written: Option<Nanos>,
    /// When its writer last waited for room in the send buffer: from, to.
    pub room: Option<(Nanos, Nanos)>,
    /// Nagle's algorithm is off.
    pub nodelay: Option<bool>,
    /// Partial segments are held back.
    pub corked: Option<bool>,
    /// The last timer that fired to send data again, and when.
    pub timer: Option<(Timer, Nanos)>,
    /// The congestion window, bytes.
    pub cwnd: Option<u32>,
}
