//! What was sent, and never came (rule 106).

use crate::wire::{Tap, Wire, ms};
use tcpwhy_analysis::Ended;
use tcpwhy_base::{Cause, Nanos, Tls};

const MSS: u32 = 1448;

/// Without time stamps a segment has twelve bytes more; what is less than that is the end of a write, and
/// Nagle's algorithm holds what is behind it.
#[test]
fn a_segment_without_time_stamps_is_full_at_the_whole_mss() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.timestamps = false;
    w.handshake();
    w.at(ms(30)).client().data(1_455);
    w.at(ms(40)).server().ack();
    w.at(ms(50)).client().data(100);
    w.at(ms(60)).server().ack();
    w.at(ms(70)).server().data(100);
    let budget = w.connection().budget;
    assert!(budget.get(Cause::Nagle) + budget.get(Cause::NagleDelayedAck) > Nanos::ZERO, "{budget:?}");
}

fn opened() -> Wire {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    w
}

/// Beside the client all full segments of an answer are missing, though something behind them passed: they
/// are too large for the path, and neither the server is silent nor the client's close the end. Two timeouts
/// of 220 ms, the second twice as long, must have passed: else it was on its way.
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

/// Nothing of an answer comes, and only the ACK of the FIN of who gave up tells by its number that there was
/// one; the same of a TLS handshake that hangs, which belongs to the setup.
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

/// Where the answer had begun, the ACK of the FIN tells of its rest; when that was sent is not known.
#[test]
fn the_rest_of_an_answer_may_be_lost_as_well() {
    let rest = |size: u32| {
        let mut w = opened();
        w.at(ms(30)).client().data(100);
        w.at(ms(40)).server().data(240);
        w.at(ms(50)).client().ack();
        if size > 0 {
            w.at(ms(41)).server().data(size).lost_before_tap();
        }
        w.at(ms(4_000)).client().fin();
        w.at(ms(4_010)).server().ack();
        let c = w.connection();
        let last = c.exchanges[0].spans.last().unwrap();
        (last.cause, last.end - last.start, (last.confidence * 100.0).round() as u32)
    };
    assert_eq!(rest(MSS), (Cause::PathMtu, ms(3_950), 60));
    assert_eq!(rest(MSS - 1), (Cause::RetransmissionTimeout, ms(3_950), 60));
}

/// A client that still waits for bytes in the middle of an answer does not pause when it says its last words,
/// or asks whether the other end is there.
#[test]
fn last_words_before_all_has_come_are_no_pause_of_their_client() {
    let speaks = |missing: u32, words: &[i64]| {
        let mut w = opened();
        w.at(ms(30)).client().data(100);
        (0..3).for_each(|_| _ = w.at(ms(41)).server().data(missing).lost_before_tap());
        w.at(ms(41)).server().data(600);
        w.at(ms(51)).client().ack();
        words.iter().for_each(|&t| _ = w.at(ms(t)).client().data(31));
        w.after(ms(0)).client().fin();
        w.after(ms(20)).server().rst();
        w.connection().budget
    };
    let budget = speaks(MSS, &[6_000]);
    assert_eq!((budget.get(Cause::PathMtu), budget.get(Cause::ClientThink)), (ms(5_949), Nanos::ZERO));
    let budget = speaks(MSS, &[2_000, 4_000, 6_000]);
    assert_eq!((budget.get(Cause::PathMtu), budget.get(Cause::SenderPause)), (ms(5_949), Nanos::ZERO));
    assert_eq!(speaks(400, &[6_000]).get(Cause::RetransmissionTimeout), ms(5_949));
    // Two timeouts have not passed: it may be on its way.
    assert_eq!(speaks(MSS, &[700]).get(Cause::PathMtu), Nanos::ZERO);
}

/// Nothing of an answer comes, and the ACK of a repeated request tells by its number that there is one: what
/// the client says later is no request of its own.
#[test]
fn the_ack_of_a_repeat_tells_of_an_answer_that_was_lost() {
    let answer = |size: u32| {
        let mut w = opened();
        w.at(ms(30)).client().data(100);
        if size > 0 {
            w.at(ms(40)).server().data(size).lost_before_tap();
        }
        w.at(ms(250)).client().repeat(0, 100);
        w.at(ms(260)).server().ack();
        w.at(ms(6_000)).client().data(31);
        w.at(ms(6_001)).client().fin();
        w.at(ms(6_021)).server().rst();
        w.connection()
    };
    let c = answer(MSS);
    assert_eq!((c.exchanges.len(), c.gaps.len()), (1, 1));
    assert!(c.budget.get(Cause::PathMtu) > ms(5_900), "{:?}", c.budget);
    // The number of a FIN that was lost is no answer, nor is what comes a moment later.
    assert_eq!(
        answer(1).budget.get(Cause::RetransmissionTimeout),
        answer(0).budget.get(Cause::RetransmissionTimeout)
    );

    let mut w = opened();
    w.at(ms(30)).client().data(100);
    let late = w.at(ms(40)).server();
    late.data(MSS).late(ms(1));
    w.at(ms(40)).server().ack();
    w.at(ms(60)).client().ack();
    w.at(ms(2_000)).client().data(100);
    w.at(ms(2_010)).server().data(100);
    let c = w.connection();
    assert_eq!((c.exchanges.len(), c.budget.get(Cause::PathMtu)), (2, Nanos::ZERO));
}

/// Beside the sender: what it repeats in vain is what its client waits for, whatever that says meanwhile, and
/// when it closes.
#[test]
fn beside_the_sender_nobody_pauses_before_the_next_repeat() {
    let story = |words: bool| {
        let mut w = Wire::new(Tap::Server, ms(20));
        w.handshake();
        w.at(ms(30)).client().data(100);
        (0..3).for_each(|_| _ = w.at(ms(41)).server().data(MSS).lost());
        w.at(ms(41)).server().data(600);
        w.at(ms(51)).client().ack();
        for t in [280, 700, 1_540, 3_220] {
            w.at(ms(t)).server().repeat(0, MSS).lost();
        }
        if words {
            w.at(ms(6_000)).client().data(31);
        }
        w.at(ms(6_000)).client().fin();
        if words {
            w.at(ms(6_010)).server().rst();
        } else {
            w.at(ms(6_010)).server().ack();
        }
        let c = w.connection();
        (
            c.budget.get(Cause::PathMtu),
            c.budget.get(Cause::ClientThink),
            c.budget.get(Cause::KeepaliveOrDeadPeer),
        )
    };
    for words in [true, false] {
        let (vanish, pause, silent) = story(words);
        assert!(
            vanish > ms(5_900) && pause == Nanos::ZERO && silent == Nanos::ZERO,
            "{words}: {:?}",
            story(words)
        );
    }
}
