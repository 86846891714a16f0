//! What connections of one machine would cost at a distance.

use crate::sums::together;
use crate::wire::{CLIENT, SERVER, Tap, Wire, analyze, ms, us};
use std::fmt::Write as _;
use tcpwhy_analysis::{Analysis, Analyzer, Config, Detail, Elsewhere, Facts, distance};
use tcpwhy_base::{Cause, Nanos, Side, Tls};
use tcpwhy_model::Congestion;

/// Requests in series over loopback, 10 ms apart, with 1 ms of work each.
fn local(requests: i64) -> Wire {
    let mut w = Wire::new(Tap::Client, us(50));
    w.handshake();
    for k in 0..requests {
        w.at(ms(1 + 10 * k)).client().data(200);
        w.after(ms(1)).server().data(900);
        w.after(us(25)).client().ack();
    }
    w
}

/// Trips, costs at 20 and 100 ms, what grows most.
fn priced(analysis: &Analysis) -> String {
    let to = Elsewhere { rtts: &[ms(20), ms(100)], congestion: Congestion::Cubic };
    let Some(found) = distance(analysis, to) else { return "nothing".into() };
    let mut out = format!("trips {} to {}", found.trips.0, found.trips.1);
    for cost in &found.costs {
        let whole = |t: Nanos| t.0 as f64 / 1e6;
        let _ = write!(out, ", {}: {:.1} to {:.1}", cost.rtt, whole(cost.least), whole(cost.most));
    }
    if let Some(most) = &found.most {
        let what = if most.setups { "setups" } else { "exchanges" };
        let _ =
            write!(out, "; {} {what} with {} of {:.1} ms", most.count, most.server, most.each.0 as f64 / 1e6);
        let _ = write!(out, ", as in {}: {:?}", most.connection, most.bytes);
    }
    format!("{out}; replayed {:.2}", found.replayed)
}

/// The handshake and four requests: each of these had 50 µs of the 20 ms already.
#[test]
fn each_request_of_a_connection_costs_a_round_trip() {
    let expected = "trips 5 to 5, 20.0 ms: 99.8 to 99.8, 100 ms: 499.8 to 499.8; 4 exchanges with 10.0.0.2:80 of \
                    100.0 ms, as in 1: [200, 900]; replayed 1.00";
    assert_eq!(priced(&local(4).analysis()), expected);
}

/// Of those that are not kept in detail, too: each of the others stands for several.
#[test]
fn what_is_not_kept_in_detail_is_counted() {
    let mut analyzer = Analyzer::new(Config { detail: Detail::Worst(3) });
    analyzer.push_all(&local(8).segments());
    let analysis = analyzer.finish();
    assert_eq!(analysis.connections[0].exchanges.len(), 3);
    let expected = "trips 9 to 9, 20.0 ms: 179.6 to 179.6, 100 ms: 899.6 to 899.6; 8 exchanges with 10.0.0.2:80 of \
                    100.0 ms, as in 1: [200, 900]; replayed 1.00";
    assert_eq!(priced(&analysis), expected);
}

#[test]
fn connections_in_turns_add_up() {
    let expected = "trips 6 to 6, 20.0 ms: 119.8 to 119.8, 100 ms: 599.9 to 599.9; 3 setups with 10.0.0.2:80 of \
                    100.0 ms, as in 1: [0, 0]; replayed 1.00";
    assert_eq!(priced(&analyze(&together(&[local(1), local(1), local(1)], ms(100)))), expected);
}

/// The longer connection alone, or one request after the other, as they did not overlap while they were on
/// their way; where the exchanges do not overlap either, the second is the answer.
#[test]
fn connections_beside_each_other_have_two_bounds() {
    let expected = "trips 4 to 7, 20.0 ms: 79.8 to 139.8, 100 ms: 399.9 to 699.8; 5 exchanges with 10.0.0.2:80 of \
                    100.0 ms, as in 1: [200, 900]; replayed 1.00";
    assert_eq!(priced(&analyze(&together(&[local(3), local(2)], us(500)))), expected);
    let apart = priced(&analyze(&together(&[local(3), local(2)], us(1_500))));
    assert!(apart.starts_with("trips 7 to 7, 20.0 ms: 139.8 to 139.8, "), "{apart}");
}

#[test]
fn at_a_distance_already_nothing_is_said() {
    assert_eq!(priced(&Wire::new(Tap::Client, ms(20)).handshake().analysis()), "nothing");
}

