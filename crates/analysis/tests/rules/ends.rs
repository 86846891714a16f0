//! Thresholds of what belongs together: copies, order, openings, ends, and connections that linger; from both sides.

use crate::wire::{CLIENT, SERVER, Tap, Wire, analyze, ms, us};
use tcpwhy_analysis::{Analyzer, Config, Detail, Ended, Vantage};
use tcpwhy_base::{Cause, Nanos, Segment, TcpFlags, Tls};

const MSS: u32 = 1448;

fn opened(tap: Tap, rtt: Nanos) -> Wire {
    let mut w = Wire::new(tap, rtt);
    w.handshake();
    w
}

/// Where the tap is: a fifth of the trip on one side is near enough to it. Paths below half a millisecond
/// have no middle.
#[test]
fn the_tap_is_at_an_end_or_in_the_middle() {
    let at = |tap, rtt: Nanos, answer: Nanos| {
        let mut w = Wire::new(tap, rtt);
        w.client().syn();
        w.after(rtt.part(2)).server().syn_ack();
        w.after(rtt.part(2) + answer).client().ack();
        w.connection().vantage
    };
    assert_eq!(at(Tap::Client, ms(16), ms(4)), Vantage::Client);
    assert_eq!(at(Tap::Client, ms(16), ms(4) + us(1)), Vantage::Middle);
    let server = |answer: Nanos| {
        let mut w = Wire::new(Tap::Server, ms(16));
        w.client().syn();
        w.after(ms(8) + answer).server().syn_ack();
        w.after(ms(8)).client().ack();
        w.connection().vantage
    };
    assert_eq!(server(ms(4)), Vantage::Server);
    assert_eq!(server(ms(4) + us(1)), Vantage::Middle);
    assert_eq!(at(Tap::Middle, us(499), Nanos::ZERO), Vantage::Client);
    assert_eq!(at(Tap::Middle, us(500), Nanos::ZERO), Vantage::Middle);
    assert_eq!(at(Tap::Server, us(400), Nanos::ZERO), Vantage::Server);
    assert_eq!(at(Tap::Middle, us(60), Nanos::ZERO), Vantage::Client);
    assert_eq!(at(Tap::Server, us(60), Nanos::ZERO), Vantage::Server);
    // Without the final ACK the client's side is not known.
    let mut w = Wire::new(Tap::Client, ms(20));
    w.client().syn();
    w.after(ms(10)).server().syn_ack();
    assert_eq!(w.connection().vantage, Vantage::Unknown);
}

/// A late packet of a closed connection is still its own after 240 s (twice the longest life of a segment),
/// not after more.
#[test]
fn a_closed_connection_waits_240_s_for_late_packets() {
    for (late, connections) in [(Nanos::secs(240), 1), (Nanos::secs(240) + us(1), 2)] {
        let mut w = opened(Tap::Client, ms(20));
        w.at(ms(30)).client().rst();
        w.at(ms(30) + late).client().ack();
        assert_eq!(w.analysis().connections.len(), connections, "{late}");
    }
}

/// A hole that is filled within half a round trip was reordering; later it was a repair, unless what fills it
/// has the time stamp of what left before (rule 130).
#[test]
fn a_hole_filled_within_half_a_trip_is_reordering() {
    let filled = |after: Nanos, timestamps: bool| {
        let mut w = opened(Tap::Client, ms(20));
        w.timestamps = timestamps;
        w.at(ms(30)).client().data(100);
        w.at(ms(40)).server().data(MSS).late(after);
        w.server().data(MSS);
        w.server().data(MSS);
        w.at(ms(90)).client().ack();
        let c = w.connection();
        (c.ends[SERVER].reordered, c.retransmitted[SERVER])
    };
    assert_eq!(filled(ms(10) - us(1), false), (1, 0));
    assert_eq!(filled(ms(10), false), (0, 1));
    assert_eq!(filled(ms(12), true), (1, 0));
}

/// WINDOW_UPDATE of HTTP/2 begins so.
const GRANTS: &[u8] = &[0, 0, 4, 8, 0, 0, 0, 0];

