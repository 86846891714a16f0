use crate::args::{Args, Completions};
use crate::closed;
use crate::failure::Exit;
use anyhow::Context as _;
use clap::{Command, CommandFactory};
use std::io::{self, Write};

/// Prints the completion script of a shell.
pub(crate) fn run(args: &Completions) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut with_short_form(Args::command()), "tcpwhy", &mut script);
    closed::is_open()
        .and_then(|()| io::stdout().write_all(&script))
        .context("cannot write standard output")?;
    Ok(Exit::Done)
}

/// `tcpwhy FILE` takes the options of `explain`, so they complete without that word, too.
fn with_short_form(command: Command) -> Command {
    let explain = command.find_subcommand("explain").cloned().unwrap_or_default();
    explain.get_arguments().fold(command, |c, arg| c.arg(arg.clone().required(false)))
}
