//! From the arguments to a question for the model, with what had to be assumed.

use super::args::{Nodelay, Predict, Tls, TlsTime};
use crate::units::quantity::{self, Understood};
use tcpwhy_base::{Cork, Link, Nanos, Step, Turn, Workload};
use tcpwhy_library::model::{MAX_EVENTS, Question, Scenario};

/// Typical sizes of the messages of a TLS handshake, in bytes: two certificates of 1.5 KiB (RFC 8446, RFC 5246).
const CLIENT_HELLO: u64 = 520;
const SERVER_FLIGHT: u64 = 4000;
const FINISHED: u64 = 74;
const KEY_EXCHANGE: u64 = 126;
const SERVER_FINISHED: u64 = 51;
/// A request where only the response was named: what a GET with its header fields is (a browser's are larger,
/// a service's smaller). In one segment its size changes nothing.
const REQUEST: u64 = 300;

/// Applications may wait so long in all: a year. What a run takes is bounded besides.
const LONGEST: Nanos = Nanos::secs(365 * 86_400);

/// A question, and what is said beside the answer.
pub(crate) struct Asked {
    pub(crate) question: Question,
    pub(crate) assumed: Vec<String>,
    pub(crate) connection: &'static str,
    /// Sizes of request and response as they were typed, with their units.
    pub(crate) sizes: [Option<String>; 2],
}

/// State of the connection before the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    New,
    Warm,
    Idle(Nanos),
}

fn state(text: Option<&str>) -> Result<State, String> {
    let help = "say --connection new, warm, or idle: and a time, such as idle:30s";
    match text {
        None | Some("new") => Ok(State::New),
        Some("warm") => Ok(State::Warm),
        Some(t) => match t.strip_prefix("idle:") {
            Some(time) => Ok(State::Idle(crate::units::duration(time)?)),
            None if t.parse::<u32>().is_ok() => Err(format!(
                "--connection {t} names a connection of a capture: give the capture with --like; else {help}"
            )),
            None => Err(format!("--connection {t:?}: {help}")),
        },
    }
}

/// The question that the options for path, workload and ends mean.
pub(crate) fn from_args(a: &Predict) -> Result<Asked, String> {
    let mut assumed = Vec::new();
    let state = state(a.connection.as_deref())?;
    if a.server_speaks_first && state != State::New {
        return Err("a server that speaks first does so once on each connection: --connection warm and idle say that it was in use before".into());
    }
    let rtt = match (a.rtt, a.distance) {
        (Some(rtt), _) => rtt,
        (None, Some(km)) => {
            let rtt = quantity::round_trip(km);
            assumed.push(format!(
                "{km:.0} km of fibre are a round trip of {rtt}; real ways are longer by a half or more."
            ));
            rtt
        }
        (None, None) => {
            return Err("say how far away the server is: --rtt 200ms or --distance 15000km (or --like a capture, or a scenario file)".into());
        }
    };
    if rtt > Nanos::secs(60) {
        return Err(format!(
            "a round trip of {rtt}: TCP would give up before it begins; up to 60s is possible"
        ));
    }
    let rate = a.bandwidth.as_ref().map(|b| b.value);
    let queue = queue(a, rate, rtt, &mut assumed);
    let mut scenario = Scenario::with_path(rtt, rate, queue, a.mtu);
    if let Some(ppm) = a.loss {
        scenario.links.iter_mut().for_each(|l: &mut Link| l.loss_ppm = ppm);
    }
    workload(a, &mut scenario, &mut assumed)?;
    ends(a, &mut scenario, &mut assumed);
    for u in [&a.bandwidth, &a.queue, &a.request, &a.response, &a.sndbuf, &a.rcvbuf, &a.write_chunk] {
        assumed.extend(u.iter().filter_map(|u| u.note.clone()));
    }
    if a.profile.is_none() {
        assumed.push(format!(
            "Both ends run {} with {} ticks a second.",
            scenario.hosts[0].stack.profile.name, scenario.hosts[0].stack.profile.clock.hz
        ));
    }
    if rate.is_none() {
        assumed.push("No bottleneck: --bandwidth sets one.".into());
    }
    tcpwhy_library::model::check(&scenario).map_err(|e| e.to_string())?;
    let mut question = Question { scenario, skip: 0, max_events: MAX_EVENTS };
    let connection = match state {
        State::New => "new",
        State::Warm => {
            question.warm(None);
            "warm"
        }
        State::Idle(time) => {
            question.warm(Some(time));
            "idle"
        }
    };
    if connection != "new" && a.reconnect {
        return Err(
            "--reconnect makes a new connection for each request: it contradicts --connection warm or idle"
                .into(),
        );
    }
    let idle = idle(&question);
    if idle > LONGEST {
        let most = LONGEST.0 / Nanos::secs(86_400).0;
        return Err(format!(
            "the applications wait for more than {most} days in all: --gap, --server-time, --tls-time and --connection idle may be that long together"
        ));
    }
    // The limit of a run is for what TCP does: to wait takes no events.
    question.scenario.limit += idle;
    let sizes = [&a.request, &a.response].map(|u| u.as_ref().and_then(Understood::with_unit));
    Ok(Asked { question, assumed, connection, sizes })
}

