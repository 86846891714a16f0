//! What was sent, and neither passed nor was acknowledged (rule 106).

use super::Half;
use crate::track::Tracker;
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
        let (since, bytes) = self.holes.waited_for(flow.una).filter(|_| flow.acked)?;
        let whole = self.mss_from_handshake && !self.full_sent && bytes >= flow.mss;
        Some(NeverCame { since, whole })
    }

    /// Its ACK says that it has sent more than passed.
    #[cold]
    pub(crate) fn is_ahead(&mut self, seq: Seq, t: Nanos) {
        self.holes.open(self.flow.nxt, seq, t);
        self.flow.nxt = seq;
    }
}

impl Tracker {
    /// The number of a pure ACK is that of the next byte (`tcp_acceptable_seq`): what lies before it was sent. Told of the ACK of a FIN, for
    /// which a client waits that gives up; nothing else passes in a connection whose answers are all lost.
    #[inline]
    pub(crate) fn hears_of_unseen(&mut self, s: End, segment: &Segment, t: Nanos) {
        let flow = self.half[s].flow();
        let tells = segment.len == 0 && !segment.flags.fin() && flow.seen && segment.seq.after(flow.nxt);
        if tells && self.half[s.peer()].fin().is_some() {
            self.half[s].is_ahead(segment.seq, t);
        }
    }

    /// What `s` sent and its peer still lacked at `until`, though its timer had run out twice, the second time for twice as long (RFC 6298,
    /// 5.5): two copies more were lost (rule 106).
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
