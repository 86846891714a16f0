//! Connections in which nothing happens lie idle as bytes.

use super::{Analyzer, Slot};
use tcpwhy_base::{Nanos, Segment};

/// So many may be awake, as quiet as they are: a quarter of a gigabyte, at eight kilobytes each.
const AWAKE: usize = 32_768;
/// So many packets pass before the next connection is looked at. (Not derived: the look takes a hundredth of
/// their time, and a round is over after eight packets for each connection.)
const PACE: i64 = 8;
/// Nothing passed for the time after which an end that knows nothing of the way would have sent again (RFC 6298, 2.1).
const QUIET: Nanos = Nanos::secs(1);
/// To be written and read costs a state as much as two dozen packets: the hand waits for so many if one goes
/// on, so that what goes on costs a twentieth of the time at most.
const WOKEN: i64 = 512;
/// It waits for no more than these, whatever went on. (Not derived: some seconds of a busy link.)
const LONGEST: i64 = 1 << 22;
/// What is looked at so much later is on its way from memory.
const AHEAD: usize = 8;

/// Goes over all connections again and again: one that was not heard of since it came by goes to rest.
#[derive(Debug)]
pub(super) struct Hand {
    at: usize,
    /// Packets that have passed and were not spent on looks.
    passed: i64,
    /// So many may be awake; how many packets pass between two looks, and how long it is quiet before one lies idle.
    awake: usize,
    pace: i64,
    quiet: Nanos,
    /// Each goes to rest after each packet.
    always: bool,
}

impl Default for Hand {
    fn default() -> Hand {
        Hand { at: 0, passed: 0, awake: AWAKE, pace: PACE, quiet: QUIET, always: false }
    }
}

impl Hand {
    pub(super) fn rests_always(&mut self) {
        self.always = true;
    }

    pub(super) fn rests_soon(&mut self) {
        (self.awake, self.pace, self.quiet) = (0, 1, Nanos::ZERO);
    }
}

impl Analyzer {
    /// These have passed: connections that were quiet while many did go to rest.
    #[inline]
    pub(super) fn look_for_quiet(&mut self, passed: &[Segment]) {
        if self.hand.always {
            return self.rest_all();
        }
        let woken = self.room.woken();
        match passed.last() {
            Some(last) if self.held.saturating_sub(self.room.resting()) > self.hand.awake => {
                self.look_on(passed.len() as i64 - woken * WOKEN, last.time);
            }
            // What is not needed is neither saved up nor owed.
            _ => self.hand.passed = 0,
        }
    }

    fn look_on(&mut self, passed: i64, now: Nanos) {
        self.hand.passed = (self.hand.passed + passed).max(-LONGEST);
        while self.hand.passed >= self.hand.pace {
            self.hand.passed -= self.hand.pace;
            self.look_at_next(now);
        }
    }

    fn look_at_next(&mut self, now: Nanos) {
        let at = if self.hand.at < self.live.len() { self.hand.at } else { 0 };
        self.hand.at = at + 1;
        if let Some(Slot::Conn(held)) = self.live.get(at + AHEAD) {
            held.fetch_first();
        }
        if let Some(Slot::Conn(held)) = self.live.get_mut(at)
            && held.was_quiet(now - self.hand.quiet)
        {
            held.rest(&mut self.kept, &mut self.room);
        }
    }

