use crate::protocol::{WINDOW_UPDATE, WINDOW_UPDATE_LEN};
use crate::{Nanos, Program, Seq, Short};
use std::fmt::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr};

/// An address and a port. Printed as `10.0.0.1:80` or `[2001:db8::1]:80`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint {
    /// The innermost IP address.
    pub ip: IpAddr,
    /// The TCP port.
    pub port: u16,
}

/// As it is displayed; an address of IPv6 as RFC 5952 has it.
impl From<Endpoint> for Short {
    fn from(endpoint: Endpoint) -> Short {
        let mut short = Short::new();
        match endpoint.ip {
            IpAddr::V4(ip) => {
                let [a, b, c, d] = ip.octets();
                for (byte, behind) in [(a, b'.'), (b, b'.'), (c, b'.'), (d, b':')] {
                    short.octet(byte, behind);
                }
            }
            IpAddr::V6(ip) => {
                // 39 digits and colons at most, or 22 and an address of IPv4: there is room.
                let _ = write!(short, "[{ip}]:");
            }
        }
        short.number(endpoint.port.into());
        short
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Short::from(*self).as_str())
    }
}

/// One of several parts into which connections are dealt out, both directions of each into the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    mine: u32,
    of: u32,
}

impl Part {
    /// All connections.
    pub const ALL: Part = Part { mine: 0, of: 1 };

    /// Part `mine` of `of`, from 0 on; of more than four thousand million, or of none: all.
    pub fn new(mine: usize, of: usize) -> Part {
        match (u32::try_from(mine), u32::try_from(of)) {
            (Ok(mine), Ok(of)) if of > 0 => Part { mine, of },
            _ => Part::ALL,
        }
    }

    /// Whether it has the connection between these addresses of IPv4, each with its port.
    #[inline]
    pub fn has_v4(self, one: (u32, u16), other: (u32, u16)) -> bool {
        let end = |(ip, port): (u32, u16)| u64::from(ip) << 16 | u64::from(port);
        self.of == 1 || index(end(one), end(other), self.of) == self.mine
    }

    /// Whether it has the connection between these ends.
    #[inline]
    pub fn has(self, one: &Endpoint, other: &Endpoint) -> bool {
        self.of == 1 || index(one.bits(), other.bits(), self.of) == self.mine
    }

    /// Which of `of` parts has the connection between these ends.
    pub fn index(one: &Endpoint, other: &Endpoint, of: usize) -> usize {
        index(one.bits(), other.bits(), u32::try_from(of).unwrap_or(1)) as usize
    }

    /// So many classes of connections there are. Each is in one part as a whole, if there are no more parts
    /// than classes.
    pub const CLASSES: usize = 256;

    /// The class of the connection between these ends.
    pub fn class(one: &Endpoint, other: &Endpoint) -> usize {
        (hash(one.bits(), other.bits()) >> 24) as usize
    }
}

impl Default for Part {
    fn default() -> Part {
        Part::ALL
    }
}

#[inline]
fn index(one: u64, other: u64, of: u32) -> u32 {
    let part = hash(one, other);
    // As a part of one: a division takes longer than all of this. Classes stay whole.
    let whole = if of as usize <= Part::CLASSES { part & 0xff00_0000 } else { part };
    ((whole * u64::from(of)) >> 32) as u32
}

