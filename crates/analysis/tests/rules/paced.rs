//! Whose time it is where the sender spaces its segments (rules 108 and 113).

use crate::wire::{Tap, Wire, ms, us};
use tcpwhy_base::{Cause, FixId, Nanos, TcpFlags};

const MSS: u32 = 1448;
/// What leaves as one packet, as Linux sends it.
const PAIR: u32 = 2 * MSS;

/// Who reads what the server sends over a round trip of 20 ms: so many bytes each time, of what its buffer holds.
#[derive(Clone, Copy)]
struct Reader {
    every: Nanos,
    takes: u32,
    buffer: u32,
}

/// A server sends 200 pairs, so far apart, as its windows allow.
fn pairs(tap: Tap, apart: Nanos, reader: Reader) -> Wire {
    let mut w = Wire::new(tap, ms(20));
    // Windows of whole pairs.
    (w.host[0].window, w.host[0].wscale) = (reader.buffer, Some(3));
    w.handshake();
    w.at(ms(30)).client().window(reader.buffer).data(100);
    let tick = us(50);
    let (mut now, mut next, mut read_at) = (ms(50), ms(50), ms(70));
    let (mut left, mut came, mut read, mut acked, mut edge) = (0, 0, 0, 0, reader.buffer);
    let mut under_way = std::collections::VecDeque::new();
    let mut edges = std::collections::VecDeque::new();
    while acked < 200 * PAIR {
        now += tick;
        while under_way.front().is_some_and(|&at| at <= now) {
            under_way.pop_front();
            came += PAIR;
        }
        while edges.front().is_some_and(|&(at, _)| at <= now) {
            edge = edges.pop_front().map_or(edge, |(_, to)| to);
        }
        if left < 200 * PAIR && now >= next && left + PAIR <= edge {
            let packet = w.at(now).server().data(PAIR);
            packet.segment.flags = TcpFlags(TcpFlags::ACK | TcpFlags::PSH);
            left += PAIR;
            next = now + apart;
            under_way.push_back(now + ms(10));
        }
        if now >= read_at && came > acked {
            read_at = now + reader.every;
            read += reader.takes.min(came - read);
            acked = came;
            let window = reader.buffer - (came - read);
            w.at(now).client().window(window).ack();
            edges.push_back((now + ms(10), acked + window));
        }
    }
    w
}

/// Shares of the causes, in percent.
fn sent(tap: Tap, apart: Nanos, reader: Reader, causes: [Cause; 3]) -> [i64; 3] {
    let c = pairs(tap, apart, reader).connection();
    let whole = c.exchanges[0].end - c.exchanges[0].start;
    causes.map(|cause| c.budget.get(cause).0 * 100 / whole.0)
}

/// A sender with BBR spreads what a window lets through, so that it is full for a part of each round only;
/// its reader takes seven pairs every 20.5 ms. Sent at once, they would have waited for the same ACK. A
/// reader that takes all is not the limit.
#[test]
fn what_is_spread_over_a_window_waits_for_its_reader() {
    let causes = [Cause::SlowReader, Cause::Pacing, Cause::ReceiveWindow];
    for tap in [Tap::Server, Tap::Client] {
        let slow = Reader { every: us(20_500), takes: 7 * PAIR, buffer: 28 * PAIR };
        let [reader, pacing, window] = sent(tap, us(1_500), slow, causes);
        assert!(reader > 80 && pacing < 10 && window < 10, "{tap:?} {reader} {pacing} {window}");
        let fast = Reader { takes: u32::MAX, every: us(50), buffer: 64 * PAIR };
        let [reader, pacing, window] = sent(tap, us(2_500), fast, causes);
        assert!(pacing > 80 && reader == 0 && window == 0, "{tap:?} {reader} {pacing} {window}");
    }
}

