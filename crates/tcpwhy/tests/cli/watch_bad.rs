//! `tcpwhy watch` where something is missing: it says what and what to do, and goes on with the rest.

#[cfg(feature = "parquet")]
use crate::common::{Dir, smtp, tcpwhy};
use serde_json::Value;
use std::process::{Command, Output, Stdio};

const BIN: &str = env!("CARGO_BIN_EXE_tcpwhy");

/// A shell with the program as `$0` in a mount namespace of its own; none, after saying why, where there can be none.
fn apart(script: &str) -> Option<Output> {
    let mounts = ["--default-signal=INT", "unshare", "--mount", "--propagation", "private", "sh", "-c"];
    let done = Command::new("env").args(mounts).args([script, BIN]).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    if said.contains("unshare") || said.contains("mount:") {
        crate::skips::skip("watch: a mount namespace", &said, env!("CARGO_TARGET_TMPDIR"));
        return None;
    }
    Some(done)
}

#[track_caller]
fn document(done: &Output) -> Value {
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    serde_json::from_slice(&done.stdout).unwrap()
}

/// What is not seen, and what it takes.
fn unseen(document: &Value) -> String {
    format!("{:#}", document["unseen"])
}

/// A path that was misspelt makes no folders, of `watch` as of `explain`.
#[cfg(feature = "parquet")]
#[test]
fn tables_go_to_a_folder_whose_parent_is_there() {
    let dir = Dir::new();
    let (parent, tables) = (dir.0.join("none"), dir.0.join("none/tables"));
    let tables = tables.to_str().unwrap();
    for command in [&["watch", "--once", "--interval", "200ms"][..], &["explain", &smtp()]] {
        let arguments: Vec<&str> = command.iter().chain(&["--parquet", tables]).copied().collect();
        tcpwhy(&arguments).fails(3, &["cannot make", tables, "make its folder first (mkdir -p)"]);
        assert!(!parent.exists());
        std::fs::create_dir(&parent).unwrap();
        assert_eq!(tcpwhy(&arguments).code, 0);
        std::fs::remove_dir_all(&parent).unwrap();
    }
}

#[test]
fn without_the_kernels_types_it_samples() {
    let hide = "mount -t tmpfs none /sys/kernel/btf";
    let Some(done) = apart(&format!("{hide} && exec \"$0\" watch --once --json --interval 300ms")) else {
        return;
    };
    let seen = document(&done);
    assert_eq!(seen["source"], "sampled");
    assert!(unseen(&seen).contains("CONFIG_DEBUG_INFO_BTF"), "{}", unseen(&seen));
    // There is nothing else to show.
    let Some(done) = apart(&format!("{hide} && exec \"$0\" watch --events")) else { return };
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(3), "{said}");
    assert!(said.contains("CONFIG_DEBUG_INFO_BTF"), "{said}");
    let Some(done) = apart(&format!("{hide} && exec \"$0\" check --watch 500ms --json")) else { return };
    assert!(unseen(&document(&done)).contains("CONFIG_DEBUG_INFO_BTF"));
}

/// The kernel then refuses programs whoever asks: a capability would not help.
#[test]
fn a_kernel_that_is_locked_down_is_named() {
    let hide = "mount -t tmpfs none /sys/kernel/security && \
                echo 'none integrity [confidentiality]' >/sys/kernel/security/lockdown";
    let without =
        "exec setpriv --bounding-set=-all --inh-caps=-all \"$0\" watch --once --json --interval 300ms";
    let Some(done) = apart(&format!("{hide} && {without}")) else { return };
    let seen = document(&done);
    assert_eq!(seen["source"], "sampled");
    assert!(unseen(&seen).contains("locked down (confidentiality)"), "{}", unseen(&seen));
}

#[test]
fn a_read_only_sys_changes_nothing() {
    let look = "\"$0\" watch --once --json --interval 300ms";
    let Some(before) = apart(look) else { return };
    let Some(done) = apart(&format!("mount -o remount,bind,ro /sys && exec {look}")) else { return };
    assert_eq!(document(&done)["source"], document(&before)["source"]);
}

#[test]
fn a_second_instance_is_in_nobodys_way() {
    let start = || {
        let mut command = Command::new(BIN);
        command.args(["watch", "--once", "--json", "--interval", "1s"]).stdout(Stdio::piped());
        command.spawn().unwrap()
    };
    let both = [start(), start()].map(|child| document(&child.wait_with_output().unwrap()));
    assert_eq!(both[0]["source"], both[1]["source"]);
}

