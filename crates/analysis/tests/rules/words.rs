//! What is said in words: the sentence of each fact, evidence for and against a cause, names.

use crate::wire::{CLIENT, SERVER, Tap, Wire, ms};
use tcpwhy_analysis::{
    Closed, Ended, Example, Extremes, Facts, Finding, Frames, Over, Quality, Vantage, bit_rate, evidence,
    fixes_on,
};
use tcpwhy_base::{Cause, Nanos, Side, Tls};

const fn syns(repeats: u32, syn_ack: bool, at_server: bool, answered: bool) -> Facts {
    Facts::SynRepeats { repeats, over: Nanos::secs(3), syn_ack, at_server, answered }
}

const SENTENCES: &[(Facts, &str)] = &[
    (Facts::None, "There is no further evidence."),
    (Facts::RoundTrip { rtt: Nanos(1) }, "One round trip (1 ns), which the distance sets."),
    (Facts::RoundTrip { rtt: Nanos::ZERO }, "The trips that the distance sets."),
    (
        Facts::LateOpening { late: Nanos::millis(74), rtt: Nanos::millis(27) },
        "The handshake took 74.0 ms more than a round trip does later (27.0 ms): its packets stood in a queue or waited for a radio or an address, or whoever answers SYNs (a host, a balancer that opens its own connection first) was late.",
    ),
    (
        Facts::EncryptionRefused { rtt: Nanos(1) },
        "The client asked for encryption, and the server refused it: no TLS followed. One round trip (1 ns), which the distance sets.",
    ),
    (
        Facts::KeyAskedAgain { rtt: Nanos(1) },
        "One round trip (1 ns) went to another key: the client had sent one of a group that the server did not want (HelloRetryRequest). A server that takes that group saves it (nginx: `ssl_ecdh_curve`, X25519 first), or a client that sends the other one first (OpenSSL: the first of `Groups`).",
    ),
    (
        Facts::KeyAskedAgain { rtt: Nanos::ZERO },
        "One round trip went to another key: the client had sent one of a group that the server did not want (HelloRetryRequest). A server that takes that group saves it (nginx: `ssl_ecdh_curve`, X25519 first), or a client that sends the other one first (OpenSSL: the first of `Groups`).",
    ),
    (
        syns(1, false, false, false),
        "The SYN was sent once more over 3.00 s before it was answered: it was lost, or the server's host ignored it, as it does with a full accept queue (accept_queue_full).",
    ),
    (syns(2, true, false, false), "The SYN-ACK was sent 2 times more over 3.00 s before it was answered."),
    (
        syns(2, false, true, false),
        "The SYN was sent 2 times more over 3.00 s before it was answered, though it had reached the server's tap: its host ignored it, as it does with a full accept queue.",
    ),
    (
        syns(1, false, true, true),
        "The SYN was sent once more over 3.00 s although a SYN-ACK had passed the tap: that SYN-ACK, or its ACK, was lost on the way.",
    ),
    (
        Facts::NotTaken { repeats: 3, syn_acks: 0 },
        "The first data was sent 3 times more, each time without any acknowledgement, after a handshake that looked complete: the server had not taken the final ACK.",
    ),
    (
        Facts::Unanswered { syns: 4, over: Nanos::millis(7_000) },
        "4 SYNs over 7.00 s and no answer to any of them in this capture.",
    ),
    (Facts::Refused { resets: 1 }, "A reset answered the SYN: nothing listens there, or a filter rejects."),
    (
        Facts::Refused { resets: 3 },
        "3 resets answered the client's SYNs: nothing listens there, or a filter rejects.",
    ),
    (
        Facts::Think { seen: Nanos::millis(30), path: Nanos::millis(20) },
        "The next byte came 30.0 ms after the other side's last one; 20.0 ms of that was the trip.",
    ),
    (
        Facts::NoAnswer { wait: Nanos::secs(8), end: Over::PeerClosed },
        "Nothing came back for 8.00 s; then the other side closed without an answer.",
    ),
    (
        Facts::NoAnswer { wait: Nanos::secs(8), end: Over::PeerReset },
        "Nothing came back for 8.00 s; then the other side reset the connection.",
    ),
    (
        Facts::NoAnswer { wait: Nanos::secs(8), end: Over::GaveUp },
        "Nothing came back for 8.00 s; then who had asked gave up.",
    ),
    (
        Facts::NoAnswer { wait: Nanos::secs(8), end: Over::CaptureEnded },
        "Nothing came back for 8.00 s; then the capture ends.",
    ),
    (
        Facts::NoAnswer { wait: Nanos::secs(8), end: Over::Unheard },
        "Nothing came back for 8.00 s; the capture goes on, without another packet of the connection.",
    ),
    (
        Facts::Think { seen: Nanos::millis(30), path: Nanos::ZERO },
        "For 30.0 ms TCP had nothing to send: the application had not written.",
    ),
    (
        Facts::Nagle { first: 4, held: 100, ack_delay: Nanos::millis(40) },
        "4 bytes were sent; the next 100 waited for their ACK, which was 40.0 ms late, and left with it.",
    ),
    (
        Facts::Window { flight: 4_344, rtt: Nanos::millis(20) },
        "4344 bytes in flight filled the window that the receiver offered; one window per 20.0 ms round trip.",
    ),
    (
        Facts::UnknownScale { flight: 5_792, window: 50 },
        "5792 bytes were in flight; the header's window of up to 50 may be what limits it, but its scale was in the handshake, which the capture lacks: the receiver's window or the sender's buffer.",
    ),
    (
        Facts::Closed { window: 7 },
        "The receiver's window had shrunk to 7 bytes until a window update opened it again: its application did not read.",
    ),
    (
        Facts::Flight { flight: 1_448, segments: 1, rtt: Nanos::millis(20), before: 0 },
        "1448 bytes (1 segment) were in flight and the next left with the ACK (round trip 20.0 ms).",
    ),
    (
        Facts::Flight { flight: 2_896, segments: 2, rtt: Nanos::millis(20), before: 14_480 },
        "2896 bytes (2 segments) were in flight, the window had been 14480 before; the next left with the ACK (round trip 20.0 ms).",
    ),
    (
        Facts::Spread { flight: 37_888 },
        "Their sender spaced them, but 37888 bytes in flight filled the window before the next ACK opened it: sent at once, they would have waited for the same ACK.",
    ),
    (
        Facts::Spread { flight: 0 },
        "Their sender spaced them, but no window that was offered lately was more than three quarters of the largest: earlier, they would have lain unread for longer.",
    ),
    (
        Facts::Drained { flight: 2_896 },
        "ACKs made room and nothing was sent, until with 2896 bytes in flight one of them woke up the writer: the kernel had nothing left to send.",
    ),
    (
        Facts::AckDelay { delay: Nanos::millis(40), flight: 1_448 },
        "With 1448 bytes in flight the sender could send no more, and the ACK was 40.0 ms late.",
    ),
    (
        Facts::Bytes { bytes: 1_448, bps: Some(10e6) },
        "1448 bytes passed; the bottleneck carries about 10 Mbit/s.",
    ),
    (Facts::Bytes { bytes: 1_448, bps: None }, "1448 bytes passed one after the other."),
    (
        Facts::Stood { bytes: 1_448, bps: Some(10e6), stood: Nanos::millis(3) },
        "1448 bytes passed; the bottleneck carries about 10 Mbit/s. By their time stamps the sender had built them up to 3.00 ms before they left its host: they stood in a queue there, of a shaper (`tc -s qdisc show`) or of a slow interface.",
    ),
    (
        Facts::Loss { bytes: 100, wait: Nanos::millis(220) },
        "100 bytes were sent again, 220 ms after the packet before.",
    ),
    (
        Facts::InRecovery { bytes: 100, wait: Nanos::millis(220) },
        "100 bytes more came 220 ms after the packet before, while a loss was repaired.",
    ),
    (
        Facts::Probe { wait: Nanos::millis(40), outstanding: 100 },
        "Nothing for 40.0 ms with 100 bytes unacknowledged; then new data as a probe, and what it brought to light was repaired.",
    ),
    (
        Facts::Unread { flight: 4_344, late: Nanos::micros(1_600) },
        "With 4344 bytes in flight the sender could send no more, and the ACK came 1.60 ms after them: TCP sends that at once where the buffer has room, so its application had not read.",
    ),
    (
        Facts::Unread { flight: 4_344, late: Nanos::ZERO },
        "4344 bytes in flight filled what the receiver offered, less than half of its largest window: the rest of its buffer held data that its application had not read.",
    ),
    (
        Facts::Queue { rtt: Nanos::millis(60), base: Nanos::millis(20) },
        "The round trip was 60.0 ms where 20.0 ms is possible: a queue that this connection's own bytes do not fill.",
    ),
    (
        Facts::Missing { packets: 1, wait: Nanos::millis(220) },
        "One packet of the sender did not arrive (1 by its IP identifiers), and the next came 220 ms later: the time its retransmission timer takes.",
    ),
    (
        Facts::Missing { packets: 2, wait: Nanos::millis(660) },
        "Packets of the sender did not arrive (2 by its IP identifiers), and the next came 660 ms later: the time its retransmission timer takes.",
    ),
    (
        Facts::Wait { wait: Nanos::millis(50), outstanding: 0, empty: Nanos::millis(50) },
        "Nothing for 50.0 ms, with everything acknowledged and the window open: the sender had nothing to send.",
    ),
    (
        Facts::Wait { wait: Nanos::millis(50), outstanding: 0, empty: Nanos::millis(10) },
        "Nothing for 50.0 ms, with everything acknowledged for the last 10.0 ms of it and the window open: the sender had nothing to send.",
    ),
    (
        Facts::Emptied { wait: Nanos::millis(60), late: Nanos::millis(16) },
        "All in flight was acknowledged after 60.0 ms, and only then, 16.0 ms later, came more, as the ACKs made room each time: its writer waited for the buffer.",
    ),
    (
        Facts::Wait { wait: Nanos::millis(50), outstanding: 100, empty: Nanos::ZERO },
        "Nothing for 50.0 ms with 100 bytes unacknowledged, and no ACK, window update or timer that would have released the next segment.",
    ),
    (
        Facts::Silent { wait: Nanos::millis(900), tries: 2 },
        "The peer did not answer for 900 ms; 2 probes or repeats.",
    ),
    (
        Facts::Silent { wait: Nanos::millis(900), tries: 1 },
        "The peer did not answer for 900 ms; 1 probe or repeat.",
    ),
    (
        Facts::NoAnswer { wait: Nanos::ZERO, end: Over::GaveUp },
        "No answer was waited for; then who had asked gave up.",
    ),
    (
        Facts::Behind { wait: Nanos::millis(26), work: Nanos::millis(22), bytes: 100 },
        "The next byte came 26.0 ms after the other side's last one, but does not acknowledge its last 100 bytes: it answers an earlier request, and for 22.0 ms there was one to answer.",
    ),
    (
        Facts::Behind { wait: Nanos::millis(26), work: Nanos::millis(22), bytes: 0 },
        "The next byte came 26.0 ms after the last one; for 22.0 ms of that the server had an earlier request before it, which nothing had answered yet.",
    ),
    (
        Facts::LateRequest { late: Nanos::millis(200) },
        "The ACK of what had been sent came 200 ms later than the trip and the longest delay of its receiver: it was late on its way, or the receiver's host was.",
    ),
    (
        Facts::LateBetween { late: Nanos::millis(2), rtt: Nanos::millis(1) },
        "Between the two taps it took 2.00 ms more than a round trip (1.00 ms) and what as many bytes took before: a short queue, or something on the way stood still, a host's interrupts as well.",
    ),
    (
        Facts::TimedAnswer { wait: Nanos::millis(228), held: 500, ticks: 0 },
        "500 bytes came 228 ms after their request, as often before: the application had not written, or it had, and the kernel held it (TCP_CORK, MSG_MORE) until its timer gave up. Which of the two does not show here; at the server `ss -to` says `persist` then.",
    ),
    (
        Facts::TimedAnswer { wait: Nanos::millis(228), held: 500, ticks: 4 },
        "500 bytes came 228 ms after their request, as often before: the time after which the kernel gives up holding a corked segment, and 4 times a whole number of its ticks after the answer before, whenever the request came. Programs are not woken up by that clock.",
    ),
    (
        Facts::Pieces { piece: 1_024, mss: 1_448, wait: Nanos::millis(3_500) },
        "After 3.50 s the answer began with 1024 bytes of more, where 1448 fit: larger segments had not come through, and their sender cut them.",
    ),
    (
        Facts::Split { far: Nanos::millis(25), rtt: Nanos::micros(200) },
        "Data is acknowledged after 200 µs, but the SYN was answered 25.0 ms later than that: a proxy, a NAT engine or a balancer acknowledges, and the server behind it is that far away or worked as long.",
    ),
    (
        Facts::Released { late: Nanos::millis(4) },
        "It left 4.00 ms after the ACK that it had been held for: its host or the path took that long, or it was written only then.",
    ),
    (Facts::NotCaptured, "The capture lost packets here, so the reason cannot be seen."),
    (Facts::OneSided, "Only one direction is in the capture, so the ACKs that would tell are not there."),
    (
        Facts::WrongClock { wait: Nanos::secs(300) },
        "By its time stamps one round trip took 300 s, longer than a packet lives: they are wrong.",
    ),
];

