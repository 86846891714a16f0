//! From the model's answer to what is reported.

use super::question::Asked;
use super::runs::Runs;
use super::{parallel, runs};
use tcpwhy_base::{Cause, FixId, Nanos, Side, Step as WorkStep, Turn, Workload};
use tcpwhy_library::model::{Answer, Change, Flight, Impossible, Question, Ranking, Tried, flights, useless};
use tcpwhy_report::bytes;
use tcpwhy_report::predict::{
    CauseName, Fix, Observed, Prediction, SCHEMA, Settings, Share, SideName, Step, Together,
};

/// Steps of the diagram that are kept.
const STEPS: usize = 36;
/// Latencies that are kept.
const LATENCIES: usize = 1000;

/// Runs the question as often as it takes and puts everything together.
pub(crate) fn of_runs(asked: &mut Asked) -> Result<(Answer, Prediction), Impossible> {
    let Runs { question, answer, distribution } = runs::of(&asked.question)?;
    asked.question = question;
    let prediction = Prediction { distribution, ..prediction(asked, &answer) };
    Ok((answer, prediction))
}

/// Puts everything about one run together.
pub(crate) fn prediction(asked: &Asked, answer: &Answer) -> Prediction {
    let q = &asked.question;
    let total = answer.total;
    // What was not finished cannot be compared with what a change makes of it.
    let changed = if answer.complete { tried(q, total) } else { Vec::new() };
    let ranking = q.rank(total, changed);
    let budget = q.budget(answer);
    // Of a run that was not finished only what was is told by cause.
    let finished = budget.iter().fold(Nanos::ZERO, |sum, b| sum + b.2);
    let whole = if answer.complete { total } else { finished };
    let fix = |t: &Tried| Fix {
        id: t.change.fix.info().id,
        place: t.change.place,
        what: t.change.what.clone(),
        how: how(t.change.fix),
        predicted_ns: t.predicted.0,
        saves_ns: t.gain.0,
    };
    let helps = |t: &&Tried| !t.change.comparison && t.gain.0 * 100 >= total.0;
    let kept: Vec<usize> = (0..ranking.each.len()).filter(|&i| helps(&&ranking.each[i])).collect();
    let together = ranking.together.as_ref().map(|(chosen, time)| Together {
        fixes: chosen.iter().filter_map(|c| kept.iter().position(|k| k == c)).collect(),
        predicted_ns: time.0,
        saves_ns: (total - *time).0,
    });
    let mut steps = diagram(q, answer);
    let omitted = steps.len().saturating_sub(STEPS);
    if omitted > 0 {
        steps.drain(STEPS / 2..STEPS / 2 + omitted);
    }
    Prediction {
        tool: "tcpwhy",
        version: env!("CARGO_PKG_VERSION"),
        schema: SCHEMA,
        settings: settings(asked),
        assumed: asked.assumed.clone(),
        total_ns: total.0,
        distribution: None,
        latencies_ns: answer.turns.iter().take(LATENCIES).map(|t| t.0).collect(),
        complete: answer.complete,
        given_up: !answer.complete && !answer.outcome.cut_off,
        observed: None,
        diagram: steps,
        diagram_omitted: omitted as u64,
        budget: budget.iter().map(|&(c, s, t)| Share::new(c, s, t.0, whole.0)).collect(),
        fixes: kept.iter().map(|&i| fix(&ranking.each[i])).collect(),
        together: together.filter(|t| t.fixes.len() > 1),
        no_help: no_help(&ranking, total).map(fix).collect(),
        comparisons: ranking.each.iter().filter(|t| t.change.comparison).map(fix).collect(),
    }
}

/// Every change run again; the order is that of the changes.
fn tried(q: &Question, total: Nanos) -> Vec<Tried> {
    // Who pauses for longer than a round trip between requests does not wait for answers: nothing is to be batched.
    let s = &q.scenario;
    let paused = s.workload.turns.iter().any(|t| t.before > s.rtt().max(Nanos::millis(1)));
    let mut changes = q.changes();
    changes.retain(|c| c.fix != FixId::FewerRoundTrips || !paused);
    parallel::map(changes.len(), |i| ask(changes[i].clone(), q, total)).into_iter().flatten().collect()
}

/// Draws of losses for each change.
const DRAWS: u32 = 15;

/// What a change does. Where losses are drawn, one run with it and one without it would differ by the draws
/// alone: its gain is the median over pairs with the same start value, and its time the median less that.
fn ask(change: Change, q: &Question, total: Nanos) -> Option<Tried> {
    if !q.is_random() {
        return change.ask(total);
    }
    let time = |q: &Question, n| q.varied(n).ask().ok().filter(|a| a.complete).map(|a| a.total);
    let pairs = (0..DRAWS).filter_map(|n| Some(time(q, n)? - time(&change.question, n)?));
    let mut gains: Vec<Nanos> = pairs.collect();
    gains.sort();
    let gain = *gains.get(gains.len() / 2)?;
    Some(Tried { predicted: total - gain, gain, change })
}

/// What is often advised in vain; one end by itself only where both together would help.
fn no_help(ranking: &Ranking, total: Nanos) -> impl Iterator<Item = &Tried> {
    let vain: Vec<&Tried> = useless(&ranking.each, total).collect();
    let both = |fix| vain.iter().any(|t| t.change.fix == fix && t.change.place == "both");
    let covered: Vec<FixId> = vain.iter().map(|t| t.change.fix).filter(|&f| both(f)).collect();
    vain.into_iter().filter(move |t| t.change.place == "both" || !covered.contains(&t.change.fix))
}

/// A model that misses what was measured by more than this is not trusted.
const TRUST: f64 = 0.15;

