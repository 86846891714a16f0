//! What ICMP says of a packet that was too large for the rest of its way. All else that it says is no TCP.

use crate::bytes::{be16, be32};
use crate::walk::{Quote, Rest, Step, Verdict};

/// ICMP (protocol 1) type 3, code 4, "fragmentation needed" (RFC 1191, 4), and ICMPv6 (58) type 2, "packet too big" (RFC 4443, 3.2).
#[cold]
pub(crate) fn icmp(protocol: u8, r: Rest<'_>) -> Step<'_> {
    let quote = || {
        let mtu = match (protocol, r.data.get(..2)?) {
            (1, [3, 4]) => be16(r.data, 6)?.into(),
            (58, [2, _]) => be32(r.data, 4)?,
            _ => return None,
        };
        Some(Step::Quote(Quote { mtu, rest: r.skip(8)? }))
    };
    quote().unwrap_or(Step::End(Verdict::NotTcp))
}
