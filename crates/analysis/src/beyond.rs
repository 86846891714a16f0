//! Round trips that were longer than the way: others between the same two hosts took less.
//!
//! A connection that opens while something else fills a queue of the path has seen no shorter trip, and takes
//! what it sees for the distance. What it sees later, or another connection, tells (rule 120).

use crate::attribute::least_beyond;
use crate::confidence::{Rule, Tap};
use crate::facts::Facts;
use crate::result::{Connection, Finding, Quality};
use std::collections::BTreeMap;
use std::net::IpAddr;
use tcpwhy_base::{Cause, Nanos};

/// Less than this share of what is called the distance is not worth a word.
const WORTH_SAYING: i64 = 10;

/// How sure it is that a trip was that long for its distance, where another one took so much less.
const DOUBTED: f64 = 0.3;

/// The shortest round trip between two hosts, and the connection that had it.
type Shortest = BTreeMap<(IpAddr, IpAddr), Option<(Nanos, u32)>>;

/// What of the distance is beyond the shortest trip.
#[derive(Clone, Copy, Debug, Default)]
struct Beyond {
    time: Nanos,
    /// The most of one connection, that one, and what was shorter.
    most: Nanos,
    connection: u32,
    shortest: (Nanos, u32),
}

/// Says so where much of the distance was none, of connections whose exchanges are kept.
pub(crate) fn doubt_the_distance(f: &mut Finding, connections: &[Box<Connection>]) {
    if f.cause != Cause::PathDelay {
        return;
    }
    let beyond = beyond(connections);
    if beyond.time.times(WORTH_SAYING) < f.of_requests() || beyond.time <= Nanos::ZERO {
        return;
    }
    let (time, (rtt, by)) = (beyond.time.min(f.of_requests()), beyond.shortest);
    let whose = if by == beyond.connection {
        "others of the same connection".to_owned()
    } else {
        format!("those of connection {by} between the same hosts")
    };
    let also = format!(
        " But {whose} took {rtt}: {time} of this is beyond that, in a queue that others filled, as it seems."
    );
    f.text = Some((f.why() + &also).into_boxed_str());
    let share = time.0 as f64 / f.lost.0.max(1) as f64;
    f.confidence = (f.confidence - share * (f.confidence - DOUBTED)).max(DOUBTED);
    f.unsure = (f.unsure + time).min(f.of_requests());
}

/// Says so where nothing tells the way from the work, of connections whose exchanges are kept (rule 125).
pub(crate) fn doubt_the_trip(f: &mut Finding, connections: &[Box<Connection>]) {
    let (rule, also) = match f.cause {
        Cause::PathDelay => (
            Rule::TripWithAnswer,
            " But every answer brought the ACK of its request with it: the trip may be much shorter, and the rest the \
             server's work. The opening of a connection between these hosts would tell.",
        ),
        Cause::ServerThink => (
            Rule::ThinkOnOneLink,
            " No packet shows the trip by itself: every answer brought the ACK of its request with it. It is taken to be \
             short, since what both hosts send has passed no router.",
        ),
        _ => return,
    };
    // No other rule has these.
    let alternatives = rule.at(Tap::Near).alternatives;
    let spans = connections.iter().flat_map(|c| &c.exchanges).flat_map(|x| &x.spans);
    let (mut all, mut doubted) = (Nanos::ZERO, Nanos::ZERO);
    for span in spans.filter(|s| s.cause == f.cause) {
        all += span.duration();
        if span.alternatives == alternatives {
            doubted += span.duration();
        }
    }
    if doubted > Nanos::ZERO && doubted.times(WORTH_SAYING) >= all {
        f.text = Some((f.why() + also).into_boxed_str());
    }
}

fn beyond(connections: &[Box<Connection>]) -> Beyond {
    let hosts = |c: &Connection| (c.client.ip, c.server.ip);
    let with_trips = || connections.iter().filter(|c| !c.exchanges.is_empty());
    let worst = with_trips().flat_map(|c| trips(c)).map(|(rtt, _)| rtt).max().unwrap_or(Nanos::ZERO);
    // Of connections that can tell only: there may be a million.
    let telling =
        || connections.iter().filter_map(|c| Some((c, told_by(c).filter(|&rtt| worst > limit(rtt))?)));
    if telling().next().is_none() {
        return Beyond::default();
    }
    let mut shortest: Shortest = with_trips().map(|c| (hosts(c), None)).collect();
    for (c, rtt) in telling() {
        if let Some(least) = shortest.get_mut(&hosts(c)) {
            *least = Some(least.map_or((rtt, c.id), |least| least.min((rtt, c.id))));
        }
    }
    let mut all = Beyond::default();
    for c in with_trips() {
        let Some(&Some((least, by))) = shortest.get(&hosts(c)) else { continue };
        let longer = trips(c).filter(|&(rtt, _)| rtt > limit(least));
        let own = longer.fold(Nanos::ZERO, |sum, (rtt, time)| sum + time.share(rtt - least, rtt));
        all.time += own;
        if own > all.most {
            (all.most, all.connection, all.shortest) = (own, c.id, (least, by));
        }
    }
    all
}

