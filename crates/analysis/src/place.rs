//! Where a span stands in its connection: the part that it tiles, and its number there.

use crate::result::{Connection, Span};
use std::fmt;
use tcpwhy_base::Short;

/// A part of a connection, as its spans are named by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The opening.
    Setup,
    /// An exchange, by its id.
    Exchange(u32),
    /// A gap, by its number among those listed, from 1.
    Gap(u32),
}

/// The name of a span: `1.s.1` in setup, `1.7.2` in exchange 7, `1.g3.1` in the third gap listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanId {
    /// Id of the connection.
    pub connection: u32,
    /// The part that it tiles.
    pub part: Part,
    /// Its number there, from 1.
    pub number: u32,
}

/// As it is displayed.
impl From<SpanId> for Short {
    fn from(id: SpanId) -> Short {
        let mut short = Short::new();
        short.number(id.connection.into());
        short.ascii(b'.');
        match id.part {
            Part::Setup => short.ascii(b's'),
            Part::Exchange(exchange) => short.number(exchange.into()),
            Part::Gap(number) => {
                short.ascii(b'g');
                short.number(number.into());
            }
        }
        short.ascii(b'.');
        short.number(id.number.into());
        short
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Short::from(*self).as_str())
    }
}

impl Connection {
    /// The parts that are kept in detail and the spans that tile them, in the order of time.
    pub fn parts(&self) -> impl Iterator<Item = (Part, &[Span])> {
        let setup = self.setup.iter().map(|s| (Part::Setup, s.spans.as_slice()));
        let mut exchanges = self.exchanges.iter().peekable();
        let mut gaps = self.gaps.iter().zip(1..).peekable();
        let rest = std::iter::from_fn(move || {
            let gap_is_next = match (exchanges.peek(), gaps.peek()) {
                (Some(x), Some((gap, _))) => (gap.start, gap.end) < (x.start, x.end),
                (None, _) => true,
                (_, None) => false,
            };
            if gap_is_next {
                gaps.next().map(|(gap, number)| (Part::Gap(number), gap.spans.as_slice()))
            } else {
                exchanges.next().map(|x| (Part::Exchange(x.id), x.spans.as_slice()))
            }
        });
        setup.chain(rest)
    }

    /// All spans that are kept in detail, in the order of time, each with its name.
    pub fn spans(&self) -> impl Iterator<Item = (SpanId, &Span)> {
        let connection = self.id;
        self.parts().flat_map(move |(part, spans)| {
            spans.iter().zip(1..).map(move |(span, number)| (SpanId { connection, part, number }, span))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_name_connection_part_and_number() {
        let id = |part| SpanId { connection: 7, part, number: 2 }.to_string();
        assert_eq!(
            [id(Part::Setup), id(Part::Exchange(19)), id(Part::Gap(3))],
            ["7.s.2", "7.19.2", "7.g3.2"]
        );
    }
}
