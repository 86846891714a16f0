//! Spans of OpenTelemetry, as OTLP/JSON: a document for each batch, which is a line of a file or the body of
//! a POST to a collector. A connection is a span; its setup, its exchanges and the gaps between them are
//! spans within, and their causes within those. Times are those of the wall clock.

mod ids;
mod values;

use crate::Capture;
use ids::Ids;
use serde::Serialize;
use std::net::IpAddr;
use tcpwhy_analysis::{Analysis, Budget, Connection, Ended, Exchange, Part, Span as Stretch, SpanId};
use tcpwhy_base::Nanos;
use values::{Attribute, Attributes};

/// Spans in a batch: about half a megabyte; collectors take 4 MiB or more.
const BATCH: usize = 512;

/// Gives `each` the batches, as JSON without line ends, and the number of their spans; until one fails.
pub fn batches<E: From<serde_json::Error>>(
    analysis: &Analysis,
    capture: &Capture,
    mut each: impl FnMut(&[u8], usize) -> Result<(), E>,
) -> Result<(), E> {
    let mut batch = Batch { spans: Vec::with_capacity(BATCH), bytes: Vec::new(), capture, each: &mut each };
    for c in &analysis.connections {
        let ids = Ids::new(c);
        batch.push(connection(c, ids))?;
        for (part, spans) in c.parts() {
            let (Some(first), Some(last)) = (spans.first(), spans.last()) else { continue };
            let whole = part_of(c, part, (first.start, last.end), ids);
            let (trace, parent) = (whole.trace_id.clone(), whole.span_id.clone());
            batch.push(whole)?;
            for (span, n) in spans.iter().zip(1..) {
                let id = SpanId { connection: c.id, part, number: n };
                let mut shown = cause(span, id, ids);
                shown.trace_id.clone_from(&trace);
                shown.parent_span_id.clone_from(&parent);
                batch.push(shown)?;
            }
        }
    }
    batch.flush()
}

/// Spans on their way.
struct Batch<'a, F> {
    spans: Vec<Span>,
    bytes: Vec<u8>,
    capture: &'a Capture,
    each: &'a mut F,
}

impl<E: From<serde_json::Error>, F: FnMut(&[u8], usize) -> Result<(), E>> Batch<'_, F> {
    fn push(&mut self, span: Span) -> Result<(), E> {
        self.spans.push(span);
        if self.spans.len() < BATCH { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> Result<(), E> {
        if self.spans.is_empty() {
            return Ok(());
        }
        let document = Traces {
            resource_spans: [ResourceSpans {
                resource: Resource { attributes: resource(self.capture) },
                scope_spans: [ScopeSpans {
                    scope: Scope { name: "tcpwhy", version: env!("CARGO_PKG_VERSION") },
                    spans: &self.spans,
                }],
            }],
        };
        self.bytes.clear();
        serde_json::to_writer(&mut self.bytes, &document)?;
        (self.each)(&self.bytes, self.spans.len())?;
        self.spans.clear();
        Ok(())
    }
}

/// `ExportTraceServiceRequest`, of opentelemetry-proto's trace service; a line of a file is the same.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Traces<'a> {
    resource_spans: [ResourceSpans<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceSpans<'a> {
    resource: Resource,
    scope_spans: [ScopeSpans<'a>; 1],
}

#[derive(Serialize)]
struct Resource {
    attributes: Vec<Attribute>,
}

#[derive(Serialize)]
struct ScopeSpans<'a> {
    scope: Scope,
    spans: &'a [Span],
}

#[derive(Serialize)]
struct Scope {
    name: &'static str,
    version: &'static str,
}

/// A span as OTLP/JSON has it: ids in hexadecimal, 64-bit integers as text, enumerators as numbers.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Span {
    trace_id: String,
    span_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    parent_span_id: String,
    name: String,
    kind: Kind,
    start_time_unix_nano: String,
    end_time_unix_nano: String,
    attributes: Vec<Attribute>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    links: Vec<Link>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
}

/// Another span that has to do with this one.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Link {
    trace_id: String,
    span_id: String,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// `SpanKind`.
#[derive(Clone, Copy)]
enum Kind {
    Internal = 1,
    Client = 3,
}

impl Serialize for Kind {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_u8(*self as u8)
    }
}

