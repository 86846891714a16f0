//! `tcpwhy record`: packets of this host and what its kernel says of their sockets, in one file.

mod source;
mod tape;

use crate::args::record::Record;
use crate::cmd;
use crate::failure::{Exit, Usage, say};
use crate::shown;
use anyhow::{Context as _, anyhow, bail};
use source::{Counts, Source};
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tape::Tape;
use tcpwhy_library::{Filter, packets::Writer};

/// Between two looks: the rings hold far more than passes meanwhile.
const LOOK: Duration = Duration::from_millis(10);

/// How it ended.
enum End {
    /// The time is over.
    Over,
    /// Somebody wanted an end.
    Stopped,
    /// The command has ended.
    Command(ExitStatus),
}

/// Records until somebody or something ends it.
pub(crate) fn run(args: &Record) -> anyhow::Result<Exit> {
    if args.output.as_os_str() == "-" {
        bail!(Usage("-o -: name a file; `tcpwhy explain` reads it".into()));
    }
    let filter = Filter::parse(&args.filter.join(" ")).map_err(|e| Usage(format!("FILTER: {e}")))?;
    let filter = (!args.filter.is_empty()).then_some(&filter);
    let mut source = Source::open(args.netns.as_deref(), filter, args.payload)?;
    for why in &source.missing {
        let what = if source.has_events() { "some kernel events" } else { "kernel events" };
        say(&format!("without {what}, because {why}"));
    }
    let unwritable = || format!("cannot write {}", args.output.display());
    let tape = Tape::create(&args.output).map_err(|e| {
        anyhow!("{}: {e}; name a file with -o in a folder that you may write to", unwritable())
    })?;
    // Whoever ends it gets a whole file; a command that runs is ended by whoever started both, and waited for.
    let stop = if args.command.is_empty() { cmd::end_signal()? } else { cmd::stop_signal()? };
    let mut out = Writer::pcapng(tape).with_context(unwritable)?;
    let child = match start(args) {
        Ok(child) => child,
        Err(exit) => return Ok(exit),
    };
    if args.command.is_empty() && args.time.is_none() {
        say("recording; ^C ends it");
    }
    let ended = record(args, &mut source, &mut out, child, &stop);
    let size = match out.finish() {
        Ok(tape) => tape.len(),
        Err(e) if ended.is_ok() => return Err(e).with_context(unwritable),
        Err(_) => 0,
    };
    let ended =
        ended.with_context(|| format!("{}; what was written until then can be read", unwritable()))?;
    say_counts(args, &source.counts, size);
    Ok(match ended {
        End::Over => Exit::Done,
        End::Stopped if args.time.is_none() => Exit::Done,
        End::Stopped => Exit::Interrupted,
        End::Command(status) => {
            let code = status.code().or(status.signal().map(|n| 128 + n)).unwrap_or(1);
            Exit::Program(u8::try_from(code).unwrap_or(1))
        }
    })
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

/// The command gets what the terminal sends by itself, so that it is only waited for.
fn record(
    args: &Record,
    source: &mut Source<'_>,
    out: &mut Writer<Tape>,
    mut child: Option<Child>,
    stop: &AtomicBool,
) -> io::Result<End> {
    let until = args.time.map(|t| Instant::now() + Duration::from_nanos(t.0.unsigned_abs()));
    loop {
        // Asked before the last look: what was there then is taken.
        let end = match &mut child {
            Some(child) => child.try_wait()?.map(End::Command),
            None if stop.load(Relaxed) => Some(End::Stopped),
            None => until.is_some_and(|until| Instant::now() >= until).then_some(End::Over),
        };
        let taken = source.take(out, end.is_some()).and_then(|()| out.flush());
        if taken.is_err()
            && let Some(child) = &mut child
        {
            // Its work goes on; only the record of it ends.
            let _ = child.wait();
        }
        taken?;
        if let Some(end) = end {
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
