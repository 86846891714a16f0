use super::*;
use proptest::prelude::*;
use tcpwhy_base::{End, Endpoint, Ends, Nanos, Program, Seq, TcpOptions, Tls, Trouble};

fn ends() -> Ends<Endpoint> {
    let end = |last: u8| Endpoint { ip: [192, 0, 2, last].into(), port: 40_000 };
    Ends::new(end(1), end(2))
}

/// Packs them one after the other, in rooms of so many bytes, and says how many each took.
fn packed(segments: &[(End, Segment)], file: u16) -> (Vec<u8>, Vec<usize>) {
    let mut head = Head { file, ..Head::NEW };
    let (mut bytes, mut took, mut latest) = (Vec::new(), Vec::new(), BEFORE_ALL);
    for (s, segment) in segments {
        let mut free = [0xa5; 128];
        let n = take(&mut head, &mut free, latest, segment, *s == End::Client);
        latest = latest.max(segment.time);
        bytes.extend_from_slice(&free[..n]);
        took.push(n);
    }
    (bytes, took)
}

/// What comes out is what went in, in the same order.
fn come_back(segments: &[(End, Segment)], file: u16) -> Vec<usize> {
    let (mut bytes, took) = packed(segments, file);
    // What stands behind them is not looked at.
    bytes.extend([0x5a; 128]);
    let (mut unpacked, mut at) = (Unpacked::of(&ends(), 77, file), 0);
    for ((s, segment), n) in segments.iter().zip(&took) {
        assert_eq!(unpacked.next(&bytes[at..]), Some((*s, *n)), "{segment:?}");
        let segment = Segment { src: ends()[*s], dst: ends()[s.peer()], link: 77, checksum: 0, ..*segment };
        assert_eq!(format!("{:?}", unpacked.segment(*s)), format!("{segment:?}"));
        at += n;
    }
    took
}

/// A plain packet of a connection that goes on.
fn plain() -> Segment {
    let flags = TcpFlags(TcpFlags::ACK | TcpFlags::PSH);
    let options = TcpOptions { timestamps: Some((7_000, u32::MAX)), ..TcpOptions::default() };
    Segment {
        time: Nanos(-5),
        frame: 7,
        file: 5,
        seq: Seq(u32::MAX - 3),
        ack: Seq(3),
        flags,
        window: 65_535,
        len: 100,
        ip_id: Some(0),
        ttl: 255,
        options,
        ..Segment::EMPTY
    }
}

/// The one behind it.
fn next(before: &Segment) -> Segment {
    let ip_id = before.ip_id.map(|id| id.wrapping_add(u16::from(id != 0)));
    Segment { frame: before.frame + 1, seq: Seq(end_of(before)), ip_id, ..*before }
}

