//! Captures that read like the event they hold.
//!
//! A [`Wire`] joins a client and a server at a distance of half a round trip each way, with a tap somewhere between.
//! Each packet is written down as its sender sends it, at the sender's own time; the wire knows when it passes the
//! tap and when it arrives, so that one and the same event can be looked at from either end. Acknowledgements, SACK
//! blocks and reports of duplicates are what a receiver would say that got what arrived until then.
//!
//! [`Wire::tells`] compares the whole answer of the analysis with a story, one part or span a line, times in
//! milliseconds from the first packet and exact to the nanosecond. (Hosts answer in no time here, which the analysis
//! takes for one nanosecond: a span of that length is left out of the story, and its neighbour closes the ranks.)

#![allow(dead_code, unused_imports, reason = "each test crate uses a part of it")]

pub(crate) mod heard;
pub(crate) mod told;

pub(crate) use told::{alike_at_rest, analyze, same_story, tell};

use std::net::{IpAddr, Ipv4Addr};
use tcpwhy_analysis::{Analysis, Connection};
use tcpwhy_base::{Endpoint, Nanos, Segment, Seq, TcpFlags, TcpOptions, Tls};

pub(crate) const CLIENT: usize = 0;
pub(crate) const SERVER: usize = 1;

/// Time zero of every capture: 2023-11-14.
const EPOCH: Nanos = Nanos::secs(1_700_000_000);

pub(crate) fn ms(n: i64) -> Nanos {
    Nanos::millis(n)
}

pub(crate) fn us(n: i64) -> Nanos {
    Nanos::micros(n)
}

/// Where the capture is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tap {
    Client,
    Middle,
    Server,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Arrives,
    LostBeforeTap,
    LostAfterTap,
    /// Arrives, but the capture missed it.
    Unseen,
}

/// A packet on its way.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) segment: Segment,
    sent: Nanos,
    from: usize,
    fate: Fate,
    late: Nanos,
    behind: Nanos,
    copy: Option<Nanos>,
}

impl Packet {
    /// The network drops it after it passed the tap.
    pub(crate) fn lost(&mut self) -> &mut Packet {
        self.fate = Fate::LostAfterTap;
        self
    }
    /// The network drops it before it reaches the tap.
    pub(crate) fn lost_before_tap(&mut self) -> &mut Packet {
        self.fate = Fate::LostBeforeTap;
        self
    }
    /// It arrives, but the capture does not hold it.
    pub(crate) fn unseen(&mut self) -> &mut Packet {
        self.fate = Fate::Unseen;
        self
    }
    /// The path before the tap holds it up.
    pub(crate) fn late(&mut self, by: Nanos) -> &mut Packet {
        self.late = by;
        self
    }
    /// The tap sees it twice.
    pub(crate) fn copied(&mut self, after: Nanos) -> &mut Packet {
        self.copy = Some(after);
        self
    }
    /// Its payload begins with this.
    pub(crate) fn says(&mut self, head: &[u8]) -> &mut Packet {
        let n = head.len().min(8);
        self.segment.head[..n].copy_from_slice(&head[..n]);
        self.segment.head_len = n as u8;
        self
    }
    /// It begins with these TLS records.
    pub(crate) fn tls(&mut self, bits: u8) -> &mut Packet {
        self.segment.tls = Tls(bits);
        self
    }
}

/// One of the two hosts.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    pub(crate) end: Endpoint,
    pub(crate) isn: Seq,
    /// Next sequence number to send.
    pub(crate) nxt: Seq,
    /// Next one expected, and what arrived beyond it.
    got: Option<Seq>,
    beyond: Vec<(Seq, Seq)>,
    duplicate: Option<(Seq, Seq)>,
    /// Packets on their way to it.
    inbox: Vec<usize>,
    /// Window it offers, bytes.
    pub(crate) window: u32,
    /// Options of its SYN.
    pub(crate) mss: u16,
    pub(crate) wscale: Option<u8>,
    pub(crate) order: u32,
    pub(crate) ttl: u8,
    pub(crate) ip_id: u16,
    heard: u32,
}