#[test]
fn each_fact_has_its_sentence() {
    for (facts, sentence) in SENTENCES {
        assert_eq!(facts.sentence(), *sentence, "{facts:?}");
    }
    let corked = Facts::Corked { wait: ms(220), held: 100 }.sentence();
    assert!(corked.starts_with("100 bytes left 220 ms after the segment before"), "{corked}");
    let taken = Facts::NotTaken { repeats: 3, syn_acks: 2 }.sentence();
    assert!(taken.starts_with("After the client's final ACK the server repeated its SYN-ACK 2 times and the first data was sent 3 "), "{taken}");
}

#[test]
fn rates_have_three_digits_and_a_unit() {
    let said = [999.0, 1e3, 9_994.0, 9_995.0, 1e6, 12.4e6, 999.4e6, 1e9, 40e9].map(bit_rate);
    let expected = [
        "999 bit/s",
        "1.00 kbit/s",
        "9.99 kbit/s",
        "10 kbit/s",
        "1.00 Mbit/s",
        "12 Mbit/s",
        "999 Mbit/s",
        "1.00 Gbit/s",
        "40 Gbit/s",
    ];
    assert_eq!(said, expected);
}

#[test]
fn names_in_json() {
    let ended = [Ended::Complete, Ended::Rst, Ended::Silent, Ended::CaptureEnd].map(Ended::name);
    assert_eq!(ended, ["complete", "rst", "silent", "capture_end"]);
    let vantage = [Vantage::Client, Vantage::Server, Vantage::Middle, Vantage::Unknown].map(Vantage::name);
    assert_eq!(vantage, ["client", "server", "middle", "unknown"]);
    assert_eq!([Closed::Fin, Closed::Rst, Closed::Open].map(Closed::name), ["fin", "rst", "open"]);
    let mut quality = Quality::default();
    quality.set(Quality::OFFLOAD);
    quality.set(Quality::MIDSTREAM);
    assert_eq!(quality.names().collect::<Vec<_>>(), ["midstream", "offload"]);
    assert!(quality.has(Quality::OFFLOAD) && !quality.has(Quality::SNAPLEN));
}

