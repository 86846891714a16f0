//! `lab_link [--link TOML] [--server COMMAND] --out DIR -- COMMAND...`: runs any program on a host behind a link, as in
//! `lab_link --link 'rtt_ms = 20' --server 'python3 -m http.server' --out DIR -- curl http://10.77.0.2:8000/`.
//! The server's command goes to a shell, gets half a second to start, and is killed at the end.

use anyhow::{Context, bail};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;
use tcpwhy_base::Side;
use tcpwhy_lab::{Host, Link, Network};

fn main() -> anyhow::Result<ExitCode> {
    let mut link = Link::default();
    let mut server = None;
    let mut out = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--link" => {
                let text = arguments.next().context("--link needs a value")?;
                // Keys of a scenario's link, on one line.
                link = toml::from_str(&text.replace(';', "\n"))?;
            }
            "--server" => server = arguments.next(),
            "--out" => out = arguments.next().map(PathBuf::from),
            "--" => break,
            other => bail!("{other}: not an option; the command stands after --"),
        }
    }
    let program = arguments.next().context("a command after --")?;
    let host = Host::default();
    let network = Network::new(&link, &host, &host, (0, 0), 1)?;
    let mut running = None;
    if let Some(command) = server {
        // exec: the process to kill is the server itself, not the shell.
        let command = format!("exec {command}");
        running = Some(network.spawn(Side::Server, Command::new("sh").args(["-c", &command]))?);
        std::thread::sleep(Duration::from_millis(500));
    }
    let done = network.spawn(Side::Client, Command::new(program).args(arguments))?.wait();
    if let Some(mut server) = running {
        server.kill()?;
        server.wait()?;
    }
    let traffic = network.finish()?;
    if let Some(out) = out {
        traffic.write_captures(&out)?;
    }
    eprintln!("link: up {:?}, down {:?}, late by {:?}", traffic.up, traffic.down, traffic.lateness);
    Ok(if done?.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
