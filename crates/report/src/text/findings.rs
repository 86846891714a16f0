//! One finding, and a list of them.

use super::Layout;
use super::replayed::{replayed, tells};
use super::style::{BOLD, DIM, FIX, of, range, wrap};
use crate::answer::{Answer, Part, spread, sureness};
use crate::capture::local;
use crate::figures::{count, percent};
use std::cmp::Reverse;
use std::io::{self, Write};
use tcpwhy_analysis::{Budget, Finding, Fix, Frames, Parameter};
use tcpwhy_base::{Cause, Class, Endpoint, FixId, Kind, Nanos, Owner, Program, Side, Told};

/// Text below the heading of a finding begins here.
const INDENT: usize = 10;
/// Trips in the idle time below this share of the requests' are not worth a sentence.
const WORTH: f64 = 0.01;
/// What stands at the right goes no further than this.
const WIDE: usize = 100;

/// The findings that hold time of requests, by that time. Those that are said of a whole connection stand
/// behind the cause whose time they are made of.
pub fn listed(findings: &[Finding]) -> Vec<&Finding> {
    ranked(findings).into_iter().filter(|f| !f.is_minor()).collect()
}

fn ranked(findings: &[Finding]) -> Vec<&Finding> {
    let mut ranked: Vec<&Finding> = findings.iter().filter(|f| f.of_requests() > Nanos::ZERO).collect();
    // Those of equal time stay as the analysis has them.
    ranked.sort_by_key(|f| Reverse(f.of_requests()));
    ranked
}

/// The findings by their time of requests; then in a line each what is too small, and the time between requests.
pub(super) fn list(
    out: &mut impl Write,
    findings: &[Finding],
    answer: &Answer,
    layout: &Layout,
) -> io::Result<()> {
    let found = |cause: Cause| findings.iter().any(|f| f.cause == cause);
    let mut said = Said {
        servers: answer.servers,
        requests: answer.count,
        held: answer.held.clone(),
        asks: answer.asks.clone(),
        empty: answer.empty,
        ..Said::default()
    };
    let mut rest = Vec::new();
    let mut inherent =
        answer.causes.iter().filter(|p| !found(p.cause) && p.requests > Nanos::ZERO).peekable();
    for (shown, finding) in listed(findings).into_iter().enumerate() {
        // Of what is inherent some connections' parts were not kept apart: their time is known, and nothing else.
        while let Some(part) = inherent.next_if(|p| p.requests > finding.of_requests()) {
            bare(out, part, answer, layout)?;
        }
        if shown < layout.top || layout.verbose {
            writeln!(out)?;
            one(out, finding, &mut said, layout)?;
        } else {
            rest.push(short(finding.cause, finding.side, finding.of_requests()));
        }
    }
    for part in inherent {
        bare(out, part, answer, layout)?;
    }
    let minor = ranked(findings).into_iter().filter(|f| f.is_minor());
    rest.extend(minor.map(|f| short(f.cause, f.side, f.of_requests())));
    if !rest.is_empty() {
        // With `--top 0` none stands above.
        let title = if layout.top == 0 && !layout.verbose { "causes" } else { "smaller" };
        paragraph(out, title, rest.into_iter(), layout)?;
    }
    between(out, answer, layout)
}

/// `client_think 1.58 s (client)`: the side where one cause is found at both.
fn short(cause: Cause, side: Option<Side>, time: Nanos) -> String {
    match side.filter(|s| *s != Side::Network) {
        Some(side) if !cause.id().starts_with(side.name()) => {
            format!("{} at the {} {}", cause.id(), side.name(), little(time))
        }
        _ => format!("{} {}", cause.id(), little(time)),
    }
}

/// A time for a list: what is below a microsecond is finer than clocks and hosts are.
fn little(time: Nanos) -> String {
    if time < Nanos::micros(1) { "<1 µs".into() } else { time.to_string() }
}

/// What is known of a cause without a finding.
fn bare(out: &mut impl Write, part: &Part, answer: &Answer, layout: &Layout) -> io::Result<()> {
    writeln!(out)?;
    heading(out, part.cause, part.requests, answer.share(part.requests))?;
    lines(out, &whose(part.cause, None), INDENT, layout)
}

