//! Who spaced the segments: their writer, a pace, or ACKs; and who is behind the one that answers.

use crate::wire::{Tap, Wire, ms, us};
use tcpwhy_analysis::{Connection, Facts, Quality};
use tcpwhy_base::{Cause, Nanos, TcpFlags};

const MSS: u32 = 1448;

fn opened(tap: Tap, rtt: Nanos) -> Wire {
    let mut w = Wire::new(tap, rtt);
    w.handshake();
    w.at(rtt + ms(10)).client().data(100);
    w.after(rtt.part(2));
    w
}

/// Twenty full segments of the server, so far apart, each of them acknowledged; `pushed`: each ends a write.
fn spaced(tap: Tap, rtt: Nanos, apart: Nanos, pushed: bool) -> Connection {
    let mut w = opened(tap, rtt);
    let start = rtt + ms(10) + rtt.part(2);
    let mut events: Vec<(Nanos, bool)> = Vec::new();
    for k in 0..20 {
        events.push((start + apart.times(k), true));
        events.push((start + apart.times(k) + rtt.part(2), false));
    }
    events.sort_by_key(|e| e.0);
    for (at, data) in events {
        if data {
            let packet = w.at(at).server().data(MSS);
            if pushed {
                packet.segment.flags = TcpFlags(TcpFlags::ACK | TcpFlags::PSH);
            }
        } else {
            w.at(at).client().ack();
        }
    }
    w.connection()
}

/// What is behind a PSH was written later (rule 69), so that neither a pace nor a limit spaced it.
#[test]
fn what_follows_the_end_of_a_write_was_not_paced() {
    let causes = [Cause::Pacing, Cause::SendBuffer, Cause::SenderPause];
    for tap in [Tap::Server, Tap::Client] {
        let c = spaced(tap, ms(40), ms(24), true);
        assert_eq!(
            causes.map(|cause| c.budget.get(cause)),
            [ms(0), ms(0), ms(24 * 19)],
            "{tap:?} {:?}",
            c.budget
        );
    }
    let c = spaced(Tap::Server, ms(40), ms(24), false);
    assert!(c.budget.get(Cause::Pacing) > ms(24 * 15), "{:?}", c.budget);
}

/// Seen from afar: a write that comes later than the ACK of all before lets it, each time, was not held by it
/// (rule 69): by a 32nd of the reaction, or 200 µs.
#[test]
fn a_writer_that_is_late_each_time_was_not_held() {
    let buffer = |late: Nanos| spaced(Tap::Client, ms(40), ms(40) + late, true).budget.get(Cause::SendBuffer);
    assert_eq!([us(1_251), ms(3)].map(buffer), [Nanos::ZERO; 2]);
    assert!(buffer(us(1_250)) > ms(500));
}

/// Beside it: segments in the middle of a write that leave long after each ACK, and evenly, though an ACK is
/// never far, are paced.
#[test]
fn acks_that_let_nothing_go_at_once_did_not_let_it_go() {
    // The ACK of the fourth segment before comes 500 µs before each.
    let paced = |apart: i64| {
        let c = spaced(Tap::Server, us(5_000), us(apart), false);
        (c.budget.get(Cause::Pacing) > ms(20), c.budget.get(Cause::SendBuffer) > ms(5))
    };
    assert_eq!(paced(1_375), (true, false));
    // 300 µs is what a writer needs to wake up.
    assert!(!paced(1_325).0);
}

/// Writes of the server (`true`) of so many bytes, each of which ends with a PSH, and ACKs of the client, by
/// their times.
fn writes(w: &mut Wire, mut events: Vec<(Nanos, bool)>, bytes: u32) {
    events.sort_by_key(|e| e.0);
    for (at, data) in events {
        if data {
            let packet = w.at(at).server().data(bytes);
            packet.segment.flags = TcpFlags(TcpFlags::ACK | TcpFlags::PSH);
        } else {
            w.at(at).client().ack();
        }
    }
}

