//! A window is a zoom: everything is followed, and what lies within is accounted for.

use crate::wire::{Tap, Wire, ms};
use std::collections::BTreeMap;
use tcpwhy_analysis::{Analysis, Analyzer, Config, Connection, Detail, Window};
use tcpwhy_base::{Cause, Nanos, Segment};

fn looked_at(segments: &[Segment], window: Option<Window>) -> Analysis {
    let mut analyzer = Analyzer::new(Config { detail: Detail::All }).within(window);
    analyzer.push_all(segments);
    analyzer.finish()
}

/// Six requests, each held by Nagle, answered after some work; the server pauses in the middle of the answer.
fn talk() -> Vec<Segment> {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    for k in 0..6 {
        let at = 200 * k;
        w.at(ms(at + 30)).client().data(4);
        w.at(ms(at + 80)).server().ack();
        w.at(ms(at + 90)).client().data(100);
        w.at(ms(at + 130)).server().data(1448);
        w.at(ms(at + 140)).client().ack();
        w.at(ms(at + 160)).server().data(50);
        w.at(ms(at + 170)).client().ack();
    }
    w.segments()
}

fn sums(analysis: &Analysis) -> BTreeMap<(bool, Cause), i64> {
    let mut sums = BTreeMap::new();
    for c in &analysis.connections {
        for (gaps, budget) in [(false, &c.budget), (true, &c.gap_budget)] {
            for &(cause, time) in &budget.0 {
                *sums.entry((gaps, cause)).or_default() += time.0;
            }
        }
    }
    sums.retain(|_, time| *time > 0);
    sums
}

/// Setup, exchanges and gaps cover the connection, their spans cover them.
fn assert_tiled(c: &Connection) {
    let setup = c.setup.iter().map(|s| (s.start, s.end, &s.spans));
    let exchanges = c.exchanges.iter().map(|x| (x.start, x.end, &x.spans));
    let mut parts: Vec<_> =
        setup.chain(exchanges).chain(c.gaps.iter().map(|g| (g.start, g.end, &g.spans))).collect();
    parts.sort_by_key(|p| (p.0, p.1));
    let mut at = c.start;
    for (start, end, spans) in parts {
        assert_eq!(start, at);
        for span in spans {
            assert_eq!(span.start, at);
            at = span.end;
        }
        assert_eq!(at, end);
    }
    assert_eq!(at, c.end);
}

#[test]
fn windows_side_by_side_add_up_to_the_whole() {
    let segments = talk();
    let whole = looked_at(&segments, None);
    let c = &whole.connections[0];
    for n in [2, 3, 7, 40] {
        let cut = |i: i64| c.start + (c.end - c.start).times(i).part(n);
        let mut all = BTreeMap::new();
        for i in 0..n {
            let window = Window { from: cut(i), to: cut(i + 1) };
            let part = looked_at(&segments, Some(window));
            for c in &part.connections {
                assert_tiled(c);
                assert_eq!((c.start, c.end), (window.from, window.to));
            }
            let measured = part.connections.iter().fold(Nanos::ZERO, |sum, c| sum + c.measured());
            assert_eq!(part.totals.measured, measured);
            for (key, time) in sums(&part) {
                *all.entry(key).or_default() += time;
            }
        }
        assert_eq!(all, sums(&whole), "{n} windows");
    }
}

#[test]
fn a_window_keeps_numbers_and_what_was_known_before() {
    let segments = talk();
    let whole = looked_at(&segments, None);
    let start = whole.connections[0].start;
    let at = |t: i64| start + ms(t);
    let part = looked_at(&segments, Some(Window { from: at(500), to: at(900) }));
    let c = &part.connections[0];
    let seen: Vec<_> = c.exchanges.iter().map(|x| (x.id, x.start - start, x.end - start, x.cut)).collect();
    assert_eq!(
        seen,
        [(3, ms(500), ms(570), true), (4, ms(630), ms(770), false), (5, ms(830), ms(900), true)]
    );
    assert_eq!(c.path.rtt, whole.connections[0].path.rtt, "the handshake lies before the window");
    assert!(c.setup.is_none());
    assert_eq!(c.exchanges[1].spans.len(), whole.connections[0].exchanges[3].spans.len());
    // Of the third the request lies outside.
    assert_eq!((c.exchanges[0].request_end, c.exchanges[0].response_start), (None, Some(at(540))));
    let rtt = c.path.rtt.expect("the handshake");
    for x in &c.exchanges {
        let way =
            x.spans.iter().filter(|s| s.cause == Cause::PathDelay).fold(Nanos::ZERO, |t, s| t + s.duration());
        assert!(way <= rtt.times(i64::from(x.turns)), "{way} of {rtt}");
    }
}

#[test]
fn connections_outside_of_a_window_are_none_and_keep_their_places() {
    let mut segments = talk();
    let later = segments.iter().map(|s| {
        let mut s = *s;
        let port = if s.src.port == 80 { &mut s.dst.port } else { &mut s.src.port };
        *port += 1;
        (s.time, s.frame) = (s.time + Nanos::secs(5), s.frame + 100);
        s
    });
    let later: Vec<Segment> = later.collect();
    segments.extend(later);
    let start = segments[0].time;
    let part = looked_at(&segments, Some(Window { from: start + Nanos::secs(4), to: Nanos::MAX }));
    assert_eq!(part.connections.iter().map(|c| c.id).collect::<Vec<_>>(), [2]);
    assert_eq!((part.totals.connections, part.totals.exchanges), (1, 6));
    let none =
        looked_at(&segments, Some(Window { from: start + Nanos::secs(2), to: start + Nanos::secs(3) }));
    assert!(none.connections.is_empty() && none.findings.is_empty());
}

/// Who waits for connections that have closed gets them two seconds later, if that is asked for.
#[test]
fn a_closed_connection_leaves_after_the_time_that_is_asked_for() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    w.at(ms(30)).client().data(100);
    w.at(ms(60)).server().data(50);
    w.at(ms(70)).client().fin();
    w.at(ms(80)).server().fin();
    w.at(ms(90)).client().ack();
    let closed = w.segments();
    let last = closed[closed.len() - 1].time;
    let left = |linger: Option<Nanos>, later: Nanos| {
        let mut analyzer = Analyzer::streaming(Config { detail: Detail::All });
        if let Some(linger) = linger {
            analyzer = analyzer.lingering(linger);
        }
        analyzer.push_all(&closed);
        let mut other = closed[0];
        (other.src.port, other.time, other.frame) = (other.src.port + 1, last + later, 100);
        analyzer.push(&other);
        analyzer.ended().count()
    };
    let two = Some(Nanos::secs(2));
    assert_eq!((left(two, ms(2001)), left(two, ms(1999))), (1, 0));
    assert_eq!((left(None, ms(2001)), left(None, ms(240_001))), (0, 1));
}