#[test]
fn frames_keep_the_first_three_that_decide() {
    let keys = |f: Frames| (f.first(), f.last(), f.keys().collect::<Vec<_>>());
    assert_eq!(keys(Frames::new(0, 9, 4, &[9, 0, 4, 4, 3, 10, 6, 7])), (4, 9, vec![4, 6, 9]));
    let (a, b) = (Frames::new(0, 4, 9, &[5, 6]), Frames::new(0, 2, 7, &[2, 3]));
    assert_eq!(keys(a.join(b)), (2, 9, vec![2, 5, 6]));
    assert_eq!(keys(b.join(a)), (2, 9, vec![2, 3, 5]));
}

/// Ten flights of the server, the last of which waits; then writes that Nagle holds.
pub(crate) fn shown(tap: Tap) -> Wire {
    let mut w = Wire::new(tap, ms(20));
    w.handshake();
    w.at(ms(30)).client().data(100);
    w.after(ms(10));
    for n in [10, 20] {
        w.server().write(n * 1448);
        w.after(ms(10)).client().ack();
        w.after(ms(10));
    }
    w.at(ms(100)).client().data(4);
    w.client().data(5);
    w.at(ms(150)).server().ack();
    w.at(ms(160)).server().data(50);
    w.at(ms(170)).client().window(0).ack();
    w
}

