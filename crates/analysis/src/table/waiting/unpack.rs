//! Packets that waited are unpacked.

use super::head::{end_behind, expected};
use super::pack::{CHANGES, ODD_WORDS, PLAIN, RARE_WORDS, WORD};
use super::{
    CHANGED, CUT, DAMAGED, EMPTY, FAR, FLAGS, FROM_CLIENT, IP_ID, MSS, ODD, RARE, SACK_PERMITTED, STAMPS,
    WSCALE, end_of, end_of_plain,
};
use tcpwhy_base::{End, Endpoint, Ends, Nanos, Program, Segment, Seq, TcpFlags, Tls, Trouble};

/// Stands for the time of a packet before the first.
pub(in crate::table) const BEFORE_ALL: Nanos = Nanos(i64::MIN);

/// One after the other each packet that waited is written over the one before it of the same end.
#[derive(Debug)]
pub(in crate::table) struct Unpacked {
    client: Side,
    server: Side,
    both: Both,
}

/// Of the latest packet, whoever sent it.
#[derive(Debug)]
struct Both {
    frame: u64,
    time: Nanos,
    /// The input that the first came from.
    file: u16,
}

/// A segment of one end, and by what the next is packed.
#[derive(Debug)]
struct Side {
    segment: Segment,
    next: u32,
    value: u32,
    echo: u32,
    changing: u64,
    /// Whether the last one was odd, or rare.
    was: u8,
}

/// So many bytes of a word.
const LOWER: [u64; 16] = {
    let mut lower = [u64::MAX; 16];
    let mut n = 0;
    while n < 8 {
        lower[n] = (1 << (8 * n)) - 1;
        n += 1;
    }
    lower
};

#[inline(always)]
fn word<const N: usize>(bytes: &[u8; N], at: usize) -> u64 {
    bytes.get(at..).and_then(|bytes| bytes.first_chunk()).map_or(0, |word| u64::from_le_bytes(*word))
}

/// So many words, which begin with this byte. `BYTES` are those of as many.
#[inline(always)]
fn words<const N: usize, const BYTES: usize>(bytes: &[u8], at: usize) -> [u64; N] {
    let Some(block) = bytes.get(at..).and_then(|bytes| bytes.first_chunk::<BYTES>()) else { return [0; N] };
    std::array::from_fn(|n| word(block, n * WORD))
}

impl Unpacked {
    /// Of a connection, the first of whose packets is of this input. Their checksums are missing, which no
    /// rule asks for.
    pub(in crate::table) fn of(ends: &Ends<Endpoint>, link: u32, file: u16) -> Unpacked {
        let side =
            |s: End| Side::of(Segment { src: ends[s], dst: ends[s.peer()], link, file, ..Segment::EMPTY });
        let both = Both { frame: 0, time: BEFORE_ALL, file };
        Unpacked { client: side(End::Client), server: side(End::Server), both }
    }

    /// The latest packet of that end.
    #[inline(always)]
    pub(in crate::table) fn segment(&self, s: End) -> &Segment {
        match s {
            End::Client => &self.client.segment,
            End::Server => &self.server.segment,
        }
    }

    /// Unpacks the packet that begins with these bytes: whose it is, and how many it took.
    #[inline(always)]
    pub(in crate::table) fn next(&mut self, bytes: &[u8]) -> Option<(End, usize)> {
        let plain: &[u8; PLAIN] = bytes.first_chunk()?;
        let first = word(plain, 0);
        // Each end's in a place that is known then.
        if first as u8 & FROM_CLIENT != 0 {
            let n = self.client.next(&mut self.server, &mut self.both, first, plain, bytes);
            Some((End::Client, n))
        } else {
            let n = self.server.next(&mut self.client, &mut self.both, first, plain, bytes);
            Some((End::Server, n))
        }
    }
}

impl Side {
    fn of(segment: Segment) -> Side {
        Side { segment, next: 0, value: 0, echo: 0, changing: 0, was: 0 }
    }

