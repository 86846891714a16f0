//! What the kernel says of one socket at one moment.

use std::fmt;
use tcpwhy_base::tcp_info::{Field, field};
use tcpwhy_base::{Endpoint, Nanos};

/// State of a socket (`linux/tcp_states.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Both directions are open.
    Established,
    /// connect() waits for the SYN-ACK.
    SynSent,
    /// A request: the handshake's last ACK has not come, or could not be queued.
    SynReceived,
    /// This end closed its direction; FIN not acknowledged.
    FinWait1,
    /// This end closed its direction; the other end has not.
    FinWait2,
    /// Closed; only keeps late packets away.
    TimeWait,
    /// Closed.
    Closed,
    /// The other end closed its direction; this one has not.
    CloseWait,
    /// Both closed; this end's FIN is not acknowledged.
    LastAck,
    /// Waits for connections.
    Listen,
    /// Both closed at once.
    Closing,
}

impl State {
    /// By the kernel's number.
    pub fn from_number(n: u8) -> Option<State> {
        Some(match n {
            1 => State::Established,
            2 => State::SynSent,
            // 12: TCP_NEW_SYN_RECV, a request that has no socket yet.
            3 | 12 => State::SynReceived,
            4 => State::FinWait1,
            5 => State::FinWait2,
            6 => State::TimeWait,
            7 => State::Closed,
            8 => State::CloseWait,
            9 => State::LastAck,
            10 => State::Listen,
            11 => State::Closing,
            _ => return None,
        })
    }

    /// As `ss` writes it.
    pub const fn name(self) -> &'static str {
        match self {
            State::Established => "ESTAB",
            State::SynSent => "SYN-SENT",
            State::SynReceived => "SYN-RECV",
            State::FinWait1 => "FIN-WAIT-1",
            State::FinWait2 => "FIN-WAIT-2",
            State::TimeWait => "TIME-WAIT",
            State::Closed => "CLOSED",
            State::CloseWait => "CLOSE-WAIT",
            State::LastAck => "LAST-ACK",
            State::Listen => "LISTEN",
            State::Closing => "CLOSING",
        }
    }
}

/// What `tcp_info` says, as far as it is used. Fields that old kernels lack are optional.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Info {
    /// `TCP_CA_*`: 0 open, 1 disorder, 2 reduced, 3 recovery, 4 loss.
    pub ca_state: u8,
    /// Retransmission timeouts in a row.
    pub retransmits: u8,
    /// Timeout of retransmission.
    pub rto: Nanos,
    /// Largest segment to send.
    pub snd_mss: u32,
    /// Largest segment that comes, as estimated.
    pub rcv_mss: u32,
    /// Packets sent and not acknowledged.
    pub unacked: u32,
    /// Of them: reported to have arrived.
    pub sacked: u32,
    /// Of them: taken for lost.
    pub lost: u32,
    /// Of them: sent again.
    pub retrans: u32,
    /// Since data was sent.
    pub last_data_sent: Nanos,
    /// Since data came.
    pub last_data_recv: Nanos,
    /// Since an ACK came, also one that data brought.
    pub last_ack_recv: Nanos,
    /// Smoothed round trip.
    pub rtt: Nanos,
    /// Round trip as the receiver of data estimates it.
    pub rcv_rtt: Nanos,
    /// Where slow start ends, in packets.
    pub ssthresh: u32,
    /// Congestion window, in packets.
    pub cwnd: u32,
    /// Packets sent again in all.
    pub total_retrans: u32,
    /// Bytes a second.
    pub pacing_rate: u64,
    /// The rate that the application allows; all bits set: any.
    pub max_pacing_rate: u64,
    /// Bytes acknowledged.
    pub bytes_acked: u64,
    /// Bytes that came.
    pub bytes_received: u64,
    /// Bytes in the queue that were never sent.
    pub notsent: u32,
    /// Shortest round trip of the last minutes.
    pub min_rtt: Nanos,
    /// Bytes a second that arrived, as estimated.
    pub delivery_rate: u64,
    /// Time with anything unsent or unacknowledged.
    pub busy: Nanos,
    /// Of it: stopped by the receive window.
    pub rwnd_limited: Nanos,
    /// Of it: stopped by the send buffer.
    pub sndbuf_limited: Nanos,
    /// The window that the other end offers.
    pub snd_wnd: Option<u32>,
    /// The window that this end offers.
    pub rcv_wnd: Option<u32>,
    /// Segments that came. Before Linux 4.6 they were not counted.
    pub segs_in: Option<u32>,
    /// Segments with data that came.
    pub data_segs_in: Option<u32>,
    /// The largest packet that the path takes.
    pub pmtu: u32,
    /// Scales of the window that the other end offers and of the own one, if windows are scaled.
    pub scales: Option<[u8; 2]>,
    /// Both ends use time stamps.
    pub stamped: bool,
}