/// A handshake of TLS 1.3 is one round trip more, a full one of TLS 1.2 two; the goodbye costs nothing.
#[test]
fn handshakes_of_tls_are_counted() {
    let trips = |flights: i64| {
        let mut w = Wire::new(Tap::Client, us(50));
        w.handshake();
        for k in 0..flights {
            w.at(ms(1 + 3 * k)).client().data(300).tls(Tls::HANDSHAKE);
            w.after(ms(2)).server().data(900).tls(Tls::HANDSHAKE | Tls::CHANGE_CIPHER);
        }
        // Finished, and not answered before the request.
        w.at(ms(20)).client().data(74).tls(Tls::CHANGE_CIPHER);
        w.client().data(100).tls(Tls::DATA);
        w.after(ms(2)).server().data(500).tls(Tls::DATA);
        w.after(us(25)).client().data(24).tls(Tls::DATA);
        w.client().fin();
        w.after(us(25)).server().fin();
        w.after(us(25)).client().ack();
        let to = Elsewhere { rtts: &[ms(20)], congestion: Congestion::Cubic };
        distance(&w.analysis(), to).expect("near").trips
    };
    assert_eq!((trips(1), trips(2)), ((3, 3), (4, 4)));
}

/// What loopback's windows held back is nothing that a path's kernel would: it sizes its buffers anew, unless
/// the application set one, which shows in the window scale or in a send buffer below what ten segments need.
#[test]
fn buffers_of_the_kernel_are_sized_anew() {
    let at = |wscale: u8| {
        let mut w = Wire::new(Tap::Client, us(50));
        w.host[CLIENT].wscale = Some(wscale);
        w.handshake();
        w.at(ms(1)).client().data(200);
        let mut t = ms(2);
        // Each time the window fills and an ACK opens it.
        for _ in 0..140 {
            for _ in 0..4 {
                w.at(t).server().data(16_000);
            }
            t += us(60);
            w.at(t).client().ack();
            t += us(60);
        }
        let to = Elsewhere { rtts: &[ms(20)], congestion: Congestion::Cubic };
        distance(&w.analysis(), to).expect("near").costs[0].most
    };
    // 9 MB in windows of 64 KB are 140 round trips of 20 ms. In flights that double from ten segments on they
    // are ten, and the exchange takes 17 ms itself.
    assert!((ms(200)..ms(217)).contains(&at(7)), "{}", at(7));
    assert!(at(3) > ms(2_800), "{}", at(3));
}

/// A send buffer that was set holds a path back as well; two waits for one in 200 KB are the hosts' own.
#[test]
fn a_send_buffer_goes_along_if_it_was_filled_again_and_again() {
    let at = |times: u32| {
        let mut w = Wire::new(Tap::Server, us(50));
        w.handshake();
        w.at(ms(1)).client().data(200);
        w.at(ms(2)).server().write(200_000);
        w.after(us(60)).client().ack();
        let mut analysis = w.analysis();
        let c = &mut analysis.connections[0];
        c.ends[SERVER].max_flight = 10_000;
        let span = c.exchanges[0].spans.last_mut().expect("a span");
        (span.cause, span.side, span.folded) = (Cause::SendBuffer, Some(Side::Server), times);
        span.facts = Facts::Flight { flight: 10_000, segments: 7, rtt: us(50), before: 0 };
        let to = Elsewhere { rtts: &[ms(20)], congestion: Congestion::Cubic };
        distance(&analysis, to).expect("near").costs[0].most
    };
    // Twenty round trips of 10,000 bytes, or four flights that double.
    assert!(at(10) > ms(350), "{}", at(10));
    assert!(at(9) < ms(150), "{}", at(9));
}

/// Of a slow answer a rate is told, and the four others were faster: a replay that takes longer than the
/// exchange did has no more to give back than that, so that each of them costs as much as at any rate.
#[test]
fn a_replay_that_takes_longer_than_it_took() {
    let mut w = Wire::new(Tap::Client, us(8));
    w.handshake();
    w.at(ms(1)).client().data(30);
    for _ in 0..140 {
        w.after(us(36)).server().data(1448);
    }
    w.after(us(8)).client().ack();
    for k in 0..4 {
        w.at(ms(100 + 10 * k)).client().data(700);
        w.after(us(30)).server().data(50_000);
        w.after(us(8)).client().ack();
    }
    let analysis = w.analysis();
    assert!(analysis.connections[0].path.bandwidth_bps.is_some_and(|b| b < 400_000_000));
    let said = priced(&analysis);
    assert!(said.starts_with("trips 6 to 6, 20.0 ms: 175.3 to 175.3, 100 ms: 895.4 to 895.4; "), "{said}");
}