/// Writes that go on as far apart as before any ACK could have come were not held by a limit that ACKs lift,
/// though one came in time each time (rule 92).
#[test]
fn writes_that_go_on_as_at_first_were_not_held() {
    let causes = |first: Nanos, apart: Nanos| {
        let mut w = opened(Tap::Client, ms(40));
        let start = ms(70);
        let mut events: Vec<(Nanos, bool)> = Vec::new();
        for k in 0..20 {
            let at = start + first.times(k.min(2)) + apart.times((k - 2).max(0));
            events.extend([(at, true), (at + ms(20), false)]);
        }
        writes(&mut w, events, MSS);
        let budget = w.connection().budget;
        [Cause::SendBuffer, Cause::SenderPause].map(|cause| budget.get(cause) > ms(100))
    };
    assert_eq!(causes(us(12_900), us(12_900)), [false, true]);
    assert_eq!(causes(us(12_900), us(14_190)), [false, true]);
    // Up to 14.2 ms the third, too, passes within a round trip, and the mean is that of three.
    assert_eq!(causes(us(12_900), us(14_210)), [true, false]);
}

/// The same where the initial window held some of them at first, and a sleeping writer is woken now sooner
/// and now later: as many bytes go on to leave in as long a time. A limit that is reached again takes some of
/// it (rule 92).
#[test]
fn a_writer_that_is_not_slowed_was_not_held() {
    let causes = |held: Nanos| {
        let mut w = opened(Tap::Client, ms(60));
        let start = ms(100);
        let jitter = |k: i64| Nanos::micros([0, 60, -70, 90, -40][k as usize % 5]);
        let mut events: Vec<(Nanos, bool)> = Vec::new();
        for k in 0..400 {
            // Ten in the initial window, those until the first ACK with it, and then as before, or thirteen
            // as fast as may be whenever a third of the buffer is free, which is as often in a round trip
            // (`sk_stream_write_space`).
            let written = start + ms(1).times(k) + jitter(k);
            let at = match k {
                0..10 => written,
                10..62 => start + ms(61),
                _ if held > Nanos::ZERO => {
                    start + ms(122) + held.times((k - 62) / 13) + us(20 * ((k - 62) % 13))
                }
                _ => written,
            };
            events.extend([(at, true), (at + ms(30), false)]);
        }
        writes(&mut w, events, 100);
        let budget = w.connection().budget;
        [Cause::SendBuffer, Cause::SenderPause].map(|cause| budget.get(cause) > ms(250))
    };
    assert_eq!(causes(Nanos::ZERO), [false, true]);
    assert_eq!(causes(us(20_100)), [true, false]);
}

/// Writes of two segments and a half that end with PSH, so far apart, and ACKs of each that come no sooner
/// than so long behind the one before.
fn written(apart: Nanos, link: Nanos) -> Connection {
    let (mut w, start) = (opened(Tap::Server, ms(30)), ms(55));
    let mut events: Vec<(Nanos, Option<u32>)> = Vec::new();
    let mut acked = Nanos::ZERO;
    for k in 0..60 {
        let at = start + apart.times(k);
        events.extend([(0, MSS), (1, MSS), (2, 1_104)].map(|(n, len)| (at + us(10 * n), Some(len))));
        acked = (at + ms(30)).max(acked + link);
        events.push((acked, None));
    }
    events.sort_by_key(|e| e.0);
    let (mut sent, mut acks) = (Vec::new(), 0);
    for (at, data) in events {
        if let Some(len) = data {
            let packet = w.at(at).server().data(len);
            if len < MSS {
                packet.segment.flags = TcpFlags(TcpFlags::ACK | TcpFlags::PSH);
                sent.push(packet.segment.seq + len);
            }
        } else {
            w.at(at).client().ack().segment.ack = sent[acks];
            acks += 1;
        }
    }
    w.connection()
}

/// Beside their sender: writes whose ACKs come as far apart as they left were spaced by their writer, for all
/// of them ended short while others were in flight (rule 87). A link sets apart what left sooner.
#[test]
fn writes_with_a_clock_of_their_own_show_no_link() {
    let causes = |apart: Nanos, link: Nanos| {
        let c = written(apart, link);
        [Cause::Bandwidth, Cause::SenderPause].map(|cause| c.budget.get(cause) > ms(280))
    };
    assert_eq!(causes(ms(7), ms(0)), [false, true]);
    assert_eq!(causes(ms(5), ms(7)), [true, false]);
}