/// Copies have the same identifier and come within a millisecond; without identifiers within 100 µs.
#[test]
fn a_copy_comes_within_a_millisecond() {
    let copies = |identified: bool, after: Nanos| {
        let mut w = opened(Tap::Client, ms(20));
        w.at(ms(30)).client().data(100).copied(after);
        w.at(ms(40)).server().data(50);
        let mut segments = w.segments();
        if !identified {
            segments.iter_mut().for_each(|s| s.ip_id = None);
        }
        let c = analyze(&segments).connections.remove(0);
        (c.ends[CLIENT].duplicates, c.retransmitted[CLIENT])
    };
    assert_eq!(copies(true, us(1_000)), (1, 0));
    assert_eq!(copies(true, us(1_001)), (0, 1));
    assert_eq!(copies(false, us(100)), (1, 0));
    assert_eq!(copies(false, us(101)), (0, 1));
}

/// The same counts on through exchanges of which only sums are asked for.
#[test]
fn a_window_is_refilled_alike_where_no_detail_is_kept() {
    let mut w = opened(Tap::Client, ms(20));
    w.at(ms(30)).client().data(40).says(b"PRI * HT");
    for _ in 0..5 {
        w.after(ms(10)).server().data(6_000);
        w.after(ms(10)).client().data(26).says(GRANTS);
    }
    w.after(ms(10)).server().data(100);
    w.after(ms(10)).client().ack();
    let refilled = |analyzer: Analyzer| {
        let mut analyzer = analyzer;
        analyzer.push_all(&w.segments());
        analyzer.finish().connections[0].budget.get(Cause::ApplicationWindow)
    };
    let none = || Analyzer::new(Config { detail: Detail::None });
    let all = Analyzer::new(Config { detail: Detail::All });
    assert!(refilled(all.by_the_long_way()) > Nanos::ZERO);
    let long = refilled(none().by_the_long_way());
    assert!(long > Nanos::ZERO && refilled(none()) == long);
}

/// The flow-control window of SSH: the third time in a row that the same number of bytes comes, after at most 128 bytes
/// of the client that come at once. That of HTTP/2: if the client says nothing but that it grants them.
#[test]
fn a_window_above_tcp_is_refilled_alike_three_times() {
    let spoken = |head: &[u8], sizes: &[u32], (asks, says): (u32, &[u8]), pause: Nanos| {
        let mut w = opened(Tap::Client, ms(20));
        w.at(ms(30)).client().data(40).says(head);
        for &n in sizes {
            w.after(ms(10)).server().write(n);
            w.after(ms(10) + pause).client().data(asks).says(says);
        }
        w.after(ms(10)).server().data(100);
        w.after(ms(10)).client().ack();
        w.connection().budget.get(Cause::ApplicationWindow)
    };
    let granted = |sizes: &[u32], asks: (u32, &[u8])| spoken(b"PRI * HT", sizes, asks, Nanos::ZERO);
    assert_eq!(granted(&[16_000; 2], (26, GRANTS)), Nanos::ZERO);
    assert_eq!(granted(&[16_000; 3], (26, GRANTS)), ms(20));
    assert_eq!(granted(&[4_096; 3], (13, GRANTS)), ms(20));
    assert_eq!(granted(&[4_095; 3], (13, GRANTS)), Nanos::ZERO);
    // An ACK may have let more go, once its sender was allowed more.
    assert_eq!(granted(&[16_000, 16_000, 17_100], (13, GRANTS)), Nanos::ZERO);
    assert_eq!(granted(&[16_000; 5], (27, GRANTS)), Nanos::ZERO, "and something else");
    assert_eq!(granted(&[16_000; 5], (26, b"\0\0\x11\x01\x05\0\0\0")), Nanos::ZERO, "a request");
    let refilled = |sizes: &[u32], asks: u32, pause: Nanos| spoken(b"SSH-2.0-", sizes, (asks, &[7]), pause);
    let n = 16_000;
    assert_eq!(refilled(&[n; 3], 26, Nanos::ZERO), ms(20));
    assert_eq!(refilled(&[n; 2], 26, Nanos::ZERO), Nanos::ZERO);
    assert_eq!(refilled(&[n; 5], 26, Nanos::ZERO), ms(60));
    // The size may differ by a sixteenth.
    assert_eq!(refilled(&[n, n, n - 941], 26, Nanos::ZERO), ms(20));
    assert_eq!(refilled(&[n, n, n - 942], 26, Nanos::ZERO), Nanos::ZERO);
    assert_eq!(
        (refilled(&[n; 5], 128, Nanos::ZERO), refilled(&[n; 5], 129, Nanos::ZERO)),
        (ms(60), Nanos::ZERO)
    );
    assert_eq!(
        (refilled(&[4_096; 3], 26, Nanos::ZERO), refilled(&[4_095; 3], 26, Nanos::ZERO)),
        (ms(20), Nanos::ZERO)
    );
    // At once: an eighth of the trip later at most.
    assert_eq!((refilled(&[n; 3], 26, us(2_500)), refilled(&[n; 3], 26, us(2_501))), (ms(20), Nanos::ZERO));
}

