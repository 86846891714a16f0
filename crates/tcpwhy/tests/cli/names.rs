//! Names that somebody else chose: nothing in them acts on the terminal, or on the shell that a printed line
//! is pasted into.

use crate::common::{Dir, Pcap, smtp, tcpwhy};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Command, Stdio};

/// Sets the title, clears the screen, and the same by a single character (C1); turns the direction of writing.
const HOSTILE: &str = "\u{1b}]0;pwned\u{7}\u{1b}[2J\u{9b}2J\u{202e}a.pcap";

/// What the program writes to a terminal (`script` of bsdutils gives it one).
fn on_terminal(dir: &Dir, args: &[&str]) -> String {
    let quoted: Vec<String> = args.iter().map(|a| format!("'{a}'")).collect();
    let line = format!("exec {} {}", env!("CARGO_BIN_EXE_tcpwhy"), quoted.join(" "));
    let done = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .current_dir(&dir.0)
        .env("TERM", "xterm-256color")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8(done.stdout).unwrap()
}

/// Colours are ours; everything else that a terminal would act on is not.
#[track_caller]
fn is_harmless(text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c.is_control() && !"\n\t\r".contains(c) || c == '\u{202e}') {
        let tail = &rest[at..];
        let style = tail.strip_prefix("\u{1b}[").and_then(|t| t.split_once('m'));
        let Some((_, after)) = style.filter(|s| s.0.bytes().all(|b| b.is_ascii_digit() || b == b';')) else {
            panic!("{:?} acts on the terminal, in {text:?}", tail.chars().take(12).collect::<String>());
        };
        rest = after;
    }
}

#[test]
fn nothing_acts_on_the_terminal() {
    let dir = Dir::new();
    dir.file(HOSTILE, &fs::read(smtp()).unwrap());
    let other = format!("b{HOSTILE}");
    let mut later = Pcap::new();
    later.conversation(0, 3);
    dir.file(&other, &later.bytes);
    dir.file("damaged\u{1b}[2J.pcap", b"no capture at all");
    let title =
        dir.file("t\u{1b}[2J.toml", b"title = \"\\u001b]0;pwned\\u0007\"\n[workload]\nrequest = [1]\n");
    let c1 = dir.file("u\u{9b}2J.toml", "title = 'x' # \u{9b}2J\n[workload]\nrequest = [1]\n".as_bytes());
    let out = format!("out{HOSTILE}");
    for args in [
        &["explain", HOSTILE][..],
        &["explain", HOSTILE, "--connection", "1", "--exchange", "2"],
        &["explain", HOSTILE, &other],
        &["explain", HOSTILE, "damaged\u{1b}[2J.pcap"],
        &["explain", "damaged\u{1b}[2J.pcap"],
        &["explain", "missing\u{1b}[2J.pcap"],
        &["explain", HOSTILE, "-o", HOSTILE],
        &["explain", HOSTILE, "--html", &out],
        &["explain", "--none\u{1b}[2J"],
        &["none\u{1b}[2J"],
        &["compare", HOSTILE, HOSTILE],
        &["compare", HOSTILE, &other],
        &["slice", HOSTILE, "--connection", "1", "-o", &out],
        &["predict", "--like", HOSTILE],
        &["predict", "none\u{1b}[2J.toml"],
        &["serve", "none\u{1b}[2J.pcap"],
        &["causes", "none\u{1b}[2J"],
        #[cfg(target_os = "linux")]
        &["lab", "show", &title],
        #[cfg(target_os = "linux")]
        &["lab", "show", &c1],
        #[cfg(target_os = "linux")]
        &["lab", "run", &title],
        #[cfg(target_os = "linux")]
        &["lab", "run", "none\u{1b}[2J"],
    ] {
        let said = on_terminal(&dir, args);
        assert!(!said.is_empty(), "{args:?}");
        is_harmless(&said);
    }
    let said = on_terminal(&dir, &["explain", HOSTILE]);
    assert!(said.contains('\u{1b}'), "it is a terminal: there are colours");
    // What programs read is the name as it is.
    let path = dir.0.join(HOSTILE);
    let answer = tcpwhy(&["explain", path.to_str().unwrap(), "--json"]).json();
    assert_eq!(answer["capture"]["files"][0], path.to_str().unwrap());
}

