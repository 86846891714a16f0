//! The arguments as typed. Values are parsed here, once.

mod beside;
#[cfg(target_os = "linux")]
pub(crate) mod check;
#[cfg(target_os = "linux")]
pub(crate) mod lab;
#[cfg(target_os = "linux")]
pub(crate) mod record;
#[cfg(target_os = "linux")]
pub(crate) mod run;
mod serve;
#[cfg(target_os = "linux")]
pub(crate) mod watch;

pub(crate) use beside::Beside;
pub(crate) use serve::Serve;

use crate::examples;
use crate::growth::Growth;
use crate::threshold::Threshold;
use crate::units::{self, Bound};
use crate::words::{self, CauseParser};
use clap::{Args as ClapArgs, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueHint};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use tcpwhy_base::{Cause, Nanos};
use tcpwhy_library::Detail;
use tcpwhy_library::Filter;

/// What the exit codes mean.
pub(crate) const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 some input was damaged and what could be read was analysed, 2 usage, 3 could not read, no \
permission, too little left to judge a --fail-if by, or no server that both captures of compare have, 4 a --fail-if \
held or a figure of the lab was not as expected, 130 interrupted (whatever a --fail-if says).";

/// Explains from a packet capture why a TCP transfer or request is slow: where the time went, which packets prove
/// it, what to change.
#[derive(Debug, Parser)]
#[command(
    name = "tcpwhy",
    version,
    override_usage = "tcpwhy FILE... [OPTIONS of explain]\n       tcpwhy COMMAND [ARGUMENTS]",
    after_help = "tcpwhy FILE takes the options of explain: tcpwhy explain --help",
    after_long_help = format!("{}\n\n{}", short_form(), long_help("")),
    arg_required_else_help = true
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Say where the time of every connection and exchange went (`tcpwhy FILE` means this)
    #[command(after_help = EXIT_CODES, after_long_help = long_help("explain"))]
    Explain(Box<Explain>),
    /// Say how long a request or transfer will take, why, and what would help, from a model of both ends
    #[command(after_long_help = examples::text("predict"))]
    Predict(Box<crate::predict::args::Predict>),
    /// Did the fix work? Two captures, matched by server and size of exchange
    #[command(after_long_help = examples::text("compare"))]
    Compare(Compare),
    /// Browse findings, connections and exchanges in the terminal
    #[cfg(feature = "tui")]
    #[command(after_long_help = examples::text("view"))]
    View(View),
    /// Show captures in the browser: a file, a folder, or what is dropped on the page
    #[command(after_long_help = examples::text("serve"))]
    Serve(Serve),
    /// Sum up the tables that --parquet wrote: causes, servers, days, before against after a date, the slowest
    #[cfg(feature = "parquet")]
    #[command(after_long_help = examples::text("summarize"))]
    Summarize(Summarize),
    /// Write the headers of one connection to a file for a ticket
    #[command(after_long_help = examples::text("slice"))]
    Slice(Slice),
    /// Answer assistants by the Model Context Protocol, over standard input and output: captures of one
    /// folder, read only
    #[command(after_long_help = examples::text("mcp"))]
    Mcp(Mcp),
    /// Put what Wireshark needs to show the answer beside packets where it looks for it: fields, colours, columns
    #[command(after_long_help = examples::text("wireshark"))]
    Wireshark(Wireshark),
    /// Capture for Wireshark, which calls this
    #[command(hide = true)]
    Extcap(Extcap),
    /// Print what a cause means, how it is recognised and how it is fixed
    #[command(after_long_help = examples::text("causes"))]
    Causes(Causes),
    /// Run a command in a network of its own, without root, at a distance if wanted; say where its time went (Linux)
    #[cfg(target_os = "linux")]
    #[command(after_help = run::EXIT_CODES, after_long_help = examples::text("run") + "\n" + run::EXIT_CODES)]
    Run(Box<run::Run>),
    /// Say of this running host which connections wait, for what, and what helps; needs no root (Linux)
    #[cfg(target_os = "linux")]
    #[command(after_help = watch::EXIT_CODES, after_long_help = examples::text("watch") + "\n" + watch::EXIT_CODES)]
    Watch(watch::Watch),
    /// Keep packets and what the kernel says of their sockets in one file, which `explain` reads with more
    /// certainty (Linux, root)
    #[cfg(target_os = "linux")]
    #[command(after_help = record::EXIT_CODES, after_long_help = examples::text("record") + "\n" + record::EXIT_CODES)]
    Record(record::Record),
    /// Look for faults of this host: full queues, dropped connections, ports, memory, buffers; each with
    /// evidence (Linux)
    #[cfg(target_os = "linux")]
    #[command(after_help = check::EXIT_CODES, after_long_help = examples::text("check") + "\n" + check::EXIT_CODES)]
    Check(check::Check),
    /// Make experiments: two hosts, an emulated link between them, the kernel's own TCP (Linux, root)
    #[cfg(target_os = "linux")]
    Lab(lab::Lab),
    /// Print a completion script for a shell
    #[command(after_long_help = examples::text("completions"))]
    Completions(Completions),
    /// Print the manual page, or write all of them
    #[command(after_long_help = examples::text("man"))]
    Man(Man),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Explain {
    /// Captures (pcap or pcapng, also gz, zst, lz4), folders of them, or - for standard input
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,

    /// One JSON document (docs/schema/explain-1.json)
    #[arg(long, conflicts_with = "jsonl", help_heading = "Output")]
    pub(crate) json: bool,
    /// One JSON object a line: connections as they end, then findings, capture (docs/schema/lines.md)
    #[arg(long, help_heading = "Output")]
    pub(crate) jsonl: bool,
    /// Write to FILE, whole or not at all; what was there is replaced
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
    /// Also write the graph of the connection, or the ladder of the exchange, as SVG
    #[arg(long, value_name = "FILE", requires = "connection", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) beside: Beside,
    /// Write tables instead, as Parquet files by day, into a folder: each capture by itself, many at once;
    /// called again, it goes on with those that are not done yet (docs/schema/tables-1.md)
    #[cfg(feature = "parquet")]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Output", conflicts_with_all = [
        "json", "jsonl", "output", "svg", "html", "annotate", "folded", "perfetto", "otlp", "names", "exchanges", "slower_than",
        "from", "to", "connection", "why_not", "fail_if", "follow"])]
    pub(crate) parquet: Option<PathBuf>,
    /// The verdict and the findings only; no notes, tables or progress
    #[arg(short, long, conflicts_with = "verbose", help_heading = "Output")]
    pub(crate) quiet: bool,
    /// All fixes and warnings in full
    #[arg(short, long, help_heading = "Output")]
    pub(crate) verbose: bool,
    /// Rows in tables [default: 10; 3 of the slowest exchanges]
    #[arg(long, value_name = "N", value_parser = units::whole::<usize>(0, u64::MAX), help_heading = "Output")]
    pub(crate) top: Option<usize>,
    /// Times of day (UTC) instead of time since the start, in text
    #[arg(long, help_heading = "Output")]
    pub(crate) absolute_times: bool,

    /// Detail: the N longest exchanges (worst=N), all or none [default: worst=1000 of the capture; with
    /// --jsonl worst=10 of each connection]
    #[arg(long, value_name = "WHICH", value_parser = detail, help_heading = "Selection")]
    pub(crate) exchanges: Option<Detail>,
    /// List only exchanges that took longer (40ms, 1.5s, 200us)
    #[arg(long, value_name = "TIME", value_parser = units::duration, help_heading = "Selection")]
    pub(crate) slower_than: Option<Nanos>,
    /// Look only at the time after this; all is followed (RFC 3339, or an offset from the start: 2.5, +1.5s)
    #[arg(long, value_name = "WHEN", value_parser = units::bound, help_heading = "Selection")]
    pub(crate) from: Option<Bound>,
    /// Look only at the time before this
    #[arg(long, value_name = "WHEN", value_parser = units::bound, help_heading = "Selection")]
    pub(crate) to: Option<Bound>,
    /// Packets to read: host, net, port, tcp, and, or, not, as in tcpdump
    #[arg(long, value_name = "EXPR", value_parser = filter, help_heading = "Selection")]
    pub(crate) filter: Option<Filter>,
    /// One connection: its number, port, address:port, or address:port>address:port
    #[arg(long, value_name = "WHICH", help_heading = "Selection")]
    pub(crate) connection: Option<String>,
    /// One exchange of that connection as a time line of its packets
    #[arg(long, value_name = "N", requires = "connection", value_parser = units::whole::<u32>(1, u64::MAX), help_heading = "Selection")]
    pub(crate) exchange: Option<u32>,

    /// Say what speaks for a cause and what is missing for it
    #[arg(long, value_name = "CAUSE", value_parser = CauseParser, hide_possible_values = true, conflicts_with_all = ["json", "jsonl"], help_heading = "Questions")]
    pub(crate) why_not: Option<Cause>,
    /// End with code 4 if a cause, or all of an owner (tcp, application, path; also: inherent, unknown),
    /// holds more than a share of the time of requests, or a time, that between requests included:
    /// nagle_delayed_ack>5%, tcp>200ms
    #[arg(long, value_name = "CONDITION", help_heading = "Questions")]
    pub(crate) fail_if: Vec<Threshold>,
    /// Read on while the file grows, until ^C or SIGTERM
    #[arg(long, help_heading = "Input")]
    pub(crate) follow: bool,
    /// Explain two captures of the same connections apart, not as two taps
    #[arg(long, help_heading = "Input")]
    pub(crate) apart: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Compare {
    /// The capture from before
    #[arg(value_name = "BEFORE", value_hint = ValueHint::FilePath)]
    pub(crate) before: PathBuf,
    /// The capture from after
    #[arg(value_name = "AFTER", value_hint = ValueHint::FilePath)]
    pub(crate) after: PathBuf,
    /// One JSON document (docs/schema/compare-1.json)
    #[arg(long)]
    pub(crate) json: bool,
    /// Also write a page
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,
    /// Write to FILE, whole or not at all; what was there is replaced
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Match exchanges by what they are called instead of by size, from the first bytes of their requests,
    /// where that is known
    #[arg(long)]
    pub(crate) names: bool,
    /// End with code 4 if the median, the mean, the p95 or the time of a cause in each exchange grew by more, and
    /// not by chance: median>5%, p95>10ms, handshake>1ms; with code 3 if there are fewer than five exchanges to
    /// tell by. The opening of a connection counts with the exchange that waited for it
    #[arg(long, value_name = "GROWTH")]
    pub(crate) fail_if: Vec<Growth>,
    /// No progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[cfg(feature = "parquet")]
#[derive(Debug, ClapArgs)]
pub(crate) struct Summarize {
    /// The folder that `tcpwhy explain --parquet` wrote
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
    /// Compare the days before this one with those from it on (UTC)
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = day)]
    pub(crate) split: Option<String>,
    /// Rows in tables
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = units::whole::<usize>(0, u64::MAX))]
    pub(crate) top: usize,
    /// One JSON document (docs/schema/summarize-1.md)
    #[arg(long)]
    pub(crate) json: bool,
    /// Write one page as well
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,
    /// Write to FILE, whole or not at all; what was there is replaced
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}

