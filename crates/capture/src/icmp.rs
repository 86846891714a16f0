//! What ICMP says of a packet: that it was too large for the rest of its way, or that nobody takes it there.
//! All else is no TCP.

use crate::bytes::{be16, be32};
use crate::walk::{Quote, Rest, Step, Verdict};

/// ICMP (protocol 1) type 3, code 4, "fragmentation needed" (RFC 1191, 4), and ICMPv6 (58) type 2, "packet
/// too big" (RFC 4443, 3.2); type 3 with other codes, and type 1: "destination unreachable".
#[cold]
pub(crate) fn icmp(protocol: u8, r: Rest<'_>) -> Step<'_> {
    let quote = || {
        let mtu = match (protocol, r.data.get(..2)?) {
            (1, [3, 4]) => Some(be16(r.data, 6)?.into()),
            (58, [2, _]) => Some(be32(r.data, 4)?),
            (1, [3, _]) | (58, [1, _]) => None,
            _ => return None,
        };
        Some(Step::Quote(Quote { mtu, rest: r.skip(8)? }))
    };
    quote().unwrap_or(Step::End(Verdict::NotTcp))
}
