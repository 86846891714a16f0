//! What the tracker says of a data segment: the plain value from which `release` decides what let it go.

use crate::profile::{Profile, WAKE_UP};
use crate::track::acks::{Ack, Acks};
use crate::track::flow::Flow;
use crate::track::rate::Rate;
use crate::track::recovery::Repair;
use crate::track::standing::UnderWay;
use tcpwhy_base::{End, Nanos, Segment, Seq};

/// What a data segment brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Bytes never seen, in order.
    New,
    /// All bytes passed before and are not acknowledged at this tap.
    Retransmission,
    /// All bytes passed before and were acknowledged: the retransmission was not needed.
    Spurious,
    /// Fills a hole late: a retransmission of what was lost before the tap.
    Repaired { opened: Nanos },
    /// Fills a hole soon: the path changed the order.
    Reordered,
    /// A keep-alive or window probe.
    Probe,
}

/// What was known of a flow before its segment was taken.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Before {
    pub(crate) nxt: Seq,
    pub(crate) small_end: Seq,
}

/// What is known of data that is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Nothing: it may be needed. (Or it is sent for the first time.)
    Open,
    /// Its receiver has it (rule 74).
    Needless,
    /// It passed the tap beside its receiver, whose host lost it behind that (rule 100).
    DroppedBehind,
}

/// A data segment among those before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    pub(crate) arrival: Arrival,
    /// Bytes that had not passed before.
    pub(crate) new: u32,
    pub(crate) repeat: Repeat,
    pub(crate) before: Before,
}

impl Arrived {
    /// The exchange goes on with it: new bytes, or a repair of lost ones.
    pub(crate) fn is_progress(&self) -> bool {
        self.arrival == Arrival::Retransmission || self.new > 0
    }
}

/// The path and the tap, as one of the ends sees them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathView {
    /// Base round trip, or what is known of it, or zero.
    pub(crate) rtt: Nanos,
    /// Shortest time from a packet passing the tap towards the sender to its response passing back, and the same of the
    /// peer.
    pub(crate) reaction: Option<Nanos>,
    pub(crate) peer_reaction: Option<Nanos>,
}

impl PathView {
    /// From the reaction times of the sender and of its peer.
    #[inline]
    pub(crate) fn new(reaction: Option<Nanos>, peer_reaction: Option<Nanos>) -> PathView {
        let rtt = reaction.unwrap_or_default() + peer_reaction.unwrap_or_default();
        PathView { rtt, reaction, peer_reaction }
    }

    /// The sender's reaction time, or zero.
    pub(crate) fn own(&self) -> Nanos {
        self.reaction.unwrap_or_default()
    }

    /// The peer's reaction time, or zero.
    pub(crate) fn peer(&self) -> Nanos {
        self.peer_reaction.unwrap_or_default()
    }

    /// How much sooner than its shortest reaction the sender may have reacted. Beside it (rule 26) the
    /// shortest that was seen may be that of a host that had to wake up first: whatever came before a segment
    /// may have released it.
    pub(crate) fn early(&self) -> Nanos {
        let reaction = self.own();
        let beside = self.is_near() && reaction <= Nanos::millis(1);
        if beside { reaction } else { reaction.part(8).max(Nanos::micros(50)).min(reaction) }
    }

    /// The tap is nearer to the sender than to its peer.
    pub(crate) fn is_near(&self) -> bool {
        self.own() <= self.peer()
    }
}

/// The exchange until the segment came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Since {
    /// The last progress, and whose it was.
    pub(crate) time: Nanos,
    pub(crate) speaker: End,
    /// When the message that goes on began.
    pub(crate) message: Nanos,
    /// The last recovery of the speaker that has ended: how, and when.
    pub(crate) recovered: Option<(Repair, Nanos)>,
}

/// Nothing was in flight for longer than the sender's reaction and a wake-up (rule 49); `ended`: it had
/// written no more.
pub(crate) fn was_free(empty: Nanos, own: Nanos, ended: bool) -> bool {
    empty - own > WAKE_UP.max(if ended { own.part(8) } else { own.part(4) + WAKE_UP })
}

/// A data segment that passed the tap, with all that was known at that moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passage<'a> {
    pub(crate) segment: &'a Segment,
    /// When it passed; never before an earlier one.
    pub(crate) time: Nanos,
    pub(crate) sender: End,
    pub(crate) arrived: Arrived,
    /// Packets of its sender that are missing before it, by their numbers.
    pub(crate) missing: u16,
    pub(crate) since: Since,
    /// The sender's figures after it was taken, and its peer's.
    pub(crate) flow: &'a Flow,
    pub(crate) peer: &'a Flow,
    /// ACKs for the sender's data, and for its peer's.
    pub(crate) acks: &'a Acks,
    pub(crate) peer_acks: &'a Acks,
    pub(crate) profile: &'a Profile,
    pub(crate) path: PathView,
    /// The largest window that was offered to the sender, bytes, where its scale is known.
    pub(crate) largest_window: Option<u32>,
    /// No packet of the peer is in the capture.
    pub(crate) one_sided: bool,
    /// The capture lost packets.
    pub(crate) capture_drops: bool,
    /// The bottleneck before the tap, away from the sender.
    pub(crate) rate: Option<&'a Rate>,
    /// What is known of when it left.
    pub(crate) departed: &'a Rate,
    /// How long the capture's clock stands still; zero if not for long.
    pub(crate) tick: Nanos,
}

