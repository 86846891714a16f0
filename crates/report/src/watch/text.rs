//! The same for people.

use super::View;
use crate::figures::{count, percent};
use crate::text::style::{BOLD, DIM, FIX, WARN, of, wrap};
use crate::text::whose;
use std::io::{self, Write};
use tcpwhy_base::{Cause, Class, Nanos};
use tcpwhy_live::{
    Call, Connection, Facts, Finding, Listener, Process, Role, Share, Split, Stuck, Waits, Where,
};

/// How it is laid out.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Columns.
    pub width: usize,
    /// Connections that are listed.
    pub top: usize,
    /// All fixes, and all that cannot be seen.
    pub verbose: bool,
}

/// Threads that are inside a call for less are not worth a line; and so many lines at most.
const SHOWN: Nanos = Nanos::millis(100);
const THREADS: usize = 5;
/// Text below the heading of a finding begins here.
const INDENT: usize = 10;

/// What is known at the end of an interval.
pub fn write(out: &mut impl Write, view: &View, layout: &Layout) -> io::Result<()> {
    let s = &view.snapshot;
    let head = format!(
        "{} in the last {}, estimated from {}{}",
        view.heading(),
        s.interval,
        count(s.samples.into(), "sample"),
        if view.events { " and measured by kernel events" } else { "" },
    );
    let hidden = if view.hidden > 0 { format!("; {} not asked for", view.hidden) } else { String::new() };
    writeln!(out, "{BOLD}{head}{BOLD:#}{hidden}")?;
    for c in s.connections.iter().take(layout.top) {
        connection(out, c, layout)?;
    }
    let (open, ended) = view.counts();
    let more = (open + ended).saturating_sub(layout.top.min(s.connections.len()));
    if more > 0 {
        writeln!(out, "  {DIM}and {} that lost less{DIM:#}", count(more as u64, "connection"))?;
    }
    for f in &view.findings {
        finding(out, f, s.connections.get(f.worst), layout)?;
    }
    if view.findings.is_empty() && !s.connections.is_empty() {
        writeln!(out, "\n  Nothing was lost to TCP that shows in samples.")?;
    }
    let waits = |t: &&Stuck| t.call != Call::Receive || t.threads * 2 > t.of || layout.verbose;
    for t in s.stuck.iter().filter(|t| t.longest >= SHOWN).filter(waits).take(THREADS) {
        paragraph(out, &threads(t), 2, layout)?;
    }
    for l in s.listeners.iter().filter(|l| l.queue > 0 || layout.verbose) {
        listener(out, l)?;
    }
    let shown = if layout.verbose { view.unseen.len() } else { 0 };
    for u in view.unseen.iter().take(shown) {
        paragraph(out, &format!("not seen: {} ({})", u.what, u.needs), 2, layout)?;
    }
    if shown < view.unseen.len() {
        let names: Vec<&str> = view.unseen.iter().map(|u| u.what.as_str()).collect();
        paragraph(out, &format!("not seen (-v: why): {}", names.join("; ")), 2, layout)?;
    }
    Ok(())
}

/// `50 of 100 threads of php(812) are in connect() to 10.0.0.7:3306, for up to 3.10 s`.
pub fn threads(t: &Stuck) -> String {
    let are = if t.threads == 1 { "is" } else { "are" };
    format!(
        "{} of {} of {} {are} in {}() to {}, for up to {}",
        t.threads,
        count(t.of as u64, "thread"),
        program(Some(&t.process)),
        t.call.name(),
        t.peer,
        t.longest
    )
}

/// `nginx(812)`, with its container.
pub fn program(process: Option<&Process>) -> String {
    match process {
        None => "?".into(),
        Some(p) => {
            let container = p
                .container_name
                .as_ref()
                .or(p.container.as_ref())
                .map(|c| format!("@{c}"))
                .unwrap_or_default();
            format!("{}({}){container}", plain(&p.name), p.pid)
        }
    }
}

/// `10.0.0.1:40000 > 10.0.0.2:443`: from the client to the server, this host's end first.
pub fn ends(c: &Connection) -> String {
    let arrow = if c.role == Role::Client { '>' } else { '<' };
    format!("{} {arrow} {}", c.sample.local, c.sample.peer)
}

/// `  ended`, or a state that is not the usual one, behind the ends.
pub fn state(c: &Connection) -> String {
    match c.sample.state.name() {
        _ if c.ended => "  ended".into(),
        "ESTAB" => String::new(),
        state => format!("  {state}"),
    }
}

/// `send_buffer 92 %, path_delay 5 %`: the largest parts.
pub fn short(split: &Split, most: usize) -> String {
    let all = split.total().0.max(1) as f64;
    let part = |s: &Share| format!("{} {}", said(s), percent(s.time.0 as f64 / all));
    let parts: Vec<String> = split.shares().iter().take(most).map(part).collect();
    if parts.is_empty() { "not seen long enough".into() } else { parts.join(", ") }
}

/// The id of a cause; where that is not plain, the end too.
fn said(s: &Share) -> String {
    match (s.cause, s.at) {
        // What the other end sends and how: its host knows.
        (Cause::Unexplained, Where::Peer) => "receiving".into(),
        (Cause::SlowReader, Where::Here) => "slow_reader here".into(),
        (Cause::SlowReader, Where::Peer) => "slow_reader at the peer".into(),
        (cause, _) => cause.id().into(),
    }
}

