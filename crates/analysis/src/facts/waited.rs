//! What is said of waits for an application, one that writes or answers, or for its buffer, and for windows.

use std::fmt;
use tcpwhy_base::Nanos;

/// What ended a wait for an answer that never came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// The side that should have answered sent a FIN.
    PeerClosed,
    /// It sent a reset.
    PeerReset,
    /// The side that had asked closed.
    GaveUp,
    /// The capture shows no more.
    CaptureEnded,
    /// The capture goes on and shows no more of the connection.
    Unheard,
}

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

pub(super) fn corked(f: &mut fmt::Formatter<'_>, wait: Nanos, held: u32) -> fmt::Result {
    write!(
        f,
        "{held} bytes left {wait} after the segment before, with nothing in flight and no ACK to release them, as often before: the time after which the kernel gives up holding a corked segment."
    )
}

pub(super) fn late_ack(f: &mut fmt::Formatter<'_>, delay: Nanos, flight: u32) -> fmt::Result {
    write!(f, "With {flight} bytes in flight the sender could send no more, and the ACK was {delay} late.")
}

pub(super) fn wrong_clock(f: &mut fmt::Formatter<'_>, wait: Nanos) -> fmt::Result {
    write!(f, "By its time stamps one round trip took {wait}, longer than a packet lives: they are wrong.")
}

pub(super) fn tail(f: &mut fmt::Formatter<'_>, wait: Nanos, held: u32, corked: Nanos) -> fmt::Result {
    write!(
        f,
        "Nothing for {wait} but {held} bytes, {corked} after the segment before, when the kernel gives up holding a corked segment: the sender wrote nothing more in all that time, so that the cork held up nobody."
    )
}

pub(super) fn timed_answer(f: &mut fmt::Formatter<'_>, wait: Nanos, held: u32, ticks: u16) -> fmt::Result {
    write!(f, "{held} bytes came {wait} after their request, as often before: ")?;
    if ticks > 0 {
        return write!(
            f,
            "the time after which the kernel gives up holding a corked segment, and {ticks} times a whole number of its ticks after the answer before, whenever the request came. Programs are not woken up by that clock."
        );
    }
    f.write_str(
        "the application had not written, or it had, and the kernel held it (TCP_CORK, MSG_MORE) until its timer gave up. Which of the two does not show here; at the server `ss -to` says `persist` then.",
    )
}

pub(super) fn think(f: &mut fmt::Formatter<'_>, seen: Nanos, path: Nanos) -> fmt::Result {
    if path > Nanos::ZERO {
        return write!(
            f,
            "The next byte came {seen} after the other side's last one; {path} of that was the trip."
        );
    }
    write!(f, "For {seen} TCP had nothing to send: the application had not written.")
}

pub(super) fn behind(f: &mut fmt::Formatter<'_>, wait: Nanos, work: Nanos, bytes: u32) -> fmt::Result {
    if bytes == 0 {
        return write!(
            f,
            "The next byte came {wait} after the last one; for {work} of that the server had an earlier request before it, which nothing had answered yet."
        );
    }
    write!(
        f,
        "The next byte came {wait} after the other side's last one, but does not acknowledge its last {bytes} bytes: it answers an earlier request, and for {work} there was one to answer."
    )
}

pub(super) fn released(f: &mut fmt::Formatter<'_>, late: Nanos) -> fmt::Result {
    write!(
        f,
        "It left {late} after the ACK that it had been held for: its host or the path took that long, or it was written only then."
    )
}

pub(super) fn no_answer(f: &mut fmt::Formatter<'_>, wait: Nanos, end: Over) -> fmt::Result {
    let how = match end {
        Over::PeerClosed => "then the other side closed without an answer",
        Over::PeerReset => "then the other side reset the connection",
        Over::GaveUp => "then who had asked gave up",
        Over::CaptureEnded => "then the capture ends",
        Over::Unheard => "the capture goes on, without another packet of the connection",
    };
    if wait == Nanos::ZERO {
        return write!(f, "No answer was waited for; {how}.");
    }
    write!(f, "Nothing came back for {wait}; {how}.")
}

pub(super) fn refilled(f: &mut fmt::Formatter<'_>, bytes: u64, credit: u32, rtt: Nanos) -> fmt::Result {
    write!(
        f,
        "{bytes} bytes were all that the receiving end had granted above TCP: the next left when a message of {credit} bytes had come from there"
    )?;
    if rtt > Nanos::ZERO { write!(f, " (round trip {rtt}).") } else { f.write_str(".") }
}

