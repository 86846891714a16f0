//! A packet made anew from what the dissector kept of it: Ethernet (or Wi-Fi), IP and TCP headers, no
//! payload. Nothing that was not understood is passed on, so nothing unforeseen can be given away.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tcpwhy_base::protocol::{FINISHED_LEN, MOST_WINDOW_UPDATES, TLS_ADDS, TLS_HEAD, WINDOW_UPDATE_LEN};
use tcpwhy_base::{Endpoint, Segment, Seq, SocketEvent, TcpFlags, Tls, Trouble, protocol};

/// Addresses and ports as they are written.
#[derive(Default)]
pub(crate) struct Names {
    /// `None`: as they were.
    map: Option<HashMap<IpAddr, IpAddr>>,
}

impl Names {
    /// Addresses for documentation (RFC 5737, RFC 3849) instead of the true ones, in the order in which they come.
    pub(crate) fn anonymous() -> Names {
        Names { map: Some(HashMap::new()) }
    }

    fn of(&mut self, ip: IpAddr) -> IpAddr {
        let Some(map) = &mut self.map else { return ip };
        let n = map.len() as u32 + 1;
        *map.entry(ip).or_insert_with(|| match ip {
            // 192.0.2.0/24 holds 254; the range for benchmarks (RFC 2544) holds the rest.
            IpAddr::V4(_) if n < 255 => Ipv4Addr::from(0xc000_0200 + n).into(),
            IpAddr::V4(_) => Ipv4Addr::from(0xc612_0000 + (n & 0x1_ffff)).into(),
            IpAddr::V6(_) => Ipv6Addr::from((0x2001_0db8 << 96) + u128::from(n)).into(),
        })
    }

    fn hide(&self) -> bool {
        self.map.is_some()
    }
}

/// Link types of what is written.
const ETHERNET: u32 = 1;
const WIFI: u32 = 105;

/// The link type of what is written for this packet: what a radio sent again shows in no other header (rule 88).
pub(crate) fn link(s: &Segment) -> u32 {
    if s.trouble.has(Trouble::AIR) { WIFI } else { ETHERNET }
}

/// Writes the frame into `out`; gives its length on the wire.
pub(crate) fn write(s: &Segment, names: &mut Names, out: &mut Vec<u8>) -> u32 {
    let (tcp, header) = tcp(s, names.hide());
    let payload = payload(s);
    let (src, dst) = (names.of(s.src.ip), names.of(s.dst.ip));
    let length = header.saturating_add(s.len);
    out.clear();
    // Locally administered addresses: 2 for the one with the lower endpoint, so that directions stay apart.
    let lower = u8::from(s.src <= s.dst);
    let (to, from) = ([2, 0, 0, 0, 0, 2 - lower], [2, 0, 0, 0, 0, 1 + lower]);
    if link(s) == WIFI {
        let retry = if s.trouble.has(Trouble::RETRY) { 8 } else { 0 };
        // Frame control (data), duration, receiver, transmitter, the cell's address, number; then LLC and SNAP.
        out.extend([8, retry, 0, 0]);
        [to, from, [2, 0, 0, 0, 0, 0]].iter().for_each(|address| out.extend(address));
        out.extend([0, 0, 0xaa, 0xaa, 3, 0, 0, 0]);
    } else {
        [to, from].iter().for_each(|address| out.extend(address));
    }
    match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            out.extend([8, 0]);
            // A packet above 64 KiB has no length in its header: segmentation was left to the card.
            let total = u16::try_from(length + 20).unwrap_or(0);
            let mut ip = [0u8; 20];
            ip[0] = 0x45;
            ip[2..4].copy_from_slice(&total.to_be_bytes());
            ip[4..6].copy_from_slice(&s.ip_id.unwrap_or(0).to_be_bytes());
            ip[6] = 0x40;
            (ip[8], ip[9]) = (s.ttl, 6);
            ip[12..16].copy_from_slice(&src.octets());
            ip[16..20].copy_from_slice(&dst.octets());
            let sum =
                ip.chunks_exact(2).fold(0u32, |sum, w| sum + u32::from(u16::from_be_bytes([w[0], w[1]])));
            let sum = (sum & 0xffff) + (sum >> 16);
            let sum = (sum & 0xffff) + (sum >> 16);
            ip[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
            out.extend(ip);
        }
        (src, dst) => {
            out.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            out.extend(u16::try_from(length).unwrap_or(0).to_be_bytes());
            out.extend([6, s.ttl]);
            for ip in [src, dst] {
                match ip {
                    IpAddr::V4(ip) => out.extend(ip.to_ipv6_mapped().octets()),
                    IpAddr::V6(ip) => out.extend(ip.octets()),
                }
            }
        }
    }
    let headers = out.len() as u32 + length - s.len;
    out.extend(tcp);
    out.extend(payload);
    headers.saturating_add(s.len)
}

