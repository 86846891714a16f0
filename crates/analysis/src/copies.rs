//! Which packets are copies of one that has just passed: a mirror port or a second interface shows packets twice.

use tcpwhy_base::{Nanos, Segment};

/// The last packets of one direction, by which copies are known.
///
/// Rule 29. Copies come within a millisecond and have the same IP identifier, which a retransmission has not on most stacks;
/// where there is none, only packets with payload (or SYN or FIN) within 100 µs count. No retransmission comes that soon:
/// timers start at 200 ms, others need a trip.
#[derive(Clone, Debug, Default)]
pub struct Copies {
    /// 40 bits of a hash, then when they passed, in µs modulo 2^24.
    recent: [u64; 8],
    at: u8,
}

impl Copies {
    /// Whether `segment` is one. `since_last`: how long ago the packet before it passed, in either direction.
    #[inline]
    pub fn is_copy(&mut self, segment: &Segment, since_last: Nanos) -> bool {
        const TIME: u64 = (1 << 24) - 1;
        let tsval = segment.options.timestamps.map_or(0, |t| t.0);
        let identified = segment.ip_id.is_some_and(|id| id != 0);
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for word in [
            u64::from(segment.seq.0) << 32 | u64::from(segment.ack.0),
            u64::from(segment.len) << 32 | u64::from(tsval),
            u64::from(segment.flags.0) << 48
                | u64::from(segment.window) << 32
                | u64::from(segment.ip_id.unwrap_or(0)) << 16
                | u64::from(segment.options.sack_len),
        ] {
            hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hash ^= hash >> 29;
        }
        let hash = hash | 1 << 24;
        let carries = segment.len > 0 || segment.flags.syn() || segment.flags.fin();
        // The file's own times: a merged file may hold the copy much later.
        let micros = (segment.time.0 / 1_000) as u64 & TIME;
        let known = self.recent.iter().any(|&c| {
            (c ^ hash) & !TIME == 0 && (micros.wrapping_sub(c) & TIME).wrapping_add(1_000) & TIME <= 2_000
        });
        if known && (identified || (carries && since_last <= Nanos::micros(100))) {
            return true;
        }
        self.recent[usize::from(self.at & 7)] = hash & !TIME | micros;
        self.at = self.at.wrapping_add(1);
        false
    }

    /// Reads what lies outside the first cache lines.
    #[inline]
    pub(crate) fn touch(&self) -> u64 {
        self.recent[0] ^ self.recent[7]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a second packet like the first, so many µs later, is a copy of it.
    fn again_after(micros: i64, change: impl Fn(&mut Segment)) -> bool {
        let mut segment = Segment { len: 100, ..Segment::EMPTY };
        change(&mut segment);
        let mut copies = Copies::default();
        assert!(!copies.is_copy(&segment, Nanos::ZERO));
        segment.time += Nanos::micros(micros);
        copies.is_copy(&segment, Nanos::micros(micros))
    }

    #[test]
    fn an_identifier_makes_copies_of_a_millisecond() {
        let identified = |s: &mut Segment| s.ip_id = Some(7);
        assert!(again_after(1_000, identified));
        assert!(!again_after(1_001, identified));
        assert!(again_after(900, |s| (s.ip_id, s.len) = (Some(7), 0)));
    }

    #[test]
    fn without_one_only_data_of_100_microseconds_counts() {
        assert!(again_after(100, |s| s.ip_id = None));
        assert!(again_after(100, |s| s.ip_id = Some(0)));
        assert!(!again_after(101, |s| s.ip_id = None));
        assert!(!again_after(100, |s| s.len = 0));
    }
}
