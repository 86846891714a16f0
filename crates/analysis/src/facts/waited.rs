//! What is said of waits for a writer, or for its buffer.

use std::fmt;
use tcpwhy_base::Nanos;

pub(super) fn nothing_seen(
    f: &mut fmt::Formatter<'_>,
    wait: Nanos,
    outstanding: u32,
    empty: Nanos,
) -> fmt::Result {
    if outstanding == 0 && empty < wait {
        return write!(
            f,
            "Nothing for {wait}, with everything acknowledged for the last {empty} of it and the window open: the sender had nothing to send."
        );
    }
    if outstanding == 0 {
        return write!(
            f,
            "Nothing for {wait}, with everything acknowledged and the window open: the sender had nothing to send."
        );
    }
    write!(
        f,
        "Nothing for {wait} with {outstanding} bytes unacknowledged, and no ACK, window update or timer that would have released the next segment."
    )
}

pub(super) fn emptied(f: &mut fmt::Formatter<'_>, wait: Nanos, late: Nanos) -> fmt::Result {
    write!(
        f,
        "All in flight was acknowledged after {wait}, and only then, {late} later, came more, as the ACKs made room each time: its writer waited for the buffer."
    )
}

pub(super) fn drained(f: &mut fmt::Formatter<'_>, flight: u32) -> fmt::Result {
    write!(
        f,
        "ACKs made room and nothing was sent, until with {flight} bytes in flight one of them woke up the writer: the kernel had nothing left to send."
    )
}
