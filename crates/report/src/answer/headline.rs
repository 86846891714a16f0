//! The first sentences: whose time it was, and where it went.

use super::{Answer, NOTHING_WRONG, Part};
use crate::Capture;
use crate::figures::{count, percent};
use std::cmp::Reverse;
use tcpwhy_analysis::{Analysis, Extremes, Finding, Server};
use tcpwhy_base::{Cause, Class, Endpoint, Nanos, Owner, Side};

/// What is said of so much time, or more, that was judged with little confidence.
const GUESSED: f64 = 0.25;
/// Idle time below this share of the requests' is not worth a sentence.
const IDLE: f64 = 0.01;
/// With such a share of what could be avoided nobody says that nothing is wrong.
const AVOIDABLE: f64 = 0.1;
/// With such a share of a time, it is all of it: the rest is hardly worth words.
const ALL: f64 = 0.9;
/// A side with such a share of a cause's time did it alone.
const ALONE: f64 = 0.99;
/// A server with less than this share of a time is not worth its name.
const WORTH_NAMING: f64 = 0.25;

/// The verdict in a few sentences.
pub fn headline(analysis: &Analysis, capture: &Capture, answer: &Answer) -> String {
    if let Some(text) = nothing(analysis, capture) {
        return text;
    }
    let scan = analysis.findings.iter().find(|f| f.cause == Cause::Scan).map(Finding::why);
    // What is listed of it stands for it: that is no connection to speak of.
    let listed = analysis.totals.connections.saturating_sub(analysis.totals.unlisted);
    if let Some(scan) = scan.as_ref().filter(|_| listed <= 1 && is_unanswered(analysis)) {
        return scan.clone();
    }
    let of_requests = without_empty(analysis, answer);
    let answer = of_requests.as_ref().unwrap_or(answer);
    let mut text = vec![who(analysis, answer)];
    if capture.warnings.iter().any(|w| w.code == "counted_twice") {
        text.push("What is in two of the captures counts twice here.".into());
    }
    if answer.requests <= Nanos::ZERO {
        text.push(if is_unanswered(analysis) {
            let passed = answer.causes.iter().any(|p| p.idle + p.after > Nanos::ZERO);
            let time = if passed { "" } else { ", and no time between them" };
            format!("The capture holds packets of one end only: no answer{time}.")
        } else {
            "No time passed in which anybody waited.".into()
        });
    } else {
        text.extend(why(analysis, answer));
        text.extend(side_by_side(analysis, answer));
        text.extend(one_of_many(answer));
        if answer.share(answer.unsure) >= GUESSED {
            let share = percent(answer.share(answer.unsure));
            text.push(format!("Part of this is a guess: {share} was judged with little confidence."));
        }
    }
    text.extend(of_requests.as_ref().map(|_| carried_nothing(analysis.totals.empty)));
    if answer.idle > Nanos::ZERO && answer.idle.0 as f64 >= IDLE * answer.requests.0 as f64 {
        let of = if answer.at_once { " (added up)" } else { "" };
        let trips = answer.part(Cause::PathDelay).idle;
        let way = if trips.times(2) < answer.idle {
            String::new()
        } else {
            format!(", {} of it the way of answers and requests, for which clients waited", span(trips))
        };
        let outside = if answer.count > 1 { "between requests" } else { "at other times" };
        text.push(format!("Idle {outside}: {}{of}{way}.", span(answer.idle)));
    }
    text.extend(cut_off(analysis.totals.cut_off));
    text.extend(too_late(analysis.totals.too_late));
    text.extend(reset(analysis.totals.reset));
    text.extend(gave_up(analysis.totals.gave_up));
    text.extend(middle(analysis));
    text.extend(scan);
    text.join(" ")
}

/// The answer without the handshakes of connections that carried nothing, where there are both: no request
/// waited for those, so that the verdict is of the others.
fn without_empty(analysis: &Analysis, answer: &Answer) -> Option<Answer> {
    let (n, opening) = analysis.totals.empty;
    if n == 0 || answer.count == 0 || opening <= Nanos::ZERO {
        return None;
    }
    let mut of_requests = answer.clone();
    of_requests.requests = (answer.requests - opening).floor0();
    let handshakes = of_requests.causes.iter_mut().filter(|p| p.cause == Cause::Handshake);
    handshakes.for_each(|p| p.requests = (p.requests - opening).floor0());
    of_requests.causes.sort_by_key(|p| (Reverse((p.requests, p.idle, p.after)), p.cause));
    of_requests.at_once &= of_requests.requests > answer.clock;
    Some(of_requests)
}

