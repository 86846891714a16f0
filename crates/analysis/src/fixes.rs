//! The fixes of a finding, with the figures of the capture filled in.

mod example;
mod listed;
mod vain;

use self::example::{
    BEGINS_SMALL, CORKED, EVENTS, GROWS_LATE, RATE_LIMIT, SET_AT_ALL, buffer_for, is_stream_of_events,
    rhythm_of, rhythms, waits_for_greeting, waits_for_names, waits_to_continue,
};
use self::listed::listed;
use self::vain::{LARGE_SCALE, SET_SCALE, is_vain};
use crate::facts::{Facts, bit_rate};
use crate::result::{Connection, Finding, Fix, Parameter, Quality, Refuted, Span, Vantage};
use tcpwhy_base::{
    Cause, Endpoint, Figures, FixId, How, Nanos, Place, Program, Shown, Side, SizedBy, Told, Unless,
};
use tcpwhy_model::MOST_INITCWND;

/// What fixes need to know of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Brief {
    pub(crate) id: u32,
    pub(crate) client: Endpoint,
    pub(crate) server: Endpoint,
    /// Guesses of the programs at client and server.
    pub(crate) programs: [Option<(Program, Told)>; 2],
    pub(crate) same_host: bool,
    pub(crate) nothing_lost: bool,
    pub(crate) requests: u64,
    /// The largest window that client and server offered.
    pub(crate) windows: [Option<u64>; 2],
    /// The window scales of client and server, where they are Linux.
    pub(crate) scales: [Option<u8>; 2],
    /// One of the SYNs offered no window scaling.
    pub(crate) unscaled: bool,
    /// The most bytes that client and server had in flight.
    pub(crate) flights: [u64; 2],
    /// The smaller of the MSS options.
    pub(crate) mss: Option<u32>,
    pub(crate) rtt: Option<Nanos>,
    /// Beside the server: the way to the client and back.
    pub(crate) to_client: Option<Nanos>,
    pub(crate) bandwidth_bps: Option<u64>,
    /// Bytes of the largest message of client and server.
    pub(crate) messages: [u64; 2],
    pub(crate) tls: Tls,
    /// Of what is inherent: no connection of the capture had two requests that might have been one (rule 165).
    pub(crate) none_in_series: bool,
    /// Its server closed it after the only request.
    pub(crate) server_closed: bool,
    /// Its server spoke first, and that is kept.
    pub(crate) greeted: bool,
    /// Nagle's algorithm held what its client said behind the first words of the last flight of TLS (rule 109).
    pub(crate) held_within_tls: bool,
    /// How long each of the pauses of client and server was, where they were alike within a message (rule 122).
    pub(crate) rhythms: [Option<Nanos>; 2],
}

/// Nagle's algorithm held the end of the handshake of TLS, or the first request, which was written behind it.
fn held_within_tls(c: &Connection) -> bool {
    let held =
        |s: &&Span| matches!(s.cause, Cause::Nagle | Cause::NagleDelayedAck) && s.side == Some(Side::Client);
    let Some(setup) = c.setup.as_ref().filter(|s| s.tls_trips > 0) else { return false };
    let first = c.exchanges.first().filter(|x| x.id == 1 && x.start == setup.end);
    setup.spans.iter().any(|s| held(&s)) || first.is_some_and(|x| x.spans.first().filter(held).is_some())
}

/// What was lost before the tap passes once, and is told by how late it does: a second tap or the numbers of packets say so.
fn waited_for_no_loss(c: &Connection) -> bool {
    let losses = [Cause::FastRecovery, Cause::RetransmissionTimeout, Cause::TailLossProbe];
    losses.iter().all(|&loss| c.budget.get(loss) + c.gap_budget.get(loss) == Nanos::ZERO)
}

/// The largest message that an end sent, of the exchanges that are kept: those that took longest. Where none is, their mean.
fn largest_message(c: &Connection, sender: usize) -> u64 {
    let all = &c.exchanges_omitted;
    let mean = all.bytes[sender] / all.count.max(1);
    c.exchanges.iter().map(|x| x.bytes[sender]).max().unwrap_or(mean)
}

/// The TLS handshake of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tls {
    /// How often the client waited for an answer in it.
    trips: u32,
    /// One of them asked in the clear whether TLS may begin.
    asked: bool,
    /// One of them asked for another key.
    asked_again: bool,
}

