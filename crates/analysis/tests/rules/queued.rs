//! Queues that others fill, seen from afar: what came late had left when an ACK let it go (rule 96).

use crate::wire::{Tap, Wire, ms, us};
use tcpwhy_base::{Cause, Nanos, TcpFlags};

const PAIR: u32 = 2 * 1_448;

/// A server that sends pairs of segments at these times, each so much later at the client than the way takes
/// at a round trip of `rtt`. Its time stamps tick every so many milliseconds.
fn pairs(rtt: Nanos, tick: u32, sends: impl Iterator<Item = (Nanos, Nanos)>) -> (Nanos, Nanos) {
    pieces(PAIR, rtt, tick, sends)
}

/// The same of pieces of any length.
fn pieces(len: u32, rtt: Nanos, tick: u32, sends: impl Iterator<Item = (Nanos, Nanos)>) -> (Nanos, Nanos) {
    let mut w = Wire::new(Tap::Client, rtt);
    w.handshake();
    w.client().data(100);
    let mut events: Vec<(Nanos, Option<Nanos>)> = Vec::new();
    for (sent, late) in sends {
        events.extend([(sent, Some(late)), (sent + rtt.part(2) + late, None)]);
    }
    events.sort_unstable();
    for (at, late) in events {
        let Some(late) = late else {
            w.at(at).client().ack();
            continue;
        };
        let packet = w.at(at).server().data(len);
        packet.segment.flags = TcpFlags(TcpFlags::ACK | TcpFlags::PSH);
        packet.segment.options.timestamps.iter_mut().for_each(|stamps| stamps.0 /= tick);
        packet.late(late);
    }
    let budget = w.connection().budget;
    (budget.get(Cause::SenderPause), budget.get(Cause::Queueing))
}

/// Flights of pairs that leave so long after its first, at a round trip of 40 ms. From the third on packets
/// come `late`, so that the next ones leave as much later, and the application waits for `pause` before it
/// writes on.
fn flights(offsets: &[i64], tick: u32, late: i64, pause: i64) -> (Nanos, Nanos) {
    let sends = (0..12).flat_map(|flight| {
        let (late, pause) = if flight < 2 { (0, 0) } else { (late, pause) };
        let start = 60 + 40 * flight + (flight - 2).max(0) * (late + pause) + pause;
        offsets.iter().map(move |&offset| (ms(start) + us(offset), ms(late)))
    });
    pairs(ms(40), tick, sends)
}

/// Three pairs, a pause, and three again, which never are acknowledged all together: each echoes the ACK that
/// let it go and not the one behind that, so that it came late by the path, whatever its own stamps tell.
/// (What holds flights that stay the same is another question.)
#[test]
fn what_left_with_an_earlier_ack_came_late_by_the_path() {
    let offsets = [0, 1_500, 3_000, 25_000, 26_500, 28_000];
    for tick in [1, 4] {
        let (_, queues) = flights(&offsets, tick, 9, 0);
        assert!(queues > ms(150), "{tick}: {queues}");
        let (_, queues) = flights(&offsets, tick, 0, 9);
        assert!(queues < ms(5), "{tick}: {queues}");
    }
}

/// One ACK lets all of a flight go: by its time stamp it left when that came, or later.
#[test]
fn what_left_with_the_last_ack_was_not_paused() {
    let (pauses, queues) = flights(&[0], 1, 20, 0);
    assert!(pauses < ms(5) && queues > ms(150), "{pauses} {queues}");
    let (pauses, queues) = flights(&[0], 1, 0, 20);
    assert!(pauses > ms(150) && queues < ms(5), "{pauses} {queues}");
}

/// A writer that sends ten pairs every 44 ms, behind a queue of 12 ms: that some ACK came just before it went
/// on, among many while it was silent, says nothing.
#[test]
fn a_writer_with_a_clock_of_its_own_pauses() {
    let sends = (0..120).map(|n| {
        let late = if n < 20 { 0 } else { 12 };
        (ms(60) + ms(44).times(n / 10) + us(2_300).times(n % 10), ms(late))
    });
    let (pauses, queues) = pairs(ms(20), 1, sends);
    assert!(pauses > ms(150) && queues < ms(60), "{pauses} {queues}");
}

/// Trains that wait for 30 ms behind those of others, longer than two round trips without that: the ACKs that
/// pass meanwhile are not lost because what comes then echoes none of them (rule 148).
#[test]
fn what_stood_in_a_queue_is_no_probe() {
    let queued = |late: i64| {
        let sends = (0..12).flat_map(move |train| {
            let late = if train < 2 { 0 } else { late };
            let start = 60 + 10 * train + (train - 2).max(0) * late;
            (0..6).map(move |n| (ms(start) + us(400 * n), ms(late)))
        });
        pieces(PAIR / 2, ms(10), 1, sends)
    };
    let (pauses, queues) = queued(30);
    assert!(pauses < ms(5) && queues > ms(150), "{pauses} {queues}");
}