/// What a kernel said, of the addresses as they are written.
pub(crate) fn event(said: &SocketEvent, names: &mut Names) -> SocketEvent {
    let mut named = |end: Endpoint| Endpoint { ip: names.of(end.ip), ..end };
    let (local, remote) = (named(said.local), named(said.remote));
    SocketEvent { time: said.time.floor0(), local, remote, change: said.change }
}

/// The longest TCP header, in words of four bytes.
const LONGEST: u32 = 15;

/// What was captured of the TCP header, and how long it says that it is: one that was cut stays cut, or its
/// options would pass for all that there were.
fn tcp(s: &Segment, hide: bool) -> (Vec<u8>, u32) {
    let options = options(s);
    let cut = s.trouble.has(Trouble::CUT_HEADER);
    // How long a header with cut options was is not kept.
    let words = if cut && s.options.damaged { LONGEST } else { (20 + options.len() as u32) / 4 };
    let mut h = Vec::with_capacity(60);
    h.extend(s.src.port.to_be_bytes());
    h.extend(s.dst.port.to_be_bytes());
    h.extend(s.seq.0.to_be_bytes());
    h.extend(s.ack.0.to_be_bytes());
    h.extend(((words as u16) << 12 | s.flags.0 & 0x0fff).to_be_bytes());
    h.extend(s.window.to_be_bytes());
    // The checksum covers addresses and payload: who knows the rest could test guesses with it.
    h.extend(if hide { 0 } else { s.checksum }.to_be_bytes());
    // Cut although no option was: within the last bytes.
    if !cut || s.options.damaged {
        h.extend([0, 0]);
        h.extend(options);
    }
    (h, 4 * words)
}

/// The options that were understood, in their order; timestamps where Linux has them. Behind them stays a gap
/// or a scar where there was one.
fn options(s: &Segment) -> Vec<u8> {
    let o = &s.options;
    let mut out: Vec<u8> = Vec::with_capacity(40);
    let mut stamps = o.timestamps;
    let mut stamp = |out: &mut Vec<u8>| {
        if let Some((value, echo)) = stamps.take() {
            out.extend([8, 10]);
            out.extend(value.to_be_bytes());
            out.extend(echo.to_be_bytes());
        }
    };
    let syn = s.flags.has(TcpFlags::SYN);
    if !syn {
        stamp(&mut out);
    }
    for at in 0..8 {
        match (o.order >> (4 * at)) & 15 {
            2 => out.extend(o.mss.map(|m| [2, 4, (m >> 8) as u8, m as u8]).into_iter().flatten()),
            3 => out.extend(o.wscale.map(|w| [3, 3, w]).into_iter().flatten()),
            4 if o.sack_permitted => out.extend([4, 2]),
            5 => {
                let blocks = o.sack.get(..usize::from(o.sack_len)).unwrap_or(&o.sack);
                // Four blocks and timestamps have no room together: 40 bytes are all.
                let room = (38usize.saturating_sub(out.len())) / 8;
                let blocks = &blocks[..blocks.len().min(room)];
                out.extend([5, 2 + 8 * blocks.len() as u8]);
                for &(Seq(left), Seq(right)) in blocks {
                    out.extend(left.to_be_bytes());
                    out.extend(right.to_be_bytes());
                }
            }
            _ => {}
        }
        if at == 1 {
            stamp(&mut out);
        }
    }
    stamp(&mut out);
    if s.options.damaged {
        // An option without its length; one byte at least of forty was not understood.
        out.truncate(39);
        if s.trouble.has(Trouble::CUT_HEADER) {
            return out;
        }
        out.push(UNKNOWN);
        if out.len() < 40 {
            out.push(0);
        }
    }
    out.resize(out.len().next_multiple_of(4).min(40), 1);
    out
}

/// An option that nobody has (RFC 4727): its length below two says that the list is damaged.
const UNKNOWN: u8 = 253;