impl Tls {
    fn of(c: &Connection) -> Tls {
        let trips = c.setup.as_ref().map_or(0, |s| s.tls_trips);
        // By its first bytes a server is told to be PostgreSQL by what asks it in the clear, and nothing else is before TLS.
        let asked = c.ends[1].program == Some((Program::PostgreSql, Told::FirstBytes));
        let asked_again = c.setup.as_ref().is_some_and(|s| s.tls_asked_again);
        Tls { trips, asked: asked && c.protocol == Some("tls"), asked_again }
    }

    /// Why a newer version saves no round trip.
    fn is_new(self) -> Option<String> {
        let asked_again =
            "TLS 1.3 is spoken already: its server asked for a key of another group (HelloRetryRequest)";
        if self.asked_again { Some(asked_again.into()) } else { self.took_one_trip() }
    }

    /// Why a newer version, or a session that is resumed, saves no round trip: the handshake took one.
    fn took_one_trip(self) -> Option<String> {
        (self.trips == 1 + u32::from(self.asked)).then(|| "the handshake took one round trip already".into())
    }
}

impl Brief {
    pub(crate) fn of(c: &Connection) -> Brief {
        Brief {
            id: c.id,
            client: c.client,
            server: c.server,
            programs: c.ends.each_ref().map(|e| e.program),
            // Loopback behind an emulated link has that link's faults.
            same_host: c.client.ip == c.server.ip && c.path.rtt.is_none_or(|rtt| rtt < Nanos::millis(1)),
            nothing_lost: c.opened_by_handshake
                && c.retransmitted == [0, 0]
                && c.ends.iter().all(|e| e.syn_repeats == 0)
                && waited_for_no_loss(c)
                && !c.quality.has(Quality::CAPTURE_DROPS),
            requests: c.exchange_count(),
            windows: c.ends.each_ref().map(|e| e.max_window),
            scales: c.ends.each_ref().map(|e| e.wscale.filter(|_| e.os == Some("Linux"))),
            unscaled: c.opened_by_handshake
                && !c.quality.has(Quality::NO_WINDOW_SCALE)
                && c.ends.iter().any(|e| e.wscale.is_none()),
            flights: c.ends.each_ref().map(|e| e.max_flight),
            mss: c.ends.iter().filter_map(|e| e.mss).min(),
            rtt: c.path.rtt,
            to_client: c.path.halves[0].filter(|_| c.vantage == Vantage::Server),
            bandwidth_bps: c.path.bandwidth_bps,
            messages: [0, 1].map(|s| largest_message(c, s)),
            tls: Tls::of(c),
            none_in_series: false,
            server_closed: c.server_closed && c.exchange_count() <= 1,
            greeted: c.exchanges.first().is_some_and(|x| x.id == 1 && x.bytes[0] == 0 && x.bytes[1] > 0),
            held_within_tls: held_within_tls(c),
            rhythms: rhythms(c),
        }
    }
}

/// What to do about a finding of this connection, with the figures of it.
pub fn fixes_on(connection: &Connection, finding: &Finding) -> Vec<Fix> {
    let mut finding = finding.clone();
    advise(&mut finding, &Brief::of(connection), true);
    finding.fixes
}

