//! Packets, layer by layer, and a second opinion by etherparse.
#![expect(clippy::unwrap_used, reason = "tests")]

use etherparse::{NetHeaders, PacketBuilder, PacketHeaders, TcpOptionElement, TransportHeader};
use proptest::prelude::*;
use tcpwhy_base::{Nanos, Segment, Seq, TooBig, Trouble};
use tcpwhy_capture::{Dissector, Frame, Verdict, headers};

fn dissect(link_type: u32, data: &[u8], len: u32) -> (Verdict, Segment) {
    let mut out = Segment::EMPTY;
    let frame = Frame { number: 1, len, ..Frame::new(Nanos(1), link_type, data) };
    let verdict = Dissector::new().dissect(&frame, 0, &mut out);
    (verdict, out)
}

fn tcp(link_type: u32, data: &[u8]) -> Segment {
    let (verdict, out) = dissect(link_type, data, data.len() as u32);
    assert_eq!(verdict, Verdict::Tcp, "link type {link_type}: {data:02x?}");
    out
}

/// IPv4 and TCP with six bytes of payload, from port 1000 to 80.
fn ip4() -> Vec<u8> {
    let mut packet = Vec::new();
    let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).tcp(1000, 80, 7, 500).ack(9);
    builder.write(&mut packet, b"abcdef").unwrap();
    packet
}

fn ip6() -> Vec<u8> {
    let mut packet = Vec::new();
    let (a, b) = ([1; 16], [2; 16]);
    PacketBuilder::ipv6(a, b, 64).tcp(1000, 80, 7, 500).ack(9).write(&mut packet, b"abcdef").unwrap();
    packet
}

fn check(s: &Segment) {
    assert_eq!((s.src.port, s.dst.port, s.seq, s.ack, s.len), (1000, 80, Seq(7), Seq(9), 6));
    assert_eq!((&s.head[..6], s.head_len), (&b"abcdef"[..], 6));
}

/// `parts` and then the packet.
fn wrap(parts: &[&[u8]], packet: &[u8]) -> Vec<u8> {
    [&parts.concat(), packet].concat()
}

fn ethernet(kind: u16, rest: &[u8]) -> Vec<u8> {
    wrap(&[&[2; 12], &kind.to_be_bytes()], rest)
}

