//! One end of a connection: its state, and what application, link and timers may call. Sending stands in `send`,
//! acknowledgements in `ack`, repairs in `recovery`, receiving in `receive`, opening in `open`.
//!
//! A call changes the state, leaves packets in `out` and deadlines in `timers`; whoever called takes the packets and
//! asks for the next deadline.

mod ack;
mod open;
mod receive;
mod receiver;
mod recovery;
mod send;

use crate::bbr::per_second;
use crate::cong::Cong;
use crate::packet::{HEADERS, Packet, TIMESTAMPS};
use crate::profile::{Acks, Congestion, Profile};
use crate::rtt::Rtt;
use crate::scenario::Host;
use receiver::Receiver;
use std::collections::VecDeque;
use tcpwhy_base::{Cause, Cork, Nanos};

/// Where the connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Closed,
    SynSent,
    /// The SYN-ACK is out.
    SynReceived,
    Established,
    /// Reset, refused or given up.
    Dead,
}

/// Why data in the send queue may not leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    Cwnd,
    Window,
    Nagle,
    Cork,
    Pacing,
}

/// What congestion control is doing (`tcp_ca_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ca {
    Open,
    /// The window shrinks without a loss known (after a probe that repaired one).
    Cwr,
    Recovery,
    Loss,
}

/// What the one retransmission timer stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    Syn,
    SynAck,
    Rto,
    Probe,
    Reorder,
    Persist,
}

/// Unsent data that share a packet buffer.
#[derive(Clone, Copy, Debug)]
struct Skb {
    len: u64,
    psh: bool,
    fin: bool,
}

/// A segment that is not acknowledged.
#[derive(Clone, Copy, Debug)]
struct Seg {
    seq: u64,
    end: u64,
    fin: bool,
    psh: bool,
    /// Last transmission, and the first.
    sent: Nanos,
    first: Nanos,
    sacked: bool,
    lost: bool,
    /// A repeat is on its way.
    retrans: bool,
    ever: bool,
    /// Buffer overhead that its acknowledgement frees.
    overhead: u64,
    /// For rate samples: delivered bytes, their time, and whether the application was slow.
    delivered: u64,
    delivered_at: Nanos,
    app_limited: bool,
}

impl Seg {
    fn len(&self) -> u64 {
        self.end - self.seq - u64::from(self.fin)
    }
}

/// One end of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Socket {
    pub(crate) p: Profile,
    conn: u32,
    me: u8,
    pub(crate) state: State,
    now: Nanos,
    /// Where the host's ticks fall.
    phase: Nanos,
    pub(crate) out: Vec<Packet>,
    // Sending.
    queue: VecDeque<Skb>,
    rtx: VecDeque<Seg>,
    una: u64,
    nxt: u64,
    write_seq: u64,
    wnd_end: u64,
    snd_wnd: u64,
    max_window: u64,
    pushed_seq: u64,
    sml: u64,
    nodelay: bool,
    corked: bool,
    memory: u64,
    sndbuf: u64,
    sndbuf_locked: bool,
    lowat: u64,
    /// A writer sleeps until there is room.
    writer_waits: bool,
    /// A writer that slept was woken.
    pub(crate) writer_woken: bool,
    pub(crate) mtu_mss: u64,
    mss: u64,
    hold: Option<Hold>,
    /// Why the application did not write before.
    app_cause: Option<Cause>,
    fin_queued: bool,
    // Congestion control and repair.
    cong: Cong,
    rtt: Rtt,
    ca: Ca,
    high: u64,
    cwnd_limited: bool,
    max_out: u64,
    usage_seq: u64,
    used: u64,
    stamp: Nanos,
    last_sent: Nanos,
    last_burst: Nanos,
    sacked: u64,
    lost: u64,
    retrans: u64,
    prr_delivered: u64,
    prr_out: u64,
    prior_cwnd: u64,
    undo: Option<(u64, u64, Nanos)>,
    /// Repeats since then that no D-SACK has shown to be needless; none: nothing was repeated yet.
    undo_repeats: Option<u64>,
    /// The first repeat of the repair that goes on, a probe left out (`retrans_stamp`).
    repairs_since: Option<Nanos>,
    rack_sent: Nanos,
    rack_end: u64,
    rack_rtt: Nanos,
    reordered: bool,
    dupacks: u32,
    probe_high: Option<(u64, bool)>,
    backoff: u32,
    retransmits: u32,
    timer: Option<(Nanos, Timer)>,
    pace: Option<Nanos>,
    next_pace: Nanos,
    syn_repeats: u32,
    /// The SYN-ACK carried a cookie: the listener knows nothing of this connection.
    pub(crate) cookie: bool,
    /// When the SYN-ACK left.
    rtt_from: Nanos,
    delivered: u64,
    delivered_at: Nanos,
    app_limited_until: u64,
    /// The window before an idle time or a loss took it.
    before_idle: u64,
    had_loss: bool,
    repair: Cause,
    /// The peer's application was not reading when it last said its window, or that made room which it had
    /// not read before.
    reader_away: bool,
    /// This host's application does not read.
    pub(crate) away: bool,
    /// This host's application reads again, and no packet has told of the room that it made.
    pub(crate) returned: bool,
    mtu_probing: bool,
    initcwnd: u64,
    idle_restart: bool,
    quickack: bool,
    r: Receiver,
}

