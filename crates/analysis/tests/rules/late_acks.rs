//! ACKs that came late: who waited for them (rules 145 and 152).

use crate::wire::{Tap, Wire, analyze, ms};
use tcpwhy_analysis::Analysis;
use tcpwhy_base::{Cause, FixId};

const MSS: u32 = 1_448;

/// Of `count` segments and one more the last one's ACK is late, while `next` that the ACK of the others let go are on
/// their way.
fn late_for_one(count: u32, next: u32) -> Analysis {
    let mut w = Wire::new(Tap::Client, ms(60));
    w.handshake();
    w.at(ms(70)).client().data(100);
    w.at(ms(100)).server().write(count * MSS);
    w.after(ms(30)).client().ack();
    w.at(ms(101)).server().write(MSS);
    w.at(ms(160)).server().write(next * MSS);
    w.at(ms(175)).client().ack();
    w.at(ms(190)).client().ack();
    w.at(ms(205)).server().write(MSS);
    w.at(ms(220)).server().write(30 * MSS);
    w.after(ms(30)).client().ack();
    analyze(&w.segments())
}

/// What flies besides is acknowledged in its turn, so that a late ACK of one of many segments held up nobody.
#[test]
fn a_late_ack_holds_up_who_waits_for_no_other() {
    let delayed = |analysis: Analysis| analysis.findings.into_iter().find(|f| f.cause == Cause::DelayedAck);
    assert!(delayed(late_for_one(10, 20)).is_none());
    let one = delayed(late_for_one(2, 2)).expect("no more than two flew besides");
    // No buffer of two segments let three fly.
    assert_eq!(one.fixes.iter().map(|f| f.fix).collect::<Vec<_>>(), [FixId::Quickack]);
    assert!(one.refuted.iter().any(|r| r.fix == FixId::BiggerWindow && r.because.contains("4344 bytes")));
}
