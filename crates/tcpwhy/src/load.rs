//! Captures found, read and analysed.

use crate::failure::{Exit, Usage, say};
use crate::input::{self, Input, Ordered};
use crate::progress::Progress;
use crate::source::Source;
use crate::spool::{self, Spool};
use crate::{shown, taps, warnings};
use anyhow::bail;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tcpwhy_base::Nanos;
use tcpwhy_library::captures::{Analysis, Captures, OddClock, Read, taps as two_taps};
use tcpwhy_library::{Connection, Detail};
use tcpwhy_report::{Capture, Warning, quality_warnings};

/// What was read, and what was made of it.
pub(crate) struct Loaded {
    pub(crate) inputs: Vec<Input>,
    pub(crate) analysis: Analysis,
    pub(crate) capture: Capture,
    /// Some input was damaged.
    pub(crate) damaged: bool,
    /// An interrupt ended a stream before its end.
    interrupted: bool,
    /// Keep streams until the end.
    spools: Vec<Spool>,
}

impl Loaded {
    /// The inputs, to be read again.
    pub(crate) fn source(&self) -> Source<'_> {
        Source {
            inputs: &self.inputs,
            frames_before: &self.capture.frames_before,
            window: None,
            filter: None,
        }
    }

    /// Calls exchanges by the first bytes of their requests, in a second look at the inputs.
    pub(crate) fn name(&mut self) -> anyhow::Result<()> {
        let found = self.source().names(&self.analysis, false)?;
        found.tell(&mut self.analysis, true);
        Ok(())
    }

    /// How the command ends when all else went well.
    pub(crate) fn exit(&self) -> Exit {
        match (self.interrupted, self.damaged) {
            (true, _) => Exit::Interrupted,
            (false, true) => Exit::Damaged,
            (false, false) => Exit::Done,
        }
    }
}

/// The inputs as they are read.
pub(crate) struct Found {
    /// In the order of their first packets.
    pub(crate) inputs: Vec<Input>,
    /// Sentences about those that cannot be read.
    pub(crate) unreadable: Vec<String>,
    /// Streams that are kept to be read again.
    pub(crate) spools: Vec<Spool>,
}

impl Found {
    /// Looks at `paths`; `twice` if they will be read a second time. Unless `quiet`, says what is no capture
    /// in folders.
    pub(crate) fn among(
        paths: &[PathBuf],
        twice: bool,
        quiet: bool,
        stop: &Arc<AtomicBool>,
    ) -> anyhow::Result<Found> {
        let from_stdin = paths.iter().any(|p| p.as_os_str() == "-");
        if from_stdin && paths.len() > 1 {
            bail!(Usage(
                "standard input (-) cannot be joined with other inputs: write it to a file first".into()
            ));
        }
        let Ordered { inputs, unreadable, foreign, spools } = input::in_order(paths, twice, stop)?;
        foreign.iter().filter(|_| !quiet).for_each(|said| say(said));
        Ok(Found { inputs, unreadable, spools })
    }
}

