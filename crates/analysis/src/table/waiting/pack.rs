//! Packets are packed.

use super::head::{changing, end_behind, expected};
use super::{
    CUT, DAMAGED, EMPTY, FAR, FLAGS, FROM_CLIENT, Head, IP_ID, MSS, ODD, RARE, SACK_PERMITTED, STAMPS,
    WSCALE, end_of, end_of_plain, keeps,
};
use tcpwhy_base::{Nanos, Segment, TcpOptions, Trouble};

/// So many bytes are written for a packet that has no more words, of which some are used.
pub(in crate::table) const PLAIN: usize = CHANGES + WORD;
/// Behind so many bytes stands what has changed.
pub(super) const CHANGES: usize = WORD + 3;
/// The same for any.
const ANY: usize = PLAIN + (1 + ODD_WORDS + RARE_WORDS) * WORD;
pub(super) const WORD: usize = size_of::<u64>();
/// Words of the block that odd ones have.
pub(super) const ODD_WORDS: usize = 4;
/// Words of that of rare ones.
pub(super) const RARE_WORDS: usize = 3;

#[inline(always)]
fn bit(set: bool, bit: u8) -> u8 {
    u8::from(set) * bit
}

/// It has options that belong to SYNs, or damaged ones.
#[inline(always)]
fn has_more_options(o: &TcpOptions) -> bool {
    // Without branches: there seldom are any.
    (o.order != 0) | o.mss.is_some() | o.wscale.is_some() | o.sack_permitted | o.damaged
}

/// What has changed since the latest packet, and that of the same sender.
#[derive(Clone, Copy)]
struct Changes {
    passed: u64,
    frames: u64,
    values: u32,
    echoes: u32,
    acks: u32,
}

impl Changes {
    #[inline(always)]
    fn of(head: &Head, latest: Nanos, segment: &Segment, side: usize) -> Changes {
        let (value, echo) = segment.options.timestamps.unwrap_or_default();
        Changes {
            passed: segment.time.0.wrapping_sub(latest.0).cast_unsigned(),
            frames: segment.frame.wrapping_sub(head.frame),
            values: value.wrapping_sub(head.value[side]),
            echoes: echo.wrapping_sub(head.echo[side]),
            acks: segment.ack.0.wrapping_sub(head.ack[side]),
        }
    }

    /// Upper parts that are not zero.
    #[inline(always)]
    fn are_far(&self, segment: &Segment) -> bool {
        self.frames >> 16 | u64::from((self.acks | segment.len) >> 16 | self.echoes.wrapping_add(1 << 7) >> 8)
            != 0
    }

    /// Those. Of the stamp's lower part a bit tells the sign.
    fn far(&self, segment: &Segment) -> u64 {
        let frames = self.frames >> 16 & 0xffff;
        let echoes = self.echoes.wrapping_add(1 << 7) >> 8 & 0xffff;
        let [acks, len] = [self.acks, segment.len].map(|number| u64::from(number >> 16));
        frames | acks << 16 | len << 32 | u64::from(echoes) << 48
    }

    /// There is no room for the stamps.
    #[inline(always)]
    fn are_late(&self) -> bool {
        self.values >> 16 | self.echoes.wrapping_add(1 << 22) >> 23 != 0
    }
}

/// A packet waits in the first of these free bytes, if all of it can be kept and there is room: behind those
/// that this is the head of, the latest of which passed at this time. How many bytes it takes; none: it does
/// not wait.
#[inline(never)]
pub(in crate::table) fn take(
    head: &mut Head,
    free: &mut [u8],
    latest: Nanos,
    segment: &Segment,
    from_client: bool,
) -> usize {
    let (o, side) = (&segment.options, usize::from(from_client));
    let by = Changes::of(head, latest, segment, side);
    let odd = segment.flags.0 & !FLAGS
        | u16::from(segment.head_len | segment.tls.0 | segment.trouble.0 & !Trouble::CUT_PAYLOAD)
        | u16::from(segment.ttl ^ head.ttl[side])
        | segment.file ^ head.file;
    let plain = u64::from(odd) | by.passed >> 32 | u64::from(segment.seq.0 ^ head.next[side]) == 0
        && !(by.are_late() || by.are_far(segment))
        && !(has_more_options(o) | (o.sack_len != 0) | segment.program.is_some());
    if !plain {
        return take_more(head, free, latest, segment, from_client);
    }
    let Some(free) = free.first_chunk_mut() else { return 0 };
    head.next[side] = end_of_plain(segment);
    write(head, free, &by, 0, segment, from_client)
}