/// `100 connections carried nothing`: what opening them took is the time of no request.
fn carried_nothing((n, opening): (u64, Nanos)) -> String {
    let whose = if n == 1 { "that one" } else { "those" };
    format!(
        "{} carried nothing (health checks do that): no request waited for the handshakes of {whose}, {opening} of what is listed.",
        count(n, "connection")
    )
}

/// Said where most of the time of requests lies on connections whose beginning is not in the capture.
fn middle(analysis: &Analysis) -> Option<String> {
    let totals = &analysis.totals;
    let (n, unseen) = totals.midstream;
    let known = unseen == Nanos::ZERO || unseen.times(2) < totals.budget.total();
    let (which, opened) = match totals.connections.saturating_sub(totals.unlisted) {
        1 => ("the connection".to_owned(), "it was"),
        of if n == of => (format!("all {of} connections"), "they were"),
        of => (format!("{n} of {of} connections"), "they were"),
    };
    (!known)
        .then(|| format!("The capture begins in the middle of {which}: how {opened} opened is not known."))
}

/// Said where resets ended answers. Whether bytes were missing is known to the programs alone.
fn cut_off(n: u64) -> Option<String> {
    let which = if n == 1 { "One answer".to_owned() } else { format!("{n} answers") };
    let of = if n == 1 { "its connection" } else { "their connections" };
    (n > 0).then(|| {
        format!("{which} ended with a reset of {of} before its server had closed: if more was to come, that is lost.")
    })
}

/// Said where requests came too late for connections that were kept.
fn too_late(n: u64) -> Option<String> {
    let (which, theirs, each) = match n {
        0 => return None,
        1 => ("One request".to_owned(), "its connection", "a reset"),
        n => (format!("{n} requests"), "their connections", "resets"),
    };
    Some(format!(
        "{which} came to a server that had just closed {theirs} and answered with {each}: let clients give up idle connections \
         sooner than the server does (its keep-alive timeout), or repeat such requests."
    ))
}

/// Said where a reset came instead of an answer.
fn reset([unheard, heard]: [u64; 2]) -> Option<String> {
    let requests = |n: u64| if n == 1 { "One request".to_owned() } else { format!("{n} requests") };
    let (all, a_reset) = (unheard + heard, if unheard + heard == 1 { "a reset" } else { "resets" });
    let which = match (unheard, heard) {
        (0, 0) => return None,
        (_, 0) => {
            "before their server had acknowledged a byte: it, or a balancer or firewall before it, had given the connection up. Let clients \
             give up idle connections sooner than it does (its keep-alive timeout), or repeat such requests".into()
        }
        (0, _) => "though their server had them: it ended, or closed without reading them; see its log".to_owned(),
        (n, _) => format!(
            "{n} of them before their server had acknowledged a byte (it had given the connection up), the others \
             though it had them"
        ),
    };
    let which =
        if all == 1 { which.replace("their server", "its server").replace("them", "it") } else { which };
    Some(format!("{} met {a_reset} instead of an answer, {which}.", requests(all)))
}

/// Said where clients did not wait for the answer: by their own timeouts mostly.
fn gave_up((n, waited): (u64, Extremes)) -> Option<String> {
    let Extremes { shortest, longest, .. } = waited;
    let after = if shortest.to_string() == longest.to_string() {
        shortest.to_string()
    } else {
        format!("{shortest} to {longest}")
    };
    match n {
        0 => None,
        1 => Some(format!("One request was given up by its client after {after}, before its answer came.")),
        n => Some(format!(
            "{n} requests were given up by their clients after {after}, before their answers came."
        )),
    }
}

/// No connection has packets of both ends.
fn is_unanswered(analysis: &Analysis) -> bool {
    analysis.totals.connections > analysis.totals.unlisted && analysis.totals.two_sided == 0
}

