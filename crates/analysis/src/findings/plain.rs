//! Summing what nothing held up: of such parts there are many, and most figures of a span say nothing new of them.

use super::{Best, Doubt, EVIDENCE, Part, Rank, Rollup, Rollups, UNSURE, Where};
use crate::facts::Facts;
use crate::result::{Example, Frames};
use tcpwhy_base::{Cause, Class, Nanos, Side};

/// What of an exchange or a gap one cause took: in one piece or, as a trip does, in two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plain {
    pub(crate) cause: Cause,
    pub(crate) side: Option<Side>,
    /// When each piece began, and how long it was; of no time: there is none.
    pub(crate) pieces: [(Nanos, Nanos); 2],
    pub(crate) confidence: f32,
}

/// What shows it, made where it is a better example than those before.
pub(crate) type Shown = (Frames, Facts);

impl Plain {
    #[inline(always)]
    fn time(&self) -> Nanos {
        self.pieces[0].1 + self.pieces[1].1
    }

    /// Its pieces that take time.
    fn each(&self, shown: &Shown, mut add: impl FnMut(&Part<'_>)) {
        for (start, time) in self.pieces.into_iter().filter(|piece| piece.1 > Nanos::ZERO) {
            add(&Part {
                cause: self.cause,
                side: self.side,
                start,
                end: start + time,
                confidence: self.confidence,
                folded: 1,
                longest: time,
                frames: &shown.0,
                facts: &shown.1,
            });
        }
    }
}

impl Rollups {
    /// The same as [`Rollups::add_part`] of each piece; none lies after the last byte, nor is of a cause of
    /// TCP. `first` is the first frame that shows it.
    #[inline(always)]
    pub(crate) fn add_plain(&mut self, plain: &Plain, place: Where, first: u64, shown: impl Fn() -> Shown) {
        // Of what took no time there is often no sum to add it to: it is not looked for.
        if plain.time() <= Nanos::ZERO {
            return;
        }
        match self.0.iter_mut().find(|r| r.cause == plain.cause && r.side == plain.side) {
            Some(r) => r.add_plain(plain, place, first, shown),
            None => self.begin_plain(plain, place, &shown()),
        }
    }

    #[cold]
    fn begin_plain(&mut self, plain: &Plain, place: Where, shown: &Shown) {
        plain.each(shown, |part| self.add_part(part, place));
    }
}

impl Rollup {
    #[inline(always)]
    fn add_plain(&mut self, plain: &Plain, place: Where, first_frame: u64, shown: impl Fn() -> Shown) {
        let ([first, second], time) = (plain.pieces, plain.time());
        // The longer one, of equal ones the first; and the other, if there is one.
        let (longest, other) = if second.1 > first.1 { (second, first) } else { (first, second) };
        let (n, shortest) = if other.1 > Nanos::ZERO { (2, other.1) } else { (1, longest.1) };
        self.lost += time;
        self.doubt.add_time(time, plain.confidence, place.gap);
        if place.gap {
            self.idle += time;
        }
        if self.occurrences == 0 {
            (self.range.shortest, self.range.longest) = (shortest, longest.1);
        } else {
            self.range.shortest = self.range.shortest.min(shortest);
            self.range.longest = self.range.longest.max(longest.1);
        }
        self.occurrences += n;
        // Mostly it is no better example, which its length alone shows.
        let of_exchange = place.exchange > 0;
        if longest.1 >= self.example.time || of_exchange != (self.example.example.exchange > 0) {
            let order = (place.connection, first_frame);
            let rank = Rank { of_exchange, is_doubt: false, time: longest.1, order };
            if rank.is_better_than(&self.example.rank()) {
                self.shows(shown(), longest, place);
            }
        }
        if place.gap && self.evidence.len() < EVIDENCE && plain.cause.class() == Class::Application {
            for _ in 0..n {
                self.keep_evidence(&shown().0);
            }
        }
    }

    #[cold]
    fn shows(&mut self, (frames, facts): Shown, (start, time): (Nanos, Nanos), place: Where) {
        let (connection, exchange) = (place.connection, place.exchange);
        let example = Example { connection, exchange, frames, start, end: start + time };
        self.example = Best { example, time, facts };
    }

    /// Some frames that show it are kept.
    #[inline]
    pub(super) fn keep_evidence(&mut self, frames: &Frames) {
        let evidence = &mut self.evidence;
        if evidence.len() < EVIDENCE {
            if evidence.len() == evidence.capacity() {
                // Mostly there is one: room for that, then for half of them, then for all.
                evidence.reserve_exact(1 + evidence.len().min(EVIDENCE / 2 - 1));
            }
            evidence.push(*frames);
        }
    }
}

impl Doubt {
    /// Adds time that was judged so; in a gap nobody waited for it.
    #[inline]
    pub(super) fn add_time(&mut self, time: Nanos, confidence: f32, gap: bool) {
        let (percent, unsure) = match confidence {
            // What nearly all of them have, without a conversion.
            0.9 => (90, false),
            confidence => {
                let percent = percent_of(confidence);
                (percent, percent < UNSURE)
            }
        };
        if unsure && !gap {
            self.unsure += time;
        }
        self.weighed = self.weighed.saturating_add(time.0.saturating_mul(percent));
        self.time = self.time.saturating_add(time.0);
    }
}

/// Rounded: without a call, as it is never negative.
#[inline]
pub(super) fn percent_of(confidence: f32) -> i64 {
    (f64::from(confidence) * 100.0 + 0.5) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confidence::{Rule, Tap};

    /// A finding of nothing but such time is called likely.
    #[test]
    fn seven_tenths_are_no_guess() {
        let of = |confidence| {
            let mut doubt = Doubt::default();
            doubt.add_time(Nanos(10), confidence, false);
            doubt.unsure
        };
        assert_eq!((of(0.7), of(0.69)), (Nanos::ZERO, Nanos(10)));
    }

    /// Pieces that are added together give what each gives alone, in whatever order longer and shorter ones come.
    #[test]
    fn plain_parts_are_summed_as_others_are() {
        let sures =
            [Rule::RoundTrip, Rule::ThinkOfFortyMillis, Rule::ClosingGap].map(|rule| rule.at(Tap::Far));
        let causes = [(Cause::PathDelay, Side::Network), (Cause::ClientThink, Side::Client)];
        let times = [0, 5, 5, 3, 9, 1, 9, 0, 12].map(Nanos);
        let (mut plainly, mut one_by_one) = (Rollups::default(), Rollups::default());
        let mut count = 0;
        for (n, time) in times.iter().enumerate() {
            for second in [Nanos::ZERO, Nanos(5), *time] {
                for (cause, side) in causes {
                    for exchange in [0, 7] {
                        count += 1;
                        let frames = Frames::new(0, 500 - count, 600, &[500 - count, 600]);
                        let plain = Plain {
                            cause,
                            side: Some(side),
                            pieces: [(Nanos(1_000), *time), (Nanos(2_000), second)],
                            confidence: sures[n % sures.len()].confidence,
                        };
                        let shown = (frames, Facts::RoundTrip { rtt: *time });
                        let connection = 3 + (n % 2) as u32;
                        let place = Where { connection, exchange, gap: exchange == 0, tail: false };
                        plainly.add_plain(&plain, place, frames.first(), || shown);
                        plain.each(&shown, |part| one_by_one.add_part(part, place));
                        assert_eq!(format!("{plainly:?}"), format!("{one_by_one:?}"));
                    }
                }
            }
        }
    }
}
