//! What the model makes of an example: what is taken out of a capture, when it is trusted, and what fixes save.

use crate::wire::{CLIENT, SERVER, Tap, Wire, ms};
use tcpwhy_analysis::replay::{extract, predict};
use tcpwhy_analysis::{Analysis, Facts, Finding, Fix};
use tcpwhy_base::{Cause, FixId, Nanos, Side, Tls, What};

const MSS: u32 = 1448;

/// Four exchanges with writes of 4 and 100 bytes. The ACK of the first write comes at once in the first of
/// them, as it does early in a connection (`tcp_enter_quickack_mode`), and late by `delay` after that. Before
/// the third the client pauses.
fn held(delay: Nanos) -> Wire {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    for k in 0..4 {
        w.after(ms(if k == 2 { 70 } else { 10 })).client().data(4);
        w.after(ms(10) + if k == 0 { Nanos::ZERO } else { delay }).server().ack();
        w.after(ms(10)).client().data(100);
        w.after(ms(10) + ms(5)).server().data(50);
        w.after(ms(10)).client().ack();
    }
    w
}

fn predicted(w: &Wire) -> Analysis {
    let mut analysis = w.analysis();
    predict(&mut analysis);
    analysis
}

fn finding(analysis: &Analysis, cause: Cause) -> &Finding {
    analysis.findings.iter().find(|f| f.cause == cause).expect("the finding")
}

fn fix(f: &Finding, id: FixId) -> &Fix {
    f.fixes.iter().find(|x| x.fix == id).expect("the fix")
}

/// The model reproduces it: what a fix saves of the example is what it saves of all.
#[test]
fn a_trusted_replay_says_what_is_saved() {
    let analysis = predicted(&held(ms(40)));
    let f = finding(&analysis, Cause::NagleDelayedAck);
    let r = f.replay.as_ref().expect("a replay");
    assert_eq!((r.connection, r.exchanges, f.lost), (1, (1, 4), ms(180)));
    assert_eq!(r.observed, ms(20 + 45) + ms(85).times(3));
    assert!(r.trustworthy() && r.error().abs() < 0.02, "{} {}", r.modelled, r.observed);
    for id in [FixId::OneWrite, FixId::Nodelay] {
        let found = fix(f, id);
        assert!(found.replayed && found.place == "client", "{found:?}");
        let (saves, gain) = (found.saves.expect("a gain"), r.modelled - found.predicted.expect("a time"));
        assert!(saves <= f.lost && gain > saves, "{saves} {gain}");
        // The hold of the first exchange is another cause's.
        assert_eq!(saves, ms(180), "{gain}");
    }
}

/// The ACKs were faster than the model's: it gains more by the fix than was ever lost.
#[test]
fn a_fix_saves_no_more_than_was_lost() {
    let analysis = predicted(&held(ms(33)));
    let f = finding(&analysis, Cause::NagleDelayedAck);
    let r = f.replay.as_ref().expect("a replay");
    let found = fix(f, FixId::OneWrite);
    assert!(r.trustworthy() && found.replayed, "{r:?}");
    assert!(r.modelled - found.predicted.expect("a time") > f.lost);
    assert_eq!(found.saves, Some(f.lost));
}

/// An ACK 120 ms late is none that the model knows: more than 15 % off, and nothing is promised on its word.
#[test]
fn a_replay_that_misses_the_present_promises_nothing() {
    let analysis = predicted(&held(ms(120)));
    let f = finding(&analysis, Cause::NagleDelayedAck);
    let r = f.replay.as_ref().expect("a replay");
    assert!(!r.trustworthy() && r.error() < -0.15, "{}", r.error());
    for found in &f.fixes {
        assert_eq!((found.replayed, found.saves), (false, Some(f.lost)), "{}", found.fix.info().id);
    }
}

/// Trust ends at 15 %, on both sides.
#[test]
fn trust_ends_at_15_percent() {
    let mut r = *finding(&predicted(&held(ms(40))), Cause::NagleDelayedAck).replay.clone().expect("a replay");
    for (modelled, trusted) in [(850, true), (849, false), (1_150, true), (1_151, false)] {
        (r.observed, r.modelled) = (ms(1_000), ms(modelled));
        assert_eq!(r.trustworthy(), trusted, "{modelled}");
    }
    (r.observed, r.modelled) = (ms(200), ms(190));
    assert!((r.error() + 0.05).abs() < 1e-9);
}

