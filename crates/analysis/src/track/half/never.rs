//! What was sent, and neither passed nor was acknowledged (rule 106).

use super::Half;
use crate::profile::WAKE_UP;
use crate::track::rate::Left;
use crate::track::{Repair, Tracker};
use tcpwhy_base::{End, Nanos, Segment, Seq};

/// What one end sent and the other one never got.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NeverCame {
    /// When the first of what lies behind it passed.
    pub(crate) since: Nanos,
    /// A full segment at least, and none of that size ever passed, where smaller ones did.
    pub(crate) whole: bool,
}

impl Half {
    /// Bytes that its peer still waits for never passed, though something behind them did (rule 106).
    pub(crate) fn never_came(&self) -> Option<NeverCame> {
        let flow = &self.flow;
        let missing = || self.holes.waited_for(flow.una).or_else(|| self.holes.beyond(flow.nxt));
        let (since, bytes) = missing().filter(|_| flow.acked)?;
        let whole = self.mss_from_handshake && !self.full_sent && bytes >= flow.mss;
        Some(NeverCame { since, whole })
    }

    /// What passes at `t` had left then.
    pub(crate) fn told_left(&mut self, t: Nanos, left: Left) {
        self.rate.told_left(t, left);
    }

    /// It had sent up to `seq` by then, which is more than passed; `closed`: nothing more comes.
    #[cold]
    pub(crate) fn hears_of(&mut self, (seq, t): (Seq, Nanos), closed: bool) {
        let nxt = self.flow.nxt;
        // One byte is the number of a FIN.
        if seq.minus(nxt) > 1 {
            self.holes.tell(nxt, seq, t);
        }
        if closed {
            let since = self.holes.beyond(nxt).map_or(t, |beyond| beyond.0);
            self.holes.open(nxt, seq, since, None);
            self.flow.nxt = seq;
        }
    }
}

impl Tracker {
    /// The number of a pure ACK is that of the next byte (`tcp_acceptable_seq`): what lies before it was
    /// sent, be it that it comes yet. Of a FIN, for which a client waits that gives up, nothing more is to
    /// come.
    #[inline]
    pub(crate) fn hears_of_unseen(&mut self, s: End, segment: &Segment, t: Nanos) {
        let flow = self.half[s].flow();
        let tells = segment.len == 0 && !segment.flags.fin() && flow.seen && segment.seq.after(flow.nxt);
        if tells {
            let closed = self.half[s.peer()].fin().is_some();
            self.half[s].hears_of((segment.seq, t), closed);
        }
    }

    /// What `s` sent again by its timer did not come either, and at `until` it waited for the next timeout.
    pub(crate) fn repeats_in_vain(&self, s: End, until: Nanos) -> Option<Repair> {
        let flow = self.flow(s);
        let latest = self.rtt_or_zero().times(5).part(4) + WAKE_UP;
        flow.recovery.as_ref()?.in_vain(flow.una, until, latest)
    }

    /// The segment of `s` that passes had left then, as another tap says.
    #[cold]
    pub(crate) fn told_left(&mut self, s: End, t: Nanos, left: Left) {
        self.half[s].told_left(t, left);
    }

    /// The server sent up to `to` since then, as another tap says.
    #[cold]
    pub(crate) fn hears_of_lost(&mut self, sent: (Seq, Nanos)) {
        self.half.server.hears_of(sent, false);
    }

    /// What `s` sent and its peer still lacked at `until`, though its timer had run out twice, the second
    /// time for twice as long (RFC 6298, 5.5): two copies more were lost (rule 106).
    pub(crate) fn never_came(&self, s: End, until: Nanos) -> Option<NeverCame> {
        let lost = self.half[s].never_came().filter(|_| !self.one_sided())?;
        (until - lost.since > self.rto(s).times(3)).then_some(lost)
    }

    /// The same, told only when who waited for it so long had given up: when it was sent is not known.
    pub(crate) fn answer_never_came(&self, s: End, wait: Nanos) -> Option<NeverCame> {
        let lost = self.half[s].never_came().filter(|_| !self.one_sided())?;
        (wait > self.rto(s).times(3)).then_some(lost)
    }
}
