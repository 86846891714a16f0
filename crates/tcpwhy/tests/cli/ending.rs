//! However the program is ended: nothing temporary stays, and a part is never taken for the whole.

use crate::common::{ACK, Client, Dir, PSH, Pcap, SYN, Server, kill, program, smtp, tcpwhy, tcpwhy_with};
use std::fs;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn names(dir: &Path) -> Vec<String> {
    let list = fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned());
    list.collect()
}

/// Starts the program on a standard input that does not end, and waits until it has read and keeps something.
fn started(args: &[&str], dir: &Dir, until: impl Fn() -> bool) -> Child {
    let mut child = program()
        .args(args)
        .env("TMPDIR", &dir.0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pcap = Pcap::new();
    pcap.conversation(0, 5);
    child.stdin.as_mut().unwrap().write_all(&pcap.bytes).unwrap();
    let began = Instant::now();
    while !until() {
        assert!(began.elapsed() < Duration::from_secs(30), "it does not begin");
        std::thread::sleep(Duration::from_millis(10));
    }
    // It has taken in what was written.
    std::thread::sleep(Duration::from_millis(300));
    child
}

fn ended(mut child: Child) -> Output {
    drop(child.stdin.take());
    child.wait_with_output().unwrap()
}

/// As `ended`, after so many seconds for the signal: on a busy machine it may be taken note of after the
/// input had ended.
fn stopped(mut child: Child, seconds: u64) -> Output {
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() && began.elapsed() < Duration::from_secs(seconds) {
        std::thread::sleep(Duration::from_millis(10));
    }
    ended(child)
}

#[test]
fn signals_leave_no_temporary_file() {
    for (signal, number) in [("TERM", 15), ("HUP", 1)] {
        for option in ["--html", "--annotate", "-o"] {
            let dir = Dir::new();
            let target = dir.0.join("out").to_str().unwrap().to_owned();
            let kept = || names(&dir.0).iter().any(|n| n.ends_with(".part") || n.ends_with(".capture"));
            // Only what needs a second look at the packets keeps standard input.
            let args: &[&str] = if option == "-o" {
                &["explain", "-", "--jsonl", "-o", &target]
            } else {
                &["explain", "-", option, &target]
            };
            let child = started(args, &dir, kept);
            kill(&child, signal);
            let done = stopped(child, 30);
            assert_eq!(done.status.signal(), Some(number), "{signal} {option}");
            assert_eq!(names(&dir.0), <[&str; 0]>::default(), "{signal} {option}");
        }
    }
}

/// Who started the program with `nohup` wants it to go on when the terminal goes.
#[test]
fn a_hangup_that_is_ignored_stays_ignored() {
    let dir = Dir::new();
    let mut child = Command::new("nohup")
        .args([env!("CARGO_BIN_EXE_tcpwhy"), "explain", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .current_dir(&dir.0)
        .spawn()
        .unwrap();
    let mut pcap = Pcap::new();
    pcap.conversation(0, 5);
    std::thread::sleep(Duration::from_millis(500));
    kill(&child, "HUP");
    child.stdin.as_mut().unwrap().write_all(&pcap.bytes).unwrap();
    assert_eq!(ended(child).status.code(), Some(0));
}

/// What is followed has no end of its own: a service manager that stops it gets the answer about what has come.
#[test]
fn what_is_followed_is_explained_whatever_asks_for_the_end() {
    for signal in ["INT", "TERM", "HUP"] {
        for form in ["--jsonl", "--json"] {
            let dir = Dir::new();
            let child = started(&["explain", "-", "--follow", form], &dir, || true);
            kill(&child, signal);
            let done = stopped(child, 20);
            assert_eq!(
                done.status.code(),
                Some(0),
                "{signal} {form}: {}",
                String::from_utf8_lossy(&done.stderr)
            );
            let said = String::from_utf8(done.stdout).unwrap();
            assert!(said.contains("\"tcp_packets\":23"), "{signal} {form}: {said}");
        }
    }
}

/// A part is explained, said to be one in every form, and ends with a code of its own.
#[test]
fn an_interrupt_is_no_green_answer() {
    let dir = Dir::new();
    let page = dir.0.join("page.html").to_str().unwrap().to_owned();
    let json = dir.0.join("answer.json").to_str().unwrap().to_owned();
    let kept = || names(&dir.0).iter().any(|n| n.ends_with(".capture"));
    let args = ["explain", "-", "--html", &page, "--json", "-o", &json, "-q", "--fail-if", "tcp>99%"];
    let child = started(&args, &dir, kept);
    kill(&child, "INT");
    let done = stopped(child, 20);
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(130), "{said}");
    assert!(said.contains("interrupted: this is about the 23 packets before"), "also with -q: {said}");
    let answer: serde_json::Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    let codes: Vec<_> = answer["capture"]["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|w| w["code"].as_str().unwrap())
        .collect();
    assert!(codes.contains(&"interrupted"), "{codes:?}");
    assert!(fs::read_to_string(&page).unwrap().contains("reading was interrupted"));
    let mut left = names(&dir.0);
    left.sort();
    assert_eq!(left, ["answer.json", "page.html"]);
}

/// A look at a host ends with what it has seen, whoever asks for that.
#[cfg(target_os = "linux")]
#[test]
fn a_check_that_is_ended_says_what_it_saw() {
    for signal in ["INT", "TERM"] {
        let dir = Dir::new();
        let child = started(&["check", "--watch", "60s"], &dir, || true);
        kill(&child, signal);
        let done = stopped(child, 20);
        assert_eq!(done.status.code(), Some(130), "{signal}: {}", String::from_utf8_lossy(&done.stderr));
        let said = String::from_utf8(done.stdout).unwrap();
        assert!(said.contains("looked for "), "{signal}: {said}");
    }
}

/// It says what was read though its input stays open, also where nothing has come.
#[test]
fn an_interrupt_ends_the_wait_for_an_input_that_stays_open() {
    for (args, packets) in [
        (&["explain", "-"][..], 23),
        (&["explain", "-", "--jsonl"], 23),
        (&["explain", "-", "--html", "page.html"], 23),
        (&["explain", "-", "--why-not", "nagle"], 0),
    ] {
        let dir = Dir::new();
        let mut child = program()
            .args(args)
            .current_dir(&dir.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut pcap = Pcap::new();
        pcap.conversation(0, 5);
        // The interrupt comes in the middle of a packet, or of the header.
        let cut = if packets > 0 { &pcap.bytes[..] } else { &pcap.bytes[..10] };
        child.stdin.as_mut().unwrap().write_all(cut).unwrap();
        child.stdin.as_mut().unwrap().write_all(&[0; 3]).unwrap();
        std::thread::sleep(Duration::from_millis(700));
        kill(&child, "INT");
        let began = Instant::now();
        while child.try_wait().unwrap().is_none() {
            assert!(began.elapsed() < Duration::from_secs(20), "{args:?} waits for its input");
            std::thread::sleep(Duration::from_millis(10));
        }
        let done = ended(child);
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(130), "{args:?}: {said}");
        assert!(said.contains(&format!("interrupted: this is about the {packets} packets before")), "{said}");
        assert!(!said.contains("damaged") && !said.contains("cut"), "{said}");
    }
}

/// A pipe with a name, whose writer does not come: the first interrupt ends the wait for it.
#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_ends_the_wait_for_a_writer() {
    let capture = smtp();
    for (args, said) in [
        (&["explain", "pipe"][..], "interrupted: this is about the 0 packets before"),
        (&["explain", "pipe", "--jsonl"], "interrupted: this is about the 0 packets before"),
        (&["explain", &capture, "pipe"], "interrupted: this is about the "),
        (&["explain", "pipe", "other"], "interrupted: this is about the 0 packets before"),
        (&["explain", "pipe", "--parquet", "tables"], "interrupted: "),
        (&["compare", &capture, "pipe"], "interrupted: nothing was written"),
        (&["slice", "pipe", "--connection", "1", "-o", "out.pcapng"], "interrupted: nothing was written"),
    ] {
        let dir = Dir::new();
        assert!(
            Command::new("mkfifo").args(["pipe", "other"]).current_dir(&dir.0).status().unwrap().success()
        );
        let mut child = program()
            .args(args)
            .current_dir(&dir.0)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(700));
        kill(&child, "INT");
        let began = Instant::now();
        while child.try_wait().unwrap().is_none() && began.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(10));
        }
        // One that goes on waiting is told by its status.
        let _ = child.kill();
        let done = child.wait_with_output().unwrap();
        let err = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(130), "{args:?}: {err}");
        assert!(err.contains(said) && !err.contains("empty"), "{args:?}: {err}");
    }
}

