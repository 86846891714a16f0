/// Where a fix is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The end whose segment or write waited.
    Writer,
    /// The end that received.
    Reader,
    /// The client.
    Client,
    /// The server.
    Server,
    /// Either host's system settings.
    Host,
    /// The path between.
    Path,
}

/// One concrete way to make a fix. `{name}` in the text is filled from the [`Figures`] of the capture; a
/// line whose figure is not known is left out, so every fix has at least one line without any.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// Where it applies: `Linux`, `Windows`, `nginx`, `Go`, `Java`, ...
    pub system: &'static str,
    /// The exact setting or change.
    pub text: &'static str,
}

/// One row of the fix table.
#[derive(Clone, Copy, Debug)]
pub struct FixInfo {
    /// The fix.
    pub fix: FixId,
    /// Stable id in JSON.
    pub id: &'static str,
    /// Where it is made.
    pub place: Place,
    /// What to do, in a few words.
    pub title: &'static str,
    /// How, most common first.
    pub how: &'static [How],
}

/// Figures of a capture that fill the placeholders of [`How`].
#[derive(Clone, Debug, Default)]
pub struct Figures(pub Vec<(&'static str, String)>);

impl Figures {
    /// The text with its placeholders filled, or `None` if one of them is not known.
    pub fn fill(&self, text: &str) -> Option<String> {
        let mut out = String::with_capacity(text.len() + 16);
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            let close = open + rest[open..].find('}')?;
            let value = &self.0.iter().find(|(name, _)| *name == &rest[open + 1..close])?.1;
            out.push_str(&rest[..open]);
            out.push_str(value);
            rest = &rest[close + 1..];
        }
        out.push_str(rest);
        Some(out)
    }
}

/// Something a person can do about a cause. The order is that of the table [`FIXES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[expect(missing_docs, reason = "the table says what each one means")]
pub enum FixId {
    ReuseConnections,
    FastOpen,
    CloserServer,
    Tls13,
    TlsResumption,
    ListenBacklog,
    Firewall,
    AcceptFaster,
    AbortOnOverflow,
    SynCookies,
    StartListener,
    PortRange,
    TwReuse,
    Application,
    LargerWrites,
    ReadFaster,
    ApplicationWindow,
    ReadWhileWriting,
    OneWrite,
    Nodelay,
    CorkWhole,
    Quickack,
    BiggerWindow,
    Uncork,
    UnsetRcvbuf,
    SmallerMtu,
    UnsetSndbuf,
    Wmem,
    Rmem,
    MemoryLimit,
    Initcwnd,
    SmallerResponse,
    LargerMtu,
    NoIdleRestart,
    FixLoss,
    CongestionControl,
    HostLoad,
    RtoMin,
    ThinStreams,
    FixReordering,
    ClampMss,
    MtuProbing,
    FasterLink,
    QueueManagement,
    FewerRoundTrips,
    UserTimeout,
    WindowScaling,
}

impl FixId {
    /// Its row of the table.
    pub const fn info(self) -> &'static FixInfo {
        &FIXES[self as usize]
    }
}

