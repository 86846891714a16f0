//! `tcpwhy watch --metrics`: what is known after each interval as OpenMetrics. Labels have few values,
//! whatever a host does: causes, places, states, and programs as far as the first of them.

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::AtomicU64;
use tcpwhy_base::{Cause, Nanos};
use tcpwhy_live::{Connection, Facts, Process, Snapshot, State};

/// Programs with a label of their own; connections of all that are seen later are `other`.
const PROGRAMS: usize = 20;

/// States of a connection as OpenTelemetry names them (`network.connection.state`).
const STATES: [(State, &str); 9] = [
    (State::Established, "established"),
    (State::SynSent, "syn_sent"),
    (State::SynReceived, "syn_received"),
    (State::FinWait1, "fin_wait_1"),
    (State::CloseWait, "close_wait"),
    (State::LastAck, "last_ack"),
    (State::Closing, "closing"),
    (State::Listen, "listen"),
    (State::FinWait2, "fin_wait_2"),
];

type Labels = Vec<(&'static str, String)>;
type Seconds = Counter<f64, AtomicU64>;
type Ratio = Gauge<f64, AtomicU64>;

/// All that is served.
pub(super) struct Metrics {
    registry: Registry,
    time: Family<Labels, Seconds>,
    states: Family<Labels, Gauge>,
    ended: Counter,
    retransmitted: Family<Labels, Counter>,
    held: Family<Labels, Counter>,
    blocked: Counter,
    blocked_time: Seconds,
    refused: Counter,
    no_room: Seconds,
    late_writer: Seconds,
    late: Counter,
    queued: Seconds,
    threads: Family<Labels, Gauge>,
    full: Gauge,
    fill: Ratio,
    drops: Counter,
    samples: Counter,
    watched: Seconds,
    processor: Seconds,
    memory: Gauge,
    programs: BTreeSet<String>,
    /// What each listener had dropped.
    dropped: HashMap<u32, u32>,
    used: Nanos,
}

/// Registers a metric and keeps it.
fn keep<M: prometheus_client::registry::Metric + Clone + Default>(
    registry: &mut Registry,
    name: &str,
    unit: Option<Unit>,
    help: &str,
) -> M {
    let metric = M::default();
    match unit {
        Some(unit) => registry.register_with_unit(name, help, unit, metric.clone()),
        None => registry.register(name, help, metric.clone()),
    }
    metric
}

impl Metrics {
    /// `events`: kernel events are seen.
    pub(super) fn new(events: bool) -> Metrics {
        let mut registry = Registry::default();
        let r = &mut registry;
        let source = if events { "kernel" } else { "sampled" };
        let about = Info::new(vec![("version", env!("CARGO_PKG_VERSION")), ("source", source)]);
        r.register(
            "tcpwhy_build",
            "The program that looks, and whether it sees kernel events or only samples",
            about,
        );
        Metrics {
            time: keep(r, "tcpwhy_connection_time", Some(Unit::Seconds), "Time of connections by its cause"),
            states: keep(
                r,
                "system_network_connection_count",
                None,
                "TCP sockets by state, without those in TIME_WAIT",
            ),
            ended: keep(r, "tcpwhy_connections_ended", None, "Connections that are gone"),
            retransmitted: keep(
                r,
                "tcpwhy_retransmitted_packets",
                None,
                "Packets sent again, by what made it so",
            ),
            held: keep(r, "tcpwhy_held_writes", None, "Small writes that were held back, by the cause"),
            blocked: keep(
                r,
                "tcpwhy_blocked_writes",
                None,
                "Writers that slept in a call for want of buffer",
            ),
            blocked_time: keep(r, "tcpwhy_blocked_write", Some(Unit::Seconds), "How long they slept"),
            refused: keep(r, "tcpwhy_refused_writes", None, "Writes that were refused with EAGAIN"),
            no_room: keep(
                r,
                "tcpwhy_refused_write",
                Some(Unit::Seconds),
                "How long writes that were refused waited for room",
            ),
            late_writer: keep(
                r,
                "tcpwhy_late_write",
                Some(Unit::Seconds),
                "How long there was room before a program that had been refused wrote",
            ),
            late: keep(r, "tcpwhy_late_reads", None, "Times that data lay unread for a millisecond or more"),
            queued: keep(
                r,
                "tcpwhy_queued_write",
                Some(Unit::Seconds),
                "How long writes waited behind unsent bytes of their own connection",
            ),
            threads: keep(
                r,
                "tcpwhy_waiting_threads",
                None,
                "Threads inside a call on a socket, by call and program",
            ),
            full: keep(r, "tcpwhy_listeners_full", None, "Listeners whose accept queue is full"),
            fill: keep(
                r,
                "tcpwhy_accept_queue_fill",
                Some(Unit::Ratios),
                "The fullest accept queue, of what fits",
            ),
            drops: keep(r, "tcpwhy_listen_drops", None, "SYNs and connections that listeners dropped"),
            samples: keep(r, "tcpwhy_samples", None, "How often all sockets were listed"),
            watched: keep(r, "tcpwhy_watched", Some(Unit::Seconds), "How long sockets have been looked at"),
            processor: keep(r, "process_cpu_time", Some(Unit::Seconds), "Processor time that looking takes"),
            memory: keep(r, "process_memory_usage", Some(Unit::Bytes), "Memory that looking takes"),
            programs: BTreeSet::new(),
            dropped: HashMap::new(),
            used: Nanos::ZERO,
            registry,
        }
    }

    /// Adds an interval: connections that were asked for, and those of them that ended in it.
    pub(super) fn add(&mut self, snapshot: &Snapshot, ended: &[Connection]) {
        snapshot.connections.iter().chain(ended).for_each(|c| self.connection(c));
        self.ended.inc_by(ended.len() as u64);
        for (state, name) in STATES {
            let count = match state {
                State::Listen => snapshot.listeners.len(),
                _ => snapshot.connections.iter().filter(|c| c.sample.state == state).count(),
            };
            let labels = vec![("network_transport", "tcp".into()), ("network_connection_state", name.into())];
            self.states.get_or_create(&labels).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        self.listeners(snapshot);
        self.threads.clear();
        for t in &snapshot.stuck {
            let labels = vec![("call", t.call.name().into()), ("program", self.program(Some(&t.process)))];
            self.threads.get_or_create(&labels).inc_by(t.threads as i64);
        }
        self.samples.inc_by(snapshot.samples.into());
        self.watched.inc_by(seconds(snapshot.interval));
        let used = Nanos(tcpwhy_live::process_time().as_nanos().try_into().unwrap_or(i64::MAX));
        self.processor.inc_by(seconds((used - self.used).floor0()));
        self.used = used;
        self.memory.set(resident());
    }

    fn connection(&mut self, c: &Connection) {
        let program = self.program(c.process.as_ref());
        for share in c.interval.shares() {
            let labels = vec![
                ("cause", share.cause.id().into()),
                ("class", share.cause.class().letter().into()),
                ("at", share.at.id().into()),
                ("program", program.clone()),
            ];
            self.time.get_or_create(&labels).inc_by(seconds(share.time));
        }
        let Facts { nagle, nagle_delayed_ack, cork, blocked, refused, no_room, late_writer, .. } = c.news;
        let Facts { fast_retransmits, timeouts, loss_probes, unread, queued, .. } = c.news;
        // Which timer it was, or none, only its kernel knows; what samples count and events do not is of no known kind.
        let known = fast_retransmits + timeouts + loss_probes;
        let other = u64::from(c.sent_again).saturating_sub(known);
        for (kind, count) in
            [("fast", fast_retransmits), ("rto", timeouts), ("tlp", loss_probes), ("_OTHER", other)]
        {
            self.retransmitted
                .get_or_create(&vec![("network_tcp_retransmit_type", kind.into())])
                .inc_by(count);
        }
        for (cause, waits) in [
            (Cause::Nagle, nagle),
            (Cause::NagleDelayedAck, nagle_delayed_ack),
            (Cause::Cork, cork),
            (Cause::SendQueue, queued),
        ] {
            self.held.get_or_create(&vec![("cause", cause.id().into())]).inc_by(waits.count);
        }
        self.blocked.inc_by(blocked.count);
        self.blocked_time.inc_by(seconds(blocked.time));
        self.refused.inc_by(refused);
        self.no_room.inc_by(seconds(no_room.time));
        self.late_writer.inc_by(seconds(late_writer.time));
        self.late.inc_by(unread.count);
        self.queued.inc_by(seconds(queued.time));
    }

    /// The first programs have a name each.
    fn program(&mut self, process: Option<&Process>) -> String {
        let Some(process) = process else { return "unknown".into() };
        if !self.programs.contains(&process.name) {
            if self.programs.len() >= PROGRAMS {
                return "other".into();
            }
            self.programs.insert(process.name.clone());
        }
        process.name.clone()
    }

    fn listeners(&mut self, snapshot: &Snapshot) {
        let fill = |l: &tcpwhy_live::Listener| f64::from(l.queue) / (f64::from(l.backlog) + 1.0);
        self.full.set(snapshot.listeners.iter().filter(|l| l.is_full()).count() as i64);
        self.fill.set(snapshot.listeners.iter().map(fill).fold(0.0, f64::max));
        let before = std::mem::take(&mut self.dropped);
        for l in &snapshot.listeners {
            // What it had dropped before it was looked at is not counted.
            let old = before.get(&l.inode).copied().unwrap_or(l.drops);
            self.drops.inc_by(l.drops.saturating_sub(old).into());
            self.dropped.insert(l.inode, l.drops);
        }
    }

    /// As it is served.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        // Only writing to a string that refuses could fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

fn seconds(time: Nanos) -> f64 {
    time.0 as f64 / 1e9
}

/// Bytes in memory: the second number of `/proc/self/statm`, in pages of 4096 on the platforms that are built for.
fn resident() -> i64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|n| n.parse::<i64>().ok()).unwrap_or(0) * 4096
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use tcpwhy_live::{Diag, Table};

    #[test]
    fn labels_stay_few_whatever_programs_come() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _pair = (TcpStream::connect(listener.local_addr().unwrap()).unwrap(), listener.accept().unwrap());
        let (mut diag, mut table, mut sockets) = (Diag::open().unwrap(), Table::default(), Vec::new());
        let mut metrics = Metrics::new(false);
        for n in 0..40 {
            diag.sockets(&mut sockets).unwrap();
            table.feed(&sockets, Nanos::millis(100 * n));
            table.name(|_| Some(Process { pid: 1, name: format!("p{n}"), ..Process::default() }));
            metrics.add(&table.interval(), &table.take_ended());
        }
        let text = metrics.text();
        assert!(text.ends_with("# EOF\n"), "{text}");
        for words in ["program=\"p1\"", "program=\"other\"", "tcpwhy_build_info{", "source=\"sampled\""] {
            assert!(text.contains(words), "{words} is not in {text}");
        }
        assert!(!text.contains(&format!("program=\"p{}\"", PROGRAMS + 1)), "{text}");
        assert!(text.contains("tcpwhy_watched_seconds_total 3.9"), "{text}");
    }
}
