//! Sequence numbers, sizes and windows as the packets show them: probes, full segments, duplicates, long exchanges.

use crate::wire::{CLIENT, SERVER, Tap, Wire, analyze, ms, us};
use tcpwhy_analysis::{Analyzer, Config, Detail, Quality};
use tcpwhy_base::{Cause, Nanos, Segment, TcpFlags};

const MSS: u32 = 1448;

fn opened(tap: Tap) -> Wire {
    let mut w = Wire::new(tap, ms(20));
    w.handshake();
    w
}

/// What a repeat is called after these packets of the server, which come while the client's segment is lost.
fn repeated_after(said: &dyn Fn(&mut Wire)) -> Option<Cause> {
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(100);
    w.at(ms(40)).server().data(50);
    w.at(ms(50)).client().ack();
    w.at(ms(60)).client().data(MSS).lost();
    w.client().data(100).lost();
    w.at(ms(75));
    said(&mut w);
    w.at(ms(160)).client().repeat(100, MSS);
    w.at(ms(170)).server().ack();
    w.at(ms(180)).client().repeat(100 + MSS, 100);
    w.at(ms(190)).server().data(50);
    let budget = w.connection().budget;
    let known = [Cause::RetransmissionTimeout, Cause::FastRecovery];
    known.into_iter().find(|&c| budget.get(c) > Nanos::ZERO)
}

/// Only an ACK without data, for what was acknowledged before, with the same window, tells of a later arrival
/// (RFC 5681, 2).
#[test]
fn what_a_duplicate_ack_is() {
    let timer = Some(Cause::RetransmissionTimeout);
    assert_eq!(repeated_after(&|_| ()), timer);
    assert_eq!(repeated_after(&|w| _ = w.server().ack()), Some(Cause::FastRecovery));
    assert_eq!(repeated_after(&|w| _ = w.server().window(32_000).ack()), timer);
    // One that was overtaken acknowledges less.
    let older = |w: &mut Wire| {
        let old = w.host[SERVER].end;
        let packet = w.server().ack();
        assert_eq!(packet.segment.src, old);
        packet.segment.ack = packet.segment.ack - 50;
    };
    assert_eq!(repeated_after(&older), timer);
}

/// Keep-alives of one byte that was acknowledged, and probes of a closed window with one byte that is new
/// (BSD, Windows).
#[test]
fn probes_of_one_byte() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.host[SERVER].window = 3 * MSS;
    w.host[SERVER].wscale = Some(0);
    w.handshake();
    w.at(ms(30)).client().write(3 * MSS);
    w.at(ms(40)).server().window(0).ack();
    w.at(ms(270)).client().data(1).lost();
    w.at(ms(280)).server().ack();
    w.at(ms(500)).server().window(3 * MSS).ack();
    w.host[CLIENT].nxt = w.host[CLIENT].nxt - 1;
    w.at(ms(510)).client().write(MSS);
    w.at(ms(520)).server().data(50);
    w.at(ms(530)).client().ack();
    let c = w.connection();
    assert_eq!((c.ends[CLIENT].probes, c.ends[CLIENT].keepalives, c.retransmitted), (1, 0, [0, 0]));
    assert_eq!((c.bytes, c.budget.get(Cause::SlowReader)), ([u64::from(4 * MSS), 50], ms(480)));
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(100);
    w.at(ms(40)).server().data(50);
    w.at(ms(50)).client().ack();
    w.at(ms(5_000)).client().repeat(99, 1);
    w.at(ms(5_010)).server().ack();
    let c = w.connection();
    assert_eq!((c.ends[CLIENT].probes, c.ends[CLIENT].keepalives), (0, 1));
    assert_eq!((c.retransmitted, c.bytes, c.exchanges.len()), ([0, 0], [100, 50], 1));
}

