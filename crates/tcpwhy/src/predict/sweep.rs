//! One or two settings that vary.

use super::args::{Metric, Predict, Ranges};
use super::quantity::{self, Understood};
use super::{parallel, question};
use crate::units;
use tcpwhy_base::Nanos;
use tcpwhy_model::{Answer, Question};
use tcpwhy_report::bytes;
use tcpwhy_report::predict::{Axis, CauseName, Metric as Shown, Point, Sweep};

/// Steps of a range, where nothing is said.
const STEPS: usize = 10;
/// Predictions of a sweep.
const MOST: usize = 100_000;

/// What may vary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Rtt,
    ServerTime,
    Bandwidth,
    Queue,
    Request,
    Response,
    Sndbuf,
    Rcvbuf,
    WriteChunk,
    Initcwnd,
    Mtu,
    Requests,
    Loss,
}

const KEYS: [(&str, Key); 13] = [
    ("rtt", Key::Rtt),
    ("server-time", Key::ServerTime),
    ("bandwidth", Key::Bandwidth),
    ("queue", Key::Queue),
    ("request", Key::Request),
    ("response", Key::Response),
    ("sndbuf", Key::Sndbuf),
    ("rcvbuf", Key::Rcvbuf),
    ("write-chunk", Key::WriteChunk),
    ("initcwnd", Key::Initcwnd),
    ("mtu", Key::Mtu),
    ("requests", Key::Requests),
    ("loss", Key::Loss),
];

/// A setting and its values.
#[derive(Clone, Debug)]
pub(crate) struct Range {
    name: &'static str,
    key: Key,
    values: Vec<u64>,
}

impl Range {
    /// `rtt=1ms..300ms,response=1KiB..1MiB:20`.
    pub(crate) fn parse_all(text: &str) -> Result<Ranges, String> {
        let ranges: Vec<Range> = text.split(',').map(Range::parse).collect::<Result<_, _>>()?;
        if ranges.len() > 2 {
            return Err("one or two settings can vary".into());
        }
        if let [a, b] = ranges.as_slice()
            && a.key == b.key
        {
            return Err(format!("{} varies twice", a.name));
        }
        let n: usize = ranges.iter().map(|r| r.values.len()).product();
        if n > MOST {
            return Err(format!("{n} predictions: up to {MOST} are made at once"));
        }
        Ok(Ranges(ranges))
    }

    fn parse(text: &str) -> Result<Range, String> {
        let help = || format!("{text:?}: write it as rtt=1ms..300ms or response=1KiB..1MiB:20");
        let (name, range) = text.split_once('=').ok_or_else(help)?;
        let &(name, key) = KEYS.iter().find(|k| k.0 == name).ok_or_else(|| {
            let names: Vec<&str> = KEYS.iter().map(|k| k.0).collect();
            format!("{name:?} cannot vary; {} can", names.join(", "))
        })?;
        let (range, steps) = match range.rsplit_once(':') {
            Some((range, n)) => (range, n.parse().map_err(|_| help())?),
            None => (range, STEPS),
        };
        let (from, to) = range.split_once("..").ok_or_else(help)?;
        let (from, to) = (value(key, from)?, value(key, to)?);
        if steps < 2 || from >= to {
            return Err(format!("{text:?}: from the smaller to the larger, in two steps or more"));
        }
        if steps > MOST {
            return Err(format!("{steps} steps: up to {MOST}"));
        }
        // Even steps on a logarithmic scale, unless the range begins at zero.
        let values = (0..steps).map(|i| {
            let part = i as f64 / (steps - 1) as f64;
            let (a, b) = (from as f64, to as f64);
            let v = if from == 0 { b * part } else { a * (b / a).powf(part) };
            v.round() as u64
        });
        let mut values: Vec<u64> = values.collect();
        values.dedup();
        Ok(Range { name, key, values })
    }
}

fn value(key: Key, text: &str) -> Result<u64, String> {
    let number = || text.parse::<u64>().map_err(|_| format!("{text:?} is no whole number"));
    Ok(match key {
        Key::Rtt | Key::ServerTime => units::duration(text)?.0.max(0) as u64,
        Key::Bandwidth => quantity::rate(text)?.value,
        Key::Queue | Key::Request | Key::Response | Key::Sndbuf | Key::Rcvbuf | Key::WriteChunk => {
            quantity::size(text)?.value
        }
        Key::Initcwnd | Key::Requests => number()?.min(u64::from(u32::MAX)),
        Key::Mtu => number()?,
        Key::Loss => u64::from(quantity::share_ppm(text)?),
    })
}

fn label(key: Key, v: u64) -> String {
    match key {
        Key::Rtt | Key::ServerTime => Nanos(v as i64).to_string(),
        Key::Bandwidth => format!("{} Mbit/s", (v as f64 / 1e4).round() / 100.0),
        Key::Queue | Key::Request | Key::Response | Key::Sndbuf | Key::Rcvbuf | Key::WriteChunk => bytes(v),
        Key::Initcwnd | Key::Mtu | Key::Requests => v.to_string(),
        Key::Loss => format!("{} %", v as f64 / 1e4),
    }
}

fn set(a: &mut Predict, key: Key, v: u64) {
    let plain = || Some(Understood { value: v, note: None });
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
    let counted = |p: &&tcpwhy_model::Passage| p.sent >= answer.start && !p.packet.repeat;
    let bytes = answer.outcome.passages.iter().filter(counted).map(|p| u64::from(p.packet.len)).sum();
    Point { total: Some(answer.total), bytes, cause }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_even_on_a_logarithmic_scale() {
        let r = Range::parse_all("rtt=1ms..100ms:3,response=1KiB..4KiB:3").unwrap().0;
        assert_eq!(r[0].values, [1_000_000, 10_000_000, 100_000_000]);
        assert_eq!(r[1].values, [1024, 2048, 4096]);
        assert_eq!(Range::parse_all("loss=0..0.1:3").unwrap().0[0].values, [0, 50_000, 100_000]);
        for wrong in [
            "rtt",
            "rtt=1ms",
            "rtt=5ms..1ms",
            "rtt=1ms..5ms:1",
            "x=1..2",
            "rtt=1..2",
            "rtt=1ms..2ms,rtt=1ms..3ms",
            "mtu=68..1500:1000000",
        ] {
            assert!(Range::parse_all(wrong).is_err(), "{wrong}");
        }
    }
}