/// What a client that fetches row by row can do is told to clients alone.
#[test]
fn a_reader_is_told_what_it_can_do_where_it_is() {
    let c = shown(Tap::Client).connection();
    let example = Example::new(1, 1, Frames::new(0, 1, 2, &[1, 2]), Nanos::ZERO, ms(10));
    let rows_of = |side| {
        let read = fixes_on(&c, &Finding::new(Cause::SlowReader, Some(side), ms(10), example));
        let of_databases = |how: &&String| how.contains("fetches a row");
        (read[0].place, read[0].how.iter().filter(of_databases).count(), read[0].how.len())
    };
    assert_eq!((rows_of(Side::Client), rows_of(Side::Server)), (("client", 1, 5), ("server", 0, 4)));
    // A client's pause is in no slow log of its server.
    let looks_in = |cause, side| {
        let next = fixes_on(&c, &Finding::new(cause, Some(side), ms(10), example));
        next[0].how.iter().filter(|how| how.contains("SLOWLOG") || how.contains("slow_query_log")).count()
    };
    let pauses = [looks_in(Cause::ServerThink, Side::Server), looks_in(Cause::ClientThink, Side::Client)];
    assert_eq!(pauses, [2, 0]);
}

/// The link's rate changed: what is said of a stretch is not said again with the figure of the whole.
#[test]
fn a_finding_and_its_fixes_say_the_same_rate() {
    let mut c = shown(Tap::Client).connection();
    c.path.bandwidth_bps = Some(22_188_122);
    let frames = Frames::new(0, 1, 2, &[1, 2]);
    let example = Example::new(1, 1, frames, Nanos::ZERO, ms(10));
    let mut busy = Finding::new(Cause::Bandwidth, Some(Side::Network), ms(10), example);
    let mut gave = |bps| {
        busy.facts = Facts::Bytes { bytes: 5_806_974, bps };
        fixes_on(&c, &busy)[0].how[0].clone()
    };
    let said = |rate| {
        format!(
            "Any: The bottleneck gave {rate} and was busy: no TCP setting adds to that (a prediction is for twice the rate)"
        )
    };
    assert_eq!(gave(Some(28_800_000.0)), said("29 Mbit/s"));
    assert_eq!(gave(Some(64_000.0)), said("64 kbit/s"));
    assert_eq!(gave(None), said("22 Mbit/s"));
    busy.cause = Cause::Queueing;
    (busy.facts, c.path.bandwidth_bps) = (Facts::None, Some(64_000));
    let shaped = fixes_on(&c, &busy).into_iter().flat_map(|f| f.how).find(|h| h.contains("cake bandwidth"));
    assert!(shaped.is_some_and(|h| h.contains("cake bandwidth 0.064Mbit`")));
}

