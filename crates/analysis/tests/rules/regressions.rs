//! Traces that once gave a wrong answer.
use crate::wire::{CLIENT, SERVER, Tap, Wire, analyze, ms, tell, us};
use tcpwhy_analysis::Quality;
use tcpwhy_base::{Cause, Nanos, Segment, Seq, TcpFlags};
const MSS: u32 = 1448;
fn opened(tap: Tap) -> Wire {
    let mut w = Wire::new(tap, ms(20));
    w.handshake();
    w
}

#[test]
fn first_ack_midstream() {
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(4);
    w.at(ms(80)).server().ack();
    w.at(ms(90)).client().data(100);
    w.at(ms(100)).server().data(50);
    w.at(ms(110)).client().ack();
    let c = analyze(&w.segments()[3..]).connections.remove(0);
    assert!(
        matches!(c.exchanges[0].spans[0].cause, Cause::Nagle | Cause::NagleDelayedAck),
        "{:?}",
        c.exchanges[0].spans[0]
    );
}
#[test]
fn rst_acks_the_request() {
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(100);
    w.at(ms(140)).server().rst();
    assert_eq!(w.connection().budget.get(Cause::KeepaliveOrDeadPeer), ms(0));
}
#[test]
fn split_bytes() {
    let mut w = opened(Tap::Client);
    for t in [30, 930, 2030] {
        w.at(ms(t)).client().data(100);
        w.at(ms(t + 10)).server().ack();
    }
    let c = w.connection();
    assert_eq!((c.exchanges[0].bytes[0], c.exchanges[1].bytes[0]), (200, 100));
}
#[test]
fn unanswered_probe_is_rto() {
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(100).lost();
    w.at(ms(250)).client().repeat(0, 100).lost();
    w.at(ms(690)).client().repeat(0, 100).lost();
    w.at(ms(1570)).client().repeat(0, 100);
    w.at(ms(1580)).server().data(50);
    w.at(ms(1590)).client().ack();
    assert_eq!(w.connection().budget.get(Cause::RetransmissionTimeout), ms(1540));
}
#[test]
fn black_hole_refuted() {
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(MSS).lost();
    w.client().data(100).lost();
    w.at(ms(250)).client().repeat(0, MSS).lost();
    w.at(ms(690)).client().repeat(0, MSS).lost();
    w.at(ms(1570)).client().repeat(0, MSS);
    w.at(ms(1580)).server().ack();
    w.at(ms(1590)).client().repeat(MSS, 100);
    w.at(ms(1600)).server().data(50);
    w.at(ms(1610)).client().ack();
    assert_eq!(w.connection().budget.get(Cause::PathMtu), ms(0));
}
#[test]
fn mutual_block() {
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
    assert_eq!(w.connection().budget.get(Cause::MutualBlock), ms(240));
}
#[test]
fn answer_into_a_window_that_stays_closed() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.host[CLIENT].window = 4096;
    w.handshake();
    w.at(ms(30)).client().data(100);
    w.at(ms(40)).server().data(MSS);
    w.server().data(MSS);
    w.server().data(1200);
    w.at(ms(50)).client().window(0).ack();
    w.at(ms(280)).server().probe();
    w.at(ms(290)).client().ack();
    w.at(ms(720)).server().probe();
    w.at(ms(730)).client().ack();
    let c = w.connection();
    assert_eq!(c.budget.get(Cause::SlowReader), ms(680), "{}", tell(&c, w.segments()[0].time));
}
#[test]
fn tail_probe_begins_when_the_ack_was_due() {
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().write(2 * MSS);
    w.client().data(100).lost();
    w.at(ms(40)).server().ack();
    w.at(ms(72)).client().repeat(2 * MSS, 100);
    w.at(ms(82)).server().data(50);
    w.at(ms(92)).client().ack();
    assert_eq!(w.connection().budget.get(Cause::TailLossProbe), ms(42));
}
#[test]
fn min_rto_is_a_timer() {
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(800).lost();
    w.client().data(100).lost();
    w.at(ms(250)).client().repeat(0, 800);
    w.at(ms(260)).server().ack();
    w.at(ms(270)).client().repeat(800, 100);
    w.at(ms(280)).server().data(50);
    w.at(ms(290)).client().ack();
    assert_eq!(w.connection().ends[CLIENT].min_rto, Some(ms(220)));
}
#[test]
fn plateau_gap() {
    let mut w = opened(Tap::Server);
    w.at(ms(30)).client().data(100);
    w.after(ms(10));
    for n in [10, 20, 20, 20, 20, 20, 20, 20] {
        w.server().write(n * MSS);
        w.after(ms(10)).client().ack();
        w.after(ms(10));
    }
    assert_eq!(w.connection().budget.get(Cause::SlowStart), ms(20));
}
#[test]
fn banner_before_the_final_ack_is_seen() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.client().syn();
    w.at(ms(10)).server().syn_ack();
    w.at(ms(20)).client().ack().unseen();
    w.at(ms(40)).server().data(80);
    w.at(ms(60)).client().ack();
    let c = w.connection();
    let parts = c
        .setup
        .iter()
        .map(|s| s.end - s.start)
        .chain(c.gaps.iter().map(|g| g.end - g.start))
        .chain(c.exchanges.iter().map(|e| e.end - e.start));
    assert_eq!(parts.fold(Nanos::ZERO, |a, b| a + b), c.end - c.start, "{}", tell(&c, w.segments()[0].time));
}
#[test]
fn syn_ack_first_then_banner() {
    for isn in [1000, 3_000_000_000u32] {
        let mut w = Wire::new(Tap::Client, ms(20));
        w.host[0].isn = Seq(isn);
        w.host[0].nxt = Seq(isn);
        w.handshake();
        w.at(ms(40)).server().data(80);
        w.at(ms(50)).client().ack();
        w.at(ms(60)).client().data(100);
        w.at(ms(70)).server().data(50);
        w.at(ms(80)).client().ack();
        let c = analyze(&w.segments()[1..]).connections.remove(0);
        assert!(!c.quality.has(Quality::CAPTURE_DROPS), "isn {isn}");
    }
}
#[test]
fn data_on_a_syn_then_a_banner() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.client().syn().segment.len = 100;
    w.host[CLIENT].nxt = w.host[CLIENT].isn + 101;
    w.at(ms(10)).server().syn_ack().unseen();
    w.at(ms(20)).client().ack().unseen();
    w.at(ms(40)).server().data(80);
    w.at(ms(50)).client().ack();
    let c = w.connection();
    let sum =
        c.setup.as_ref().map_or(0, |s| s.bytes[0]) + c.exchanges.iter().map(|e| e.bytes[0]).sum::<u64>();
    assert_eq!(sum, c.bytes[0]);
}
#[test]
fn holes_add_up() {
    let mut w = opened(Tap::Client);
    let _ = us(0);
    let _ = SERVER;
    w.at(ms(30)).server().data(1);
    for far in [2_147_483_000u32, 1_200_000_000] {
        let mut p = w.packets.last().unwrap().clone();
        p.segment.seq = p.segment.seq + far;
        p.segment.len = 700;
        w.packets.push(p);
    }
    w.at(ms(50)).client().ack();
    let mut s = w.segments();
    let n = s.len() - 1;
    s[n].ack = s[n].ack + 2_147_482_000;
    analyze(&s);
}
#[test]
fn late_packet_of_a_closed_connection_in_another_shard() {
    use tcpwhy_analysis::{Analyzer, Config, Detail};
    let talk = |port: u16, at: i64| {
        let mut w = opened(Tap::Client);
        w.host[0].end.port = port;
        let mut s = {
            let mut v = Wire::new(Tap::Client, ms(20));
            v.host[0].end.port = port;
            v.handshake();
            v.at(ms(30)).client().rst();
            v.at(ms(300_000)).server().ack();
            v.segments()
        };
        for x in &mut s {
            x.time += ms(at);
        }
        s
    };
    let mut all = talk(40_000, 0);
    all.extend(talk(40_001, -1_000));
    all.extend(talk(40_002, 10));
    all.sort_by_key(|s| s.time);
    for (i, s) in all.iter_mut().enumerate() {
        s.frame = i as u64 + 1;
    }
    let one = analyze(&all).connections.len();
    for n in 1..4 {
        let mut shards: Vec<Analyzer> =
            (0..n).map(|_| Analyzer::new(Config { detail: Detail::All })).collect();
        for s in &all {
            shards[Analyzer::share(s, n)].push(s);
        }
        assert_eq!(Analyzer::finish_all(shards).connections.len(), one, "{n} analyzers");
    }
}
#[test]
fn think_of_an_unfinished_exchange_has_no_path() {
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(100);
    w.at(ms(80)).server().ack();
    w.at(ms(140)).server().rst();
    assert_eq!(w.connection().budget.get(Cause::ServerThink), ms(100));
}

