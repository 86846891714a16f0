//! Requests that are sent before the answers to those before them (rule 104).

use crate::wire::{Tap, Wire, ms, us};
use tcpwhy_analysis::Connection;
use tcpwhy_base::{Cause, FixId, Nanos};

/// The hosts are so far apart, there and back.
const TRIP: Nanos = Nanos::millis(20);

/// A client that keeps `depth` requests out, asks each of the first `apart` later than the one before, and
/// asks again whenever an answer comes; a server that takes `work` for each, one after the other. Also how
/// long that worked.
struct Pipeline {
    depth: usize,
    apart: Nanos,
    requests: usize,
    work: fn(usize) -> Nanos,
    /// Writes of each request, and what each begins with.
    writes: usize,
    says: fn(usize) -> &'static [u8],
}

const PLAIN: Pipeline =
    Pipeline { depth: 4, apart: Nanos::ZERO, requests: 60, work: |_| ms(10), writes: 1, says: |_| b"" };

impl Pipeline {
    fn run(&self, tap: Tap) -> (Connection, Nanos) {
        let mut w = Wire::new(tap, TRIP);
        w.handshake();
        let way = TRIP.part(2);
        let mut due: Vec<Nanos> = (0..self.depth as i64).map(|n| ms(30) + self.apart.times(n)).collect();
        let (mut sent, mut answers, mut free) = (Vec::new(), Vec::new(), Nanos::ZERO);
        for n in 0..self.requests {
            let t = due[n];
            sent.push(t);
            free = free.max(t + way) + (self.work)(n);
            answers.push(free);
            due.push(free + way + us(100));
        }
        let mut events: Vec<(Nanos, Option<usize>)> =
            sent.iter().enumerate().map(|(n, &t)| (t, Some(n))).collect();
        events.extend(answers.iter().map(|&t| (t, None)));
        events.sort_unstable();
        for (t, asks) in events {
            let Some(n) = asks else {
                w.at(t).server().data(300);
                continue;
            };
            for _ in 0..self.writes {
                w.at(t).client().data(117).says((self.says)(n));
            }
        }
        w.at(free + ms(50)).client().fin();
        w.at(free + ms(60)).server().fin();
        w.at(free + ms(70)).client().ack();
        (w.connection(), (0..self.requests).map(self.work).fold(Nanos::ZERO, |all, one| all + one))
    }

    /// What the server is said to have worked, at the client, and what it did.
    fn work_at_client(&self) -> (Nanos, Nanos) {
        let (c, worked) = self.run(Tap::Client);
        (c.budget.get(Cause::ServerThink), worked)
    }
}

/// All the work but that before the client has shown that it asks ahead, and between the last answers, which
/// no request parts.
fn tells(p: &Pipeline, but: Nanos) {
    let (told, worked) = p.work_at_client();
    assert!(told <= worked + ms(1) && told >= worked - but, "{told} of {worked}");
}

#[test]
fn a_server_that_is_busy_all_the_time() {
    for depth in [3, 4, 6] {
        tells(&Pipeline { depth, ..PLAIN }, ms(90));
    }
    // A clock that is no divisor of the trip.
    tells(&Pipeline { work: |_| ms(7), depth: 5, ..PLAIN }, ms(70));
    let (c, _) = PLAIN.run(Tap::Client);
    let fixes = c.findings.iter().flat_map(|f| &f.fixes);
    assert!(fixes.clone().all(|fix| fix.fix != FixId::FewerRoundTrips), "{fixes:?}");
    let think = c.exchanges.iter().flat_map(|e| &e.spans).rfind(|s| s.cause == Cause::ServerThink).unwrap();
    let says = think.facts.to_string();
    assert!(says.contains("does not acknowledge its last"), "{says}");
}

