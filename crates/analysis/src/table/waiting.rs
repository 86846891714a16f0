//! Packets that wait in their connection. All of its first ones do: most connections end before they have more, and then run
//! through the rules in one go, with a state that is still in the first cache. Later ones do where many connections live: the
//! state of one is not in a cache, and fetching it takes longer than all the rules. Most take half a cache line: less is read and written, and
//! more of them run through the rules in one go.

mod before;

pub(super) use before::Before;
use tcpwhy_base::{End, Endpoint, Ends, Nanos, Program, Segment, Seq, TcpFlags, TcpOptions, Tls, Trouble};

/// A plain packet, or the first half of another one. Its ends are those of its connection; SACK blocks are missing.
///
/// Fields stand in the order of [`Segment`] as far as they can, so that several are copied at once.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
pub(super) struct Place {
    /// Lower half of when it passed: within two seconds of the latest before it, on either side, or it has a second half.
    time: u32,
    frame: u32,
    seq: u32,
    ack: u32,
    value: u32,
    echo: u32,
    len: u16,
    window: u16,
    ip_id: u16,
    ttl: u8,
    /// Flags that it has, at their places in the header, and what else is there.
    bits: u8,
}

/// What a plain packet may have: neither SYN nor RST, whose places tell the sender, and that the snap length cut the payload.
const FLAGS: u16 = TcpFlags::FIN | TcpFlags::PSH | TcpFlags::ACK;
const FROM_CLIENT: u8 = TcpFlags::SYN as u8;
const CUT: u8 = TcpFlags::RST as u8;
const STAMPS: u8 = 32;
const IP_ID: u8 = 64;
const HAS_MORE: u8 = 128;

/// In the `bits` of a second half: it has options that belong to SYNs, and which; else how many bytes of `head` were captured.
const OPTIONS: u8 = 128;
const DAMAGED: u8 = 64;
const MSS: u8 = 1;
const WSCALE: u8 = 2;
const SACK_PERMITTED: u8 = 4;
const HEAD_LEN: u8 = 15;

#[inline(always)]
fn bit(set: bool, bit: u8) -> u8 {
    if set { bit } else { 0 }
}

/// It has options that belong to SYNs.
#[inline(always)]
fn has_options(options: &TcpOptions) -> bool {
    options.order != 0 || options.mss.is_some() || options.wscale.is_some() || options.sack_permitted
}

/// Nothing has to be known of it when it comes.
#[inline]
pub(super) fn decides_nothing(segment: &Segment) -> bool {
    !segment.flags.has(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST)
}

/// The halves of a number.
#[inline(always)]
fn halves(number: u64) -> (u32, u32) {
    (number as u32, (number >> 32) as u32)
}

