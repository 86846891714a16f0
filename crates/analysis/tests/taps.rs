//! One connection seen from both ends: what either tap cannot tell alone, both tell together.

mod wire;

use tcpwhy_analysis::taps::{Pairing, Sketch, Unpaired, pair};
use tcpwhy_analysis::{Analyzer, Config, Connection, Detail};
use tcpwhy_base::{Cause, Nanos, Observation, Segment, Side, SocketChange, SocketEvent, Source};
use wire::{CLIENT, Packet, SERVER, Tap, Wire, ms, us};

/// What happened, written down for a tap.
type Story = fn(&mut Wire, fn(&mut Packet, usize, Tap), Tap);

/// A packet of this end is lost between the taps.
fn lose(packet: &mut Packet, from: usize, tap: Tap) {
    match (from, tap) {
        (CLIENT, Tap::Client) | (SERVER, Tap::Server) => packet.lost(),
        _ => packet.lost_before_tap(),
    };
}

/// The same story at the client's tap and at the server's.
fn taps(story: Story) -> [Vec<Segment>; 2] {
    [Tap::Client, Tap::Server].map(|tap| {
        let mut w = Wire::new(tap, ms(20));
        story(&mut w, lose, tap);
        w.segments()
    })
}

fn sketch(segments: &[Segment]) -> Sketch {
    let mut sketch = Sketch::default();
    segments.iter().for_each(|s| sketch.take(s));
    sketch
}

fn paired([first, second]: &[Vec<Segment>; 2]) -> Result<Pairing, Unpaired> {
    pair(&sketch(first), &sketch(second))
}

/// The only connection, from both taps; frames of the second are counted on.
fn explained(both: &[Vec<Segment>; 2]) -> Connection {
    explained_beside(both, &[])
}

/// The same, with what the kernel of the server says on the clock of the first tap.
fn explained_beside(both: &[Vec<Segment>; 2], events: &[SocketEvent]) -> Connection {
    let pairing = paired(both).expect("two taps of one connection");
    let before = both[0].len() as u64;
    let mut seen: Vec<(bool, Segment)> =
        both[0].iter().map(|s| (pairing.of_first(s).expect("of the connection"), *s)).collect();
    for segment in &both[1] {
        let (time, frame) = (pairing.clock.to_first(segment.time), segment.frame + before);
        let mut segment = Segment { time, frame, ..*segment };
        let first_is_client = pairing.of_second(&mut segment).expect("of the connection");
        seen.push((!first_is_client, segment));
    }
    let mut all: Vec<Observation<'_>> = events.iter().map(Observation::SocketElsewhere).collect();
    all.extend(seen.iter().map(|(here, segment)| {
        if *here { Observation::Segment(segment) } else { Observation::Elsewhere(segment) }
    }));
    all.sort_by_key(|o| o.time());
    let of = |mut analyzer: Analyzer| {
        all.iter().for_each(|&o| analyzer.observe(o));
        analyzer.finish().connections
    };
    let analyzer = || Analyzer::new(Config { detail: Detail::All }).with_second_tap();
    let mut connections = of(analyzer());
    assert_eq!(format!("{:?}", of(analyzer().rests_always())), format!("{connections:?}"));
    assert_eq!(connections.len(), 1);
    *connections.remove(0)
}

/// Milliseconds of a cause, and that the parts are tiled.
fn time_of(c: &Connection, cause: Cause) -> i64 {
    let parts = c.setup.iter().map(|s| (s.start, s.end, &s.spans));
    let parts = parts.chain(c.exchanges.iter().map(|x| (x.start, x.end, &x.spans)));
    let mut sum = Nanos::ZERO;
    for (start, end, spans) in parts {
        let mut at = start;
        for span in spans {
            assert_eq!(span.start, at);
            at = span.end;
            if span.cause == cause {
                sum += span.duration();
            }
        }
        assert_eq!(at, end);
    }
    (sum.0 + 500_000) / 1_000_000
}

/// An answer is lost before its first byte came, and sent again by a timer.
fn answer_lost(w: &mut Wire, lose: fn(&mut Packet, usize, Tap), tap: Tap) {
    w.handshake();
    w.at(ms(30)).client().data(200);
    lose(w.at(ms(45)).server().data(500), SERVER, tap);
    w.at(ms(275)).server().repeat(0, 500);
    w.at(ms(285)).client().ack();
    w.at(ms(300)).client().data(200);
    w.at(ms(315)).server().data(500);
    w.at(ms(325)).client().ack();
}

