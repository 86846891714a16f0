//! What differs between TCP stacks and their settings, as values. The endpoints take a profile, never a literal.
//! Sources are given beside each value; figures marked "measured" come from Linux 6.18 over an emulated link.

use crate::timer::Clock;
use tcpwhy_base::Nanos;

/// How congestion control grows and shrinks the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// RFC 9438, with HyStart as Linux has it.
    Cubic,
    /// RFC 5681.
    Reno,
    /// Version 1: paced, start-up at 2.885 times the rate.
    Bbr,
}

/// When a partial segment waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nagle {
    /// While an earlier partial segment is unacknowledged (Linux `tcp_minshall_check`; XNU TF_MAXSEGSNT has
    /// its effect).
    Minshall,
    /// While anything is unacknowledged (RFC 1122, 4.2.3.4).
    Classic,
}

/// When a receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acks {
    /// Linux: a budget of quick ACKs, ping-pong mode, an adaptive timer, and an ACK when a read drains the queue.
    Adaptive {
        /// Replies within the ACK timeout that switch quick ACKs off (`tcp_pingpong_thresh`).
        pingpong: u8,
    },
    /// Every so many full segments, or after a fixed time.
    Fixed {
        /// The timer.
        delay: Nanos,
        /// Full segments.
        every: u64,
        /// A segment with PSH is acknowledged at once (XNU, `delayed_ack` = 3).
        push_now: bool,
    },
}

/// How a receive buffer becomes a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowRule {
    /// The measured share of payload in buffer memory (Linux 6.6 and later, `scaling_ratio`).
    Measured,
    /// A fixed share: half for `tcp_adv_win_scale` = 1.
    Fixed {
        /// `tcp_adv_win_scale`.
        scale: u32,
    },
    /// Buffer bytes are window bytes (BSD, Windows).
    Whole,
}

/// A TCP stack with its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its name on the command line.
    pub name: &'static str,
    /// Timer ticks and how timers are rounded.
    pub clock: Clock,
    /// Initial window in segments (RFC 6928; `tcp_init_cwnd`).
    pub initcwnd: u32,
    /// First timeout, before a round trip was measured (RFC 6298, 2.1).
    pub rto_init: Nanos,
    /// Smallest variance term: the timeout is never below the smoothed round trip plus this (`tcp_rtt_estimator`).
    pub rto_min: Nanos,
    /// Largest timeout.
    pub rto_max: Nanos,
    /// SYN repeats before the back-off doubles (`tcp_syn_linear_timeouts`, Linux 6.5).
    pub syn_linear: u32,
    /// SYN repeats before `connect` fails (`tcp_syn_retries`).
    pub syn_retries: u32,
    /// SYN-ACK repeats (`tcp_synack_retries`).
    pub synack_retries: u32,
    /// Which partial segments wait.
    pub nagle: Nagle,
    /// When a receiver acknowledges.
    pub acks: Acks,
    /// Shortest delayed-ACK timer (`TCP_DELACK_MIN`, `TCP_ATO_MIN`).
    pub delack_min: Nanos,
    /// Longest delayed-ACK timer (`TCP_DELACK_MAX`).
    pub delack_max: Nanos,
    /// Quick ACKs at the start of a connection (`TCP_MAX_QUICKACKS`).
    pub quickacks: u64,
    /// Memory of a packet buffer beyond its payload, at the sender: 832 bytes measured, 1280 before the cache of
    /// small heads (Linux 6.3).
    pub skb_overhead: u64,
    /// `tcp_wmem`: least, first and largest send buffer, in bytes.
    pub wmem: [u64; 3],
    /// `tcp_rmem`: least, first and largest receive buffer, in bytes.
    pub rmem: [u64; 3],
    /// `net.core.wmem_max` clips SO_SNDBUF, in bytes.
    pub wmem_max: u64,
    /// `net.core.rmem_max` clips SO_RCVBUF, in bytes.
    pub rmem_max: u64,
    /// SO_SNDBUF and SO_RCVBUF are doubled (socket(7)), for the bookkeeping.
    pub doubles_buffers: bool,
    /// How a receive buffer becomes a window.
    pub window: WindowRule,
    /// Segments that the receive buffer grows by beyond twice what was copied (`tcp_rcv_space_adjust`; 16 to
    /// Linux 6.12).
    pub drs_extra: u64,
    /// HyStart allows for late ACKs (`hystart_ack_delay`, Linux 5.6).
    pub hystart_ack_delay: bool,
    /// What waits to be read does not count as copied, and the receiver's round trip is the shortest that showed
    /// (`tcp_rcv_space_adjust`, `tcp_rcv_rtt_update`; Linux 6.16).
    pub drs_reads_queue: bool,
    /// Largest first window in the SYN, in bytes.
    pub first_window: u64,
    /// The window falls back after idle times (`tcp_slow_start_after_idle`).
    pub idle_restart: bool,
    /// Slow start counts ACKs, not segments (Linux before 3.13, `tcp_slow_start`).
    pub growth_per_ack: bool,
    /// Congestion control.
    pub congestion: Congestion,
    /// Tail-loss probes (RFC 8985, 7; Linux 3.10).
    pub tail_loss_probe: bool,
    /// RACK decides what is lost (RFC 8985, 6), not three duplicate ACKs.
    pub rack: bool,
    /// Lost time-outs are found out (RFC 5682, RFC 3522).
    pub undo: bool,
    /// Largest unit handed to the device: GSO less headers.
    pub gso_max: u64,
    /// RFC 7323 timestamps: 12 bytes of every segment.
    pub timestamps: bool,
    /// Shortest wait before a closed window is probed (`tcp_probe0_base`).
    pub probe_min: Nanos,
    /// `tcp_abort_on_overflow`.
    pub abort_on_overflow: bool,
    /// `somaxconn`.
    pub somaxconn: u32,
    /// A SYN that meets a full accept queue is dropped at once (Linux 4.10).
    pub drops_syn_when_full: bool,
    /// A SYN that meets a full SYN queue is answered with a cookie (`tcp_syncookies`); else it is dropped.
    pub syncookies: bool,
}