impl Host {
    fn new(last: u8, port: u16, isn: u32) -> Host {
        Host {
            end: Endpoint { ip: IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)), port },
            isn: Seq(isn),
            nxt: Seq(isn),
            got: None,
            beyond: Vec::new(),
            duplicate: None,
            inbox: Vec::new(),
            window: 64_000,
            mss: 1_460,
            wscale: Some(7),
            order: 0x342,
            // Hosts so far from each other have routers between them.
            ttl: if last == 1 { 64 } else { 57 },
            ip_id: 100 * u16::from(last),
            heard: 0,
        }
    }

    /// Takes the bytes `seq..end`.
    fn take(&mut self, seq: Seq, end: Seq) {
        let got = *self.got.get_or_insert(seq);
        let known = end.at_or_before(got) || self.beyond.iter().any(|b| !seq.before(b.0) && !end.after(b.1));
        if known {
            self.duplicate = Some((seq, end));
            return;
        }
        if seq.after(got) {
            self.beyond.retain(|b| b.1.before(seq) || b.0.after(end) || b.1 == seq || b.0 == end);
            let mut block = (seq, end);
            self.beyond.retain(|b| {
                let joins = b.1 == seq || b.0 == end;
                if b.1 == seq {
                    block.0 = b.0;
                }
                if b.0 == end {
                    block.1 = b.1;
                }
                !joins
            });
            self.beyond.insert(0, block);
            return;
        }
        let mut got = end;
        while let Some(i) = self.beyond.iter().position(|b| !b.0.after(got)) {
            got = got.max(self.beyond.remove(i).1);
        }
        self.got = Some(got);
    }
}

/// Two hosts, the path between them, and a tap.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    pub(crate) tap: Tap,
    pub(crate) rtt: Nanos,
    pub(crate) now: Nanos,
    pub(crate) timestamps: bool,
    /// The tap's clock ticks as coarsely as the story's times say; else a nanosecond aside.
    pub(crate) coarse: bool,
    pub(crate) host: [Host; 2],
    pub(crate) packets: Vec<Packet>,
}

impl Wire {
    /// Two Linux hosts: MSS 1460, window scale 7, timestamps (so that a full segment has 1448 bytes).
    pub(crate) fn new(tap: Tap, rtt: Nanos) -> Wire {
        Wire {
            tap,
            rtt,
            now: Nanos::ZERO,
            timestamps: true,
            coarse: false,
            host: [Host::new(1, 40_000, 1_000), Host::new(2, 80, 500_000)],
            packets: Vec::new(),
        }
    }

    /// Goes on at this time.
    pub(crate) fn at(&mut self, t: Nanos) -> &mut Wire {
        self.now = t;
        self
    }

    /// Goes on after this time.
    pub(crate) fn after(&mut self, t: Nanos) -> &mut Wire {
        self.now += t;
        self
    }

