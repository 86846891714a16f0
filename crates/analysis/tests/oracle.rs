//! The model knows why it waited: its packets, seen at the end that sends most, must give its causes back.
//!
//! Scenarios are drawn from a fixed seed, so that a failure is the doing of a change: what is called what,
//! and what the model replays, is compared with `golden/`, and `UPDATE=1` writes that anew: its diff is what
//! a change of a rule does, and is to be read. `RANDOM_SEEDS=1` draws from another seed each time, which is
//! printed; `ORACLE_SEED` and `ORACLE_CASES` set it. Then only the bound on the agreement holds.
//!
//! Left out by rule, because no packet at the sender's tap shows it:
//! - gaps between exchanges (no cause of TCP), and exchanges in which both ends sent as much (no end sends most);
//! - the link's share where the capture does not show its rate (it is the limit's then);
//! - work of less than a 64th of a round trip or 50 µs, which the analysis calls the way an answer takes;
//! - whether a congestion window that never met a loss is still in slow start (`ssthresh` is the kernel's own), and whether a
//!   flight that hardly grows stops at it or because no more is written: both count as found;
//! - a limit that holds the flights of a message for less than three round trips, which is called slow start;
//! - limits on a link that is full: the flight fills the path, and what it does not grow against is the link;
//! - a delayed ACK that comes later by less than a quarter of a round trip (`profile::delayed_from`): jitter, for all it shows;
//! - where within a round trip the link's share of a limit lies: the amounts are compared;
//! - pauses as long as the timer that ends a cork, with nothing in flight.

mod golden;
mod replays;

use golden::{is_fixed, millis, seed_of};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tcpwhy_analysis::{Analysis, Analyzer, Config, Detail};
use tcpwhy_base::{Cause, Chosen, Nanos, Random, Step, Turn, What, Workload};
use tcpwhy_model::{EPOCH, Outcome, Scenario, Span, Story, run, stories, tap};

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|s| s.parse().ok()).unwrap_or(usual)
}

/// Scenarios of a run with the fixed seed.
const CASES: u64 = 1_000;

/// A scenario drawn from `r`.
fn draw(r: &mut Random) -> Scenario {
    let rtt = Nanos::micros(
        [500, 2_000, 10_000, 40_000, 100_000, 200_000][r.below(6) as usize] + r.below(500) as i64,
    );
    let rate = [None, Some(1_000_000_000), Some(100_000_000), Some(20_000_000)][r.below(4) as usize];
    let mtu = if r.below(5) == 0 { 9000 } else { 1500 };
    let mut s = Scenario::with_path(rtt, rate, rate.map(|_| 2_000_000), mtu);
    s.seed = r.draw();
    let phases = [0, 1].map(|_| Nanos(r.below(4_000_000) as i64));
    for (host, phase) in s.hosts.iter_mut().zip(phases) {
        host.stack.phase = phase;
        host.nodelay = r.below(3) > 0;
        host.stack.wake = Nanos::micros(20 + r.below(60) as i64);
    }
    let message = |r: &mut Random| {
        let bytes = match r.below(4) {
            0 => 1 + r.below(1_000),
            1 => 1_000 + r.below(20_000),
            2 => 20_000 + r.below(200_000),
            _ => 200_000 + r.below(1_500_000),
        };
        let mut steps = vec![Step::Write(bytes)];
        if r.below(3) == 0 {
            steps.insert(0, Step::Write(1 + r.below(300)));
        }
        if r.below(8) == 0 {
            steps.insert(1, Step::Pause(Nanos::millis(5 + r.below(300) as i64)));
            steps.push(Step::Write(1 + r.below(3_000)));
        }
        steps
    };
    let download = r.below(2) == 0;
    let (long, short) = (message(r), vec![Step::Write(50 + r.below(900))]);
    let (request, response) = if download { (short, long) } else { (long, short) };
    let before = if r.below(2) == 0 { Nanos::ZERO } else { Nanos::millis(r.below(3_000) as i64) };
    let think = if r.below(2) == 0 { Nanos::ZERO } else { Nanos::millis(r.below(300) as i64) };
    s.workload = Workload::serial(Turn { before, request, think, response }, 1 + r.below(6) as u32);
    let sender = usize::from(download);
    match r.below(8) {
        0 => {
            s.hosts[sender].sndbuf = Some(16_384 << r.below(4));
            (s.hosts[sender].nodelay, s.hosts[sender].write_chunk) = (true, Some(1_024 << r.below(5)));
        }
        1 => s.hosts[1 - sender].rcvbuf = Some(8_192 << r.below(4)),
        2 => {
            let what = What::Data(1 + r.below(60));
            s.links[sender].drops = vec![Chosen { what, connection: 0 }];
        }
        3 => s.links[0].drops = vec![Chosen { what: What::Syn(1), connection: 0 }],
        _ => {}
    }
    s
}

