//! The program: arguments, one file per command, exit codes, progress. Knows no rules of TCP.

mod annotate;
mod args;
mod closed;
mod cmd;
mod examples;
mod extras;
mod failure;
mod figure;
#[cfg(feature = "parquet")]
mod fleet;
mod growth;
mod headers;
mod input;
mod items;
mod lab_result;
mod live;
mod load;
mod otlp;
mod output;
mod page;
mod pages;
mod predict;
mod progress;
mod select;
mod serve;
mod shown;
mod source;
mod spool;
mod stdin;
#[cfg(feature = "parquet")]
mod summarize;
mod taps;
mod temporary;
mod threshold;
mod units;
#[cfg(feature = "tui")]
mod view;
mod warnings;
mod words;

use failure::Exit;
use std::process::ExitCode;

/// Connections are many small pieces, which several threads take and give back: where many live it takes a
/// tenth less time than glibc's.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = match args::parsed(std::env::args_os()) {
        Ok(args) => args,
        Err(e) => return failure::instead(&e).into(),
    };
    let done = match args.command {
        args::Command::Explain(a) => cmd::explain::run(&a),
        args::Command::Predict(a) => cmd::predict::run(&a),
        args::Command::Compare(a) => cmd::compare::run(&a),
        #[cfg(feature = "parquet")]
        args::Command::Summarize(a) => summarize::run(&a),
        args::Command::Serve(a) => cmd::serve::run(&a),
        #[cfg(feature = "tui")]
        args::Command::View(a) => cmd::view::run(&a),
        args::Command::Slice(a) => cmd::slice::run(&a),
        args::Command::Mcp(a) => cmd::mcp::run(&a),
        args::Command::Extcap(a) => cmd::extcap::run(&a),
        args::Command::Wireshark(a) => cmd::wireshark::run(&a),
        args::Command::Causes(a) => cmd::causes::run(&a),
        #[cfg(target_os = "linux")]
        args::Command::Run(a) => cmd::run::run(&a),
        #[cfg(target_os = "linux")]
        args::Command::Watch(a) => cmd::watch::run(&a),
        #[cfg(target_os = "linux")]
        args::Command::Record(a) => cmd::record::run(&a),
        #[cfg(target_os = "linux")]
        args::Command::Check(a) => cmd::check::run(&a),
        #[cfg(target_os = "linux")]
        args::Command::Lab(a) => cmd::lab::run(&a),
        args::Command::Completions(a) => cmd::completions::run(&a),
        args::Command::Man(a) => cmd::man::run(&a),
    };
    match done {
        Ok(exit) => exit.into(),
        Err(error) if failure::is_broken_pipe(&error) => Exit::Done.into(),
        Err(error) => {
            failure::say(&failure::told(&error));
            failure::exit_of(&error).into()
        }
    }
}