/// What ends without an answer, by what was seen last.
#[test]
fn how_an_unanswered_request_ended() {
    let ended = |last: &dyn Fn(&mut Wire)| {
        let mut w = opened(Tap::Client, ms(20));
        w.at(ms(30)).client().data(100);
        w.at(ms(40)).server().ack();
        last(&mut w);
        let c = w.connection();
        (c.exchanges[0].ended, c.exchanges[0].end - c.start)
    };
    assert_eq!(ended(&|w| _ = w.at(ms(500)).server().rst()), (Ended::Rst, ms(510)));
    assert_eq!(ended(&|w| _ = w.at(ms(500)).server().ack()), (Ended::CaptureEnd, ms(510)));
    let close = |at: i64| {
        move |w: &mut Wire| {
            w.at(ms(at)).client().fin();
            w.after(ms(10)).server().fin();
            w.after(ms(10)).client().ack();
        }
    };
    // Who waits for more than a second before it closes had expected an answer.
    assert_eq!(ended(&close(1_030)), (Ended::Complete, ms(30)));
    assert_eq!(ended(&close(1_031)), (Ended::Silent, ms(1_031)));
}

/// Rule 10. Who has asked and closes later than at once gives up then; what a server does afterwards nobody
/// waits for. A FIN at once says that no more is asked.
#[test]
fn who_gives_up_waits_no_more() {
    let waited = |fin: i64| {
        let mut w = opened(Tap::Client, ms(20));
        w.at(ms(100)).client().data(300);
        w.at(ms(110)).server().ack();
        w.at(ms(100 + fin)).client().fin();
        w.at(ms(110 + fin)).server().ack();
        w.at(ms(9_000)).server().rst();
        let c = w.connection();
        let x = &c.exchanges[0];
        (x.ended, x.end - x.start, c.tail.map(|tail| tail.1))
    };
    assert_eq!(waited(2_000), (Ended::Rst, ms(2_000), Some(ms(6_910))));
    assert_eq!(waited(21), (Ended::Rst, ms(21), Some(ms(8_889))));
    assert_eq!(waited(20), (Ended::Rst, ms(8_910), None));
}

/// Rule 28. A client of HTTP that closes half a second after its request had waited for the answer, which
/// there is to each; who speaks something else may have had no more to say.
#[test]
fn a_client_of_http_waits_for_an_answer() {
    let waited = |head: &[u8], fin: i64| {
        let mut w = opened(Tap::Client, ms(20));
        w.at(ms(30)).client().data(80).says(head);
        w.at(ms(40)).server().ack();
        w.at(ms(30 + fin)).client().fin();
        w.after(ms(10)).server().fin();
        w.after(ms(10)).client().ack();
        let c = w.connection();
        (c.exchanges[0].ended, c.budget.get(Cause::ServerThink) > ms(400))
    };
    assert_eq!(waited(b"GET / HT", 500), (Ended::Silent, true));
    assert_eq!(waited(b"GET / HT", 20), (Ended::Complete, false));
    assert_eq!(waited(b"metric.a", 500), (Ended::Complete, false));
}

