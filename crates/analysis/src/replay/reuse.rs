//! Which connections could have been spared: those that opened while an earlier one between the same hosts
//! had nothing more to do.
//!
//! The first of several opens all the same, and so does each that runs beside others. One that is kept lies
//! idle until the next request, for which a sender takes its window back (`tcp_cwnd_restart`): a replay of
//! the change needs to know for how long (rule 121).

use crate::result::{Connection, Finding, Fix};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use tcpwhy_base::{Cause, Endpoint, FixId, Nanos};

/// Of more connections than this it makes no difference which was the first, and to look at all of them takes time.
const MOST: usize = 1_000;

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

/// A client's host and a server.
type Ends = (IpAddr, Endpoint);

/// Of all connections of a capture.
#[derive(Debug)]
pub(super) struct Reuse<'a> {
    connections: &'a [Box<Connection>],
    /// What was asked for last: mostly it is asked for again.
    last: Option<(Ends, Vec<(u32, Before)>)>,
}

impl Reuse<'_> {
    /// Of these, which are `all` there are; of a part of them nothing is known.
    pub(super) fn among(connections: &[Box<Connection>], all: u64) -> Reuse<'_> {
        let known = connections.len() as u64 >= all;
        Reuse { connections: if known { connections } else { &[] }, last: None }
    }

    /// How long a connection would lie idle that does the work of this one, of one request.
    pub(super) fn idle(&mut self, c: &Connection) -> Nanos {
        if c.exchange_count() > 1 {
            return Nanos::ZERO;
        }
        let ends = ends(c);
        if self.last.as_ref().is_none_or(|last| last.0 != ends) {
            let group = self.connections.iter().map(|c| &**c).filter(|c| self::ends(c) == ends).collect();
            self.last = Some((ends, stand(group)));
        }
        let all = self.last.iter().flat_map(|last| &last.1);
        match all.copied().find(|before| before.0 == c.id) {
            Some((_, Before::Free(idle) | Before::Opens(idle))) => idle,
            Some((_, Before::Unknown)) | None => Nanos::ZERO,
        }
    }

    /// Connections that are kept save nothing of those that open in any case.
    pub(super) fn spares(&self, findings: &mut [Finding]) {
        // Of those the first is left out already.
        let offers = |f: &&mut Finding| f.cause != Cause::ShortConnections && f.fixes.iter().any(is_reuse);
        let mut offers = findings.iter_mut().filter(offers).peekable();
        if self.connections.len() > MOST || offers.peek().is_none() {
            return;
        }
        let mut groups: BTreeMap<Ends, Vec<&Connection>> = BTreeMap::new();
        for c in self.connections {
            groups.entry(ends(c)).or_default().push(c);
        }
        let all = groups.into_values().flat_map(stand);
        let open: BTreeSet<u32> = all.filter(|b| matches!(b.1, Before::Opens(_))).map(|b| b.0).collect();
        for f in offers {
            let time = |c: &Connection| c.budget.get(f.cause);
            let all = self.connections.iter().fold(Nanos::ZERO, |sum, c| sum + time(c));
            let opens = self.connections.iter().filter(|c| open.contains(&c.id));
            let opens = opens.fold(Nanos::ZERO, |sum, c| sum + time(c));
            for fix in f.fixes.iter_mut().filter(|fix| is_reuse(fix) && opens > Nanos::ZERO) {
                fix.saves = fix.saves.map(|saves| saves.share(all - opens, all));
            }
        }
    }
}

fn is_reuse(fix: &Fix) -> bool {
    fix.fix == FixId::ReuseConnections
}

fn ends(c: &Connection) -> Ends {
    (c.client.ip, c.server)
}

/// How those between the same hosts stand to each other.
fn stand(mut group: Vec<&Connection>) -> Vec<(u32, Before)> {
    group.sort_by_key(|c| (c.start, c.id));
    let mut done: Vec<Nanos> = group.iter().map(|c| self::done(c)).collect();
    done.sort_unstable();
    let (mut done, mut free) = (done.into_iter().peekable(), Vec::new());
    let mut found: Vec<(u32, Option<Nanos>)> = Vec::with_capacity(group.len());
    for c in group {
        while let Some(end) = done.next_if(|&end| end < c.start) {
            free.push(end);
        }
        // The one that was used last, as pools do.
        found.push((c.id, free.pop().map(|end: Nanos| c.start - end)));
    }
    let mut idle: Vec<Nanos> = found.iter().filter_map(|f| f.1).collect();
    idle.sort_unstable();
    let middle = idle.get(idle.len() / 2).copied();
    let before = |(id, free)| match (free, middle) {
        (Some(idle), _) => (id, Before::Free(idle)),
        (None, Some(middle)) => (id, Before::Opens(middle)),
        (None, None) => (id, Before::Unknown),
    };
    found.into_iter().map(before).collect()
}

/// When its last answer had come: after that it has nothing more to do.
fn done(c: &Connection) -> Nanos {
    let last = c.exchanges.last().filter(|_| c.exchanges_omitted.count == 0);
    last.map_or(c.end, |x| x.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Example, Frames};

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
        let mut reuse = Reuse::among(connections, connections.len() as u64);
        let lost = MS(10 * connections.len() as i64);
        let example = Example::new(1, 1, Frames::new(0, 1, 2, &[1]), MS(0), MS(10));
        let mut f = Finding::new(Cause::Handshake, None, lost, example);
        let mut fix = Fix::new(FixId::ReuseConnections, "client");
        fix.saves = Some(lost);
        f.fixes = vec![fix];
        let mut findings = [f];
        reuse.spares(&mut findings);
        let idle = connections.iter().map(|c| reuse.idle(c)).collect();
        (idle, findings[0].fixes[0].saves.expect("a gain"))
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
        assert_eq!(Reuse::among(&three, 4).idle(&three[1]), Nanos::ZERO);
    }
}
