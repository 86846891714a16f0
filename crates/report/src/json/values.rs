//! Small values that serialise themselves without being copied first.

use crate::Capture;
use crate::capture::local;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt::{Debug, Display};
use std::marker::PhantomData;
use tcpwhy_analysis::{self as a, Analysis, Asked, Facts, Frames, Parameter, Quality};
use tcpwhy_base::{CAUSES, Cause, Class, Kind, Nanos, Owner, Short, Side};

/// What every object needs to know of the whole.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The moment from which times are counted.
    start: Nanos,
    /// With several inputs frames carry the index of theirs.
    frames_before: &'a [u64],
    /// Connection ids follow tshark's stream numbers.
    pub(super) streams: bool,
    /// Which exchange was made for which other one.
    asked: &'a [Asked],
}

impl<'a> Context<'a> {
    /// Of an analysis of this capture.
    pub fn new(analysis: &'a Analysis, capture: &'a Capture) -> Context<'a> {
        let one_file = capture.frames_before.len() < 2;
        let tunnelled = analysis.totals.with_quality(Quality::ENCAPSULATED) > 0;
        let complete = capture.connections == analysis.totals.connections && !capture.partial;
        let bare = capture.encapsulations.is_empty() && !tunnelled;
        let streams = one_file && bare && complete;
        let asked = &analysis.totals.asked;
        Context { start: capture.start(), frames_before: &capture.frames_before, streams, asked }
    }

    /// Of a capture that is still being read: `start` is moment 0, `frames_before` are those of the inputs so far
    /// (two or more if there are several at all), `streams` tells that ids follow tshark's numbers.
    pub fn live(start: Nanos, frames_before: &'a [u64], streams: bool) -> Context<'a> {
        Context { start, frames_before, streams, asked: &[] }
    }

    /// `time` as nanoseconds from the start.
    pub(super) fn ns(&self, time: Nanos) -> i64 {
        (time - self.start).0
    }

    /// The exchanges that were made to answer this one.
    pub(super) fn asked(&self, by: (u32, u32)) -> &'a [Asked] {
        let from = self.asked.partition_point(|a| a.by < by);
        let rest = self.asked.get(from..).unwrap_or_default();
        rest.get(..rest.partition_point(|a| a.by == by)).unwrap_or_default()
    }

    /// The input that holds a frame, and its number there.
    pub(super) fn place(&self, frame: u64) -> (u16, u64) {
        let file = self.frames_before.partition_point(|&before| before < frame).saturating_sub(1);
        let before = self.frames_before.get(file).copied().unwrap_or(0);
        (u16::try_from(file).unwrap_or(u16::MAX), frame - before.min(frame))
    }

    /// A frame as numbered in its file, and the index of that where there are several: as of [`Context::local`].
    #[inline]
    pub(super) fn local_frame(&self, frame: u64) -> (u64, Option<u16>) {
        if self.frames_before.len() < 2 {
            return (frame, None);
        }
        let (file, frame) = self.place(frame);
        (frame, Some(file))
    }

    /// Frames as numbered in their file, and its index where there are several.
    pub(super) fn local(&self, frames: &Frames) -> (Frames, Option<u16>) {
        let (frames, file) = local(frames, self.frames_before);
        (frames, (self.frames_before.len() > 1).then_some(file))
    }
}

/// How an item of the analysis is shown.
pub trait View<'a, T>: Serialize {
    /// What an item must know of whom it belongs to.
    type Parent: Copy + Debug;

    /// Shows the item at `index` of the list that belongs to `parent`.
    fn view(item: &'a T, parent: Self::Parent, index: usize, cx: Context<'a>) -> Self;
}

/// A list whose items are turned into their shown form one at a time, while they are written.
#[derive(Debug)]
pub struct List<'a, T, V: View<'a, T>> {
    items: &'a [T],
    parent: V::Parent,
    cx: Context<'a>,
    shown: PhantomData<fn() -> V>,
}

