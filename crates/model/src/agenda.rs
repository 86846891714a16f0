//! What is to happen, in order of time; what was put there first comes first at the same time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use tcpwhy_base::Nanos;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// The packet of this passage, at this end.
    Arrive {
        passage: u32,
        to: u8,
    },
    Timer {
        conn: u32,
        side: u8,
    },
    App {
        conn: u32,
        side: u8,
    },
    Connect {
        process: u32,
    },
    Accept,
}

/// When, and the how manieth that was put here.
type Place = (Nanos, u64);

/// Events to come.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    put: u64,
    /// Arrivals at each end that come after all that were put here before: nearly all of them, as packets
    /// seldom overtake each other.
    arrivals: [VecDeque<(Place, u32)>; 2],
    others: BinaryHeap<Reverse<(Place, Event)>>,
}

impl Agenda {
    /// Puts an event behind what is there for that time.
    pub(crate) fn put(&mut self, time: Nanos, event: Event) {
        self.put += 1;
        let place = (time, self.put);
        if let Event::Arrive { passage, to } = event
            && let Some(queue) = self.arrivals.get_mut(usize::from(to))
            && queue.back().is_none_or(|last| last.0 < place)
        {
            queue.push_back((place, passage));
        } else {
            self.others.push(Reverse((place, event)));
        }
    }

    /// The next one.
    pub(crate) fn next(&mut self) -> Option<(Nanos, Event)> {
        let [a, b] = [0, 1].map(|to| self.arrivals[to].front().map_or(LAST, |first| first.0));
        let other = self.others.peek().map_or(LAST, |Reverse((place, _))| *place);
        if other < a.min(b) {
            return self.others.pop().map(|Reverse(((time, _), event))| (time, event));
        }
        let to = usize::from(b < a);
        let ((time, _), passage) = self.arrivals[to].pop_front()?;
        Some((time, Event::Arrive { passage, to: to as u8 }))
    }
}

/// After everything.
const LAST: Place = (Nanos::MAX, u64::MAX);

#[cfg(test)]
mod tests {
    use super::*;
    use tcpwhy_base::Random;

    /// Whatever is put there, and whenever: it comes by its time, and what was put there first comes first.
    #[test]
    fn in_order_of_time_and_then_as_put() {
        let mut random = Random(7);
        for _ in 0..200 {
            let (mut agenda, mut put, mut taken) = (Agenda::default(), Vec::new(), Vec::new());
            let mut now = Nanos::ZERO;
            for n in 0..60 {
                let time = now + Nanos(random.below(5) as i64);
                let event = match random.below(4) {
                    0 => Event::Timer { conn: n, side: 0 },
                    1 => Event::Accept,
                    to => Event::Arrive { passage: n, to: to as u8 - 2 },
                };
                agenda.put(time, event);
                put.push((time, event));
                if random.below(3) == 0 {
                    let next = agenda.next().expect("one was put");
                    now = next.0;
                    taken.push(next);
                }
            }
            while let Some(next) = agenda.next() {
                taken.push(next);
            }
            // Nothing is put before the last that was taken, so that all of it is one order.
            put.sort_by_key(|p| p.0);
            assert_eq!(taken, put);
        }
    }
}
