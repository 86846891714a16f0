//! From frames to TCP segments.

use crate::bytes::{be16, be32};
use crate::encap;
use crate::fragments::{Fragments, Whole};
use crate::reader::Frame;
use crate::walk::{Fragment, Layer, Quote, Rest, Step, Verdict, Walk};
use crate::{ip, link, plain, tcp};
use tcpwhy_base::{Endpoint, Part, Segment, Seq, TooBig, Trouble};

/// Headers in one frame; more is hostile.
const MAX_LAYERS: usize = 40;

/// Distinct link types, and destinations, told apart in the counts; the rest share the last entry.
const MAX_KINDS: usize = 16;

/// Takes the innermost TCP segment out of each frame. Segmentation offload, padding, cut frames, tags,
/// tunnels and IP fragments are dealt with here. Packets quoted in ICMP errors are not TCP; of those that
/// were too large for the rest of their way [`Dissector::too_big`] tells.
#[derive(Debug, Default)]
pub struct Dissector {
    fragments: Fragments,
    counts: Counts,
    encapsulations: [u64; encap::COUNT],
    last: u32,
    too_big: Option<TooBig>,
}

/// What was seen so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// TCP segments delivered.
    pub tcp: u64,
    /// Of these, with a TCP header cut by the snap length.
    pub cut_headers: u64,
    /// Of these, put together from fragments.
    pub reassembled: u64,
    /// Frames that hold something else.
    pub not_tcp: u64,
    /// Fragments that did not complete a packet when they came.
    pub fragments: u64,
    /// Frames encrypted on the link.
    pub encrypted: u64,
    /// Frames cut before the TCP flags, or with headers that contradict themselves.
    pub unusable: u64,
    /// Frames by link type that is not known, in the order of appearance.
    pub unknown_links: Vec<(u32, u64)>,
    /// TCP packets of which ICMP says that their destination does not take them: the first sixteen destinations.
    pub unreachable: Vec<(Endpoint, u64)>,
    /// The same of all other destinations together.
    pub unreachable_elsewhere: u64,
}

impl Counts {
    /// Adds those of another input.
    pub fn add(&mut self, other: &Counts) {
        self.tcp += other.tcp;
        self.cut_headers += other.cut_headers;
        self.reassembled += other.reassembled;
        self.not_tcp += other.not_tcp;
        self.fragments += other.fragments;
        self.encrypted += other.encrypted;
        self.unusable += other.unusable;
        other.unknown_links.iter().for_each(|&(link, n)| count(&mut self.unknown_links, link, n));
        other.unreachable.iter().for_each(|&(to, n)| self.refused(to, n));
        self.unreachable_elsewhere += other.unreachable_elsewhere;
    }

    /// ICMP says of so many packets that their destination does not take them.
    #[cold]
    fn refused(&mut self, to: Endpoint, packets: u64) {
        if let Some(known) = self.unreachable.iter_mut().find(|known| known.0 == to) {
            known.1 += packets;
        } else if self.unreachable.len() < MAX_KINDS {
            self.unreachable.push((to, packets));
        } else {
            self.unreachable_elsewhere += packets;
        }
    }
}

impl Dissector {
    /// A dissector that has seen nothing.
    pub fn new() -> Dissector {
        Dissector::default()
    }