impl<'a, T, V: View<'a, T>> List<'a, T, V> {
    pub(super) fn new(items: &'a [T], parent: V::Parent, cx: Context<'a>) -> Self {
        List { items, parent, cx, shown: PhantomData }
    }
}

impl<'a, T, V: View<'a, T>> Serialize for List<'a, T, V> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        // A loop of our own: what is open stays in registers.
        let mut list = s.serialize_seq(Some(self.items.len()))?;
        for (i, item) in self.items.iter().enumerate() {
            list.serialize_element(&V::view(item, self.parent, i, self.cx))?;
        }
        list.end()
    }
}

impl<'a, T, V: JsonSchema + View<'a, T>> JsonSchema for List<'a, T, V> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("List_of_{}", V::schema_name()).into()
    }
    fn json_schema(g: &mut SchemaGenerator) -> Schema {
        Vec::<V>::json_schema(g)
    }
}

/// A number for each end.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Pair {
    /// Of the client.
    pub client: u64,
    /// Of the server.
    pub server: u64,
}

impl From<[u64; 2]> for Pair {
    fn from([client, server]: [u64; 2]) -> Pair {
        Pair { client, server }
    }
}

/// Declares a value with its way to serialise and its schema.
macro_rules! value {
    ($(#[$doc:meta])* $name:ident $(<$life:lifetime>)? ($inner:ty), |$me:ident, $ser:ident| $body:expr, $schema:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name $(<$life>)? (pub $inner);
        impl $(<$life>)? Serialize for $name $(<$life>)? {
            #[inline]
            fn serialize<S: Serializer>(&self, $ser: S) -> Result<S::Ok, S::Error> {
                let $me = self.0;
                $body
            }
        }
        impl $(<$life>)? JsonSchema for $name $(<$life>)? {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    };
}

value! {
    /// A cause that labels time, by its stable id.
    SpanCause(Cause),
    |cause, s| s.serialize_unit_variant("", 0, cause.id()),
    json_schema!({ "type": "string", "enum": ids(|k| k == Kind::Span) })
}

value! {
    /// Any cause, by its stable id.
    AnyCause(Cause),
    |cause, s| s.serialize_unit_variant("", 0, cause.id()),
    json_schema!({ "type": "string", "enum": ids(|_| true) })
}

value! {
    /// `I` inherent, `A` application, `T` TCP or host, `U` unknown.
    ClassLetter(Class),
    |class, s| s.serialize_unit_variant("", 0, class.letter()),
    json_schema!({ "type": "string", "enum": ["I", "A", "T", "U"] })
}

value! {
    /// Who has to act: `none` where that is not known.
    OwnerName(Owner),
    |owner, s| s.serialize_unit_variant("", 0, owner.id()),
    json_schema!({ "type": "string", "enum": Owner::ALL.map(Owner::id) })
}

value! {
    /// Who could change it.
    SideName(Side),
    |side, s| s.serialize_unit_variant("", 0, side.name()),
    json_schema!({ "type": "string", "enum": ["client", "server", "network"] })
}

value! {
    /// What limits what can be said.
    QualityNames(Quality),
    |quality, s| s.collect_seq(quality.names()),
    json_schema!({ "type": "array", "items": { "type": "string" } })
}

value! {
    /// Nanoseconds by cause.
    Times<'a>(&'a a::Budget),
    |budget, s| {
        // A loop of our own: what is open stays in registers.
        let mut map = s.serialize_map(Some(budget.0.len()))?;
        for (cause, time) in &budget.0 {
            map.serialize_entry(&SpanCause(*cause), &time.0)?;
        }
        map.end()
    },
    times()
}

/// Nanoseconds by cause, of what was summed up for the report.
#[derive(Clone, Debug)]
pub struct Budget(pub a::Budget);

impl Serialize for Budget {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        Times(&self.0).serialize(s)
    }
}

impl JsonSchema for Budget {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Budget".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        times()
    }
}

