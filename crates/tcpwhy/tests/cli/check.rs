//! `tcpwhy check` beside planted faults (`faults.py`), each in a network namespace of its own; skipped where
//! there may be none.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The command, with a fault beside it.
fn beside(fault: &str, arguments: &[&str]) -> Output {
    let program: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/faults.py");
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net", "python3"]).arg(program).arg(fault);
    command
        .args([env!("CARGO_BIN_EXE_tcpwhy"), "check", "--watch", "2500ms"])
        .args(arguments)
        .output()
        .unwrap()
}

/// The faults that are found beside a planted one; none, after saying why, where there can be no namespace.
fn found(fault: &str) -> Option<Vec<Value>> {
    let tried = Command::new("unshare").args(["--user", "--map-root-user", "--net", "ip", "link"]).output();
    let why = match tried {
        Ok(done) if done.status.success() => None,
        Ok(done) => Some(String::from_utf8_lossy(&done.stderr).into_owned()),
        Err(e) => Some(e.to_string()),
    };
    if let Some(why) = why {
        crate::skips::skip("check", &format!("no network namespace: {why}"), env!("CARGO_TARGET_TMPDIR"));
        return None;
    }
    let done = beside(fault, &["--json"]);
    let document: Value = serde_json::from_slice(&done.stdout)
        .unwrap_or_else(|e| panic!("{fault}: {e}: {}", String::from_utf8_lossy(&done.stderr)));
    assert_eq!(done.status.code(), Some(0), "{document:#}");
    Some(document["faults"].as_array().unwrap().clone())
}

/// Each fault is found by its name, with its figures, and no other one is.
#[test]
fn planted_faults_are_found_and_nothing_else() {
    for (fault, id, subject, figures) in [
        ("small-backlog", "listener-queue-full", "127.0.0.1:8000", &["overflows", "most_queued"][..]),
        ("behind", "listener-behind", "127.0.0.1:8000", &["least_queued"]),
        ("ports", "local-ports", "127.0.0.1 > 127.0.0.1:8000", &["used", "ports"]),
        ("ports-gone", "local-ports", "127.0.0.1 > 127.0.0.1:8000", &["used", "ports"]),
        ("time-wait-flood", "local-ports", "10.9.0.1 > 10.9.0.1:8000", &["used", "time_wait"]),
        ("time-wait", "time-wait-limit", "", &["TCPTimeWaitOverflow"]),
        ("unanswered", "connect-unanswered", "10.9.0.7:80", &["most_syns"]),
        ("flood-cookies", "syn-cookies", "", &["cookies"]),
        ("flood", "syn-queue-full", "", &["dropped"]),
        ("pruned", "receive-queue-pruned", "", &["PruneCalled"]),
        ("damaged", "bad-checksums", "", &["InCsumErrors"]),
        ("offload", "offload-off", "lo:sends", &["packets_per_second"]),
        ("path-mtu", "path-mtu", "10.9.1.3", &["path_mtu", "device_mtu"]),
    ] {
        let Some(found) = found(fault) else { return };
        let ids: Vec<&str> = found.iter().map(|f| f["id"].as_str().unwrap()).collect();
        assert_eq!(ids, [id], "{fault}: {found:#?}");
        assert_eq!(found[0]["subject"], subject, "{fault}");
        for figure in figures {
            assert!(found[0]["figures"][figure].as_u64() > Some(0), "{fault}, {figure}: {found:#?}");
        }
        assert!(found[0]["first_ns"].as_i64() <= found[0]["last_ns"].as_i64(), "{fault}");
    }
}

