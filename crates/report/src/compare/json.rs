//! The contract of `tcpwhy compare --json`, schema 1: docs/schema/compare-1.json.

use super::verdict;
use crate::json::{ClassLetter, Shown, SpanCause};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};
use std::net::IpAddr;
use tcpwhy_analysis::{self as a, ComparedSide, Comparison, Shape};

/// The version of the contract.
const SCHEMA: u32 = 1;

/// Two captures side by side. Times are integer nanoseconds.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "tcpwhy compare, schema 1")]
struct Document<'a> {
    /// Always `tcpwhy`.
    tool: &'static str,
    /// Of the program.
    version: &'static str,
    /// Version of this contract.
    schema: u32,
    /// The capture from before, as it was named.
    before: &'a str,
    /// The capture from after.
    after: &'a str,
    /// The answer in words.
    verdict: String,
    /// Durations of all exchanges that have a counterpart and lie within no other one. An exchange that
    /// waited for the opening of its connection has that with it, here, in `shapes` and in `causes`.
    exchanges: Change,
    /// Of the same; `difference_ns` is that of the means.
    mean: Change,
    /// How many of the same waited for the opening of their connection.
    openings: Numbers,
    /// Durations by server and size, the most time first; then those of servers that were asked while others
    /// answered.
    shapes: Vec<ShapeRow>,
    /// Time of each cause in an exchange, the largest change first. What a server waited for another one that
    /// it asked has the causes of those requests, where it shows which were made for which.
    causes: Vec<CauseRow>,
    /// Openings of connections to the servers that both captures have; null if one holds none.
    setup: Option<Change>,
    /// What all of it took, with a counterpart or not, but what lies within other exchanges.
    in_all: Both,
    /// Exchanges without a counterpart.
    unmatched: Unmatched,
}

/// Exchanges without a counterpart.
#[derive(Serialize, JsonSchema)]
struct Unmatched {
    before: u64,
    after: u64,
}

/// How many, before and after.
#[derive(Serialize, JsonSchema)]
struct Numbers {
    before: u64,
    after: u64,
}

/// Both sides.
#[derive(Serialize, JsonSchema)]
struct Both {
    before: InAll,
    after: InAll,
}

/// Sums over a capture.
#[derive(Serialize, JsonSchema)]
struct InAll {
    /// How many exchanges.
    exchanges: u64,
    /// How many openings of connections.
    openings: u64,
    /// Their time.
    time_ns: i64,
}

impl From<&a::InAll> for InAll {
    fn from(sums: &a::InAll) -> InAll {
        InAll { exchanges: sums.exchanges, openings: sums.openings, time_ns: sums.time.0 }
    }
}

/// Exchanges with one server, with requests and responses of about one size. Where none has a counterpart of
/// its size, all exchanges of a server are one row: both sizes are [0, 0] then.
#[derive(Serialize, JsonSchema)]
struct ShapeRow {
    /// The server's port.
    server_port: u16,
    /// Its address, where both captures know the server by it.
    server_ip: Option<Shown<IpAddr>>,
    /// What they are called, where that is known (`--names`): they are matched by it then, and both sizes are [0, 0].
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Box<str>>,
    /// Least and greatest number of bytes that count as this size: a power of two and what lies below the next.
    request_bytes: [u64; 2],
    /// The same of the response.
    response_bytes: [u64; 2],
    /// They were made while exchanges with another server were answered, which are rows as well.
    within: bool,
    #[serde(flatten)]
    change: Change,
}

/// A cause in each exchange; `difference_ns` is that of the means.
#[derive(Serialize, JsonSchema)]
struct CauseRow {
    /// Its id.
    cause: SpanCause,
    /// Its class.
    class: ClassLetter,
    #[serde(flatten)]
    change: Change,
}

/// A quantity before and after.
#[derive(Serialize, JsonSchema)]
struct Change {
    before: Side,
    after: Side,
    /// After less before: of the medians, under `causes` of the means.
    difference_ns: i64,
    /// The middle 95 % of what a bootstrap gives for the difference; of means wider by what Student's t is.
    interval_ns: [i64; 2],
    /// There are five exchanges or more on each side, and the interval does not hold zero.
    sure: bool,
    /// The middle 95 % of what a bootstrap gives for the difference of the 95th percentiles.
    p95_interval_ns: [i64; 2],
}

/// One capture's part.
#[derive(Serialize, JsonSchema)]
struct Side {
    /// How many exchanges.
    count: u64,
    median_ns: i64,
    /// 95th percentile.
    p95_ns: i64,
    mean_ns: i64,
}

