//! The same as a page: plain HTML, no script.

use super::shown::endpoint;
use super::{Group, Summary};
use crate::args::Summarize;
use crate::shown;
use std::io::{self, Write};
use tcpwhy_base::{Cause, Nanos, Owner};
use tcpwhy_report::count;
use tcpwhy_report::html::Escaped;
use tcpwhy_report::text::percent;

pub(super) fn write(out: &mut impl Write, s: &Summary, args: &Summarize) -> io::Result<()> {
    let all = &s.all;
    tcpwhy_report::compare::begin(out, "many captures")?;
    let days = match (s.days.keys().next(), s.days.keys().last()) {
        (Some(first), Some(last)) if first != last => format!(", {first} to {last}"),
        (Some(day), _) => format!(", {day}"),
        _ => String::new(),
    };
    writeln!(
        out,
        "<p class=\"names\">{}</p>\n<h1>{} in {}{}</h1>\n<p>{} of requests on {}; median {}, p95 \
         {}, longest {}.</p>",
        Escaped(&args.folder.display().to_string()),
        count(all.times.count(), "exchange"),
        count(s.captures.len() as u64, "capture"),
        Escaped(&days),
        all.total(),
        count(all.connections, "connection"),
        time(all.times.percentile(50)),
        time(all.times.percentile(95)),
        all.times.longest()
    )?;
    writeln!(out, "<section><h2>Where the time of requests went</h2>")?;
    bar(out, "all", all, all.total())?;
    causes(out, all)?;
    writeln!(out, "</section>")?;
    if let Some(at) = &args.split {
        split(out, s, at)?;
    }
    if s.days.len() > 1 {
        writeln!(out, "<section><h2>By day</h2>")?;
        let longest = s.days.values().map(mean).max().unwrap_or_default();
        for (day, group) in &s.days {
            bar(out, &format!("{day} {}", mean(group)), group, scaled(group, longest))?;
        }
        groups(out, "day", s.days.iter().map(|(day, group)| (day.clone(), group)))?;
    }
    writeln!(out, "<section><h2>By server</h2>")?;
    let ranked = s.ranked();
    groups(out, "server", ranked.iter().take(args.top).map(|(server, group)| (endpoint(server), *group)))?;
    if ranked.len() > args.top {
        writeln!(
            out,
            "<p class=\"dim\">and {} more (--top)</p>",
            count((ranked.len() - args.top) as u64, "server")
        )?;
    }
    worst(out, s)?;
    writeln!(out, "<p class=\"dim\">tcpwhy {}</p>\n</main></body></html>", env!("CARGO_PKG_VERSION"))
}

fn time(at: Option<Nanos>) -> String {
    at.map_or_else(|| "–".into(), |t| t.to_string())
}

fn share(part: Nanos, whole: Nanos) -> f64 {
    part.0 as f64 / whole.0.max(1) as f64
}

/// Of an exchange, with its part of the setup.
fn mean(group: &Group) -> Nanos {
    group.total().part(i64::try_from(group.times.count().max(1)).unwrap_or(i64::MAX))
}

/// The total that a full bar stands for, so that a bar is as long as the mean exchange beside the longest one.
fn scaled(group: &Group, longest: Nanos) -> Nanos {
    let whole = i128::from(group.total().0) * i128::from(longest.0) / i128::from(mean(group).0.max(1));
    Nanos(i64::try_from(whole).unwrap_or(i64::MAX))
}

/// The causes of a group beside each other, as parts of `whole`.
fn bar(out: &mut impl Write, name: &str, group: &Group, whole: Nanos) -> io::Result<()> {
    write!(
        out,
        "<div class=\"row\"><span style=\"width:11rem\">{}</span><div class=\"bar\">",
        Escaped(name)
    )?;
    for (cause, time) in group.requests.iter().filter(|(_, time)| **time > Nanos::ZERO) {
        write!(
            out,
            "<i class=\"g-{}\" style=\"width:{:.3}%\" title=\"{} {time}\"></i>",
            cause.info().group.id(),
            share(*time, whole) * 100.0,
            cause.id()
        )?;
    }
    writeln!(out, "</div></div>")
}

fn named(cause: Cause) -> String {
    let info = cause.info();
    format!("<i class=\"patch g-{}\"></i>{}", info.group.id(), Escaped(info.title))
}

fn causes(out: &mut impl Write, group: &Group) -> io::Result<()> {
    writeln!(
        out,
        "<div class=\"scroll\"><table><tr><th>cause<th class=\"n\">time<th class=\"n\">share<th>who has to act</tr>"
    )?;
    for (cause, lost) in group.ranked() {
        writeln!(
            out,
            "<tr><td>{}<td class=\"n\">{lost}<td class=\"n\">{}<td>{}</tr>",
            named(cause),
            percent(share(lost, group.total())),
            cause.owner().id()
        )?;
    }
    writeln!(out, "</table></div>")
}

/// A table of groups, which ends its section.
fn groups<'a>(
    out: &mut impl Write,
    what: &str,
    rows: impl Iterator<Item = (String, &'a Group)>,
) -> io::Result<()> {
    writeln!(
        out,
        "<div class=\"scroll\"><table><tr><th>{what}<th class=\"n\">exchanges<th class=\"n\">median<th class=\"n\">p95<th \
         class=\"n\">TCP's part<th>worst of TCP</tr>"
    )?;
    for (name, group) in rows {
        let ranked = group.ranked();
        let of_tcp = || ranked.iter().filter(|(cause, _)| cause.owner() == Owner::Tcp);
        let sum = of_tcp().fold(Nanos::ZERO, |sum, (_, time)| sum + *time);
        writeln!(
            out,
            "<tr><td>{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td class=\"n\">{}<td>{}</tr>",
            Escaped(&name),
            group.times.count(),
            time(group.times.percentile(50)),
            time(group.times.percentile(95)),
            percent(share(sum, group.total())),
            of_tcp().next().map_or_else(String::new, |(cause, _)| named(*cause))
        )?;
    }
    writeln!(out, "</table></div></section>")
}

/// The mean exchange before and after.
fn split(out: &mut impl Write, s: &Summary, at: &str) -> io::Result<()> {
    let [before, after] = s.split(at);
    writeln!(out, "<section><h2>Before {at}, and from then on</h2>", at = Escaped(at))?;
    let longest = mean(&before).max(mean(&after));
    for (name, group) in [("before", &before), ("after", &after)] {
        bar(out, &format!("{name} {}", mean(group)), group, scaled(group, longest))?;
    }
    groups(out, "", [("before".to_owned(), &before), ("after".to_owned(), &after)].into_iter())
}

fn worst(out: &mut impl Write, s: &Summary) -> io::Result<()> {
    if s.worst.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "<section><h2>The slowest exchanges</h2><div class=\"scroll\"><table><tr><th class=\"n\">took<th>most of it<th \
         class=\"n\"><th>to see it</tr>"
    )?;
    for slow in &s.worst {
        let most = slow.most.map(|(cause, time)| (named(cause), percent(share(time, slow.duration))));
        let (cause, part) = most.unwrap_or_default();
        let command = format!(
            "tcpwhy explain {} --connection {} --exchange {}",
            shown::argument(slow.capture.as_ref().as_ref()),
            slow.connection,
            slow.exchange
        );
        writeln!(
            out,
            "<tr><td class=\"n\">{}<td>{cause}<td class=\"n\">{part}<td><code>{}</code></tr>",
            slow.duration,
            Escaped(&command)
        )?;
    }
    writeln!(out, "</table></div></section>")
}
