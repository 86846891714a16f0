//! What was found in a capture: causes with their cost, fixes, and what a replay of an example says.

use super::{Frames, InTurn, LinkFull};
use crate::facts::Facts;
use crate::rest::{Whose, at_rest};
use tcpwhy_base::{Cause, FixId, Kind, Nanos, Program, Side, Told};

/// What is said of whole connections is computed from options and sums; the spans it is made of may be wrong.
const WHOLE_CONNECTION: f64 = 0.8;

/// A fix as proposed for a finding.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Fix {
    /// Which.
    pub fix: FixId,
    /// Which end or place it is made at: `client`, `server`, `host` or `path`.
    pub place: &'static str,
    /// Exact settings, with the figures of this capture.
    pub how: Vec<String>,
    /// The program that the first of them (the second, where the first says when) is for, and what it was guessed by.
    pub guess: Option<(Program, Told)>,
    /// Parameters for programs.
    pub parameters: Vec<(&'static str, Parameter)>,
    /// What it saves: at most, or as replayed.
    pub saves: Option<Nanos>,
    /// Time of the replayed part with it.
    pub predicted: Option<Nanos>,
    /// `saves` comes from a replay that reproduced the present.
    pub replayed: bool,
}

/// A fix that is not offered, because the capture or a replay of it shows that it cannot help.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refuted {
    /// Which.
    pub fix: FixId,
    /// The rest of a sentence that begins with "because".
    pub because: String,
}

/// A value in [`Fix::parameters`].
#[derive(Clone, Debug, PartialEq)]
pub enum Parameter {
    /// A number.
    Number(i64),
    /// A text.
    Text(String),
}

/// The shortest and the longest of some spans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extremes {
    /// The shortest.
    pub shortest: Nanos,
    /// The longest.
    pub longest: Nanos,
}

at_rest! { Extremes { shortest, longest } }

impl Extremes {
    /// Of one span.
    pub const fn of(time: Nanos) -> Extremes {
        Extremes { shortest: time, longest: time }
    }
}

/// Where a span stands that shows a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Example {
    /// Id of its connection.
    pub connection: u32,
    /// Id of its exchange within that; 0: it stands in the setup or a gap.
    pub exchange: u32,
    /// Its frames.
    pub frames: Frames,
    /// When it begins.
    pub start: Nanos,
    /// When it ends.
    pub end: Nanos,
}

at_rest! { Example { connection as Whose, exchange, frames, start, end } }

/// A cause rolled up over spans.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// Which.
    pub cause: Cause,
    /// The side that holds most of its time.
    pub side: Option<Side>,
    /// Sum of its spans (or, for a finding without spans, its cost).
    pub lost: Nanos,
    /// Share of setup + exchanges + gaps before the last byte.
    pub share: f64,
    /// Share of the time of requests, 0 to 1: [`Finding::of_requests`] of
    /// [`Totals::requests`](crate::Totals::requests).
    pub share_of_requests: f64,
    /// The part of `lost` after the last byte of its connection, which nobody waited for.
    pub tail: Nanos,
    /// The part of `lost` in gaps before that: no request was on its way.
    pub idle: Nanos,
    /// The part of `lost` in which requests to another server ran, whose time is counted by its own causes.
    pub counted_elsewhere: Nanos,
    /// The part of its time in requests for which transfers side by side filled a link.
    pub link_full: Option<LinkFull>,
    /// A server whose requests waited for each other.
    pub in_turn: Option<InTurn>,
    /// How sure its spans are: the mean over their time, 0 to 1.
    pub confidence: f64,
    /// The part of its time in requests that was judged with little confidence.
    pub unsure: Nanos,
    /// How many spans.
    pub occurrences: u64,
    /// The shortest and the longest of them.
    pub range: Extremes,
    /// Connections that show it, the worst first, bounded.
    pub connections: Vec<u32>,
    /// How many connections show it.
    pub connection_count: u64,
    /// The span that shows it best.
    pub example: Example,
    /// The figures of the example.
    pub facts: Facts,
    /// What is said instead, where the finding is about the whole connection.
    pub text: Option<Box<str>>,
    /// Some spans' key frames, for people.
    pub evidence: Vec<Frames>,
    /// Exchanges that show it, by name, and how many of each; those first that hold most of its time. Only of
    /// those kept in detail, and only where somebody looked for names.
    pub names: Vec<(Box<str>, u64)>,
    /// There are exchanges that show it beside those: of other names, of none, or only summed.
    pub more_names: bool,
    /// What to do, best first (of a capture's findings only; for a connection's there is
    /// [`fixes_on`](crate::fixes_on)).
    pub fixes: Vec<Fix>,
    /// Fixes of the table that this capture refutes, each with why.
    pub refuted: Vec<Refuted>,
    /// Its example in the model, where that was asked for and possible.
    pub replay: Option<Box<Replay>>,
}

impl Finding {
    /// The longest of its spans within an exchange, or one about as long: the example is one where there is any.
    pub(crate) fn longest_in_request(&self) -> Nanos {
        if self.example.exchange > 0 { self.example.end - self.example.start } else { Nanos::ZERO }
    }

    /// The work of a server of which half or more may have been a cork of its own: which of the two does not
    /// show (rule 115).
    pub fn may_be_corked(&self) -> bool {
        let timed = matches!(self.facts, Facts::TimedAnswer { .. });
        self.cause == Cause::ServerThink && timed && self.unsure.times(2) >= self.lost
    }

