//! Steps: the stretches between the data segments of an exchange, each with what ended it.
//!
//! A step is made when a data segment passes, from what is known at that moment; which cause it becomes is decided
//! when the exchange ends and the flights after it are known (`attribute`).

use crate::half::Repair;
use tcpwhy_base::Nanos;

/// What released the segment that ended a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Nothing to wait for: the segment followed the one before at once.
    Burst,
    /// An ACK; which limit it lifted shows in the flights.
    Acked,
    /// An ACK that moved the right edge of a window that was full.
    Window,
    /// A window update after the window had been closed to less than a segment.
    Closed,
    /// A timer, into a window smaller than a segment.
    Silly,
    /// The ACK of an earlier small segment.
    Nagle { delayed: bool },
    /// Nothing that can be seen: the application wrote.
    Pause,
    /// As `Pause`, with the timing of a cork's timer.
    CorkTimer,
    /// The other side had spoken last.
    Turn,
    /// A retransmission.
    Loss(Repair),
    /// New data as a tail loss probe.
    NewProbe,
    /// A repeat whose original is missing from the numbering of the sender's packets.
    Missing,
    /// It cannot be known: packets of this stretch are not in the capture.
    Blind,
}

/// Whether an answer that came late may have been lost once before it passed the tap, which looks the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// It was not: the tap is beside its sender, no timer fires that soon, or no packet is missing from its count.
    None,
    /// There was time for it.
    Possible,
    /// It came when a timer would have sent it again.
    Timed,
    /// As many packets before it never passed the tap (and there was time).
    Missing(u16),
}

/// What is known of the congestion window during a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CwndState {
    Growing,
    /// Below its value before an idle time.
    Restarted,
    /// Below its value before a loss.
    AfterLoss,
}

/// A stretch of an exchange between two of its data segments (or several such, of one kind, within a round trip).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) start: Nanos,
    pub(crate) end: Nanos,
    pub(crate) wait: Wait,
    /// Who sent the segment that ended it: 0 client, 1 server.
    pub(crate) sender: u8,
    pub(crate) cwnd: CwndState,
    /// Time within that was no wait at all.
    pub(crate) burst: Nanos,
    /// Payload that passed during it, and how many waits it holds.
    pub(crate) bytes: u32,
    pub(crate) releases: u32,
    /// Bytes in flight before the release, and when the segment before had left (beside the sender).
    pub(crate) flight: u32,
    pub(crate) peak: u32,
    /// Delay of the ACK that released it; of a turn, until the last of what the other side had sent was acknowledged.
    pub(crate) ack_delay: Nanos,
    /// A loss was being repaired until then.
    pub(crate) loss: Option<(Repair, Nanos)>,
    /// The pause is long enough to end a one-way transfer.
    pub(crate) split: bool,
    /// The sender's last round trip before it, zero where not measured.
    pub(crate) rtt: Nanos,
    /// Full segments before and after it: no write ended there.
    pub(crate) full: bool,
    /// ACKs for more than a third of the flight came and released nothing, before the one that did.
    pub(crate) drained: bool,
    /// Most of the receiver's buffer was full when the ACK that released it was sent.
    pub(crate) unread: bool,
    /// Of a turn: whether it hides a loss.
    pub(crate) doubt: Doubt,
    /// Payload of the segment that ended it, and bytes that were outstanding or room in the window.
    pub(crate) len: u32,
    pub(crate) note: u32,
    /// The segment before, the ACK, the segment that ended it.
    pub(crate) frames: [u64; 3],
}

impl Step {
    /// How long.
    pub(crate) fn duration(&self) -> Nanos {
        self.end - self.start
    }

    /// Takes `next` into this step if both are waits of the same kind within one round trip.
    pub(crate) fn absorb(&mut self, next: &Step, rtt: Nanos) -> bool {
        if next.sender != self.sender || next.split || self.end != next.start {
            return false;
        }
        let flows = matches!(self.wait, Wait::Acked | Wait::Window | Wait::Burst);
        let same = match next.wait {
            Wait::Burst => {
                (flows || self.wait == Wait::Pause && next.duration() == Nanos::ZERO)
                    && self.loss == next.loss
            }
            Wait::Acked | Wait::Window => {
                next.wait == self.wait
                    && next.cwnd == self.cwnd
                    && next.loss.is_some() == self.loss.is_some()
                    && next.end - self.start <= rtt
            }
            // An application that writes little by little: one step per round trip or millisecond.
            Wait::Pause => {
                self.wait == Wait::Pause
                    && self.loss.is_none()
                    && next.loss.is_none()
                    && next.end - self.start <= rtt.max(Nanos::millis(1))
            }
            _ => false,
        };
        if !same {
            return false;
        }
        if next.wait == Wait::Burst {
            self.burst += next.duration();
        } else {
            self.releases += next.releases;
            self.full &= next.full;
            self.drained |= next.drained;
            self.unread |= next.unread;
            self.rtt = self.rtt.max(next.rtt);
            self.flight = self.flight.max(next.flight);
            self.peak = self.peak.max(next.peak);
            self.burst += next.burst;
            self.ack_delay = self.ack_delay.max(next.ack_delay);
            if self.frames[1] == 0 {
                self.frames[1] = next.frames[1];
            }
        }
        if let (Some(mine), Some(theirs)) = (self.loss.as_mut(), next.loss) {
            mine.1 = theirs.1;
        }
        self.end = next.end;
        self.bytes = self.bytes.saturating_add(next.bytes);
        self.frames[2] = self.frames[2].max(next.frames[2]);
        true
    }
}