/// What does not show is said.
#[test]
fn what_is_taken_out_and_what_is_assumed() {
    let c = held(ms(40)).connection();
    let x = extract(&c, 2).expect("can be replayed");
    assert_eq!((x.exchanges, x.observed, x.end, x.question.skip), ((1, 4), ms(320), 0, 0));
    assert_eq!(x.assumed, ["No bottleneck shows: none is modelled."]);
    let s = &x.question.scenario;
    assert_eq!((s.hosts[CLIENT].nodelay, s.hosts[SERVER].nodelay), (false, true));
    assert_eq!((s.rtt(), s.mtu), (ms(20), 1_500));
    let text: Vec<String> = s
        .workload
        .turns
        .iter()
        .map(|t| format!("{} {:?} {} {:?}", t.before, t.request, t.think, t.response))
        .collect();
    assert_eq!(
        text,
        [
            "0 ns [Write(4), Write(100)] 5.00 ms [Write(50)]",
            "10.0 ms [Write(4), Write(100)] 5.00 ms [Write(50)]",
            "70.0 ms [Write(4), Write(100)] 5.00 ms [Write(50)]",
            "10.0 ms [Write(4), Write(100)] 5.00 ms [Write(50)]",
        ]
    );
    assert_eq!(s.workload.requests, 4);
}

/// Why some cannot be replayed.
#[test]
fn what_cannot_be_replayed() {
    let c = held(ms(40)).connection();
    let mut none = c.clone();
    none.exchanges.clear();
    assert_eq!(extract(&none, 1).err(), Some("no exchange was kept in detail"));
    let mut unknown = c.clone();
    unknown.path.rtt = None;
    assert_eq!(extract(&unknown, 1).err(), Some("no round trip shows"));
    let mut several = c.clone();
    several.exchanges[3].turns = 2;
    let turns = "both ends sent at once or in several turns: who waited for whom does not show";
    assert_eq!(extract(&several, 1).err(), Some(turns));
    several.exchanges[3].turns = 1;
    several.exchanges[0].duplex = true;
    assert_eq!(extract(&several, 1).err(), Some(turns));
    let mut empty = c.clone();
    empty.exchanges[1].bytes = [0, 0];
    assert_eq!(extract(&empty, 1).err(), Some("an exchange carried nothing"));
    let mut large = c.clone();
    large.exchanges[2].bytes[1] = (1 << 30) + 1;
    let more = "a message of it has more than 1 GiB, and the model takes no more";
    assert_eq!(extract(&large, 1).err(), Some(more));
    large.exchanges[2].bytes[1] = 1 << 30;
    assert!(extract(&large, 1).is_ok());
    for quality in [tcpwhy_analysis::Quality::ONE_SIDED, tcpwhy_analysis::Quality::CAPTURE_DROPS] {
        let mut cut = c.clone();
        cut.quality.set(quality);
        assert_eq!(extract(&cut, 1).err(), Some("the capture lacks packets of this connection"));
    }
    assert!(extract(&c, 0).is_ok() && extract(&c, 99).is_ok());
}

