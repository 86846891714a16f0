//! What limits a flow that has more to send: windows, buffers, the link.

use crate::wire::{CLIENT, SERVER, Tap, Wire, analyze, ms, us};
use tcpwhy_analysis::Quality;
use tcpwhy_base::{Cause, Nanos};

const MSS: u32 = 1448;

fn opened(tap: Tap) -> Wire {
    let mut w = Wire::new(tap, ms(20));
    w.handshake();
    w
}

/// The client asks at 30 ms; the server sends a flight of each of these sizes (segments), every one as soon as the
/// one before is acknowledged.
pub(crate) fn response_in_flights(w: &mut Wire, from: Nanos, flights: &[u32]) -> Nanos {
    w.at(from).client().data(100);
    w.after(ms(10));
    for &n in flights {
        w.server().write(n * MSS);
        w.after(ms(10)).client().ack();
        w.after(ms(10));
    }
    w.now - ms(10)
}

#[test]
fn flights_of_10_20_and_40_segments_at_the_client() {
    let mut w = opened(Tap::Client);
    response_in_flights(&mut w, ms(30), &[10, 20, 40]);
    w.tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..90 100>101360
           path_delay network 30..50 #4-5
           slow_start server 50..70 #14-35
           slow_start server 70..90 #35-76",
    );
}

#[test]
fn flights_of_10_20_and_40_segments_at_the_server() {
    let mut w = opened(Tap::Server);
    response_in_flights(&mut w, ms(30), &[10, 20, 40]);
    w.tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..70 100>101360
           slow_start server 30..50 #14-35
           slow_start server 50..70 #35-76
         gap 70..90
           client_think client 70..90 #76-77",
    );
}

#[test]
fn after_an_idle_time_the_window_starts_over() {
    let mut w = opened(Tap::Server);
    let end = response_in_flights(&mut w, ms(30), &[10, 20]);
    // More than RTO = 220 ms after its last data the server may send 10 segments only.
    response_in_flights(&mut w, end + ms(500), &[10, 20]);
    let c = w.connection();
    let cause = |e: usize, n: usize| {
        let s = &c.exchanges[e].spans[n];
        (s.cause, s.duration())
    };
    assert_eq!(cause(0, 0), (Cause::SlowStart, ms(20)));
    assert_eq!(cause(1, 0), (Cause::IdleRestart, ms(20)));
    assert_eq!(c.budget.get(Cause::SlowStart), ms(20));
    assert_eq!(c.budget.get(Cause::IdleRestart), ms(20));
}

#[test]
fn back_to_back_there_is_no_idle_restart() {
    let mut w = opened(Tap::Server);
    let end = response_in_flights(&mut w, ms(30), &[10, 20]);
    response_in_flights(&mut w, end + ms(50), &[30]);
    let c = w.connection();
    assert_eq!(c.budget.get(Cause::IdleRestart), Nanos::ZERO);
    assert_eq!(c.exchanges[1].spans.len(), 0, "one burst");
}

#[test]
fn a_small_flight_that_never_grows_is_the_send_buffer() {
    let mut w = opened(Tap::Server);
    response_in_flights(&mut w, ms(30), &[5; 8]);
    let c = w.connection();
    assert_eq!(c.budget.0, [(Cause::Handshake, ms(20)), (Cause::SendBuffer, ms(140))]);
    let span = &c.exchanges[0].spans[0];
    assert_eq!((span.frames.first(), span.frames.last()), (9, 15));
}

#[test]
fn a_plateau_after_growth_is_the_send_buffer() {
    let mut w = opened(Tap::Server);
    response_in_flights(&mut w, ms(30), &[10, 20, 20, 20, 20, 20, 20, 20]);
    let c = w.connection();
    // 10 segments were the initial window; 20 segments that did not become 40 were not the window's doing.
    let (growing, plateau) = (c.budget.get(Cause::SlowStart), c.budget.get(Cause::SendBuffer));
    assert!(growing >= ms(20) && plateau >= ms(100) && growing + plateau == ms(140), "{:?}", c.budget);
}

#[test]
fn the_receivers_window_is_the_limit() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.host[SERVER].window = 3 * MSS;
    w.host[SERVER].wscale = Some(0);
    w.handshake();
    w.at(ms(30)).client().write(3 * MSS);
    w.at(ms(40)).server().ack();
    w.at(ms(50)).client().write(3 * MSS);
    w.at(ms(60)).server().ack();
    w.at(ms(70)).client().write(3 * MSS);
    w.at(ms(80)).server().data(50);
    w.at(ms(90)).client().ack();
    w.tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..90 13032>50
           receive_window server 30..50 #6-10
           receive_window server 50..70 #10-14
           path_delay network 70..90 #14-15",
    );
}

