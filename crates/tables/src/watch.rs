//! Rows of a running host: its connections as they end, their time by cause, and what they lost time to.

use crate::column::{Column, Value};
use crate::group::{Group, columns};
use crate::rows::day_number;
use crate::schema::{CLASS, CLIENT, Field, Get, Kind, OWNER, PORT, SERVER, Table, count, may, must, time};
use std::collections::HashMap;
use std::sync::Arc;
use tcpwhy_base::{Cause, Endpoint, Nanos};
use tcpwhy_live::{Connection, Ended, Facts, Finding, Info, Process, Role, Share, Where, findings_with};

/// What all rows of a connection share.
#[derive(Debug)]
struct Of {
    host: Arc<str>,
    cookie: u64,
    role: Role,
    ends: [Endpoint; 2],
    ips: [String; 2],
    process: Option<Process>,
}

/// A row of `watch_connections`.
#[derive(Debug)]
struct ConnectionRow {
    of: Arc<Of>,
    start: Nanos,
    watched: Nanos,
    from_start: bool,
    open: bool,
    info: Option<Info>,
    congestion: String,
    lost: Nanos,
    facts: Option<Facts>,
}

/// A row of `watch_shares`.
#[derive(Clone, Debug)]
struct ShareRow {
    of: Arc<Of>,
    start: Nanos,
    end: Nanos,
    share: Share,
    /// Nothing else was seen of this connection in that time.
    alone: bool,
}

/// A row of `watch_findings`.
#[derive(Debug)]
struct FindingRow {
    host: Arc<str>,
    start: Nanos,
    interval: Nanos,
    example: u64,
    finding: Finding,
}

/// Rows of the tables of a running host, not written yet.
#[derive(Debug)]
pub struct WatchRows {
    host: Arc<str>,
    connections: Vec<ConnectionRow>,
    shares: Vec<ShareRow>,
    findings: Vec<FindingRow>,
    /// Of each connection the row that goes on as long as nothing changes: an idle one is a row a set of
    /// files, not one an interval.
    last: HashMap<u64, ShareRow>,
}

impl WatchRows {
    /// None, of the host of this name.
    pub fn new(host: &str) -> WatchRows {
        WatchRows {
            host: host.into(),
            connections: Vec::new(),
            shares: Vec::new(),
            findings: Vec::new(),
            last: HashMap::new(),
        }
    }

    /// Adds what connections did in an interval from `start` to `end`, in the time of day: those that ended
    /// in it, and those that live.
    pub fn add(&mut self, start: Nanos, end: Nanos, ended: &[Connection], live: &[Connection]) {
        for c in live {
            self.shares(c, start, end);
        }
        let mut gone = Ended::default();
        for c in ended {
            let of = self.shares(c, start, end);
            self.shares.extend(self.last.remove(&c.sample.cookie));
            self.connections.push(row(of, c, false, end));
            gone.add(c);
        }
        let all: Vec<&Connection> = live.iter().chain(gone.worst()).collect();
        for finding in findings_with(&all, &gone) {
            let example = all.get(finding.worst).map_or(0, |c| c.sample.cookie);
            let host = Arc::clone(&self.host);
            self.findings.push(FindingRow { host, start, interval: end - start, example, finding });
        }
    }

    /// Adds connections that live on when nobody looks any more, at `end`.
    pub fn leave(&mut self, live: &[Connection], end: Nanos) {
        for c in live {
            let of = self.of(c);
            self.connections.push(row(of, c, true, end));
        }
    }

    /// The time of a connection's interval by cause; gives what its rows share.
    fn shares(&mut self, c: &Connection, start: Nanos, end: Nanos) -> Arc<Of> {
        let shares = c.interval.shares();
        // It may have begun in the interval.
        let start = start.max(end - c.watched);
        let alone = shares.len() == 1;
        let length = end - start;
        let last = self.last.remove(&c.sample.cookie);
        if let (true, Some(mut last), [share]) = (alone, last.clone(), &*shares) {
            let goes_on = last.alone
                && (last.share.cause, last.share.at) == (share.cause, share.at)
                && (last.share.counted > Nanos::ZERO) == (share.counted > Nanos::ZERO)
                && last.of.process == c.process
                && day_number(last.start) == day_number(start)
                // Nothing lies between them, nor was the time of day set.
                && (Nanos::ZERO - length..length).contains(&(start - last.end));
            if goes_on {
                last.end = end;
                last.share.time += share.time;
                last.share.counted += share.counted;
                let of = Arc::clone(&last.of);
                self.last.insert(c.sample.cookie, last);
                return of;
            }
        }
        self.shares.extend(last);
        let of = self.of(c);
        let row = |share: &Share| ShareRow { of: Arc::clone(&of), start, end, share: *share, alone };
        match &*shares {
            [one] => drop(self.last.insert(c.sample.cookie, row(one))),
            several => self.shares.extend(several.iter().map(row)),
        }
        of
    }

