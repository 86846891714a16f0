//! Two TCP endpoints and a link in virtual time.
//!
//! Takes a [`Scenario`] (path, hosts, workload), gives an [`Outcome`]: every packet with its times, every turn as the
//! applications saw it, and for every wait its cause. Deterministic: the same scenario gives the same outcome, on
//! every machine. Knows no files, no clock and no host. Time is integer nanoseconds; the rules are those of Linux
//! (`docs/model.md` names their sources and what is left out), their constants come from a [`Profile`].
//!
//! Two writes and a read, 40 ms away: the second write waits for the ACK of the first, and that for the
//! receiver's timer.
//!
//! ```
//! use tcpwhy_base::{Cause, Nanos, Step, Turn, Workload};
//! use tcpwhy_model::{Scenario, run, stories};
//!
//! let mut scenario = Scenario::with_path(Nanos::millis(40), None, None, 1500);
//! let request = vec![Step::Write(200), Step::Write(800)];
//! let turn = Turn { request, response: vec![Step::Write(120)], ..Turn::default() };
//! scenario.workload = Workload::serial(turn, 5);
//!
//! let held = run(&scenario)?;
//! let seen = &stories(&scenario, &held, 0)[0];
//! assert!(seen.exchanges[4].spans.iter().any(|span| span.cause == Cause::NagleDelayedAck));
//!
//! scenario.hosts[0].nodelay = true;
//! let fast = run(&scenario)?;
//! let last = |outcome: &tcpwhy_model::Outcome| outcome.turns[4].end.map(|end| end - outcome.turns[4].start);
//! assert!(last(&fast) < last(&held));
//! # Ok::<(), tcpwhy_model::Impossible>(())
//! ```

mod agenda;
mod app;
mod ask;
mod bbr;
mod change;
mod cong;
mod flights;
mod link;
mod packet;
mod profile;
mod rtt;
mod scenario;
mod sim;
mod socket;
mod spans;
mod spread;
mod tap;
mod timer;

pub use ask::{Answer, Question};
pub use change::{Change, MOST_INITCWND, POPULAR, Ranking, Tried, combine, useless};
pub use flights::{Flight, flights};
pub use packet::{HEADERS, Packet, Passage, TIMESTAMPS};
pub use profile::{Acks, Congestion, Nagle, PROFILES, Profile, WindowRule};
pub use scenario::{Host, Impossible, MOST_BYTES, Scenario, Stack, check};
pub use sim::{Connected, MAX_EVENTS, Outcome, Served, run};
pub use spans::{Exchange, Span, Story, stories};
pub use spread::{Held, Pattern, Requests, Spread, apart};
pub use tap::{EPOCH, Tapped, tap};
pub use timer::Clock;
