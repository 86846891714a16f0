use serde_json::Value;
use std::sync::LazyLock;
use tcpwhy_base::{Chosen, Nanos, Step, Turn, What, Workload};
use tcpwhy_model::{Host, MAX_EVENTS, Outcome, Question, Scenario, Spread, run};

pub(crate) fn writes(sizes: &[u64]) -> Vec<Step> {
    sizes.iter().map(|&n| Step::Write(n)).collect()
}

pub(crate) fn ms(t: f64) -> Nanos {
    Nanos((t * 1e6) as i64)
}

/// `request` up, `think` ms of work, `response` down.
pub(crate) fn turn(request: &[u64], think: f64, response: &[u64]) -> Turn {
    Turn { before: Nanos::ZERO, request: writes(request), think: ms(think), response: writes(response) }
}

/// A path with a round trip in ms and Mbit/s (0: no bottleneck).
pub(crate) fn path(rtt: f64, mbit: f64, queue: u64, mtu: u64) -> Scenario {
    let rate = (mbit > 0.0).then_some((mbit * 1e6) as u64);
    Scenario::with_path(ms(rtt), rate, (queue > 0).then_some(queue), mtu)
}

pub(crate) fn serial(mut s: Scenario, turn: Turn, requests: u32) -> Scenario {
    s.workload = Workload::serial(turn, requests);
    s
}

pub(crate) fn nodelay(mut s: Scenario) -> Scenario {
    s.hosts.iter_mut().for_each(|h| h.nodelay = true);
    s
}

pub(crate) fn with(mut s: Scenario, side: usize, change: impl FnOnce(&mut Host)) -> Scenario {
    change(&mut s.hosts[side]);
    s
}

pub(crate) fn lose(mut s: Scenario, direction: usize, what: &[What]) -> Scenario {
    s.links[direction].drops = what.iter().map(|&what| Chosen { what, connection: 0 }).collect();
    s
}

pub(crate) fn go(s: &Scenario) -> Outcome {
    let out = run(s).expect("the scenario is possible");
    assert!(out.complete(), "not complete: {:?}", out.turns.last());
    out
}

/// Latency of each request in ms, without connecting.
pub(crate) fn latencies(out: &Outcome) -> Vec<f64> {
    out.turns.iter().filter_map(|t| Some((t.end? - t.start).as_ms())).collect()
}

pub(crate) fn total(out: &Outcome) -> f64 {
    out.elapsed.as_ms()
}

/// Runs that differ in the chances of their hosts alone: which of them takes how long, latencies summed.
pub(crate) fn chances(s: &Scenario, runs: u32) -> Spread {
    let question = Question { scenario: s.clone(), skip: 0, max_events: MAX_EVENTS };
    let time = |n| {
        let answer = question.varied(n).ask().expect("the scenario is possible");
        assert!(answer.complete, "run {n} is not complete");
        (n, answer.turns.iter().fold(Nanos::ZERO, |sum, &t| sum + t))
    };
    Spread::new((0..runs).map(time).collect(), question.apart()).expect("there are runs")
}

/// What the most frequent pattern of many runs takes, in ms.
pub(crate) fn usual(s: &Scenario) -> f64 {
    chances(s, 60).patterns()[0].median.as_ms()
}

/// A figure of `scripts/model_measured.json`, which `scripts/model_check.py` reads too and makes anew: the
/// median of the runs on the real kernel, in milliseconds.
#[track_caller]
pub(crate) fn measured(id: &str) -> f64 {
    static FILE: LazyLock<Value> = LazyLock::new(|| {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/model_measured.json");
        let text = std::fs::read_to_string(path).expect("the measured figures");
        serde_json::from_str(&text).expect("JSON")
    });
    let rows = ["rows", "tests"].iter().filter_map(|list| FILE[list].as_array()).flatten();
    let row = rows.into_iter().find(|row| row["id"] == id);
    let measured = row.and_then(|row| row["measured"].as_f64());
    assert!(measured.is_some(), "{id:?} was not measured");
    measured.unwrap_or(f64::NAN)
}

#[track_caller]
pub(crate) fn near(got: f64, want: f64, percent: f64, what: &str) {
    println!("{what}: model {got:.1}, measured {want:.1} ({:+.1} %)", (got / want - 1.0) * 100.0);
    assert!((got / want - 1.0).abs() * 100.0 <= percent, "{what}: model {got:.2}, measured {want:.2}");
}