pub(super) fn silent(f: &mut fmt::Formatter<'_>, wait: Nanos, tries: u32) -> fmt::Result {
    let probes = if tries == 1 { "1 probe or repeat".into() } else { format!("{tries} probes or repeats") };
    write!(f, "The peer did not answer for {wait}; {probes}.")
}

pub(super) fn lost_behind(f: &mut fmt::Formatter<'_>, bytes: u32, wait: Nanos) -> fmt::Result {
    write!(
        f,
        "{bytes} bytes were retransmitted after {wait}. They had passed this capture beside their receiver, which never acknowledged them: its host dropped them (firewall, full queue)."
    )
}

pub(super) fn missing(f: &mut fmt::Formatter<'_>, packets: u32, wait: Nanos) -> fmt::Result {
    if packets == 0 {
        return write!(
            f,
            "By the sequence numbers, bytes were sent before what came at last that never came, nor any repeat of them, in all of {wait}."
        );
    }
    let what = if packets == 1 { "One packet" } else { "Packets" };
    write!(
        f,
        "{what} of the sender did not arrive ({packets} by its IP identifiers), and the next came {wait} later: the time its retransmission timer takes."
    )
}

/// What its sender's pace cost nothing.
pub(super) fn spread(f: &mut fmt::Formatter<'_>, flight: u32) -> fmt::Result {
    if flight == 0 {
        return f.write_str("Their sender spaced them, but no window that was offered lately was more than three quarters of the largest: earlier, they would have lain unread for longer.");
    }
    write!(
        f,
        "Their sender spaced them, but {flight} bytes in flight filled the window before the next ACK opened it: sent at once, they would have waited for the same ACK."
    )
}

pub(super) fn limited(
    f: &mut fmt::Formatter<'_>,
    flight: u32,
    segments: u32,
    rtt: Nanos,
    before: u32,
) -> fmt::Result {
    let segments = super::full_segments(segments);
    if before == 0 {
        return write!(
            f,
            "{flight} bytes ({segments}) were in flight and the next left with the ACK (round trip {rtt})."
        );
    }
    write!(
        f,
        "{flight} bytes ({segments}) were in flight, the window had been {before} before; the next left with the ACK (round trip {rtt})."
    )
}

pub(super) fn closed(f: &mut fmt::Formatter<'_>, window: u32) -> fmt::Result {
    write!(
        f,
        "The receiver's window had shrunk to {window} bytes until a window update opened it again: its application did not read."
    )
}

pub(super) fn full_window(f: &mut fmt::Formatter<'_>, flight: u32, rtt: Nanos) -> fmt::Result {
    write!(
        f,
        "{flight} bytes in flight filled the window that the receiver offered; one window per {rtt} round trip."
    )
}

pub(super) fn late_request(f: &mut fmt::Formatter<'_>, late: Nanos) -> fmt::Result {
    write!(
        f,
        "The ACK of what had been sent came {late} later than the trip and the longest delay of its receiver: it was late on its way, or the receiver's host was."
    )
}

pub(super) fn held_back(f: &mut fmt::Formatter<'_>, first: u32, held: u32, ack_delay: Nanos) -> fmt::Result {
    if ack_delay == Nanos::ZERO {
        // Across a turn the ACK was due for what this end had sent before.
        return write!(
            f,
            "The next {held} bytes waited for the ACK of the {first} bytes before them and left with it."
        );
    }
    write!(
        f,
        "{first} bytes were sent; the next {held} waited for their ACK, which was {ack_delay} late, and left with it."
    )
}

pub(super) fn in_pieces(f: &mut fmt::Formatter<'_>, piece: u32, mss: u32, wait: Nanos) -> fmt::Result {
    write!(
        f,
        "After {wait} the answer began with {piece} bytes of more, where {mss} fit: larger segments had not come through, and their sender cut them."
    )
}

pub(super) fn too_big(f: &mut fmt::Formatter<'_>, bytes: u32, wait: Nanos, mtu: u16) -> fmt::Result {
    let most = if mtu > 0 { format!("larger than {mtu} bytes") } else { "too large".into() };
    write!(
        f,
        "{bytes} bytes were retransmitted after {wait}: a router had said, by ICMP, that the packet was {most} and went no further."
    )
}

pub(super) fn sent_again(f: &mut fmt::Formatter<'_>, bytes: u32, wait: Nanos) -> fmt::Result {
    write!(f, "{bytes} bytes were sent again, {wait} after the packet before.")
}

pub(super) fn in_recovery(f: &mut fmt::Formatter<'_>, bytes: u32, wait: Nanos) -> fmt::Result {
    write!(f, "{bytes} bytes more came {wait} after the packet before, while a loss was repaired.")
}