    pub(crate) fn client(&mut self) -> Act<'_> {
        Act { wire: self, who: CLIENT }
    }

    pub(crate) fn server(&mut self) -> Act<'_> {
        Act { wire: self, who: SERVER }
    }

    pub(crate) fn end(&mut self, who: usize) -> Act<'_> {
        Act { wire: self, who }
    }

    /// SYN, SYN-ACK, ACK; goes on when the last one is sent.
    pub(crate) fn handshake(&mut self) -> &mut Wire {
        let way = self.rtt.part(2);
        self.client().syn();
        self.after(way).server().syn_ack();
        self.after(way).client().ack();
        self
    }

    /// Payload of a full segment.
    pub(crate) fn mss(&self) -> u32 {
        u32::from(self.host[0].mss.min(self.host[1].mss)) - if self.timestamps { 12 } else { 0 }
    }

    /// From a host to the tap.
    fn way_to_tap(&self, from: usize) -> Nanos {
        let way = self.rtt.part(2);
        match (self.tap, from) {
            (Tap::Client, CLIENT) | (Tap::Server, SERVER) => Nanos::ZERO,
            (Tap::Middle, _) => way.part(2),
            _ => way,
        }
    }

    /// What the capture holds.
    pub(crate) fn segments(&self) -> Vec<Segment> {
        let mut seen = Vec::new();
        for packet in &self.packets {
            if matches!(packet.fate, Fate::LostBeforeTap | Fate::Unseen) {
                continue;
            }
            let aside = Nanos(i64::from(!self.coarse));
            let time = EPOCH + aside + packet.sent + self.way_to_tap(packet.from) + packet.late;
            seen.push(Segment { time, ..packet.segment });
            if let Some(after) = packet.copy {
                seen.push(Segment { time: time + after, ..packet.segment });
            }
        }
        seen.sort_by_key(|s| s.time);
        for (i, segment) in seen.iter_mut().enumerate() {
            segment.frame = i as u64 + 1;
        }
        seen
    }

    /// The answer of the analysis, with all detail.
    pub(crate) fn analysis(&self) -> Analysis {
        let segments = self.segments();
        alike_at_rest(|analyzer| segments.iter().for_each(|segment| analyzer.push(segment)))
    }

    /// The only connection.
    pub(crate) fn connection(&self) -> Connection {
        let mut connections = self.analysis().connections;
        assert_eq!(connections.len(), 1, "connections");
        *connections.remove(0)
    }

    /// The analysis says this, no more and no less.
    #[track_caller]
    pub(crate) fn tells(&self, story: &str) -> Connection {
        let connection = self.connection();
        let zero = self.segments()[0].time;
        same_story(&tell(&connection, zero), story, &self.segments());
        connection
    }

    /// The packet sent `n` packets before the last one arrives so much later, held up behind the tap.
    pub(crate) fn overtaken(&mut self, n: usize, by: Nanos) {
        let at = self.packets.len() - 1 - n;
        self.packets[at].behind = by;
    }

    fn send(&mut self, from: usize, seq: Seq, len: u32, flags: u16) -> &mut Packet {
        self.deliver(from);
        let (now, timestamps) = (self.now, self.timestamps);
        let peer = self.host[1 - from].end;
        let host = &mut self.host[from];
        let syn = flags & TcpFlags::SYN != 0;
        let mut options = TcpOptions::default();
        if syn {
            options.mss = Some(host.mss);
            options.wscale = host.wscale;
            options.sack_permitted = true;
            options.order = host.order;
        }
        if timestamps {
            options.timestamps = Some(((now.0 / 1_000_000) as u32 + 7_000, host.heard));
        }
        let blocks: Vec<(Seq, Seq)> =
            host.duplicate.take().into_iter().chain(host.beyond.iter().copied()).take(3).collect();
        options.sack_len = blocks.len() as u8;
        options.sack[..blocks.len()].copy_from_slice(&blocks);
        let shift = if syn { 0 } else { u32::from(host.wscale.unwrap_or(0)) };
        host.ip_id = host.ip_id.wrapping_add(1);
        let segment = Segment {
            src: host.end,
            dst: peer,
            seq,
            ack: if flags & TcpFlags::ACK == 0 { Seq(0) } else { host.got.unwrap_or(Seq(0)) },
            flags: TcpFlags(flags),
            window: (host.window >> shift).min(0xffff) as u16,
            len,
            ip_id: Some(host.ip_id),
            ttl: host.ttl,
            options,
            ..Segment::EMPTY
        };
        host.nxt = host.nxt.max(segment.seq_end());
        self.host[1 - from].inbox.push(self.packets.len());
        self.packets.push(Packet {
            segment,
            sent: now,
            from,
            fate: Fate::Arrives,
            late: Nanos::ZERO,
            behind: Nanos::ZERO,
            copy: None,
        });
        let last = self.packets.len() - 1;
        &mut self.packets[last]
    }

    /// Hands a host what has arrived there until now.
    fn deliver(&mut self, to: usize) {
        let (now, way) = (self.now, self.rtt.part(2));
        let packets = &self.packets;
        let host = &mut self.host[to];
        let arrival = |i: usize| packets[i].sent + packets[i].late + packets[i].behind + way;
        let mut here: Vec<usize> = host.inbox.iter().copied().filter(|&i| arrival(i) <= now).collect();
        host.inbox.retain(|&i| arrival(i) > now);
        here.sort_by_key(|&i| arrival(i));
        for i in here {
            let packet = &packets[i];
            if matches!(packet.fate, Fate::LostBeforeTap | Fate::LostAfterTap) {
                continue;
            }
            let segment = &packet.segment;
            host.heard = segment.options.timestamps.map_or(0, |t| t.0);
            if segment.seq != segment.seq_end() {
                host.take(segment.seq, segment.seq_end());
            }
        }
    }
}

