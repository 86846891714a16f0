//! Scenarios that ask for too much, or for something else than they say.

use crate::common::{BIN, Dir, alone, lab, skip};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// All of them are there at once: the server works for longer than the run may take.
const MANY: &str = "title = 'many'\nlimit_s = 4\n[link]\nrtt_ms = 1\n[workload]\nconnections = 1500\n\
                    request = [100]\nresponse = [100]\nthink_ms = 60000\n";

/// A control group that allows so many threads; none where there is no such controller.
struct Threads(String);

impl Threads {
    fn new(most: u32) -> Option<Threads> {
        for root in ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"] {
            let group = Threads(format!("{root}/tcpwhy-test-{}", std::process::id()));
            if fs::create_dir(&group.0).is_ok()
                && fs::write(format!("{}/pids.max", group.0), most.to_string()).is_ok()
            {
                return Some(group);
            }
        }
        None
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// Where threads end before the connections do, the run ends with an error that says so, and in time.
#[test]
fn threads_that_are_refused_end_the_run() {
    let Some(_alone) = alone() else { return };
    let dir = Dir::new();
    let file = dir.file("many.toml", MANY);
    let run = |limit: &str| {
        let began = Instant::now();
        let line = format!("{limit} && exec {BIN} lab run {file}");
        let done = Command::new("timeout").args(["60", "sh", "-c", &line]).output().unwrap();
        let said =
            format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(began.elapsed() < Duration::from_secs(30), "{limit}: {:?}: {said}", began.elapsed());
        (done.status.code(), said)
    };
    // Without address space the standard library may abort a thread that begins; no run may hang.
    assert_ne!(run("ulimit -v 1500000").0, Some(0));
    let Some(group) = Threads::new(300) else {
        let _ = skip::<()>("no control group for threads can be made here");
        return;
    };
    let (code, said) = run(&format!("echo $$ > {}/cgroup.procs", group.0));
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("connections at once") && said.contains("workload.connections"), "{said}");
    assert!(!said.contains("panicked"), "{said}");
}

/// What a scenario names cannot become an argument of something else, and its size has bounds, before anything is made.
#[test]
fn bounds_and_words() {
    for (set, words) in [
        ("client.congestion=cubic dev lo", "the name of a congestion control"),
        ("workload.connections=4000000000", "2000 at most"),
        ("workload.requests=4000000000", "1000000 at most"),
        ("connects.half_open=4000000000", "65000 at most"),
        ("expect.runs=4000000000", "1000 at most"),
    ] {
        let began = Instant::now();
        lab(&["run", "chatty", "--set", set]).fails(2, &[words]);
        assert!(began.elapsed() < Duration::from_secs(5), "{set}");
    }
}

/// A file with programs is a program: that is said before any of it runs.
#[test]
fn programs_are_announced() {
    let dir = Dir::new();
    let file = dir.file("a.toml", "title = 'x'\n[programs]\nneeds = [{ command = 'no-such-command', package = 'none' }]\nclient = 'true'\n");
    let ran = lab(&["run", &file]);
    assert!(
        ran.err.contains("runs programs on this machine") && ran.err.contains("tcpwhy lab show"),
        "{}",
        ran.err
    );
    let help = lab(&["run", "--help"]).out;
    assert!(help.contains("A scenario file with [programs] is a program"), "{help}");
}

/// Links that somebody put where captures are to be kept are replaced and not followed.
#[test]
fn links_are_not_followed() {
    let Some(_alone) = alone() else { return };
    let dir = Dir::new();
    let precious = dir.file("precious", "precious");
    let keep = dir.0.join("keep");
    fs::create_dir(&keep).unwrap();
    let names = ["cap.client.pcap", "cap.server.pcap", "meta.json", "label.json"];
    let plant = |names: &[&str]| {
        for name in names {
            let _ = fs::remove_file(keep.join(name));
            symlink(&precious, keep.join(name)).unwrap();
        }
    };
    let whole = |names: &[&str]| {
        for name in names {
            assert!(fs::symlink_metadata(keep.join(name)).unwrap().is_file(), "{name}");
        }
        assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
    };
    let place = keep.to_str().unwrap();
    plant(&names[..2]);
    assert_eq!(lab(&["link", "--keep", place, "--", "true"]).code, 0);
    whole(&names[..2]);
    plant(&names);
    let good = dir.file("good.toml", "title = 'a'\n[workload]\nrequest = [1]\nresponse = [1]\n");
    let refused = lab(&["run", &good, "--keep", place]);
    assert_eq!(refused.code, 2, "{}", refused.err);
    assert!(refused.err.contains("would be written over"), "{}", refused.err);
    // In the folder of an earlier run of the same experiment they are what that wrote.
    names.iter().for_each(|name| fs::remove_file(keep.join(name)).unwrap());
    for again in [false, true] {
        if again {
            plant(&names);
        }
        assert_eq!(lab(&["run", &good, "--keep", place]).code, 0);
        whole(&names);
        assert!(Path::new(place).join("lab-result.json").is_file());
    }
}
