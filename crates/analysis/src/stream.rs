//! What outlives connections that leave as they end: sums, and what fixes need to know of the connections
//! that stand for others.

use crate::findings::{Rollup, Rollups};
use crate::fixes::Brief;
use crate::outlines::Outline;
use crate::result::{Connection, Finding, Totals};
use crate::shared::Shared;
use crate::sums::Sums;
use tcpwhy_base::{Cause, Side};

/// Pairs of a client address and a server whose short connections are counted; of further pairs none are, so that
/// memory stays bounded (about 10 MB).
const MOST_PAIRS: usize = 65_536;
/// Servers that are told apart, for the same reason: one holds some kilobytes if its requests differ much.
const MOST_SERVERS: usize = 4_096;
/// Stretches of time in which a server was used, of each, for the same reason.
const STRETCHES: usize = 64;

/// The connections of the examples of what is inherent.
#[derive(Debug, Default)]
pub(crate) struct Stream(Vec<((Cause, Option<Side>), Brief)>);

impl Stream {
    /// Sums that do not grow with connections.
    pub(crate) fn sums() -> Sums {
        Sums::new(MOST_PAIRS, MOST_SERVERS, STRETCHES)
    }

    /// Looks at a connection that has ended; `inherent` are the sums so far.
    pub(crate) fn add(&mut self, connection: &Connection, inherent: &Rollups) {
        for r in inherent.0.iter().filter(|r| r.example.example.connection == connection.id) {
            let brief = Brief::of(connection);
            match self.0.iter_mut().find(|known| known.0 == (r.cause, r.side)) {
                Some(known) => known.1 = brief,
                None => self.0.push(((r.cause, r.side), brief)),
            }
        }
    }

    /// After the last connection. Which exchange was made for which other one is not known: they have left, but for their
    /// `outlines`. Fixes say how they are made if `settings`.
    pub(crate) fn findings(
        self,
        sums: Sums,
        inherent: &Rollups,
        outlines: Vec<Outline>,
        totals: &mut Totals,
        settings: bool,
    ) -> Vec<Finding> {
        let sums = if settings { sums } else { sums.without_settings() };
        let brief = |r: &Rollup| self.0.iter().find(|b| b.0 == (r.cause, r.side)).map(|b| b.1);
        sums.findings(inherent, brief, (&[], Some(outlines)), Shared::default(), totals)
    }
}
