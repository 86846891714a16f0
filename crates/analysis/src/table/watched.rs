//! From when to when captures were watched: who was open when its capture ended, and waited, waited until then.

use tcpwhy_base::{Nanos, Watched};

/// A capture that goes on in another file has a packet by then. (Not derived: between two files of a ring that
/// are written without a pause nothing is missed; between two captures of one tap everything is.)
const GOES_ON: Nanos = Nanos::secs(1);

/// Stretches of time in which all that passed is known.
#[derive(Debug, Default)]
pub(super) struct Stretches {
    /// Of captures whose connections are their own, by their index and the order of time.
    apart: Vec<(u16, Nanos, Nanos)>,
    /// Of the others, in the order of time.
    one_by_one: Vec<(Nanos, Nanos)>,
}

impl Stretches {
    pub(super) fn add(&mut self, watched: &Watched) {
        let Watched { file, apart, from, to } = *watched;
        if apart {
            self.apart.push((file, from, to));
        } else {
            match self.one_by_one.last_mut() {
                Some(last) if from <= last.1 + GOES_ON => last.1 = last.1.max(to),
                _ => self.one_by_one.push((from, to)),
            }
        }
    }

    /// Where no capture has said when it ended: with the last of all segments.
    pub(super) fn or_all(&mut self, span: Option<(Nanos, Nanos)>) {
        if self.apart.is_empty() && self.one_by_one.is_empty() {
            self.one_by_one.extend(span);
        }
    }

    /// Until when the tap was watched beyond `last`, the last packet of a connection that began in this capture.
    pub(super) fn until(&self, file: u16, last: Nanos) -> Nanos {
        // Captures behind the last number share it.
        if file == u16::MAX {
            return last;
        }
        let own = self.apart.partition_point(|apart| (apart.0, apart.1) <= (file, last)).checked_sub(1);
        let own = own.and_then(|at| self.apart.get(at)).filter(|apart| apart.0 == file).map(|apart| apart.2);
        let within = self.one_by_one.partition_point(|stretch| stretch.0 <= last).checked_sub(1);
        let of_all = || Some(self.one_by_one.get(within?)?.1);
        let end = own.or_else(of_all);
        end.map_or(last, |end| end.max(last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_one_stretch_and_captures_of_their_own_are_none_of_it() {
        let mut all = Stretches::default();
        let at = |ms: i64| Nanos::millis(ms);
        let add = |all: &mut Stretches, file, apart, from, to| {
            all.add(&Watched { file, apart, from: at(from), to: at(to) });
        };
        add(&mut all, 0, false, 0, 100);
        add(&mut all, 1, false, 1_100, 2_000);
        add(&mut all, 2, true, 50, 9_000);
        add(&mut all, 2, true, 9_500, 9_900);
        add(&mut all, 3, false, 3_001, 4_000);
        let until = |file, last| all.until(file, at(last));
        assert_eq!((until(0, 70), until(0, 1_200), until(1, 1_200)), (at(2_000), at(2_000), at(2_000)));
        assert_eq!((until(2, 70), until(2, 9_600)), (at(9_000), at(9_900)));
        assert_eq!((until(0, 3_500), until(3, 3_001)), (at(4_000), at(4_000)));
        // What passed last is within.
        assert_eq!((until(3, 4_500), Stretches::default().until(0, at(7))), (at(4_500), at(7)));
        add(&mut all, u16::MAX, true, 0, 50_000);
        assert_eq!(all.until(u16::MAX, at(10)), at(10));
        all.or_all(Some((at(0), at(60_000))));
        assert_eq!(all.until(0, at(10)), at(2_000));
        let mut none = Stretches::default();
        none.or_all(Some((at(0), at(60_000))));
        assert_eq!(none.until(0, at(10)), at(60_000));
    }
}
