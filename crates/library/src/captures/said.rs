//! What is known of connections beside their packets, as captures tell it.

use tcpwhy_base::{Endpoint, Observation, SocketEvent, TooBig, Watched};

/// What was said of a connection, or of all of them, by others than their packets.
#[derive(Clone, Copy, Debug)]
pub(super) enum Said {
    Socket(SocketEvent),
    TooBig(TooBig),
    Watched(Watched),
}

impl Said {
    /// The ends of the connection, if it is of one.
    pub(super) fn ends(&self) -> Option<(Endpoint, Endpoint)> {
        match self {
            Said::Socket(event) => Some((event.local, event.remote)),
            Said::TooBig(told) => Some((told.src, told.dst)),
            Said::Watched(_) => None,
        }
    }

    pub(super) fn observation(&self) -> Observation<'_> {
        match self {
            Said::Socket(event) => Observation::Socket(event),
            Said::TooBig(told) => Observation::TooBig(told),
            Said::Watched(watched) => Observation::Watched(watched),
        }
    }
}