/// The time outside requests.
fn between(out: &mut impl Write, answer: &Answer, layout: &Layout) -> io::Result<()> {
    let perhaps = waited_for_close(answer);
    let after =
        if perhaps.is_some() { "after the last byte" } else { "after the last byte, when nobody waited" };
    let idle = if answer.count > 1 { "idle between requests" } else { "idle at other times" };
    for (head, of) in [(idle, (|p| p.idle) as fn(&Part) -> Nanos), (after, |p| p.after)] {
        let mut parts: Vec<&Part> = answer.causes.iter().filter(|p| of(p) > Nanos::ZERO).collect();
        parts.sort_by_key(|p| (Reverse(of(p)), p.cause));
        if !parts.is_empty() {
            let items = parts.iter().map(|p| format!("{} {}", p.cause.id(), little(of(p))));
            paragraph(out, head, items, layout)?;
        }
        if head == idle {
            trips_between(out, answer, layout)?;
        }
    }
    perhaps.map_or(Ok(()), |text| remark(out, &text, layout))
}

/// A client that closes as the server does may have waited for that: it ends an answer that tells no length
/// (RFC 9112, 6.3).
fn waited_for_close(answer: &Answer) -> Option<String> {
    let (n, time) = answer.closed_after;
    let on = if n == 1 { "On one connection".to_owned() } else { format!("On {n} connections") };
    (time >= Nanos::millis(1) && answer.share(time) >= WORTH).then(|| {
        format!("{on} the client closed only after the server had, {time} after the last byte in all: it waited for that if the answer told no length (no Content-Length, not chunked).")
    })
}

fn remark(out: &mut impl Write, text: &str, layout: &Layout) -> io::Result<()> {
    writeln!(out)?;
    for line in wrap(text, layout.width.saturating_sub(4).max(20)) {
        writeln!(out, "    {DIM}{line}{DIM:#}")?;
    }
    Ok(())
}

/// What is said of the idle time where that is not idle for all.
fn trips_between(out: &mut impl Write, answer: &Answer, layout: &Layout) -> io::Result<()> {
    // At a server's tap a gap holds the way of an answer there and of the next request back, for which its
    // client waited.
    let trips = answer.part(Cause::PathDelay).idle;
    if trips >= Nanos::millis(1) && answer.share(trips) >= WORTH {
        let text = format!(
            "The path_delay in it ({trips}) is the way of answers there and of requests back: where this was captured it lies between the requests, but their clients waited for it."
        );
        remark(out, &text, layout)?;
    }
    Ok(())
}

fn paragraph(
    out: &mut impl Write,
    head: &str,
    items: impl Iterator<Item = String>,
    layout: &Layout,
) -> io::Result<()> {
    writeln!(out)?;
    let text = format!("{head}: {}", items.collect::<Vec<_>>().join(", "));
    for (i, line) in wrap(&text, layout.width.saturating_sub(4).max(20)).iter().enumerate() {
        writeln!(out, "{}{DIM}{line}{DIM:#}", if i == 0 { "  " } else { "    " })?;
    }
    Ok(())
}

/// `   2.42 s  85 %  Nagle held a small write until the peer's delayed ACK`.
fn heading(out: &mut impl Write, cause: Cause, time: Nanos, share: f64) -> io::Result<()> {
    let head = format!("{:>8} {:>6}  ", time.to_string(), percent(share));
    let colour = of(cause);
    writeln!(out, "  {BOLD}{head}{BOLD:#}{colour}{}{colour:#}", cause.info().title)
}

/// Who has to act: `TCP, at the client`. A host that ignores SYNs is at fault for what is the path's elsewhere.
pub(crate) fn whose(cause: Cause, side: Option<Side>) -> String {
    let owner = match (cause.owner(), cause.class()) {
        (Owner::Application, _) => "application",
        (Owner::Tcp, _) => "TCP",
        (Owner::Path, Class::Inherent) => "path, unavoidable here",
        (Owner::Path, _) => "path",
        (Owner::None, _) => "not known",
    };
    match (cause.owner(), side) {
        (Owner::Application | Owner::Tcp, Some(side)) => format!("{owner}, at the {}", side.name()),
        (Owner::Path, Some(Side::Server)) if cause == Cause::SynRetransmit => "at the server".into(),
        _ => owner.into(),
    }
}

