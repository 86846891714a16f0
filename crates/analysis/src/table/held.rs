//! A connection in the table: what must be known of it whenever a packet comes, in one cache line, and where
//! the rest is.

mod together;

pub(super) use together::TOGETHER;

use super::index::Key;
use super::logs::{FULL, Log, Logs, NEARLY_FULL};
use super::resting::{Rested, Resting};
use super::seen::Seen;
use super::waiting::{BEFORE_ALL, Unpacked, decides_nothing};
use super::words::Words;
use crate::conn::{Conn, ends_of};
use crate::fetch::{fetch, fetch_whole};
use crate::output::Output;
use tcpwhy_base::{End, Endpoint, Ends, Nanos, Part, Segment};

/// Ended connections whose room is kept for those to come.
const SPARE: usize = 1_024;

/// Room that is used again.
#[derive(Debug, Default)]
#[expect(clippy::vec_box, reason = "they go to where they are used, and none is moved")]
pub(super) struct Room {
    logs: Logs,
    /// Connections that have ended: so many begin that to ask for memory each time would take longer than to find them.
    held: Vec<Box<Held>>,
    /// The states of the connections that ended last.
    #[expect(clippy::vec_box, reason = "they go to where they are used, and none is moved")]
    conns: Vec<Box<Conn>>,
    /// States that lie idle.
    resting: Resting,
}

impl Room {
    /// The state of a connection that begins with this segment.
    pub(super) fn conn(&mut self, id: u32, first: &Segment, parts: &mut Output) -> Box<Conn> {
        state_of(&mut self.conns, id, first, parts)
    }

    /// States that lie idle.
    #[inline]
    pub(super) fn resting(&self) -> usize {
        self.resting.len()
    }

    /// How many have gone on since this was last asked.
    #[inline]
    pub(super) fn woken(&mut self) -> i64 {
        self.resting.woken()
    }

    /// A connection whose packets all wait has nearly as many as may; asked once.
    #[inline]
    pub(super) fn ends_soon(&mut self) -> bool {
        self.logs.ends_soon()
    }

    /// So many connections are open that packets of each wait long.
    #[inline]
    pub(super) fn set_crowded(&mut self, crowded: bool) {
        self.logs.set_crowded(crowded);
    }

    /// That connection has ended.
    pub(super) fn give_back(&mut self, conn: Box<Conn>) {
        if self.conns.len() < TOGETHER {
            self.conns.push(conn);
        }
    }

    /// A connection, in the room of one that has ended.
    pub(super) fn boxed(&mut self, held: Held) -> Box<Held> {
        match self.held.pop() {
            Some(mut room) => {
                *room = held;
                room
            }
            None => Box::new(held),
        }
    }
}

/// The state of a connection that begins with this segment, in the room of one that has ended.
#[expect(clippy::vec_box, reason = "they go to where they are used, and none is moved")]
fn state_of(ended: &mut Vec<Box<Conn>>, id: u32, first: &Segment, parts: &mut Output) -> Box<Conn> {
    let basis = parts.spare_basis();
    match ended.pop() {
        Some(mut ended) => {
            ended.renew(id, first, basis);
            ended
        }
        None => Box::new(Conn::new(id, first, basis)),
    }
}

/// What few connections have.
#[derive(Debug)]
struct More {
    ends: Ends<Endpoint>,
    /// Another link id under which its other direction travels.
    other_link: Option<u32>,
}

/// A connection, and what must be known of it whenever a packet comes.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Held {
    /// From its client to its server.
    words: Words,
    /// Where those wait that do; the rules do not look at the link each came on.
    log: Log,
    /// Where its state lies idle.
    rested: Rested,
    /// Its state, once some packet has run through the rules, unless it lies idle.
    conn: Option<Box<Conn>>,
    /// The latest of its packets that wait; of one that lies idle and has closed, the last of all.
    now: Nanos,
    more: Option<Box<More>>,
    id: u32,
    link: u32,
    /// So many bytes of the latest room are taken by those that wait.
    waits: u16,
    /// Nothing closed it yet.
    open: bool,
    /// It has a state.
    grown: bool,
    /// Not heard of since it was last looked at.
    quiet: bool,
    /// As long as all its packets wait, what they say; of one that lies idle and has closed, what it said.
    seen: Seen,
}

