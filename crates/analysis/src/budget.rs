use crate::rest::at_rest;
use tcpwhy_base::{Cause, Class, Nanos};

/// Time by cause; causes without time are absent. Ascending by cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Budget(pub Vec<(Cause, Nanos)>);

at_rest! { Budget(value) }

impl Budget {
    /// Adds `time` to `cause`.
    #[inline]
    pub fn add(&mut self, cause: Cause, time: Nanos) {
        if time == Nanos::ZERO {
            return;
        }
        // There are few: to look at one after the other takes less than to halve them.
        match self.0.iter_mut().find(|e| e.0 == cause) {
            Some(e) => e.1 += time,
            None => self.begin(cause, time),
        }
    }

    /// A cause without time so far.
    #[cold]
    fn begin(&mut self, cause: Cause, time: Nanos) {
        let at = self.0.partition_point(|e| e.0 < cause);
        self.0.insert(at, (cause, time));
    }

    /// Takes `time` from `cause`.
    pub fn subtract(&mut self, cause: Cause, time: Nanos) {
        if let Ok(i) = self.0.binary_search_by_key(&cause, |e| e.0) {
            self.0[i].1 = self.0[i].1 - time;
            if self.0[i].1 == Nanos::ZERO {
                self.0.remove(i);
            }
        }
    }

    /// Time of `cause`.
    pub fn get(&self, cause: Cause) -> Nanos {
        self.0.binary_search_by_key(&cause, |e| e.0).map_or(Nanos::ZERO, |i| self.0[i].1)
    }

    /// Time of all causes of one class.
    pub fn of_class(&self, class: Class) -> Nanos {
        self.0.iter().filter(|e| e.0.class() == class).fold(Nanos::ZERO, |sum, e| sum + e.1)
    }

    /// The sum over all causes.
    pub fn total(&self) -> Nanos {
        self.0.iter().fold(Nanos::ZERO, |sum, e| sum + e.1)
    }

    /// Adds all of `other`.
    pub fn add_all(&mut self, other: &Budget) {
        // Both are in order: what comes next lies behind what came before, mostly near.
        let mut at = 0;
        for &(cause, time) in other.0.iter().filter(|e| e.1 != Nanos::ZERO) {
            while self.0.get(at).is_some_and(|e| e.0 < cause) {
                at += 1;
            }
            match self.0.get_mut(at) {
                Some(e) if e.0 == cause => e.1 += time,
                _ => self.0.insert(at, (cause, time)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_the_sum_of_its_causes() {
        let mut budget = Budget::default();
        for (cause, ms) in [(Cause::Nagle, 3), (Cause::PathDelay, 5), (Cause::DelayedAck, 4)] {
            budget.add(cause, Nanos::millis(ms));
        }
        assert_eq!(budget.of_class(Class::Tcp), Nanos::millis(7));
        assert_eq!(budget.of_class(Class::Inherent), Nanos::millis(5));
        assert_eq!(budget.of_class(Class::Unknown), Nanos::ZERO);
    }
}