/// Fills in the fixes of a finding, the best first, and those that `connection`, which lost most to it, refutes; how they are made is
/// most of the work, and left out without `settings`.
pub(crate) fn advise(f: &mut Finding, connection: &Brief, settings: bool) {
    let (cause, side, facts) = (f.cause, f.side, &f.facts);
    let mut figures = figures(cause, side, connection, facts);
    figures.0.push(("at", f.example.start.utc()));
    // Up to the next millisecond, so that the wait lies within.
    figures.0.push(("until", (f.example.end + Nanos(999_999)).utc()));
    let (rhythm, events) = (rhythm_of(f, connection), is_stream_of_events(f, connection));
    figures.0.extend(rhythm.map(|each| ("pause", each.to_string())));
    let (shown, tls) = (shown(f, connection), connection.tls);
    let listed = listed(f, connection, (rhythm, events));
    let raised = raised(f, connection, &shown);
    // A small buffer that a program sets lets much more through at times (rule 123): that is no room.
    let (at_first, as_set) = (shown.at_first(), Shown { most_in_flight: 0, ..shown });
    let of = |fix| match fix {
        FixId::Rmem => &at_first,
        FixId::UnsetSndbuf => &as_set,
        _ => &shown,
    };
    let went_beyond =
        |fix: FixId| fix == FixId::UnsetSndbuf && Unless::BufferHadRoom.refutes(&shown).is_some();
    let (mut fixes, mut refuted) = (Vec::new(), Vec::new());
    for &fix in listed {
        let info = fix.info();
        let newer = fix == FixId::Tls13;
        let is_new = || tls.is_new().filter(|_| newer);
        if let Some(because) = info.refuted(of(fix)).or_else(is_new).or_else(|| is_vain(fix, f, connection)) {
            refuted.push(Refuted { fix, because });
            continue;
        }
        // Where the server closes a connection after each answer, nobody can use it again.
        let closed = fix == FixId::ReuseConnections && connection.server_closed;
        let upload = fix == FixId::SmallerResponse && is_upload(side, connection);
        let place = where_to(closed, upload).unwrap_or_else(|| place_of(info.place, cause, side));
        let mut rows: Vec<&How> = info.how.iter().filter(|how| !is_for_other_end(fix, place, how)).collect();
        // Its line alone tells what to change: there is no time to look for in a log.
        let front = usize::from(fix == FixId::Application && !waits_to_continue(f, connection));
        let guess =
            program_for(fix, place, connection).filter(|&(program, _)| put_first(&mut rows, front, program));
        match fix {
            // The last one says what delays greetings.
            FixId::Application if waits_for_greeting(f, connection) || waits_for_names(f) => {
                rows.rotate_right(1);
            }
            FixId::Application if f.may_be_corked() => {
                rows.iter_mut().take(1).for_each(|row| *row = &CORKED);
            }
            FixId::Application if events || rhythm.is_some() => {
                rows.insert(0, if events { &EVENTS } else { &RATE_LIMIT });
            }
            fix if went_beyond(fix) => rows.insert(0, &SET_AT_ALL),
            FixId::Rmem => rows.iter_mut().zip(raised).for_each(|(row, how)| *row = how),
            // The last one is for servers.
            FixId::ReuseConnections if closed => rows.rotate_right(1),
            FixId::ReuseConnections if asks_first(facts, cause, tls) => {
                put_first(&mut rows, 0, Program::PostgreSql);
            }
            // The last one is for who spaces its segments.
            FixId::CongestionControl if cause == Cause::Pacing => rows.rotate_right(1),
            // The last one says what it is worth in TLS 1.3.
            FixId::TlsResumption if tls.is_new().is_some() => rows.rotate_right(1),
            _ => {}
        }
        let told = if settings { &rows[..] } else { &[] };
        let how = told.iter().filter_map(|h| Some(format!("{}: {}", h.system, figures.fill(h.text)?)));
        fixes.push(Fix {
            fix,
            place,
            how: how.collect(),
            guess,
            parameters: parameters(fix, side, connection, &figures),
            saves: (!events).then(|| most_saved(fix, f, tls)),
            predicted: None,
            replayed: false,
        });
    }
    if raised.is_some() {
        fixes.sort_by_key(|fix| fix.fix != FixId::Rmem);
    }
    (f.fixes, f.refuted) = (fixes, refuted);
}

/// What to raise of a receive window whose limit is none: what it begins with.
fn raised(f: &Finding, connection: &Brief, shown: &Shown) -> Option<&'static How> {
    let sender = sender_of(f).filter(|_| f.cause == Cause::ReceiveWindow)?;
    // Its host lets a window become as large as is advised.
    let limit = (connection.scales[1 - sender] >= Some(LARGE_SCALE)).then_some(&BEGINS_SMALL);
    if shown.grown_window().is_some() { Some(&GROWS_LATE) } else { limit }
}

/// The least timeout of Linux beyond a round trip (`TCP_RTO_MIN`).
const TIMEOUT: Nanos = Nanos::millis(200);

/// A round trip of this finding asked whether TLS may begin.
fn asks_first(facts: &Facts, cause: Cause, tls: Tls) -> bool {
    matches!(facts, Facts::EncryptionRefused { .. }) || cause == Cause::TlsHandshake && tls.asked
}

