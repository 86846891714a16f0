//! TCP options.

use tcpwhy_base::{Seq, TcpOptions};

/// Option kinds: IANA "TCP Option Kind Numbers".
const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

/// NOP, NOP and the head of the time stamps, which are then aligned (RFC 7323 appendix A).
const ALIGNED_STAMPS: u32 = 0x0101_080a;

/// No options.
pub(crate) const NONE: TcpOptions = TcpOptions {
    timestamps: None,
    mss: None,
    wscale: None,
    sack_permitted: false,
    sack_len: 0,
    sack: [(Seq(0), Seq(0)); 4],
    order: 0,
    damaged: false,
};

/// Reads an options area, of which `area` was captured, into `out`; `cut` says that there was more. What
/// comes before damage is kept.
#[inline(always)]
#[expect(clippy::inline_always, reason = "as for Dissector::dissect")]
pub(crate) fn read(area: &[u8], cut: bool, out: &mut TcpOptions) {
    let word = |b: &[u8; 12], at: usize| u32::from_be_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]]);
    // What nearly every segment of every stack has.
    let stamps = <&[u8; 12]>::try_from(area).ok().filter(|b| word(b, 0) == ALIGNED_STAMPS);
    // Written in place: put together elsewhere and then copied, it stalls the processor (a wide load after
    // narrow stores).
    *out = TcpOptions { timestamps: stamps.map(|b| (word(b, 4), word(b, 8))), damaged: cut, ..NONE };
    if stamps.is_none() && !area.is_empty() {
        list(area, out);
    }
}

/// The options of a SYN of Linux and Android, in their order.
#[inline]
fn syn(area: &[u8]) -> Option<TcpOptions> {
    let b: &[u8; 20] = area.try_into().ok()?;
    let word = |at: usize| u32::from_be_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]]);
    if word(0) >> 16 != 0x0204 || word(4) != 0x0402_080a || word(16) >> 8 != 0x01_0303 {
        return None;
    }
    Some(TcpOptions {
        timestamps: Some((word(8), word(12))),
        mss: Some(word(0) as u16),
        wscale: Some(b[19]),
        sack_permitted: true,
        order: 0x342,
        ..NONE
    })
}

/// Reads an area that holds more than time stamps; `options` are none yet.
#[inline(never)]
fn list(area: &[u8], options: &mut TcpOptions) {
    match syn(area) {
        Some(syn) => *options = TcpOptions { damaged: options.damaged, ..syn },
        None => one_by_one(area, options),
    }
}

fn one_by_one(area: &[u8], options: &mut TcpOptions) {
    let mut rest = area;
    let mut listed = 0;
    while let [kind, after @ ..] = rest {
        match *kind {
            END => return,
            NOP => {
                rest = after;
                continue;
            }
            _ => {}
        }
        // A length counts its own two bytes (RFC 9293 3.1); below 2 the list would never end.
        let Some((value, next)) = after
            .first()
            .and_then(|&len| usize::from(len).checked_sub(2))
            .and_then(|len| after.get(1..)?.split_at_checked(len))
        else {
            options.damaged = true;
            return;
        };
        if *kind != TIMESTAMPS && listed < 8 {
            // Four bits hold the kinds that make a SYN's fingerprint; the rest share 15.
            options.order |= u32::from((*kind).min(15)) << (4 * listed);
            listed += 1;
        }
        take(options, *kind, value);
        rest = next;
    }
}

/// Stores one option. A known kind with the wrong length is damage; of repeats the last counts, as in
/// Linux (tcp_parse_options).
fn take(options: &mut TcpOptions, kind: u8, value: &[u8]) {
    match (kind, value) {
        (MSS, &[a, b]) => options.mss = Some(u16::from_be_bytes([a, b])),
        (WINDOW_SCALE, &[shift]) => options.wscale = Some(shift),
        (SACK_PERMITTED, []) => options.sack_permitted = true,
        (TIMESTAMPS, &[a, b, c, d, e, f, g, h]) => {
            options.timestamps = Some((u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])));
        }
        // One to four blocks of two edges (RFC 2018 3).
        (SACK, value) if matches!(value.len(), 8 | 16 | 24 | 32) => {
            options.sack = NONE.sack;
            options.sack_len = 0;
            for (slot, block) in options.sack.iter_mut().zip(value.chunks_exact(8)) {
                let edge = |at| crate::bytes::be32(block, at).map_or(Seq(0), Seq);
                *slot = (edge(0), edge(4));
                options.sack_len += 1;
            }
        }
        (MSS | WINDOW_SCALE | SACK_PERMITTED | TIMESTAMPS | SACK, _) => options.damaged = true,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(area: &[u8], cut: bool) -> TcpOptions {
        let mut options = TcpOptions { timestamps: Some((1, 2)), order: 3, ..NONE };
        read(area, cut, &mut options);
        options
    }

    #[test]
    fn a_linux_syn() {
        let syn = [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0, 1, 3, 3, 7];
        let o = parse(&syn, false);
        assert_eq!((o.mss, o.wscale, o.sack_permitted), (Some(1460), Some(7), true));
        assert_eq!(o.timestamps, Some((9, 0)));
        assert_eq!(o.order, 0x342, "MSS, SACK permitted, window scale; NOP and timestamps left out");
        assert!(!o.damaged);
    }

    /// The layouts that are known as a whole, each byte of them changed and their ends cut off, are what they
    /// are one by one.
    #[test]
    fn layouts_that_are_known_as_a_whole() {
        let stamps = [1, 1, 8, 10, 0x81, 2, 3, 4, 0x95, 6, 7, 8];
        let syn = [2, 4, 5, 180, 4, 2, 8, 10, 0x81, 2, 3, 4, 0x95, 6, 7, 8, 1, 3, 3, 7];
        let sacks = [&stamps[..], &[1, 1, 5, 10, 0, 0, 0, 1, 0x80, 0, 0, 2]].concat();
        for whole in [&[][..], &stamps, &syn, &sacks] {
            for (at, to) in (0..whole.len().max(1)).flat_map(|at| (0..=u8::MAX).map(move |to| (at, to))) {
                let mut area = whole.to_vec();
                area.iter_mut().skip(at).take(1).for_each(|byte| *byte = to);
                for (end, cut) in (0..=area.len()).flat_map(|end| [(end, false), (end, true)]) {
                    let mut long = TcpOptions { damaged: cut, ..NONE };
                    one_by_one(&area[..end], &mut long);
                    assert_eq!(parse(&area[..end], cut), long, "{:?}", &area[..end]);
                }
            }
        }
    }

    #[test]
    fn sack_blocks() {
        let mut area = vec![1, 1, 5, 18];
        area.extend([0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0, 9]);
        let o = parse(&area, false);
        assert_eq!(o.sack_len, 2);
        assert_eq!(&o.sack[..2], [(Seq(1), Seq(2)), (Seq(5), Seq(9))]);
    }

    #[test]
    fn malformed_lists_end() {
        for area in [&[2, 0, 0, 0][..], &[2, 1], &[2], &[8, 10, 0, 0], &[5, 3, 0, 0], &[2, 255, 1, 1]] {
            assert!(parse(area, false).damaged, "{area:?}");
        }
        let cut = parse(&[2, 4, 5, 180], true);
        assert_eq!((cut.mss, cut.damaged), (Some(1460), true), "what was captured counts");
        assert!(!parse(&[0, 2, 0, 0], false).damaged, "nothing after the end of the list");
    }
}
