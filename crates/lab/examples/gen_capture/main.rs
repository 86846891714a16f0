//! Writes large captures for `make bench`, and reads JSON as a consumer at the end of a pipe would.
//!
//!     gen_capture flows PACKETS CONNECTIONS FILE    connections side by side: requests, responses, some losses
//!     gen_capture elephant PACKETS FILE             one transfer
//!     gen_capture short CONNECTIONS FILE            one request each, about a thousand open at a time
//!     gen_capture idle CONNECTIONS FILE             four exchanges each, and then open and quiet; about a thousand speak at a time
//!     gen_capture echo EXCHANGES CONNECTIONS FILE   a byte and its echo, so often on each of these connections, side by side
//!     gen_capture scan SYNS FILE                    a SYN from each of as many addresses, nothing answers
//!     gen_capture copies CAPTURE COPIES FILE        so many copies of a capture, 64 at a time, each with an address of its own
//!     gen_capture read-json                         scans standard input, prints {"bytes", "packets", "connections"}
//!     gen_capture run STATISTICS COMMAND...         runs a command, writes what it cost (a small parent, because
//!                                                   Linux counts the parent's memory to the child until it executes)
//!
//! `-` as FILE is standard output, but for copies. Nanosecond pcap, Ethernet, IPv4; what is made up is
//! headers only (lengths on the wire are whole), with time stamps on every segment, taken at the client. The
//! same arguments give the same bytes.

mod copies;
mod cost;
mod json;
mod packets;
mod talk;

use std::io;

const USAGE: &str = "gen_capture flows PACKETS CONNECTIONS FILE | elephant PACKETS FILE | short CONNECTIONS FILE | idle CONNECTIONS FILE | \
                     echo EXCHANGES CONNECTIONS FILE | \
                     scan SYNS FILE | copies CAPTURE COPIES FILE | read-json | run STATISTICS COMMAND...";

fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize| args.get(i).and_then(|a| a.parse::<u64>().ok());
    let result = match (args.first().map(String::as_str), args.len()) {
        (Some("flows"), 4) => number(1).zip(number(2)).map(|(p, c)| talk::flows(p, c as usize, &args[3])),
        (Some("elephant"), 3) => number(1).map(|p| talk::elephant(p, &args[2])),
        (Some("short"), 3) => number(1).map(|c| talk::short(c, &args[2])),
        (Some("idle"), 3) => number(1).map(|c| talk::idle(c, &args[2])),
        (Some("echo"), 4) => number(1).zip(number(2)).map(|(e, c)| talk::echo(e, c as usize, &args[3])),
        (Some("scan"), 3) => number(1).map(|n| talk::scan(n, &args[2])),
        (Some("copies"), 4) => number(2).map(|n| copies::copies(&args[1], n, &args[3])),
        (Some("read-json"), 1) => Some(json::read()),
        (Some("run"), 3..) => Some(cost::run(&args[1], &args[2..])),
        _ => None,
    };
    result.unwrap_or_else(|| {
        eprintln!("{USAGE}");
        std::process::exit(2)
    })
}