/// What tells the protocol: the types of TLS records, or the word a protocol, a grant, settings of HTTP/2 or a request for
/// TLS begin with.
fn payload(s: &Segment) -> Vec<u8> {
    let mut out = Vec::new();
    if s.tls.has(Tls::CREDIT) {
        out.extend(grants(s.len));
    } else if let Some(records) = finished(s) {
        out = records;
    } else if !s.tls.is_none() {
        let kinds =
            [(Tls::HANDSHAKE, 0x16), (Tls::CHANGE_CIPHER, 0x14), (Tls::ALERT, 0x15), (Tls::DATA, 0x17)];
        for (bit, kind) in kinds.iter().filter(|k| s.tls.has(k.0)) {
            if *bit == Tls::HANDSHAKE && s.tls.has(Tls::NO_H2) {
                out.extend(HELLO);
            } else if *bit == Tls::HANDSHAKE && s.tls.has(Tls::ASKS_AGAIN) {
                out.extend([0x16, 3, 3, 0, 38, 2, 0, 0, 34, 3, 3]);
                out.extend(protocol::HELLO_RETRY);
            } else {
                out.extend([*kind, 3, 3, 0, 0]);
            }
        }
    } else {
        let head = &s.head[..usize::from(s.head_len).min(8)];
        let word = protocol::beginning(head).map(|told| told.0);
        let grants = || head.starts_with(&protocol::WINDOW_UPDATE).then_some(&protocol::WINDOW_UPDATE[..]);
        // Length, type and flags of a frame.
        let settings = || head.get(..5).filter(|_| protocol::is_settings(head));
        // PostgreSQL asks whether TLS may be spoken, in what may look like settings: its handshake follows.
        let asks = || protocol::asks_for_encryption(head).then_some(head);
        out.extend(word.or_else(grants).or_else(asks).or_else(settings).unwrap_or_default());
    }
    out.truncate(s.len as usize);
    out
}

/// TLS records as long as the Finished of TLS 1.3 and what stands before it, all together; without the
/// content of the last one.
fn finished(s: &Segment) -> Option<Vec<u8>> {
    let changes = if s.tls.has(Tls::CHANGE_CIPHER) { &[0x14, 3, 3, 0, 1, 1][..] } else { &[] };
    if !s.tls.has(Tls::FINISHED) || s.tls.has(Tls::HANDSHAKE | Tls::ALERT) {
        return None;
    }
    let left = s.len.checked_sub(changes.len() as u32)?;
    FINISHED_LEN.into_iter().find_map(|len| {
        let before = left.checked_sub(TLS_HEAD + len)?;
        let mut out = changes.to_vec();
        if before > 0 {
            let content = u16::try_from(before.checked_sub(TLS_HEAD)?).ok()?;
            if FINISHED_LEN.contains(&content.into()) {
                return None;
            }
            out.extend([0x17, 3, 3]);
            out.extend(content.to_be_bytes());
            out.resize(changes.len() + before as usize, 0);
        }
        out.extend([0x17, 3, 3, 0, len as u8]);
        Some(out)
    })
}

/// A ClientHello that offers nothing, HTTP/2 neither: no session, one cipher, no compression, no extension
/// (RFC 5246, 7.4.1.2).
const HELLO: [u8; 50] = {
    let mut hello = [0; 50];
    // A handshake record of 45 bytes, a message of 41.
    (hello[0], hello[1], hello[2], hello[4]) = (0x16, 3, 3, 45);
    (hello[5], hello[8], hello[9], hello[10]) = (1, 41, 3, 3);
    (hello[45], hello[47], hello[48]) = (2, 2, 1);
    hello
};

