//! What was sent, and never came (rule 106).

use crate::wire::{Tap, Wire, ms};
use tcpwhy_analysis::Ended;
use tcpwhy_base::{Cause, Nanos, Tls};

const MSS: u32 = 1448;

fn opened() -> Wire {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    w
}

/// Beside the client all full segments of an answer are missing, though something behind them passed: they are too large for the path, and
/// neither the server is silent nor the client's close the end. Two timeouts of 220 ms, the second twice as long, must have passed: else it was on its way.
#[test]
fn what_never_comes_is_no_silence() {
    let hangs = |full_ones: i64, first: u32, until: i64, close: &dyn Fn(&mut Wire)| {
        let mut w = opened();
        w.at(ms(30)).client().data(100);
        (0..full_ones).for_each(|_| _ = w.at(ms(40)).server().data(MSS));
        (0..3).for_each(|_| _ = w.at(ms(41)).server().data(first).lost_before_tap());
        w.at(ms(41)).server().data(600);
        w.at(ms(51)).client().ack();
        w.at(ms(until));
        close(&mut w);
        let c = w.connection();
        let x = &c.exchanges[0];
        let last = x.spans.last().unwrap();
        (x.ended, last.cause, last.end - last.start, (last.confidence * 100.0).round() as u32)
    };
    let fin = |w: &mut Wire| _ = w.client().fin();
    let rst = |w: &mut Wire| _ = w.client().rst();
    // The last data passed at 51 ms. 20 ms of trip, and three times the timeout of it and 200 ms.
    assert_eq!(hangs(0, MSS, 712, &fin), (Ended::CaptureEnd, Cause::PathMtu, ms(661), 80));
    assert_ne!(hangs(0, MSS, 711, &fin).1, Cause::PathMtu);
    assert_eq!(hangs(0, MSS, 5_000, &rst), (Ended::Rst, Cause::PathMtu, ms(4_949), 80));
    let both = |w: &mut Wire| {
        w.client().fin();
        w.after(ms(10)).server().fin();
    };
    assert_eq!(hangs(0, MSS, 5_000, &both).0, Ended::Silent, "its end is no end of the answer");
    // A full one has come, or what is missing is not full.
    assert_eq!(hangs(2, MSS, 5_000, &fin).1, Cause::RetransmissionTimeout);
    assert_eq!(hangs(0, 400, 5_000, &fin).1, Cause::RetransmissionTimeout);
}

/// Nothing of an answer comes, and only the ACK of the FIN of who gave up tells by its number that there was one; the same of a TLS handshake
/// that hangs, which belongs to the setup.
#[test]
fn the_ack_of_a_fin_tells_of_an_answer_that_was_lost() {
    let answer = |size: u32, lost: bool| {
        let mut w = opened();
        w.at(ms(30)).client().data(100);
        w.at(ms(40)).server().ack();
        if lost {
            w.at(ms(60)).server().data(size).lost_before_tap();
        }
        w.at(ms(4_000)).client().fin();
        w.at(ms(4_010)).server().ack();
        let c = w.connection();
        (
            c.budget.get(Cause::PathMtu),
            c.budget.get(Cause::RetransmissionTimeout),
            c.budget.get(Cause::ServerThink),
        )
    };
    assert_eq!(answer(MSS, true), (ms(3_950), Nanos::ZERO, Nanos::ZERO));
    assert_eq!(answer(MSS - 1, true), (Nanos::ZERO, ms(3_950), Nanos::ZERO));
    assert_eq!(answer(MSS, false), (Nanos::ZERO, Nanos::ZERO, ms(3_950)));

    let mut w = opened();
    w.at(ms(30)).client().data(500).tls(Tls::HANDSHAKE);
    w.at(ms(40)).server().data(MSS).lost_before_tap();
    w.server().data(700).tls(Tls::HANDSHAKE);
    w.at(ms(50)).client().ack();
    w.at(ms(9_000)).client().fin();
    w.at(ms(9_010)).server().ack();
    let c = w.connection();
    let setup = c.setup.as_ref().unwrap();
    let span = setup.spans.last().unwrap();
    assert_eq!(
        (span.cause, span.end - span.start, setup.end - c.start),
        (Cause::PathMtu, ms(8_950), ms(9_000))
    );
    assert!(span.facts.sentence().contains("never came"), "{}", span.facts.sentence());
}