impl Held {
    /// A connection to which nothing was pushed yet, and which begins with this segment.
    pub(super) fn new(id: u32, first: &Segment) -> Held {
        let ends = ends_of(first);
        let words = Words::of(&ends.client, &ends.server);
        let more = words.are_wide().then(|| Box::new(More { ends, other_link: None }));
        Held {
            words,
            log: Log::NONE,
            conn: None,
            rested: Rested::NONE,
            now: first.time,
            more,
            id,
            link: first.link,
            waits: 0,
            open: true,
            grown: false,
            quiet: false,
            seen: Seen::default(),
        }
    }

    /// The same with a state from the beginning.
    pub(super) fn with(conn: Conn, first: &Segment) -> Held {
        let young = Held::new(conn.id(), first);
        Held { open: false, grown: true, conn: Some(Box::new(conn)), ..young }
    }

    #[inline]
    pub(super) fn id(&self) -> u32 {
        self.id
    }

    pub(super) fn ends(&self) -> Ends<Endpoint> {
        match &self.more {
            Some(more) => more.ends,
            None => self.words.ends(),
        }
    }

    /// The link ids of its two directions.
    pub(super) fn links(&self) -> (u32, Option<u32>) {
        (self.link, self.more.as_ref().and_then(|more| more.other_link))
    }

    /// Its other direction travels under this link id.
    pub(super) fn also_on(&mut self, link: u32) {
        let ends = self.ends();
        self.more.get_or_insert_with(|| Box::new(More { ends, other_link: None })).other_link = Some(link);
    }

    /// Whether its client sent the segment with this key; `None`: it is of another connection, as far as its
    /// addresses tell.
    #[inline]
    pub(super) fn is_from_client(&self, key: &Key<'_>) -> Option<bool> {
        let from_client = self.words == key.words;
        if !from_client && self.words != key.words.turned() {
            return None;
        }
        if self.more.is_none() {
            return (self.link == key.link).then_some(from_client);
        }
        self.is_from_client_with_more(key)
    }

    #[cold]
    fn is_from_client_with_more(&self, key: &Key<'_>) -> Option<bool> {
        let (Ends { client, server }, (link, other)) = (self.ends(), self.links());
        let from_client = client == *key.src && server == *key.dst;
        let of = from_client || client == *key.dst && server == *key.src;
        (of && (link == key.link || other == Some(key.link))).then_some(from_client)
    }

    /// Which of the classes of connections it is of.
    pub(super) fn class(&self) -> usize {
        let [one, other] = self.ends().into_array();
        Part::class(&one, &other)
    }

    /// The segment goes on with it, as far as that is known without its state: `None` where it is not.
    #[inline]
    pub(super) fn goes_on_with(&self, segment: &Segment, linger: Nanos) -> Option<bool> {
        let opens = segment.flags.syn() && !segment.flags.ack();
        if self.open && !segment.flags.syn() {
            return Some(true);
        }
        // What waits may hold a copy of a packet, which closes nothing: only that it goes on is sure.
        let gone = || self.closed_at().is_some_and(|now| segment.time > now + linger);
        (self.is_young() && !opens && !gone()).then_some(true)
    }

    /// Whether it was seen to close, and when its last packet passed then. As long as all packets wait, a
    /// packet whose copy waits as well counts twice, which changes neither.
    #[inline]
    pub(super) fn closed_at(&self) -> Option<Nanos> {
        if self.open {
            return None;
        }
        match &self.conn {
            Some(conn) => conn.lingers().then(|| conn.now()),
            None => self.seen.not_only_resets().then_some(self.now),
        }
    }

    /// It will be asked for.
    #[inline]
    pub(super) fn fetch_first(&self) {
        fetch(self);
    }

    /// The rules will run when the next segment comes, or soon after.
    #[inline]
    fn runs_soon(&self, waits: bool) -> bool {
        self.grown && !(waits && self.open && usize::from(self.waits) <= FULL)
    }

    /// The next segment will need: where it is to wait, or its state and what waits before it.
    #[inline]
    pub(super) fn fetch(&self, waits: bool, room: &Room) {
        let n = usize::from(self.waits);
        if self.runs_soon(waits) {
            room.logs.fetch_latest(self.log, n);
            self.conn.iter().for_each(|conn| fetch_whole(&**conn));
        } else {
            room.logs.fetch_place(self.log, n);
        }
    }

    /// What its state keeps elsewhere, once that is there.
    #[inline]
    pub(super) fn fetch_lists(&self, waits: bool) {
        if self.runs_soon(waits) {
            self.conn.iter().for_each(|conn| conn.fetch_lists());
        }
    }

    /// Its end will need its state and what waits.
    pub(super) fn fetch_state(&self, room: &Room) {
        self.fetch_rest(room);
        self.conn.iter().for_each(|conn| fetch_whole(&**conn));
    }

