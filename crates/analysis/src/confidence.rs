//! How sure each rule is, by where the tap was, and what else a stretch could be: the only place with such figures.
//!
//! `scripts/accuracy.py` holds them to captures whose causes are known.

use tcpwhy_base::{Cause, Side};

/// Where the tap was, seen from the end that a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tap {
    /// Nearer to this end than to the other.
    Near,
    Far,
}

/// How sure, and what else it could be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sure {
    pub(crate) confidence: f32,
    pub(crate) alternatives: [Option<(Cause, f32)>; 2],
}

/// A rule that gives a stretch of time its cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// A kernel said so.
    Witnessed,
    // Opening
    Handshake,
    HandshakeBeforeRetransmission,
    SynAnsweredBefore,
    SynIgnoredAtServer,
    SynLostBetweenTaps,
    SynUnanswered,
    SynAckRetransmitted,
    NeverAnswered,
    Refused,
    HandshakeUnseen,
    TlsThink,
    // The path and the link
    RoundTrip,
    RoundTripOfLostData,
    /// Every answer brought the ACK of its request: it took the server as well, for all that is known (rule 125).
    TripWithAnswer,
    OwnBytes,
    /// They stood in a queue of their own host before they passed (rule 95).
    Stood,
    /// They had left before, and came as far apart as a link lets them that carries less than before (rule 96).
    PaceOfLink,
    Queue,
    // Losses
    FastRecovery,
    Timeout,
    /// Away from the server nothing tells a path from a listener that drops it each time (rule 11).
    TimeoutOfFirstData,
    ProbeOfFirstData,
    LossProbe,
    SpuriousRecovery,
    BlackHole,
    TooBig,
    CameInPieces,
    NotTaken,
    NewDataProbe,
    OnePacketMissing,
    PacketsMissing,
    // Windows and buffers
    WindowFull,
    WindowClosed,
    WindowBelowSegment,
    WindowPlateau,
    WindowPlateauByInferredScale,
    UnreadPlateau,
    /// For less than half of a wait: the rest is a trip, which a larger window saves if a busy host made the ACK late.
    ReadPartlyLate,
    /// Its sender spaced what the window let through, and the window was full before it opened (rule 108).
    SpreadByPace,
    UnknownScalePlateau,
    LateAck,
    LateAckOfOneSegment,
    RoomUnused,
    WriterWoken,
    SlowStart,
    BufferPlateau,
    DoubtfulPlateau,
    AlmostSaturated,
    SpacedWithoutRate,
    DrippingWriter,
    WrittenAfterLoss,
    CongestionWindow,
    CongestionAfterLoss,
    IdleRestart,
    Pacing,
    /// Segments left as far apart as they passed, and no queue stood (rule 87). BBR begins so as well, until
    /// its rate no longer grows.
    SpacedBySender,
    // Small segments
    NagleOnce,
    NagleAgain,
    TailHeld,
    CorkTimer,
    CorkTimerOnce,
    /// Answers that left with ticks of their kernel, whenever they were asked for (rule 115).
    CorkOnTick,
    LateRelease,
    Unrepeated,
    LateRequest,
    HandshakeLate,
    BehindProxy,
    // Applications
    RefutedHold,
    NextWrite,
    PauseIdle,
    PauseInFlight,
    Think,
    ThinkOfFortyMillis,
    ThinkAtTimer,
    ThinkOrLoss,
    ThinkAsOften,
    /// Between hosts on one link, whose trip is taken to be short (rule 125).
    ThinkOnOneLink,
    /// All of them as long as the timer of a cork (rule 115).
    ThinkAsACork,
    ThinkBeforeMissing,
    ThinkBehindOthers,
    /// A server that reads up to the end of its input begins when that comes (rule 144).
    RequestUnended,
    Refill,
    Granted,
    GapThink,
    ClosingGap,
    // What did not end
    LastDataOnItsWay,
    BothWindowsShut,
    NeverRead,
    DeadPeer,
    NeverRepaired,
    FullNeverCame,
    /// How much of the wait was work before it was sent does not show.
    AnswerNeverCame,
    RestNeverCame,
    ThinkUnfinished,
    /// Nothing passed until the capture ended, much later (rule 150).
    QuietToTheEnd,
    RoundTripUnfinished,
    // Nothing to go by
    NotCaptured,
}

