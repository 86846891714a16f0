//! Any bytes as the options of a TCP header in a raw IPv4 packet, whole or cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tcpwhy_base::{Nanos, Segment, Trouble};
use tcpwhy_capture::{Dissector, Frame, Verdict};

fuzz_target!(|data: &[u8]| {
    let Some((&cut, options)) = data.split_first() else { return };
    let options = &options[..options.len().min(40) & !3];
    let total = 40 + options.len();
    let mut packet = vec![0x45, 0, 0, total as u8, 0, 1, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    packet.extend([4, 0, 0, 80, 0, 0, 0, 1, 0, 0, 0, 2]);
    packet.extend([(5 + options.len() as u8 / 4) << 4, 2, 1, 0, 0, 0, 0, 0]);
    packet.extend(options);
    let kept = &packet[..total - usize::from(cut) % 27];
    let frame =
        Frame { number: 1, time: Nanos(0), bad_time: false, link_type: 101, data: kept, len: total as u32 };
    let mut out = Segment::EMPTY;
    let verdict = Dissector::new().dissect(&frame, 0, &mut out);
    // 14 bytes of the header are enough.
    assert_eq!(verdict == Verdict::Tcp, kept.len() >= 34);
    if verdict == Verdict::Tcp {
        assert_eq!(out.len, 0);
        assert_eq!(out.trouble.has(Trouble::CUT_HEADER), kept.len() < total);
        assert!(kept.len() >= total.max(41) || out.options.damaged || options.is_empty());
        assert!(out.options.sack_len <= 4);
        let blocks = &out.options.sack[usize::from(out.options.sack_len)..];
        assert!(blocks.iter().all(|b| b.0.0 == 0 && b.1.0 == 0));
    }
});