/// What is said where there is no connection.
fn nothing(analysis: &Analysis, capture: &Capture) -> Option<String> {
    if !analysis.connections.is_empty() || analysis.totals.connections > 0 {
        return None;
    }
    Some(match (capture.packets, capture.tcp_packets) {
        (0, _) if capture.of_command => {
            "Nothing passed the network of the command: it used none, or sockets that are files (Unix sockets).".into()
        }
        (n, 0) if capture.of_command => format!(
            "{} passed the network of the command, none of them TCP (UDP, such as DNS or QUIC, or ICMP).",
            count(n, "packet")
        ),
        (0, _) => "The capture holds no packets. Was the capture filter right, and did traffic pass?".into(),
        (n, 0) if capture.partial => {
            format!("{}, but no TCP is left: loosen --filter, --from or --to.", count(n, "packet"))
        }
        (n, 0) if capture.warnings.iter().any(|w| w.code == "unusable") => format!(
            "{}, none with a whole TCP header: they are cut too short. Capture with `tcpdump -s 128` or more.",
            count(n, "packet")
        ),
        (n, 0) => format!(
            "No TCP in this capture: {}, none of them TCP. Capture with `tcpdump tcp`, and where the TCP traffic \
             passes.",
            count(n, "packet")
        ),
        (_, n) if !capture.partial => format!(
            "{}, but none of them belongs to a connection that can be followed: they are cut off or stand alone.",
            count(n, "TCP packet")
        ),
        (_, n) => {
            format!("{}, but no connection is left: loosen --filter, --from or --to.", count(n, "TCP packet"))
        }
    })
}

/// How many requests to whom took how long.
fn who(analysis: &Analysis, answer: &Answer) -> String {
    let servers: Vec<&Server> = analysis.totals.servers.iter().filter(|s| s.within.is_none()).collect();
    let to = match servers.as_slice() {
        [one] if analysis.totals.servers_omitted == 0 => one.server.to_string(),
        many => format!("{} servers", many.len() as u64 + analysis.totals.servers_omitted),
    };
    let connections = count(answer.connections, "connection");
    if answer.count == 0 {
        let took = if answer.requests > Nanos::ZERO { format!(", {}", took(answer)) } else { String::new() };
        return format!("{connections} to {to}, without a request{took}.");
    }
    let requests = count(answer.count, "request");
    let quantiles = match (answer.times.percentile(50), answer.times.percentile(95)) {
        (Some(median), Some(p95)) if answer.count > 1 && p95 > Nanos::ZERO => {
            format!(" (median {median}, p95 {p95}{})", of_those(answer))
        }
        _ => String::new(),
    };
    if answer.at_once {
        format!("{requests} to {to} on {connections} side by side, {}{quantiles}.", took(answer))
    } else {
        format!("{requests} to {to} {}{quantiles}.", took(answer))
    }
}

/// What quantiles are of, where some requests show no time: nothing came back in the capture.
fn of_those(answer: &Answer) -> String {
    let (all, timed) = (answer.times.count(), answer.times.timed());
    if timed == all { String::new() } else { format!(", of the {timed} whose time the capture shows") }
}

/// Transfers that shared a link which they filled wait for each other, whatever each of them is held by.
fn side_by_side(analysis: &Analysis, answer: &Answer) -> Option<String> {
    let link = analysis.findings.iter().filter(|f| f.cause == Cause::Bandwidth).find_map(|f| f.link_full);
    let full = link.filter(|full| answer.share(full.time) >= NOTHING_WRONG)?;
    let share = percent(answer.share(full.time));
    let (time, together) = (full.time, full.link.together());
    Some(format!(
        "{time} ({share}) passed while {together}: that sets their pace, whatever held each of them."
    ))
}

/// A median hides it, a 95th percentile too: one of many requests took most of the time.
fn one_of_many(answer: &Answer) -> Option<String> {
    let longest = answer.times.longest();
    let most = answer.count > 2 && longest.times(2) > answer.requests;
    most.then(|| format!("One request took {longest} of it ({}).", percent(answer.share(longest))))
}

/// One person's time where requests came one after the other; else what they add up to, and what passed.
fn took(answer: &Answer) -> String {
    if answer.at_once {
        format!("{} added up, within {}", answer.requests, span(answer.clock))
    } else {
        format!("in {}", answer.requests)
    }
}

/// What passed by the clock; two captures in one file may be years apart.
fn span(clock: Nanos) -> String {
    const DAY: Nanos = Nanos::secs(86_400);
    if clock < DAY.times(2) { clock.to_string() } else { format!("{} days", clock.0 / DAY.0) }
}