impl Socket {
    /// A socket of `host` before it connects; `mtu` is that of its interface.
    pub(crate) fn new(host: &Host, conn: u32, me: u8, mtu: u64) -> Socket {
        let p = host.stack.profile.clone();
        let stamps = if p.timestamps { TIMESTAMPS } else { 0 };
        let mss = mtu.saturating_sub(HEADERS + stamps).max(8);
        let double = if p.doubles_buffers { 2 } else { 1 };
        let asked = |n: u64, max: u64, least: u64| (n.min(max) * double).max(least);
        let sndbuf = host.sndbuf.map(|n| asked(n, p.wmem_max, 4608));
        let rcvbuf = host.rcvbuf.map(|n| asked(n, p.rmem_max, 2304));
        let initcwnd = u64::from(host.initcwnd.unwrap_or(p.initcwnd)).max(1);
        let cong = Cong::new(host.stack.congestion.unwrap_or(p.congestion), initcwnd);
        let mut r = Receiver::new(rcvbuf, &p);
        // The server knows whether time stamps are used when it chooses its window; the client does not.
        r.first_window(&p, if me == 0 { mtu.saturating_sub(HEADERS) } else { mss });
        Socket {
            conn,
            me,
            phase: host.stack.phase,
            nodelay: host.nodelay,
            corked: host.cork == Cork::Always,
            sndbuf: sndbuf.unwrap_or(p.wmem[1]),
            sndbuf_locked: sndbuf.is_some(),
            lowat: host.notsent_lowat.unwrap_or(u64::MAX),
            mtu_mss: mss,
            mss,
            mtu_probing: host.stack.mtu_probing,
            initcwnd,
            idle_restart: host.stack.idle_restart.unwrap_or(p.idle_restart),
            quickack: host.quickack,
            ..Socket::closed(p, cong, r)
        }
    }

    /// Nothing sent, nothing known of the peer, no setting made.
    fn closed(p: Profile, cong: Cong, r: Receiver) -> Socket {
        Socket {
            conn: 0,
            me: 0,
            phase: Nanos::ZERO,
            nodelay: false,
            corked: false,
            sndbuf: 0,
            sndbuf_locked: false,
            lowat: u64::MAX,
            mtu_mss: 0,
            mss: 0,
            mtu_probing: false,
            initcwnd: 0,
            idle_restart: false,
            quickack: false,
            state: State::Closed,
            now: Nanos::ZERO,
            out: Vec::new(),
            queue: VecDeque::new(),
            rtx: VecDeque::new(),
            una: 0,
            nxt: 0,
            write_seq: 1,
            wnd_end: 0,
            snd_wnd: 0,
            max_window: 0,
            pushed_seq: 0,
            sml: 0,
            memory: 0,
            writer_waits: false,
            writer_woken: false,
            hold: None,
            app_cause: None,
            fin_queued: false,
            rtt: Rtt::new(),
            ca: Ca::Open,
            high: 0,
            cwnd_limited: false,
            max_out: 0,
            usage_seq: 0,
            used: 0,
            stamp: Nanos::ZERO,
            last_sent: Nanos::ZERO,
            last_burst: Nanos::ZERO,
            sacked: 0,
            lost: 0,
            retrans: 0,
            prr_delivered: 0,
            prr_out: 0,
            prior_cwnd: 0,
            undo: None,
            undo_repeats: None,
            repairs_since: None,
            rack_sent: Nanos::ZERO,
            rack_end: 0,
            rack_rtt: Nanos::ZERO,
            reordered: false,
            dupacks: 0,
            probe_high: None,
            backoff: 0,
            retransmits: 0,
            timer: None,
            pace: None,
            next_pace: Nanos::ZERO,
            syn_repeats: 0,
            cookie: false,
            rtt_from: Nanos::ZERO,
            delivered: 0,
            delivered_at: Nanos::ZERO,
            app_limited_until: 0,
            before_idle: 0,
            had_loss: false,
            repair: Cause::FastRecovery,
            reader_away: false,
            away: false,
            returned: false,
            cong,
            r,
            p,
        }
    }

    /// Its application has read what lies before this sequence number.
    pub(crate) fn copied(&self) -> u64 {
        self.r.copied
    }