/// Eight exchanges before and after the example are replayed with it; whatever comes before those is replaced.
#[test]
fn exchanges_around_the_example() {
    let mut w = Wire::new(Tap::Server, ms(20));
    w.handshake();
    for k in 0..40 {
        w.after(ms(30)).client().data(100 + k);
        w.after(ms(12)).server().data(50);
        w.after(ms(10)).client().ack();
    }
    let c = w.connection();
    let of = |id| {
        let x = extract(&c, id).expect("can be replayed");
        (x.exchanges, x.observed, x.question.skip, x.question.scenario.workload.requests)
    };
    // At the server's tap each takes 2 ms.
    assert_eq!(of(20), ((12, 28), ms(34), 3, 20));
    assert_eq!(of(3), ((1, 11), ms(42), 0, 11));
    assert_eq!(of(40), ((32, 40), ms(18), 3, 12));
    assert_eq!(of(0), ((1, 9), ms(38), 0, 9));
    let x = extract(&c, 20).expect("can be replayed");
    let before = "What happened before is replaced by three exchanges like the first.";
    assert_eq!((x.end, x.assumed.last().map(String::as_str)), (1, Some(before)));
    // The gap at this tap holds the trip back and forth.
    let turns = &x.question.scenario.workload.turns;
    assert!(
        (turns[4].before - ms(30)).0.abs() <= 2 && (turns[4].think - ms(2)).0.abs() <= 2,
        "{:?}",
        turns[4]
    );
    // Fewer where exchanges between are not kept.
    let mut sparse = c.clone();
    sparse.exchanges.retain(|e| e.id != 16 && e.id != 23);
    assert_eq!(extract(&sparse, 20).expect("can be replayed").exchanges, (17, 22));
}

/// Buffers that were seen to limit, losses about where they were, and a reader that was away.
#[test]
fn settings_and_losses_that_show() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.host[SERVER].window = 4 * MSS;
    w.host[SERVER].wscale = Some(0);
    w.handshake();
    for k in 0..5 {
        w.at(ms(30 + 20 * k)).client().write(4 * MSS);
        w.at(ms(40 + 20 * k)).server().ack();
    }
    w.at(ms(140)).server().data(50);
    w.at(ms(160)).client().data(700).lost();
    w.at(ms(380)).client().repeat(20 * MSS, 700);
    w.at(ms(390)).server().data(50);
    let c = w.connection();
    let x = extract(&c, 1).expect("can be replayed");
    let assumed = [
        "No bottleneck shows: none is modelled.",
        "The server's receive buffer is 5792 bytes, its largest window.",
    ];
    assert_eq!(x.assumed, assumed);
    let s = &x.question.scenario;
    assert_eq!((s.hosts[SERVER].rcvbuf, s.hosts[CLIENT].sndbuf), (Some(5_792), None));
    // The timer at the end of the second message repeated its last byte.
    let last = What::Seq { at: u64::from(20 * MSS) + 700 - 1, copies: 1 };
    assert!(
        s.links[CLIENT].drops.iter().all(|d| d.what == last && d.connection == 0),
        "{:?}",
        s.links[CLIENT].drops
    );
    assert!(!s.links[CLIENT].drops.is_empty());
    assert_eq!(s.links[SERVER].drops.len(), 0);
}

/// A window that was closed and kept nobody waiting says nothing of a reader that was away.
#[test]
fn a_closed_window_that_cost_nothing() {
    for closed in [false, true] {
        let mut w = Wire::new(Tap::Client, ms(20));
        w.handshake();
        w.at(ms(30)).client().data(100);
        w.at(ms(40)).server().data(50);
        w.at(ms(50)).client().window(if closed { 0 } else { 64_000 }).ack();
        w.at(ms(60)).client().window(64_000).ack();
        w.at(ms(100)).client().data(100);
        w.at(ms(110)).server().data(50);
        let x = extract(&w.connection(), 1).expect("can be replayed");
        assert_eq!(x.assumed, ["No bottleneck shows: none is modelled."]);
        assert!(x.question.scenario.hosts.iter().all(|h| h.read_pauses.is_empty()));
    }
}

/// A reader that was away, once.
#[test]
fn a_reader_that_was_away() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.host[SERVER].window = 3 * MSS;
    w.host[SERVER].wscale = Some(0);
    w.handshake();
    w.at(ms(30)).client().write(3 * MSS);
    w.at(ms(40)).server().window(0).ack();
    w.at(ms(270)).client().probe();
    w.at(ms(280)).server().ack();
    w.at(ms(500)).server().window(3 * MSS).ack();
    w.at(ms(510)).client().write(MSS);
    w.at(ms(520)).server().data(50);
    w.at(ms(530)).client().ack();
    let x = extract(&w.connection(), 1).expect("can be replayed");
    let pauses = &x.question.scenario.hosts[SERVER].read_pauses;
    assert!(pauses.len() == 1 && pauses[0].1 == ms(480) && pauses[0].0 < u64::from(4 * MSS), "{pauses:?}");
    let said = [
        "No bottleneck shows: none is modelled.",
        "The server's receive buffer is 4344 bytes, its largest window.",
        "The server stopped reading once, for 480 ms; it does so with every change, too.",
    ];
    assert_eq!(x.assumed, said);
    assert!(x.question.scenario.hosts[CLIENT].read_pauses.is_empty());
}

