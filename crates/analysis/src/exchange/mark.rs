//! An exchange as it was before something that may turn out to be no part of it.

use super::Recorder;
use crate::rest::{Frame, at_rest};
use tcpwhy_base::{End, Nanos};

/// What a [`Recorder`] goes back to.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    last: Nanos,
    last_frame: u64,
    last_sender: End,
    message: Nanos,
    steps: u32,
    /// Spans of steps that were turned over.
    done: u32,
    turns: u32,
    duplex: bool,
}

at_rest! { Mark { last, last_frame as Frame, last_sender, message, steps, done, turns, duplex } }

impl Recorder {
    /// Where it is, in an exchange that the server has not answered yet.
    pub(crate) fn mark(&self) -> Mark {
        let r = &self.recorded;
        Mark {
            last: r.last,
            last_frame: r.last_frame,
            last_sender: r.last_sender,
            message: self.message,
            steps: u32::try_from(r.steps.len()).unwrap_or(u32::MAX),
            done: u32::try_from(r.done.len()).unwrap_or(u32::MAX),
            turns: r.turns,
            duplex: r.duplex,
        }
    }

    /// What the server said since then was no answer, but for its bytes. `false`: the steps since then are
    /// spans already, and it stays one.
    pub(crate) fn go_back_to(&mut self, mark: &Mark) -> bool {
        let r = &mut self.recorded;
        if r.done.len() != mark.done as usize || r.steps.len() < mark.steps as usize {
            return false;
        }
        (r.last, r.last_frame, r.last_sender) = (mark.last, mark.last_frame, mark.last_sender);
        (r.turns, r.duplex, r.response_start) = (mark.turns, mark.duplex, None);
        r.steps.truncate(mark.steps as usize);
        self.message = mark.message;
        true
    }

    /// Nor are its bytes those of one: so many.
    pub(crate) fn forget_answer(&mut self) -> u64 {
        std::mem::take(&mut self.recorded.bytes.server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpwhy_base::{Segment, Seq};

    fn recorder() -> Recorder {
        let mut ex = Recorder::default();
        ex.open(End::Client, &Segment::EMPTY, Nanos(5), false, Vec::new);
        ex.progress(End::Client, &Segment { seq: Seq(1), ..Segment::EMPTY }, Nanos(6), 100);
        ex
    }

    fn answered(ex: &mut Recorder) {
        ex.next_message(Nanos(9));
        ex.progress(End::Server, &Segment { frame: 3, ..Segment::EMPTY }, Nanos(9), 255);
    }

    #[test]
    fn an_exchange_is_what_it_was() {
        let mut ex = recorder();
        let (before, mark) = (format!("{ex:?}"), ex.mark());
        answered(&mut ex);
        assert!(ex.go_back_to(&mark) && ex.recorded().bytes.server == 255);
        assert_eq!(ex.forget_answer(), 255);
        assert_eq!(format!("{ex:?}"), before);
    }

    /// Spans would overlap what is recorded from there on.
    #[test]
    fn what_was_turned_over_stays() {
        let mut ex = recorder();
        let mark = Mark { steps: 1, ..ex.mark() };
        answered(&mut ex);
        let after = format!("{ex:?}");
        assert!(!ex.go_back_to(&mark), "its steps are gone");
        let mark = Mark { done: 1, ..ex.mark() };
        assert!(!ex.go_back_to(&mark), "there are other spans");
        assert_eq!(format!("{ex:?}"), after);
    }
}
