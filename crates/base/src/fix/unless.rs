//! What speaks against a fix: a capture that shows it refutes the advice, and the fix is not offered.

use crate::Nanos;

/// A span shorter than this is within what hosts take to react: which rule made it cannot be told.
const NOISE: Nanos = Nanos::millis(1);
/// Findings below this share of the time are not worth a change.
const SMALL: f64 = 0.01;
/// What a write puts beyond its buffer at times, bytes: Linux asks for room before it takes a new segment of
/// 64 KiB, not where it fills up one of which a part has just left (`tcp_sendmsg_locked`, `tcp_push_one`). So
/// one may lie there full and one begun, and below them two that have left (`tcp_small_queue_check`).
pub const OVERSHOOT: u32 = 4 * 65_536;

/// The smallest send buffer holds two packets whatever is asked for (`SOCK_MIN_SNDBUF`): fewer bytes fill none.
const FEWEST: u64 = 1_024;
/// Half of the 16 KiB that automatic sizing begins with (the second value of `tcp_wmem`); the other half is overhead.
const DEFAULT: u64 = 8_192;

/// The largest window without scaling (RFC 7323, 2.2), less a full segment: what is not below was at that limit.
const UNSCALED: u64 = 65_535 - 1_460;

/// What a capture shows of a finding, as far as it decides whether a fix can help. Sizes in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shown {
    /// Client and server are one host, and no distance is emulated between them.
    pub same_host: bool,
    /// From the handshake on nothing was sent twice, in either direction.
    pub nothing_lost: bool,
    /// The finding is about connections with a single request.
    pub one_request: bool,
    /// In flight at the limit.
    pub flight: Option<u64>,
    /// The most that the same end had in flight.
    pub most_in_flight: u64,
    /// The largest window that the other end offered it.
    pub largest_window: Option<u64>,
    /// One of the SYNs offered no window scaling.
    pub unscaled: bool,
    /// Rate of the bottleneck times base round trip.
    pub needed: Option<u64>,
    /// The longest of the finding's spans.
    pub longest: Nanos,
    /// The finding's share of the time.
    pub share: f64,
    /// Of waits for the path, seen beside the server: the longest within a request, and the way from there to
    /// the client and back.
    pub trip: Option<(Nanos, Nanos)>,
}

impl Shown {
    /// The largest window, where what was in flight at the limit fills no more than half of it: it grew by
    /// itself, or was larger before.
    pub fn grown_window(&self) -> Option<u64> {
        let flight = self.flight.filter(|&f| f > 0)?;
        self.largest_window.filter(|&largest| largest >= flight.saturating_mul(2))
    }

    /// The same without how large windows became: what a window begins with may be raised, however large it
    /// becomes by itself. Without scaling none becomes larger.
    pub fn at_first(self) -> Shown {
        Shown { largest_window: self.largest_window.filter(|_| self.unscaled), ..self }
    }
}

/// A reason not to offer a fix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unless {
    /// Both ends are on one host: no path is between them.
    SameHost,
    /// The window was larger than the path needs, grew to twice its size in the same connection, or was as
    /// large as any can be without scaling.
    WindowHadRoom,
    /// As much as the path needs was in flight, or later twice as much.
    BufferHadRoom,
    /// Too few bytes to fill any send buffer.
    TooFewBytes,
    /// Fewer bytes than the automatic send buffer begins with.
    BelowDefault,
    /// The connection lost nothing: HyStart, ECN or metrics kept from others made the window small.
    NothingLost,
    /// One request was made: there is no other to ask together with it.
    OneRequest,
    /// The longest hold is shorter than what can be told from noise, and all of them are little.
    HoldIsNoise,
    /// The tap is beside the server, and what a request waited for there was no trip to the client: what the
    /// path costs the client lies outside of the capture.
    NoTrip,
}

impl Unless {
    /// All of them.
    pub const ALL: [Unless; 9] = [
        Unless::SameHost,
        Unless::WindowHadRoom,
        Unless::BufferHadRoom,
        Unless::TooFewBytes,
        Unless::BelowDefault,
        Unless::NothingLost,
        Unless::OneRequest,
        Unless::HoldIsNoise,
        Unless::NoTrip,
    ];