/// `in 27 x POST /orders, 3 x GET / and others`.
pub fn named(f: &Finding) -> Option<String> {
    let names: Vec<String> = f.names.iter().map(|(name, n)| format!("{n} x {name}")).collect();
    let more = if f.more_names { " and others" } else { "" };
    (!names.is_empty()).then(|| format!("in {}{more}", names.join(", ")))
}

/// What the findings so far have said, and what they are among.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// First exchanges of the replays.
    replays: Vec<(u32, u32)>,
    /// How many servers there are.
    servers: usize,
    /// How many requests.
    requests: u64,
    /// Their time by server and cause.
    held: Vec<(Endpoint, Budget)>,
    /// What such numbers are for has been said.
    frames: bool,
    /// Which of them asked whom while it answered.
    asks: Vec<(Endpoint, Endpoint)>,
    /// Connections that carried nothing, and how long opening them took.
    empty: (u64, Nanos),
}

/// The server that a fix is for.
fn server(fix: &Fix) -> Option<&str> {
    fix.parameters.iter().find_map(|p| match p {
        ("server", Parameter::Text(server)) => Some(server.as_str()),
        _ => None,
    })
}

/// One finding in full.
///
/// Findings whose examples are of one exchange share its replay, which is said once: `said` has those so far.
pub(super) fn one(out: &mut impl Write, f: &Finding, said: &mut Said, layout: &Layout) -> io::Result<()> {
    let info = f.cause.info();
    heading(out, f.cause, f.of_requests(), f.share_of_requests)?;
    let mut facts = vec![whose(f.cause, f.side)];
    if f.cause.owner() != Owner::None {
        facts.push(sureness(f.confidence).into());
    }
    if info.kind == Kind::Span && f.occurrences > 0 {
        facts.push(match f.occurrences {
            1 => "once".into(),
            n => format!("{n} times, {} each", range(f.range)),
        });
        if f.counted_elsewhere > Nanos::ZERO {
            let within = "lies within requests that waited for it, and is summed once";
            facts.push(format!("{} of it {within}", f.counted_elsewhere));
        }
        // They are counted with those that somebody waited for.
        if f.idle > Nanos::ZERO && f.of_requests() > Nanos::ZERO {
            facts.push(format!("{} more between requests", f.idle));
        }
    }
    if f.connection_count > 1 {
        facts.push(format!("on {}", count(f.connection_count, "connection")));
    }
    let (empty, opening) = said.empty;
    if f.cause == Cause::Handshake && said.requests > 0 && opening > Nanos::ZERO {
        facts.push(format!("{opening} of it for {} that carried nothing", count(empty, "connection")));
    }
    for line in wrap(&facts.join("; "), layout.width.saturating_sub(INDENT).max(20)) {
        writeln!(out, "{:INDENT$}{DIM}{line}{DIM:#}", "")?;
    }
    let text = f.why();
    lines(out, &text, INDENT, layout)?;
    if f.cause == Cause::ServerThink {
        let of = f.fixes.iter().find_map(server).unwrap_or_default();
        for (_, asked) in said.asks.iter().filter(|(outer, _)| outer.to_string() == of) {
            lines(out, &format!("Part of it waited for {asked}, which it asked meanwhile."), INDENT, layout)?;
        }
    }
    if let Some(names) = named(f) {
        lines(out, &names, INDENT, layout)?;
    }
    if let Some(frames) = frames(&f.evidence, f.occurrences, layout) {
        lines(out, &frames, INDENT, layout)?;
        if !std::mem::replace(&mut said.frames, true) {
            filter(f, layout).map_or(Ok(()), |text| lines(out, &text, INDENT, layout))?;
        }
    }
    // An application's own time: where to look next, which saves nothing by itself; but that requests wait for others does not need to be.
    let next = info.class == Class::Application && info.kind == Kind::Span && f.in_turn.is_none();
    let wanted = match next {
        _ if layout.verbose => f.fixes.len(),
        true => 1,
        false => 2,
    };
    for (i, fix) in f.fixes.iter().take(wanted).enumerate() {
        let lead = match i {
            0 if next => "next: ",
            0 => "fix: ",
            _ => " or: ",
        };
        let saves = saving(f, fix, lead == "fix: " || layout.verbose).unwrap_or_default();
        self::fix(out, lead, (fix, &saves), &place(f, fix, said), layout)?;
    }
    others(out, f.fixes.iter().take(wanted), layout)?;
    refuted(out, f, wanted, layout)?;
    if let Some(r) = f.replay.as_deref().filter(|r| tells(r, layout) && wanted > 0 && !next) {
        let example = (r.connection, r.exchanges.0);
        if layout.verbose || !said.replays.contains(&example) {
            lines(out, &replayed(r, &f.fixes, said.requests), INDENT, layout)?;
            if layout.verbose && !r.assumed.is_empty() {
                lines(out, &format!("Assumed: {}", r.assumed.join(" ")), INDENT, layout)?;
            }
            said.replays.push(example);
        }
    }
    let none: Vec<String> = f.no_effect().into_iter().map(|v| v.what).collect();
    if !none.is_empty() {
        lines(out, &format!("Would not help: {}.", none.join("; ")), INDENT, layout)?;
    }
    Ok(())
}

