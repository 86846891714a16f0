//! What some would call a limit of TCP, and where the packets stop showing it (rules 79 to 82).

use crate::wire::{Tap, Wire, ms, us};
use tcpwhy_analysis::Connection;
use tcpwhy_base::{Cause, Nanos, TcpFlags};

const MSS: u32 = 1448;

/// Full segments of the server, so far apart by turns, each acknowledged at once; none ends a write.
fn unpushed(rtt: Nanos, apart: [Nanos; 2]) -> Connection {
    let mut w = Wire::new(Tap::Client, rtt);
    w.handshake();
    w.at(rtt + ms(10)).client().data(100);
    let mut at = rtt + ms(10) + rtt.part(2);
    for k in 0..20 {
        w.at(at).server().data(MSS);
        w.at(at + rtt.part(2)).client().ack();
        at += apart[k % 2];
    }
    w.connection()
}

/// Seen from afar: no ACK can just have reached the sender, and what comes as evenly is spaced by the link (rule 82).
#[test]
fn what_no_ack_released_comes_at_the_pace_of_the_link() {
    let told = |apart| {
        let c = unpushed(ms(2), apart);
        (c.budget.get(Cause::Bandwidth) > ms(9 * 15), c.budget.get(Cause::SenderPause) > ms(9 * 10))
    };
    assert_eq!(told([ms(9), ms(9)]), (true, false));
    // A sixteenth more or less is as even.
    assert_eq!(told([ms(9), us(9_500)]), (true, false));
    assert!(!told([ms(9), us(9_700)]).0);
}

/// Small writes of the server, each a little after the ACK of the one before.
fn holds(count: u32, sizes: [u32; 2]) -> Connection {
    let rtt = ms(10);
    let mut w = Wire::new(Tap::Server, rtt);
    w.handshake();
    w.at(rtt + ms(10)).client().data(100);
    let mut at = rtt + ms(10) + rtt.part(2);
    for k in 0..count {
        let packet = w.at(at).server().data(sizes[k as usize % 2]);
        packet.segment.flags = TcpFlags(TcpFlags::ACK | TcpFlags::PSH);
        w.at(at + rtt.part(2)).client().ack();
        at += rtt + us(100);
    }
    w.connection()
}

/// Six holds in a row of one size are a writer that is a little slower than the ACKs (rule 81).
#[test]
fn holds_of_one_size_are_their_writers_clock() {
    let told = |count, sizes| {
        let c = holds(count, sizes);
        [Cause::Nagle, Cause::SenderPause].map(|cause| c.budget.get(cause) > ms(20))
    };
    assert_eq!(told(6, [300, 300]), [true, false]);
    assert_eq!(told(7, [300, 300]), [false, true]);
    // What was written meanwhile makes a hold larger.
    assert_eq!(told(20, [300, 600]), [true, false]);
}