/// An outer IPv4 header for `protocol`.
fn outer(protocol: u8, rest: &[u8]) -> Vec<u8> {
    let total = (20 + rest.len() as u16).to_be_bytes();
    let ip = [0x45, 0, total[0], total[1], 0, 1, 0, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
    wrap(&[&ip], rest)
}

fn udp(port: u16, rest: &[u8]) -> Vec<u8> {
    let len = (8 + rest.len() as u16).to_be_bytes();
    outer(17, &wrap(&[&[0x99, 0x99], &port.to_be_bytes(), &len, &[0, 0]], rest))
}

#[test]
fn link_layers() {
    let (v4, v6) = (ip4(), ip6());
    let snap: &[u8] = &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
    let data_frame = |control: [u8; 2], extra: usize| [&control[..], &vec![0; 22 + extra]].concat();
    let radiotap = [0, 0, 9, 0, 2, 0, 0, 0, 0x20];
    for (link, header) in [
        (0, vec![2, 0, 0, 0]),
        (0, vec![0, 0, 0, 2]),
        (108, vec![0, 0, 0, 2]),
        (1, ethernet(0x0800, &[])),
        (1, ethernet(54, snap)),
        (6, wrap(&[&[0; 8], &[0x80, 0, 0, 0, 0, 0], &[4, 0, 0, 0]], snap)),
        (7, vec![1, 2, 212, 0, 0, 1]),
        (9, vec![0xff, 3, 0, 0x21]),
        (9, vec![0x21]),
        (50, vec![0xff, 3, 0x21]),
        (50, vec![0x0f, 0, 8, 0]),
        (51, vec![0x11, 0, 0, 1, 0, 48, 0, 0x21]),
        (166, vec![1, 3, 0, 0x21]),
        (204, vec![1, 0xff, 3, 0, 0x21]),
        (10, wrap(&[&[0x50], &[0; 12]], snap)),
        (12, vec![]),
        (14, vec![]),
        (101, vec![]),
        (228, vec![]),
        (100, snap.to_vec()),
        (104, vec![0x0f, 0, 8, 0]),
        (105, wrap(&[&data_frame([0x08, 1], 0)], snap)),
        (105, wrap(&[&data_frame([0x88, 1], 2)], snap)),
        (105, wrap(&[&data_frame([0x88, 0x81], 6)], snap)),
        (105, wrap(&[&data_frame([0x08, 3], 6)], snap)),
        (119, wrap(&[&[0x44, 0, 0, 0, 144, 0, 0, 0], &[0; 136], &data_frame([0x08, 1], 0)], snap)),
        (127, wrap(&[&radiotap, &data_frame([0x88, 1], 2), &[0, 0]], snap)),
        (163, wrap(&[&[0x80, 0x21, 0x10, 1, 0, 0, 0, 64], &[0; 56], &data_frame([0x08, 1], 0)], snap)),
        (113, wrap(&[&[0; 14]], &[8, 0])),
        (129, vec![1, 2, 0, 0, 212, 0, 0, 1]),
        (192, wrap(&[&[0, 0, 8, 0, 1, 0, 0, 0]], &ethernet(0x0800, &[]))),
        (226, vec![0; 24]),
        (239, vec![2, 0, 0, 0, 8, 0, 10, 0, 0, 0, 0, 1, 50, 0, 9, 0]),
        (239, vec![2, 0, 0, 0, 0, 8, 0, 10, 0, 0, 0, 1, 0, 50, 0, 9]),
        (258, wrap(&[&[12, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]], &ethernet(0x0800, &[]))),
        (276, wrap(&[&[8, 0]], &[0; 18])),
    ] {
        check(&tcp(link, &wrap(&[&header], &v4)));
    }
    // What a station of 802.11 sent again says so (Retry).
    for (control, retried) in [([0x08, 9], true), ([0x08, 1], false)] {
        let segment = tcp(105, &wrap(&[&data_frame(control, 0), snap], &v4));
        assert!(segment.trouble.has(Trouble::AIR));
        assert_eq!(segment.trouble.has(Trouble::RETRY), retried);
    }
    for (link, header) in [
        (0, vec![10, 0, 0, 0]),
        (0, vec![0, 0, 0, 24]),
        (108, vec![0, 0, 0, 28]),
        (0, vec![30, 0, 0, 0]),
        (1, ethernet(0x86dd, &[])),
        (9, vec![0xff, 3, 0, 0x57]),
        (101, vec![]),
        (229, vec![]),
        (276, wrap(&[&[0x86, 0xdd]], &[0; 18])),
    ] {
        check(&tcp(link, &wrap(&[&header], &v6)));
    }
    assert_eq!(dissect(105, &wrap(&[&data_frame([0x08, 0x41], 0)], &v4), 100).0, Verdict::Encrypted);
    assert_eq!(dissect(999, &v4, 100).0, Verdict::UnknownLink);
}

#[test]
fn tags_and_tunnels() {
    let v4 = ip4();
    let inner = ethernet(0x0800, &v4);
    let vlan = |id: u8, rest: &[u8]| ethernet(0x8100, &wrap(&[&[0x20, id, 8, 0]], rest));
    let vxlan = |id: u8| udp(4789, &wrap(&[&[8, 0, 0, 0, 0, 0, id, 0]], &inner));
    let geneve = |id: u8| udp(6081, &wrap(&[&[1, 0, 0x65, 0x58, 0, 0, id, 0, 9, 9, 9, 9]], &inner));
    let gre = |id: u8| outer(47, &wrap(&[&[0x20, 0, 8, 0, 0, 0, 0, id]], &v4));
    let with_id: [&dyn Fn(u8) -> Vec<u8>; 4] = [
        &|id| vlan(id, &v4),
        &|id| ethernet(0x0800, &vxlan(id)),
        &|id| ethernet(0x0800, &geneve(id)),
        &|id| ethernet(0x0800, &gre(id)),
    ];
    let mut links = vec![0];
    for packet in with_id {
        for id in [1, 2] {
            let segment = tcp(1, &packet(id));
            check(&segment);
            links.push(segment.link);
        }
    }
    let distinct: std::collections::HashSet<_> = links.iter().collect();
    assert_eq!(distinct.len(), links.len(), "each identifier is a network of its own: {links:x?}");
    assert_eq!(tcp(1, &vlan(0, &v4)).link, 0, "VLAN 0 is only a priority");

    // 802.11 data, then LLC and SNAP.
    let aruba = [&[8, 1][..], &[0; 22], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]].concat();
    let session = [0x11, 0, 0, 1, 0, 48, 0, 0x21];
    for (packet, tunnel) in [
        (ethernet(0x8847, &wrap(&[&[0, 1, 0, 64, 0, 2, 1, 64]], &v4)), false),
        (ethernet(0x8847, &wrap(&[&[0, 1, 1, 64, 0, 0, 0, 0]], &inner)), false),
        (ethernet(0x8864, &wrap(&[&session], &v4)), false),
        (ethernet(0x893f, &wrap(&[&[0, 0, 0, 0, 0, 0, 8, 0]], &v4)), false),
        (ethernet(0x8926, &wrap(&[&[0, 0, 0, 1, 8, 0]], &v4)), false),
        (ethernet(0x0800, &outer(4, &v4)), true),
        (ethernet(0x0800, &udp(4754, &wrap(&[&[0, 0, 8, 0]], &v4))), true),
        (ethernet(0x0800, &udp(5072, &wrap(&[&[0x41, 0x52, 0x11, 41, 0, 0, 0, 0], &[7; 36]], &ip6()))), true),
        (ethernet(0x0800, &outer(47, &wrap(&[&[0, 0, 0x82, 0], &aruba], &v4))), true),
        (ethernet(0x0800, &outer(41, &ip6())), true),
        (ethernet(0x0800, &outer(97, &wrap(&[&[0x30, 0]], &inner))), true),
        (ethernet(0x0800, &outer(47, &wrap(&[&[0, 0, 0x65, 0x58]], &inner))), true),
        (
            ethernet(0x0800, &outer(47, &wrap(&[&[0x30, 1, 0x88, 0x0b, 0, 0, 0, 0, 0, 0, 0, 0, 0x21]], &v4))),
            true,
        ),
        (ethernet(0x0800, &outer(47, &wrap(&[&[0, 0, 0x88, 0xbe]], &inner))), true),
        (
            ethernet(0x0800, &outer(47, &wrap(&[&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1], &[0x10; 8]], &inner))),
            true,
        ),
        (ethernet(0x0800, &outer(47, &wrap(&[&[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1], &[0; 12]], &inner))), true),
        (ethernet(0x0800, &udp(2152, &wrap(&[&[0x30, 255, 0, 46, 0, 0, 0, 5]], &v4))), true),
        (
            ethernet(
                0x0800,
                &udp(2152, &wrap(&[&[0x34, 255, 0, 54, 0, 0, 0, 5, 0, 0, 0, 0x85, 1, 0, 0, 0]], &v4)),
            ),
            true,
        ),
        (ethernet(0x0800, &udp(3544, &wrap(&[&[0, 0, 1, 2, 3, 4, 5, 6]], &ip6()))), true),
        (ethernet(0x0800, &udp(1701, &wrap(&[&[0x40, 2, 0, 56, 0, 1, 0, 2, 0xff, 3, 0, 0x21]], &v4))), true),
    ] {
        let segment = tcp(1, &packet);
        check(&segment);
        assert_eq!(segment.link, 0, "nothing that may differ by direction");
        assert_eq!(segment.trouble.has(Trouble::ENCAPSULATED), tunnel);
    }
    // Deeper than any network.
    let mut deep = v4.clone();
    for _ in 0..8 {
        deep = outer(4, &deep);
    }
    assert_eq!(dissect(101, &deep, deep.len() as u32).0, Verdict::Unusable);
}