impl Sample {
    /// An open connection between these ports of one host, of which nothing else is known: what tests begin with,
    /// those of other crates too.
    #[doc(hidden)]
    pub fn open(local: u16, peer: u16) -> Sample {
        let at = |port| Endpoint { ip: [10, 0, 0, 1].into(), port };
        Sample {
            cookie: 1,
            local: at(local),
            peer: at(peer),
            device: 0,
            state: State::Established,
            inode: 5,
            rqueue: 0,
            wqueue: 0,
            retransmits: 0,
            expires: None,
            info: None,
            memory: None,
            congestion: Congestion::default(),
        }
    }

    /// What it sends again is no repair: the other end takes nothing. A window that was shut behind what had left
    /// makes probes of the repeats (`tcp_retransmit_timer`: "Our retransmits become zero probes"); and a buffer in which
    /// more lies unread than may still come, `peer_unread`, has dropped what found no room (`tcp_try_rmem_schedule`).
    pub(crate) fn probes(&self, peer_unread: bool) -> bool {
        peer_unread || self.info.is_some_and(|i| i.snd_wnd == Some(0))
    }
}

macro_rules! fields {
    ($($name:ident = $text:literal;)*) => {
        $(const $name: Field = field($text);)*
    };
}

fields! {
    CA_STATE = "ca_state";
    RETRANSMITS = "retransmits";
    RTO = "rto_us";
    SND_MSS = "snd_mss";
    RCV_MSS = "rcv_mss";
    UNACKED = "unacked";
    SACKED = "sacked";
    LOST = "lost";
    RETRANS = "retrans";
    LAST_DATA_SENT = "last_data_sent_ms";
    LAST_DATA_RECV = "last_data_recv_ms";
    LAST_ACK_RECV = "last_ack_recv_ms";
    RTT = "rtt_us";
    RCV_RTT = "rcv_rtt_us";
    SSTHRESH = "snd_ssthresh";
    CWND = "snd_cwnd";
    TOTAL_RETRANS = "total_retrans";
    PACING_RATE = "pacing_rate";
    MAX_PACING_RATE = "max_pacing_rate";
    BYTES_ACKED = "bytes_acked";
    BYTES_RECEIVED = "bytes_received";
    NOTSENT = "notsent_bytes";
    MIN_RTT = "min_rtt_us";
    DELIVERY_RATE = "delivery_rate";
    BUSY = "busy_us";
    RWND_LIMITED = "rwnd_limited_us";
    SNDBUF_LIMITED = "sndbuf_limited_us";
    SND_WND = "snd_wnd";
    RCV_WND = "rcv_wnd";
    SEGS_IN = "segs_in";
    DATA_SEGS_IN = "data_segs_in";
    PMTU = "pmtu";
}

/// `tcpi_options` with `TCPI_OPT_WSCALE`, and the two halves of the byte behind it.
fn scales(bytes: &[u8]) -> Option<[u8; 2]> {
    const SCALED: u8 = 4;
    let both = *bytes.get(6)?;
    (bytes.get(5)? & SCALED != 0).then_some([both & 15, both >> 4])
}

/// `TCPI_OPT_TIMESTAMPS` of `tcpi_options`.
fn stamped(bytes: &[u8]) -> bool {
    bytes.get(5).is_some_and(|options| options & 1 != 0)
}

impl Info {
    /// Round trips take longer than the shortest one, by a quarter and a millisecond: a queue, or ACKs that wait.
    pub(crate) fn lags(&self) -> bool {
        self.min_rtt > Nanos::ZERO && self.rtt > self.min_rtt + self.min_rtt.part(4) + Nanos::millis(1)
    }

