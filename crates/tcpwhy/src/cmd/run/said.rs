//! The last lines: what lay between the ends, what was tried in vain, how the command ended.

use super::About;
use super::end::End;
use super::figures::median;
use crate::args::run::Run;
use tcpwhy_base::{Cause, Nanos};
use tcpwhy_lab::own::{Ended, Report};
use tcpwhy_library::{captures::Analysis, parts::Distance};

/// Round trip times that are asked about: a data centre, a country, a continent, an ocean.
pub(super) const DISTANCES: [Nanos; 4] =
    [Nanos::millis(1), Nanos::millis(10), Nanos::millis(40), Nanos::millis(100)];
/// Names of a list that are shown.
const FEW: usize = 5;

/// A line each, in the order in which they are read; the last says how it ended.
pub(super) fn lines(about: &About<'_>, end: &End) -> Vec<String> {
    let (args, report) = (about.args, about.report);
    let mut lines = Vec::new();
    if about.analysis.connection_count() == 0 && !report.runs.is_empty() {
        lines.push(no_tcp(about.packets));
    }
    if let Some(link) = &about.plan.link {
        lines.push(the_link(args, (link.shared.mtu, link.shared.seed), report));
    }
    if !report.outside.is_empty() {
        let places: Vec<String> = report.outside.iter().map(|(place, _)| place.to_string()).collect();
        lines.push(format!(
            "outside: tried to reach {}: there is no outside network in here; start what it needs beside it, or take a \
             capture of the real thing (tcpdump) for tcpwhy explain",
            few(&places)
        ));
    }
    if !report.left.is_empty() {
        lines.push(format!(
            "left behind: {} still ran when the command had ended, and had to end too: keep the command in the foreground",
            few(&report.left)
        ));
    }
    if let Some(far) = about.far {
        lines.extend(at_a_distance(far, report, stalls(about.analysis)));
    }
    lines.extend(end.notes.iter().chain(&end.run.failed).cloned());
    lines.push(the_end(args, report, end.run.exit_code));
    lines
}

/// What is said where there is nothing to explain, of how many packets: all and TCP's.
fn no_tcp((all, tcp): (u64, u64)) -> String {
    let what = match (all, tcp) {
        (0, _) => {
            "nothing passed its network: it used none, or sockets that are files (Unix sockets)".to_owned()
        }
        (all, 0) => format!(
            "{} passed its network, none of them TCP (UDP, such as DNS or QUIC, or ICMP)",
            counted(all, "packet")
        ),
        (_, tcp) => format!("{} of TCP passed, and none is left to explain", counted(tcp, "packet")),
    };
    format!("no TCP connection was seen: {what}")
}

/// Time that was spent in stalls by a timer of TCP, of all runs: nothing that distance makes, but all of it
/// is in the figures.
fn stalls(analysis: &Analysis) -> Nanos {
    let budgets = analysis.connections.iter().map(|c| &c.budget);
    let causes = [Cause::NagleDelayedAck, Cause::DelayedAck, Cause::Cork];
    budgets.flat_map(|b| causes.map(|cause| b.get(cause))).fold(Nanos::ZERO, |sum, t| sum + t)
}