/// The server stops reading: its window closes, the client probes, 450 ms later the window opens.
fn slow_reader(tap: Tap) -> Wire {
    let mut w = Wire::new(tap, ms(20));
    w.host[SERVER].window = 3 * MSS;
    w.host[SERVER].wscale = Some(0);
    w.handshake();
    w.at(ms(30)).client().write(3 * MSS);
    w.at(ms(40)).server().window(0).ack();
    w.at(ms(270)).client().probe();
    w.at(ms(280)).server().ack();
    w.at(ms(500)).server().window(3 * MSS).ack();
    w.at(ms(510)).client().write(MSS);
    w.at(ms(520)).server().data(50);
    w.at(ms(530)).client().ack();
    w
}

#[test]
fn a_reader_that_stops_closes_the_window() {
    let c = slow_reader(Tap::Client).tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..530 5792>50
           slow_reader server 30..510 #6-11
           path_delay network 510..530 #11-12",
    );
    assert_eq!((c.ends[CLIENT].probes, c.ends[CLIENT].keepalives), (1, 0));
    assert_eq!(c.ends[SERVER].zero_windows, 2);
}

#[test]
fn a_reader_that_stops_seen_at_its_own_end() {
    slow_reader(Tap::Server).tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..510 5792>50
           slow_reader server 30..510 #6-11
         gap 510..530
           client_think client 510..530 #12-13",
    );
}

/// The same without the handshake: by how much the window shrinks tells its scale, and what is left of it is
/// less than a segment.
#[test]
fn a_reader_that_stops_in_the_middle_of_a_connection() {
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(100);
    w.at(ms(40)).server().data(100);
    w.at(ms(50)).client().ack();
    let pairs = 22;
    for k in 0..pairs {
        w.at(ms(60 + k)).client().write(2 * MSS);
    }
    for k in 0..pairs {
        let left = 64_000 - 2 * MSS * (k as u32 + 1);
        w.at(ms(70 + k)).server().window(left).ack();
    }
    assert!(w.host[SERVER].window < MSS);
    w.at(ms(600)).server().window(64_000).ack();
    w.at(ms(610)).client().write(4 * MSS);
    w.at(ms(620)).server().data(50);
    let segments = w.segments();
    let [whole, cut] = [&segments[..], &segments[3..]].map(|s| analyze(s).connections.remove(0));
    assert!(cut.quality.has(Quality::SCALE_INFERRED) && !cut.quality.has(Quality::NO_WINDOW_SCALE));
    assert_eq!((cut.ends[SERVER].wscale, cut.ends[CLIENT].wscale), (Some(7), None));
    let reader = whole.budget.get(Cause::SlowReader);
    assert!(reader >= ms(500), "{:?}", whole.budget);
    assert_eq!(cut.budget.get(Cause::SlowReader), reader, "{:?}", cut.budget);
}

/// A window of nothing is closed whatever its scale.
#[test]
fn a_closed_window_needs_no_scale() {
    let segments = slow_reader(Tap::Client).segments();
    let c = analyze(&segments[3..]).connections.remove(0);
    assert_eq!(c.ends[SERVER].wscale, None);
    assert!(c.budget.get(Cause::SlowReader) >= ms(460), "{:?}", c.budget);
}

#[test]
fn a_window_that_stays_closed() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.host[SERVER].window = 3 * MSS;
    w.host[SERVER].wscale = Some(0);
    w.handshake();
    w.at(ms(30)).client().write(3 * MSS);
    w.at(ms(40)).server().window(0).ack();
    w.at(ms(270)).client().probe();
    w.at(ms(280)).server().ack();
    w.at(ms(710)).client().probe();
    w.at(ms(720)).server().ack();
    w.tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..730 4344>0 capture_end
           slow_reader server 30..730 #6-11",
    );
}

#[test]
fn a_window_smaller_than_a_segment_is_used_by_the_timer() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.host[SERVER].window = 3 * MSS;
    w.host[SERVER].wscale = Some(0);
    w.handshake();
    w.at(ms(30)).client().write(3 * MSS);
    w.at(ms(40)).server().window(500).ack();
    w.at(ms(270)).client().data(500);
    w.at(ms(280)).server().data(50);
    w.at(ms(290)).client().ack();
    w.tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..290 4844>50
           silly_window server 30..270 #6-8
           path_delay network 270..290 #8-9",
    );
}