#[cfg(feature = "tui")]
#[derive(Debug, ClapArgs)]
pub(crate) struct View {
    /// Captures (pcap or pcapng, also gz, zst, lz4), or folders of them
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// Call exchanges by their requests, from the first bytes (HTTP/1 method and path, Redis verb, MySQL and PostgreSQL
    /// command; within TLS the server's name alone): paths and host names are then shown
    #[arg(long)]
    pub(crate) names: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Slice {
    /// Captures (pcap or pcapng, also gz, zst, lz4), or folders of them
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// The connection, always needed: its number in what `tcpwhy FILE` prints; or those of a port, address:port, or
    /// address:port>address:port
    #[arg(long, value_name = "WHICH")]
    pub(crate) connection: Option<String>,
    /// Write to FILE (pcapng), whole or not at all; what was there is replaced
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Other addresses instead of the true ones; times, ports, sizes, sequence numbers, TTL, IP identifiers
    /// and options stay
    #[arg(long)]
    pub(crate) anonymize: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Causes {
    /// A cause, such as nagle_delayed_ack; without it all are listed
    #[arg(value_name = "ID", value_parser = CauseParser, hide_possible_values = true)]
    pub(crate) id: Option<Cause>,
    /// The whole table as one JSON document (docs/schema/causes.md)
    #[arg(long, conflicts_with = "id")]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Mcp {
    /// The folder whose captures may be read; nothing outside of it is
    #[arg(long, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) root: PathBuf,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Wireshark {
    /// Write the plugin, the profile `tcpwhy` and, to capture from within Wireshark, extcap/tcpwhy; without
    /// this the plugin is printed
    #[arg(long)]
    pub(crate) install: bool,
    /// Into DIR (DIR/plugins, DIR/profiles, DIR/extcap) instead of the folders of this user
    #[arg(long, value_name = "DIR", requires = "install", value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
}

/// By the names that Wireshark gives them.
#[derive(Debug, ClapArgs)]
pub(crate) struct Extcap {
    #[arg(long)]
    pub(crate) extcap_interfaces: bool,
    #[arg(long)]
    pub(crate) extcap_interface: Option<String>,
    #[arg(long)]
    pub(crate) extcap_dlts: bool,
    #[arg(long)]
    pub(crate) extcap_config: bool,
    #[arg(long)]
    pub(crate) extcap_version: Option<String>,
    #[arg(long)]
    pub(crate) extcap_capture_filter: Option<String>,
    #[arg(long)]
    pub(crate) capture: bool,
    #[arg(long)]
    pub(crate) fifo: Option<PathBuf>,
    #[arg(long)]
    pub(crate) nic: Option<String>,
    #[arg(long, default_value_t = 10, value_parser = units::whole::<u32>(1, 3600))]
    pub(crate) seconds: u32,
    #[arg(long)]
    pub(crate) file: Option<PathBuf>,
    #[arg(long)]
    pub(crate) names: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Completions {
    /// Which shell
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Man {
    /// Write the pages of all commands into this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
}

const COMMANDS: &[&str] = &[
    "explain",
    "run",
    "watch",
    "record",
    "check",
    "view",
    "serve",
    "compare",
    "slice",
    "summarize",
    "predict",
    "lab",
    "mcp",
    "wireshark",
    "extcap",
    "causes",
    "completions",
    "man",
    "help",
];

/// The options that `tcpwhy FILE` takes, by name.
fn short_form() -> String {
    let explain = Explain::augment_args(clap::Command::new("explain"));
    let options = explain.get_arguments().filter(|a| !a.is_hide_set() && !a.is_positional());
    let named: Vec<String> = options
        .filter_map(|a| {
            let value = a.get_value_names().filter(|_| a.get_action().takes_values());
            Some(format!(
                "--{}{}",
                a.get_long()?,
                value.map_or_else(String::new, |v| format!(" {}", v.join(" ")))
            ))
        })
        .collect();
    format!("tcpwhy FILE takes the options of explain (tcpwhy explain --help): {}", named.join(", "))
}

/// Examples and exit codes.
fn long_help(command: &str) -> String {
    format!("{}\n{EXIT_CODES}", examples::text(command))
}

/// The arguments as they were typed.
pub(crate) fn parsed(args: impl Iterator<Item = OsString>) -> Result<Args, clap::Error> {
    let mut command = negative_values(Args::command());
    let matches = command.try_get_matches_from_mut(with_default_command(args))?;
    Args::from_arg_matches(&matches).map_err(|e| e.format(&mut command))
}

/// A negative number behind an option is its value, not another option: what is expected instead is said of it.
fn negative_values(command: clap::Command) -> clap::Command {
    let takes = |arg: &clap::Arg| !arg.is_positional() && arg.get_action().takes_values();
    let command = command.mut_args(|arg| if takes(&arg) { units::negative(arg) } else { arg });
    command.mut_subcommands(negative_values)
}

/// `tcpwhy FILE` means `tcpwhy explain FILE`, unless the word is no file and nearly the name of a command.
pub(crate) fn with_default_command(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut args: Vec<OsString> = args.collect();
    let own = |a: &OsStr| ["-h", "--help", "-V", "--version"].iter().any(|o| a == *o);
    let mistyped = |a: &OsStr| {
        let word = a.to_str().filter(|w| w.bytes().all(|b| b.is_ascii_lowercase()));
        word.is_some_and(|w| words::near(w, COMMANDS.iter().copied()).is_some()) && !Path::new(a).exists()
    };
    if let Some(first) = args.get(1)
        && !COMMANDS.iter().any(|c| first == *c)
        && !own(first)
        && !mistyped(first)
    {
        args.insert(1, "explain".into());
    }
    args
}

fn detail(text: &str) -> Result<Detail, String> {
    match text {
        "all" => Ok(Detail::All),
        "none" => Ok(Detail::None),
        _ => text
            .strip_prefix("worst=")
            .and_then(|n| n.parse().ok())
            .map(Detail::Worst)
            .ok_or_else(|| "say worst=N (such as worst=1000), all or none".into()),
    }
}

/// A day as the folders of tables are named by it.
#[cfg(feature = "parquet")]
fn day(text: &str) -> Result<String, String> {
    let day: Result<jiff::civil::Date, _> = text.parse();
    day.map(|day| day.strftime("%F").to_string()).map_err(|_| "say a day, such as 2026-11-22".into())
}

fn filter(text: &str) -> Result<Filter, String> {
    Filter::parse(text).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_file_means_explain() {
        let words = |line: &str| -> Vec<String> {
            let args = line.split(' ').map(OsString::from);
            with_default_command(args).into_iter().map(|a| a.into_string().unwrap()).collect()
        };
        assert_eq!(words("tcpwhy a.pcap"), ["tcpwhy", "explain", "a.pcap"]);
        assert_eq!(words("tcpwhy --json a.pcap"), ["tcpwhy", "explain", "--json", "a.pcap"]);
        assert_eq!(words("tcpwhy -"), ["tcpwhy", "explain", "-"]);
        assert_eq!(words("tcpwhy causes"), ["tcpwhy", "causes"]);
        assert_eq!(words("tcpwhy --help"), ["tcpwhy", "--help"]);
        assert_eq!(words("tcpwhy predcit --rtt 5ms"), ["tcpwhy", "predcit", "--rtt", "5ms"]);
        assert_eq!(words("tcpwhy trace"), ["tcpwhy", "explain", "trace"]);
    }

    /// What each option of a command says of a value that it does not know.
    fn refused(command: &clap::Command, path: &[String], all: &mut Vec<String>) {
        for arg in command.get_arguments().filter(|a| a.get_action().takes_values()) {
            let Some(long) = arg.get_long() else { continue };
            for wrong in ["x", "-1", "99999999999999999999999"] {
                let line = path.iter().cloned().chain([format!("--{long}={wrong}")]);
                if let Err(e) = Args::try_parse_from(line) {
                    all.push(e.to_string());
                }
            }
        }
        for sub in command.get_subcommands() {
            let path: Vec<String> = path.iter().cloned().chain([sub.get_name().to_owned()]).collect();
            refused(sub, &path, all);
        }
    }

    #[test]
    fn who_types_no_number_is_told_what_is_expected() {
        let mut all = Vec::new();
        refused(&Args::command(), &["tcpwhy".to_owned()], &mut all);
        let of = |option: &str| {
            let told = |e: &&String| e.contains("is no whole number") || e.contains("is too large");
            all.iter().filter(|e| e.contains(option)).filter(told).count()
        };
        assert!(of("--port <PORT>") >= 6 && of("--top <N>") >= 9 && of("--requests <N>") == 3, "{all:#?}");
        // The words of the standard library and of clap.
        for bare in ["invalid digit", "cannot parse", "is not in ", "too large to fit", "invalid float"] {
            assert_eq!(all.iter().find(|e| e.contains(bare)), None);
        }
    }
}