    fn of(&self, c: &Connection) -> Arc<Of> {
        let (local, peer) = (c.sample.local, c.sample.peer);
        let ends = if c.role == Role::Client { [local, peer] } else { [peer, local] };
        Arc::new(Of {
            host: Arc::clone(&self.host),
            cookie: c.sample.cookie,
            role: c.role,
            ends,
            ips: ends.map(|end| end.ip.to_string()),
            process: c.process.clone(),
        })
    }

    /// How many rows are waiting, but for those that go on.
    pub fn len(&self) -> usize {
        self.connections.len() + self.shares.len() + self.findings.len()
    }

    /// There are none, but for those that go on.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes out all rows; `all`: those that go on, too.
    #[must_use]
    pub fn take(&mut self, all: bool) -> WatchRows {
        let mut taken = std::mem::replace(self, WatchRows::new(&self.host));
        match all {
            true => taken.shares.extend(taken.last.drain().map(|(_, row)| row)),
            false => self.last = std::mem::take(&mut taken.last),
        }
        taken
    }
}

fn row(of: Arc<Of>, c: &Connection, open: bool, end: Nanos) -> ConnectionRow {
    ConnectionRow {
        of,
        start: end - c.watched,
        watched: c.watched,
        from_start: c.from_start,
        open,
        info: c.sample.info,
        congestion: c.sample.congestion.name().into(),
        lost: c.total.time(|cause| cause.class() == tcpwhy_base::Class::Tcp),
        facts: c.facts,
    }
}

const HOST: Field = must("host", Kind::Word, "Name of the host that looked");
const SOCKET: Field = must(
    "socket",
    Kind::Place,
    "The kernel's number of the socket (its cookie), which it gives once until it is started again",
);
const VANTAGE: Field = must("vantage", Kind::Word, "Which end this host is: `client` or `server`");
const PROCESS: Field = may("process", Kind::Word, "Name of the process, where that can be seen");
const PID: Field = may("pid", Kind::Small, "Its number");
const CONTAINER: Field =
    may("container", Kind::Word, "Its container: the name, or the first digits of its number");
const SIDE: Field = must("side", Kind::Word, "Where it lies: `client`, `server` or `network`");
const CAUSE: Field = must("cause", Kind::Word, "Which cause (docs/causes)");

fn process(of: &Of) -> Value<'_> {
    of.process.as_ref().map(|p| &*p.name).into()
}

fn pid(of: &Of) -> Value<'_> {
    of.process.as_ref().map(|p| i64::from(p.pid)).into()
}

fn container(of: &Of) -> Value<'_> {
    of.process.as_ref().and_then(|p| p.container_name.as_deref().or(p.container.as_deref())).into()
}

/// Bytes that the client sent, and those that the server did; what is not known of the other end's is what
/// came from it.
fn payload(r: &ConnectionRow, client: bool) -> Value<'_> {
    let Some(info) = &r.info else { return Value::Nothing };
    count(if (r.of.role == Role::Client) == client { info.bytes_acked } else { info.bytes_received })
}

fn known(r: &ConnectionRow, of: impl Fn(&Info) -> i64) -> Value<'_> {
    r.info.as_ref().map(of).into()
}

fn seen(r: &ConnectionRow, of: impl Fn(&Facts) -> u64) -> Value<'_> {
    r.facts.as_ref().map_or(Value::Nothing, |facts| count(of(facts)))
}

fn length(time: Nanos) -> u64 {
    u64::try_from(time.0).unwrap_or(0)
}

