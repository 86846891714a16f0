//! What may release a segment, with the figures of each.

use crate::rest::at_rest;
use crate::track::Repair;
use std::num::NonZeroU64;
use tcpwhy_base::{Nanos, Source};

/// What held a segment was gone, and it came later than that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Freed {
    /// When it was gone.
    pub(crate) at: Nanos,
    /// So long the segment had been under way beyond the quickest, at the least; zero: what it waited for is not known.
    pub(crate) under_way: Nanos,
}

/// What released a segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Release {
    pub(crate) wait: Wait,
    /// The ACK that it left with.
    pub(crate) ack: Option<NonZeroU64>,
    /// A loss was being repaired until then; of a retransmission, when its first sign came.
    pub(crate) loss: Option<(Repair, Nanos)>,
    /// When the application wrote it, where that is known and lies within the wait: until then it was the writer's.
    pub(crate) written: Option<Nanos>,
    /// What held it was gone before it came.
    pub(crate) freed: Option<Freed>,
    /// When what it answers had passed unseen, at the latest, and what that had waited for.
    pub(crate) unseen: Option<(Nanos, Wait)>,
    /// Who says so.
    pub(crate) source: Source,
}

impl Release {
    /// As the packets tell, without an ACK.
    #[inline]
    pub(crate) fn inferred(wait: Wait) -> Release {
        Release {
            wait,
            ack: None,
            loss: None,
            written: None,
            freed: None,
            unseen: None,
            source: Source::Inferred,
        }
    }

    /// With the ACK in this frame.
    #[inline]
    pub(crate) fn with_ack(mut self, frame: u64) -> Release {
        self.ack = NonZeroU64::new(frame);
        self
    }

    /// While a loss was being repaired.
    #[inline]
    pub(crate) fn with_loss(mut self, loss: Option<(Repair, Nanos)>) -> Release {
        self.loss = loss;
        self
    }

    /// Nothing that could be seen released it: the wait may be long enough to end a one-way transfer.
    pub(crate) fn may_split(&self) -> bool {
        let free = matches!(self.wait, Wait::Pause(Pause { there: false, .. }) | Wait::CorkTimer { .. });
        free && self.ack.is_none()
    }
}

/// What a segment waited for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Wait {
    /// Nothing: the segment followed the one before at once.
    Burst,
    /// An ACK; which limit it lifted shows in the flights.
    Acked(Acked),
    /// A duplicate ACK or a SACK block, which said that a segment had left the path: of so many bytes (rule 147).
    Repeated { flight: u32 },
    /// An ACK that moved the right edge of a window that was full with so many bytes in flight.
    Window { flight: u32 },
    /// A window update after the window had been closed to less than a segment.
    Closed {
        /// Window last offered before.
        window: u32,
        flight: u32,
        /// Data lay unread when the ACK that released it was due, and by how much it was late; zero: its
        /// window says so.
        unread: Option<Nanos>,
    },
    /// Its sender's pace, in a round in which so many bytes filled the window before an ACK opened it again:
    /// whoever read there was late, or not (rule 108). Zero bytes: it was not full, but data lay unread
    /// there.
    Spread { flight: u32, unread: bool },
    /// The other side, which probed the window that this one had shut: more of its message was to come.
    Shut { window: u32 },
    /// A timer, into a window smaller than a segment.
    Silly { window: u32 },
    /// The ACK of an earlier small segment.
    Nagle {
        /// Payload of that segment.
        first: u32,
        /// Bytes in flight before that ACK.
        flight: u32,
        /// How late its ACK was, and whether that counts as delayed.
        delay: Nanos,
        delayed: bool,
        /// How long after that ACK could have let it go it left, microseconds.
        late_us: u32,
        /// It left at once with the ACK.
        prompt: bool,
    },
    /// Nothing that can be seen: the application wrote.
    Pause(Pause),
    /// Nothing any more: what had held the segment was gone, and it left later than its kernel would send it.
    Freed,
    /// What was before it in a queue of its own host: its sender had built it before that passed (rule 95).
    Standing {
        /// How long it stood there at the least.
        under_way: Nanos,
    },
    /// The path, seen from afar: it had left before the segment before it passed (rule 96).
    OnItsWay {
        /// For so long beyond the quickest at the least.
        under_way: Nanos,
        /// It came as far behind that as that behind the one before.
        even: bool,
    },
    /// As `Pause`, with the timing of a cork's timer.
    CorkTimer {
        /// Since the last ACK.
        wait: Nanos,
    },
    /// The end of a cork or of `MSG_MORE`, or their timer, as its kernel says.
    Cork {
        /// Since it had been written.
        wait: Nanos,
    },
    /// Room in the send buffer, as its kernel says.
    SendBuffer,
    /// Its application, which had not read yet what the other side had sent, as its kernel says.
    Unread,
    /// The other side had spoken last.
    Turn {
        /// How long the last of what the other side had sent was still on its way; where another tap is
        /// there, how long it can have been.
        on_the_way: Nanos,
        /// How much of the wait went by before its ACK can have been due, seen from afar.
        unheard: Nanos,
        /// Whether it hides a loss.
        doubt: Doubt,
        /// How long it took beside its sender, where another tap is there.
        seen: Option<Nanos>,
    },
    /// The same, of an answer before which the server had other requests: all but this first part of the wait
    /// (rule 104). So many bytes had been sent that it does not acknowledge.
    Behind { idle: Nanos, bytes: u32 },
    /// Who asked still waited for bytes of an answer that never came; full segments alone, where smaller ones
    /// passed (rule 106).
    NeverCame { whole: bool },
    /// It is a retransmission.
    Loss {
        repair: Repair,
        /// Not the first of its recovery: the trip that the data would have taken anyway was counted.
        again: bool,
    },
    /// New data as a tail loss probe, with so many bytes unacknowledged.
    NewProbe { outstanding: u32 },
    /// A retransmission whose original is missing from the numbering of the sender's packets.
    Missing { packets: u32 },
    /// It cannot be known: packets of this stretch are not in the capture.
    Blind,
    /// The end of the request, or the other side's work: whoever had asked closed its side only then (rule 144).
    Unended,
}

