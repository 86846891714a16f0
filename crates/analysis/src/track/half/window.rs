//! What an idle time and a loss leave of the congestion window of one end.

use super::Half;
use crate::profile::Profile;
use tcpwhy_base::Nanos;

impl Half {
    /// It begins to send again. If it was idle longer than its retransmission timeout, the kernel cut its congestion
    /// window (tcp_slow_start_after_idle; `tcp_cwnd_restart`): idle counts from the last data it sent.
    pub(crate) fn resumes(&mut self, t: Nanos, rtt: Nanos, profile: &Profile) {
        let flow = &mut self.flow;
        let Some(last) = flow.last else { return };
        if flow.outstanding() > 0 && flow.recovery.is_some() {
            return;
        }
        let (idle, timeout) = (t - last.time, rtt + profile.rto_floor);
        if idle > timeout {
            // One less than began: the kernel halves while some idle time is left over, by its own timeout,
            // which may be longer.
            let each = timeout.max(flow.rto(rtt, profile)).0.saturating_mul(2).max(1);
            let timeouts = ((idle.0 - 1) / each).min(31) as u32;
            let mss = flow.mss.max(1);
            // Its window counts packets, whatever their size.
            let sent = self.counts.bytes.saturating_add(self.counts.packets.saturating_mul(u64::from(mss)));
            flow.cwnd.idle(profile.initial_window * mss, mss, timeouts, sent);
        }
    }

    /// A flight of so many bytes waited for an ACK, maybe while a loss was being repaired.
    pub(crate) fn flew(&mut self, bytes: u32, repairing: bool, near: bool) {
        let cwnd = &mut self.flow.cwnd;
        if cwnd.initial == 0 {
            cwnd.initial = bytes;
        }
        if !near && !repairing {
            cwnd.flew_afar(bytes);
        }
    }

    /// A loss before the tap was repaired.
    pub(crate) fn lost_before_tap(&mut self) {
        let flight = self.flow.flight_by_rounds();
        self.flow.cwnd.lost_before_tap(flight);
    }
}