/// A full accept queue is the fault also where SYN cookies let the clients believe that they are connected.
#[test]
fn a_queue_that_is_full_behind_cookies_is_found() {
    let Some(found) = found("full-behind-cookies") else { return };
    let ids: Vec<&str> = found.iter().map(|f| f["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["listener-queue-full", "syn-cookies"], "{found:#?}");
    let (full, cookies) = (&found[0], &found[1]);
    assert_eq!(full["subject"], "10.9.0.1:8000");
    let sent = cookies["figures"]["cookies"].as_u64().unwrap();
    assert!((1..10).contains(&sent), "{found:#?}");
    // What the clients sent again met the full queue again.
    assert!(full["figures"]["cookies_received"].as_u64().unwrap() > sent, "{found:#?}");
    assert!(full["figures"]["overflows"].as_u64().unwrap() > sent, "{found:#?}");
    assert!(full["evidence"].as_str().unwrap().contains("also behind SYN cookies"), "{found:#?}");
}

#[test]
fn a_fresh_namespace_under_a_modest_load_has_no_faults() {
    let Some(found) = found("nothing") else { return };
    assert!(found.is_empty(), "{found:#?}");
}

/// All ports are in TIME_WAIT, and connect() takes them all the same: over loopback `net.ipv4.tcp_tw_reuse` is on.
#[test]
fn ports_in_time_wait_that_can_be_used_again_are_no_fault() {
    let Some(found) = found("time-wait-loopback") else { return };
    assert!(found.is_empty(), "{found:#?}");
}

/// As root, who alone may attach programs: beside a fault in a network namespace, started by `before`, such
/// as a shell. None, after saying why, where that is not possible.
fn found_as_root(fault: &str, before: &[&str]) -> Option<Vec<Value>> {
    let skip = |why: &str| {
        crate::skips::skip(&format!("check: {fault}"), why, env!("CARGO_TARGET_TMPDIR"));
        None
    };
    let program: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/faults.py");
    let mut words: Vec<&str> = before.to_vec();
    words.extend(["unshare", "--net", "python3", program.to_str().unwrap(), fault]);
    words.extend([env!("CARGO_BIN_EXE_tcpwhy"), "check", "--watch", "2500ms", "--json"]);
    let done = Command::new(words[0]).args(&words[1..]).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    if said.contains("Operation not permitted") || said.contains("Permission denied") {
        return skip(&said);
    }
    let document: Value =
        serde_json::from_slice(&done.stdout).unwrap_or_else(|e| panic!("{fault}: {e}: {said}"));
    let hidden = |u: &&Value| u["what"].as_str().unwrap().starts_with("buffers that programs set");
    match document["unseen"].as_array().unwrap().iter().find(hidden) {
        Some(why) if before.is_empty() => skip(why["needs"].as_str().unwrap()),
        _ => Some(document["faults"].as_array().unwrap().clone()),
    }
}

#[test]
fn buffers_that_programs_set_are_told() {
    let Some(found) = found_as_root("buffers-set", &[]) else { return };
    let all: Vec<_> =
        found.iter().map(|f| (f["id"].as_str().unwrap(), f["subject"].as_str().unwrap())).collect();
    assert_eq!(all, [("buffer-set", "python3:SO_RCVBUF"), ("buffer-set", "python3:SO_SNDBUF")], "{found:#?}");
    assert_eq!(found[1]["figures"]["buffer_bytes"], 16384, "twice of what was asked for: {found:#?}");
    let Some(found) = found_as_root("clipped", &[]) else { return };
    let clipped = found.iter().find(|f| f["id"] == "buffer-clipped").unwrap_or_else(|| panic!("{found:#?}"));
    assert_eq!(clipped["figures"]["asked_bytes"], 1 << 30);
    assert!(clipped["figures"]["granted_bytes"].as_u64() < Some(1 << 30));
    let Some(found) = found_as_root("nothing", &[]) else { return };
    assert!(found.is_empty(), "{found:#?}");
}

/// A limit for the sockets of a control group, where there are groups of the first version; those of the
/// second are tested in `live/src/check/groups.rs`.
#[test]
fn a_memory_limit_of_a_control_group_is_told() {
    let group = PathBuf::from(format!("/sys/fs/cgroup/memory/tcpwhy-test-{}", std::process::id()));
    let limit = group.join("memory.kmem.tcp.limit_in_bytes");
    let made = std::fs::create_dir(&group).and_then(|()| std::fs::write(&limit, "65536"));
    if let Err(e) = made {
        let why = format!("no control group with a limit for sockets: {e}");
        crate::skips::skip("check: group", &why, env!("CARGO_TARGET_TMPDIR"));
        let _ = std::fs::remove_dir(&group);
        return;
    }
    let join = format!("echo $$ >{}/cgroup.procs && exec \"$@\"", group.display());
    let found = found_as_root("group", &["sh", "-c", &join, "sh"]);
    // Its processes are gone, the kernel's own end of them may take a moment.
    for _ in 0..100 {
        if std::fs::remove_dir(&group).is_ok() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let Some(found) = found else { return };
    let fault = found.iter().find(|f| f["id"] == "memory-limit").unwrap_or_else(|| panic!("{found:#?}"));
    assert!(fault["subject"].as_str().unwrap().contains("tcpwhy-test-"), "{fault:#}");
    assert!(fault["figures"]["looks_full"].as_u64() > Some(0), "{fault:#}");
}

#[test]
fn what_is_acknowledged_does_not_fail() {
    if found("nothing").is_none() {
        return;
    }
    let code = |arguments: &[&str]| beside("behind", arguments).status.code();
    assert_eq!(code(&["--fail-if", "any"]), Some(4));
    assert_eq!(code(&["--fail-if", "local-ports"]), Some(0));
    assert_eq!(code(&["--fail-if", "any", "--acknowledge", "listener-behind@127.0.0.1:8000"]), Some(0));
    assert_eq!(code(&["--fail-if", "any", "--acknowledge", "listener-behind@127.0.0.1:9"]), Some(4));
    let dir = crate::common::Dir::new();
    let file = dir.0.join("known.txt");
    std::fs::write(&file, "# known faults\nlistener-behind  # the worker is slow on purpose\n").unwrap();
    let file = file.to_str().unwrap();
    let done = beside("behind", &["--fail-if", "any", "--acknowledged", file]);
    assert_eq!(done.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&done.stdout).contains("(acknowledged)"));
    std::fs::write(file, "no-such-fault\n").unwrap();
    let done = beside("behind", &["--acknowledged", file]);
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.code() == Some(2) && said.contains("known.txt:1: no-such-fault"), "{said}");
}