#[test]
fn a_server_that_is_idle_now_and_then() {
    tells(&Pipeline { depth: 2, work: |_| ms(5), ..PLAIN }, ms(30));
    tells(&Pipeline { depth: 2, apart: ms(9), work: |_| ms(3), ..PLAIN }, ms(30));
    let uneven = |n: usize| ms([4, 13, 2, 9, 6][n % 5]);
    tells(&Pipeline { depth: 2, work: uneven, ..PLAIN }, ms(60));
}

/// Nothing but the way takes time, however many are out.
#[test]
fn a_server_that_answers_at_once() {
    for (depth, writes) in [(2, 1), (4, 1), (5, 1), (4, 2), (3, 3)] {
        let p = Pipeline { depth, apart: ms(3), work: |_| us(20), writes, ..PLAIN };
        let (told, _) = p.work_at_client();
        assert!(told < ms(5), "{depth} {writes}: {told}");
    }
}

/// One after the other is as before.
#[test]
fn who_waits_for_each_answer() {
    let (c, worked) = Pipeline { depth: 1, ..PLAIN }.run(Tap::Client);
    assert_eq!(c.budget.get(Cause::ServerThink), worked);
    // The first opens behind the answer to the one before.
    assert_eq!(c.budget.get(Cause::PathDelay), TRIP.times(60));
}

/// What lets an answer go on was no request: an update of a window.
#[test]
fn grants_are_no_requests() {
    const GRANT: [u8; 8] = [0, 0, 4, 8, 0, 0, 0, 0];
    let think = |says| {
        let (c, _) = Pipeline { says, ..PLAIN }.run(Tap::Client);
        c.budget.get(Cause::ServerThink)
    };
    // The first answer's, for which nothing had been sent before.
    assert_eq!(think(|_| &GRANT), ms(10));
    // Behind every second message, which is one, nothing is told of the server.
    let (half, all) = (think(|n| if n % 2 == 1 { &GRANT } else { b"" }), think(|_| b""));
    assert!(half > all.part(3) && half < all.part(3).times(2), "{half} {all}");
}

/// Beside the server its pauses between answers are its own, too.
fn beside_server(p: &Pipeline) -> [Nanos; 3] {
    let (c, worked) = p.run(Tap::Server);
    let (budget, gaps) = (&c.budget, &c.gap_budget);
    let told = budget.get(Cause::ServerThink) + budget.get(Cause::SenderPause);
    [told, worked, budget.get(Cause::PathDelay) + gaps.get(Cause::PathDelay)]
}

/// It works through what it has, whatever arrives meanwhile (rule 105).
#[test]
fn beside_a_server_that_has_others_before_it() {
    let uneven: fn(usize) -> Nanos = |n| ms([4, 23, 12, 9, 16][n % 5]);
    for work in [PLAIN.work, uneven] {
        for (depth, apart) in [2, 3, 4, 6].into_iter().flat_map(|depth| [(depth, ms(0)), (depth, ms(3))]) {
            let [told, worked, way] = beside_server(&Pipeline { depth, work, apart, ..PLAIN });
            let said = format!("{depth} {apart}: {told} of {worked}, way {way}");
            assert!(told <= worked + ms(1) && told >= worked.part(10).times(9), "{said}");
            // With two of them it has nothing to do half of the time.
            assert!(depth == 2 || way < ms(80), "{said}");
        }
        // Several writes make one request: how many it has is not known, and it is never said to work when it has none.
        for (depth, writes) in [(2, 2), (3, 2), (2, 3), (4, 3)] {
            let [told, worked, _] = beside_server(&Pipeline { depth, work, writes, apart: ms(3), ..PLAIN });
            assert!(told <= worked + ms(1), "{depth} {writes}: {told} of {worked}");
        }
    }
    for (depth, writes) in [(1, 1), (2, 1), (4, 1), (4, 2), (3, 3)] {
        let idle = Pipeline { depth, writes, apart: ms(3), work: |_| us(20), ..PLAIN };
        assert_eq!(beside_server(&idle)[0], Nanos::ZERO, "{depth} {writes}");
    }
}
