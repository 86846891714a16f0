//! Connections that begin with a login: what of them a kept one spares (rule 166), and what is no series of requests (rule 165).

use crate::sums::together;
use crate::wire::{Tap, Wire, analyze, ms};
use tcpwhy_analysis::replay::predict;
use tcpwhy_analysis::{Analysis, Finding};
use tcpwhy_base::{Cause, FixId, Nanos, Program};

/// Four connections, one after the other, each with a handshake of 20 ms and requests of so many bytes, which take 30 ms each.
fn sessions(server: Option<Program>, sizes: impl Fn(usize) -> Vec<u32>) -> Analysis {
    let wire = |n: usize| {
        let mut w = Wire::new(Tap::Client, ms(20));
        w.handshake();
        for (k, size) in (0..).zip(sizes(n)) {
            w.at(ms(30 + 40 * k)).client().data(size);
            w.after(ms(20)).server().data(5);
            w.after(ms(1)).client().ack();
        }
        w
    };
    let mut segments = together(&[0, 1, 2, 3].map(wire), ms(1_000));
    segments.iter_mut().filter(|s| s.len == 5).for_each(|s| s.program = server);
    let mut analysis = analyze(&segments);
    predict(&mut analysis);
    analysis
}

fn finding(analysis: &Analysis, cause: Cause) -> Option<&Finding> {
    analysis.findings.iter().find(|f| f.cause == cause)
}

#[test]
fn a_login_is_spared_with_the_setup_of_its_connection() {
    let short = |server: Option<Program>, sizes: &dyn Fn(usize) -> Vec<u32>| {
        let analysis = sessions(server, sizes);
        finding(&analysis, Cause::ShortConnections).map(|f| (f.lost, f.confidence, f.why().to_string()))
    };
    let redis = Some(Program::Redis);
    let said = |all: i64, login: usize| {
        format!(
            "4 connections to 10.0.0.2:80 with one request each behind {login} that were as large on all of them, as those of a login are; with these their setups took {} together.",
            ms(all)
        )
    };
    // The handshake and two of three round trips, of all but the first; the last request may be another one each time.
    let of_three = Some((ms(240), 0.6, said(320, 2)));
    assert_eq!(short(redis, &|n| vec![22, 95, 27 + n as u32]), of_three);
    assert_eq!(short(Some(Program::MySql), &|_| vec![22, 95, 27]), of_three);
    assert_eq!(short(redis, &|_| (22..28).collect()), Some((ms(510), 0.6, said(680, 5))));
    // More than a login takes, the same request with other keys, other ones on each connection, and protocols without one.
    assert_eq!(short(redis, &|_| (22..29).collect()), None);
    assert_eq!(short(redis, &|_| vec![22, 27, 27]), None);
    assert_eq!(short(redis, &|n| vec![22, 95 + n as u32, 27]), None);
    assert_eq!([None, Some(Program::Nginx)].map(|p| short(p, &|_| vec![22, 95, 27])), [None, None]);
}

#[test]
fn what_each_request_needs_is_no_series() {
    let offered = |server: Option<Program>, sizes: &[u32]| {
        let analysis = sessions(server, |_| sizes.to_vec());
        let f = finding(&analysis, Cause::PathDelay).expect("the distance");
        assert!(f.lost > Nanos::ZERO);
        let vain =
            f.refuted.iter().any(|r| r.because.starts_with("no connection had two requests in series"));
        let offered = f.fixes.iter().any(|x| x.fix == FixId::FewerRoundTrips);
        assert_ne!(vain, offered, "{:?} {:?}", f.fixes, f.refuted);
        offered
    };
    let redis = Some(Program::Redis);
    assert_eq!([&[22][..], &[22, 95, 27]].map(|sizes| offered(redis, sizes)), [false, false]);
    assert_eq!([&[22, 27, 27][..], &[22, 23, 24, 25, 26, 27, 28]].map(|s| offered(redis, s)), [true, true]);
    assert_eq!([&[22][..], &[22, 95]].map(|sizes| offered(None, sizes)), [false, true]);
}