    /// Fills `out` if the verdict is [`Verdict::Tcp`]; else its content means nothing.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "what is read here is written where it stays: nothing goes through memory before"
    )]
    pub fn dissect(&mut self, frame: &Frame<'_>, file: u16, out: &mut Segment) -> Verdict {
        // All of it is of all: there is always a verdict.
        self.dissect_of(Part::ALL, frame, file, out).unwrap_or(Verdict::NotTcp)
    }

    /// Fills `out` if the verdict is [`Verdict::Tcp`], for connections of a part alone: `None` of a segment
    /// of another one. Counted is everything.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as for `dissect`")]
    pub fn dissect_of(
        &mut self,
        part: Part,
        frame: &Frame<'_>,
        file: u16,
        out: &mut Segment,
    ) -> Option<Verdict> {
        out.time = frame.time;
        out.frame = frame.number;
        out.file = file;
        self.last = 0;
        let trouble = if frame.bad_time { Trouble::BAD_TIME } else { 0 };
        if frame.link_type == 1
            && let Some(is_of_it) = plain::read(frame.data, trouble, part, out)
        {
            self.counts.tcp += 1;
            return is_of_it.then_some(Verdict::Tcp);
        }
        self.general_of(part, *frame, out)
    }

    /// Layer by layer. (The frame is copied for it alone: else it would be put together in memory for each.)
    #[inline(never)]
    fn general_of(&mut self, part: Part, frame: Frame<'_>, out: &mut Segment) -> Option<Verdict> {
        let verdict = self.general(frame, out);
        (verdict != Verdict::Tcp || part.has(&out.src, &out.dst)).then_some(verdict)
    }

    fn general(&mut self, frame: Frame<'_>, out: &mut Segment) -> Verdict {
        let mut walk = Walk::START;
        if frame.bad_time {
            walk.trouble = Trouble::BAD_TIME;
        }
        let rest = Rest { data: frame.data, len: frame.len.max(frame.data.len() as u32) };
        let start = Layer::Link(frame.link_type);
        let verdict = self.walk(start, rest, &mut walk, &frame, out).unwrap_or(Verdict::Unusable);
        self.last = walk.seen;
        let mut seen = walk.seen;
        while seen != 0 {
            if let Some(n) = self.encapsulations.get_mut(seen.trailing_zeros() as usize) {
                *n += 1;
            }
            seen &= seen - 1;
        }
        let counts = &mut self.counts;
        match verdict {
            Verdict::Tcp => {
                out.link = walk.link;
                out.src.ip = walk.src;
                out.dst.ip = walk.dst;
                out.ip_id = walk.ip_id;
                out.ttl = walk.ttl;
                if walk.seen & encap::TUNNELS != 0 {
                    walk.trouble |= Trouble::ENCAPSULATED;
                }
                out.trouble = Trouble(walk.trouble);
                counts.tcp += 1;
                counts.cut_headers += u64::from(out.trouble.has(Trouble::CUT_HEADER));
                counts.reassembled += u64::from(out.trouble.has(Trouble::FRAGMENTS));
            }
            Verdict::NotTcp => counts.not_tcp += 1,
            Verdict::Fragment => counts.fragments += 1,
            Verdict::Encrypted => counts.encrypted += 1,
            Verdict::Unusable => counts.unusable += 1,
            Verdict::UnknownLink => count(&mut counts.unknown_links, frame.link_type, 1),
        }
        verdict
    }

    /// From layer to layer. Nothing if a header is cut or contradicts itself.
    fn walk(
        &mut self,
        layer: Layer,
        rest: Rest<'_>,
        walk: &mut Walk,
        frame: &Frame<'_>,
        out: &mut Segment,
    ) -> Option<Verdict> {
        match descend(layer, rest, walk)? {
            Bottom::Tcp(r) => {
                let cut = tcp::read(r.data, r.len, out)?;
                // A reassembled packet has only its head here, so its cut is known from the fragments.
                let known = walk.trouble & Trouble::FRAGMENTS != 0;
                walk.trouble |= if known { cut & !Trouble::CUT_PAYLOAD } else { cut };
                Some(Verdict::Tcp)
            }
            Bottom::End(verdict) => Some(verdict),
            Bottom::Quote(quote) => {
                match (quote.mtu, quoted(&quote, walk, frame)) {
                    (Some(_), told) => self.too_big = told,
                    (None, Some(told)) => self.counts.refused(told.dst, 1),
                    (None, None) => {}
                }
                Some(Verdict::NotTcp)
            }
            Bottom::Fragment(fragment) => match self.fragments.push(&fragment, walk, frame.time) {
                None => Some(Verdict::Fragment),
                Some(whole) => self.reassembled(&whole, fragment.protocol, walk, frame, out),
            },
        }
    }

    /// Goes on with a packet that the last fragment completed. As deep as packets that wait for their
    /// fragments may be nested in each other.
    #[cold]
    fn reassembled(
        &mut self,
        whole: &Whole,
        protocol: u8,
        walk: &mut Walk,
        frame: &Frame<'_>,
        out: &mut Segment,
    ) -> Option<Verdict> {
        walk.trouble |= Trouble::FRAGMENTS;
        if whole.cut {
            walk.trouble |= Trouble::CUT_PAYLOAD;
        }
        let data = whole.head.get(..whole.head_len)?;
        self.walk(Layer::Protocol(protocol), Rest { data, len: whole.total }, walk, frame, out)
    }

    /// Another dissector saw so many TCP segments of this stream and nothing else to count: they count here as well.
    pub fn passed(&mut self, tcp: u64) {
        self.counts.tcp += tcp;
    }

    /// What a router said of a segment that was too large, if the last frame was that: it is no TCP, and told once.
    #[inline]
    pub fn too_big(&mut self) -> Option<TooBig> {
        self.too_big.take()
    }

    /// What was seen so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Packets of which fragments were missing, or still are.
    pub fn incomplete(&self) -> u64 {
        self.fragments.incomplete()
    }

    /// What packets were wrapped in, and how many, in a fixed order; those not seen are left out.
    pub fn encapsulations(&self) -> impl Iterator<Item = (&'static str, u64)> {
        encap::NAMES.into_iter().zip(self.encapsulations).filter(|&(_, n)| n > 0)
    }

    /// What the last packet was wrapped in.
    pub fn around(&self) -> impl Iterator<Item = &'static str> {
        let last = self.last;
        encap::NAMES.into_iter().enumerate().filter(move |(i, _)| last >> i & 1 == 1).map(|(_, name)| name)
    }
}

