//! A stretch of time that alone is accounted for. Everything is followed, so that what came before is known;
//! parts that end are cut to the stretch before they are summed, and those outside are left out.

use crate::result::Span;
use tcpwhy_base::Nanos;

/// From a moment to another, since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its start.
    pub from: Nanos,
    /// Its end, not before the start.
    pub to: Nanos,
}

impl Window {
    /// What of the time from `start` to `end` lies within; none if nothing does. What took no time lies within at its
    /// moment.
    pub(crate) fn part(self, start: Nanos, end: Nanos) -> Option<(Nanos, Nanos)> {
        let (a, b) = (start.max(self.from), end.min(self.to));
        (a < b || a == b && start == end).then_some((a, b))
    }

    /// Leaves of the spans what lies within.
    pub(crate) fn cut(self, spans: &mut Vec<Span>) {
        spans.retain_mut(|span| {
            let part = self.part(span.start, span.end);
            if let Some((start, end)) = part {
                (span.start, span.end) = (start, end);
            }
            part.is_some()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_what_both_have() {
        let window = Window { from: Nanos(10), to: Nanos(20) };
        let part = |a, b| window.part(Nanos(a), Nanos(b)).map(|(a, b)| (a.0, b.0));
        assert_eq!(
            (part(0, 15), part(15, 30), part(0, 30)),
            (Some((10, 15)), Some((15, 20)), Some((10, 20)))
        );
        assert_eq!((part(0, 10), part(20, 30)), (None, None), "they only touch");
        assert_eq!((part(10, 10), part(20, 20), part(21, 21)), (Some((10, 10)), Some((20, 20)), None));
    }
}
