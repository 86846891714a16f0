//! Waits within a write: more of it was there to send, so that its program did not pause (rule 149).

use crate::wire::{Tap, Wire, ms, us};
use tcpwhy_base::{Cause, Nanos, TcpFlags};

const MSS: u32 = 1448;

/// Twenty answers over a round trip of 40 ms: `rows` of whole segments, so far apart, each marked with PSH or none, and a tail.
fn answers(tap: Tap, rows: &[u32], apart: Nanos, psh: bool) -> [i64; 3] {
    let mut w = Wire::new(tap, ms(40));
    w.handshake();
    for k in 0..20 {
        w.at(ms(100 + 150 * k)).client().data(100);
        let mut at = ms(120 + 150 * k);
        for &row in rows {
            for n in 1..=row {
                let packet = w.at(at).server().data(MSS);
                if psh && n == row {
                    packet.segment.flags = TcpFlags(TcpFlags::ACK | TcpFlags::PSH);
                }
            }
            at += apart;
        }
        w.at(at).server().data(500);
        w.after(ms(20)).client().ack();
    }
    let c = w.connection();
    let of = |cause| c.exchanges.iter().flat_map(|x| &x.spans).filter(move |s| s.cause == cause);
    let sum = |cause| of(cause).map(|s| ((s.end - s.start).0 + 500_000) / 1_000_000).sum();
    [Cause::SenderPause, Cause::Pacing, Cause::Unexplained].map(sum)
}

/// BBR has a small window after losses, and lets one segment go at a time: none of them ends a write. Afar a link may have set
/// them apart as well.
#[test]
fn segments_that_end_no_write_are_spaced_by_their_sender() {
    assert_eq!(answers(Tap::Server, &[1, 1], ms(8), false), [0, 320, 0]);
    assert_eq!(answers(Tap::Client, &[1, 1], ms(8), false)[0], 0);
    // What leaves in rows of ten is a writer's, who goes on later with what it says (`MSG_MORE`).
    assert_eq!(answers(Tap::Server, &[10, 10], ms(8), false), [320, 0, 0]);
}

/// Of pairs PSH may end a write or not: nobody can tell who set them apart. Longer rows were written, as a proxy passes on what
/// came, if no pace is as fast.
#[test]
fn pairs_may_have_been_written_or_spaced() {
    let [pause, pacing, untold] = answers(Tap::Server, &[2, 2], ms(8), true);
    assert!(pause == 0 && pacing == 0 && untold == 320, "{pause} {pacing} {untold}");
    assert_eq!(answers(Tap::Server, &[10, 10], ms(8), true), [320, 0, 0]);
    let [pause, ..] = answers(Tap::Server, &[10, 10], us(1_900), true);
    assert_eq!(pause, 0);
}

/// A wait ten times as long behind as much is no pace's; nor are two segments among many pauses behind ends of writes.
#[test]
fn what_keeps_no_pace_was_written() {
    let of = |apart: &[Nanos], tails: bool| {
        let mut w = Wire::new(Tap::Server, ms(20));
        w.handshake();
        w.at(ms(300)).client().data(100);
        let mut at = ms(400);
        for &wait in apart {
            w.at(at).server().data(MSS);
            if tails {
                w.server().data(100);
            }
            at += wait;
        }
        w.at(at).server().data(500);
        w.after(ms(100)).client().ack();
        let budget = w.connection().budget;
        [Cause::SenderPause, Cause::Pacing].map(|cause| budget.get(cause).0 / 1_000_000)
    };
    assert_eq!(of(&[ms(30), ms(269)], false), [0, 299]);
    assert_eq!(of(&[ms(30), ms(271)], false), [271, 30]);
    // Behind the end of a write its program was.
    assert_eq!(of(&[ms(30), ms(269)], true), [299, 0]);
}
