//! Packets that wait in their connection. All of its first ones do: most connections end before they have more, and then run
//! through the rules in one go, with a state that is still in the first cache. Later ones do where many connections live: the
//! state of one is not in a cache, and fetching it takes longer than all the rules. A packet is kept as it is, in a cache line.

use crate::conn::{Conn, ends_of};
use crate::fetch::{fetch, fetch_whole};
use crate::output::Output;
use crate::table::seen::Seen;
use tcpwhy_base::{End, Endpoint, Ends, Nanos, Program, Segment, Seq, TcpFlags, TcpOptions, Tls, Trouble};

/// Rooms for waiting packets that are kept for connections to come.
const SPARE: usize = 1_024;
/// So many wait at most.
pub(super) const MOST: usize = 16;

/// A packet that waits. Its ends are those of its connection; SACK blocks are missing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    time: Nanos,
    frame: u64,
    seq: u32,
    ack: u32,
    stamps: [u32; 2],
    len: u32,
    flags: u16,
    window: u16,
    /// What its payload begins with; where it has none, the options that SYNs have.
    head: [u8; 8],
    ip_id: u16,
    checksum: u16,
    file: u16,
    ttl: u8,
    /// Which of the fields are there, and other bits.
    has: u8,
    head_len: u8,
    tls: u8,
    trouble: u8,
    program: Option<Program>,
}

const STAMPS: u8 = 1;
const IP_ID: u8 = 2;
const DAMAGED: u8 = 4;
const FROM_CLIENT: u8 = 8;
const OPTIONS: u8 = 16;
const MSS: u8 = 32;
const WSCALE: u8 = 64;
const SACK_PERMITTED: u8 = 128;

/// It has options that belong to SYNs.
#[inline]
fn has_options(options: &TcpOptions) -> bool {
    options.order != 0 || options.mss.is_some() || options.wscale.is_some() || options.sack_permitted
}

/// All of it can be kept.
#[inline]
pub(super) fn can_wait(segment: &Segment) -> bool {
    segment.options.sack_len == 0 && (segment.head_len == 0 || !has_options(&segment.options))
}

/// Nothing has to be known of it when it comes.
#[inline]
fn decides_nothing(segment: &Segment) -> bool {
    !segment.flags.has(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST)
}

/// Room for those of a connection.
type Log = [Waiting; MOST];

impl Waiting {
    /// A place where none waits.
    const NONE: Waiting = Waiting {
        time: Nanos::ZERO,
        frame: 0,
        seq: 0,
        ack: 0,
        stamps: [0; 2],
        len: 0,
        flags: 0,
        window: 0,
        head: [0; 8],
        ip_id: 0,
        checksum: 0,
        file: 0,
        ttl: 0,
        has: 0,
        head_len: 0,
        tls: 0,
        trouble: 0,
        program: None,
    };

    /// A packet that [`can_wait`].
    #[inline]
    fn pack(segment: &Segment, from_client: bool) -> Waiting {
        let o = &segment.options;
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        let (stamp, echo) = o.timestamps.unwrap_or_default();
        let mut packed = Waiting {
            time: segment.time,
            frame: segment.frame,
            seq: segment.seq.0,
            ack: segment.ack.0,
            stamps: [stamp, echo],
            len: segment.len,
            flags: segment.flags.0,
            window: segment.window,
            head: segment.head,
            ip_id: segment.ip_id.unwrap_or_default(),
            checksum: segment.checksum,
            file: segment.file,
            ttl: segment.ttl,
            has: bit(o.timestamps.is_some(), STAMPS)
                | bit(segment.ip_id.is_some(), IP_ID)
                | bit(o.damaged, DAMAGED)
                | bit(from_client, FROM_CLIENT),
            head_len: segment.head_len,
            tls: segment.tls.0,
            trouble: segment.trouble.0,
            program: segment.program,
        };
        if has_options(o) {
            packed.take_options(o);
        }
        packed
    }

    fn take_options(&mut self, o: &TcpOptions) {
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        let [a, b, c, d] = o.order.to_le_bytes();
        let [low, high] = o.mss.unwrap_or_default().to_le_bytes();
        self.head = [a, b, c, d, low, high, o.wscale.unwrap_or_default(), 0];
        self.has |= OPTIONS
            | bit(o.mss.is_some(), MSS)
            | bit(o.wscale.is_some(), WSCALE)
            | bit(o.sack_permitted, SACK_PERMITTED);
    }

    #[inline]
    fn sender(&self) -> End {
        if self.has & FROM_CLIENT != 0 { End::Client } else { End::Server }
    }