#[test]
fn an_answer_lost_before_its_first_byte_is_told_from_work() {
    let both = taps(answer_lost);
    let c = explained(&both);
    let lost = time_of(&c, Cause::TailLossProbe) + time_of(&c, Cause::RetransmissionTimeout);
    assert_eq!(time_of(&c, Cause::ServerThink), 10, "5 ms each");
    assert!((205..=230).contains(&lost), "{lost}: {:?}", c.exchanges[0].spans);
    let taps = c.taps.unwrap();
    assert_eq!((taps.lost, taps.lost_data, taps.losses.len()), ([0, 1], [0, 1], 1));
    // Seen from the client alone it may as well have been work.
    let mut alone = Analyzer::new(Config { detail: Detail::All });
    alone.push_all(&both[0]);
    let alone = alone.finish().connections.remove(0);
    assert!(time_of(&alone, Cause::ServerThink) > 200 || time_of(&alone, Cause::TailLossProbe) < 205);
}

/// Three SYNs, of which two are lost on their way, or dropped by the server.
fn syns(w: &mut Wire, mut lost: impl FnMut(&mut Packet)) {
    for t in [0, 1_000] {
        lost(w.at(ms(t)).client().syn());
    }
    w.at(ms(2_000)).client().syn();
    w.at(ms(2_010)).server().syn_ack();
    w.at(ms(2_020)).client().ack();
    w.at(ms(2_020)).client().data(100);
    w.at(ms(2_030)).server().data(100);
    w.at(ms(2_040)).client().ack();
}

#[test]
fn a_syn_that_was_lost_is_told_from_one_that_the_listener_dropped() {
    let side = |story: Story| {
        let c = explained(&taps(story));
        assert_eq!(time_of(&c, Cause::SynRetransmit), 2_000);
        (c.setup.unwrap().spans[0].side, c.taps.unwrap().lost)
    };
    assert_eq!(side(|w, lose, tap| syns(w, |p| lose(p, CLIENT, tap))), (Some(Side::Network), [2, 0]));
    assert_eq!(side(|w, _, _| syns(w, |_| ())), (Some(Side::Server), [0, 0]));
}

/// The first data is sent four times, and the last of them is acknowledged; the others are lost on their way,
/// or the server does not take the connection.
fn first_data(w: &mut Wire, mut lost: impl FnMut(&mut Packet)) {
    w.handshake();
    lost(w.at(ms(30)).client().data(100));
    for t in [250, 700] {
        lost(w.at(ms(t)).client().repeat(0, 100));
    }
    w.at(ms(1_600)).client().repeat(0, 100);
    w.at(ms(1_610)).server().data(100);
    w.at(ms(1_620)).client().ack();
}

/// Rule 11. The client's tap alone cannot tell.
#[test]
fn first_data_that_was_lost_is_told_from_a_full_accept_queue() {
    let full = |story: Story| {
        let both = taps(story);
        let of = |c: &Connection| time_of(c, Cause::AcceptQueueFull) >= 600;
        let mut alone = Analyzer::new(Config { detail: Detail::All });
        alone.push_all(&both[0]);
        [of(&explained(&both)), of(&alone.finish().connections[0])]
    };
    assert_eq!(full(|w, lose, tap| first_data(w, |p| lose(p, CLIENT, tap))), [false, false]);
    assert_eq!(full(|w, _, _| first_data(w, |_| ())), [true, false]);
}

/// A queue holds the answer up by 30 ms; or the server works so long.
fn late_answer(w: &mut Wire, tap: Tap, queue: Nanos, work: Nanos) {
    w.handshake();
    for n in 0..4 {
        let at = ms(30 + n * 100);
        w.at(at).client().data(200);
        let answer = w.at(at + ms(10) + if n == 2 { work } else { us(100) }).server().data(500);
        if n == 2 && tap == Tap::Client {
            answer.late(queue);
        }
        w.at(at + ms(60)).client().ack();
    }
}

#[test]
fn a_queue_is_told_from_a_slow_host() {
    let queued = explained(&taps(|w, _, tap| late_answer(w, tap, ms(30), us(100))));
    assert_eq!(time_of(&queued, Cause::ServerThink), 0);
    // The same bytes took next to nothing before: they were not what kept the link (rule 114).
    let path = (time_of(&queued, Cause::Queueing), time_of(&queued, Cause::Bandwidth));
    assert!(path.0 >= 29 && path.1 == 0, "{path:?} ms");
    // Less than that is no queue for certain (rule 38).
    let late = explained(&taps(|w, _, tap| late_answer(w, tap, ms(14), us(100))));
    assert_eq!([Cause::Queueing, Cause::Unexplained].map(|cause| time_of(&late, cause)), [0, 13]);
    let worked = explained(&taps(|w, _, tap| late_answer(w, tap, Nanos::ZERO, ms(30))));
    assert_eq!((time_of(&worked, Cause::ServerThink), time_of(&worked, Cause::Queueing)), (30, 0));
}

