//! What a run is given: the scenario that the lab runs too, with a stack that is modelled.

use crate::profile::{Congestion, Profile};
use std::fmt;
use tcpwhy_base::{Nanos, Step, Turn};

/// One experiment.
pub type Scenario = tcpwhy_base::Scenario<Stack>;

/// One host.
pub type Host = tcpwhy_base::Host<Stack>;

/// What the model must know of a host beyond its sockets.
#[derive(Clone, Debug)]
pub struct Stack {
    /// The system.
    pub profile: Profile,
    /// `tcp_slow_start_after_idle`, instead of the profile's.
    pub idle_restart: Option<bool>,
    /// Congestion control, instead of the profile's.
    pub congestion: Option<Congestion>,
    /// `tcp_mtu_probing` = 1.
    pub mtu_probing: bool,
    /// From the moment that a socket is ready until its application runs.
    pub wake: Nanos,
    /// From a read, or a wake-up within a write, until what is sent next leaves.
    pub turn: Nanos,
    /// Every wake-up takes between a half and one and a half of `wake`, drawn from here; none: all take as long.
    pub chance: Option<u64>,
    /// Bytes a second that a `write` copies: what a writer leaves its peer time for.
    pub copy_rate: u64,
    /// Where the host's ticks fall: timers run up to a tick late, by this.
    pub phase: Nanos,
}

impl Default for Stack {
    fn default() -> Stack {
        Stack {
            profile: Profile::default(),
            idle_restart: None,
            congestion: None,
            mtu_probing: false,
            // Measured beside captures of the lab, on an idle machine: a reader acknowledges what it was
            // woken for after 17 to 72 µs, mostly 36; an answer leaves after 50 to 100, mostly 66; 65,448
            // bytes are copied in 40 to 50.
            wake: Nanos::micros(35),
            turn: Nanos::micros(15),
            chance: None,
            copy_rate: 1_500_000_000,
            // Half a tick of a 250 Hz host: timers run as late as they do on average.
            phase: Nanos::millis(2),
        }
    }
}

/// A scenario that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impossible(pub String);

impl fmt::Display for Impossible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Impossible {}

/// Largest message: what a run can move within its event limit.
pub const MOST_BYTES: u64 = 1 << 30;

/// Refuses what cannot be, with the reason.
pub fn check(scenario: &Scenario) -> Result<(), Impossible> {
    let no = |why: String| Err(Impossible(why));
    // 68: IPv4's least (RFC 791). 40 bytes of headers and 12 of timestamps leave 16.
    if !(68..=65_535).contains(&scenario.mtu) {
        return no(format!("an MTU of {}: IPv4 allows 68 to 65535", scenario.mtu));
    }
    for link in &scenario.links {
        if link.delay < Nanos::ZERO || link.jitter < Nanos::ZERO {
            return no("a delay below zero".into());
        }
        if link.rate == Some(0) {
            return no("a rate of 0: nothing would ever arrive".into());
        }
        if link.queue_bytes.is_some_and(|q| q < scenario.mtu) || link.queue_packets == Some(0) {
            return no(format!(
                "a queue that does not hold one packet of {} bytes: nothing of full size would pass",
                scenario.mtu
            ));
        }
        if link.black_hole_over.is_some_and(|n| n < 68) {
            return no("a path that no packet passes".into());
        }
    }
    for host in &scenario.hosts {
        if host.sndbuf == Some(0) || host.rcvbuf == Some(0) {
            return no("a buffer of 0: nothing could be sent; leave it out for an automatic one".into());
        }
        if host.initcwnd == Some(0) {
            return no("an initial window of 0: nothing could be sent".into());
        }
        if host.read_chunk == 0 || host.write_chunk == Some(0) || host.read_rate == Some(0) {
            return no("an application that reads or writes 0 bytes at a time".into());
        }
    }
    check_workload(scenario)
}

fn check_workload(scenario: &Scenario) -> Result<(), Impossible> {
    let no = |why: &str| Err(Impossible(why.into()));
    let w = &scenario.workload;
    if w.turns.is_empty() || w.requests == 0 || scenario.connections == 0 {
        return no("no request at all");
    }
    for turn in &w.turns {
        let steps = || turn.request.iter().chain(&turn.response);
        let waits = steps().filter_map(|s| if let Step::Pause(t) = s { Some(*t) } else { None });
        if waits.chain([turn.before, turn.think]).any(|t| t < Nanos::ZERO) {
            return no("a time below zero");
        }
        let (up, down) = (Turn::bytes(&turn.request), Turn::bytes(&turn.response));
        if up == 0 && down == 0 {
            return no("a request and a response of 0 bytes: nothing would be sent");
        }
        if up > MOST_BYTES || down > MOST_BYTES {
            return Err(Impossible(format!(
                "{} bytes in one message: the model takes up to {MOST_BYTES} (1 GiB)",
                up.max(down)
            )));
        }
    }
    if scenario.limit <= Nanos::ZERO {
        return no("no time at all");
    }
    Ok(())
}
