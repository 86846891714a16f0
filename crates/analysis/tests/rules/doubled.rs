//! Packets that the capture holds twice, stamps that a stack does not echo, and reactions that others prove.

use crate::wire::{CLIENT, SERVER, Tap, Wire, analyze, ms, tell, us};
use tcpwhy_analysis::{Connection, Quality};
use tcpwhy_base::{Cause, Nanos, Segment, Trouble};

const MSS: u32 = 1448;

/// A slow start of three flights down, then a request of two writes of which Nagle held the second.
fn talk() -> Wire {
    let mut w = Wire::new(Tap::Client, ms(40));
    w.handshake();
    w.at(ms(50)).client().data(100);
    for flight in [10, 20, 15] {
        w.after(ms(20)).server().write(flight * MSS);
        w.after(ms(20)).client().ack();
    }
    w.after(ms(100)).client().data(4);
    w.after(ms(60)).server().ack();
    w.after(ms(20)).client().data(100);
    w.after(ms(20)).server().data(50);
    w.after(ms(20)).client().ack();
    w
}

/// Each packet a second time, so much later and changed.
fn doubled(segments: &[Segment], late: Nanos, change: impl Fn(&mut Segment)) -> Vec<Segment> {
    let mut all = segments.to_vec();
    for segment in segments {
        let mut copy = Segment { time: segment.time + late, ..*segment };
        change(&mut copy);
        all.push(copy);
    }
    all.sort_by_key(|s| s.time);
    (1..).zip(&mut all).for_each(|(n, s)| s.frame = n);
    all
}

fn only(segments: &[Segment]) -> Connection {
    let mut connections = analyze(segments).connections;
    assert_eq!(connections.len(), 1);
    *connections.remove(0)
}

/// Each packet once under a VLAN tag and once under another or none, as soon as behind a burst or
/// milliseconds later: one connection (rule 30), be the twins the first of it or join in the middle. What has
/// another identifier is another connection.
#[test]
fn twins_under_another_tag_are_copies() {
    let plain = talk().connection();
    let segments = talk().segments();
    for late in [us(20), us(400), ms(7)] {
        for tags in [(0, 100), (100, 0), (7, 100)] {
            let tagged: Vec<_> = segments.iter().map(|s| Segment { link: tags.0, ..*s }).collect();
            let c = only(&doubled(&tagged, late, |s| s.link = tags.1));
            assert!(c.quality.has(Quality::DUPLICATES), "{late} {tags:?}");
            assert_eq!((c.retransmitted, c.bytes, c.packets), ([0, 0], plain.bytes, plain.packets));
            assert_eq!(c.budget, plain.budget, "{late} {tags:?}");
        }
    }
    // Between two bursts: of one no more than the last eight are known before a copy was seen.
    let from = segments[segments.len() - 5].time;
    let mut late = doubled(&segments, us(20), |s| s.link = 100);
    late.retain(|s| s.link == 0 || s.time > from);
    assert_eq!(only(&late).budget, plain.budget);
    let others = doubled(&segments, us(20), |s| {
        (s.link, s.ip_id, s.options.timestamps) = (100, s.ip_id.map(|id| id + 9_000), None);
    });
    assert_eq!(analyze(&others).connections.len(), 2);
}

/// Rule 42: behind a router, by another tap of the same port, and at the other end of the path.
#[test]
fn late_copies_of_a_whole_connection_change_nothing() {
    let plain = talk().connection();
    assert!(plain.budget.get(Cause::SlowStart) > ms(70), "{plain:?}");
    let segments = talk().segments();
    for late in [us(1_100), ms(7), ms(20)] {
        for ttl in [64, 63] {
            let c = only(&doubled(&segments, late, |s| s.ttl = ttl));
            assert!(c.quality.has(Quality::DUPLICATES), "{late}");
            assert_eq!((c.retransmitted, c.bytes, c.packets), ([0, 0], plain.bytes, plain.packets), "{late}");
            assert_eq!(c.budget, plain.budget, "{late}");
            assert_eq!([0, 1].map(|i| u64::from(c.ends[i].duplicates)), plain.packets);
        }
    }
}

