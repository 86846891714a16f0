use crate::common::*;
use tcpwhy_base::{LossOf, Nanos, What};
use tcpwhy_model::Scenario;

fn small(rtt: f64) -> Scenario {
    nodelay(serial(path(rtt, 0.0, 0, 1500), turn(&[300], 0.0, &[300]), 1))
}

/// A lone lost segment is repeated by the probe, at the time of the timeout.
#[test]
fn a_single_loss() {
    for rtt in [1.0, 40.0, 100.0] {
        // A connection that has measured its path: the third request is lost.
        let mut s = small(rtt);
        s.workload.requests = 12;
        s = lose(s, 0, &[What::Data(10)]);
        let all = latencies(&go(&s));
        let lost = all.iter().copied().fold(0.0, f64::max);
        let id = format!("one request lost, RTT {rtt}");
        // What the loss adds, so that a long path does not hide it.
        near(lost - rtt, measured(&id) - rtt, 10.0, &id);
    }
}

#[test]
fn the_repeats_of_one_segment() {
    let mut s = small(40.0);
    s.workload.requests = 12;
    s = lose(s, 0, &[What::Data(10), What::Data(11), What::Data(12), What::Data(13)]);
    let out = go(&s);
    let copies: Vec<Nanos> = {
        let lost =
            out.passages.iter().find(|p| p.packet.from == 0 && p.packet.len > 0 && p.arrived.is_none());
        let seq = lost.map_or(0, |p| p.packet.seq);
        out.passages
            .iter()
            .filter(|p| p.packet.from == 0 && p.packet.len > 0 && p.packet.seq == seq)
            .map(|p| p.sent)
            .collect()
    };
    let at: Vec<f64> = copies.iter().map(|t| (*t - copies[0]).as_ms()).collect();
    let ids = ["one request lost, RTT 40".to_owned()].into_iter();
    let ids = ids.chain((2..=4).map(|n| format!("a request lost {n} times, RTT 40")));
    for (got, id) in at[1..].iter().zip(ids) {
        // The last repeat is answered a round trip later.
        near(*got, measured(&id) - 40.0, 10.0, &id);
    }
}

fn response(bytes: u64, lost: &[What]) -> Scenario {
    let s = nodelay(serial(path(20.0, 50.0, 300_000, 1500), turn(&[300], 0.0, &[bytes]), 1));
    lose(s, 1, lost)
}

#[test]
fn losses_in_a_response() {
    let middle = response(100_000, &[What::Seq { at: 40_000, copies: 1 }]);
    near(
        latencies(&go(&middle))[0],
        measured("loss: one middle segment of 100 KB"),
        5.0,
        "one in the middle",
    );
    let last = |copies| response(20_480, &[What::Last { back: 0, copies }]);
    near(latencies(&go(&last(1)))[0], measured("loss: last segment"), 5.0, "the last segment");
    let both = "the last segment and its probe lost";
    near(latencies(&go(&last(2)))[0], measured(both), 5.0, both);
    let first: Vec<What> = (1..=10).map(What::Data).collect();
    let flight = measured("the first flight lost");
    near(latencies(&go(&response(100_000, &first)))[0], flight, 10.0, "the first flight");
}

/// Few segments behind the hole: the repeat waits a round trip and a quarter.
#[test]
fn reordering_window() {
    let mut s = nodelay(serial(path(40.0, 0.0, 0, 1500), turn(&[300], 0.0, &[4000]), 6));
    s = lose(s, 1, &[What::Data(13)]);
    let out = go(&s);
    let lost = out.passages.iter().find(|p| p.packet.from == 1 && p.arrived.is_none()).expect("one was lost");
    let again =
        out.passages.iter().find(|p| p.packet.repeat && p.packet.seq == lost.packet.seq).expect("repeated");
    // A round trip more until the answer is there.
    let repeat = measured("one of three segments lost, RTT 40") - 40.0;
    near((again.sent - lost.sent).as_ms(), repeat, 10.0, "RACK with two segments behind");
}

#[test]
fn random_loss_makes_the_rate() {
    // The median of 5 MB at 50 Mbit/s with 1 % of the data lost; Mathis' formula gives 5.7 s.
    let mut all: Vec<f64> = (1..=9)
        .map(|seed| {
            let mut s = nodelay(serial(path(20.0, 50.0, 300_000, 1500), turn(&[300], 0.0, &[5_000_000]), 1));
            s.seed = seed;
            s.links[1].loss_ppm = 10_000;
            s.links[1].loss_of = LossOf::Data;
            latencies(&go(&s))[0]
        })
        .collect();
    all.sort_by(f64::total_cmp);
    near(all[4], measured("1 % of the data lost, 5 MB, seeds 1 to 9"), 25.0, "1 % loss, cubic");
}

#[test]
fn the_link_makes_the_time() {
    for (queue, id) in
        [(64_000, "link: 10 Mbit/s, queue 64 KB, 5 MB"), (1_000_000, "link: 10 Mbit/s, queue 1 MB, 5 MB")]
    {
        let s = nodelay(serial(path(20.0, 10.0, queue, 1500), turn(&[300], 0.0, &[5_000_000]), 1));
        near(latencies(&go(&s))[0], measured(id), 10.0, id);
    }
}
