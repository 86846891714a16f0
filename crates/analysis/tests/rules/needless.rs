//! What was sent again without need, what hid behind its writer, and what slow links make late.

use crate::wire::{SERVER, Tap, Wire, ms, us};
use tcpwhy_base::{Cause, Nanos, Tls};

const MSS: u32 = 1448;

fn opened(tap: Tap, rtt: Nanos) -> Wire {
    let mut w = Wire::new(tap, rtt);
    w.handshake();
    w
}

/// At the client each eighth segment of an answer is twelve milliseconds late, more than half of a round
/// trip: nothing is lost, and nothing sent again.
#[test]
fn what_left_before_its_hole_was_known_repairs_nothing() {
    let mut w = opened(Tap::Client, ms(20));
    w.at(ms(30)).client().data(100);
    for n in 0..64 {
        w.at(ms(40) + us(500 * n));
        match n % 8 {
            3 => w.server().data(MSS).late(ms(12)),
            _ => w.server().data(MSS),
        };
    }
    w.at(ms(100)).client().ack();
    let c = w.connection();
    assert_eq!((c.retransmitted, c.ends[SERVER].reordered), ([0, 0], 8));
    assert_eq!(c.budget.get(Cause::FastRecovery) + c.budget.get(Cause::SpuriousRecovery), Nanos::ZERO);
}

/// What passed beside its receiver has come. Its sender's timer of 300 ms ran out before an ACK delayed by
/// 500 ms, and the copy is answered at once: the wait is that of Nagle's algorithm for a delayed ACK, not a
/// loss (rule 74).
#[test]
fn a_copy_of_what_has_come_is_no_loss() {
    let held = |tap: Tap, first: bool| {
        let mut w = opened(tap, ms(20));
        w.at(ms(100)).client().data(100);
        w.at(ms(110)).server();
        if first {
            w = opened(tap, ms(20));
        } else {
            w.server().data(50);
            w.at(ms(120)).client().ack();
        }
        let sent = w.client().data(4).segment.seq;
        let offset = if first { 0 } else { 100 };
        assert_eq!(sent.minus(w.segments()[0].seq), offset + 1);
        w.after(ms(300)).client().repeat(offset as u32, 4);
        w.after(ms(10)).server().ack();
        w.after(ms(10)).client().data(100);
        w.after(ms(10)).server().data(50);
        let mut segments = w.segments();
        // Without reports of duplicates (RFC 2883).
        segments.iter_mut().for_each(|s| s.options.sack_len = 0);
        let c = crate::wire::analyze(&segments).connections.remove(0);
        let causes = [Cause::NagleDelayedAck, Cause::RetransmissionTimeout, Cause::AcceptQueueFull];
        causes.map(|cause| c.budget.get(cause) > ms(250))
    };
    assert_eq!(held(Tap::Server, false), [true, false, false]);
    // In the middle of the path it may have been lost behind the tap; and a server that has taken nothing yet
    // may have dropped it.
    assert_eq!(held(Tap::Middle, false), [false, true, false]);
    assert_eq!(held(Tap::Server, true), [false, false, true]);
}

/// In the middle of a transfer it is a recovery without need (rules 33 and 74); after a hole it is none.
#[test]
fn a_copy_in_the_middle_is_a_spurious_recovery() {
    let found = |lost: bool| {
        let mut w = opened(Tap::Server, ms(20));
        w.at(ms(100)).client().data(100);
        w.at(ms(110)).server().data(50);
        w.at(ms(120)).client().ack();
        let first = w.client().data(MSS);
        if lost {
            first.lost_before_tap();
        }
        w.client().data(MSS);
        if lost {
            w.after(ms(10)).server().ack();
        }
        w.at(ms(420)).client().repeat(100, MSS);
        w.after(ms(10)).server().ack();
        w.after(ms(10)).client().data(100);
        w.after(ms(10)).server().data(50);
        let mut segments = w.segments();
        segments.iter_mut().for_each(|s| s.options.sack_len = 0);
        let c = crate::wire::analyze(&segments).connections.remove(0);
        c.budget.get(Cause::SpuriousRecovery)
    };
    assert!(found(false) > ms(250));
    assert_eq!(found(true), Nanos::ZERO);
}

