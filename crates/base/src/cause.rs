//! Why time passes: the types, and the one table of causes, whose rows stand in a file for each group.
//!
//! What is said of causes anywhere (terminal, page, schemas, documentation, what the lab takes for right) is a column
//! here, or is compared with this table by a test; `tests/causes.rs` lists the places.

mod applications;
mod congestion;
mod loss;
mod opening;
mod path;
#[cfg(planted_cause)]
mod planted;
mod small_writes;
mod windows;

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

/// Who has to act for the time to go away: what verdicts, totals and `--fail-if tcp>…` go by.
///
/// [`Class`] says what kind of time it is, this whose door to knock at: a reader that does not read shows in
/// TCP's windows (class `T`), and no setting of TCP mends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Owner {
    /// Who wrote or runs the programs: their work and pauses, how they read, accept, and use connections, and buffers
    /// that they set themselves.
    Application,
    /// Settings and algorithms of the two TCP stacks and their hosts.
    Tcp,
    /// Who runs the network between: distance, rate, queues, losses, packets that are reordered or too large.
    Path,
    /// Not known.
    None,
}

impl Owner {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Owner; 4] = [Owner::Application, Owner::Tcp, Owner::Path, Owner::None];

    /// The stable id.
    pub const fn id(self) -> &'static str {
        match self {
            Owner::Application => "application",
            Owner::Tcp => "tcp",
            Owner::Path => "path",
            Owner::None => "none",
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

/// What causes are grouped by for people: colours, the table in README.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// Distance, rate, setup.
    Path,
    /// The programs at both ends.
    Applications,
    /// Nagle, delayed ACKs, corks.
    SmallWrites,
    /// Windows and buffers.
    Windows,
    /// The congestion window, and queues.
    Congestion,
    /// Loss and its repair.
    Loss,
    /// How connections begin and end.
    Opening,
    /// Not explained.
    Unknown,
}

impl Group {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Group; 8] = [
        Group::Path,
        Group::Applications,
        Group::SmallWrites,
        Group::Windows,
        Group::Congestion,
        Group::Loss,
        Group::Opening,
        Group::Unknown,
    ];

    /// The stable id: in JSON, and in the names of colours on the page.
    pub const fn id(self) -> &'static str {
        match self {
            Group::Path => "path",
            Group::Applications => "applications",
            Group::SmallWrites => "small_writes",
            Group::Windows => "windows",
            Group::Congestion => "congestion",
            Group::Loss => "loss",
            Group::Opening => "opening",
            Group::Unknown => "unknown",
        }
    }

    /// A few words for a heading.
    pub const fn title(self) -> &'static str {
        match self {
            Group::Path => "path and sizes",
            Group::Applications => "applications",
            Group::SmallWrites => "small writes",
            Group::Windows => "windows and buffers",
            Group::Congestion => "congestion control",
            Group::Loss => "loss",
            Group::Opening => "opening and closing",
            Group::Unknown => "not known",
        }
    }
}

/// A measured figure of a connection that speaks for a cause or against it, whether or not its rule held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// How late each end's ACKs without data came, beside the base round trip.
    LateAcks,
    /// Whether an end sent a partial segment while an earlier one was unacknowledged: Nagle's algorithm is off.
    SmallSegments,
    /// The largest windows, and how often they were closed.
    Windows,
    /// The most bytes in flight.
    InFlight,
    /// The first flight that waited, and the largest.
    Flights,
    /// Packets that repeat bytes.
    Retransmissions,
    /// Packets that came in another order.
    Order,
    /// Repeated SYNs and SYN-ACKs.
    SynRetransmissions,
    /// The bottleneck's rate, from trains of packets.
    Rate,
    /// Keep-alives.
    KeepAlives,
    /// The segment sizes that both ends offered.
    SegmentSize,
}

impl Evidence {
    /// The stable id.
    pub const fn id(self) -> &'static str {
        match self {
            Evidence::LateAcks => "late_acks",
            Evidence::SmallSegments => "small_segments",
            Evidence::Windows => "windows",
            Evidence::InFlight => "in_flight",
            Evidence::Flights => "flights",
            Evidence::Retransmissions => "retransmissions",
            Evidence::Order => "order",
            Evidence::SynRetransmissions => "syn_retransmissions",
            Evidence::Rate => "rate",
            Evidence::KeepAlives => "keep_alives",
            Evidence::SegmentSize => "segment_size",
        }
    }
}

/// How hard it is to tell two causes apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likeness {
    /// No packet tells them apart: the other name is right, too.
    Same,
    /// Hardly told apart from any tap: the other name is half right.
    Close,
    /// Hardly told apart far from the sender alone, where the other name is half right: there the sender's
    /// own part of the evidence is missing.
    FromAfar,
    /// Alike only where something else is so (a link that is full, a window that never met a loss); whoever takes the
    /// other name for right checks that first.
    AtTimes,
}

impl Likeness {
    /// The stable id.
    pub const fn id(self) -> &'static str {
        match self {
            Likeness::Same => "same",
            Likeness::Close => "close",
            Likeness::FromAfar => "from_afar",
            Likeness::AtTimes => "at_times",
        }
    }
}