/// Where the time went, if anybody waited.
fn why(analysis: &Analysis, answer: &Answer) -> Vec<String> {
    let tcp = |cause: Cause| cause.owner() == Owner::Tcp;
    // What the path did beyond its distance and rate.
    let lost = |cause: Cause| cause.owner() == Owner::Path && cause.class() == Class::Tcp;
    let time = |meant: &dyn Fn(Cause) -> bool| answer.sum(meant);
    let mut faults = [
        (time(&tcp), "TCP's", &tcp as &dyn Fn(Cause) -> bool),
        (time(&lost), whose(analysis, answer), &lost),
    ]
    .to_vec();
    faults.retain(|f| answer.share(f.0) >= NOTHING_WRONG);
    faults.sort_by_key(|f| std::cmp::Reverse(f.0));
    let mut text: Vec<String> = Vec::new();
    // Whatever took most is said first, whosever it is.
    let largest = answer.causes.iter().find(|p| p.requests > Nanos::ZERO && !tcp(p.cause) && !lost(p.cause));
    let first = largest.filter(|p| faults.iter().all(|f| f.0 < p.requests));
    text.extend(first.map(|part| spent(analysis, answer, part)));
    text.extend(faults.iter().map(|&(time, whose, meant)| fault(analysis, answer, time, whose, meant)));
    let avoidable: Vec<&Part> = answer.causes.iter().filter(|p| is_avoidable(answer, p)).collect();
    let others = avoidable.iter().filter(|p| first.is_none_or(|first| first.cause != p.cause));
    text.extend(others.map(|part| spent(analysis, answer, part)));
    // What went on where such a server waited is not known here.
    let waited = !elsewhere(analysis).is_empty();
    // What is not explained may be anybody's, and a path that loses packets is no network in order.
    let unknown = answer.share(time(&|cause| cause == Cause::Unexplained)) >= NOTHING_WRONG;
    let [unheard, heard] = analysis.totals.reset;
    let known =
        !unknown && !waited && unheard + heard == 0 && !analysis.findings.iter().any(Finding::may_be_corked);
    if let Some(first) = text.first_mut().filter(|_| faults.is_empty() && avoidable.is_empty() && known) {
        *first = format!("Nothing is wrong with TCP here: {first}");
    }
    text
}

/// Much of the time, and no work of an application (it thought, paused, read late), though it is one that
/// could avoid it: a full accept queue, a window above TCP.
fn is_avoidable(answer: &Answer, part: &Part) -> bool {
    let (cause, share) = (part.cause, answer.share(part.requests));
    let own = cause.class() != Class::Tcp || cause == Cause::SlowReader;
    cause.owner() == Owner::Application && !own && share >= AVOIDABLE
}

/// Whose the time is that the path has beyond its own: a SYN without an answer may have been lost, or its
/// server's host took none, unless the packets show that it was the path.
fn whose(analysis: &Analysis, answer: &Answer) -> &'static str {
    let open = |f: &&Finding| f.cause == Cause::SynRetransmit && f.side != Some(Side::Network);
    let time = analysis.findings.iter().filter(open).fold(Nanos::ZERO, |sum, f| sum + f.of_requests());
    if answer.share(time) >= NOTHING_WRONG { "the path's or the server's" } else { "the path's" }
}

/// `97 % (5.90 s) the server application worked`.
fn spent(analysis: &Analysis, answer: &Answer, part: &Part) -> String {
    let (time, share) = (part.requests, percent(answer.share(part.requests)));
    match part.cause {
        Cause::Unexplained => format!("{share} ({time}) could not be explained from this capture."),
        Cause::ServerThink if !elsewhere(analysis).is_empty() => {
            let who: Vec<String> = elsewhere(analysis).iter().map(Endpoint::to_string).collect();
            format!(
                "{share} ({time}) the server application worked, or waited for {}, whose connections are left out here.",
                who.join(" and ")
            )
        }
        Cause::ServerThink if analysis.findings.iter().any(Finding::may_be_corked) => format!(
            "{share} ({time}) the server application worked, or its kernel held answers until a timer (TCP_CORK, MSG_MORE)."
        ),
        cause => {
            let side = side(&analysis.findings, cause);
            let turns = analysis.findings.iter().filter(|f| f.cause == cause).find_map(|f| f.in_turn);
            let others =
                turns.map_or_else(String::new, |t| format!(", {} of that on other requests first", t.waited));
            format!("{share} ({time}) {}{}{others}.", clause(cause, side), at(analysis, &[cause], time))
        }
    }
}

/// Servers that one of those here asked while it answered, and whose requests were not chosen.
fn elsewhere(analysis: &Analysis) -> Vec<Endpoint> {
    let servers = &analysis.totals.servers;
    let asked = servers.iter().flat_map(|s| &s.asks);
    asked.filter(|e| servers.iter().all(|s| s.server != **e)).copied().collect()
}

/// `2.59 s (49 %) of it is Nagle × delayed ACK`: the largest cause of those that are `meant`.
fn fault(
    analysis: &Analysis,
    answer: &Answer,
    time: Nanos,
    whose: &str,
    meant: &dyn Fn(Cause) -> bool,
) -> String {
    let share = percent(answer.share(time));
    let Some((name, causes, most)) = largest(answer, meant) else { return String::new() };
    let at = at(analysis, &causes, most);
    if is(ALL, most, time) {
        return format!("{most} ({}) of it is {name}{at}.", percent(answer.share(most)));
    }
    // By what is printed: one second of two is not most of them.
    let rest = time - most;
    let how_much =
        if most > rest && most.to_string() != rest.to_string() { "most of that" } else { "among it" };
    format!("{time} ({share}) of it is {whose}, {how_much} {name} ({most}){at}.")
}