/// The upper half of a hash, 32 bits.
#[inline]
fn hash(one: u64, other: u64) -> u64 {
    // The sum does not know which end is which.
    one.wrapping_add(other).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

impl Endpoint {
    /// What is dealt out by: an address of IPv6 folded.
    fn bits(&self) -> u64 {
        let bits = match self.ip {
            IpAddr::V4(ip) => u64::from(ip.to_bits()),
            IpAddr::V6(ip) => (ip.to_bits() >> 64) as u64 ^ ip.to_bits() as u64,
        };
        bits << 16 | u64::from(self.port)
    }
}

/// The flag bits of a TCP header, as in its 13th and 14th byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TcpFlags(pub u16);

#[expect(missing_docs, reason = "RFC 9293 names")]
impl TcpFlags {
    pub const FIN: u16 = 0x01;
    pub const SYN: u16 = 0x02;
    pub const RST: u16 = 0x04;
    pub const PSH: u16 = 0x08;
    pub const ACK: u16 = 0x10;
    pub const URG: u16 = 0x20;
    pub const ECE: u16 = 0x40;
    pub const CWR: u16 = 0x80;

    #[inline]
    pub const fn has(self, bits: u16) -> bool {
        self.0 & bits != 0
    }
    #[inline]
    pub const fn fin(self) -> bool {
        self.has(Self::FIN)
    }
    #[inline]
    pub const fn syn(self) -> bool {
        self.has(Self::SYN)
    }
    #[inline]
    pub const fn rst(self) -> bool {
        self.has(Self::RST)
    }
    #[inline]
    pub const fn psh(self) -> bool {
        self.has(Self::PSH)
    }
    #[inline]
    pub const fn ack(self) -> bool {
        self.has(Self::ACK)
    }
}

/// The TCP options that matter to a diagnosis. A value that was absent, cut off or malformed is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions {
    /// TSval and TSecr (RFC 7323).
    pub timestamps: Option<(u32, u32)>,
    /// Maximum segment size (SYN only).
    pub mss: Option<u16>,
    /// Window scale shift (SYN only), as sent: may exceed 14.
    pub wscale: Option<u8>,
    /// SACK permitted (SYN only).
    pub sack_permitted: bool,
    /// How many entries of `sack` hold a block.
    pub sack_len: u8,
    /// SACK blocks, left and right edge.
    pub sack: [(Seq, Seq); 4],
    /// The option kinds in their order, 4 bits each from the lowest, NOP and timestamps left out: a trace of
    /// the stack that wrote the SYN.
    pub order: u32,
    /// The options area was longer than the captured bytes, or did not parse.
    pub damaged: bool,
}

/// TLS record types that begin in this segment, where the payload starts with a record header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tls(pub u8);

impl Tls {
    /// ChangeCipherSpec (0x14) seen.
    pub const CHANGE_CIPHER: u8 = 1;
    /// Alert (0x15) seen.
    pub const ALERT: u8 = 2;
    /// Handshake (0x16) seen.
    pub const HANDSHAKE: u8 = 4;
    /// Application data (0x17) seen.
    pub const DATA: u8 = 8;
    /// Nothing but whole records of the size that grants of HTTP/2 have (WINDOW_UPDATE, encrypted), as far as
    /// it was captured.
    pub const CREDIT: u8 = 16;
    /// A ClientHello, all of it here, that does not offer HTTP/2 (ALPN).
    pub const NO_H2: u8 = 32;
    /// Nothing but whole records, the last of which is as long as the Finished of TLS 1.3 (encrypted), as far
    /// as it was captured.
    pub const FINISHED: u8 = 64;
    /// A HelloRetryRequest of TLS 1.3, told by what stands in the place of its random number.
    pub const ASKS_AGAIN: u8 = 128;
    /// Any of the bits.
    pub const fn has(self, bits: u8) -> bool {
        self.0 & bits != 0
    }
    /// The payload did not begin with a TLS record header (or was not captured).
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}

/// What was odd about how a segment was read; bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trouble(pub u8);

