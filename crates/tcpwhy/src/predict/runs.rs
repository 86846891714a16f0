//! Many runs of a question, and the one that is shown.

use super::parallel;
use tcpwhy_base::{Cause, Nanos, Side};
use tcpwhy_library::model::{Answer, Held, Impossible, Question, Requests, Spread};
use tcpwhy_report::predict::{CauseName, Distribution, Pattern, SideName};

/// Runs where one would be an accident. A share of 1 % shows in most draws of 200.
const MOST: u64 = 200;
const LEAST: u64 = 8;
/// Events that all runs may take together: half a second of one core.
const EVENTS: u64 = 6_000_000;
/// Patterns that are shown.
const PATTERNS: usize = 4;

/// Time by cause and side.
pub(crate) type Spent = (Cause, Option<Side>, Nanos);

/// What many runs of a question are.
pub(crate) struct Runs {
    /// The typical one: the median of all if losses are drawn, else of the most frequent pattern.
    pub(crate) question: Question,
    pub(crate) answer: Answer,
    /// How they spread, if that says more than one number.
    pub(crate) distribution: Option<Distribution>,
}

/// Runs a question as often as it takes.
pub(crate) fn of(question: &Question) -> Result<Runs, Impossible> {
    let first = question.ask()?;
    let n = (EVENTS / first.outcome.events.max(1)).clamp(LEAST, MOST) as usize;
    let varied = |i: usize| {
        let answer = question.varied(i as u32).ask().ok().filter(|a| a.complete)?;
        Some((i as u32, answer.total, answer.turns))
    };
    let all: Vec<(u32, Nanos, Vec<Nanos>)> = parallel::map(n, varied).into_iter().flatten().collect();
    let apart = question.apart();
    let spread = Spread::new(all.iter().map(|r| (r.0, r.1)).collect(), apart);
    let one = |answer| Runs { question: question.clone(), answer, distribution: None };
    let Some(spread) = spread.filter(|_| first.complete) else { return Ok(one(first)) };
    let patterns = spread.patterns();
    let several = !question.is_random() && first.turns.len() > 1;
    let latencies = all.into_iter().filter(|_| several).map(|r| (r.0, r.2)).collect::<Vec<_>>();
    let requests = Requests::new(&latencies, apart);
    if !question.is_random() && patterns.len() < 2 && requests.is_none() {
        return Ok(one(first));
    }
    let typical = if question.is_random() { spread.percentile(50).0 } else { patterns[0].typical };
    let shown = question.varied(typical);
    let answer = shown.ask()?;
    let mut distribution = distribution(question, &shown.budget(&answer), &spread);
    distribution.requests =
        requests.map_or_else(Vec::new, |r| of_requests(&r, |run, request| spent(question, run, request)));
    let distribution = Some(distribution);
    Ok(Runs { question: shown, answer, distribution })
}

/// Patterns are those of chance in a host; losses make as many as there are draws.
fn distribution(question: &Question, usual: &[Spent], spread: &Spread) -> Distribution {
    let random = question.is_random();
    let share = |runs: u32| f64::from(runs) / f64::from(spread.runs());
    let patterns = if random { Vec::new() } else { spread.patterns() };
    Distribution {
        runs: spread.runs(),
        median_ns: spread.percentile(50).1.0,
        p95_ns: spread.percentile(95).1.0,
        least_ns: spread.range().0.0,
        most_ns: spread.range().1.0,
        losses_drawn: random,
        requests: Vec::new(),
        patterns: patterns
            .iter()
            .take(PATTERNS)
            .map(|p| {
                let differs = difference(question, p.typical, usual);
                Pattern {
                    count: u64::from(p.runs),
                    share: share(p.runs),
                    median_ns: p.median.0,
                    cause: differs.map(|d| CauseName(d.0)),
                    side: differs.and_then(|d| d.1).map(SideName),
                    more_ns: differs.map_or(0, |d| d.2.0),
                }
            })
            .collect(),
    }
}

/// What requests fall into, the usual pattern first; `spent` says what a request of a run went to.
pub(crate) fn of_requests(requests: &Requests, spent: impl Fn(u32, usize) -> Vec<Spent>) -> Vec<Pattern> {
    let pattern = |h: &Held, cause: Option<Spent>| Pattern {
        count: u64::from(h.requests),
        share: f64::from(h.requests) / f64::from(requests.all),
        median_ns: h.median.0,
        cause: cause.map(|c| CauseName(c.0)),
        side: cause.and_then(|c| c.1).map(SideName),
        more_ns: cause.map_or(0, |c| c.2.0),
    };
    let others = requests.others.iter().take(PATTERNS - 1).map(|h| {
        let (run, request) = h.typical;
        pattern(h, most_different(&spent(run, request), &spent(h.usually.0, request)))
    });
    std::iter::once(pattern(&requests.usual, None)).chain(others).collect()
}

/// Time by cause of one request of run `n`.
fn spent(question: &Question, n: u32, request: usize) -> Vec<Spent> {
    let varied = question.varied(n);
    let Ok(answer) = varied.ask() else { return Vec::new() };
    let counted = answer.outcome.turns.iter().filter(|t| t.turn >= question.skip && t.end.is_some());
    let Some(turn) = counted.clone().nth(request) else { return Vec::new() };
    let stories = varied.stories(&answer, 0);
    let of = stories.get(turn.conn as usize).into_iter().flat_map(|s| &s.exchanges);
    let spans = of.filter(|x| x.turn == turn.turn).flat_map(|x| &x.spans);
    let mut sums: Vec<Spent> = Vec::new();
    for s in spans {
        match sums.iter_mut().find(|k| (k.0, k.1) == (s.cause, s.side)) {
            Some(k) => k.2 += s.end - s.start,
            None => sums.push((s.cause, s.side, s.end - s.start)),
        }
    }
    sums
}

/// The cause whose time in run `n` differs most from the usual one's, and by how much; none if nothing differs.
fn difference(question: &Question, n: u32, usual: &[Spent]) -> Option<Spent> {
    let varied = question.varied(n);
    most_different(&varied.budget(&varied.ask().ok()?), usual)
}

/// The cause whose time differs most, and by how much.
fn most_different(these: &[Spent], usual: &[Spent]) -> Option<Spent> {
    let of = |all: &[Spent], of: &Spent| {
        all.iter().find(|s| (s.0, s.1) == (of.0, of.1)).map_or(Nanos::ZERO, |s| s.2)
    };
    let both = these.iter().chain(usual);
    let differs = both.map(|s| (s.0, s.1, of(these, s) - of(usual, s)));
    differs.max_by_key(|d| d.2.0.abs()).filter(|d| d.2 != Nanos::ZERO)
}