/// A cause that another one is confused with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alike {
    /// What it is taken for.
    pub cause: Cause,
    /// How easily.
    pub how: Likeness,
}

const fn same(cause: Cause) -> Alike {
    Alike { cause, how: Likeness::Same }
}

const fn close(cause: Cause) -> Alike {
    Alike { cause, how: Likeness::Close }
}

const fn afar(cause: Cause) -> Alike {
    Alike { cause, how: Likeness::FromAfar }
}

const fn at_times(cause: Cause) -> Alike {
    Alike { cause, how: Likeness::AtTimes }
}

/// What tools that flag single packets (Wireshark's expert information, tcptrace) flag where a cause takes time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flagged {
    /// A retransmission, or what comes with one.
    Loss,
    /// A full, small or closed window.
    Window,
}

impl Flagged {
    /// The stable id.
    pub const fn id(self) -> &'static str {
        match self {
            Flagged::Loss => "loss",
            Flagged::Window => "window",
        }
    }
}

/// What the settings in a cause's fixes are sized by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizedBy {
    /// They have no size.
    Nothing,
    /// Rate times round trip: what a buffer or window must hold.
    Path,
    /// The segments of a message: what a first flight would have to be.
    Message,
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
    /// Who has to act.
    pub owner: Owner,
    /// What it is listed with.
    pub group: Group,
    /// Span or finding.
    pub kind: Kind,
    /// A capture cannot show it: only a live host can.
    pub live_only: bool,
    /// A few words for a heading.
    pub title: &'static str,
    /// What it is called in the middle of a sentence: a noun.
    pub name: &'static str,
    /// What happened in that time: one clause.
    pub what: &'static str,
    /// It is made at the end that receives (a window), not at the one whose segment waited: fixes that a writer makes
    /// for other causes belong there.
    pub at_reader: bool,
    /// What speaks for it or against it in a capture.
    pub evidence: &'static [Evidence],
    /// What other tools flag where it takes time.
    pub flagged: Option<Flagged>,
    /// Of a finding: the causes whose time it is made of.
    pub made_of: &'static [Cause],
    /// The causes whose times are added up with its own where an answer is judged, itself among them; empty: it alone.
    /// One wait can fairly be called by any of these names.
    pub family: &'static [Cause],
    /// What it is confused with. Its page says what decides.
    pub alike: &'static [Alike],
    /// What its fixes are sized by.
    pub sized: SizedBy,
    /// What a person can do, the best first.
    pub fixes: &'static [FixId],
}

impl CauseInfo {
    /// What this cause may be taken for, as far as one of `hows` allows.
    pub fn looks_like(&self, hows: &'static [Likeness]) -> impl Iterator<Item = Cause> {
        self.alike.iter().filter(|a| hows.contains(&a.how)).map(|a| a.cause)
    }
}

/// The enum with the number of its variants, which the table is checked against.
macro_rules! causes {
    ($(#[$of:meta])* pub enum Cause { $($(#[$at:meta])* $cause:ident,)* }) => {
        $(#[$of])*
        pub enum Cause { $($(#[$at])* $cause,)* }

        /// How many variants there are.
        const VARIANTS: usize = [$($(#[$at])* Cause::$cause),*].len();
    };
}

causes! {
    /// Why a stretch of time passed. The order is that of the table [`CAUSES`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[repr(u8)]
    #[non_exhaustive]
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
        ReaderLate,
        SlowReader,
        ApplicationWindow,
        MutualBlock,
        NagleDelayedAck,
        Nagle,
        DelayedAck,
        Cork,
        SillyWindow,
        SendBuffer,
        SendQueue,
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
        Scan,
        ExplicitBuffer,
        NoWindowScaling,
        SmallMss,
        // Shows that a cause that is forgotten anywhere fails a test: CONTRIBUTING.md, "Adding a cause".
        #[cfg(planted_cause)]
        Planted,
    }
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

    /// Who has to act.
    pub const fn owner(self) -> Owner {
        self.info().owner
    }

    /// The cause with this id.
    pub fn from_id(id: &str) -> Option<Cause> {
        CAUSES.iter().find(|c| c.id == id).map(|c| c.cause)
    }
}

/// The one table of causes, in the order of [`Cause`]. A cause without a row, or with two, does not compile.
pub const CAUSES: &[CauseInfo] = &{
    let files = [
        opening::ROWS,
        applications::ROWS,
        small_writes::ROWS,
        windows::ROWS,
        congestion::ROWS,
        loss::ROWS,
        path::ROWS,
        #[cfg(planted_cause)]
        planted::ROWS,
    ];
    let mut all = [files[0][0]; VARIANTS];
    let mut has = [false; VARIANTS];
    let (mut file, mut row, mut rows) = (0, 0, 0);
    while file < files.len() {
        if row == files[file].len() {
            (file, row) = (file + 1, 0);
            continue;
        }
        let at = files[file][row].cause as usize;
        assert!(!has[at], "a cause has two rows");
        (all[at], has[at]) = (files[file][row], true);
        (row, rows) = (row + 1, rows + 1);
    }
    assert!(rows == VARIANTS, "a cause has no row");
    all
};
