//! How often somebody asked a program to end.

use std::time::{Duration, Instant};

/// One request may come as several signals: `timeout` sends one to the program and one to its group, a
/// terminal that goes hangs up its shell and its session.
const ONE: Duration = Duration::from_secs(1);

/// Requests to end, told apart from the signals they come as.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked(Option<(Instant, Instant)>);

impl Asked {
    /// There was one.
    pub const fn any(&self) -> bool {
        self.0.is_some()
    }

    /// Takes a signal into account; says whether it repeats a request, no later than `within` after the last
    /// one, rather than being the first or part of it.
    pub fn again(&mut self, now: Instant, within: Duration) -> bool {
        let known = self.0.filter(|(_, last)| now.saturating_duration_since(*last) < within);
        let first = known.map_or(now, |(first, _)| first);
        self.0 = Some((first, now));
        now.saturating_duration_since(first) >= ONE
    }
}

#[cfg(test)]
mod tests {
    use super::Asked;
    use std::time::{Duration, Instant};

    /// For each signal, at milliseconds, whether it was one more request.
    fn all(at: &[u64], within: Duration) -> Vec<bool> {
        let (start, mut asked) = (Instant::now(), Asked::default());
        at.iter().map(|&ms| asked.again(start + Duration::from_millis(ms), within)).collect()
    }

    #[test]
    fn signals_of_one_request_are_one() {
        assert!(!Asked::default().any());
        assert_eq!(all(&[0, 1, 999], Duration::MAX), [false, false, false]);
        assert_eq!(all(&[0, 20, 1000], Duration::MAX), [false, false, true]);
        assert_eq!(all(&[0, 3_600_000], Duration::MAX), [false, true]);
    }

    #[test]
    fn what_comes_long_after_it_is_a_first_one() {
        let three = Duration::from_secs(3);
        assert_eq!(all(&[0, 2999], three), [false, true]);
        assert_eq!(all(&[0, 3000, 3001, 4000], three), [false, false, false, true]);
        assert_eq!(all(&[0, 500, 3400], three), [false, false, true], "counted from the last");
    }
}