/// Rule 40. On a path shorter than a wake-up the program needs longer than an answer would to close behind its goodbye.
#[test]
fn goodbye_of_tls_on_one_host() {
    let exchanges = |fin: Nanos| {
        let mut w = opened(Tap::Client, us(50));
        w.at(ms(30)).client().data(300).tls(Tls::HANDSHAKE);
        w.at(ms(40)).server().data(900).tls(Tls::HANDSHAKE | Tls::CHANGE_CIPHER);
        w.at(ms(52)).client().data(100).tls(Tls::DATA);
        w.at(ms(62)).server().data(50).tls(Tls::DATA);
        w.at(ms(90)).client().data(24).tls(Tls::DATA);
        w.after(fin).client().fin();
        w.after(us(30)).server().fin();
        w.after(us(30)).client().ack();
        w.connection().exchanges.len()
    };
    assert_eq!((exchanges(ms(1)), exchanges(us(1_001))), (1, 2));
}

/// Rule 40. Last words that cross the server's FIN are answered by a reset: an alert, or what the client
/// closes behind, waits for nothing; a request that came too late for the server was still reset, not met
/// with silence.
#[test]
fn last_words_to_a_server_that_has_closed() {
    let ended = |bytes: u32, closes: bool, knows: bool, fin: i64, reset: i64| {
        let mut w = opened(Tap::Client, ms(20));
        w.at(ms(30)).client().data(100);
        w.at(ms(40)).server().data(50);
        if !knows {
            w.at(ms(fin)).server().fin();
        }
        w.at(ms(150)).client().data(bytes);
        if closes {
            w.client().fin();
        }
        if knows {
            w.at(ms(fin)).server().fin();
        }
        w.at(ms(reset)).server().rst();
        let mut segments = w.segments();
        // The reset of a socket that is gone acknowledges nothing.
        segments.last_mut().expect("a reset").flags = TcpFlags(TcpFlags::RST);
        let c = analyze(&segments).connections.remove(0);
        let last = c.exchanges.last().expect("an exchange");
        assert_eq!(c.budget.get(Cause::KeepaliveOrDeadPeer) > Nanos::ZERO, reset >= 360);
        (last.ended, last.end - last.start)
    };
    assert_eq!(ended(31, false, false, 145, 160), (Ended::Complete, Nanos::ZERO));
    assert_eq!(ended(32, false, false, 145, 160), (Ended::Rst, ms(20)));
    assert_eq!(ended(500, true, false, 145, 160), (Ended::Complete, Nanos::ZERO));
    // A FIN that acknowledges the words may answer them, whenever it passes (clocks of captures may stand still).
    assert_eq!(ended(31, false, false, 161, 161), (Ended::Complete, Nanos::ZERO));
    assert_eq!(ended(31, false, true, 161, 161), (Ended::Rst, ms(21)));
    // Later than a timeout of 220 ms the peer had been silent.
    assert_eq!(ended(500, false, false, 145, 359), (Ended::Rst, ms(219)));
    assert_eq!(ended(500, false, false, 145, 361), (Ended::Rst, ms(221)));
}

/// Data that is out when the capture ends was on its way for a round trip; what comes then is not known, and
/// after its timeout of 220 ms its peer is silent.
#[test]
fn data_that_is_out_when_the_capture_ends() {
    let tail = |wait: Nanos| {
        let mut w = opened(Tap::Client, ms(20));
        w.at(ms(30)).client().data(100);
        w.at(ms(40)).server().data(50);
        w.at(ms(50)).client().data(100).lost();
        w.at(ms(40) + wait).server().probe();
        let c = w.connection();
        let last = &c.exchanges[1];
        assert_eq!((last.end - last.start, last.ended), (wait, Ended::CaptureEnd));
        let told = last.spans.iter().map(|s| (s.cause, s.duration(), s.facts.sentence()));
        told.collect::<Vec<_>>()
    };
    let trip = "One round trip (20.0 ms), which the distance sets.".to_owned();
    // A 64th of it and 100 µs are no more than one trip (rule 45).
    let most = us(20_412) + Nanos(500);
    assert_eq!(tail(most), [(Cause::PathDelay, most, trip)]);
    let late = tail(us(219_999));
    assert_eq!(late.iter().map(|s| s.0).collect::<Vec<_>>(), [Cause::PathDelay, Cause::Unexplained]);
    let silent = "The peer did not answer for 220 ms; 0 probes or repeats.".to_owned();
    assert_eq!(tail(us(220_001)), [(Cause::KeepaliveOrDeadPeer, us(220_001), silent)]);
}

