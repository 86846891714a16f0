//! The figures behind a span, kept as numbers; the sentence is made only when somebody reads it.

mod opening;
mod passed;
mod rest;
mod waited;
mod witnessed;

pub use waited::Over;
pub use witnessed::Witnessed;

use opening::{first_data, not_taken, refused, round_trip, syn_repeats, syns_lost, unanswered};
pub use passed::bit_rate;
use passed::passed;
use std::fmt;
use tcpwhy_base::Nanos;
use waited::{behind, drained, emptied, lost_behind, missing, no_answer, nothing_seen, released, think};

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
    /// A flow-control window above TCP was refilled.
    Refilled {
        /// New bytes that had been sent.
        bytes: u64,
        /// Bytes of the message that let the next ones go.
        credit: u32,
        /// Base round trip, where known.
        rtt: Nanos,
    },
    /// A server that was asked for encryption in the clear refused it.
    EncryptionRefused {
        /// Base round trip, where known.
        rtt: Nanos,
    },
    /// A server of TLS 1.3 asked for a key of another group.
    KeyAskedAgain {
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
    /// SYNs were repeated, and two taps tell where the others were lost.
    SynsLost {
        /// How many repeats.
        repeats: u32,
        /// From the first to the last.
        over: Nanos,
        /// How many SYNs never came to the server's tap.
        there: u32,
        /// How many SYN-ACKs never came to the client's.
        back: u32,
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
    /// SYNs that a tap at the server saw, and that nothing answered.
    SynsIgnored {
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
    /// A server had other requests before the last one.
    Behind {
        /// From the last of what the client sent to the answer.
        wait: Nanos,
        /// For so much of it.
        work: Nanos,
        /// Bytes that had been sent, and that the answer does not acknowledge.
        bytes: u32,
    },
    /// The other side never answered.
    NoAnswer {
        /// Until it was over.
        wait: Nanos,
        /// By what.
        end: Over,
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
    /// Its sender spaced it, and all that the window let through had left before the window opened, or its
    /// reader never had all of it.
    Spread {
        /// Bytes in flight that filled the window; zero: it was not full, but data lay unread behind it all the time.
        flight: u32,
    },
    /// The window was closed.
    Closed {
        /// Window last offered before.
        window: u32,
    },
    /// Both windows were closed, and both ends had data to send.
    BothClosed {
        /// Window last offered by the client and by the server.
        windows: [u32; 2],
    },
    /// A writer waited for room in its own send buffer, as its kernel says.
    NoRoom,
    /// A kernel says so.
    Told(Witnessed),
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
    /// The same, and they had stood in a queue of their own host.
    Stood {
        /// How many.
        bytes: u32,
        /// Rate, where known.
        bps: Option<f64>,
        /// Up to so long, at the least.
        stood: Nanos,
    },
    /// A retransmission.
    Loss {
        /// Payload that was retransmitted.
        bytes: u32,
        /// Wait before it.
        wait: Nanos,
    },
    /// More came while a loss was repaired.
    InRecovery {
        /// Payload of it.
        bytes: u32,
        /// After the packet before.
        wait: Nanos,
    },
    /// A retransmission of what had passed beside its receiver, which went on without it.
    LostBehind {
        /// Payload that was retransmitted.
        bytes: u32,
        /// Wait before it.
        wait: Nanos,
    },
    /// A retransmission of what a router had said was too large.
    TooBig {
        /// Payload that was retransmitted.
        bytes: u32,
        /// Wait before it.
        wait: Nanos,
        /// The largest packet that goes on; zero where the router did not say.
        mtu: u16,
    },
    /// A retransmission of the first data of a connection, of which nothing was acknowledged.
    FirstData {
        /// Payload that was retransmitted.
        bytes: u32,
        /// Wait before it.
        wait: Nanos,
        /// How often it was sent again.
        repeats: u32,
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
    /// An answer came as late as that timer, as others did (rule 115).
    TimedAnswer {
        /// After its request.
        wait: Nanos,
        /// Payload of its first segment.
        held: u32,
        /// How often it was a whole number of its kernel's ticks after the one before; zero: not seen.
        ticks: u16,
    },
    /// The flight filled a window that was mostly taken by unread data.
    Unread {
        /// Bytes in flight.
        flight: u32,
        /// By how much the ACK was late that said so; zero: the window did.
        late: Nanos,
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
        /// How many; zero: what passed lies behind bytes that never did.
        packets: u32,
        /// Wait that ended with the next one, or that nothing ended.
        wait: Nanos,
    },
    /// A wait of this length with nothing in sight that would explain it.
    Wait {
        /// How long.
        wait: Nanos,
        /// Bytes unacknowledged during it.
        outstanding: u32,
        /// For how long of it, at its end, all was acknowledged, if nothing was unacknowledged then.
        empty: Nanos,
    },
    /// A wait that only what a cork had held broke (rule 151).
    Tail {
        /// All of it.
        wait: Nanos,
        /// Payload that left meanwhile.
        held: u32,
        /// After so long.
        corked: Nanos,
    },
    /// What the send buffer held was acknowledged after this time, and only then its writer went on.
    Emptied {
        /// How long until all of it was acknowledged.
        wait: Nanos,
        /// How long after that the next segment left.
        late: Nanos,
    },
    /// The ACK of a request came later than a receiver delays it.
    LateRequest {
        /// By how much.
        late: Nanos,
    },
    /// A turn was late between two taps, by less than a queue is told by.
    LateBetween {
        /// By how much.
        late: Nanos,
        /// Beyond this round trip.
        rtt: Nanos,
    },
    /// After a silence an answer began in pieces smaller than a segment.
    Pieces {
        /// Bytes of the first of them.
        piece: u32,
        /// Bytes of a full segment.
        mss: u32,
        /// The silence.
        wait: Nanos,
    },
    /// The SYN was answered much later than data is acknowledged.
    Split {
        /// What lies behind who acknowledges.
        far: Nanos,
        /// The round trip to it.
        rtt: Nanos,
    },
    /// The connection opened later than by a round trip.
    LateOpening {
        /// How much later.
        late: Nanos,
        /// The round trip.
        rtt: Nanos,
    },
    /// Another write followed.
    NextWrite {
        /// After the one before.
        wait: Nanos,
    },
    /// A segment left later than the ACK that it had been held for.
    Released {
        /// By how much.
        late: Nanos,
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
    /// No packet lives as long as the time stamps say.
    WrongClock {
        /// What they say.
        wait: Nanos,
    },
}

impl Facts {
    /// The wait that the sentence tells of, beyond what it names as something else.
    pub(crate) fn whole(&self) -> Option<Nanos> {
        match *self {
            Facts::Think { seen, path } => Some(seen - path),
            Facts::Behind { work, .. } => Some(work),
            Facts::Loss { wait, .. }
            | Facts::InRecovery { wait, .. }
            | Facts::LostBehind { wait, .. }
            | Facts::TooBig { wait, .. }
            | Facts::FirstData { wait, .. }
            | Facts::Probe { wait, .. }
            | Facts::Corked { wait, .. }
            | Facts::TimedAnswer { wait, .. }
            | Facts::Missing { wait, .. }
            | Facts::Wait { wait, .. }
            | Facts::Tail { wait, .. }
            | Facts::Pieces { wait, .. } => Some(wait),
            _ => None,
        }
    }

    /// One sentence with the figures.
    pub fn sentence(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Facts::None => f.write_str("There is no further evidence."),
            Facts::RoundTrip { rtt } => round_trip(f, rtt),
            Facts::Refilled { bytes, credit, rtt } => waited::refilled(f, bytes, credit, rtt),
            Facts::EncryptionRefused { rtt } => opening::encryption_refused(f, rtt),
            Facts::KeyAskedAgain { rtt } => opening::key_asked_again(f, rtt),
            Facts::SynRepeats { repeats, over, syn_ack, at_server, answered } => syn_repeats(
                f,
                repeats,
                over,
                if syn_ack { "The SYN-ACK" } else { "The SYN" },
                at_server,
                answered,
            ),
            Facts::SynsLost { repeats, over, there, back } => syns_lost(f, repeats, over, (there, back)),
            Facts::NotTaken { repeats, syn_acks } => not_taken(f, repeats, syn_acks),
            Facts::Unanswered { syns, over } => unanswered(f, syns, over),
            Facts::SynsIgnored { syns, over } => opening::syns_ignored(f, syns, over),
            Facts::Refused { resets } => refused(f, resets),
            Facts::Think { seen, path } => think(f, seen, path),
            Facts::Behind { wait, work, bytes } => behind(f, wait, work, bytes),
            Facts::NoAnswer { wait, end } => no_answer(f, wait, end),
            Facts::Nagle { first, held, ack_delay } => waited::held_back(f, first, held, ack_delay),
            Facts::Spread { flight } => waited::spread(f, flight),
            Facts::Window { flight, rtt } => waited::full_window(f, flight, rtt),
            Facts::UnknownScale { flight, window } => write!(
                f,
                "{flight} bytes were in flight; the header's window of up to {window} may be what limits it, but its scale was in the handshake, which the capture lacks: the receiver's window or the sender's buffer."
            ),
            Facts::Closed { window } => waited::closed(f, window),
            Facts::BothClosed { windows: [client, server] } => write!(
                f,
                "Both windows were closed (to {client} bytes by the client, {server} by the server) while both ends had data to send: each waited in its write until the other would read."
            ),
            Facts::NoRoom => {
                f.write_str("The writer waited for room in its send buffer: so the sender's kernel says.")
            }
            Facts::Told(told) => told.fmt(f),
            Facts::Flight { flight, segments, rtt, before } => {
                waited::limited(f, flight, segments, rtt, before)
            }
            Facts::Drained { flight } => drained(f, flight),
            Facts::AckDelay { delay, flight } => waited::late_ack(f, delay, flight),
            Facts::Bytes { bytes, bps } => passed(f, bytes, bps, Nanos::ZERO),
            Facts::Stood { bytes, bps, stood } => passed(f, bytes, bps, stood),
            Facts::Loss { bytes, wait } => waited::sent_again(f, bytes, wait),
            Facts::InRecovery { bytes, wait } => waited::in_recovery(f, bytes, wait),
            Facts::LostBehind { bytes, wait } => lost_behind(f, bytes, wait),
            Facts::TooBig { bytes, wait, mtu } => waited::too_big(f, bytes, wait, mtu),
            Facts::FirstData { bytes, wait, repeats } => first_data(f, bytes, wait, repeats),
            Facts::Probe { wait, outstanding } => write!(
                f,
                "Nothing for {wait} with {outstanding} bytes unacknowledged; then new data as a probe, and what it brought to light was repaired."
            ),
            Facts::Corked { wait, held } => waited::corked(f, wait, held),
            Facts::TimedAnswer { wait, held, ticks } => waited::timed_answer(f, wait, held, ticks),
            Facts::Unread { flight, late } if late > Nanos::ZERO => write!(
                f,
                "With {flight} bytes in flight the sender could send no more, and the ACK came {late} after them: TCP sends that at once where the buffer has room, so its application had not read."
            ),
            Facts::Unread { flight, .. } => write!(
                f,
                "{flight} bytes in flight filled what the receiver offered, less than half of its largest window: the rest of its buffer held data that its application had not read."
            ),
            Facts::Queue { rtt, base } => passed::queue(f, rtt, base),
            Facts::LateRequest { late } => waited::late_request(f, late),
            Facts::LateBetween { late, rtt } => passed::late_between(f, late, rtt),
            Facts::Pieces { piece, mss, wait } => waited::in_pieces(f, piece, mss, wait),
            Facts::Split { far, rtt } => opening::behind_proxy(f, far, rtt),
            Facts::LateOpening { late, rtt } => opening::late(f, late, rtt),
            Facts::Missing { packets, wait } => missing(f, packets, wait),
            Facts::Wait { wait, outstanding, empty } => nothing_seen(f, wait, outstanding, empty),
            Facts::Tail { wait, held, corked } => waited::tail(f, wait, held, corked),
            Facts::Emptied { wait, late } => emptied(f, wait, late),
            Facts::NextWrite { wait } => write!(f, "The next write came {wait} after the one before."),
            Facts::Released { late } => released(f, late),
            Facts::Silent { wait, tries } => waited::silent(f, wait, tries),
            Facts::NotCaptured => f.write_str("The capture lost packets here, so the reason cannot be seen."),
            Facts::OneSided => f.write_str(
                "Only one direction is in the capture, so the ACKs that would tell are not there.",
            ),
            Facts::WrongClock { wait } => waited::wrong_clock(f, wait),
        }
    }
}

fn times(n: u32) -> String {
    if n == 1 { "once".into() } else { format!("{n} times") }
}

fn full_segments(n: u32) -> String {
    if n == 1 { "1 segment".into() } else { format!("{n} segments") }
}