/// A server's host drops for a second what passes the tap beside it. That its server repeats its last answer
/// and does not acknowledge the request that had passed before shows it, or that a copy of the request is not
/// answered at once (rule 100): those are timeouts of the client, and neither needless copies nor the
/// server's work.
#[test]
fn what_a_host_drops_behind_the_tap_is_lost() {
    let found = |silent: bool, taken: bool| {
        let mut w = opened(Tap::Server, ms(20));
        w.at(ms(100)).client().data(100);
        w.at(ms(110)).server().data(50);
        w.at(ms(120)).client().data(73).lost();
        if !silent {
            // It did not get the ACK in that, and probes.
            w.at(ms(160)).server().repeat(0, 50);
        }
        w.at(ms(340)).client().repeat(100, 73).lost();
        w.at(ms(780)).client().repeat(100, 73);
        if taken {
            w.at(ms(790)).server().ack();
        }
        w.at(ms(790) + if taken { ms(400) } else { Nanos::ZERO }).server().data(50);
        w.after(ms(10)).client().ack();
        w.connection()
    };
    let times = |silent, taken| {
        let c = found(silent, taken);
        let causes = [Cause::RetransmissionTimeout, Cause::SpuriousRecovery, Cause::ServerThink];
        (causes.map(|cause| c.budget.get(cause) > ms(200)), c)
    };
    for silent in [false, true] {
        let (causes, c) = times(silent, false);
        assert_eq!(causes, [true, false, false], "{silent}");
        assert!(c.budget.get(Cause::RetransmissionTimeout) > ms(600), "{silent}");
        let said = c.exchanges.iter().flat_map(|e| &e.spans).map(|s| s.facts.sentence());
        assert!(said.into_iter().any(|s| s.contains("its host dropped them")), "{silent}");
        // What it takes and works on is its own.
        assert_eq!(times(silent, true).0, [true, false, true], "{silent}");
    }
}

/// A server of TLS answers its client's FIN with a `close_notify`: nobody waits for that, and Nagle's
/// algorithm held nothing (rule 40).
#[test]
fn a_goodbye_behind_the_clients_fin_is_no_answer() {
    let found = |last: u32, record: u8| {
        let mut w = opened(Tap::Server, ms(20));
        w.at(ms(30)).client().data(300).tls(Tls::HANDSHAKE);
        w.at(ms(40)).server().data(900).tls(Tls::HANDSHAKE | Tls::CHANGE_CIPHER);
        w.at(ms(52)).client().data(100).tls(Tls::DATA);
        w.at(ms(62)).server().data(685).tls(Tls::DATA);
        w.at(ms(72)).client().ack();
        w.client().fin();
        w.after(ms(10)).server().data(last).tls(record);
        w.server().fin();
        w.after(ms(10)).client().ack();
        let c = w.connection();
        let x = c.exchanges.last().unwrap();
        (c.budget.get(Cause::Nagle) > Nanos::ZERO, x.bytes[1], c.setup.map_or(0, |s| s.bytes[1]))
    };
    assert_eq!(found(31, Tls::ALERT), (false, 685, 931));
    assert_eq!(found(32, Tls::ALERT), (true, 717, 900));
    // TLS 1.3 hides its type, but not its size.
    assert_eq!(found(24, Tls::DATA), (false, 685, 924));
    assert_eq!(found(25, Tls::DATA), (true, 710, 900));
}

/// Each of ten writes is held for the ACK of the one before; the last one comes so long after its ACK that it
/// was written then. Its writer's clock was what all of them waited for (rule 24).
#[test]
fn holds_before_a_hidden_one_are_hidden() {
    let nagle = |late: Nanos| {
        let mut w = opened(Tap::Client, ms(20));
        for k in 0..10 {
            w.at(ms(40 + 20 * k)).client().data(100 + k as u32 % 2);
            w.after(ms(10)).server().ack();
        }
        w.at(ms(240) + late).client().data(100);
        w.after(ms(10)).server().data(50);
        w.connection().budget.get(Cause::Nagle)
    };
    assert_eq!(nagle(ms(7)), ms(0));
    // A quarter of the wait is not too late for what was held.
    assert!(nagle(ms(6)) >= ms(200));
}