/// Four answers of 500 bytes, each of which comes 5 ms later than a round trip; the third by 30 more, and the
/// fourth is as long as two.
fn slow_link(w: &mut Wire, tap: Tap) {
    w.handshake();
    for n in 0..4 {
        let at = ms(30 + n * 100);
        w.at(at).client().data(200);
        let bytes = if n == 3 { 1200 } else { 500 };
        let late = [5, 5, 35, 10][n as usize];
        let answer = w.at(at + ms(10) + us(100)).server().data(bytes);
        if tap == Tap::Client {
            answer.late(ms(late));
        }
        w.at(at + ms(70)).client().ack();
    }
}

/// A link that took five milliseconds for these bytes takes as long again, and ten for twice as many; what it
/// took beyond that it stood still, or was busy with others (rule 114).
#[test]
fn what_own_bytes_took_before_is_told_from_a_queue() {
    let slow = explained(&taps(|w, _, tap| slow_link(w, tap)));
    assert_eq!((time_of(&slow, Cause::Queueing), time_of(&slow, Cause::Bandwidth)), (30, 24));
}

/// The server's kernel says when the request was read: until then its application did not work on it.
#[test]
fn a_server_that_reads_late_is_told_from_one_that_works() {
    let both = taps(|w, _, tap| late_answer(w, tap, Nanos::ZERO, ms(30)));
    let request = both[1].iter().filter(|s| s.len == 200).nth(2).unwrap();
    let (local, remote) = (request.dst, request.src);
    let clock = |t| paired(&both).unwrap().clock.to_first(t);
    let read = SocketChange::Read { since: clock(request.time), upto: request.seq + 200, left: 0 };
    let event = SocketEvent { time: clock(request.time) + ms(20), local, remote, change: read };
    let told = explained_beside(&both, &[event]);
    assert_eq!((time_of(&told, Cause::ReaderLate), time_of(&told, Cause::ServerThink)), (20, 10));
    let spans = told.exchanges.iter().flat_map(|x| x.spans.iter());
    let late = spans.filter(|s| s.cause == Cause::ReaderLate).map(|s| (s.source, s.side));
    assert_eq!(late.collect::<Vec<_>>(), [(Source::Kernel, Some(Side::Server))]);
}

#[test]
fn clocks_that_differ_and_addresses_that_are_translated_change_nothing() {
    let both = taps(answer_lost);
    let wanted = explained(&both);
    let zero = both[1][0].time;
    let mut other = both.clone();
    let outside = tcpwhy_base::Endpoint { ip: [192, 0, 2, 1].into(), port: 61_000 };
    let client = both[0][0].src;
    for segment in &mut other[1] {
        let ran = segment.time - zero;
        segment.time = segment.time + ms(3_000) + Nanos(ran.0 / 1_000_000_000 * 40_000);
        for end in [&mut segment.src, &mut segment.dst] {
            if *end == client {
                *end = outside;
            }
        }
    }
    let pairing = paired(&other).unwrap();
    assert_eq!((pairing.connections(), pairing.translated), (1, 1));
    assert!((pairing.clock.offset - ms(3_000)).0.abs() < 20_000, "{:?}", pairing.clock);
    let c = explained(&other);
    assert_eq!((c.client, time_of(&c, Cause::ServerThink)), (client, time_of(&wanted, Cause::ServerThink)));
    // The order of the captures does not matter.
    let [first, second] = both;
    let c = explained(&[second, first]);
    assert_eq!(time_of(&c, Cause::ServerThink), time_of(&wanted, Cause::ServerThink));
}

#[test]
fn captures_of_one_place_or_of_others_are_no_two_taps() {
    let [client, server] = taps(answer_lost);
    assert_eq!(paired(&[client.clone(), client.clone()]).err(), Some(Unpaired::OnePlace));
    let mut other = server.clone();
    other.iter_mut().for_each(|s| (s.seq, s.ack) = (s.seq + 77, s.ack + 77));
    assert_eq!(paired(&[client.clone(), other]).err(), Some(Unpaired::Strangers));
    let mut set = server;
    for segment in set.iter_mut().skip(6) {
        segment.time += Nanos::secs(60);
    }
    assert_eq!(paired(&[client, set]).err(), Some(Unpaired::Clocks));
}