#[derive(Serialize)]
struct Status {
    /// `STATUS_CODE_ERROR`.
    code: u8,
    message: &'static str,
}

fn span(name: String, kind: Kind, (start, end): (Nanos, Nanos), attributes: Attributes) -> Span {
    Span {
        trace_id: String::new(),
        span_id: String::new(),
        parent_span_id: String::new(),
        name,
        kind,
        start_time_unix_nano: start.0.max(0).to_string(),
        end_time_unix_nano: end.0.max(0).to_string(),
        attributes: attributes.0,
        links: Vec::new(),
        status: None,
    }
}

fn resource(capture: &Capture) -> Vec<Attribute> {
    let mut all = Attributes::default();
    all.text("service.name", "tcpwhy");
    all.text("tcpwhy.capture", capture.files.join(" "));
    all.0
}

/// The whole connection; what of it is not kept in detail is summed in its attributes.
fn connection(c: &Connection, ids: Ids) -> Span {
    let mut all = addresses(c);
    all.int("tcpwhy.connection", c.id.into());
    all.text("tcpwhy.vantage", c.vantage.name());
    all.text("tcpwhy.closed", c.closed.name());
    if let Some(rtt) = c.path.rtt {
        all.int("tcpwhy.rtt_ns", rtt.0);
    }
    let mut summed = |what: &str, count: u64, budget: &Budget| {
        if count > 0 {
            all.int(format!("tcpwhy.{what}_omitted"), count as i64);
            for &(cause, time) in &budget.0 {
                all.int(format!("tcpwhy.{what}_omitted.{}_ns", cause.id()), time.0);
            }
        }
    };
    summed("exchanges", c.exchanges_omitted.count, &c.exchanges_omitted.budget);
    summed("gaps", c.gaps_omitted.count, &c.gaps_omitted.budget);
    let mut whole =
        span(format!("connection to {}", c.server), Kind::Internal, (c.start, c.end.max(c.start)), all);
    (whole.trace_id, whole.span_id) = (ids.trace(), ids.connection());
    whole
}

/// By the conventions for attributes of servers, clients and networks.
fn addresses(c: &Connection) -> Attributes {
    let mut all = Attributes::default();
    all.text("server.address", c.server.ip.to_string());
    all.int("server.port", c.server.port.into());
    all.text("client.address", c.client.ip.to_string());
    all.int("client.port", c.client.port.into());
    all.text("network.transport", "tcp");
    all.text("network.type", if matches!(c.server.ip, IpAddr::V4(_)) { "ipv4" } else { "ipv6" });
    if let Some(protocol) = c.protocol {
        let (name, version) = protocol.split_once('/').unwrap_or((protocol, ""));
        all.text("network.protocol.name", name);
        if !version.is_empty() {
            all.text("network.protocol.version", version);
        }
    }
    all
}

/// Setup, an exchange or a gap.
fn part_of(c: &Connection, part: Part, times: (Nanos, Nanos), ids: Ids) -> Span {
    let mut whole = match part {
        Part::Setup => {
            let mut all = addresses(c);
            all.text("tcpwhy.part", "setup");
            span("opening".into(), Kind::Internal, times, all)
        }
        Part::Gap(_) => {
            let mut all = Attributes::default();
            all.text("tcpwhy.part", "gap");
            span("between exchanges".into(), Kind::Internal, times, all)
        }
        Part::Exchange(id) => match c.exchanges.binary_search_by_key(&id, |x| x.id) {
            Ok(at) => exchange(c, &c.exchanges[at], times),
            Err(_) => span(format!("exchange {id}"), Kind::Client, times, addresses(c)),
        },
    };
    (whole.trace_id, whole.span_id, whole.parent_span_id) = (ids.trace(), ids.part(part), ids.connection());
    if let Part::Exchange(id) = part
        && let Ok(at) = c.exchanges.binary_search_by_key(&id, |x| x.id)
        && let Some(parent) = c.exchanges[at].named.as_ref().and_then(|n| n.parent)
    {
        // In the application's own trace; where it stands in the connection is said by a link.
        whole.links = vec![Link { trace_id: ids.trace(), span_id: ids.connection() }];
        (whole.trace_id, whole.parent_span_id) = (hex(&parent.trace), hex(&parent.span));
    }
    whole
}