#[test]
fn packets_come_back_whole() {
    let first = plain();
    let go = next(&first);
    let stamps = |value: u32, echo: u32| TcpOptions { timestamps: Some((value, echo)), ..go.options };
    let syn_options = TcpOptions {
        mss: Some(0),
        wscale: Some(14),
        sack_permitted: true,
        order: 0x4321_0fed,
        ..TcpOptions::default()
    };
    let syn = TcpFlags(TcpFlags::SYN | TcpFlags::ACK);
    // How many bytes each takes behind one of the same end.
    let cases = [
        (go, 11),
        (Segment { ip_id: Some(9), ..go }, 12),
        (Segment { ip_id: Some(0x900), ..go }, 13),
        (Segment { ip_id: None, ..go }, 11),
        (Segment { ack: Seq(4), ..go }, 14),
        (Segment { ack: Seq(0x1_0002), ..go }, 15),
        (Segment { ack: Seq(0x1_0003), ..go }, 19),
        (Segment { ack: Seq(2), ..go }, 15 + 8),
        (Segment { window: 0, ..go }, 17),
        (Segment { len: 0, ..go }, 11),
        (Segment { len: 101, ..go }, 18),
        (Segment { len: 65_535, ..go }, 19),
        (Segment { len: 65_536, ..go }, 18 + 8),
        (Segment { len: u32::MAX, ..go }, 19 + 8),
        (Segment { frame: 7 + 65_535, ..go }, 11),
        (Segment { frame: 7 + 65_536, ..go }, 11 + 8),
        (Segment { frame: 7 + u64::from(u32::MAX), ..go }, 11 + 8),
        (Segment { frame: 8 + u64::from(u32::MAX), ..go }, 11 + 8 + 32 + 24),
        (Segment { frame: 6, ..go }, 11 + 8 + 32 + 24),
        (Segment { time: Nanos(first.time.0 + i64::from(u32::MAX)), ..go }, 11),
        (Segment { time: Nanos(first.time.0 + (1 << 32)), ..go }, 11 + 32),
        (Segment { time: Nanos(first.time.0 - 1), ..go }, 11 + 32),
        (Segment { options: stamps(7_000 + 65_535, u32::MAX), ..go }, 11),
        (Segment { options: stamps(7_000 + 65_536, u32::MAX), ..go }, 11 + 32),
        (Segment { options: stamps(6_999, u32::MAX), ..go }, 11 + 32),
        (Segment { options: stamps(7_000, 126), ..go }, 11),
        (Segment { options: stamps(7_000, 127), ..go }, 11 + 8),
        (Segment { options: stamps(7_000, 4_000_000), ..go }, 11 + 8),
        (Segment { options: stamps(7_000, 5_000_000), ..go }, 11 + 32),
        (Segment { options: stamps(7_000, u32::MAX - 128), ..go }, 11),
        (Segment { options: stamps(7_000, u32::MAX - 129), ..go }, 11 + 8),
        (Segment { options: stamps(7_000, u32::MAX - 4_000_000), ..go }, 11 + 8),
        (Segment { options: stamps(7_000, u32::MAX - 5_000_000), ..go }, 11 + 32),
        (Segment { options: TcpOptions::default(), ..go }, 11 + 32),
        (Segment { flags: TcpFlags(TcpFlags::FIN), ..go }, 11),
        (Segment { trouble: Trouble(Trouble::CUT_PAYLOAD), ..go }, 11),
        (Segment { trouble: Trouble(Trouble::CUT_PAYLOAD | Trouble::AIR), ..go }, 11 + 32),
        (Segment { flags: TcpFlags(TcpFlags::ACK | TcpFlags::CWR | TcpFlags::ECE), ..go }, 11 + 32),
        (Segment { flags: TcpFlags(TcpFlags::RST), ..go }, 11 + 32),
        (Segment { seq: first.seq, ..go }, 11 + 32),
        (Segment { ttl: 254, ..go }, 11 + 32),
        (Segment { head_len: 1, head: [9, 0, 0, 0, 0, 0, 0, 0], ..go }, 11 + 32),
        (Segment { head_len: 8, head: [1, 2, 3, 4, 5, 6, 7, 8], tls: Tls(Tls::DATA), ..go }, 11 + 32),
        (Segment { tls: Tls(255), ..go }, 11 + 32),
        (Segment { file: 6, ..go }, 11 + 32 + 24),
        (Segment { program: Some(Program::Rust), ..go }, 11 + 32 + 24),
        (Segment { options: TcpOptions { damaged: true, ..go.options }, ..go }, 11 + 32 + 24),
        (Segment { flags: syn, options: syn_options, len: 0, ..go }, 11 + 32 + 24),
        (
            Segment {
                flags: syn,
                options: TcpOptions { mss: None, wscale: None, order: 0, ..syn_options },
                ..go
            },
            11 + 32 + 24,
        ),
        // Options and first bytes of payload.
        (Segment { options: syn_options, head_len: 8, head: [8; 8], ..go }, 11 + 32 + 24),
    ];
    for ((segment, bytes), s) in cases.iter().flat_map(|case| End::BOTH.map(|s| (case, s))) {
        let took = come_back(&[(s, first), (s, *segment)], 5);
        assert_eq!(took[1], *bytes, "{segment:?}");
        // Between others of either end: nothing is left behind.
        let (behind, peer) = (next(segment), Segment { frame: segment.frame.wrapping_add(9), ..first });
        let again = [(s, behind), (s.peer(), peer), (s.peer(), next(&peer)), (s, next(&behind)), (s, first)];
        come_back(&[&[(s.peer(), first), (s, first), (s, *segment)], again.as_slice()].concat(), 5);
    }
}

/// What an answer to a SYN has is expected.
#[test]
fn a_handshake_takes_little_more_than_its_options() {
    let flags = |flags| TcpFlags(flags);
    let syn = |value, echo| TcpOptions {
        mss: Some(1_460),
        order: 1,
        timestamps: Some((value, echo)),
        ..TcpOptions::default()
    };
    let first = Segment { flags: flags(TcpFlags::SYN), options: syn(90_000_000, 0), ..plain() };
    let first = Segment { seq: Seq(4_000_000_000), ack: Seq(0), len: 0, ..first };
    let answer = Segment {
        flags: flags(TcpFlags::SYN | TcpFlags::ACK),
        options: syn(80_000_000, 90_000_000),
        ..first
    };
    let answer = Segment { seq: Seq(3_900_000_000), ack: Seq(4_000_000_001), frame: 8, ..answer };
    let options = TcpOptions { timestamps: Some((90_000_020, 80_000_000)), ..TcpOptions::default() };
    let ack = Segment {
        flags: flags(TcpFlags::ACK),
        seq: Seq(4_000_000_001),
        ack: Seq(3_900_000_001),
        options,
        ..first
    };
    let ack = Segment { frame: 9, ..ack };
    let took = come_back(&[(End::Client, first), (End::Server, answer), (End::Client, ack)], 5);
    assert_eq!(took, [17 + 32 + 24, 17 + 32 + 24, 11]);
}