const CONNECTIONS: &[Get<ConnectionRow>] = &[
    (must("start", Kind::Time, "When it was first seen"), |r| time(r.start)),
    (must("duration_ns", Kind::Duration, "How long it was looked at"), |r| time(r.watched)),
    (HOST, |r| Value::Text(&r.of.host)),
    (SOCKET, |r| count(r.of.cookie)),
    (CLIENT, |r| Value::Text(&r.of.ips[0])),
    (must("client_port", Kind::Small, "Its port"), |r| count(r.of.ends[0].port.into())),
    (SERVER, |r| Value::Text(&r.of.ips[1])),
    (PORT, |r| count(r.of.ends[1].port.into())),
    (VANTAGE, |r| Value::Text(r.of.role.name())),
    (PROCESS, |r| process(&r.of)),
    (PID, |r| pid(&r.of)),
    (CONTAINER, |r| container(&r.of)),
    (must("from_start", Kind::Flag, "It was opened while this looked: all of its life was seen"), |r| {
        Value::Flag(r.from_start)
    }),
    (must("open", Kind::Flag, "It was still open when this stopped looking"), |r| Value::Flag(r.open)),
    (must("lost_ns", Kind::Duration, "Time by causes of class `T`"), |r| time(r.lost)),
    (may("rtt_ns", Kind::Duration, "Shortest round trip of its last minutes"), |r| known(r, |i| i.min_rtt.0)),
    (
        may(
            "client_bytes",
            Kind::Number,
            "Bytes that the client sent and were acknowledged, or that came from it",
        ),
        |r| payload(r, true),
    ),
    (may("server_bytes", Kind::Number, "The same of the server"), |r| payload(r, false)),
    (may("retransmitted", Kind::Number, "Packets that this host sent again"), |r| {
        known(r, |i| i.total_retrans.into())
    }),
    (may("mss", Kind::Small, "Largest segment that this host sends"), |r| known(r, |i| i.snd_mss.into())),
    (must("congestion_control", Kind::Word, "Of this host"), |r| Value::Text(&r.congestion)),
    (may("busy_ns", Kind::Duration, "Counted by the kernel: with anything unsent or unacknowledged"), |r| {
        known(r, |i| i.busy.0)
    }),
    (may("receive_window_limited_ns", Kind::Duration, "Of it: stopped by the other end's window"), |r| {
        known(r, |i| i.rwnd_limited.0)
    }),
    (may("send_buffer_limited_ns", Kind::Duration, "Of it: stopped by the send buffer"), |r| {
        known(r, |i| i.sndbuf_limited.0)
    }),
    (
        may(
            "blocked_writes",
            Kind::Number,
            "Times that a writer slept in a call (kernel events, as all below)",
        ),
        |r| seen(r, |f| f.blocked.count),
    ),
    (may("blocked_ns", Kind::Duration, "How long"), |r| seen(r, |f| length(f.blocked.time))),
    (may("refused_writes", Kind::Number, "Writes that were refused with EAGAIN"), |r| seen(r, |f| f.refused)),
    (may("held_writes", Kind::Number, "Small writes that Nagle's algorithm or a cork held"), |r| {
        seen(r, |f| f.nagle.count + f.nagle_delayed_ack.count + f.cork.count)
    }),
    (may("late_reads", Kind::Number, "Times that data lay unread for a millisecond or more"), |r| {
        seen(r, |f| f.unread.count)
    }),
    (
        may("queued_ns", Kind::Duration, "How long writes stood behind unsent bytes of their own connection"),
        |r| seen(r, |f| length(f.queued.time)),
    ),
    (may("fast_retransmissions", Kind::Number, "Segments sent again because others had arrived"), |r| {
        seen(r, |f| f.fast_retransmits)
    }),
    (may("timeouts", Kind::Number, "Segments sent again after a timeout"), |r| seen(r, |f| f.timeouts)),
    (may("loss_probes", Kind::Number, "Probes of the end of a flight"), |r| seen(r, |f| f.loss_probes)),
];

const SHARES: &[Get<ShareRow>] = &[
    (
        must(
            "start",
            Kind::Time,
            "Begin of the interval, or of several, one after the other, in which this cause was alone",
        ),
        |r| time(r.start),
    ),
    (must("interval_ns", Kind::Duration, "How long it was"), |r| time(r.end - r.start)),
    (
        must(
            "time_ns",
            Kind::Duration,
            "How much of it went by this cause, wherever within it; a wait that the kernel measures counts when it is over, with all its length",
        ),
        |r| time(r.share.time),
    ),
    (HOST, |r| Value::Text(&r.of.host)),
    (SOCKET, |r| count(r.of.cookie)),
    (CLIENT, |r| Value::Text(&r.of.ips[0])),
    (must("client_port", Kind::Small, "Its port"), |r| count(r.of.ends[0].port.into())),
    (SERVER, |r| Value::Text(&r.of.ips[1])),
    (PORT, |r| count(r.of.ends[1].port.into())),
    (VANTAGE, |r| Value::Text(r.of.role.name())),
    (PROCESS, |r| process(&r.of)),
    (PID, |r| pid(&r.of)),
    (CONTAINER, |r| container(&r.of)),
    (CAUSE, |r| Value::Text(r.share.cause.id())),
    (CLASS, |r| Value::Text(r.share.cause.class().letter())),
    (OWNER, |r| Value::Text(r.share.cause.owner().id())),
    (SIDE, |r| side(r.share.at, r.of.role)),
    (
        must(
            "counted_ns",
            Kind::Duration,
            "Of `time_ns`: counted or measured by the kernel; the rest is estimated from samples",
        ),
        |r| time(r.share.counted.min(r.share.time).floor0()),
    ),
];