/// A SYN-ACK that takes four times as long as ACKs do: a proxy acknowledges, and an answer after that time
/// says nothing of who worked (rule 70).
#[test]
fn behind_a_proxy_work_and_way_are_one() {
    let split = |far: Nanos, answer: Nanos| {
        let mut w = Wire::new(Tap::Client, ms(2));
        w.at(ms(0)).client().syn();
        w.at(ms(1) + far).server().syn_ack();
        w.after(ms(1)).client().ack();
        for k in 0..4 {
            let asked = ms(100 + 200 * k);
            w.at(asked).client().data(100);
            w.at(asked + ms(1)).server().ack();
            w.at(asked + ms(1) + answer).server().data(300);
            w.after(ms(1)).client().ack();
        }
        let c = w.connection();
        assert_eq!(c.quality.has(Quality::SPLIT), c.budget.get(Cause::Unexplained) > Nanos::ZERO);
        (c.budget.get(Cause::Unexplained), c.budget.get(Cause::ServerThink))
    };
    assert_eq!(split(ms(30), ms(30)), (ms(120), ms(0)));
    assert_eq!(split(ms(30), ms(50)), (ms(120), ms(80)));
    // It answers sooner than its SYN-ACK came: what was slow then was not the way.
    assert_eq!(split(ms(30), ms(20)), (ms(0), ms(80)));
    // Three times as long, and less than 5 ms, is a queue or an address that had to be asked for.
    assert_eq!([split(ms(5), ms(20)).0, split(ms(6), ms(20)).0], [ms(0), ms(24)]);
}

/// A handshake that took twice as long as later round trips, and 5 ms more, was not the distance alone (rule 70).
#[test]
fn a_late_handshake_is_told_from_the_distance() {
    let opening = |late: Nanos, trip: Nanos| {
        let mut w = Wire::new(Tap::Client, trip);
        w.at(ms(0)).client().syn();
        w.at(trip.part(2) + late).server().syn_ack();
        w.after(trip.part(2)).client().ack();
        w.after(ms(1)).client().data(100);
        w.after(trip.part(2)).server().ack();
        w.after(ms(0)).server().data(300);
        w.after(trip.part(2)).client().ack();
        let span = w.connection().setup.as_ref().unwrap().spans[0].clone();
        assert_eq!((span.cause, span.duration()), (Cause::Handshake, trip + late));
        (span.facts, span.confidence)
    };
    let (facts, confidence) = opening(ms(21), ms(20));
    assert!(matches!(facts, Facts::LateOpening { late, rtt } if late > ms(20) && rtt < ms(21)), "{facts:?}");
    assert!(confidence < 0.6);
    for (late, trip) in [(ms(19), ms(20)), (ms(4), ms(1))] {
        let (facts, confidence) = opening(late, trip);
        assert!(matches!(facts, Facts::RoundTrip { .. }) && confidence > 0.9, "{facts:?}");
    }
}

/// Seen from afar, after a timer's silence: what begins with a piece of three quarters of a segment or less,
/// with more behind it, was cut by a sender whose full segments did not come through (rule 71).
#[test]
fn an_answer_in_pieces_after_a_silence_was_too_large() {
    let answered = |piece: u32, work: Nanos, pushed: bool| {
        let mut w = opened(Tap::Client, ms(20));
        w.at(ms(40) + work);
        for _ in 0..8 {
            let packet = w.server().data(piece);
            let push = if pushed { TcpFlags::PSH } else { TcpFlags::ACK };
            packet.segment.flags = TcpFlags(TcpFlags::ACK | push);
        }
        w.connection().budget.get(Cause::PathMtu) > Nanos::ZERO
    };
    assert_eq!([1_086, 1_087].map(|piece| answered(piece, ms(3_000), false)), [true, false]);
    // Written so; and sooner than a timer.
    assert!(!answered(500, ms(3_000), true));
    assert_eq!([ms(206), ms(207)].map(|work| answered(500, work, false)), [false, true]);
}

/// A server that has never answered sooner than a timer did not lose each answer (rule 35); one that answered
/// in a quarter of it may have.
#[test]
fn an_answer_as_late_as_all_others_is_work() {
    let sure = |first: Nanos, requests: i64| {
        let mut w = Wire::new(Tap::Client, ms(20));
        w.handshake();
        for k in 0..requests {
            w.at(ms(1_000 * k + 100)).client().data(100);
            w.after(ms(10) + if k == 0 { first } else { ms(400) }).server().data(100);
        }
        let mut segments = w.segments();
        segments.iter_mut().for_each(|s| s.ip_id = None);
        let c = crate::wire::analyze(&segments).connections.remove(0);
        let spans = c.exchanges.last().expect("exchanges").spans.clone();
        spans.into_iter().find(|s| s.cause == Cause::ServerThink).map(|s| s.confidence)
    };
    assert_eq!([sure(ms(400), 2), sure(ms(400), 3), sure(ms(5), 3)], [Some(0.8), Some(0.9), Some(0.56)]);
}