/// An older kernel has fewer tracepoints: its types lack their names. The others are attached all the same.
#[test]
fn a_kernel_with_fewer_tracepoints_is_watched_with_the_rest() {
    let types = "/sys/kernel/btf/vmlinux";
    let hide = format!(
        "set -e; old=$(mktemp); LC_ALL=C sed s/btf_trace_tcp_sendmsg_locked/btf_trace_tcp_sendmsg_nowhere/ {types} >$old\n\
         mount --bind $old {types}; rm $old"
    );
    let Some(done) = apart(&format!("{hide}; exec \"$0\" watch --once --json --interval 300ms")) else {
        return;
    };
    let seen = document(&done);
    if unseen(&seen).contains("CAP_BPF") {
        crate::skips::skip("watch: an older kernel", "it takes CAP_BPF", env!("CARGO_TARGET_TMPDIR"));
        return;
    }
    assert_eq!(seen["source"], "kernel", "{}", unseen(&seen));
    let (what, why) = ("some kernel events", "tcp_sendmsg_locked");
    assert!(unseen(&seen).contains(what) && unseen(&seen).contains(why), "{}", unseen(&seen));
}

/// The device of a connection goes while it is watched: the connection stays, and so does the answer.
#[test]
fn a_device_that_goes_ends_nothing() {
    let python = "import socket, time; l = socket.create_server(('10.7.7.1', 0)); \
                  c = socket.create_connection(l.getsockname()); s = l.accept()[0]; c.sendall(b'x'); \
                  print('ready', flush=True); time.sleep(60)";
    let script = format!(
        "ip link set lo up; ip link add gone type veth peer name far; ip address add 10.7.7.1/24 dev gone; ip link set gone up\n\
         out=$(mktemp); python3 -c \"{python}\" >$out & python=$!\n\
         n=0; while [ ! -s $out ] && [ $((n += 1)) -lt 600 ]; do sleep 0.1; done; rm $out\n\
         {{ sleep 0.5; ip link del gone; }} & \"$0\" $1 --json; code=$?; kill $python; wait; exit $code"
    );
    for command in ["watch --once --interval 2s", "check --watch 2s"] {
        let words = script.replace("$1", command);
        let mut shell = Command::new("unshare");
        shell.args(["--net", "--mount", "sh", "-c", &words, BIN]);
        let done = shell.output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        if ["unshare", "RTNETLINK", "device"].iter().any(|words| said.contains(words)) {
            crate::skips::skip("watch: a device that goes", &said, env!("CARGO_TARGET_TMPDIR"));
            return;
        }
        let seen = document(&done);
        if command.starts_with("watch") {
            let rows = seen["connections"].as_array().unwrap();
            assert_eq!(rows.len(), 2, "{rows:#?}");
            assert!(rows.iter().all(|r| r["local"].as_str().unwrap().starts_with("10.7.7.1:")), "{rows:#?}");
        } else {
            assert_eq!(seen["faults"].as_array().unwrap().len(), 0, "{seen:#}");
        }
    }
}

/// In a time namespace the clock that does not jump is another one than the kernel's, by which events are stamped.
#[test]
fn events_have_the_time_of_day_in_a_time_namespace() {
    let writer = "import socket, threading, time; l = socket.create_server(('127.0.0.1', 0)); \
                  c = socket.create_connection(l.getsockname()); s = l.accept()[0]\n\
                  def read():\n  while s.recv(1 << 20): time.sleep(0.2)\n\
                  threading.Thread(target=read, daemon=True).start()\n\
                  while True: c.sendall(b'x' * (1 << 20))";
    let script = format!(
        "ip link set lo up; out=$(mktemp); python3 -c \"{writer}\" & writer=$!; date -u +%s\n\
         env --default-signal=INT TZ=UTC \"$0\" watch --events >$out 2>&1 & watch=$!\n\
         n=0; while ! grep -q blocked $out && kill -0 $watch && [ $((n += 1)) -lt 1200 ]; do sleep 0.05; done\n\
         kill -INT $watch; wait $watch; kill $writer; date -u +%s; cat $out; rm $out"
    );
    // 27 h and some minutes.
    let time = ["--default-signal=INT", "unshare", "--net", "--time", "--monotonic", "100000", "--fork"];
    let done = Command::new("env").args(time).args(["sh", "-c", &script, BIN]).output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    let mut seconds = said.lines().filter_map(|l| l.trim().parse::<i64>().ok());
    let (Some(first), Some(last), Some(line)) =
        (seconds.next(), seconds.next(), said.lines().find(|l| l.contains(" blocked ")))
    else {
        crate::skips::skip("watch: a time namespace", &said, env!("CARGO_TARGET_TMPDIR"));
        return;
    };
    let number = |range: std::ops::Range<usize>| line.get(range).unwrap().parse::<i64>().unwrap();
    let at = number(0..2) * 3600 + number(3..5) * 60 + number(6..8);
    let since = (at - first).rem_euclid(86_400);
    assert!(since <= last - first + 1, "{said}");
}

