//! A workload out of a connection: sizes, write boundaries, think times and the settings of both ends, as far as they
//! show. What does not show is assumed, and said.

use super::large::{Rest, Size, cut};
use super::reader::{self, Over};
use crate::facts::Facts;
use crate::result::{Connection, End, Exchange, Quality, Span, Vantage};
use tcpwhy_base::{Cause, Chosen, Nanos, Side, Step, Turn, What, Workload};
use tcpwhy_model::{HEADERS, Host, MOST_BYTES, Profile, Question, Scenario};

/// A header that was written by itself, where its size does not show.
const HEADER: u64 = 150;
/// Round trips of a TLS handshake that are replayed: a retry (RFC 8446, 4.1.4) makes one more of two.
const MOST_TRIPS: u32 = 4;
/// Repeats of the first exchange that warm a connection up whose beginning is not replayed.
const WARM: usize = 3;

/// Linux gives a connection a send buffer for ten segments of the largest kind at least (`tcp_sndbuf_expand`:
/// the initial window): what is filled by fewer was set.
const SEGMENTS_AT_LEAST: u64 = 10;

/// What can be replayed of a connection.
#[derive(Clone, Debug)]
pub struct Extract {
    /// For the model.
    pub question: Question,
    /// First and last exchange that it stands for.
    pub exchanges: (u32, u32),
    /// Their time at the tap, with the setup where it is replayed.
    pub observed: Nanos,
    /// Which end the tap is nearest to: 0 the client.
    pub end: u8,
    /// What was assumed.
    pub assumed: Vec<String>,
}

fn side(n: usize) -> Side {
    if n == 0 { Side::Client } else { Side::Server }
}

fn sum(spans: &[Span], cause: Cause, side: Option<Side>) -> Nanos {
    let of = spans.iter().filter(|s| s.cause == cause && (side.is_none() || s.side == side));
    of.fold(Nanos::ZERO, |t, s| t + s.duration())
}

/// The exchanges around number `id` (any, where it is 0) of `c`, or why they cannot be replayed.
pub fn extract(c: &Connection, id: u32) -> Result<Extract, &'static str> {
    extract_with(c, id, Over::SamePath)
}

/// The same over that path or over another.
pub(crate) fn extract_with(c: &Connection, id: u32, over: Over) -> Result<Extract, &'static str> {
    let (x, _) = extract_of(c, id, over, Size::WHOLE)?;
    if x.question.scenario.workload.turns.iter().any(is_too_large) {
        return Err("a message of it has more than 1 GiB, and the model takes no more");
    }
    tcpwhy_model::check(&x.question.scenario).map_err(|_| "the settings that show contradict each other")?;
    Ok(x)
}

fn is_too_large(turn: &Turn) -> bool {
    [&turn.request, &turn.response].into_iter().any(|steps| Turn::bytes(steps) > MOST_BYTES)
}

/// The same of so much of it, and what is left out. Whether the model takes it is not asked yet.
pub(super) fn extract_of(
    c: &Connection,
    id: u32,
    over: Over,
    size: Size,
) -> Result<(Extract, Option<Rest>), &'static str> {
    if c.quality.has(Quality::ONE_SIDED) || c.quality.has(Quality::CAPTURE_DROPS) {
        return Err("the capture lacks packets of this connection");
    }
    let Some(rtt) = c.path.rtt else { return Err("no round trip shows") };
    let list = window(&c.exchanges, id, size.around);
    let (Some(first), Some(last)) = (list.first(), list.last()) else {
        return Err("no exchange was kept in detail");
    };
    if list.iter().any(|x| x.duplex || x.turns > 1) {
        return Err("both ends sent at once or in several turns: who waited for whom does not show");
    }
    if list.iter().any(|x| x.bytes[0] + x.bytes[1] == 0) {
        return Err("an exchange carried nothing");
    }
    let mut assumed = Vec::new();
    let end = vantage(c);
    let at_server = end == 1;
    let opens = first.id == 1 && c.opened_by_handshake;
    let mut scenario = path(c, rtt, &mut assumed);
    let mut turns: Vec<Turn> = Vec::new();
    for (i, x) in list.iter().enumerate() {
        let gap = if i == 0 { Nanos::ZERO } else { (x.start - list[i - 1].end).floor0() };
        // At the server's tap the gap holds the way of the answer and that of the request.
        let before = if at_server { (gap - rtt).floor0() } else { gap };
        turns.push(Turn { before, ..turn(x, scenario.mtu) });
    }
    let mut rest = size.most.and_then(|most| cut(turns.last_mut()?, most));
    let mut opening = if opens { tls(c) } else { Vec::new() };
    let tls = opening.len();
    let skip = if opens { 0 } else { WARM };
    let mut all: Vec<Turn> = turns.first().into_iter().cycle().take(skip).cloned().collect();
    // What each end has sent before the first of the exchanges.
    let before = opening
        .iter()
        .chain(&all)
        .fold([0_u64; 2], |sum, t| [sum[0] + Turn::bytes(&t.request), sum[1] + Turn::bytes(&t.response)]);
    all.append(&mut turns);
    if let Some(rest) = &mut rest {
        rest.from = before[rest.end];
        assumed.push(rest.said());
    }
    for n in 0..2 {
        host(&mut scenario.hosts[n], c, n, list, over, &mut assumed);
        reader::stops(&mut scenario.hosts[n], c, n, list, (before[1 - n], over), &mut assumed);
    }
    if over == Over::SamePath {
        losses(&mut scenario, c, list, opens, before);
    }
    if !opens {
        assumed.push("What happened before is replaced by three exchanges like the first.".into());
    }
    let requests = all.len() as u32;
    opening.append(&mut all);
    scenario.workload = Workload { turns: opening, repeat_from: tls, tls, requests, ..Workload::default() };
    let setup = c.setup.as_ref().filter(|_| opens).map_or(Nanos::ZERO, |s| s.end - s.start);
    let observed = list.iter().fold(setup, |t, x| t + (x.end - x.start));
    let question = Question { scenario, skip: skip as u32, max_events: 0 };
    Ok((Extract { question, exchanges: (first.id, last.id), observed, end, assumed }, rest))
}

