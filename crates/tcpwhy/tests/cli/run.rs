//! `tcpwhy run`, as a user without any privileges; where the kernel refuses that, skipped with its reason.

use crate::common::{Dir, Ran, kill, smtp};
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

mod bounds;

/// Requests of a header and a body in two writes each, answered alike, over one connection.
const STALLS: &str = "
import socket, sys, threading
count, nodelay = int(sys.argv[1]), 'nodelay' in sys.argv
def tune(s):
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, nodelay)
    return s
def serve(listener):
    c = tune(listener.accept()[0])
    while c.recv(204, socket.MSG_WAITALL):
        c.send(b'h' * 4); c.send(b'b' * 100)
listener = socket.create_server(('127.0.0.1', 0))
threading.Thread(target=serve, args=[listener], daemon=True).start()
c = tune(socket.create_connection(listener.getsockname()))
for _ in range(count):
    c.send(b'h' * 4); c.send(b'b' * 200)
    c.recv(104, socket.MSG_WAITALL)
print('done')
";

/// A user that may do nothing: nobody, where root runs the tests.
struct User {
    /// The program where that user can read it, and place for files.
    dir: Dir,
    root: bool,
    /// Runs disturb each other's times.
    alone: Option<MutexGuard<'static, ()>>,
}

impl User {
    /// None, after saying why, where that user may have no network of its own.
    fn new() -> Option<User> {
        static ONE: Mutex<()> = Mutex::new(());
        let alone = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let root = fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0);
        let dir = Dir::new();
        let open = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o777);
        fs::set_permissions(&dir.0, open).unwrap();
        fs::copy(env!("CARGO_BIN_EXE_tcpwhy"), dir.0.join("tcpwhy")).unwrap();
        fs::write(dir.0.join("stalls.py"), STALLS).unwrap();
        let user = User { dir, root, alone: Some(alone) };
        let tried = user.run(&["-q", "--", "true"]);
        if tried.code == 125 && tried.err.contains("no network of its own") {
            crate::skips::skip("run", &tried.err, env!("CARGO_TARGET_TMPDIR"));
            return None;
        }
        tried.ends(0, &["run: true returned 0"]);
        Some(user)
    }

    fn command(&self) -> Command {
        let mut command = self.as_user();
        command.arg("./tcpwhy").arg("run");
        command
    }

    /// What follows is done as that user.
    fn as_user(&self) -> Command {
        let mut command = Command::new("env");
        command.args(["--default-signal=HUP,INT,TERM"]).current_dir(&self.dir.0);
        if self.root {
            command.args(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]);
        }
        command
    }

    fn run(&self, args: &[&str]) -> Ran {
        let done = self.command().args(args).stdin(Stdio::null()).output().unwrap();
        Ran {
            code: done.status.code().unwrap_or(-1),
            out: String::from_utf8(done.stdout).unwrap(),
            err: String::from_utf8(done.stderr).unwrap(),
        }
    }

    /// Starts it and waits for the first line that the command prints.
    fn start(&self, args: &[&str]) -> (Child, String) {
        let mut child =
            self.command().args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        (child, line.trim().to_owned())
    }
}

impl Ran {
    /// The code, words that are on standard error, and the code in its last line, which stands there for our
    /// failures, too.
    #[track_caller]
    fn ends_with_answer(&self, code: i32, words: &[&str]) {
        self.ends(code, words);
        let last = self.err.lines().last().unwrap_or_default();
        assert!(last.ends_with(&format!("exit code {code}")), "{last}");
    }

    /// The code, words that are on standard error, and the code in its last line.
    #[track_caller]
    fn ends(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        for word in words {
            assert!(self.err.contains(word), "{word:?} is not in {}", self.err);
        }
        if ![125, 126, 127].contains(&code) {
            let last = self.err.lines().last().unwrap_or_default();
            assert!(last.ends_with(&format!("exit code {code}")), "{last}");
        }
    }
}

fn ended(child: Child) -> Ran {
    let done = child.wait_with_output().unwrap();
    Ran {
        code: done.status.code().unwrap_or(-1),
        out: String::from_utf8(done.stdout).unwrap(),
        err: String::from_utf8(done.stderr).unwrap(),
    }
}