/// How a loss was found is nothing to whoever reads the first sentence: these are one thing there.
const LOST: [Cause; 3] = [Cause::FastRecovery, Cause::RetransmissionTimeout, Cause::TailLossProbe];

/// What took most of the causes that are `meant`: in words, which causes, how long.
fn largest(answer: &Answer, meant: &dyn Fn(Cause) -> bool) -> Option<(&'static str, Vec<Cause>, Nanos)> {
    let parts = || answer.causes.iter().filter(|p| meant(p.cause) && p.requests > Nanos::ZERO);
    let (lost, others): (Vec<&Part>, Vec<&Part>) = parts().partition(|p| LOST.contains(&p.cause));
    let time = lost.iter().fold(Nanos::ZERO, |sum, p| sum + p.requests);
    let one = |p: &Part| (p.cause.info().name, vec![p.cause], p.requests);
    let lost = match lost.first() {
        Some(p) if is(ALL, p.requests, time) => Some(one(p)),
        Some(_) => Some((Cause::FastRecovery.info().name, LOST.to_vec(), time)),
        None => None,
    };
    let other = others.first().map(|p| one(p));
    lost.into_iter().chain(other).max_by_key(|l| l.2)
}

/// To which server, if there are several, and how much of the causes' time (`all`) that is, if it is not all of it.
fn at(analysis: &Analysis, causes: &[Cause], all: Nanos) -> String {
    let servers = &analysis.totals.servers;
    let of = |s: &Server| causes.iter().fold(Nanos::ZERO, |sum, &cause| sum + s.budget.get(cause));
    let Some(most) = servers.iter().max_by_key(|s| of(s)).filter(|_| servers.len() > 1) else {
        return String::new();
    };
    let (time, server) = (of(most), most.server);
    if is(ALL, time, all) {
        format!(", in requests to {server}")
    } else if is(WORTH_NAMING, time, all) {
        format!(", {time} of that in requests to {server}")
    } else {
        ", spread over many servers".into()
    }
}

fn is(share: f64, part: Nanos, of: Nanos) -> bool {
    part.0 as f64 >= share * of.0 as f64
}

/// The side that holds most of a cause's time, and with how much, unless that is all of it.
fn side(findings: &[Finding], cause: Cause) -> (Option<Side>, Option<Nanos>) {
    let of = |meant: &dyn Fn(&Finding) -> bool| {
        let theirs = findings.iter().filter(|f| f.cause == cause && meant(f));
        theirs.fold(Nanos::ZERO, |sum, f| sum + f.of_requests())
    };
    let sides = findings.iter().filter(|f| f.cause == cause).map(|f| (f.side, of(&|o| o.side == f.side)));
    let Some((most, time)) = sides.max_by_key(|s| s.1) else { return (None, None) };
    (most, (!is(ALONE, time, of(&|_| true))).then_some(time))
}

/// `4.25 s`: what happened in that time, as a clause. What both sides did has the time of the one that did it longer.
fn clause(cause: Cause, (side, theirs): (Option<Side>, Option<Nanos>)) -> String {
    let side = side.map_or("peer", Side::name);
    match (cause, theirs) {
        (Cause::SenderPause, Some(time)) => {
            format!("the applications paused in the middle of a message (the {side} for {time})")
        }
        (Cause::SlowReader, Some(time)) => format!("the ends did not read (the {side} for {time})"),
        (cause, _) => of_one(cause, side),
    }
}

/// What one side did alone, as a clause.
fn of_one(cause: Cause, side: &str) -> String {
    match cause {
        Cause::ServerThink => "the server application worked".into(),
        Cause::ClientThink => "the client application paused".into(),
        Cause::SenderPause => format!("the {side} application paused in the middle of a message"),
        Cause::SlowReader => format!("the {side} did not read"),
        Cause::Refused => "nobody listened: refused".into(),
        Cause::AcceptQueueFull => format!("the {side} accepted connections late: its accept queue was full"),
        Cause::MutualBlock => "both ends were blocked in write".into(),
        Cause::ApplicationWindow => "a window of the protocol above TCP was full".into(),
        other => format!("is {}", other.info().name),
    }
}

#[cfg(test)]
mod tests;