/// Two small segments less than two round trips apart, without an ACK between, show that Nagle's algorithm is
/// off; later a tail loss probe would send the second all the same (rule 66).
#[test]
fn a_probe_does_not_show_nodelay() {
    let held = |apart: Nanos| {
        let mut w = opened(Tap::Client, ms(20));
        w.at(ms(30)).client().data(100);
        w.after(apart).client().data(100);
        w.after(ms(10)).server().data(50);
        w.after(ms(10)).client().data(100);
        w.after(ms(50)).server().ack();
        w.after(ms(10)).client().data(200);
        w.after(ms(10)).server().data(50);
        w.connection().budget.get(Cause::NagleDelayedAck) > Nanos::ZERO
    };
    assert_eq!([ms(40), ms(40) + us(1)].map(held), [false, true]);
}

/// Of a stack that counts bytes a window of one segment holds what would make more than that, however small
/// the segments (rule 68).
#[test]
fn small_segments_fill_a_small_window() {
    let delayed = |last: u32| {
        let mut w = opened(Tap::Client, ms(20));
        w.at(ms(30)).client().data(MSS - 400);
        w.client().data(100);
        w.at(ms(240)).server().ack();
        w.at(ms(250)).client().data(last);
        w.after(ms(10)).server().data(50);
        let mut segments = w.segments();
        segments.iter_mut().filter(|s| s.flags.syn()).for_each(|s| s.options.order = 0x84321);
        let c = crate::wire::analyze(&segments).connections.remove(0);
        assert_ne!(c.ends[0].os, Some("Linux"));
        c.budget.get(Cause::DelayedAck) > ms(100)
    };
    assert_eq!([300, 301].map(delayed), [false, true]);
}

/// Seen from afar a segment of a slow link comes later than the ACK before lets it leave, by what its
/// neighbours took (rule 49).
#[test]
fn a_slow_link_is_no_late_writer() {
    let paused = |apart: Nanos| {
        let mut w = opened(Tap::Server, ms(8));
        w.at(ms(30));
        for _ in 0..3 {
            w.client().data(MSS);
            w.after(apart);
        }
        w.client().data(100);
        w.at(ms(230)).server().ack();
        w.at(ms(234) + us(1_660)).client().write(2 * MSS);
        w.after(ms(4)).server().data(50);
        w.connection().budget.get(Cause::SenderPause)
    };
    assert!(paused(us(1_160)) < ms(10));
    assert!(paused(us(100)) > ms(150));
}

/// Small segments alone in flight, each sent again after 220 ms and acknowledged only then: the third time it
/// is the timer that is too short, unless one of them was acknowledged by itself (rule 75).
#[test]
fn nobody_loses_each_of_them() {
    let lost = |alone: bool, linux: bool| {
        let mut w = opened(Tap::Client, ms(20));
        w.at(ms(100)).client().data(100);
        w.at(ms(110)).server().data(50);
        let mut at = ms(200);
        let mut offset = 100;
        for k in 0..4 {
            w.at(at).client().data(4);
            if k == 1 && !alone {
                w.at(at + ms(50)).server().ack();
            } else {
                w.at(at + ms(220)).client().repeat(offset, 4);
                w.at(at + ms(230)).server().ack();
            }
            w.at(at + ms(240)).client().data(100);
            w.at(at + ms(250)).server().data(50);
            at += ms(400);
            offset += 104;
        }
        let mut segments = w.segments();
        for s in segments.iter_mut() {
            s.options.sack_len = 0;
            if s.options.order != 0 && !linux {
                s.options.order = 0x320;
            }
        }
        let c = crate::wire::analyze(&segments).connections.remove(0);
        let loss = |s: &tcpwhy_analysis::Span| {
            matches!(s.cause, Cause::TailLossProbe | Cause::RetransmissionTimeout)
        };
        c.exchanges.iter().filter(|e| e.spans.iter().any(loss)).count()
    };
    assert_eq!([lost(true, false), lost(false, false)], [2, 3]);
    // Linux would have said that they came twice, as its SYN had promised.
    assert_eq!(lost(true, true), 4);
}

