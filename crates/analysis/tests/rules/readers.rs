//! Who reads late, and whose buffer is small (rule 102).

use crate::wire::{Tap, Wire, ms, us};
use tcpwhy_base::{Cause, Nanos};

const MSS: u32 = 1448;
const ROUND: u32 = 28 * MSS;

/// Ten rounds of a full window over 18 ms; in each the receiver acknowledges what has come after `lay`.
fn rounds(tap: Tap, lay: Nanos) -> [i64; 2] {
    let mut w = Wire::new(tap, ms(18));
    w.handshake();
    w.at(ms(100)).client().window(ROUND).data(100);
    w.at(ms(109));
    for _ in 0..10 {
        w.server().write(ROUND);
        w.after(ms(9) + lay);
        w.client().ack();
        w.after(ms(9));
    }
    w.server().data(50);
    w.after(ms(9)).client().ack();
    shares(&w)
}

/// What is a slow reader's of the exchange, and a window's, in percent.
fn shares(w: &Wire) -> [i64; 2] {
    let c = w.connection();
    let whole = c.exchanges[0].end - c.exchanges[0].start;
    [Cause::SlowReader, Cause::ReceiveWindow].map(|cause| c.budget.get(cause).0 * 100 / whole.0)
}

/// A reader that sleeps for 23 ms over a path of 18 acknowledges each window as a whole, 5 ms after it came:
/// a larger buffer would not make it faster. One that waits for data reads as it comes.
#[test]
fn a_reader_with_a_clock_of_its_own_is_slow() {
    for tap in [Tap::Client, Tap::Server] {
        let [reader, window] = rounds(tap, ms(5));
        assert!(reader > 60 && window < 20, "{reader} {window}");
    }
    // Later by less than an eighth of the round: nothing tells it from a host that is late to wake up.
    assert!(rounds(Tap::Client, us(1_500))[1] > 60);
    let [reader, window] = rounds(Tap::Client, us(100));
    assert!(reader == 0 && window > 60, "{reader} {window}");
}

/// Over 20 ms a reader takes a dozen segments every 8 ms, from a window of 80 KB of which no more than 52 KB
/// are ever free, or all of which it empties.
#[test]
fn a_buffer_that_is_never_empty_has_a_slow_reader() {
    let found = |offers: u32, lay: Nanos| by_the_dozen(Tap::Client, 80_480, offers, lay);
    let slow = found(52_224, ms(4));
    assert!(slow[0] > 60 && slow[1] < 30, "{slow:?}");
    assert!(found(52_224, us(200))[0] == 0);
    assert!(found(70_000, ms(4))[0] == 0);
}

/// A window that had grown to 90 KB, and is 52 KB for three round trips, has data behind it, however prompt
/// its ACKs are. One that had not grown may be of a receiver that did not know yet how much memory segments
/// take.
#[test]
fn a_window_that_had_grown_and_stays_low_is_a_reader() {
    for tap in [Tap::Client, Tap::Server] {
        let [reader, window] = by_the_dozen(tap, 90_000, 52_224, us(200));
        assert!(reader > 50 && window < 40, "{reader} {window}");
        assert_eq!(by_the_dozen(tap, 80_480, 52_224, us(200))[0], 0);
        assert_eq!(by_the_dozen(tap, 90_000, 70_000, us(200))[0], 0);
    }
}

/// Thirty dozens of segments every 8 ms over 20 ms, each acknowledged after `lay`: what is a slow reader's
/// and what is a window's.
fn by_the_dozen(tap: Tap, most: u32, offers: u32, lay: Nanos) -> [i64; 2] {
    let mut w = Wire::new(tap, ms(20));
    w.handshake();
    w.at(ms(100)).client().window(most).data(100);
    let burst = |k: i64| ms(110 + 8 * k);
    let mut events: Vec<(Nanos, bool)> =
        (0..30).flat_map(|k| [(burst(k), true), (burst(k) + ms(10) + lay, false)]).collect();
    events.sort();
    for (at, data) in events {
        match data {
            true => w.at(at).server().write(12 * MSS),
            false => {
                w.at(at).client().window(offers).ack();
            }
        }
    }
    shares(&w)
}

/// Over 20 ms a reader takes sixteen segments every 19.8 ms, and an ACK says so then; no more than 47 KB of
/// 80 are ever free. More is in flight than the segments whose times are known each, but when they left is
/// known well enough: their ACKs are late by a trip, each time (rule 21). A window that is as low but moves
/// with each arrival is a window.
#[test]
fn a_low_window_and_late_acks_are_a_reader() {
    let found = |lay: Nanos| {
        let mut w = Wire::new(Tap::Server, ms(20));
        w.handshake();
        w.at(ms(100)).client().window(80_640).data(100);
        let mut events: Vec<(Nanos, bool)> = Vec::new();
        for k in 0..40 {
            // Two bursts are in flight: the ACK of each lets go the next but one.
            let burst = ms(111) + (us(20_050) + lay).part(2).times(k);
            events.extend([(burst, true), (burst + ms(10) + lay, false)]);
        }
        events.sort();
        for (at, data) in events {
            if data {
                w.at(at).server().write(16 * MSS);
            } else {
                w.at(at).client().window(46_592).ack();
            }
        }
        shares(&w)
    };
    let [reader, window] = found(us(19_500));
    assert!(reader > 60 && window < 20, "{reader} {window}");
    assert_eq!(found(us(200))[0], 0);
}
