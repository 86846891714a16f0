//! What nearly every frame and every file is goes a short way: it is held to the long one.
#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use common::Drip;
use proptest::prelude::*;
use tcpwhy_base::{Nanos, Segment};
use tcpwhy_capture::{Dissector, Frame, Reader, Taker, Verdict, Writer};

/// An Ethernet frame with IPv4 and TCP: the options, bytes of payload in the packet, and padding behind it.
fn frame(options: &[u8], payload: &[u8], padding: usize) -> Vec<u8> {
    let total = (40 + options.len() + payload.len()) as u16;
    let mut data = vec![2; 12];
    data.extend([8, 0, 0x45, 0]);
    data.extend(total.to_be_bytes());
    data.extend([0x12, 0x34, 0x40, 0, 63, 6, 0xab, 0xcd, 10, 0, 0, 200, 192, 168, 1, 2]);
    data.extend([0xc3, 0x50, 1, 0xbb, 1, 2, 3, 4, 5, 6, 7, 8]);
    data.extend([(5 + options.len() as u8 / 4) << 4, 0x18, 0x80, 1, 0x77, 0x88, 0, 0]);
    data.extend(options);
    data.extend(payload);
    data.extend(vec![0; padding]);
    data
}

/// Areas of options as stacks write them, and any.
fn options() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(vec![]),
        any::<[u8; 8]>().prop_map(|stamps| [&[1, 1, 8, 10][..], &stamps].concat()),
        any::<([u8; 8], u8)>().prop_map(|(stamps, shift)| {
            [&[2, 4, 5, 180, 4, 2, 8, 10][..], &stamps, &[1, 3, 3, shift]].concat()
        }),
        any::<[u8; 8]>().prop_map(|block| [&[1, 1, 5, 10][..], &block].concat()),
        Just(vec![2, 4, 5, 180, 1, 3, 3, 8, 1, 1, 4, 2]),
        (0usize..=10, any::<[u8; 40]>()).prop_map(|(words, any)| any[..words * 4].to_vec()),
    ]
}

/// Payloads as they begin, and any.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(vec![]),
        prop::collection::vec(any::<u8>(), 0..40),
        Just(b"GET / HTTP/1.1\r\nUser-Agent: curl/8.1\r\n\r\n".to_vec()),
        Just(vec![0x16, 3, 1, 0, 2, 9, 9, 0x17, 3, 3, 0, 1, 1]),
    ]
}

/// What a frame is; nothing that is in a segment counts where it is not TCP.
fn dissected(link_type: u32, data: &[u8], len: u32, bad_time: bool) -> (Verdict, Option<String>) {
    // What was there before does not shine through.
    let mut out = Segment { link: 9, head: [9; 8], ttl: 9, head_len: 9, window: 9, ..Segment::EMPTY };
    let frame = Frame { number: 3, len, bad_time, ..Frame::new(Nanos(7), link_type, data) };
    let verdict = Dissector::new().dissect(&frame, 2, &mut out);
    (verdict, (verdict == Verdict::Tcp).then(|| format!("{out:?}")))
}

/// A file, and what was done to its bytes.
fn file() -> impl Strategy<Value = Vec<u8>> {
    let frames = prop::collection::vec((0u64..5_000_000_000, 0usize..90, any::<bool>()), 0..30);
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    (frames, changes, any::<bool>(), 0usize..40).prop_map(|(frames, changes, ng, cut)| {
        let mut classic = Writer::pcap(Vec::new(), 1).unwrap();
        let mut pcapng = Writer::pcapng(Vec::new()).unwrap();
        let mut time = 1_700_000_000_000_000_000;
        for (wait, len, back) in frames {
            time += if back { -(wait as i64) } else { wait as i64 } / 2;
            let data = vec![len as u8; len];
            let frame = Frame::new(Nanos(time), 1, &data);
            classic.write(&frame, None).unwrap();
            pcapng.write(&frame, (len == 7).then_some("a comment")).unwrap();
        }
        let mut data = if ng { pcapng.finish().unwrap() } else { classic.finish().unwrap() };
        for (at, byte) in changes {
            let at = at.index(data.len());
            data[at] = byte;
        }
        data.truncate(data.len() - cut.min(data.len()));
        data
    })
}

#[derive(Default)]
struct Frames(Vec<String>);

impl Taker for Frames {
    fn take(&mut self, frame: &Frame<'_>) {
        self.0.push(format!("{frame:?}"));
    }
}

/// The frames of a file that comes `step` bytes at a time; those that are here are given at most `most` at a
/// time, if at all.
fn frames(data: &[u8], step: usize, most: Option<u64>) -> (Vec<String>, Option<String>, u64) {
    let mut frames = Frames::default();
    let mut reader = match Reader::new(Box::new(Drip { data: data.to_vec(), at: 0, step })) {
        Ok(reader) => reader,
        Err(e) => return (frames.0, Some(e.to_string()), 0),
    };
    loop {
        if let Some(most) = most {
            let before = reader.frames();
            reader.give_here(most, &mut frames);
            assert!(reader.frames() - before <= most);
        }
        match reader.next() {
            Ok(Some(frame)) => frames.take(&frame),
            Ok(None) => return (frames.0, None, reader.offset()),
            Err(e) => return (frames.0, Some(e.to_string()), reader.offset()),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// The same packet behind another header goes layer by layer.
    #[test]
    fn a_frame_is_what_it_is_layer_by_layer(
        options in options(), payload in payload(), padding in 0usize..12, bad_time: bool, more in 0u32..40,
        kept in prop_oneof![Just(usize::MAX), 14usize..120],
        changes in prop::collection::vec((14usize..100, any::<u8>()), 0..3),
        total in prop::option::weighted(0.2, 0u16..140),
    ) {
        let mut data = frame(&options, &payload, padding);
        if let Some(total) = total {
            data[16..18].copy_from_slice(&total.to_be_bytes());
        }
        for (at, byte) in changes {
            data.iter_mut().skip(at).take(1).for_each(|old| *old = byte);
        }
        let len = data.len() as u32 + more;
        let data = &data[..kept.min(data.len())];
        // LINKTYPE_LINUX_SLL: 14 bytes of its own, then the EtherType.
        let cooked = [&[0; 14], &data[12..]].concat();
        prop_assert_eq!(dissected(1, data, len, bad_time), dissected(113, &cooked, len + 2, bad_time));
    }

    /// Frames that are given together are those that are given one by one.
    #[test]
    fn frames_given_together(data in file(), step in 1usize..3_000, most in 0u64..9) {
        prop_assert_eq!(frames(&data, step, Some(most)), frames(&data, step, None));
    }
}

#[test]
fn frames_that_are_here_are_given_together() {
    for ng in [false, true] {
        let mut writer = if ng { Writer::pcapng(Vec::new()) } else { Writer::pcap(Vec::new(), 1) }.unwrap();
        for n in 0..10 {
            writer.write(&Frame::new(Nanos(1_000_000_000_000 + n), 1, &[1; 60]), None).unwrap();
        }
        let mut reader = Reader::new(Box::new(std::io::Cursor::new(writer.finish().unwrap()))).unwrap();
        let mut frames = Frames::default();
        reader.give_here(4, &mut frames);
        assert_eq!(frames.0.len(), 0, "of the first the packets behind it are asked");
        assert!(reader.next().unwrap().is_some());
        reader.give_here(4, &mut frames);
        assert_eq!(frames.0.len(), 4);
        reader.give_here(99, &mut frames);
        assert_eq!((frames.0.len(), reader.frames()), (9, 10));
        assert!(reader.next().unwrap().is_none());
    }
}
