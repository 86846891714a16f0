//! Two taps on one connection: which connections both have seen, how their clocks go, and what the tap beside
//! the server knows of what the other one sees arrive.
//!
//! [`Sketch`] is what is kept of one capture to recognise the other ([`pair`]); [`Clock`] brings the times of
//! the one to the clock of the other. While both are read, every connection of the client's tap has an
//! `Across`: the steps of the server as its own tap judged them, and the packets that are on their way
//! between the two.

mod across;
mod clock;
mod role;
mod sketch;
mod way;

pub(crate) use across::{Across, Until};
pub use clock::Clock;
pub(crate) use role::Role;
pub use sketch::{Paired, Pairing, Sketch, Unpaired, pair};
