use super::Context;
use schemars::JsonSchema;
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use std::fmt;
use tcpwhy_analysis as a;

/// Frame numbers that prove something, 1-based as Wireshark counts them.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Frames {
    /// Lowest frame involved.
    pub first: u64,
    /// Highest frame involved.
    pub last: u64,
    /// The frames that decide, ascending.
    #[schemars(with = "Vec<u64>")]
    pub key: Keys,
    /// Index of the input, only where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<u16>,
}

impl Frames {
    pub(super) fn new(frames: &a::Frames, cx: Context<'_>) -> Frames {
        let (frames, file) = cx.local(frames);
        Frames { first: frames.first(), last: frames.last(), key: Keys(frames), file }
    }
}

impl<'a> super::View<'a, a::Frames> for Frames {
    type Parent = ();

    fn view(item: &'a a::Frames, _: (), _: usize, cx: Context<'a>) -> Self {
        Frames::new(item, cx)
    }
}

/// The key frames that are in use.
#[derive(Debug)]
pub struct Keys(a::Frames);

impl Serialize for Keys {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        // A loop of our own: what is open stays in registers.
        let mut list = s.serialize_seq(None)?;
        for key in self.0.keys() {
            list.serialize_element(&key)?;
        }
        list.end()
    }
}

/// The span that shows a finding best.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Example {
    /// Its connection.
    pub connection: u32,
    /// Its exchange; null in setup or a gap.
    pub exchange: Option<u32>,
    /// Its frames.
    pub frames: Frames,
    /// When it begins.
    pub start_ns: i64,
    /// When it ends.
    pub end_ns: i64,
    /// Shows the key frames in Wireshark.
    #[schemars(with = "String")]
    pub display_filter: super::values::Shown<DisplayFilter>,
}

impl Example {
    pub(super) fn new(example: &a::Example, cx: Context<'_>) -> Option<Example> {
        let a::Example { connection, exchange, frames, start, end, .. } = example;
        (*connection != 0 && frames.first() != 0).then(|| Example {
            connection: *connection,
            exchange: Some(*exchange).filter(|&x| x != 0),
            frames: Frames::new(frames, cx),
            start_ns: cx.ns(*start),
            end_ns: cx.ns(*end),
            display_filter: super::values::Shown(DisplayFilter(cx.local(frames).0)),
        })
    }
}

/// A Wireshark display filter for the key frames.
#[derive(Clone, Copy, Debug)]
pub struct DisplayFilter(pub a::Frames);

impl fmt::Display for DisplayFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = (self.0.first(), self.0.last());
        f.write_str("frame.number in {")?;
        let mut sep = "";
        for key in self.0.keys() {
            write!(f, "{sep}{key}")?;
            sep = ",";
        }
        if sep.is_empty() {
            if first == last {
                write!(f, "{first}")?;
            } else {
                write!(f, "{first}..{last}")?;
            }
        }
        f.write_str("}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_filters() {
        let shown = |keys: &[u64]| DisplayFilter(a::Frames::new(0, 16, 18, keys)).to_string();
        assert_eq!(shown(&[18, 16, 17]), "frame.number in {16,17,18}");
        assert_eq!(shown(&[]), "frame.number in {16..18}");
    }
}
