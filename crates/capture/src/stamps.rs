//! Time stamps that nobody can believe: one packet's, far from those before and behind it.

use tcpwhy_base::Nanos;

/// Twice as long as any capture program holds packets of one interface back while it writes those of another
/// (tcpdump waits a second for a block of them to fill): what lies farther out was not stamped by the clock
/// of its neighbours.
pub(crate) const FAR: Nanos = Nanos::secs(2);
/// Those behind may be out of order by so much among themselves, as long as a block waits.
const MIXED: Nanos = Nanos::secs(1);
/// Where only one neighbour can be asked, at the beginning and the end: no capture waits so long for its next packet.
const SILENT: Nanos = Nanos::secs(30 * 86_400);
/// So many packets behind one are asked, of which most must agree.
pub(crate) const ASKED: usize = 3;

/// The time of a packet that was stamped `time`, if that cannot be: `before` is that of the packet before it,
/// `behind` those of some behind it.
pub(crate) fn mended(before: Option<Nanos>, time: Nanos, behind: &[Nanos]) -> Option<Nanos> {
    let apart = |a: Nanos, b: Nanos| Nanos(a.0.abs_diff(b.0).min(i64::MAX as u64) as i64);
    let ahead_of = |t: Nanos| time.0.saturating_sub(t.0) > FAR.0;
    let goes_on = |t: Nanos, from: Nanos| t.0.saturating_add(MIXED.0) >= from.0;
    let Some(before) = before else {
        // The first: the second and the third are the neighbours.
        let [second, third, ..] = *behind else { return None };
        let in_order = goes_on(third, second) && apart(third, second) < SILENT;
        let out = ahead_of(second) && ahead_of(third) || apart(time, second) > SILENT;
        return (in_order && out).then_some(second);
    };
    let Some(&next) = behind.first() else {
        return (apart(time, before) > SILENT).then_some(before);
    };
    let ahead = ahead_of(before);
    if !ahead && before.0.saturating_sub(time.0) <= FAR.0 {
        return None;
    }
    // Where it lies ahead, those behind it are back; where it lies behind, they go on as if it had not been.
    let without_it = |t: Nanos| goes_on(t, before) && (!ahead || !goes_on(t, time));
    let agree = behind.iter().filter(|&&t| without_it(t)).count();
    (without_it(next) && (!ahead || ahead_of(next)) && 2 * agree > behind.len()).then_some(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(before: i64, time: i64, behind: &[i64]) -> Option<i64> {
        let behind: Vec<Nanos> = behind.iter().copied().map(Nanos::millis).collect();
        mended(Some(Nanos::millis(before)), Nanos::millis(time), &behind).map(|t| t.0 / 1_000_000)
    }

    fn first(time: i64, behind: &[i64]) -> Option<i64> {
        let behind: Vec<Nanos> = behind.iter().copied().map(Nanos::millis).collect();
        mended(None, Nanos::millis(time), &behind).map(|t| t.0 / 1_000_000)
    }

    const DAYS_30: i64 = 30 * 86_400 * 1_000;

    #[test]
    fn one_ahead_of_those_before_and_behind() {
        assert_eq!(of(5_000, 7_001, &[5_000]), Some(5_000));
        assert_eq!(of(5_000, 7_000, &[5_000]), None);
        // Its neighbours are farther apart themselves: a clock that was set.
        assert_eq!(of(5_000, 9_000, &[4_000]), Some(5_000));
        assert_eq!(of(5_000, 9_000, &[3_999]), None);
        // A pause, and the packets after it.
        assert_eq!(of(5_000, 9_000, &[9_001, 9_002]), None);
        assert_eq!(of(5_000, 9_000, &[6_999]), Some(5_000));
        assert_eq!(of(5_000, 9_000, &[7_000]), None);
    }

    #[test]
    fn one_behind_those_before_and_behind() {
        assert_eq!(of(5_000, 2_999, &[4_000]), Some(5_000));
        assert_eq!(of(5_000, 3_000, &[4_000]), None);
        // The clock was set back.
        assert_eq!(of(5_000, 2_999, &[3_000, 3_001]), None);
    }

    #[test]
    fn a_pause_before_a_stamp_that_is_wrong_itself() {
        assert_eq!(of(5_000, 9_000, &[5_001, 9_002, 9_003]), None);
        assert_eq!(of(5_000, 9_000, &[5_001, 5_002, 9_003]), Some(5_000));
        assert_eq!(of(5_000, 9_000, &[5_001, 9_002]), None);
    }

    #[test]
    fn the_first_and_the_last() {
        assert_eq!(of(5_000, 5_000 + DAYS_30, &[]), None);
        assert_eq!(of(5_000, 5_001 + DAYS_30, &[]), Some(5_000));
        assert_eq!(first(9_000, &[5_000, 5_001]), Some(5_000));
        assert_eq!(first(7_000, &[5_000, 5_001]), None);
        assert_eq!(first(9_000, &[5_000]), None);
        assert_eq!(first(9_000, &[5_000, 9_001]), None);
        // One that was stamped zero, long before the others.
        assert_eq!(first(0, &[DAYS_30 + 1, DAYS_30 + 2]), Some(DAYS_30 + 1));
        assert_eq!(first(0, &[DAYS_30, DAYS_30 + 1]), None);
        assert_eq!(first(0, &[DAYS_30 + 1, 3 * DAYS_30]), None);
    }

    #[test]
    fn the_ends_of_time() {
        let ends = [Nanos(i64::MIN), Nanos::ZERO, Nanos::MAX];
        for (a, b) in ends.iter().flat_map(|a| ends.iter().map(move |b| (*a, *b))) {
            for c in ends {
                mended(Some(a), b, &[c, c]);
                mended(None, b, &[a, c]);
            }
        }
    }
}
