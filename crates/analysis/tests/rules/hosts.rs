//! What is said of the two hosts: their stacks, their largest figures, segments that a card merged.

use crate::wire::{CLIENT, SERVER, Tap, Wire, analyze, ms, us};
use crate::words::shown;
use tcpwhy_analysis::Quality;
use tcpwhy_base::Nanos;

/// The operating system, from the order of the SYN's options and its TTL.
#[test]
fn stacks_show_in_their_syns() {
    let os = |order: u32, ttl: u8, timestamps: bool, window: u32| {
        let mut w = Wire::new(Tap::Client, ms(20));
        w.timestamps = timestamps;
        let client = &mut w.host[CLIENT];
        (client.order, client.ttl, client.window) = (order, ttl, window);
        w.handshake();
        w.at(ms(30)).client().data(100);
        w.connection().ends[CLIENT].os
    };
    assert_eq!(os(0x342, 64, true, 64_240), Some("Linux"));
    assert_eq!(os(0x7342, 64, true, 64_240), Some("Linux"));
    assert_eq!(os(0x432, 128, false, 65_535), Some("Windows"));
    assert_eq!(os(0x432, 65, true, 65_535), Some("Windows"));
    assert_eq!(os(0x432, 64, true, 65_535), Some("macOS"));
    assert_eq!(os(0x432, 64, false, 65_535), Some("FreeBSD"));
    assert_eq!(os(0x432, 64, true, 65_534), Some("FreeBSD"));
    assert_eq!(os(0x324, 64, true, 65_535), None);
}

/// The largest figures of the ends.
#[test]
fn figures_of_both_ends() {
    let c = shown(Tap::Server).connection();
    let [client, server] = &c.ends;
    assert_eq!((client.mss, client.wscale, client.max_window), (Some(1_460), Some(7), Some(64_000)));
    assert_eq!((client.max_flight, server.max_flight), (100, 20 * 1448));
    assert_eq!((client.initial_flight, server.initial_flight), (None, Some(14_480)));
    assert_eq!((client.zero_windows, client.nodelay_shown, server.nodelay_shown), (1, 1, 0));
    assert_eq!(
        (c.path.rtt, c.path.offloaded, c.packets, c.frames),
        (Some(ms(20) + Nanos(1)), false, [8, 33], (1, 41))
    );
    let (delayed, halves) =
        (server.delayed_ack.expect("a delayed ACK"), c.path.halves.map(|h| h.expect("known")));
    assert!((delayed.shortest - ms(40)).0.abs() <= 1 && delayed.shortest == delayed.longest, "{delayed:?}");
    assert!(halves[CLIENT] == ms(20) && halves[SERVER] == Nanos(1), "{halves:?}");
    // More than half a second is no delayed ACK.
    let habit = |delay: Nanos| {
        let mut w = Wire::new(Tap::Client, ms(20));
        w.handshake();
        w.at(ms(30)).client().data(100);
        w.after(ms(10) + delay).server().ack();
        w.after(ms(100)).server().data(50);
        w.connection().ends[SERVER].delayed_ack.is_some()
    };
    assert_eq!([ms(8), ms(8) + us(1), ms(500), ms(500) + us(1)].map(habit), [false, true, true, false]);
}

/// Larger than the MSS: several segments that a network card merged.
#[test]
fn segments_larger_than_the_mss_are_offload() {
    let offloaded = |len: u32| {
        let mut w = Wire::new(Tap::Client, ms(20));
        w.handshake();
        w.at(ms(30)).client().data(100);
        w.at(ms(40)).server().data(1_448);
        w.server().data(len);
        let c = w.connection();
        (c.path.offloaded, c.quality.has(Quality::OFFLOAD))
    };
    assert_eq!((offloaded(1_448), offloaded(2_896)), ((false, false), (true, true)));
    // Without its handshake.
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    w.at(ms(30)).client().data(100);
    w.at(ms(40)).server().data(1_448);
    let c = analyze(&w.segments()[3..]).connections.remove(0);
    assert!(!c.path.offloaded && !c.opened_by_handshake);
}