/// What a capture shows against a cause that a rule gives (rule 18; where it is seen: `attribute/doubts.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// The partial end of a write: classic Nagle holds it for the same ACK.
    PartialEnd,
    /// The same, after an idle time, where the first flights are whole again.
    PartialEndAfterIdle,
    /// The same, with an ACK that came late.
    PartialEndLate,
    /// The write before had ended.
    WriteEnded(Tap),
    /// The same, where a loss had made the window smaller: a writer that waits for buffer space ends its
    /// write with a PSH.
    WriterPushed,
    /// No loss has made the window smaller.
    NeverCut,
    /// Away from the sender of a link of unknown rate, it came in pieces of less than a round trip.
    CameSpaced,
    /// The ACK came late by an eighth of a trip: nobody knows how long the link took, and a delayed ACK takes
    /// as long as well.
    AckLate,
    /// It came late by more than a trip.
    AckLateByATrip,
    /// Seen from afar, hardly more was in flight than a queue before the tap hides.
    FewSegments,
    /// Beside the sender of a link of unknown rate, an ACK that opened the window took nearly two round trips.
    WindowLate,
    /// A hold that lasted much longer than a round trip, though its ACK seemed to be prompt.
    HeldLonger,
    /// The stack, and so its initial window, is not known.
    UnknownStart,
    /// What is sent again had passed the tap, which is nearer to its receiver.
    PassedTheTap,
    /// What is sent again was alone in flight, and so was what was sent again before.
    AloneAgain,
    /// More of the write was to come behind what is sent again.
    MoreToCome,
    /// Seen from afar, a silence as long as a timer, in the middle of a write.
    SilentWithinAWrite,
    /// The same behind the end of one.
    SilentAsATimer,
    /// Seen from afar, an answer took as long as a timer, though the numbers of its sender's packets show none missing.
    LateButCounted,
    /// Other answers of the connection came in a quarter of the time.
    OutOfLine,
    /// Segments spaced without ACKs, of a connection in which Nagle's algorithm holds: a writer's pieces fill
    /// up what is held.
    SpacedPieces,
    /// What came before a pause shorter than a round trip were packets of whole segments: a writer's pieces
    /// seldom end so.
    WholePackets,
    /// No more of them than a pace lets go at once (rule 149).
    Pairs,
    /// For three quarters of a pause and more something was in flight, and whole segments came behind it.
    SoonAfterAck,
}

impl Evidence {
    /// In which share of the cases with it another cause is right, and mostly which: by labelled captures
    /// (docs/accuracy.md), not by a rule of TCP.
    pub(crate) const fn share(self) -> (f32, Cause) {
        match self {
            Evidence::PartialEnd => (0.15, Cause::Nagle),
            Evidence::PartialEndAfterIdle => (0.6, Cause::Nagle),
            Evidence::PartialEndLate => (0.4, Cause::NagleDelayedAck),
            Evidence::WriteEnded(Tap::Near) => (0.1, Cause::SenderPause),
            Evidence::WriteEnded(Tap::Far) => (0.2, Cause::SenderPause),
            Evidence::WriterPushed => (0.35, Cause::SendBuffer),
            Evidence::NeverCut => (0.35, Cause::SlowStart),
            Evidence::CameSpaced => (0.25, Cause::Bandwidth),
            Evidence::AckLate => (0.1, Cause::Bandwidth),
            Evidence::AckLateByATrip => (0.75, Cause::Bandwidth),
            Evidence::FewSegments => (0.25, Cause::Bandwidth),
            Evidence::WindowLate => (0.35, Cause::Bandwidth),
            Evidence::HeldLonger => (0.4, Cause::NagleDelayedAck),
            Evidence::UnknownStart => (0.2, Cause::SlowStart),
            Evidence::PassedTheTap => (0.5, Cause::SpuriousRecovery),
            Evidence::AloneAgain => (0.25, Cause::SpuriousRecovery),
            Evidence::MoreToCome => (0.25, Cause::SpuriousRecovery),
            Evidence::SilentWithinAWrite => (0.6, Cause::RetransmissionTimeout),
            Evidence::SilentAsATimer => (0.6, Cause::RetransmissionTimeout),
            Evidence::LateButCounted => (0.05, Cause::RetransmissionTimeout),
            Evidence::OutOfLine => (0.3, Cause::RetransmissionTimeout),
            Evidence::SpacedPieces => (0.5, Cause::SenderPause),
            // Captures with labels have no writer of whole segments (of 0.18 s so called none was one's); a
            // proxy that passes on what came is one.
            Evidence::WholePackets => (0.35, Cause::Pacing),
            // In runs of BBR and servers that never pause all were a pace's; of proxies nothing is known.
            Evidence::Pairs => (0.5, Cause::Pacing),
            // Of nine small buffers on a busy host most, of labelled writers that pause none.
            Evidence::SoonAfterAck => (0.35, Cause::SendBuffer),
        }
    }

