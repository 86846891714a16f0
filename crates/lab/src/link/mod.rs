//! The link: takes packets out of one host's TUN device, lets a [`pipe::Pipe`] decide their fate, and puts them into
//! the other's. One thread does both directions, so that what it records is in one order.

mod chooser;
mod forwarder;
mod packet;
mod pipe;

pub(crate) use forwarder::{Forwarder, LINK_TYPE, Passage};
pub use forwarder::{Lateness, Lost, Record};
pub(crate) use packet::{checksum, unreachable};
pub(crate) use pipe::{Fate, Pipe};
pub use pipe::{Reason, Tally};
