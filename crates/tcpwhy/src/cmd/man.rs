use crate::args::{Args, EXIT_CODES, Man};
use crate::closed;
use crate::examples;
use crate::failure::Exit;
use anyhow::Context as _;
use clap::{Command, CommandFactory};
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Prints the manual page, or writes those of all commands.
pub(crate) fn run(args: &Man) -> anyhow::Result<Exit> {
    let mut command = Args::command();
    command.build();
    match &args.dir {
        Some(dir) => {
            fs::create_dir_all(dir)
                .and_then(|()| write_all(&command, "tcpwhy", dir))
                .with_context(|| format!("cannot write manual pages to {}", dir.display()))?;
        }
        None => {
            let page = page(&command, "tcpwhy")?;
            let written = closed::is_open().and_then(|()| io::stdout().write_all(&page));
            written.context("cannot write to standard output")?;
        }
    }
    Ok(Exit::Done)
}

/// The page of a command, named as a whole (`tcpwhy-lab-run`), and those of the commands below it.
fn write_all(command: &Command, name: &str, dir: &Path) -> io::Result<()> {
    fs::write(dir.join(format!("{name}.1")), page(command, name)?)?;
    let below = command.get_subcommands().filter(|c| c.get_name() != "help" && !c.is_hide_set());
    below.into_iter().try_for_each(|c| write_all(c, &format!("{name}-{}", c.get_name()), dir))
}

/// One page, with its examples and exit codes in the sections where manual pages have them.
fn page(command: &Command, name: &str) -> io::Result<Vec<u8>> {
    let own = command.get_name();
    let man = clap_mangen::Man::new(command.clone().display_name(name.to_owned())).title(name);
    let mut out = Vec::new();
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    man.render_description_section(&mut out)?;
    man.render_options_section(&mut out)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut out)?;
    }
    let examples = examples::of(if own == "tcpwhy" { "" } else { own });
    if !examples.is_empty() {
        writeln!(out, ".SH EXAMPLES")?;
        for (typed, does) in examples {
            writeln!(out, ".TP\n\\fB{}\\fR\n{}", roff(typed), roff(does))?;
        }
    }
    if let Some((_, codes)) = EXIT_CODES.split_once(": ").filter(|_| matches!(own, "tcpwhy" | "explain")) {
        writeln!(out, ".SH \"EXIT STATUS\"\n{}", roff(codes))?;
    } else if let Some(after) = command.get_after_help().filter(|_| examples.is_empty()) {
        writeln!(out, ".SH NOTES\n{}", roff(&after.to_string()))?;
    }
    Ok(out)
}

/// Text as roff reads it: no escapes, no line that begins with a control character.
fn roff(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('\n', "\n.br\n");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}