/// Lines of a fix that are shown where nobody asks for all: of a next step when to look, too.
fn shown_lines(fix: &Fix) -> usize {
    if fix.fix == FixId::Application { 2 } else { 1 }
}

/// `nginx is a guess from the first bytes of the connection`.
pub(crate) fn guessed((program, told): (Program, Told)) -> String {
    let by = match told {
        Told::FirstBytes => "the first bytes of the connection",
        Told::Port => "the port",
    };
    format!("{} is a guess from {by}", program.name())
}

/// What a guess is from, and that there are other ways.
fn others<'a>(out: &mut impl Write, fixes: impl Iterator<Item = &'a Fix>, layout: &Layout) -> io::Result<()> {
    let (mut guess, mut more) = (None, false);
    for fix in fixes {
        guess = guess.or(fix.guess);
        more |= fix.how.len() > shown_lines(fix);
    }
    let from = guess.map(guessed);
    let text = match (from, more && !layout.verbose) {
        (Some(from), true) => format!("({from}; -v shows other systems)"),
        (Some(from), false) => format!("({from})"),
        (None, true) => "(-v shows other systems)".into(),
        (None, false) => return Ok(()),
    };
    for line in wrap(&text, layout.width.saturating_sub(INDENT + 5).max(20)) {
        writeln!(out, "{:INDENT$}     {DIM}{line}{DIM:#}", "")?;
    }
    Ok(())
}

/// Why a fix of the table is not offered: said where none is left, and of all of them where somebody asks.
fn refuted(out: &mut impl Write, f: &Finding, wanted: usize, layout: &Layout) -> io::Result<()> {
    let most = if layout.verbose { f.refuted.len() } else { usize::from(f.fixes.is_empty() && wanted > 0) };
    f.refuted.iter().take(most).try_for_each(|r| {
        let text = format!("Not offered: \"{}\", because {}.", r.fix.info().title, r.because);
        lines(out, &text, INDENT, layout)
    })
}

/// What a fix saves: `saves 1.11 s, predicted`. All fixes of a finding are bounded by the same time, which is
/// said of the `first` alone; what a replay says is each one's own: `saves 92.8 ms of this, 409 ms in all,
/// predicted`, where it shortens much of what other causes have.
pub fn saving(f: &Finding, fix: &Fix, first: bool) -> Option<String> {
    let next = fix.fix == FixId::Application;
    let saves = fix.saves.filter(|&s| s > Nanos::ZERO && !next && (fix.replayed || first))?;
    if !fix.replayed {
        return Some(format!("saves up to {saves}"));
    }
    let replayed = f.replay.as_ref().zip(fix.predicted);
    let all = replayed.map(|(replay, predicted)| replay.modelled - predicted);
    Some(match all.filter(|all| *all > saves + saves.part(2)) {
        Some(all) => format!("saves {saves} of this, {all} in all, predicted"),
        None => format!("saves {saves}, predicted"),
    })
}