    /// Its end will need what waits.
    pub(super) fn fetch_rest(&self, room: &Room) {
        room.logs.fetch_latest(self.log, usize::from(self.waits));
    }

    /// The same, and the first of it, once what tells where that is has come.
    pub(super) fn fetch_oldest(&self, room: &Room) {
        room.logs.fetch_first(self.log);
    }

    /// No packet has run through the rules: all wait.
    #[inline]
    pub(super) fn is_young(&self) -> bool {
        !self.grown
    }

    /// The segment waits, if it may.
    #[inline]
    pub(super) fn keep(&mut self, segment: &Segment, from_client: bool, room: &mut Room) -> bool {
        let may = self.is_young() || self.open && decides_nothing(segment);
        may && self.append(segment, from_client, room)
    }

    /// The same while all its packets wait, of a segment that may close it but begins no other one: then it
    /// goes on with it.
    #[inline(always)]
    pub(super) fn waits_young(
        &mut self,
        segment: &Segment,
        from_client: bool,
        linger: Nanos,
        room: &mut Room,
    ) -> bool {
        let late = !self.open && (segment.time > self.now + linger || self.seen.goes());
        self.is_young() && !segment.flags.syn() && !late && self.append(segment, from_client, room)
    }

    /// The same of a segment that decides nothing, while it is open: it goes on with it then, and stays open.
    #[inline(always)]
    pub(super) fn waits_on(&mut self, segment: &Segment, from_client: bool, room: &mut Room) -> bool {
        self.open && decides_nothing(segment) && self.append(segment, from_client, room)
    }

    /// The segment waits, if there is room and it can be kept.
    #[inline(always)]
    fn append(&mut self, segment: &Segment, from_client: bool, room: &mut Room) -> bool {
        if self.grown && self.rested == Rested::NONE && self.log.is_none() {
            self.log = room.logs.only();
        }
        self.quiet = false;
        let latest = if self.waits == 0 { BEFORE_ALL } else { self.now };
        let waits = room.logs.take(&mut self.log, self.waits.into(), latest, segment, from_client);
        if waits == 0 {
            return false;
        }
        (self.now, self.waits) = (latest.max(segment.time), waits);
        if !self.grown && self.seen.pass(segment.flags, from_client) {
            self.open = self.seen.is_open();
        }
        true
    }

    /// Of one that has a state: so many bytes wait that no more will before long.
    #[inline]
    pub(super) fn is_nearly_full(&self) -> bool {
        usize::from(self.waits) > NEARLY_FULL
    }

    /// Takes a segment that decides nothing, while it is open: it goes on with it then, and stays open. Right
    /// away where its state is there and nothing waits. `false`: it has not taken it.
    #[inline]
    pub(super) fn goes_on(
        &mut self,
        segment: &Segment,
        from_client: bool,
        crowded: bool,
        parts: &mut Output,
        room: &mut Room,
    ) -> bool {
        if crowded || !self.grown {
            return self.waits_on(segment, from_client, room);
        }
        if !decides_nothing(segment) {
            return false;
        }
        let Some(conn) = self.runs_at_once(crowded) else { return false };
        conn.push_from(if from_client { End::Client } else { End::Server }, segment, parts);
        true
    }

    /// The state to which segments that decide nothing go right away, where it is there, nothing waits, and it is open.
    #[inline]
    pub(super) fn runs_at_once(&mut self, crowded: bool) -> Option<&mut Conn> {
        let at_once = !crowded && self.grown && self.open && self.waits == 0;
        self.conn.as_deref_mut().filter(|_| at_once)
    }

    /// Takes a segment, after those that wait.
    #[inline]
    pub(super) fn push(&mut self, segment: &Segment, parts: &mut Output, room: &mut Room) {
        if self.waits > 0 || self.rested != Rested::NONE {
            self.settle(parts, room);
        }
        (self.grown, self.quiet) = (true, false);
        let id = self.id;
        let conn = self.conn.get_or_insert_with(|| room.conn(id, segment, parts));
        conn.push(segment, parts);
        self.open = conn.is_open();
    }

    /// Whether its time for late packets is over, so that it ends with others, before another packet comes to it.
    pub(super) fn set_goes(&mut self, goes: bool) {
        self.seen.set_goes(goes);
    }

    /// It was told to.
    #[inline]
    pub(super) fn goes(&self) -> bool {
        self.seen.goes()
    }

