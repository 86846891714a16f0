//! Which figure is wanted of a run, by its name, and its unit.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What is measured: `SUBJECT STATISTIC`, such as `exchange median`; `elapsed`, `throughput`, `errors`; or a
/// counter of a host, such as `server TcpExtListenOverflows`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Measure {
    /// From the first `connect` to the last byte that an application read.
    Elapsed,
    /// Payload of all exchanges over that time.
    Throughput,
    /// Calls that failed.
    Errors,
    /// Longest wait for the rate, in the direction in which it was longest.
    Queue,
    /// A counter of the server's kernel, or the client's.
    Counter {
        /// Of the server.
        server: bool,
        /// As `nstat -az` names it.
        name: String,
    },
    /// A statistic over many figures.
    Of(Subject, Statistic),
}

/// What there are many figures of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Request and answer as the client's application saw them.
    Exchange,
    /// `connect` calls.
    Connect,
    /// Processor time of `connect` (and `bind`) calls.
    Processor,
    /// Times that a client program printed.
    Program,
}

/// What is made of many figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// Median of all.
    Median,
    /// Mean of all.
    Mean,
    /// The largest.
    Max,
    /// The first.
    First,
    /// The last.
    Last,
    /// The sum.
    Total,
    /// Median of the first tenth.
    Begin,
    /// Median of the last tenth.
    End,
    /// How many took more than 900 ms: a repeat of the SYN is among them.
    Slow,
    /// How many succeeded.
    Count,
    /// How many failed.
    Failed,
}

const SUBJECTS: [(&str, Subject); 4] = [
    ("exchange", Subject::Exchange),
    ("connect", Subject::Connect),
    ("processor", Subject::Processor),
    ("program", Subject::Program),
];

const STATISTICS: [(&str, Statistic); 11] = [
    ("median", Statistic::Median),
    ("mean", Statistic::Mean),
    ("max", Statistic::Max),
    ("first", Statistic::First),
    ("last", Statistic::Last),
    ("total", Statistic::Total),
    ("begin", Statistic::Begin),
    ("end", Statistic::End),
    ("slow", Statistic::Slow),
    ("count", Statistic::Count),
    ("failed", Statistic::Failed),
];

/// What the figures of a measure are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Milliseconds.
    Ms,
    /// Megabits a second.
    Mbit,
    /// A number of things.
    Count,
}

impl Unit {
    /// The figure with its unit, in three to four digits.
    pub fn show(self, value: f64) -> String {
        let digits = |v: f64| match v.abs() {
            a if a >= 100.0 => format!("{v:.0}"),
            a if a >= 10.0 => format!("{v:.1}"),
            _ => format!("{v:.2}"),
        };
        match self {
            Unit::Ms if value.abs() >= 1000.0 => format!("{:.2} s", value / 1000.0),
            Unit::Ms if value != 0.0 && value.abs() < 0.995 => format!("{} µs", digits(value * 1000.0)),
            Unit::Ms => format!("{} ms", digits(value)),
            Unit::Mbit => format!("{} Mbit/s", digits(value)),
            Unit::Count => format!("{value:.0}"),
        }
    }
}

impl TryFrom<String> for Measure {
    type Error = String;

    fn try_from(text: String) -> Result<Measure, String> {
        let (first, second) = text.split_once(' ').unwrap_or((&text, ""));
        let known = |m: Measure| if second.is_empty() { Some(m) } else { None };
        let found = match first {
            "elapsed" => known(Measure::Elapsed),
            "throughput" => known(Measure::Throughput),
            "errors" => known(Measure::Errors),
            "queue" => known(Measure::Queue),
            "client" | "server" if !second.is_empty() && second.chars().all(char::is_alphanumeric) => {
                Some(Measure::Counter { server: first == "server", name: second.into() })
            }
            _ => {
                let subject = SUBJECTS.iter().find(|s| s.0 == first);
                let statistic = STATISTICS.iter().find(|s| s.0 == second);
                subject.zip(statistic).map(|(subject, statistic)| Measure::Of(subject.1, statistic.1))
            }
        };
        found.ok_or_else(|| {
            let subjects: Vec<&str> = SUBJECTS.iter().map(|s| s.0).collect();
            let statistics: Vec<&str> = STATISTICS.iter().map(|s| s.0).collect();
            format!(
                "measure {text:?}: write elapsed, throughput, errors, queue, client COUNTER, server COUNTER, or one of \
                 {} with one of {}, such as \"exchange median\"",
                subjects.join(", "),
                statistics.join(", ")
            )
        })
    }
}

impl From<Measure> for String {
    fn from(measure: Measure) -> String {
        measure.to_string()
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Measure::Elapsed => f.write_str("elapsed"),
            Measure::Throughput => f.write_str("throughput"),
            Measure::Errors => f.write_str("errors"),
            Measure::Queue => f.write_str("queue"),
            Measure::Counter { server, name } => {
                write!(f, "{} {name}", if *server { "server" } else { "client" })
            }
            Measure::Of(subject, statistic) => {
                let subject = SUBJECTS.iter().find(|s| s.1 == *subject).map_or("", |s| s.0);
                let statistic = STATISTICS.iter().find(|s| s.1 == *statistic).map_or("", |s| s.0);
                write!(f, "{subject} {statistic}")
            }
        }
    }
}

impl Measure {
    /// What its figures are counted in.
    pub fn unit(&self) -> Unit {
        match self {
            Measure::Elapsed | Measure::Queue => Unit::Ms,
            Measure::Throughput => Unit::Mbit,
            Measure::Errors | Measure::Counter { .. } => Unit::Count,
            Measure::Of(_, Statistic::Slow | Statistic::Count | Statistic::Failed) => Unit::Count,
            Measure::Of(..) => Unit::Ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_back() {
        for text in ["elapsed", "throughput", "exchange median", "connect slow", "server TcpExtListenDrops"] {
            assert_eq!(Measure::try_from(text.to_owned()).unwrap().to_string(), text);
        }
        for text in ["", "exchange", "median exchange", "elapsed median", "server", "client a/b"] {
            assert!(Measure::try_from(text.to_owned()).is_err(), "{text}");
        }
    }

    #[test]
    fn figures_are_short() {
        assert_eq!(Unit::Ms.show(0.0332), "33.2 µs");
        assert_eq!(Unit::Ms.show(37.249), "37.2 ms");
        assert_eq!(Unit::Ms.show(27_960.0), "27.96 s");
        assert_eq!(Unit::Mbit.show(11.22), "11.2 Mbit/s");
    }
}
