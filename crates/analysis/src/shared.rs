//! Transfers side by side that filled one link together (rule 99).
//!
//! Each of them is held by its own windows, queues and losses: that is how TCP divides a link. What all of
//! them would take is set by their bytes and the rate, so no fix of one saves what the link was full for:
//! what one gains the others lose.

use crate::budget::Budget;
use crate::result::{Connection, Exchange, LinkFull, SharedLink, Span, Vantage};
use std::collections::BTreeMap;
use std::net::IpAddr;
use tcpwhy_base::{Cause, Class, Nanos, Owner, Side};

/// Fewer bytes than ten segments of 1,460 wait for no window: that many are let go at once (RFC 6928, 2).
const TRANSFER: u64 = 14_600;
/// Less than this share of all time is not worth looking at what was kept of each connection.
const WORTH_LOOKING: i64 = 100;

/// A link is busy for seven eighths of the time, as where one transfer fills it (rule 3).
const BUSY: f64 = 0.875;

/// One message of an exchange.
struct Transfer<'a> {
    from: Nanos,
    to: Nanos,
    bytes: u64,
    /// Where it arrives.
    receiver: Vantage,
    connection: &'a Connection,
    exchange: &'a Exchange,
}

/// Links that several transfers filled together.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) links: Vec<SharedLink>,
    held: Vec<Held>,
}

/// What one cause held while a link was full.
#[derive(Debug)]
struct Held {
    cause: Cause,
    side: Option<Side>,
    full: LinkFull,
    /// The time of the link that `full` names.
    most: Nanos,
}

/// How much may be in flight, or was lost: what TCP does where a link is full.
fn is_held(cause: Cause) -> bool {
    let path = cause.owner() == Owner::Path && cause.class() == Class::Tcp;
    path || cause.owner() == Owner::Tcp
}

impl Shared {
    /// Of those connections whose exchanges are kept.
    pub(crate) fn among(connections: &[Box<Connection>], all: &Budget) -> Shared {
        Shared::of_some(connections, all, &|_| true)
    }

    /// The links that all of them filled, as far as some of them, which are `wanted`, had a part in that; and
    /// what held those.
    pub(crate) fn of_some(
        connections: &[Box<Connection>],
        all: &Budget,
        wanted: &dyn Fn(&Connection) -> bool,
    ) -> Shared {
        let held = all.0.iter().filter(|&&(cause, _)| is_held(cause));
        let held = held.fold(Nanos::ZERO, |sum, &(_, time)| sum + time);
        let mut shared = Shared::default();
        if connections.len() < 2 || held.times(WORTH_LOOKING) < all.total() {
            return shared;
        }
        let mut ways: BTreeMap<(IpAddr, IpAddr), Vec<Transfer<'_>>> = BTreeMap::new();
        for c in connections.iter().map(|c| &**c).filter(|c| c.bytes.iter().any(|&b| b >= TRANSFER)) {
            for x in &c.exchanges {
                let asked = x.request_end.unwrap_or(x.end);
                let answered = x.response_start.unwrap_or(asked);
                let (up, down) = ((c.client.ip, c.server.ip), (c.server.ip, c.client.ip));
                let request = (up, x.bytes[0], x.start, asked, Vantage::Server);
                let response = (down, x.bytes[1], answered, x.end, Vantage::Client);
                for (way, bytes, from, to, receiver) in [request, response] {
                    if bytes >= TRANSFER && to > from {
                        let transfer = Transfer { from, to, bytes, receiver, connection: c, exchange: x };
                        ways.entry(way).or_default().push(transfer);
                    }
                }
            }
        }
        for (way, mut transfers) in ways {
            transfers.sort_by_key(|t| (t.from, t.connection.id));
            let mut rest = &transfers[..];
            while !rest.is_empty() {
                let (together, others) = rest.split_at(side_by_side(rest));
                shared.fills(way, together, wanted);
                rest = others;
            }
        }
        shared.links.sort_by_key(|link| link.range);
        shared
    }

