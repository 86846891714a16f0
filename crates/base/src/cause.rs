use crate::FixId;

/// Whose time it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// The price of this path and these sizes.
    Inherent,
    /// The application's own time.
    Application,
    /// TCP or the host: can be avoided.
    Tcp,
    /// Not known.
    Unknown,
}

impl Class {
    /// The letter used in JSON.
    pub const fn letter(self) -> &'static str {
        match self {
            Class::Inherent => "I",
            Class::Application => "A",
            Class::Tcp => "T",
            Class::Unknown => "U",
        }
    }
}

/// Whether a cause labels a stretch of time, or is only said of a whole connection or capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Labels spans.
    Span,
    /// A finding with a cost computed from spans of other causes.
    Finding,
}

/// One row of the cause table.
#[derive(Clone, Copy, Debug)]
pub struct CauseInfo {
    /// The cause.
    pub cause: Cause,
    /// Stable id, in JSON and on the command line.
    pub id: &'static str,
    /// Whose time it is.
    pub class: Class,
    /// Span or finding.
    pub kind: Kind,
    /// A capture cannot show it: only a live host can.
    pub live_only: bool,
    /// A few words for a heading.
    pub title: &'static str,
    /// What happened in that time: one clause.
    pub what: &'static str,
    /// What a person can do, the best first.
    pub fixes: &'static [FixId],
}

/// Why a stretch of time passed. The order is that of the table [`CAUSES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[expect(missing_docs, reason = "the table says what each one means")]
pub enum Cause {
    Handshake,
    TlsHandshake,
    SynRetransmit,
    AcceptQueueFull,
    SynQueueFull,
    Refused,
    PortExhaustion,
    ClientThink,
    ServerThink,
    SenderPause,
    SlowReader,
    ApplicationWindow,
    MutualBlock,
    NagleDelayedAck,
    Nagle,
    DelayedAck,
    Cork,
    SillyWindow,
    SendBuffer,
    ReceiveWindow,
    MemoryPressure,
    SlowStart,
    IdleRestart,
    CongestionWindow,
    Pacing,
    HostDelay,
    FastRecovery,
    RetransmissionTimeout,
    TailLossProbe,
    SpuriousRecovery,
    PathMtu,
    Bandwidth,
    Queueing,
    PathDelay,
    KeepaliveOrDeadPeer,
    Unexplained,
    Chatty,
    ShortConnections,
    ExplicitBuffer,
    NoWindowScaling,
    SmallMss,
}

impl Cause {
    /// How many causes there are.
    pub const COUNT: usize = CAUSES.len();

    /// Its row of the table.
    pub const fn info(self) -> &'static CauseInfo {
        &CAUSES[self as usize]
    }

    /// Its stable id.
    pub const fn id(self) -> &'static str {
        self.info().id
    }

    /// Its class.
    pub const fn class(self) -> Class {
        self.info().class
    }

    /// The cause with this id.
    pub fn from_id(id: &str) -> Option<Cause> {
        CAUSES.iter().find(|c| c.id == id).map(|c| c.cause)
    }
}