fn exchange(c: &Connection, x: &Exchange, times: (Nanos, Nanos)) -> Span {
    let mut all = addresses(c);
    all.text("tcpwhy.part", "exchange");
    all.int("tcpwhy.connection", c.id.into());
    all.int("tcpwhy.exchange", x.id.into());
    all.int("tcpwhy.request_bytes", x.bytes[0] as i64);
    all.int("tcpwhy.response_bytes", x.bytes[1] as i64);
    all.text("tcpwhy.ended", x.ended.name());
    let name = x.name().map_or_else(|| format!("exchange {}", x.id), str::to_owned);
    if let Some((method, path)) = x.name().and_then(http) {
        all.text("http.request.method", method);
        all.text("url.path", path);
    }
    if let Some(status) = x.named.as_ref().and_then(|n| n.status) {
        all.int("http.response.status_code", status.into());
    }
    let mut whole = span(name, Kind::Client, times, all);
    whole.status = match x.ended {
        Ended::Rst => Some(Status { code: 2, message: "reset" }),
        Ended::Silent => Some(Status { code: 2, message: "no answer" }),
        Ended::Complete | Ended::CaptureEnd => None,
    };
    whole
}

/// Method and path of what is called so; other protocols have no path.
fn http(name: &str) -> Option<(&str, &str)> {
    name.split_once(' ').filter(|(method, path)| *method != "TLS" && path.starts_with('/'))
}

/// A stretch of time with one cause.
fn cause(s: &Stretch, id: SpanId, ids: Ids) -> Span {
    let mut all = Attributes::default();
    all.text("tcpwhy.cause", s.cause.id());
    if let Some(side) = s.side {
        all.text("tcpwhy.side", side.name());
    }
    all.text("tcpwhy.span", id.to_string());
    all.text("tcpwhy.why", s.facts.sentence());
    all.double("tcpwhy.confidence", (f64::from(s.confidence) * 1e3).round() / 1e3);
    all.ints("tcpwhy.frames", s.frames.keys());
    let mut shown = span(s.cause.id().into(), Kind::Internal, (s.start, s.end), all);
    shown.span_id = ids.span(id);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use serde_json::Value;
    use std::collections::HashSet;

    fn spans(analysis: &Analysis) -> Vec<Value> {
        let mut all = Vec::new();
        let told = batches::<serde_json::Error>(analysis, &Capture::default(), |bytes, n| {
            let document: Value = serde_json::from_slice(bytes)?;
            let spans = document["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().cloned();
            let spans = spans.expect("a list");
            assert_eq!(spans.len(), n);
            assert!(!bytes.contains(&b'\n'));
            all.extend(spans);
            Ok(())
        });
        told.expect("memory can be written");
        all
    }

    #[test]
    fn a_tree_of_spans() {
        let analysis = Analysis { connections: vec![Box::new(sample::connection())], ..Analysis::default() };
        let all = spans(&analysis);
        let ids: HashSet<_> = all.iter().filter_map(|s| s["spanId"].as_str()).collect();
        assert_eq!(ids.len(), all.len(), "each has its own id");
        assert!(all.iter().all(|s| s["traceId"].as_str().is_some_and(|t| t.len() == 32)));
        let roots = all.iter().filter(|s| s.get("parentSpanId").is_none()).count();
        assert_eq!(roots, 1);
        assert!(all.iter().filter_map(|s| s["parentSpanId"].as_str()).all(|p| ids.contains(p)));
        let nagle = all.iter().find(|s| s["name"] == "nagle_delayed_ack").expect("it is there");
        assert_eq!(nagle["startTimeUnixNano"], (sample::START + Nanos::millis(10)).0.to_string());
        assert_eq!(nagle["kind"], 1);
    }

    #[test]
    fn many_spans_are_many_batches() {
        let mut c = sample::connection();
        let (first, n) = (c.exchanges[0].clone(), 600);
        c.exchanges = vec![first; n];
        c.exchanges.iter_mut().zip(1..).for_each(|(x, id)| x.id = id);
        let analysis = Analysis { connections: vec![Box::new(c)], ..Analysis::default() };
        let mut sizes = Vec::new();
        let told = batches::<serde_json::Error>(&analysis, &Capture::default(), |_, n| {
            sizes.push(n);
            Ok(())
        });
        told.expect("memory can be written");
        assert!(sizes.len() > 2 && sizes.iter().all(|&n| n <= BATCH), "{sizes:?}");
    }
}