/// What each packet has.
#[inline(always)]
fn write(
    head: &mut Head,
    free: &mut [u8; PLAIN],
    by: &Changes,
    more: u8,
    segment: &Segment,
    from_client: bool,
) -> usize {
    let side = usize::from(from_client);
    let acks = by.acks as u16;
    // What has no payload says nothing of how much the next one has.
    let (empty, was) = (segment.len == 0, head.changing[side]);
    let len = if empty { (was >> 48) as u16 } else { segment.len as u16 };
    let now = changing(segment.ip_id.unwrap_or_default(), acks, segment.window, len);
    let changed = now ^ was;
    let n = (u64::BITS + 7 - changed.leading_zeros()) / 8;
    let bits = (segment.flags.0 & FLAGS) as u8
        | bit(from_client, FROM_CLIENT)
        | bit(segment.trouble.has(Trouble::CUT_PAYLOAD), CUT)
        | bit(segment.options.timestamps.is_some(), STAMPS)
        | bit(segment.ip_id.is_some(), IP_ID)
        | bit(empty, EMPTY);
    let first = u64::from(bits)
        | u64::from(n as u8 | more) << 8
        | u64::from(by.values as u16) << 16
        | by.passed << 32;
    let second = by.frames as u32 & 0xffff | by.echoes << 16;
    free[..WORD].copy_from_slice(&first.to_le_bytes());
    free[WORD..WORD + 4].copy_from_slice(&second.to_le_bytes());
    free[CHANGES..CHANGES + WORD].copy_from_slice(&changed.to_le_bytes());
    head.changing[side] = expected(now);
    head.ack[side] = segment.ack.0;
    let (value, echo) = segment.options.timestamps.unwrap_or_default();
    head.value[side] = value;
    (head.echo[side], head.echo[1 - side]) = (echo, value);
    head.frame = segment.frame;
    CHANGES + n as usize
}

/// And what is far from the latest, and what odd ones have, and rare ones.
#[inline(never)]
fn take_more(head: &mut Head, free: &mut [u8], latest: Nanos, segment: &Segment, from_client: bool) -> usize {
    let (o, side) = (&segment.options, usize::from(from_client));
    let Some(free) = free.first_chunk_mut::<ANY>().filter(|_| keeps(segment)) else { return 0 };
    let Some(plain) = free.first_chunk_mut() else { return 0 };
    let by = Changes::of(head, latest, segment, side);
    let rare = has_more_options(o)
        || segment.program.is_some()
        || segment.file != head.file
        || by.frames > u64::from(u32::MAX);
    let odd = rare
        || segment.flags.0 & !FLAGS != 0
        || segment.head_len | segment.tls.0 | segment.trouble.0 & !Trouble::CUT_PAYLOAD != 0
        || segment.ttl != head.ttl[side]
        || by.passed > u64::from(u32::MAX)
        || segment.seq.0 != head.next[side]
        || by.are_late();
    // An odd one says both stamps.
    let by = if odd { Changes { values: 0, echoes: 0, ..by } } else { by };
    let far = by.are_far(segment);
    let mut n =
        write(head, plain, &by, bit(far, FAR) | bit(odd, ODD) | bit(rare, RARE), segment, from_client);
    if far {
        let Some(block) = free.get_mut(n..).and_then(|free| free.first_chunk_mut()) else { return 0 };
        *block = by.far(segment).to_le_bytes();
        n += WORD;
    }
    if !odd {
        head.next[side] = end_of_plain(segment);
        return n;
    }
    (head.next[side], head.ttl[side]) = (end_behind(head.next[side], segment), segment.ttl);
    if segment.flags.syn() {
        head.ack[1 - side] = end_of(segment);
    }
    let words = odd_block(segment, by.passed);
    let Some(block) = free.get_mut(n..).and_then(|free| free.first_chunk_mut()) else { return 0 };
    put::<ODD_WORDS, { ODD_WORDS * WORD }>(block, words);
    n += ODD_WORDS * WORD;
    if rare {
        let Some(block) = free.get_mut(n..).and_then(|free| free.first_chunk_mut()) else { return 0 };
        put::<RARE_WORDS, { RARE_WORDS * WORD }>(block, rare_block(segment));
        n += RARE_WORDS * WORD;
    }
    n
}

/// `BYTES` are those of so many words.
#[inline(always)]
fn put<const N: usize, const BYTES: usize>(block: &mut [u8; BYTES], words: [u64; N]) {
    for (block, word) in block.as_chunks_mut().0.iter_mut().zip(words) {
        *block = word.to_le_bytes();
    }
}

#[inline(always)]
fn odd_block(segment: &Segment, passed: u64) -> [u64; ODD_WORDS] {
    let (value, echo) = segment.options.timestamps.unwrap_or_default();
    let [low, high] = segment.flags.0.to_le_bytes();
    let last = [segment.tls.0, segment.head_len, segment.ttl, segment.trouble.0, low, high, 0, 0];
    [
        passed >> 32 | u64::from(segment.seq.0) << 32,
        u64::from(value) | u64::from(echo) << 32,
        u64::from_le_bytes(segment.head),
        u64::from_le_bytes(last),
    ]
}

#[inline(always)]
fn rare_block(segment: &Segment) -> [u64; RARE_WORDS] {
    let o = &segment.options;
    let has = bit(o.mss.is_some(), MSS)
        | bit(o.wscale.is_some(), WSCALE)
        | bit(o.sack_permitted, SACK_PERMITTED)
        | bit(o.damaged, DAMAGED);
    let program = segment.program.map_or(0, |program| program as u64 + 1);
    [
        u64::from(o.order)
            | u64::from(o.mss.unwrap_or_default()) << 32
            | u64::from(o.wscale.unwrap_or_default()) << 48
            | u64::from(has) << 56,
        segment.frame,
        u64::from(segment.file) | program << 16,
    ]
}
