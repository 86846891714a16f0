//! The figures behind a span, kept as numbers; the sentence is made only when somebody reads it.

use tcpwhy_base::Nanos;

/// What is known about why a span has its cause. Sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
#[non_exhaustive]
pub enum Facts {
    /// No figures beyond the cause.
    #[default]
    None,
    /// A round trip of the handshake, or of TLS.
    RoundTrip {
        /// Base round trip, where known.
        rtt: Nanos,
    },
    /// SYNs or SYN-ACKs were repeated.
    SynRepeats {
        /// How many repeats.
        repeats: u32,
        /// From the first to the last.
        over: Nanos,
        /// It was the SYN-ACK.
        syn_ack: bool,
        /// The repeats reached the server's own tap and stayed unanswered there.
        at_server: bool,
        /// A SYN-ACK had passed the tap before the repeat.
        answered: bool,
    },
    /// Flights of one size, and a window whose scale is not known.
    UnknownScale {
        /// Bytes in flight.
        flight: u32,
        /// As in the header.
        window: u16,
    },
    /// SYNs that nothing answered.
    Unanswered {
        /// How many.
        syns: u32,
        /// From the first to the last.
        over: Nanos,
    },
    /// Data was repeated though the server's tap had it, or the server repeated its SYN-ACK after the final ACK.
    NotTaken {
        /// Repeats of the data.
        repeats: u32,
        /// SYN-ACKs after the handshake.
        syn_acks: u32,
    },
    /// A reset answered the SYN.
    Refused {
        /// Resets: one for each SYN that arrived.
        resets: u32,
    },
    /// An application took this long.
    Think {
        /// As seen at the tap.
        seen: Nanos,
        /// Round trip taken off, because the tap was not at that end.
        path: Nanos,
    },
    /// A small segment was held.
    Nagle {
        /// Payload of the segment that waited for its ACK, and of the one that was held.
        first: u32,
        /// Payload of the held segment.
        held: u32,
        /// How late the ACK was.
        ack_delay: Nanos,
    },
    /// The window was full.
    Window {
        /// Bytes in flight, at the edge.
        flight: u32,
        /// Round trip.
        rtt: Nanos,
    },
    /// The window was closed.
    Closed {
        /// Window last offered before.
        window: u32,
    },
    /// A flight and what limited it.
    Flight {
        /// Bytes in flight.
        flight: u32,
        /// Full segments that is.
        segments: u32,
        /// Round trip.
        rtt: Nanos,
        /// Flight before the idle time or loss, or zero.
        before: u32,
    },
    /// ACKs made room, and nothing was sent before most of the flight was acknowledged.
    Drained {
        /// Bytes still in flight when the next segment left.
        flight: u32,
    },
    /// The sender could send nothing more and the ACK came late.
    AckDelay {
        /// How late.
        delay: Nanos,
        /// Bytes in flight.
        flight: u32,
    },
    /// The link carried this connection's own bytes.
    Bytes {
        /// How many.
        bytes: u32,
        /// Rate, where known.
        bps: Option<f64>,
    },
    /// A retransmission.
    Loss {
        /// Payload that was sent again.
        bytes: u32,
        /// Wait before it.
        wait: Nanos,
    },
    /// New data was sent as a probe.
    Probe {
        /// Wait before it.
        wait: Nanos,
        /// Bytes unacknowledged during it.
        outstanding: u32,
    },
    /// A partial segment was released by the kernel's timer.
    Corked {
        /// Wait before it.
        wait: Nanos,
        /// Its payload.
        held: u32,
    },
    /// The flight filled a window that was mostly taken by unread data.
    Unread {
        /// Bytes in flight.
        flight: u32,
    },
    /// The round trip was swollen.
    Queue {
        /// As measured.
        rtt: Nanos,
        /// The shortest.
        base: Nanos,
    },
    /// Packets of the sender never passed the tap, by its IP identifiers.
    Missing {
        /// How many.
        packets: u32,
        /// Wait that ended with the next one.
        wait: Nanos,
    },
    /// A wait of this length with nothing in sight that would explain it.
    Wait {
        /// How long.
        wait: Nanos,
        /// Bytes unacknowledged during it.
        outstanding: u32,
    },
    /// The peer did not answer.
    Silent {
        /// How long.
        wait: Nanos,
        /// Probes or repeats in that time.
        tries: u32,
    },
    /// Packets are missing from the capture.
    NotCaptured,
    /// Only one direction is in the capture.
    OneSided,
}