    /// Why the fix cannot help, if the capture shows that: the rest of a sentence that begins with "because".
    pub fn refutes(self, shown: &Shown) -> Option<String> {
        let flight = shown.flight.filter(|&f| f > 0);
        match self {
            Unless::SameHost => {
                shown.same_host.then(|| "both ends are on one host, with no path between them".into())
            }
            Unless::WindowHadRoom => {
                if let Some(largest) = shown.largest_window.filter(|&w| shown.unscaled && w >= UNSCALED) {
                    return Some(format!(
                        "without window scaling no buffer makes the window larger than {largest} bytes"
                    ));
                }
                let flight = flight?;
                if let Some(largest) = shown.grown_window() {
                    return Some(format!(
                        "the window grew by itself from {flight} to {largest} bytes in the same connection"
                    ));
                }
                let needed = shown.needed.filter(|&n| flight >= n)?;
                Some(format!("the window was {flight} bytes, and this path needs only {needed}"))
            }
            Unless::BufferHadRoom => {
                let (flight, most) = (flight?, shown.most_in_flight);
                // By whole segments of the queue (GSO_LEGACY_MAX_SIZE), to one of the wire.
                let beyond = if flight >= 65_536 - 1_460 { OVERSHOOT.into() } else { 0 };
                if most >= flight.saturating_mul(2).saturating_add(beyond) {
                    return Some(format!(
                        "the same end had {most} bytes in flight at another time, so its buffer had room"
                    ));
                }
                let needed = shown.needed.filter(|&n| flight >= n)?;
                Some(format!("{flight} bytes were in flight, and this path needs only {needed}"))
            }
            Unless::TooFewBytes => {
                let flight = flight.filter(|&f| f < FEWEST)?;
                Some(format!("{flight} bytes in flight fill no send buffer"))
            }
            Unless::BelowDefault => {
                let flight = flight.filter(|&f| f < DEFAULT)?;
                Some(format!("the automatic buffer begins with more than the {flight} bytes in flight"))
            }
            Unless::NothingLost => shown
                .nothing_lost
                .then(|| "nothing was sent twice in this connection, from its first packet on".into()),
            Unless::OneRequest => {
                shown.one_request.then(|| "one request was made, and none to ask together with it".into())
            }
            Unless::NoTrip => {
                let (_, way) = shown.trip.filter(|&(longest, way)| longest < way.part(2))?;
                Some(format!(
                    "this capture is from the server's side, where no request waited for a trip of the path ({way}); what it costs \
                     clients shows in a capture of theirs"
                ))
            }
            Unless::HoldIsNoise => (shown.longest < NOISE && shown.share < SMALL).then(|| {
                format!("no hold is longer than {}: too little to be told from noise", shown.longest)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FIXES, FixId};

    fn shown() -> Shown {
        Shown { longest: Nanos::millis(40), share: 0.5, ..Shown::default() }
    }

    #[test]
    fn nothing_is_refuted_where_nothing_is_known() {
        for fix in FIXES {
            assert!(fix.refuted(&shown()).is_none(), "{}", fix.id);
        }
    }

    #[test]
    fn each_reason_refutes_what_it_says_and_on_one_side_of_its_boundary_only() {
        let said = |unless: Unless, shown: &Shown| unless.refutes(shown).unwrap_or_default();
        let same_host = Shown { same_host: true, ..shown() };
        let of_paths = [FixId::FixLoss, FixId::FixReordering, FixId::CloserServer];
        for fix in FIXES.iter().filter(|fix| of_paths.contains(&fix.fix)) {
            assert!(fix.refuted(&same_host).is_some(), "{} needs a path", fix.id);
        }
        assert_eq!(
            said(Unless::SameHost, &same_host),
            "both ends are on one host, with no path between them"
        );

        assert_eq!(
            said(Unless::NothingLost, &Shown { nothing_lost: true, ..shown() }),
            "nothing was sent twice in this connection, from its first packet on"
        );

        assert_eq!(
            said(Unless::OneRequest, &Shown { one_request: true, ..shown() }),
            "one request was made, and none to ask together with it"
        );

        let window = |largest, needed| Shown {
            flight: Some(65_483),
            largest_window: Some(largest),
            needed: Some(needed),
            ..shown()
        };
        assert_eq!(
            said(Unless::WindowHadRoom, &window(130_966, 100_000)),
            "the window grew by itself from 65483 to 130966 bytes in the same connection"
        );
        assert_eq!(said(Unless::WindowHadRoom, &window(130_966, 100_000).at_first()), "");
        assert_eq!(said(Unless::WindowHadRoom, &window(130_965, 65_484)), "");
        assert_eq!(
            said(Unless::WindowHadRoom, &window(130_965, 65_483)),
            "the window was 65483 bytes, and this path needs only 65483"
        );

        let unscaled = |largest, unscaled| Shown { largest_window: Some(largest), unscaled, ..shown() };
        assert_eq!(
            said(Unless::WindowHadRoom, &unscaled(65_535, true)),
            "without window scaling no buffer makes the window larger than 65535 bytes"
        );
        assert_ne!(said(Unless::WindowHadRoom, &unscaled(64_075, true)), "");
        assert_ne!(said(Unless::WindowHadRoom, &unscaled(64_075, true).at_first()), "");
        assert_eq!(said(Unless::WindowHadRoom, &unscaled(64_074, true)), "");
        assert_eq!(said(Unless::WindowHadRoom, &unscaled(65_535, false)), "");

        let buffer = |flight, most| Shown { flight: Some(flight), most_in_flight: most, ..shown() };
        assert_eq!(said(Unless::BufferHadRoom, &buffer(4_000, 7_999)), "");
        assert_eq!(
            said(Unless::BufferHadRoom, &buffer(4_000, 8_000)),
            "the same end had 8000 bytes in flight at another time, so its buffer had room"
        );
        // What is written by segments of 64 KiB went beyond a buffer of as much.
        assert_eq!(said(Unless::BufferHadRoom, &buffer(65_536, 393_215)), "");
        assert_ne!(said(Unless::BufferHadRoom, &buffer(65_536, 393_216)), "");
        assert_ne!(said(Unless::BufferHadRoom, &buffer(64_000, 128_000)), "");
        assert_eq!(said(Unless::TooFewBytes, &buffer(1_024, 1_024)), "");
        assert_eq!(said(Unless::TooFewBytes, &buffer(627, 627)), "627 bytes in flight fill no send buffer");
        assert_eq!(said(Unless::BelowDefault, &buffer(8_192, 8_192)), "");
        assert_ne!(said(Unless::BelowDefault, &buffer(8_191, 8_191)), "");

        let trip = |longest| Shown { trip: Some((longest, Nanos::millis(20))), ..shown() };
        assert_ne!(said(Unless::NoTrip, &trip(Nanos::millis(10) - Nanos(2))), "");
        assert_eq!(said(Unless::NoTrip, &trip(Nanos::millis(10))), "");

        let hold = |longest, share| Shown { longest, share, ..Shown::default() };
        let short = Nanos::micros(72);
        assert_eq!(
            said(Unless::HoldIsNoise, &hold(short, 0.009)),
            "no hold is longer than 72.0 µs: too little to be told from noise"
        );
        assert_eq!(said(Unless::HoldIsNoise, &hold(short, 0.01)), "", "many short ones are worth a change");
        assert_eq!(said(Unless::HoldIsNoise, &hold(NOISE, 0.001)), "");
    }

    #[test]
    fn every_reason_stands_at_a_fix_and_the_first_that_holds_is_said() {
        for unless in Unless::ALL {
            assert!(FIXES.iter().any(|f| f.unless.contains(&unless)), "{unless:?} is never asked");
        }
        let shown = Shown { flight: Some(627), ..shown() };
        let said = FixId::UnsetSndbuf.info().refuted(&shown);
        assert_eq!(said.as_deref(), Some("627 bytes in flight fill no send buffer"));
        assert_eq!(FixId::CloserServer.info().refuted(&shown), None);
    }
}
