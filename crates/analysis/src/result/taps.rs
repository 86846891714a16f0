use crate::rest::{Frame, at_rest};
use tcpwhy_base::{End, Nanos};

/// What two taps say of a connection together, by client and server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TwoTaps {
    /// Packets that passed the tap of their sender (but for the last, of which it is not known whether they arrived).
    pub sent: [u64; 2],
    /// Those of them that never came to the other tap.
    pub lost: [u64; 2],
    /// Those of the lost that carried data.
    pub lost_data: [u64; 2],
    /// The lost ones, in the order of time; not more than some hundred.
    pub losses: Vec<Lost>,
    /// Packets pass the taps as they are; else segments are joined or split on the way, and losses cannot be told.
    pub comparable: [bool; 2],
}

/// A packet that left one tap and never came to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lost {
    /// Who sent it.
    pub from: End,
    /// When it passed its sender's tap, on the clock of the first capture.
    pub time: Nanos,
    /// Its frame there.
    pub frame: u64,
    /// Its payload.
    pub bytes: u32,
    /// It was a SYN or SYN-ACK.
    pub syn: bool,
}

at_rest! { Lost { from, time, frame as Frame, bytes, syn } }
