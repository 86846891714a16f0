//! A server that writes its answers at once never pauses within them, whatever is lost on the way.

use crate::wire::{Packet, Tap, Wire, ms, us};
use tcpwhy_base::Cause;

const MSS: u32 = 1448;

/// A request, whose answer begins at 40 ms.
fn asked(tap: Tap) -> Wire {
    let mut w = Wire::new(tap, ms(20));
    w.handshake();
    w.at(ms(30)).client().data(100);
    w.at(ms(40));
    w
}

/// Lost half-way, behind a tap beside its sender.
fn lost(packet: &mut Packet, passes: bool) {
    _ = if passes { packet.lost() } else { packet.lost_before_tap() };
}

/// What the cause took, milliseconds, and how long the server paused.
fn took(w: &Wire, cause: Cause) -> [i64; 2] {
    let c = w.connection();
    let of = |cause| c.exchanges.iter().flat_map(|x| &x.spans).filter(move |s| s.cause == cause);
    let sum = |cause| of(cause).map(|s| ((s.end - s.start).0 + 500_000) / 1_000_000).sum();
    [sum(cause), sum(Cause::SenderPause)]
}

/// Duplicate ACKs let new data go before they have the lost segment sent again (RFC 3042).
#[test]
fn limited_transmit_is_no_pause_of_the_writer() {
    for tap in [Tap::Server, Tap::Client] {
        let mut w = asked(tap);
        lost(w.server().data(MSS), tap == Tap::Server);
        w.server().data(MSS);
        w.server().data(MSS);
        w.at(ms(50)).client().ack();
        w.after(us(200)).client().ack();
        w.at(ms(60)).server().data(MSS);
        w.after(us(200)).server().data(500);
        w.at(ms(65)).server().repeat(0, MSS);
        w.at(ms(75)).client().ack();
        assert_eq!(took(&w, Cause::SenderPause), [0, 0], "{tap:?}");
    }
}

/// The ACK of all is lost: the timer of a probe lets new data go (RFC 8985, 7.3).
#[test]
fn a_probe_that_carries_new_data_is_no_pause_of_the_writer() {
    // Beside the server the trip of the lost ACK is the path's; beside the client the request's was.
    for (tap, probe) in [(Tap::Server, 28), (Tap::Client, 48)] {
        let mut w = asked(tap);
        // Its stack echoes the stamps of pure ACKs.
        w.server().data(MSS);
        w.at(ms(50)).client().ack();
        w.at(ms(60)).server().data(50);
        w.at(ms(70)).client().ack();
        w.at(ms(110)).client().data(100);
        w.at(ms(120));
        w.server().data(MSS);
        w.server().data(MSS);
        lost(w.at(ms(130)).client().ack(), tap == Tap::Client);
        w.at(ms(168)).server().data(500);
        w.at(ms(178)).client().ack();
        assert_eq!(took(&w, Cause::TailLossProbe), [probe, 0], "{tap:?}");
    }
}

/// What a loss in an earlier answer left of the window lets three segments go in a round trip.
#[test]
fn few_segments_after_a_loss_are_no_pause_of_the_writer() {
    for tap in [Tap::Server, Tap::Client] {
        let mut w = asked(tap);
        lost(w.server().data(MSS), tap == Tap::Server);
        (0..5).for_each(|_| _ = w.server().data(MSS));
        w.at(ms(50)).client().ack();
        w.at(ms(60)).server().repeat(0, MSS);
        w.at(ms(70)).client().ack();
        w.at(ms(100)).client().data(100);
        for k in 0..3 {
            w.at(ms(110 + 20 * k));
            (0..3).for_each(|_| _ = w.server().data(MSS));
            w.after(ms(10)).client().ack();
        }
        w.after(ms(10)).server().data(500);
        w.after(ms(10)).client().ack();
        assert_eq!(took(&w, Cause::CongestionWindow), [60, 0], "{tap:?}");
    }
}

/// The last segment of an answer is lost, and its ACK of the rest waits to be delayed: what is missing by its number is no ACK,
/// for the server had nothing to acknowledge, and it is probed for after two round trips.
#[test]
fn a_probed_tail_is_no_pause_of_the_writer() {
    let of = |asks: bool| {
        let mut w = asked(Tap::Client);
        w.server().data(MSS);
        w.at(ms(50)).client().ack();
        w.at(ms(80)).client().data(100);
        w.at(ms(90)).server().data(MSS);
        w.server().data(500).lost_before_tap();
        if asks {
            w.at(ms(112)).client().data(10);
        }
        w.at(ms(136)).server().repeat(2 * MSS, 500);
        w.at(ms(146)).client().ack();
        took(&w, Cause::TailLossProbe)
    };
    assert_eq!(of(false), [46, 0]);
    // What was asked for since may have been acknowledged by the packet that is missing.
    assert_eq!(of(true)[0], 0);
}

/// Which window lets a segment go is not known any more when it passes beside the client: the hole is closed there, while the
/// sender has heard of what lies beyond it only.
#[test]
fn what_a_duplicate_let_go_before_its_hole_was_closed() {
    let mut w = asked(Tap::Client);
    w.server().data(MSS).lost_before_tap();
    (0..5).for_each(|_| _ = w.server().data(MSS));
    w.at(ms(50)).client().ack();
    w.after(us(300)).client().ack();
    w.at(ms(55)).server().repeat(0, MSS);
    w.at(us(60_200)).server().data(500);
    w.at(ms(65)).client().ack();
    w.at(us(70_200)).client().ack();
    assert_eq!(took(&w, Cause::SenderPause), [0, 0]);
}