fn analyze(out: &Outcome, end: u8) -> Analysis {
    let mut a = Analyzer::new(Config { detail: Detail::All });
    tap(out, end).iter().for_each(|t| a.push(&t.segment));
    a.finish()
}

/// Times that both name, by (model's cause, analysis' cause).
type Confusion = BTreeMap<(Cause, Cause), i64>;

fn total(sums: &Confusion) -> i64 {
    sums.values().sum()
}

fn same(sums: &Confusion) -> i64 {
    sums.iter().filter(|e| e.0.0 == e.0.1).map(|e| e.1).sum()
}

/// A scenario and its packets, for a person.
fn describe(s: &Scenario, out: &Outcome, end: u8) {
    println!("tap at {end}, MTU {}, delay {}, rate {:?}", s.mtu, s.links[0].delay, s.links[0].rate);
    for (h, l) in s.hosts.iter().zip(&s.links) {
        let (buffers, chunk, drops) = ((h.sndbuf, h.rcvbuf), h.write_chunk, &l.drops);
        println!("nodelay {}, buffers {buffers:?}, writes {chunk:?}, lost {drops:?}", h.nodelay);
    }
    println!("{:?}, {} requests", s.workload.turns[0], s.workload.requests);
    for p in out.passages.iter().filter(|p| p.packet.from == end || p.arrived.is_some()) {
        let (k, own) = (&p.packet, p.packet.from == end);
        let at = if own { p.sent } else { p.arrived.unwrap_or_default() };
        let kind = if own { "->" } else { "<-" };
        let cause = k.cause.map_or("", |c| c.id());
        println!("{at:>12} {kind} seq {} len {} ack {} window {} {cause}", k.seq, k.len, k.ack, k.window);
    }
}

/// The link's share that both see, at other places of the same round trip.
fn exchange_shares(round: &mut Confusion) {
    let link = Cause::Bandwidth;
    let limits: Vec<Cause> = round.keys().filter(|k| k.1 == link && k.0 != link).map(|k| k.0).collect();
    for limit in limits {
        let of = |pair| round.get(&pair).copied().unwrap_or(0);
        let both = of((limit, link)).min(of((link, limit)));
        for (pair, time) in
            [((limit, link), -both), ((link, limit), -both), ((limit, limit), both), ((link, link), both)]
        {
            *round.entry(pair).or_default() += time;
        }
    }
}

