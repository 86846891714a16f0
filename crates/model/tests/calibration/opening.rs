use crate::common::*;
use tcpwhy_base::What;
use tcpwhy_model::{Profile, Scenario};

fn small() -> Scenario {
    nodelay(serial(path(20.0, 0.0, 0, 1500), turn(&[100], 0.0, &[200]), 1))
}

fn connect(s: &Scenario) -> f64 {
    let c = &go(s).connections[0];
    (c.connected.expect("connected") - c.start).as_ms()
}

#[test]
fn syns_are_repeated_each_second_and_then_later() {
    let lost: Vec<What> = (1..=8).map(What::Syn).collect();
    let out = go(&lose(small(), 0, &lost));
    let at: Vec<f64> =
        out.passages.iter().filter(|p| p.packet.syn && p.packet.from == 0).map(|p| p.sent.as_ms()).collect();
    assert_eq!(at.len(), 9);
    let ids =
        ["A0 first SYN lost", "the first 2 SYNs lost", "A0 three SYNs lost"].map(str::to_owned).into_iter();
    let ids = ids.chain((4..=8).map(|n| format!("the first {n} SYNs lost")));
    for (got, id) in at[1..].iter().zip(ids) {
        // The SYN that arrives is answered a round trip later.
        near(*got, measured(&id) - 20.0, 3.0, &id);
    }
    let answer = measured("the SYN-ACK lost");
    near(connect(&lose(small(), 1, &[What::Syn(1)])), answer, 3.0, "a lost SYN-ACK");
}

#[test]
fn old_kernels_double_at_once() {
    let mut s = lose(small(), 0, &[What::Syn(1), What::Syn(2), What::Syn(3)]);
    s.hosts[0].stack.profile = Profile::named("linux-5.10").expect("known");
    // By the rule (RFC 6298 with an initial timeout of 1 s): no such kernel was measured.
    near(connect(&s), 7020.0, 3.0, "1 + 2 + 4 s");
}

#[test]
fn a_lost_third_packet_costs_nothing() {
    let lost = latencies(&go(&lose(small(), 0, &[What::Ack(1)])))[0];
    near(lost, latencies(&go(&small()))[0], 1.0, "the request carries the ACK");
}

/// Backlog 2, nobody accepts for 6 s: three connections fit, the others come at the SYN of 7 s.
#[test]
fn a_full_accept_queue() {
    let mut s = serial(path(2.0, 0.0, 0, 1500), turn(&[100], 0.0, &[100]), 1);
    (s.connections, s.stagger) = (8, ms(50.0));
    (s.hosts[1].backlog, s.hosts[1].accept_start) = (2, ms(6000.0));
    let out = go(&s);
    let connects: Vec<f64> =
        out.connections.iter().filter_map(|c| Some((c.connected? - c.start).as_ms())).collect();
    assert_eq!(connects.iter().filter(|c| **c < 10.0).count(), 3, "{connects:?}");
    for late in connects.iter().filter(|c| **c > 10.0) {
        near(*late, measured("backlog 2, nobody accepts for 6 s, the last connect"), 3.0, "a late connect");
    }
}
