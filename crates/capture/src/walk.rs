//! What the steps of a dissection share: the bytes still to read, the next layer, what was passed so far.

use crate::encap::Encap;
use std::net::{IpAddr, Ipv4Addr};
use tcpwhy_base::IpId;

/// What a frame turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A TCP segment; `out` holds it.
    Tcp,
    /// Something else, or nested deeper than anything real.
    NotTcp,
    /// A fragment of an IP packet whose other fragments are still missing.
    Fragment,
    /// A link layer that is not known.
    UnknownLink,
    /// Encrypted on the link (802.11): what is inside cannot be seen.
    Encrypted,
    /// Cut before the TCP flags, or a header that contradicts itself.
    Unusable,
}

/// The bytes from a layer's header on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest<'a> {
    /// Those that were captured.
    pub(crate) data: &'a [u8],
    /// How many there were.
    pub(crate) len: u32,
}

impl<'a> Rest<'a> {
    /// Without the first `n` bytes; nothing if they were not captured.
    #[inline]
    pub(crate) fn skip(self, n: usize) -> Option<Rest<'a>> {
        let data = self.data.get(n..)?;
        Some(Rest { data, len: self.len.saturating_sub(u32::try_from(n).unwrap_or(u32::MAX)) })
    }

    /// At most `len` bytes captured, and `len` said to be there: the rest is padding.
    #[inline]
    pub(crate) fn limit(self, len: u32) -> Rest<'a> {
        Rest { data: self.data.get(..len as usize).unwrap_or(self.data), len }
    }

    /// On to `layer` after `n` bytes.
    #[inline]
    pub(crate) fn go(self, n: usize, layer: Layer) -> Option<Step<'a>> {
        Some(Step::Go(layer, self.skip(n)?))
    }
}

/// What the next bytes are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Layer {
    Link(u32),
    Ethernet,
    EtherType(u16),
    Llc,
    Ppp,
    Pppoe,
    Mpls,
    /// IP of the version that its first bits tell.
    Ip,
    Ip4,
    Ip6,
    /// What an IP protocol number announces.
    Protocol(u8),
    Tcp,
}

/// How a dissection goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step<'a> {
    Go(Layer, Rest<'a>),
    Fragment(Fragment<'a>),
    /// A router or a host quotes a packet that was too large, or that it does not take.
    Quote(Quote<'a>),
    End(Verdict),
}

/// A part of an IP packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragment<'a> {
    pub(crate) id: u32,
    pub(crate) protocol: u8,
    /// Where in the packet it belongs.
    pub(crate) offset: u32,
    /// It is not the last.
    pub(crate) more: bool,
    pub(crate) rest: Rest<'a>,
}

/// A packet as a router quotes it: its headers, and eight bytes behind those at least (RFC 792), often more
/// (RFC 1812, 4.3.2.3; RFC 4443, 2.4).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quote<'a> {
    /// The largest packet that goes on; zero where the router does not say (RFC 1191, 5). None: it is not about size.
    pub(crate) mtu: Option<u32>,
    pub(crate) rest: Rest<'a>,
}

/// What was passed on the way in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk {
    pub(crate) src: IpAddr,
    pub(crate) dst: IpAddr,
    pub(crate) ip_id: IpId,
    pub(crate) ttl: u8,
    /// Becomes [`tcpwhy_base::Segment::link`].
    pub(crate) link: u32,
    /// Bits of [`crate::encap::NAMES`].
    pub(crate) seen: u32,
    /// Bits of [`tcpwhy_base::Trouble`].
    pub(crate) trouble: u8,
    /// IP headers passed.
    pub(crate) depth: u8,
    /// The next IP packet is no longer than what is left, whatever it says.
    pub(crate) bounded: bool,
}

impl Walk {
    pub(crate) const START: Walk = Walk {
        src: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        dst: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        ip_id: None,
        ttl: 0,
        link: 0,
        seen: 0,
        trouble: 0,
        depth: 0,
        bounded: false,
    };

    /// Remembers a wrapping.
    #[inline]
    pub(crate) fn saw(&mut self, encap: Encap) {
        self.seen |= 1 << encap;
    }

    /// Mixes an identifier that both directions share into `link`. A multiplicative hash (Knuth, TAOCP 6.4):
    /// it only has to tell networks apart, the table that it becomes a key of has a seeded one.
    #[inline]
    pub(crate) fn tag(&mut self, kind: u32, id: u32) {
        let mixed = (self.link.rotate_left(5) ^ id ^ kind << 24).wrapping_mul(0x9e37_79b1);
        self.link = (mixed ^ mixed >> 15).max(1);
    }
}
