//! Nagle's algorithm, delayed ACKs, and what looks like them.

use crate::wire::{Tap, Wire, ms, us};

fn header_then_body(tap: Tap) -> Wire {
    let mut w = Wire::new(tap, ms(20));
    w.handshake();
    w.at(ms(30)).client().data(4);
    w.at(ms(80)).server().ack();
    w.at(ms(90)).client().data(100);
    w.at(ms(100)).server().data(50);
    w.at(ms(110)).client().ack();
    w
}

#[test]
fn x1() {
    header_then_body(Tap::Client).tells("");
}
#[test]
fn x2() {
    header_then_body(Tap::Server).tells("");
}
#[test]
fn x3() {
    header_then_body(Tap::Middle).tells("");
}