/// What a fix saves at most: of a TLS handshake that takes several round trips a newer version, or a session that is resumed, saves one.
fn most_saved(fix: FixId, f: &Finding, tls: Tls) -> Nanos {
    match fix {
        FixId::MoreWorkers => f.in_turn.map_or(Nanos::ZERO, |turns| turns.waited.min(f.to_save())),
        FixId::Tls13 | FixId::TlsResumption if f.cause == Cause::TlsHandshake => {
            f.of_requests().part(i64::from(tls.trips.max(1)))
        }
        _ => f.to_save(),
    }
}

/// Where a connection that its server `closed` would be kept, and what is an `upload` made smaller.
fn where_to(closed: bool, upload: bool) -> Option<&'static str> {
    if closed { Some("server") } else { upload.then_some("client") }
}

/// The bytes that took the time are the client's.
fn is_upload(side: Option<Side>, c: &Brief) -> bool {
    match side {
        Some(Side::Client) => true,
        Some(Side::Server) => false,
        _ => c.messages[0] > c.messages[1],
    }
}

/// What a client that fetches row by row can do is nothing for a server, a database's own log shows no pause of its client, and who answers compresses no
/// uploads.
fn is_for_other_end(fix: FixId, place: &str, how: &How) -> bool {
    let of = |systems: &[&str]| systems.contains(&how.system);
    let answers = ["nginx", "HAProxy, Apache", "Databases"];
    fix == FixId::SmallerResponse && of(if place == "client" { &answers } else { &["Uploads"] })
        || fix == FixId::ReadFaster && place == "server" && of(&["Databases"])
        || fix == FixId::Application && place == "client" && of(&["PostgreSQL", "MySQL, MariaDB", "Redis"])
}

/// Who decides how a fix is made: who speaks where it is made.
fn program_for(fix: FixId, place: &str, c: &Brief) -> Option<(Program, Told)> {
    let [client, server] = c.programs;
    match place {
        // What can be asked for together is a question of the protocol, which the server's name tells where a client tells nothing.
        "client" if fix == FixId::FewerRoundTrips => client.or(server),
        "client" => client,
        "server" => server,
        _ => None,
    }
}

/// The row for the program in sight stands first (or behind those that say when to look, `front` of them), if there is one.
fn put_first(rows: &mut Vec<&How>, front: usize, program: Program) -> bool {
    let Some(at) = rows.iter().position(|h| program.is_among(h.system)) else { return false };
    let row = rows.remove(at);
    rows.insert(front.min(at), row);
    true
}

/// The end whose segment waited: a window is made at the other one.
fn sender_of(f: &Finding) -> Option<usize> {
    match (f.side, f.cause.info().at_reader) {
        (Some(Side::Client), at_reader) => Some(usize::from(at_reader)),
        (Some(Side::Server), at_reader) => Some(usize::from(!at_reader)),
        _ => None,
    }
}

/// What decides whether a fix can help.
fn shown(f: &Finding, c: &Brief) -> Shown {
    let sender = sender_of(f);
    Shown {
        same_host: c.same_host,
        nothing_lost: c.nothing_lost,
        one_request: c.requests == 1 && f.connection_count <= 1,
        flight: match f.facts {
            Facts::Window { flight, .. } | Facts::Flight { flight, .. } => Some(u64::from(flight)),
            _ => None,
        },
        most_in_flight: sender.map_or(0, |s| c.flights[s]),
        // Within a buffer that was set a window grows as well, and without that it would have begun larger.
        largest_window: sender
            .filter(|s| c.unscaled || c.scales[1 - s].is_none_or(|scale| scale > SET_SCALE))
            .and_then(|s| c.windows[1 - s]),
        unscaled: c.unscaled,
        needed: needed(c),
        longest: f.range.longest,
        share: f.share,
        trip: c
            .to_client
            .filter(|_| f.cause == Cause::PathDelay && f.example.connection == c.id)
            .map(|way| (f.longest_in_request(), way)),
    }
}

/// What a window or buffer must hold: rate times round trip.
fn needed(c: &Brief) -> Option<u64> {
    Some((c.bandwidth_bps? as f64 / 8.0 * c.rtt?.0 as f64 / 1e9) as u64).filter(|&bytes| bytes > 0)
}