/// The one table of causes: terminal, JSON schema, documentation and tests walk it.
pub const CAUSES: &[CauseInfo] = &[
    CauseInfo {
        cause: Cause::Handshake,
        id: "handshake",
        class: Class::Inherent,
        kind: Kind::Span,
        live_only: false,
        title: "Opening the connection",
        what: "one round trip to set up the connection",
        fixes: &[FixId::ReuseConnections, FixId::FastOpen, FixId::CloserServer],
    },
    CauseInfo {
        cause: Cause::TlsHandshake,
        id: "tls_handshake",
        class: Class::Inherent,
        kind: Kind::Span,
        live_only: false,
        title: "TLS handshake",
        what: "TLS round trips before application data",
        fixes: &[FixId::Tls13, FixId::TlsResumption, FixId::ReuseConnections],
    },
    CauseInfo {
        cause: Cause::SynRetransmit,
        id: "syn_retransmit",
        class: Class::Tcp,
        kind: Kind::Span,
        live_only: false,
        title: "SYN or SYN-ACK repeated",
        what: "a SYN or SYN-ACK stayed unanswered until its timer",
        fixes: &[FixId::ListenBacklog, FixId::Firewall, FixId::ReuseConnections],
    },
    CauseInfo {
        cause: Cause::AcceptQueueFull,
        id: "accept_queue_full",
        class: Class::Tcp,
        kind: Kind::Span,
        live_only: false,
        title: "The listener's accept queue was full",
        what: "the listener's accept queue was full, so a SYN or the final ACK was dropped",
        fixes: &[FixId::ListenBacklog, FixId::AcceptFaster],
    },
    CauseInfo {
        cause: Cause::SynQueueFull,
        id: "syn_queue_full",
        class: Class::Tcp,
        kind: Kind::Span,
        live_only: false,
        title: "The listener's SYN queue was full",
        what: "the request queue was full and cookies were off",
        fixes: &[FixId::ListenBacklog, FixId::SynCookies],
    },
    CauseInfo {
        cause: Cause::Refused,
        id: "refused",
        class: Class::Tcp,
        kind: Kind::Span,
        live_only: false,
        title: "The connection was refused",
        what: "a reset answered the SYN",
        fixes: &[FixId::StartListener],
    },
    CauseInfo {
        cause: Cause::PortExhaustion,
        id: "port_exhaustion",
        class: Class::Tcp,
        kind: Kind::Span,
        live_only: true,
        title: "No local port left",
        what: "connect() searched for, or ran out of, local ports",
        fixes: &[FixId::PortRange, FixId::ReuseConnections, FixId::TwReuse],
    },
    CauseInfo {
        cause: Cause::ClientThink,
        id: "client_think",
        class: Class::Application,
        kind: Kind::Span,
        live_only: false,
        title: "The client application paused",
        what: "the client application had not written yet",
        fixes: &[FixId::Application],
    },
    CauseInfo {
        cause: Cause::ServerThink,
        id: "server_think",
        class: Class::Application,
        kind: Kind::Span,
        live_only: false,
        title: "The server application worked",
        what: "the request was complete and the server application had not answered yet",
        fixes: &[FixId::Application],
    },
    CauseInfo {
        cause: Cause::SenderPause,
        id: "sender_pause",
        class: Class::Application,
        kind: Kind::Span,
        live_only: false,
        title: "The sending application paused mid-message",
        what: "in the middle of a message the sending application had not written more",
        fixes: &[FixId::LargerWrites],
    },
    CauseInfo {
        cause: Cause::SlowReader,
        id: "slow_reader",
        class: Class::Tcp,
        kind: Kind::Span,
        live_only: false,
        title: "The receiving application did not read",
        what: "the receiving application did not read, so the window closed",
        fixes: &[FixId::ReadFaster],
    },
    CauseInfo {
        cause: Cause::ApplicationWindow,
        id: "application_window",
        class: Class::Tcp,
        kind: Kind::Span,
        live_only: false,
        title: "A window above TCP was full",
        what: "a flow-control window above TCP (HTTP/2, SSH) was full",
        fixes: &[FixId::ApplicationWindow],
    },
    CauseInfo {
        cause: Cause::MutualBlock,
        id: "mutual_block",
        class: Class::Tcp,
        kind: Kind::Span,
        live_only: false,
        title: "Both ends blocked in write",
        what: "both ends were blocked in write with both windows closed",
        fixes: &[FixId::ReadWhileWriting],
    },
    CauseInfo {
        cause: Cause::NagleDelayedAck,
        id: "nagle_delayed_ack",
        class: Class::Tcp,
        kind: Kind::Span,
        live_only: false,
        title: "Nagle held a small write until the peer's delayed ACK",
        what: "Nagle's algorithm held a small segment and the peer delayed the ACK it waited for",
        fixes: &[FixId::OneWrite, FixId::Nodelay, FixId::CorkWhole],
    },
    CauseInfo {
        cause: Cause::Nagle,
        id: "nagle",
        class: Class::Tcp,
        kind: Kind::Span,
        live_only: false,
        title: "Nagle held a small write for a round trip",
        what: "Nagle's algorithm held a small segment for a round trip; the ACK was prompt",
        fixes: &[FixId::OneWrite, FixId::Nodelay, FixId::CorkWhole],
    },
    CauseInfo {
        cause: Cause::DelayedAck,
        id: "delayed_ack",
        class: Class::Tcp,
        kind: Kind::Span,
        live_only: false,
        title: "Waiting for a delayed ACK",
        what: "the sender could send nothing more and the ACK was delayed",
        fixes: &[FixId::Quickack, FixId::BiggerWindow],
    },
    CauseInfo {
        cause: Cause::Cork,
        id: "cork",
        class: Class::Tcp,
        kind: Kind::Span,
        live_only: false,
        title: "A corked segment waited for its timer",
        what: "a corked partial segment was released by the timer",
        fixes: &[FixId::Uncork],
    },
    CauseInfo {
        cause: Cause::SillyWindow,
        id: "silly_window",
        class: Class::Tcp,
        kind: Kind::Span,
        live_only: false,
        title: "Silly-window avoidance",
        what: "sender or receiver avoided a small segment: the buffer or window is below one MSS",
        fixes: &[FixId::UnsetRcvbuf, FixId::SmallerMtu],
    },
    CauseInfo {
        cause: Cause::SendBuffer,
        id: "send_buffer",
        class: Class::Tcp,
        kind: Kind::Span,
        live_only: false,
        title: "The send buffer was full",
        what: "the send buffer was full of unacknowledged data while the windows had room",
        fixes: &[FixId::UnsetSndbuf, FixId::Wmem],
    },
    CauseInfo {
        cause: Cause::ReceiveWindow,
        id: "receive_window",
        class: Class::Tcp,
        kind: Kind::Span,
        live_only: false,
        title: "The receive window was the limit",
        what: "the advertised window was the limit",
        fixes: &[FixId::UnsetRcvbuf, FixId::Rmem],
    },
    CauseInfo {
        cause: Cause::MemoryPressure,
        id: "memory_pressure",
        class: Class::Tcp,
        kind: Kind::Span,
        live_only: true,
        title: "TCP memory pressure",
        what: "the tcp_mem or cgroup limit, a collapse or prune, or a backlog drop",
        fixes: &[FixId::MemoryLimit],
    },
    CauseInfo {
        cause: Cause::SlowStart,
        id: "slow_start",
        class: Class::Tcp,
        kind: Kind::Span,
        live_only: false,
        title: "Slow start",
        what: "the congestion window was still growing from its initial value",
        fixes: &[FixId::ReuseConnections, FixId::Initcwnd, FixId::SmallerResponse, FixId::LargerMtu],
    },
    CauseInfo {
        cause: Cause::IdleRestart,
        id: "idle_restart",
        class: Class::Tcp,
        kind: Kind::Span,
        live_only: false,
        title: "Slow start again after idle",
        what: "the congestion window was cut after an idle time",
        fixes: &[FixId::NoIdleRestart],
    },
    CauseInfo {
        cause: Cause::CongestionWindow,
        id: "congestion_window",
        class: Class::Tcp,
        kind: Kind::Span,
        live_only: false,
        title: "The congestion window was the limit",
        what: "the congestion window, cut by loss, ECN, HyStart or cached metrics, was the limit",
        fixes: &[FixId::FixLoss, FixId::CongestionControl],
    },
    CauseInfo {
        cause: Cause::Pacing,
        id: "pacing",
        class: Class::Tcp,
        kind: Kind::Span,
        live_only: false,
        title: "Pacing",
        what: "the sender paced its segments below what the windows allow",
        fixes: &[FixId::CongestionControl],
    },
    CauseInfo {
        cause: Cause::HostDelay,
        id: "host_delay",
        class: Class::Tcp,
        kind: Kind::Span,
        live_only: true,
        title: "Delay inside a host",
        what: "scheduler, softirq, queueing discipline or network card delayed a segment inside a host",
        fixes: &[FixId::HostLoad],
    },
    CauseInfo {
        cause: Cause::FastRecovery,
        id: "fast_recovery",
        class: Class::Tcp,
        kind: Kind::Span,
        live_only: false,
        title: "Fast recovery",
        what: "a loss was repaired without a timeout",
        fixes: &[FixId::FixLoss],
    },
    CauseInfo {
        cause: Cause::RetransmissionTimeout,
        id: "retransmission_timeout",
        class: Class::Tcp,
        kind: Kind::Span,
        live_only: false,
        title: "Retransmission timeout",
        what: "the sender waited for its retransmission timer",
        fixes: &[FixId::FixLoss, FixId::RtoMin, FixId::ThinStreams],
    },
    CauseInfo {
        cause: Cause::TailLossProbe,
        id: "tail_loss_probe",
        class: Class::Tcp,
        kind: Kind::Span,
        live_only: false,
        title: "Tail loss probe",
        what: "the sender waited for its tail loss probe",
        fixes: &[FixId::FixLoss],
    },
    CauseInfo {
        cause: Cause::SpuriousRecovery,
        id: "spurious_recovery",
        class: Class::Tcp,
        kind: Kind::Span,
        live_only: false,
        title: "Needless recovery",
        what: "a recovery that was not needed, because of reordering or late ACKs",
        fixes: &[FixId::FixReordering],
    },
    CauseInfo {
        cause: Cause::PathMtu,
        id: "path_mtu",
        class: Class::Tcp,
        kind: Kind::Span,
        live_only: false,
        title: "Full-size segments vanish",
        what: "full-size segments vanish while small ones pass",
        fixes: &[FixId::ClampMss, FixId::MtuProbing],
    },
    CauseInfo {
        cause: Cause::Bandwidth,
        id: "bandwidth",
        class: Class::Inherent,
        kind: Kind::Span,
        live_only: false,
        title: "The link was busy with these bytes",
        what: "the bottleneck was busy with this connection's own bytes",
        fixes: &[FixId::FasterLink, FixId::SmallerResponse],
    },
    CauseInfo {
        cause: Cause::Queueing,
        id: "queueing",
        class: Class::Tcp,
        kind: Kind::Span,
        live_only: false,
        title: "A queue that others filled",
        what: "the round trip was swollen by a queue that this connection's own backlog does not explain",
        fixes: &[FixId::QueueManagement],
    },
    CauseInfo {
        cause: Cause::PathDelay,
        id: "path_delay",
        class: Class::Inherent,
        kind: Kind::Span,
        live_only: false,
        title: "The distance",
        what: "propagation: the trips that remain with no limit at all",
        fixes: &[FixId::FewerRoundTrips, FixId::CloserServer],
    },
    CauseInfo {
        cause: Cause::KeepaliveOrDeadPeer,
        id: "keepalive_or_dead_peer",
        class: Class::Tcp,
        kind: Kind::Span,
        live_only: false,
        title: "The peer was silent or gone",
        what: "the peer was silent or gone: probes and retries until reset",
        fixes: &[FixId::UserTimeout],
    },
    CauseInfo {
        cause: Cause::Unexplained,
        id: "unexplained",
        class: Class::Unknown,
        kind: Kind::Span,
        live_only: false,
        title: "Not explained",
        what: "none of the known causes could be shown",
        fixes: &[],
    },
    CauseInfo {
        cause: Cause::Chatty,
        id: "chatty",
        class: Class::Application,
        kind: Kind::Finding,
        live_only: false,
        title: "Many small round trips in series",
        what: "many serial round trips that could be batched or pipelined",
        fixes: &[FixId::FewerRoundTrips],
    },
    CauseInfo {
        cause: Cause::ShortConnections,
        id: "short_connections",
        class: Class::Application,
        kind: Kind::Finding,
        live_only: false,
        title: "Many short connections to one server",
        what: "one setup per request: reusing connections saves all but the first",
        fixes: &[FixId::ReuseConnections],
    },
    CauseInfo {
        cause: Cause::ExplicitBuffer,
        id: "explicit_buffer",
        class: Class::Tcp,
        kind: Kind::Finding,
        live_only: false,
        title: "A buffer was set by hand",
        what: "a socket buffer set by hand switched the kernel's automatic tuning off",
        fixes: &[FixId::UnsetRcvbuf, FixId::UnsetSndbuf],
    },
    CauseInfo {
        cause: Cause::NoWindowScaling,
        id: "no_window_scaling",
        class: Class::Tcp,
        kind: Kind::Finding,
        live_only: false,
        title: "No window scaling",
        what: "one end did not offer window scaling: the window cannot exceed 64 KiB",
        fixes: &[FixId::WindowScaling],
    },
    CauseInfo {
        cause: Cause::SmallMss,
        id: "small_mss",
        class: Class::Tcp,
        kind: Kind::Finding,
        live_only: false,
        title: "Small segments",
        what: "the segment size is far below what the path usually carries",
        fixes: &[FixId::LargerMtu, FixId::ClampMss],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enum() {
        for (i, row) in CAUSES.iter().enumerate() {
            assert_eq!(row.cause as usize, i, "{}", row.id);
            assert_eq!(Cause::from_id(row.id), Some(row.cause));
            assert!(row.class != Class::Tcp || !row.fixes.is_empty(), "{} has no fix", row.id);
        }
    }
}