    /// The stronger of two: what they show is mostly the same.
    pub(crate) fn or_stronger(self, other: Evidence) -> Evidence {
        if other.share().0 > self.share().0 { other } else { self }
    }
}

const fn sure(confidence: f32) -> Sure {
    Sure { confidence, alternatives: [None, None] }
}

const fn or(confidence: f32, other: Cause, its: f32) -> Sure {
    Sure { confidence, alternatives: [Some((other, its)), None] }
}

const fn either(confidence: f32, one: (Cause, f32), other: (Cause, f32)) -> Sure {
    Sure { confidence, alternatives: [Some(one), Some(other)] }
}

impl Sure {
    /// With `evidence` against `cause`: less than one half is unexplained, and both are named.
    pub(crate) fn against(
        self,
        cause: Cause,
        side: Option<Side>,
        evidence: Evidence,
    ) -> (Sure, Cause, Option<Side>) {
        let (share, other) = evidence.share();
        let left = self.confidence * (1.0 - share);
        let second = self.alternatives[0].filter(|a| a.0 != other);
        if left >= 0.5 {
            let its = (0.95 - left).min(0.45);
            return (Sure { confidence: left, alternatives: [Some((other, its)), second] }, cause, side);
        }
        let alternatives = [Some((other, 0.4)), Some((cause, left.max(0.2)))];
        (Sure { confidence: 0.5, alternatives }, Cause::Unexplained, None)
    }

    /// In a connection whose round trip is not known: what is told from how long a trip takes, or from how
    /// many segments left in one, may have been told wrong (rule 58).
    pub(crate) fn without_trip(self, cause: Cause) -> Sure {
        let told_by_trips = matches!(
            cause,
            Cause::SlowStart
                | Cause::IdleRestart
                | Cause::CongestionWindow
                | Cause::SendBuffer
                | Cause::Pacing
                | Cause::PathDelay
                | Cause::TailLossProbe
                | Cause::RetransmissionTimeout
        );
        if !told_by_trips || self.confidence <= 0.6 {
            return self;
        }
        Sure { confidence: 0.6, ..self }
    }

    /// In a connection of which the capture lost packets: an application that seems to do nothing, or a loss
    /// that seems to be one, may be such a packet (rule 53).
    pub(crate) fn beside_drops(self, cause: Cause) -> Sure {
        let think = matches!(cause, Cause::ClientThink | Cause::ServerThink | Cause::SenderPause);
        let loss = matches!(
            cause,
            Cause::FastRecovery
                | Cause::RetransmissionTimeout
                | Cause::TailLossProbe
                | Cause::SpuriousRecovery
                | Cause::PathMtu
        );
        if !think && !loss || self.confidence <= 0.5 {
            return self;
        }
        let other = if think { Cause::RetransmissionTimeout } else { Cause::SenderPause };
        let second = self.alternatives[0].filter(|a| a.0 != other);
        Sure { confidence: 0.5, alternatives: [Some((other, 0.3)), second] }
    }
}

