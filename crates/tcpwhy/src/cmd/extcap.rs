//! What Wireshark calls to capture: an interface whose packets come with their causes as comments. It asks
//! what interfaces and options there are, then for packets into a pipe (Wireshark, "Extcap: Developer
//! Documentation").

use super::end_signal;
use crate::args::Extcap;
use crate::failure::{Exit, Usage, say};
use crate::load;
use crate::output::Output;
use crate::temporary::Temporary;
use crate::{annotate, shown};
use anyhow::{Context as _, bail};
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use tcpwhy_library::Detail;

/// The one interface.
const INTERFACE: &str = "tcpwhy";
/// Between looks whether the capture has ended.
const LOOK: Duration = Duration::from_millis(50);

/// Says what there is, or captures.
pub(crate) fn run(args: &Extcap) -> anyhow::Result<Exit> {
    let mut out = io::stdout().lock();
    if args.extcap_interfaces {
        let version = env!("CARGO_PKG_VERSION");
        writeln!(
            out,
            "extcap {{version={version}}}{{help=https://github.com/tcpwhy/tcpwhy}}{{display=tcpwhy}}"
        )?;
        writeln!(out, "interface {{value={INTERFACE}}}{{display=tcpwhy: explained capture}}")?;
        return Ok(Exit::Done);
    }
    if args.extcap_interface.as_deref() != Some(INTERFACE) {
        bail!(Usage(format!("--extcap-interface: the only one is {INTERFACE}")));
    }
    if args.extcap_dlts {
        // Packets come as pcapng, which says itself what link each is from.
        writeln!(out, "dlt {{number=1}}{{name=EN10MB}}{{display=as captured}}")?;
    } else if args.extcap_config {
        options(&mut out)?;
    } else if args.capture {
        let Some(fifo) = &args.fifo else { bail!(Usage("--capture needs --fifo".into())) };
        drop(out);
        return capture(args, fifo);
    } else {
        bail!(Usage("Wireshark calls this; see tcpwhy wireshark --install".into()));
    }
    Ok(Exit::Done)
}

/// The options of the dialog.
fn options(out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "arg {{number=0}}{{call=--nic}}{{display=Interface}}{{type=selector}}{{tooltip=Where to capture, by dumpcap}}"
    )?;
    for (i, nic) in interfaces().iter().enumerate() {
        let default = if i == 0 { "{default=true}" } else { "" };
        writeln!(out, "value {{arg=0}}{{value={nic}}}{{display={nic}}}{default}")?;
    }
    writeln!(
        out,
        "arg {{number=1}}{{call=--seconds}}{{display=Seconds}}{{type=unsigned}}{{range=1,3600}}{{default=10}}\
         {{tooltip=How long; the packets come afterwards, with their causes}}"
    )?;
    writeln!(
        out,
        "arg {{number=2}}{{call=--file}}{{display=Or this capture}}{{type=fileselect}}{{mustexist=true}}\
         {{tooltip=Explain a file instead}}"
    )?;
    writeln!(
        out,
        "arg {{number=3}}{{call=--names}}{{display=Names of requests}}{{type=boolflag}}\
         {{tooltip=HTTP/1 method and path, Redis verb, SQL command, TLS server name}}"
    )
}

/// As dumpcap lists them: `1. eth0`, `2. lo (Loopback)`.
fn interfaces() -> Vec<String> {
    let listed = Command::new("dumpcap").arg("-D").stdin(Stdio::null()).stderr(Stdio::null()).output();
    let listed = listed.map(|done| String::from_utf8_lossy(&done.stdout).into_owned()).unwrap_or_default();
    let name = |line: &str| {
        let name = line.split_once(". ")?.1.split(' ').next()?;
        name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-:".contains(&b)).then(|| name.to_owned())
    };
    listed.lines().filter_map(name).collect()
}

fn capture(args: &Extcap, fifo: &Path) -> anyhow::Result<Exit> {
    let stop = end_signal()?;
    // Opened first: Wireshark waits for it.
    let out = Output::open(Some(fifo), true)?;
    let (path, _kept) = match &args.file {
        Some(path) => (path.clone(), None),
        None => {
            let kept = captured(args, &stop)?;
            (kept.path().to_owned(), Some(kept))
        }
    };
    // What there is until the end was asked for is worth its comments.
    stop.store(false, Relaxed);
    let paths: [PathBuf; 1] = [path];
    let mut loaded = match load::load(&paths, Detail::Worst(1_000), true, &stop)? {
        Ok(loaded) => loaded,
        Err(exit) => return Ok(exit),
    };
    if args.names {
        let found = loaded.source().names(&loaded.analysis, false)?;
        found.tell(&mut loaded.analysis, true);
    }
    annotate::write(out, &loaded.source(), &loaded.analysis)?;
    Ok(loaded.exit())
}

/// What dumpcap captures in the time that was asked for, or until somebody ends it.
fn captured(args: &Extcap, stop: &Arc<AtomicBool>) -> anyhow::Result<Temporary> {
    let folder = std::env::temp_dir();
    let (file, kept) = Temporary::file(&folder, "tcpwhy-", ".capture", true)
        .with_context(|| format!("cannot write into {}", folder.display()))?;
    let Some(nic) = args.nic.clone().or_else(|| interfaces().into_iter().next()) else {
        bail!("dumpcap, which comes with Wireshark, lists no interface: may this user capture?");
    };
    let mut command = Command::new("dumpcap");
    command.args(["-q", "-i", &nic, "-a", &format!("duration:{}", args.seconds), "-w", "-"]);
    if let Some(filter) = args.extcap_capture_filter.as_deref().filter(|f| !f.is_empty()) {
        command.args(["-f", filter]);
    }
    let child = command.stdin(Stdio::null()).stdout(file).stderr(Stdio::piped()).spawn();
    let mut child = child.context("dumpcap, which comes with Wireshark, cannot be started")?;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if stop.load(Relaxed) {
            child.kill()?;
        }
        thread::sleep(LOOK);
    };
    if !status.success() && !stop.load(Relaxed) {
        bail!("dumpcap could not capture on {}: {}", shown::name(&nic), reason(&mut child));
    }
    Ok(kept)
}

/// Its last words.
fn reason(child: &mut Child) -> String {
    let mut said = String::new();
    if let Some(stderr) = &mut child.stderr
        && stderr.take(64 << 10).read_to_string(&mut said).is_err()
    {
        say("what dumpcap said is no text");
    }
    let last = said.lines().rev().find(|l| !l.trim().is_empty() && !l.starts_with("Running as user"));
    shown::name(last.unwrap_or("it did not say why")).into_owned()
}
