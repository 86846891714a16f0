//! Packets that wait in their connection. All of its first ones do: most connections end before they have more, and then run
//! through the rules in one go, with a state that is still in the first cache. Later ones do where many connections live: the
//! state of one is not in a cache, and fetching it takes longer than all the rules. A packet is kept as it is, in a cache line.

use tcpwhy_base::{
    End, Endpoint, Ends, IpId, Nanos, Program, Segment, Seq, TcpFlags, TcpOptions, Tls, Trouble,
};

/// So many wait at most.
pub(super) const MOST: usize = 32;

/// A packet that waits. Its ends are those of its connection; SACK blocks are missing.
///
/// Fields stand in the order of [`Segment`], so that most of them are copied several at once.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Waiting {
    time: Nanos,
    frame: u64,
    seq: u32,
    ack: u32,
    len: u32,
    flags: u16,
    window: u16,
    /// What its payload begins with; where it has none, the options that SYNs have.
    head: [u8; 8],
    file: u16,
    ttl: u8,
    head_len: u8,
    tls: u8,
    trouble: u8,
    program: Option<Program>,
    /// Who sent it, and which options it has beside time stamps.
    has: u8,
    ip_id: IpId,
    stamps: Option<(u32, u32)>,
}

const DAMAGED: u8 = 4;
const FROM_CLIENT: u8 = 8;
const OPTIONS: u8 = 16;
const MSS: u8 = 32;
const WSCALE: u8 = 64;
const SACK_PERMITTED: u8 = 128;

#[inline]
fn bit(set: bool, bit: u8) -> u8 {
    if set { bit } else { 0 }
}

/// It has options that belong to SYNs.
#[inline]
fn has_options(options: &TcpOptions) -> bool {
    options.order != 0 || options.mss.is_some() || options.wscale.is_some() || options.sack_permitted
}

/// Nothing has to be known of it when it comes.
#[inline]
pub(super) fn decides_nothing(segment: &Segment) -> bool {
    !segment.flags.has(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST)
}

/// Room for those of a connection.
pub(super) type Log = [Waiting; MOST];

impl Waiting {
    /// A place where none waits.
    pub(super) const NONE: Waiting = Waiting {
        time: Nanos::ZERO,
        frame: 0,
        seq: 0,
        ack: 0,
        len: 0,
        flags: 0,
        window: 0,
        head: [0; 8],
        file: 0,
        ttl: 0,
        head_len: 0,
        tls: 0,
        trouble: 0,
        program: None,
        has: 0,
        ip_id: None,
        stamps: None,
    };

    /// Becomes a packet, if all of that can be kept.
    #[inline(always)]
    pub(super) fn take(&mut self, segment: &Segment, from_client: bool) -> bool {
        let o = &segment.options;
        let has_options = has_options(o);
        if o.sack_len != 0 || has_options && segment.head_len != 0 {
            return false;
        }
        // Field by field into its place: as a value of its own it would be copied once more.
        self.time = segment.time;
        self.frame = segment.frame;
        self.seq = segment.seq.0;
        self.ack = segment.ack.0;
        self.len = segment.len;
        self.flags = segment.flags.0;
        self.window = segment.window;
        self.head = segment.head;
        self.file = segment.file;
        self.ttl = segment.ttl;
        self.head_len = segment.head_len;
        self.tls = segment.tls.0;
        self.trouble = segment.trouble.0;
        self.program = segment.program;
        self.has = bit(o.damaged, DAMAGED) | bit(from_client, FROM_CLIENT);
        self.ip_id = segment.ip_id;
        self.stamps = o.timestamps;
        if has_options {
            self.take_options(o);
        }
        true
    }

