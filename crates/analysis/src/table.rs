//! Finds the connection of each segment, ends connections, and keeps the detail that was asked for.

mod ahead;
mod early;
mod elsewhere;
mod finish;
mod going;
mod held;
mod index;
mod lingering;
mod listed;
mod logs;
mod lone;
mod lookup;
mod over;
mod quiet;
mod resting;
mod rooms;
mod scan;
mod seen;
mod settings;
mod waiting;
mod watched;
mod words;

use crate::conn::Conn;
use crate::findings::Finished;
use crate::findings::store::{self, Store};
use crate::output::Output;
use crate::result::{Connection, Finding, Totals};
use crate::stream::Stream;
use crate::sums::Sums;
use crate::{Config, Detail};
use ahead::Known;
use early::Early;
use elsewhere::Taps;
use finish::Ended;
use hashbrown::HashMap;
use held::{Held, Room};
use index::{Index, Key, Tag};
use lingering::{Closed, Lingering};
pub use listed::ROWS;
use listed::{Listed, MostLost};
use lone::{At, Lones};
use quiet::Hand;
use tcpwhy_base::{Endpoint, Nanos, Observation, Segment};
use watched::Stretches;

/// A closed connection is kept so long for late packets: twice the maximum segment lifetime (RFC 9293, 3.4.2).
const LINGER: Nanos = Nanos::secs(240);

/// So many connections have findings of their own: those that lost most to TCP.
const WITH_FINDINGS: usize = 1_000;

/// Memory is asked for whenever so many more have ended: each stays with somewhat more than a kilobyte.
const ENDED: usize = 32;

/// With fewer open connections than this their state (4 KB each) is mostly in a cache, with half of them in
/// the second one.
const CROWD: usize = 1_024;

/// Where a connection is while it lives.
#[derive(Debug)]
enum Slot {
    Free,
    /// One packet was seen of it.
    Lone(At, u32),
    Conn(Box<Held>),
}

/// Takes segments in the order of the capture; gives the analysis at the end.
#[derive(Debug)]
pub struct Analyzer {
    index: Index,
    /// The last connection of a 4-tuple whatever its link, once there are VLANs or tunnels at all.
    links: HashMap<(Endpoint, Endpoint), u32>,
    live: Vec<Slot>,
    free: Vec<u32>,
    /// How many of these are connections of several packets; from how many on packets wait; room for those.
    held: usize,
    crowd: usize,
    room: Room,
    hand: Hand,
    /// The packets of connections of which one was seen.
    lones: Lones,
    /// Those of them that have ended, and their ids.
    silent: Vec<(At, u32)>,
    /// Connections of one packet are listed, be they as many as they are.
    lists_all: bool,
    /// What was found about those that are not.
    scan: Option<Finding>,
    /// Closed connections in the order of closing, with when they may go.
    closed: Lingering,
    /// Behind this the first of them is looked at.
    due: Nanos,
    /// Those whose time is over, and which end together.
    going: Vec<Closed>,
    /// Those in which no more packets will wait before long.
    full: Vec<u32>,
    /// Connections that are over, and are summed up next; whether they are listed, whatever they show.
    over: Vec<(Finished, bool)>,
    /// All that have ended.
    ended: Vec<Ended>,
    /// Those that are listed, as far as is known.
    #[expect(clippy::vec_box, reason = "in the end they are put in order, and none is moved")]
    done: Vec<Box<Connection>>,
    /// Only some are.
    listed: Option<Listed>,
    /// What findings of each are made of.
    bases: Store,
    /// Where that begins, of each that is listed, if the answer may be narrowed.
    places: Vec<store::At>,
    kept: Output,
    totals: Totals,
    next_id: u32,
    /// How often a connection began or left, or got another link: until then what was found stays found.
    changes: u64,
    /// A closed connection is kept this long.
    linger: Nanos,
    /// Sums over those that have ended.
    sums: Sums,
    /// Connections leave as they end.
    stream: Option<Stream>,
    /// What findings of each one are made of is kept of all, for [`Analysis::retain`](crate::Analysis::retain).
    narrows: bool,
    /// And of those that lost most, for findings of their own.
    most_lost: MostLost,
    /// What kernels said of connections of which no packet has passed yet.
    early: Early,
    taps: Taps,
    /// When captures ended.
    watched: Stretches,
}