#[test]
fn the_bottleneck_spaces_the_arrivals() {
    // One segment per millisecond passes; each is acknowledged at once and lets two more go.
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(100);
    for i in 0..10 {
        w.at(ms(40)).server().data(MSS).late(ms(i));
    }
    for n in 0..80 {
        let acked = n / 2 + if n < 20 { 50 } else { 60 };
        w.at(ms(acked + 10)).server().data(MSS).late(ms(70 + n - acked - 20));
    }
    for t in (0..10).map(|i| 50 + i).chain((0..80).map(|i| 70 + i)) {
        w.at(ms(t)).client().ack();
    }
    let c = w.connection();
    let bps = c.path.bandwidth_bps.unwrap() as f64;
    assert!((bps / (f64::from(MSS) * 8e3) - 1.0).abs() < 0.1, "{bps}");
    let about = |cause, expected: Nanos| {
        let found = c.budget.get(cause);
        assert!((found - expected).0.abs() < ms(6).0, "{cause:?} {found}");
    };
    assert_eq!(c.budget.get(Cause::PathDelay), ms(20));
    about(Cause::SlowStart, ms(10));
    about(Cause::Bandwidth, ms(89));
    assert_eq!(c.budget.total(), ms(20) + ms(149 - 30));
}

#[test]
fn full_segments_evenly_spaced_whatever_the_acks_do() {
    let mut w = opened(Tap::Server);
    w.at(ms(30)).client().data(100);
    for i in 0..24 {
        w.at(ms(40) + us(3_600 * i)).server().data(MSS);
        if i % 2 == 1 {
            w.after(ms(10)).client().ack();
        }
    }
    let c = w.connection();
    assert_eq!(c.budget.0, [(Cause::Handshake, ms(20)), (Cause::Pacing, us(3_600 * 23))]);
}

#[test]
fn a_client_that_stops_reading_an_answer() {
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
    w.at(ms(540)).client().window(4096).ack();
    w.at(ms(550)).server().data(MSS);
    w.at(ms(560)).client().ack();
    w.tells(
        "setup 0..20
           handshake network 0..20 #1-3
         gap 20..30
           client_think client 20..30 #3-4
         exchange 30..560 100>5544
           path_delay network 30..50 #4-5
           slow_reader client 50..560 #7-12",
    );
}

/// The server sends 12 kB and stops until the client, which has all of it, sends a few bytes.
fn refills(head: &[u8]) -> Wire {
    let mut w = opened(Tap::Client);
    w.at(ms(30)).client().data(40).says(head);
    for _ in 0..5 {
        w.after(ms(10)).server().write(8 * MSS + 500);
        w.after(ms(10)).client().data(26).says(&[0, 0, 4, 8, 0, 0, 0, 0]);
    }
    w.after(ms(10)).server().data(100);
    w.after(ms(10)).client().ack();
    w
}

#[test]
fn a_window_of_http_2_is_refilled_again_and_again() {
    let c = refills(b"PRI * HT").connection();
    assert_eq!(c.protocol, Some("http/2"));
    // From the third time on it is no chance.
    assert_eq!(c.budget.get(Cause::ApplicationWindow), ms(60), "{:?}", c.budget);
    let c = refills(b"PUT /a H").connection();
    assert_eq!(c.budget.get(Cause::ApplicationWindow), Nanos::ZERO);
}

/// The handshake's answer took 300 µs, as the host had to wake up; later ones take 10. Each window was opened
/// by the ACK just before.
#[test]
fn a_sender_that_became_faster_is_still_released_by_acks() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.host[SERVER].window = 8 * MSS;
    w.host[SERVER].wscale = Some(0);
    w.client().syn();
    w.at(ms(10)).server().syn_ack();
    w.at(ms(20) + us(300)).client().ack();
    for k in 0..12 {
        let t = ms(30) + (ms(20) + us(10)).times(k);
        w.at(t).client().write(8 * MSS);
        w.at(t + ms(10)).server().ack();
    }
    let c = w.connection();
    let (window, pause) = (c.budget.get(Cause::ReceiveWindow), c.budget.get(Cause::SenderPause));
    assert!(window >= ms(200) && pause == Nanos::ZERO, "{:?}", c.budget);
}

