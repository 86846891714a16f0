//! Time as folded stacks, which flame graph tools read: `server;cause;side nanoseconds`, one line each, all of it once.

use std::collections::BTreeMap;
use std::io::{self, Write};
use tcpwhy_analysis::{Analysis, Budget, Connection, Part};
use tcpwhy_base::{Cause, Nanos, Side};

/// Where time belongs: the server (and whether a request was on its way), the cause, the side.
type Stack = (String, Cause, Option<&'static str>);

/// Writes the lines, those of one server together. Their sum is that of all budgets: setup and exchanges under the name
/// of the server, time between them under that name and `idle`.
pub fn write(out: &mut impl Write, analysis: &Analysis) -> io::Result<()> {
    let mut stacks: BTreeMap<Stack, Nanos> = BTreeMap::new();
    for c in &analysis.connections {
        add(&mut stacks, c);
    }
    for ((server, cause, side), time) in stacks.iter().filter(|(_, time)| **time > Nanos::ZERO) {
        write!(out, "{server};{}", cause.id())?;
        if let Some(side) = side {
            write!(out, ";{side}")?;
        }
        writeln!(out, " {}", time.0)?;
    }
    Ok(())
}

fn add(stacks: &mut BTreeMap<Stack, Nanos>, c: &Connection) {
    let (busy, idle) = (c.server.to_string(), format!("{} idle", c.server));
    for (part, spans) in c.parts() {
        let server = if matches!(part, Part::Gap(_)) { &idle } else { &busy };
        for span in spans {
            let stack = (server.clone(), span.cause, span.side.map(Side::name));
            *stacks.entry(stack).or_default() += span.duration();
        }
    }
    // Of what is only summed, the side was not kept.
    let mut summed = |server: &String, budget: &Budget| {
        for &(cause, time) in &budget.0 {
            *stacks.entry((server.clone(), cause, Some("in sum"))).or_default() += time;
        }
    };
    summed(&busy, &c.exchanges_omitted.budget);
    summed(&idle, &c.gaps_omitted.budget);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use tcpwhy_analysis::{Frames, Span};

    fn folded(analysis: &Analysis) -> String {
        let mut out = Vec::new();
        write(&mut out, analysis).expect("memory can be written");
        String::from_utf8(out).expect("names are text")
    }

    #[test]
    fn all_time_once() {
        let mut analysis =
            Analysis { connections: vec![Box::new(sample::connection())], ..Analysis::default() };
        let text = folded(&analysis);
        assert!(text.contains("10.0.0.2:25;nagle_delayed_ack;client 40000000\n"), "{text}");
        assert!(text.contains("10.0.0.2:25 idle;client_think;client 15000000\n"), "{text}");
        let sum = |text: &str| -> i64 {
            text.lines()
                .map(|l| l.rsplit(' ').next().and_then(|n| n.parse::<i64>().ok()).expect("a number"))
                .sum()
        };
        let c = &analysis.connections[0];
        let spans: i64 = c.spans().map(|(_, s)| s.duration().0).sum();
        assert_eq!(sum(&text), spans);
        analysis.connections[0].exchanges_omitted.budget.add(Cause::Nagle, Nanos::millis(7));
        let with_more = folded(&analysis);
        assert!(with_more.contains("10.0.0.2:25;nagle;in sum 7000000\n"), "{with_more}");
        assert_eq!(sum(&with_more), spans + 7_000_000);
    }

    /// Stamps that lie as far apart as they can: no sum of them wraps below zero, and no line goes missing.
    #[test]
    fn sums_of_hostile_times_stay_in_range() {
        let mut c = sample::connection();
        let far =
            Span::new(Cause::ServerThink, Some(Side::Server), Nanos::ZERO, Nanos::MAX, Frames::default());
        c.exchanges.iter_mut().for_each(|x| x.spans = vec![far.clone()]);
        [(); 2].iter().for_each(|()| c.exchanges_omitted.budget.add(Cause::Nagle, Nanos::MAX));
        let other = Box::new(c.clone());
        let text = folded(&Analysis { connections: vec![Box::new(c), other], ..Analysis::default() });
        for stack in ["server_think;server", "nagle;in sum"] {
            assert!(text.contains(&format!("10.0.0.2:25;{stack} {}\n", i64::MAX)), "{text}");
        }
    }

    #[test]
    fn nothing_gives_nothing() {
        assert_eq!(folded(&Analysis::default()), "");
    }
}
