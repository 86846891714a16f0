//! Small pieces that their writer writes by a clock of its own, with fewer in flight than any congestion window
//! begins with (rule 153).

use crate::wire::{Tap, Wire, ms};
use tcpwhy_analysis::Connection;
use tcpwhy_base::Cause;

/// A client with Nagle's algorithm off writes a request in pieces of `len` bytes, at these tenths of a millisecond.
fn written(tap: Tap, len: u32, at: &[i64]) -> Connection {
    let mut w = Wire::new(tap, ms(20));
    w.timestamps = true;
    w.handshake();
    for t in at {
        w.at(ms(30) + ms(*t).part(10)).client().data(len);
    }
    // Each is acknowledged as it comes.
    for t in at {
        w.at(ms(40) + ms(*t).part(10)).server().ack();
    }
    w.after(ms(1)).server().data(500);
    w.after(ms(10)).client().ack();
    w.connection()
}

#[test]
fn an_ack_that_comes_as_a_piece_is_written_let_nothing_go() {
    // Of 40 bytes as a program wrote them, whose fifth and sixth have five in flight; of 400 each 5 ms.
    let eight = [0, 40, 230, 260, 290, 360, 400, 432];
    let steady: Vec<i64> = (0..12).map(|k| 50 * k).collect();
    for tap in [Tap::Server, Tap::Client] {
        for (len, at) in [(40, &eight[..]), (400, &steady)] {
            let c = written(tap, len, at);
            assert_eq!(c.budget.get(Cause::SlowStart).0, 0, "{tap:?} {len}: {:?}", c.budget);
            assert!(c.budget.get(Cause::SenderPause) > ms(15), "{tap:?} {len}: {:?}", c.budget);
        }
    }
}
