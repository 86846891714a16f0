//! What the connections of an interval have in common, in words, and what helps: the fixes of the one table, with the
//! figures of the connection that lost most.

use crate::connection::{Connection, Role};
use crate::losses::{Ended, Loss, add, losses};
use crate::sample::Info;
use crate::split::Where;
use std::borrow::Borrow;
use tcpwhy_base::{Cause, Figures, FixId, Nanos, Place, Shown, Side};

/// A cause that connections lost time to in the last interval.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The cause.
    pub cause: Cause,
    /// Where it lies.
    pub at: Where,
    /// Which end that is.
    pub side: Side,
    /// Time in the interval, over all connections.
    pub time: Nanos,
    /// Time since they are looked at.
    pub total: Nanos,
    /// All of the interval in which these connections were looked at.
    pub of: Nanos,
    /// `kernel`, if all of the time was counted or measured; else `sampled`.
    pub source: &'static str,
    /// How many connections.
    pub connections: usize,
    /// The one that lost most, by its place in the list.
    pub worst: usize,
    /// One sentence with the figures of that one.
    pub why: String,
    /// What helps, the best first.
    pub fixes: Vec<Advice>,
}

/// Something that can be done.
#[derive(Clone, Debug)]
pub struct Advice {
    /// The fix.
    pub fix: FixId,
    /// Where: `client`, `server`, `host` or `path`.
    pub place: &'static str,
    /// How: lines that begin with the system they are for.
    pub how: Vec<String>,
}

/// What `connections` lost time to in their last interval, the worst first. Of the applications' own time it
/// says nothing.
pub fn findings(connections: &[Connection]) -> Vec<Finding> {
    findings_with(connections, &Ended::default())
}

/// The same with all that ended in the interval, of which `connections` holds those that lost most ([`Ended::worst`]).
pub fn findings_with<C: Borrow<Connection>>(connections: &[C], ended: &Ended) -> Vec<Finding> {
    let mut all: Vec<(Loss, usize)> = Vec::new();
    for (n, c) in connections.iter().map(C::borrow).enumerate().filter(|(_, c)| !c.ended) {
        losses(c).into_iter().for_each(|loss| add(&mut all, loss, || n));
    }
    ended.losses_in(connections).for_each(|(loss, n)| add(&mut all, loss, || n));
    let finding = |(loss, worst): (Loss, usize)| Finding {
        cause: loss.cause,
        at: loss.at,
        side: loss.side,
        time: loss.time,
        total: loss.total,
        of: loss.of,
        source: if loss.counted { "kernel" } else { "sampled" },
        connections: loss.connections,
        worst,
        why: String::new(),
        fixes: Vec::new(),
    };
    let mut found: Vec<Finding> = all.into_iter().map(finding).collect();
    found.sort_by_key(|f| (std::cmp::Reverse(f.time), f.cause, f.at));
    for f in &mut found {
        if let Some(c) = connections.get(f.worst).map(C::borrow) {
            f.why = why(f.cause, c);
            f.fixes = fixes(f, c);
        }
    }
    found
}

/// One sentence about the connection, with what the kernel said last.
fn why(cause: Cause, c: &Connection) -> String {
    let sample = c.sample_of(cause);
    let i = sample.info.unwrap_or_default();
    let memory = sample.memory.unwrap_or_default();
    let sent = sample.wqueue.saturating_sub(i.notsent);
    let window = i.snd_wnd.map_or_else(|| "not known".into(), |w| format!("{w} bytes"));
    let trip = i.min_rtt;
    match cause {
        Cause::SendBuffer => format!(
            "{} {sent} bytes that are not acknowledged; the congestion window ({} of {} packets used) and the window of the other end \
             ({window}) have room{}",
            buffer(memory.wmem_queued, memory.sndbuf),
            i.in_flight(),
            i.cwnd,
            refused(c)
        ),
        Cause::ReceiveWindow => format!(
            "{} bytes wait although the congestion window has room for {} packets more: the other end offers a window of \
             {window}, {sent} bytes of it used{}",
            i.notsent,
            i.cwnd.saturating_sub(i.in_flight()),
            late(&i)
        ),
        Cause::SlowReader if sample.rqueue > 0 => format!(
            "{} bytes lie in the receive buffer that this program has not read; {} bytes more may come",
            sample.rqueue,
            i.rcv_wnd.unwrap_or(0)
        ),
        Cause::SlowReader => format!(
            "the window of the other end has shrunk to {window}: its program does not read; {} bytes wait to be sent",
            i.notsent
        ),
        Cause::Nagle | Cause::NagleDelayedAck | Cause::Cork if i.notsent == 0 => held(cause, c),
        Cause::Nagle | Cause::NagleDelayedAck => format!(
            "{} bytes, less than a segment of {}, wait for the ACK of what was sent {} ago; a round trip takes {trip}",
            i.notsent, i.snd_mss, i.last_data_sent
        ),
        Cause::Cork => {
            format!("{} bytes, less than a segment, are held back although nothing is in flight", i.notsent)
        }
        Cause::SlowStart | Cause::IdleRestart => format!(
            "{} bytes wait; the congestion window of {} packets is used up and still grows, a round trip of {trip} at a time",
            i.notsent, i.cwnd
        ),
        Cause::SendQueue => format!(
            "{} writes waited {} together, {} at most, until their first byte left: they stood behind bytes of their own \
             connection; {} are unsent now, and a round trip takes {}",
            c.news.queued.count, c.news.queued.time, c.news.queued.longest, i.notsent, i.rtt
        ),
        Cause::CongestionWindow => format!(
            "{} bytes wait; the congestion window of {} packets is used up, and the round trip of {} shows no queue ({trip} at \
             least)",
            i.notsent, i.cwnd, i.rtt
        ),
        Cause::RetransmissionTimeout | Cause::TailLossProbe | Cause::FastRecovery => format!(
            "{} packets were retransmitted, {} are taken for lost; the timeout is {}",
            i.total_retrans, i.lost, i.rto
        ),
        Cause::SynRetransmit => match c.sample.retransmits {
            0 => "the SYN was retransmitted".into(),
            n => format!("{} SYNs are unanswered", u32::from(n) + 1),
        },
        Cause::Pacing => format!(
            "{} bytes wait for the pace of {} bytes a second that the program set",
            i.notsent, i.max_pacing_rate
        ),
        Cause::HostDelay => format!(
            "{} bytes wait although all windows have room ({} of {} packets in flight): a queue below TCP, or a busy processor",
            i.notsent,
            i.in_flight(),
            i.cwnd
        ),
        _ => cause.info().what.into(),
    }
}

