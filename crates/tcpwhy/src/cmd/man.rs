use crate::args::{Args, Man};
use crate::failure::Exit;
use anyhow::Context as _;
use clap::CommandFactory;
use std::io::{self, Write};

/// Prints the manual page, or writes those of all commands.
pub(crate) fn run(args: &Man) -> anyhow::Result<Exit> {
    let command = Args::command();
    match &args.dir {
        Some(dir) => clap_mangen::generate_to(command, dir).with_context(|| {
            format!("cannot write manual pages to {}: does the directory exist?", dir.display())
        })?,
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            io::stdout().write_all(&page)?;
        }
    }
    Ok(Exit::Done)
}
