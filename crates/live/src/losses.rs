//! What connections lost time to in an interval, summed; and those that ended in it, of which not all are kept.

use crate::connection::{Connection, Role};
use crate::split::Where;
use hashbrown::HashSet;
use std::borrow::Borrow;
use tcpwhy_base::{Cause, Class, Nanos, Side};

/// Below this share of a connection's interval a cause is not worth a word.
const SMALL: f64 = 0.05;
/// Connections that ended of which more than sums are kept: those that lost most.
const KEPT: usize = 100;

/// Time that connections lost to one cause at one place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loss {
    pub(crate) cause: Cause,
    pub(crate) at: Where,
    pub(crate) side: Side,
    /// In the interval, and since they are looked at.
    pub(crate) time: Nanos,
    pub(crate) total: Nanos,
    /// Of so much of the interval in which they were looked at.
    pub(crate) of: Nanos,
    /// All of it was counted or measured.
    pub(crate) counted: bool,
    pub(crate) connections: usize,
    /// How much the one that lost most did.
    most: Nanos,
}

/// Adds to what is known of the same cause; `who` names the one that lost most.
pub(crate) fn add<W>(losses: &mut Vec<(Loss, W)>, more: Loss, who: impl FnOnce() -> W) {
    // How long writes stood in a queue of their own is one matter, at clients and at servers.
    let is_same = |l: &Loss| {
        l.cause == more.cause && l.at == more.at && (l.side == more.side || l.cause == Cause::SendQueue)
    };
    let Some((loss, worst)) = losses.iter_mut().find(|(l, _)| is_same(l)) else {
        losses.push((more, who()));
        return;
    };
    loss.time += more.time;
    loss.total += more.total;
    loss.of += more.of;
    loss.counted &= more.counted;
    loss.connections += more.connections;
    if more.most > loss.most {
        (loss.most, loss.side, *worst) = (more.most, more.side, who());
    }
}

/// What one connection lost time to, that is worth a word. Of the applications' own time nothing is said.
pub(crate) fn losses(c: &Connection) -> Vec<Loss> {
    let of = c.interval.total();
    let total = c.total.shares();
    let loss = |cause, at: Where, time, total, counted| {
        let side = at.side(c.role == Role::Client);
        Loss { cause, at, side, time, total, of, counted, connections: 1, most: time }
    };
    let much = |time: Nanos| time.0 as f64 >= SMALL * of.0 as f64;
    let mut out = Vec::new();
    for s in c.interval.shares().iter().filter(|s| s.cause.class() == Class::Tcp && much(s.time)) {
        let all = total.iter().find(|of| of.cause == s.cause && of.at == s.at).map_or(s.time, |s| s.time);
        out.push(loss(s.cause, s.at, s.time, all, s.counted >= s.time));
    }
    // Writes that stood in a queue of their own connection, longer than a round trip each: the queue in the
    // host is longer than the path. One message costs that nothing: somebody has to ask meanwhile for another one.
    let queued = c.news.queued;
    let round_trip = c.sample.info.map_or(Nanos::ZERO, |i| i.rtt);
    let trips = round_trip.times(queued.count.try_into().unwrap_or(i64::MAX));
    if c.heard && queued.count > 0 && queued.time > trips && much(queued.time) {
        let all = c.facts.map_or(Nanos::ZERO, |f| f.queued.time);
        out.push(loss(Cause::SendQueue, Where::Here, queued.time, all, true));
    }
    out
}

/// Connections that ended in an interval: sums of all, and those that lost most.
#[derive(Clone, Debug, Default)]
pub struct Ended {
    /// How many.
    pub connections: usize,
    /// How many that were not asked for.
    pub hidden: usize,
    worst: Vec<Connection>,
    losses: Vec<(Loss, Connection)>,
}

impl Ended {
    /// Adds one, of [`Table::take_ended`](crate::Table::take_ended).
    pub fn add(&mut self, c: &Connection) {
        self.connections += 1;
        losses(c).into_iter().for_each(|loss| add(&mut self.losses, loss, || c.clone()));
        self.worst.push(c.clone());
        if self.worst.len() >= 2 * KEPT {
            self.worst.sort_by_key(|c| std::cmp::Reverse(c.lost()));
            self.worst.truncate(KEPT);
        }
    }

    /// Counts one that was not asked for.
    pub fn hide(&mut self) {
        self.hidden += 1;
    }

    /// Those that lost most, of all and to each cause.
    pub fn worst(&self) -> impl Iterator<Item = &Connection> {
        let mut seen = HashSet::new();
        let all = self.worst.iter().chain(self.losses.iter().map(|(_, worst)| worst));
        all.filter(move |c| seen.insert(c.sample.cookie))
    }

    /// What all of them lost time to, with the places in `connections` of those that lost most.
    pub(crate) fn losses_in<C: Borrow<Connection>>(
        &self,
        connections: &[C],
    ) -> impl Iterator<Item = (Loss, usize)> {
        let is = |of: &C, c: &Connection| of.borrow().sample.cookie == c.sample.cookie;
        let place = move |c: &Connection| connections.iter().position(|of| is(of, c));
        self.losses.iter().filter_map(move |(loss, worst)| Some((*loss, place(worst)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Info, Sample, Table, findings_with};

    /// Connections that wait for a window all of their 80 ms, one after the other, beside one that only thinks.
    #[test]
    fn connections_that_ended_count_however_many_they_are() {
        let sample = |cookie: u64, waited: Nanos| Sample {
            cookie,
            info: Some(Info { busy: waited, rwnd_limited: waited, notsent: 9000, ..Info::default() }),
            ..Sample::open(40_000, 80)
        };
        let (mut table, mut ended, mut time) = (Table::default(), Ended::default(), Nanos::ZERO);
        for n in 1..=500 {
            for look in 0..9 {
                let waited = Nanos::millis(10 * look);
                table.feed(&[sample(1000, Nanos::ZERO), sample(n, waited)], time);
                time += Nanos::millis(10);
            }
            table.take_ended().iter().for_each(|c| ended.add(c));
        }
        table.feed(&[sample(1000, Nanos::ZERO)], time);
        table.feed(&[sample(1000, Nanos::ZERO)], time + Nanos::millis(10));
        table.take_ended().iter().for_each(|c| ended.add(c));
        let mut connections = table.interval().connections;
        assert!(findings_with(&connections, &Ended::default()).is_empty());
        connections.extend(ended.worst().cloned());
        assert_eq!((ended.connections, connections[0].ended, connections[1].ended), (500, false, true));
        assert!((2..=2 * KEPT + 1).contains(&connections.len()), "{}", connections.len());
        let found = findings_with(&connections, &ended);
        let [f] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(
            (f.cause, f.connections, f.time, f.of),
            (Cause::ReceiveWindow, 500, Nanos::secs(40), Nanos::secs(40))
        );
        assert!(connections[f.worst].ended);
    }
}
