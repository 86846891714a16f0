//! A machine that lacks something: which thing, what to do, exit code 3; with several experiments the rest goes on.

use crate::common::{BIN, Dir, Ran, alone, lab, skip};
use std::process::Command;

fn run(program: &str, arguments: &[&str]) -> Option<Ran> {
    match Command::new(program).args(arguments).output() {
        Ok(output) => Some(output.into()),
        Err(e) => skip(&format!("{program}: {e}")),
    }
}

#[test]
fn no_root() {
    let Some(_alone) = alone() else {
        return lab(&["run", "chatty"]).fails(3, &["network namespace", "run as root"]);
    };
    let powerless = ["--bounding-set=-all", "--inh-caps=-all", BIN, "lab"];
    for arguments in [&["run", "chatty"][..], &["run", "all"], &["calibrate"], &["link", "--", "true"]] {
        let Some(ran) = run("setpriv", &[&powerless, arguments].concat()) else { return };
        ran.fails(3, &["tcpwhy: a new network namespace", "run as root: sudo tcpwhy lab"]);
        assert_eq!((ran.out.as_str(), ran.err.lines().count()), ("", 1), "one sentence");
    }
}

#[test]
fn no_tun() {
    let Some(_alone) = alone() else { return };
    let script = format!("mount -t tmpfs none /dev/net && exec {BIN} lab run chatty");
    let Some(ran) = run("unshare", &["--mount", "sh", "-c", &script]) else { return };
    ran.fails(3, &["/dev/net/tun", "modprobe tun"]);
}

#[test]
fn what_the_kernel_lacks() {
    let Some(_alone) = alone() else { return };
    lab(&["run", "chatty", "--set", "client.congestion=nonsense"])
        .fails(3, &["SKIP", "congestion control nonsense", "modprobe tcp_nonsense", "use one of", "cubic"]);
    lab(&["run", "chatty", "--set", "server.sysctl.net.ipv4.tcp_nonsense=1"])
        .fails(3, &["SKIP", "the sysctl net.ipv4.tcp_nonsense", "leave it out"]);
}

#[test]
fn the_rest_goes_on() {
    let Some(_alone) = alone() else { return };
    let dir = Dir::new();
    let head = "title = 'a'\nsample_ms = 0\n";
    let lacks = dir.file(
        "lacks.toml",
        &format!(
            "{head}[programs]\nclient = 'true'\nneeds = [{{ command = 'qqq', package = 'qqq-tools' }}]\n"
        ),
    );
    let fast =
        dir.file("fast.toml", &format!("{head}[link]\nrate_mbit = 900000\n[workload]\nrequest = [1]\n"));
    let good = dir.file(
        "good.toml",
        &format!(
            "{head}[workload]\nrequest = [1]\n[expect]\nmeasure = 'exchange count'\ntheory = {{ value = 1 }}\n"
        ),
    );
    let failing = dir.file("failing.toml", &format!("{head}[programs]\nclient = 'echo no use >&2; false'\n"));
    let ran = lab(&["run", &lacks, &fast, &good]);
    ran.fails(0, &["SKIP: qqq: not installed; apt-get install qqq-tools", "as expected", "2 skipped"]);
    assert!(
        ran.out.contains("SKIP: 900000 Mbit/s asked for, but the link of this machine gives"),
        "{}",
        ran.out
    );
    lab(&["run", &good, &failing]).fails(4, &["FAILED", "no use", "as expected"]);
    lab(&["run", &failing]).fails(3, &["the client's command", "no use"]);
    lab(&["run", &lacks]).fails(3, &["apt-get install qqq-tools"]);
}