/// Where a way through the layers ends.
enum Bottom<'a> {
    Tcp(Rest<'a>),
    Fragment(Fragment<'a>),
    Quote(Quote<'a>),
    End(Verdict),
}

/// Which segment a router quotes, `walk` being the way to the quote. None for what is no TCP, or too short to
/// tell: ports and sequence number are the first eight bytes behind its IP header.
#[cold]
fn quoted(quote: &Quote<'_>, walk: &Walk, frame: &Frame<'_>) -> Option<TooBig> {
    // It has the tags of the network that the router's word came through, and the tunnels that are in the quote.
    let mut inner = Walk { link: walk.link, ..Walk::START };
    let Bottom::Tcp(r) = descend(Layer::Ip, quote.rest, &mut inner)? else { return None };
    let port = |at| be16(r.data, at);
    Some(TooBig {
        time: frame.time,
        frame: frame.number,
        src: Endpoint { ip: inner.src, port: port(0)? },
        dst: Endpoint { ip: inner.dst, port: port(2)? },
        link: inner.link,
        seq: Seq(be32(r.data, 4)?),
        mtu: quote.mtu.unwrap_or_default(),
    })
}

/// From layer to layer. Nothing if a header is cut or contradicts itself.
#[inline]
fn descend<'a>(layer: Layer, rest: Rest<'a>, walk: &mut Walk) -> Option<Bottom<'a>> {
    let (mut layer, mut r) = (layer, rest);
    for _ in 0..MAX_LAYERS {
        let step = match layer {
            Layer::Link(t) => link::link(t, r, walk),
            Layer::Ethernet => link::ethernet(r),
            Layer::EtherType(t) => link::ether_type(t, r, walk),
            Layer::Llc => link::llc(r),
            Layer::Ppp => link::ppp_protocol(r),
            Layer::Pppoe => link::pppoe(r, walk),
            Layer::Mpls => link::mpls(r, walk),
            Layer::Ip => ip::ip(r, walk),
            Layer::Ip4 => ip::ip4(r, walk),
            Layer::Ip6 => ip::ip6(r, walk),
            Layer::Protocol(n) => ip::protocol(n, r, walk),
            Layer::Tcp => return Some(Bottom::Tcp(r)),
        };
        match step? {
            Step::Go(next, rest) => (layer, r) = (next, rest),
            Step::End(verdict) => return Some(Bottom::End(verdict)),
            Step::Fragment(fragment) => return Some(Bottom::Fragment(fragment)),
            Step::Quote(quote) => return Some(Bottom::Quote(quote)),
        }
    }
    Some(Bottom::End(Verdict::NotTcp))
}

/// The payload of a TCP packet, as far as the frame holds it. A fragment has none, nor has what is no TCP.
pub fn payload<'a>(frame: &Frame<'a>) -> Option<&'a [u8]> {
    let rest = Rest { data: frame.data, len: frame.len.max(frame.data.len() as u32) };
    let Bottom::Tcp(r) = descend(Layer::Link(frame.link_type), rest, &mut Walk { ..Walk::START })? else {
        return None;
    };
    let header = usize::from(r.data.get(12)? >> 4) * 4;
    let end = r.data.len().min(r.len as usize);
    r.data.get(header.max(20)..end)
}

/// A TCP packet up to its payload: neither that nor what stands behind it in the frame (padding, a trailer).
/// A fragment has none, nor has what is no TCP.
pub fn headers<'a>(frame: &Frame<'a>) -> Option<&'a [u8]> {
    let behind = payload(frame)?.as_ptr() as usize;
    frame.data.get(..behind.checked_sub(frame.data.as_ptr() as usize)?)
}

/// Counts frames of a link type; beyond some kinds those that are new are taken for the last one.
fn count(counts: &mut Vec<(u32, u64)>, link_type: u32, frames: u64) {
    if let Some((_, n)) = counts.iter_mut().find(|(t, _)| *t == link_type) {
        *n += frames;
    } else if counts.len() < MAX_KINDS {
        counts.push((link_type, frames));
    } else if let Some((_, n)) = counts.last_mut() {
        *n += frames;
    }
}