/// What the analysis says of all scenarios, by cause and side: spans, time, confidence.
type Said = BTreeMap<(Cause, &'static str), (u64, i64, f64)>;

fn note_said(found: &Analysis, said: &mut Said) {
    for c in &found.connections {
        let setup = c.setup.iter().flat_map(|x| &x.spans);
        let gaps = c.gaps.iter().flat_map(|x| &x.spans);
        for span in setup.chain(c.exchanges.iter().flat_map(|x| &x.spans)).chain(gaps) {
            let sum = said.entry((span.cause, span.side.map_or("nobody", |s| s.name()))).or_default();
            sum.0 += 1;
            sum.1 += span.duration().0;
            sum.2 += f64::from(span.confidence);
        }
    }
}

fn compare(s: &Scenario, out: &Outcome, end: u8, show: bool, all: &mut Said) -> Confusion {
    let mut sums = Confusion::new();
    let found = analyze(out, end);
    note_said(&found, all);
    let Some(c) = found.connections.first() else { return sums };
    let Some(story) = stories(s, out, end).into_iter().next() else { return sums };
    let known = tellable(s, &story);
    let full: Vec<bool> = story.exchanges.iter().map(|x| fills(s, out, end, x.start, x.end)).collect();
    let mut rounds: BTreeMap<i64, Confusion> = BTreeMap::new();
    let setup = c.setup.iter().flat_map(|x| &x.spans);
    let said: Vec<_> = setup.chain(c.exchanges.iter().flat_map(|x| &x.spans)).collect();
    if show {
        describe(s, out, end);
        println!("bandwidth that shows: {:?}", c.path.bandwidth_bps);
        known.iter().for_each(|k| println!("model    {:>12} {:>12} {}", k.start, k.end, k.cause.id()));
        let said = said.iter().map(|a| (a.start - EPOCH, a.end - EPOCH, a.cause.id()));
        said.for_each(|(start, end, cause)| println!("analysis {start:>12} {end:>12} {cause}"));
    }
    for k in &known {
        if like_a_cork(s, k) {
            continue;
        }
        let at = story.exchanges.iter().position(|x| x.start <= k.start && k.end <= x.end);
        let message = at.and_then(|i| story.exchanges.get(i));
        let of = message.iter().flat_map(|x| &x.spans).filter(|o| o.cause == k.cause && o.side == k.side);
        let plateau = of.fold(Nanos::ZERO, |t, o| t + (o.end - o.start));
        let full = at.is_some_and(|i| full[i]);
        for a in &said {
            let (from, to) = (k.start.max(a.start - EPOCH), k.end.min(a.end - EPOCH));
            // The link's share is taken out of a limit only where its rate showed (rule 3).
            // What it adds to a turn shifts the work in it.
            let shifted = k.cause == Cause::PathDelay && a.cause == Cause::ServerThink;
            let unknown = (k.cause == Cause::Bandwidth || shifted) && c.path.bandwidth_bps.is_none();
            if to > from && !unknown {
                let named = if alike(s, k, a.cause, plateau, full) { k.cause } else { a.cause };
                // By round trips.
                let (rtt, mut at) = (s.rtt().max(Nanos(1)), from);
                while at < to {
                    let round = at.0 / rtt.0;
                    let until = Nanos((round + 1) * rtt.0).min(to);
                    *rounds.entry(round).or_default().entry((k.cause, named)).or_default() += (until - at).0;
                    at = until;
                }
            }
        }
    }
    for round in rounds.values_mut() {
        exchange_shares(round);
        round.iter().for_each(|(&pair, time)| *sums.entry(pair).or_default() += time);
    }
    sums
}

/// Three round trips without growth make a plateau (`limits`).
const PLATEAU: i64 = 3;

/// What the model knows, in the words in which a tap can tell it.
fn tellable(s: &Scenario, story: &Story) -> Vec<Span> {
    let rtt = s.rtt();
    let mut out = story.setup.clone();
    for x in &story.exchanges {
        for span in &x.spans {
            let mut span = *span;
            let short = span.cause == Cause::ServerThink
                && span.end - span.start <= rtt.part(64).max(Nanos::micros(50));
            if short {
                span.cause = Cause::PathDelay;
            }
            out.push(span);
        }
    }
    out
}

/// Both name the same, or the tap cannot tell them apart by the rules above.
///
/// Which pairs these can be says the table of causes; when they are, the conditions here.
fn alike(s: &Scenario, k: &Span, a: Cause, plateau: Nanos, full: bool) -> bool {
    use Cause::{Bandwidth, CongestionWindow, IdleRestart, Nagle, NagleDelayedAck, SendBuffer, SlowStart};
    let lossless = s.links.iter().all(|l| l.drops.iter().all(|d| matches!(d.what, What::Syn(_))));
    // The shortest delayed ACK, and what a timer wheel of 250 ticks adds to it.
    let hidden = s.rtt().part(4) > Nanos::millis(40);
    if k.cause == a {
        return true;
    }
    if !k.cause.info().alike.iter().any(|of| of.cause == a) {
        return false;
    }
    match (k.cause, a) {
        (NagleDelayedAck, Nagle) => hidden,
        (CongestionWindow | SlowStart | IdleRestart | SendBuffer, Bandwidth) => full,
        (CongestionWindow, SlowStart | IdleRestart | SendBuffer) => lossless,
        (SendBuffer, SlowStart | IdleRestart) => plateau < s.rtt().times(PLATEAU),
        _ => false,
    }
}

/// The most that `end` had in flight between two times fills the path: as much as the link carries in a round trip.
fn fills(s: &Scenario, out: &Outcome, end: u8, from: Nanos, to: Nanos) -> bool {
    let Some(rate) = s.links[usize::from(end)].rate else { return false };
    let mut events: Vec<(Nanos, u64, u64)> = Vec::new();
    for p in &out.passages {
        let k = &p.packet;
        if k.from == end && k.len > 0 {
            events.push((p.sent, k.end(), 0));
        } else if k.from != end && k.has_ack {
            events.extend(p.arrived.map(|at| (at, 0, k.ack)));
        }
    }
    events.sort_unstable();
    let (mut sent, mut acked, mut most) = (0, 0, 0);
    for (at, end, ack) in events {
        (sent, acked) = (sent.max(end), acked.max(ack));
        if at >= from && at <= to {
            most = most.max(sent.saturating_sub(acked));
        }
    }
    u128::from(most) * 8_000_000_000 >= u128::from(rate) * s.rtt().0.max(0) as u128
}

/// A pause that cannot be told from a cork's timer: max(RTO, 200 ms), up to a quarter late.
fn like_a_cork(s: &Scenario, k: &Span) -> bool {
    let (time, timer) = (k.end - k.start, (s.rtt() + Nanos::millis(200)).times(5).part(4));
    k.cause == Cause::SenderPause && time >= Nanos::millis(190) - s.rtt() && time <= timer + Nanos::millis(16)
}

/// Shares of the time that both name the same: over all time, and as a mean over the scenarios (which counts
/// a short one as much as a long one). With it the pairs that differ, in millionths of a scenario each, and
/// how many scenarios.
struct Agreement {
    of_time: f64,
    of_scenarios: f64,
    differ: Vec<((Cause, Cause), i64)>,
    scenarios: u64,
    times: Confusion,
    said: Said,
}

fn oracle(cases: u64) -> Agreement {
    let seed = seed_of("ORACLE_SEED");
    println!("ORACLE_SEED={seed} ORACLE_CASES={cases}");
    let only = std::env::var("ORACLE_CASE").ok().and_then(|n| n.parse::<u64>().ok());
    let show = std::env::var("ORACLE_SHOW").ok();
    let (mut times, mut shares, mut done) = (Confusion::new(), Confusion::new(), 0);
    let mut said = Said::new();
    for n in (0..cases).filter(|&n| only.is_none_or(|only| only == n)) {
        let s = draw(&mut Random(seed.wrapping_mul(1_000_003).wrapping_add(n)));
        let out = run(&s).expect("what is drawn is possible");
        assert!(out.complete(), "case {n} of seed {seed} does not end");
        let turn = &s.workload.turns[0];
        let (up, down) = (Turn::bytes(&turn.request), Turn::bytes(&turn.response));
        if up == down {
            continue;
        }
        let own = compare(&s, &out, u8::from(down > up), only.is_some(), &mut said);
        let all = total(&own).max(1);
        for (pair, &time) in &own {
            let share = (i128::from(time) * 1_000_000 / i128::from(all)) as i64;
            *shares.entry(*pair).or_default() += share;
            *times.entry(*pair).or_default() += time;
            let name = format!("{}/{}", pair.0.id(), pair.1.id());
            if pair.0 != pair.1 && share >= 50_000 && show.as_ref().is_some_and(|s| name.contains(s.as_str()))
            {
                println!("case {n}: {name} {} ms, {} % of it", time / 1_000_000, share / 10_000);
            }
        }
        done += 1;
    }
    let mut differ: Vec<_> = shares.iter().filter(|e| e.0.0 != e.0.1).map(|(&p, &t)| (p, t)).collect();
    differ.sort_by_key(|e| -e.1);
    let share = |sums: &Confusion| same(sums) as f64 / total(sums).max(1) as f64;
    let (of_time, of_scenarios) = (share(&times), share(&shares));
    Agreement { of_time, of_scenarios, differ, scenarios: done, times, said }
}

/// The confusion table, and what was said at all.
fn table(found: &Agreement) -> String {
    let (time, mean) = (found.of_time * 100.0, found.of_scenarios * 100.0);
    let mut out = format!(
        "{} scenarios, {time:.3} % of the time is labelled the same, {mean:.3} % on average\n\n",
        found.scenarios
    );
    let _ = writeln!(out, "{:<24} {:<24} {:>16}", "the model's cause", "the analysis says", "ms");
    for ((model, analysis), time) in &found.times {
        let _ = writeln!(out, "{:<24} {:<24} {:>16}", model.id(), analysis.id(), millis(Nanos(*time)));
    }
    let _ = writeln!(out, "\n{:<24} {:<8} {:>8} {:>16} {:>10}", "said", "side", "spans", "ms", "sure");
    for ((cause, side), (spans, time, sure)) in &found.said {
        let sure = sure / *spans as f64;
        let _ = writeln!(
            out,
            "{:<24} {side:<8} {spans:>8} {:>16} {sure:>10.4}",
            cause.id(),
            millis(Nanos(*time))
        );
    }
    out
}

#[test]
fn the_analysis_returns_what_the_model_knows() {
    let cases = number("ORACLE_CASES", CASES);
    let found = oracle(cases);
    for ((model, analysis), share) in found.differ.iter().take(24) {
        let share = *share as f64 / 1e4 / found.scenarios.max(1) as f64;
        println!("{:<24} called {:<24} {share:.2} %", model.id(), analysis.id());
    }
    let (time, mean) = (found.of_time * 100.0, found.of_scenarios * 100.0);
    println!(
        "{time:.2} % of the time is labelled the same, {mean:.2} % on average over {} scenarios",
        found.scenarios
    );
    // 30 draws of 600 scenarios gave 98.0 to 98.5 % on average; of the time, where one long scenario counts
    // as much as a hundred short ones, 95 to 98.6 %.
    assert!(found.of_time >= 0.94 && found.of_scenarios >= 0.975, "{time:.2} % {mean:.2} %");
    if is_fixed("ORACLE_SEED") && cases == CASES {
        golden::compare("confusion", &table(&found));
    }
}