#[test]
fn lengths() {
    let mut packet = ip4();
    // Padding is not payload.
    check(&tcp(1, &wrap(&[&ethernet(0x0800, &packet)], &[0; 12])));
    // Cut frames: the IP header counts.
    let cut = dissect(101, &packet[..40], 1500).1;
    assert_eq!((cut.len, cut.head_len, cut.trouble), (6, 0, Trouble(Trouble::CUT_PAYLOAD)));
    for n in 0..40 {
        let (verdict, s) = dissect(101, &packet[..n], 46);
        assert_eq!(verdict == Verdict::Tcp, n >= 34, "{n}");
        assert_eq!(s.trouble.has(Trouble::CUT_HEADER), n >= 34, "{n}");
    }
    // Segmentation offload: the frame counts.
    packet[2..4].fill(0);
    let (verdict, s) = dissect(1, &ethernet(0x0800, &packet), 90_054);
    assert_eq!((verdict, s.len), (Verdict::Tcp, 90_000));
    assert!(s.trouble.has(Trouble::ZERO_IP_LEN) && s.trouble.has(Trouble::CUT_PAYLOAD));
    // More than anybody sends at once is damage.
    assert_eq!(dissect(1, &ethernet(0x0800, &packet), (1 << 24) + 54).0, Verdict::Tcp);
    assert_eq!(dissect(1, &ethernet(0x0800, &packet), (1 << 24) + 55).0, Verdict::Unusable);
    // A jumbogram says its length in an option.
    let mut jumbo = ip6();
    jumbo[4..6].fill(0);
    assert_eq!(dissect(101, &jumbo, 66).1.len, 6);
    jumbo[6] = 0;
    jumbo.splice(40..40, [6, 0, 0xc2, 4, 0, 1, 0, 28]);
    let (verdict, s) = dissect(101, &jumbo, 74);
    assert_eq!((verdict, s.len, s.trouble.has(Trouble::ZERO_IP_LEN)), (Verdict::Tcp, 65_536, false));
    // A total shorter than the header.
    packet[3] = 19;
    assert_eq!(dissect(101, &packet, 46).0, Verdict::Unusable);
}

