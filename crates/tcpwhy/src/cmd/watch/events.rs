//! `tcpwhy watch --events`: a line for each wait, as the kernel sees it end.

use super::is_whose;
use crate::args::watch::Watch;
use crate::failure::{Exit, say};
use crate::output::Output;
use crate::shown;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tcpwhy_base::{Nanos, Timer};
use tcpwhy_live::{Clock, Events, Happened, Limit, LiveError, What, namespace_number};

/// Between two looks: soon enough for who reads along.
const LOOK: Duration = Duration::from_millis(50);
/// Shorter waits are many where nothing is wrong, and are not shown unless asked for.
const LONG: Nanos = Nanos::millis(10);

/// Prints lines until somebody ends it.
pub(super) fn run(args: &Watch, stop: &AtomicBool) -> anyhow::Result<Exit> {
    let mut events =
        Events::open(namespace_number(args.netns.as_deref())?).map_err(|why| LiveError::Missing {
            what: "cannot see kernel events".into(),
            why,
            advice: "without --events the waits are estimated",
        })?;
    for why in &events.missing {
        say(&format!("without some kernel events, because {why}"));
    }
    let mut out = Output::open(None, false)?;
    let mut lost = 0;
    loop {
        // Asked before the last look: what was there then is shown.
        let over = stop.load(Relaxed);
        let clock = Clock::read();
        while let Some(event) = events.next() {
            if let Some(line) = line(&event, &clock, args.slower_than.unwrap_or(LONG))
                && is_wanted(args, &event)
            {
                writeln!(out, "{line}")?;
            }
        }
        out.flush()?;
        let now = events.lost();
        if now > lost {
            say(&format!("{} events found no room and are not shown", now - lost));
            lost = now;
        }
        if over {
            out.finish(Ok(()))?;
            return Ok(Exit::Interrupted);
        }
        std::thread::sleep(LOOK);
    }
}

fn is_wanted(args: &Watch, event: &Happened) -> bool {
    args.port.is_none_or(|p| event.local.port == p || event.remote.port == p)
        && is_whose(args, event.process.as_ref())
}

/// One line; `None` of what is no wait, or one of no more than `least`.
fn line(event: &Happened, clock: &Clock, least: Nanos) -> Option<String> {
    let said = match event.what {
        What::Write { .. }
        | What::Read { .. }
        | What::State(_)
        | What::Held(_)
        | What::Timer(Timer::DelayedAck) => {
            return None;
        }
        What::Blocked { since, .. } if event.time - since <= least => return None,
        What::Blocked { since, asleep, limit } => {
            let did = if asleep { "blocked" } else { "was refused for" };
            let by = if asleep { "on" } else { "by" };
            let why = match limit {
                Limit::Buffer => "window and cwnd had room",
                Limit::Window => "it held what the receive window of the other end has no room for",
                Limit::Network => "it held what waits for the congestion window, or below TCP",
                Limit::Writer => "there was room before it wrote again",
            };
            let time = event.time - since;
            format!("{did} {time} {by} a full send buffer to {}; {why}", event.remote)
        }
        What::Timer(Timer::Retransmission) => format!("retransmission timer fired; to {}", event.remote),
        What::Timer(Timer::Probe) => format!("timer of a tail loss probe fired; to {}", event.remote),
    };
    // Of a timer nobody knows whose it is: its end of the connection says more than nothing.
    let who = match &event.process {
        Some(p) => format!("{}({})", shown::name(&p.name), p.pid),
        None => event.local.to_string(),
    };
    let moment = clock.epoch(event.time).utc();
    Some(format!("{} {who} {said}", moment.split_once(' ').map_or("", |(_, time)| time)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpwhy_base::Endpoint;
    use tcpwhy_live::Process;

    #[test]
    fn waits_are_sentences() {
        let ms = Nanos::millis;
        let end = |port| Endpoint { ip: [10, 0, 0, 7].into(), port };
        let process = Some(Process { pid: 812, name: "nginx".into(), ..Process::default() });
        let event = |what| Happened {
            time: ms(500),
            local: end(40_000),
            remote: end(443),
            process: process.clone(),
            thread: 0,
            what,
        };
        let blocked = |asleep, limit| event(What::Blocked { since: ms(9), asleep, limit });
        let said = |event: &Happened| line(event, &Clock::read(), LONG).map(|l| l[13..].to_owned());
        assert_eq!(
            said(&blocked(true, Limit::Buffer)).unwrap(),
            "nginx(812) blocked 491 ms on a full send buffer to 10.0.0.7:443; window and cwnd had room"
        );
        assert!(said(&blocked(false, Limit::Window)).unwrap().contains("was refused for 491 ms by a full"));
        assert_eq!(said(&event(What::Blocked { since: ms(490), asleep: true, limit: Limit::Buffer })), None);
        let timer = Happened { process: None, ..event(What::Timer(Timer::Retransmission)) };
        assert_eq!(said(&timer).unwrap(), "10.0.0.7:40000 retransmission timer fired; to 10.0.0.7:443");
    }
}
