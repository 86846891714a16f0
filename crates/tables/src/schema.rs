//! Which tables there are, and what a column of one is declared as.

use crate::column::{Value, Values};
use tcpwhy_base::Nanos;

/// Version of the tables. Within it columns are only added.
pub const SCHEMA: u32 = 1;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A moment: nanoseconds, UTC.
    Time,
    /// A duration in nanoseconds.
    Duration,
    /// A count or a size.
    Number,
    /// A number that does not repeat: of frames.
    Place,
    /// A small number: an id, a port.
    Small,
    /// Between 0 and 1.
    Fraction,
    /// Yes or no.
    Flag,
    /// One of few texts, kept as a dictionary.
    Word,
    /// A sentence.
    Text,
}

/// A column as it is declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// It may hold nothing.
    pub nullable: bool,
    /// What it says.
    pub about: &'static str,
}

/// A table: four of captures, three of a running host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Table {
    /// A row for each connection.
    Connections,
    /// A row for each request and its response.
    Exchanges,
    /// A row for each stretch of time with one cause.
    Spans,
    /// A row for each cause and side of a capture.
    Findings,
    /// A row for each connection of a running host that has ended, or was left open.
    WatchConnections,
    /// A row for each interval of such a connection and cause of its time.
    WatchShares,
    /// A row for each interval and cause that connections lost time to.
    WatchFindings,
}

impl Table {
    /// Those of captures.
    pub const ALL: [Table; 4] = [Table::Connections, Table::Exchanges, Table::Spans, Table::Findings];
    /// Those of a running host.
    pub const WATCH: [Table; 3] = [Table::WatchConnections, Table::WatchShares, Table::WatchFindings];

    /// Its name, which is that of its folder too.
    pub const fn name(self) -> &'static str {
        match self {
            Table::Connections => "connections",
            Table::Exchanges => "exchanges",
            Table::Spans => "spans",
            Table::Findings => "findings",
            Table::WatchConnections => "watch_connections",
            Table::WatchShares => "watch_shares",
            Table::WatchFindings => "watch_findings",
        }
    }
}

impl Kind {
    /// No values of this kind.
    pub(crate) fn empty(self) -> Values {
        match self {
            Kind::Time | Kind::Duration | Kind::Number | Kind::Place | Kind::Small => {
                Values::Numbers(Vec::new())
            }
            Kind::Fraction => Values::Fractions(Vec::new()),
            Kind::Flag => Values::Flags(Vec::new()),
            Kind::Word | Kind::Text => Values::Texts(Vec::new(), Default::default()),
        }
    }
}

/// A field, and how a row gives its value.
pub(crate) type Get<R> = (Field, fn(&R) -> Value<'_>);

pub(crate) const fn must(name: &'static str, kind: Kind, about: &'static str) -> Field {
    Field { name, kind, nullable: false, about }
}

pub(crate) const fn may(name: &'static str, kind: Kind, about: &'static str) -> Field {
    Field { name, kind, nullable: true, about }
}

pub(crate) fn time(at: Nanos) -> Value<'static> {
    Value::Number(at.0)
}

pub(crate) fn count(n: u64) -> Value<'static> {
    Value::Number(i64::try_from(n).unwrap_or(i64::MAX))
}

pub(crate) const CLIENT: Field =
    must("client_ip", Kind::Word, "Address of who sent the SYN, or is inferred to (RFC 5952)");
pub(crate) const SERVER: Field = must("server_ip", Kind::Word, "Address of the other end");
pub(crate) const PORT: Field = must("server_port", Kind::Small, "Port of the other end");
pub(crate) const CLASS: Field =
    must("class", Kind::Word, "`I` inherent, `A` application, `T` TCP or host, `U` unknown");
pub(crate) const OWNER: Field = must("owner", Kind::Word, "Who has to act");