#[inline(always)]
fn whole(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// A plain packet's time is so little from the latest before it that 32 bits tell it.
#[inline(always)]
fn is_near(time: Nanos, latest: Nanos) -> bool {
    i32::try_from(time.0.wrapping_sub(latest.0)).is_ok()
}

impl Place {
    /// A place where none waits.
    pub(super) const NONE: Place = Place {
        time: 0,
        frame: 0,
        seq: 0,
        ack: 0,
        value: 0,
        echo: 0,
        len: 0,
        window: 0,
        ip_id: 0,
        ttl: 0,
        bits: 0,
    };

    /// The first half.
    #[inline(always)]
    fn take(&mut self, segment: &Segment, from_client: bool, has_more: bool) {
        let (value, echo) = segment.options.timestamps.unwrap_or_default();
        // Field by field into its place: as a value of its own it would be copied once more.
        self.time = segment.time.0 as u32;
        self.frame = segment.frame as u32;
        self.seq = segment.seq.0;
        self.ack = segment.ack.0;
        (self.value, self.echo) = (value, echo);
        self.len = segment.len as u16;
        self.window = segment.window;
        self.ip_id = segment.ip_id.unwrap_or_default();
        self.ttl = segment.ttl;
        self.bits = (segment.flags.0 & FLAGS) as u8
            | bit(from_client, FROM_CLIENT)
            | bit(segment.trouble.has(Trouble::CUT_PAYLOAD), CUT)
            | bit(segment.options.timestamps.is_some(), STAMPS)
            | bit(segment.ip_id.is_some(), IP_ID)
            | bit(has_more, HAS_MORE);
    }

    /// The second half: what a plain packet has not, but for options of SYNs.
    #[inline]
    fn take_more(&mut self, segment: &Segment) {
        let (low, high) = halves(u64::from_le_bytes(segment.head));
        self.time = halves(segment.time.0.cast_unsigned()).1;
        self.frame = halves(segment.frame).1;
        (self.seq, self.ack) = (low, high);
        self.value = segment.len;
        self.echo = segment.flags.0.into();
        self.len = segment.file;
        self.ip_id = u16::from_le_bytes([segment.tls.0, segment.trouble.0]);
        self.ttl = segment.program.map_or(0, |program| program as u8 + 1);
        self.bits = segment.head_len;
    }

    /// And those, where the payload has no first bytes.
    #[cold]
    fn take_options(&mut self, o: &TcpOptions) {
        if has_options(o) {
            let [low, high] = o.mss.unwrap_or_default().to_le_bytes();
            self.seq = o.order;
            self.ack = u32::from_le_bytes([low, high, o.wscale.unwrap_or_default(), 0]);
            self.bits = OPTIONS
                | bit(o.mss.is_some(), MSS)
                | bit(o.wscale.is_some(), WSCALE)
                | bit(o.sack_permitted, SACK_PERMITTED);
        }
        self.bits |= bit(o.damaged, DAMAGED);
    }

    #[inline]
    pub(super) fn sender(&self) -> End {
        if self.bits & FROM_CLIENT != 0 { End::Client } else { End::Server }
    }

    #[inline(always)]
    fn has(&self, bit: u8) -> bool {
        self.bits & bit != 0
    }

    /// When a plain packet passed, by the latest time before it.
    #[inline(always)]
    fn time(&self, latest: Nanos) -> Nanos {
        Nanos(latest.0.wrapping_add(i64::from(self.time.wrapping_sub(latest.0 as u32).cast_signed())))
    }

    /// Writes a plain packet over a segment of the same sender that was one, all but its time.
    #[inline(always)]
    fn unpack(&self, into: &mut Segment) {
        into.frame = u64::from(self.frame);
        into.seq = Seq(self.seq);
        into.ack = Seq(self.ack);
        into.len = u32::from(self.len);
        into.flags = TcpFlags(u16::from(self.bits) & FLAGS);
        into.window = self.window;
        into.ttl = self.ttl;
        into.trouble = Trouble(if self.has(CUT) { Trouble::CUT_PAYLOAD } else { 0 });
        into.ip_id = self.has(IP_ID).then_some(self.ip_id);
        into.options.timestamps = self.has(STAMPS).then_some((self.value, self.echo));
    }

    /// What its second half says besides, but for options.
    #[inline]
    fn unpack_more(&self, more: &Place, into: &mut Segment) {
        let [tls, trouble] = more.ip_id.to_le_bytes();
        into.frame = whole(self.frame, more.frame);
        into.len = more.value;
        into.flags = TcpFlags(more.echo as u16);
        into.file = more.len;
        into.tls = Tls(tls);
        into.trouble = Trouble(trouble);
        into.program = more.ttl.checked_sub(1).and_then(|n| Program::ALL.get(usize::from(n)).copied());
        (into.head, into.head_len) = (whole(more.seq, more.ack).to_le_bytes(), more.bits & HEAD_LEN);
    }

    /// And those.
    #[cold]
    fn unpack_options(&self, into: &mut Segment) {
        let o = &mut into.options;
        o.damaged = self.has(DAMAGED);
        (o.order, o.mss, o.wscale, o.sack_permitted) = (0, None, None, false);
        if self.has(OPTIONS) {
            let [low, high, scale, _] = self.ack.to_le_bytes();
            o.order = self.seq;
            o.mss = self.has(MSS).then_some(u16::from_le_bytes([low, high]));
            o.wscale = self.has(WSCALE).then_some(scale);
            o.sack_permitted = self.has(SACK_PERMITTED);
            (into.head, into.head_len) = ([0; 8], 0);
        }
    }

    /// Where the one before had a second half, and this one has none.
    #[inline]
    fn forget_more(into: &mut Segment) {
        (into.head, into.head_len) = ([0; 8], 0);
        (into.tls, into.program) = (Tls(0), None);
    }
}

#[inline(always)]
fn is_odd(o: &TcpOptions) -> bool {
    o.damaged || o.sack_len != 0 || has_options(o)
}

/// All of it can be kept. What payload begins with stands where options would.
#[inline(always)]
pub(super) fn keeps(segment: &Segment) -> bool {
    segment.options.sack_len == 0 && !(has_options(&segment.options) && segment.head_len != 0)
}

/// A packet waits in the first of these free places, if all of it can be kept and there is room. How many it takes; none: it does not wait.
#[inline(always)]
pub(super) fn take(free: &mut [Place], before: Before, segment: &Segment, from_client: bool) -> u8 {
    let o = &segment.options;
    let odd = is_odd(o);
    let plain = segment.flags.0 & !FLAGS == 0
        && segment.head_len | segment.tls.0 | segment.trouble.0 & !Trouble::CUT_PAYLOAD == 0
        && u64::from(segment.len >> 16) | segment.frame >> 32 | u64::from(segment.file ^ before.file) == 0
        && !(odd || segment.program.is_some())
        && is_near(segment.time, before.latest);
    let [first, rest @ ..] = free else { return 0 };
    if plain {
        first.take(segment, from_client, false);
        return 1;
    }
    match rest.first_mut() {
        Some(second) if keeps(segment) => {
            take_both(first, second, segment, from_client, odd);
            2
        }
        _ => 0,
    }
}

#[inline(never)]
fn take_both(first: &mut Place, second: &mut Place, segment: &Segment, from_client: bool, odd: bool) {
    first.take(segment, from_client, true);
    second.take_more(segment);
    if odd {
        second.take_options(&segment.options);
    }
}

/// Packets that waited, one after the other.
#[derive(Clone, Debug)]
pub(super) struct Packets<'a> {
    places: std::slice::Iter<'a, Place>,
    before: Before,
}

