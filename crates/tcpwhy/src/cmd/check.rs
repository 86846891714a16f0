//! `tcpwhy check`: looks at a host for a while, and says what is wrong with it.

use crate::args::check::{Check, Known, known};
use crate::failure::{Exit, Usage};
use crate::output::Output;
use crate::{cmd, shown};
use anyhow::{Context as _, anyhow};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tcpwhy_base::Nanos;
use tcpwhy_live::check::{Audit, Counters, Fault, Settings};
use tcpwhy_live::{Diag, LiveError, Process, Processes, proc_text, processor_time, within};
use tcpwhy_report::check::{Checked, Line, json, text};
use tcpwhy_report::watch::Unseen;

/// Sockets are looked at so often, or as seldom as needed for it to take at most one part in so many of the time.
const OFTEN: Duration = Duration::from_millis(20);
const PART: u32 = 20;
/// How often counters are read.
const COUNT: Duration = Duration::from_millis(200);

/// Checks this host, or another network namespace.
pub(crate) fn run(args: &Check) -> anyhow::Result<Exit> {
    let known = acknowledged(args)?;
    let stop = cmd::stop_signal()?;
    let mut out = Output::open(None, args.json)?;
    let start = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (faults, watched, hidden) = within(args.netns.as_deref(), || look(args.watch, &stop))?;
    let lines: Vec<Line> = faults
        .into_iter()
        .map(|fault| Line { acknowledged: known.iter().any(|k| k.is(fault.id, &fault.subject)), fault })
        .collect();
    let held = |id: &String| lines.iter().any(|l| !l.acknowledged && (id == "any" || l.fault.id == id));
    let fails = args.fail_if.iter().any(held);
    let start = Nanos(i64::try_from(start.as_nanos()).unwrap_or_default());
    let checked = Checked { lines, watched, start, unseen: unseen(args, hidden) };
    let written = if args.json {
        json(&mut out, &checked)
    } else {
        let width = out.width.unwrap_or(100);
        text(&mut out, &checked, width, args.verbose)
    };
    out.finish(written.map_err(Into::into))?;
    Ok(match (stop.load(Relaxed), fails) {
        (true, _) => Exit::Interrupted,
        (_, true) => Exit::Held,
        _ => Exit::Done,
    })
}

/// What is known, from the options and the file.
fn acknowledged(args: &Check) -> anyhow::Result<Vec<Known>> {
    let mut all = args.acknowledge.clone();
    let Some(path) = &args.acknowledged else { return Ok(all) };
    let lines = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    for (n, line) in lines.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if !line.is_empty() {
            let place = || Usage(format!("{}:{}: {line}: ", path.display(), n + 1));
            all.push(known(line).map_err(|e| anyhow!(Usage(format!("{}{e}", place()))))?);
        }
    }
    Ok(all)
}

/// Looks for so long, in this thread's network namespace: faults, how long it was, and processes whose files are hidden.
fn look(time: Nanos, stop: &AtomicBool) -> Result<(Vec<Fault>, Nanos, u32), LiveError> {
    let (start, mut sockets) = (Instant::now(), Vec::new());
    let now = || Nanos(i64::try_from(start.elapsed().as_nanos()).unwrap_or(i64::MAX));
    let mut diag = Diag::open()?;
    let settings = Settings::read(|name| proc_text(&format!("sys/{name}")));
    let mut audit = Audit::new(settings, counters(), now());
    let mut processes = Processes::default();
    let until = start + Duration::from_nanos(time.0.unsigned_abs());
    let mut counted = start;
    loop {
        let (began, used) = (Instant::now(), processor_time());
        diag.sockets(&mut sockets)?;
        audit.sockets(&sockets, now());
        let wait = ((processor_time() - used) * PART).max(OFTEN);
        processes.look_for(audit.table().inodes());
        audit.table().name(|inode| {
            let process = processes.of(inode)?;
            Some(Process { name: shown::name(&process.name).into_owned(), ..process.clone() })
        });
        let over = stop.load(Relaxed) || Instant::now() >= until;
        if over || counted.elapsed() >= COUNT {
            audit.counted(counters(), pages(), now());
            counted = Instant::now();
        }
        if over {
            break;
        }
        // A signal is to be noticed soon, however seldom one looks.
        let next = (began + wait).min(until);
        while !stop.load(Relaxed) && Instant::now() < next {
            std::thread::sleep(next.saturating_duration_since(Instant::now()).min(Duration::from_millis(50)));
        }
    }
    diag.all(&mut sockets)?;
    audit.ports(&sockets);
    let (faults, watched) = audit.finish();
    Ok((faults, watched, processes.hidden))
}

fn counters() -> Counters {
    let mut all = Counters::default();
    for name in ["thread-self/net/netstat", "thread-self/net/snmp"] {
        all.add(&proc_text(name).unwrap_or_default());
    }
    all
}

/// Pages that TCP holds, on the whole host.
fn pages() -> u64 {
    let text = proc_text("thread-self/net/sockstat").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("TCP:"));
    let mut words = line.unwrap_or_default().split_whitespace().skip_while(|w| *w != "mem").skip(1);
    words.next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

fn unseen(args: &Check, hidden: u32) -> Vec<Unseen> {
    let mut out = vec![Unseen {
        what: "faults that did not happen while it looked".into(),
        needs: "a longer --watch; counters from before are not evidence of now".into(),
    }];
    if hidden > 0 {
        out.push(Unseen {
            what: format!("which sockets {hidden} processes of other users have"),
            needs: "CAP_SYS_PTRACE or root".into(),
        });
    }
    if args.netns.is_none() {
        out.push(Unseen {
            what: "other network namespaces, such as those of containers".into(),
            needs: "--netns, with CAP_SYS_ADMIN".into(),
        });
    }
    out
}
