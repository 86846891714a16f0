//! What kernels said of connections before their first packet passed: a write comes before what it sends.

use std::collections::VecDeque;
use tcpwhy_base::{Segment, SocketEvent};

/// Of more than this the oldest are forgotten.
const MOST: usize = 1_024;

/// The last of them.
#[derive(Debug, Default)]
pub(super) struct Early(VecDeque<SocketEvent>);

impl Early {
    /// Keeps one for the connection that may begin.
    pub(super) fn keep(&mut self, event: &SocketEvent) {
        if self.0.len() >= MOST {
            self.0.pop_front();
        }
        self.0.push_back(*event);
    }

    /// Those of the connection that this segment begins, in their order.
    pub(super) fn take_of(&mut self, segment: &Segment) -> VecDeque<SocketEvent> {
        if self.0.is_empty() {
            return VecDeque::new();
        }
        let is_of = |e: &SocketEvent| {
            let ends = (segment.src, segment.dst);
            ends == (e.local, e.remote) || ends == (e.remote, e.local)
        };
        let (of, others) = std::mem::take(&mut self.0).into_iter().partition(is_of);
        self.0 = others;
        of
    }
}