    #[cold]
    fn rest_all(&mut self) {
        for slot in &mut self.live {
            if let Slot::Conn(held) = slot {
                held.rest(&mut self.kept, &mut self.room);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Detail};
    use tcpwhy_base::{Endpoint, Seq, TcpFlags};

    const CONNECTIONS: usize = 40;

    /// A byte each way, so often, by the millisecond; the first packet is a SYN.
    fn talk(n: usize, since: Nanos, packets: u32) -> Vec<Segment> {
        let end = |last: usize, port| Endpoint { ip: [192, 0, 2, last as u8].into(), port };
        let ends = [end(1, 40_000 + n as u16), end(2, 80)];
        let packet = |i: u32| {
            let (from, to) = (i as usize % 2, (i as usize + 1) % 2);
            let syn = if i < 2 { TcpFlags::SYN } else { TcpFlags::PSH };
            Segment {
                time: since + Nanos::millis(i.into()),
                frame: u64::from(i) + 1,
                src: ends[from],
                dst: ends[to],
                seq: Seq(i / 2),
                ack: Seq(i.div_ceil(2)),
                flags: TcpFlags(syn | if i == 0 { 0 } else { TcpFlags::ACK }),
                len: u32::from(i > 1),
                window: 1_000,
                ..Segment::EMPTY
            }
        };
        (0..packets).map(packet).collect()
    }

    fn awake(n: usize) -> Analyzer {
        let mut analyzer = Analyzer::new(Config { detail: Detail::All }).crowded_from(0);
        analyzer.hand.awake = n;
        analyzer
    }

    /// All have said something; then one of them speaks for so many packets more, so much later. How many lie idle.
    fn after(analyzer: &mut Analyzer, later: Nanos, packets: u32) -> usize {
        let first: Vec<_> = (0..CONNECTIONS).flat_map(|n| talk(n, Nanos::secs(1), 40)).collect();
        let more = talk(0, Nanos::secs(1) + later, packets);
        first.iter().chain(more.iter().skip(40)).for_each(|segment| analyzer.push(segment));
        analyzer.room.resting()
    }

    #[test]
    fn those_that_are_quiet_for_long_lie_idle_and_are_told_alike() {
        let rounds = 2 * CONNECTIONS as u32 * PACE as u32 + 50;
        // Not before a second has passed, as often as the hand came by; all but the one that speaks, or as
        // many as are more than may be awake.
        assert_eq!(after(&mut awake(0), Nanos::ZERO, 940), 0);
        assert_eq!(after(&mut awake(0), Nanos::secs(2), rounds), CONNECTIONS - 1);
        assert_eq!(after(&mut awake(30), Nanos::secs(2), rounds), CONNECTIONS - 30);
        assert_eq!(after(&mut awake(CONNECTIONS), Nanos::secs(2), rounds), 0);
        let mut resting = awake(0);
        assert_eq!(after(&mut resting, Nanos::secs(2), rounds), CONNECTIONS - 1);
        let mut never = awake(usize::MAX);
        assert_eq!(after(&mut never, Nanos::secs(2), rounds), 0);
        // Half of them go on.
        for analyzer in [&mut resting, &mut never] {
            (0..CONNECTIONS / 2)
                .flat_map(|n| talk(n, Nanos::secs(9), 1_000).into_iter().skip(40))
                .for_each(|segment| analyzer.push(&segment));
        }
        assert!(resting.room.resting() < CONNECTIONS - 1);
        assert_eq!(format!("{:?}", resting.finish()), format!("{:?}", never.finish()));
    }

    /// What goes on costs time: the hand waits for it.
    #[test]
    fn the_hand_waits_where_many_go_on() {
        let mut analyzer = awake(0);
        let rounds = 2 * CONNECTIONS as u32 * PACE as u32 + 50;
        after(&mut analyzer, Nanos::secs(2), rounds);
        for n in 1..CONNECTIONS {
            // What acknowledges blocks does not wait.
            let mut segment = talk(n, Nanos::secs(9), 41)[40];
            segment.options.sack_len = 1;
            analyzer.push(&segment);
        }
        assert!(analyzer.hand.passed < -WOKEN * 10, "{}", analyzer.hand.passed);
        // Not where none need go to rest any more.
        analyzer.hand.awake = CONNECTIONS;
        analyzer.push(&talk(0, Nanos::secs(12), 120)[119]);
        assert_eq!(analyzer.hand.passed, 0);
    }

    /// One that has closed is read again before long; one that ends as it lies idle goes on no more, and
    /// nobody waits for that.
    #[test]
    fn what_ends_is_neither_put_to_rest_nor_waited_for() {
        let reset = |n| Segment { flags: TcpFlags(TcpFlags::RST), ..talk(n, Nanos::secs(2), 1)[0] };
        let rounds = 2 * CONNECTIONS as u32 * PACE as u32 + 50;
        let mut analyzer = awake(0);
        for n in 1..CONNECTIONS {
            talk(n, Nanos::secs(1), 40).iter().chain([&reset(n)]).for_each(|segment| analyzer.push(segment));
        }
        talk(0, Nanos::secs(4), rounds).iter().for_each(|segment| analyzer.push(segment));
        assert_eq!(analyzer.room.resting(), 0);

        let mut analyzer = awake(0);
        assert_eq!(after(&mut analyzer, Nanos::secs(2), rounds), CONNECTIONS - 1);
        analyzer.end_live();
        assert_eq!((analyzer.room.resting(), analyzer.room.woken()), (0, 0));
    }
}