    /// One or two sentences with figures.
    pub fn why(&self) -> String {
        match &self.text {
            Some(text) => text.to_string(),
            None => self.facts.sentence() + &self.of_which() + &self.meanwhile() + &self.turns(),
        }
    }

    /// Where others filled a link meanwhile.
    fn meanwhile(&self) -> String {
        let Some(LinkFull { time, link }) = self.link_full else { return String::new() };
        let together = link.together();
        if self.cause == Cause::Bandwidth {
            format!(" Of what other causes name {time} was its time as well: {together}.")
        } else {
            format!(
                " For {time} of it {together}: what one gains then the others lose, and only a faster link or fewer bytes \
                 help all of them."
            )
        }
    }

    /// Where a server worked on few at a time.
    fn turns(&self) -> String {
        self.in_turn.map_or_else(String::new, |turns| turns.sentence())
    }

    /// A sentence may tell of a whole wait of which other causes have a part: how much is this one's.
    fn of_which(&self) -> String {
        let here = self.example.end - self.example.start;
        let whole = self.facts.whole().filter(|w| here > Nanos::ZERO && (*w - here).times(10) > *w);
        whole.map_or_else(String::new, |_| format!(" This is {here} of it."))
    }

    /// Of a whole connection, or of many: in words of its own, without time until somebody says how much.
    pub(crate) fn of_wholes(cause: Cause, side: Option<Side>, example: Example, text: String) -> Finding {
        Finding {
            cause,
            side,
            lost: Nanos::ZERO,
            share: 0.0,
            share_of_requests: 0.0,
            tail: Nanos::ZERO,
            idle: Nanos::ZERO,
            counted_elsewhere: Nanos::ZERO,
            link_full: None,
            in_turn: None,
            confidence: WHOLE_CONNECTION,
            unsure: Nanos::ZERO,
            occurrences: 1,
            range: Extremes::default(),
            connections: Vec::new(),
            connection_count: 1,
            example,
            facts: Facts::None,
            text: Some(text.into_boxed_str()),
            evidence: vec![example.frames],
            names: Vec::new(),
            more_names: false,
            fixes: Vec::new(),
            refuted: Vec::new(),
            replay: None,
        }
    }

    /// The same as an example of this connection.
    pub(crate) fn of_connection(mut self, id: u32) -> Finding {
        self.connections = vec![id];
        self.example.connection = id;
        self
    }

    /// What somebody waited for: all but the time after the last byte.
    pub fn waited(&self) -> Nanos {
        self.lost - self.tail
    }

    /// What of it is the time of requests, setups included, where no moment of one request counts twice.
    pub fn of_requests(&self) -> Nanos {
        self.lost - self.tail - self.idle - self.counted_elsewhere
    }

    /// What its fixes may save: time of requests, and of requests in series the trips, which lie between them
    /// in a capture beside the server. Where transfers side by side filled a link, only what makes that
    /// faster saves their time (rule 99).
    pub(crate) fn to_save(&self) -> Nanos {
        let full = self.link_full.map_or(Nanos::ZERO, |full| full.time);
        match self.cause {
            Cause::Chatty => self.of_requests() + self.idle,
            Cause::Bandwidth => self.of_requests() + full,
            _ => (self.of_requests() - full).floor0(),
        }
    }

    /// Too little to be worth an advice: no span reaches a millisecond, nor the sum a hundredth. A scan costs no time.
    pub fn is_minor(&self) -> bool {
        if self.cause == Cause::Scan {
            return false;
        }
        let longest = if self.cause.info().kind == Kind::Span { self.range.longest } else { self.lost };
        longest < Nanos::millis(1) && self.share < 0.01 && self.share_of_requests < 0.01
    }
}

/// A model that misses the present by more than this is not trusted.
pub const TRUST: f64 = 0.15;

/// A replay of a finding's example.
#[derive(Clone, Debug)]
pub struct Replay {
    /// Which connection.
    pub connection: u32,
    /// First and last exchange.
    pub exchanges: (u32, u32),
    /// Their time in the capture.
    pub observed: Nanos,
    /// In the model.
    pub modelled: Nanos,
    /// What was assumed.
    pub assumed: Vec<String>,
    /// The best changes together.
    pub together: Option<Together>,
    /// Often advised, and of no use here.
    pub no_help: Vec<NoEffect>,
}

impl Replay {
    /// Model less capture, as a share of the capture.
    pub fn error(&self) -> f64 {
        (self.modelled - self.observed).0 as f64 / self.observed.0.max(1) as f64
    }

    /// The model reproduces the present.
    pub fn trustworthy(&self) -> bool {
        self.error().abs() <= TRUST
    }
}

/// Changes that were made one after the other, as long as each took more off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Together {
    /// Which, and at which place.
    pub changes: Vec<(FixId, &'static str)>,
    /// The time of the replayed part with all of them.
    pub predicted: Nanos,
}

/// A change that does not help.
#[derive(Clone, Debug)]
pub struct NoEffect {
    /// Id of the fix, or of a setting that is none.
    pub id: &'static str,
    /// Where.
    pub place: &'static str,
    /// In a few words.
    pub what: String,
    /// What it saves of the replayed part: nothing, or below zero.
    pub saves: Nanos,
}
