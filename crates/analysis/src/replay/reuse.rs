//! Which connections could have been spared: those that opened while an earlier one between the same hosts had nothing more to do.
//!
//! The first of several opens all the same, and so does each that runs beside others. One that is kept lies idle until the next request, for which a
//! sender takes its window back (`tcp_cwnd_restart`): a replay of the change needs to know for how long (rule 121).

use crate::result::{Connection, Finding};
use std::collections::BTreeMap;
use std::net::IpAddr;
use tcpwhy_base::{Cause, Endpoint, FixId, Nanos};

/// Of more connections than this it makes no difference which was the first, and to look at all of them takes time.
const MOST: usize = 10_000;

/// How a connection stands to those before it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Before {
    /// No other one between these hosts was free: the capture does not tell whether there might have been one.
    Unknown,
    /// It opens in any case, for the others; those that could use it lay idle for so long, in the middle.
    Opens(Nanos),
    /// One had been idle for so long.
    Free(Nanos),
}

/// Of some connections, by number.
#[derive(Debug, Default)]
pub(super) struct Reuse(BTreeMap<u32, Before>);

impl Reuse {
    /// Of all connections of a capture; of part of them nothing is known.
    pub(super) fn among(connections: &[Box<Connection>], all: u64) -> Reuse {
        let mut reuse = Reuse::default();
        if connections.len() > MOST || (connections.len() as u64) < all {
            return reuse;
        }
        let mut groups: BTreeMap<(IpAddr, Endpoint), Vec<&Connection>> = BTreeMap::new();
        for c in connections {
            groups.entry((c.client.ip, c.server)).or_default().push(c);
        }
        groups.into_values().for_each(|group| reuse.add(group));
        reuse
    }

    fn add(&mut self, mut group: Vec<&Connection>) {
        group.sort_by_key(|c| (c.start, c.id));
        let mut ends: Vec<Nanos> = group.iter().map(|c| done(c)).collect();
        ends.sort_unstable();
        let (mut ended, mut free) = (ends.into_iter().peekable(), Vec::new());
        let mut found: Vec<(u32, Option<Nanos>)> = Vec::new();
        for c in group {
            while let Some(end) = ended.next_if(|&end| end <= c.start) {
                free.push(end);
            }
            // The one that was used last, as pools do.
            found.push((c.id, free.pop().map(|end: Nanos| c.start - end)));
        }
        let mut idle: Vec<Nanos> = found.iter().filter_map(|f| f.1).collect();
        idle.sort_unstable();
        let middle = idle.get(idle.len() / 2).copied();
        for (id, free) in found {
            let before = match (free, middle) {
                (Some(idle), _) => Before::Free(idle),
                (None, Some(middle)) => Before::Opens(middle),
                (None, None) => Before::Unknown,
            };
            self.0.insert(id, before);
        }
    }

    /// How long a connection would lie idle that does the work of this one.
    pub(super) fn idle(&self, id: u32) -> Nanos {
        match self.0.get(&id) {
            Some(&(Before::Free(idle) | Before::Opens(idle))) => idle,
            Some(Before::Unknown) | None => Nanos::ZERO,
        }
    }

    /// Connections that are kept save nothing of those that open in any case.
    pub(super) fn spares(&self, f: &mut Finding, connections: &[Box<Connection>]) {
        let offered = f.fixes.iter_mut().find(|fix| fix.fix == FixId::ReuseConnections);
        // Of those the first is left out already.
        let Some(fix) = offered.filter(|_| f.cause != Cause::ShortConnections && !self.0.is_empty()) else {
            return;
        };
        let (mut all, mut open) = (Nanos::ZERO, Nanos::ZERO);
        for c in connections {
            let time = c.budget.get(f.cause);
            all += time;
            if matches!(self.0.get(&c.id), Some(Before::Opens(_))) {
                open += time;
            }
        }
        if open > Nanos::ZERO {
            fix.saves = fix.saves.map(|saves| saves.share(all - open, all));
        }
    }
}

/// When its last answer had come: after that it has nothing more to do.
fn done(c: &Connection) -> Nanos {
    let last = c.exchanges.last().filter(|_| c.exchanges_omitted.count == 0);
    last.map_or(c.end, |x| x.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Example, Fix, Frames};

    const MS: fn(i64) -> Nanos = Nanos::millis;

    /// Opened at once by 10 ms of handshake, and done by then.
    fn opened(id: u32, server: u8, (start, end): (i64, i64)) -> Box<Connection> {
        let at = |last: u8, port: u16| Endpoint { ip: [10, 0, 0, last].into(), port };
        let mut c = Connection::new(id, [at(1, 4_000 + id as u16), at(server, 80)], MS(start), MS(end));
        c.budget.add(Cause::Handshake, MS(10));
        Box::new(c)
    }

    /// What is said of each connection, and what connections that are kept save of a handshake of 10 ms each.
    fn found(connections: &[Box<Connection>]) -> (Vec<Nanos>, Nanos) {
        let reuse = Reuse::among(connections, connections.len() as u64);
        let lost = MS(10 * connections.len() as i64);
        let example = Example::new(1, 1, Frames::new(0, 1, 2, &[1]), MS(0), MS(10));
        let mut f = Finding::new(Cause::Handshake, None, lost, example);
        let mut fix = Fix::new(FixId::ReuseConnections, "client");
        fix.saves = Some(lost);
        f.fixes = vec![fix];
        reuse.spares(&mut f, connections);
        let idle = connections.iter().map(|c| reuse.idle(c.id)).collect();
        (idle, f.fixes[0].saves.expect("a gain"))
    }

    #[test]
    fn the_first_opens_and_each_that_runs_beside_others() {
        // One after the other: the first opens, and has lain idle as long as those behind it, in the middle.
        let three = [opened(1, 2, (0, 100)), opened(2, 2, (300, 400)), opened(3, 2, (900, 1_000))];
        assert_eq!(found(&three), (vec![MS(500), MS(200), MS(500)], MS(20)));
        // Two at a time: two open.
        let four = [(0, 100), (50, 150), (200, 300), (210, 400)];
        let four: Vec<_> = (1..).zip(four).map(|(id, time)| opened(id, 2, time)).collect();
        assert_eq!(found(&four), (vec![MS(110), MS(110), MS(50), MS(110)], MS(20)));
        // Side by side, alone, or at other servers: the capture does not tell what was there before.
        assert_eq!(found(&[opened(1, 2, (0, 100)), opened(2, 2, (50, 150))]), (vec![MS(0); 2], MS(20)));
        assert_eq!(found(&[opened(1, 2, (0, 100))]), (vec![MS(0)], MS(10)));
        assert_eq!(found(&[opened(1, 2, (0, 100)), opened(2, 3, (200, 300))]), (vec![MS(0); 2], MS(20)));
        // Of a part of the connections nothing is known.
        assert_eq!(Reuse::among(&three, 4).idle(2), Nanos::ZERO);
    }
}