/// Rule 88: frames that their stations sent again, some as soon as they got no answer, some behind all that was queued.
#[test]
fn retries_of_a_link_are_no_retransmissions() {
    let mut w = Wire::new(Tap::Client, ms(40));
    w.handshake();
    w.at(ms(50)).client().data(100);
    w.after(ms(20)).server().write(10 * MSS);
    w.after(ms(20)).client().ack();
    w.after(ms(20)).server().write(30 * MSS);
    w.after(ms(20)).client().ack();
    let segments = w.segments();
    let plain = only(&segments);
    for late in [us(300), us(1_500), ms(9)] {
        let mut all = segments.clone();
        all.iter_mut().for_each(|s| s.trouble = Trouble(Trouble::AIR));
        let again = segments.iter().filter(|s| s.len > 0 && s.frame % 3 == 0);
        all.extend(again.map(|s| Segment {
            time: s.time + late,
            trouble: Trouble(Trouble::AIR | Trouble::RETRY),
            ..*s
        }));
        all.sort_by_key(|s| s.time);
        (1..).zip(&mut all).for_each(|(n, s)| s.frame = n);
        let c = only(&all);
        assert!(c.ends[SERVER].duplicates >= 10, "{late}");
        assert_eq!((c.retransmitted, c.bytes), ([0, 0], plain.bytes), "{late}");
        assert_eq!(c.budget, plain.budget, "{late}");
        // The same without the bit was sent again by TCP.
        all.iter_mut().for_each(|s| s.trouble = Trouble(0));
        assert!(late < ms(1) || only(&all).retransmitted[SERVER] > 0, "{late}");
    }
}

/// Without identifiers (IPv6) the hop limit and the time stamp tell; with neither a repeat may be one.
#[test]
fn late_copies_without_identifiers() {
    let mut segments = talk().segments();
    segments.iter_mut().for_each(|s| s.ip_id = None);
    let plain = only(&segments);
    let c = only(&doubled(&segments, ms(7), |s| s.ttl -= 1));
    assert_eq!((c.retransmitted, c.budget), ([0, 0], plain.budget));
    segments.iter_mut().for_each(|s| s.options.timestamps = None);
    let c = only(&doubled(&segments, ms(7), |s| s.ttl -= 1));
    assert!(c.retransmitted[SERVER] > 0);
}

/// A repeat that reuses the identifier of its original takes the same way: no copy, unless copies come as late.
#[test]
fn a_repeat_with_the_identifier_of_its_original() {
    let mut w = Wire::new(Tap::Client, ms(20));
    w.handshake();
    w.at(ms(30)).client().data(100).lost();
    w.at(ms(250)).client().repeat(0, 100);
    w.after(ms(10)).server().data(50);
    let mut segments = w.segments();
    let original = segments[3];
    (segments[4].ip_id, segments[4].options) = (original.ip_id, original.options);
    let c = only(&segments);
    assert_eq!((c.retransmitted[CLIENT], c.ends[CLIENT].duplicates), (1, 0));
    let c = only(&doubled(&segments, ms(7), |_| {}));
    assert_eq!((c.retransmitted[CLIENT], c.ends[CLIENT].duplicates), (1, 5 - 1));
}

/// What a stack of RFC 1323 echoes: the stamp of the last segment of the peer that took a sequence number.
fn as_of_1323(segments: &mut [Segment], who: u16) {
    let mut recent = 0;
    for s in segments {
        let Some((stamp, echo)) = s.options.timestamps.as_mut() else { continue };
        if s.src.port == who {
            *echo = recent;
        } else if s.len > 0 || s.flags.syn() || s.flags.fin() {
            recent = *stamp;
        }
    }
}

/// Rule 43: three held writes; the first two are what the stack is known by.
#[test]
fn a_stack_that_echoes_no_pure_acks_is_known_by_the_second() {
    let mut w = Wire::new(Tap::Client, ms(4));
    w.handshake();
    for n in 0..3 {
        w.at(ms(30 + 200 * n)).client().data(4);
        w.after(ms(44)).server().ack();
        w.after(ms(2)).client().data(100);
        w.after(ms(2)).server().data(50);
        w.after(ms(2)).client().ack();
    }
    let causes = |segments: &[Segment]| {
        let c = only(segments);
        [0, 1, 2].map(|i| {
            let mut spans = c.exchanges[i].spans.iter().map(|s| s.cause);
            spans.find(|&x| x != Cause::PathDelay)
        })
    };
    let mut segments = w.segments();
    let (held, paused) = (Some(Cause::NagleDelayedAck), Some(Cause::SenderPause));
    assert_eq!(causes(&segments), [held; 3]);
    as_of_1323(&mut segments, 40_000);
    assert_eq!(causes(&segments), [paused, held, held]);
    // One stamp of a pure ACK that was echoed shows another stack: these left before.
    let ack = segments[4].options.timestamps.map_or(0, |t| t.0);
    segments[5].options.timestamps.as_mut().unwrap().1 = ack;
    assert_eq!(causes(&segments), [held, paused, paused]);
}