    /// Writes it over a segment of its connection that holds nothing else that others do not have.
    #[inline]
    fn unpack(&self, ends: &Ends<Endpoint>, into: &mut Segment) {
        let has = |bit| self.has & bit != 0;
        let Ends { client, server } = ends;
        let (src, dst) = if has(FROM_CLIENT) { (client, server) } else { (server, client) };
        (into.src, into.dst) = (*src, *dst);
        (into.time, into.frame, into.file) = (self.time, self.frame, self.file);
        (into.seq, into.ack) = (Seq(self.seq), Seq(self.ack));
        (into.flags, into.window, into.len) = (TcpFlags(self.flags), self.window, self.len);
        into.ip_id = has(IP_ID).then_some(self.ip_id);
        (into.ttl, into.checksum) = (self.ttl, self.checksum);
        let o = &mut into.options;
        o.timestamps = has(STAMPS).then_some((self.stamps[0], self.stamps[1]));
        o.damaged = has(DAMAGED);
        (into.head, into.head_len, into.program) = (self.head, self.head_len, self.program);
        (into.tls, into.trouble) = (Tls(self.tls), Trouble(self.trouble));
        (o.order, o.mss, o.wscale, o.sack_permitted) = (0, None, None, false);
        if has(OPTIONS) {
            let [a, b, c, d, low, high, scale, _] = self.head;
            o.order = u32::from_le_bytes([a, b, c, d]);
            o.mss = has(MSS).then_some(u16::from_le_bytes([low, high]));
            o.wscale = has(WSCALE).then_some(scale);
            o.sack_permitted = has(SACK_PERMITTED);
            into.head = [0; 8];
        }
    }
}

/// Room that is used again.
#[derive(Debug, Default)]
#[expect(clippy::vec_box, reason = "they go to where they are used, and none is moved")]
pub(super) struct Room {
    logs: Vec<Box<Log>>,
    /// Connections that have ended: so many begin that to ask for memory each time would take longer than to find them.
    held: Vec<Box<Held>>,
    /// The state of the connection that ended last.
    conn: Option<Box<Conn>>,
}

impl Room {
    /// The state of a connection that begins with this segment.
    pub(super) fn conn(&mut self, id: u32, first: &Segment, parts: &mut Output) -> Box<Conn> {
        let basis = parts.spare_basis();
        match self.conn.take() {
            Some(mut ended) => {
                ended.renew(id, first, basis);
                ended
            }
            None => Box::new(Conn::new(id, first, basis)),
        }
    }

    /// Where packets are to wait.
    fn log(&mut self) -> Box<Log> {
        self.logs.pop().unwrap_or_else(|| Box::new([Waiting::NONE; MOST]))
    }

    /// Where packets waited. What is more than a few goes back, since nobody may need it again.
    fn keep(&mut self, log: Box<Log>) {
        if self.logs.len() < SPARE {
            self.logs.push(log);
        }
    }