/// ` (on the client)`, where it is known; of several servers which one, or on how many, where it takes them all.
fn place(f: &Finding, fix: &Fix, said: &Said) -> String {
    match (fix.place, server(fix)) {
        ("server", Some(server)) if said.servers > 1 => match spread(f, server, &said.held) {
            // Where to look next is one of them.
            Some(n) if fix.fix != FixId::Application => format!(" (on {n} servers)"),
            _ => format!(" (on {server})"),
        },
        ("client" | "server", _) => format!(" (on the {})", fix.place),
        ("path", _) => " (on the path)".into(),
        _ => String::new(),
    }
}

fn fix(
    out: &mut impl Write,
    lead: &str,
    (fix, saves): (&Fix, &str),
    place: &str,
    layout: &Layout,
) -> io::Result<()> {
    let indent = INDENT;
    let what = format!("{}{place}", fix.fix.info().title);
    let used = indent + 5 + what.chars().count() + saves.chars().count();
    if used + 2 <= layout.width || saves.is_empty() && used <= layout.width {
        let space = layout.width.min(WIDE).saturating_sub(used).max(2);
        write!(out, "{:indent$}{FIX}{lead}{what}{FIX:#}", "")?;
        if saves.is_empty() { writeln!(out)? } else { writeln!(out, "{:space$}{BOLD}{saves}{BOLD:#}", "")? }
    } else {
        for (i, line) in wrap(&what, layout.width.saturating_sub(indent + 5).max(20)).iter().enumerate() {
            writeln!(out, "{:indent$}{FIX}{}{line}{FIX:#}", "", if i == 0 { lead } else { "     " })?;
        }
        if !saves.is_empty() {
            writeln!(out, "{:indent$}     {BOLD}{saves}{BOLD:#}", "")?;
        }
    }
    let wanted = if layout.verbose { fix.how.len() } else { shown_lines(fix) };
    for how in fix.how.iter().take(wanted) {
        let width = layout.width.saturating_sub(indent + 7).max(20);
        let how = how.strip_prefix("Any: ").unwrap_or(how);
        for (i, line) in wrap(how, width).iter().enumerate() {
            writeln!(out, "{:indent$}     {}{line}", "", if i == 0 { "" } else { "  " })?;
        }
    }
    Ok(())
}

/// `text` wrapped and indented.
pub(super) fn lines(out: &mut impl Write, text: &str, indent: usize, layout: &Layout) -> io::Result<()> {
    for line in wrap(text, layout.width.saturating_sub(indent).max(20)) {
        writeln!(out, "{:indent$}{line}", "")?;
    }
    Ok(())
}

/// `frames 16>17>18, 22>23>24, ...`.
fn frames(evidence: &[Frames], occurrences: u64, layout: &Layout) -> Option<String> {
    let mut text = String::new();
    let mut shown = 0;
    let named = evidence.iter().filter(|f| f.first() != 0).take(5);
    let mut rest = named.map(|f| local(f, &layout.frames_before).0).peekable();
    while let Some(frames) = rest.next() {
        text.push_str(if shown == 0 { "frames " } else { ", " });
        text.push_str(&chain(&frames));
        // The file is named once for its run of frames.
        if rest.peek().is_none_or(|next| next.file != frames.file) {
            text.push_str(&of_file(&frames, layout));
        }
        shown += 1;
    }
    if occurrences > shown {
        text.push_str(", ...");
    }
    (shown > 0).then_some(text)
}

/// What `>` means, and how to see the first of them. Of several files each has numbers of its own.
fn filter(f: &Finding, layout: &Layout) -> Option<String> {
    let keys: Vec<String> = f.evidence.first()?.keys().map(|k| k.to_string()).collect();
    let meant = keys.len() > 1 && layout.frames_before.len() < 2;
    meant.then(|| format!("(in the order they passed; Wireshark: frame.number in {{{}}})", keys.join(",")))
}