fn times() -> Schema {
    json_schema!({
        "type": "object",
        "propertyNames": { "enum": ids(|k| k == Kind::Span) },
        "additionalProperties": { "type": "integer", "format": "int64", "minimum": 0 }
    })
}

value! {
    /// One sentence with the figures.
    Sentence<'a>(&'a Facts),
    |facts, s| s.collect_str(facts),
    json_schema!({ "type": "string", "minLength": 1 })
}

value! {
    /// Parameters for programs.
    Parameters<'a>(&'a [(&'static str, Parameter)]),
    |parameters, s| s.collect_map(parameters.iter().map(|(name, p)| (*name, Scalar(p)))),
    json_schema!({ "type": "object", "additionalProperties": { "type": ["integer", "string"] } })
}

value! {
    /// Packets by what they were wrapped in.
    Wrappings<'a>(&'a [(&'static str, u64)]),
    |names, s| s.collect_map(names.iter().map(|(name, n)| (*name, *n))),
    json_schema!({ "type": "object", "additionalProperties": { "type": "integer", "minimum": 0 } })
}

fn ids(wanted: impl Fn(Kind) -> bool) -> Vec<&'static str> {
    CAUSES.iter().filter(|c| wanted(c.kind)).map(|c| c.id).collect()
}

struct Scalar<'a>(&'a Parameter);

impl Serialize for Scalar<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Parameter::Number(n) => s.serialize_i64(*n),
            Parameter::Text(t) => s.serialize_str(t),
        }
    }
}

/// One of a few words, which need no escape.
#[derive(Clone, Copy, Debug)]
pub struct Word(pub &'static str);

impl Serialize for Word {
    #[inline]
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_unit_variant("", 0, self.0)
    }
}

impl JsonSchema for Word {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        str::schema_name()
    }
    fn json_schema(g: &mut SchemaGenerator) -> Schema {
        str::json_schema(g)
    }
}

/// Something short, of letters, digits and points, serialised as it is displayed.
#[derive(Clone, Copy, Debug)]
pub struct InBrief<T>(pub T);

impl<T: Copy + Into<Short>> Serialize for InBrief<T> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let text: Short = self.0.into();
        // What is not for people, as the writer of documents says of itself, takes the bytes as they are.
        if s.is_human_readable() {
            s.serialize_str(text.as_str())
        } else {
            s.serialize_bytes(text.as_bytes())
        }
    }
}

/// The name of a finding.
#[derive(Clone, Copy, Debug)]
pub struct FindingId {
    /// Id of its connection; 0: of the whole capture.
    pub connection: u32,
    /// Its number there, from 1.
    pub number: u32,
}

impl From<FindingId> for Short {
    fn from(id: FindingId) -> Short {
        let mut short = Short::new();
        if id.connection != 0 {
            short.number(id.connection.into());
            short.ascii(b'.');
        }
        short.ascii(b'f');
        short.number(id.number.into());
        short
    }
}

/// Something serialised as it is displayed.
#[derive(Clone, Copy, Debug)]
pub struct Shown<T>(pub T);

impl<T: Display> Serialize for Shown<T> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(&self.0)
    }
}

impl<T> JsonSchema for Shown<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

/// A share or a confidence between 0 and 1, in six digits.
pub(super) fn unit(x: f64) -> f64 {
    if x.is_finite() { (x.clamp(0.0, 1.0) * 1e6).round() / 1e6 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_alone_is_numbered_as_frames_are() {
        let some: [&[u64]; 6] = [&[], &[0], &[5], &[0, 3], &[0, 3, 3, 20], &[0, u64::MAX]];
        for (before, frame) in some.into_iter().flat_map(|before| (0..30).map(move |frame| (before, frame))) {
            let cx = Context::live(Nanos::ZERO, before, false);
            let (frames, file) = cx.local(&Frames::new(0, frame, frame, &[]));
            assert_eq!(cx.local_frame(frame), (frames.first(), file), "{frame} of {before:?}");
        }
    }
}