    /// That connection has ended.
    pub(super) fn give_back(&mut self, conn: Box<Conn>) {
        self.conn = Some(conn);
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

/// A connection, what must be known of it whenever a packet comes, and the packets that wait in it.
///
/// What a packet needs that waits stands first.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Held {
    ends: Ends<Endpoint>,
    /// Those that wait, so many of them; the rules do not look at the link each came on.
    log: Option<Box<Log>>,
    id: u32,
    link: u32,
    waits: u8,
    /// Nothing closed it yet.
    open: bool,
    /// It has a state.
    grown: bool,
    /// Its state, once some packet has run through the rules.
    conn: Option<Box<Conn>>,
    /// As long as all its packets wait: what they say.
    seen: Seen,
    /// Another link id under which its other direction travels.
    other_link: Option<u32>,
}

impl Held {
    /// A connection to which nothing was pushed yet, and which begins with this segment.
    pub(super) fn new(id: u32, first: &Segment) -> Held {
        Held {
            id,
            link: first.link,
            other_link: None,
            ends: ends_of(first),
            open: true,
            seen: Seen::begins(first.time),
            log: None,
            waits: 0,
            grown: false,
            conn: None,
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
        self.ends
    }

    /// The link ids of its two directions.
    pub(super) fn links(&self) -> (u32, Option<u32>) {
        (self.link, self.other_link)
    }

    /// Its other direction travels under this link id.
    pub(super) fn also_on(&mut self, link: u32) {
        self.other_link = Some(link);
    }

    /// The segment is of this connection (as far as its addresses tell).
    #[inline]
    pub(super) fn is_of(&self, segment: &Segment) -> bool {
        let Ends { client, server } = &self.ends;
        let (src, dst) = (&segment.src, &segment.dst);
        // Both ways differ in their ports, which takes one comparison.
        let from_client = client.port == src.port && server.port == dst.port;
        (from_client && client.ip == src.ip && server.ip == dst.ip || client == dst && server == src)
            && (self.link == segment.link || self.other_link == Some(segment.link))
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

    /// Whether it was seen to close, and when its last packet passed then. As long as all packets wait, a packet whose copy waits as well
    /// counts twice, which changes neither.
    #[inline]
    pub(super) fn closed_at(&self) -> Option<Nanos> {
        if self.open {
            return None;
        }
        match &self.conn {
            Some(conn) => conn.lingers().then(|| conn.now()),
            None => self.seen.not_only_resets.then_some(self.seen.now),
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
        self.grown && !(waits && self.open && usize::from(self.waits) + 1 < MOST)
    }

    /// The next segment will need: where it is to wait, or its state and what waits before it.
    #[inline]
    pub(super) fn fetch(&self, waits: bool) {
        let (n, log) = (usize::from(self.waits), self.log.as_deref());
        if self.runs_soon(waits) {
            log.into_iter().for_each(|log| fetch_whole(&log[..n]));
            self.conn.iter().for_each(|conn| fetch_whole(&**conn));
        } else {
            log.and_then(|log| log.get(n)).into_iter().for_each(fetch);
        }
    }

    /// What its state keeps elsewhere, once that is there.
    #[inline]
    pub(super) fn fetch_lists(&self, waits: bool) {
        if self.runs_soon(waits) {
            self.conn.iter().for_each(|conn| conn.fetch_lists());
        }
    }

    /// Its end will need what waits.
    pub(super) fn fetch_rest(&self) {
        fetch(&self.seen);
        self.log.as_deref().into_iter().for_each(|log| fetch_whole(&log[..usize::from(self.waits)]));
    }

    /// No packet has run through the rules: all wait.
    #[inline]
    pub(super) fn is_young(&self) -> bool {
        !self.grown
    }

    /// The segment waits, if it may.
    #[inline]
    pub(super) fn keep(&mut self, segment: &Segment, room: &mut Room) -> bool {
        let young = self.is_young();
        let may = young || self.open && decides_nothing(segment);
        let n = usize::from(self.waits);
        if !may || n >= MOST || !can_wait(segment) {
            return false;
        }
        let log = self.log.get_or_insert_with(|| room.log());
        let from_client = segment.src == self.ends.client;
        if young && self.seen.pass(segment, from_client) {
            self.open = self.seen.is_open();
        }
        log[n] = Waiting::pack(segment, from_client);
        self.waits += 1;
        true
    }

    /// Takes a segment that decides nothing, while it is open: it goes on with it then, and stays open. Right away where its state is
    /// there and nothing waits. `false`: it has not taken it.
    #[inline]
    pub(super) fn goes_on(
        &mut self,
        segment: &Segment,
        crowded: bool,
        parts: &mut Output,
        room: &mut Room,
    ) -> bool {
        if !self.open || !decides_nothing(segment) {
            return false;
        }
        if crowded || !self.grown {
            return self.keep(segment, room);
        }
        let Some(conn) = self.conn.as_mut().filter(|_| self.waits == 0) else { return false };
        conn.push(segment, parts);
        true
    }

    /// Takes a segment, after those that wait.
    #[inline]
    pub(super) fn push(&mut self, segment: &Segment, parts: &mut Output, room: &mut Room) {
        if self.waits > 0 {
            self.settle(parts, room);
        }
        self.grown = true;
        let id = self.id;
        let conn = self.conn.get_or_insert_with(|| room.conn(id, segment, parts));
        conn.push(segment, parts);
        self.open = conn.is_open();
    }

    /// Runs what waits through the rules, and gives the connection.
    pub(super) fn settle(&mut self, parts: &mut Output, room: &mut Room) -> &mut Conn {
        let mut segment = Segment { link: self.link, ..Segment::EMPTY };
        let (ends, id) = (self.ends, self.id);
        let n = usize::from(std::mem::take(&mut self.waits));
        let log = self.log.take();
        let waiting = log.as_deref().map_or(&[][..], |log| &log[..n]);
        self.grown = true;
        let conn = self.conn.get_or_insert_with(|| {
            waiting.iter().take(1).for_each(|first| first.unpack(&ends, &mut segment));
            room.conn(id, &segment, parts)
        });
        for packet in waiting {
            packet.unpack(&ends, &mut segment);
            conn.push_from(packet.sender(), &segment, parts);
        }
        if let Some(log) = log {
            room.keep(log);
            self.open = conn.is_open();
        }
        conn
    }

    /// The connection has ended: its state, with all that it got.
    pub(super) fn end(mut self: Box<Held>, parts: &mut Output, room: &mut Room) -> Option<Box<Conn>> {
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

    #[test]
    fn packets_come_back_whole() {
        let end = |last: u8| Endpoint { ip: [192, 0, 2, last].into(), port: 40_000 };
        let ends = Ends::new(end(1), end(2));
        let options = TcpOptions { timestamps: Some((7, u32::MAX)), damaged: true, ..TcpOptions::default() };
        let whole = Segment {
            time: Nanos(-5),
            frame: u64::MAX - 3,
            file: 9,
            link: 77,
            seq: Seq(u32::MAX),
            ack: Seq(3),
            flags: TcpFlags(TcpFlags::ACK | TcpFlags::PSH | TcpFlags::ECE),
            window: 65_535,
            len: u32::MAX,
            ip_id: Some(0),
            ttl: 255,
            checksum: 0xbeef,
            head: [1, 2, 3, 4, 5, 6, 7, 8],
            head_len: 8,
            tls: Tls(Tls::DATA | Tls::HANDSHAKE),
            trouble: Trouble(63),
            options,
            ..Segment::EMPTY
        };
        let bare = Segment { ip_id: None, options: TcpOptions::default(), ..whole };
        let options = TcpOptions {
            mss: Some(0),
            wscale: Some(14),
            sack_permitted: true,
            order: 0x4321_0fed,
            ..TcpOptions::default()
        };
        let flags = TcpFlags(TcpFlags::SYN | TcpFlags::ACK);
        let syn = Segment { flags, len: 0, head: [0; 8], head_len: 0, options, ..whole };
        let other = TcpOptions { mss: None, wscale: None, order: 0, ..options };
        let program = Some(Program::Go);
        let mut into = Segment { link: 77, ..Segment::EMPTY };
        for segment in
            [whole, bare, syn, whole, Segment { options: other, ..syn }, Segment { program, ..bare }]
        {
            for s in End::BOTH {
                let segment = Segment { src: ends[s], dst: ends[s.peer()], ..segment };
                assert!(can_wait(&segment));
                Waiting::pack(&segment, s == End::Client).unpack(&ends, &mut into);
                assert_eq!(format!("{into:?}"), format!("{segment:?}"));
            }
        }
    }

    #[test]
    fn what_decides_or_has_more_does_not_wait() {
        let with = |change: fn(&mut Segment)| {
            let mut segment = Segment::EMPTY;
            change(&mut segment);
            (can_wait(&segment), decides_nothing(&segment))
        };
        assert_eq!(with(|s| s.len = 1), (true, true));
        assert_eq!(with(|s| s.flags = TcpFlags(TcpFlags::SYN)), (true, false));
        assert_eq!(with(|s| s.flags = TcpFlags(TcpFlags::FIN | TcpFlags::ACK)), (true, false));
        assert_eq!(with(|s| s.flags = TcpFlags(TcpFlags::RST)), (true, false));
        assert_eq!(with(|s| s.options.sack_len = 1), (false, true));
        // What payload begins with stands where the options would.
        assert_eq!(with(|s| (s.head_len, s.options.mss) = (1, Some(1_460))), (false, true));
        assert_eq!(with(|s| (s.head_len, s.options.order) = (8, 1)), (false, true));
    }

    /// A connection closes when both ends have sent a FIN, or one a reset, unless that is all there is.
    #[test]
    fn what_waits_tells_when_a_connection_closes() {
        let sent = |flags: u16, second: i64, from_client| {
            let flags = TcpFlags(flags);
            (Segment { flags, time: Nanos::secs(second), ..Segment::EMPTY }, from_client)
        };
        let closed = |packets: &[(Segment, bool)]| {
            let mut held = Held::new(1, &Segment::EMPTY);
            packets.iter().for_each(|(s, from_client)| _ = held.seen.pass(s, *from_client));
            held.open = held.seen.is_open();
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
    fn each_is_a_cache_line() {
        assert_eq!((size_of::<Waiting>(), size_of::<Held>()), (64, 96));
        // All that a packet needs that waits.
        assert!(std::mem::offset_of!(Held, grown) < 64);
    }
}