/// The writer may come before or after, at once or slowly: all that it wrote is read.
#[cfg(target_os = "linux")]
#[test]
fn a_pipe_with_a_name_is_read_to_its_end() {
    let dir = Dir::new();
    let pipe = dir.0.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let whole = tcpwhy(&["--json", &smtp()]).json();
    for script in [
        "cat \"$0\" >pipe",
        "sleep 0.5; cat \"$0\" >pipe",
        "exec >pipe; sleep 0.3; head -c 5000 \"$0\"; sleep 0.3; tail -c +5001 \"$0\"",
    ] {
        let mut writer =
            Command::new("sh").args(["-c", script, &smtp()]).current_dir(&dir.0).spawn().unwrap();
        let read = tcpwhy(&["--json", pipe.to_str().unwrap()]);
        writer.wait().unwrap();
        assert_eq!((read.code, read.err.as_str()), (0, ""), "{script}");
        let read = read.json();
        assert_eq!(read["capture"]["packets"], whole["capture"]["packets"], "{script}");
        assert_eq!(read["connections"], whole["connections"], "{script}");
    }
}

/// Pipes as shells make them of programs (`<(zstdcat a.pcap.zst)`): whatever reads twice or several inputs
/// says what it says of files.
#[cfg(target_os = "linux")]
#[test]
fn pipes_are_read_as_often_as_files() {
    let dir = Dir::new();
    let other = format!("{}/../../captures/zeek__tcp_ssh-dups.pcap", env!("CARGO_MANIFEST_DIR"));
    assert!(Command::new("mkfifo").args(["one", "two"]).current_dir(&dir.0).status().unwrap().success());
    // Nothing waits for ever: a program that opens a pipe a second time has no writer.
    let ran = |args: &[&str], files: [&str; 2]| {
        let args = args.iter().map(|&arg| match arg {
            "one" => files[0],
            "two" => files[1],
            arg => arg,
        });
        let mut limited = Command::new("timeout");
        limited.arg("30").arg(env!("CARGO_BIN_EXE_tcpwhy")).args(args).current_dir(&dir.0);
        let done = limited.stderr(Stdio::null()).output().unwrap();
        (done.status.code(), String::from_utf8_lossy(&done.stdout).into_owned())
    };
    for args in [
        &["one", "--names"][..],
        &["one", "--from", "1"],
        &["one", "--connection", "1", "--exchange", "1"],
        &["one", "--html", "page.html"],
        &["slice", "one", "--connection", "1", "-o", "-"],
        &["one", "two"],
        &["one", "two", "--jsonl"],
        &["one", "two", "--html", "page.html"],
        &["compare", "one", "two"],
    ] {
        let writers = ["one", "two"].map(|pipe| {
            let file = if pipe == "one" { smtp() } else { other.clone() };
            let script = "exec cat \"$0\" >\"$1\"";
            Command::new("sh").args(["-c", script, &file, pipe]).current_dir(&dir.0).spawn().unwrap()
        });
        let piped = ran(args, ["one", "two"]);
        for mut writer in writers {
            let _ = writer.kill();
            let _ = writer.wait();
        }
        let files = ran(args, [&smtp(), &other]);
        let named = |text: &str| {
            let text = text.replace(&smtp(), "one").replace(&other, "two");
            text.replace("zeek__smtp_bdat.pcap", "one").replace("zeek__tcp_ssh-dups.pcap", "two")
        };
        assert_eq!(piped.0, files.0, "{args:?}");
        let words = |text: &str| named(text).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&piped.1), words(&files.1), "{args:?}");
    }
}

