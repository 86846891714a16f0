//! Time that a loss took, or packets that never passed the tap.

use crate::attribute::context::Context;
use crate::attribute::emit::Emit;
use crate::confidence::Rule;
use crate::facts::Facts;
use crate::release::{Wait, latest_probe};
use crate::step::Step;
use crate::track::{NotTaken, Repair};
use tcpwhy_base::{Cause, End, Nanos, Side};

/// No timer of a retransmission is shorter (`TCP_RTO_MIN`, RFC 6298, 2.4), less 10 ms of jitter.
const SHORTEST_TIMER: Nanos = Nanos::millis(190);

/// Packets that never passed the tap, as the numbers of their sender's packets tell, and the timers that sent
/// them again.
pub(super) fn missing(context: &Context, packets: u32, time: Nanos, otherwise: Cause, out: &mut Emit<'_>) {
    // One lost copy: a probe comes first, if it can be as late; more of them: its timeouts.
    let (rule, cause) = if packets == 1 && (!context.measured || time <= latest_probe(context.rtt)) {
        (Rule::OnePacketMissing, Cause::TailLossProbe)
    } else {
        (Rule::PacketsMissing, Cause::RetransmissionTimeout)
    };
    out.missing(rule, cause, otherwise, time, Facts::Missing { packets, wait: time });
}

/// Bytes that are waited for and were repeated in vain: `whole` segments alone, or anything (rule 106).
pub(crate) fn never_repaired(whole: bool) -> (Rule, Cause) {
    if whole {
        (Rule::FullNeverCame, Cause::PathMtu)
    } else {
        (Rule::NeverRepaired, Cause::RetransmissionTimeout)
    }
}

/// The wait for new data that a tail loss probe carried.
pub(super) fn new_probe(context: &Context, step: &Step, outstanding: u32, rest: Nanos, out: &mut Emit<'_>) {
    let trip = out.trip(context, context.reaction[step.sender.peer()].min(rest));
    out.network(Rule::RoundTripOfLostData, Cause::PathDelay, trip, Facts::RoundTrip { rtt: context.rtt });
    let facts = Facts::Probe { wait: step.duration(), outstanding };
    out.network(Rule::NewDataProbe, Cause::TailLossProbe, rest - trip, facts);
}

/// A loss that was repaired in this way.
pub(super) fn loss(context: &Context, step: &Step, kind: Repair, time: Nanos, out: &mut Emit<'_>) {
    // Without ACKs nobody knows when a loss was repaired, nor how, where no timer is as short.
    if context.one_sided && (!step.is_loss() || step.duration() < SHORTEST_TIMER) {
        return out.span(Rule::NotCaptured, Cause::Unexplained, None, time, Facts::OneSided);
    }
    if let Some(NotTaken { retransmissions, syn_acks, .. }) = context.not_taken {
        let facts = Facts::NotTaken { repeats: retransmissions, syn_acks };
        out.span(Rule::NotTaken, Cause::AcceptQueueFull, Some(Side::Server), time, facts);
        return;
    }
    let mut time = time;
    // The trip that the data would have taken anyway (rule 14): only before the first retransmission.
    let first = matches!(step.wait, Wait::Loss { again: false, .. });
    let told = matches!(kind, Repair::TooBig { .. });
    let timed = matches!(kind, Repair::Timeout | Repair::Probe);
    if first && (timed || told) {
        out.owe_trip(context.reaction[step.sender.peer()]);
    }
    // What a router's word lets go is late by what came before it; the trip is that of the repeat.
    if first && timed || told && !step.is_loss() {
        let trip = out.trip_owed(context, time);
        out.network(Rule::RoundTripOfLostData, Cause::PathDelay, trip, Facts::RoundTrip { rtt: context.rtt });
        time = time - trip;
    }
    let first_data = context.maybe_untaken.filter(|_| step.sender == End::Client);
    if let Some(repeats) = first_data.filter(|_| matches!(kind, Repair::Timeout | Repair::Probe)) {
        let facts = Facts::FirstData { bytes: step.len, wait: step.duration(), repeats };
        let (rule, cause) = match kind {
            Repair::Timeout => (Rule::TimeoutOfFirstData, Cause::RetransmissionTimeout),
            _ => (Rule::ProbeOfFirstData, Cause::TailLossProbe),
        };
        return out.network(rule, cause, time, facts);
    }
    let (rule, cause) = match kind {
        Repair::Fast => (Rule::FastRecovery, Cause::FastRecovery),
        Repair::Timeout => (Rule::Timeout, Cause::RetransmissionTimeout),
        Repair::Probe => (Rule::LossProbe, Cause::TailLossProbe),
        Repair::Spurious => (Rule::SpuriousRecovery, Cause::SpuriousRecovery),
        Repair::BlackHole => (Rule::BlackHole, Cause::PathMtu),
        Repair::TooBig { mtu } => {
            let facts = Facts::TooBig { bytes: step.len, wait: step.duration(), mtu };
            return out.network(Rule::TooBig, Cause::PathMtu, time, facts);
        }
    };
    let (bytes, wait) = (step.len, step.duration());
    let repaired = matches!(kind, Repair::Timeout | Repair::Probe | Repair::Fast);
    let facts = match step.behind && repaired && step.is_loss() {
        true => Facts::LostBehind { bytes, wait },
        false if step.is_loss() => Facts::Loss { bytes, wait },
        false => Facts::InRecovery { bytes, wait },
    };
    out.network(rule, cause, time, facts);
}