    /// These ran side by side; they may have filled their link.
    fn fills(
        &mut self,
        (from, to): (IpAddr, IpAddr),
        transfers: &[Transfer<'_>],
        wanted: &dyn Fn(&Connection) -> bool,
    ) {
        let Some(first) = transfers.first().filter(|_| transfers.len() > 1) else { return };
        let end = transfers.iter().fold(first.to, |end, t| end.max(t.to));
        let took = (end - first.from).0.max(1);
        let sent = transfers.iter().map(|t| t.bytes).sum::<u64>();
        let Some(rate) = rate_of_all(transfers, sent as f64 * 8e9 / took as f64) else { return };
        // Where it passes before the link, what was in flight at the end had not crossed.
        let behind = transfers.iter().map(|t| t.behind(end, rate)).sum::<u64>();
        let bytes = sent.saturating_sub(behind);
        let full = bytes as f64 * 8e9 / took as f64 / rate as f64;
        if full < BUSY {
            return;
        }
        let range = (first.from, end);
        let link =
            SharedLink { from, to, transfers: transfers.len() as u64, range, bytes, bandwidth_bps: rate };
        let wanted: Vec<&Transfer<'_>> = transfers.iter().filter(|t| wanted(t.connection)).collect();
        if wanted.is_empty() {
            return;
        }
        self.links.push(link);
        // Whatever held them may have left the link idle for all of the rest.
        let added_up = wanted.iter().fold(Nanos::ZERO, |sum, t| sum + (t.to - t.from));
        let idle = Nanos((added_up.0 as f64 * (1.0 - full.min(1.0))) as i64);
        let (mut all, mut held) = (Nanos::ZERO, Vec::<(Cause, Option<Side>, Nanos)>::new());
        for span in wanted.iter().flat_map(|t| during(t.exchange, (t.from, t.to))) {
            all += span.duration();
            match held.iter_mut().find(|of| (of.0, of.1) == (span.cause, span.side)) {
                Some(of) => of.2 += span.duration(),
                None => held.push((span.cause, span.side, span.duration())),
            }
        }
        held.push((Cause::Bandwidth, None, all));
        for (cause, side, time) in held.into_iter().filter(|of| of.2 > idle) {
            self.holds(cause, side, time - idle, link);
        }
    }

    /// So much of what a cause held passed while this link was full, and needed to.
    fn holds(&mut self, cause: Cause, side: Option<Side>, time: Nanos, link: SharedLink) {
        let Some(held) = self.held.iter_mut().find(|h| (h.cause, h.side) == (cause, side)) else {
            self.held.push(Held { cause, side, full: LinkFull { time, link }, most: time });
            return;
        };
        held.full.time += time;
        if time > held.most {
            (held.most, held.full.link) = (time, link);
        }
    }

    /// What of a finding passed while a link was full; of `bandwidth`, what others name that was its time as well.
    pub(crate) fn of(&self, cause: Cause, side: Option<Side>) -> Option<LinkFull> {
        let link = cause == Cause::Bandwidth;
        let held = self.held.iter().find(|h| h.cause == cause && (link || h.side == side));
        held.map(|h| h.full)
    }
}

impl Transfer<'_> {
    /// So many bytes were before a link of this rate when all had passed, at the most; none where the tap is behind it.
    fn behind(&self, end: Nanos, rate: u64) -> u64 {
        if self.connection.vantage == self.receiver {
            return 0;
        }
        let sender = usize::from(self.receiver == Vantage::Client);
        let since = ((end - self.to).0 as f64 * rate as f64 / 8e9) as u64;
        self.connection.ends[sender].max_flight.min(self.bytes).saturating_sub(since)
    }
}

