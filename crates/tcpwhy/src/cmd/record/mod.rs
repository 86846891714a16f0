//! `tcpwhy record`: packets of this host and what its kernel says of their sockets, in one file.

mod remarks;
mod ring;
mod slow;
mod source;
mod tape;
mod to;

use crate::args::record::Record;
use crate::cmd::{self, PassedOn};
use crate::failure::{Exit, Usage, say};
use crate::shown;
use anyhow::{Context as _, anyhow, bail};
use ring::Ring;
use source::{Counts, Source};
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tape::Tape;
use tcpwhy_library::{Filter, packets::Writer};
use to::To;

/// Between two looks: the rings hold far more than passes meanwhile.
const LOOK: Duration = Duration::from_millis(10);

/// How it ended.
enum End {
    /// The time is over.
    Over,
    /// Somebody wanted an end.
    Stopped,
    /// An exchange took too long.
    Slow,
    /// The command has ended.
    Command(ExitStatus),
}

/// Records until somebody or something ends it.
pub(crate) fn run(args: &Record) -> anyhow::Result<Exit> {
    if args.output.as_os_str() == "-" {
        bail!(Usage("-o -: name a file; `tcpwhy explain` reads it".into()));
    }
    if let Some(file) = args.netns.as_deref().filter(|_| !args.command.is_empty()) {
        bail!(Usage(inside(file)));
    }
    let filter = Filter::parse(&args.filter.join(" ")).map_err(|e| Usage(format!("FILTER: {e}")))?;
    let filter = (!args.filter.is_empty()).then_some(&filter);
    let mut source = Source::open(args.netns.as_deref(), filter, args.payload, args.when)?;
    for why in &source.missing {
        let what = if source.has_events() { "some kernel events" } else { "kernel events" };
        say(&format!("without {what}, because {why}"));
    }
    let unwritable = || format!("cannot write {}", args.output.display());
    let asked = args.ring.map(|_| cmd::asked_signal()).transpose()?;
    let own = fs::symlink_metadata(&args.output).is_err();
    let tape = Tape::open(&args.output).map_err(|e| {
        anyhow!("{}: {e}; name a file with -o in a folder that you may write to", unwritable())
    })?;
    let tape = match args.ring {
        // That it can be written is known from the start.
        Some(most) => To::Ring(Ring::new(most)),
        None => To::File(tape),
    };
    // Whoever ends it gets a whole file; a command that runs is told, and waited for.
    let (stop, passed_on) = match args.command.is_empty() {
        true => (Some(cmd::end_signal()?), None),
        false => (None, Some(PassedOn::new()?)),
    };
    let mut out = Writer::pcapng(tape).with_context(unwritable)?;
    let child = match start(args) {
        Ok(child) => child,
        Err(exit) => {
            drop_empty(args, own);
            return Ok(exit);
        }
    };
    if args.ring.is_some() {
        say(&format!("recording into memory; kill -USR1 {} saves it, ^C ends it", std::process::id()));
    } else if args.command.is_empty() && args.time.is_none() {
        say("recording; ^C ends it");
    }
    let command = child.zip(passed_on).map(|(child, passed_on)| Running { child, passed_on });
    let ended = record(args, &mut source, &mut out, command, stop.as_deref(), asked.as_deref());
    let size = match out.finish() {
        Ok(To::File(tape)) => tape.len(),
        Ok(To::Ring(ring)) => {
            if ended.is_err() && fs::metadata(&args.output).is_ok_and(|file| file.len() == 0) {
                drop_empty(args, own);
            }
            // It says itself which file could not be written.
            return Ok(end_ring(args, own, &ring, &source.counts, ended?));
        }
        Err(e) if ended.is_ok() => return Err(e).with_context(unwritable),
        Err(_) => 0,
    };
    let ended =
        ended.with_context(|| format!("{}; what was written until then can be read", unwritable()))?;
    say_counts(args, &source.counts, size);
    Ok(exit_of(args, ended))
}

/// A command runs where `record` does: how to start both in a namespace.
fn inside(netns: &Path) -> String {
    let names = [Path::new("/run/netns"), Path::new("/var/run/netns")];
    let name = netns.file_name().filter(|_| netns.parent().is_some_and(|folder| names.contains(&folder)));
    let enter = match name {
        Some(name) => format!("ip netns exec {}", shown::argument(name)),
        None => format!("nsenter --net={}", shown::argument(netns.as_os_str())),
    };
    format!(
        "--netns with a command: it would run here, not there; start both there: {enter} tcpwhy record -o FILE -- COMMAND"
    )
}

fn exit_of(args: &Record, ended: End) -> Exit {
    match ended {
        End::Over | End::Slow => Exit::Done,
        End::Stopped if args.time.is_none() => Exit::Done,
        End::Stopped => Exit::Interrupted,
        End::Command(status) => {
            let code = status.code().or(status.signal().map(|n| 128 + n)).unwrap_or(1);
            Exit::Program(u8::try_from(code).unwrap_or(1))
        }
    }
}