#[test]
fn packets_alone_are_enough_where_no_handshake_was_seen() {
    let [client, server] = taps(answer_lost);
    let pairing = paired(&[client[3..].to_vec(), server.to_vec()]).unwrap();
    assert_eq!((pairing.connections(), pairing.first_is_client()), (1, 1));
}

/// A SYN that nothing answered at either tap is one connection, as the others are; with another first number it is two.
#[test]
fn a_syn_without_an_answer_is_one_connection() {
    let [mut client, mut server] = taps(answer_lost);
    let syn = Segment { src: tcpwhy_base::Endpoint { port: 9, ..client[0].src }, time: ms(700), ..client[0] };
    let seen = Segment { time: server[0].time - client[0].time + ms(700), ..syn };
    client.push(syn);
    server.push(Segment { seq: syn.seq + 1, ..seen });
    assert_eq!(paired(&[client.clone(), server.clone()]).unwrap().connections(), 1);
    server.pop();
    server.push(seen);
    let pairing = paired(&[client, server]).unwrap();
    assert_eq!((pairing.connections(), pairing.of_first(&syn)), (2, Some(true)));
}

/// Nothing passes for a second, small or large: what is sent a fourth time comes through as it was.
fn outage(w: &mut Wire, lose: fn(&mut Packet, usize, Tap), tap: Tap) {
    w.handshake();
    w.at(ms(30)).client().data(100);
    w.at(ms(40)).server().ack();
    for _ in 0..10 {
        lose(w.at(ms(60)).server().data(1_448), SERVER, tap);
    }
    for t in [280, 700] {
        lose(w.at(ms(t)).server().repeat(0, 1_448), SERVER, tap);
    }
    w.at(ms(1_500)).server().repeat(0, 1_448);
    w.after(ms(10)).client().ack();
    for k in 1..10 {
        w.at(ms(1_521)).server().repeat(1_448 * k, 1_448);
    }
    w.after(ms(10)).client().ack();
}

/// The tap beside the server takes it for a path that swallows large segments, until one of them comes through.
#[test]
fn what_comes_through_as_it_was_was_not_too_large() {
    let c = explained(&taps(outage));
    assert_eq!(time_of(&c, Cause::PathMtu), 0, "{:?}", c.budget);
    assert!(time_of(&c, Cause::RetransmissionTimeout) > 1_400, "{:?}", c.budget);
}

/// The link stands still for 400 ms while the second flight is on it.
fn standstill(w: &mut Wire, _: fn(&mut Packet, usize, Tap), tap: Tap) {
    w.handshake();
    w.at(ms(30)).client().data(100);
    w.at(ms(40)).server().ack();
    for (n, flight, late) in [(10, ms(60), ms(0)), (20, us(80_050), ms(400)), (20, us(500_100), ms(0))] {
        for _ in 0..n {
            let packet = w.at(flight).server().data(1_448);
            match tap {
                Tap::Client => _ = packet.late(late),
                _ => w.overtaken(0, late),
            }
        }
        w.at(flight + ms(10) + late).client().ack();
    }
}

/// What had left and came later than what left before it stood on its way: no window of its sender held it (rule 119).
#[test]
fn a_link_that_stands_still_is_no_window() {
    let c = explained(&taps(standstill));
    assert_eq!(time_of(&c, Cause::Queueing), 400, "{:?}", c.budget);
    assert!(time_of(&c, Cause::SlowStart) <= 40, "{:?}", c.budget);
}

/// Full segments of an answer vanish, and nothing of it comes until the client gives up: it neither pauses
/// nor is its peer silent.
fn nothing_comes(w: &mut Wire, lose: fn(&mut Packet, usize, Tap), tap: Tap) {
    w.handshake();
    w.at(ms(30)).client().data(100);
    w.at(ms(40)).server().data(240);
    w.at(ms(50)).client().ack();
    for _ in 0..10 {
        lose(w.at(ms(41)).server().data(1_448), SERVER, tap);
    }
    for t in [280, 700, 1_540, 3_220] {
        lose(w.at(ms(t)).server().repeat(240, 1_448), SERVER, tap);
    }
    w.at(ms(6_000)).client().data(31);
    w.at(ms(6_001)).client().fin();
    w.at(ms(6_011)).server().rst();
}

#[test]
fn what_the_other_tap_saw_leave_is_what_was_waited_for() {
    let c = explained(&taps(nothing_comes));
    assert!(time_of(&c, Cause::PathMtu) > 5_900, "{:?}", c.budget);
}

