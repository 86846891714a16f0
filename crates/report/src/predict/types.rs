use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use tcpwhy_base::{CAUSES, Cause, Class, Side};

/// The version of the contract.
pub const SCHEMA: u32 = 1;

/// A cause by its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CauseName(pub Cause);

impl Serialize for CauseName {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.0.id())
    }
}

impl JsonSchema for CauseName {
    fn schema_name() -> Cow<'static, str> {
        "Cause".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let ids: Vec<&str> = CAUSES.iter().map(|c| c.id).collect();
        json_schema!({ "type": "string", "enum": ids })
    }
}

/// A side by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SideName(pub Side);

impl Serialize for SideName {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.0.name())
    }
}

impl JsonSchema for SideName {
    fn schema_name() -> Cow<'static, str> {
        "Side".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": ["client", "server", "network"] })
    }
}

/// The whole answer. Times are integer nanoseconds.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Prediction {
    /// Always `tcpwhy`.
    pub tool: &'static str,
    /// Of the program.
    pub version: &'static str,
    /// Of this contract.
    pub schema: u32,
    /// What was asked, as it was understood.
    pub settings: Settings,
    /// What was not said and had to be assumed, in sentences.
    pub assumed: Vec<String>,
    /// From the first `connect` (on a connection in use: from the first write) to the last byte read. Where
    /// `complete` is false, how far the run came: no result, as it takes longer or never ends.
    pub total_ns: i64,
    /// How runs with other chances spread, where one number would mislead: losses are drawn, or chance in the
    /// hosts decides between several patterns. `total_ns` and all below are of a typical run.
    pub distribution: Option<Distribution>,
    /// Latency of each request as the client's application sees it, the first thousand.
    pub latencies_ns: Vec<i64>,
    /// Everything was transferred; else the run met its limit, or a connection was given up: the rest is not
    /// known, and no change is compared.
    pub complete: bool,
    /// Not complete since a connection was given up, for the text.
    #[serde(skip)]
    #[schemars(skip)]
    pub given_up: bool,
    /// What was measured in a capture, and how near the model comes.
    pub observed: Option<Observed>,
    /// Who waits for whom, in order.
    pub diagram: Vec<Step>,
    /// Steps that `diagram` leaves out in the middle.
    pub diagram_omitted: u64,
    /// Where the time goes, seen at the client; most first.
    pub budget: Vec<Share>,
    /// Changes that help, each run again by itself, best first.
    pub fixes: Vec<Fix>,
    /// The best of them together.
    pub together: Option<Together>,
    /// Changes that are often advised and do not help here, or do harm (`saves_ns` below zero).
    pub no_help: Vec<Fix>,
    /// A faster link or a shorter distance, for comparison.
    pub comparisons: Vec<Fix>,
}

/// What was asked.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Settings {
    /// Base round trip.
    pub rtt_ns: i64,
    /// Rate of the bottleneck to the server, bits a second; null: none.
    pub up_bps: Option<u64>,
    /// And from it.
    pub down_bps: Option<u64>,
    /// Bytes that wait before the bottleneck.
    pub queue_bytes: Option<u64>,
    /// Largest IP packet.
    pub mtu: u64,
    /// Bytes of the client's writes of one request.
    pub request_writes: Vec<u64>,
    /// Bytes of the server's writes of one response.
    pub response_writes: Vec<u64>,
    /// The server's work on each request.
    pub server_time_ns: i64,
    /// How many requests.
    pub requests: u32,
    /// `new`, `warm`, `idle`, or `capture` where it was taken from one.
    pub connection: String,
    /// Profiles of client and server.
    pub profiles: [String; 2],
    /// TCP_NODELAY at client and server.
    pub nodelay: [bool; 2],
    /// Sizes of request and response as they were typed, for the text.
    #[serde(skip)]
    #[schemars(skip)]
    pub typed: [Option<String>; 2],
}

