//! Any bytes as frames of any link type. The first two bytes choose the link type and how much was cut off,
//! the next how the rest is split into frames, so that fragments can meet.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tcpwhy_base::{Nanos, Program, Segment, TraceParent, Trouble, name};
use tcpwhy_capture::{Dissector, Frame, Verdict, payload};

/// Link types with code of their own, and one without.
const LINKS: [u32; 34] = [
    0, 1, 6, 7, 9, 10, 12, 14, 50, 51, 100, 101, 104, 105, 108, 109, 113, 117, 119, 122, 127, 129, 163, 166,
    192, 204, 219, 226, 228, 229, 239, 258, 276, 999,
];

fuzz_target!(|data: &[u8]| {
    let [link, cut, split, rest @ ..] = data else { return };
    let link_type = LINKS[usize::from(*link) % LINKS.len()];
    let mut dissector = Dissector::new();
    let mut out = Segment::EMPTY;
    let size = if *split == 0 { usize::MAX } else { usize::from(*split) * 4 };
    for (number, data) in (1..).zip(rest.chunks(size)) {
        let len = data.len() as u32 + u32::from(*cut) * 16;
        let time = Nanos(number as i64 * 1000);
        let frame = Frame { number, time, bad_time: false, link_type, data, len };
        if dissector.dissect(&frame, 0, &mut out) == Verdict::Tcp {
            assert_eq!((out.frame, out.time), (number, time));
            assert!(usize::from(out.head_len) <= 8 && out.options.sack_len <= 4);
            let held = u32::from(out.head_len) == out.len.min(8);
            let cut = Trouble::CUT_PAYLOAD | Trouble::CUT_HEADER | Trouble::FRAGMENTS;
            assert!(held || out.trouble.has(cut), "payload missing and nothing said: {out:?}");
            let payload = payload(&frame).unwrap_or_default();
            assert!(payload.len() <= out.len as usize);
            for to in [None, Some(Program::MySql), Some(Program::PostgreSql)] {
                let _ = name::of_request(payload, to);
            }
            let _ = (name::server_name(payload), name::of_cut(payload), name::status_of(payload));
            let _ = TraceParent::in_headers(payload);
        }
    }
    let counts = dissector.counts();
    let unknown: u64 = counts.unknown_links.iter().map(|&(_, n)| n).sum();
    let all = counts.tcp + counts.not_tcp + counts.fragments + counts.encrypted + counts.unusable + unknown;
    assert_eq!(all, rest.chunks(size).count() as u64, "each frame is counted once");
});
