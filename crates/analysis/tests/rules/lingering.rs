//! Connections that have closed, and wait for late packets.

use crate::wire::{Tap, Wire, ms, us};
use tcpwhy_analysis::{Analyzer, Config, Detail};
use tcpwhy_base::{Nanos, Segment, TcpFlags};

/// Closed connections wait for late packets, but not more than 16,384 of them, 64 of each class. How many
/// analyzers share the work does not matter: a late packet finds its connection or begins another one all the
/// same.
#[test]
fn no_more_than_16384_closed_connections_linger() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    let segments = w.segments();
    let (syn, mut rst, mut late) = (segments[0], segments[1], segments[2]);
    rst.flags = TcpFlags(TcpFlags::RST | TcpFlags::ACK);
    late.src = syn.src;
    let of = |n: u32, s: &Segment, frame: u32| {
        let mut s = Segment { time: syn.time + us(i64::from(frame)), frame: u64::from(frame) + 1, ..*s };
        let client = if s.src == syn.src { &mut s.src } else { &mut s.dst };
        client.ip = std::net::Ipv4Addr::from_bits(0x0a00_0000 + n / 16).into();
        client.port = 40_000 + (n % 16) as u16;
        s
    };
    let count = 20_000;
    let mut all: Vec<Segment> =
        (0..count).flat_map(|n| [of(n, &syn, 2 * n), of(n, &rst, 2 * n + 1)]).collect();
    let mut waiting = Analyzer::streaming(Config { detail: Detail::None });
    all.iter().for_each(|s| waiting.push(s));
    let gone = waiting.ended().count();
    assert!((3_616..5_000).contains(&gone), "{gone}");
    // The others go when their time is over, whoever among them had to go before.
    let after = Segment { time: syn.time + Nanos::secs(300), ..of(count, &syn, 2 * count) };
    waiting.push(&after);
    assert_eq!(gone + waiting.ended().count(), count as usize);
    all.extend((0..count).map(|n| of(n, &late, 2 * count + n)));
    let connections = |analyzers: usize| {
        let config = Config { detail: Detail::None };
        let mut shares: Vec<Analyzer> = (0..analyzers).map(|_| Analyzer::new(config)).collect();
        all.iter().for_each(|s| shares[Analyzer::share(s, analyzers)].push(s));
        Analyzer::finish_all(shares).totals.connections
    };
    let one = connections(1);
    assert!(one as u32 > count + 3_000, "{one}");
    assert_eq!([2, 3, 7].map(connections), [one; 3]);
}