/// Nothing was written: a file that was made for it goes (`own`), and one that stood there before stays as it was.
fn drop_empty(args: &Record, own: bool) {
    if own {
        let _ = fs::remove_file(&args.output);
    }
}

/// What was waited for did not come: nothing is left behind.
fn end_ring(args: &Record, own: bool, ring: &Ring, counts: &Counts, ended: End) -> Exit {
    if ring.saved == 0 {
        drop_empty(args, own);
        say(&format!("nothing was saved: no exchange took longer, among {} packets", counts.packets));
    }
    say_lost(counts);
    exit_of(args, ended)
}

/// Writes the ring into the next file, and says so.
fn save(args: &Record, source: &Source<'_>, out: &mut Writer<To>, why: &str) -> io::Result<()> {
    let To::Ring(ring) = out.out() else { return Ok(()) };
    let first = ring.since().map(|since| source.open_sockets(since)).unwrap_or_default();
    let (path, size) = ring.save(&args.output, &first).map_err(|e| io::Error::new(e.kind(), e))?;
    let file = shown::argument(path.as_os_str());
    say(&format!("{why}: {file} ({} KB): tcpwhy explain {file}", size.div_ceil(1000)));
    Ok(())
}

/// Starts the command, if there is one.
fn start(args: &Record) -> Result<Option<Child>, Exit> {
    let Some((program, arguments)) = args.command.split_first() else { return Ok(None) };
    match Command::new(program).args(arguments).spawn() {
        Ok(child) => Ok(Some(child)),
        Err(e) => {
            say(&format!("cannot run {}: {e}", shown::word(program)));
            let code = if e.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
            Err(Exit::Program(code))
        }
    }
}

/// A command while it runs.
struct Running {
    child: Child,
    /// The signals that it is to get.
    passed_on: PassedOn,
}

impl Running {
    fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.passed_on.try_wait(&mut self.child)
    }

    /// Nothing more is recorded of it; it goes on to its own end.
    fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// A command is told that there is to be an end, and only waited for.
fn record(
    args: &Record,
    source: &mut Source<'_>,
    out: &mut Writer<To>,
    mut command: Option<Running>,
    stop: Option<&AtomicBool>,
    asked: Option<&AtomicBool>,
) -> io::Result<End> {
    let until = args.time.map(|t| Instant::now() + Duration::from_nanos(t.0.unsigned_abs()));
    loop {
        // Asked before the last look: what was there then is taken.
        let end = match &mut command {
            Some(command) => command.ended()?.map(End::Command),
            None if stop.is_some_and(|stop| stop.load(Relaxed)) => Some(End::Stopped),
            None => until.is_some_and(|until| Instant::now() >= until).then_some(End::Over),
        };
        let taken = source.take(out, end.is_some()).and_then(|()| out.flush());
        if taken.is_err()
            && let Some(command) = &mut command
        {
            // Its work goes on; only the record of it ends.
            let _ = command.wait();
        }
        taken?;
        if asked.is_some_and(|asked| asked.swap(false, Relaxed)) {
            // The ring is still there, and may be asked for again.
            if let Err(e) = save(args, source, out, "asked for") {
                say(&format!("{e}; make room and ask again"));
            }
        }
        let oldest = if let To::Ring(ring) = out.out() { ring.left_until() } else { None };
        if let Some(why) = source.is_slow(oldest) {
            save(args, source, out, &why)?;
            return Ok(match &mut command {
                Some(command) => End::Command(command.wait()?),
                None => End::Slow,
            });
        }
        if let Some(end) = end {
            // Without a condition it is the end that is wanted.
            if args.when.is_none() {
                save(args, source, out, "ended")?;
            }
            return Ok(end);
        }
        std::thread::sleep(LOOK);
    }
}

fn say_counts(args: &Record, counts: &Counts, size: u64) {
    let file = shown::argument(args.output.as_os_str());
    let s = |n: u64| if n == 1 { "" } else { "s" };
    let (packets, events) = (counts.packets, counts.events);
    say(&format!(
        "{packets} packet{} and {events} kernel event{} are in {file} ({} KB): tcpwhy explain {file}",
        s(packets),
        s(events),
        size.div_ceil(1000)
    ));
    say_lost(counts);
}

fn say_lost(counts: &Counts) {
    let s = |n: u64| if n == 1 { "" } else { "s" };
    if counts.lost > 0 || counts.events_lost > 0 {
        say(&format!(
            "lost, for want of room: {} packet{}, {} kernel event{}; times and causes around them may be wrong",
            counts.lost,
            s(counts.lost),
            counts.events_lost,
            s(counts.events_lost)
        ));
    }
}