#[test]
fn evidence_for_and_against_a_cause() {
    let c = shown(Tap::Client).connection();
    let says = |cause| evidence(&c, cause);
    assert_eq!(
        says(Cause::Nagle),
        [
            "ACKs without data: client never late, server late once, by 40.0 ms. Base round trip 20.0 ms; an ACK counts as late from the larger of 8 ms and a quarter of it.",
            "Nagle: client sent a partial segment after an unacknowledged one 1 times, which Nagle's algorithm does not let go, server never sent two partial segments without an ACK between.",
        ]
    );
    assert_eq!(says(Cause::DelayedAck), says(Cause::Nagle)[..1]);
    assert_eq!(says(Cause::Cork), says(Cause::ReceiveWindow)[1..]);
    assert_eq!(
        says(Cause::ReceiveWindow),
        [
            "Windows offered: client at most 64000 bytes, 1 zero windows, server at most 64000 bytes, 0 zero windows.",
            "Most bytes in flight: client 100, server 28960.",
        ]
    );
    assert_eq!(
        says(Cause::SlowStart),
        [
            "Flights: client no flight that waited, largest 100 bytes, server first flight 14480 bytes, largest 28960 bytes.",
            "Repeated packets: client 0, server 0.",
        ]
    );
    assert_eq!(
        says(Cause::PathMtu),
        ["Repeated packets: client 0, server 0.", "Packets in another order: client 0, server 0."]
    );
    assert_eq!(says(Cause::Refused), ["SYNs and SYN-ACKs repeated: client 0, server 0."]);
    assert_eq!(
        says(Cause::Queueing),
        ["No train of packets was long enough to show the rate of the link for the whole connection."]
    );
    assert_eq!(says(Cause::KeepaliveOrDeadPeer), ["Keep-alives: client 0, server 0."]);
    assert!(says(Cause::ServerThink).is_empty());
    let mut poor = c.clone();
    poor.quality.set(Quality::ONE_SIDED);
    poor.quality.set(Quality::CAPTURE_DROPS);
    poor.path.rtt = Some(Nanos::ZERO);
    poor.path.bandwidth_bps = Some(19_300_000);
    poor.ends[SERVER].delayed_ack = Some(Extremes { shortest: ms(40), longest: ms(44) });
    poor.ends[CLIENT].max_window = None;
    assert_eq!(
        evidence(&poor, Cause::Bandwidth),
        [
            "Trains of packets were spread out as by a link of 19 Mbit/s.",
            "Only one direction is in the capture: what its ACKs would show is missing.",
            "The capture lost packets of this connection.",
            "The round trip could not be measured.",
        ]
    );
    assert!(
        evidence(&poor, Cause::Nagle)[0].contains("server late by 40.0 ms to 44.0 ms. Base round trip 0 ns;")
    );
    assert!(
        evidence(&poor, Cause::SlowReader)[0].starts_with("Windows offered: client no window seen, server")
    );
}

