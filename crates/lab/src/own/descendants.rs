//! The processes that a run has started, and their end.

use crate::sys::process;
use std::collections::BTreeMap;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(2);

/// A process.
struct Process {
    id: i32,
    parent: i32,
    name: String,
    zombie: bool,
}

/// Process ids and names of the living descendants of this process.
pub(super) fn all() -> Vec<(i32, String)> {
    of(own())
}

/// The children of this process.
pub(super) fn children() -> Vec<i32> {
    let own = own();
    processes().filter(|m| m.parent == own).map(|m| m.id).collect()
}

fn own() -> i32 {
    i32::try_from(std::process::id()).unwrap_or(0)
}

fn processes() -> impl Iterator<Item = Process> {
    fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        process_of(id)
    })
}

/// The children of a process, theirs, and so on, that still run: the id and the name of each.
pub(super) fn of(ancestor: i32) -> Vec<(i32, String)> {
    let mut children: BTreeMap<i32, Vec<Process>> = BTreeMap::new();
    for child in processes() {
        children.entry(child.parent).or_default().push(child);
    }
    let (mut found, mut parents) = (Vec::new(), vec![ancestor]);
    while let Some(parent) = parents.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            parents.push(child.id);
            if !child.zombie {
                found.push((child.id, child.name));
            }
        }
    }
    found
}

/// From `/proc/ID/stat` (proc_pid_stat(5)): the name stands in parentheses and may hold anything.
fn process_of(id: i32) -> Option<Process> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (before, after) = text.rsplit_once(") ")?;
    let (_, name) = before.split_once(" (")?;
    let mut words = after.split(' ');
    let zombie = words.next()? == "Z";
    Some(Process { id, parent: words.next()?.parse().ok()?, name: name.to_owned(), zombie })
}

/// Ends all descendants, by SIGKILL at once, or by SIGTERM first; not those of `spared`, nor themselves.
pub(super) fn end_all(at_once: bool, spared: &[i32]) {
    let to_end = || -> Vec<i32> {
        let kept: Vec<i32> =
            spared.iter().flat_map(|&id| of(id)).map(|m| m.0).chain(spared.to_vec()).collect();
        all().into_iter().map(|m| m.0).filter(|id| !kept.contains(id)).collect()
    };
    let start = Instant::now();
    let mut signal = if at_once { libc::SIGKILL } else { libc::SIGTERM };
    let mut told: Vec<(i32, i32)> = Vec::new();
    // Each look may find new ones, until there are none. What cannot be killed (a process in the kernel's
    // hands) is left.
    while start.elapsed() < 5 * GRACE {
        let living = to_end();
        if living.is_empty() {
            break;
        }
        if start.elapsed() > GRACE {
            signal = libc::SIGKILL;
        }
        for id in living {
            if !told.contains(&(id, signal)) {
                process::kill(id, signal);
                // One that is stopped hears nothing before it goes on.
                process::kill(id, libc::SIGCONT);
                told.push((id, signal));
            }
        }
        while let Ok(Some(_)) = process::reap() {}
        thread::sleep(POLL);
    }
    while let Ok(Some(_)) = process::reap() {}
}