impl From<&ComparedSide> for Side {
    fn from(s: &ComparedSide) -> Side {
        Side { count: s.count, median_ns: s.median.0, p95_ns: s.p95.0, mean_ns: s.mean.0 }
    }
}

impl From<&a::Change> for Change {
    fn from(c: &a::Change) -> Change {
        Change {
            before: (&c.before).into(),
            after: (&c.after).into(),
            difference_ns: c.difference.0,
            interval_ns: [c.interval.0.0, c.interval.1.0],
            sure: c.is_sure(),
            p95_interval_ns: [c.p95_interval.0.0, c.p95_interval.1.0],
        }
    }
}

impl ShapeRow {
    fn new((s, change): &(Shape, a::Change), within: bool) -> ShapeRow {
        let range = |bits: u32| match bits {
            0 => [0, 0],
            n => [1u64 << (n - 1).min(63), 1u64.checked_shl(n).map_or(u64::MAX, |v| v - 1)],
        };
        ShapeRow {
            server_port: s.port,
            server_ip: s.ip.map(Shown),
            name: s.name.clone(),
            request_bytes: range(s.request),
            response_bytes: range(s.response),
            within,
            change: change.into(),
        }
    }
}

/// Writes it for programs.
pub fn json(out: &mut impl Write, c: &Comparison, names: [&str; 2]) -> io::Result<()> {
    let cause = |(cause, change): &(tcpwhy_base::Cause, a::Change)| CauseRow {
        cause: SpanCause(*cause),
        class: ClassLetter(cause.class()),
        change: change.into(),
    };
    let shapes = c.shapes.iter().map(|row| ShapeRow::new(row, false));
    let shapes = shapes.chain(c.within.iter().map(|row| ShapeRow::new(row, true)));
    let document = Document {
        tool: "tcpwhy",
        version: env!("CARGO_PKG_VERSION"),
        schema: SCHEMA,
        before: names[0],
        after: names[1],
        verdict: verdict(c),
        exchanges: (&c.all).into(),
        mean: (&c.mean).into(),
        openings: Numbers { before: c.openings[0], after: c.openings[1] },
        shapes: shapes.collect(),
        causes: c.causes.iter().map(cause).collect(),
        setup: c.setup.as_ref().map(Into::into),
        in_all: Both { before: (&c.in_all[0]).into(), after: (&c.in_all[1]).into() },
        unmatched: Unmatched { before: c.unmatched[0], after: c.unmatched[1] },
    };
    serde_json::to_writer_pretty(&mut *out, &document)?;
    out.write_all(b"\n")
}

/// The JSON Schema of what [`json`] writes.
pub fn schema() -> String {
    crate::schema::text::<Document<'_>>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::tests::{faults, is_committed};
    use serde_json::Value;
    use tcpwhy_base::Nanos;

    /// The sample against itself, a fifth slower; there is a shape without an address too.
    fn document() -> Value {
        let before = crate::sample::analysis();
        let mut after = crate::sample::analysis();
        for x in after.connections.iter_mut().flat_map(|c| &mut c.exchanges) {
            x.end = x.end + Nanos((x.end - x.start).0 / 5);
        }
        let mut c = tcpwhy_analysis::compare_answers(&before, &after).unwrap();
        let mut nameless = c.shapes[0].clone();
        nameless.0.ip = None;
        c.shapes.push(nameless);
        let mut text = Vec::new();
        json(&mut text, &c, ["a.pcap", "b.pcap"]).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    #[test]
    fn the_committed_schema_is_the_generated_one() {
        is_committed("compare-1.json", &schema());
    }

    #[test]
    fn a_document_keeps_to_the_schema() {
        let d = document();
        let wrong = faults(&schema(), &d);
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert!(d["shapes"].as_array().unwrap().len() > 1 && !d["causes"].as_array().unwrap().is_empty());
        assert_eq!(d["exchanges"]["before"]["count"], 2);
        assert_eq!(d["shapes"][0]["request_bytes"], serde_json::json!([128, 255]));
    }

    #[test]
    fn the_check_finds_faults() {
        for break_it in [
            |d: &mut Value| d["causes"][0]["cause"] = "gremlins".into(),
            |d: &mut Value| d["causes"][0]["class"] = "X".into(),
            |d: &mut Value| d["shapes"][0]["median_ns"] = 1.into(),
            |d: &mut Value| d["exchanges"]["difference_ns"] = 1.5.into(),
            |d: &mut Value| drop(d.as_object_mut().unwrap().remove("unmatched")),
        ] {
            let mut document = document();
            break_it(&mut document);
            assert_eq!(faults(&schema(), &document).len(), 1);
        }
    }
}