#[test]
fn extension_headers() {
    let packet = ip6();
    for (first, headers) in [
        (0, vec![6, 0, 1, 4, 0, 0, 0, 0]),
        (43, vec![60, 0, 0, 0, 0, 0, 0, 0, 6, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        (51, vec![6, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        (135, vec![6, 0, 0, 0, 0, 0, 0, 0]),
        (44, vec![6, 0, 0, 0, 0, 0, 0, 9]),
    ] {
        let mut with = packet.clone();
        with[5] += headers.len() as u8;
        with[6] = first;
        with.splice(40..40, headers);
        check(&tcp(101, &with));
    }
}

#[test]
fn fragments_give_one_segment_at_the_last() {
    let whole = ip4();
    let part = |from: usize, to: usize, more: bool, offset: u8| {
        let mut p = outer(6, &whole[20 + from..20 + to]);
        p[6] = if more { 0x20 } else { 0 };
        p[7] = offset;
        p
    };
    let mut dissector = Dissector::new();
    let mut out = Segment::EMPTY;
    let mut push = |number: u64, data: &[u8]| {
        let frame = Frame { number, ..Frame::new(Nanos(number as i64 * 10), 101, data) };
        (dissector.dissect(&frame, 3, &mut out), out)
    };
    assert_eq!(push(1, &part(0, 16, true, 0)).0, Verdict::Fragment);
    let (verdict, s) = push(2, &part(16, 26, false, 2));
    assert_eq!((verdict, s.frame, s.time, s.file), (Verdict::Tcp, 2, Nanos(20), 3));
    assert_eq!((s.len, s.src.port, s.seq), (6, 1000, Seq(7)));
    assert!(s.trouble.has(Trouble::FRAGMENTS));
    // The last before the first.
    assert_eq!(push(3, &part(24, 26, false, 3)).0, Verdict::Fragment);
    let (verdict, s) = push(4, &part(0, 24, true, 0));
    assert_eq!((verdict, s.frame, s.len), (Verdict::Tcp, 4, 6));
    assert_eq!(dissector.incomplete(), 0);
    assert_eq!((dissector.counts().reassembled, dissector.counts().fragments), (2, 2));
}

#[test]
fn packets_quoted_in_errors_are_not_tcp() {
    let quoted = outer(1, &wrap(&[&[3, 4, 0, 0, 0, 0, 5, 220]], &ip4()));
    assert_eq!(dissect(101, &quoted, quoted.len() as u32).0, Verdict::NotTcp);
}

/// What a router says of this packet: ICMP within IPv4, ICMPv6 within IPv6.
fn word(message: &[u8], quoted: &[u8]) -> Vec<u8> {
    outer(1, &wrap(&[message], quoted))
}

fn word6(message: &[u8], quoted: &[u8]) -> Vec<u8> {
    let len = (message.len() + quoted.len()) as u16;
    wrap(&[&[0x60, 0, 0, 0], &len.to_be_bytes(), &[58, 64], &[9; 16], &[1; 16], message], quoted)
}

fn too_big(link_type: u32, data: &[u8]) -> Option<TooBig> {
    let (mut out, mut dissector) = (Segment::EMPTY, Dissector::new());
    let frame = Frame { number: 5, ..Frame::new(Nanos(3), link_type, data) };
    assert_eq!(dissector.dissect(&frame, 0, &mut out), Verdict::NotTcp);
    let told = dissector.too_big();
    assert_eq!(dissector.too_big(), None, "told once");
    told
}

const NEEDED: [u8; 8] = [3, 4, 0, 0, 0, 0, 5, 212];
const TOO_BIG: [u8; 8] = [2, 0, 0, 0, 0, 0, 5, 0];

#[test]
fn what_was_too_large_is_told() {
    let told = too_big(101, &word(&NEEDED, &ip4())).unwrap();
    assert_eq!((told.time, told.frame, told.link), (Nanos(3), 5, 0));
    assert_eq!((told.src.to_string(), told.dst.to_string()), ("10.0.0.1:1000".into(), "10.0.0.2:80".into()));
    assert_eq!((told.seq, told.mtu), (Seq(7), 1492));
    let v6 = too_big(101, &word6(&TOO_BIG, &ip6())).unwrap();
    assert_eq!((v6.src.ip, v6.dst.port, v6.seq, v6.mtu), ([1; 16].into(), 80, Seq(7), 1280));
    // An old router does not say how much goes on; a quote may have options, and headers of IPv6 behind each other.
    assert_eq!(too_big(101, &word(&[3, 4, 0, 0, 0, 0, 0, 0], &ip4())).map(|t| t.mtu), Some(0));
    let mut options = ip4();
    options[0] = 0x46;
    options.splice(20..20, [1, 1, 1, 1]);
    assert_eq!(too_big(101, &word(&NEEDED, &options)).map(|t| t.seq), Some(Seq(7)));
    let mut more = ip6();
    (more[5], more[6]) = (more[5] + 8, 60);
    more.splice(40..40, [6, 0, 1, 4, 0, 0, 0, 0]);
    assert_eq!(too_big(101, &word6(&TOO_BIG, &more)).map(|t| t.seq), Some(Seq(7)));
}

#[test]
fn what_is_told_has_the_tags_of_its_connection() {
    let tag = |vlan: u8, packet: &[u8]| ethernet(0x8100, &wrap(&[&[0, vlan, 8, 0]], packet));
    let link = tcp(1, &tag(7, &ip4())).link;
    assert_ne!(link, 0);
    assert_eq!(too_big(1, &tag(7, &word(&NEEDED, &ip4()))).map(|t| t.link), Some(link));
    assert_ne!(too_big(1, &tag(8, &word(&NEEDED, &ip4()))).map(|t| t.link), Some(link));
    // A router below a tunnel quotes the tunnel.
    let vxlan = udp(4789, &wrap(&[&[8, 0, 0, 0, 0, 0, 77, 0]], &ethernet(0x0800, &ip4())));
    assert_eq!(too_big(101, &word(&NEEDED, &vxlan)).map(|t| t.link), Some(tcp(101, &vxlan).link));
}

#[test]
fn what_nobody_takes_is_counted_by_its_destination() {
    let (mut out, mut dissector) = (Segment::EMPTY, Dissector::new());
    // A filter that rejects (host prohibited, port unreachable), IPv6 likewise; of a packet that is no TCP
    // nothing is said.
    let other = outer(17, &[0; 20]);
    for packet in [
        word(&[3, 10, 0, 0, 0, 0, 0, 0], &ip4()),
        word(&[3, 3, 0, 0, 0, 0, 0, 0], &ip4()),
        word6(&[1, 1, 0, 0, 0, 0, 0, 0], &ip6()),
        word(&[3, 10, 0, 0, 0, 0, 0, 0], &other),
    ] {
        assert_eq!(dissector.dissect(&Frame::new(Nanos(3), 101, &packet), 0, &mut out), Verdict::NotTcp);
        assert_eq!(dissector.too_big(), None);
    }
    let found: Vec<_> = dissector.counts().unreachable.iter().map(|(to, n)| (to.to_string(), *n)).collect();
    let v6 = tcp(101, &ip6()).dst.to_string();
    assert_eq!(found, [("10.0.0.2:80".to_owned(), 2), (v6, 1)]);
    // Of many destinations the first sixteen are told apart.
    for last in 3..40 {
        let mut to = ip4();
        to[19] = last;
        let packet = word(&[3, 10, 0, 0, 0, 0, 0, 0], &to);
        assert_eq!(dissector.dissect(&Frame::new(Nanos(3), 101, &packet), 0, &mut out), Verdict::NotTcp);
    }
    let counts = dissector.counts();
    assert_eq!((counts.unreachable.len(), counts.unreachable_elsewhere), (16, 37 - 14));
    assert!(counts.unreachable.iter().skip(1).all(|of| of.1 == 1), "{counts:?}");
}

#[test]
fn what_tells_of_no_segment_is_not_told() {
    // Another code, another type, an answer to a ping.
    for message in [[3, 3, 0, 0, 0, 0, 5, 212], [11, 4, 0, 0, 0, 0, 5, 212], [0, 4, 0, 0, 0, 0, 5, 212]] {
        assert_eq!(too_big(101, &word(&message, &ip4())), None);
    }
    assert_eq!(too_big(101, &word6(&[1, 0, 0, 0, 0, 0, 5, 0], &ip6())), None);
    // A datagram of UDP, a fragment that is not the first, a quote within a quote.
    assert_eq!(too_big(101, &word(&NEEDED, &udp(53, &[0; 12]))), None);
    let mut fragment = ip4();
    fragment[7] = 1;
    assert_eq!(too_big(101, &word(&NEEDED, &fragment)), None);
    assert_eq!(too_big(101, &word(&NEEDED, &word(&NEEDED, &ip4()))), None);
}

/// Eight bytes behind its headers are enough (RFC 792); less tells nothing, and no length panics.
#[test]
fn quotes_are_cut_anywhere() {
    for (whole, headers) in [(word(&NEEDED, &ip4()), 20 + 8 + 20), (word6(&TOO_BIG, &ip6()), 40 + 8 + 40)] {
        for n in 0..whole.len() {
            let (mut out, mut dissector) = (Segment::EMPTY, Dissector::new());
            let frame = Frame { len: whole.len() as u32, ..Frame::new(Nanos(3), 101, &whole[..n]) };
            let _ = dissector.dissect(&frame, 0, &mut out);
            assert_eq!(dissector.too_big().map(|t| t.seq), (n >= headers + 8).then_some(Seq(7)), "{n} bytes");
        }
    }
}

fn option() -> impl Strategy<Value = TcpOptionElement> {
    prop_oneof![
        Just(TcpOptionElement::Noop),
        any::<u16>().prop_map(TcpOptionElement::MaximumSegmentSize),
        any::<u8>().prop_map(TcpOptionElement::WindowScale),
        Just(TcpOptionElement::SelectiveAcknowledgementPermitted),
        any::<(u32, u32)>().prop_map(|(a, b)| TcpOptionElement::Timestamp(a, b)),
        any::<(u32, u32)>()
            .prop_map(|first| TcpOptionElement::SelectiveAcknowledgement(first, [None, None, None])),
    ]
}

proptest! {
    /// What etherparse builds and reads is what we read.
    #[test]
    fn as_etherparse_reads(
        ports in any::<(u16, u16)>(), numbers in any::<(u32, u32)>(), window: u16, v6: bool, vlan: bool,
        options in prop::collection::vec(option(), 0..5), payload in prop::collection::vec(any::<u8>(), 0..40),
        cut in 0usize..60,
    ) {
        let base = PacketBuilder::ethernet2([1; 6], [2; 6]);
        let tag = etherparse::VlanHeader::Single(Default::default());
        let ip = match (vlan, v6) {
            (false, false) => base.ipv4([1; 4], [2; 4], 9),
            (false, true) => base.ipv6([1; 16], [2; 16], 9),
            (true, false) => base.vlan(tag).ipv4([1; 4], [2; 4], 9),
            (true, true) => base.vlan(tag).ipv6([1; 16], [2; 16], 9),
        };
        let tcp = ip.tcp(ports.0, ports.1, numbers.0, window).ack(numbers.1).psh();
        let Ok(builder) = tcp.options(&options) else { return Ok(()) };
        let mut data = Vec::new();
        builder.write(&mut data, &payload).unwrap();

        let s = self::tcp(1, &data);
        let theirs = PacketHeaders::from_ethernet_slice(&data).unwrap();
        let Some(TransportHeader::Tcp(t)) = theirs.transport else { return Err(TestCaseError::fail("no TCP")) };
        prop_assert_eq!((s.src.port, s.dst.port), (t.source_port, t.destination_port));
        prop_assert_eq!((s.seq, s.ack, s.window), (Seq(t.sequence_number), Seq(t.acknowledgment_number), t.window_size));
        prop_assert_eq!(s.checksum, t.checksum);
        prop_assert_eq!((s.flags.syn(), s.flags.ack(), s.flags.psh(), s.flags.fin()), (t.syn, t.ack, t.psh, t.fin));
        prop_assert_eq!(s.len as usize, theirs.payload.slice().len());
        match theirs.net {
            Some(NetHeaders::Ipv4(h, _)) => prop_assert_eq!((s.ip_id, s.ttl), (Some(h.identification), h.time_to_live)),
            Some(NetHeaders::Ipv6(h, _)) => prop_assert_eq!((s.ip_id, s.ttl), (None, h.hop_limit)),
            _ => prop_assert!(false, "no IP"),
        }
        let mut expected = Segment::EMPTY.options;
        for option in t.options_iterator().flatten() {
            match option {
                TcpOptionElement::MaximumSegmentSize(n) => expected.mss = Some(n),
                TcpOptionElement::WindowScale(n) => expected.wscale = Some(n),
                TcpOptionElement::SelectiveAcknowledgementPermitted => expected.sack_permitted = true,
                TcpOptionElement::Timestamp(a, b) => expected.timestamps = Some((a, b)),
                TcpOptionElement::SelectiveAcknowledgement((a, b), _) => {
                    expected.sack[0] = (Seq(a), Seq(b));
                    expected.sack_len = 1;
                }
                TcpOptionElement::Noop => {}
            }
        }
        expected.order = s.options.order;
        prop_assert_eq!(s.options, expected);
        // Cut anywhere, what is said of lengths and numbers stays.
        let kept = data.len().saturating_sub(cut);
        let (verdict, c) = dissect(1, &data[..kept], data.len() as u32);
        if verdict == Verdict::Tcp {
            prop_assert_eq!((c.seq, c.ack, c.len, c.flags), (s.seq, s.ack, s.len, s.flags));
        }
    }

    #[test]
    fn any_bytes_on_any_link(link in 0u32..300, data in prop::collection::vec(any::<u8>(), 0..200), more in 0u32..99) {
        dissect(link, &data, data.len() as u32 + more);
    }
}

/// What is kept where payload is not: neither that, nor what stands behind it on Ethernet, whose frames have
/// 46 bytes at least.
#[test]
fn headers_end_where_payload_begins() {
    let mut frame = ethernet(0x0800, &ip4());
    frame.extend([0xee; 30]);
    assert_eq!(headers(&Frame::new(Nanos(0), 1, &frame)).unwrap(), &frame[..14 + 40]);
    assert!(headers(&Frame::new(Nanos(0), 1, &frame[..30])).is_none());
}