impl Trouble {
    /// The snap length cut into the TCP header or its options.
    pub const CUT_HEADER: u8 = 1;
    /// The snap length cut the payload.
    pub const CUT_PAYLOAD: u8 = 2;
    /// The IP length was zero (segmentation offload); the length came from the frame.
    pub const ZERO_IP_LEN: u8 = 4;
    /// Put together from IP fragments.
    pub const FRAGMENTS: u8 = 8;
    /// The time stamp in the file was impossible (for instance more than a second of nanoseconds).
    pub const BAD_TIME: u8 = 16;
    /// Carried inside a tunnel (a VLAN tag is none).
    pub const ENCAPSULATED: u8 = 32;
    /// The station sent this frame again (IEEE 802.11, Retry): the packet may have passed before.
    pub const RETRY: u8 = 64;
    /// Came through the air (IEEE 802.11), where stations send frames again.
    pub const AIR: u8 = 128;
    /// Any of the bits.
    pub const fn has(self, bits: u8) -> bool {
        self.0 & bits != 0
    }
}

/// The IP identifier: 16 bits for IPv4, absent for IPv6.
pub type IpId = Option<u16>;

/// One TCP packet of a capture: what the analysis eats.
///
/// What every packet has stands first and side by side, so that it is copied several fields at once.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Segment {
    /// When it passed the tap, since the Unix epoch.
    pub time: Nanos,
    /// 1-based number of its frame in its file, as Wireshark counts.
    pub frame: u64,
    /// Sequence number of the first payload byte (or of SYN, FIN).
    pub seq: Seq,
    /// Acknowledgement number; meaningful with the ACK flag.
    pub ack: Seq,
    /// Payload bytes by the IP header, whatever was captured.
    pub len: u32,
    /// Flags.
    pub flags: TcpFlags,
    /// The window field, unscaled.
    pub window: u16,
    /// The first captured payload bytes, `head_len` of them.
    pub head: [u8; 8],
    /// Index of the input it came from.
    pub file: u16,
    /// TTL or hop limit.
    pub ttl: u8,
    /// How many of `head` were captured.
    pub head_len: u8,
    /// TLS records.
    pub tls: Tls,
    /// What was odd.
    pub trouble: Trouble,
    /// The program that the first captured bytes name as their sender.
    pub program: Option<Program>,
    /// IP identifier.
    pub ip_id: IpId,
    /// The checksum field as captured: tells copies of a packet from repeats.
    pub checksum: u16,
    /// Identifies VLAN tags and tunnels around the packet: the same 4-tuple in two of them is two connections.
    pub link: u32,
    /// Sender.
    pub src: Endpoint,
    /// Receiver.
    pub dst: Endpoint,
    /// Options.
    pub options: TcpOptions,
}

impl Segment {
    /// Nothing but grants of HTTP/2 (WINDOW_UPDATE) is in it, as far as can be seen.
    #[inline]
    pub fn grants(&self) -> bool {
        self.tls.has(Tls::CREDIT)
            || self.head.starts_with(&WINDOW_UPDATE) && self.len.is_multiple_of(WINDOW_UPDATE_LEN)
    }

    /// An empty segment to fill in.
    pub const EMPTY: Segment = {
        let nobody = Endpoint { ip: IpAddr::V4(Ipv4Addr::UNSPECIFIED), port: 0 };
        Segment {
            time: Nanos::ZERO,
            frame: 0,
            file: 0,
            src: nobody,
            dst: nobody,
            link: 0,
            seq: Seq(0),
            ack: Seq(0),
            flags: TcpFlags(0),
            window: 0,
            len: 0,
            ip_id: None,
            ttl: 0,
            checksum: 0,
            options: TcpOptions {
                timestamps: None,
                mss: None,
                wscale: None,
                sack_permitted: false,
                sack_len: 0,
                sack: [(Seq(0), Seq(0)); 4],
                order: 0,
                damaged: false,
            },
            head: [0; 8],
            head_len: 0,
            tls: Tls(0),
            program: None,
            trouble: Trouble(0),
        }
    };

    /// The sequence number after this segment: SYN and FIN count one each.
    #[inline]
    pub fn seq_end(&self) -> Seq {
        self.seq + self.len + u32::from(self.flags.syn()) + u32::from(self.flags.fin())
    }
}
