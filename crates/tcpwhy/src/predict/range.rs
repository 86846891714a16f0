//! `--sweep`: which settings vary, and from where to where.

use crate::units;
use crate::units::quantity;
use tcpwhy_base::Nanos;
use tcpwhy_report::bytes;

/// Steps of a range, where nothing is said.
const STEPS: usize = 10;
/// Predictions of a sweep.
const MOST: usize = 100_000;

/// What may vary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
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

/// One or two ranges.
#[derive(Clone, Debug)]
pub(crate) struct Ranges(pub(crate) Vec<Range>);

/// A setting and its values.
#[derive(Clone, Debug)]
pub(crate) struct Range {
    pub(super) name: &'static str,
    pub(super) key: Key,
    pub(super) values: Vec<u64>,
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

/// A value as the axis names it.
pub(super) fn label(key: Key, v: u64) -> String {
    match key {
        Key::Rtt | Key::ServerTime => Nanos(v as i64).to_string(),
        Key::Bandwidth => format!("{} Mbit/s", (v as f64 / 1e4).round() / 100.0),
        Key::Queue | Key::Request | Key::Response | Key::Sndbuf | Key::Rcvbuf | Key::WriteChunk => bytes(v),
        Key::Initcwnd | Key::Mtu | Key::Requests => v.to_string(),
        Key::Loss => format!("{} %", v as f64 / 1e4),
    }
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