/// The rate of the link by what those have measured that saw more than a share of it: less than passed is no
/// rate of it. Beside the receiver it is the largest, but for one in sixteen, which a host that was late for a
/// moment may have let pass faster; elsewhere rates are read from ACKs, which may come together behind a queue
/// of their own, so that one may be too large.
fn rate_of_all(transfers: &[Transfer<'_>], together: f64) -> Option<u64> {
    let measured = transfers.iter().filter_map(|t| t.connection.path.bandwidth_bps);
    let mut rates: Vec<u64> = measured.filter(|&rate| rate as f64 >= together * BUSY).collect();
    rates.sort_unstable();
    if transfers.iter().all(|t| t.connection.vantage == t.receiver) {
        rates.truncate(rates.len() - rates.len() / 16);
        return rates.last().copied();
    }
    rates.get(rates.len() / 2).copied()
}

/// How many of these, which stand in the order in which they begin, run on while the next one begins.
fn side_by_side(transfers: &[Transfer<'_>]) -> usize {
    let mut end = Nanos(i64::MIN);
    let alone = transfers.iter().skip(1).zip(transfers).position(|(next, before)| {
        end = end.max(before.to);
        next.from >= end
    });
    alone.map_or(transfers.len(), |at| at + 1)
}

/// The spans of what held it in this time.
fn during(x: &Exchange, (from, to): (Nanos, Nanos)) -> impl Iterator<Item = &Span> {
    x.spans.iter().filter(move |s| is_held(s.cause) && s.start >= from && s.end <= to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Frames;
    use tcpwhy_base::Endpoint;

    const MS: fn(i64) -> Nanos = Nanos::millis;
    /// What a millisecond carries at 8 Mbit/s.
    const EACH: u64 = 1_000;

    /// An answer that passed from and until then (ms), so many bytes, all of it held by the congestion
    /// window, on a link whose rate it measured as so many Mbit/s.
    fn answer(id: u32, (from, to): (i64, i64), bytes: u64, rate: u64) -> Box<Connection> {
        let end = |last: u8, port: u16| Endpoint { ip: [10, 0, 0, last].into(), port };
        let mut c = Connection::new(id, [end(1, 4_000 + id as u16), end(2, 80)], MS(from), MS(to));
        let frames = Frames::new(0, 1, 2, &[1]);
        let held = Span::new(Cause::CongestionWindow, Some(Side::Server), MS(from), MS(to), frames);
        let mut x = Exchange::new(1, MS(from), MS(to), vec![held]);
        (x.request_end, x.response_start) = (Some(MS(from)), Some(MS(from)));
        (x.bytes, c.bytes) = ([100, bytes], [100, bytes]);
        c.exchanges = vec![x];
        c.path.bandwidth_bps = Some(rate * 1_000_000);
        c.vantage = Vantage::Client;
        c.budget.add(Cause::CongestionWindow, MS(to - from));
        Box::new(c)
    }

    /// How many transfers filled a link of 8 Mbit/s together, and what of their window's time was the link's.
    fn found(connections: &[Box<Connection>]) -> Vec<(u64, Option<Nanos>)> {
        let mut all = Budget::default();
        connections.iter().for_each(|c| all.add_all(&c.budget));
        let shared = Shared::among(connections, &all);
        let held = shared.of(Cause::CongestionWindow, Some(Side::Server)).map(|full| full.time);
        shared.links.iter().map(|link| (link.transfers, held)).collect()
    }

    #[test]
    fn transfers_side_by_side_fill_their_link() {
        let two = |bytes: u64| [answer(1, (0, 1_000), bytes, 8), answer(2, (0, 1_000), bytes, 8)];
        // Each has half of it: all of the time is the link's; or seven eighths, of which an eighth of both
        // may be saved.
        assert_eq!(found(&two(500 * EACH)), [(2, Some(MS(2_000)))]);
        assert_eq!(found(&two(440 * EACH)), [(2, Some(MS(2_000 - 240)))]);
        assert_eq!(found(&two(430 * EACH)), []);
        // One alone, one after the other, and several in a row of which each runs on while the next begins.
        assert_eq!(found(&two(500 * EACH)[..1]), []);
        let after = [answer(1, (0, 500), 500 * EACH, 8), answer(2, (500, 1_000), 500 * EACH, 8)];
        assert_eq!(found(&after), []);
        let chain: Vec<_> =
            (0..4).map(|n| answer(1 + n, (0, 300 + 100 * i64::from(n)), 150 * EACH, 8)).collect();
        assert_eq!(found(&chain), [(4, Some(MS(1_800)))]);
    }

    /// A part of the transfers is held by the link that all of them filled.
    #[test]
    fn one_of_several_shares_what_all_of_them_filled() {
        let two = [answer(1, (0, 1_000), 500 * EACH, 8), answer(2, (0, 1_000), 500 * EACH, 8)];
        let mut all = Budget::default();
        two.iter().for_each(|c| all.add_all(&c.budget));
        let of = |id: u32| {
            let shared = Shared::of_some(&two, &all, &|c| c.id == id);
            let held = shared.of(Cause::CongestionWindow, Some(Side::Server)).map(|full| full.time);
            (shared.links.iter().map(|l| l.transfers).collect::<Vec<_>>(), held)
        };
        assert_eq!(of(2), (vec![2], Some(MS(1_000))));
        assert_eq!(of(3), (vec![], None));
    }

    /// Each may have measured a share of the link, and more than all of it beside the sender, where ACKs come together.
    #[test]
    fn the_rate_is_that_of_all() {
        let three = |rates: [u64; 3], vantage: Vantage| {
            let mut all = Vec::new();
            for (id, rate) in (1..).zip(rates) {
                let mut c = answer(id, (0, 900), 300 * EACH, rate);
                c.vantage = vantage;
                all.push(c);
            }
            found(&all).len()
        };
        assert_eq!(three([3, 8, 5], Vantage::Client), 1);
        assert_eq!(three([20, 8, 8], Vantage::Client), 0);
        assert_eq!(three([20, 8, 8], Vantage::Server), 1);
        // Of many beside the receiver one in sixteen may have seen a host that was late let too much pass at once.
        let many = |outliers: u32| {
            let rate = |id: u32| if id <= outliers { 9 } else { 8 };
            let all: Vec<_> = (1..=32).map(|id| answer(id, (0, 900), 27 * EACH, rate(id))).collect();
            found(&all).len()
        };
        assert_eq!([0, 2, 3].map(many), [1, 1, 0]);
        // A limit of each of them is none of the link.
        assert_eq!(three([3, 3, 3], Vantage::Client), 0);
    }

    /// Beside the sender what was in flight at the end had not crossed.
    #[test]
    fn what_is_in_flight_has_not_crossed() {
        let two = |flight: u64| {
            let mut all = [answer(1, (0, 1_000), 500 * EACH, 8), answer(2, (0, 900), 500 * EACH, 8)];
            for c in &mut all {
                c.vantage = Vantage::Server;
                c.ends[1].max_flight = flight * EACH;
            }
            found(&all).len()
        };
        assert_eq!([two(0), two(110), two(150)], [1, 1, 0]);
    }

    /// Small messages wait for no window, and where nothing was held nobody looks.
    #[test]
    fn small_messages_share_nothing() {
        assert_eq!(found(&[answer(1, (0, 20), 10 * EACH, 8), answer(2, (0, 20), 10 * EACH, 8)]), []);
        let mut all = [answer(1, (0, 1_000), 500 * EACH, 8), answer(2, (0, 1_000), 500 * EACH, 8)];
        all.iter_mut().for_each(|c| c.budget.add(Cause::ServerThink, Nanos::secs(200)));
        assert_eq!(found(&all), []);
    }
}