/// What the first bytes say is spoken.
#[test]
fn protocols_show_in_their_first_bytes() {
    let protocol = |head: &[u8], tls: u8| {
        let mut w = Wire::new(Tap::Client, ms(20));
        w.handshake();
        w.at(ms(30)).client().data(100).says(head).tls(tls);
        w.at(ms(40)).server().data(100);
        w.connection().protocol
    };
    assert_eq!(protocol(b"PRI * HT", 0), Some("http/2"));
    for verb in [
        &b"GET /"[..],
        b"POST /a",
        b"PUT /a",
        b"HEAD /",
        b"DELETE /",
        b"OPTIONS ",
        b"PATCH /",
        b"HTTP/1.1",
        b"CONNECT ",
    ] {
        assert_eq!(protocol(verb, 0), Some("http/1"), "{}", String::from_utf8_lossy(verb));
    }
    assert_eq!(protocol(b"SSH-2.0", 0), Some("ssh"));
    assert_eq!(protocol(b"\x16\x03\x01", Tls::DATA), Some("tls"));
    for other in [&b""[..], b"EHLO a", b"GETX", b"PRI"] {
        assert_eq!(protocol(other, 0), None, "{}", String::from_utf8_lossy(other));
    }
    // A server that speaks first says it as well.
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    w.at(ms(30)).server().data(20).says(b"SSH-2.0");
    w.at(ms(50)).client().data(20);
    assert_eq!(w.connection().protocol, Some("ssh"));
}