/// An upload whose full segments vanish: what passes the tap beside its client has not come to the other one.
fn vanishing_upload(w: &mut Wire, lose: fn(&mut Packet, usize, Tap), tap: Tap) {
    w.handshake();
    w.at(ms(30)).client().data(200);
    w.at(ms(40)).server().ack();
    for _ in 0..10 {
        lose(w.at(ms(41)).client().data(1_448), CLIENT, tap);
    }
    for t in [280, 700, 1_540, 3_220] {
        lose(w.at(ms(t)).client().repeat(200, 1_448), CLIENT, tap);
    }
    w.at(ms(6_000)).client().fin();
    w.at(ms(6_010)).server().ack();
}

#[test]
fn what_passes_beside_its_sender_has_not_come_through() {
    let c = explained(&taps(vanishing_upload));
    assert_eq!(time_of(&c, Cause::RetransmissionTimeout), 0, "{:?}", c.budget);
    assert!(time_of(&c, Cause::PathMtu) > 5_000, "{:?}", c.budget);
}

/// A mirror port, or the any interface of a bridge, shows each packet twice: the same connection all the same.
#[test]
fn packets_that_one_tap_shows_twice_are_paired() {
    let both = taps(outage);
    let once = explained(&both);
    for twice in [0, 1] {
        let mut seen = both.clone();
        let copies = both[twice].iter().map(|s| Segment { time: s.time + us(3), ..*s });
        seen[twice] = both[twice].iter().copied().zip(copies).flat_map(|(a, b)| [a, b]).collect();
        assert_eq!(paired(&seen).unwrap().connections(), 1);
        assert_eq!(
            time_of(&explained(&seen), Cause::RetransmissionTimeout),
            time_of(&once, Cause::RetransmissionTimeout)
        );
    }
}

/// Nothing but SYNs that the server's host drops, and nothing but refusals: each is one connection, and what
/// dropped the SYNs stood behind the server's tap.
#[test]
fn connections_that_never_opened_are_one_each() {
    let dropped: Story = |w, _, _| (0..3).for_each(|n| _ = w.at(ms(1_000 * n)).client().syn());
    let c = explained(&taps(dropped));
    let span = &c.setup.as_ref().unwrap().spans[0];
    assert_eq!((span.cause, span.side), (Cause::SynRetransmit, Some(Side::Server)));
    assert!(span.facts.sentence().contains("reached the server's tap"), "{}", span.facts.sentence());
    let refused: Story = |w, _, _| {
        w.client().syn();
        w.at(ms(10)).server().rst();
    };
    assert_eq!(explained(&taps(refused)).budget.get(Cause::Refused), ms(20));
    // Made at one place, or of other connections.
    let [one, _] = taps(dropped);
    assert_eq!(paired(&[one.clone(), one]).unwrap_err(), Unpaired::OnePlace);
}

/// Whole segments every 5 ms, by a program's own clock: away from it they come as from a link of that rate,
/// and the other tap saw them leave so.
fn steady_writer(w: &mut Wire, _: fn(&mut Packet, usize, Tap), _: Tap) {
    w.handshake();
    w.at(ms(30)).client().data(100);
    for k in 0..100 {
        w.at(ms(45 + 5 * k)).server().data(1_448);
        w.at(ms(55 + 5 * k)).client().ack();
    }
}

#[test]
fn what_left_as_far_apart_as_it_came_was_not_set_apart_by_a_link() {
    let both = taps(steady_writer);
    let c = explained(&both);
    assert_eq!(time_of(&c, Cause::Bandwidth), 0, "{:?}", c.budget);
    // Who set them apart, its writer or its kernel, no tap tells.
    assert!(time_of(&c, Cause::SenderPause) + time_of(&c, Cause::Pacing) > 400, "{:?}", c.budget);
}

/// A full buffer, whose writer the ACK of all that was in flight wakes up: at once, or some milliseconds
/// later where its host is busy.
fn busy_writer(w: &mut Wire, _: fn(&mut Packet, usize, Tap), _: Tap) {
    w.handshake();
    w.at(ms(30)).client().data(100);
    w.after(ms(10));
    for late in [us(40), us(90), ms(3)].into_iter().cycle().take(24) {
        w.server().write(9 * 1_448 + 952);
        w.after(ms(10)).client().ack();
        w.after(ms(10) + late);
    }
}

#[test]
fn the_tap_beside_the_writer_says_how_late_it_wrote() {
    let c = explained(&taps(busy_writer));
    let (held, late) = (time_of(&c, Cause::SendBuffer), time_of(&c, Cause::SenderPause));
    assert!(held > 7 * late && late > 0, "{held} {late} {:?}", c.budget);
}
