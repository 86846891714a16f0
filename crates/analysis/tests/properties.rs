//! What must hold for every capture, a sane one and garbage: time and bytes are accounted for to the last, and the
//! answer depends neither on how the packets were dealt out, nor on where sequence numbers and clocks began.
//!
//! Traces are drawn from a fixed seed; `RANDOM_SEEDS=1` draws others each time. A failure prints the seed and the smallest trace
//! that was found; set `PROPTEST_RNG_SEED` to that seed to see it again, `PROPTEST_CASES` to try more.

mod accounted;
mod golden;
mod wire;

use accounted::budget;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use tcpwhy_analysis::{Analysis, Analyzer, Config, Connection, Detail, Exchange, Finding, Gap};
use tcpwhy_base::{Cause, Endpoint, Nanos, Segment, Seq, TcpFlags, TcpOptions, Tls, Trouble};
use wire::told::packets;
use wire::{CLIENT, Tap, Wire, analyze, tell, us};

/// So many traces (or `PROPTEST_CASES`), from a seed that is printed.
fn cases(usual: u32) -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|s| s.parse().ok()).unwrap_or(usual);
    let seed = golden::seed_of("PROPTEST_RNG_SEED");
    println!("PROPTEST_RNG_SEED={seed}");
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    }
}

/// What one end does: which end, what, how much, after how many microseconds, what happens to it.
type Deed = (bool, u8, u32, u32, u8);

/// A connection: tap, round trip (µs), sequence numbers, options, deeds, start (µs).
type Script = (u8, u32, [u32; 2], u8, Vec<Deed>, u32);

fn deed() -> impl Strategy<Value = Deed> {
    let wait = prop_oneof![4 => 0..200u32, 4 => 1_000..60_000u32, 1 => 200_000..3_000_000u32];
    let much = prop_oneof![3 => 1..3_000u32, 2 => Just(1_448u32), 1 => 1..70_000u32];
    (any::<bool>(), 0..20u8, much, wait, 0..24u8)
}

fn script() -> impl Strategy<Value = Script> {
    let isn = prop_oneof![Just(1_000u32), any::<u32>(), Just(u32::MAX - 2_000)];
    (0..3u8, 20..120_000u32, [isn.clone(), isn], any::<u8>(), vec(deed(), 0..60), 0..2_000_000u32)
}

/// Plays a script; connection `n` has a port of its own.
fn play(n: usize, script: &Script) -> Vec<Segment> {
    let (tap, rtt, isn, options, deeds, start) = script;
    let tap = [Tap::Client, Tap::Middle, Tap::Server][usize::from(*tap)];
    let mut w = Wire::new(tap, us(i64::from(*rtt)));
    w.timestamps = options & 1 == 0;
    for (host, &isn) in w.host.iter_mut().zip(isn) {
        host.isn = Seq(isn);
        host.nxt = Seq(isn);
        host.wscale = (options & 2 == 0).then_some(7);
        if options & 4 != 0 {
            host.window = 4_344;
        }
    }
    w.host[CLIENT].end.port += n as u16;
    if options & 8 == 0 {
        // Both ends know of it before they speak.
        let way = w.rtt.part(2);
        w.handshake().after(way);
    }
    for &(client, what, much, wait, fate) in deeds {
        w.after(us(i64::from(wait)));
        let act = w.end(usize::from(!client));
        let packet = match what {
            0..6 => act.data(much),
            6..8 => {
                act.write(much);
                continue;
            }
            8..13 => act.ack(),
            13 => act.window(0).ack(),
            14 => act.window(much).ack(),
            15 => act.repeat(much.wrapping_mul(7) % 5_000, 1 + much % 1_448),
            16 => act.probe(),
            17 if much % 8 == 0 => act.fin(),
            18 if much % 8 == 0 => act.rst(),
            19 => act.data(much).tls((much % 16) as u8),
            _ => act.data(1),
        };
        match fate {
            0 => packet.lost(),
            1 => packet.lost_before_tap(),
            2 => packet.unseen(),
            3 => packet.late(us(i64::from(much))),
            4 => packet.copied(us(300)),
            _ => packet,
        };
    }
    let start = us(i64::from(*start));
    w.segments().into_iter().map(|s| Segment { time: s.time + start, ..s }).collect()
}