/// The third ACK so late, then writes into a window of 4 segments.
fn late_handshake(late: Nanos, timestamps: bool) -> Wire {
    let mut w = Wire::new(Tap::Client, ms(4));
    w.timestamps = timestamps;
    w.host[SERVER].window = 4 * MSS;
    w.host[SERVER].wscale = Some(0);
    w.client().syn();
    w.after(ms(2)).server().syn_ack();
    w.after(ms(2) + late).client().ack();
    let start = ms(20) + late;
    for n in 0..6 {
        w.at(start + ms(4 * n)).client().write(4 * MSS);
        w.after(ms(2)).server().ack();
    }
    w.after(ms(2)).client().write(100);
    w.after(ms(2)).server().data(50);
    w.after(ms(2)).client().ack();
    w
}

/// Rule 44: the reaction of the handshake's third ACK is no limit; stamps prove a sooner one at once, the window's edge
/// where two updates agree.
#[test]
fn data_beyond_the_window_proves_a_reaction() {
    for (timestamps, waits) in [(true, 6), (false, 4)] {
        let c = late_handshake(ms(50), timestamps).connection();
        let window = c.budget.get(Cause::ReceiveWindow);
        assert!(window >= ms(4 * waits) - ms(1), "{timestamps}: {window}\n{}", tell(&c, c.start));
        assert!(c.path.rtt.is_some_and(|rtt| rtt < ms(5)), "{:?}", c.path.rtt);
    }
}

/// A file that holds the packets once more behind themselves, with the times that they had (rule 64): none is
/// older than what it repeats.
#[test]
fn a_file_that_goes_back_repeats_nothing() {
    let mut w = talk();
    for n in 0..12 {
        w.at(ms(1_000 + 50 * n)).client().data(300);
        w.after(ms(20)).server().data(900);
    }
    let once = w.segments();
    let plain = only(&once);
    let again = |moved: Nanos| {
        let mut all = once.clone();
        all.extend(once.iter().map(|s| Segment { time: s.time + moved, ..*s }));
        (1..).zip(&mut all).for_each(|(n, s)| s.frame = n);
        let c = only(&all);
        (c.retransmitted, c.budget == plain.budget, c.ends.map(|e| u64::from(e.duplicates)) == plain.packets)
    };
    assert_eq!(again(Nanos::ZERO), ([0, 0], true, true));
    // Stamped after all that passed, data is sent again.
    assert!(again(ms(5_000)).0[SERVER] > 0);
}

/// Copies of another hop are known however many packets pass before them (rule 42): the first that comes
/// another way says that there are any.
#[test]
fn copies_behind_many_packets() {
    let mut w = Wire::new(Tap::Client, ms(2));
    w.handshake();
    for n in 0..200 {
        w.at(ms(10) + us(500 * n)).client().data(100);
        w.after(us(100)).server().data(100);
    }
    w.after(ms(1)).client().ack();
    let segments = w.segments();
    let c = only(&doubled(&segments, ms(20), |s| s.ttl -= 1));
    // Of the first 20 ms most are gone by then; they are older than what had passed, by their stamps, but for
    // those of the same tick.
    assert!(c.retransmitted[SERVER] <= 2, "{:?}", c.retransmitted);
    assert!(c.ends[SERVER].duplicates >= 199, "{}", c.ends[SERVER].duplicates);
    // From the other end, with the same TTL: the SYN tells.
    let plain = only(&segments);
    for late in [ms(3), ms(20)] {
        let c = only(&doubled(&segments, late, |_| {}));
        assert_eq!((c.retransmitted, c.bytes, c.packets), ([0, 0], plain.bytes, plain.packets), "{late}");
        assert_eq!(c.budget, plain.budget, "{late}");
    }
}