/// Seven or eight pairs fill a round trip, so that each leaves 200 us to 500 us behind an ACK that frees an
/// eighth of what is in flight: a buffer's writer is not woken for less than a third (rule 113). Where a
/// third leaves each time, it is.
#[test]
fn what_leaves_for_less_than_a_third_of_the_buffer_was_spaced() {
    let causes = [Cause::Pacing, Cause::SendBuffer, Cause::SenderPause];
    let fast = Reader { takes: u32::MAX, every: us(50), buffer: 64 * PAIR };
    for (tap, apart) in [(Tap::Server, us(2_900)), (Tap::Server, us(2_550)), (Tap::Client, us(2_550))] {
        let [pacing, buffer, pause] = sent(tap, apart, fast, causes);
        assert!(pacing > 80 && buffer < 5 && pause < 10, "{tap:?} {apart} {pacing} {buffer} {pause}");
    }
}

/// Who paces has no use for another congestion control as long as a cap is set: its line comes first, and
/// last where a loss made a window small.
#[test]
fn a_cap_is_looked_for_first() {
    let fast = Reader { takes: u32::MAX, every: us(50), buffer: 64 * PAIR };
    let analysis = pairs(Tap::Server, us(2_900), fast).analysis();
    let pacing = analysis.findings.iter().find(|f| f.cause == Cause::Pacing).expect("pacing");
    assert_eq!(pacing.fixes[0].fix, FixId::CongestionControl);
    assert!(pacing.fixes[0].how[0].contains("SO_MAX_PACING_RATE"), "{:?}", pacing.fixes[0].how);
    let table = FixId::CongestionControl.info().how;
    assert!(table.last().is_some_and(|how| how.text.contains("SO_MAX_PACING_RATE")));
}

/// Its reader takes all every 10.5 ms, so that ACKs come as they are read and no train of them tells who set
/// the pairs apart. Packets of two whole segments each, one after the other, are written by nobody (rule
/// 113).
#[test]
fn whole_packets_alone_are_a_pace() {
    let reader = Reader { every: us(10_500), takes: u32::MAX, buffer: 64 * PAIR };
    let causes = [Cause::Pacing, Cause::SenderPause, Cause::SlowReader];
    let [pacing, pause, slow] = sent(Tap::Server, us(2_900), reader, causes);
    assert!(pacing > 80 && pause < 10 && slow == 0, "{pacing} {pause} {slow}");
}

/// A writer with a clock of its own, whose pieces are no whole segments: behind the partial end of each
/// nothing was left to send, and where Nagle's algorithm holds the ends, more leaves now and then in the same
/// time, or by chance as much in as many of them (rules 83 and 113).
#[test]
fn pieces_that_are_no_whole_segments_were_written_so() {
    let causes = |piece: u32, apart: Nanos, nodelay: bool| {
        let mut w = Wire::new(Tap::Server, ms(20));
        w.host[0].window = 1 << 20;
        w.handshake();
        w.at(ms(30)).client().data(100);
        let (mut events, mut written, mut left) = (Vec::new(), 0, 0);
        for k in 0..200 {
            written += piece;
            let part = if nodelay { written - left } else { (written - left) / MSS * MSS };
            left += part;
            let at = ms(50) + apart.times(k);
            events.extend([(at, part), (at + ms(10), 0)]);
        }
        events.sort_by_key(|e| e.0);
        for (at, part) in events {
            match part {
                0 => _ = w.at(at).client().ack(),
                _ if nodelay => w.at(at).server().write(part),
                _ => {
                    // Linux sends them as one packet, which ends with PSH.
                    w.at(at).server().write(part - MSS);
                    w.server().data(MSS).segment.flags = TcpFlags(TcpFlags::ACK | TcpFlags::PSH);
                }
            }
        }
        let c = w.connection();
        [Cause::SenderPause, Cause::Pacing, Cause::SendBuffer].map(|cause| c.budget.get(cause) > ms(300))
    };
    for (piece, apart) in [(3_000, us(2_900)), (4_096, ms(3)), (4_096, us(2_550))] {
        for nodelay in [true, false] {
            let [pause, pacing, buffer] = causes(piece, apart, nodelay);
            assert!(!pacing && !buffer && (pause || !nodelay), "{piece} {apart} {nodelay}");
        }
    }
}
