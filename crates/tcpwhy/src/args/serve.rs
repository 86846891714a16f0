use crate::units;
use clap::{Args, ValueHint};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// A capture, a folder of captures, or two captures of the same connections, one from each end: they open as one
    #[arg(value_name = "FILE|DIR", num_args = 0..=2, value_hint = ValueHint::AnyPath)]
    pub(crate) paths: Vec<PathBuf>,
    /// Port; 0 for any that is free
    #[arg(long, default_value_t = 4280, value_parser = units::whole::<u16>(0, 65_535))]
    pub(crate) port: u16,
    /// Address to listen on. Beyond loopback everything can be read on its way, the token too
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) listen: std::net::IpAddr,
    /// A token of your own, of 8 characters or more; one is made up unless it is here or in TCPWHY_TOKEN.
    /// Other users can see an argument, as ps shows it
    #[arg(long, value_name = "TEXT")]
    pub(crate) token: Option<String>,
    /// The first line of FILE is the token
    #[arg(long, value_name = "FILE", conflicts_with = "token", value_hint = ValueHint::FilePath)]
    pub(crate) token_file: Option<PathBuf>,
    /// Ask for no token: every user and program of this machine can read the captures and drop files. Only on loopback
    #[arg(long, conflicts_with_all = ["token", "token_file"])]
    pub(crate) no_token: bool,
    /// Largest file that may be dropped, in MiB; all of them together may be four times as large
    #[arg(long, value_name = "MIB", default_value_t = 2048, value_parser = units::whole::<u64>(0, u64::MAX))]
    pub(crate) max_upload: u64,
    /// Call exchanges by their requests, from the first bytes (HTTP/1 method and path, Redis verb, MySQL and PostgreSQL
    /// command; within TLS the server's name alone): paths and host names are then shown
    #[arg(long)]
    pub(crate) names: bool,
}