#[test]
fn a_condition_about_nothing_does_not_hold_and_is_not_met() {
    let dir = Dir::new();
    let capture = smtp();
    let fails = |args: &[&str]| {
        let ran = tcpwhy(args);
        assert_eq!(ran.code, 3, "{args:?}: {}", ran.err);
        assert!(ran.err.contains("--fail-if cannot be judged: no TCP connection is left"), "{}", ran.err);
    };
    fails(&[&capture, "--filter", "port 9", "--fail-if", "tcp>5%"]);
    fails(&[&capture, "--filter", "port 9", "--fail-if", "tcp>5%", "--jsonl"]);
    let mut udp = Pcap::new();
    udp.udp(0).udp(1000);
    let udp = dir.file("udp.pcap", &udp.bytes);
    fails(&[&udp, "--fail-if", "tcp>5%"]);
    assert_eq!(tcpwhy(&[&capture, "--filter", "port 9"]).code, 0, "nothing was asked");
    let mut small = Pcap::new();
    small.conversation(0, 3);
    let small = dir.file("small.pcap", &small.bytes);
    let mut none = Pcap::new();
    none.conversation(0, 0);
    let none = dir.file("none.pcap", &none.bytes);
    let ran = tcpwhy(&["compare", &small, &none, "--fail-if", "median>5%"]);
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert!(ran.err.contains("--fail-if cannot be judged"), "{}", ran.err);
    // Of three exchanges the middle one may be anything.
    let mut later = Pcap::new();
    later.conversation(1_000_000, 3);
    let later = dir.file("later.pcap", &later.bytes);
    let ran = tcpwhy(&["compare", &small, &later, "--fail-if", "median>5%"]);
    assert_eq!(ran.code, 3, "{}", ran.err);
    let said = "--fail-if 'median>5%' cannot be judged: too few exchanges, 3 before and 3 after";
    assert!(ran.err.contains(said), "{}", ran.err);
}