pub(crate) fn observed_of(modelled: Nanos, observed: Nanos) -> Observed {
    let error = (modelled - observed).0 as f64 / observed.0.max(1) as f64;
    Observed { total_ns: observed.0, modelled_ns: modelled.0, error, trustworthy: error.abs() <= TRUST }
}

/// Takes out what changes would do: of a model that misses the present nobody knows what it misses of a change.
pub(crate) fn without_changes(p: &mut Prediction) {
    (p.fixes, p.no_help, p.comparisons) = (Vec::new(), Vec::new(), Vec::new());
    p.together = None;
}

fn how(fix: FixId) -> Vec<String> {
    let lines = fix.info().how.iter().filter(|h| !h.text.contains('{'));
    lines.map(|h| format!("{}: {}", h.system, h.text)).collect()
}

fn settings(asked: &Asked) -> Settings {
    let s = &asked.question.scenario;
    let w = &s.workload;
    let first = w.turn(asked.question.skip.max(w.repeat_from as u32) as usize);
    let turn = w.kept.as_ref().or(first).or(w.turns.last());
    let writes = |steps: &[WorkStep]| {
        steps.iter().filter_map(|s| if let WorkStep::Write(n) = s { Some(*n) } else { None }).collect()
    };
    let empty = Turn::default();
    let turn = turn.unwrap_or(&empty);
    Settings {
        rtt_ns: s.rtt().0,
        up_bps: s.links[0].rate,
        down_bps: s.links[1].rate,
        queue_bytes: s.links[1].queue_bytes,
        mtu: s.mtu,
        request_writes: writes(&turn.request),
        response_writes: writes(&turn.response),
        server_time_ns: turn.think.0,
        requests: counted(&asked.question),
        connection: asked.connection.into(),
        typed: asked.sizes.clone(),
        profiles: [0, 1].map(|i| s.hosts[i].stack.profile.name.to_owned()),
        nodelay: [0, 1].map(|i| s.hosts[i].nodelay),
    }
}

/// Requests that count.
fn counted(q: &Question) -> u32 {
    let w = &q.scenario.workload;
    if w.reconnect_every > 0 {
        return w.requests;
    }
    let opening = w.repeat_from.min(w.turns.len()) as u32;
    (opening + w.requests).saturating_sub(q.skip.max(w.tls as u32))
}

/// Flights and works, in order.
fn diagram(q: &Question, answer: &Answer) -> Vec<Step> {
    let all = flights(&q.scenario, &answer.outcome);
    let mut left = vec![tls_bytes(&q.scenario.workload); answer.outcome.connections.len()];
    let mut out = Vec::new();
    for f in &all {
        // What a TLS handshake sent, repeats left out.
        let left = left.get_mut(f.conn as usize).and_then(|l| l.get_mut(usize::from(f.from)));
        let tls = left.filter(|_| f.repeats == 0).map_or(0, |left| {
            let tls = f.bytes.min(*left);
            *left -= tls;
            tls
        });
        if f.start < answer.start {
            continue;
        }
        let side = SideName(if f.from == 0 { Side::Client } else { Side::Server });
        let zero = |t: Nanos| (t - answer.start).0;
        if f.cause == Some(Cause::ServerThink) && f.waited >= Nanos::micros(100) {
            out.push(Step {
                start_ns: zero(f.start - f.waited),
                end_ns: zero(f.start),
                arrived_ns: None,
                side,
                segments: 0,
                bytes: 0,
                cause: None,
                waited_ns: f.waited.0,
                what: format!("works for {}", f.waited),
            });
        }
        let thinks = matches!(f.cause, Some(Cause::ServerThink | Cause::ClientThink));
        out.push(Step {
            start_ns: zero(f.start),
            end_ns: zero(f.end),
            arrived_ns: f.complete.map(zero),
            side,
            segments: f.segments,
            bytes: f.bytes,
            cause: f.cause.filter(|_| !thinks).map(CauseName),
            waited_ns: if thinks || f.cause.is_none() { 0 } else { f.waited.0 },
            what: what(f, tls),
        });
    }
    out
}

/// Bytes at the beginning of each stream that are TLS's own: the turns of the handshake, and what the first request has
/// beyond those on a kept connection (the Finished of TLS 1.3).
fn tls_bytes(w: &Workload) -> [u64; 2] {
    let turns = w.turns.iter().take(w.tls);
    let [up, down] = turns.fold([0_u64; 2], |sum, t| {
        [sum[0].saturating_add(Turn::bytes(&t.request)), sum[1].saturating_add(Turn::bytes(&t.response))]
    });
    let first = w.turns.get(w.tls).map_or(0, |t| Turn::bytes(&t.request));
    let finished = w.kept.as_ref().map_or(0, |kept| first.saturating_sub(Turn::bytes(&kept.request)));
    [up.saturating_add(finished), down]
}

/// In words; `tls` of its bytes are TLS's own.
fn what(f: &Flight, tls: u64) -> String {
    let again = if f.repeats > 0 { " again" } else { "" };
    if f.syn {
        return format!("{}{again}", if f.from == 0 { "SYN" } else { "SYN-ACK" });
    }
    let lost = match f.lost {
        0 => String::new(),
        n if n == f.segments => String::new(),
        n => format!(" ({n} lost)"),
    };
    let n = if f.segments == 1 { "1 segment".into() } else { format!("{} segments", f.segments) };
    let own = match tls {
        0 => String::new(),
        _ if tls == f.bytes => " (TLS)".into(),
        _ => format!(" ({} of it TLS)", bytes(tls)),
    };
    format!("{} in {n}{own}{again}{lost}", bytes(f.bytes))
}
