//! Two TCP endpoints and a link in virtual time.
//!
//! Takes a [`Scenario`] (path, hosts, workload), gives an [`Outcome`]: every packet with its times, every turn as the
//! applications saw it, and for every wait its cause. Deterministic: the same scenario gives the same outcome, on
//! every machine. Knows no files, no clock and no host. Time is integer nanoseconds; the rules are those of Linux
//! (`docs/model.md` names their sources and what is left out), their constants come from a [`Profile`].

mod ack;
mod app;
mod ask;
mod bbr;
mod change;
mod cong;
mod flights;
mod link;
mod open;
mod packet;
mod profile;
mod receive;
mod recovery;
mod rtt;
mod scenario;
mod send;
mod sim;
mod socket;
mod spans;
mod spread;
mod tap;
mod timer;

pub use ask::{Answer, MAX_EVENTS, Question};
pub use change::{Change, Ranking, Tried, useless};
pub use flights::{Flight, flights};
pub use packet::{HEADERS, Packet, Passage, TIMESTAMPS};
pub use profile::{Acks, Congestion, Nagle, PROFILES, Profile, WindowRule};
pub use scenario::{Host, Impossible, MOST_BYTES, Scenario, Stack, check};
pub use sim::{Connected, Outcome, Served, run};
pub use spans::{Exchange, Span, Story, stories};
pub use spread::{Pattern, Spread};
pub use tap::{EPOCH, Tapped, tap};
pub use timer::Clock;