/// The client asks; the server answers in eight flights of so many segments, its client offering `window`.
fn plateau_without_its_handshake(segments: u32, window: u32) -> tcpwhy_analysis::Connection {
    let mut w = opened(Tap::Server);
    w.host[CLIENT].window = window;
    w.at(ms(30)).client().data(100);
    w.after(ms(10));
    for _ in 0..8 {
        w.server().write(segments * MSS);
        w.after(ms(10)).client().ack();
        w.after(ms(10));
    }
    *analyze(&w.segments()[3..]).connections.remove(0)
}

#[test]
fn a_plateau_that_may_be_a_window_of_unknown_scale() {
    // 50 << 7 is the flight of 5,792 bytes and a tenth more: scale 7 would make the window the limit, perhaps.
    let c = plateau_without_its_handshake(4, 50 << 7);
    assert!(c.budget.get(Cause::Unexplained) >= ms(120), "{:?}", c.budget);
    assert_eq!(c.budget.get(Cause::SendBuffer), Nanos::ZERO);
    assert_eq!(c.budget.get(Cause::ReceiveWindow), Nanos::ZERO);
    // No power of two brings 500 near it.
    let c = plateau_without_its_handshake(4, 500 << 7);
    assert!(c.budget.get(Cause::SendBuffer) >= ms(120), "{:?}", c.budget);
    // 500 << 7 is 44 segments and 288 bytes.
    let c = plateau_without_its_handshake(44, 500 << 7);
    assert!(c.budget.get(Cause::ReceiveWindow) >= ms(120), "{:?}", c.budget);
    assert!(c.exchanges[0].spans.iter().all(|s| s.cause != Cause::ReceiveWindow || s.confidence <= 0.7));
}