/// How long the same would take farther away, and what grows most.
fn at_a_distance(far: &Distance, report: &Report, stalls: Nanos) -> Vec<String> {
    let between =
        |least: String, most: String| if least == most { least } else { format!("{least} to {most}") };
    let now = median(report.runs.iter().map(|e| e.duration_ns));
    let runs = i64::try_from(report.runs.len()).unwrap_or(1).max(1);
    let costs = far.costs.iter().map(|cost| {
        let time = |more: Nanos| (now + more.part(runs)).to_string();
        format!("{} at {}", between(time(cost.least), time(cost.most)), cost.rtt)
    });
    let trips = between(far.trips.0.to_string(), far.trips.1.to_string());
    let mut first = format!(
        "at a distance: {trips} round trips in a row; instead of {now} it would take {}",
        costs.collect::<Vec<_>>().join(", ")
    );
    if far.trips.0 != far.trips.1 {
        first += " (which of the connections wait for each other does not show)";
    }
    if far.replayed < 0.9 {
        let which = match (1.0 - far.replayed) * 100.0 {
            all if all >= 99.5 => "all exchanges".to_owned(),
            some => format!("{some:.0} % of the exchanges"),
        };
        first += &format!("; the model cannot replay {which}: of those only round trips are counted");
    }
    let stalls = stalls.part(runs);
    if stalls.0 * 10 > now.0 {
        first += &format!("; stalls of delayed ACKs ({stalls} here) are in it");
        if far.costs.iter().any(|cost| cost.least < Nanos::ZERO) {
            first += ", fewer where segments of 1448 bytes leave what loopback's of 64 KiB hold back";
        }
    }
    let mut lines = vec![first];
    if let (Some(most), Some(last)) = (&far.most, far.costs.last()) {
        let what = if most.setups {
            format!("opening {} to {}", counted(most.count, "connection"), most.server)
        } else {
            let [up, down] = most.bytes.map(tcpwhy_report::text::bytes);
            format!("{} of {up}, answered with {down}, to {}", counted(most.count, "request"), most.server)
        };
        lines.push(format!(
            "grows most: {what} (connection {}): {} more for each at {}",
            most.connection, most.each, last.rtt
        ));
    }
    lines
}

/// `1 request`, `27 requests`.
fn counted(n: impl Into<u64>, what: &str) -> String {
    let n = n.into();
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn the_link(args: &Run, (mtu, seed): (u64, u64), report: &Report) -> String {
    let mut what = vec![format!("{} round trip", args.rtt.unwrap_or_default())];
    what.extend(args.rate.map(|rate| format!("{rate} Mbit/s")));
    what.extend(args.loss.map(|loss| format!("{} % lost at random (seed {seed})", loss * 100.0)));
    what.push(format!("packets of at most {mtu} bytes"));
    if args.server.is_none() {
        what.push("::1 is off".into());
    }
    let late = &report.lateness;
    let lost = report.lost;
    let mut line = format!(
        "link: {}; {} packets, late by {} (median), {} (99 %)",
        what.join(", "),
        late.count,
        Nanos(late.p50_ns),
        Nanos(late.p99_ns)
    );
    for (n, why) in
        [(lost.chance, "by chance"), (lost.queue, "by a full queue"), (lost.refused, "by a busy machine")]
    {
        if n > 0 {
            line += &format!(", {n} lost {why}");
        }
    }
    if report.disturbed {
        line += "; disturbed: the machine was busy, times are not exact";
    }
    line
}

fn the_end(args: &Run, report: &Report, code: u8) -> String {
    let command = super::command(&args.command);
    let forced = if report.forced { " (killed after the second request to end)" } else { "" };
    let how = |e: &Ended| match (e.code, e.signal) {
        (Some(code), _) => format!("returned {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended in a way that is not known".into(),
    };
    let ended = match report.runs.as_slice() {
        [] => "was not run".to_owned(),
        [one] => format!("{} after {}{forced}", how(one), Nanos(one.duration_ns)),
        many => {
            let times = || many.iter().map(|e| e.duration_ns);
            let last = many.last().map(how).unwrap_or_default();
            format!(
                "{last}{forced}; {} runs took {} to {}, median {}",
                many.len(),
                Nanos(times().min().unwrap_or(0)),
                Nanos(times().max().unwrap_or(0)),
                median(times())
            )
        }
    };
    format!("run: {command} {ended}; exit code {code}")
}

fn few(all: &[String]) -> String {
    let mut shown = all.iter().take(FEW).cloned().collect::<Vec<_>>().join(", ");
    if all.len() > FEW {
        shown += &format!(" and {} more", all.len() - FEW);
    }
    shown
}
