//! A connection is over: it is summed up, and kept if it is listed.

use super::finish::{self, NO_PLACE};
use super::held::Held;
use super::{Analyzer, ENDED};
use crate::conn::Conn;
use crate::fetch::make_room;
use crate::findings::{Basis, Finished};
use crate::leftover::{leave_out_kept, leave_out_setup};
use crate::result::Connection;
use crate::sums::Order;
use std::cmp::Reverse;
use tcpwhy_base::{Class, Nanos};

/// So many connections are summed up together: the sums are in the first cache then, and the connections
/// still in the second.
const TOGETHER: usize = 32;

impl Analyzer {
    pub(super) fn finish_held(&mut self, held: Box<Held>, capture_end: bool) {
        self.held -= 1;
        if let Some(conn) = held.end(&mut self.kept, &mut self.room) {
            self.finish_one(conn, capture_end, false);
        }
    }

    /// A connection is over; `listed`: it is listed, whatever it shows.
    pub(super) fn finish_one(&mut self, mut conn: Box<Conn>, capture_end: bool, listed: bool) {
        let taps = conn.role().finish(self.totals.span.map_or(Nanos::ZERO, |s| s.1));
        let watched = capture_end.then(|| self.watched.until(conn.file(), conn.now()));
        let mut ended = conn.finish(watched, &mut self.kept);
        self.room.give_back(conn);
        ended.connection.taps = taps;
        ended.leave(self.kept.within(ended.connection.start, ended.connection.end));
        if self.stream.is_some() {
            self.add_one(ended, listed);
            return;
        }
        self.over.push((ended, listed));
        if self.over.len() == TOGETHER {
            self.add_over();
        }
    }

    /// Sums up those that are over.
    pub(super) fn add_over(&mut self) {
        let mut over = std::mem::take(&mut self.over);
        over.drain(..).for_each(|(ended, listed)| self.add_one(ended, listed));
        self.over = over;
    }

    /// A connection that is over is summed up, and kept if it is listed.
    fn add_one(&mut self, Finished { mut connection, basis }: Finished, listed: bool) {
        if basis.outside && self.stream.is_some() {
            return;
        }
        leave_out_setup(&mut connection);
        self.totals.add_times(&connection);
        self.totals.duplicates += connection.ends.iter().map(|e| u64::from(e.duplicates)).sum::<u64>();
        if self.stream.is_none() {
            self.ended.push((connection.frames.0, connection.start, connection.id, NO_PLACE));
        }
        if basis.outside {
            self.kept.give_back_basis(basis);
            return;
        }
        self.totals.connections += 1;
        self.kept.outlines().into_iter().for_each(|outlines| outlines.end(&connection));
        self.totals.add_connection(&connection);
        if let Some(stream) = &mut self.stream {
            self.kept.give_own(&mut connection);
            leave_out_kept(&mut connection);
            self.sums.add(&connection, &basis);
            finish::find(&mut connection, &basis);
            stream.add(&connection, self.kept.inherent());
            self.done.push(connection);
        } else {
            let named = self.sums.add(&connection, &basis);
            self.keep(connection, &basis, named || listed);
        }
        self.kept.give_back_basis(basis);
    }

    /// Keeps a connection, if it is listed.
    fn keep(&mut self, connection: Box<Connection>, basis: &Basis, named: bool) {
        let rank = (connection.budget.of_class(Class::Tcp), Reverse(Order::of(&connection)));
        let has_findings = self.most_lost.wants(&(rank, 0));
        let at = if has_findings || self.narrows { self.bases.keep(basis, &connection) } else { 0 };
        if has_findings {
            self.most_lost.take((rank, at));
        }
        if let Some(listed) = &mut self.listed {
            let is_listed = listed.take(&connection) | self.kept.held_any(connection.id);
            if !(is_listed || named || has_findings) {
                return;
            }
        } else if let Some(ended) = self.ended.last_mut() {
            ended.3 = self.done.len() as u32;
        }
        if self.narrows {
            self.places.push(at);
        }
        if self.done.len() % ENDED == ENDED - 1 {
            make_room();
        }
        self.done.push(connection);
        self.leave_out_some();
    }
}
