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
#[cfg(feature = "tui")]
use std::io::{self, IsTerminal as _};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tcpwhy_base::Nanos;
use tcpwhy_live::{Connection, Listener, Process, Split, control_groups};
use tcpwhy_report::watch::{self, Layout, View};

/// Watches this host, or another network namespace.
pub(crate) fn run(args: &Watch) -> anyhow::Result<Exit> {
    #[cfg(feature = "bpf")]
    if args.events {
        return events::run(args, &*cmd::stop_signal()?);
    }
    let mut eye = Eye::open(args.netns.as_deref(), args.sampled)?;
    // A terminal is put back whatever ends it.
    #[cfg(feature = "tui")]
    if !args.once && !args.json && !args.jsonl && args.metrics.is_none() && io::stdout().is_terminal() {
        return screen::run(args, &mut eye, &*cmd::end_signal()?);
    }
    let stop = cmd::stop_signal()?;
    if let Some(address) = args.metrics {
        return serve(args, &mut eye, &stop, &Scrape::open(address)?);
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
    port && is_whose(args, c.process.as_ref())
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
    args.port.is_none_or(|p| l.local.port == p) && is_whose(args, l.process.as_ref())
}

/// Whether a process was asked for, by number and control group.
fn is_whose(args: &Watch, process: Option<&Process>) -> bool {
    let pid = process.map(|p| p.pid);
    args.pid.is_none_or(|wanted| pid == Some(wanted))
        && args.cgroup.as_ref().is_none_or(|group| {
            pid.is_some_and(|pid| control_groups(pid).iter().any(|of| is_below(of, group)))
        })
}

/// Whether a control group is `wanted` or below it; that may be a path below `/sys/fs/cgroup`, where hierarchies of the first
/// version have a directory each.
fn is_below(group: &str, wanted: &str) -> bool {
    let bare = wanted.strip_prefix("/sys/fs/cgroup").unwrap_or(wanted).trim_matches('/');
    let of_first = bare.split_once('/').map_or("", |(_, rest)| rest);
    let group = group.trim_matches('/');
    let below =
        |path: &str| group == path || group.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
    below(bare) || (wanted.starts_with("/sys/fs/cgroup/") && !of_first.is_empty() && below(of_first))
}

#[cfg(test)]
mod tests {
    use super::is_below;

    #[test]
    fn control_groups_hold_those_below() {
        for (group, wanted, held) in [
            ("/system.slice/nginx.service", "/system.slice", true),
            ("/system.slice/nginx.service", "system.slice/nginx.service/", true),
            ("/system.slice/nginx.service", "/sys/fs/cgroup/system.slice", true),
            ("/docker/0123", "/sys/fs/cgroup/memory/docker", true),
            ("/system.slice2/a", "/system.slice", false),
            ("/a", "/a/b", false),
            ("/b/c", "/a/b", false),
        ] {
            assert_eq!(is_below(group, wanted), held, "{group} {wanted}");
        }
    }
}