    /// Runs what waits through the rules, and gives the connection.
    pub(super) fn settle(&mut self, parts: &mut Output, room: &mut Room) -> &mut Conn {
        if self.waits > 0 || self.rested != Rested::NONE || self.conn.is_none() {
            self.run(parts, room);
        }
        let id = self.id;
        self.conn.get_or_insert_with(|| state_of(&mut room.conns, id, &Segment::EMPTY, parts))
    }

    /// Not heard of since this was last asked, nor since this time, and what it keeps is more than it needs.
    pub(super) fn was_quiet(&mut self, since: Nanos) -> bool {
        // One that has closed goes before long.
        if !std::mem::replace(&mut self.quiet, true) || !self.open {
            return false;
        }
        match &self.conn {
            Some(conn) => self.now.max(conn.now()) < since,
            None => self.log.is_large() && self.now < since,
        }
    }

    /// Nothing happens: what waits runs through the rules, and what comes out lies idle.
    pub(super) fn rest(&mut self, parts: &mut Output, room: &mut Room) {
        if self.waits == 0 && self.rested != Rested::NONE {
            return;
        }
        self.settle(parts, room);
        let Some(conn) = self.conn.take() else { return };
        self.rested = room.resting.keep(&conn);
        self.now = conn.now();
        self.seen.set_not_only_resets(conn.lingers());
    }

    /// The connection has ended: its state, with all that it got.
    pub(super) fn end(mut self: Box<Held>, parts: &mut Output, room: &mut Room) -> Option<Box<Conn>> {
        if self.rested != Rested::NONE {
            room.resting.has_ended();
        }
        self.settle(parts, room);
        let conn = self.conn.take();
        if room.held.len() < SPARE {
            room.held.push(self);
        }
        conn
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpwhy_base::TcpFlags;

    /// A connection closes when both ends have sent a FIN, or one a reset, unless that is all there is.
    #[test]
    fn what_waits_tells_when_a_connection_closes() {
        let sent = |flags: u16, second: i64, from_client| {
            let flags = TcpFlags(flags);
            (Segment { flags, time: Nanos::secs(second), ..Segment::EMPTY }, from_client)
        };
        let closed = |packets: &[(Segment, bool)]| {
            let (mut held, mut room) = (Held::new(1, &Segment::EMPTY), Room::default());
            packets.iter().for_each(|(s, from_client)| assert!(held.keep(s, *from_client, &mut room)));
            held.closed_at()
        };
        let (ack, fin, rst) = (TcpFlags::ACK, TcpFlags::FIN, TcpFlags::RST);
        assert_eq!(closed(&[sent(ack, 1, true), sent(fin, 2, true), sent(fin, 3, true)]), None);
        let both = [sent(fin, 1, true), sent(fin, 3, false), sent(ack, 2, true)];
        assert_eq!(closed(&both), Some(Nanos::secs(3)));
        assert_eq!(closed(&[sent(ack, 1, true), sent(rst, 4, false)]), Some(Nanos::secs(4)));
        assert_eq!(closed(&[sent(fin, 1, true), sent(fin | rst, 2, false)]), Some(Nanos::secs(2)));
        assert_eq!(closed(&[sent(rst, 1, true), sent(rst, 2, true)]), None);
    }

    #[test]
    fn it_knows_its_packets_and_who_sent_them() {
        let end = |ip: &str, port| Endpoint { ip: ip.parse().unwrap(), port };
        // The last two pairs have the same words.
        let pairs = [
            (end("192.0.2.1", 40_000), end("192.0.2.2", 80)),
            (end("2001:db8::1", 40_000), end("2001:db8::2", 80)),
            (end("2001:db8::1", 40_000), end("2001:db8:2::", 80)),
        ];
        for (i, (client, server)) in pairs.iter().enumerate() {
            let first = Segment { src: *client, dst: *server, link: 5, ..Segment::EMPTY };
            let mut held = Held::new(1, &first);
            assert_eq!(held.ends(), Ends::new(*client, *server));
            for (k, (a, b)) in pairs.iter().enumerate() {
                let says = |held: &Held, src, dst, link| held.is_from_client(&Key::new(src, dst, link));
                assert_eq!(says(&held, a, b, 5), (i == k).then_some(true));
                assert_eq!(says(&held, b, a, 5), (i == k).then_some(false));
                assert_eq!(says(&held, a, b, 6), None);
            }
            held.also_on(6);
            assert_eq!(held.is_from_client(&Key::new(server, client, 6)), Some(false));
            assert_eq!((held.links(), held.ends()), ((5, Some(6)), Ends::new(*client, *server)));
        }
    }

    #[test]
    fn each_is_a_cache_line() {
        assert_eq!(size_of::<Held>(), 64);
    }
}