/// Reads `paths`; says what cannot be read. `Err`: the exit code, where nothing could be read.
pub(crate) fn load(
    paths: &[PathBuf],
    detail: Detail,
    quiet: bool,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<Result<Loaded, Exit>> {
    load_found(Found::among(paths, true, quiet, stop)?, detail, quiet, stop)
}

/// Reads captures that were found already; says what cannot be read. `Err`: the exit code, where nothing could be read.
pub(crate) fn load_found(
    found: Found,
    detail: Detail,
    quiet: bool,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<Result<Loaded, Exit>> {
    let Found { inputs, unreadable, spools } = found;
    let nothing = inputs.is_empty() && spool::interrupted(&spools);
    let mut loaded = load_inputs(inputs, unreadable, detail, None, &mut Progress::new(quiet), stop)?;
    if nothing || loaded.as_ref().is_ok_and(|l| l.interrupted) {
        say("interrupted: nothing was written");
        return Ok(Err(Exit::Interrupted));
    }
    if let Ok(loaded) = &mut loaded {
        loaded.interrupted = spool::interrupted(&spools);
        if loaded.interrupted {
            say("interrupted: this is about the packets before");
        }
        loaded.spools = spools;
    }
    Ok(loaded)
}

/// Reads inputs that are opened already; says what cannot be read. `listed`: so many connections are kept to be listed
/// ([`Captures::listing`]).
pub(crate) fn load_inputs(
    mut inputs: Vec<Input>,
    unreadable: Vec<String>,
    detail: Detail,
    listed: Option<usize>,
    progress: &mut Progress,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<Result<Loaded, Exit>> {
    // Whoever wants no detail wants the packets of each file.
    let taps = if detail == Detail::None { Ok(None) } else { two_taps::among(&mut inputs, None, stop) };
    // Of several, those whose clock is wrong are set aside.
    let listed = listed.filter(|_| inputs.len() < 2);
    let captures = Captures::new(&inputs).detail(detail).listing(listed).stopped_by(stop);
    let (mut analysis, mut read) = match taps.as_ref().ok().and_then(Option::as_ref) {
        Some(two) => captures.explain_taps(two, &mut progress.told())?,
        None => captures.explain(&mut progress.told())?,
    };
    progress.clear();
    if let Some(exit) = say_problems(&inputs, &mut read, unreadable) {
        return Ok(Err(exit));
    }
    let interrupted = read.interrupted;
    let damaged = !read.unreadable.is_empty() || !read.damaged.is_empty();
    let aside = set_aside(&inputs, &read, &mut analysis);
    let mut warnings = quality_warnings(&analysis.totals);
    warnings.extend(aside);
    warnings.extend(taps::warning(&taps, &inputs, &analysis));
    warnings.extend(taps::twice(&inputs, &read, &analysis, stop));
    let capture = capture(&inputs, read, analysis.connection_count(), false, warnings);
    Ok(Ok(Loaded { inputs, analysis, capture, damaged, interrupted, spools: Vec::new() }))
}

/// Leaves captures whose clocks ran backwards or jumped out of the answer about several: how far their times
/// are wrong nobody can tell, and one of them would be all that is left of the sums.
pub(crate) fn set_aside(inputs: &[Input], read: &Read, analysis: &mut Analysis) -> Option<Warning> {
    let how = how_odd(&read.odd_clocks)?;
    let back = read.odd_clocks.iter().any(|c| c.steps > 0);
    if inputs.len() < 2 {
        let text = format!("the clock {how}: times across such a step mean nothing");
        return (!back).then_some(Warning { code: "clock_step", text, count: 1 });
    }
    let odd: Vec<usize> = read.odd_clocks.iter().map(|c| c.input).collect();
    let file = |frame: u64| read.frames_before.partition_point(|&before| before < frame).saturating_sub(1);
    let of = |c: &Connection| odd.contains(&file(c.frames.0)) || odd.contains(&file(c.frames.1));
    let (aside, all) = (analysis.connections.iter().filter(|c| of(c)).count(), analysis.connections.len());
    if aside == 0 || aside == all {
        return None;
    }
    analysis.retain(|c| !of(c));
    let names: Vec<String> = odd.iter().take(5).filter_map(|&at| Some(inputs.get(at)?.base())).collect();
    let more = if odd.len() > names.len() { " and others" } else { "" };
    let text = format!(
        "{}{more} left aside, with {aside} of {all} connections: the clock {how}, and no sum with such times means anything. \
         Explain it alone",
        shown::text(&names.join(", "))
    );
    Some(Warning { code: "clock_step", text, count: 1 })
}

/// What such clocks do: "the clock ...".
pub(crate) fn how_odd(clocks: &[OddClock]) -> Option<String> {
    let longest = clocks.iter().map(|c| c.jump).max()?;
    let back = clocks.iter().any(|c| c.steps > 0);
    Some(match (back, longest == Nanos::ZERO) {
        (true, true) => "runs backwards".to_owned(),
        (true, false) => format!("runs backwards and jumps by {}", long(longest)),
        (false, _) => format!("jumps by {} from one packet to the next", long(longest)),
    })
}

/// A time in words, however long.
fn long(time: Nanos) -> String {
    const DAY: Nanos = Nanos::secs(86_400);
    if time < DAY.times(2) { time.to_string() } else { format!("{} days", time.0 / DAY.0) }
}

/// Says what went wrong in reading; the exit code if there is nothing to explain.
pub(crate) fn say_problems(inputs: &[Input], read: &mut Read, unreadable: Vec<String>) -> Option<Exit> {
    read.unreadable.splice(0..0, unreadable);
    for problem in read.unreadable.iter().chain(&read.damaged) {
        say(problem);
    }
    if read.opened == 0 && !read.interrupted {
        return Some(Exit::Unreadable);
    }
    let foreign: u64 = read.counts.unknown_links.iter().map(|l| l.1).sum();
    let &(link, _) = read.counts.unknown_links.first()?;
    if foreign < read.packets || inputs.is_empty() {
        return None;
    }
    say(&format!("{}: {}", inputs[0].name, warnings::unknown_link(link)));
    Some(Exit::Unreadable)
}

/// What a report says of the input: `connections` of it, with warnings `of_quality`; `partial` if some of it
/// was left out.
pub(crate) fn capture(
    inputs: &[Input],
    read: Read,
    connections: u64,
    partial: bool,
    of_quality: Vec<Warning>,
) -> Capture {
    let mut warnings = warnings::of_reading(&read);
    warnings.extend(of_quality);
    Capture {
        files: inputs.iter().map(|i| i.name.clone()).collect(),
        frames_before: read.frames_before,
        packets: read.packets,
        tcp_packets: read.counts.tcp,
        span: read.span,
        connections,
        encapsulations: read.encapsulations,
        partial,
        of_command: false,
        warnings,
    }
}
