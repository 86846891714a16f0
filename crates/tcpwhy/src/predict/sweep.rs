//! One or two settings that vary.

use super::args::{Metric, Predict};
use super::range::{Key, Ranges, label};
use super::{parallel, question};
use crate::units::quantity::Understood;
use tcpwhy_base::Nanos;
use tcpwhy_library::model::{Answer, Question};
use tcpwhy_report::predict::{Axis, CauseName, Metric as Shown, Point, Sweep};

fn set(a: &mut Predict, key: Key, v: u64) {
    let plain = || Some(Understood { value: v, note: None, typed: String::new() });
    match key {
        Key::Rtt => (a.rtt, a.distance) = (Some(Nanos(v as i64)), None),
        Key::ServerTime => a.server_time = Some(Nanos(v as i64)),
        Key::Bandwidth => a.bandwidth = plain(),
        Key::Queue => a.queue = plain(),
        Key::Request => a.request = plain(),
        Key::Response => a.response = plain(),
        Key::Sndbuf => a.sndbuf = plain(),
        Key::Rcvbuf => a.rcvbuf = plain(),
        Key::WriteChunk => a.write_chunk = plain(),
        Key::Initcwnd => a.initcwnd = Some(v as u32),
        Key::Mtu => a.mtu = v,
        Key::Requests => a.requests = v as u32,
        Key::Loss => a.loss = Some(v as u32),
    }
}

/// Asks the model for every point; on all cores.
pub(crate) fn run(a: &Predict, ranges: &Ranges) -> Result<Sweep, String> {
    let axes = &ranges.0;
    let inner = axes.get(1).map_or(1, |r| r.values.len());
    let n = axes.iter().map(|r| r.values.len()).product();
    let args = |i: usize| {
        let mut one = a.clone();
        for (range, at) in axes.iter().zip([i / inner, i % inner]) {
            if let Some(&v) = range.values.get(at) {
                set(&mut one, range.key, v);
            }
        }
        one
    };
    // What is wrong everywhere is said once, before anything runs.
    question::from_args(&args(0))
        .map(drop)
        .or_else(|e| question::from_args(&args(n - 1)).map(drop).map_err(|_| e))?;
    let points = parallel::map(n, |i| point(&args(i)));
    Ok(Sweep {
        axes: axes
            .iter()
            .map(|r| Axis {
                name: r.name.into(),
                labels: r.values.iter().map(|&v| label(r.key, v)).collect(),
                values: r.values.iter().map(|&v| v as f64).collect(),
            })
            .collect(),
        points,
        metric: match a.metric {
            Metric::Time => Shown::Time,
            Metric::Throughput => Shown::Throughput,
        },
    })
}

/// Draws of losses at each point: their median is shown.
const DRAWS: u32 = 9;

/// The answer at a point, the median one where losses are drawn.
fn median(question: &Question) -> Option<Answer> {
    if !question.is_random() {
        return question.ask().ok().filter(|x| x.complete);
    }
    let draws = (0..DRAWS).filter_map(|n| question.varied(n).ask().ok().filter(|x| x.complete));
    let mut draws: Vec<Answer> = draws.collect();
    draws.sort_by_key(|x| x.total);
    let middle = draws.len() / 2;
    (!draws.is_empty()).then(|| draws.swap_remove(middle))
}

fn point(a: &Predict) -> Point {
    let answered = question::from_args(a).ok().and_then(|asked| {
        let answer = median(&asked.question)?;
        let cause = asked.question.budget(&answer).first().map(|b| CauseName(b.0));
        Some((answer, cause))
    });
    let Some((answer, cause)) = answered else { return Point { total: None, bytes: 0, cause: None } };
    let counted = |p: &&tcpwhy_library::model::Passage| p.sent >= answer.start && !p.packet.repeat;
    let bytes = answer.outcome.passages.iter().filter(counted).map(|p| u64::from(p.packet.len)).sum();
    Point { total: Some(answer.total), bytes, cause }
}
