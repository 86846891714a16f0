//! What differs between TCP stacks, as values: rules take a profile, never a literal.

use crate::rest::{Packer, Rest, Unpacker};
use tcpwhy_base::{Nanos, Segment};

/// Habits of one end's TCP, as far as its SYN tells them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Profile {
    pub(crate) os: Option<&'static str>,
    /// A partial segment waits only for an earlier partial one (Minshall's rule; Linux `tcp_minshall_check`),
    /// not for any unacknowledged data (RFC 1122, 4.2.3.4).
    pub(crate) minshall: bool,
    /// Initial window in segments (RFC 6928; `tcp_init_cwnd`).
    pub(crate) initial_window: u32,
    /// Added to the smoothed round trip, at least (Linux TCP_RTO_MIN; `tcp_rtt_estimator`).
    pub(crate) rto_floor: Nanos,
    /// Its time stamps tick by the millisecond.
    pub(crate) fine_stamps: bool,
}

impl Profile {
    /// Linux since 2.6.39.
    pub(crate) const LINUX: Profile = Profile {
        os: Some("Linux"),
        minshall: true,
        initial_window: 10,
        rto_floor: Nanos::millis(200),
        fine_stamps: true,
    };
    /// What is assumed when nothing is known: Linux' constants, without the claim.
    pub(crate) const UNKNOWN: Profile = Profile { os: None, fine_stamps: false, ..Profile::LINUX };
    /// Windows: classic Nagle; initial window 10 since Windows 10 1607, RTO floor 300 ms (`Get-NetTCPSetting`).
    const WINDOWS: Profile =
        Profile { os: Some("Windows"), minshall: false, rto_floor: Nanos::millis(300), ..Profile::UNKNOWN };
    /// macOS: a tail may go if the segment before was full (TF_MAXSEGSNT), which is Minshall's effect.
    const MACOS: Profile = Profile { os: Some("macOS"), fine_stamps: true, ..Profile::UNKNOWN };
    const FREEBSD: Profile =
        Profile { os: Some("FreeBSD"), minshall: false, rto_floor: Nanos::millis(230), ..Profile::UNKNOWN };

    /// Each of them.
    const ALL: [&Profile; 5] =
        [&Profile::UNKNOWN, &Profile::LINUX, &Profile::WINDOWS, &Profile::MACOS, &Profile::FREEBSD];

    /// Guesses from the order of options in a SYN (kinds 4 bits each, NOP and timestamps left out) and the TTL.
    /// Linux writes MSS, SACK, window scale; Windows and the BSDs MSS, window scale, SACK.
    pub(crate) fn from_syn(syn: &Segment) -> &'static Profile {
        match syn.options.order & 0xfff {
            // Each router takes one from the 64 that Linux begins with (IPDEFTTL).
            0x342 if syn.ttl <= 64 => &Profile::LINUX,
            0x432 if syn.ttl > 64 => &Profile::WINDOWS,
            0x432 if syn.options.timestamps.is_some() && syn.window == u16::MAX => &Profile::MACOS,
            0x432 => &Profile::FREEBSD,
            _ => &Profile::UNKNOWN,
        }
    }
}

/// Its place among all of them.
impl Rest for &'static Profile {
    fn put(&self, to: &mut Packer) {
        to.one_of(Profile::ALL.into_iter(), self);
    }

    fn get(from: &mut Unpacker<'_>) -> &'static Profile {
        from.one_of(Profile::ALL.into_iter()).unwrap_or(&Profile::UNKNOWN)
    }
}

/// What system calls, interrupts and a virtual CPU's wake-up take is no wait (measured: 50 to 130 µs for an
/// empty path).
pub(crate) const NO_WAIT: Nanos = Nanos::micros(50);

/// What a released sender needs at most until its segment passes its own tap: an interrupt, a system call, a
/// process that wakes up (rules 5 and 49).
pub(crate) const WAKE_UP: Nanos = Nanos::millis(1);

/// What passes a tap beside its receiver is in that one's receive queue so soon, and in the acknowledgement
/// number of whatever leaves then (rule 100): the longest tick of a kernel's clock (HZ of 100), for which a
/// process may hold the socket (`tcp_add_backlog`).
pub(crate) const TAKEN_WITHIN: Nanos = Nanos::millis(10);

/// The shortest delayed-ACK timer in use is 10 ms (Windows data-centre template); Linux, FreeBSD and newer
/// Windows have 40 ms (`tcp_send_delayed_ack`, HZ/25), others 100 or 200 ms. An ACK counts as delayed from four
/// fifths of the shortest timer on, or from a quarter of the base round trip where that is more: the share of it
/// that RACK allows for jitter on the path (`tcp_rack_reo_wnd`, RFC 8985 6.2).
pub(crate) fn delayed_from(rtt: Nanos) -> Nanos {
    Nanos::millis(8).max(rtt.part(4))
}

/// A receiver whose window scale is below its stack's default had SO_RCVBUF (or `tcp_rmem`) set before the handshake
/// (`tcp_select_initial_window`).
pub(crate) fn set_its_buffer(os: Option<&str>, wscale: Option<u8>) -> bool {
    os == Some("Linux") && wscale.is_some_and(|w| w < 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two that are alike would be one at rest.
    #[test]
    fn each_profile_is_another() {
        for (n, profile) in Profile::ALL.iter().enumerate() {
            assert_eq!(Profile::ALL.iter().position(|other| other == profile), Some(n));
        }
    }
}