/// A path that carries less than the options say: two equal segments within a write are full ones. Behind
/// them a tail is no second partial segment, so that nothing is said of Nagle.
#[test]
fn full_segments_are_learnt_from_their_size() {
    let shown = |pushed: bool, handshake: bool| {
        let mut w = opened(Tap::Client);
        w.at(ms(30)).client().data(100);
        w.at(ms(40));
        for _ in 0..6 {
            let full = w.server().data(1_300);
            full.segment.flags = TcpFlags(TcpFlags::ACK | if pushed { TcpFlags::PSH } else { 0 });
        }
        w.server().data(200);
        w.at(ms(50)).client().ack();
        let skip = if handshake { 0 } else { 3 };
        analyze(&w.segments()[skip..]).connections.remove(0).ends[SERVER].nodelay_shown
    };
    // The second of two equal ones teaches; the first pair counted as partial segments before.
    assert_eq!((shown(false, true), shown(true, true)), (0, 6));
    assert_eq!(shown(false, false), 0);
}

/// A client that sends data with its SYN, which the server takes, or does not.
#[test]
fn data_on_the_syn() {
    for taken in [true, false] {
        let mut w = Wire::new(Tap::Client, ms(20));
        w.client().syn().segment.len = 100;
        w.host[CLIENT].nxt = w.host[CLIENT].isn + 101;
        let syn_ack = w.at(ms(10)).server().syn_ack();
        syn_ack.segment.ack = syn_ack.segment.ack - if taken { 0 } else { 100 };
        w.at(ms(20));
        if taken {
            w.client().ack();
        } else {
            w.host[CLIENT].nxt = w.host[CLIENT].isn + 1;
            w.client().data(100);
        }
        w.at(ms(60)).server().data(50).segment.options.sack_len = 0;
        w.at(ms(70)).client().ack();
        let c = w.connection();
        let setup = c.setup.as_ref().map(|s| (s.bytes, s.end - s.start));
        assert_eq!((setup, c.exchanges[0].bytes), (Some(([0, 0], ms(20))), [100, 50]), "{taken}");
        assert_eq!((c.bytes, c.retransmitted), ([100, 50], [0, 0]), "{taken}");
    }
}

/// The two directions of a connection under different VLAN tags.
#[test]
fn directions_with_tags_of_their_own_are_one_connection() {
    let connections = |links: [u32; 2], change: &dyn Fn(&mut Segment)| {
        let mut w = opened(Tap::Client);
        w.at(ms(30)).client().data(100);
        w.at(ms(40)).server().data(50);
        w.at(ms(50)).client().ack();
        let mut segments = w.segments();
        for s in &mut segments {
            s.link = links[usize::from(s.src != w.host[CLIENT].end)];
        }
        let first_answer = segments.iter_mut().find(|s| s.src == w.host[SERVER].end).unwrap();
        change(first_answer);
        analyze(&segments).connections.len()
    };
    assert_eq!(connections([7, 7], &|_| ()), 1);
    assert_eq!(connections([7, 8], &|_| ()), 1);
    assert_eq!(connections([0, 8], &|_| ()), 1);
    assert_eq!(connections([7, 0], &|_| ()), 1);
    // An answer that acknowledges something else is of another connection.
    assert_eq!(connections([7, 8], &|s| s.ack = s.ack + 5), 2);
}

/// One segment at a time, each of which waits for a late ACK, many times: spans are folded, their sums are not.
#[test]
fn long_exchanges_are_folded_and_their_sums_are_exact() {
    for (rounds, spans) in [(395, 395), (410, 52), (2_500, 316)] {
        let mut w = opened(Tap::Client);
        for k in 0..=rounds {
            w.at(ms(30 + 60 * k)).client().data(MSS);
            w.at(ms(80 + 60 * k)).server().ack();
        }
        let c = w.connection();
        let [x] = &c.exchanges[..] else { panic!("{} exchanges", c.exchanges.len()) };
        assert_eq!((x.bytes[0], x.spans[0].cause), (u64::from(MSS) * (rounds as u64 + 1), Cause::DelayedAck));
        let held: Vec<_> = x.spans.iter().filter(|s| s.cause == Cause::DelayedAck).collect();
        assert_eq!(held.len(), spans, "{rounds}");
        assert_eq!(held.iter().fold(Nanos::ZERO, |t, s| t + s.duration()), ms(60 * rounds));
        assert_eq!(held.iter().map(|s| i64::from(s.folded)).sum::<i64>(), rounds);
        assert!(held.iter().all(|s| (s.detail == Some("repeated")) == (s.folded > 1)), "{held:?}");
        let f = c.findings.iter().find(|f| f.cause == Cause::DelayedAck).expect("the finding");
        assert_eq!((f.lost, f.occurrences), (ms(60 * rounds), rounds as u64));
        // Spans are in order and cover the exchange.
        let mut at = x.start;
        for s in &x.spans {
            assert_eq!(s.start, at);
            at = s.end;
        }
        assert_eq!(at, x.end);
    }
}