/// How long the applications wait in all, one after the other.
fn idle(question: &Question) -> Nanos {
    let workload = &question.scenario.workload;
    let turns = (0..question.turns()).filter_map(|n| workload.turn(n as usize));
    let of_connection = turns.fold(Nanos::ZERO, |sum, turn| sum + turn.before + turn.think);
    let connections = workload.requests.div_ceil(workload.requests_each().max(1));
    of_connection.times(i64::from(connections))
}

/// One round trip's worth at the rate, but a hundred full packets at least, where nothing is said.
fn queue(a: &Predict, rate: Option<u64>, rtt: Nanos, assumed: &mut Vec<String>) -> Option<u64> {
    if let Some(q) = &a.queue {
        return Some(q.value);
    }
    let rate = rate?;
    let worth = (u128::from(rate) * rtt.0.max(0) as u128 / 8_000_000_000) as u64;
    let queue = worth.max(100 * a.mtu);
    assumed.push(format!("The bottleneck's queue holds {} bytes; --queue sets it.", queue));
    Some(queue)
}

fn writes(given: Option<&Vec<u64>>, size: Option<u64>, what: &str) -> Result<Vec<u64>, String> {
    match (given, size) {
        (Some(writes), Some(size)) => {
            let sum = writes.iter().fold(0_u64, |a, &b| a.saturating_add(b));
            if sum == size {
                Ok(writes.clone())
            } else {
                Err(format!(
                    "the writes of the {what} are {sum} bytes together, not {size}: give only the writes"
                ))
            }
        }
        (Some(writes), None) => Ok(writes.clone()),
        (None, Some(0) | None) => Ok(Vec::new()),
        (None, Some(size)) => Ok(vec![size]),
    }
}

/// The writes of request and response.
fn messages(a: &Predict, assumed: &mut Vec<String>) -> Result<[Vec<u64>; 2], String> {
    let mut request =
        writes(a.writes.as_ref().map(|w| &w.0), a.request.as_ref().map(|u| u.value), "request")?;
    let response =
        writes(a.response_writes.as_ref().map(|w| &w.0), a.response.as_ref().map(|u| u.value), "response")?;
    if request.is_empty() && response.is_empty() {
        return Err("say how much is sent: --request 16KiB, --response 20KiB, or --writes 4,2048".into());
    }
    if a.server_speaks_first {
        if !request.is_empty() {
            return Err("--server-speaks-first: the response comes without a request; leave out --request and --writes".into());
        }
    } else if request.is_empty() {
        assumed.push(format!(
            "A request of {REQUEST} bytes; --request says otherwise, --server-speaks-first that there is none."
        ));
        request.push(REQUEST);
    }
    Ok([request, response])
}

/// What is assumed of a TLS handshake, and what the other version would take.
fn handshake(a: &Predict, version: Tls, rtt: Nanos, asks: bool) -> String {
    let (sizes, other) = match version {
        Tls::V13 => {
            let finished =
                if asks { format!(", and {FINISHED} up before the first request") } else { String::new() };
            let sizes = format!("TLS 1.3 handshake: {CLIENT_HELLO} bytes up, {SERVER_FLIGHT} down{finished}");
            (sizes, format!("TLS 1.2 takes a round trip ({rtt}) more (--tls 1.2)"))
        }
        Tls::V12 => {
            let (up, down) = (CLIENT_HELLO + KEY_EXCHANGE, SERVER_FLIGHT + SERVER_FINISHED);
            let sizes = format!("TLS 1.2 handshake: {up} bytes up, {down} down");
            (sizes, format!("TLS 1.3 takes a round trip ({rtt}) less (--tls 1.3)"))
        }
    };
    let computing = match a.tls_time {
        None => "no time for cryptography; --tls-time 5ms,2ms (server, client) says otherwise".into(),
        Some(TlsTime([server, client])) => {
            format!("{server} of cryptography at the server, {client} at the client")
        }
    };
    format!("{sizes}; {other}; {computing}.")
}