/// The packets of several connections as one tap sees them.
fn capture(scripts: &[Script]) -> Vec<Segment> {
    let mut all: Vec<Segment> = scripts.iter().enumerate().flat_map(|(n, s)| play(n, s)).collect();
    all.sort_by_key(|s| s.time);
    number(&mut all);
    all
}

fn number(segments: &mut [Segment]) {
    for (i, segment) in segments.iter_mut().enumerate() {
        segment.frame = i as u64 + 1;
    }
}

/// A capture that a failed test prints a line a packet.
#[derive(Clone)]
struct Trace(Vec<Segment>);

impl std::fmt::Debug for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\n{}", packets(&self.0))
    }
}

/// Packets that no TCP would send.
fn garbage(syns: bool) -> impl Strategy<Value = Trace> {
    let near = || prop_oneof![3 => 0..20_000u32, 1 => any::<u32>(), 1 => (u32::MAX - 5_000)..u32::MAX];
    let len = prop_oneof![3 => Just(0u32), 3 => 1..1_500u32, 1 => 0..70_000u32];
    let step = prop_oneof![4 => 0..2_000i64, 3 => 0..300_000i64, 1 => -5_000..0i64, 1 => 0..1_900_000i64];
    // No data on a SYN, and a SYN-ACK from the end that did not send the SYN.
    let flags = prop_oneof![4 => Just(0x10u16), 2 => Just(0x18u16), 1 => Just(2u16), 1 => Just(0x12u16), 2 => 0..512u16];
    let odd = (any::<u8>(), any::<u16>(), any::<u32>(), 0..5u8, near());
    let packet = (step, 0..3u16, any::<bool>(), near(), near(), flags, len, odd);
    vec(packet, 1..120).prop_map(move |packets| {
        let mut time = Nanos::secs(1_700_000_000);
        let mut segments: Vec<Segment> = packets
            .into_iter()
            .map(|(step, port, back, seq, ack, flags, len, (bits, word, stamp, blocks, sack))| {
                time += us(step);
                let mut ends = ends(port);
                let flags = if syns { flags } else { flags & !TcpFlags::SYN };
                let syn = flags & TcpFlags::SYN != 0;
                let back = if syn { flags & TcpFlags::ACK != 0 } else { back };
                if back {
                    ends.reverse();
                }
                let mut options = TcpOptions {
                    timestamps: (bits & 1 != 0).then_some((stamp, stamp.rotate_left(7))),
                    mss: (bits & 2 != 0).then_some(word),
                    wscale: (bits & 4 != 0).then_some(bits),
                    sack_len: blocks.min(4),
                    order: stamp,
                    damaged: bits & 8 != 0,
                    ..TcpOptions::default()
                };
                for (i, block) in options.sack[..usize::from(blocks.min(4))].iter_mut().enumerate() {
                    *block = (Seq(sack) + 100 * i as u32, Seq(sack) + 100 * i as u32 + (stamp & 0xff));
                }
                Segment {
                    time,
                    src: ends[0],
                    dst: ends[1],
                    link: u32::from(bits == 77),
                    seq: Seq(seq),
                    ack: Seq(ack),
                    flags: TcpFlags(flags),
                    window: word,
                    len: if syn { 0 } else { len },
                    ip_id: (bits & 16 != 0).then_some(word & 0xff),
                    ttl: bits,
                    options,
                    head_len: bits & 7,
                    tls: Tls(if bits & 0x60 == 0 { bits & 15 } else { 0 }),
                    trouble: Trouble(if bits & 0x90 == 0x90 { bits & 63 } else { 0 }),
                    ..Segment::EMPTY
                }
            })
            .collect();
        number(&mut segments);
        Trace(segments)
    })
}