impl Passage<'_> {
    /// The segment left before this ACK came to its sender, which would else have echoed its time stamp; not
    /// every stack does so with those of pure ACKs (rule 43).
    pub(crate) fn left_before(&self, ack: &Ack) -> bool {
        ack.is_later_than(self.segment) && !(ack.pure() && self.flow.ignores_acks)
    }

    /// Since the last progress of the exchange.
    pub(crate) fn waited(&self) -> Nanos {
        self.time - self.since.time
    }

    /// Largest payload of a packet of the sender, at least one byte.
    pub(crate) fn mss(&self) -> u32 {
        self.flow.mss.max(1)
    }

    /// How much later than its reaction the sender may have sent it. After a long wait a busy host may be later;
    /// a sixteenth of it is met by chance once in sixteen.
    pub(crate) fn late(&self) -> Nanos {
        let near = self.path.rtt.part(2).max(Nanos::micros(100)).min(Nanos::millis(1));
        self.path.own().part(8).max(near).max(self.waited().part(16))
    }

    /// Since all that had been sent was acknowledged, at the tap, less what the segment needs on a slow link
    /// before it; zero while something was in flight.
    pub(crate) fn empty_for(&self) -> Nanos {
        let covering = self.acks.newest_first().take_while(|a| !self.arrived.before.nxt.after(a.ack)).last();
        covering.map_or(Nanos::ZERO, |a| {
            let crossing = self.rate.map_or(Nanos::ZERO, |r| r.crossing(self.segment.len));
            (self.time - a.time - crossing).floor0()
        })
    }

    /// Beside its sender: how long it had been under way before it passed (rule 95).
    pub(crate) fn under_way(&self) -> UnderWay {
        let beside = self.path.is_near() && self.path.own() <= WAKE_UP;
        if beside { self.departed.under_way() } else { UnderWay::default() }
    }

    /// Away from it: it had left before the segment before it passed, for how long it had been under way, and
    /// whether it came as far from that as that from the one before (rule 96).
    pub(crate) fn was_on_its_way(&self) -> Option<(Nanos, bool)> {
        let beside = self.path.is_near() && self.path.own() <= WAKE_UP;
        let known = self.departed.on_its_way(self.time).filter(|_| !beside);
        known.filter(|&(under_way, _)| under_way >= self.waited() + self.tick)
    }

    /// The last segment ended a write. Of a packet of several segments that Linux spaces PSH does not tell (rule 87).
    pub(crate) fn pushed(&self) -> bool {
        self.flow.last.is_none_or(|l| l.psh) && !(self.flow.paced && self.may_go_on())
    }

    /// The last segment was partial and ended a write, of Linux, which appends what is written to the last
    /// segment of its queue (`tcp_sendmsg_locked`): nothing was left in that (rule 97).
    pub(crate) fn had_sent_all(&self) -> bool {
        let ended = self.flow.last.is_some_and(|l| l.psh && self.flow.is_small(l.len));
        ended && self.profile.os == Some("Linux") && self.flow.recovery.is_none()
    }

    /// PSH on the last segment need not have ended a write (rule 87).
    pub(crate) fn may_go_on(&self) -> bool {
        self.flow.last.is_some_and(|l| l.whole) && self.profile.os == Some("Linux")
    }

    /// A full segment had left that need not have ended a write: it has no PSH (`tcp_push` sets that), or Linux set it on a
    /// packet of several (rule 87). What Nagle's algorithm may hold behind it, behind a partial one that is not
    /// acknowledged (`tcp_minshall_check`), is another thing.
    pub(crate) fn goes_on(&self) -> bool {
        let full = self.flow.last.is_some_and(|l| !self.flow.is_small(l.len));
        let held = || self.arrived.before.small_end.after(self.flow.una);
        full && (!self.pushed() || self.may_go_on()) && !held()
    }

    /// Nothing was in flight for longer than a wake-up takes (rule 49): no limit of TCP held the segment, for
    /// each of them needs unacknowledged data. Away from the sender an eighth of its reaction time is jitter.
    /// Without PSH more had been written (RFC 9293, 3.9.1.2; `tcp_push` marks the end of a write, BSD the
    /// emptying of its buffer): something held that, and the path was late, by up to the quarter of a round
    /// trip that RACK allows for (RFC 8985, 6.2).
    pub(crate) fn was_free(&self) -> bool {
        was_free(self.empty_for(), self.path.own(), self.path.is_near() || self.pushed())
    }

    /// The shortest time after which a stack sends again what nobody acknowledged: a round trip and the floor of the
    /// timeout (RFC 6298; a tail loss probe of a single segment waits as long, RFC 8985, 7.2).
    pub(crate) fn timer(&self) -> Nanos {
        self.path.rtt + self.profile.rto_floor
    }
}