/// The longest are kept of all connections, or of each where they leave as they end.
#[test]
fn the_longest_exchanges_are_kept() {
    let mut segments = Vec::new();
    for (n, works) in [[1, 50, 3, 40], [60, 2, 2, 2]].into_iter().enumerate() {
        let mut w = Wire::new(Tap::Client, ms(20));
        w.host[CLIENT].end.port += n as u16;
        w.handshake();
        for work in works {
            w.after(ms(10)).client().data(100);
            w.after(ms(10 + work)).server().data(50);
            w.after(ms(10)).client().ack();
        }
        segments.extend(w.segments().into_iter().map(|s| Segment { time: s.time + us(n as i64), ..s }));
    }
    segments.sort_by_key(|s| s.time);
    let kept = |detail: Detail| {
        let mut a = Analyzer::new(Config { detail });
        a.push_all(&segments);
        let analysis = a.finish();
        let of = analysis.connections.iter().map(|c| {
            let ids: Vec<u32> = c.exchanges.iter().map(|x| x.id).collect();
            (ids, c.exchanges_omitted.count, c.gaps.len() as u64 + c.gaps_omitted.count)
        });
        of.collect::<Vec<_>>()
    };
    assert_eq!(kept(Detail::Worst(3)), [(vec![2, 4], 2, 4), (vec![1], 3, 4)]);
    assert_eq!(kept(Detail::None), [(vec![], 4, 4), (vec![], 4, 4)]);
    let mut a = Analyzer::streaming(Config { detail: Detail::Worst(1) });
    a.push_all(&segments);
    a.end_all();
    let ids: Vec<(u32, Vec<u32>)> =
        a.ended().map(|c| (c.id, c.exchanges.iter().map(|x| x.id).collect())).collect();
    assert_eq!(ids, [(1, vec![2]), (2, vec![1])]);
}

/// Near the server the next request may pass before the ACK of the answer: it is the next exchange, if no
/// more than the answer's last segment can be unread. Whoever has seen nothing of the answer has not read it:
/// the turns overlap (rule 8).
#[test]
fn the_next_request_passes_while_the_answer_is_on_its_way() {
    let exchanges = |before: Nanos, answer: u32| {
        let mut w = opened(Tap::Server);
        w.at(ms(30)).client().data(100);
        w.at(ms(40)).server().write(answer);
        // The client has not got it when it asks again.
        w.at(ms(40) + ms(10) - before).client().data(100);
        w.after(ms(10)).server().data(50);
        w.after(ms(10)).client().ack();
        let c = w.connection();
        (c.exchanges.len(), c.exchanges[0].duplex)
    };
    assert_eq!(exchanges(ms(1), 500), (1, true));
    assert_eq!(exchanges(ms(1), MSS + 500), (1, true));
    assert_eq!(exchanges(ms(-1), 500), (2, false));
    assert_eq!(exchanges(ms(-1), MSS + 500), (2, false));
}

/// A DSACK names what had arrived twice (RFC 2883): the repeat was not needed.
#[test]
fn a_duplicate_that_is_reported_was_not_needed() {
    let needless = |reported: bool| {
        let mut w = opened(Tap::Client);
        w.at(ms(30)).client().write(3 * MSS);
        w.at(ms(250)).client().repeat(0, MSS);
        w.at(ms(262)).server().ack().segment.options.sack_len = u8::from(reported);
        w.at(ms(272)).client().write(2 * MSS);
        w.at(ms(282)).server().data(50).segment.options.sack_len = 0;
        let budget = w.connection().budget;
        [Cause::SpuriousRecovery, Cause::RetransmissionTimeout].map(|c| budget.get(c) > Nanos::ZERO)
    };
    assert_eq!(needless(true), [true, false]);
}