/// Waits until a process is gone.
#[track_caller]
fn is_gone(id: &str) {
    let start = Instant::now();
    while Path::new("/proc").join(id).exists() {
        assert!(start.elapsed() < Duration::from_secs(5), "process {id} is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn stalls_are_named_and_the_fixed_program_passes() {
    let Some(user) = User::new() else { return };
    let guarded = |extra: &[&str]| {
        user.run(&[&["--fail-if", "nagle_delayed_ack>5%", "--", "python3", "stalls.py", "8"], extra].concat())
    };
    let slow = guarded(&[]);
    slow.ends(4, &["Nagle held a small write", "nagle_delayed_ack>5% holds", "returned 0"]);
    assert_eq!(slow.out, "done\n", "what the command prints stays as it is");
    // On one quiet host an ACK may happen to come between two writes that nobody held, microseconds apart:
    // then once more.
    let mut runs = (0..5).map(|_| guarded(&["nodelay"])).skip_while(|ran| ran.err.contains("Nagle held"));
    let fixed = runs.next().expect("none of five runs without a hold");
    fixed.ends(0, &["returned 0"]);
    assert!(!fixed.err.contains("Nagle held"), "{}", fixed.err);
    // A handshake and eight requests; each round trip over what it took here.
    let line = fixed.err.lines().find(|l| l.starts_with("at a distance: 9 round trips in a row"));
    let said = |what: &str| -> f64 {
        let line = line.unwrap_or_else(|| panic!("{}", fixed.err));
        let words: Vec<&str> = line.split([' ', ',']).filter(|w| !w.is_empty()).collect();
        let at = words.windows(4).find(|w| w[2] == "at" && w[3] == what).unwrap();
        at[0].parse::<f64>().unwrap() * if at[1] == "s" { 1000.0 } else { 1.0 }
    };
    let (near, far) = (said("40.0"), said("100"));
    // 60 ms more nine times; the figures are rounded to three digits.
    assert!((far - near - 540.0).abs() < 30.0, "{near} {far}");
    assert!(fixed.err.contains("grows most: "), "{}", fixed.err);
}

#[test]
fn the_example_shows_both_stalls() {
    let Some(user) = User::new() else { return };
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/length-prefix");
    for name in ["client.py", "server.py"] {
        fs::copy(examples.join(name), user.dir.0.join(name)).unwrap();
    }
    let ran = user.run(&["--", "./client.py"]);
    ran.ends(0, &["returned 0"]);
    assert!(ran.err.matches("Nagle held a small write").count() >= 2, "{}", ran.err);
    for side in ["at the client", "at the server"] {
        assert!(ran.err.contains(side), "{side}: {}", ran.err);
    }
    // The client's stall is loopback's alone: a millisecond away it is faster, and why is said.
    let line = ran.err.lines().find(|l| l.starts_with("at a distance: 11 round trips in a row; instead of "));
    let line = line.unwrap_or_else(|| panic!("{}", ran.err));
    let ms = |text: &str| -> f64 {
        let words: Vec<&str> = text.split([' ', ',']).collect();
        words[0].parse::<f64>().unwrap() * if words[1] == "s" { 1000.0 } else { 1.0 }
    };
    let after = |what: &str| ms(line.split_once(what).unwrap_or_else(|| panic!("{line}")).1);
    assert!(after("would take ") < after("instead of ") - 200.0, "{line}");
    assert!(
        line.contains("stalls of delayed ACKs (") && line.contains("fewer where segments of 1448 bytes"),
        "{line}"
    );
    assert!(
        ran.err
            .contains("tcpwhy run --keep tcpwhy-kept -- ./client.py; tcpwhy explain tcpwhy-kept/run.pcap "),
        "{}",
        ran.err
    );
}

#[test]
fn loopback_at_a_distance() {
    let Some(user) = User::new() else { return };
    let ran =
        user.run(&["--rtt", "40ms", "--json", "-o", "a.json", "--", "python3", "stalls.py", "5", "nodelay"]);
    ran.ends(0, &["link: 40.0 ms round trip", "::1 is off", "late by"]);
    let json: Value = serde_json::from_slice(&fs::read(user.dir.0.join("a.json")).unwrap()).unwrap();
    let c = &json["connections"][0];
    let rtt = c["path"]["rtt_ns"].as_f64().unwrap() / 1e6;
    // The kernel's part and a late wake-up only add.
    assert!((40.0..48.0).contains(&rtt), "{rtt}");
    let ms = |x: &Value| (x["end_ns"].as_f64().unwrap() - x["start_ns"].as_f64().unwrap()) / 1e6;
    let times: Vec<f64> = c["exchanges"].as_array().unwrap().iter().map(ms).collect();
    // One round trip each; a busy machine only adds.
    assert!(times.len() == 5 && times.iter().all(|&t| t >= 40.0), "{times:?}");
    assert!(times.iter().any(|&t| t < 60.0), "{times:?}");
}

#[test]
fn a_server_on_a_host_of_its_own() {
    let Some(user) = User::new() else { return };
    let ask = "import os,socket; c=socket.create_connection((os.environ['TCPWHY_SERVER'],8000)); c.send(b'GET / HTTP/1.0\\r\\n\\r\\n'); print(c.recv(15))";
    let server = "python3 -m http.server 8000 2>/dev/null";
    let ran = user.run(&["--rtt", "10ms", "--server", server, "--", "python3", "-c", ask]);
    ran.ends(0, &["10.77.0.1:", "10.77.0.2:8000", "link: 10.0 ms"]);
    assert!(ran.out.contains("HTTP/1.0 200"), "{}", ran.out);
    assert!(!ran.err.contains("left behind"), "the server is expected: {}", ran.err);
    let ran = user.run(&["--server", "exit 3", "--", "true"]);
    ran.fails(125, &["the server's command: it ended (exit status: 3), and nothing listens on a TCP port"]);
}

#[test]
fn a_server_that_never_listens() {
    let Some(mut user) = User::new() else { return };
    // Half a minute, which no other run has to wait for.
    user.alone = None;
    let ran = user.run(&["--server", "sleep 100", "--", "true"]);
    ran.fails(125, &["the server's command: it has run for 30 s, and nothing listens on a TCP port"]);
}

#[test]
fn the_command_ends_as_it_does() {
    let Some(user) = User::new() else { return };
    user.run(&["--", "sh", "-c", "exit 7"]).ends(7, &["returned 7"]);
    user.run(&["--", "sh", "-c", "kill -9 $$"]).ends(137, &["ended by signal 9"]);
    user.run(&["--", "there-is-no-such-command"]).fails(127, &["no such command in PATH", "sh -c"]);
    user.run(&["--", "./nothing-here"]).fails(127, &["no such file"]);
    user.run(&["--", "./stalls.py"]).fails(126, &["no permission to execute", "chmod +x"]);
    let script = user.dir.file("script", "#!/there/is/no/such/shell\n".as_bytes());
    let executable = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    fs::set_permissions(&script, executable).unwrap();
    user.run(&["--", &script]).fails(126, &["first line"]);
    // A condition about nothing is no success; the command's own failure is worth more than a condition.
    user.run(&["--fail-if", "tcp>5%", "--", "true"]).ends(125, &["cannot be judged"]);
    user.run(&["--repeat", "3", "--", "true"]).ends(0, &["3 runs took"]);
}

#[test]
fn it_keeps_files_environment_input_and_user() {
    let Some(user) = User::new() else { return };
    let done = user
        .command()
        .args(["-q", "--", "sh", "-c", "pwd; echo $MINE; id -u; cat"])
        .env("MINE", "kept")
        .stdin(fs::File::open(user.dir.0.join("stalls.py")).unwrap())
        .output()
        .unwrap();
    let id = Command::new("id").arg("-u").output().unwrap().stdout;
    let own = if user.root { "65534\n".into() } else { String::from_utf8(id).unwrap() };
    let here = user.dir.0.canonicalize().unwrap();
    assert_eq!(String::from_utf8(done.stdout).unwrap(), format!("{}\nkept\n{own}{STALLS}", here.display()));
}

#[test]
fn beyond_its_network_there_is_nothing() {
    let Some(user) = User::new() else { return };
    let start = Instant::now();
    let ask = "import socket
try: socket.create_connection(('192.0.2.7', 443), 20)
except OSError as e: print(e.errno)";
    let ran = user.run(&["--", "python3", "-c", ask]);
    ran.ends(0, &["tried to reach 192.0.2.7:443", "no outside network"]);
    // ENETUNREACH, at once.
    assert_eq!(ran.out, "101\n");
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[test]
fn the_capture_is_kept_where_it_is_wanted() {
    let Some(user) = User::new() else { return };
    let ran = user.run(&[
        "--keep",
        "kept",
        "--html",
        "page.html",
        "--annotate",
        "notes.pcapng",
        "--",
        "python3",
        "stalls.py",
        "3",
    ]);
    ran.ends(0, &["the page is"]);
    for file in ["kept/run.pcap", "notes.pcapng"] {
        let path = user.dir.0.join(file);
        let again = crate::common::tcpwhy(&["--json", path.to_str().unwrap()]).json();
        assert_eq!(again["connections"].as_array().unwrap().len(), 1, "{file}");
    }
    assert!(fs::read_to_string(user.dir.0.join("page.html")).unwrap().contains("<html"));
    user.run(&["-o", &smtp(), "--", "true"]).ends(125, &["cannot write"]);
}

/// Who reads the answer may stop early (`2>&1 | head -1`): the code stays that of the command, and what is
/// written besides is whole. A full disk is a failure of ours.
#[test]
fn it_ends_as_the_command_did_whoever_reads_the_answer() {
    let Some(user) = User::new() else { return };
    let unread = |args: &[&str], json: bool| {
        let mut command = user.command();
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // The command waits until nobody reads any more.
        let goes = child.stdout.take().filter(|_| json);
        drop((goes, child.stderr.take().filter(|_| !json)));
        fs::write(user.dir.0.join("go"), "").unwrap();
        let code = child.wait().unwrap().code();
        fs::remove_file(user.dir.0.join("go")).unwrap();
        code
    };
    let wait = |code: i32| format!("until [ -e go ]; do sleep 0.02; done; python3 stalls.py 8; exit {code}");
    for code in [0, 7] {
        let wait = wait(code);
        assert_eq!(unread(&["--ci", "ci", "--", "sh", "-c", &wait], false), Some(code));
        assert!(fs::read_dir(user.dir.0.join("ci")).unwrap().count() > 0, "what CI reads is written");
        fs::remove_dir_all(user.dir.0.join("ci")).unwrap();
        assert_eq!(unread(&["--json", "--", "sh", "-c", &wait], true), Some(code));
    }
    assert_eq!(
        unread(&["-q", "--fail-if", "nagle_delayed_ack>1ms", "--", "sh", "-c", &wait(0)], false),
        Some(4)
    );
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = user.command();
    let done = command.args(["--json", "--", "true"]).stdin(Stdio::null()).stdout(full).output().unwrap();
    assert_eq!(done.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&done.stderr).contains("cannot write standard output"));
}

#[test]
fn nothing_outlives_it() {
    let Some(user) = User::new() else { return };
    // A child that left the group and the session, with its number.
    let tree = "setsid sleep 300 & echo $!; wait";
    // It goes by that name once it has called exec.
    let left = "sleep 300 >/dev/null 2>&1 & p=$!; until grep -q sleep /proc/$p/comm; do :; done; echo $p";
    let ran = user.run(&["-q", "--", "sh", "-c", left]);
    ran.ends(0, &["left behind: sleep"]);
    is_gone(ran.out.trim());
    for signal in ["KILL", "TERM", "INT"] {
        let (child, sleeper) = user.start(&["-q", "--", "sh", "-c", tree]);
        kill(&child, signal);
        let ran = ended(child);
        match signal {
            "KILL" => assert_eq!(ran.code, -1),
            "TERM" => ran.ends(143, &["ended by signal 15"]),
            _ => ran.ends(130, &["ended by signal 2"]),
        }
        is_gone(&sleeper);
    }
}

#[test]
fn the_second_interrupt_is_force() {
    let Some(user) = User::new() else { return };
    let deaf = "trap 'echo heard' INT; echo ready; while :; do sleep 0.05; done";
    let (mut child, _) = user.start(&["-q", "--", "sh", "-c", deaf]);
    kill(&child, "INT");
    std::thread::sleep(Duration::from_millis(300));
    // Part of the first, as `timeout` sends its signal twice.
    kill(&child, "INT");
    std::thread::sleep(Duration::from_millis(1200));
    assert!(child.try_wait().unwrap().is_none(), "killed by two signals of one request");
    kill(&child, "INT");
    let ran = ended(child);
    ran.ends(137, &["killed after the second request to end"]);
    assert!(ran.out.contains("heard"), "the first one is the command's own: {}", ran.out);
}

#[test]
fn a_baseline_is_written_and_then_guarded() {
    let Some(user) = User::new() else { return };
    let run = |extra: &[&str]| {
        user.run(&[&["-q", "--baseline", "base.json", "--", "python3", "stalls.py"], extra].concat())
    };
    run(&["8", "nodelay"]).ends(0, &["base.json did not exist and was written"]);
    run(&["8", "nodelay"]).ends(0, &["returned 0"]);
    // The stall is back; more requests than before.
    run(&["8"]).ends(4, &["--baseline: stalls by nagle_delayed_ack: ", ", and 0 before"]);
    run(&["20", "nodelay"])
        .ends(4, &["--baseline: requests: 20, and 8 before", "round trips in a row: 21, and 9"]);
    fs::write(user.dir.0.join("base.json"), "{}").unwrap();
    run(&["8"]).fails(125, &["base.json is no baseline", "remove it"]);
}

#[test]
fn the_document_tells_the_run_and_a_later_one_is_compared() {
    let Some(user) = User::new() else { return };
    let ran =
        user.run(&["--json", "-o", "old.json", "--fail-if", "tcp>5%", "--", "python3", "stalls.py", "8"]);
    ran.ends(4, &[]);
    let json: Value = serde_json::from_slice(&fs::read(user.dir.0.join("old.json")).unwrap()).unwrap();
    let run = &json["run"];
    assert_eq!(run["command"], "python3 stalls.py 8");
    assert_eq!((&run["exit_code"], &run["runs"][0]["exit_code"]), (&4.into(), &0.into()));
    assert_eq!((&run["figures"]["connections"], &run["figures"]["requests"]), (&1.into(), &8.into()));
    assert_eq!(run["at_a_distance"]["round_trips_least"], 9);
    assert!(run["failed"][0].as_str().unwrap().starts_with("tcp>5% holds"));
    let stalled = run["causes_ns"]["nagle_delayed_ack"].as_i64().unwrap();
    assert!(stalled > 400_000_000, "{stalled}");
    let ran = user.run(&["-q", "--compare", "old.json", "--", "python3", "stalls.py", "8", "nodelay"]);
    ran.ends(0, &["compared: ", "  nagle_delayed_ack: ", "0 ns now"]);
    user.run(&["--compare", "stalls.py", "--", "true"]).fails(125, &["stalls.py is no JSON of tcpwhy run"]);
}

#[test]
fn ci_systems_are_told() {
    let Some(user) = User::new() else { return };
    let args = ["-q", "--ci", "out", "--fail-if", "nagle_delayed_ack>5%", "--", "python3", "stalls.py", "4"];
    let done = user
        .command()
        .args(args)
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_STEP_SUMMARY", "step.md")
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(4));
    let err = String::from_utf8(done.stderr).unwrap();
    assert!(err.contains("::error title=tcpwhy::nagle_delayed_ack>5%25 holds"), "{err}");
    let file = |name: &str| fs::read_to_string(user.dir.0.join(name)).unwrap();
    let junit = file("out/junit.xml");
    assert!(junit.contains("tests=\"2\" failures=\"1\""), "{junit}");
    assert!(junit.contains("name=\"nagle_delayed_ack&gt;5%\""), "{junit}");
    assert_eq!(file("step.md"), file("out/summary.md"));
    assert!(file("step.md").contains("| requests | 4 |"), "{}", file("step.md"));
}