/// Names that somebody planted, and files that a killed run left, are in nobody's way.
#[test]
fn planted_names_are_no_obstacle() {
    let dir = Dir::new();
    let page = dir.0.join("page.html").to_str().unwrap().to_owned();
    let old = dir.0.join(".page.html.1-0123456789abcdef.part");
    let file = fs::File::create(&old).unwrap();
    file.set_modified(std::time::SystemTime::now() - Duration::from_secs(3600)).unwrap();
    let ran = tcpwhy_with(&[&smtp(), "--html", &page, "-q"], b"");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(names(&dir.0), ["page.html"], "the orphan is gone");
}

/// Of a request that a proxy passes on no moment counts twice, in whatever form it is said: the verdict is the same.
#[test]
fn the_verdict_does_not_depend_on_the_form_of_the_answer() {
    let dir = Dir::new();
    let mut pcap = Pcap::new();
    for (at, hosts) in [(0, (1, 2)), (1_000, (2, 3))] {
        pcap.hosts = hosts;
        pcap.tcp(at, Client, SYN, 0, 0, 0);
        pcap.tcp(at + 20, Server, SYN | ACK, 0, 1, 0);
        pcap.tcp(at + 40, Client, ACK, 1, 1, 0);
    }
    for i in 0..20 {
        let at = 1_000_000 + i * 100_000;
        let (seq, ack) = (1 + i as u32 * 100, 1 + i as u32 * 200);
        // A client asks 10.0.0.2, which takes 60 ms, and asks 10.0.0.3 meanwhile, which takes 50 of them.
        for (hosts, from, end, flags, seq, ack, len) in [
            ((1, 2), Client, 0, PSH | ACK, seq, ack, 100),
            ((2, 3), Client, 5_000, PSH | ACK, seq, ack, 100),
            ((2, 3), Server, 55_000, PSH | ACK, ack, seq + 100, 200),
            ((2, 3), Client, 55_020, ACK, seq + 100, ack + 200, 0),
            ((1, 2), Server, 60_000, PSH | ACK, ack, seq + 100, 200),
            ((1, 2), Client, 60_020, ACK, seq + 100, ack + 200, 0),
        ] {
            pcap.hosts = hosts;
            pcap.tcp(at + end, from, flags, seq, ack, len);
        }
    }
    let path = dir.file("proxied.pcap", &pcap.bytes);
    for form in ["-q", "--json", "--jsonl"] {
        for detail in [&[][..], &["--exchanges", "all"], &["--exchanges", "none"]] {
            // 20 times 60 ms; with both hops counted it would be 2.2 s.
            for (condition, code) in [("server_think>1.5s", 0), ("server_think>1s", 4)] {
                let args = [&[&path, "--fail-if", condition, form][..], detail].concat();
                assert_eq!(tcpwhy(&args).code, code, "{args:?}");
            }
        }
    }
}

/// Nobody reads the answer, or not to its end: what was found is so all the same.
#[test]
fn the_verdict_does_not_depend_on_who_reads_the_answer() {
    let dir = Dir::new();
    let cut = dir.file("cut.pcap", &fs::read(smtp()).unwrap()[..9_000]);
    for (args, code) in [
        (vec![smtp(), "--fail-if".into(), "tcp".into()], 4),
        (vec![smtp(), "--json".into(), "--fail-if".into(), "tcp".into()], 4),
        (vec![smtp(), "--jsonl".into(), "--fail-if".into(), "tcp".into()], 4),
        (vec![smtp(), "--json".into(), "--fail-if".into(), "tcp>99%".into()], 0),
        (vec![cut], 1),
    ] {
        let mut child = program().args(&args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(code), "{args:?}");
    }
}

/// Nothing can be written to what whoever started it had closed, and nothing else is.
#[cfg(target_os = "linux")]
#[test]
fn a_closed_output_is_said() {
    let dir = Dir::new();
    let path = dir.file("smtp.pcap", &fs::read(smtp()).expect("a bundled capture"));
    let shell = |script: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", script, env!("CARGO_BIN_EXE_tcpwhy"), &path]);
        let done = command.stdout(Stdio::null()).output().expect("a shell");
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    for what in [
        "explain \"$1\"",
        "explain --json \"$1\"",
        "--jsonl \"$1\"",
        "predict --rtt 10ms --request 1KiB --response 1KiB",
        "causes --json",
        "completions bash",
        "man",
        "--help",
    ] {
        let (code, said) = shell(&format!("\"$0\" {what} >&-"));
        assert!(
            code == Some(3) && said.contains("standard output: it was closed"),
            "{what}: {code:?} {said}"
        );
    }
    assert_eq!(shell("\"$0\" \"$1\" -o \"$1.txt\" >&-"), (Some(0), String::new()));
    assert_eq!(shell("\"$0\" \"$1\" >/dev/null"), (Some(0), String::new()));
    assert_eq!(shell("\"$0\" \"$1\" <&-"), (Some(0), String::new()));
}