/// Seen from afar, one segment of usual size at a time, in a run that goes on: no buffer holds so little
/// (rule 73). Two may be one.
#[test]
fn one_segment_at_a_time_is_the_link() {
    let found = |each: u32| {
        let mut w = opened(Tap::Client, ms(4));
        for _ in 0..20 {
            w.server().write(each);
            w.after(ms(2)).client().ack();
            w.after(ms(2) + us(300));
        }
        let c = w.connection();
        [Cause::Bandwidth, Cause::SendBuffer].map(|cause| c.budget.get(cause) > ms(60))
    };
    assert_eq!([MSS, 2 * MSS].map(found), [[true, false], [false, true]]);
}

/// Two hundred pairs of full segments that the server sends as one packet each with PSH, a millisecond apart
/// over a round trip of 20 ms; behind the server, the link takes so long for each.
fn pairs(tap: Tap, takes: Nanos) -> Connection {
    let mut w = Wire::new(tap, ms(20));
    w.host[0].window = 1 << 20;
    w.handshake();
    w.at(ms(30)).client().data(100);
    let mut free = Nanos::ZERO;
    let mut events = Vec::new();
    for k in 0..200 {
        let sent = ms(50 + k);
        free = free.max(sent) + takes;
        events.extend([(sent, Some(free - sent)), (free + ms(10), None)]);
    }
    events.sort_by_key(|e| e.0);
    for (at, late) in events {
        let Some(late) = late else {
            w.at(at).client().ack();
            continue;
        };
        let packet = w.at(at).server().data(2 * MSS);
        packet.segment.flags = TcpFlags(TcpFlags::ACK | TcpFlags::PSH);
        if tap == Tap::Client {
            packet.late(late);
        } else {
            w.overtaken(0, late);
        }
    }
    w.connection()
}

/// Linux sets PSH on each packet of several segments. What passes as it left was spaced by its sender, with
/// no queue on the path; what the link sets further apart has its rate (rule 87).
#[test]
fn what_a_sender_spaces_is_no_rate_of_the_link() {
    for tap in [Tap::Server, Tap::Client] {
        let causes = [Cause::Pacing, Cause::Bandwidth, Cause::SenderPause];
        let budget = |takes| pairs(tap, takes).budget;
        let own = budget(us(50));
        let [pacing, bandwidth, pause] = causes.map(|cause| own.get(cause));
        assert!(pacing > ms(150) && bandwidth < ms(20) && pause < ms(20), "{tap:?} {own:?}");
        let link = budget(us(1_300));
        let [pacing, bandwidth, _] = causes.map(|cause| link.get(cause));
        assert!(bandwidth > ms(150) && pacing == Nanos::ZERO, "{tap:?} {link:?}");
    }
}

/// Forty packets of two segments that pass 3 ms apart beside their sender, which had built them so long
/// before; the stamps of all are those of the first, if `ahead`, with so much added: sch_fq behind the tap is
/// told when they are to leave.
fn shaped(before: Nanos, ahead: bool) -> Connection {
    let mut w = opened(Tap::Server, ms(20));
    let start = ms(40);
    let mut events: Vec<(Nanos, Nanos)> = Vec::new();
    for k in 0..40 {
        let passes = start + ms(3).times(k);
        let built = start.max(passes - before);
        events.extend([(built, passes - built), (passes + ms(10), Nanos(-1))]);
    }
    events.sort_by_key(|e| e.0);
    for (at, late) in events {
        if late < Nanos::ZERO {
            w.at(at).client().ack();
            continue;
        }
        let packet = w.at(at).server().data(2 * MSS);
        packet.segment.flags = TcpFlags(TcpFlags::ACK | TcpFlags::PSH);
        if ahead && let Some((stamp, _)) = &mut packet.segment.options.timestamps {
            *stamp += (at - start).0 as u32 % 9_000_000 / 1_000_000;
        } else {
            packet.late(late);
        }
    }
    w.connection()
}

/// Beside its sender a segment that had been built, by its time stamp, before the one before it passed was
/// held by nothing of TCP: it stood in a queue of its own host, whose pace is that of a link (rule 95).
#[test]
fn what_was_built_before_the_last_passed_stood_in_its_host() {
    let causes = |before: Nanos, ahead: bool| {
        let budget = shaped(before, ahead).budget;
        let most = |cause| budget.get(cause) > ms(100);
        let by_its_host =
            [Cause::SenderPause, Cause::Pacing, Cause::Unexplained].map(|cause| budget.get(cause));
        [most(Cause::Bandwidth), by_its_host.into_iter().fold(Nanos::ZERO, |sum, time| sum + time) > ms(100)]
    };
    assert_eq!(causes(ms(6), false), [true, false]);
    // Built as it passed, or within the millisecond that a stamp tells.
    assert_eq!([ms(0), ms(2)].map(|before| causes(before, false)), [[false, true]; 2]);
    // Stamps of a time to come, in turns of 9 ms.
    assert_eq!(causes(ms(0), true), [false, true]);
}

