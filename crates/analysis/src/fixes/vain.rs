//! Why a fix would have nothing to do here.

use super::{Brief, TIMEOUT, sender_of};
use crate::facts::Facts;
use crate::result::Finding;
use tcpwhy_base::{Cause, FixId};

/// Why what happened leaves this fix nothing to do.
pub(super) fn is_vain(fix: FixId, f: &Finding, c: &Brief) -> Option<String> {
    let kept = fix == FixId::ReuseConnections && f.cause == Cause::SlowStart && f.example.exchange > 1;
    let vain = || format!("it was request {} of a connection that had been kept", f.example.exchange);
    kept.then(vain).or_else(|| is_too_soon(fix, f, c)).or_else(|| holds_more(fix, f, c))
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