impl<'a> Packets<'a> {
    /// Those in these places, the first of which tells when the one in the second passed.
    #[inline]
    pub(super) fn of(places: &'a [Place]) -> Packets<'a> {
        match places {
            [since, places @ ..] => Packets { places: places.iter(), before: since.before() },
            [] => Packets { places: places.iter(), before: Place::NONE.before() },
        }
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = Packet<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<Packet<'a>> {
        let place = self.places.next()?;
        let (more, time) = if place.has(HAS_MORE) {
            let more = self.places.next()?;
            (Some(more), Nanos(whole(place.time, more.time).cast_signed()))
        } else {
            (None, place.time(self.before.latest))
        };
        self.before.latest = self.before.latest.max(time);
        Some(Packet { place, more, time, file: self.before.file })
    }
}

/// A packet that waited.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet<'a> {
    place: &'a Place,
    more: Option<&'a Place>,
    time: Nanos,
    /// Where it has no second half: the input that it came from.
    file: u16,
}

impl Packet<'_> {
    #[inline]
    pub(super) fn sender(&self) -> End {
        self.place.sender()
    }

    #[cfg(test)]
    pub(super) fn time(&self) -> Nanos {
        self.time
    }

    #[cfg(test)]
    pub(super) fn frame(&self) -> u64 {
        self.place.frame.into()
    }
}

/// A segment of one end, over which those that waited are written.
#[derive(Debug)]
pub(super) struct Unpacked {
    segment: Segment,
    /// The last one had a second half, and options in it.
    had_more: bool,
    had_options: bool,
}

impl Unpacked {
    pub(super) fn of(s: End, ends: &Ends<Endpoint>, link: u32) -> Unpacked {
        let segment = Segment { src: ends[s], dst: ends[s.peer()], link, ..Segment::EMPTY };
        Unpacked { segment, had_more: false, had_options: false }
    }

    /// A packet of that end. Its checksum is missing, which no rule asks for.
    #[inline(always)]
    pub(super) fn write(&mut self, packet: &Packet<'_>) -> &Segment {
        (self.segment.time, self.segment.file) = (packet.time, packet.file);
        packet.place.unpack(&mut self.segment);
        if self.had_more || packet.more.is_some() {
            self.write_more(packet);
        }
        &self.segment
    }

