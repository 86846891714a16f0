//! The rules of release, a row for each: what was known when a segment passed, and what must have released it.
mod probes;
mod queue;
mod small_window;
use super::*;
use crate::profile::Profile;
use crate::track::{
    Ack, Acks, Arrival, Arrived, Before, Flow, Last, Numbering, PathView, Rate, Recovery, Repair, Repeat,
    Since,
};
use tcpwhy_base::{End, Nanos, Segment, Seq, Source, TcpFlags, Timer};

/// When the segment before passed.
const START: Nanos = Nanos::secs(100);
const MSS: u32 = 1_000;
/// What was sent before, and acknowledged.
const NXT: Seq = Seq(50_000);

/// A segment of the client, 20 ms from the server, whose tap it passes; all before it was acknowledged.
#[derive(Clone)]
struct Row {
    segment: Segment,
    waited: Nanos,
    arrival: Arrival,
    before: Before,
    missing: u16,
    speaker: End,
    message: Nanos,
    flow: Flow,
    acks: Acks,
    path: PathView,
    largest_window: Option<u32>,
    one_sided: bool,
    habits: Habits,
    witness: Option<Witness>,
    profile: Profile,
}

fn ms(n: i64) -> Nanos {
    Nanos::millis(n)
}

/// So long after the segment before, so many bytes.
fn row(waited: Nanos, len: u32) -> Row {
    let last = Last {
        time: START,
        len: MSS,
        end: NXT,
        psh: false,
        whole: false,
        skipped: 0,
        una: NXT - 4 * MSS,
        stamp: None,
    };
    let flow = Flow {
        seen: true,
        acked: true,
        base: Seq(1),
        nxt: NXT + len,
        una: NXT,
        edge: NXT + 60_000,
        edge_known: true,
        window: 60_000,
        mss: MSS,
        small_end: Seq(1),
        last: Some(last),
        ..Flow::default()
    };
    Row {
        segment: Segment { seq: NXT, len, frame: 9, ..Segment::EMPTY },
        waited,
        arrival: Arrival::New,
        before: Before { nxt: NXT, small_end: Seq(1) },
        missing: 0,
        speaker: End::Client,
        message: START - Nanos::secs(1),
        flow,
        acks: Acks::default(),
        path: PathView { rtt: ms(20), reaction: Some(Nanos(1_000)), peer_reaction: Some(ms(20)) },
        largest_window: Some(60_000),
        one_sided: false,
        habits: Habits::default(),
        witness: None,
        profile: Profile::LINUX,
    }
}

impl Row {
    fn with(mut self, change: impl FnOnce(&mut Row)) -> Row {
        change(&mut self);
        self
    }

    /// An ACK of everything came so long after the segment before, when `flight` bytes were in flight.
    fn acked(self, after: Nanos, flight: u32) -> Row {
        self.with(|r| {
            let mut ack = Ack::new(START + after, 7, true, false, Some(ms(20)));
            (ack.una_before, ack.ack) = (NXT - flight, NXT);
            (ack.edge_before, ack.edge) = (NXT + 30_000, NXT + 60_000);
            ack.window_before = 30_000;
            r.acks.push(ack, Nanos::ZERO);
        })
    }

    /// An ACK of all but the last segment came so long after the segment before.
    fn acked_in_part(self, after: Nanos) -> Row {
        self.acked(after, 4 * MSS).with(|r| {
            let mut ack = *r.acks.newest_first().next().unwrap();
            ack.ack = NXT - MSS;
            (r.acks, r.flow.una) = (Acks::default(), ack.ack);
            r.acks.push(ack, Nanos::ZERO);
        })
    }

