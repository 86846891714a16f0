//! `tcpwhy watch`: asks the kernel for its sockets again and again, and says where their time goes.

#[cfg(feature = "bpf")]
mod events;
mod eye;
#[cfg(feature = "tui")]
mod screen;

use crate::args::watch::Watch;
use crate::cmd;
use crate::failure::Exit;
use crate::output::Output;
use eye::Eye;
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

/// Whether a connection was asked for, by its time in `split`.
fn is_wanted(args: &Watch, c: &Connection, split: &Split) -> bool {
    let all = split.total();
    let port = args.port.is_none_or(|p| c.sample.local.port == p || c.sample.peer.port == p);
    let pid = args.pid.is_none_or(|pid| c.process.as_ref().is_some_and(|p| p.pid == pid));
    let cause = args.cause.is_none_or(|cause| {
        let time = split.time(|c| c == cause);
        time > Nanos::ZERO && time.times(20) >= all
    });
    let lost = split.time(|cause| cause.class() == tcpwhy_base::Class::Tcp);
    port && pid && cause && args.slower_than.is_none_or(|limit| lost > limit)
}

fn listens(args: &Watch, l: &Listener) -> bool {
    args.port.is_none_or(|p| l.local.port == p)
        && args.pid.is_none_or(|pid| l.process.as_ref().is_some_and(|p| p.pid == pid))
}
