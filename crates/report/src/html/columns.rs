//! Packets as columns of small numbers: each is the distance from what is most likely. `web/src/packets.ts` reads them.
//!
//! A track is: number of packets, nanoseconds of a time step, time of the first packet in steps, both window
//! scales (one more than each, 0 where it is not known); then nine columns, each behind its length in bytes:
//! time, frame, flags, marks, seq, len, ack, window, SACK. Numbers are LEB128, signed ones zigzagged.

use tcpwhy_base::{End, Ends, Nanos};
use tcpwhy_trace::{Packet, Track};

const COLUMNS: usize = 9;
/// Above this a page draws many packets in each pixel: microseconds are enough, and half the bytes.
const COARSE: usize = 100_000;

/// Appends the bytes of `track`; times are counted from `start`.
pub(crate) fn encode(track: &Track, start: Nanos, out: &mut Vec<u8>) {
    let packets = &track.packets;
    let micros = packets.len() > COARSE || packets.iter().all(|p| (p.time - start).0 % 1000 == 0);
    let unit = if micros { 1000 } else { 1 };
    let at = |p: &Packet| (p.time - start).0.div_euclid(unit);
    let first = packets.first().map_or(0, at);
    unsigned(out, packets.len() as u64);
    unsigned(out, unit as u64);
    signed(out, first);
    for shift in [track.shift.client, track.shift.server] {
        unsigned(out, shift.map_or(0, |shift| u64::from(shift) + 1));
    }
    let mut columns: [Vec<u8>; COLUMNS] = Default::default();
    let mut before = State { time: first, ..State::default() };
    for p in packets {
        before.push(p, at(p), &mut columns);
    }
    for column in &columns {
        unsigned(out, column.len() as u64);
        out.extend_from_slice(column);
    }
}

/// What the next packet is compared with.
#[derive(Default)]
struct State {
    time: i64,
    frame: u64,
    next: Ends<i64>,
    ack: Ends<i64>,
    window: Ends<i64>,
}

impl State {
    fn push(
        &mut self,
        p: &Packet,
        time: i64,
        [t, frame, flags, marks, seq, len, ack, window, sack]: &mut [Vec<u8>; 9],
    ) {
        let from = p.from;
        signed(t, time - self.time);
        signed(frame, p.frame.wrapping_sub(self.frame) as i64);
        unsigned(flags, u64::from(p.flags.0) << 1 | u64::from(p.from == End::Server));
        marks.push(p.marks);
        signed(seq, p.seq.wrapping_sub(self.next[from]));
        unsigned(len, u64::from(p.len));
        signed(ack, p.ack.wrapping_sub(self.ack[from]));
        signed(window, i64::from(p.window) - self.window[from]);
        let blocks = p.sack.get(..usize::from(p.sacks)).unwrap_or(&p.sack);
        sack.push(blocks.len() as u8);
        for block in blocks {
            signed(sack, block.0.wrapping_sub(p.ack));
            signed(sack, block.1.wrapping_sub(block.0));
        }
        self.time = time;
        self.frame = p.frame;
        self.next[from] = p.seq_end();
        self.ack[from] = p.ack;
        self.window[from] = i64::from(p.window);
    }
}

fn unsigned(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn signed(out: &mut Vec<u8>, n: i64) {
    unsigned(out, ((n << 1) ^ (n >> 63)) as u64);
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpwhy_base::TcpFlags;

    #[test]
    fn numbers_are_short() {
        let bytes = |n| {
            let mut out = Vec::new();
            signed(&mut out, n);
            out
        };
        assert_eq!(bytes(0), [0]);
        assert_eq!(bytes(-1), [1]);
        assert_eq!(bytes(64), [0x80, 1]);
        assert_eq!(bytes(i64::MIN).len(), 10);
    }

    #[test]
    fn what_is_expected_is_zero() {
        let packet = |i: i64| Packet {
            frame: i as u64 + 1,
            time: Nanos::millis(i),
            from: End::Client,
            flags: TcpFlags(TcpFlags::ACK),
            seq: 1 + i * 100,
            ack: 1,
            len: 100,
            window: 500,
            marks: 0,
            sack: [(0, 0); 4],
            sacks: 0,
        };
        let track = Track { packets: (0..3).map(packet).collect(), total: 3, ..Track::default() };
        let mut out = Vec::new();
        encode(&track, Nanos::ZERO, &mut out);
        // 3 packets, microseconds, from 0, scales not known.
        assert_eq!(out[..6], [3, 0xe8, 7, 0, 0, 0]);
        // Two steps of 1000, zigzagged.
        assert_eq!(out[6..12], [5, 0, 0xd0, 0x0f, 0xd0, 0x0f]);
        // Sequence numbers: one away from 0, then where they were expected.
        assert!(out.windows(4).any(|w| w == [3, 2, 0, 0]), "{out:?}");
    }
}