impl Analyzer {
    /// An analyzer that has seen nothing.
    pub fn new(config: Config) -> Analyzer {
        Analyzer {
            index: Index::default(),
            links: HashMap::new(),
            live: Vec::new(),
            free: Vec::new(),
            held: 0,
            crowd: CROWD,
            room: Room::default(),
            hand: Hand::default(),
            lones: Lones::default(),
            silent: Vec::new(),
            lists_all: config.detail == Detail::All,
            scan: None,
            closed: Lingering::new(),
            due: Nanos::MAX,
            going: Vec::new(),
            full: Vec::new(),
            over: Vec::new(),
            ended: Vec::new(),
            done: Vec::new(),
            listed: None,
            bases: Store::default(),
            places: Vec::new(),
            kept: Output::new(config.detail),
            totals: Totals::default(),
            next_id: 1,
            changes: 0,
            linger: LINGER,
            sums: Sums::whole(),
            stream: None,
            narrows: true,
            most_lost: MostLost::new(WITH_FINDINGS),
            early: Early::default(),
            taps: Taps::default(),
            watched: Stretches::default(),
        }
    }

    /// An analyzer from which connections are taken as they end ([`Analyzer::ended`]), so that memory grows with those
    /// that live only. Detail is kept of each connection: its longest exchanges, not those of the capture.
    pub fn streaming(config: Config) -> Analyzer {
        let kept = Output::by_connection(config.detail);
        Analyzer { kept, sums: Stream::sums(), stream: Some(Stream::default()), ..Analyzer::new(config) }
    }

    /// The connections that have ended since this was last asked, in the order in which they ended.
    pub fn ended(&mut self) -> impl Iterator<Item = Box<Connection>> {
        self.let_them_go();
        self.done.drain(..)
    }

    /// Takes whatever was seen, in the order of time. What a kernel says of a connection is kept for the segments that
    /// follow.
    pub fn observe(&mut self, observation: Observation<'_>) {
        match observation {
            Observation::Segment(segment) => self.push(segment),
            Observation::Elsewhere(segment) => self.elsewhere(segment),
            Observation::SocketElsewhere(event) => self.heard_elsewhere(event),
            Observation::TooBig(told) => self.too_big(told),
            Observation::Watched(watched) => self.watched.add(watched),
            Observation::Socket(event) => {
                let either = Segment { src: event.local, dst: event.remote, ..Segment::EMPTY };
                match self.find_of(&either).and_then(|known| self.conn_at(known.slot)) {
                    Some(conn) => conn.hear(event),
                    None => self.early.keep(event),
                }
            }
        }
    }

    /// Takes one segment: the same as [`Analyzer::observe`] of it.
    pub fn push(&mut self, segment: &Segment) {
        self.count(std::slice::from_ref(segment));
        let known = self.find_of(segment).unwrap_or(Known::NOTHING);
        self.push_to(segment, known, None);
        self.look_for_quiet(std::slice::from_ref(segment));
    }

    /// The exchange that goes on in the connection of this segment, once it has an answer: when it began, and
    /// its last progress.
    pub fn ongoing(&mut self, segment: &Segment) -> Option<(Nanos, Nanos)> {
        let known = self.find_of(segment)?;
        self.conn_at(known.slot)?.ongoing()
    }

    /// Takes so many more into the totals.
    fn count(&mut self, segments: &[Segment]) {
        let Some(first) = segments.first() else { return };
        self.totals.segments += segments.len() as u64;
        let span = self.totals.span.get_or_insert((first.time, first.time));
        *span = segments.iter().fold(*span, |(from, to), s| (from.min(s.time), to.max(s.time)));
    }

    /// `tag`: the hash of its key, where that is known.
    #[inline]
    fn push_to(&mut self, segment: &Segment, known: Known, tag: Option<Tag>) {
        let crowded = self.is_crowded();
        let taken = match self.live.get_mut(known.slot as usize) {
            Some(Slot::Conn(held)) => {
                held.goes_on(segment, known.from_client, crowded, &mut self.kept, &mut self.room)
            }
            _ => false,
        };
        if !taken {
            self.push_any(segment, known, tag);
        }
        self.let_go_before(segment.time);
    }