fn connection(out: &mut impl Write, c: &Connection, layout: &Layout) -> io::Result<()> {
    let worst = c.interval.shares().into_iter().find(|s| s.cause.class() == Class::Tcp);
    let colour = worst.map_or(DIM, |s| of(s.cause));
    let lost = if c.lost() > Nanos::ZERO { c.lost().to_string() } else { "-".into() };
    writeln!(out, "{BOLD}{lost:>8}{BOLD:#}  {}  {}{}", ends(c), program(c.process.as_ref()), state(c))?;
    let (now, all) = (short(&c.interval, 3), short(&c.total, 3));
    // What is as old as the interval is not said twice.
    let is_same = c.interval == c.total || now == all && c.watched <= c.interval.total() + Nanos::millis(50);
    let all = if is_same { String::new() } else { format!("; in {}: {all}", c.watched) };
    for (n, line) in
        wrap(&format!("{now}{all}"), layout.width.saturating_sub(INDENT).max(20)).iter().enumerate()
    {
        let style = if n == 0 { colour } else { DIM };
        writeln!(out, "{:INDENT$}{style}{line}{style:#}", "")?;
    }
    if let Some(text) = c.doubt() {
        for line in wrap(&format!("unexplained: {text}"), layout.width.saturating_sub(INDENT).max(20)) {
            writeln!(out, "{:INDENT$}{DIM}{line}{DIM:#}", "")?;
        }
    }
    if let Some(text) = c.facts.as_ref().and_then(facts) {
        for line in wrap(&format!("kernel: {text}"), layout.width.saturating_sub(INDENT).max(20)) {
            writeln!(out, "{:INDENT$}{DIM}{line}{DIM:#}", "")?;
        }
    }
    Ok(())
}

/// `23 writes held for a delayed ACK, 44.0 ms at most; 2 timeouts`: what kernel events say, since the
/// connection is looked at.
pub fn facts(f: &Facts) -> Option<String> {
    let waits = |what: &str, w: &Waits| {
        (w.count > 0)
            .then(|| format!("{} {what} for {}, {} at most", count(w.count, "write"), w.time, w.longest))
    };
    let some = |n: u64, what: &str| (n > 0).then(|| count(n, what));
    let parts = [
        waits("held by Nagle until a delayed ACK", &f.nagle_delayed_ack),
        waits("held by Nagle", &f.nagle),
        waits("held by a cork", &f.cork),
        waits("asleep", &f.blocked),
        waits("behind unsent bytes", &f.queued),
        (f.unread.count > 0).then(|| {
            format!(
                "{} late for {}, {} at most",
                count(f.unread.count, "read"),
                f.unread.time,
                f.unread.longest
            )
        }),
        (f.refused > 0).then(|| format!("{} refused (EAGAIN)", count(f.refused, "write"))),
        waits("refused or cut short, until there was room,", &f.no_room),
        waits("later than there was room", &f.late_writer),
        some(f.fast_retransmits, "fast retransmission"),
        some(f.timeouts, "timeout"),
        some(f.loss_probes, "tail loss probe"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn finding(out: &mut impl Write, f: &Finding, worst: Option<&Connection>, layout: &Layout) -> io::Result<()> {
    let colour = of(f.cause);
    let share = f.time.0 as f64 / f.of.0.max(1) as f64;
    writeln!(
        out,
        "\n  {BOLD}{:>8} {:>6}  {BOLD:#}{colour}{}{colour:#}",
        f.time.to_string(),
        percent(share.min(1.0)),
        f.cause.info().title
    )?;
    let whose = whose(f.cause, Some(f.side));
    let of = match f.connections {
        1 => worst.map(|c| format!("; {} {}", program(c.process.as_ref()), ends(c))).unwrap_or_default(),
        n => format!("; on {}", count(n as u64, "connection")),
    };
    writeln!(out, "{:INDENT$}{DIM}{whose}{of}{DIM:#}", "")?;
    paragraph(out, &f.why, INDENT, layout)?;
    let wanted = if layout.verbose { f.fixes.len() } else { 2 };
    for (n, fix) in f.fixes.iter().take(wanted).enumerate() {
        let place = match fix.place {
            "client" | "server" => format!(" (on the {})", fix.place),
            "path" => " (on the path)".into(),
            _ => String::new(),
        };
        let lead = if n == 0 || layout.verbose { "fix: " } else { " or: " };
        writeln!(out, "{:INDENT$}{FIX}{lead}{}{place}{FIX:#}", "", fix.fix.info().title)?;
        for how in fix.how.iter().take(if layout.verbose { fix.how.len() } else { 1 }) {
            paragraph(out, how.strip_prefix("Any: ").unwrap_or(how), INDENT + 5, layout)?;
        }
    }
    Ok(())
}

fn listener(out: &mut impl Write, l: &Listener) -> io::Result<()> {
    let style = if l.is_full() { WARN } else { DIM };
    let full = if l.is_full() { ": full, SYNs are dropped" } else { "" };
    writeln!(
        out,
        "\n  {style}listener {}  {}: {} wait for accept(), {} fit{full}{style:#}",
        l.local,
        program(l.process.as_ref()),
        l.queue,
        l.backlog.saturating_add(1)
    )
}

fn paragraph(out: &mut impl Write, text: &str, indent: usize, layout: &Layout) -> io::Result<()> {
    for (n, line) in wrap(text, layout.width.saturating_sub(indent + 2).max(20)).iter().enumerate() {
        let more = if n == 0 { 0 } else { 2 };
        writeln!(out, "{:width$}{line}", "", width = indent + more)?;
    }
    Ok(())
}

/// The name of a process may be anything but a zero byte.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
