//! A trace for the Perfetto UI: TrackEvents, in protocol buffers. Each connection is a track, on which its
//! setup, exchanges and gaps are slices and their causes slices within; below it a track for each direction
//! with what is odd about its packets, and its bytes in flight and the window as counters.

mod proto;

use crate::Capture;
use proto::Message;
use std::io::{self, Write};
use tcpwhy_analysis::{Analysis, Connection, Part, Span};
use tcpwhy_base::{End, Nanos};
use tcpwhy_trace::{Packet, Track, marks};

/// More tracks than this make the Perfetto UI slow.
pub const MANY: usize = 10_000;
/// Tracks of one connection: itself, its directions, two counters for each.
const EACH: u64 = 7;
/// All packets are of one sequence.
const SEQUENCE: u64 = 1;

/// Fields of perfetto/protos/trace, by message.
mod field {
    pub(super) const TRACE_PACKET: u32 = 1;
    pub(super) const CLOCK_SNAPSHOT: u32 = 6;
    pub(super) const TIMESTAMP: u32 = 8;
    pub(super) const SEQUENCE_ID: u32 = 10;
    pub(super) const TRACK_EVENT: u32 = 11;
    pub(super) const TRACK_DESCRIPTOR: u32 = 60;
    pub(super) const EVENT_ANNOTATION: u32 = 4;
    pub(super) const EVENT_TYPE: u32 = 9;
    pub(super) const EVENT_TRACK: u32 = 11;
    pub(super) const EVENT_CATEGORY: u32 = 22;
    pub(super) const EVENT_NAME: u32 = 23;
    pub(super) const EVENT_COUNTER: u32 = 30;
    pub(super) const ANNOTATION_INT: u32 = 4;
    pub(super) const ANNOTATION_DOUBLE: u32 = 5;
    pub(super) const ANNOTATION_TEXT: u32 = 6;
    pub(super) const ANNOTATION_NAME: u32 = 10;
    pub(super) const TRACK_UUID: u32 = 1;
    pub(super) const TRACK_NAME: u32 = 2;
    pub(super) const TRACK_PARENT: u32 = 5;
    pub(super) const TRACK_COUNTER: u32 = 8;
    pub(super) const COUNTER_UNIT: u32 = 3;
}

/// `TrackEvent.Type`.
#[derive(Clone, Copy)]
enum Kind {
    Begin = 1,
    End = 2,
    Instant = 3,
    Counter = 4,
}

/// How many tracks the trace of these connections has.
pub fn count(analysis: &Analysis, tracks: &[Track]) -> usize {
    let drawn = tracks.iter().filter(|t| !t.packets.is_empty()).count();
    analysis.connections.len() + drawn * (EACH as usize - 1)
}

/// Writes the trace; `tracks` are the packets of the connections, in their order.
pub fn write(
    out: &mut impl Write,
    analysis: &Analysis,
    tracks: &[Track],
    capture: &Capture,
) -> io::Result<()> {
    let mut trace = Trace { out, packet: Message::default() };
    trace.clocks(capture.start())?;
    let none = Track::default();
    for (i, c) in analysis.connections.iter().enumerate() {
        let uuid = i as u64 * EACH + 1;
        let name = format!("{} {} > {}", c.id, c.client, c.server);
        trace.track(uuid, None, &name, false)?;
        trace.parts(uuid, c)?;
        let track = tracks.get(i).unwrap_or(&none);
        if !track.packets.is_empty() {
            trace.directions(uuid, track)?;
        }
    }
    Ok(())
}

struct Trace<'a, W> {
    out: &'a mut W,
    packet: Message,
}

