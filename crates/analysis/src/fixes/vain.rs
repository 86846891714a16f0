//! Why a fix would have nothing to do here.

use super::{Brief, TIMEOUT, sender_of};
use crate::facts::Facts;
use crate::result::Finding;
use tcpwhy_base::{Cause, FixId};

/// Why what happened leaves this fix nothing to do.
pub(super) fn is_vain(fix: FixId, f: &Finding, c: &Brief) -> Option<String> {
    let kept = fix == FixId::ReuseConnections && f.cause == Cause::SlowStart && f.example.exchange > 1;
    let vain = || format!("it was request {} of a connection that had been kept", f.example.exchange);
    kept.then(vain)
        .or_else(|| is_too_soon(fix, f, c))
        .or_else(|| holds_more(fix, f, c))
        .or_else(|| set_otherwise(fix, f, c))
        .or_else(|| alone(fix, f, c))
}

/// Why there is nothing to ask for together: no request came behind another one (rule 165).
fn alone(fix: FixId, f: &Finding, c: &Brief) -> Option<String> {
    (fix == FixId::FewerRoundTrips && f.cause == Cause::PathDelay && c.none_in_series).then(|| {
        "no connection had two requests in series, beside what may be a login, that were made for the same one: each needs its round trip"
            .into()
    })
}

/// With this scale the limit of a receiver's automatic window is what is advised, or more: Linux takes that of 2^(15 + scale) bytes
/// (`tcp_select_initial_window`), of the buffer where the program had set one by then, which would be no limit either.
pub(super) const LARGE_SCALE: u8 = 10;
/// With this scale, or a smaller one, a buffer was set, whatever `tcp_rmem` is: of the larger of that and `net.core.rmem_max`, whose default
/// is 212,992 bytes, Linux takes 2 by itself.
pub(super) const SET_SCALE: u8 = 1;
/// The largest window that a SYN can offer (RFC 7323, 2.2): what is larger later is not the small buffer of who set one behind it.
const FIRST: u64 = 65_535;

/// Why there is no buffer to be left as it is, or no limit to be raised: the window scale says which of them was set (rule 164).
fn set_otherwise(fix: FixId, f: &Finding, c: &Brief) -> Option<String> {
    let receiver = 1 - sender_of(f)?;
    let (scale, window) = (c.scales[receiver]?, c.windows[receiver]);
    match fix {
        FixId::UnsetRcvbuf if scale >= LARGE_SCALE => window.filter(|&w| w > FIRST).map(|w| {
            format!(
                "the window scale is {scale}, and the window was {w} bytes later: no buffer as small as that had been set before the handshake"
            )
        }),
        FixId::Rmem if scale <= SET_SCALE => Some(format!(
            "the window scale is {scale}: the program set SO_RCVBUF before the handshake, and then tcp_rmem has no effect"
        )),
        _ => None,
    }
}

/// Why no buffer let two segments fly: more did, on the same connection. That a loss or an idle time has left a small
/// congestion window makes an ACK for them as late (rule 145). Nor did a buffer of two segments hold who had more in
/// flight while it waited.
fn holds_more(fix: FixId, f: &Finding, c: &Brief) -> Option<String> {
    let most = c.flights[sender_of(f).filter(|_| fix == FixId::BiggerWindow)?];
    let Facts::AckDelay { flight, .. } = f.facts else { return None };
    if c.mss.is_some_and(|mss| flight > 2 * mss) {
        return Some(format!("{flight} bytes were in flight, more than two segments"));
    }
    (most >= 2 * u64::from(flight)).then(|| {
        format!("{most} bytes had been in flight on that connection: its congestion window was smaller then, and no buffer")
    })
}

/// Why no end should have given up: it repeats three times before it may (RFC 9293, 3.8.3, R1), after one, two and four timeouts.
fn is_too_soon(fix: FixId, f: &Finding, c: &Brief) -> Option<String> {
    let (longest, least) = (f.range.longest, (c.rtt? + TIMEOUT).times(7));
    (fix == FixId::UserTimeout && longest < least).then(|| {
        format!("no silence was longer than {longest}, and who gives up before three repeats ({least}) ends connections that would have gone on")
    })
}