impl Facts {
    /// One sentence with the figures.
    pub fn sentence(&self) -> String {
        match *self {
            Facts::None => "There is no further evidence.".into(),
            Facts::RoundTrip { rtt } if rtt > Nanos::ZERO => {
                format!("One round trip ({rtt}), which the distance sets.")
            }
            Facts::RoundTrip { .. } => "The trips that the distance sets.".into(),
            Facts::SynRepeats { repeats, over, syn_ack, at_server, answered } => {
                let what = if syn_ack { "The SYN-ACK" } else { "The SYN" };
                let times = if repeats == 1 { "once more".into() } else { format!("{repeats} times more") };
                if answered {
                    return format!(
                        "{what} was sent {times} over {over} although a SYN-ACK had passed the tap: that SYN-ACK, or its ACK, was lost on the way."
                    );
                }
                let place = if at_server { ", though it had reached the server's tap" } else { "" };
                format!("{what} was sent {times} over {over} before it was answered{place}.")
            }
            Facts::NotTaken { repeats, syn_acks: 0 } => format!(
                "The first data was sent {repeats} times more, each time without any acknowledgement, after a handshake that looked complete: the server had not taken the final ACK."
            ),
            Facts::NotTaken { repeats, syn_acks } => format!(
                "After the client's final ACK the server repeated its SYN-ACK {syn_acks} times and the first data was sent {repeats} times more: the server had not taken the final ACK."
            ),
            Facts::Unanswered { syns, over } => {
                format!("{syns} SYNs over {over} and no answer to any of them in this capture.")
            }
            Facts::Refused { resets: resets @ 2.. } => format!(
                "{resets} resets answered the client's SYNs: nothing listens there, or a filter rejects."
            ),
            Facts::Refused { .. } => {
                "A reset answered the SYN: nothing listens there, or a filter rejects.".into()
            }
            Facts::Think { seen, path } if path > Nanos::ZERO => {
                format!(
                    "{seen} from the last byte of one side to the first of the other, less {path} for the trip."
                )
            }
            Facts::Think { seen, .. } => {
                format!("{seen} in which TCP had nothing to send and nothing to wait for at this end.")
            }
            Facts::Nagle { first, held, ack_delay } => format!(
                "{held} bytes were held until the ACK of the {first} bytes before them, which came {ack_delay} after those had passed; they left with that ACK."
            ),
            Facts::Window { flight, rtt } => {
                format!(
                    "{flight} bytes in flight filled the window that the receiver offered; one window per {rtt} round trip."
                )
            }
            Facts::UnknownScale { flight, window } => format!(
                "{flight} bytes were in flight; the header's window of up to {window} may be what limits it, but its scale was in the handshake, which the capture lacks: the receiver's window or the sender's buffer."
            ),
            Facts::Closed { window } => {
                format!(
                    "The receiver's window was closed to {window} bytes and opened again by a window update: its application did not read."
                )
            }
            Facts::Flight { flight, segments, rtt, before: 0 } => {
                format!(
                    "{flight} bytes ({}) were in flight and the next left with the ACK, a round trip ({rtt}) later.",
                    full_segments(segments)
                )
            }
            Facts::Flight { flight, segments, rtt, before } => format!(
                "{flight} bytes ({}) were in flight, {before} had been before; the next left with the ACK, a round trip ({rtt}) later.",
                full_segments(segments)
            ),
            Facts::Drained { flight } => format!(
                "ACKs made room and nothing was sent, until with {flight} bytes in flight one of them woke up the writer: the kernel had nothing left to send."
            ),
            Facts::AckDelay { delay, flight } => {
                format!(
                    "With {flight} bytes in flight the sender could send no more, and the ACK was {delay} late."
                )
            }
            Facts::Bytes { bytes, bps: Some(bps) } => {
                format!("{bytes} bytes passed; the bottleneck carries about {}.", bit_rate(bps))
            }
            Facts::Bytes { bytes, bps: None } => format!("{bytes} bytes passed one after the other."),
            Facts::Loss { bytes, wait } => format!("{bytes} bytes were sent again after {wait}."),
            Facts::Probe { wait, outstanding } => format!(
                "Nothing for {wait} with {outstanding} bytes unacknowledged; then new data as a probe, and what it brought to light was repaired."
            ),
            Facts::Corked { wait, held } => format!(
                "{held} bytes left {wait} after the segment before, with nothing in flight and no ACK to release them, as often before: the time after which the kernel gives up holding a corked segment."
            ),
            Facts::Unread { flight } => format!(
                "{flight} bytes in flight filled what the receiver offered, less than half of its largest window: the rest of its buffer held data that its application had not read."
            ),
            Facts::Queue { rtt, base } => format!(
                "The round trip was {rtt} where {base} is possible: a queue that this connection's own bytes do not fill."
            ),
            Facts::Missing { packets, wait } => {
                let what = if packets == 1 { "One packet" } else { "Packets" };
                format!(
                    "{what} of the sender did not arrive ({packets} by its IP identifiers), and the next came {wait} later: the time its retransmission timer takes."
                )
            }
            Facts::Wait { wait, outstanding: 0 } => {
                format!(
                    "Nothing for {wait}, with everything acknowledged and the window open: the sender had nothing to send."
                )
            }
            Facts::Wait { wait, outstanding } => format!(
                "Nothing for {wait} with {outstanding} bytes unacknowledged, and no ACK, window update or timer that would have released the next segment."
            ),
            Facts::Silent { wait, tries } => {
                format!("The peer did not answer for {wait}; {tries} probes or repeats.")
            }
            Facts::NotCaptured => "The capture lost packets here, so the reason cannot be seen.".into(),
            Facts::OneSided => {
                "Only one direction is in the capture, so the ACKs that would tell are not there.".into()
            }
        }
    }
}

/// `12.3 Mbit/s`.
pub fn bit_rate(bps: f64) -> String {
    let (value, unit) = match bps {
        b if b >= 1e9 => (b / 1e9, "Gbit/s"),
        b if b >= 1e6 => (b / 1e6, "Mbit/s"),
        b if b >= 1e3 => (b / 1e3, "kbit/s"),
        b => (b, "bit/s"),
    };
    if value < 9.995 { format!("{value:.2} {unit}") } else { format!("{value:.0} {unit}") }
}

fn full_segments(n: u32) -> String {
    if n == 1 { "1 segment".into() } else { format!("{n} segments") }
}
