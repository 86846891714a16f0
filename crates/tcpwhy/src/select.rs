//! `--connection` and `--slower-than`: what is left of an analysis, and by which numbers.

use tcpwhy_base::{Endpoint, Nanos};
use tcpwhy_library::{Connection, Exchange, captures::Analysis};

/// Whether `which` (an id, a port, `:port`, `address:port`, or two of them) means this connection.
fn is_meant(c: &Connection, which: &Which) -> bool {
    match which {
        Which::Id(id) => c.id == *id,
        Which::Port(port) => c.client.port == *port || c.server.port == *port,
        Which::Ends(a, None) => c.client == *a || c.server == *a,
        Which::Ends(a, Some(b)) => (c.client, c.server) == (*a, *b) || (c.client, c.server) == (*b, *a),
    }
}

enum Which {
    Id(u32),
    Port(u16),
    Ends(Endpoint, Option<Endpoint>),
}

fn parse(text: &str, last: u32) -> Option<Which> {
    if let Some(port) = text.strip_prefix(':') {
        return port.parse().ok().map(Which::Port);
    }
    if let Ok(n) = text.parse::<u32>() {
        let is_id = (1..=last).contains(&n);
        return if is_id { Some(Which::Id(n)) } else { u16::try_from(n).ok().map(Which::Port) };
    }
    let mut ends = text.split(['>', ',', ' ', '-']).map(str::trim).filter(|t| !t.is_empty());
    let end =
        |t: &str| t.parse::<std::net::SocketAddr>().ok().map(|a| Endpoint { ip: a.ip(), port: a.port() });
    let first = end(ends.next()?)?;
    match (ends.next(), ends.next()) {
        (None, _) => Some(Which::Ends(first, None)),
        (Some(second), None) => Some(Which::Ends(first, Some(end(second)?))),
        _ => None,
    }
}

/// Keeps the connections that `text` names; the error says what to write.
pub(crate) fn connections(analysis: &mut Analysis, text: &str) -> Result<(), String> {
    let which = parse(text, analysis.connections.last().map_or(0, |c| c.id)).ok_or_else(|| {
        format!("--connection {text}: write a number of the table, a port, or 10.0.0.1:40000>10.0.0.2:80")
    })?;
    if !analysis.connections.iter().any(|c| is_meant(c, &which)) {
        return Err(format!(
            "--connection {text}: no such connection among the {} of this capture",
            analysis.connections.len()
        ));
    }
    analysis.retain(|c| is_meant(c, &which));
    Ok(())
}

/// Moves exchanges that took no longer than `limit` into the sums of what is left out.
pub(crate) fn slower_than(analysis: &mut Analysis, limit: Nanos) {
    analysis.connections.iter_mut().for_each(|c| only_slower_than(c, limit));
}

/// Moves exchanges of one connection that took no longer than `limit` into the sums of what is left out.
pub(crate) fn only_slower_than(c: &mut Connection, limit: Nanos) {
    let (kept, short): (Vec<Exchange>, Vec<Exchange>) =
        std::mem::take(&mut c.exchanges).into_iter().partition(|x| x.end - x.start > limit);
    c.exchanges = kept;
    let sums = &mut c.exchanges_omitted;
    for x in short {
        sums.count += 1;
        sums.duration += x.end - x.start;
        sums.bytes[0] += x.bytes[0];
        sums.bytes[1] += x.bytes[1];
        for span in &x.spans {
            sums.budget.add(span.cause, span.duration());
        }
    }
}

/// `6 exchanges to choose from: 13 to 18`. Where others do not lie in the stretch of time, or are too short,
/// the first is not 1.
pub(crate) fn numbers(c: &Connection) -> String {
    /// So many stretches of numbers are written.
    const SHOWN: usize = 8;
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for x in &c.exchanges {
        match runs.last_mut() {
            Some(run) if run.1 + 1 == x.id => run.1 = x.id,
            _ => runs.push((x.id, x.id)),
        }
    }
    let written = |&(a, b): &(u32, u32)| if a == b { a.to_string() } else { format!("{a} to {b}") };
    let each: Vec<String> = runs.iter().take(SHOWN).map(written).collect();
    let more = if runs.len() > SHOWN { ", ..." } else { "" };
    match c.exchanges.len() {
        0 => "no exchange to choose from".into(),
        1 => format!("1 exchange to choose from: {}", each[0]),
        n => format!("{n} exchanges to choose from: {}{more}", each.join(", ")),
    }
}
