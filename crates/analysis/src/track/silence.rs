//! Keep-alive probes that nobody answers (RFC 9293, 3.8.4; RFC 1122, 4.2.3.6).

use crate::rest::{Frame, at_rest};
use crate::track::Tracker;
use tcpwhy_base::{End, Nanos, Segment};

/// Keep-alives of one end, since it last heard of the other one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Silence {
    who: End,
    pub(crate) tries: u32,
    /// When the first of them passed, and in which frame.
    pub(crate) since: Nanos,
    pub(crate) frame: u64,
    /// Packets of the other end until then.
    heard: u32,
}

at_rest! { Silence { who, tries, since, frame as Frame, heard } }

impl Tracker {
    /// `s` asks whether its peer is still there.
    #[cold]
    pub(super) fn asks_whether_alive(&mut self, s: End, segment: &Segment, t: Nanos) {
        let heard = self.counts(s.peer()).packets as u32;
        let unanswered =
            self.silence.as_deref_mut().filter(|silence| silence.who == s && silence.heard == heard);
        match unanswered {
            Some(silence) => silence.tries += 1,
            None => {
                let silence = Silence { who: s, tries: 1, since: t, frame: segment.frame, heard };
                self.silence = Some(Box::new(silence));
            }
        }
    }

    /// Keep-alives that were not answered until now, and who should have.
    pub(crate) fn silence(&self) -> Option<(&Silence, End)> {
        let silence = self.silence.as_deref()?;
        let peer = silence.who.peer();
        (self.counts(peer).packets as u32 == silence.heard).then_some((silence, peer))
    }
}
