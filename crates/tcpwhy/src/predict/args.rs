//! The arguments of `predict` as typed.

use super::range::{Range, Ranges};
use crate::units;
use crate::units::quantity::{self, Understood};
use clap::{Args as ClapArgs, ValueEnum, ValueHint};
use std::path::PathBuf;
use tcpwhy_base::Nanos;
use tcpwhy_library::model::{Congestion, PROFILES, Profile};

/// What a scenario or a capture says itself: beside them, these options would do nothing.
const OWN: [&str; 29] = [
    "rtt",
    "distance",
    "bandwidth",
    "queue",
    "mtu",
    "loss",
    "request",
    "response",
    "writes",
    "response_writes",
    "server_time",
    "requests",
    "gap",
    "reconnect",
    "server_closes",
    "server_speaks_first",
    "tls",
    "tls_time",
    "nodelay",
    "cork",
    "initcwnd",
    "sndbuf",
    "rcvbuf",
    "write_chunk",
    "no_idle_restart",
    "congestion",
    "profile",
    "hz",
    "sweep",
];

#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct Predict {
    /// A scenario of the lab (TOML) instead of the options for path and workload
    #[arg(value_name = "SCENARIO", value_hint = ValueHint::FilePath, conflicts_with_all = OWN, conflicts_with_all = ["like", "connection"])]
    pub(crate) scenario: Option<PathBuf>,

    /// Round trip time (200ms, 1.5ms)
    #[arg(long, value_name = "TIME", value_parser = units::duration, allow_hyphen_values = true, help_heading = "Path")]
    pub(crate) rtt: Option<Nanos>,
    /// Instead of it: the way of the cable (15000km); light in fibre goes 200 km in a millisecond
    #[arg(long, value_name = "KM", value_parser = quantity::distance, conflicts_with = "rtt", help_heading = "Path")]
    pub(crate) distance: Option<f64>,
    /// Rate of the bottleneck (100mbit, 12MB/s); without it there is none
    #[arg(long, value_name = "RATE", value_parser = quantity::rate, help_heading = "Path")]
    pub(crate) bandwidth: Option<Understood>,
    /// What may wait before the bottleneck (64KiB); without it one round trip's worth
    #[arg(long, value_name = "SIZE", value_parser = quantity::size, requires = "bandwidth", help_heading = "Path")]
    pub(crate) queue: Option<Understood>,
    /// Largest IP packet
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = units::whole::<u64>(0, u64::MAX), help_heading = "Path")]
    pub(crate) mtu: u64,
    /// Share of packets lost at random (0.1%)
    #[arg(long, value_name = "SHARE", value_parser = quantity::share_ppm, help_heading = "Path")]
    pub(crate) loss: Option<u32>,

    /// Bytes of the request (16KiB)
    #[arg(long, value_name = "SIZE", value_parser = quantity::size, help_heading = "Workload")]
    pub(crate) request: Option<Understood>,
    /// Bytes of the response (20KiB)
    #[arg(long, value_name = "SIZE", value_parser = quantity::size, help_heading = "Workload")]
    pub(crate) response: Option<Understood>,
    /// The client's writes of one request, in order (4,2048); their sum is the request
    #[arg(long, value_name = "SIZES", value_parser = Sizes::parse, help_heading = "Workload")]
    pub(crate) writes: Option<Sizes>,
    /// The server's writes of one response, in order (150,20480)
    #[arg(long, value_name = "SIZES", value_parser = Sizes::parse, help_heading = "Workload")]
    pub(crate) response_writes: Option<Sizes>,
    /// The server's work on each request
    #[arg(long, value_name = "TIME", value_parser = units::duration, help_heading = "Workload")]
    pub(crate) server_time: Option<Nanos>,
    /// Requests, one after the other
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = units::whole::<u32>(1, 100_000), help_heading = "Workload")]
    pub(crate) requests: u32,
    /// The client's pause between two of them
    #[arg(long, value_name = "TIME", value_parser = units::duration, help_heading = "Workload")]
    pub(crate) gap: Option<Nanos>,
    /// new, warm (it has served such requests) or idle:30s (and then nothing for so long); with --like the
    /// connection's number
    #[arg(long, value_name = "STATE", help_heading = "Workload")]
    pub(crate) connection: Option<String>,
    /// A connection for each request
    #[arg(long, help_heading = "Workload")]
    pub(crate) reconnect: bool,
    /// The server closes after its last response, which sends what Nagle's algorithm holds
    #[arg(long, help_heading = "Workload")]
    pub(crate) server_closes: bool,
    /// The response comes without a request, as a banner does
    #[arg(long, help_heading = "Workload")]
    pub(crate) server_speaks_first: bool,
    /// A TLS handshake first
    #[arg(long, value_enum, num_args = 0..=1, default_missing_value = "1.3", value_name = "VERSION", help_heading = "Workload")]
    pub(crate) tls: Option<Tls>,
    /// Cryptography of the handshake: the server's time, or SERVER,CLIENT (5ms,2ms)
    #[arg(long, value_name = "TIMES", value_parser = TlsTime::parse, requires = "tls", help_heading = "Workload")]
    pub(crate) tls_time: Option<TlsTime>,

    /// TCP_NODELAY at this end; the client's by default, unless writes are described
    #[arg(long, value_enum, value_name = "END", help_heading = "Ends")]
    pub(crate) nodelay: Option<Nodelay>,
    /// TCP_CORK (or MSG_MORE) around each message at this end
    #[arg(long, value_enum, value_name = "END", help_heading = "Ends")]
    pub(crate) cork: Option<End>,
    /// Initial window in segments, at both ends
    #[arg(long, value_name = "SEGMENTS", value_parser = units::whole::<u32>(0, u64::MAX), help_heading = "Ends")]
    pub(crate) initcwnd: Option<u32>,
    /// SO_SNDBUF of both ends, as passed to setsockopt
    #[arg(long, value_name = "SIZE", value_parser = quantity::size, help_heading = "Ends")]
    pub(crate) sndbuf: Option<Understood>,
    /// SO_RCVBUF of both ends
    #[arg(long, value_name = "SIZE", value_parser = quantity::size, help_heading = "Ends")]
    pub(crate) rcvbuf: Option<Understood>,
    /// Largest single write at both ends
    #[arg(long, value_name = "SIZE", value_parser = quantity::size, help_heading = "Ends")]
    pub(crate) write_chunk: Option<Understood>,
    /// tcp_slow_start_after_idle=0 at both ends
    #[arg(long, help_heading = "Ends")]
    pub(crate) no_idle_restart: bool,
    /// cubic, reno or bbr, at both ends
    #[arg(long, value_parser = congestion, value_name = "NAME", help_heading = "Ends")]
    pub(crate) congestion: Option<Congestion>,
    /// Stack of both ends, or CLIENT,SERVER: linux, linux-5.10, linux-3.10, windows, macos, freebsd, ...
    #[arg(long, value_parser = Profiles::parse, value_name = "NAME", help_heading = "Ends")]
    pub(crate) profile: Option<Profiles>,
    /// Ticks a second of both ends (CONFIG_HZ): timers run up to a tick late
    #[arg(long, value_name = "HZ", value_parser = units::whole::<u32>(1, 10_000), help_heading = "Ends")]
    pub(crate) hz: Option<u32>,

    /// Take path, sizes and settings from a capture
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = OWN, help_heading = "Questions")]
    pub(crate) like: Option<PathBuf>,
    /// Vary one or two settings: rtt=1ms..300ms,response=1KiB..1MiB (10 steps each; :N for another number)
    #[arg(long, value_name = "RANGES", value_parser = Range::parse_all, help_heading = "Questions")]
    pub(crate) sweep: Option<Ranges>,
    /// What a sweep shows
    #[arg(long, value_enum, default_value = "time", requires = "sweep", help_heading = "Questions")]
    pub(crate) metric: Metric,
    /// How a sweep is written
    #[arg(long, value_enum, default_value = "table", requires = "sweep", help_heading = "Output")]
    pub(crate) format: Format,

    /// One JSON document (docs/schema/predict-1.json); not of a sweep, which --format csv writes for programs
    #[arg(long, conflicts_with = "sweep", help_heading = "Output")]
    pub(crate) json: bool,
    /// Write to FILE, whole or not at all; what was there is replaced
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
    /// The packets too, as a capture (pcapng, headers only), with the cause of each wait as a comment where it ended
    #[arg(long, value_name = "CAPTURE", value_hint = ValueHint::FilePath, conflicts_with = "sweep", help_heading = "Output")]
    pub(crate) write: Option<PathBuf>,
    /// Where that capture is made
    #[arg(
        long,
        value_enum,
        value_name = "HOST",
        default_value = "client",
        requires = "write",
        help_heading = "Output"
    )]
    pub(crate) tap: Tap,
    /// All fixes, with how
    #[arg(short, long, help_heading = "Output")]
    pub(crate) verbose: bool,
}