impl<W: Write> Trace<'_, W> {
    /// Times are those of the capture since 1970, on the clock that traces have by default (BOOTTIME, 6) and on the
    /// real-time clock (1) alike: the UI shows either.
    fn clocks(&mut self, start: Nanos) -> io::Result<()> {
        let mut snapshot = Message::default();
        for id in [6, 1] {
            let mut clock = Message::default();
            clock.int(1, id).int(2, since_1970(start));
            snapshot.message(1, &clock);
        }
        self.packet.message(field::CLOCK_SNAPSHOT, &snapshot);
        self.end()
    }

    /// Ends the packet that was begun.
    fn end(&mut self) -> io::Result<()> {
        self.packet.int(field::SEQUENCE_ID, SEQUENCE);
        let mut framed = Message::default();
        framed.message(field::TRACE_PACKET, &self.packet);
        self.packet.0.clear();
        self.out.write_all(&framed.0)
    }

    fn track(&mut self, uuid: u64, parent: Option<u64>, name: &str, counter: bool) -> io::Result<()> {
        let mut track = Message::default();
        track.int(field::TRACK_UUID, uuid).bytes(field::TRACK_NAME, name.as_bytes());
        if let Some(parent) = parent {
            track.int(field::TRACK_PARENT, parent);
        }
        if counter {
            let mut bytes = Message::default();
            bytes.int(field::COUNTER_UNIT, 3);
            track.message(field::TRACK_COUNTER, &bytes);
        }
        self.packet.message(field::TRACK_DESCRIPTOR, &track);
        self.end()
    }

    fn event(
        &mut self,
        track: u64,
        time: Nanos,
        kind: Kind,
        fill: impl FnOnce(&mut Message),
    ) -> io::Result<()> {
        let mut event = Message::default();
        event.int(field::EVENT_TYPE, kind as u64).int(field::EVENT_TRACK, track);
        fill(&mut event);
        self.packet.int(field::TIMESTAMP, since_1970(time)).message(field::TRACK_EVENT, &event);
        self.end()
    }

    /// Setup, exchanges and gaps in the order of time, each with its causes.
    fn parts(&mut self, track: u64, c: &Connection) -> io::Result<()> {
        for (part, spans) in c.parts() {
            let (Some(first), Some(last)) = (spans.first(), spans.last()) else { continue };
            self.event(track, first.start, Kind::Begin, |event| part_named(event, c, part))?;
            for span in spans {
                self.event(track, span.start, Kind::Begin, |event| cause(event, span))?;
                self.event(track, span.end, Kind::End, |_| ())?;
            }
            self.event(track, last.end, Kind::End, |_| ())?;
        }
        Ok(())
    }

    fn directions(&mut self, connection: u64, track: &Track) -> io::Result<()> {
        for (from, base, names) in [
            (End::Client, 1, ["client > server", "client: in flight", "client: window of the server"]),
            (End::Server, 4, ["server > client", "server: in flight", "server: window of the client"]),
        ] {
            let own = connection + base;
            self.track(own, Some(connection), names[0], false)?;
            self.track(own + 1, Some(own), names[1], true)?;
            self.track(own + 2, Some(own), names[2], true)?;
            let mut counters = Counters { flight: None, window: None, high: 0, acked: 0 };
            for packet in &track.packets {
                if packet.from == from {
                    self.odd(own, packet)?;
                }
                let (flight, window) = counters.take(from, packet, track);
                for (track, value) in [(own + 1, flight), (own + 2, window)] {
                    if let Some(value) = value {
                        self.event(track, packet.time, Kind::Counter, |event| {
                            event.int(field::EVENT_COUNTER, value as u64);
                        })?;
                    }
                }
            }
        }
        Ok(())
    }

    /// An instant for a packet that opens, closes, or was marked.
    fn odd(&mut self, track: u64, p: &Packet) -> io::Result<()> {
        let flags = [(p.flags.syn(), "SYN"), (p.flags.fin(), "FIN"), (p.flags.rst(), "RST")];
        let odd = [
            (marks::RETRANSMITTED, "retransmitted"),
            (marks::LATE, "repeats what was lost before the tap"),
            (marks::OUT_OF_ORDER, "out of order"),
            (marks::ZERO_WINDOW, "window 0"),
            (marks::PROBE, "probe"),
        ];
        let odd = odd.into_iter().map(|(bit, name)| (p.marks & bit != 0, name));
        let names: Vec<_> = flags.into_iter().chain(odd).filter(|n| n.0).map(|n| n.1).collect();
        if names.is_empty() {
            return Ok(());
        }
        self.event(track, p.time, Kind::Instant, |event| {
            event.bytes(field::EVENT_NAME, names.join(", ").as_bytes());
            event.bytes(field::EVENT_CATEGORY, b"packet");
            number(event, "frame", p.frame);
        })
    }
}

