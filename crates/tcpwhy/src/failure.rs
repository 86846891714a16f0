//! How the program ends, and the one place that prints what went wrong.

use crate::closed;
use crate::shown;
use clap::error::{ContextKind, ContextValue};
use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

/// The exit codes, as documented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything asked for was done.
    Done,
    /// Some input was damaged; what could be read was analysed.
    Damaged,
    /// The arguments make no sense.
    Usage,
    /// Nothing could be read, or the output could not be written.
    Unreadable,
    /// A `--fail-if` held, or a figure of the lab was not as expected.
    Held,
    /// The user interrupted: 128 and the number of the signal, as shells say it.
    Interrupted,
    /// A program that was run ended with this code.
    Program(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Damaged => 1,
            Exit::Usage => 2,
            Exit::Unreadable => 3,
            Exit::Held => 4,
            Exit::Interrupted => 130,
            Exit::Program(code) => code,
        })
    }
}

/// Arguments that clap could not judge.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// The exit code for an error.
pub(crate) fn exit_of(error: &anyhow::Error) -> Exit {
    if error.is::<Usage>() { Exit::Usage } else { Exit::Unreadable }
}

/// Whoever read our output has had enough.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|e| {
        let io = e.downcast_ref::<io::Error>();
        io.is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// What went wrong and, where the system refused to write something, what to do about it.
pub(crate) fn told(error: &anyhow::Error) -> String {
    let told = format!("{error:#}");
    let refused = error.chain().find_map(|e| e.downcast_ref::<io::Error>()).map(io::Error::kind);
    let wrote = told.starts_with("cannot write") || told.starts_with("cannot make");
    let next = refused.filter(|_| wrote && !told.contains(';')).map_or("", next_step);
    told + next
}

/// What whoever could not write something may do.
fn next_step(refused: io::ErrorKind) -> &'static str {
    match refused {
        io::ErrorKind::NotFound => "; make its folder first (mkdir -p), or name another place",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; name a place where you may write"
        }
        io::ErrorKind::StorageFull => "; free some room there, or name another place",
        io::ErrorKind::NotADirectory => "; a part of that path is a file: name another place",
        _ => "",
    }
}

/// One line on standard error, after the name of the program. Names in it may be anybody's.
pub(crate) fn say(message: &str) {
    // Nowhere is left to report a standard error that cannot be written.
    let _ = writeln!(anstream::stderr().lock(), "tcpwhy: {}", shown::text(&in_line(message)));
}

/// What was typed stays in its line: a name that goes on in the next one could look like words of the program.
fn in_line(message: &str) -> String {
    let typed = std::env::args_os().map(|a| a.to_string_lossy().into_owned());
    typed.fold(message.to_owned(), |message, typed| {
        let value = typed.split_once('=').map_or("", |(_, value)| value);
        [&*typed, value]
            .iter()
            .filter(|t| shown::name(t) != **t)
            .fold(message, |m, t| m.replace(t, &shown::name(t)))
    })
}

/// What is said of `-i`, which whoever knows tcpdump looks for.
fn of_devices(e: &clap::Error) -> Option<&'static str> {
    let Some(ContextValue::String(option)) = e.get(ContextKind::InvalidArg) else { return None };
    let asks = ["-i", "--interface"].contains(&option.as_str());
    (asks && std::env::args_os().nth(1).is_some_and(|command| command == "record"))
        .then_some("record has no -i: all devices are recorded, always; choose packets by FILTER (host 10.0.0.1 and port 443)")
}

/// What is printed instead of a command: help, the version, or what is wrong with the arguments.
pub(crate) fn instead(e: &clap::Error) -> Exit {
    if let Some(why) = of_devices(e) {
        say(why);
        return Exit::Usage;
    }
    if e.use_stderr() {
        // An argument may be a file that somebody else named: then without colours, which look like what it might hold.
        let typed = std::env::args_os();
        let _ = if typed.map(|a| a.to_string_lossy().into_owned()).all(|a| shown::name(&a) == a) {
            e.print()
        } else {
            write!(anstream::stderr().lock(), "{}", shown::text(&in_line(&e.render().to_string())))
        };
        return Exit::Usage;
    }
    match closed::is_open().and_then(|()| e.print()).and_then(|()| io::stdout().flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            say(&format!("cannot write standard output: {e}"));
            Exit::Unreadable
        }
        _ => Exit::Done,
    }
}