/// Both ends must have closed; a reset stays one.
#[test]
fn a_connection_is_closed_by_both_ends_or_a_reset() {
    let closed = |deeds: &[&dyn Fn(&mut Wire)]| {
        let mut w = opened(Tap::Client, ms(20));
        w.at(ms(30)).client().data(100);
        w.at(ms(40)).server().data(50);
        for (k, deed) in deeds.iter().enumerate() {
            w.at(ms(100 + 50 * k as i64));
            deed(&mut w);
        }
        w.connection().closed.name()
    };
    let client = |w: &mut Wire| _ = w.client().fin();
    let server = |w: &mut Wire| _ = w.server().fin();
    let reset = |w: &mut Wire| _ = w.server().rst();
    assert_eq!(closed(&[]), "open");
    assert_eq!(
        (closed(&[&client]), closed(&[&server]), closed(&[&client, &client])),
        ("open", "open", "open")
    );
    assert_eq!((closed(&[&client, &server]), closed(&[&server, &client])), ("fin", "fin"));
    assert_eq!((closed(&[&reset]), closed(&[&reset, &client, &server])), ("rst", "rst"));
    assert_eq!(closed(&[&client, &server, &reset]), "rst");
}

/// The client's packets alone: a SYN that was repeated was not answered, as far as is known; of one nothing is.
#[test]
fn an_opening_of_which_only_the_client_was_seen() {
    let setup = |syns: &[i64]| {
        let mut w = Wire::new(Tap::Client, ms(20));
        for &t in syns {
            w.at(ms(t)).client().syn();
        }
        w.after(ms(10)).server().syn_ack();
        w.after(ms(10)).client().ack();
        w.after(ms(10)).client().data(100);
        let segments: Vec<Segment> =
            w.segments().into_iter().filter(|s| s.src == w.host[CLIENT].end).collect();
        let c = analyze(&segments).connections.remove(0);
        let spans = c.setup.expect("a setup").spans;
        spans.iter().map(|s| (s.cause, s.duration(), s.facts.sentence())).collect::<Vec<_>>()
    };
    let one_sided =
        "Only one direction is in the capture, so the ACKs that would tell are not there.".to_owned();
    assert_eq!(setup(&[0]), [(Cause::Unexplained, ms(30), one_sided)]);
    let unanswered = |over| format!("2 SYNs over {over} and no answer to any of them in this capture.");
    let cause = Cause::SynRetransmit;
    let expected = [(cause, ms(1_000), unanswered("1.00 s")), (cause, ms(30), unanswered("1.03 s"))];
    assert_eq!(setup(&[0, 1_000]), expected);
}

/// A SYN-ACK that was repeated: what is said of it.
#[test]
fn a_repeated_syn_ack_is_said() {
    let mut w = Wire::new(Tap::Server, ms(20));
    w.client().syn();
    for t in [10, 1_010, 3_010] {
        w.at(ms(t)).server().syn_ack().lost();
    }
    w.at(ms(7_010)).server().syn_ack();
    w.at(ms(7_020)).client().ack();
    let c = w.connection();
    let spans = &c.setup.as_ref().expect("a setup").spans;
    let said: Vec<_> = spans.iter().map(|s| (s.cause.id(), s.duration(), s.facts.sentence())).collect();
    let repeats = "The SYN-ACK was sent 3 times more over 7.00 s before it was answered.".to_owned();
    assert_eq!(said[0], ("syn_retransmit", ms(7_000) + Nanos(0), repeats));
    assert_eq!((said[1].0, said[1].1, said.len()), ("handshake", ms(20), 2));
    assert_eq!((c.ends[SERVER].syn_repeats, c.retransmitted[SERVER]), (3, 3));
}