/// A reader that takes 20,000 bytes and stops, five times: each stop is replayed at its place, as the
/// reader's, and stays with every change, also on a connection that was in use before.
#[test]
fn a_reader_that_stops_again_and_again() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.host[CLIENT].window = 160 << 7;
    w.handshake();
    w.at(ms(30)).client().data(100);
    for k in 0..5 {
        w.at(ms(50 + 300 * k)).server().write(14 * MSS);
        w.at(ms(51 + 300 * k)).client().window(0).ack();
        w.at(ms(330 + 300 * k)).client().window(160 << 7).ack();
    }
    w.at(ms(1550)).server().write(14 * MSS);
    w.at(ms(1551)).client().ack();
    let c = w.connection();
    let seen = c.budget.get(Cause::SlowReader);
    let x = extract(&c, 1).expect("can be replayed");
    let host = &x.question.scenario.hosts[CLIENT];
    assert_eq!(
        (host.read_pauses.len(), host.rcvbuf),
        (5, None),
        "no SO_RCVBUF shows: {:?}",
        host.read_pauses
    );
    assert_eq!(host.read_pauses.iter().fold(Nanos::ZERO, |t, p| t + p.1), seen);
    assert!(host.read_pauses.is_sorted_by_key(|p| p.0), "{:?}", host.read_pauses);
    assert!(
        x.assumed.iter().any(|a| a.starts_with("The client stopped reading 5 times, for ")),
        "{:?}",
        x.assumed
    );
    let mut question = x.question.clone();
    question.max_events = tcpwhy_model::MAX_EVENTS;
    let reader = |q: &tcpwhy_model::Question| {
        let answer = q.ask().expect("possible");
        assert!(answer.complete);
        // Before the first stop shows, less than a segment of window is left.
        let of = |b: &&(Cause, Option<Side>, Nanos)| matches!(b.0, Cause::SlowReader | Cause::SillyWindow);
        let time = q.budget(&answer).iter().filter(of).fold(Nanos::ZERO, |t, b| t + b.2);
        assert!((time - seen).0.abs() * 10 < seen.0, "{time} of {seen}: {:?}", q.budget(&answer));
        answer.total
    };
    let now = reader(&question);
    let changes = question.changes();
    assert!(changes.iter().any(|c| c.fix == FixId::ReuseConnections));
    assert!(changes.iter().all(|c| c.fix != FixId::UnsetRcvbuf), "there is none to be taken away");
    for change in changes {
        let then = reader(&change.question);
        assert!(then > now - ms(100), "{}: {now} -> {then}", change.what);
    }
}

/// The largest flight while the send buffer was said to be the limit is the buffer only if none was twice as large.
#[test]
fn a_send_buffer_holds_what_was_in_flight() {
    let c = held(ms(40)).connection();
    let with = |most| {
        let mut c = c.clone();
        c.ends[CLIENT].max_flight = most;
        let span = &mut c.exchanges[0].spans[0];
        (span.cause, span.side) = (Cause::SendBuffer, Some(Side::Client));
        span.facts = Facts::Flight { flight: 10_000, segments: 7, rtt: ms(20), before: 0 };
        extract(&c, 1).expect("can be replayed").question.scenario.hosts[CLIENT].sndbuf
    };
    assert_eq!((with(10_000), with(19_999), with(20_000)), (Some(10_000), Some(10_000), Some(20_000)));
}