/// A window that is full in each round trip, and these are longer than the path: it may be its reader that is slow. A
/// receiver acknowledges at once only what leaves its window where it was (`__tcp_ack_snd_check`), so that ACKs wait for
/// reads; this end sees no more of that than late ACKs.
fn late(i: &Info) -> String {
    match i.lags() {
        true => format!(
            "; but ACKs take {}, where the path takes {}: its program may read no sooner, and then a larger window gains \
             nothing. A queue on the path, or an ACK that is delayed for a second segment, looks the same",
            i.rtt, i.min_rtt
        ),
        false => String::new(),
    }
}

/// What kernel events say of small writes that no sample showed.
fn held(cause: Cause, c: &Connection) -> String {
    let waits = match cause {
        Cause::Nagle => c.news.nagle,
        Cause::NagleDelayedAck => c.news.nagle_delayed_ack,
        _ => c.news.cork,
    };
    let trip = c.sample.info.unwrap_or_default().min_rtt;
    format!(
        "small writes were held {} times, {} together and {} at most; a round trip takes {trip}",
        waits.count, waits.time, waits.longest
    )
}

/// What writes that were refused waited for, if any were.
fn refused(c: &Connection) -> String {
    let (room, late) = (c.news.no_room, c.news.late_writer);
    if room.count == 0 {
        return String::new();
    }
    let late = match late.count {
        0 => "it wrote at once then".to_owned(),
        n => format!("{n} times the program wrote only later, {} together", late.time),
    };
    format!("; {} writes were refused or cut short, and waited {} for room; {late}", room.count, room.time)
}

fn fixes(f: &Finding, c: &Connection) -> Vec<Advice> {
    let info = f.cause.info();
    let here_is_client = c.role == Role::Client;
    let sample = c.sample_of(f.cause);
    let i = sample.info.unwrap_or_default();
    let sent = u64::from(sample.wqueue.saturating_sub(i.notsent));
    let interval = c.interval.total().0.max(1) as f64;
    let shown = Shown {
        same_host: c.sample.local.ip == c.sample.peer.ip,
        nothing_lost: c.sample.info.is_some_and(|i| i.total_retrans == 0),
        one_request: false,
        flight: Some(sent),
        most_in_flight: sent,
        largest_window: i.snd_wnd.map(u64::from),
        unscaled: sample.info.is_some_and(|i| i.scales.is_none()),
        needed: None,
        longest: f.time,
        share: f.time.0 as f64 / interval,
        trip: None,
    };
    let figures = figures(c, &i, sent);
    let reader = (f.cause == Cause::ReceiveWindow && i.lags()).then_some(&FixId::ReadFaster);
    let offered = reader.into_iter().chain(info.fixes).filter(|fix| fix.info().refuted(&shown).is_none());
    offered
        .map(|&fix| Advice {
            fix,
            place: place(fix.info().place, f, here_is_client),
            how: fix
                .info()
                .how
                .iter()
                .filter_map(|how| Some(format!("{}: {}", how.system, figures.fill(how.text)?)))
                .collect(),
        })
        .collect()
}

