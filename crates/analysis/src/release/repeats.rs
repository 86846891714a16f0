//! Data that is sent again: by what, and whether that was needed.

use crate::release::value::{Release, Wait};
use crate::track::{Passage, Repair, Repeat};
use tcpwhy_base::Nanos;

/// Data that had passed and is not acknowledged.
pub(super) fn retransmission(p: &Passage<'_>) -> Release {
    let flow = p.flow;
    if let Some(told) = p.flow.was_too_large(p.segment) {
        let wait = Wait::Loss { repair: Repair::TooBig { mtu: told.mtu }, again: flow.recovery.is_some() };
        return Release::inferred(wait).with_ack(told.frame);
    }
    let repair = repair_of(p);
    let mut sign = flow.first_sack().filter(|&f| repair == Repair::Fast && f < p.time);
    if let Some(start) = flow.flight_start
        && repair == Repair::Fast
        && p.segment.seq == flow.una
        && flow.last_advance < flow.flight_start
    {
        // The first segment of the flight is lost: it would have been acknowledged after a round trip.
        sign = sign.map(|f| f.min(start + p.path.rtt));
    }
    if repair == Repair::Timeout && p.segment.seq == flow.una && flow.recovery.is_none() {
        // The oldest unacknowledged byte would have been acknowledged a round trip after it left, which was
        // not after the flight began or the last ACK came: from then on the silence is the loss's, whatever
        // was sent meanwhile (rule 47).
        let oldest = flow.flight_start.max(flow.last_advance).map(|sent| sent + p.path.rtt);
        sign = oldest.filter(|&o| o < p.since.time);
    }
    let again =
        flow.recovery.is_some() || sign.is_some_and(|s| repair == Repair::Timeout && s < p.since.time);
    Release::inferred(Wait::Loss { repair, again }).with_loss(sign.map(|f| (repair, f)))
}

/// The latest that a tail loss probe comes: two smoothed round trips and the longest delayed ACK of a single
/// segment (RFC 8985, 7.2), an eighth late (timer wheel).
pub(crate) fn latest_probe(srtt: Nanos) -> Nanos {
    let timer = srtt.times(2) + Nanos::millis(200);
    timer + timer.part(8)
}

/// Which mechanism sends unacknowledged data again.
fn repair_of(p: &Passage<'_>) -> Repair {
    let (flow, rtt) = (p.flow, p.path.rtt);
    let end = p.segment.seq_end();
    if p.arrived.repeat == Repeat::Needless {
        return Repair::Spurious;
    }
    let quiet = flow.quiet_at(p.time);
    let long = quiet >= rtt + p.profile.rto_floor.times(7).part(8);
    if let Some(kind) = flow.repair() {
        let known = matches!(kind, Repair::BlackHole | Repair::TooBig { .. });
        return if known || !long { kind } else { Repair::Timeout };
    }
    // The third sign sends it again at once (RFC 5681, 3.2; RFC 8985, 6.2): fewer of them, long ago, did not.
    let stale = |first: Nanos| flow.dup_acks < 3 && p.time - first >= p.profile.rto_floor.times(7).part(8);
    // Without a round trip nobody knows how late a probe may be.
    let measured = p.path.reaction.is_some() && p.path.peer_reaction.is_some();
    // A probe sends the last segment again (RFC 8985, 7.3); signs of a later arrival make it a fast repair.
    match flow.first_sack() {
        Some(first) if !long && !stale(first) => Repair::Fast,
        // Never later than the timeout (RFC 8985, 7.2), which here may seem shorter than it was.
        _ if end == p.arrived.before.nxt
            && quiet <= flow.rto(rtt, p.profile).times(3).part(2)
            && (!measured || quiet <= latest_probe(flow.srtt(rtt))) =>
        {
            Repair::Probe
        }
        _ if quiet >= Nanos::millis(190) => Repair::Timeout,
        _ if !flow.has_hole && flow.dup_acks == 0 && quiet > rtt.part(2) => Repair::Timeout,
        _ => Repair::Fast,
    }
}