/// So many connections begin and end, one after the other.
const CHURN: &str = "
import socket, sys, threading
listener = socket.create_server(('127.0.0.1', 0), backlog=64)
def serve():
    while True:
        listener.accept()[0].close()
threading.Thread(target=serve, daemon=True).start()
for _ in range(int(sys.argv[1])):
    c = socket.create_connection(listener.getsockname())
    c.recv(1)
    c.close()
";

/// What is remembered of connections that have ended has an end (`make watch-memory` looks at that for ten minutes).
#[test]
fn memory_does_not_grow_with_connections_that_end() {
    let dir = crate::common::Dir::new();
    // The socket to the kernel comes after its events.
    let script = format!(
        "memory() {{ sleep 1; sed -n 's/VmRSS:[^0-9]*/memory /p' /proc/$watch/status; }}\n\
         \"$0\" watch --jsonl --interval 200ms >\"$1\" & watch=$!\n\
         n=0; while ! ls -l /proc/$watch/fd | grep -q socket: && [ $((n += 1)) -lt 600 ]; do sleep 0.1; done\n\
         python3 -c \"{CHURN}\" 3000; memory; python3 -c \"{CHURN}\" 9000; memory; kill $watch; wait $watch; exit 0"
    );
    let Some(done) = crate::record::apart(&script, &dir.0.join("lines")) else { return };
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    let seen: Vec<i64> =
        said.lines().filter_map(|l| l.strip_prefix("memory ")?.split(' ').next()?.parse().ok()).collect();
    let [first, last] = seen[..] else { panic!("{said} {}", String::from_utf8_lossy(&done.stderr)) };
    // 200 bytes for each connection and its other end would be as much.
    assert!(last - first < 3_600, "{first} and {last} KiB");
}

/// What to do next is part of the message.
#[test]
fn a_namespace_that_is_none_is_told_with_what_to_name() {
    for (arguments, words) in [
        (&["watch", "--once", "--netns", "/nowhere"][..], "/proc/PID/ns/net"),
        (&["check", "--netns", "/nowhere"], "/proc/PID/ns/net"),
        (&["watch", "--once", "--netns", "/dev/null"], "the file of a network namespace"),
        (&["record", "--for", "1s", "-o", "/proc/nowhere"], "name a file with -o"),
    ] {
        let done = Command::new(BIN).args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        if said.contains("CAP_NET_RAW") {
            continue;
        }
        assert!(
            done.status.code() == Some(3) && said.contains(words),
            "{arguments:?}: {:?} {said}",
            done.status
        );
    }
}

/// A process that its user may not look into, and a control group of such ones: that is why nothing is listed.
#[test]
fn sockets_that_only_root_can_see_are_said_to_be() {
    let own = std::process::id().to_string();
    let group = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let group = group.lines().find_map(|l| Some(l.splitn(3, ':').nth(2)?.to_owned())).unwrap();
    // What the test itself is built into may be for its user alone.
    let copy = std::env::temp_dir().join(format!("tcpwhy-other-{own}"));
    std::fs::copy(BIN, &copy).unwrap();
    let mut said = Vec::new();
    for chosen in [["--pid", &own], ["--cgroup", &group]] {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&copy);
        let done = command.args(["watch", "--once", "--interval", "200ms"]).args(chosen).output().unwrap();
        said.push((done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned()));
    }
    std::fs::remove_file(&copy).unwrap();
    if let Some((_, why)) = said.iter().find(|(code, _)| *code != Some(0)) {
        crate::skips::skip("watch: another user", why, env!("CARGO_TARGET_TMPDIR"));
        return;
    }
    let wanted =
        [format!("the sockets of process {own} can be seen by root alone"), "the sockets of ".into()];
    for ((_, said), words) in said.iter().zip(wanted) {
        assert!(said.contains(&words) && said.contains("sudo") && said.contains("--port"), "{said}");
    }
}
