//! What must hold of an answer with all detail, whatever the capture: time and bytes are accounted for to the
//! last. Held by the properties here and by the fuzz target `pipeline`.

use tcpwhy_analysis::{Analysis, Budget, Connection, Ended, Exchange, Facts, Span};
use tcpwhy_base::{Cause, Nanos};

/// Says what is wrong unless this holds.
macro_rules! hold {
    ($holds:expr, $($what:tt)+) => {
        let holds: bool = $holds;
        if !holds {
            return Err(format!($($what)+));
        }
    };
}

/// Everything that must hold; or a sentence on the first that does not.
pub(crate) fn accounted_for(analysis: &Analysis) -> Result<(), String> {
    let (mut all, mut gaps, mut exchanges) = (Budget::default(), Budget::default(), 0);
    for (c, id) in analysis.connections.iter().zip(1..) {
        hold!(c.id == id, "connection {} stands at place {id}", c.id);
        connection(c).map_err(|why| format!("connection {id}: {why}"))?;
        all.add_all(&c.budget);
        gaps.add_all(&c.gap_budget);
        exchanges += c.exchanges.len() as u64;
    }
    let totals = &analysis.totals;
    hold!(totals.budget == all, "the total {:?} is not the sum {all:?}", totals.budget);
    hold!(totals.gap_budget == gaps, "the total of gaps {:?} is not the sum {gaps:?}", totals.gap_budget);
    hold!(totals.exchanges == exchanges, "{} exchanges in all, {exchanges} listed", totals.exchanges);
    let connections = analysis.connections.len() as u64;
    hold!(
        totals.connections == connections,
        "{} connections in all, {connections} listed",
        totals.connections
    );
    Ok(())
}

fn connection(c: &Connection) -> Result<(), String> {
    let mut parts: Vec<(Nanos, Nanos)> = Vec::new();
    if let Some(setup) = &c.setup {
        tile(setup.start, setup.end, &setup.spans).map_err(|why| format!("setup: {why}"))?;
        parts.push((setup.start, setup.end));
    }
    for (x, id) in c.exchanges.iter().zip(1..) {
        hold!(x.id == id, "exchange {} stands at place {id}", x.id);
        tile(x.start, x.end, &x.spans).map_err(|why| format!("exchange {id}: {why}"))?;
        trips(x).map_err(|why| format!("exchange {id}: {why}"))?;
        parts.push((x.start, x.end));
    }
    for gap in &c.gaps {
        hold!(gap.end > gap.start, "a gap from {:?} to {:?}", gap.start, gap.end);
        tile(gap.start, gap.end, &gap.spans).map_err(|why| format!("gap: {why}"))?;
        parts.push((gap.start, gap.end));
    }
    parts.sort_unstable();
    let mut at = c.start;
    for &(start, end) in &parts {
        hold!(
            start == at,
            "a hole or an overlap at {at:?} between parts {parts:?} of {:?}",
            (c.start, c.end)
        );
        at = end;
    }
    hold!(at == c.end, "the parts end at {at:?}: {parts:?} of {:?}", (c.start, c.end));
    sums(c)
}

/// `spans` cover `start..end` one after the other.
fn tile(start: Nanos, end: Nanos, spans: &[Span]) -> Result<(), String> {
    let mut at = start;
    for span in spans {
        hold!(span.start == at, "a span does not begin at {at:?}: {span:?}");
        hold!(span.end > span.start, "a span takes no time: {span:?}");
        hold!((0.0..=1.0).contains(&span.confidence), "an impossible confidence: {span:?}");
        hold!(span.facts == Facts::None || !span.facts.sentence().is_empty(), "nothing is said: {span:?}");
        meaning(span)?;
        at = span.end;
    }
    hold!(at == end, "spans end at {at:?} and not at {end:?}");
    Ok(())
}

