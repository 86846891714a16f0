//! `tcpwhy watch` where something is missing: it says what and what to do, and goes on with the rest.

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
