//! `tcpwhy check`: looks at a host for a while, and says what is wrong with it.

use crate::args::check::{Check, Known, known};
use crate::failure::{Exit, Usage};
use crate::output::Output;
use crate::{cmd, shown};
use anyhow::{Context as _, anyhow};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tcpwhy_base::Nanos;
#[cfg(feature = "bpf")]
use tcpwhy_live::Probe;
use tcpwhy_live::check::{Audit, Counters, Fault, Settings, groups};
use tcpwhy_live::{Diag, Links, LiveError, Process, Processes, Rounds, proc_text, processor_time, within};
use tcpwhy_report::check::{Checked, Line, json, text};
use tcpwhy_report::watch::Unseen;

/// Sockets are looked at so often, or as seldom as needed for it to take at most one part in so many of the time.
const OFTEN: Duration = Duration::from_millis(20);
const PART: u32 = 20;
const TCP_MEM: &str = "net/ipv4/tcp_mem";
/// How often counters are read.
const COUNT: Duration = Duration::from_millis(200);

/// Within this a new socket is listed, also where looking is rationed and the machine busy.
#[cfg(feature = "bpf")]
const EARLY: Nanos = Nanos::secs(1);

/// Checks this host, or another network namespace.
pub(crate) fn run(args: &Check) -> anyhow::Result<Exit> {
    let known = acknowledged(args)?;
    let stop = cmd::end_signal()?;
    let mut out = Output::open(None, args.json)?;
    let start = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Of the whole host: other network namespaces do not show it.
    let memory = proc_text(&format!("sys/{TCP_MEM}"));
    let seen = within(args.netns.as_deref(), || look(args.watch, memory, &stop))?;
    let lines: Vec<Line> = seen
        .faults
        .into_iter()
        .map(|fault| Line { acknowledged: known.iter().any(|k| k.is(fault.id, &fault.subject)), fault })
        .collect();
    let held = |id: &String| lines.iter().any(|l| !l.acknowledged && (id == "any" || l.fault.id == id));
    let fails = args.fail_if.iter().any(held);
    let start = Nanos(i64::try_from(start.as_nanos()).unwrap_or_default());
    let unseen = unseen(args, &seen.missing, seen.hidden);
    let checked = Checked { lines, watched: seen.watched, start, unseen };
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

/// What was seen.
struct Seen {
    faults: Vec<Fault>,
    watched: Nanos,
    /// Processes whose files are hidden.
    hidden: u32,
    /// Why some of it could not be looked at.
    missing: Vec<String>,
}

/// Which buffers programs set: with privileges alone.
struct Buffers {
    #[cfg(feature = "bpf")]
    probe: Option<Probe>,
    /// Of sockets that no list had yet.
    #[cfg(feature = "bpf")]
    early: Vec<Ask>,
    missing: Vec<String>,
}

/// A program asked for a buffer.
#[cfg(feature = "bpf")]
struct Ask {
    process: Process,
    inode: u32,
    send: bool,
    bytes: u32,
    time: Nanos,
}

impl Buffers {
    #[cfg(feature = "bpf")]
    fn open() -> Buffers {
        match Probe::open() {
            Ok(probe) => Buffers { missing: probe.missing.clone(), probe: Some(probe), early: Vec::new() },
            Err(why) => Buffers { probe: None, missing: vec![why], early: Vec::new() },
        }
    }

    #[cfg(not(feature = "bpf"))]
    fn open() -> Buffers {
        Buffers { missing: vec!["this program was built without kernel events (feature bpf)".into()] }
    }

    #[cfg(feature = "bpf")]
    fn look(&mut self, audit: &mut Audit, now: Nanos) {
        let Some(probe) = &mut self.probe else { return };
        match probe.locks() {
            Ok(locks) => audit.locked(locks),
            Err(why) if self.missing.contains(&why) => {}
            Err(why) => self.missing.push(why),
        }
        for asked in probe.asked() {
            // One whose process is gone, or that is no socket of TCP, is nobody's here.
            let file = format!("/proc/{}/fd/{}", asked.pid, asked.fd);
            let link = std::fs::read_link(file).unwrap_or_default();
            let number = |l: &str| l.strip_prefix("socket:[")?.strip_suffix(']')?.parse::<u32>().ok();
            let inode = link.to_str().and_then(number);
            let Some(inode) = inode else { continue };
            let name = std::fs::read_to_string(format!("/proc/{}/comm", asked.pid)).unwrap_or_default();
            let name = shown::name(name.trim_end()).into_owned();
            let process = Process { pid: asked.pid, name, ..Process::default() };
            self.early.push(Ask { process, inode, send: asked.send, bytes: asked.bytes, time: now });
        }
        let listed: HashSet<u32> = audit.table().inodes().collect();
        self.take(audit, &listed);
        // Who is in no list by now is no socket of TCP here.
        self.early.retain(|ask| now - ask.time < EARLY);
    }

    /// Counts what was asked for sockets of a list.
    #[cfg(feature = "bpf")]
    fn take(&mut self, audit: &mut Audit, listed: &HashSet<u32>) {
        for ask in self.early.extract_if(.., |ask| listed.contains(&ask.inode)) {
            audit.asked(&ask.process, ask.send, ask.bytes.into(), ask.time);
        }
    }

    #[cfg(not(feature = "bpf"))]
    fn take(&mut self, _: &mut Audit, _: &HashSet<u32>) {}

    #[cfg(not(feature = "bpf"))]
    fn look(&mut self, _: &mut Audit, _: Nanos) {}
}

/// Looks for so long, in this thread's network namespace.
fn look(time: Nanos, memory: Option<String>, stop: &AtomicBool) -> Result<Seen, LiveError> {
    // To attach takes longer where others attach, too: that is no time in which it looks.
    let mut buffers = Buffers::open();
    let links = Links::open().ok();
    let (start, mut sockets) = (Instant::now(), Vec::new());
    let now = || Nanos(i64::try_from(start.elapsed().as_nanos()).unwrap_or(i64::MAX));
    let mut rounds = Rounds::open(PART)?;
    let settings = Settings::read(|name| match name {
        TCP_MEM => memory.clone(),
        _ => proc_text(&format!("sys/{name}")),
    });
    let mut audit = Audit::new(settings, counters(), now());
    let mut processes = Processes::default();
    let until = start + Duration::from_nanos(time.0.unsigned_abs());
    let mut counted = start;
    loop {
        let (began, used) = (Instant::now(), processor_time());
        let over = stop.load(Relaxed) || began >= until;
        // What is counted has happened when sockets are listed, which show at whom.
        let counts = (over || counted.elapsed() >= COUNT).then(|| (counters(), now()));
        if counts.is_some() {
            rounds.want_listeners();
        }
        let rationed = rounds.look(&mut sockets)?;
        audit.sockets(&sockets, now());
        let wait = ((processor_time() - used).saturating_sub(rationed) * PART).max(OFTEN);
        processes.look_for(audit.table().inodes());
        audit.table().name(|inode| {
            let process = processes.of(inode)?;
            Some(Process { name: shown::name(&process.name).into_owned(), ..process.clone() })
        });
        if let Some((counts, time)) = counts {
            audit.counted(counts, pages(), time);
            audit.memory_of(groups(processes.pids()), now());
            buffers.look(&mut audit, now());
            if let Some(devices) = links.as_ref().and_then(|l| l.devices().ok()) {
                audit.devices(devices, &proc_text("stat").unwrap_or_default(), now());
            }
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
    Diag::open()?.all(&mut sockets)?;
    audit.ports(&sockets);
    buffers.take(&mut audit, &sockets.iter().map(|s| s.inode).collect());
    let (faults, watched) = audit.finish();
    Ok(Seen { faults, watched, hidden: processes.hidden, missing: buffers.missing })
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

fn unseen(args: &Check, missing: &[String], hidden: u32) -> Vec<Unseen> {
    let mut out = vec![Unseen {
        what: "faults that did not happen while it looked".into(),
        needs: "a longer --watch; counters from before are not evidence of now".into(),
    }];
    out.extend(missing.iter().map(|why| Unseen {
        what: "buffers that programs set, and how much they asked for".into(),
        needs: why.clone(),
    }));
    if hidden > 0 {
        out.push(Unseen {
            what: crate::cmd::watch::which_sockets(hidden),
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
