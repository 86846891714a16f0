//! `lab_run FILE.toml... --out DIR [--set key=value]`: runs experiments and writes captures and truth. With one file
//! they go into DIR itself, with several into DIR/NAME.

use anyhow::{Context, bail};
use std::path::PathBuf;
use std::process::ExitCode;
use tcpwhy_lab::{Scenario, run};

fn main() -> anyhow::Result<ExitCode> {
    let mut files = Vec::new();
    let mut set = Vec::new();
    let mut out = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--out" => out = arguments.next().map(PathBuf::from),
            "--set" => set.extend(arguments.next()),
            _ => files.push(PathBuf::from(argument)),
        }
    }
    let Some(out) = out.filter(|_| !files.is_empty()) else {
        bail!("lab_run FILE.toml... --out DIR [--set key=value]");
    };
    let mut failed = 0;
    for file in &files {
        let name = file.file_stem().context("a file name")?;
        let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let done = Scenario::parse(&text, &set).and_then(|scenario| run(&scenario));
        print!("{}: ", name.display());
        match done {
            Ok(run) => {
                run.write(&if files.len() > 1 { out.join(name) } else { out.clone() })?;
                print!("{}", run.summary());
            }
            Err(e) => {
                failed += 1;
                println!("SKIP: {e}");
            }
        }
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
