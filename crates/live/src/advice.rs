//! What the connections of an interval have in common, in words, and what helps: the fixes of the one table, with the
//! figures of the connection that lost most.

use crate::connection::{Connection, Role};
use crate::sample::Info;
use crate::split::Where;
use tcpwhy_base::{Cause, Class, Figures, FixId, Nanos, Place, Shown, Side};

/// Below this share of a connection's interval a cause is not worth a word.
const SMALL: f64 = 0.05;

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

/// What `connections` lost time to in their last interval, the worst first. Of the applications' own time it says nothing.
pub fn findings(connections: &[Connection]) -> Vec<Finding> {
    let mut found: Vec<(Finding, Nanos)> = Vec::new();
    for (n, c) in connections.iter().enumerate() {
        let all = c.interval.total();
        for share in c.interval.shares() {
            let much = share.time.0 as f64 >= SMALL * all.0 as f64;
            if !much || share.cause.class() != Class::Tcp {
                continue;
            }
            let total = c.total.shares();
            let total = total.iter().find(|s| s.cause == share.cause && s.at == share.at);
            let total = total.map_or(share.time, |s| s.time);
            let side = share.at.side(c.role == Role::Client);
            let source = if share.counted >= share.time { "kernel" } else { "sampled" };
            match found.iter_mut().find(|(f, _)| (f.cause, f.at, f.side) == (share.cause, share.at, side)) {
                Some((f, most)) => {
                    f.time += share.time;
                    f.total += total;
                    f.connections += 1;
                    if source == "sampled" {
                        f.source = source;
                    }
                    if share.time > *most {
                        (f.worst, *most) = (n, share.time);
                    }
                }
                None => found.push((
                    Finding {
                        cause: share.cause,
                        at: share.at,
                        side,
                        time: share.time,
                        total,
                        source,
                        connections: 1,
                        worst: n,
                        why: String::new(),
                        fixes: Vec::new(),
                    },
                    share.time,
                )),
            }
        }
    }
    let mut found: Vec<Finding> = found.into_iter().map(|(f, _)| f).chain(send_queue(connections)).collect();
    found.sort_by_key(|f| (std::cmp::Reverse(f.time), f.cause, f.at));
    for f in &mut found {
        if let Some(c) = connections.get(f.worst) {
            f.why = why(f.cause, c);
            f.fixes = fixes(f, c);
        }
    }
    found
}

/// Writes of the interval that stood in a queue of their own connection, longer than a round trip each.
fn send_queue(connections: &[Connection]) -> Option<Finding> {
    let queued = connections.iter().enumerate().filter(|(_, c)| is_queued(c));
    let (count, time, total) =
        queued.clone().fold((0, Nanos::ZERO, Nanos::ZERO), |(n, time, total), (_, c)| {
            (n + 1, time + c.news.queued.time, total + c.facts.map_or(Nanos::ZERO, |f| f.queued.time))
        });
    let (worst, c) = queued.max_by_key(|(_, c)| c.news.queued.time)?;
    Some(Finding {
        cause: Cause::SendQueue,
        at: Where::Here,
        side: Where::Here.side(c.role == Role::Client),
        time,
        total,
        source: "kernel",
        connections: count,
        worst,
        why: String::new(),
        fixes: Vec::new(),
    })
}

/// The queue in the host is longer than the path.
fn is_queued(c: &Connection) -> bool {
    let (queued, round_trip) = (c.news.queued, c.sample.info.map_or(Nanos::ZERO, |i| i.rtt));
    let interval = c.interval.total().0 as f64;
    queued.count > 0
        && queued.time > round_trip.times(queued.count.try_into().unwrap_or(i64::MAX))
        && queued.time.0 as f64 >= SMALL * interval
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
            "{} of {} bytes of the send buffer hold {sent} bytes that are not acknowledged; the congestion window ({} of {} \
             packets used) and the window of the other end ({window}) have room{}",
            memory.wmem_queued,
            memory.sndbuf,
            i.in_flight(),
            i.cwnd,
            refused(c)
        ),
        Cause::ReceiveWindow => format!(
            "{} bytes wait although the congestion window has room for {} packets more: the other end offers a window of \
             {window}, {sent} bytes of it used",
            i.notsent,
            i.cwnd.saturating_sub(i.in_flight())
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
    let offered = info.fixes.iter().filter(|fix| fix.info().refuted(&shown).is_none());
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
    use crate::{Congestion, Info, Sample, State, Table};
    use tcpwhy_base::{Endpoint, FixId};

    /// A sender that the window holds, at its limit without scaling: no buffer of the receiver makes it larger.
    #[test]
    fn a_window_without_scaling_is_no_matter_of_buffers() {
        let offered = |scales, snd_wnd: u32| {
            let end = |port| Endpoint { ip: [10, 0, 0, (port % 100) as u8].into(), port };
            let mut table = Table::default();
            for n in 0..5 {
                let time = Nanos::millis(20 * n);
                let (snd_wnd, rtt) = (Some(snd_wnd), Nanos::millis(20));
                let limits = Info { busy: time, rwnd_limited: time, ..Info::default() };
                let info = Info { cwnd: 100, unacked: 44, snd_mss: 1448, snd_wnd, rtt, scales, ..limits };
                table.feed(
                    &[Sample {
                        cookie: 2,
                        local: end(40_001),
                        peer: end(443),
                        device: 0,
                        state: State::Established,
                        inode: 5,
                        rqueue: 0,
                        wqueue: 65_000,
                        retransmits: 0,
                        expires: None,
                        info: Some(info),
                        memory: None,
                        congestion: Congestion::new(b"cubic"),
                    }],
                    time,
                );
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
