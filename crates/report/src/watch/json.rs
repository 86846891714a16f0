//! The document of `--json` and the lines of `--jsonl`. Within schema 1 changes are additive; readers ignore
//! unknown fields.

use super::View;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};
use tcpwhy_base::Nanos;
use tcpwhy_live::{Connection, Finding, Listener, Process, Role, Share, Split, Waits};

/// The document.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "tcpwhy watch, schema 1")]
struct Document {
    /// `tcpwhy`.
    tool: &'static str,
    version: &'static str,
    schema: u32,
    /// Where the times come from: `sampled`, estimated from states of sockets, or `kernel`, where kernel
    /// events were seen, too; what is no estimate is `counted_ns`.
    source: &'static str,
    /// Length of the last interval.
    interval_ns: i64,
    /// How long sockets were looked at.
    watched_ns: i64,
    /// How often in the interval.
    samples: u32,
    /// The worst first: by the time lost in the interval. Those that are open, and of those that ended in it
    /// the ones that lost most.
    connections: Vec<Row>,
    /// How many connections that were asked for ended in the interval; `findings` count them all.
    connections_ended: usize,
    /// Connections that were not asked for.
    connections_hidden: usize,
    /// The fullest first.
    listeners: Vec<ListenerRow>,
    /// Threads inside a call on one of these connections at the end of the interval: connects and sends
    /// first, the most first.
    threads: Vec<ThreadsRow>,
    /// What the connections lost time to in the interval, the worst first.
    findings: Vec<FindingRow>,
    /// What cannot be seen.
    unseen: Vec<UnseenRow>,
}

