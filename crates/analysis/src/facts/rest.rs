//! The figures behind a span, at rest.

use super::{Facts, Over};
use crate::rest::at_rest;

at_rest! {
    enum Facts {
        0 => None, 1 => RoundTrip { rtt }, 2 => SynRepeats { repeats, over, syn_ack, at_server, answered },
        3 => SynsLost { repeats, over, there, back }, 4 => UnknownScale { flight, window },
        5 => Unanswered { syns, over }, 6 => NotTaken { repeats, syn_acks }, 7 => Refused { resets },
        8 => Think { seen, path }, 9 => NoAnswer { wait, end }, 10 => Nagle { first, held, ack_delay },
        11 => Window { flight, rtt }, 12 => Closed { window }, 13 => BothClosed { windows }, 14 => NoRoom,
        15 => Told(value), 16 => Flight { flight, segments, rtt, before }, 17 => Drained { flight },
        18 => AckDelay { delay, flight }, 19 => Bytes { bytes, bps }, 20 => Loss { bytes, wait },
        21 => TooBig { bytes, wait, mtu }, 22 => FirstData { bytes, wait, repeats },
        23 => Probe { wait, outstanding }, 24 => Corked { wait, held }, 25 => Unread { flight, late },
        26 => Queue { rtt, base }, 27 => Missing { packets, wait }, 28 => Wait { wait, outstanding, empty },
        29 => Emptied { wait, late }, 30 => LateRequest { late }, 31 => Pieces { piece, mss, wait },
        39 => Stood { bytes, bps, stood }, 40 => EncryptionRefused { rtt },
        41 => Refilled { bytes, credit, rtt }, 42 => LostBehind { bytes, wait },
        43 => Behind { wait, work, bytes }, 44 => Spread { flight }, 45 => LateBetween { late, rtt },
        46 => TimedAnswer { wait, held, ticks }, 47 => LateOpening { late, rtt }, 48 => InRecovery { bytes, wait },
        49 => SynsIgnored { syns, over }, 50 => KeyAskedAgain { rtt },
        51 => Tail { wait, held, corked },
        32 => Split { far, rtt }, 33 => NextWrite { wait }, 34 => Released { late },
        35 => Silent { wait, tries }, 36 => NotCaptured, 37 => OneSided, 38 => WrongClock { wait },
    }
}
at_rest! { enum Over { PeerClosed, PeerReset, GaveUp, CaptureEnded, Unheard } }
