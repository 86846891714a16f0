//! What a kernel says of a wait, beyond what packets show.

use crate::rest::at_rest;
use std::fmt;
use tcpwhy_base::Nanos;

/// What held the data of a socket, as a kernel says.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Witnessed {
    /// The window was full, and data lay unread at the other end.
    Unread {
        /// Bytes in flight.
        flight: u32,
    },
    /// A partial segment was held by a cork.
    Cork {
        /// Since it had been written.
        wait: Nanos,
        /// Payload.
        held: u32,
    },
    /// Data had come that was not read yet.
    Late {
        /// For so long.
        wait: Nanos,
    },
}

at_rest! { enum Witnessed { 0 => Unread { flight }, 1 => Cork { wait, held }, 2 => Late { wait } } }

impl fmt::Display for Witnessed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Witnessed::Unread { flight } => write!(
                f,
                "{flight} bytes in flight filled what the receiver offered, while data lay there that its application did not read: so its kernel says."
            ),
            Witnessed::Late { wait } => write!(
                f,
                "What the other side had sent lay there for {wait} until the application read it: so its kernel says."
            ),
            Witnessed::Cork { wait, held } => write!(
                f,
                "{held} bytes left {wait} after they had been written: TCP_CORK or MSG_MORE held them, so the sender's kernel says."
            ),
        }
    }
}