#[test]
fn resets_alone_are_one_connection() {
    let mut w = opened(Tap::Client);
    for i in 1..6 {
        w.at(Nanos::secs(300 * i)).client().rst();
    }
    assert_eq!(analyze(&w.segments()[3..]).connections.len(), 1);
}

#[test]
fn nobody_waits_for_the_close() {
    let mut w = opened(Tap::Client);
    w.at(ms(20)).client().data(100);
    w.at(ms(100)).server().data(100);
    w.at(ms(110)).client().ack();
    w.at(ms(9_000)).client().fin();
    w.at(ms(9_010)).server().fin();
    let analysis = analyze(&w.segments());
    let of = |cause| analysis.findings.iter().find(|f| f.cause == cause);
    let client = of(Cause::ClientThink).expect("the close is somebody's time");
    assert_eq!((client.waited(), client.occurrences), (Nanos::ZERO, 0));
    assert!(client.tail > Nanos::secs(8), "{}", client.tail);
    let server = of(Cause::ServerThink).expect("the server worked");
    assert!(server.share > 0.5, "{}", server.share);
    assert!(analysis.totals.measured < ms(200), "{}", analysis.totals.measured);
}

#[test]
fn a_stray_packet_before_the_syn() {
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(100);
    w.at(ms(60)).server().data(100);
    let mut segments = w.segments();
    // URG alone is nothing that TCP sends; the fuzzer did.
    let stray = Segment { flags: TcpFlags(TcpFlags::URG), time: segments[0].time - ms(5), ..segments[0] };
    segments.insert(0, stray);
    let c = analyze(&segments).connections.remove(0);
    let setup = c.setup.as_ref().expect("a handshake followed");
    assert_eq!((c.gaps[0].start, c.gaps[0].end), (c.start, setup.start));
    assert_eq!(setup.start - c.start, ms(5));
    let spans: Vec<_> = c.gaps[0].spans.iter().map(|s| (s.cause, s.duration())).collect();
    // A host of this language takes a nanosecond to react.
    assert_eq!(spans, [(Cause::ClientThink, ms(5) - Nanos(1)), (Cause::PathDelay, Nanos(1))]);
}

/// Its setup lay over the exchange before it.
#[test]
fn a_syn_ack_behind_data_opens_nothing() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.at(ms(0)).server().data(1000);
    w.at(ms(30)).server().syn_ack();
    w.at(ms(60)).server().data(1000);
    let c = w.connection();
    assert!(c.setup.is_none(), "{:?}", c.setup);
    assert_eq!(c.quality.names().next(), Some("midstream"));
}

/// Nobody takes it: it was counted, and lay in no exchange.
#[test]
fn data_on_a_syn_behind_the_end_of_the_handshake() {
    let w = opened(Tap::Client);
    let (mut first, mut late) = (w.segments(), w.packets[0].segment);
    assert!(late.flags.syn() && late.len == 0);
    // The capture begins behind the SYN, whose repeat carries data.
    first.remove(0);
    late.len = 100;
    late.time = first.last().unwrap().time + ms(1);
    late.frame = first.last().unwrap().frame + 1;
    first.push(late);
    let c = analyze(&first).connections.remove(0);
    assert_eq!(c.bytes, [0, 0], "{c:?}");
}

/// A timer writes as long after each ACK (rule 44): that is no round trip, and nothing was held.
#[test]
fn ticks_of_a_timer_are_no_round_trips() {
    for tap in [Tap::Client, Tap::Server] {
        let mut w = opened(tap);
        for tick in 1..14_i64 {
            let sent = w.at(ms(500 * tick)).server().data(7 + tick as u32 / 10);
            sent.segment.flags = TcpFlags(TcpFlags::ACK | TcpFlags::PSH);
            w.after(ms(10)).client().ack();
        }
        let c = analyze(&w.segments()[8..]).connections.remove(0);
        let held = [Cause::Nagle, Cause::NagleDelayedAck, Cause::CongestionWindow, Cause::SendBuffer];
        assert_eq!(held.map(|cause| c.budget.get(cause)), [ms(0); 4], "{tap:?} {:?}", c.budget);
    }
}
