//! Requests that were made while another one was answered: whose they are, and what they make of its time.

use super::{Key, Request, Servers, carrier};
use crate::budget::Budget;
use crate::{Connection, Exchange, Totals};
use std::collections::{HashMap, HashSet};
use tcpwhy_base::{Cause, Endpoint, Nanos, Side};

/// Connection and exchange.
type Id = (u32, u32);

/// The servers that are asked, in one of the captures, by another one that is compared as well while that
/// answers (rule 61). Not so if the other one has no counterpart: then nothing else stands for it.
pub(super) fn inner(
    totals: [Option<&Totals>; 2],
    servers: &Servers,
    compared: &HashSet<Key>,
) -> HashSet<Key> {
    let mut inner = HashSet::new();
    for totals in totals.into_iter().flatten() {
        let asking: HashMap<Endpoint, Endpoint> =
            totals.servers.iter().filter_map(|s| Some((s.server, s.within?))).collect();
        for server in asking.keys() {
            let Some(own) = servers.key((server.port, server.ip)) else { continue };
            let around = std::iter::successors(asking.get(server), |s| asking.get(*s)).take(asking.len());
            let is_compared = |s: &Endpoint| {
                servers.key((s.port, s.ip)).is_some_and(|key| key != own && compared.contains(&key))
            };
            if around.into_iter().any(is_compared) {
                inner.insert(own);
            }
        }
    }
    // Each of them would be left to the others.
    if compared.iter().all(|key| inner.contains(key)) {
        inner.clear();
    }
    inner
}

/// Of one capture: which requests were made for which other one alone.
#[derive(Default)]
pub(super) struct Made<'a>(HashMap<Id, Vec<Request<'a>>>);

impl<'a> Made<'a> {
    pub(super) fn new<'c: 'a>(
        connections: impl Iterator<Item = &'c Connection>,
        totals: Option<&Totals>,
    ) -> Made<'a> {
        let asked = totals.map_or(&[][..], |t| &t.asked);
        let meant: HashSet<u32> = asked.iter().flat_map(|a| [a.by.0, a.to.0]).collect();
        let known: HashMap<u32, &'c Connection> =
            connections.filter(|c| meant.contains(&c.id)).map(|c| (c.id, c)).collect();
        let find = |(connection, exchange): Id| -> Option<(&'c Connection, &'c Exchange)> {
            let c = known.get(&connection)?;
            let at = c.exchanges.binary_search_by_key(&exchange, |x| x.id).ok()?;
            Some((c, &c.exchanges[at]))
        };
        let mut made: HashMap<Id, Vec<Request<'a>>> = HashMap::new();
        for a in asked {
            let (Some((_, outer)), Some((c, x))) = (find(a.by), find(a.to)) else { continue };
            // A connection that was there before was opened for nobody's request in particular.
            let since = outer.request_end.unwrap_or(outer.start);
            let setup = c.setup.as_ref().filter(|s| s.start >= since && carrier(c) == Some(x.id));
            made.entry(a.by).or_default().push(Request { connection: 0, id: a.to, exchange: x, setup });
        }
        Made(made)
    }

    /// The time of a request by cause. What its server waited for another one has the causes of that one's
    /// request in its place. Where those took longer than it waited, its own stand alone (rule 132).
    pub(super) fn times(&self, request: &Request<'_>) -> Budget {
        let (mut times, mut pauses) = (Budget::default(), Nanos::ZERO);
        for span in request.spans() {
            times.add(span.cause, span.duration());
            if (span.cause, span.side) == (Cause::SenderPause, Some(Side::Server)) {
                pauses += span.duration();
            }
        }
        let made = self.0.get(&request.id).map_or(&[][..], Vec::as_slice);
        let asked = made.iter().fold(Nanos::ZERO, |sum, x| sum + Nanos(x.length()));
        let work = asked.min(times.get(Cause::ServerThink));
        if asked - work > pauses {
            return times;
        }
        times.subtract(Cause::ServerThink, work);
        times.subtract(Cause::SenderPause, asked - work);
        made.iter().for_each(|x| times.add_all(&self.times(x)));
        times
    }
}
