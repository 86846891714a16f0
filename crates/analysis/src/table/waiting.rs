//! Packets that wait in their connection: where many connections live, the state of one is not in a cache, and fetching it takes
//! longer than all the rules. So packets that need no decision when they come are kept as they are, a cache line for each,
//! and run through the rules together.

use crate::conn::Conn;
use crate::output::Output;
use tcpwhy_base::{Endpoint, Ends, Nanos, Segment, Seq, TcpFlags, TcpOptions, Tls, Trouble};

/// So many wait at most.
pub(super) const MOST: usize = 16;

/// A packet that waits. Its ends are those of its connection; what only SYNs have and SACK blocks are missing.
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
}

const STAMPS: u8 = 1;
const IP_ID: u8 = 2;
const DAMAGED: u8 = 4;
const FROM_CLIENT: u8 = 8;

impl Waiting {
    /// A packet that [`may_wait`].
    #[inline]
    fn pack(segment: &Segment, from_client: bool) -> Waiting {
        let o = &segment.options;
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        let (stamp, echo) = o.timestamps.unwrap_or_default();
        Waiting {
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
        }
    }

    /// Writes it over an empty segment of its connection.
    #[inline]
    fn unpack(&self, ends: &Ends<Endpoint>, into: &mut Segment) {
        let has = |bit| self.has & bit != 0;
        let [client, server] = ends.into_array();
        (into.src, into.dst) = if has(FROM_CLIENT) { (client, server) } else { (server, client) };
        (into.time, into.frame, into.file) = (self.time, self.frame, self.file);
        (into.seq, into.ack) = (Seq(self.seq), Seq(self.ack));
        (into.flags, into.window, into.len) = (TcpFlags(self.flags), self.window, self.len);
        into.ip_id = has(IP_ID).then_some(self.ip_id);
        (into.ttl, into.checksum) = (self.ttl, self.checksum);
        into.options.timestamps = has(STAMPS).then_some((self.stamps[0], self.stamps[1]));
        into.options.damaged = has(DAMAGED);
        (into.head, into.head_len) = (self.head, self.head_len);
        (into.tls, into.trouble) = (Tls(self.tls), Trouble(self.trouble));
    }
}

/// It may wait: nothing has to be known of it when it comes, and all of it can be kept.
#[inline]
pub(super) fn may_wait(segment: &Segment) -> bool {
    let TcpOptions { mss: None, wscale: None, sack_permitted: false, sack_len: 0, order: 0, .. } =
        segment.options
    else {
        return false;
    };
    !segment.flags.has(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST) && segment.program.is_none()
}

/// A connection, what must be known of it whenever a packet comes, and the packets that wait in it.
#[derive(Debug)]
pub(super) struct Held {
    id: u32,
    link: u32,
    /// Another link id under which its other direction travels.
    other_link: Option<u32>,
    ends: Ends<Endpoint>,
    /// Nothing closed it yet: only then packets may wait.
    open: bool,
    /// Those that wait; the rules do not look at the link each came on.
    waits: Vec<Waiting>,
    conn: Box<Conn>,
}

impl Held {
    /// A connection on this link to which nothing was pushed yet.
    pub(super) fn new(conn: Conn, link: u32) -> Held {
        Held {
            id: conn.id(),
            link,
            other_link: None,
            ends: conn.ends(),
            open: false,
            waits: Vec::new(),
            conn: Box::new(conn),
        }
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
        let Ends { client, server } = self.ends;
        (client == segment.src && server == segment.dst || client == segment.dst && server == segment.src)
            && (self.link == segment.link || self.other_link == Some(segment.link))
    }

    /// Nothing closed it yet.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// What is known without what waits, which closes nothing and waits only while it is open: whether it was seen to close, and when
    /// its last packet passed then.
    #[inline]
    pub(super) fn closed_at(&self) -> Option<Nanos> {
        (!self.open && self.conn.lingers()).then(|| self.conn.now())
    }

    /// Reads a little of each cache line that the next segment will need, so that they are fetched together.
    #[inline]
    pub(super) fn touch(&self, waits: bool) -> u64 {
        let n = self.waits.len();
        if waits && self.open && n + 1 < MOST {
            return self.waits.last().map_or(0, |last| last.frame);
        }
        self.conn.touch() ^ self.waits.iter().fold(0, |all, w| all ^ w.frame)
    }

    /// The segment waits, if it may; `spare` is room for those that do.
    #[inline]
    pub(super) fn keep(&mut self, segment: &Segment, spare: &mut Vec<Vec<Waiting>>) -> bool {
        if !self.open || self.waits.len() >= MOST || !may_wait(segment) {
            return false;
        }
        if self.waits.capacity() == 0 {
            self.waits = spare.pop().unwrap_or_else(|| Vec::with_capacity(MOST));
        }
        self.waits.push(Waiting::pack(segment, segment.src == self.ends.client));
        true
    }

    /// Takes a segment, after those that wait.
    #[inline]
    pub(super) fn push(&mut self, segment: &Segment, parts: &mut Output, spare: &mut Vec<Vec<Waiting>>) {
        if !self.waits.is_empty() {
            self.settle(parts, spare);
        }
        self.conn.push(segment, parts);
        self.open = self.conn.is_open();
    }

    /// Runs what waits through the rules, and gives the connection.
    #[inline]
    pub(super) fn settle(&mut self, parts: &mut Output, spare: &mut Vec<Vec<Waiting>>) -> &mut Conn {
        if !self.waits.is_empty() {
            self.run(parts);
            spare.push(std::mem::take(&mut self.waits));
        }
        &mut self.conn
    }

    fn run(&mut self, parts: &mut Output) {
        let mut segment = Segment { link: self.link, ..Segment::EMPTY };
        for waiting in self.waits.drain(..) {
            waiting.unpack(&self.ends, &mut segment);
            self.conn.push(&segment, parts);
        }
    }

    /// The connection, with all that it got.
    pub(super) fn into_conn(mut self, parts: &mut Output, spare: &mut Vec<Vec<Waiting>>) -> Box<Conn> {
        self.settle(parts, spare);
        self.conn
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpwhy_base::End;

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
        let mut into = Segment { link: 77, ..Segment::EMPTY };
        for segment in [whole, bare, whole] {
            for s in End::BOTH {
                let segment = Segment { src: ends[s], dst: ends[s.peer()], ..segment };
                assert!(may_wait(&segment));
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
            may_wait(&segment)
        };
        assert!(with(|s| s.len = 1));
        assert!(!with(|s| s.flags = TcpFlags(TcpFlags::SYN)));
        assert!(!with(|s| s.flags = TcpFlags(TcpFlags::FIN | TcpFlags::ACK)));
        assert!(!with(|s| s.flags = TcpFlags(TcpFlags::RST)));
        assert!(!with(|s| s.options.sack_len = 1));
        assert!(!with(|s| s.options.mss = Some(1_460)));
        assert!(!with(|s| s.options.wscale = Some(7)));
        assert!(!with(|s| s.options.sack_permitted = true));
        assert!(!with(|s| s.options.order = 1));
    }

    #[test]
    fn each_is_a_cache_line() {
        assert_eq!(size_of::<Waiting>(), 64);
    }
}