    #[cold]
    fn take_options(&mut self, o: &TcpOptions) {
        let [a, b, c, d] = o.order.to_le_bytes();
        let [low, high] = o.mss.unwrap_or_default().to_le_bytes();
        self.head = [a, b, c, d, low, high, o.wscale.unwrap_or_default(), 0];
        self.has |= OPTIONS
            | bit(o.mss.is_some(), MSS)
            | bit(o.wscale.is_some(), WSCALE)
            | bit(o.sack_permitted, SACK_PERMITTED);
    }

    #[inline]
    pub(super) fn sender(&self) -> End {
        if self.has & FROM_CLIENT != 0 { End::Client } else { End::Server }
    }

    /// Writes it over a segment of the same sender, of whose options `odd` tells whether there are any beside time stamps.
    #[inline(always)]
    fn unpack(&self, into: &mut Segment, odd: &mut bool) {
        into.time = self.time;
        into.frame = self.frame;
        into.seq = Seq(self.seq);
        into.ack = Seq(self.ack);
        into.len = self.len;
        into.flags = TcpFlags(self.flags);
        into.window = self.window;
        into.head = self.head;
        into.file = self.file;
        into.ttl = self.ttl;
        into.head_len = self.head_len;
        into.tls = Tls(self.tls);
        into.trouble = Trouble(self.trouble);
        into.program = self.program;
        into.ip_id = self.ip_id;
        into.options.timestamps = self.stamps;
        if *odd || self.has & (OPTIONS | DAMAGED) != 0 {
            *odd = self.unpack_options(into);
        }
    }

    #[cold]
    fn unpack_options(&self, into: &mut Segment) -> bool {
        let has = |bit| self.has & bit != 0;
        let o = &mut into.options;
        o.damaged = has(DAMAGED);
        (o.order, o.mss, o.wscale, o.sack_permitted) = (0, None, None, false);
        if has(OPTIONS) {
            let [a, b, c, d, low, high, scale, _] = self.head;
            o.order = u32::from_le_bytes([a, b, c, d]);
            o.mss = has(MSS).then_some(u16::from_le_bytes([low, high]));
            o.wscale = has(WSCALE).then_some(scale);
            o.sack_permitted = has(SACK_PERMITTED);
            into.head = [0; 8];
        }
        has(OPTIONS) || has(DAMAGED)
    }
}

/// A segment of one end, over which those that wait are written.
#[derive(Debug)]
pub(super) struct Unpacked {
    segment: Segment,
    odd: bool,
}

impl Unpacked {
    pub(super) fn of(s: End, ends: &Ends<Endpoint>, link: u32) -> Unpacked {
        Unpacked {
            segment: Segment { src: ends[s], dst: ends[s.peer()], link, ..Segment::EMPTY },
            odd: false,
        }
    }

    /// A packet of that end. Its checksum is missing, which no rule asks for.
    #[inline(always)]
    pub(super) fn write(&mut self, packet: &Waiting) -> &Segment {
        packet.unpack(&mut self.segment, &mut self.odd);
        &self.segment
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
        let mut into = Ends::of(|s| Unpacked::of(s, &ends, 77));
        for segment in
            [whole, bare, syn, whole, Segment { options: other, ..syn }, Segment { program, ..bare }]
        {
            for s in End::BOTH {
                let segment = Segment { src: ends[s], dst: ends[s.peer()], ..segment };
                let mut packed = Waiting { stamps: Some((1, 2)), has: u8::MAX, ..Waiting::NONE };
                assert!(packed.take(&segment, s == End::Client));
                assert_eq!(packed.sender(), s);
                assert_eq!(format!("{:?}", into[s].write(&packed)), format!("{segment:?}"));
            }
        }
    }

    #[test]
    fn what_decides_or_has_more_does_not_wait() {
        let with = |change: fn(&mut Segment)| {
            let mut segment = Segment::EMPTY;
            change(&mut segment);
            ({ Waiting::NONE }.take(&segment, true), decides_nothing(&segment))
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

    #[test]
    fn each_is_a_cache_line() {
        assert_eq!(size_of::<Waiting>(), 64);
    }
}
