//! Exchanges that are too large for all of their replays: the beginning is replayed, and what comes after it
//! goes on as that did at last.

use super::spent::Spent;
use tcpwhy_base::{Nanos, Step, Turn};
use tcpwhy_model::{Outcome, Story};

/// Exchanges before and after the one in question that are replayed with it.
const AROUND: usize = 8;
/// What goes on is measured from the middle of what is replayed, where it no longer starts, to a sixteenth
/// before its end, where nothing waits for a last packet yet.
const FROM: (u64, u64) = (1, 2);
const TO: (u64, u64) = (15, 16);

/// How much of a connection is replayed.
#[derive(Clone, Copy)]
pub(super) struct Size {
    /// Exchanges before and after the one in question.
    pub(super) around: usize,
    /// The most bytes of its larger message.
    pub(super) most: Option<u64>,
}

impl Size {
    pub(super) const WHOLE: Size = Size { around: AROUND, most: None };
    /// The exchange alone.
    pub(super) const ONE: Size = Size { around: 0, most: None };

    /// The beginning of the exchange.
    pub(super) fn of(most: u64) -> Size {
        Size { around: 0, most: Some(most) }
    }
}

/// The end of a message that is not replayed.
#[derive(Clone, Debug)]
pub(super) struct Rest {
    /// Who sends it: 0 the client.
    pub(super) end: usize,
    /// What that end has sent before the message.
    pub(super) from: u64,
    /// Bytes of the message that are replayed, and of all of it.
    kept: u64,
    whole: u64,
}

/// Leaves the first `most` bytes of a turn's larger message; nothing where that has hardly more.
pub(super) fn cut(turn: &mut Turn, most: u64) -> Option<Rest> {
    let sizes = [&turn.request, &turn.response].map(|m| Turn::bytes(m));
    let end = usize::from(sizes[1] > sizes[0]);
    let whole = sizes[end];
    if whole / 2 <= most {
        return None;
    }
    let message = if end == 0 { &mut turn.request } else { &mut turn.response };
    let mut left = most;
    message.retain_mut(|step| {
        let goes_on = left > 0;
        if let Step::Write(bytes) = step {
            *bytes = left.min(*bytes);
            left -= *bytes;
        }
        goes_on
    });
    Some(Rest { end, from: 0, kept: most, whole })
}

impl Rest {
    /// What is assumed.
    pub(super) fn said(&self) -> String {
        let [kept, whole] = [self.kept, self.whole].map(|bytes| bytes as f64 / 1e6);
        format!(
            "Of its {whole:.1} MB the first {kept:.1} are replayed; the rest goes on as the second half of these does."
        )
    }

    /// Adds its time to that of what was replayed. None if that did not come so far.
    pub(super) fn goes_on(&self, outcome: &Outcome, stories: &[Story], spent: &mut Spent) -> Option<()> {
        let part = |(n, of)| self.kept / of * n;
        let (from, to) = (part(FROM), part(TO));
        let (start, end) = (self.acknowledged(outcome, from)?, self.acknowledged(outcome, to)?);
        let times = |t: Nanos| {
            Nanos(
                (i128::from(t.0) * i128::from(self.whole - self.kept) / i128::from((to - from).max(1)))
                    as i64,
            )
        };
        let spans = stories.iter().flat_map(|s| s.exchanges.iter().flat_map(|x| &x.spans));
        for span in spans {
            let within = span.end.min(end) - span.start.max(start);
            if within > Nanos::ZERO {
                spent.add(span.cause, span.side, times(within));
            }
        }
        spent.time += times(end - start);
        Some(())
    }

    /// When so many bytes of the message had come, in order.
    fn acknowledged(&self, outcome: &Outcome, bytes: u64) -> Option<Nanos> {
        // The SYN has number 0, the first byte 1.
        let ack = self.from + bytes + 1;
        let has = |p: &&tcpwhy_model::Passage| {
            usize::from(p.packet.from) != self.end && p.packet.has_ack && p.packet.ack >= ack
        };
        outcome.passages.iter().find(has).map(|p| p.sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(request: &[u64], response: &[u64]) -> Turn {
        let steps = |of: &[u64]| {
            let pause = Step::Pause(Nanos::millis(1));
            of.iter().flat_map(|&n| [Step::Write(n), pause]).collect::<Vec<_>>()
        };
        Turn { before: Nanos::ZERO, request: steps(request), think: Nanos::ZERO, response: steps(response) }
    }

    fn writes(steps: &[Step]) -> Vec<u64> {
        steps.iter().filter_map(|s| if let Step::Write(n) = s { Some(*n) } else { None }).collect()
    }

    #[test]
    fn the_beginning_of_the_larger_message_stays() {
        let mut t = turn(&[100], &[400, 400, 400]);
        let rest = cut(&mut t, 500).expect("cut");
        assert_eq!((rest.end, rest.kept, rest.whole), (1, 500, 1200));
        assert_eq!((writes(&t.request), writes(&t.response)), (vec![100], vec![400, 100]));
        // The pause behind the last write that stays is none of its own.
        assert!(matches!(t.response.as_slice(), [Step::Write(400), Step::Pause(_), Step::Write(100)]));
        let mut up = turn(&[1000], &[100]);
        assert_eq!(cut(&mut up, 400).map(|r| (r.end, r.kept, r.whole)), Some((0, 400, 1000)));
        assert_eq!(writes(&up.request), [400]);
    }

    #[test]
    fn what_is_hardly_larger_stays_whole() {
        let mut t = turn(&[100], &[1001]);
        assert!(cut(&mut t, 500).is_none());
        assert_eq!(writes(&t.response), [1001]);
        assert!(cut(&mut turn(&[100], &[1002]), 500).is_some());
    }
}