/// 10 Mbit/s with a round trip of 1 ms: segments come further apart than the path is long, and a queue makes
/// the trip what it is. The link is the limit, at both taps.
#[test]
fn a_slow_link_on_a_short_path() {
    for tap in [Tap::Server, Tap::Client] {
        let mut w = Wire::new(tap, ms(1));
        w.handshake();
        w.at(ms(3)).client().data(100);
        // When the link has sent everything; one segment takes 1.2 ms.
        let mut free = ms(5);
        let mut send = |w: &mut Wire, t: Nanos| {
            free = free.max(t) + us(1200);
            let packet = w.at(t).server().data(MSS);
            if tap == Tap::Client {
                packet.late(free - t);
            } else {
                w.overtaken(0, free - t);
            }
            free
        };
        let mut arrivals: std::collections::VecDeque<Nanos> = (0..10).map(|_| send(&mut w, ms(4))).collect();
        for sent in 0..200 {
            let Some(at) = arrivals.pop_front() else { break };
            w.at(at + us(510)).client().ack();
            if sent < 150 {
                arrivals.push_back(send(&mut w, at + us(1020)));
            }
        }
        let c = w.connection();
        let link = c.budget.get(Cause::Bandwidth);
        assert!(
            link.times(10) > (c.exchanges[0].end - c.exchanges[0].start).times(9),
            "{tap:?} {:?}",
            c.budget
        );
    }
}

/// The window of 12 segments is always full, and moves with each ACK; `largest` is the most that was
/// offered before.
fn full_window(largest: u32) -> Wire {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.host[SERVER].wscale = Some(0);
    w.host[SERVER].window = largest * MSS;
    w.handshake();
    w.at(ms(30)).client().write(12 * MSS);
    for k in 0..8 {
        w.at(ms(40 + 20 * k)).server().window(12 * MSS).ack();
        w.at(ms(50 + 20 * k)).client().write(12 * MSS);
    }
    w.at(ms(300)).server().data(50);
    w
}

/// Windows are of what is free in the buffer: where more than half of it stays full, a larger one would fill
/// up as well.
#[test]
fn a_window_that_is_mostly_unread_data_is_the_readers() {
    let [reader, window] = [30, 12].map(|largest| {
        let c = full_window(largest).connection();
        (c.budget.get(Cause::SlowReader), c.budget.get(Cause::ReceiveWindow))
    });
    // The first round trip was within a window that was still wide.
    assert!(reader.0 >= ms(120) && reader.1 <= ms(20), "{reader:?}");
    assert!(window.1 >= ms(120) && window.0 == Nanos::ZERO, "{window:?}");
}

/// The tap is at the receiver. A segment is lost before it; what filled the hole was acknowledged late,
/// together with all that had waited behind it: nobody could have read that before.
#[test]
fn a_late_ack_at_a_hole_is_no_slow_reader() {
    let mut w = Wire::new(Tap::Server, ms(20));
    w.host[SERVER].wscale = Some(0);
    w.host[SERVER].window = 12 * MSS;
    w.handshake();
    w.at(ms(30)).client().data(MSS).lost_before_tap();
    w.client().write(11 * MSS);
    w.at(ms(40)).server().ack();
    w.at(ms(50)).client().repeat(0, MSS);
    w.at(ms(60)).server().ack();
    for k in 0..4 {
        w.at(ms(70 + 20 * k)).client().write(12 * MSS);
        w.at(ms(80 + 20 * k)).server().ack();
    }
    let c = w.connection();
    assert_eq!(c.budget.get(Cause::SlowReader), Nanos::ZERO, "{:?}", c.budget);
    assert!(c.budget.get(Cause::ReceiveWindow) >= ms(60), "{:?}", c.budget);
}

/// Ten segments are what a connection begins with, although the window would have let only one more go.
#[test]
fn a_first_flight_of_the_initial_window_is_slow_start_below_a_small_window() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.host[SERVER].wscale = Some(0);
    w.host[SERVER].window = 11 * MSS + 100;
    w.handshake();
    w.at(ms(30)).client().write(10 * MSS);
    for k in 0..5 {
        w.at(ms(40 + 20 * k)).server().ack();
        w.at(ms(50 + 20 * k)).client().write(11 * MSS);
    }
    let c = w.connection();
    assert_eq!(c.budget.get(Cause::SlowStart), ms(20), "{:?}", c.budget);
    assert!(c.budget.get(Cause::ReceiveWindow) >= ms(60), "{:?}", c.budget);
}

/// Without its handshake, and with a receiver that takes back what it offered, so that nothing tells the scale.
#[test]
fn a_window_that_is_closed_all_at_once() {
    let mut w = opened(Tap::Client);
    w.host[SERVER].window = 34 << 7;
    w.at(ms(30)).client().data(100);
    w.at(ms(40)).server().data(100);
    w.at(ms(50)).client().write(2 * MSS);
    w.at(ms(61)).server().window(0).ack();
    w.at(ms(500)).server().window(34 << 7).ack();
    w.at(ms(510)).client().write(MSS);
    let c = analyze(&w.segments()[3..]).connections.remove(0);
    assert!(c.budget.get(Cause::SlowReader) >= ms(440), "{:?}", c.budget);
}