    /// From the bytes of the kernel. None where they end before the times that the kernel counts (before Linux 4.10).
    pub fn decode(bytes: &[u8]) -> Option<Info> {
        let wide = |f: Field| f.of(bytes);
        let n = |f: Field| wide(f).and_then(|v| u32::try_from(v).ok());
        let us = |f: Field| wide(f).map(|v| Nanos::micros(i64::try_from(v).unwrap_or(i64::MAX)));
        let ms = |f: Field| wide(f).map(|v| Nanos::millis(i64::try_from(v).unwrap_or(i64::MAX)));
        // Four bits, of which the kernel uses the lower three.
        let byte = |f: Field| wide(f).map(|v| v as u8);
        Some(Info {
            ca_state: byte(CA_STATE)?,
            retransmits: byte(RETRANSMITS)?,
            rto: us(RTO)?,
            snd_mss: n(SND_MSS)?,
            rcv_mss: n(RCV_MSS)?,
            unacked: n(UNACKED)?,
            sacked: n(SACKED)?,
            lost: n(LOST)?,
            retrans: n(RETRANS)?,
            last_data_sent: ms(LAST_DATA_SENT)?,
            last_data_recv: ms(LAST_DATA_RECV)?,
            last_ack_recv: ms(LAST_ACK_RECV)?,
            rtt: us(RTT)?,
            rcv_rtt: us(RCV_RTT)?,
            ssthresh: n(SSTHRESH)?,
            cwnd: n(CWND)?,
            total_retrans: n(TOTAL_RETRANS)?,
            pacing_rate: wide(PACING_RATE)?,
            max_pacing_rate: wide(MAX_PACING_RATE)?,
            bytes_acked: wide(BYTES_ACKED)?,
            bytes_received: wide(BYTES_RECEIVED)?,
            notsent: n(NOTSENT)?,
            // All bits set: never measured.
            min_rtt: n(MIN_RTT).filter(|&v| v != u32::MAX).map_or(Nanos::ZERO, |v| Nanos::micros(v.into())),
            delivery_rate: wide(DELIVERY_RATE)?,
            busy: us(BUSY)?,
            rwnd_limited: us(RWND_LIMITED)?,
            sndbuf_limited: us(SNDBUF_LIMITED)?,
            snd_wnd: n(SND_WND),
            rcv_wnd: n(RCV_WND),
            segs_in: n(SEGS_IN),
            data_segs_in: n(DATA_SEGS_IN),
            pmtu: n(PMTU).unwrap_or(0),
            scales: scales(bytes),
            stamped: stamped(bytes),
        })
    }

    /// Segments without data that came: ACKs by themselves, SYN and FIN.
    pub(crate) fn bare_segs_in(&self) -> Option<u32> {
        Some(self.segs_in?.wrapping_sub(self.data_segs_in?))
    }

    /// Packets in the network, as the kernel counts them.
    pub fn in_flight(&self) -> u32 {
        (self.unacked + self.retrans).saturating_sub(self.sacked).saturating_sub(self.lost)
    }
}

/// What the kernel says of a socket's memory (`SK_MEMINFO_*`), in bytes with the kernel's own overhead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Held by what was received and not read.
    pub rmem_alloc: u32,
    /// Limit of the receive buffer.
    pub rcvbuf: u32,
    /// Limit of the send buffer.
    pub sndbuf: u32,
    /// Held by what waits to be sent or acknowledged.
    pub wmem_queued: u32,
    /// Packets dropped because there was no room.
    pub drops: u32,
}

/// One socket at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The kernel's name of the socket: never used twice.
    pub cookie: u64,
    /// This end.
    pub local: Endpoint,
    /// The other end.
    pub peer: Endpoint,
    /// The device that it is bound to; 0: any.
    pub device: u32,
    /// Its state.
    pub state: State,
    /// Which file; 0: none, as of connections that nobody has accepted.
    pub inode: u32,
    /// Of a connection: bytes that nobody has read. Of a listener: connections that nobody has accepted.
    pub rqueue: u32,
    /// Of a connection: bytes that are not acknowledged. Of a listener: how many it may keep.
    pub wqueue: u32,
    /// Times that the packet at the head was sent again (of a handshake: SYN or SYN-ACK).
    pub retransmits: u8,
    /// Until its timer runs out; of TIME_WAIT: until it ends. None: no timer runs.
    pub expires: Option<Nanos>,
    /// `tcp_info`; listeners and closed sockets have none that says anything.
    pub info: Option<Info>,
    /// Memory.
    pub memory: Option<Memory>,
    /// Congestion control.
    pub congestion: Congestion,
}

/// A name of the kernel's: at most 15 bytes (`TCP_CA_NAME_MAX`).
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Congestion([u8; 15]);

impl Congestion {
    /// From the bytes of the kernel, which end with a zero.
    pub fn new(bytes: &[u8]) -> Congestion {
        let mut name = [0; 15];
        for (to, from) in name.iter_mut().zip(bytes.iter().take_while(|b| b.is_ascii_graphic())) {
            *to = *from;
        }
        Congestion(name)
    }

    /// The name; empty: not known.
    pub fn name(&self) -> &str {
        let len = self.0.iter().position(|&b| b == 0).unwrap_or(self.0.len());
        std::str::from_utf8(self.0.get(..len).unwrap_or_default()).unwrap_or_default()
    }
}

impl fmt::Debug for Congestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name().fmt(f)
    }
}

/// Whose socket it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Process {
    /// Number of the process.
    pub pid: u32,
    /// Its short name.
    pub name: String,
    /// The container, by the first twelve digits of its number, if its control group has one.
    pub container: Option<String>,
    /// The container's name, where its runtime says it.
    pub container_name: Option<String>,
}
