use crate::common::*;
use tcpwhy_base::Cork;
use tcpwhy_model::{Acks, Host, Scenario};

/// 4 + 2048 bytes up, 10 ms of work, 4 + 256 bytes down, over a path of about 0.15 ms.
fn length_prefixed(mtu: u64, requests: u32) -> Scenario {
    let mut s = serial(path(0.1, 0.0, 0, mtu), turn(&[4, 2048], 10.0, &[4, 256]), requests);
    s.hosts.iter_mut().for_each(|h| h.stack.wake = ms(0.05));
    s
}

fn median(out: &tcpwhy_model::Outcome) -> f64 {
    let mut all = latencies(out);
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

#[test]
fn write_write_read() {
    let both = go(&length_prefixed(65_535, 200));
    near(latencies(&both)[0], measured("length prefixes, the first request"), 10.0, "the first request");
    near(median(&both), measured("A3 one connection"), 10.0, "both ends with Nagle");
    near(
        median(&go(&with(length_prefixed(65_535, 200), 0, |h| h.nodelay = true))),
        measured("A3 NODELAY client only"),
        10.0,
        "NODELAY at the client",
    );
    near(
        median(&go(&with(length_prefixed(65_535, 200), 1, |h| h.nodelay = true))),
        measured("A3 NODELAY server only"),
        10.0,
        "NODELAY at the server",
    );
    near(
        median(&go(&nodelay(length_prefixed(65_535, 200)))),
        measured("A3 NODELAY both"),
        10.0,
        "NODELAY at both",
    );
    let cork = |h: &mut Host| h.cork = Cork::Message;
    near(
        median(&go(&with(with(length_prefixed(65_535, 200), 0, cork), 1, cork))),
        measured("A3 CORK both"),
        10.0,
        "cork at both",
    );
    let id = "length prefixes, cork at the client";
    near(median(&go(&with(length_prefixed(65_535, 200), 0, cork))), measured(id), 10.0, id);
    near(median(&go(&length_prefixed(1500, 200))), measured("A3 MTU 1500"), 10.0, "MTU 1500");
}

#[test]
fn three_replies_before_ping_pong() {
    let three = |h: &mut Host| h.stack.profile.acks = Acks::Adaptive { pingpong: 3 };
    let out = go(&with(with(length_prefixed(65_535, 1000), 0, three), 1, three));
    let mean = latencies(&out).iter().sum::<f64>() / 1000.0;
    near(mean, measured("A3 pingpong threshold 3 (mean)"), 20.0, "tcp_pingpong_thresh=3");
}

#[test]
fn a_reconnect_after_each() {
    let mut s = length_prefixed(65_535, 100);
    s.workload.reconnect_every = 1;
    near(median(&go(&s)), measured("A3 reconnect after 1"), 10.0, "a connection for each request");
    let mut s = length_prefixed(65_535, 1000);
    s.workload.reconnect_every = 10;
    let mean = measured("A3 reconnect after 10 (mean of all)");
    near(total(&go(&s)) / 1000.0, mean, 10.0, "for ten");
}

/// A header of 4 bytes stalls with a body of 1444, and not with a full segment of 1448.
#[test]
fn a_full_segment_forces_the_acknowledgement() {
    let median_of = |body| {
        let mut s = serial(path(0.1, 0.0, 0, 1500), turn(&[4, body], 0.0, &[4, 256]), 50);
        s.hosts[1].nodelay = true;
        s.hosts.iter_mut().for_each(|h| h.stack.wake = ms(0.02));
        median(&go(&s))
    };
    let (stalls, passes) = (median_of(1444), median_of(1448));
    assert!((40.0..48.0).contains(&stalls), "{stalls}");
    assert!(passes < 1.0, "{passes}");
}

#[test]
fn small_after_small_at_50_ms() {
    let s = serial(path(50.0, 0.0, 0, 1500), turn(&[4, 100], 0.0, &[4, 100]), 5);
    let all = latencies(&go(&s));
    let id = |which| measured(&format!("4 + 100 bytes both ways, RTT 50, {which}"));
    near(all[0], id("the first"), 10.0, "the first: quick ACKs");
    near(all[3], id("the fifth"), 10.0, "the others: three trips and two delayed ACKs");
    near(latencies(&go(&nodelay(s)))[3], id("NODELAY"), 10.0, "NODELAY");
}

#[test]
fn a_hundred_ms_away_with_the_request_split() {
    let s = serial(path(100.0, 500.0, 3_000_000, 1500), turn(&[200, 800], 0.0, &[500]), 20);
    near(median(&go(&s)), measured("200 + 800 bytes, RTT 100"), 10.0, "200 + 800 bytes at RTT 100");
}

/// Cheshire's 100,000 bytes: no stall with Minshall's rule, one with the classic rule.
#[test]
fn big_then_small_stalls_only_with_the_classic_rule() {
    let s = serial(path(0.2, 100.0, 300_000, 1500), turn(&[100_000], 0.0, &[1]), 20);
    near(median(&go(&s)), measured("A1 100,000 bytes, one back"), 10.0, "100,000 bytes at 100 Mbit/s");
    let classic = with(s, 0, |h| h.stack.profile.nagle = tcpwhy_model::Nagle::Classic);
    assert!(median(&go(&classic)) > 30.0, "{}", median(&go(&classic)));
}

/// Corked data leave max(RTO, 200 ms) after nothing is in flight.
#[test]
fn a_cork_is_drawn_by_the_probe_timer() {
    for (rtt, id) in [(0.1, "RTT 0"), (100.0, "RTT 100"), (300.0, "RTT 300")] {
        let id = format!("500 bytes corked for good, {id}");
        let s = serial(path(rtt, 0.0, 0, 1500), turn(&[500], 0.0, &[1]), 1);
        let out = go(&with(s, 0, |h| h.cork = Cork::Always));
        // Until it arrives, one way.
        near(latencies(&out)[0] - rtt / 2.0, measured(&id) - rtt / 2.0, 12.0, &id);
    }
}

#[test]
fn sixteen_quick_acks_and_then_the_timer() {
    // Bytes written one at a time, 60 ms apart, which nobody reads.
    let mut s = nodelay(serial(path(0.1, 0.0, 0, 1500), turn(&[1; 24], 0.0, &[]), 1));
    let steps: Vec<_> =
        (0..24).flat_map(|_| [tcpwhy_base::Step::Write(1), tcpwhy_base::Step::Pause(ms(60.0))]).collect();
    s.workload.turns[0].request = steps;
    s.hosts[1].read_pauses = vec![(0, ms(5000.0))];
    let out = go(&s);
    let sent: Vec<_> = out.passages.iter().filter(|p| p.packet.from == 0 && p.packet.len > 0).collect();
    let waits: Vec<f64> = sent
        .iter()
        .filter_map(|d| {
            let ack = out.passages.iter().find(|p| p.packet.from == 1 && p.packet.ack >= d.packet.end())?;
            Some((ack.sent - d.arrived?).as_ms())
        })
        .collect();
    let quick = waits.iter().take_while(|w| **w < 1.0).count();
    assert_eq!(quick, 16, "{waits:?}");
    assert!(waits[16..20].iter().all(|w| (40.0..100.0).contains(w)), "{waits:?}");
    assert!((40.0..47.0).contains(&waits[16]), "{waits:?}");
}
