//! Requests that passed before what is seen of them: those without a word, and those on a SYN.

use super::Recorder;
use crate::track::Moment;
use tcpwhy_base::{End, Nanos};

impl Recorder {
    /// What opened it answers `s`, who had asked for it without a word at that moment.
    pub(crate) fn asked_by(&mut self, s: End, (t, frame): Moment) {
        let ex = &mut self.recorded;
        (ex.last_sender, ex.last, ex.first_frame, ex.last_frame) = (s, t, frame, frame);
    }

    /// So much of the request had passed before.
    pub(crate) fn asked_before(&mut self, bytes: u64, t: Nanos) {
        let r = &mut self.recorded;
        (r.bytes.client, r.first_bytes, r.request_end, r.turns) = (bytes, bytes, Some(t), 1);
    }

    /// Who answers had the request before its time began: none of the wait was on the way.
    pub(crate) fn was_at_work(&mut self) {
        if let Some(step) = self.recorded.steps.last_mut() {
            step.was_at_work();
        }
    }
}
