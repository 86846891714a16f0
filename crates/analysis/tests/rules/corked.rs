//! Answers that the server's kernel lets go, because their program holds them (rule 115).

use crate::wire::{Tap, Wire, ms, us};
use tcpwhy_base::{Cause, Nanos};

/// The causes of the last of eight answers of so many bytes, with their times: seven left after 224 to 236
/// ms, with ticks of 4 ms, the last after `late`.
fn last(late: Nanos, bytes: u32) -> Vec<(Cause, Nanos)> {
    let mut w = Wire::new(Tap::Server, ms(20));
    w.timestamps = true;
    w.handshake();
    let mut tick = ms(400);
    for k in 0..8 {
        // Whenever the request comes, the timer ends with a tick.
        let work = if k < 7 { ms(224) + us(700 * i64::from(k)) } else { late };
        w.at(tick - work - ms(10)).client().data(100);
        w.at(tick - work + us(20)).server().ack();
        w.at(tick).server().data(bytes);
        w.after(ms(20)).client().ack();
        tick = tick + ms(280 + 4 * i64::from(k % 3)) + if k == 6 { late } else { Nanos::ZERO };
    }
    let c = w.connection();
    let spans = c.exchanges.last().map_or(&[][..], |x| &x.spans);
    spans.iter().map(|s| (s.cause, s.end - s.start)).collect()
}

/// One that took longer than the timer, or not as long, was worked on; what fills a segment no cork holds.
#[test]
fn only_what_was_as_late_as_the_timer_was_corked() {
    let largest = |late: Nanos, bytes: u32| last(late, bytes).into_iter().max_by_key(|s| s.1).unwrap().0;
    assert_eq!(largest(ms(228), 500), Cause::Cork);
    assert_eq!(largest(ms(5_000), 500), Cause::ServerThink);
    assert_eq!(largest(ms(260), 500), Cause::ServerThink);
    assert_eq!(largest(ms(195), 500), Cause::ServerThink);
    assert_eq!(largest(ms(228), 1_448), Cause::ServerThink);
}