/// Trips longer than that stood in a queue, where one took so long (rule 38).
fn limit(shortest: Nanos) -> Nanos {
    shortest + least_beyond(shortest, Nanos::ZERO)
}

/// Its own shortest, where the clock tells.
fn told_by(c: &Connection) -> Option<Nanos> {
    c.path.rtt.filter(|&rtt| rtt > Nanos::ZERO && !c.quality.has(Quality::COARSE_CLOCK))
}

/// What was taken for the distance in its exchanges: the round trip, and how much of it.
fn trips(c: &Connection) -> impl Iterator<Item = (Nanos, Nanos)> {
    let spans = c.exchanges.iter().flat_map(|x| &x.spans).filter(|s| s.cause == Cause::PathDelay);
    spans.filter_map(|s| match s.facts {
        Facts::RoundTrip { rtt } => Some((rtt, s.duration())),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Example, Exchange, Frames, Span};
    use tcpwhy_base::{Endpoint, Side};

    const MS: fn(i64) -> Nanos = Nanos::millis;

    /// Asked once, over a round trip of so many milliseconds; the shortest that it saw is another.
    fn asked(id: u32, host: u8, rtt: i64, shortest: i64) -> Box<Connection> {
        let end = |last: u8, port: u16| Endpoint { ip: [10, 0, 0, last].into(), port };
        let mut c = Connection::new(id, [end(1, 4_000 + id as u16), end(host, 80)], MS(0), MS(rtt));
        let frames = Frames::new(0, 1, 2, &[1]);
        let mut trip = Span::new(Cause::PathDelay, Some(Side::Network), MS(0), MS(rtt), frames);
        trip.facts = Facts::RoundTrip { rtt: MS(rtt) };
        c.exchanges = vec![Exchange::new(1, MS(0), MS(rtt), vec![trip])];
        c.path.rtt = Some(MS(shortest));
        Box::new(c)
    }

    /// What is said of the distance of all of them, and how sure that is.
    fn said(connections: &[Box<Connection>]) -> (String, f64) {
        let lost = connections.iter().fold(Nanos::ZERO, |sum, c| sum + (c.end - c.start));
        let example = Example::new(1, 1, Frames::new(0, 1, 2, &[1]), MS(0), MS(90));
        let mut f = Finding::new(Cause::PathDelay, None, lost, example);
        f.confidence = 0.9;
        doubt_the_distance(&mut f, connections);
        (f.text.map_or_else(String::new, String::from), f.confidence)
    }

    #[test]
    fn a_shorter_trip_between_the_same_hosts_tells() {
        let (text, confidence) = said(&[asked(1, 2, 90, 90), asked(2, 2, 20, 20)]);
        assert!(text.contains("those of connection 2") && text.contains("70.0 ms of this"), "{text}");
        assert!((confidence - (0.9 - 70.0 / 110.0 * 0.6)).abs() < 1e-9, "{confidence}");
        // Its own, later.
        let (text, _) = said(&[asked(1, 2, 90, 20)]);
        assert!(text.contains("others of the same connection took 20.0 ms"), "{text}");
    }

    #[test]
    fn others_do_not() {
        // Another host; no longer than hosts are late (rule 38); a clock that does not tell; hardly any of it.
        assert_eq!(said(&[asked(1, 2, 90, 90), asked(2, 3, 20, 20)]).0, "");
        assert_eq!(said(&[asked(1, 2, 35, 35), asked(2, 2, 20, 20)]).0, "");
        let mut coarse = asked(2, 2, 20, 20);
        coarse.quality = Quality::COARSE_CLOCK;
        assert_eq!(said(&[asked(1, 2, 90, 90), coarse]).0, "");
        let mut many: Vec<_> = (2..60).map(|id| asked(id, 2, 20, 20)).collect();
        many.push(asked(60, 2, 90, 90));
        assert_eq!(said(&many).0, "");
    }
}
