//! What to type, for `--help` and the manual pages. A test parses every line.

/// A command, and its examples: what is typed, what it does.
type Examples = (&'static str, &'static [(&'static str, &'static str)]);

/// By command; the empty one is the program itself.
pub(crate) const EXAMPLES: &[Examples] = &[
    (
        "",
        &[
            ("tcpwhy slow.pcapng", "where the time went, what to change, what that wins"),
            ("tcpwhy slow.pcapng --html report.html", "the same as one page with graphs"),
            (
                "tcpdump -i eth0 -s 96 -w - port 5432 | tcpwhy -",
                "headers of live traffic are enough; end with ^C",
            ),
            ("tcpwhy predict --rtt 80ms --response 30KB --tls", "how long before it is built"),
        ],
    ),
    (
        "explain",
        &[
            ("tcpwhy slow.pcapng", "the verdict"),
            ("tcpwhy slow.pcapng --connection 3 --exchange 12", "one request as a time line of its packets"),
            ("tcpwhy slow.pcapng --slower-than 100ms", "the slow requests of all connections"),
            ("tcpwhy slow.pcapng --why-not send_buffer", "what speaks for a cause, what is missing"),
            ("tcpwhy slow.pcapng --fail-if 'nagle_delayed_ack>5%'", "for CI: exit code 4 if it holds"),
            ("tcpwhy slow.pcapng --json | jq '.findings | max_by(.requests_ns)'", "for programs"),
            (
                "tcpwhy explain captures/ --parquet tables/",
                "many captures to tables for DuckDB, pandas, Spark",
            ),
        ],
    ),
    (
        "run",
        &[
            ("tcpwhy run -- pytest tests/", "where the time of its connections went, in one command"),
            ("tcpwhy run --rtt 40ms -- ./tests.sh", "the same with loopback 40 ms long"),
            (
                "tcpwhy run --fail-if 'nagle_delayed_ack>5%' -- go test ./...",
                "for CI: exit code 4 if it holds",
            ),
            (
                "tcpwhy run --rtt 20ms --server ./server -- ./client",
                "each on a host of its own: $TCPWHY_SERVER",
            ),
        ],
    ),
    (
        "watch",
        &[
            ("tcpwhy watch", "which connections of this host wait, and for what; q ends"),
            ("tcpwhy watch --once --port 5432", "one interval, printed"),
            ("tcpwhy watch --cause send_buffer --interval 5s", "only those that wait for a send buffer"),
            ("tcpwhy watch --jsonl > closed.jsonl", "a line for each connection that ends, until ^C"),
            ("tcpwhy watch --events --pid 812", "a line for each wait, as it ends (root)"),
            ("tcpwhy watch --netns /proc/812/ns/net", "of a container, by one of its processes (root)"),
        ],
    ),
    (
        "record",
        &[
            ("tcpwhy record -o slow.pcapng", "until ^C; then tcpwhy explain slow.pcapng"),
            ("tcpwhy record -o slow.pcapng --for 60s port 5432", "a minute of one port"),
            ("tcpwhy record -o tests.pcapng -- pytest tests/", "while a command runs"),
        ],
    ),
    (
        "check",
        &[
            ("tcpwhy check", "ten seconds, then what is wrong, with evidence"),
            ("tcpwhy check --watch 1m --fail-if any", "for a monitor: exit code 4 if anything is"),
            ("tcpwhy check --acknowledge listener-behind@0.0.0.0:8080", "one fault of one listener is known"),
        ],
    ),
    (
        "predict",
        &[
            ("tcpwhy predict --rtt 80ms --response 30KB --tls", "a fresh TLS connection, 80 ms away"),
            (
                "tcpwhy predict --distance 15000km --response 1MiB --connection idle:30s",
                "on a kept connection",
            ),
            (
                "tcpwhy predict --rtt 0.2ms --writes 4,2048 --response-writes 4,256 --requests 5",
                "small writes",
            ),
            (
                "tcpwhy predict --rtt 40ms --response 10MB --bandwidth 100mbit --loss 0.1%",
                "many draws of losses",
            ),
            ("tcpwhy predict --like slow.pcapng --connection 3", "as in that capture"),
        ],
    ),
    (
        "compare",
        &[
            (
                "tcpwhy compare before.pcapng after.pcapng",
                "medians, 95th percentiles and causes, with intervals",
            ),
            (
                "tcpwhy compare before.pcapng after.pcapng --fail-if 'median>5%'",
                "exit code 4 if it became slower",
            ),
        ],
    ),
    #[cfg(feature = "parquet")]
    (
        "summarize",
        &[
            ("tcpwhy summarize tables/", "causes over everything, by server and day, and the slowest"),
            ("tcpwhy summarize tables/ --split 2026-11-20", "what changed that day, by cause"),
            ("tcpwhy summarize tables/ --html week.html", "the same as a page"),
        ],
    ),
    (
        "slice",
        &[(
            "tcpwhy slice slow.pcapng --connection 3 --anonymize -o ticket.pcapng",
            "headers only, other addresses",
        )],
    ),
    (
        "serve",
        &[
            ("tcpwhy serve captures/", "open the address that it prints"),
            ("tcpwhy serve client.pcapng server.pcapng", "both ends of the same connections, opened as one"),
            ("tcpwhy serve", "then drop a file on the page"),
        ],
    ),
    ("mcp", &[("tcpwhy mcp --root captures", "what an assistant is told to start")]),
    (
        "wireshark",
        &[
            ("tcpwhy wireshark --install", "once; then choose the profile tcpwhy"),
            ("tcpwhy slow.pcapng --annotate notes.pcapng", "what it reads; filter: tcpwhy.ms > 40"),
        ],
    ),
    ("view", &[("tcpwhy view slow.pcapng", "the same in a terminal, over ssh too")]),
    ("causes", &[("tcpwhy causes nagle_delayed_ack", "what it is, how it is recognised, all the fixes")]),
    (
        "completions",
        &[("tcpwhy completions bash > ~/.local/share/bash-completion/completions/tcpwhy", "for bash")],
    ),
    ("man", &[("tcpwhy man | man -l -", "read the page"), ("tcpwhy man --dir man1", "write all pages")]),
];

/// Those of a command.
pub(crate) fn of(command: &str) -> &'static [(&'static str, &'static str)] {
    EXAMPLES.iter().find(|e| e.0 == command).map_or(&[], |e| e.1)
}

/// For the end of `--help`.
pub(crate) fn text(command: &str) -> String {
    let lines = of(command).iter().map(|(typed, does)| format!("  {typed}\n      {does}\n"));
    format!("Examples:\n{}", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Args, with_default_command};
    use clap::{CommandFactory as _, Parser as _};

    /// The words of our own part of a line, quotes taken off as a shell does.
    fn words(line: &str) -> Vec<std::ffi::OsString> {
        let own = line.split(" | ").find(|part| part.starts_with("tcpwhy")).unwrap();
        let own = own.split(" > ").next().unwrap();
        own.split(' ').map(|w| w.trim_matches('\'').into()).collect()
    }

    #[test]
    fn every_example_is_understood() {
        for (command, examples) in EXAMPLES {
            for (line, _) in *examples {
                let parsed = Args::try_parse_from(with_default_command(words(line).into_iter()));
                assert!(parsed.is_ok(), "{command}: {line}: {}", parsed.unwrap_err());
            }
        }
    }

    #[test]
    fn every_command_has_some() {
        for command in Args::command().get_subcommands().filter(|c| c.get_name() != "lab" && !c.is_hide_set())
        {
            assert!(!of(command.get_name()).is_empty(), "{}", command.get_name());
        }
    }
}