/// Many runs of the same question.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Distribution {
    /// How many.
    pub runs: u32,
    /// Half of them took no longer.
    pub median_ns: i64,
    /// 95 of 100 took no longer.
    pub p95_ns: i64,
    /// The shortest.
    pub least_ns: i64,
    /// The longest.
    pub most_ns: i64,
    /// Losses, copies or delays were drawn; else only the moments of ticks and wake-ups in the hosts.
    pub losses_drawn: bool,
    /// What they fall into, the most frequent first (at most four); empty where losses were drawn.
    pub patterns: Vec<Pattern>,
    /// What the requests of all runs fall into, each held against the same request of the other runs: the
    /// usual pattern first, then at most three others. Empty where all go as usual, where there is one, and
    /// where losses were drawn.
    pub requests: Vec<Pattern>,
}

/// Runs, or requests, that take nearly the same time.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Pattern {
    /// How many.
    pub count: u64,
    /// Of all.
    pub share: f64,
    /// The one in their middle.
    pub median_ns: i64,
    /// The cause whose time differs most from the most frequent pattern; null in that one and where nothing differs.
    pub cause: Option<CauseName>,
    /// Whose.
    pub side: Option<SideName>,
    /// By how much: below zero, it takes less here.
    pub more_ns: i64,
}

/// The model against a capture.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Observed {
    /// What the capture shows of these requests and of the setup, without the pauses between requests.
    pub total_ns: i64,
    /// What the model takes for the same, as it passes where the capture was taken; `total_ns` of the whole
    /// answer has the pauses, too.
    pub modelled_ns: i64,
    /// Modelled less observed, as a share of observed.
    pub error: f64,
    /// The error is at most 15 %; else nothing is said of changes.
    pub trustworthy: bool,
}

/// Something that one side sends or does.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Step {
    /// It begins.
    pub start_ns: i64,
    /// It has left, or is done.
    pub end_ns: i64,
    /// It has arrived; null for work, and for what was lost.
    pub arrived_ns: Option<i64>,
    /// Who.
    pub side: SideName,
    /// Segments; 0 for work.
    pub segments: u32,
    /// Payload bytes.
    pub bytes: u64,
    /// What it had waited for.
    pub cause: Option<CauseName>,
    /// How long.
    pub waited_ns: i64,
    /// In words.
    pub what: String,
}

/// A part of the time.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Share {
    /// Why.
    pub cause: CauseName,
    /// `I`, `A`, `T` or `U`.
    pub class: &'static str,
    /// A few words.
    pub title: &'static str,
    /// Who could change it.
    pub side: Option<SideName>,
    /// How long.
    pub time_ns: i64,
    /// Of the total; where the run is not complete, of what was finished.
    pub share: f64,
}

impl Share {
    /// A row of the budget.
    pub fn new(cause: Cause, side: Option<Side>, time: i64, total: i64) -> Share {
        Share {
            cause: CauseName(cause),
            class: cause.class().letter(),
            title: cause.info().title,
            side: side.map(SideName),
            time_ns: time,
            share: time as f64 / total.max(1) as f64,
        }
    }

    /// Its class.
    pub fn class(&self) -> Class {
        self.cause.0.class()
    }
}

/// A change and what it does.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Fix {
    /// Stable id of the table of fixes.
    pub id: &'static str,
    /// `client`, `server`, `both` or `path`.
    #[serde(rename = "where")]
    pub place: &'static str,
    /// With figures.
    pub what: String,
    /// Exact settings or code changes.
    pub how: Vec<String>,
    /// Time with it.
    pub predicted_ns: i64,
    /// Time without it less time with it; below zero it harms.
    pub saves_ns: i64,
}

/// Several changes at once.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Together {
    /// Their places in `fixes`.
    pub fixes: Vec<usize>,
    /// Time with all of them.
    pub predicted_ns: i64,
    /// Time without them less that.
    pub saves_ns: i64,
}

/// The JSON Schema of [`Prediction`].
pub fn schema() -> String {
    crate::schema::text::<Prediction>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_schema_is_the_generated_one() {
        crate::schema::tests::is_committed("predict-1.json", &schema());
    }
}