fn ends(port: u16) -> [Endpoint; 2] {
    let end = |last: u8, port| Endpoint { ip: std::net::Ipv4Addr::new(10, 0, 0, last).into(), port };
    [end(1, 40_000 + port), end(2, 443)]
}

fn with(detail: Detail, segments: &[Segment]) -> Analysis {
    let mut analyzer = Analyzer::new(Config { detail });
    analyzer.push_all(segments);
    analyzer.finish()
}

/// All that an answer says.
fn said(analysis: &Analysis) -> String {
    let Analysis { connections, findings, totals, .. } = analysis;
    format!("{connections:?}\n{findings:?}\n{totals:?}")
}

/// Everything that must hold of an answer with all detail.
fn accounted_for(analysis: &Analysis) -> Result<(), TestCaseError> {
    accounted::accounted_for(analysis).map_err(TestCaseError::fail)
}

/// The same answer, however the packets are handed over.
fn same_however_dealt(segments: &[Segment], chunks: &[usize]) -> Result<(), TestCaseError> {
    let one = format!("{:?}", analyze(segments));
    let all = || Analyzer::new(Config { detail: Detail::All });
    for (mut analyzer, how) in [(all(), "push_all"), (all().crowded_from(0).rests_soon(), "soon at rest")] {
        let (mut rest, mut sizes) = (segments, chunks.iter().cycle());
        while let (false, Some(&size)) = (rest.is_empty(), sizes.next()) {
            let (chunk, later) = rest.split_at(size.min(rest.len()));
            analyzer.push_all(chunk);
            rest = later;
        }
        prop_assert_eq!(&format!("{:?}", analyzer.finish()), &one, "{}", how);
    }
    for crowd in [0, 2, usize::MAX] {
        let mut waiting = all().crowded_from(crowd);
        waiting.push_all(segments);
        prop_assert_eq!(&format!("{:?}", waiting.finish()), &one, "packets wait from {} on", crowd);
    }
    // What is told of plain packets and exchanges in fewer steps is what all steps tell.
    for detail in [Detail::All, Detail::Worst(chunks.len() % 4), Detail::None] {
        let mut long_way = Analyzer::new(Config { detail }).by_the_long_way();
        long_way.push_all(segments);
        prop_assert_eq!(format!("{:?}", long_way.finish()), format!("{:?}", with(detail, segments)));
    }
    let mut resting = all().rests_always();
    segments.iter().for_each(|segment| resting.push(segment));
    prop_assert_eq!(&format!("{:?}", resting.finish()), &one, "at rest");
    for n in 1..=3 {
        let mut shards: Vec<Analyzer> = (0..n).map(|_| all()).collect();
        for segment in segments {
            shards[Analyzer::share(segment, n)].push(segment);
        }
        let told = |a: Analysis| {
            [format!("{:?}", a.connections), format!("{:?}", a.totals), format!("{:?}", a.findings)]
        };
        prop_assert_eq!(told(Analyzer::finish_all(shards)), told(analyze(segments)), "{} analyzers", n);
    }
    let mut whole = Analyzer::new(Config { detail: Detail::All }).never_narrowed();
    whole.push_all(segments);
    prop_assert_eq!(said(&whole.finish()), said(&analyze(segments)), "never narrowed");
    same_as_they_end(segments, chunks)
}