at_rest! {
    enum Wait {
        0 => Burst, 1 => Acked(value), 2 => Window { flight }, 3 => Closed { window, flight, unread },
        4 => Shut { window }, 5 => Silly { window },
        6 => Nagle { first, flight, delay, delayed, late_us, prompt }, 7 => Pause(value), 8 => Freed,
        9 => CorkTimer { wait }, 10 => Cork { wait }, 11 => SendBuffer, 12 => Unread,
        13 => Turn { on_the_way, unheard, doubt, seen }, 14 => Loss { repair, again },
        15 => NewProbe { outstanding }, 16 => Missing { packets }, 17 => Blind,
        18 => Standing { under_way }, 19 => OnItsWay { under_way, even }, 20 => Behind { idle, bytes },
        21 => Spread { flight, unread }, 22 => NeverCame { whole }, 23 => Unended,
        24 => Repeated { flight },
    }
}

impl Wait {
    /// For an answer of which nothing is doubtful.
    pub(crate) const ANSWER: Wait =
        Wait::Turn { on_the_way: Nanos::ZERO, unheard: Nanos::ZERO, doubt: Doubt::None, seen: None };
}

/// Of a segment that an ACK released.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Acked {
    /// Bytes in flight before the release, and when the segment before had left (beside the sender).
    pub(crate) flight: u32,
    pub(crate) peak: u32,
    /// Room that was left in the peer's window; `None` where the ACK is not known.
    pub(crate) room: Option<u32>,
    /// How late the ACK was.
    pub(crate) delay: Nanos,
    /// How long after that ACK could have let it go the segment left, microseconds; the least of several.
    pub(crate) late_us: u32,
    /// The sender's last round trip before it.
    pub(crate) rtt: Option<Nanos>,
    /// As much had been in flight before, where no loss or idle time has made the congestion window smaller since.
    pub(crate) flown: u32,
    /// The partial end of a write, with which a stack of the classic rule of Nagle waits.
    pub(crate) tail: bool,
    /// ACKs for more than a third of the flight came and released nothing, before the one that did.
    pub(crate) drained: bool,
    /// As of [`Wait::Closed`].
    pub(crate) unread: Option<Nanos>,
}

at_rest! { Acked { flight, peak, room, delay, late_us, rtt, flown, tail, drained, unread } }

impl Acked {
    /// Both waits are one.
    pub(crate) fn join(&mut self, next: &Acked) {
        self.drained |= next.drained;
        self.unread = self.unread.max(next.unread);
        self.rtt = self.rtt.max(next.rtt);
        self.flight = self.flight.max(next.flight);
        self.peak = self.peak.max(next.peak);
        self.flown = self.flown.min(next.flown);
        self.tail = false;
        self.delay = self.delay.max(next.delay);
        self.late_us = self.late_us.min(next.late_us);
    }
}

/// Of a segment that nothing in sight released.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Pause {
    /// Bytes unacknowledged during it.
    pub(crate) outstanding: u32,
    /// Bytes in flight when an ACK may have woken up the writer, a moment before; else 0.
    pub(crate) flight: u32,
    /// Full segments before and after it: no write ended there.
    pub(crate) full: bool,
    /// It may have been built before the one before it passed, as far as its time stamp tells.
    pub(crate) stood: bool,
    /// What it waited for had been written before it began, as its kernel says: another thing held it.
    pub(crate) there: bool,
    /// Whoever reads what it sends had left some of it in each window that was offered lately (rule 21).
    pub(crate) unread: bool,
    /// A full segment had left before it that need not have ended a write, and that nothing was held behind (rule 149).
    pub(crate) goes_on: bool,
}

impl Pause {
    /// All that was there had left: it ended with what was written next.
    pub(crate) fn was_written(&mut self) {
        self.goes_on = false;
    }

    /// Both waits are one.
    pub(crate) fn join(&mut self, next: &Pause) {
        self.full &= next.full;
        self.stood &= next.stood;
        self.unread &= next.unread;
        self.goes_on &= next.goes_on;
        self.flight = self.flight.max(next.flight);
    }
}

at_rest! { Pause { outstanding, flight, full, stood, there, unread, goes_on } }

/// Whether a response that came late may have been lost once before it passed the tap, which looks the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// It was not: the tap is beside its sender, no timer fires that soon, or no packet is missing from its count.
    None,
    /// There was time for it.
    Possible,
    /// It came when a timer would have sent it again.
    Timed,
    /// It begins in pieces much smaller than a segment, after such a time (rule 71).
    Pieces,
    /// As many packets before it never passed the tap (and there was time).
    Missing(u16),
}

at_rest! { enum Doubt { 0 => None, 1 => Possible, 2 => Timed, 3 => Pieces, 4 => Missing(value) } }