/// The turns of a TLS handshake, its bytes shared among them.
fn tls(c: &Connection) -> Vec<Turn> {
    let Some(setup) = &c.setup else { return Vec::new() };
    if setup.tls_trips == 0 || setup.bytes.contains(&0) {
        return Vec::new();
    }
    let trips = u64::from(setup.tls_trips.min(MOST_TRIPS));
    let think = sum(&setup.spans, Cause::ServerThink, None).part(trips as i64);
    let part = |n: usize| vec![Step::Write((setup.bytes[n] / trips).max(1))];
    (0..trips).map(|_| Turn { before: Nanos::ZERO, request: part(0), think, response: part(1) }).collect()
}

/// The run of exchanges with consecutive numbers around `id`.
fn window(all: &[Exchange], id: u32, around: usize) -> &[Exchange] {
    let longest = || all.iter().enumerate().max_by_key(|x| x.1.end - x.1.start).map(|x| x.0);
    let at =
        if id == 0 { all.first().map(|_| 0) } else { all.iter().position(|x| x.id == id).or_else(longest) };
    let Some(at) = at else { return &[] };
    let follows = |i: usize| all[i].id == all[i - 1].id + 1;
    let from = (at.saturating_sub(around)..at).rev().take_while(|&i| follows(i + 1)).last().unwrap_or(at);
    let to = (at + 1..all.len().min(at + around + 1)).take_while(|&i| follows(i)).last().unwrap_or(at);
    &all[from..=to]
}

fn vantage(c: &Connection) -> u8 {
    match (c.vantage, c.path.halves) {
        (Vantage::Client, _) => 0,
        (Vantage::Server, _) => 1,
        (_, [Some(to_client), Some(to_server)]) => u8::from(to_server < to_client),
        _ => 0,
    }
}

fn path(c: &Connection, rtt: Nanos, assumed: &mut Vec<String>) -> Scenario {
    let mss = c.ends.iter().filter_map(|e| e.mss).min();
    if mss.is_none() {
        assumed.push("No MSS shows: 1460 bytes.".into());
    }
    let mtu = (u64::from(mss.unwrap_or(1460)) + HEADERS).clamp(68, 65_535);
    let rate = c.path.bandwidth_bps.filter(|&b| b > 0);
    if rate.is_none() {
        assumed.push("No bottleneck shows: none is modelled.".into());
    }
    // The queue took what was seen in flight; losses are replayed where they were.
    Scenario::with_path(rtt, rate, None, mtu)
}

/// Sizes and times of one exchange.
fn turn(x: &Exchange, mtu: u64) -> Turn {
    let message = |n: usize| {
        let pauses: Vec<Nanos> = x
            .spans
            .iter()
            .filter(|s| s.cause == Cause::SenderPause && s.side == Some(side(n)))
            .map(Span::duration)
            .collect();
        let splits: Vec<u64> = x
            .spans
            .iter()
            .filter(|s| matches!(s.cause, Cause::Nagle | Cause::NagleDelayedAck) && s.side == Some(side(n)))
            .filter_map(
                |s| if let Facts::Nagle { first, .. } = s.facts { Some(u64::from(first)) } else { None },
            )
            // Behind a full segment nothing is held by Minshall's rule: a small one had gone before.
            .map(|first| if first + 52 >= mtu { HEADER } else { first })
            .collect();
        steps(x.bytes[n], &splits, &pauses)
    };
    let late = sum(&x.spans, Cause::ReaderLate, Some(Side::Server));
    let think = sum(&x.spans, Cause::ServerThink, None) + late;
    Turn { before: Nanos::ZERO, request: message(0), think, response: message(1) }
}