    fn passage<R>(&self, then: impl FnOnce(&Passage<'_>) -> R) -> R {
        let since = Since { time: START, speaker: self.speaker, message: self.message, recovered: None };
        then(&Passage {
            segment: &self.segment,
            time: START + self.waited,
            sender: End::Client,
            arrived: Arrived {
                arrival: self.arrival,
                new: self.segment.len,
                repeat: Repeat::Open,
                before: self.before,
            },
            missing: self.missing,
            since,
            flow: &self.flow,
            peer: &Flow::default(),
            acks: &self.acks,
            peer_acks: &Acks::default(),
            profile: &self.profile,
            path: self.path,
            largest_window: self.largest_window,
            one_sided: self.one_sided,
            capture_drops: false,
            rate: None,
            departed: &Rate::default(),
            tick: Nanos::ZERO,
        })
    }

    fn release(&self) -> Release {
        self.passage(|p| release(p, &self.habits, self.witness.as_ref()))
    }

    #[track_caller]
    fn is(&self, expected: Wait) {
        assert_eq!(self.release().wait, expected);
    }

    fn far(self) -> Row {
        self.with(|r| {
            r.path = PathView { reaction: Some(ms(20)), peer_reaction: Some(Nanos(1_000)), ..r.path }
        })
    }
}

fn pause(outstanding: u32, full: bool) -> Wait {
    Wait::Pause(Pause { outstanding, full, goes_on: outstanding > 0, ..Pause::default() })
}

#[test]
fn less_than_a_64th_of_a_round_trip_is_no_wait() {
    row(ms(20).part(64), MSS).is(Wait::Burst);
    row(ms(20).part(64) + Nanos(1), MSS).is(pause(0, true));
}

#[test]
fn one_direction_alone_tells_nothing() {
    row(ms(5), MSS).with(|r| r.one_sided = true).is(Wait::Blind);
    row(ms(5), MSS).with(|r| r.flow.edge_known = false).is(Wait::Blind);
}

#[test]
fn an_ack_one_reaction_before_released_it() {
    let Wait::Acked(acked) = row(ms(20), MSS).acked(ms(20), 4 * MSS).release().wait else { panic!() };
    assert_eq!((acked.flight, acked.room), (4 * MSS, Some(30_000)));
    assert_eq!(row(ms(20), MSS).acked(ms(20), 4 * MSS).release().ack.map(|f| f.get()), Some(7));
    // Three milliseconds later the writer was.
    row(ms(23), MSS).acked(ms(10), 4 * MSS).is(pause(0, true));
    // With nothing in flight there was nothing to wait for.
    row(ms(20), MSS).acked(ms(20), 0).is(pause(0, false));
}

#[test]
fn a_small_segment_waits_for_the_ack_of_a_small_one() {
    let held = row(ms(60), 100).acked(ms(60), 10).with(|r| r.before.small_end = NXT);
    held.is(Wait::Nagle {
        first: MSS,
        flight: 10,
        delay: Nanos::ZERO,
        delayed: false,
        late_us: 0,
        prompt: true,
    });
    // An ACK that comes 40 ms after the fastest is delayed.
    let late = row(ms(60), 100).with(|r| {
        r.before.small_end = NXT;
        let mut ack = Ack::new(START + ms(60), 7, true, false, Some(ms(60)));
        (ack.una_before, ack.ack, ack.edge_before, ack.edge) = (NXT - 10, NXT, NXT + 9_000, NXT + 9_000);
        r.acks.push(ack, Nanos::ZERO);
    });
    late.is(Wait::Nagle { first: MSS, flight: 10, delay: ms(40), delayed: true, late_us: 0, prompt: true });
    // A full one waits for no such thing.
    let all = |r: &mut Row| r.flow.last = r.flow.last.map(|l| Last { una: NXT - MSS, ..l });
    let full = row(ms(60), MSS).acked(ms(60), MSS).with(|r| r.before.small_end = NXT).with(all);
    assert!(matches!(full.release().wait, Wait::Acked(_)));
    // With room for it since ACKs for more than a third of the flight came, it had not been written (rule
    // 20), unless the ACK was late.
    let last = |una: u32, late: i64| {
        row(ms(60 + late), MSS).acked(ms(60 + late), MSS).with(|r| {
            r.flow.last = r.flow.last.map(|l| Last { una: NXT - una, ..l });
            let mut ack = Ack::new(START + ms(60 + late), 7, true, false, Some(ms(20 + late)));
            (ack.una_before, ack.ack, ack.edge_before, ack.edge) = (NXT - MSS, NXT, NXT + 9_000, NXT + 9_000);
            r.acks = Acks::default();
            r.acks.push(ack, Nanos::ZERO);
        })
    };
    last(3 * MSS + 1, 0).is(pause(0, false));
    last(3 * MSS + 1, 8).is(pause(0, false));
    assert!(matches!(last(3 * MSS + 1, 9).release().wait, Wait::Acked(_)));
    assert!(matches!(last(3 * MSS, 0).release().wait, Wait::Acked(_)));
}

#[test]
fn a_window_that_was_full_opened() {
    let opened = |before: u32, ack_bytes: u32, change: fn(&mut Row)| {
        let row = row(ms(20), MSS).with(|r| {
            let mut ack = Ack::new(START + ms(20), 7, true, false, Some(ms(20)));
            (ack.una_before, ack.ack) = (NXT - 4 * MSS, NXT - 4 * MSS + ack_bytes);
            (ack.edge_before, ack.edge, ack.window_before) = (NXT, NXT + 40_000, before);
            r.acks.push(ack, Nanos::ZERO);
        });
        row.with(change).release().wait
    };
    assert_eq!(opened(4 * MSS, MSS, |_| ()), Wait::Window { flight: 4 * MSS });
    // An update that acknowledges nothing, from a window that had no room: the reader made some.
    assert_eq!(opened(0, 0, |_| ()), Wait::Closed { window: 0, flight: 4 * MSS, unread: None });
    // A window that never held a segment.
    assert_eq!(opened(500, MSS, |r| r.largest_window = Some(MSS - 1)), Wait::Silly { window: 500 });
}

#[test]
fn a_cork_gives_up_after_its_timer() {
    // Never sooner than 200 ms and the round trip, but for what packets jitter.
    row(ms(216), 400).is(pause(0, false));
    row(ms(220), 400).is(Wait::CorkTimer { wait: ms(220) });
    // Another time is no timer, once one is known.
    let mut known = row(ms(220), 400);
    let release = known.release();
    let mut habits = Habits::default();
    known.passage(|p| habits.learn(p, &release));
    assert_eq!(habits.cork_timers(), 0, "once is chance");
    known = row(ms(249), 400).with(|r| r.habits = habits);
    known.is(pause(0, false));
}

#[test]
fn the_other_side_had_spoken() {
    let turn = |waited| row(waited, MSS).with(|r| r.speaker = End::Server);
    let doubt = |row: Row| match row.release().wait {
        Wait::Turn { doubt, .. } => doubt,
        other => panic!("{other:?}"),
    };
    assert_eq!(doubt(turn(ms(500))), Doubt::None);
    // Away from it, the response may have been lost once: the timer takes 220 ms.
    assert_eq!(doubt(turn(ms(100)).far()), Doubt::None);
    assert_eq!(doubt(turn(ms(240)).far()), Doubt::Timed);
    assert_eq!(doubt(turn(ms(400)).far()), Doubt::Possible);
    // Twice, the second time for twice as long; three losses of one segment are no likelier then than at other times.
    assert_eq!(doubt(turn(ms(680)).far()), Doubt::Timed);
    assert_eq!(doubt(turn(ms(1_560)).far()), Doubt::Possible);
    assert_eq!(doubt(turn(ms(400)).far().with(|r| r.flow.numbering = Numbering::steady())), Doubt::None);
    assert_eq!(doubt(turn(ms(400)).far().with(|r| r.missing = 1)), Doubt::Missing(1));
    // It was lost before an ACK that passed since.
    let skipped = |r: &mut Row| r.flow.last = r.flow.last.map(|l| Last { skipped: 1, ..l });
    assert_eq!(doubt(turn(ms(400)).far().with(skipped)), Doubt::Missing(1));
}

#[test]
fn data_that_had_passed_repairs_a_loss() {
    let again = |waited: i64, change: fn(&mut Row)| {
        let row = row(ms(waited), MSS).with(|r| {
            r.arrival = Arrival::Retransmission;
            r.segment.seq = NXT - MSS;
            r.flow.nxt = NXT;
            r.flow.una = NXT - MSS;
        });
        row.with(change).release()
    };
    let loss = |repair| Wait::Loss { repair, again: false };
    // The last segment: a probe, as long as the timeout can not have come.
    assert_eq!(again(230, |_| ()).wait, loss(Repair::Probe));
    assert_eq!(again(400, |_| ()).wait, loss(Repair::Timeout));
    assert_eq!(again(230, |r| r.before.nxt = NXT + MSS).wait, loss(Repair::Timeout));
    // The oldest byte left, or the last ACK came, a round trip before the silence was the loss's (rule 47).
    let silent = |row: &mut Row| row.flow.flight_start = Some(START - ms(100));
    let late = again(400, silent);
    let wait = Wait::Loss { repair: Repair::Timeout, again: true };
    assert_eq!((late.wait, late.loss), (wait, Some((Repair::Timeout, START - ms(80)))));
    assert_eq!(again(230, silent).loss, None, "a probe");
    let newer = again(400, |r| {
        r.flow.flight_start = Some(START - ms(100));
        r.flow.una = NXT - 2 * MSS;
    });
    assert_eq!(newer.loss, None, "another byte is older");
    let acked = again(400, |r| {
        r.flow.flight_start = Some(START - ms(100));
        r.flow.last_advance = Some(START - ms(20));
    });
    assert_eq!(acked.loss, None, "the silence begins with the wait itself");
    // SACKs had come: a fast repair, since the first of them.
    let fast = again(40, |r| (r.flow.signed, r.flow.has_hole) = (START + ms(25), true));
    assert_eq!((fast.wait, fast.loss), (loss(Repair::Fast), Some((Repair::Fast, START + ms(25)))));
    // One goes on.
    let recovery = |r: &mut Row| {
        let range = (NXT - MSS, NXT);
        r.flow.recovery = Some(Box::new(Recovery::new(Repair::Probe, NXT, START, range, ms(220))));
    };
    assert_eq!(again(40, recovery).wait, Wait::Loss { repair: Repair::Probe, again: true });
    assert_eq!(again(400, recovery).wait, Wait::Loss { repair: Repair::Timeout, again: true });
}

#[test]
fn a_hole_filled_late_was_a_loss_before_the_tap() {
    let opened = START - ms(30);
    let filled = |waited| row(ms(waited), MSS).with(|r| r.arrival = Arrival::Repaired { opened }).release();
    assert_eq!(filled(174).loss, Some((Repair::Fast, opened)));
    assert_eq!(filled(175).wait, Wait::Loss { repair: Repair::Timeout, again: false });
}

#[test]
fn far_from_its_sender_a_run_of_full_segments_goes_on() {
    // An ACK came to its sender in the wait, but not just before it.
    let run = row(ms(19), MSS).far().acked_in_part(ms(-9));
    let Wait::Acked(acked) = run.release().wait else { panic!() };
    assert_eq!(acked.room, None);
    // Within the first round trip of a message no ACK of it can have come.
    run.with(|r| r.message = START).is(Wait::Acked(acked));
    row(ms(17), MSS).far().with(|r| r.message = START).is(Wait::Burst);
}

#[test]
fn deciding_learns_nothing_and_learning_counts_once() {
    let held = row(ms(60), 100).acked(ms(60), 10).with(|r| r.before.small_end = NXT);
    let mut habits = Habits::default();
    for holds in 0..3 {
        assert_eq!(habits.nagle_holds(), holds);
        let release = held.passage(|p| release(p, &habits, None));
        held.passage(|p| habits.learn(p, &release));
    }
    // Two small segments in a burst: Nagle is off, and holds nothing from then on.
    let pair = row(Nanos(1), 100).with(|r| {
        r.before.small_end = NXT;
        r.flow.una = NXT - 10;
    });
    let burst = pair.release();
    pair.passage(|p| habits.learn(p, &burst));
    assert_eq!(habits.nodelay_shown(End::Client), 1);
    held.with(|r| r.habits = habits).is(pause(0, false));
}

/// An ACK of two segments is not delayed: what it is late by, the next one is late by as well; and no ACK is
/// delayed by more than lies between it and the one before (rule 4).
#[test]
fn an_ack_behind_a_queue_is_not_delayed() {
    let delayed = |first: i64, before: Nanos| {
        let mut held = row(ms(20), 100).with(|r| r.before.small_end = NXT);
        for (at, delay, from, to) in [(first, before, 10 + 2 * MSS, 10), (20, ms(60), 10, 0)] {
            let mut ack = Ack::new(START + ms(at), 6, true, false, Some(delay));
            (ack.una_before, ack.ack, ack.edge, ack.edge_before) =
                (NXT - from, NXT - to, NXT + 9_000, NXT + 9_000);
            held.acks.push(ack, Nanos::ZERO);
        }
        matches!(held.release().wait, Wait::Nagle { delayed: true, .. })
    };
    assert_eq!([ms(51), ms(52)].map(|before| delayed(5, before)), [true, false]);
    assert_eq!([11, 12].map(|first| delayed(first, ms(51))), [true, false]);
}

/// Less than a segment in flight, and less than the smallest buffer: no limit (rule 68).
#[test]
fn no_limit_is_smaller_than_a_segment() {
    let left = |flight: u32, mss: u32| {
        let one = row(ms(20), 100).acked(ms(20), flight).with(|r| {
            r.flow.mss = mss;
            r.flow.last = r.flow.last.map(|l| Last { una: NXT - flight, ..l });
        });
        matches!(one.release().wait, Wait::Acked(_))
    };
    assert_eq!([MSS - 1, MSS].map(|flight| left(flight, MSS)), [false, true]);
    assert_eq!([2_047, 2_048].map(|flight| left(flight, 60_000)), [false, true]);
}

/// Beside it an ACK of the last 100 µs and the reaction is taken for the one that let a segment go: in a wait
/// of no more than that any would be (rule 65).
#[test]
fn a_hold_is_told_from_chance_by_its_length() {
    let near = |waited: i64| {
        let waited = Nanos::micros(waited);
        row(waited, 100).acked(waited, 10).with(|r| {
            r.before.small_end = NXT;
            let (own, peer) = (Nanos::micros(20), Nanos::micros(20));
            r.path = PathView { rtt: own + peer, reaction: Some(own), peer_reaction: Some(peer) };
            r.acks = Acks::default();
            let mut ack = Ack::new(START + waited - own, 7, true, false, Some(peer));
            (ack.una_before, ack.ack, ack.edge_before, ack.edge) = (NXT - 10, NXT, NXT + 9_000, NXT + 9_000);
            r.acks.push(ack, Nanos::ZERO);
        })
    };
    near(120).is(pause(0, false));
    assert!(matches!(near(121).release().wait, Wait::Nagle { .. }));
    // A host that is known to hold its writes holds short ones, too.
    let holds = near(121).release();
    let mut known = Habits::default();
    for _ in 0..2 {
        near(121).passage(|p| known.learn(p, &holds));
    }
    assert!(matches!(near(120).with(|r| r.habits = known).release().wait, Wait::Nagle { .. }));
}

/// What flew before the tail of a write: until the ACK, or a round trip and a quarter where no ACK is seen (rule 54).
#[test]
fn what_flew_before_a_tail_is_learnt() {
    let tail = |waited| {
        row(waited, 100).with(|r| {
            r.profile = Profile::UNKNOWN;
            r.segment.flags = TcpFlags(TcpFlags::ACK | TcpFlags::PSH);
        })
    };
    let learnt = |row: &Row, wait| {
        let (mut habits, release) = (Habits::default(), Release { wait, ..row.release() });
        row.passage(|p| {
            habits.learn(p, &release);
            (0..9_000).rev().find(|&flight| habits.holds_tails(p, flight))
        })
    };
    let acked = |flight| Wait::Acked(Acked { flight, ..Acked::default() });
    assert_eq!(learnt(&tail(ms(20)), acked(6_000)), Some(6_000));
    assert_eq!(learnt(&tail(ms(25)), pause(0, false)), Some(4_000), "three segments and what was sent last");
    assert_eq!(learnt(&tail(ms(25) + Nanos(1)), pause(0, false)), Some(0));
    assert_eq!(learnt(&tail(ms(25)), Wait::Freed), Some(0), "nothing is learnt from what says nothing");
}

#[test]
fn a_witness_overrides_what_was_inferred() {
    let told = |row: Row, witness: Witness| {
        let release = row.with(|r| r.witness = Some(witness)).release();
        (release.wait, release.source, release.written)
    };
    let held = || row(ms(60), 100).acked(ms(60), 10).with(|r| r.before.small_end = NXT);
    let nagle = held().release().wait;
    let at = |n| Some(START + ms(n));
    let written = |written| Witness { written, ..Witness::default() };
    // Written just then, in the midst of the wait, and before it.
    assert_eq!(told(held(), written(at(59))), (pause(0, false), Source::Kernel, None));
    assert_eq!(told(held(), written(at(58))), (nagle, Source::Kernel, at(58)));
    assert_eq!(told(held(), written(at(-5))), (nagle, Source::Kernel, None));
    assert_eq!(told(held(), Witness::default()), (nagle, Source::Inferred, None));
    assert_eq!(told(held(), Witness { nodelay: Some(true), ..written(at(30)) }).1, Source::Inferred);
    // It left later than the ACK that it was held until, by an inference a pause: with TCP_NODELAY known to
    // be off, Nagle.
    let late = || row(ms(60), 100).acked(ms(40), 10).with(|r| r.before.small_end = NXT);
    let off = Witness { nodelay: Some(false), ..written(at(10)) };
    let wait = Wait::Nagle {
        first: MSS,
        flight: 10,
        delay: Nanos::ZERO,
        delayed: false,
        late_us: 19_999,
        prompt: false,
    };
    assert_eq!(told(late(), off), (wait, Source::Kernel, at(10)));
    assert_eq!(told(late(), written(at(10))), (pause(0, false), Source::Inferred, None), "it may be on");
    // It waited for room in the buffer.
    let room = Witness { room: Some((START + ms(1), START + ms(60))), ..Witness::default() };
    assert_eq!(told(held(), room).0, Wait::SendBuffer);
    // A timer is known by its name.
    let again = row(ms(400), MSS).with(|r| r.arrival = Arrival::Retransmission);
    let timer = Witness { timer: Some((Timer::Probe, START + ms(400))), ..Witness::default() };
    assert_eq!(told(again, timer).0, Wait::Loss { repair: Repair::Probe, again: false });
    // Far from its host it is not believed.
    assert_eq!(told(row(ms(60), 100).far(), written(at(59))).1, Source::Inferred);
}