    /// Its next packet, which begins with this word. How many bytes it takes.
    #[inline(always)]
    fn next(
        &mut self,
        other: &mut Side,
        both: &mut Both,
        first: u64,
        plain: &[u8; PLAIN],
        bytes: &[u8],
    ) -> usize {
        let [bits, which, low, high, ..] = first.to_le_bytes();
        let n = usize::from(which & CHANGED);
        let second = word(plain, 8);
        let changing = word(plain, CHANGES) & LOWER[n] ^ self.changing;
        let value = self.value.wrapping_add(u16::from_le_bytes([low, high]).into());
        let echo = self.echo.wrapping_add_signed(i32::from((second >> 16) as i8));
        let frame = both.frame.wrapping_add(second & 0xffff);
        let time = Nanos(both.time.0.wrapping_add((first >> 32).cast_signed()));
        (self.value, self.echo, other.echo) = (value, echo, value);
        both.frame = frame;

        let into = &mut self.segment;
        (into.time, into.frame) = (time, frame);
        into.seq = Seq(self.next);
        into.ack = Seq(into.ack.0.wrapping_add(u32::from((changing >> 16) as u16)));
        into.window = (changing >> 32) as u16;
        let len = (changing >> 48) as u16;
        into.len = if bits & EMPTY != 0 { 0 } else { len.into() };
        into.flags = TcpFlags(u16::from(bits) & FLAGS);
        into.trouble = Trouble(bits / CUT % 2 * Trouble::CUT_PAYLOAD);
        into.ip_id = (bits & IP_ID != 0).then_some(changing as u16);
        into.options.timestamps = (bits & STAMPS != 0).then_some((value, echo));
        self.changing = expected(changing);
        let mut n = CHANGES + n;
        if which & FAR != 0 {
            self.far(both, bytes, n);
            n += WORD;
        }
        if (which & (ODD | RARE)) | self.was != 0 {
            return self.odd(other, both, which, bytes, n);
        }
        self.next = end_of_plain(&self.segment);
        both.time = time;
        n
    }

    /// Upper parts that are not zero.
    #[inline]
    fn far(&mut self, both: &mut Both, bytes: &[u8], n: usize) {
        let [far] = words::<1, WORD>(bytes, n);
        let [frames, acks, len, echoes] = [far, far >> 16, far >> 32, far >> 48].map(|word| word as u16);
        let into = &mut self.segment;
        both.frame = both.frame.wrapping_add(u64::from(frames) << 16);
        into.frame = both.frame;
        into.ack = Seq(into.ack.0.wrapping_add(u32::from(acks) << 16));
        into.len |= u32::from(len) << 16;
        self.echo = self.echo.wrapping_add_signed(i32::from(echoes.cast_signed()) << 8);
        into.options.timestamps = into.options.timestamps.map(|_| (self.value, self.echo));
    }

    /// The same of one that is odd, or whose last one was. Behind how many bytes the next one begins.
    #[inline(never)]
    fn odd(&mut self, other: &mut Side, both: &mut Both, which: u8, bytes: &[u8], mut n: usize) -> usize {
        let into = &mut self.segment;
        let had = std::mem::replace(&mut self.was, which & (ODD | RARE));
        if which & ODD != 0 {
            let [first, stamps, head, last] = words::<ODD_WORDS, { ODD_WORDS * WORD }>(bytes, n);
            n += ODD_WORDS * WORD;
            into.time = Nanos(into.time.0.wrapping_add(i64::from(first as u32) << 32));
            into.seq = Seq((first >> 32) as u32);
            (self.value, self.echo) = (stamps as u32, (stamps >> 32) as u32);
            other.echo = self.value;
            into.options.timestamps = into.options.timestamps.map(|_| (self.value, self.echo));
            into.head = head.to_le_bytes();
            let [tls, head_len, ttl, trouble, low, high, ..] = last.to_le_bytes();
            (into.tls, into.head_len) = (Tls(tls), head_len);
            (into.ttl, into.trouble) = (ttl, Trouble(trouble));
            into.flags = TcpFlags(u16::from_le_bytes([low, high]));
        } else if had & ODD != 0 {
            (into.head, into.head_len, into.tls) = ([0; 8], 0, Tls(0));
        }
        if (which | had) & RARE != 0 {
            let rare = which & RARE != 0;
            let [first, frame, last] =
                if rare { words::<RARE_WORDS, { RARE_WORDS * WORD }>(bytes, n) } else { [0; RARE_WORDS] };
            let [a, b, c, d, e, f, wscale, has] = first.to_le_bytes();
            let o = &mut into.options;
            o.order = u32::from_le_bytes([a, b, c, d]);
            o.mss = (has & MSS != 0).then_some(u16::from_le_bytes([e, f]));
            o.wscale = (has & WSCALE != 0).then_some(wscale);
            (o.sack_permitted, o.damaged) = (has & SACK_PERMITTED != 0, has & DAMAGED != 0);
            (into.file, into.program) = (both.file, None);
            if rare {
                n += RARE_WORDS * WORD;
                (both.frame, into.frame, into.file) = (frame, frame, last as u16);
                let program = (last as u32 >> 16).checked_sub(1);
                into.program = program.and_then(|n| Program::ALL.get(n as usize).copied());
            }
        }
        self.next = if which & ODD != 0 { end_behind(self.next, into) } else { end_of_plain(into) };
        both.time = both.time.max(into.time);
        if which & ODD != 0 && into.flags.syn() {
            other.segment.ack = Seq(end_of(into));
        }
        n
    }
}
