//! A window that is shut, whoever speaks next (rule 57).

use crate::wire::{Tap, Wire, ms};
use tcpwhy_base::{Cause, TcpFlags};

const MSS: u32 = 1448;

/// Two hosts whose windows hold eight segments and so many bytes more.
fn opened(spare: u32) -> Wire {
    let mut w = Wire::new(Tap::Client, ms(20));
    for host in &mut w.host {
        (host.wscale, host.window) = (Some(0), 8 * MSS + spare);
    }
    w.handshake();
    w
}

/// The server pushes without being asked; the client, beside the tap, has shut its window but for 128 bytes at 60 ms.
fn stalled() -> Wire {
    let mut w = opened(128);
    w.at(ms(40)).server().write(8 * MSS);
    w.at(ms(60)).client().window(128).ack();
    w
}

/// The server writes on at this time, with the update if there was one.
fn goes_on(w: &mut Wire, probes: &[i64], update: bool, at: i64) -> [i64; 3] {
    for &probe in probes {
        w.at(ms(probe)).server().probe();
    }
    if update {
        w.at(ms(at - 10)).client().window(60_000).ack();
    }
    w.at(ms(at)).server().write(2 * MSS);
    w.after(ms(20)).client().ack();
    let c = w.connection();
    let whole = |cause| (c.budget.get(cause).0 + 500_000) / 1_000_000;
    [c.exchanges.len() as i64, whole(Cause::SlowReader), whole(Cause::ServerThink)]
}

#[test]
fn a_pushed_message_goes_on_when_the_reader_does() {
    // For longer than the second after which a message that is pushed would be another one.
    assert_eq!(goes_on(&mut stalled(), &[260, 660, 1460], true, 3_000), [1, 2_960, 10]);
    assert_eq!(goes_on(&mut stalled(), &[], true, 3_000), [1, 2_960, 10], "at once after the update");
    let mut late = stalled();
    late.at(ms(2_500)).client().window(60_000).ack();
    assert_eq!(goes_on(&mut late, &[], false, 3_000)[0], 2, "half a second later, without a probe before");
}

#[test]
fn an_answer_that_is_stalled_is_not_over_when_the_client_speaks() {
    let told = |probes: &[i64]| {
        let mut w = opened(128);
        w.at(ms(30)).client().data(100);
        w.at(ms(40)).server().write(8 * MSS);
        w.at(ms(50)).client().window(128).ack();
        for &probe in probes {
            w.at(ms(probe)).server().probe();
        }
        w.at(ms(1_000)).client().data(30);
        w.at(ms(1_990)).client().window(60_000).ack();
        w.at(ms(2_000)).server().write(4 * MSS);
        w.at(ms(2_010)).client().ack();
        let c = w.connection();
        (c.exchanges.len(), (c.budget.get(Cause::SlowReader).0 + 500_000) / 1_000_000)
    };
    assert_eq!(told(&[260, 660]), (1, 1_960));
    assert_eq!(told(&[]).0, 2);
}

#[test]
fn a_part_of_what_waits_is_a_probe() {
    // One byte at a time into the room that is left: pushed, it is a writer's.
    let told = |push: bool| {
        let mut w = opened(1_280);
        w.at(ms(30)).client().write(8 * MSS);
        w.at(ms(40)).server().window(1_280).ack();
        for (n, at) in [300, 600, 1_200, 2_400].into_iter().enumerate() {
            w.at(ms(at)).client().data(1).segment.flags =
                TcpFlags(TcpFlags::ACK | if push { TcpFlags::PSH } else { 0 });
            w.at(ms(at + 10)).server().window(1_279 - n as u32).ack();
        }
        let c = w.connection();
        (c.exchanges.len(), c.budget.get(Cause::SlowReader).0 / 1_000_000)
    };
    assert_eq!(told(false), (1, 2_390));
    assert_eq!(told(true).1, 20, "the last wait, when the window is shut");
}