    /// By so many bits the windows that it says are shifted.
    pub(crate) fn wscale(&self) -> u8 {
        self.r.wscale
    }

    /// The next moment at which `on_timer` has something to do.
    pub(crate) fn deadline(&self) -> Option<Nanos> {
        [self.timer.map(|t| t.0), self.r.delack, self.pace].into_iter().flatten().min()
    }

    /// Runs what is due.
    pub(crate) fn on_timer(&mut self, now: Nanos) {
        self.now = now;
        if self.state == State::Dead {
            (self.timer, self.r.delack, self.pace) = (None, None, None);
            return;
        }
        if self.r.delack.is_some_and(|t| t <= now) {
            self.delayed_ack_timer();
        }
        if self.pace.is_some_and(|t| t <= now) {
            self.pace = None;
            self.push(false);
        }
        if let Some((at, kind)) = self.timer
            && at <= now
        {
            self.timer = None;
            match kind {
                Timer::Syn => self.syn_timer(),
                Timer::SynAck => self.synack_timer(),
                Timer::Rto => self.retransmit_timer(),
                Timer::Probe => self.loss_probe(),
                Timer::Reorder => self.reorder_timer(),
                Timer::Persist => self.persist_timer(),
            }
        }
    }

    pub(crate) fn fires(&self, delay: Nanos) -> Nanos {
        self.p.clock.fires(self.now, delay, self.phase)
    }

    fn arm(&mut self, delay: Nanos, kind: Timer) {
        self.timer = Some((self.fires(delay), kind));
    }

    /// Timeout with back-off.
    pub(crate) fn rto(&self) -> Nanos {
        self.rtt.rto(&self.p).times(1 << self.backoff.min(16)).min(self.p.rto_max)
    }

    fn packets_out(&self) -> u64 {
        self.rtx.len() as u64
    }

    fn in_flight(&self) -> u64 {
        (self.packets_out() + self.retrans).saturating_sub(self.sacked + self.lost)
    }

    fn adaptive(&self) -> bool {
        matches!(self.p.acks, Acks::Adaptive { .. })
    }

    fn paces(&self) -> bool {
        self.cong.kind == Congestion::Bbr
    }

    /// Bytes a second that bursts are sized by, and that BBR keeps to (`tcp_update_pacing_rate`).
    fn pacing_rate(&self) -> u64 {
        if self.paces() {
            return self.cong.bbr.rate.max(1);
        }
        if self.rtt.srtt == Nanos::ZERO {
            return u64::MAX;
        }
        let cwnd = self.cong.cwnd.max(self.packets_out());
        let percent = if self.cong.cwnd < self.cong.ssthresh / 2 { 200 } else { 120 };
        per_second(cwnd * self.mss * percent / 100, self.rtt.srtt)
    }

    /// An acknowledgement, a repeat or data: the fields that all have.
    fn packet(&mut self, seq: u64) -> Packet {
        let (window, wscale) = self.select_window();
        let stamps = (self.p.timestamps).then_some((self.now, self.r.stamp_recent));
        let mut sack = [(0, 0); 3];
        let sacks = self.sack_blocks(&mut sack);
        self.r.last_ack_sent = self.r.nxt;
        Packet {
            conn: self.conn,
            from: self.me,
            seq,
            ack: self.r.nxt,
            has_ack: true,
            window,
            wscale,
            stamps,
            sack,
            sacks,
            reader_away: std::mem::take(&mut self.returned) || self.away,
            dsack: self.r.duplicate.take().is_some(),
            ..Packet::default()
        }
    }

    /// A limit as a cause, at the moment that it ends.
    fn cause_of(&self, hold: Hold, delayed: bool) -> Cause {
        match hold {
            Hold::Nagle if delayed => Cause::NagleDelayedAck,
            Hold::Nagle => Cause::Nagle,
            Hold::Cork => Cause::Cork,
            Hold::Pacing => Cause::Pacing,
            Hold::Window if self.reader_away => Cause::SlowReader,
            Hold::Window if delayed && self.packets_out() <= 1 => Cause::DelayedAck,
            Hold::Window => Cause::ReceiveWindow,
            Hold::Cwnd => match self.ca {
                Ca::Recovery | Ca::Cwr => Cause::FastRecovery,
                Ca::Loss => self.repair,
                Ca::Open if delayed && self.cong.cwnd <= 2 => Cause::DelayedAck,
                // Until the window is back at what it was before the idle time.
                Ca::Open if self.cong.cwnd <= self.before_idle => Cause::IdleRestart,
                Ca::Open if self.had_loss || self.cong.hystart_exit => Cause::CongestionWindow,
                Ca::Open => Cause::SlowStart,
            },
        }
    }

    /// The connection is over for this end.
    pub(crate) fn die(&mut self) {
        self.state = State::Dead;
        (self.timer, self.r.delack, self.pace) = (None, None, None);
    }
}