const LINUX: Profile = Profile {
    name: "linux-6.18",
    clock: Clock { hz: 250, wheel: true },
    initcwnd: 10,
    rto_init: Nanos::secs(1),
    rto_min: Nanos::millis(200),
    rto_max: Nanos::secs(120),
    syn_linear: 4,
    syn_retries: 6,
    synack_retries: 5,
    nagle: Nagle::Minshall,
    acks: Acks::Adaptive { pingpong: 1 },
    delack_min: Nanos::millis(40),
    delack_max: Nanos::millis(200),
    quickacks: 16,
    skb_overhead: 832,
    wmem: [4096, 16384, 4 << 20],
    rmem: [4096, 131_072, 32 << 20],
    wmem_max: 4 << 20,
    rmem_max: 4 << 20,
    doubles_buffers: true,
    window: WindowRule::Measured,
    drs_extra: 0,
    hystart_ack_delay: true,
    drs_reads_queue: true,
    first_window: 65_535,
    idle_restart: true,
    growth_per_ack: false,
    congestion: Congestion::Cubic,
    tail_loss_probe: true,
    rack: true,
    undo: true,
    gso_max: 65_535 - 320,
    timestamps: true,
    probe_min: Nanos::millis(200),
    abort_on_overflow: false,
    somaxconn: 4096,
    drops_syn_when_full: true,
    syncookies: true,
};

const LINUX_6_12: Profile = Profile {
    name: "linux-6.12",
    rmem: [4096, 131_072, 6 << 20],
    wmem_max: 212_992,
    rmem_max: 212_992,
    drs_extra: 16,
    drs_reads_queue: false,
    ..LINUX
};

const LINUX_6_1: Profile = Profile {
    name: "linux-6.1",
    syn_linear: 0,
    skb_overhead: 1280,
    window: WindowRule::Fixed { scale: 1 },
    ..LINUX_6_12
};

/// 5.1 to 5.19 needed three replies for ping-pong mode; the change was taken back in 6.0.
const LINUX_5_10: Profile = Profile { name: "linux-5.10", acks: Acks::Adaptive { pingpong: 3 }, ..LINUX_6_1 };

const LINUX_4_19: Profile = Profile {
    name: "linux-4.19",
    hystart_ack_delay: false,
    rmem: [4096, 87_380, 6 << 20],
    first_window: 29_200,
    acks: Acks::Adaptive { pingpong: 1 },
    somaxconn: 128,
    ..LINUX_6_1
};

/// Early retransmit and FACK are left out: losses are found by three duplicate ACKs or the probe.
const LINUX_3_10: Profile = Profile {
    name: "linux-3.10",
    clock: Clock { hz: 1000, wheel: false },
    first_window: 14_600,
    growth_per_ack: true,
    rack: false,
    drops_syn_when_full: false,
    ..LINUX_4_19
};