/// A connection.
#[derive(Debug, Serialize, JsonSchema)]
struct Row {
    /// This end.
    local: String,
    /// The other end.
    peer: String,
    /// Which end this host is: `client` or `server`.
    role: &'static str,
    /// As `ss` writes it.
    state: &'static str,
    /// It is gone: `state` is the last that was seen.
    ended: bool,
    /// Null: not seen.
    process: Option<ProcessRow>,
    /// How long it was looked at.
    watched_ns: i64,
    /// It was opened meanwhile: all of its life was seen.
    from_start: bool,
    /// Time of the interval that need not have passed: causes of class T.
    lost_ns: i64,
    /// Why a part of the interval is `unexplained` at this end; null: none is, or little.
    unexplained_why: Option<&'static str>,
    /// The last interval by cause.
    interval: Vec<Part>,
    /// All that was looked at by cause.
    total: Vec<Part>,
    /// What the kernel said last; null: nothing.
    kernel: Option<Kernel>,
    /// What kernel events said since they were seen; null: they are not.
    events: Option<Events>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ProcessRow {
    pid: u32,
    name: String,
    /// The container, by the first digits of its number.
    container: Option<String>,
    /// Its name, where its runtime says it and lets this user read that.
    container_name: Option<String>,
}

/// Time of a cause.
#[derive(Debug, Serialize, JsonSchema)]
struct Part {
    /// An id of the table (docs/schema/causes.json).
    cause: &'static str,
    /// I, A, T or U.
    class: &'static str,
    /// `here`, `peer` or `path`.
    at: &'static str,
    /// `client`, `server` or `network`.
    side: &'static str,
    time_ns: i64,
    /// `kernel`: all of it was counted or measured by the kernel; else `sampled`.
    source: &'static str,
    /// Of it: counted or measured by the kernel.
    counted_ns: i64,
}

/// Of `tcp_info` and the socket's memory.
#[derive(Debug, Serialize, JsonSchema)]
struct Kernel {
    rtt_ns: i64,
    min_rtt_ns: i64,
    rto_ns: i64,
    mss: u32,
    cwnd_packets: u32,
    /// Null: slow start has not ended.
    ssthresh_packets: Option<u32>,
    in_flight_packets: u32,
    unacknowledged_bytes: u32,
    unsent_bytes: u32,
    unread_bytes: u32,
    /// The window that the other end offers.
    peer_window_bytes: Option<u32>,
    send_buffer_bytes: Option<u32>,
    send_buffer_used_bytes: Option<u32>,
    receive_buffer_bytes: Option<u32>,
    retransmitted_packets: u32,
    /// Time that the kernel counted with anything unsent or unacknowledged.
    busy_ns: i64,
    /// Of it: stopped by the other end's window.
    receive_window_limited_ns: i64,
    /// Of it: stopped by the send buffer.
    send_buffer_limited_ns: i64,
    bytes_acknowledged: u64,
    bytes_received: u64,
    delivery_bytes_per_second: u64,
    congestion_control: String,
}

/// Sums of kernel events.
#[derive(Debug, Serialize, JsonSchema)]
struct Events {
    /// Small writes that Nagle's algorithm held for about a round trip.
    nagle: WaitsRow,
    /// Those that it held for more than 10 ms longer.
    nagle_delayed_ack: WaitsRow,
    /// Small writes that a cork held for a millisecond or more.
    cork: WaitsRow,
    /// Times that a writer slept in a call.
    blocked_writes: WaitsRow,
    /// Writes that were refused with EAGAIN.
    refused_writes: u64,
    /// Writes that were refused or went half way, until there was room or they were tried again.
    no_room: WaitsRow,
    /// From when there was room until the program wrote, where that took a millisecond or more.
    late_writer: WaitsRow,
    fast_retransmissions: u64,
    /// Segments retransmitted after a timeout.
    timeouts: u64,
    loss_probes: u64,
    /// Times that data lay readable for a millisecond or more, until the application read.
    unread: WaitsRow,
    /// Writes behind a segment or more of unsent bytes, until their first byte left; one at a time.
    queued_writes: WaitsRow,
    /// From the last segment until the retransmission timer sent again.
    timeout_waits: WaitsRow,
    /// The same until a probe of the end of a flight did.
    probe_waits: WaitsRow,
}

#[derive(Debug, Serialize, JsonSchema)]
struct WaitsRow {
    count: u64,
    time_ns: i64,
    longest_ns: i64,
}

/// A listener.
#[derive(Debug, Serialize, JsonSchema)]
struct ListenerRow {
    local: String,
    process: Option<ProcessRow>,
    /// Connections that nobody has accepted.
    queue: u32,
    /// The most of them since it was looked at.
    most: u32,
    /// How many it may keep; one more fits.
    backlog: u32,
    full: bool,
    /// SYNs and connections that it ever dropped.
    drops: u32,
}

/// Threads of a process that wait in the same call for the same peer.
#[derive(Debug, Serialize, JsonSchema)]
struct ThreadsRow {
    process: ProcessRow,
    /// `connect`, `send` or `recv`.
    call: &'static str,
    peer: String,
    threads: usize,
    /// How many threads the process has.
    of: usize,
    /// How long the longest of them has been seen inside.
    longest_ns: i64,
}

/// A cause that connections lost time to.
#[derive(Debug, Serialize, JsonSchema)]
struct FindingRow {
    cause: &'static str,
    class: &'static str,
    /// Who has to act: `application`, `tcp`, `path` or `none`.
    owner: &'static str,
    at: &'static str,
    side: &'static str,
    /// In the interval, over all connections.
    lost_ns: i64,
    /// All of the interval in which these connections were looked at: `lost_ns` is a part of it.
    of_ns: i64,
    /// Since they were looked at.
    total_ns: i64,
    connections: usize,
    /// The connection that lost most: this end and the other.
    example: [String; 2],
    source: &'static str,
    why: String,
    fixes: Vec<FixRow>,
}

/// A fix.
#[derive(Debug, Serialize, JsonSchema)]
struct FixRow {
    id: &'static str,
    /// `client`, `server`, `host` or `path`.
    r#where: &'static str,
    title: &'static str,
    how: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct UnseenRow {
    what: String,
    needs: String,
}

/// A line of `--jsonl`.
#[derive(Debug, Serialize)]
struct Line {
    /// `connection`: one that has ended.
    r#type: &'static str,
    source: &'static str,
    #[serde(flatten)]
    row: Row,
}

const SAMPLED: &str = "sampled";
const KERNEL: &str = "kernel";

/// The document, ended by a line break.
pub fn write(out: &mut impl Write, view: &View) -> io::Result<()> {
    let s = &view.snapshot;
    let document = Document {
        tool: "tcpwhy",
        version: env!("CARGO_PKG_VERSION"),
        schema: 1,
        source: if view.events { KERNEL } else { SAMPLED },
        interval_ns: s.interval.0,
        watched_ns: s.watched.0,
        samples: s.samples,
        connections: s.connections.iter().map(row).collect(),
        connections_ended: s.ended.connections,
        connections_hidden: view.hidden,
        listeners: s.listeners.iter().map(listener).collect(),
        threads: s
            .stuck
            .iter()
            .map(|t| ThreadsRow {
                process: process(&t.process),
                call: t.call.name(),
                peer: t.peer.to_string(),
                threads: t.threads,
                of: t.of,
                longest_ns: t.longest.0,
            })
            .collect(),
        findings: view.findings.iter().map(|f| finding(f, s.connections.get(f.worst))).collect(),
        unseen: view
            .unseen
            .iter()
            .map(|u| UnseenRow { what: u.what.clone(), needs: u.needs.clone() })
            .collect(),
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

/// One line for a connection that has ended.
pub fn line(out: &mut impl Write, c: &Connection) -> io::Result<()> {
    let source = if c.facts.is_some() { KERNEL } else { SAMPLED };
    serde_json::to_writer(&mut *out, &Line { r#type: "connection", source, row: row(c) })?;
    writeln!(out)
}

fn row(c: &Connection) -> Row {
    let s = &c.sample;
    let memory = s.memory;
    let kernel = s.info.map(|i| Kernel {
        rtt_ns: i.rtt.0,
        min_rtt_ns: i.min_rtt.0,
        rto_ns: i.rto.0,
        mss: i.snd_mss,
        cwnd_packets: i.cwnd,
        ssthresh_packets: Some(i.ssthresh).filter(|&n| n != 0x7fff_ffff),
        in_flight_packets: i.in_flight(),
        unacknowledged_bytes: s.wqueue.saturating_sub(i.notsent),
        unsent_bytes: i.notsent,
        unread_bytes: s.rqueue,
        peer_window_bytes: i.snd_wnd,
        send_buffer_bytes: memory.map(|m| m.sndbuf),
        send_buffer_used_bytes: memory.map(|m| m.wmem_queued),
        receive_buffer_bytes: memory.map(|m| m.rcvbuf),
        retransmitted_packets: i.total_retrans,
        busy_ns: i.busy.0,
        receive_window_limited_ns: i.rwnd_limited.0,
        send_buffer_limited_ns: i.sndbuf_limited.0,
        bytes_acknowledged: i.bytes_acked,
        bytes_received: i.bytes_received,
        delivery_bytes_per_second: i.delivery_rate,
        congestion_control: s.congestion.name().into(),
    });
    Row {
        local: s.local.to_string(),
        peer: s.peer.to_string(),
        role: c.role.name(),
        state: s.state.name(),
        ended: c.ended,
        process: c.process.as_ref().map(process),
        watched_ns: c.watched.0,
        from_start: c.from_start,
        lost_ns: c.lost().0,
        unexplained_why: c.doubt(),
        interval: parts(&c.interval, c.role),
        total: parts(&c.total, c.role),
        kernel,
        events: c.facts.map(|f| Events {
            nagle: waits(f.nagle),
            nagle_delayed_ack: waits(f.nagle_delayed_ack),
            cork: waits(f.cork),
            blocked_writes: waits(f.blocked),
            refused_writes: f.refused,
            no_room: waits(f.no_room),
            late_writer: waits(f.late_writer),
            fast_retransmissions: f.fast_retransmits,
            timeouts: f.timeouts,
            loss_probes: f.loss_probes,
            unread: waits(f.unread),
            queued_writes: waits(f.queued),
            timeout_waits: waits(f.timeout),
            probe_waits: waits(f.probe),
        }),
    }
}

fn waits(w: Waits) -> WaitsRow {
    WaitsRow { count: w.count, time_ns: w.time.0, longest_ns: w.longest.0 }
}

fn process(p: &Process) -> ProcessRow {
    ProcessRow {
        pid: p.pid,
        name: p.name.clone(),
        container: p.container.clone(),
        container_name: p.container_name.clone(),
    }
}

fn parts(split: &Split, role: Role) -> Vec<Part> {
    let part = |s: Share| Part {
        cause: s.cause.id(),
        class: s.cause.class().letter(),
        at: s.at.id(),
        side: s.at.side(role == Role::Client).name(),
        time_ns: s.time.0,
        source: if s.counted >= s.time { KERNEL } else { SAMPLED },
        counted_ns: s.counted.max(Nanos::ZERO).0,
    };
    split.shares().into_iter().map(part).collect()
}

fn listener(l: &Listener) -> ListenerRow {
    ListenerRow {
        local: l.local.to_string(),
        process: l.process.as_ref().map(process),
        queue: l.queue,
        most: l.most,
        backlog: l.backlog,
        full: l.is_full(),
        drops: l.drops,
    }
}

fn finding(f: &Finding, worst: Option<&Connection>) -> FindingRow {
    let ends = worst.map(|c| [c.sample.local.to_string(), c.sample.peer.to_string()]);
    FindingRow {
        cause: f.cause.id(),
        class: f.cause.class().letter(),
        owner: f.cause.owner().id(),
        at: f.at.id(),
        side: f.side.name(),
        lost_ns: f.time.0,
        of_ns: f.of.0,
        total_ns: f.total.0,
        connections: f.connections,
        example: ends.unwrap_or_default(),
        source: f.source,
        why: f.why.clone(),
        fixes: f
            .fixes
            .iter()
            .map(|a| FixRow {
                id: a.fix.info().id,
                r#where: a.place,
                title: a.fix.info().title,
                how: a.how.clone(),
            })
            .collect(),
    }
}

/// The JSON Schema of the document.
pub fn schema() -> String {
    crate::schema::text::<Document>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpwhy_live::{Congestion, Info, Memory, Sample, State, Table};

    /// A connection that a full send buffer holds up, and a full listener.
    fn view() -> View {
        view_of(20)
    }

    /// It had data in flight for so many milliseconds of each 20.
    fn view_of(busy: i64) -> View {
        let end = |port| tcpwhy_base::Endpoint { ip: [10, 0, 0, 1].into(), port };
        let sample = |state, busy: i64| Sample {
            cookie: if state == State::Listen { 1 } else { 2 },
            local: end(if state == State::Listen { 80 } else { 40_000 }),
            peer: end(443),
            device: 0,
            state,
            inode: 5,
            rqueue: if state == State::Listen { 9 } else { 0 },
            wqueue: if state == State::Listen { 8 } else { 11_584 },
            retransmits: 0,
            expires: None,
            info: Some(Info {
                snd_mss: 1448,
                cwnd: 40,
                unacked: 8,
                min_rtt: Nanos::millis(20),
                rtt: Nanos::millis(21),
                busy: Nanos::millis(busy),
                snd_wnd: Some(1 << 20),
                ..Info::default()
            }),
            memory: Some(Memory { sndbuf: 32_768, wmem_queued: 30_000, ..Memory::default() }),
            congestion: Congestion::new(b"cubic"),
        };
        let mut table = Table::default();
        for n in 0..5 {
            let sockets = [sample(State::Listen, 0), sample(State::Established, busy * n)];
            table.feed(&sockets, Nanos::millis(20 * n));
        }
        View::new(false, table.interval(), |_| true, |_| true, Vec::new())
    }

    #[test]
    fn the_schema_is_committed_and_kept() {
        crate::schema::tests::is_committed("watch-1.json", &schema());
        let mut text = Vec::new();
        write(&mut text, &view()).unwrap();
        let document = serde_json::from_slice(&text).unwrap();
        assert_eq!(crate::schema::tests::faults(&schema(), &document), Vec::<String>::new());
        assert_eq!(document["findings"][0]["cause"], "send_buffer");
        assert_eq!(document["findings"][0]["fixes"][0]["where"], "client");
        assert_eq!(document["connections"][0]["lost_ns"], 80_000_000);
        let parts = |of: &str| {
            let parts = document["connections"][0][of].as_array().unwrap();
            parts.iter().map(|p| format!("{} {}", p["cause"], p["time_ns"])).collect::<Vec<_>>()
        };
        let held = vec![String::from("\"send_buffer\" 80000000")];
        assert_eq!((parts("interval"), parts("total")), (held.clone(), held));
        assert_eq!(document["listeners"][0]["full"], true);
    }

    /// Listed with the others, and marked wherever it is.
    #[test]
    fn a_connection_that_ended_is_marked() {
        let open = view().snapshot.connections.remove(0);
        let mut table = Table::default();
        for (n, sockets) in [&[open.sample.clone()][..], &[], &[]].into_iter().enumerate() {
            table.feed(sockets, Nanos::millis(10 * n as i64));
        }
        let ended = table.take_ended().remove(0);
        assert_eq!(
            (crate::watch::state(&open), crate::watch::state(&ended)),
            (String::new(), "  ended".into())
        );
        let mut snapshot = table.interval();
        snapshot.ended.add(&ended);
        snapshot.ended.hide();
        let view = View::new(false, snapshot, |_| true, |_| true, Vec::new());
        assert_eq!((view.counts(), view.heading()), ((0, 1), "0 connections, and 1 that ended,".into()));
        let mut text = Vec::new();
        write(&mut text, &view).unwrap();
        let document: serde_json::Value = serde_json::from_slice(&text).unwrap();
        assert_eq!((&document["connections_ended"], &document["connections_hidden"]), (&1.into(), &1.into()));
        assert_eq!(document["connections"][0]["ended"], true);
    }

    #[test]
    fn that_nothing_was_lost_is_said_of_connections_only() {
        let said = |view: &View| {
            let mut text = Vec::new();
            let layout = crate::watch::Layout { width: 80, top: 10, verbose: false };
            crate::watch::text(&mut text, view, &layout).unwrap();
            String::from_utf8(text).unwrap().contains("Nothing was lost to TCP")
        };
        assert!(said(&view_of(0)));
        assert!(!said(&view_of(20)));
        assert!(!said(&View::new(false, Table::default().interval(), |_| true, |_| true, Vec::new())));
    }

    #[test]
    fn text_says_the_same() {
        let mut text = Vec::new();
        let layout = crate::watch::Layout { width: 80, top: 10, verbose: false };
        crate::watch::text(&mut text, &view(), &layout).unwrap();
        let text = String::from_utf8(anstream::adapter::strip_bytes(&text).into_vec()).unwrap();
        for words in [
            "1 connection in the last 80.0 ms, estimated from 5 samples",
            "send_buffer 100 %",
            "10.0.0.1:40000 > 10.0.0.1:443",
            "30000 of 32768 bytes of the send buffer hold 11584 bytes",
            "9 wait for accept(), 9 fit: full",
            "fix: ",
        ] {
            assert!(text.contains(words), "{words:?} is not in {text}");
        }
        assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    }
}