impl Rule {
    /// How sure it is at this tap.
    #[inline]
    pub(crate) const fn at(self, tap: Tap) -> Sure {
        use Cause as C;
        match (self, tap) {
            (Rule::Witnessed, _) => sure(0.99),
            (Rule::Handshake, _) => sure(0.97),
            (Rule::HandshakeBeforeRetransmission | Rule::GapThink, _) => sure(0.9),
            (Rule::SynAnsweredBefore | Rule::NeverRead | Rule::ThinkBehindOthers, _) => sure(0.85),
            (Rule::SynIgnoredAtServer, _) => either(0.9, (C::AcceptQueueFull, 0.4), (C::SynQueueFull, 0.2)),
            (Rule::SynUnanswered, _) => either(0.9, (C::AcceptQueueFull, 0.25), (C::SynQueueFull, 0.1)),
            (Rule::SynAckRetransmitted, _) => or(0.8, C::AcceptQueueFull, 0.2),
            (Rule::NeverAnswered | Rule::LastDataOnItsWay, _) => sure(0.7),
            (Rule::Refused | Rule::SynLostBetweenTaps, _) => sure(0.95),
            (Rule::HandshakeUnseen | Rule::HandshakeLate | Rule::NotCaptured, _) => sure(0.5),
            (Rule::TlsThink | Rule::RoundTrip | Rule::RoundTripOfLostData | Rule::OwnBytes, _) => sure(0.9),
            (Rule::Stood, _) => or(0.9, C::HostDelay, 0.05),
            (Rule::TripWithAnswer, _) => or(0.5, C::ServerThink, 0.45),
            (Rule::ThinkOnOneLink, _) => or(0.6, C::PathDelay, 0.35),
            (Rule::PaceOfLink, _) => or(0.8, C::Queueing, 0.2),
            (Rule::Queue, _) => or(0.6, C::Bandwidth, 0.3),
            (Rule::FastRecovery, _) => or(0.85, C::CongestionWindow, 0.15),
            (Rule::TimeoutOfFirstData | Rule::ProbeOfFirstData, _) => or(0.6, C::AcceptQueueFull, 0.3),
            (Rule::Timeout, _) => or(0.9, C::TailLossProbe, 0.1),
            (Rule::LossProbe, _) => either(0.7, (C::SpuriousRecovery, 0.15), (C::RetransmissionTimeout, 0.1)),
            (Rule::SpuriousRecovery, _) => or(0.75, C::RetransmissionTimeout, 0.15),
            (Rule::BlackHole | Rule::NotTaken, _) => or(0.9, C::RetransmissionTimeout, 0.1),
            (Rule::TooBig, _) => or(0.97, C::RetransmissionTimeout, 0.03),
            (Rule::CameInPieces, _) => or(0.8, C::ServerThink, 0.2),
            (Rule::NewDataProbe | Rule::ThinkAtTimer, _) => or(0.75, C::RetransmissionTimeout, 0.2),
            (Rule::OnePacketMissing, _) => {
                either(0.85, (C::RetransmissionTimeout, 0.1), (C::SenderPause, 0.05))
            }
            (Rule::PacketsMissing, _) => either(0.85, (C::TailLossProbe, 0.1), (C::SenderPause, 0.1)),

            (Rule::WindowFull, _) => either(0.9, (C::Bandwidth, 0.05), (C::SlowReader, 0.03)),
            (Rule::WindowClosed, _) => either(0.9, (C::ReceiveWindow, 0.06), (C::Bandwidth, 0.04)),
            (Rule::WindowBelowSegment, _) => or(0.8, C::ReceiveWindow, 0.1),
            (Rule::WindowPlateau, _) => or(0.8, C::SendBuffer, 0.1),
            // Of all flights up to twice as large, few fit a window as if by its scale.
            (Rule::WindowPlateauByInferredScale, _) => or(0.7, C::SendBuffer, 0.2),
            (Rule::UnreadPlateau | Rule::ReadPartlyLate, _) => or(0.8, C::ReceiveWindow, 0.15),
            (Rule::UnknownScalePlateau, _) => either(0.5, (C::ReceiveWindow, 0.4), (C::SendBuffer, 0.3)),
            (Rule::LateAck, _) => either(0.9, (C::SenderPause, 0.05), (C::CongestionWindow, 0.03)),
            (Rule::LateAckOfOneSegment, _) => or(0.8, C::SendBuffer, 0.2),
            (Rule::RoomUnused, _) => either(0.6, (C::SenderPause, 0.25), (C::CongestionWindow, 0.1)),
            (Rule::WriterWoken, _) => or(0.7, C::SenderPause, 0.3),
            (Rule::SlowStart, _) => either(0.9, (C::SendBuffer, 0.05), (C::SenderPause, 0.04)),
            (Rule::BufferPlateau, Tap::Near) => or(0.85, C::CongestionWindow, 0.1),
            // Away from the sender only the plateau shows.
            (Rule::BufferPlateau, Tap::Far) => or(0.7, C::SenderPause, 0.2),
            (Rule::DoubtfulPlateau, _) => either(0.5, (C::SenderPause, 0.4), (C::SendBuffer, 0.3)),
            (Rule::AlmostSaturated, _) => either(0.5, (C::Bandwidth, 0.45), (C::SendBuffer, 0.3)),
            (Rule::SpacedWithoutRate, _) => either(0.5, (C::Bandwidth, 0.4), (C::SenderPause, 0.4)),
            (Rule::DrippingWriter, _) => or(0.7, C::SendBuffer, 0.2),
            (Rule::WrittenAfterLoss, _) => either(0.7, (C::CongestionWindow, 0.2), (C::SendBuffer, 0.1)),
            (Rule::CongestionWindow, _) => or(0.8, C::SendBuffer, 0.2),
            (Rule::CongestionAfterLoss, _) => or(0.9, C::SendBuffer, 0.05),
            (Rule::IdleRestart, _) => either(0.85, (C::SlowStart, 0.05), (C::Nagle, 0.05)),
            (Rule::SpreadByPace, _) => either(0.75, (C::Pacing, 0.15), (C::SenderPause, 0.1)),
            (Rule::Pacing, _) => either(0.5, (C::SenderPause, 0.45), (C::HostDelay, 0.05)),
            (Rule::SpacedBySender, _) => either(0.5, (C::SlowStart, 0.4), (C::SenderPause, 0.2)),

            // Once may be chance; the lock repeated is not.
            (Rule::NagleOnce, _) => either(0.85, (C::SenderPause, 0.1), (C::RetransmissionTimeout, 0.03)),
            (Rule::NagleAgain, _) => sure(0.95),
            (Rule::TailHeld, _) => either(0.85, (C::SenderPause, 0.2), (C::SlowStart, 0.1)),
            (Rule::CorkTimer, _) => or(0.5, C::SenderPause, 0.45),
            (Rule::CorkTimerOnce, _) => either(0.75, (C::Cork, 0.15), (C::RetransmissionTimeout, 0.1)),
            (Rule::CorkOnTick, _) => or(0.85, C::ServerThink, 0.1),
            (Rule::LateRequest, _) => either(0.5, (C::Queueing, 0.3), (C::HostDelay, 0.2)),
            (Rule::BehindProxy, _) => either(0.5, (C::PathDelay, 0.4), (C::ServerThink, 0.3)),
            (Rule::Unrepeated, _) => either(0.5, (C::RetransmissionTimeout, 0.3), (C::SenderPause, 0.3)),
            (Rule::LateRelease, _) => either(0.5, (C::HostDelay, 0.3), (C::SenderPause, 0.2)),

            (Rule::NextWrite, _) => or(0.9, C::Bandwidth, 0.05),
            (Rule::RefutedHold, _) => or(0.75, C::NagleDelayedAck, 0.2),
            (Rule::PauseIdle | Rule::PauseInFlight, Tap::Near) => or(0.95, C::Nagle, 0.02),
            // What was lost before the tap does not show.
            (Rule::PauseIdle | Rule::PauseInFlight, Tap::Far) => {
                either(0.9, (C::RetransmissionTimeout, 0.05), (C::NagleDelayedAck, 0.03))
            }
            (Rule::Think, Tap::Near) => or(0.95, C::SlowStart, 0.02),
            (Rule::Think, Tap::Far) => sure(0.9),
            // A single response 40 to 47 ms late may be a delayed ACK that something waited for.
            (Rule::ThinkOfFortyMillis, _) => or(0.5, C::DelayedAck, 0.3),
            (Rule::ThinkOrLoss | Rule::FullNeverCame, _) => or(0.8, C::RetransmissionTimeout, 0.2),
            (Rule::ThinkAsACork, _) => or(0.5, C::Cork, 0.4),
            (Rule::ThinkAsOften, _) => or(0.9, C::RetransmissionTimeout, 0.05),
            (Rule::ThinkBeforeMissing, _) => sure(0.6),
            (Rule::QuietToTheEnd, _) => or(0.7, C::KeepaliveOrDeadPeer, 0.2),
            (Rule::RequestUnended, _) => either(0.5, (C::SenderPause, 0.4), (C::ServerThink, 0.4)),
            (Rule::Refill, _) => or(0.6, C::PathDelay, 0.4),
            // A protocol whose answers to blocks are as short as that waits for them as well.
            (Rule::Granted, _) => or(0.75, C::PathDelay, 0.2),
            (Rule::ClosingGap | Rule::RoundTripUnfinished, _) => sure(0.8),
            (Rule::NeverRepaired, _) => or(0.8, C::PathMtu, 0.1),
            (Rule::AnswerNeverCame, _) => or(0.6, C::ServerThink, 0.3),
            (Rule::RestNeverCame, _) => or(0.6, C::SenderPause, 0.3),
            (Rule::BothWindowsShut | Rule::DeadPeer | Rule::ThinkUnfinished, _) => sure(0.8),
        }
    }
}