    #[inline(never)]
    fn write_more(&mut self, packet: &Packet<'_>) {
        self.had_more = packet.more.is_some();
        match packet.more {
            Some(more) => packet.place.unpack_more(more, &mut self.segment),
            None => Place::forget_more(&mut self.segment),
        }
        let more = packet.more.unwrap_or(&Place::NONE);
        let has_options = more.has(OPTIONS | DAMAGED);
        if has_options || self.had_options {
            self.had_options = has_options;
            more.unpack_options(&mut self.segment);
        }
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
        // A plain one, and all that it cannot have.
        let flags = TcpFlags(TcpFlags::ACK | TcpFlags::PSH);
        let plain = Segment { frame: 7, file: 5, flags, len: 65_535, ..whole };
        let plain = Segment { head: [0; 8], head_len: 0, tls: Tls(0), trouble: Trouble(0), ..plain };
        let plain = Segment { options: TcpOptions { damaged: false, ..whole.options }, ..plain };
        let bare = Segment { ip_id: None, options: TcpOptions::default(), ..plain };
        let others = [
            Segment { frame: 1 << 32, ..plain },
            Segment { file: 6, ..plain },
            Segment { len: 65_536, ..plain },
            Segment { flags: TcpFlags(TcpFlags::ACK | TcpFlags::CWR), ..plain },
            Segment { flags: TcpFlags(TcpFlags::SYN), ..plain },
            Segment { time: Nanos(plain.time.0 + (1 << 31)), ..plain },
            Segment { head_len: 1, head: [9, 0, 0, 0, 0, 0, 0, 0], ..plain },
            Segment { tls: Tls(1), ..plain },
            Segment { trouble: Trouble(Trouble::CUT_PAYLOAD | Trouble::AIR), ..plain },
            Segment { flags: TcpFlags(TcpFlags::RST), ..plain },
            Segment { program: Some(Program::Rust), ..plain },
            Segment { options: TcpOptions { damaged: true, ..plain.options }, ..plain },
            syn,
            Segment { options: other, ..syn },
            whole,
            Segment { ip_id: None, options: TcpOptions::default(), ..whole },
        ];
        let plains = [
            plain,
            bare,
            Segment { time: Nanos(plain.time.0 + (1 << 31) - 1), ..plain },
            Segment { time: Nanos(plain.time.0 - (1 << 31)), ..plain },
            Segment { frame: u64::from(u32::MAX), flags: TcpFlags(TcpFlags::FIN), ..plain },
            Segment { trouble: Trouble(Trouble::CUT_PAYLOAD), ..plain },
        ];
        let all = plains.iter().map(|s| (s, 1)).chain(others.iter().map(|s| (s, 2)));
        let mut into = Ends::of(|s| Unpacked::of(s, &ends, 77));
        for ((segment, places), s) in all.flat_map(|one| End::BOTH.map(|s| (one, s))) {
            // Between two plain ones of either end: neither may leave anything behind.
            let mut log = [Place { bits: u8::MAX, time: 77, ..Place::NONE }; 16];
            let (mut behind, mut said) = (0, Vec::new());
            for (segment, s, places) in
                [(&plain, s.peer(), 1), (segment, s, places), (&plain, s, 1), (&plain, s.peer(), 1)]
            {
                let segment = Segment { src: ends[s], dst: ends[s.peer()], time: segment.time, ..*segment };
                let latest = said.iter().map(|(_, s): &(_, Segment)| s.time).max().unwrap_or(segment.time);
                // Behind one that passed long after it, a plain one has two halves as well.
                let places = if i32::try_from(segment.time.0 - latest.0).is_ok() { places } else { 2 };
                let before = Before { latest, file: plain.file };
                if behind == 0 {
                    log[0].say(before);
                }
                let free = &mut log[behind + 1..];
                assert_eq!(take(free, before, &segment, s == End::Client), places, "{segment:?}");
                behind += usize::from(places);
                said.push((s, segment));
            }
            let packets: Vec<_> = Packets::of(&log[..=behind]).collect();
            assert_eq!(packets.len(), said.len());
            for (packet, (s, segment)) in packets.iter().zip(&said) {
                assert_eq!(packet.sender(), *s);
                assert_eq!(format!("{:?}", into[*s].write(packet)), format!("{segment:?}"));
            }
        }
    }

    #[test]
    fn what_decides_or_has_more_does_not_wait() {
        let with = |change: fn(&mut Segment)| {
            let mut segment = Segment::EMPTY;
            change(&mut segment);
            let waits = take(&mut [Place::NONE; 4], Before::nothing(&segment), &segment, true) > 0;
            (waits, decides_nothing(&segment))
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
    fn two_are_a_cache_line() {
        assert_eq!(size_of::<Place>(), 32);
    }
}
