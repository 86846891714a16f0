//! A queue that others fill, and two programs that write and do not read.

use crate::wire::{Tap, Wire, ms, us};
use tcpwhy_base::Cause;

const MSS: u32 = 1448;

/// A second flight of eight segments takes 60 ms for a round trip of 20: the path carries a gigabit, so that
/// it was not the eight segments that filled it.
#[test]
fn a_queue_of_others_swells_the_round_trip() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    for (at, late) in [(ms(30), ms(0)), (ms(50) + us(80), ms(40))] {
        for k in 0..8 {
            w.at(at).client().data(MSS);
            w.overtaken(0, late + us(10 * k));
        }
        for k in 0..8 {
            w.at(at + ms(10) + late + us(10 * k)).server().ack();
        }
    }
    w.at(ms(110) + us(160)).client().write(8 * MSS);
    w.after(ms(10)).server().data(50);
    w.after(ms(10)).client().ack();
    w.tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..130.16 34752>50
           bandwidth network 30..30.067906 #11-27
           unexplained nobody 30.067906..50.08 #11-27
           bandwidth network 50.08..50.157607 #27-43
           queueing network 50.157607..90.182508 #27-43
           unexplained nobody 90.182508..110.16 #27-43
           path_delay network 110.16..130.16 #43-44",
    );
}

/// Each writes more than the other's window holds, and reads nothing.
#[test]
fn both_ends_write_and_neither_reads() {
    let mut w = Wire::new(Tap::Client, ms(20));
    for host in &mut w.host {
        host.window = 2 * MSS;
        host.wscale = Some(0);
    }
    w.handshake();
    w.at(ms(30)).client().write(2 * MSS);
    w.at(ms(40)).server().window(0).ack();
    w.at(ms(45)).server().write(2 * MSS);
    w.at(ms(55)).client().window(0).ack();
    w.at(ms(270)).client().probe();
    w.at(ms(280)).server().ack();
    w.at(ms(285)).server().probe();
    w.at(ms(295)).client().ack();
    let c = w.tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..295 2896>2896 capture_end
           path_delay network 30..40 #5-7
           server_think server 40..45 #5-7
           path_delay network 45..55 #5-7
           mutual_block nobody 55..295 #8-13",
    );
    let blocked = c.exchanges[0].spans.last().unwrap();
    assert_eq!((blocked.cause, blocked.confidence, blocked.side), (Cause::MutualBlock, 0.8, None));
    let blocks = "Both windows were closed (to 0 bytes by the client, 0 by the server) while both ends had data to send: each waited in its write until the other would read.";
    assert_eq!(blocked.facts.sentence(), blocks);
}
