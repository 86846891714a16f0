//! What is known of connections beside their packets, as captures tell it.

use tcpwhy_base::{Endpoint, Observation, SocketEvent, TooBig};

/// What was said of a connection by others than its packets.
#[derive(Clone, Copy, Debug)]
pub(super) enum Said {
    Socket(SocketEvent),
    TooBig(TooBig),
}

impl Said {
    /// The ends of the connection.
    pub(super) fn ends(&self) -> (Endpoint, Endpoint) {
        match self {
            Said::Socket(event) => (event.local, event.remote),
            Said::TooBig(told) => (told.src, told.dst),
        }
    }

    pub(super) fn observation(&self) -> Observation<'_> {
        match self {
            Said::Socket(event) => Observation::Socket(event),
            Said::TooBig(told) => Observation::TooBig(told),
        }
    }
}
