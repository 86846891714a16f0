use crate::args::View;
use crate::failure::{Exit, Usage, say};
use crate::input::Input;
use crate::{cmd, load, view};
use anyhow::bail;
use std::io::{self, IsTerminal};
use std::sync::atomic::Ordering::Relaxed;
use tcpwhy_library::Detail;

/// Browses an analysis in the terminal.
pub(crate) fn run(args: &View) -> anyhow::Result<Exit> {
    if !io::stdout().is_terminal() {
        // A file that cannot be read is the greater trouble.
        let files = args.files.iter().filter(|f| f.as_os_str() != "-");
        let problems: Vec<String> = files.filter_map(|f| Input::new(f).open().err()).collect();
        problems.iter().for_each(|p| say(p));
        if !problems.is_empty() && problems.len() == args.files.len() {
            return Ok(Exit::Unreadable);
        }
        bail!(Usage("view needs a terminal: `tcpwhy explain` prints the same".into()));
    }
    let (stop, gone) = cmd::end_signals()?;
    let mut loaded = match load::load(&args.files, Detail::Worst(10_000), false, &stop)? {
        Ok(loaded) => loaded,
        Err(exit) => return Ok(exit),
    };
    if gone.load(Relaxed) {
        return Ok(Exit::Interrupted);
    }
    tcpwhy_library::replay(&mut loaded.analysis);
    if args.names {
        loaded.name()?;
    }
    view::run(&loaded, &stop)?;
    Ok(loaded.exit())
}