#[test]
fn what_decides_or_has_more_does_not_wait() {
    let with = |change: fn(&mut Segment)| {
        let mut segment = Segment::EMPTY;
        change(&mut segment);
        let waits = take(&mut { Head::NEW }, &mut [0; 128], BEFORE_ALL, &segment, true) > 0;
        (waits, decides_nothing(&segment))
    };
    assert_eq!(with(|s| s.len = 1), (true, true));
    assert_eq!(with(|s| s.flags = TcpFlags(TcpFlags::SYN)), (true, false));
    assert_eq!(with(|s| s.flags = TcpFlags(TcpFlags::FIN | TcpFlags::ACK)), (true, false));
    assert_eq!(with(|s| s.flags = TcpFlags(TcpFlags::RST)), (true, false));
    assert_eq!(with(|s| s.options.sack_len = 1), (false, true));
}

/// Where there is less room than is written none is taken, and nothing of it is left behind.
#[test]
fn nothing_is_taken_where_there_is_no_room() {
    let first = plain();
    for len in 0..128 {
        let mut head = Head { file: 5, ..Head::NEW };
        assert!(take(&mut head, &mut [0; 128], BEFORE_ALL, &first, true) > 0);
        let goes_on = format!("{head:?}");
        for segment in [next(&first), Segment { ttl: 1, ..next(&first) }] {
            let (mut free, mut head) = (vec![0; len], head);
            if take(&mut head, &mut free, first.time, &segment, true) == 0 {
                assert_eq!(
                    (format!("{head:?}"), free.iter().max().copied().unwrap_or_default()),
                    (goes_on.clone(), 0)
                );
            }
        }
    }
}

prop_compose! {
    /// Values as they are in captures, as they are at their limits, and any.
    fn drawn()(
        s in prop::bool::ANY,
        (time, frame) in (prop_oneof![0..2_000_000_i64, -5..5_i64, 0..1_i64 << 40], prop_oneof![1..9_u64, 0..1_u64 << 40]),
        (seq, ack) in (prop_oneof![Just(None), any::<u32>().prop_map(Some)], prop_oneof![0..3_000_u32, any::<u32>()]),
        (len, window) in (prop_oneof![Just(0), Just(1_448), 0..200_000_u32], prop_oneof![Just(512), any::<u16>()]),
        (ip_id, ttl) in (prop_oneof![Just(None), Just(Some(0)), any::<u16>().prop_map(Some)], prop_oneof![20 => Just(64), 1 => any::<u8>()]),
        (value, echo) in (prop_oneof![0..9_u32, any::<u32>()], prop_oneof![0..9_u32, 0..1_u32 << 24, any::<u32>()]),
        stamps in prop::bool::weighted(0.9),
        flags in prop_oneof![10 => Just(16_u16), 1 => 0..512_u16],
        (head, head_len, tls) in prop_oneof![9 => Just((0, 0, 0)), 1 => (any::<u64>(), 0..9_u8, any::<u8>())],
        trouble in prop_oneof![9 => Just(0_u8), 1 => 0..64_u8],
        rare in prop_oneof![9 => Just(None), 1 => (any::<u32>(), any::<Option<u16>>(), any::<Option<u8>>(), any::<(bool, bool)>(), 0..9_u16, 0..4_usize).prop_map(Some)],
    ) -> (End, Option<u32>, Segment) {
        let (order, mss, wscale, (sack_permitted, damaged), file, program) =
            rare.unwrap_or((0, None, None, (false, false), 5, usize::MAX));
        let timestamps = stamps.then_some((value, echo));
        let options = TcpOptions { order, mss, wscale, sack_permitted, damaged, timestamps, ..TcpOptions::default() };
        let segment = Segment {
            time: Nanos(time),
            frame,
            file,
            seq: Seq(seq.unwrap_or_default()),
            ack: Seq(ack),
            flags: TcpFlags(flags),
            window,
            len,
            ip_id,
            ttl,
            head: if head_len > 0 { head.to_le_bytes() } else { [0; 8] },
            head_len,
            tls: Tls(tls),
            trouble: Trouble(trouble),
            program: Program::ALL.get(program).copied(),
            options,
            ..Segment::EMPTY
        };
        (if s { End::Client } else { End::Server }, seq, segment)
    }
}

proptest! {
    /// Whatever follows whatever.
    #[test]
    fn what_waits_comes_back(all in prop::collection::vec(drawn(), 1..40)) {
        let mut goes_on = Ends::of(|_| plain());
        let mut segments: Vec<(End, Segment)> = Vec::new();
        let mut latest = plain();
        for (s, seq, drawn) in all {
            // Most go on where the last one was.
            let before = &goes_on[s];
            let segment = Segment {
                time: Nanos(latest.time.0.wrapping_add(drawn.time.0)),
                frame: latest.frame.wrapping_add(drawn.frame),
                seq: seq.map_or(Seq(end_of(before)), Seq),
                ack: Seq(before.ack.0.wrapping_add(drawn.ack.0)),
                options: TcpOptions {
                    timestamps: drawn.options.timestamps.map(|(value, echo)| {
                        let (last, echoed) = before.options.timestamps.unwrap_or_default();
                        (last.wrapping_add(value), echoed.wrapping_add(echo))
                    }),
                    ..drawn.options
                },
                ..drawn
            };
            (goes_on[s], latest) = (segment, segment);
            segments.push((s, segment));
        }
        come_back(&segments, 5);
    }
}
