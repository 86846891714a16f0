//! What the machine, the disk or a collector does not let be done, and programs that do much.

use super::User;
use serde_json::Value;
use std::fs;
use std::net::TcpListener;
use std::process::{Command, Stdio};

#[test]
fn where_it_is_forbidden_the_rule_is_named() {
    let Some(user) = User::new() else { return };
    let limit = "echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-all --inh-caps=-all \
                 ./tcpwhy run -- true";
    let mut command = Command::new("unshare");
    let done = command.args(["-Ur", "sh", "-c", limit]).current_dir(&user.dir.0).output().unwrap();
    let err = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(125), "{err}");
    assert_eq!(err.lines().count(), 1, "{err}");
    assert!(err.contains("user.max_user_namespaces is 0"), "{err}");
}

/// What container engines do: a seccomp filter under which `unshare` is not permitted; then the program.
const FILTERED: &str = "
import ctypes, os, platform, sys
numbers = {'x86_64': 272, 'aarch64': 97}
if platform.machine() not in numbers: sys.exit(77)
# load the number of the call; if it is unshare, return EPERM, else allow
rules = [(0x20, 0, 0, 0), (0x15, 0, 1, numbers[platform.machine()]), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7fff0000)]
class Filter(ctypes.Structure): _fields_ = [('length', ctypes.c_ushort), ('rules', ctypes.c_char_p)]
import struct
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl.argtypes = [ctypes.c_int] + 4 * [ctypes.c_ulong]
made = Filter(len(rules), b''.join(struct.pack('HBBI', *rule) for rule in rules))
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.addressof(made), 0, 0): sys.exit(77)
os.execv('./tcpwhy', ['tcpwhy', 'run', *sys.argv[1:]])
";

#[test]
fn a_filter_of_calls_is_named() {
    let Some(user) = User::new() else { return };
    for args in [&["--", "true"][..], &["--rtt", "5ms", "--", "true"]] {
        let mut command = user.as_user();
        let done = command.args(["/usr/bin/python3", "-c", FILTERED]).args(args).output().unwrap();
        if done.status.code() == Some(77) {
            return crate::skips::skip(
                "run",
                "no seccomp filter can be set here",
                env!("CARGO_TARGET_TMPDIR"),
            );
        }
        let err = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(125), "{err}");
        assert_eq!(err.lines().count(), 1, "{err}");
        assert!(err.contains("a seccomp filter refuses it") && err.contains("seccomp=unconfined"), "{err}");
    }
}

/// A collector that refuses, a disk that is full: nothing that was measured is lost, and the last line has the code.
#[test]
fn what_cannot_be_written_is_said_beside_the_answer() {
    let Some(user) = User::new() else { return };
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let collector = format!("http://{nobody}");
    for (output, why) in
        [(["--otlp", collector.as_str()], "did not take"), (["--folded", "/dev/full"], "cannot write")]
    {
        let run = |tail: &str| {
            let program = format!("python3 stalls.py 3; {tail}");
            user.run(&[&["-q"], &output[..], &["--", "sh", "-c", &program]].concat())
        };
        run("exit 0").ends_with_answer(125, &[why, "Nagle held a small write"]);
        // The command's own failure is worth more.
        run("exit 7").ends_with_answer(7, &[why, "returned 7"]);
    }
}

/// Where the capture can be kept no more the command ends as it would have, and what passed until then is told.
#[test]
fn a_full_disk_holds_nothing_up() {
    let Some(user) = User::new() else { return };
    let small = "mkdir small && mount -t tmpfs -o size=200k none small && \
                 exec timeout 60 ./tcpwhy run -q --keep small -- python3 stalls.py 3000 nodelay";
    let mut command = Command::new("unshare");
    let done = command.args(["-Ur", "--mount", "sh", "-c", small]).current_dir(&user.dir.0).output().unwrap();
    let err = String::from_utf8(done.stderr).unwrap();
    assert_eq!(String::from_utf8_lossy(&done.stdout), "done\n", "{err}");
    assert_eq!(done.status.code(), Some(125), "{err}");
    let said = ["cannot write small/run.pcap", "No space left", "requests to 127.0.0.1", "returned 0"];
    assert!(said.iter().all(|said| err.contains(said)), "{err}");
}

/// What it leaves in the background, and many connections at once, in one answer each.
#[test]
fn a_crowd_of_connections() {
    let Some(user) = User::new() else { return };
    let crowd = "
import socket, threading
listener = socket.create_server(('127.0.0.1', 0), backlog=4096)
def serve():
    for _ in range(5000):
        c = listener.accept()[0]; c.recv(10); c.send(b'x'); c.close()
threading.Thread(target=serve, daemon=True).start()
for _ in range(5000):
    with socket.create_connection(listener.getsockname()) as c:
        # no port is left in TIME_WAIT
        c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, 0, 0, 0, 0, 0, 0, 0]))
        c.send(b'0123456789'); c.recv(1)
";
    let ran = user.run(&["-q", "--json", "-o", "crowd.json", "--", "python3", "-c", crowd]);
    ran.ends(0, &["returned 0"]);
    let json: Value = serde_json::from_slice(&fs::read(user.dir.0.join("crowd.json")).unwrap()).unwrap();
    // What a busy machine did not capture is said; nothing else is missing.
    let missed = json["run"]["missed"].as_u64().unwrap();
    assert!(missed > 0 || json["run"]["figures"]["connections"] == 5000, "{}", json["run"]);
}

/// More than any ring holds: the answer is as large as of a little, and the memory as well.
#[test]
fn much_traffic() {
    let Some(user) = User::new() else { return };
    let bulk = "
import socket, threading
listener = socket.create_server(('127.0.0.1', 0))
def serve():
    c = listener.accept()[0]
    while c.recv(1 << 20): pass
thread = threading.Thread(target=serve); thread.start()
with socket.create_connection(listener.getsockname()) as c:
    for _ in range(300): c.sendall(bytes(1 << 20))
thread.join()
";
    let mut limited = user.as_user();
    limited
        .args(["sh", "-c", "ulimit -v 1500000; exec ./tcpwhy run \"$@\"", "sh"])
        .args(["-q", "--", "python3", "-c", bulk]);
    let done = limited.stdin(Stdio::null()).output().unwrap();
    let err = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(0), "{err}");
    assert!(err.contains("1 request") && err.lines().count() < 120, "{err}");
}

/// Where there is nothing to explain, that is said, and what passed instead.
#[test]
fn what_used_no_tcp_is_told() {
    let Some(user) = User::new() else { return };
    let udp = "
import socket
a, b = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in 'ab']
b.bind(('127.0.0.1', 0))
a.sendto(b'x', b.getsockname()); b.recv(9)
";
    let done = user.run(&["--", "python3", "-c", udp]);
    done.ends(0, &["no TCP connection was seen: 1 packet passed its network, none of them TCP"]);
    user.run(&["--", "true"]).ends(0, &["no TCP connection was seen: nothing passed its network"]);
    let headline = user.run(&["--json", "--", "true"]).json()["summary"]["headline"].clone();
    assert!(
        headline.as_str().unwrap().starts_with("Nothing passed the network of the command"),
        "{headline}"
    );
}