/// Connections that are taken as they end are those that come at the end.
fn same_as_they_end(segments: &[Segment], chunks: &[usize]) -> Result<(), TestCaseError> {
    let mut analyzer = Analyzer::streaming(Config { detail: Detail::All }).crowded_from(chunks.len() % 3);
    let (mut rest, mut sizes, mut ended) = (segments, chunks.iter().cycle(), Vec::new());
    while !rest.is_empty() {
        let (now, later) = rest.split_at((*sizes.next().unwrap_or(&1)).clamp(1, rest.len()));
        analyzer.push_all(now);
        ended.extend(analyzer.ended().map(|c| *c));
        rest = later;
    }
    analyzer.end_all();
    ended.extend(analyzer.ended().map(|c| *c));
    ended.sort_by_key(|c| c.id);
    let (findings, totals) = analyzer.finish_stream();
    let mut whole = analyze(segments);
    // Who lets connections go cannot look at the round trips of all of them (rule 120).
    let doubted = |f: &Finding| f.cause == Cause::PathDelay && f.text.is_some();
    for (f, as_they_end) in whole.findings.iter_mut().zip(&findings).filter(|(f, _)| doubted(f)) {
        (f.text, f.confidence, f.unsure) = (None, as_they_end.confidence, as_they_end.unsure);
    }
    let listed = format!("{:?} {:?}", whole.connections, whole.totals);
    prop_assert_eq!(format!("{ended:?} {totals:?}"), listed, "as they end");
    prop_assert_eq!(format!("{:?}", findings), format!("{:?}", whole.findings), "findings as they end");
    prop_assert!(
        whole.findings.is_sorted_by_key(|f| std::cmp::Reverse(f.lost)),
        "findings stand worst first"
    );
    Ok(())
}

/// What a reader sees, with times from `zero`.
fn seen(analysis: &Analysis, zero: Nanos) -> String {
    let of = |c: &Connection| {
        let figures = (c.bytes, c.packets, c.retransmitted, c.quality, &c.budget, &c.gap_budget, c.vantage);
        format!("{} {:?} {:?}\n{}", c.id, figures, c.path, tell(c, zero))
    };
    analysis.connections.iter().map(|c| of(c)).collect()
}

/// The same answer, wherever sequence numbers began.
fn same_after_the_wrap(segments: &[Segment], by: [u32; 2]) -> Result<(), TestCaseError> {
    let moved: Vec<Segment> = segments
        .iter()
        .map(|s| {
            let mut moved = *s;
            let from = usize::from(s.src > s.dst);
            moved.seq = s.seq + by[from];
            moved.ack = s.ack + by[1 - from];
            for block in &mut moved.options.sack {
                *block = (block.0 + by[1 - from], block.1 + by[1 - from]);
            }
            moved
        })
        .collect();
    prop_assert_eq!(format!("{:?}", analyze(&moved)), format!("{:?}", analyze(segments)));
    Ok(())
}

/// The same answer, whatever the clock said.
fn same_at_another_time(segments: &[Segment], by: Nanos) -> Result<(), TestCaseError> {
    let moved: Vec<Segment> = segments.iter().map(|s| Segment { time: s.time + by, ..*s }).collect();
    let zero = segments.first().map_or(Nanos::ZERO, |s| s.time);
    prop_assert_eq!(seen(&analyze(&moved), zero + by), seen(&analyze(segments), zero));
    Ok(())
}

/// What is kept in detail and what is only summed make the whole, and the longest are kept.
fn detail_and_sums_make_the_whole(segments: &[Segment], n: usize) -> Result<(), TestCaseError> {
    let all = analyze(segments);
    for (detail, limit) in [(Detail::Worst(n), n), (Detail::None, 0)] {
        let part = with(detail, segments);
        prop_assert_eq!(part.connections.len(), all.connections.len());
        prop_assert_eq!(&part.totals.budget, &all.totals.budget);
        prop_assert_eq!(part.totals.exchanges, all.totals.exchanges);
        let (mut longest, mut kept) = (Vec::new(), Vec::new());
        let (mut longest_gaps, mut kept_gaps) = (Vec::new(), Vec::new());
        for (p, a) in part.connections.iter().zip(&all.connections) {
            sums_make_the_whole(p, a)?;
            longest.extend(a.exchanges.iter().map(|e| e.end - e.start));
            kept.extend(p.exchanges.iter().map(|e| e.end - e.start));
            longest_gaps.extend(a.gaps.iter().map(|g| g.end - g.start));
            kept_gaps.extend(p.gaps.iter().map(|g| g.end - g.start));
        }
        for (longest, kept) in [(&mut longest, &mut kept), (&mut longest_gaps, &mut kept_gaps)] {
            longest.sort_unstable_by_key(|&d| std::cmp::Reverse(d));
            longest.truncate(limit);
            kept.sort_unstable_by_key(|&d| std::cmp::Reverse(d));
            prop_assert_eq!(kept, longest);
        }
    }
    Ok(())
}

