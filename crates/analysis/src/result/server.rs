use crate::budget::Budget;
use crate::requests::Distribution;
use tcpwhy_base::{Endpoint, Nanos};

/// The requests to one address and port, over its connections.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Server {
    /// Who answered.
    pub server: Endpoint,
    /// How many connections to it.
    pub connections: u64,
    /// How many of them a reset answered at once.
    pub refused: u64,
    /// Setups and exchanges by cause.
    pub budget: Budget,
    /// Gaps before the last byte: no request was on its way on that connection.
    pub idle: Nanos,
    /// How long its exchanges took.
    pub times: Distribution,
    /// From the start of the first setup or exchange to the end of the last.
    pub range: Option<(Nanos, Nanos)>,
    /// Connections were in use at the same time, so that times may add up to more than passed.
    pub at_once: bool,
    /// Its requests were made while that server answered others.
    pub within: Option<Endpoint>,
    /// Whom it asked while it answered; some of them may be no part of what was chosen from the capture.
    pub asks: Vec<Endpoint>,
}

/// An exchange that one host made with another while it answered one of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Asked {
    /// Connection and exchange that were being answered.
    pub by: (u32, u32),
    /// Connection and exchange that were made meanwhile.
    pub to: (u32, u32),
    /// How long the latter took.
    pub time: Nanos,
}

impl Server {
    /// The time of its setups and exchanges, summed.
    pub fn requests(&self) -> Nanos {
        self.budget.total()
    }

    /// What passed from the first to the last.
    pub fn clock(&self) -> Nanos {
        self.range.map_or(Nanos::ZERO, |(first, last)| last - first)
    }
}