/// TLS records without content that are as long, all together, as grants of HTTP/2 were.
fn grants(len: u32) -> Vec<u8> {
    let split = |added: u32| {
        let around = TLS_HEAD + added;
        (1..=len / (around + WINDOW_UPDATE_LEN)).find_map(|records| {
            let frames = len - records * around;
            let updates = frames / WINDOW_UPDATE_LEN;
            let fits = frames.is_multiple_of(WINDOW_UPDATE_LEN) && updates <= MOST_WINDOW_UPDATES * records;
            fits.then_some((added, records, updates))
        })
    };
    let Some((added, records, updates)) = TLS_ADDS.into_iter().find_map(split) else { return Vec::new() };
    let mut out = Vec::new();
    for n in 0..records {
        let own = updates * (n + 1) / records - updates * n / records;
        let content = added + WINDOW_UPDATE_LEN * own;
        out.extend([0x17, 3, 3, 0, content as u8]);
        out.resize(out.len() + content as usize, 0);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpwhy_base::TcpOptions;
    use tcpwhy_capture::{Dissector, Frame};

    /// What is written is read as what was: all that is told of TLS.
    #[test]
    fn tls_is_told_alike() {
        let told = |tls: u8, len: u32| {
            let ip = IpAddr::V4(Ipv4Addr::LOCALHOST);
            let (src, dst) = (Endpoint { ip, port: 1 }, Endpoint { ip, port: 2 });
            let (mut bytes, mut read) = (Vec::new(), Segment::EMPTY);
            let s = Segment { tls: Tls(tls), len, src, dst, ..Segment::EMPTY };
            let len = write(&s, &mut Names::default(), &mut bytes);
            let (number, time) = (1, tcpwhy_base::Nanos::ZERO);
            let frame = Frame { number, time, bad_time: false, link_type: ETHERNET, data: &bytes, len };
            Dissector::new().dissect(&frame, 0, &mut read);
            (read.tls.0, read.len)
        };
        let hello = Tls::HANDSHAKE | Tls::NO_H2;
        assert_eq!(told(hello, 200), (hello, 200));
        assert_eq!(told(Tls::HANDSHAKE, 200), (Tls::HANDSHAKE, 200));
        let again = Tls::HANDSHAKE | Tls::ASKS_AGAIN | Tls::CHANGE_CIPHER;
        assert_eq!(told(again, 99), (again, 99));
        for len in [34, 35, 42, 55, 81, 84, 110, 136, 165, 378] {
            assert_eq!(told(Tls::DATA | Tls::CREDIT, len), (Tls::DATA | Tls::CREDIT, len));
        }
        let finished = Tls::DATA | Tls::FINISHED;
        for (tls, len) in [
            (finished, 58),
            (finished | Tls::CHANGE_CIPHER, 80),
            (finished | Tls::CHANGE_CIPHER, 64),
            (finished, 1_160),
            (finished | Tls::CHANGE_CIPHER, 5_000),
            // 52 bytes are four grants, too.
            (finished | Tls::CREDIT, 74),
        ] {
            assert_eq!(told(tls, len), (tls, len));
        }
        // No records are so long.
        assert_eq!(told(Tls::DATA | Tls::CREDIT, 36).0, 0);
    }

    /// That a client asks for TLS stays, and of other first bytes nothing.
    #[test]
    fn a_request_for_tls_stays() {
        let ip = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let (src, dst) = (Endpoint { ip, port: 1 }, Endpoint { ip, port: 5432 });
        for (head, stays) in [([0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f], true), ([0, 0, 0, 8, 0, 3, 0, 0], false)] {
            let (mut bytes, mut read) = (Vec::new(), Segment::EMPTY);
            let mut s = Segment { len: 8, src, dst, head_len: 8, ..Segment::EMPTY };
            s.head[..8].copy_from_slice(&head);
            let len = write(&s, &mut Names::default(), &mut bytes);
            let (number, time) = (1, tcpwhy_base::Nanos::ZERO);
            let frame = Frame { number, time, bad_time: false, link_type: ETHERNET, data: &bytes, len };
            Dissector::new().dissect(&frame, 0, &mut read);
            let told = protocol::asks_for_encryption(&read.head[..usize::from(read.head_len).min(8)]);
            assert_eq!((told, read.len), (stays, 8));
        }
    }

    /// What was cut or damaged is read as that.
    #[test]
    fn damage_stays() {
        let syn = TcpOptions { mss: Some(1460), order: 2, ..TcpOptions::default() };
        let ip = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let (src, dst) = (Endpoint { ip, port: 1 }, Endpoint { ip, port: 2 });
        for (damaged, trouble) in [(true, Trouble::CUT_HEADER), (false, Trouble::CUT_HEADER), (true, 0)] {
            let options = if damaged { TcpOptions { damaged, ..syn } } else { TcpOptions::default() };
            let s = Segment { options, trouble: Trouble(trouble), len: 7, src, dst, ..Segment::EMPTY };
            let (mut bytes, mut read) = (Vec::new(), Segment::EMPTY);
            let len = write(&s, &mut Names::default(), &mut bytes);
            let (number, time) = (1, tcpwhy_base::Nanos::ZERO);
            let frame = Frame { number, time, bad_time: false, link_type: ETHERNET, data: &bytes, len };
            Dissector::new().dissect(&frame, 0, &mut read);
            assert_eq!((read.options, read.len), (options, 7), "{trouble}");
            assert_eq!(read.trouble.has(Trouble::CUT_HEADER), s.trouble.has(Trouble::CUT_HEADER));
        }
    }
}
