//! The same for people.

use super::shown::endpoint;
use super::{Group, Summary};
use crate::args::Summarize;
use crate::shown;
use std::io::{self, Write};
use tcpwhy_base::{Nanos, Owner};
use tcpwhy_report::count;
use tcpwhy_report::text::percent;

/// Days that are listed, the last ones.
const DAYS: usize = 14;

fn share(part: Nanos, whole: Nanos) -> String {
    percent(part.0 as f64 / whole.0.max(1) as f64)
}

fn time(at: Option<Nanos>) -> String {
    at.map_or_else(|| "-".into(), |t| t.to_string())
}

/// The share of what TCP has to answer for, and the worst of it.
fn tcp(group: &Group) -> (String, &'static str) {
    let ranked = group.ranked();
    let mut of_tcp = ranked.iter().filter(|(cause, _)| cause.owner() == Owner::Tcp);
    let sum = of_tcp.clone().fold(Nanos::ZERO, |sum, (_, time)| sum + *time);
    (share(sum, group.total()), of_tcp.next().map_or("-", |(cause, _)| cause.id()))
}

pub(super) fn write(out: &mut impl Write, s: &Summary, args: &Summarize) -> io::Result<()> {
    let all = &s.all;
    let days = match (s.days.keys().next(), s.days.keys().last()) {
        (Some(first), Some(last)) if first != last => format!(" from {first} to {last}"),
        (Some(day), _) => format!(" of {day}"),
        _ => String::new(),
    };
    writeln!(
        out,
        "{} on {} in {}{days}:\n{} of requests, median {}, p95 {}, longest {}",
        count(all.times.count(), "exchange"),
        count(all.connections, "connection"),
        count(s.captures.len() as u64, "capture"),
        all.total(),
        time(all.times.percentile(50)),
        time(all.times.percentile(95)),
        all.times.longest()
    )?;
    writeln!(out, "\n      time   share  cause                   owner")?;
    for (cause, lost) in all.ranked().into_iter().take(args.top) {
        let (lost, part) = (lost.to_string(), share(lost, all.total()));
        writeln!(out, "{lost:>10}  {part:>6}  {:<22}  {}", cause.id(), cause.owner().id())?;
    }
    writeln!(out, "\n exchanges     median        p95     tcp  worst of TCP            server")?;
    let ranked = s.ranked();
    for (server, group) in ranked.iter().take(args.top) {
        row(out, group, &endpoint(server))?;
    }
    if ranked.len() > args.top {
        writeln!(out, "  and {} more (--top)", count((ranked.len() - args.top) as u64, "server"))?;
    }
    writeln!(out, "\n exchanges     median        p95     tcp  worst of TCP            day")?;
    for (day, group) in s.days.iter().skip(s.days.len().saturating_sub(DAYS)) {
        row(out, group, day)?;
    }
    if s.days.len() > DAYS {
        writeln!(out, "  and {} days before (--json has all)", s.days.len() - DAYS)?;
    }
    if let Some(at) = &args.split {
        split(out, s, at, args.top)?;
    }
    if !s.worst.is_empty() {
        writeln!(out, "\n      took  most of it                        exchange")?;
    }
    for slow in &s.worst {
        let most =
            slow.most.map_or_else(String::new, |(c, t)| format!("{} {}", c.id(), share(t, slow.duration)));
        let took = slow.duration.to_string();
        writeln!(
            out,
            "{took:>10}  {most:<32}  {} --connection {} --exchange {}",
            shown::argument(slow.capture.as_ref().as_ref()),
            slow.connection,
            slow.exchange
        )?;
    }
    if let Some(slow) = s.worst.first() {
        writeln!(
            out,
            "\nsee one:\n  tcpwhy explain {} --connection {} --exchange {}",
            shown::argument(slow.capture.as_ref().as_ref()),
            slow.connection,
            slow.exchange
        )?;
    }
    Ok(())
}

fn row(out: &mut impl Write, group: &Group, name: &str) -> io::Result<()> {
    let (part, worst) = tcp(group);
    let (median, p95) = (time(group.times.percentile(50)), time(group.times.percentile(95)));
    writeln!(out, "{:>10} {median:>10} {p95:>10}  {part:>6}  {worst:<22}  {name}", group.times.count())
}

/// What an exchange took by cause, before and after.
fn split(out: &mut impl Write, s: &Summary, at: &str, top: usize) -> io::Result<()> {
    let [before, after] = s.split(at);
    writeln!(out, "\nbefore {at}, and from then on (time of an exchange, on average)")?;
    writeln!(out, "  exchanges  {:>12}  {:>12}", before.times.count(), after.times.count())?;
    for (name, p) in [("median", 50), ("p95", 95)] {
        let of = |g: &Group| time(g.times.percentile(p));
        writeln!(out, "  {name:<9}  {:>12}  {:>12}", of(&before), of(&after))?;
    }
    let mean = |g: &Group, cause| {
        let sum = g.requests.get(&cause).copied().unwrap_or_default();
        sum.part(i64::try_from(g.times.count().max(1)).unwrap_or(i64::MAX))
    };
    let mut causes: Vec<_> = before.requests.keys().chain(after.requests.keys()).copied().collect();
    causes.sort_unstable();
    causes.dedup();
    let change = |cause: &_| (mean(&after, *cause) - mean(&before, *cause)).0.abs();
    causes.sort_by_key(|cause| std::cmp::Reverse(change(cause)));
    for cause in causes.into_iter().take(top) {
        let (was, is) = (mean(&before, cause).to_string(), mean(&after, cause).to_string());
        writeln!(out, "             {was:>12}  {is:>12}  {}", cause.id())?;
    }
    Ok(())
}