/// As many small segments that left sooner than a cork's timer as ones that left with it: nothing was corked (rule 25).
#[test]
fn what_is_not_held_as_often_is_no_cork() {
    let corked = |free: i64| {
        let mut w = opened(Tap::Client, ms(20));
        w.at(ms(60)).client().data(100);
        let again = [100; 9].iter().take(free as usize).chain(&[300, 308]);
        for apart in again {
            w.after(ms(20)).server().ack();
            w.after(ms(apart - 20)).client().data(100);
        }
        w.connection().budget.get(Cause::Cork) > Nanos::ZERO
    };
    assert_eq!([1, 2].map(corked), [true, false]);
}

/// The same when they come later, each in an exchange of its own: what was called a cork before is its
/// writer's pause then.
#[test]
fn a_cork_is_acquitted_by_what_was_not_held() {
    let told = |free: usize| {
        let mut w = opened(Tap::Client, ms(20));
        w.at(ms(60));
        for apart in [300, 310].into_iter().chain([100; 9].into_iter().take(free)) {
            w.after(ms(10)).client().data(100);
            w.after(ms(20)).server().ack();
            w.after(ms(apart - 20)).client().data(100);
            w.after(ms(20)).server().data(50);
        }
        let c = w.connection();
        let said = |cause| {
            let spans = c.exchanges.iter().flat_map(|e| &e.spans).filter(|s| s.cause == cause);
            let time = spans.fold(Nanos::ZERO, |sum, s| sum + (s.end - s.start));
            assert_eq!(time, c.budget.get(cause));
            time
        };
        [Cause::Cork, Cause::SenderPause].map(said)
    };
    let [corked, paused] = told(1);
    assert!(corked > ms(250));
    assert_eq!(told(2), [Nanos::ZERO, corked + paused + ms(100)]);
}