fn sums_make_the_whole(p: &Connection, a: &Connection) -> Result<(), TestCaseError> {
    prop_assert_eq!(&p.budget, &a.budget);
    prop_assert_eq!(&p.gap_budget, &a.gap_budget);
    prop_assert_eq!(format!("{:?}", p.setup), format!("{:?}", a.setup));
    let (omitted, gaps) = (&p.exchanges_omitted, &p.gaps_omitted);
    prop_assert_eq!(omitted.count as usize + p.exchanges.len(), a.exchanges.len());
    prop_assert_eq!(gaps.count as usize + p.gaps.len(), a.gaps.len());
    let length = |e: &[Exchange]| e.iter().fold(Nanos::ZERO, |t, e| t + (e.end - e.start));
    let gap_length = |g: &[Gap]| g.iter().fold(Nanos::ZERO, |t, g| t + (g.end - g.start));
    prop_assert_eq!(omitted.duration + length(&p.exchanges), length(&a.exchanges));
    prop_assert_eq!(gaps.duration + gap_length(&p.gaps), gap_length(&a.gaps));
    let mut whole = omitted.budget.clone();
    let setup = p.setup.iter().flat_map(|s| &s.spans);
    whole.add_all(&budget(setup.chain(p.exchanges.iter().flat_map(|e| &e.spans))));
    prop_assert_eq!(&whole, &a.budget);
    let mut whole = gaps.budget.clone();
    whole.add_all(&budget(p.gaps.iter().flat_map(|g| &g.spans)));
    prop_assert_eq!(&whole, &a.gap_budget);
    for side in 0..2 {
        let kept: u64 = p.exchanges.iter().map(|e| e.bytes[side]).sum();
        let all: u64 = a.exchanges.iter().map(|e| e.bytes[side]).sum();
        prop_assert_eq!(kept + omitted.bytes[side], all);
    }
    // What is kept is what it is with all detail.
    for e in &p.exchanges {
        let same = a.exchanges.iter().find(|x| x.id == e.id);
        prop_assert_eq!(format!("{:?}", Some(e)), format!("{same:?}"));
    }
    Ok(())
}

/// Packets as TCP would send them, of a few connections.
fn sane() -> impl Strategy<Value = Trace> {
    vec(script(), 1..5).prop_map(|scripts| Trace(capture(&scripts)))
}

/// Either kind.
fn any_capture() -> impl Strategy<Value = Trace> {
    prop_oneof![sane(), garbage(false), garbage(true)]
}

#[test]
fn time_and_bytes_of_sane_captures_are_accounted_for() {
    proptest!(cases(2_000), |(trace in sane())| {
        accounted_for(&analyze(&trace.0))?;
    });
}

#[test]
fn time_and_bytes_of_garbage_are_accounted_for() {
    proptest!(cases(2_000), |(trace in garbage(false))| {
        accounted_for(&analyze(&trace.0))?;
    });
}

#[test]
fn the_answer_does_not_depend_on_how_packets_are_dealt() {
    proptest!(cases(1_000), |(mut trace in any_capture(), chunks in vec(1..40usize, 1..8))| {
        // On one link: which links belong together is learnt from all the traffic that an analyzer sees.
        trace.0.iter_mut().for_each(|s| s.link = 0);
        same_however_dealt(&trace.0, &chunks)?;
    });
}