    #[inline(always)]
    fn let_go_before(&mut self, now: Nanos) {
        if now > self.due {
            self.let_go(now);
        }
    }

    /// A segment that may begin or close a connection.
    #[inline(never)]
    fn push_any(&mut self, segment: &Segment, known: Known, tag: Option<Tag>) {
        let found = if known.is_nothing() { self.other_direction(segment) } else { Some(known) };
        let goes = found.is_some_and(|known| self.goes(known.slot));
        let found = if goes { self.found_behind(segment) } else { found };
        match found {
            None => self.begin(segment, tag),
            Some(Known { slot, from_client, .. }) if self.goes_on(slot, segment) => {
                self.feed(slot, from_client, segment);
            }
            Some(Known { slot, .. }) => {
                self.leave(slot, false);
                self.begin(segment, tag);
            }
        }
    }

    /// So many connections are open that the state of one is hardly in a cache: those that have closed get
    /// few packets more.
    #[inline]
    fn is_crowded(&self) -> bool {
        self.held >= self.crowd.saturating_add(self.closed.len())
    }

    /// The connection in this slot takes the segment.
    fn feed(&mut self, slot: u32, from_client: bool, segment: &Segment) {
        let crowded = self.is_crowded();
        self.room.set_crowded(crowded);
        let Slot::Conn(held) = &mut self.live[slot as usize] else { return };
        if held.goes_on(segment, from_client, crowded, &mut self.kept, &mut self.room) {
            return;
        }
        let lingered = held.closed_at().is_some();
        if !((crowded || held.is_young()) && held.keep(segment, from_client, &mut self.room)) {
            held.push(segment, &mut self.kept, &mut self.room);
        }
        if !lingered && let Some(now) = held.closed_at() {
            self.closed.push(now + self.linger, slot, held.id(), held.class());
            self.look_at_closed();
        }
    }

    /// The closed ones have changed.
    fn look_at_closed(&mut self) {
        self.due = self.closed.due();
    }

    /// The segment belongs to the connection in this slot, and begins no other one between the same ends. A
    /// connection of one packet has more than one then.
    #[inline]
    fn goes_on(&mut self, slot: u32, segment: &Segment) -> bool {
        let known = match &self.live[slot as usize] {
            Slot::Conn(held) => held.goes_on_with(segment, LINGER),
            _ => self.goes_on_from_one(slot, segment),
        };
        known.unwrap_or_else(|| self.conn_at(slot).is_some_and(|conn| conn.goes_on_with(segment, LINGER)))
    }

    /// The same of a connection of a single packet, which is no FIN; a reset alone closes nothing.
    fn goes_on_from_one(&mut self, slot: u32, segment: &Segment) -> Option<bool> {
        let asks = |s: &Segment| s.flags.syn() && !s.flags.ack();
        if !asks(segment) {
            self.hold_lone(slot);
            return Some(true);
        }
        let Slot::Lone(at, _) = self.live[slot as usize] else { return None };
        let first = self.lones.get(at);
        (asks(&first) && first.src == segment.src && first.seq != segment.seq).then_some(false)
    }

    /// A connection of a single packet gets another one.
    fn hold_lone(&mut self, slot: u32) {
        let Slot::Lone(at, id) = self.live[slot as usize] else { return };
        let first = self.lones.take(at);
        let mut held = self.hold(id, &first, true);
        let from_client = first.src == held.ends().client;
        if !(held.is_young() && held.keep(&first, from_client, &mut self.room)) {
            held.push(&first, &mut self.kept, &mut self.room);
        }
        self.live[slot as usize] = Slot::Conn(held);
    }

    /// The connection in a slot, with all its packets.
    fn conn_at(&mut self, slot: u32) -> Option<&mut Conn> {
        self.hold_lone(slot);
        if self.goes(slot) {
            self.let_them_go();
        }
        match &mut self.live[slot as usize] {
            Slot::Conn(held) => Some(held.settle(&mut self.kept, &mut self.room)),
            _ => None,
        }
    }