/// The one table of fixes.
pub const FIXES: &[FixInfo] = &[
    FixInfo {
        fix: FixId::ReuseConnections,
        id: "reuse_connections",
        place: Place::Host,
        title: "reuse connections",
        how: &[],
    },
    FixInfo { fix: FixId::FastOpen, id: "fast_open", place: Place::Host, title: "fast open", how: &[] },
    FixInfo {
        fix: FixId::CloserServer,
        id: "closer_server",
        place: Place::Host,
        title: "closer server",
        how: &[],
    },
    FixInfo { fix: FixId::Tls13, id: "tls13", place: Place::Host, title: "tls13", how: &[] },
    FixInfo {
        fix: FixId::TlsResumption,
        id: "tls_resumption",
        place: Place::Host,
        title: "tls resumption",
        how: &[],
    },
    FixInfo {
        fix: FixId::ListenBacklog,
        id: "listen_backlog",
        place: Place::Host,
        title: "listen backlog",
        how: &[],
    },
    FixInfo { fix: FixId::Firewall, id: "firewall", place: Place::Host, title: "firewall", how: &[] },
    FixInfo {
        fix: FixId::AcceptFaster,
        id: "accept_faster",
        place: Place::Host,
        title: "accept faster",
        how: &[],
    },
    FixInfo {
        fix: FixId::AbortOnOverflow,
        id: "abort_on_overflow",
        place: Place::Host,
        title: "abort on overflow",
        how: &[],
    },
    FixInfo { fix: FixId::SynCookies, id: "syn_cookies", place: Place::Host, title: "syn cookies", how: &[] },
    FixInfo {
        fix: FixId::StartListener,
        id: "start_listener",
        place: Place::Host,
        title: "start listener",
        how: &[],
    },
    FixInfo { fix: FixId::PortRange, id: "port_range", place: Place::Host, title: "port range", how: &[] },
    FixInfo { fix: FixId::TwReuse, id: "tw_reuse", place: Place::Host, title: "tw reuse", how: &[] },
    FixInfo {
        fix: FixId::Application,
        id: "application",
        place: Place::Host,
        title: "application",
        how: &[],
    },
    FixInfo {
        fix: FixId::LargerWrites,
        id: "larger_writes",
        place: Place::Host,
        title: "larger writes",
        how: &[],
    },
    FixInfo { fix: FixId::ReadFaster, id: "read_faster", place: Place::Host, title: "read faster", how: &[] },
    FixInfo {
        fix: FixId::ApplicationWindow,
        id: "application_window",
        place: Place::Host,
        title: "application window",
        how: &[],
    },
    FixInfo {
        fix: FixId::ReadWhileWriting,
        id: "read_while_writing",
        place: Place::Host,
        title: "read while writing",
        how: &[],
    },
    FixInfo { fix: FixId::OneWrite, id: "one_write", place: Place::Host, title: "one write", how: &[] },
    FixInfo { fix: FixId::Nodelay, id: "nodelay", place: Place::Host, title: "nodelay", how: &[] },
    FixInfo { fix: FixId::CorkWhole, id: "cork_whole", place: Place::Host, title: "cork whole", how: &[] },
    FixInfo { fix: FixId::Quickack, id: "quickack", place: Place::Host, title: "quickack", how: &[] },
    FixInfo {
        fix: FixId::BiggerWindow,
        id: "bigger_window",
        place: Place::Host,
        title: "bigger window",
        how: &[],
    },
    FixInfo { fix: FixId::Uncork, id: "uncork", place: Place::Host, title: "uncork", how: &[] },
    FixInfo {
        fix: FixId::UnsetRcvbuf,
        id: "unset_rcvbuf",
        place: Place::Host,
        title: "unset rcvbuf",
        how: &[],
    },
    FixInfo { fix: FixId::SmallerMtu, id: "smaller_mtu", place: Place::Host, title: "smaller mtu", how: &[] },
    FixInfo {
        fix: FixId::UnsetSndbuf,
        id: "unset_sndbuf",
        place: Place::Host,
        title: "unset sndbuf",
        how: &[],
    },
    FixInfo { fix: FixId::Wmem, id: "wmem", place: Place::Host, title: "wmem", how: &[] },
    FixInfo { fix: FixId::Rmem, id: "rmem", place: Place::Host, title: "rmem", how: &[] },
    FixInfo {
        fix: FixId::MemoryLimit,
        id: "memory_limit",
        place: Place::Host,
        title: "memory limit",
        how: &[],
    },
    FixInfo { fix: FixId::Initcwnd, id: "initcwnd", place: Place::Host, title: "initcwnd", how: &[] },
    FixInfo {
        fix: FixId::SmallerResponse,
        id: "smaller_response",
        place: Place::Host,
        title: "smaller response",
        how: &[],
    },
    FixInfo { fix: FixId::LargerMtu, id: "larger_mtu", place: Place::Host, title: "larger mtu", how: &[] },
    FixInfo {
        fix: FixId::NoIdleRestart,
        id: "no_idle_restart",
        place: Place::Host,
        title: "no idle restart",
        how: &[],
    },
    FixInfo { fix: FixId::FixLoss, id: "fix_loss", place: Place::Host, title: "fix loss", how: &[] },
    FixInfo {
        fix: FixId::CongestionControl,
        id: "congestion_control",
        place: Place::Host,
        title: "congestion control",
        how: &[],
    },
    FixInfo { fix: FixId::HostLoad, id: "host_load", place: Place::Host, title: "host load", how: &[] },
    FixInfo { fix: FixId::RtoMin, id: "rto_min", place: Place::Host, title: "rto min", how: &[] },
    FixInfo {
        fix: FixId::ThinStreams,
        id: "thin_streams",
        place: Place::Host,
        title: "thin streams",
        how: &[],
    },
    FixInfo {
        fix: FixId::FixReordering,
        id: "fix_reordering",
        place: Place::Host,
        title: "fix reordering",
        how: &[],
    },
    FixInfo { fix: FixId::ClampMss, id: "clamp_mss", place: Place::Host, title: "clamp mss", how: &[] },
    FixInfo { fix: FixId::MtuProbing, id: "mtu_probing", place: Place::Host, title: "mtu probing", how: &[] },
    FixInfo { fix: FixId::FasterLink, id: "faster_link", place: Place::Host, title: "faster link", how: &[] },
    FixInfo {
        fix: FixId::QueueManagement,
        id: "queue_management",
        place: Place::Host,
        title: "queue management",
        how: &[],
    },
    FixInfo {
        fix: FixId::FewerRoundTrips,
        id: "fewer_round_trips",
        place: Place::Host,
        title: "fewer round trips",
        how: &[],
    },
    FixInfo {
        fix: FixId::UserTimeout,
        id: "user_timeout",
        place: Place::Host,
        title: "user timeout",
        how: &[],
    },
    FixInfo {
        fix: FixId::WindowScaling,
        id: "window_scaling",
        place: Place::Host,
        title: "window scaling",
        how: &[],
    },
];