/// What a host does now.
pub(crate) struct Act<'a> {
    wire: &'a mut Wire,
    who: usize,
}

impl<'a> Act<'a> {
    fn host(&mut self) -> &mut Host {
        &mut self.wire.host[self.who]
    }

    /// Offers this window from now on.
    pub(crate) fn window(mut self, bytes: u32) -> Act<'a> {
        self.host().window = bytes;
        self
    }

    pub(crate) fn syn(mut self) -> &'a mut Packet {
        let isn = self.host().isn;
        self.wire.send(self.who, isn, 0, TcpFlags::SYN)
    }

    pub(crate) fn syn_ack(mut self) -> &'a mut Packet {
        let isn = self.host().isn;
        self.wire.send(self.who, isn, 0, TcpFlags::SYN | TcpFlags::ACK)
    }

    /// One packet of payload; pushed if it is not full.
    pub(crate) fn data(mut self, len: u32) -> &'a mut Packet {
        let seq = self.host().nxt;
        let push = if len.is_multiple_of(self.wire.mss()) { 0 } else { TcpFlags::PSH };
        self.wire.send(self.who, seq, len, TcpFlags::ACK | push)
    }

    /// One packet of payload, the last one, with a FIN.
    pub(crate) fn last_data(mut self, len: u32) -> &'a mut Packet {
        let seq = self.host().nxt;
        self.wire.send(self.who, seq, len, TcpFlags::ACK | TcpFlags::PSH | TcpFlags::FIN)
    }

    /// The same of its stream once more, from `offset` on.
    pub(crate) fn repeat_last(mut self, offset: u32, len: u32) -> &'a mut Packet {
        let seq = self.host().isn + 1 + offset;
        self.wire.send(self.who, seq, len, TcpFlags::ACK | TcpFlags::PSH | TcpFlags::FIN)
    }

    /// Payload cut into full packets and what is left.
    pub(crate) fn write(self, bytes: u32) {
        let mss = self.wire.mss();
        let mut left = bytes;
        while left > 0 {
            let len = left.min(mss);
            left -= len;
            Act { wire: self.wire, who: self.who }.data(len);
        }
    }

    /// Sends `len` bytes of its stream from `offset` on once more.
    pub(crate) fn repeat(mut self, offset: u32, len: u32) -> &'a mut Packet {
        let seq = self.host().isn + 1 + offset;
        self.wire.send(self.who, seq, len, TcpFlags::ACK | TcpFlags::PSH)
    }

    /// A packet without payload.
    pub(crate) fn ack(mut self) -> &'a mut Packet {
        let seq = self.host().nxt;
        self.wire.send(self.who, seq, 0, TcpFlags::ACK)
    }

    /// A window probe or keep-alive as Linux sends it: nothing, one below the next sequence number.
    pub(crate) fn probe(mut self) -> &'a mut Packet {
        let seq = self.host().nxt - 1;
        self.wire.send(self.who, seq, 0, TcpFlags::ACK)
    }

    pub(crate) fn fin(mut self) -> &'a mut Packet {
        let seq = self.host().nxt;
        self.wire.send(self.who, seq, 0, TcpFlags::FIN | TcpFlags::ACK)
    }

    pub(crate) fn rst(mut self) -> &'a mut Packet {
        let seq = self.host().nxt;
        self.wire.send(self.who, seq, 0, TcpFlags::RST | TcpFlags::ACK)
    }
}
