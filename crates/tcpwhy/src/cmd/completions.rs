use crate::args::{Args, Completions};
use crate::failure::Exit;
use clap::CommandFactory;
use std::io::{self, Write};

/// Prints the completion script of a shell.
pub(crate) fn run(args: &Completions) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "tcpwhy", &mut script);
    io::stdout().write_all(&script)?;
    Ok(Exit::Done)
}