fn workload(a: &Predict, s: &mut Scenario, assumed: &mut Vec<String>) -> Result<(), String> {
    let [request, response] = messages(a, assumed)?;
    if request.len().max(response.len()) == 1 && a.writes.is_none() {
        assumed.push(
            "Each message is written with one call; --writes and --response-writes say otherwise.".into(),
        );
    }
    let steps = |sizes: &[u64]| sizes.iter().map(|&n| Step::Write(n)).collect::<Vec<_>>();
    let turn = |up: &[u64], think, down: &[u64]| Turn {
        before: Nanos::ZERO,
        request: steps(up),
        think,
        response: steps(down),
    };
    let think = a.server_time.unwrap_or_default();
    let own = Turn { before: a.gap.unwrap_or_default(), ..turn(&request, think, &response) };
    let [server_time, client_time] = a.tls_time.unwrap_or_default().0;
    let mut turns = Vec::new();
    let answered = Turn { before: client_time, ..turn(&[KEY_EXCHANGE], Nanos::ZERO, &[SERVER_FINISHED]) };
    match a.tls {
        None => {}
        Some(Tls::V13) => turns.push(turn(&[CLIENT_HELLO], server_time, &[SERVER_FLIGHT])),
        Some(Tls::V12) => turns.extend([turn(&[CLIENT_HELLO], server_time, &[SERVER_FLIGHT]), answered]),
    }
    let tls = turns.len();
    assumed.extend(a.tls.map(|version| handshake(a, version, s.rtt(), !own.request.is_empty())));
    if a.tls == Some(Tls::V13) && !own.request.is_empty() {
        // The client's Finished leaves with the first request, as a write of its own (RFC 8446, 2).
        let mut first = Turn { before: client_time, ..own.clone() };
        first.request.insert(0, Step::Write(FINISHED));
        turns.push(first);
    }
    let opening = turns.len();
    let kept = (opening > tls).then(|| own.clone());
    turns.push(own);
    let requests = a.requests - u32::from(opening > tls && a.requests > 0);
    if requests == 0 && a.requests > 0 {
        turns.pop();
    }
    let repeat_from = if requests == 0 { opening - 1 } else { opening };
    s.workload = Workload {
        turns,
        repeat_from,
        kept,
        tls,
        requests: if a.requests > 0 { requests.max(1) } else { 0 },
        reconnect_every: u32::from(a.reconnect),
        pipeline: false,
        server_closes: a.server_closes,
    };
    if a.tls == Some(Tls::V13) && a.reconnect && a.requests > 1 {
        // Each connection has its own handshake and one request.
        s.workload.turns.truncate(opening);
        (s.workload.repeat_from, s.workload.requests) = (opening - 1, a.requests);
    }
    Ok(())
}

/// Who sets TCP_NODELAY. HTTP clients and TLS libraries' users do (curl, Go, Java's HttpClient, Node.js, Python's
/// http.client, browsers); of a program that is described write by write only its author knows.
fn nodelay(a: &Predict, assumed: &mut Vec<String>) -> Nodelay {
    if let Some(said) = a.nodelay {
        return said;
    }
    let described = a.writes.is_some() || a.response_writes.is_some() || a.write_chunk.is_some();
    if a.tls.is_none() && described {
        assumed.push("TCP_NODELAY is set at neither end; --nodelay client, server or both sets it.".into());
        return Nodelay::None;
    }
    assumed.push("TCP_NODELAY is set at the client, as HTTP clients do; --nodelay none, server or both says otherwise.".into());
    Nodelay::Client
}

fn ends(a: &Predict, s: &mut Scenario, assumed: &mut Vec<String>) {
    let nodelay = nodelay(a, assumed);
    for (i, host) in s.hosts.iter_mut().enumerate() {
        if let Some(p) = &a.profile {
            host.stack.profile = p.0[i].clone();
        }
        if let Some(hz) = a.hz {
            host.stack.profile.clock.hz = hz;
        }
        host.stack.phase = Nanos(host.stack.profile.clock.tick() / 2);
        host.nodelay = nodelay.has(i);
        if a.cork.is_some_and(|e| e.has(i)) {
            host.cork = Cork::Message;
        }
        host.initcwnd = a.initcwnd;
        host.sndbuf = a.sndbuf.as_ref().map(|u| u.value);
        host.rcvbuf = a.rcvbuf.as_ref().map(|u| u.value);
        host.write_chunk = a.write_chunk.as_ref().map(|u| u.value);
        host.stack.idle_restart = a.no_idle_restart.then_some(false);
        host.stack.congestion = a.congestion;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Args, Command};
    use clap::Parser as _;

    fn asked(options: &str) -> Result<Asked, String> {
        let line = format!("tcpwhy predict --rtt 40ms --request 1KiB --response 1KiB {options}");
        match Args::try_parse_from(line.split(' ')).expect("options that there are").command {
            Command::Predict(a) => from_args(&a),
            _ => Err("another command".into()),
        }
    }

    /// However long applications wait, the run comes to its end; what nobody waits for is refused.
    #[test]
    fn long_waits_are_no_limit() {
        for (options, hours) in [
            ("--connection idle:2h", 0),
            ("--gap 1h --requests 3", 2),
            ("--server-time 50m --requests 4 --reconnect", 3),
            ("--connection idle:8000h --gap 5h --requests 100", 495),
        ] {
            let answer = asked(options).expect(options).question.ask().expect(options);
            assert!(answer.complete, "{options}");
            assert_eq!(answer.total.0 / Nanos::secs(3_600).0, hours, "{options}: {}", answer.total);
        }
        for options in
            ["--connection idle:8761h", "--gap 1h --requests 9000", "--server-time 2000000h --requests 9"]
        {
            assert!(asked(options).is_err_and(|e| e.contains("365 days")), "{options}");
        }
    }
}