/// A write of one byte is data like any other; so is what is sent into a window that is shut, if it is more
/// than one byte.
#[test]
fn one_byte_is_data_where_the_window_is_open() {
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(1);
    w.at(ms(40)).server().data(1);
    w.at(ms(50)).client().ack();
    let c = w.connection();
    assert_eq!((c.bytes, c.exchanges.len(), c.ends[CLIENT].probes), ([1, 1], 1, 0));
    let mut w = Wire::new(Tap::Client, ms(20));
    w.host[SERVER].window = 3 * MSS;
    w.host[SERVER].wscale = Some(0);
    w.handshake();
    w.at(ms(30)).client().write(3 * MSS);
    w.at(ms(40)).server().window(0).ack();
    w.at(ms(270)).client().data(500);
    w.at(ms(280)).server().window(3 * MSS).data(50);
    let c = w.connection();
    assert_eq!((c.bytes, c.ends[CLIENT].probes), ([u64::from(3 * MSS) + 500, 50], 0));
}

/// A repeat that goes on with new bytes: one packet that was sent again, and what is new in it counts.
#[test]
fn a_repeat_that_goes_on_with_new_bytes() {
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(100).lost();
    w.at(ms(250)).client().repeat(0, 300);
    w.at(ms(260)).server().data(50);
    w.at(ms(270)).client().ack();
    let c = w.connection();
    assert_eq!((c.retransmitted, c.bytes), ([1, 0], [300, 50]));
    assert_eq!(c.budget.get(Cause::SenderPause), Nanos::ZERO, "{:?}", c.budget);
    // Of what was acknowledged before, what is new in it is what counts.
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(100);
    w.at(ms(40)).server().ack();
    w.at(ms(250)).client().repeat(0, 300);
    w.at(ms(260)).server().data(50).segment.options.sack_len = 0;
    let c = w.connection();
    assert_eq!((c.retransmitted, c.bytes, c.budget.get(Cause::SenderPause)), ([1, 0], [300, 50], ms(220)));
}

/// Bytes that were acknowledged and never seen: the capture lost them, be it at its end; one byte may be a FIN.
#[test]
fn bytes_acknowledged_at_the_end_that_were_never_seen() {
    let lost = |last: &dyn Fn(&mut Wire)| {
        let mut w = opened(Tap::Client);
        w.at(ms(30)).client().data(100);
        w.at(ms(40)).server().data(50);
        w.at(ms(50));
        last(&mut w);
        w.at(ms(60)).server().ack();
        w.connection().quality.has(Quality::CAPTURE_DROPS)
    };
    assert!(lost(&|w| _ = w.client().data(100).unseen()));
    assert!(lost(&|w| _ = w.client().data(2).unseen()));
    assert!(!lost(&|w| _ = w.client().fin().unseen()));
    assert!(!lost(&|_| ()));
}

/// The ACK for the original ended the recovery, and only then a DSACK tells that the repeat arrived as well.
#[test]
fn a_duplicate_that_is_reported_after_the_recovery() {
    let needless = |reported: bool| {
        let mut w = opened(Tap::Client);
        w.at(ms(30)).client().data(MSS);
        w.at(ms(250)).client().repeat(0, MSS);
        w.at(ms(258)).server().ack();
        let late = w.at(ms(260)).server().ack();
        assert_eq!(late.segment.options.sack_len, 1);
        if !reported {
            late.segment.options.sack_len = 0;
        }
        w.at(ms(272)).client().data(MSS);
        w.at(ms(282)).server().data(50);
        let budget = w.connection().budget;
        [Cause::SpuriousRecovery, Cause::TailLossProbe].map(|c| budget.get(c) > Nanos::ZERO)
    };
    assert_eq!((needless(true), needless(false)), ([true, false], [false, true]));
}