    /// A connection that begins with this segment, whose first packets may wait.
    fn hold(&mut self, id: u32, first: &Segment, may_wait: bool) -> Box<Held> {
        self.held += 1;
        if may_wait && self.crowd < usize::MAX && self.taps.is_one() {
            return self.room.boxed(Held::new(id, first));
        }
        let conn = Conn::new(id, first, self.kept.spare_basis()).seen_as(self.taps.role());
        self.room.boxed(Held::with(conn, first))
    }

    /// The segment begins a connection.
    fn begin(&mut self, segment: &Segment, tag: Option<Tag>) {
        let id = self.next_id;
        self.next_id += 1;
        self.changes += 1;
        let heard = self.early.take_of(segment);
        let (new, is_lone) = match self.lones.keep(segment) {
            Some(at) => (Slot::Lone(at, id), true),
            None => (Slot::Conn(self.hold(id, segment, heard.is_empty())), false),
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.live[slot as usize] = new;
                slot
            }
            None => {
                self.live.push(new);
                (self.live.len() - 1) as u32
            }
        };
        let key = Key::new(&segment.src, &segment.dst, segment.link);
        self.index.insert(tag.unwrap_or_else(|| self.index.tag(&key)), slot);
        for event in heard {
            if let Some(conn) = self.conn_at(slot) {
                conn.hear(&event);
            }
        }
        if segment.link != 0 || !self.links.is_empty() {
            let (a, b) = (segment.src, segment.dst);
            self.links.insert(if a <= b { (a, b) } else { (b, a) }, slot);
        }
        if !is_lone && let Some(known) = self.holds(slot, &key) {
            self.feed(slot, known.from_client, segment);
        }
    }

    /// What is needed of one that goes soon is on its way from memory while others end: it closed long ago.
    fn fetch_closed(&self, over: &[Closed], n: usize) {
        let held = |n: usize| match self.live.get(over.get(n)?.slot as usize) {
            Some(Slot::Conn(held)) => Some(&**held),
            _ => None,
        };
        // First where the rest lies, then that.
        held(n + 4).into_iter().for_each(Held::fetch_first);
        held(n + 2).into_iter().for_each(|held| held.fetch_rest(&self.room));
    }

    /// Ends the connections whose time for late packets is over.
    fn let_go(&mut self, now: Nanos) {
        if let Some(closed) = self.closed.crowded_out() {
            self.put_aside(closed);
        }
        let (live, linger) = (&self.live, self.linger);
        let over = self.closed.over(now, |closed| latest_of(live, closed).map(|last| last + linger));
        for (n, &closed) in over.iter().enumerate() {
            self.fetch_closed(&over, n);
            self.put_aside(closed);
        }
        self.look_at_closed();
    }

    /// The connection in this slot ends, and its ends may begin another one.
    fn leave(&mut self, slot: u32, capture_end: bool) {
        let (a, b, link, other) = match &self.live[slot as usize] {
            Slot::Free => return,
            Slot::Lone(at, _) => {
                let (a, b, link) = self.lones.key(*at);
                (a, b, link, None)
            }
            Slot::Conn(held) => {
                let ([a, b], (link, other)) = (held.ends().into_array(), held.links());
                (a, b, link, other)
            }
        };
        self.index.remove(self.index.tag(&Key::new(&a, &b, link)), slot);
        if let Some(other) = other {
            self.index.remove(self.index.tag(&Key::new(&a, &b, other)), slot);
        }
        if !self.links.is_empty() {
            self.links.remove(&if a <= b { (a, b) } else { (b, a) });
        }
        self.end(slot, capture_end);
    }

    /// Ends the connection in this slot.
    fn end(&mut self, slot: u32, capture_end: bool) {
        self.changes += 1;
        match std::mem::replace(&mut self.live[slot as usize], Slot::Free) {
            Slot::Free => return,
            Slot::Lone(at, id) => self.silent.push((at, id)),
            Slot::Conn(held) => self.finish_held(held, capture_end),
        }
        self.free.push(slot);
    }
}

/// The latest packet of one that has closed, if it is still there.
fn latest_of(live: &[Slot], closed: Closed) -> Option<Nanos> {
    match live.get(closed.slot as usize) {
        Some(Slot::Conn(held)) if held.id() == closed.id => held.closed_at(),
        _ => None,
    }
}