/// What one direction has under way, and what the other end allows.
struct Counters {
    flight: Option<i64>,
    window: Option<i64>,
    high: i64,
    acked: i64,
}

impl Counters {
    /// Bytes in flight and window from `from`, where the packet changed them.
    fn take(&mut self, from: End, p: &Packet, track: &Track) -> (Option<i64>, Option<i64>) {
        let mut window = None;
        if p.from == from {
            self.high = self.high.max(p.seq_end());
        } else if let Some(ack) = p.acknowledges() {
            self.acked = self.acked.max(ack);
            // A counter keeps its value: where the scale is not known, not even the window of a SYN is shown.
            let known = track.shift[p.from].and(p.window_bytes(track.shift));
            if !p.flags.rst() && known.is_some() && self.window != known {
                (self.window, window) = (known, known);
            }
        }
        let flight = (self.high - self.acked).max(0);
        let changed = self.flight != Some(flight);
        self.flight = Some(flight);
        (changed.then_some(flight), window)
    }
}

fn part_named(event: &mut Message, c: &Connection, part: Part) {
    let (name, category) = match part {
        Part::Setup => ("opening".to_owned(), "setup"),
        Part::Exchange(id) => (format!("exchange {id}"), "exchange"),
        Part::Gap(_) => ("between exchanges".to_owned(), "gap"),
    };
    let called = match part {
        Part::Exchange(id) => c.exchanges.binary_search_by_key(&id, |x| x.id).ok().map(|at| &c.exchanges[at]),
        Part::Setup | Part::Gap(_) => None,
    };
    let name = called.and_then(|x| x.name()).unwrap_or(&name);
    event.bytes(field::EVENT_NAME, name.as_bytes()).bytes(field::EVENT_CATEGORY, category.as_bytes());
    number(event, "connection", u64::from(c.id));
    if let Some(x) = called {
        number(event, "exchange", u64::from(x.id));
        number(event, "request_bytes", x.bytes[0]);
        number(event, "response_bytes", x.bytes[1]);
        text(event, "ended", x.ended.name());
    }
}

fn cause(event: &mut Message, span: &Span) {
    event.bytes(field::EVENT_NAME, span.cause.id().as_bytes()).bytes(field::EVENT_CATEGORY, b"cause");
    if let Some(side) = span.side {
        text(event, "side", side.name());
    }
    text(event, "why", &span.facts.sentence());
    let confidence = annotation("confidence", |a| {
        a.double(field::ANNOTATION_DOUBLE, (f64::from(span.confidence) * 1e3).round() / 1e3);
    });
    event.message(field::EVENT_ANNOTATION, &confidence);
    let frames: Vec<String> = span.frames.keys().map(|k| k.to_string()).collect();
    if !frames.is_empty() {
        text(event, "frames", &frames.join(" "));
    }
}

fn annotation(name: &str, value: impl FnOnce(&mut Message)) -> Message {
    let mut annotation = Message::default();
    annotation.bytes(field::ANNOTATION_NAME, name.as_bytes());
    value(&mut annotation);
    annotation
}

fn number(event: &mut Message, name: &str, value: u64) {
    event.message(
        field::EVENT_ANNOTATION,
        &annotation(name, |a| {
            a.int(field::ANNOTATION_INT, value);
        }),
    );
}

fn text(event: &mut Message, name: &str, value: &str) {
    event.message(
        field::EVENT_ANNOTATION,
        &annotation(name, |a| {
            a.bytes(field::ANNOTATION_TEXT, value.as_bytes());
        }),
    );
}

/// Traces have no time before 1970.
fn since_1970(time: Nanos) -> u64 {
    time.0.max(0) as u64
}