/// Rule 41. A FIN that passes before the data below it opens a hole, as data would: what fills it late was
/// lost, what fills it within half a round trip was overtaken.
#[test]
fn a_fin_that_overtakes_data_opens_a_hole() {
    let filled = |after: Nanos| {
        let mut w = opened(Tap::Client, ms(20));
        w.timestamps = false;
        w.at(ms(30)).client().data(100);
        w.at(ms(40)).server().data(MSS);
        w.server().data(MSS).late(after);
        w.server().fin();
        w.at(ms(80) + after).client().ack();
        let c = w.connection();
        (c.ends[SERVER].reordered, c.retransmitted[SERVER], c.budget.get(Cause::RetransmissionTimeout))
    };
    assert_eq!(filled(ms(10) - us(1)), (1, 0, Nanos::ZERO));
    // A host answers in a nanosecond here, which is not the loss's.
    assert_eq!(filled(ms(1_200)), (0, 1, ms(1_200) - Nanos(1)));
}

/// Rule 10. A reset in the middle of an answer, before anybody closed, is no end of it; after a long pause
/// the connection was idle.
#[test]
fn an_answer_that_a_reset_cuts_off_is_not_complete() {
    let ended = |last: &dyn Fn(&mut Wire)| {
        let mut w = opened(Tap::Client, ms(20));
        w.at(ms(30)).client().data(100);
        w.at(ms(40)).server().data(1000);
        w.at(ms(50)).client().ack();
        last(&mut w);
        let c = w.connection();
        let pause = c.exchanges[0].spans.iter().find(|s| s.cause == Cause::SenderPause);
        let lost = pause.map_or(Nanos::ZERO, |s| s.end - s.start);
        assert_eq!(c.cut_off, c.exchanges[0].ended == Ended::Rst);
        (c.exchanges[0].ended, lost, pause.map(|s| s.facts.sentence()))
    };
    let why = "Nothing for 500 ms, with everything acknowledged and the window open: the sender had nothing to send.";
    let resets = |at: i64| move |w: &mut Wire| _ = w.at(ms(at)).server().rst();
    assert_eq!(ended(&resets(540)), (Ended::Rst, ms(500), Some(why.into())));
    assert_eq!(ended(&resets(1_040)).0, Ended::Rst);
    assert_eq!(ended(&resets(1_041)), (Ended::Complete, Nanos::ZERO, None));
    // Somebody had closed, or the client had all of it.
    let closes = |end: usize| {
        move |w: &mut Wire| {
            w.at(ms(100));
            _ = if end == CLIENT { w.client().fin() } else { w.server().fin() };
            w.at(ms(200)).server().rst();
        }
    };
    assert_eq!((ended(&closes(CLIENT)).0, ended(&closes(SERVER)).0), (Ended::Complete, Ended::Complete));
    assert_eq!(ended(&|w| _ = w.at(ms(200)).client().rst()).0, Ended::Complete);
    // The client had not: more was on its way.
    let gave_up = |w: &mut Wire| {
        w.client().rst();
        w.at(ms(60)).server().data(1000);
    };
    assert_eq!(ended(&gave_up), (Ended::Rst, Nanos::ZERO, None));
    // It closed first, and its host resets what goes on coming.
    let broke_off = |w: &mut Wire, bytes: u32| {
        w.client().fin();
        w.at(ms(55)).server().data(bytes);
        w.at(ms(65)).client().rst().segment.flags = TcpFlags(TcpFlags::RST);
        w.at(ms(85)).server().rst();
    };
    // What came last ends it: nobody waited for more.
    let (how, lost, _) = ended(&|w| broke_off(w, 1_448));
    assert_eq!((how, lost), (Ended::Rst, ms(15)));
    // Last words of the server, which came too late, are not missed.
    assert_eq!(ended(&|w| broke_off(w, 100)).0, Ended::Complete);
}

/// Nobody waits after the last byte: the longest wait is shown, not that time (rule 27).
#[test]
fn time_after_the_last_byte_shows_nothing() {
    let mut w = opened(Tap::Client, ms(20));
    for t in [30, 1_070] {
        w.at(ms(t)).client().data(100);
        w.at(ms(t + 10)).server().data(1000);
        w.after(ms(10)).client().ack();
    }
    w.at(ms(9_000)).client().fin();
    let analysis = w.analysis();
    let f = analysis.findings.iter().find(|f| f.cause == Cause::ClientThink).expect("pauses");
    assert!(f.tail > ms(7_000) && f.example.end - f.example.start < ms(1_100), "{f:?}");
}
