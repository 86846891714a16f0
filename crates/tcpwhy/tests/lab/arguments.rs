//! What needs no experiment: the catalogue, and arguments that make no sense.

use crate::common::{Dir, lab};

#[test]
fn the_catalogue() {
    let list = lab(&["list"]);
    assert_eq!((list.code, list.err.as_str()), (0, ""));
    for name in ["chatty", "length-prefix", "sndbuf16k-writes-1k", "slow-start-rtt200", "mariadb-result"] {
        assert!(list.out.contains(&format!("  {name} ")), "{name}");
        let show = lab(&["show", name]);
        assert_eq!(show.code, 0, "{}", show.err);
        assert!(show.out.contains("  link ") && show.out.contains("title = ") && show.out.contains(name));
    }
    assert!(list.out.lines().filter(|l| l.starts_with("  ")).count() >= 150);
}

#[test]
fn names_and_files() {
    lab(&["show", "sndbuf"]).fails(2, &["no experiment", "sndbuf-auto"]);
    lab(&["run", "qqq"]).fails(2, &["no experiment", "tcpwhy lab list"]);
    lab(&["run", "/nowhere/a.toml"]).fails(3, &["/nowhere/a.toml", "No such file"]);
    lab(&["run", "all", "chatty"]).fails(2, &["all stands alone"]);
    lab(&["run", "all", "--set", "seed=2"]).fails(2, &["name it instead"]);
    lab(&["run"]).fails(2, &["NAME"]);
}

#[test]
fn keys_that_are_not_known() {
    let nearest = [("link.rt_ms=5", "rtt_ms"), ("client.no_delay=true", "nodelay"), ("titel=x", "title")];
    for (wrong, near) in nearest {
        lab(&["run", "chatty", "--set", wrong]).fails(2, &["chatty", "is not known here", near]);
    }
    lab(&["run", "chatty", "--set", "seed"]).fails(2, &["write key=value"]);
    lab(&["run", "chatty", "--set", "link.rtt_ms=fast"]).fails(2, &["invalid type"]);
    lab(&["run", "chatty", "--set", "client.sysctl.kernel.panic=1"]).fails(2, &["only those of a network"]);
    let dir = Dir::new();
    let file = dir.file("a.toml", "title = 'a'\n[link]\nrate_mbits = 5\n[workload]\nrequest = [1]\n");
    lab(&["show", &file]).fails(2, &["line 3", "rate_mbits", "did you mean \"rate_mbit\""]);
    lab(&["run", &dir.file("b.toml", "title = ")]).fails(2, &["line 1"]);
    lab(&["run", &dir.file("c.toml", "title = 'c'\n")]).fails(2, &["neither request nor response"]);
}

#[test]
fn units_are_strict() {
    let wrong = [
        ("--delay", "20"),
        ("--delay", "-1ms"),
        ("--delay", "31m"),
        ("--rtt", "1000000s"),
        ("--rate", "100"),
        ("--rate", "0mbit"),
        ("--rate", "100mb"),
        ("--loss", "1"),
        ("--loss", "101%"),
        ("--mtu", "67"),
    ];
    for (option, value) in wrong {
        lab(&["link", &format!("{option}={value}"), "--", "true"]).fails(2, &[option, value]);
    }
    lab(&["link", "--queue", "64kb", "--", "true"]).fails(2, &["--rate"]);
    lab(&["link", "--delay", "1ms"]).fails(2, &["COMMAND"]);
    // How much a command sends is not known before it has: what cannot be lost is not promised.
    for way in ["up", "down"] {
        let drops = format!("link.{way}.drops=[{{what=\"last\",back=0}}]");
        lab(&["link", "--set", &drops, "--server", "true", "--", "true"])
            .fails(2, &["what=\"last\"", "what=\"seq\" with at=BYTE"]);
    }
    lab(&["link", "--set", "workload.requests=2", "--", "true"]).fails(2, &["link, client and server"]);
    lab(&["link", "--set", "link.rtt=1", "--", "true"]).fails(2, &["rtt", "did you mean"]);
}
