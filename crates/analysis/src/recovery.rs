//! Losses: when a recovery begins and ends, and which of them were not needed.

use crate::conn::Conn;
use crate::half::{Recovery, Repair};
use crate::step::{Step, Wait};
use tcpwhy_base::{Nanos, Segment, Seq};

impl Conn {
    /// A recovery of `d` ended at `t`: the steps since it began belong to it.
    pub(crate) fn mark_recovered(
        &mut self,
        d: usize,
        kind: Repair,
        t: Nanos,
        rename: bool,
        last_segment: bool,
    ) {
        self.half[d].recovered = Some((kind, t));
        if rename && self.ex.forget_needless(d, last_segment) {
            self.half[d].recovered = None;
        }
    }

    /// A duplicate was reported (RFC 2883): the retransmission of that range was not needed.
    pub(crate) fn on_dsack(&mut self, d: usize, left: Seq, right: Seq) {
        let Some(recovery) = self.half[d].recovery.as_deref().copied() else {
            // The ACK for the original already ended it; the step may still be there.
            let own = |s: &&Step| usize::from(s.sender) == d && matches!(s.wait, Wait::Loss(_));
            let last = self.ex.steps.iter().rev().find(own);
            let whole = right.minus(left).max(0) as u32;
            if last.is_some_and(|s| s.len >= whole / 2 && s.wait != Wait::Loss(Repair::Fast)) {
                self.ex.rename_losses(d, Repair::Spurious);
            }
            return;
        };
        if (recovery.range.0 == left || recovery.range.1 == right)
            && let Some(r) = self.half[d].recovery.as_mut()
        {
            r.kind = Repair::Spurious;
        }
    }

    pub(crate) fn start_recovery(&mut self, s: usize, segment: &Segment, t: Nanos) {
        let kind = match self.ex.steps.last().map(|step| step.wait) {
            Some(Wait::Loss(kind)) => kind,
            _ => Repair::Fast,
        };
        let half = &mut self.half[s];
        if matches!(kind, Repair::Timeout | Repair::Probe) && half.recovery.is_none() {
            let wait = (t - half.last_data).0;
            let shortest = &mut half.counts.min_timeout;
            *shortest = if *shortest == 0 { wait } else { (*shortest).min(wait) };
        }
        let range = (segment.seq, segment.seq + segment.len);
        let point = half.nxt;
        let small_ones_pass = half.una.after(half.base) || half.acked && self.handshake.done;
        let mut black_hole = false;
        let mut backed_off = false;
        match half.recovery.as_mut() {
            Some(r) => {
                r.repeats += 1;
                // A probe is followed by the timeout it came before, undoubled; a timeout by one twice as long.
                let doubled = (t - r.last).times(2) >= r.first_wait.times(3);
                if r.repeats == 2 && r.kind == Repair::Probe && kind == Repair::Timeout && doubled {
                    backed_off = true;
                }
                r.last = t;
                r.range = range;
                if kind == Repair::Timeout && r.kind != Repair::BlackHole {
                    r.kind = kind;
                }
                // The same full segment again and again, and none of that size ever came through, while smaller ones
                // did (RFC 4821, 1; tcp_mtu_probing acts after tcp_retries1 timeouts).
                let full = segment.len >= half.mss && !half.full_delivered;
                if full && r.repeats >= 2 && r.kind == Repair::Timeout && small_ones_pass {
                    r.kind = Repair::BlackHole;
                    black_hole = true;
                }
            }
            None => {
                let first_wait = t - half.last_data;
                let new = Recovery { kind, point, last: t, repeats: 1, range, first_wait };
                half.recovery = Some(Box::new(new));
                if kind != Repair::Probe {
                    let flight = half.outstanding().max(half.round.1).max(half.round.2);
                    half.cwnd.before_loss = half.cwnd.before_loss.max(flight);
                    half.cwnd.estimate = half.cwnd.estimate.min(flight);
                    half.cwnd.before_idle = 0;
                }
            }
        }
        if backed_off {
            self.ex.rename_losses(s, Repair::Timeout);
        }
        if black_hole {
            self.ex.rename_losses(s, Repair::BlackHole);
        }
    }
}