const FINDINGS: &[Get<FindingRow>] = &[
    (must("start", Kind::Time, "Begin of the interval"), |r| time(r.start)),
    (must("interval_ns", Kind::Duration, "How long it was"), |r| time(r.interval)),
    (HOST, |r| Value::Text(&r.host)),
    (CAUSE, |r| cause(r.finding.cause)),
    (CLASS, |r| Value::Text(r.finding.cause.class().letter())),
    (OWNER, |r| Value::Text(r.finding.cause.owner().id())),
    (SIDE, |r| Value::Text(r.finding.side.name())),
    (
        must(
            "lost_ns",
            Kind::Duration,
            "In the interval, over all connections, those that ended in it included",
        ),
        |r| time(r.finding.time),
    ),
    (must("total_ns", Kind::Duration, "Since those connections are looked at"), |r| time(r.finding.total)),
    (must("connections", Kind::Number, "How many connections show it"), |r| {
        count(r.finding.connections as u64)
    }),
    (must("kernel", Kind::Flag, "All of the time was counted or measured by the kernel"), |r| {
        Value::Flag(r.finding.source == "kernel")
    }),
    (SOCKET, |r| count(r.example)),
    (must("why", Kind::Text, "A sentence with the figures of that connection, which lost most"), |r| {
        Value::Text(&r.finding.why)
    }),
    (may("fix", Kind::Word, "The best fix (docs/schema/causes.json)"), |r| {
        r.finding.fixes.first().map(|a| a.fix.info().id).into()
    }),
    (may("fix_place", Kind::Word, "Where it is made: `client`, `server`, `host` or `path`"), |r| {
        r.finding.fixes.first().map(|a| a.place).into()
    }),
];

fn cause(cause: Cause) -> Value<'static> {
    Value::Text(cause.id())
}

fn side(at: Where, role: Role) -> Value<'static> {
    Value::Text(at.side(role == Role::Client).name())
}

/// The columns of a table of a running host.
pub(crate) fn fields(table: Table) -> Vec<Field> {
    match table {
        Table::WatchConnections => CONNECTIONS.iter().map(|f| f.0).collect(),
        Table::WatchShares => SHARES.iter().map(|f| f.0).collect(),
        Table::WatchFindings => FINDINGS.iter().map(|f| f.0).collect(),
        _ => Vec::new(),
    }
}

impl Group for WatchRows {
    fn tables(&self) -> &'static [Table] {
        &Table::WATCH
    }

    fn sort(&mut self) {
        self.connections.sort_by_key(|r| (day_number(r.start), r.of.cookie, r.start));
        self.shares.sort_by_key(|r| (day_number(r.start), r.of.cookie, r.start));
        self.findings.sort_by_key(|r| r.start);
    }

    fn starts(&self, table: Table) -> Vec<Nanos> {
        match table {
            Table::WatchConnections => self.connections.iter().map(|r| r.start).collect(),
            Table::WatchShares => self.shares.iter().map(|r| r.start).collect(),
            Table::WatchFindings => self.findings.iter().map(|r| r.start).collect(),
            _ => Vec::new(),
        }
    }

    fn columns(&self, table: Table, from: usize, to: usize) -> Vec<Column> {
        match table {
            Table::WatchConnections => columns(CONNECTIONS, self.connections.get(from..to)),
            Table::WatchShares => columns(SHARES, self.shares.get(from..to)),
            Table::WatchFindings => columns(FINDINGS, self.findings.get(from..to)),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpwhy_live::{Sample, Table as Live};

    /// A socket that the other end's window has stopped for so long.
    fn stopped(cookie: u64, stopped: Nanos) -> Sample {
        Sample {
            cookie,
            info: Some(Info { busy: stopped, rwnd_limited: stopped, notsent: 9000, ..Info::default() }),
            ..Sample::open(40_000, 443)
        }
    }

    /// Three connections that wait all of their 80 ms, one after the other, beside one that lives and does not.
    #[test]
    fn findings_hold_connections_that_ended_in_the_interval() {
        let (mut table, mut ended) = (Live::default(), Vec::new());
        let mut now = Nanos::ZERO;
        for cookie in 1..=3 {
            for look in 0..9 {
                table.feed(&[stopped(9, Nanos::ZERO), stopped(cookie, Nanos::millis(10 * look))], now);
                now += Nanos::millis(10);
            }
        }
        table.feed(&[stopped(9, Nanos::ZERO)], now);
        ended.extend(table.take_ended());
        let snapshot = table.interval();
        let mut rows = WatchRows::new("here");
        rows.add(now - snapshot.interval, now, &ended, &snapshot.connections);
        let [row] = rows.findings.as_slice() else { panic!("{:?}", rows.findings) };
        let f = &row.finding;
        assert_eq!((f.cause, f.connections, f.time), (Cause::ReceiveWindow, 3, Nanos::millis(240)));
        assert!((1..=3).contains(&row.example), "{row:?}");
    }
}