/// Windows 10 1607 and later, Internet template (`Get-NetTCPSetting`): initial window 10, CwndRestart False,
/// minimum RTO 300 ms, ACKs after 40 ms or two segments. Timestamps are off.
const WINDOWS: Profile = Profile {
    name: "windows",
    clock: Clock { hz: 1000, wheel: false },
    rto_min: Nanos::millis(300),
    syn_linear: 1,
    syn_retries: 4,
    nagle: Nagle::Classic,
    acks: Acks::Fixed { delay: Nanos::millis(40), every: 2, push_now: false },
    skb_overhead: 0,
    wmem: [8192, 65_536, 16 << 20],
    rmem: [8192, 65_535, 16 << 20],
    wmem_max: 16 << 20,
    rmem_max: 16 << 20,
    doubles_buffers: false,
    window: WindowRule::Whole,
    first_window: 64_240,
    idle_restart: false,
    tail_loss_probe: true,
    timestamps: false,
    ..LINUX
};

/// macOS (XNU): ACK timer 100 ms, a segment with PSH is acknowledged at once, a tail may follow a full segment.
const MACOS: Profile = Profile {
    name: "macos",
    clock: Clock { hz: 1000, wheel: false },
    syn_linear: 5,
    acks: Acks::Fixed { delay: Nanos::millis(100), every: 2, push_now: true },
    skb_overhead: 0,
    wmem: [8192, 131_072, 4 << 20],
    rmem: [8192, 131_072, 4 << 20],
    doubles_buffers: false,
    window: WindowRule::Whole,
    ..LINUX
};

/// FreeBSD: ACK timer 40 ms in current releases (`net.inet.tcp.delacktime`), minimum RTO 230 ms with its slop.
const FREEBSD: Profile = Profile {
    name: "freebsd",
    nagle: Nagle::Classic,
    rto_min: Nanos::millis(230),
    acks: Acks::Fixed { delay: Nanos::millis(40), every: 2, push_now: false },
    rack: false,
    tail_loss_probe: false,
    wmem: [2048, 32_768, 2 << 20],
    rmem: [2048, 65_536, 2 << 20],
    ..MACOS
};

/// Every profile, the default first.
pub const PROFILES: &[Profile] =
    &[LINUX, LINUX_6_12, LINUX_6_1, LINUX_5_10, LINUX_4_19, LINUX_3_10, WINDOWS, MACOS, FREEBSD];

impl Default for Profile {
    fn default() -> Profile {
        LINUX
    }
}

impl Profile {
    /// By name; `linux` is the newest.
    pub fn named(name: &str) -> Option<Profile> {
        let name = if name == "linux" { LINUX.name } else { name };
        PROFILES.iter().find(|p| p.name == name).cloned()
    }

    /// Buffer memory of a received packet with so many payload bytes: the allocator's size class, the buffer's own
    /// structure (256 bytes) and the shared part at its end (320 bytes, in the class).
    pub(crate) fn received_size(&self, len: u64) -> u64 {
        if self.window == WindowRule::Whole {
            return len;
        }
        const STRUCT: u64 = 256;
        const SHARED: u64 = 320;
        /// Headers, options and headroom before the payload.
        const HEADROOM: u64 = 52 + 64;
        let data = len + HEADROOM;
        if data + SHARED <= 576 && self.skb_overhead < 1000 {
            return 576 + STRUCT;
        }
        let class = (data + SHARED).next_power_of_two().max(512);
        // Beyond two pages what a first one does not hold lies in pages of its own (`tun_alloc_skb`; the windows that
        // follow packets of 8,948, 16,384 and 32,768 bytes were measured: 81,920, 88,064 and 82,944).
        const PAGE: u64 = 4096;
        let pages = (len + 52).saturating_sub(PAGE - SHARED).next_multiple_of(PAGE);
        if class <= 2 * PAGE { class + STRUCT } else { PAGE + pages + STRUCT }
    }

    /// Buffer memory that one full segment needs when a send buffer grows (`tcp_sndbuf_expand`).
    pub(crate) fn segment_memory(&self, mss: u64) -> u64 {
        (mss + 256 + 320).next_power_of_two() + 256
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for (i, p) in PROFILES.iter().enumerate() {
            assert!(PROFILES[..i].iter().all(|o| o.name != p.name));
            assert_eq!(Profile::named(p.name).as_ref(), Some(p));
        }
        assert_eq!(Profile::named("linux"), Some(Profile::default()));
        assert_eq!(Profile::named("plan9"), None);
    }

    #[test]
    fn a_full_segment_fills_five_eighths_of_its_buffer() {
        let p = Profile::default();
        assert_eq!(p.received_size(1448), 2304);
        assert_eq!(1448 * 256 / p.received_size(1448), 160);
        assert_eq!(p.received_size(1), 832);
        assert_eq!(p.segment_memory(1448), 2304);
    }
}