/// Which end or place such a fix of this finding is made at.
pub(crate) fn place_of(place: Place, cause: Cause, side: Option<Side>) -> &'static str {
    let at_reader = cause.info().at_reader;
    let side = match side {
        Some(Side::Client) if at_reader => Some(Side::Server),
        Some(Side::Server) if at_reader => Some(Side::Client),
        _ => side,
    };
    let (mine, other) = match side {
        Some(Side::Client) => ("client", "server"),
        Some(Side::Server) => ("server", "client"),
        _ => ("host", "host"),
    };
    match place {
        Place::Writer => mine,
        Place::Reader => other,
        Place::Client => "client",
        Place::Server => "server",
        Place::Host => "host",
        Place::Path => "path",
    }
}

fn figures(cause: Cause, side: Option<Side>, c: &Brief, facts: &Facts) -> Figures {
    let mut f = Figures::default();
    let mut put = |name, value: String| f.0.push((name, value));
    put("server", c.server.ip.to_string());
    put("port", c.server.port.to_string());
    put("ends", format!("{} > {}", c.client, c.server));
    put("client", c.client.to_string());
    put("client_port", c.client.port.to_string());
    if let Some(end @ (Side::Client | Side::Server)) = side {
        let own = if end == Side::Client { c.client } else { c.server };
        put("own_port", own.port.to_string());
    }
    let mss = c.mss;
    if let Some(mss) = mss {
        put("mss", mss.to_string());
    }
    if let Some(rtt) = c.rtt {
        put("rtt", rtt.to_string());
    }
    if let Some(bps) = rate(c, facts) {
        put("rate", bit_rate(bps));
        put("rate_mbit", mbit(bps));
    }
    if let Some(need) = needed(c).filter(|_| cause.info().sized == SizedBy::Path) {
        put("need_bytes", need.to_string());
        put("need_buffer", buffer_for(need).to_string());
    }
    match *facts {
        Facts::Window { flight, .. } | Facts::Flight { flight, .. } | Facts::AckDelay { flight, .. } => {
            put("have_bytes", flight.to_string());
        }
        Facts::Closed { window } => put("have_bytes", window.to_string()),
        _ => {}
    }
    if cause.info().sized == SizedBy::Message {
        let sender = usize::from(side == Some(Side::Server));
        if let Some(mss) = mss.filter(|&m| m > 0) {
            // The window counts segments: a header that was written by itself takes one, and so does the end.
            let segments = c.messages[sender] / u64::from(mss) + 2;
            // Ten are the default (RFC 6928). Of a larger message as many go at once as a replay takes for reasonable.
            match segments {
                11..=MOST_INITCWND => put("segments", segments.to_string()),
                _ if segments > MOST_INITCWND => put("most_segments", MOST_INITCWND.to_string()),
                _ => {}
            }
        }
    }
    f
}

/// The bottleneck's rate: as the finding says it, else that of the whole connection, with whose round trip it is of use. The
/// two differ where the rate did not stay the same.
fn rate(c: &Brief, facts: &Facts) -> Option<f64> {
    match *facts {
        Facts::Bytes { bps: Some(bps), .. } | Facts::Stood { bps: Some(bps), .. } => Some(bps),
        _ => c.rtt.and(c.bandwidth_bps).map(|bps| bps as f64),
    }
}

/// For commands. A slow link has no rate of 0, which would be none for `tc`.
fn mbit(bps: f64) -> String {
    let mbit = bps / 1e6;
    if mbit < 9.995 { format!("{mbit:.3}") } else { format!("{mbit:.0}") }
}

fn parameters(
    fix: FixId,
    side: Option<Side>,
    c: &Brief,
    figures: &Figures,
) -> Vec<(&'static str, Parameter)> {
    let mut out = vec![
        ("server", Parameter::Text(c.server.to_string())),
        ("connection", Parameter::Number(i64::from(c.id))),
    ];
    if let Some(side) = side {
        out.push(("side", Parameter::Text(side.name().into())));
    }
    let number = |name: &str| figures.0.iter().find(|f| f.0 == name).and_then(|f| f.1.parse::<i64>().ok());
    match fix {
        FixId::UnsetRcvbuf | FixId::UnsetSndbuf | FixId::Wmem | FixId::Rmem | FixId::BiggerWindow => {
            if let Some(n) = number("need_bytes") {
                out.push(("bytes", Parameter::Number(n)));
            }
        }
        FixId::Initcwnd => {
            if let Some(n) = number("segments") {
                out.push(("segments", Parameter::Number(n)));
            }
        }
        _ => {}
    }
    out
}