/// Sizes of writes.
#[derive(Clone, Debug)]
pub(crate) struct Sizes(pub(crate) Vec<u64>);

impl Sizes {
    fn parse(text: &str) -> Result<Sizes, String> {
        let sizes = quantity::sizes(text)?;
        if sizes.contains(&0) { Err("a write of 0 bytes sends nothing".into()) } else { Ok(Sizes(sizes)) }
    }
}

/// Stacks of client and server.
#[derive(Clone, Debug)]
pub(crate) struct Profiles(pub(crate) [Profile; 2]);

impl Profiles {
    fn parse(text: &str) -> Result<Profiles, String> {
        let one = |name: &str| {
            Profile::named(name).ok_or_else(|| {
                let names: Vec<&str> = PROFILES.iter().map(|p| p.name).collect();
                format!("{name:?} is no profile; there are linux, {}", names.join(", "))
            })
        };
        let (client, server) = text.split_once(',').unwrap_or((text, text));
        Ok(Profiles([one(client)?, one(server)?]))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum End {
    Client,
    Server,
    Both,
}

impl End {
    pub(crate) fn has(self, side: usize) -> bool {
        matches!((self, side), (End::Both, _) | (End::Client, 0) | (End::Server, 1))
    }
}

/// Where TCP_NODELAY is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Nodelay {
    None,
    Client,
    Server,
    Both,
}

impl Nodelay {
    pub(crate) fn has(self, side: usize) -> bool {
        matches!((self, side), (Nodelay::Both, _) | (Nodelay::Client, 0) | (Nodelay::Server, 1))
    }
}

/// Time for cryptography at server and client.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TlsTime(pub(crate) [Nanos; 2]);

impl TlsTime {
    fn parse(text: &str) -> Result<TlsTime, String> {
        let (server, client) = text.split_once(',').unwrap_or((text, "0ms"));
        Ok(TlsTime([units::duration(server)?, units::duration(client)?]))
    }
}

/// Where a capture is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Tap {
    Client,
    Server,
}

impl Tap {
    pub(crate) fn name(self) -> &'static str {
        if self == Tap::Client { "client" } else { "server" }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Tls {
    #[value(name = "1.2")]
    V12,
    #[value(name = "1.3")]
    V13,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Metric {
    Time,
    Throughput,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Table,
    Csv,
    Svg,
}

fn congestion(text: &str) -> Result<Congestion, String> {
    match text {
        "cubic" => Ok(Congestion::Cubic),
        "reno" => Ok(Congestion::Reno),
        "bbr" => Ok(Congestion::Bbr),
        _ => Err("there are cubic, reno and bbr".into()),
    }
}
