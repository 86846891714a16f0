//! What the parts of one connection sum up to.

use crate::budget::Budget;
use crate::findings::{Quick, Rollups};
use crate::login::Opening;
use crate::requests::Requests;
use crate::rest::at_rest;
use crate::result::Omitted;
use tcpwhy_base::{Cause, Nanos};

/// What parts sum up to.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    pub(crate) budget: Budget,
    pub(crate) gap_budget: Budget,
    pub(crate) exchanges: Omitted,
    pub(crate) opening: Opening,
    pub(crate) gaps: Omitted,
    pub(crate) rollups: Rollups,
    /// Exchanges that took no longer than the path: round trips in series.
    pub(crate) quick_turns: u32,
    /// The longest of them.
    pub(crate) quick: Option<Quick>,
    pub(crate) requests: Requests,
    /// Time after the last byte, and what it is called.
    pub(crate) tail: Option<(Cause, Nanos)>,
    /// The last answer ended with a reset of the connection.
    pub(crate) cut_off: bool,
    /// The last request came to a server that had closed.
    pub(crate) too_late: bool,
    /// A reset of the server ended the last request, of which it had acknowledged nothing, or something.
    pub(crate) reset: [bool; 2],
    /// The client gave the last request up after so long.
    pub(crate) gave_up: Option<Nanos>,
}

at_rest! {
    Sums {
        budget, gap_budget, exchanges, opening, gaps, rollups, quick_turns, quick, requests, tail, cut_off, too_late,
        reset, gave_up,
    }
}

impl Sums {
    /// One more exchange.
    #[inline(always)]
    pub(super) fn count(&mut self, (start, end): (Nanos, Nanos), [client, server]: [u64; 2]) {
        self.opening.add(client, self.exchanges.count, self.exchanges.duration);
        self.exchanges.count += 1;
        self.exchanges.duration += end - start;
        self.exchanges.bytes[0] += client;
        self.exchanges.bytes[1] += server;
        self.requests.cover(start, end);
    }

    /// Takes the budgets of its exchanges and gaps.
    pub(super) fn take_budgets(&mut self) -> (Budget, Budget) {
        (std::mem::take(&mut self.budget), std::mem::take(&mut self.gap_budget))
    }
}