/// A message of so many bytes, with the writes that a hold showed and the pauses at even places.
fn steps(bytes: u64, splits: &[u64], pauses: &[Nanos]) -> Vec<Step> {
    const MOST: usize = 64;
    let mut out = Vec::new();
    let mut left = bytes;
    for &n in splits.iter().take(MOST).filter(|&&n| n > 0) {
        if n < left {
            out.push(Step::Write(n));
            left -= n;
        }
    }
    let parts = pauses.len().min(MOST) as u64 + 1;
    for (i, &pause) in pauses.iter().take(MOST).enumerate() {
        let part = left / (parts - i as u64);
        if part > 0 {
            out.push(Step::Write(part));
            left -= part;
        }
        out.push(Step::Pause(pause));
    }
    if left > 0 {
        out.push(Step::Write(left));
    }
    out
}

/// Stack and socket options of one end.
fn host(h: &mut Host, c: &Connection, n: usize, list: &[Exchange], over: Over, assumed: &mut Vec<String>) {
    let end: &End = &c.ends[n];
    let name = match end.os {
        Some("Windows") => "windows",
        Some("macOS") => "macos",
        Some("FreeBSD") => "freebsd",
        _ => "linux",
    };
    h.stack.profile = Profile::named(name).unwrap_or_default();
    let spans = || list.iter().flat_map(|x| &x.spans);
    let shows = |cause| spans().any(|s| s.cause == cause && s.side == Some(side(n)));
    h.nodelay = !(shows(Cause::Nagle) || shows(Cause::NagleDelayedAck));
    if let (Some(flight), Some(mss)) = (end.initial_flight, c.ends.iter().filter_map(|e| e.mss).min()) {
        let segments = flight.div_ceil(u64::from(mss.max(1)).saturating_sub(12).max(1));
        // Fewer than the default may only mean that there was no more to send.
        if segments > u64::from(h.stack.profile.initcwnd) {
            h.initcwnd = Some(segments.min(1000) as u32);
        }
    }
    if shows(Cause::SendBuffer) {
        let flights = spans().filter(|s| s.cause == Cause::SendBuffer && s.side == Some(side(n)));
        let flight = flights
            .filter_map(|s| match s.facts {
                Facts::Flight { flight, .. } | Facts::Window { flight, .. } => Some(u64::from(flight)),
                _ => None,
            })
            .max()
            .unwrap_or(end.max_flight);
        // What held twice as much at another time holds that much.
        let flight = if end.max_flight >= 2 * flight { end.max_flight } else { flight };
        let mss = c.ends.iter().filter_map(|e| e.mss).min().map_or(1460, u64::from);
        // One that was set is filled again and again: two waits in two megabytes are the hosts' own.
        let times = flights_waited(list, n);
        let sent: u64 = list.iter().map(|x| x.bytes[n]).sum();
        let filled = times.saturating_mul(flight).saturating_mul(2) >= sent;
        if over == Over::AnotherPath && (flight >= SEGMENTS_AT_LEAST * mss || !filled) {
            return;
        }
        // What is in flight is the buffer: payload counted as it is, written in quarters.
        (h.stack.profile.skb_overhead, h.stack.profile.doubles_buffers, h.stack.profile.wmem_max) =
            (0, false, u64::MAX / 2);
        (h.sndbuf, h.write_chunk) = (Some(flight.max(4608)), Some((flight / 4).max(512)));
        assumed
            .push(format!("The {}'s send buffer holds {flight} bytes, as seen in flight.", side(n).name()));
    }
}

/// How often this end waited for its send buffer.
fn flights_waited(list: &[Exchange], n: usize) -> u64 {
    let spans = list.iter().flat_map(|x| &x.spans);
    let waits = spans.filter(|s| s.cause == Cause::SendBuffer && s.side == Some(side(n)));
    waits.map(|s| u64::from(s.folded.max(1))).sum()
}

/// Losses, about where they were: repeats by a timer at the end of a message, others in its middle.
fn losses(s: &mut Scenario, c: &Connection, list: &[Exchange], opens: bool, before: [u64; 2]) {
    if opens {
        for n in 0..2 {
            let lost = 1..=u64::from(c.ends[n].syn_repeats.min(8));
            s.links[n].drops.extend(lost.map(|k| Chosen { what: What::Syn(k), connection: 0 }));
        }
    }
    let mut at = before;
    for x in list {
        let n = usize::from(x.bytes[1] > x.bytes[0]);
        let (start, len) = (at[n], x.bytes[n]);
        for span in &x.spans {
            let timer = matches!(span.cause, Cause::RetransmissionTimeout | Cause::TailLossProbe);
            let fast = span.cause == Cause::FastRecovery;
            if (timer || fast) && len > 0 && s.links[n].drops.len() < 64 {
                let place = (span.start - x.start).0.max(0) as u128 * u128::from(len)
                    / (x.end - x.start).0.max(1) as u128;
                let byte = if timer { len - 1 } else { (place as u64).min(len - 1) };
                let what = What::Seq { at: start + byte, copies: 1 };
                s.links[n].drops.push(Chosen { what, connection: 0 });
            }
        }
        at[0] += x.bytes[0];
        at[1] += x.bytes[1];
    }
}
