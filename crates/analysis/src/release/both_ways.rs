//! Streams in both directions at once (rule 112): what an ACK let go, though the other end has spoken meanwhile.

use crate::release::acked::lock;
use crate::track::{Arrival, CwndState, Passage};
use tcpwhy_base::Seq;

/// A full flight that an ACK made room in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filled {
    /// Bytes in flight behind its last segment, and what was acknowledged.
    pub(crate) flight: u32,
    pub(crate) una: Seq,
    /// A window is known to have been full. Else it was the congestion window only if that grows.
    pub(crate) known: bool,
}

/// This full segment may go on with what its sender, since whose last segment the passage counts, was
/// sending: an ACK, mostly one beside what the other end said, made room in a window that was full. Who sends
/// the next request or answer has the last one acknowledged, or has had room for it before.
pub(crate) fn goes_on(p: &Passage<'_>) -> Option<Filled> {
    let last = p.flow.last?;
    // Behind packets that are missing it is not known which segment the ACK let go.
    if p.arrived.arrival != Arrival::New || p.missing > 0 || p.one_sided || !p.flow.edge_known {
        return None;
    }
    let lock = lock(p, true)?;
    let nxt = p.arrived.before.nxt;
    // What it knew to be acknowledged when it had sent its last segment, and what was in flight then.
    let then = last.time - p.path.own();
    let earlier = p.acks.newest_first().find(|a| a.time <= then).map(|a| a.ack);
    let una = earlier.or(p.acks.newest_first().last().map(|a| a.una_before)).unwrap_or(last.una);
    let (flight, mss) = (nxt.minus(una), p.mss() as i32);
    // Linux lets a third of a window be free before it sends more (`tcp_tso_should_defer`): what had more
    // room was not held by it (rule 20).
    let unused = lock.una_before.minus(una) > (flight / 3).max(2 * mss);
    // What the other end said last answers all that was sent, unless the segment had left before it came, or
    // the ACK leaves some out, or came later.
    let crossed = p.segment.flags.ack() && p.segment.ack.before(p.peer.nxt);
    let later = lock.ack.pure() && p.peer.last.is_some_and(|said| lock.ack.time > said.time);
    if unused || !(crossed || later || nxt.after(lock.ack.ack)) {
        return None;
    }
    let full = match p.flow.cwnd.state() {
        // No congestion window is smaller before a loss (RFC 6928, 2).
        CwndState::Growing | CwndState::Restarted | CwndState::RestartedAfterLoss => {
            flight > (p.profile.initial_window as i32 - 1) * mss
        }
        CwndState::AfterLoss | CwndState::Avoiding => flight + mss >= lock.ack.cwnd as i32,
    };
    let cut = matches!(p.flow.cwnd.state(), CwndState::AfterLoss | CwndState::Avoiding);
    let opens = lock.opens.is_some();
    let flight = flight.max(0).cast_unsigned();
    (full || opens).then_some(Filled { flight, una, known: opens || cut })
}
