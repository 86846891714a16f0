//! The rules by which time is labelled, one small capture each. See `wire` for how they are written.

#[path = "../wire/mod.rs"]
mod wire;

mod regressions;

mod advice;
mod asked_ahead;
mod blocked;
mod both_ways;
mod boundaries;
mod captures;
mod compared;
mod corked;
mod distance;
mod doubled;
mod doubtful;
mod ends;
mod exchanges;
mod granted;
mod grounds;
mod hosts;
mod late_acks;
mod lingering;
mod logins;
mod loss;
mod nagle;
mod named;
mod needless;
mod never;
mod no_effect;
mod opening;
mod order;
mod paced;
mod pieces;
mod probed;
mod queued;
mod readers;
mod replayed;
mod room;
mod scans;
mod servers;
mod session;
mod settings;
mod short;
mod shut;
mod sizes;
mod spaced;
mod sums;
mod timing;
mod too_large;
mod trips;
mod unheard;
mod unseen;
mod window;
mod windows;
mod within;
mod words;

use tcpwhy_base::{CAUSES, Cause, Kind};

/// Where the tests of this crate are.
const TESTS: [&str; 8] = [
    include_str!("blocked.rs"),
    include_str!("captures.rs"),
    include_str!("exchanges.rs"),
    include_str!("loss.rs"),
    include_str!("nagle.rs"),
    include_str!("opening.rs"),
    include_str!("room.rs"),
    include_str!("windows.rs"),
];

/// Causes of the table that no capture makes the analysis say by itself, and why. One that a test shows may not stay
/// here.
const NOT_FROM_A_CAPTURE: &[(Cause, &str)] = &[(
    Cause::SynQueueFull,
    "looks like a lost SYN: an alternative of syn_retransmit; only the server's counters tell",
)];

#[test]
fn every_cause_that_a_capture_can_show_has_a_rule_test() {
    for info in CAUSES.iter().filter(|c| c.kind == Kind::Span && !c.live_only) {
        // A line of a story (whole stories are compared), or the cause by name in an assertion.
        let line = format!("{} ", info.id);
        let name = format!("Cause::{:?}", info.cause);
        let told = TESTS.iter().any(|test| test.lines().any(|l| l.trim_start().starts_with(&line)));
        let named = TESTS
            .iter()
            .any(|test| test.split(|c: char| !c.is_alphanumeric() && c != ':').any(|word| word == name));
        let excused = NOT_FROM_A_CAPTURE.iter().any(|(cause, _)| *cause == info.cause);
        assert!(told || named || excused, "no test shows {}", info.id);
        assert!(!(told && excused), "{} is shown by a test after all", info.id);
    }
}