/// A line of standard error is one of the program: a name with a line in it is written out.
#[test]
fn a_name_makes_no_line_of_its_own() {
    let dir = Dir::new();
    let name = "a\ntcpwhy: all is well";
    fs::create_dir(dir.0.join("folder")).unwrap();
    dir.file(&format!("folder/{name}.pcap"), b"");
    for args in [
        &["explain", name][..],
        &["explain", "folder"],
        &["explain", name, "folder"],
        &["compare", name, name],
        &["predict", "--like", name],
        &["predict", name],
        &["slice", name, "--connection", "1", "-o", "out"],
        &["explain", "x.pcap", &format!("--top={name}")],
        &["causes", name],
    ] {
        let ran = Command::new(env!("CARGO_BIN_EXE_tcpwhy")).args(args).current_dir(&dir.0).output().unwrap();
        let said = String::from_utf8(ran.stderr).unwrap();
        assert!(said.lines().all(|l| !l.starts_with("tcpwhy: all")), "{args:?}: {said}");
        assert!(said.contains("\\u{a}"), "{args:?}: {said}");
    }
}

/// The line that leads on, pasted into a shell, explains that file and runs nothing else.
#[test]
fn the_printed_line_can_be_pasted() {
    let dir = Dir::new();
    let bin = dir.0.join("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_tcpwhy"), bin.join("tcpwhy")).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    for name in [
        "$(touch PWNED).pcap",
        "`touch PWNED`.pcap",
        "a b; touch PWNED #.pcap",
        "-x.pcap",
        "it's.pcap",
        "\u{1b}]0;x\u{7}.pcap",
        "a\nb.pcap",
    ] {
        dir.file(name, &fs::read(smtp()).unwrap());
        let ran = Command::new(env!("CARGO_BIN_EXE_tcpwhy"))
            .args(["explain", "--", name])
            .current_dir(&dir.0)
            .output();
        let said = String::from_utf8(ran.unwrap().stdout).unwrap();
        let line = said.lines().find_map(|l| l.strip_prefix("see one: ")).unwrap_or_else(|| panic!("{said}"));
        let pasted =
            Command::new("bash").args(["-c", line]).current_dir(&dir.0).env("PATH", &path).output().unwrap();
        assert!(pasted.status.success(), "{line}: {}", String::from_utf8_lossy(&pasted.stderr));
        assert!(String::from_utf8_lossy(&pasted.stdout).contains("exchange"), "{line}");
        assert!(!dir.0.join("PWNED").exists(), "{line}");
    }
    // A name that is no text.
    let odd = std::ffi::OsStr::from_bytes(b"\xff.pcap");
    fs::copy(smtp(), dir.0.join(odd)).unwrap();
    let ran = Command::new(env!("CARGO_BIN_EXE_tcpwhy")).arg("explain").arg(odd).current_dir(&dir.0).output();
    assert!(
        String::from_utf8(ran.unwrap().stdout).unwrap().contains("tcpwhy explain $'\\377.pcap' --connection")
    );
}

#[test]
fn help_that_cannot_be_written_is_an_error() {
    for args in [&["--help"][..], &["--version"], &["explain", "--help"], &["lab", "run", "--help"]] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let done = Command::new(env!("CARGO_BIN_EXE_tcpwhy")).args(args).stdout(full).output().unwrap();
        assert_eq!(done.status.code(), Some(3), "{args:?}");
        assert!(String::from_utf8_lossy(&done.stderr).contains("cannot write standard output"));
        assert_eq!(tcpwhy(args).code, 0);
    }
}
