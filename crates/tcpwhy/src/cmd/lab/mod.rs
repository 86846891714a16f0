//! `tcpwhy lab`: experiments over the kernel's own TCP.

mod catalogue;
mod dataset;
mod describe;
mod experiment;
mod kept;
mod link;
mod patterns;
mod print;
mod run;

use crate::args::lab::{Calibrate, Command, Lab};
use crate::cmd::end_signal;
use crate::failure::{Exit, say};
use std::io::Write as _;
use tcpwhy_lab::LabError;

/// Does what was asked for.
pub(crate) fn run(args: &Lab) -> anyhow::Result<Exit> {
    match &args.command {
        Command::List => catalogue::list(),
        Command::Show(a) => catalogue::show(a),
        Command::Run(a) => run::run(a),
        Command::Link(a) => link::run(a),
        Command::Calibrate(a) => calibrate(a),
        Command::Dataset(a) => dataset::make(a),
        Command::Label(a) => dataset::relabel(a),
    }
}

fn calibrate(args: &Calibrate) -> anyhow::Result<Exit> {
    match tcpwhy_lab::calibrate(&*end_signal()?) {
        Ok(found) => {
            let text = if args.json {
                serde_json::to_string_pretty(&found)? + "\n"
            } else {
                print::calibration(&found) + "\n"
            };
            anstream::stdout().lock().write_all(text.as_bytes())?;
            Ok(Exit::Done)
        }
        Err(e) => Ok(failed(&e)),
    }
}

/// Says what went wrong; a scenario that makes no sense is the user's, the rest the machine's.
fn failed(e: &LabError) -> Exit {
    say(&e.to_string());
    if matches!(e, LabError::Scenario(_)) { Exit::Usage } else { Exit::Unreadable }
}