/// The path was gone for 500 ms, and the client's tap saw nothing of that but silence. What passes then tells
/// whose it was (rule 93).
#[test]
fn a_silence_that_a_timer_ended_is_no_pause() {
    let full = |w: &mut Wire, n: u32, passes: bool| {
        (0..n).for_each(|_| {
            let packet = w.server().data(MSS);
            if !passes {
                packet.lost_before_tap();
            }
        });
    };
    let begins_at = |tap: Tap| {
        let mut w = opened(tap, ms(20));
        w.at(ms(100)).client().data(100);
        w.at(ms(110)).server();
        full(&mut w, 10, true);
        w
    };
    let begins = || begins_at(Tap::Client);
    let found = |w: &Wire| {
        let c = w.connection();
        let causes = [Cause::RetransmissionTimeout, Cause::SpuriousRecovery, Cause::SenderPause];
        causes.map(|cause| c.budget.get(cause) > ms(400))
    };
    // The acknowledgements were lost, and the timer sent again what they were for; `lost`: what was sent
    // before that was lost as well.
    let repeated = |lost: bool, late: i64| {
        let mut w = begins();
        full(&mut w, if lost { 6 } else { 0 }, false);
        w.at(ms(120)).client().ack().lost();
        w.at(ms(600)).server().repeat(0, MSS);
        w.after(ms(10)).client().ack();
        w.after(ms(10 + late)).server();
        full(&mut w, 4, true);
        w.after(ms(10)).client().ack();
        found(&w)
    };
    assert_eq!(repeated(false, 0), [false, true, false]);
    assert_eq!(repeated(true, 0), [true, false, false]);
    // Who was asked for more and said nothing for long had not waited for it.
    assert_eq!(repeated(false, 200), [false, false, true]);
    // An acknowledgement on its way when the timer ran out is what ended the wait.
    let mut w = begins();
    w.at(ms(605)).client().ack();
    w.at(ms(600)).server().repeat(0, MSS);
    w.at(ms(615)).server();
    full(&mut w, 4, true);
    w.after(ms(10)).client().ack();
    assert!(!found(&w)[1]);
    // In the middle of the path they had not passed; what had not either tells that it was not for them alone.
    let repeated_in_the_middle = |lost: u32| {
        let mut w = begins_at(Tap::Middle);
        full(&mut w, lost, false);
        w.at(ms(120)).client().ack().lost_before_tap();
        w.at(ms(600)).server().repeat(0, MSS);
        w.after(ms(10)).client().ack();
        w.after(ms(10)).server();
        full(&mut w, 4, true);
        w.after(ms(10)).client().ack();
        found(&w)
    };
    assert_eq!(repeated_in_the_middle(0), [false, true, false]);
    assert_eq!(repeated_in_the_middle(6), [true, false, false]);
    // All that was sent was lost. One segment comes alone, then what goes on behind the rest, or the rest.
    let window_of_one = |alone: u32, more_lost: u32, late: i64| {
        let mut w = begins();
        w.at(ms(120)).client().ack();
        w.at(ms(600)).server();
        full(&mut w, alone, true);
        full(&mut w, more_lost, false);
        w.after(ms(10)).client().ack();
        w.after(ms(10 + late)).server();
        full(&mut w, 2, true);
        w.after(ms(10)).client().ack();
        found(&w)
    };
    assert_eq!(window_of_one(1, 8, 0), [true, false, false]);
    assert_eq!(window_of_one(1, 0, 0), [true, false, false]);
    // The flight of a beginning, whose end was lost; and one that went on when it liked.
    assert_eq!(window_of_one(4, 6, 0), [false, false, true]);
    assert_eq!(window_of_one(1, 0, 100), [false, false, true]);
}

/// The last segment of an answer closes, too, and its FIN is no data (rule 140): what was sent again though it had come
/// prolongs nothing, and what was lost was lost.
#[test]
fn a_last_segment_that_closes_is_the_last_one() {
    let told = |tap: Tap, lost: bool, with_fin: bool, acked: i64| {
        let mut w = opened(tap, ms(20));
        w.at(ms(30)).client().data(100);
        w.at(ms(50)).server();
        if with_fin {
            w.server().last_data(1_000);
        } else {
            w.server().data(1_000);
            w.server().fin();
        }
        if lost {
            for packet in w.packets.iter_mut().rev().take(if with_fin { 1 } else { 2 }) {
                packet.lost();
            }
            w.at(ms(290));
        } else {
            // Its ACK is late by as much as the timer.
            w.at(ms(95));
        }
        match with_fin {
            true => w.server().repeat_last(0, 1_000),
            false => w.server().repeat(0, 1_000),
        };
        w.at(ms(acked)).client().ack();
        let c = w.connection();
        let at = |t: Nanos| (t - c.start).0 / 1_000_000;
        let lost = [Cause::SpuriousRecovery, Cause::TailLossProbe, Cause::RetransmissionTimeout];
        (at(c.exchanges[0].end), lost.map(|cause| c.budget.get(cause).0 / 1_000_000))
    };
    for tap in [Tap::Client, Tap::Server] {
        let came = if tap == Tap::Client { 60 } else { 40 };
        // Before the copy came, and behind it, which the ACK says then.
        for (with_fin, acked) in [(true, 97), (true, 110), (false, 97), (false, 110)] {
            let told = told(tap, false, with_fin, acked);
            assert_eq!(told, (came, [0, 0, 0]), "{tap:?} {with_fin} {acked}");
        }
    }
    let (end, [needless, probe, timer]) = told(Tap::Server, true, true, 300);
    assert_eq!((end, needless), (280, 0));
    assert!(probe + timer > 200, "{probe} {timer}");
}