#[test]
fn the_answer_does_not_depend_on_where_sequence_numbers_begin() {
    proptest!(cases(1_000), |(trace in prop_oneof![sane(), garbage(false)], by in any::<[u32; 2]>())| {
        same_after_the_wrap(&trace.0, by)?;
    });
}

/// When (µs), from the server, sequence number, payload, acknowledgement number, identifier, stamp.
type Heard = (i64, bool, u32, u32, u32, u16, Option<(u32, u32)>);

fn mid_stream(packets: &[Heard], window: u16) -> Vec<Segment> {
    let mut segments: Vec<Segment> = packets
        .iter()
        .map(|&(micros, back, seq, len, ack, id, timestamps)| {
            let mut ends = ends(0);
            if back {
                ends.reverse();
            }
            Segment {
                time: Nanos::secs(1_700_000_000) + us(micros),
                src: ends[0],
                dst: ends[1],
                seq: Seq(seq),
                ack: Seq(ack),
                flags: TcpFlags(if len > 0 { 0x18 } else { TcpFlags::ACK }),
                window,
                len,
                ip_id: Some(id),
                options: TcpOptions { timestamps, ..TcpOptions::default() },
                ..Segment::EMPTY
            }
        })
        .collect();
    number(&mut segments);
    segments
}

/// An edge of the window that was never seen is not one at number 0 (rule 59).
#[test]
fn an_edge_that_was_never_seen_is_nowhere() {
    let stamp = Some((7_000, 0));
    let trace = mid_stream(
        &[
            (0, false, 1_001, 1_449, 0, 102, stamp),
            (129, false, 1_000, 1, 0, 101, stamp),
            (300, false, 1_001, 1_449, 0, 102, stamp),
            (25_373, true, 1_000, 1, 0, 201, stamp),
            (25_374, true, 1_001, 1, 0, 202, stamp),
        ],
        500,
    );
    for by in [1_000, 2_147_482_649, u32::MAX - 1_500] {
        same_after_the_wrap(&trace, [by, 0]).unwrap();
    }
}

/// Nothing left together with the first segment of a flight: that is no end at number 0 (rule 82).
#[test]
fn what_left_together_ends_nowhere_before_anything_did() {
    let trace = mid_stream(
        &[
            (0, false, 1_000, 1, 0, 101, None),
            (0, true, 1_000, 1, 1_001, 201, None),
            (1, true, 1_001, 1, 1_001, 202, None),
            (29_603, true, 1_002, 0, 1_001, 203, None),
            (29_998, true, 1_002, 223, 1_001, 204, None),
            (33_373, true, 1_225, 1_460, 1_001, 205, None),
            (33_373, true, 2_685, 1_237, 1_001, 206, None),
            (40_679, false, 1_001, 1, 1_002, 102, None),
            (47_945, false, 1_002, 1, 1_225, 103, None),
            (47_945, true, 4_145, 1, 1_003, 209, None),
            (55_251, false, 1_003, 1, 3_922, 104, None),
        ],
        33,
    );
    for by in [1_000, 2_147_482_424, u32::MAX - 1_500] {
        same_after_the_wrap(&trace, [0, by]).unwrap();
    }
}

#[test]
fn the_answer_moves_with_the_clock() {
    proptest!(cases(1_000), |(trace in any_capture(), by in -1_000_000_000_000_000i64..1_000_000_000_000_000)| {
        same_at_another_time(&trace.0, Nanos(by))?;
    });
}

#[test]
fn detail_and_sums_make_all() {
    proptest!(cases(1_000), |(trace in any_capture(), n in 1..12usize)| {
        detail_and_sums_make_the_whole(&trace.0, n)?;
    });
}