/// `16>17>18`, or `16-18` where no frame of it is singled out.
pub(super) fn chain(frames: &Frames) -> String {
    let keys: Vec<String> = frames.keys().map(|k| k.to_string()).collect();
    match keys.len() {
        0 if frames.first() == frames.last() => frames.first().to_string(),
        0 => format!("{}-{}", frames.first(), frames.last()),
        _ => keys.join(">"),
    }
}

/// ` of b.pcap`, where there are several files.
pub(super) fn of_file(frames: &Frames, layout: &Layout) -> String {
    layout.files.get(usize::from(frames.file)).map(|f| format!(" of {f}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A SYN that came to the server's tap and was not answered is not lost on the way.
    #[test]
    fn what_an_end_can_change_is_not_said_to_be_the_paths() {
        let of = |cause, side| whose(cause, side);
        assert_eq!(of(Cause::SynRetransmit, Some(Side::Server)), "at the server");
        assert_eq!(of(Cause::SynRetransmit, Some(Side::Network)), "path");
        assert_eq!(of(Cause::SynRetransmit, None), "path");
        assert_eq!(of(Cause::PathDelay, Some(Side::Network)), "path, unavoidable here");
        assert_eq!(of(Cause::SendBuffer, Some(Side::Server)), "TCP, at the server");
    }

    /// What a fix shortens beside its own finding is said where it is half as much again.
    #[test]
    fn what_a_fix_saves_elsewhere_is_said() {
        let analysis = crate::sample::analysis();
        let mut f = analysis.findings[0].clone();
        let mut fix = f.fixes[0].clone();
        assert_eq!(saving(&f, &fix, true).as_deref(), Some("saves up to 40.0 ms"));
        assert_eq!(saving(&f, &fix, false), None);
        (fix.replayed, fix.predicted) = (true, Some(Nanos::millis(70)));
        let of = |modelled: i64, f: &mut Finding| {
            f.replay = Some(Box::new(tcpwhy_analysis::Replay {
                connection: 1,
                exchanges: (1, 2),
                observed: Nanos::millis(130),
                modelled: Nanos::millis(modelled),
                assumed: Vec::new(),
                together: None,
                no_help: Vec::new(),
            }));
            saving(f, &fix, false)
        };
        assert_eq!(of(130, &mut f).as_deref(), Some("saves 40.0 ms, predicted"));
        assert_eq!(of(131, &mut f).as_deref(), Some("saves 40.0 ms of this, 61.0 ms in all, predicted"));
    }

    /// Where handshakes are listed, those that no request waited for are told apart.
    #[test]
    fn what_carried_nothing_is_said_where_it_is_listed() {
        let mut f = crate::sample::analysis().findings[0].clone();
        let told = |f: &Finding, requests, n| {
            let empty = (n, Nanos::millis(n as i64 * 30));
            let mut out = Vec::new();
            let mut said = Said { requests, empty, ..Said::default() };
            one(&mut out, f, &mut said, &Layout { width: 200, ..Layout::default() }).unwrap();
            String::from_utf8(out).unwrap().contains("3.00 s of it for 100 connections that carried nothing")
        };
        assert!(!told(&f, 10, 100));
        f.cause = Cause::Handshake;
        assert_eq!([told(&f, 10, 100), told(&f, 0, 100), told(&f, 10, 0)], [true, false, false]);
    }

    #[test]
    fn frames_are_chained() {
        let of = |keys: &[u64]| Frames::new(0, 16, 18, keys);
        let one = Layout::default();
        let frames = |f: &[Frames], n, layout: &Layout| super::frames(f, n, layout);
        assert_eq!(
            frames(&[of(&[16, 17, 18]), of(&[])], 27, &one).as_deref(),
            Some("frames 16>17>18, 16-18, ...")
        );
        assert_eq!(frames(&[of(&[17])], 1, &one).as_deref(), Some("frames 17"));
        assert_eq!(frames(&[], 1, &one), None);
        let two = Layout { files: vec!["a.pcap".into(), "b.pcap".into()], ..one };
        assert_eq!(frames(&[of(&[17])], 1, &two).as_deref(), Some("frames 17 of a.pcap"));
    }
}
