//! What left with a timer, or with an ACK that acknowledges nothing (rules 147 and 148).

use super::*;

#[test]
fn packets_missing_by_their_numbers_were_lost_before_the_tap() {
    let of = |missing: u16, waited: i64| row(ms(waited), MSS).far().with(|r| r.missing = missing);
    let other = |r: &mut Row| r.profile = Profile::UNKNOWN;
    let is_missing = |r: Row| matches!(r.release().wait, Wait::Missing { .. });
    of(1, 220).is(Wait::Missing { packets: 1 });
    of(1, 220).with(other).is(Wait::Missing { packets: 1 });
    assert!(!is_missing(of(1, 200).with(other)));
    // Routes, variances and other stacks have longer timers.
    of(1, 2_000).is(Wait::Missing { packets: 1 });
    // Linux probes the tail of several segments after two round trips of 20 ms, an eighth less: the ACK of
    // others, which makes it wait for 200 ms more, never came.
    let unheard = |missing: u16, waited: i64| {
        of(missing, waited).acked(ms(1), 2 * MSS).with(|r| {
            let mut ack = *r.acks.newest_first().next().unwrap();
            ack.stamp = Some(200);
            r.acks = Acks::default();
            r.acks.push(ack, Nanos::ZERO);
            r.segment.options.timestamps = Some((1, 199));
        })
    };
    assert!(!is_missing(of(1, 35)) && !is_missing(unheard(1, 34)));
    unheard(1, 35).is(Wait::Missing { packets: 1 });
    // Two copies take their timers; and what the hole before it lacks is no copy of it.
    assert!(!is_missing(unheard(2, 35)));
    let behind = |missing: u16| unheard(missing, 35).with(|r| r.segment.seq = NXT + MSS);
    assert!(!is_missing(behind(1)));
    behind(2).is(Wait::Missing { packets: 1 });
}

/// Two segments were in flight, and nobody acknowledged them: what leaves with the timer of a probe is one.
#[test]
fn a_probe_carries_new_data_where_there_is_some() {
    let of = |waited: i64, segments: u32| row(ms(waited), MSS).with(|r| r.flow.una = NXT - segments * MSS);
    let outstanding = |r: Row| match r.release().wait {
        Wait::NewProbe { outstanding } => Some(outstanding),
        _ => None,
    };
    // Two round trips of 20 ms, an eighth less; with two jiffies and a tick of 10 ms, an eighth more.
    assert_eq!([34, 35, 78, 79].map(|n| outstanding(of(n, 2))), [None, Some(2 * MSS), Some(2 * MSS), None]);
    // One alone may wait for a delayed ACK, and other stacks have other timers.
    assert_eq!(outstanding(of(40, 1)), None);
    assert_eq!(outstanding(of(40, 2).with(|r| r.profile = Profile::UNKNOWN)), None);
    // An ACK came meanwhile: the timer begins anew.
    let answered = |waited: i64| of(waited, 2).acked(ms(10), 4 * MSS).with(|r| r.flow.una = NXT - 2 * MSS);
    assert_eq!([45, 46].map(|n| outstanding(answered(n))), [None, Some(2 * MSS)]);
}

/// Away from the sender the ACK passed, and what left with the timer echoes an older stamp.
#[test]
fn an_ack_that_never_came_let_nothing_go() {
    let of = |echo: u32, at: i64| {
        row(ms(45), MSS).far().acked(ms(at), 2 * MSS).with(|r| {
            let mut ack = *r.acks.newest_first().next().unwrap();
            ack.stamp = Some(200);
            r.acks = Acks::default();
            r.acks.push(ack, Nanos::ZERO);
            r.segment.options.timestamps = Some((1, echo));
        })
    };
    of(199, 5).is(Wait::NewProbe { outstanding: 2 * MSS });
    assert!(!matches!(of(200, 5).release().wait, Wait::NewProbe { .. }));
    // It may still have been on its way, by the jitter of a trip (a sixteenth of the wait) and a tick.
    assert!(matches!(of(199, 21).release().wait, Wait::NewProbe { .. }));
    assert!(!matches!(of(199, 22).release().wait, Wait::NewProbe { .. }));
}

/// A duplicate ACK says that a segment has left the path.
#[test]
fn a_duplicate_ack_lets_the_next_one_go() {
    let of = |first: i64, us: u32| {
        row(ms(20), MSS).with(|r| {
            (r.flow.una, r.flow.signed, r.flow.signs_us) = (NXT - 3 * MSS, START + ms(first), us);
        })
    };
    let let_go = Wait::Repeated { flight: 3 * MSS };
    of(20, 0).is(let_go);
    of(18, 0).is(pause(3 * MSS, true));
    // The last of several; far away, one between the first and the last.
    of(5, 15_000).is(let_go);
    of(5, 13_000).is(pause(3 * MSS, true));
    of(-15, 30_000).far().is(let_go);
    // It had let go what left before.
    of(-5, 0).is(pause(3 * MSS, true));
    // What closed the hole had not come to the sender by then; nobody knows of an ACK that had.
    let closed = |at: i64| of(-15, 14_000).far().acked(ms(at), 3 * MSS).with(|r| r.flow.una = NXT);
    closed(5).is(let_go);
    assert!(!matches!(closed(-5).release().wait, Wait::Repeated { .. }));
}