/// What no honest answer breaks, as far as a span shows it (`scripts/meaning.py` asks the same of the JSON
/// and the packets): no bandwidth of nothing, no more than the bytes take and a segment; less in flight than
/// before, where something made it less; no span longer than its wait; no alternative to itself.
fn meaning(span: &Span) -> Result<(), String> {
    let time = span.duration().0 as f64;
    let one = span.folded == 1;
    match span.facts {
        Facts::Bytes { bytes, bps } | Facts::Stood { bytes, bps, .. } if span.cause == Cause::Bandwidth => {
            hold!(bytes > 0, "nothing kept the link busy: {span:?}");
            let most = bps.map_or(f64::MAX, |bps| f64::from(bytes.saturating_add(1_514)) * 8e9 / bps * 1.02);
            hold!(!one || time <= most + 1.0, "longer than its bytes take: {span:?}");
        }
        Facts::Flight { flight, before, .. } => {
            hold!(before == 0 || flight < before, "as much in flight as before: {span:?}");
            let limited =
                matches!(span.cause, Cause::SlowStart | Cause::IdleRestart | Cause::CongestionWindow);
            hold!(!limited || flight > 0, "nothing in flight, and a window that was full: {span:?}");
        }
        Facts::Wait { wait, .. } | Facts::Probe { wait, .. } | Facts::Think { seen: wait, .. } => {
            hold!(!one || span.duration() <= wait, "longer than its wait: {span:?}");
        }
        _ => {}
    }
    for (other, _) in span.alternatives.iter().flatten() {
        hold!(*other != span.cause, "an alternative to itself: {span:?}");
    }
    hold!(span.confidence >= 0.5, "said without believing it: {span:?}");
    Ok(())
}

/// The way takes no more than a base round trip for each turn and one more (rule 45), with what two hosts
/// need to wake up; the spans say which round trip was known. What segments of a burst lie apart is not
/// counted.
fn trips(x: &Exchange) -> Result<(), String> {
    let known = |s: &&Span| s.cause == Cause::PathDelay && s.folded == 1;
    // Time stamps of made-up captures lie centuries apart.
    let (mut time, mut most, mut spans) = (0_i128, 0_i128, 0);
    for span in x.spans.iter().filter(known) {
        let Facts::RoundTrip { rtt } = span.facts else { continue };
        if rtt == Nanos::ZERO {
            continue; // not known
        }
        time += i128::from(span.duration().0);
        most = i128::from(rtt.0).max(most);
        spans += 1;
    }
    // What is unfinished may have been on its way when it ended.
    let turns = i128::from(x.turns) + 1 + i128::from(x.ended != Ended::Complete);
    let each = most + most / 32 + 200_000;
    hold!(time <= turns * each + spans * 50_000, "{time} ns of path_delay in {turns} trips of {most} ns");
    Ok(())
}

/// Time by cause of these spans.
pub(crate) fn budget<'a>(spans: impl Iterator<Item = &'a Span>) -> Budget {
    let mut sum = Budget::default();
    spans.for_each(|s| sum.add(s.cause, s.duration()));
    sum
}

/// Budgets are the sums of the spans, bytes those of the parts.
fn sums(c: &Connection) -> Result<(), String> {
    let setup = c.setup.iter().flat_map(|s| &s.spans);
    let spent = budget(setup.chain(c.exchanges.iter().flat_map(|x| &x.spans)));
    hold!(spent == c.budget, "the budget {:?} is not the sum {spent:?}", c.budget);
    let spent = budget(c.gaps.iter().flat_map(|g| &g.spans));
    hold!(spent == c.gap_budget, "the budget of gaps {:?} is not the sum {spent:?}", c.gap_budget);
    for side in 0..2 {
        let setup = c.setup.as_ref().map_or(0, |s| s.bytes[side]);
        let exchanges: u64 = c.exchanges.iter().map(|x| x.bytes[side]).sum();
        let sum = setup + exchanges + c.exchanges_omitted.bytes[side];
        hold!(sum == c.bytes[side], "side {side} has {} bytes, its parts {sum}", c.bytes[side]);
    }
    let omitted = c.exchanges_omitted.count + c.gaps_omitted.count;
    hold!(omitted == 0, "{omitted} parts were left out of all detail");
    Ok(())
}
