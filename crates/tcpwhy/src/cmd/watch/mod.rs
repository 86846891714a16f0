//! `tcpwhy watch`: asks the kernel for its sockets again and again, and says where their time goes.

#[cfg(feature = "bpf")]
mod events;
mod eye;
mod metrics;
mod scrape;
#[cfg(feature = "tui")]
mod screen;

use crate::args::watch::Watch;
use crate::cmd;
use crate::failure::Exit;
use crate::output::Output;
use eye::Eye;
use metrics::Metrics;
use scrape::Scrape;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tcpwhy_base::Nanos;
use tcpwhy_live::{Connection, Listener, Split};
use tcpwhy_report::watch::{self, Layout, View};

/// Watches this host, or another network namespace.
pub(crate) fn run(args: &Watch) -> anyhow::Result<Exit> {
    #[cfg(feature = "bpf")]
    if args.events {
        return events::run(args, &*cmd::stop_signal()?);
    }
    let mut eye = Eye::open(args.netns.as_deref(), args.sampled)?;
    let stop = cmd::stop_signal()?;
    if let Some(address) = args.metrics {
        return serve(args, &mut eye, &stop, &Scrape::open(address)?);
    }
    #[cfg(feature = "tui")]
    if !args.once && !args.json && !args.jsonl && std::io::IsTerminal::is_terminal(&std::io::stdout()) {
        return screen::run(args, &mut eye, &stop);
    }
    let mut out = Output::open(None, args.json || args.jsonl)?;
    let written = print(args, &mut eye, &stop, &mut out);
    let interrupted = stop.load(Relaxed);
    match written {
        Ok(()) => out.finish(Ok(()))?,
        Err(e) => out.finish(Err(e))?,
    }
    Ok(if interrupted { Exit::Interrupted } else { Exit::Done })
}

/// Metrics, until somebody ends it; and lines, if those are wanted.
fn serve(args: &Watch, eye: &mut Eye, stop: &AtomicBool, scrape: &Scrape) -> anyhow::Result<Exit> {
    let mut metrics = Metrics::new(eye.has_events());
    let mut out = Output::open(None, true)?;
    let mut written = Ok(());
    while written.is_ok() && !stop.load(Relaxed) {
        let mut ended = Vec::new();
        eye.watch(args.interval, stop, |c| ended.extend(is_chosen(args, c).then(|| c.clone())))?;
        let mut snapshot = eye.all();
        snapshot.connections.retain(|c| is_chosen(args, c));
        snapshot.listeners.retain(|l| listens(args, l));
        metrics.add(&snapshot, &ended);
        scrape.set(metrics.text());
        if args.jsonl {
            let open = stop.load(Relaxed).then_some(&snapshot.connections).into_iter().flatten();
            written = ended.iter().chain(open).try_for_each(|c| watch::line(&mut out, c));
            written = written.and_then(|()| out.flush());
        }
    }
    out.finish(written.map_err(Into::into))?;
    Ok(Exit::Interrupted)
}

/// An answer after each interval, or what the options ask for instead.
fn print(args: &Watch, eye: &mut Eye, stop: &AtomicBool, out: &mut Output) -> anyhow::Result<()> {
    let layout = Layout { width: out.width.unwrap_or(100), top: args.top, verbose: args.verbose };
    loop {
        let mut lines = Vec::new();
        eye.watch(args.interval, stop, |ended| {
            if args.jsonl && is_wanted(args, ended, &ended.total) {
                let _ = watch::line(&mut lines, ended);
            }
        })?;
        let over = args.once || stop.load(Relaxed);
        if args.jsonl {
            out.write_all(&lines)?;
            if over {
                for c in eye.all().connections.iter().filter(|c| is_wanted(args, c, &c.total)) {
                    watch::line(out, c)?;
                }
            }
        } else if args.json {
            let view = view(args, eye);
            if over {
                watch::write(out, &view)?;
            }
        } else {
            watch::text(out, &view(args, eye), &layout)?;
            if !over {
                writeln!(out)?;
            }
        }
        out.flush()?;
        if over {
            return Ok(());
        }
    }
}

/// The interval that has just ended, as far as it was asked for.
fn view(args: &Watch, eye: &mut Eye) -> View {
    let (snapshot, unseen) = (eye.all(), eye.unseen());
    View::new(eye.has_events(), snapshot, |c| is_wanted(args, c, &c.interval), |l| listens(args, l), unseen)
}

/// Whether a connection was asked for by whose it is, and with whom.
fn is_chosen(args: &Watch, c: &Connection) -> bool {
    let port = args.port.is_none_or(|p| c.sample.local.port == p || c.sample.peer.port == p);
    port && args.pid.is_none_or(|pid| c.process.as_ref().is_some_and(|p| p.pid == pid))
}

/// Whether a connection was asked for, by its time in `split`, too.
fn is_wanted(args: &Watch, c: &Connection, split: &Split) -> bool {
    let all = split.total();
    let cause = args.cause.is_none_or(|cause| {
        let time = split.time(|c| c == cause);
        time > Nanos::ZERO && time.times(20) >= all
    });
    let lost = split.time(|cause| cause.class() == tcpwhy_base::Class::Tcp);
    is_chosen(args, c) && cause && args.slower_than.is_none_or(|limit| lost > limit)
}

fn listens(args: &Watch, l: &Listener) -> bool {
    args.port.is_none_or(|p| l.local.port == p)
        && args.pid.is_none_or(|pid| l.process.as_ref().is_some_and(|p| p.pid == pid))
}
