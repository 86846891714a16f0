//! `tcpwhy watch`: asks the kernel for its sockets again and again, and says where their time goes.

#[cfg(feature = "bpf")]
mod events;
mod eye;
mod metrics;
mod scrape;
#[cfg(feature = "tui")]
mod screen;
#[cfg(feature = "parquet")]
mod tables;

use crate::args::watch::Watch;
use crate::cmd;
use crate::failure::{Exit, say};
use crate::output::Output;
use eye::Eye;
use metrics::Metrics;
use scrape::Scrape;
use std::fs;
#[cfg(feature = "tui")]
use std::io::IsTerminal as _;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
#[cfg(feature = "parquet")]
use tables::Tables;
use tcpwhy_base::Nanos;
use tcpwhy_live::{Connection, Ended, Listener, Process, Snapshot, Split, control_groups};
use tcpwhy_report::count;
use tcpwhy_report::watch::{self, Layout, View};

/// Watches this host, or another network namespace.
pub(crate) fn run(args: &Watch) -> anyhow::Result<Exit> {
    #[cfg(feature = "bpf")]
    if args.events {
        return events::run(args, &*cmd::end_signal()?);
    }
    // Before anything is asked: a folder that cannot be written to.
    #[cfg(feature = "parquet")]
    let tables = args.parquet.as_deref().map(Tables::open).transpose()?;
    #[cfg(feature = "parquet")]
    let keeps = tables.is_some() || args.metrics.is_some();
    #[cfg(not(feature = "parquet"))]
    let keeps = args.metrics.is_some();
    if let Some(why) = nobody(args) {
        say(&why);
    }
    let mut eye = Eye::open(args.netns.as_deref(), args.sampled)?;
    #[cfg(feature = "bpf")]
    if args.all_events {
        eye.listen_to_all();
    }
    // What stops a service, or `timeout`, is to leave what was seen, too; and a terminal is put back whatever ends it.
    let stop = cmd::end_signal()?;
    #[cfg(feature = "tui")]
    if !args.once && !args.json && !args.jsonl && !keeps && io::stdout().is_terminal() {
        return screen::run(args, &mut eye, &stop);
    }
    if keeps {
        let kept = Kept {
            scrape: args.metrics.map(Scrape::open).transpose()?,
            #[cfg(feature = "parquet")]
            tables,
        };
        return keep(args, &mut eye, &stop, kept);
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

/// Where each interval goes.
struct Kept {
    scrape: Option<Scrape>,
    #[cfg(feature = "parquet")]
    tables: Option<Tables>,
}

/// Metrics, tables, and lines, as far as they are wanted, until somebody ends it.
fn keep(args: &Watch, eye: &mut Eye, stop: &AtomicBool, kept: Kept) -> anyhow::Result<Exit> {
    #[cfg(feature = "parquet")]
    let mut tables = kept.tables;
    let mut metrics = kept.scrape.as_ref().map(|_| Metrics::new(eye.has_events()));
    let mut out = Output::open(None, true)?;
    let mut written = Ok(());
    let mut over = false;
    while written.is_ok() && !over {
        let mut ended = Vec::new();
        eye.watch(args.interval, stop, |c| ended.extend(is_chosen(args, c).then(|| c.clone())))?;
        over = args.once || stop.load(Relaxed);
        let mut snapshot = eye.all();
        snapshot.connections.retain(|c| is_chosen(args, c));
        snapshot.listeners.retain(|l| listens(args, l));
        if let (Some(metrics), Some(scrape)) = (&mut metrics, &kept.scrape) {
            metrics.add(&snapshot, &ended);
            scrape.set(metrics.text());
        }
        if args.jsonl {
            let open = over.then_some(&snapshot.connections).into_iter().flatten();
            written = ended.iter().chain(open).try_for_each(|c| watch::line(&mut out, c));
            written = written.and_then(|()| out.flush());
        }
        #[cfg(feature = "parquet")]
        if let Some(tables) = &mut tables {
            tables.add(&ended, snapshot, eye.now()).map_err(helped)?;
        }
    }
    #[cfg(feature = "parquet")]
    tables.map(Tables::finish).transpose().map_err(helped)?;
    out.finish(written.map_err(Into::into))?;
    Ok(if stop.load(Relaxed) { Exit::Interrupted } else { Exit::Done })
}

/// What was written whole stays.
#[cfg(feature = "parquet")]
fn helped(e: anyhow::Error) -> anyhow::Error {
    anyhow::anyhow!(
        "{e:#}; put that right: the tables hold what was finished before, and the same command adds to them"
    )
}

/// How an answer is laid out there.
fn layout(args: &Watch, out: &Output) -> Layout {
    Layout { width: out.width.unwrap_or(100), top: args.top, verbose: args.verbose }
}

/// An answer after each interval, or what the options ask for instead.
fn print(args: &Watch, eye: &mut Eye, stop: &AtomicBool, out: &mut Output) -> anyhow::Result<()> {
    let layout = layout(args, out);
    loop {
        let (mut lines, mut gone) = (Vec::new(), Ended::default());
        eye.watch(args.interval, stop, |ended| match args.jsonl {
            true if is_wanted(args, ended, &ended.total) => drop(watch::line(&mut lines, ended)),
            true => {}
            false => keep_ended(args, &mut gone, ended),
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
            let view = view(args, eye, gone);
            if over {
                watch::write(out, &view)?;
            }
        } else {
            watch::text(out, &view(args, eye, gone), &layout)?;
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

/// Counts a connection that is gone, as far as it was asked for.
fn keep_ended(args: &Watch, gone: &mut Ended, ended: &Connection) {
    if is_wanted(args, ended, &ended.interval) { gone.add(ended) } else { gone.hide() }
}

/// The interval that has just ended, as far as it was asked for, and what is gone.
fn view(args: &Watch, eye: &mut Eye, gone: Ended) -> View {
    let (snapshot, unseen) = (Snapshot { ended: gone, ..eye.all() }, eye.unseen());
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

/// Why nothing, or not all, is to be seen of the processes that were asked for.
fn nobody(args: &Watch) -> Option<String> {
    if let Some(pid) = args.pid {
        if !Path::new(&format!("/proc/{pid}")).exists() {
            return Some(format!("there is no process {pid} now: nothing is listed until there is one"));
        }
        let hidden = is_hidden(pid).then(|| format!("the sockets of process {pid}"));
        return hidden.map(|what| for_root(&what));
    }
    let group = args.cgroup.as_ref()?;
    let (all, hidden) = count_in(group);
    match (all, hidden) {
        (0, _) => Some(format!(
            "no process is in a control group {group} now: nothing is listed until there is one"
        )),
        (_, 0) => None,
        _ => Some(for_root(&format!("the sockets of {hidden} of {} in {group}", count(all, "process")))),
    }
}

fn for_root(what: &str) -> String {
    format!("{what} can be seen by root alone (CAP_SYS_PTRACE): sudo tcpwhy watch, or choose by --port")
}

/// Whether this user may not see which sockets a process has.
fn is_hidden(pid: u32) -> bool {
    fs::read_dir(format!("/proc/{pid}/fd")).is_err_and(|e| e.kind() == io::ErrorKind::PermissionDenied)
}

/// How many processes of this host are in that control group, and of how many of them the sockets are hidden.
fn count_in(group: &str) -> (u64, u64) {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let those = pids.filter(|&pid| control_groups(pid).iter().any(|of| is_below(of, group)));
    those.fold((0, 0), |(all, hidden), pid| (all + 1, hidden + u64::from(is_hidden(pid))))
}

/// Whether a control group is `wanted` or below it; that may be a path below `/sys/fs/cgroup`, where
/// hierarchies of the first version have a directory each.
fn is_below(group: &str, wanted: &str) -> bool {
    let bare = wanted.strip_prefix("/sys/fs/cgroup").unwrap_or(wanted).trim_matches('/');
    let of_first = bare.split_once('/').map_or("", |(_, rest)| rest);
    let group = group.trim_matches('/');
    let below =
        |path: &str| group == path || group.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
    below(bare) || (wanted.starts_with("/sys/fs/cgroup/") && !of_first.is_empty() && below(of_first))
}

/// What is not seen where so many processes are hidden.
pub(crate) fn which_sockets(hidden: u32) -> String {
    let have = if hidden == 1 { "has" } else { "have" };
    format!("which sockets {} of other users {have}", count(hidden.into(), "process"))
}

#[cfg(test)]
mod tests {
    use super::{is_below, which_sockets};

    #[test]
    fn one_process_has_its_sockets() {
        assert_eq!(which_sockets(1), "which sockets 1 process of other users has");
        assert_eq!(which_sockets(2), "which sockets 2 processes of other users have");
    }

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