/// Seen at the client, a link carries sixty segments of a run every 250 µs, and sixty more a fifth of a round
/// trip apart, so that each comes when an ACK may have let it go, be it that all had left one after the other
/// as fast as at first, and `queued`, or that they left as they passed.
fn slowed(queued: bool) -> Connection {
    let mut w = opened(Tap::Client, ms(20));
    let start = ms(40);
    let mut events: Vec<(Nanos, Option<Nanos>)> = Vec::new();
    for k in 0..120 {
        let fast = start + us(250).times(k);
        let passes = fast + us(3_770).times((k - 59).max(0));
        events.push((if queued { fast } else { passes }, Some(passes)));
        events.push((passes + us(10), None));
    }
    events.sort_by_key(|e| e.0);
    for (at, passes) in events {
        match passes {
            Some(passes) => _ = w.at(at).server().data(MSS).late(passes - at),
            None => _ = w.at(at).client().ack(),
        }
    }
    w.connection()
}

/// Away from its sender: what had left before the one before it passed was held by the path. At the pace of a
/// link it is that.
#[test]
fn what_had_left_before_the_last_passed_was_on_its_way() {
    let [late, own] = [true, false].map(|queued| slowed(queued).budget.get(Cause::Bandwidth));
    // All of it; the flights of the others may have been let go by ACKs.
    assert!(late > ms(250) && own < ms(220), "{late} {own}");
}

/// 4,000 bytes are written every 10 ms, three writes in each round trip, so that each leaves with an ACK by
/// chance. Behind the partial end of a write nothing was left that a window could hold, be it as small as a
/// loss makes it; where writes are whole segments, nobody can tell (rule 97).
#[test]
fn what_was_written_after_a_loss_was_not_held() {
    let found = |size: u32, lost: bool| {
        let mut w = Wire::new(Tap::Server, us(29_800));
        w.handshake();
        w.at(ms(100)).client().data(100);
        let write_at = |n: i64| ms(115) + ms(10 * n);
        for n in 0..40 {
            if n == 11 && lost {
                w.at(write_at(n) - us(100)).server().repeat(8 * size, 1448);
            }
            w.at(write_at(n));
            let first = w.server().data(1448);
            if n == 8 && lost {
                first.lost();
            }
            w.server().write(size - 1448);
            if n > 0 {
                w.at(write_at(n - 1) + us(14_900)).client().ack();
            }
        }
        w.at(write_at(39) + us(14_900)).client().ack();
        let c = w.connection();
        [Cause::SenderPause, Cause::CongestionWindow, Cause::SlowStart].map(|cause| c.budget.get(cause))
    };
    let [pause, window, start] = found(4_000, true);
    assert!(pause > ms(300) && window < ms(20) && start < ms(20), "{pause} {window} {start}");
    let [pause, window, _] = found(2 * 1448, true);
    assert!(pause < ms(150) && window > ms(200), "{pause} {window}");
}

/// Words of a stream, of sixty bytes every 12 ms over a round trip of 80: less than a segment is in flight,
/// and each ACK comes as soon as the distance lets it. They left as they were written, so their ACKs tell
/// nothing of the link (rule 87).
#[test]
fn small_writes_in_flight_show_no_link() {
    let mut w = opened(Tap::Server, ms(80));
    let mut events: Vec<(Nanos, bool)> = Vec::new();
    for k in 0..100 {
        let at = ms(150) + ms(12).times(k) + Nanos::micros([0, 300, -200, 700][k as usize % 4]);
        events.extend([(at, true), (at + ms(40), false)]);
    }
    writes(&mut w, events, 60);
    // The last ACK is one of the FIN, too.
    w.after(ms(12)).server().fin();
    w.after(ms(40)).client().ack();
    let c = w.connection();
    let [bandwidth, pause] = [Cause::Bandwidth, Cause::SenderPause].map(|cause| c.budget.get(cause));
    assert!(bandwidth < ms(50) && pause > ms(1_000), "{:?}", c.budget);
    assert_eq!(c.path.bandwidth_bps, None);
}