/// A TLS handshake is as many turns as its time holds round trips, with its bytes and the server's work
/// shared among them.
#[test]
fn a_tls_handshake_is_taken_out_as_turns() {
    let turns = |work: Nanos, flights: i64| {
        let mut w = Wire::new(Tap::Client, ms(20));
        w.handshake();
        let hello = Tls::HANDSHAKE | Tls::CHANGE_CIPHER;
        for _ in 0..flights {
            w.client().data(300).tls(hello);
            w.after(ms(10) + work).server().data(1_000).tls(hello);
            w.after(ms(10));
        }
        w.client().data(400).tls(Tls::DATA);
        w.after(ms(10)).server().data(500).tls(Tls::DATA);
        w.after(ms(10)).client().ack();
        let x = extract(&w.connection(), 1).expect("can be replayed");
        let load = &x.question.scenario.workload;
        let said = load.turns.iter().map(|t| format!("{:?} {} {:?}", t.request, t.think, t.response));
        (load.tls, load.requests, said.collect::<Vec<_>>())
    };
    let application = "[Write(400)] 0 ns [Write(500)]".to_owned();
    let flight = |work: &str| format!("[Write(300)] {work} [Write(1000)]");
    assert_eq!(turns(Nanos::ZERO, 1), (1, 1, vec![flight("0 ns"), application.clone()]));
    assert_eq!(turns(ms(7), 2), (2, 1, vec![flight("7.00 ms"), flight("7.00 ms"), application]));
}

/// A head of an answer, a pause of its program, and its body behind a window that the pause has made small
/// again: a replay, which knows how long programs pause and not where, has nothing of that, and cannot say that
/// keeping the window is for nothing.
#[test]
fn a_replay_without_the_cause_refutes_no_fix() {
    let mut w = Wire::new(Tap::Client, ms(30));
    w.handshake();
    w.after(ms(20)).client().data(100);
    w.after(ms(15)).server().data(10 * MSS);
    w.after(ms(15)).client().ack();
    w.after(ms(15)).server().data(20 * MSS);
    w.after(ms(15)).client().ack();
    for _ in 0..2 {
        w.after(ms(20)).client().data(100);
        w.after(ms(15)).server().data(200);
        w.after(ms(15)).client().ack();
        w.after(ms(300)).server().data(10 * MSS);
        w.after(ms(15)).client().ack();
        w.after(ms(15)).server().data(4 * MSS);
        w.after(ms(15)).client().ack();
    }
    let analysis = predicted(&w);
    let f = finding(&analysis, Cause::IdleRestart);
    assert!(f.replay.is_none() && f.refuted.is_empty(), "{f:?}");
    assert!(!fix(f, FixId::NoIdleRestart).replayed);
    let refuting = analysis.findings.iter().filter_map(|f| f.replay.as_ref()).flat_map(|r| &r.no_help);
    assert!(refuting.clone().all(|n| n.id != FixId::NoIdleRestart.info().id));
}

/// Larger packets take more memory than they carry, and a receive window grows by that, which the model does not know: where that was a limit
/// as well, what an MTU saves is no prediction (rule 167).
#[test]
fn what_larger_packets_save_is_not_predicted_beside_a_full_receive_window() {
    let of = |window: u32, flights: [u32; 5]| {
        let mut w = Wire::new(Tap::Server, ms(20));
        w.host[CLIENT].window = window * MSS;
        w.host[CLIENT].wscale = Some(2);
        w.handshake();
        w.at(ms(30)).client().data(100);
        for (k, flight) in (0..).zip(flights) {
            w.at(ms(40 + 20 * k)).server().write(flight * MSS);
            w.at(ms(50 + 20 * k)).client().ack();
        }
        w.at(ms(140)).server().data(100);
        w.at(ms(150)).client().ack();
        let analysis = predicted(&w);
        let has = |cause| analysis.findings.iter().find(|f| f.cause == cause);
        let slow = has(Cause::SlowStart).expect("slow start");
        let fix = slow.fixes.iter().find(|x| x.fix == FixId::LargerMtu).expect("the fix");
        assert!(fix.saves.is_some_and(|s| s > Nanos::ZERO));
        (has(Cause::ReceiveWindow).is_some(), fix.predicted.is_some(), fix.replayed)
    };
    assert_eq!(of(400, [10, 20, 40, 80, 160]), (false, true, true));
    assert_eq!(of(40, [10, 20, 40, 40, 40]), (true, false, false));
}