fn figures(c: &Connection, i: &Info, sent: u64) -> Figures {
    let (client, server) = match c.role {
        Role::Client => (c.sample.local, c.sample.peer),
        Role::Server => (c.sample.peer, c.sample.local),
    };
    let mut figures = Figures(vec![
        ("server", server.ip.to_string()),
        ("port", server.port.to_string()),
        ("client", client.to_string()),
        ("client_port", client.port.to_string()),
        ("own_port", c.sample.local.port.to_string()),
        ("ends", format!("{client} > {server}")),
        ("mss", i.snd_mss.to_string()),
        ("have_bytes", sent.to_string()),
    ]);
    if i.min_rtt > Nanos::ZERO {
        figures.0.push(("rtt", i.min_rtt.to_string()));
    }
    figures
}

/// What a send buffer takes. It may be more than its limit: room is asked for only before a new segment, and
/// one that was begun is filled up to 64 KB (`tcp_sendmsg_locked`).
fn buffer(queued: u32, limit: u32) -> String {
    if queued <= limit {
        format!("{queued} of {limit} bytes of the send buffer hold")
    } else {
        format!(
            "{queued} bytes are in a send buffer of {limit} (a segment that was begun is filled up), and hold"
        )
    }
}

fn place(place: Place, f: &Finding, here_is_client: bool) -> &'static str {
    let other = |side| if side == Side::Client { Side::Server } else { Side::Client };
    // What is not at either end is mended by the one that sends, which is this one.
    let side = if f.side == Side::Network { Where::Here.side(here_is_client) } else { f.side };
    let writer = if f.cause.info().at_reader { other(side) } else { side };
    match place {
        Place::Writer => writer.name(),
        Place::Reader => other(writer).name(),
        Place::Client => "client",
        Place::Server => "server",
        Place::Host => "host",
        Place::Path => "path",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Info, Sample, Table};
    use tcpwhy_base::FixId;

    /// What was written in large pieces takes more than the limit.
    #[test]
    fn a_send_buffer_may_hold_more_than_its_limit() {
        assert_eq!(buffer(65_536, 65_536), "65536 of 65536 bytes of the send buffer hold");
        let more =
            "272960 bytes are in a send buffer of 65536 (a segment that was begun is filled up), and hold";
        assert_eq!(buffer(272_960, 65_536), more);
    }

    /// A window that is full all the time, and ACKs that come as late as the path does not explain: who reads may be slow.
    #[test]
    fn a_full_window_and_late_acks_may_be_a_slow_reader() {
        let said = |rtt: i64| {
            let mut table = Table::default();
            for n in 0..5 {
                let time = Nanos::millis(20 * n);
                let limits = Info { busy: time, rwnd_limited: time, ..Info::default() };
                let windows = Info {
                    cwnd: 12,
                    unacked: 6,
                    snd_mss: 1448,
                    snd_wnd: Some(8_688),
                    notsent: 37_648,
                    ..limits
                };
                let info = Info {
                    min_rtt: Nanos::millis(20),
                    rtt: Nanos::millis(rtt),
                    scales: Some([7, 7]),
                    ..windows
                };
                let sample = Sample { wqueue: 46_336, info: Some(info), ..Sample::open(80, 40_001) };
                table.feed(&[sample], time);
            }
            let found = findings(&table.interval().connections);
            let window = found.iter().find(|f| f.cause == Cause::ReceiveWindow).expect("it was full");
            let fixes: Vec<_> = window.fixes.iter().map(|fix| (fix.fix, fix.place)).collect();
            (window.why.clone(), fixes)
        };
        let (why, fixes) = said(50);
        assert!(
            why.contains("ACKs take 50.0 ms, where the path takes 20.0 ms: its program may read no sooner"),
            "{why}"
        );
        assert_eq!((fixes[0], fixes[1].0), ((FixId::ReadFaster, "client"), FixId::UnsetRcvbuf));
        let (why, fixes) = said(26);
        assert!(why.ends_with("8688 bytes of it used"), "{why}");
        assert_eq!(fixes[0].0, FixId::UnsetRcvbuf);
    }

    /// A sender that the window holds, at its limit without scaling: no buffer of the receiver makes it larger.
    #[test]
    fn a_window_without_scaling_is_no_matter_of_buffers() {
        let offered = |scales, snd_wnd: u32| {
            let mut table = Table::default();
            for n in 0..5 {
                let time = Nanos::millis(20 * n);
                let (snd_wnd, rtt) = (Some(snd_wnd), Nanos::millis(20));
                let limits = Info { busy: time, rwnd_limited: time, ..Info::default() };
                let info = Info { cwnd: 100, unacked: 44, snd_mss: 1448, snd_wnd, rtt, scales, ..limits };
                table.feed(&[Sample { wqueue: 65_000, info: Some(info), ..Sample::open(40_001, 443) }], time);
            }
            let found = findings(&table.interval().connections);
            let window = found.iter().find(|f| f.cause == Cause::ReceiveWindow).expect("it was full");
            window.fixes.iter().any(|fix| fix.fix == FixId::UnsetRcvbuf)
        };
        assert!(offered(Some([7, 7]), 65_535));
        assert!(!offered(None, 65_535));
        assert!(offered(None, 32_768));
    }
}
