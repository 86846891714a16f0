//! What the other end said while one end went on with its stream (rule 112).

use super::Recorder;
use crate::step::Step;
use crate::track::Since;
use tcpwhy_base::{End, Nanos};

impl Recorder {
    /// What a segment of `s` is to be judged by that goes on with what `s` sent last, at `time`.
    pub(crate) fn since_last_of(&self, s: End, time: Nanos) -> Since {
        Since { time, speaker: s, message: self.recorded.start, recovered: self.recovered[s] }
    }

    /// `s` goes on with what it sent last, at `time`: steps of the other end since then are taken back, for
    /// `s` waited all the time. But for those of a loss, which has its own time.
    pub(crate) fn goes_on_across(&mut self, s: End, time: Nanos) {
        let r = &mut self.recorded;
        let spoke = |step: &mut Step| {
            step.sender != s && step.start >= time && step.loss.is_none() && !step.is_loss()
        };
        while let Some(step) = r.steps.pop_if(spoke) {
            (r.last, r.last_frame) = (step.start, step.first_frame);
        }
        r.last_sender = s;
        r.streams = s == End::Client;
        self.message = r.start;
    }

    /// Who speaks now had not spoken last: no stream goes on, unless this one does.
    pub(crate) fn ends_stream(&mut self) {
        self.recorded.streams = false;
    }

    /// The client goes on with what it was sending, though the server has answered.
    pub(crate) fn streams(&self) -> bool {
        self.recorded.streams
    }
}
