//! Which process a socket belongs to: `/proc/PID/fd` names sockets by their inode.

use crate::container::Containers;
use crate::sample::Process;
use hashbrown::HashMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::time::{Duration, Instant};

/// Reading all of `/proc` takes a while on a large host, and of other users' processes nothing can be read:
/// unknown sockets are looked for at most so often,
const EVERY: Duration = Duration::from_millis(500);
/// and at most so much of the time: one part in so many.
const PART: u32 = 20;

/// Processes by the inodes of their sockets.
#[derive(Debug, Default)]
pub struct Processes {
    by_inode: HashMap<u32, Process>,
    containers: Containers,
    /// When `/proc` may be read again.
    next: Option<Instant>,
    /// Processes whose files this user may not see.
    pub hidden: u32,
}

impl Processes {
    /// Makes sure that these sockets have been looked for.
    pub fn look_for(&mut self, inodes: impl IntoIterator<Item = u32>) {
        let unknown = inodes.into_iter().any(|inode| inode != 0 && !self.by_inode.contains_key(&inode));
        let began = Instant::now();
        if unknown && self.next.is_none_or(|at| began >= at) {
            self.read_all();
            self.next = Some(began + (began.elapsed() * PART).max(EVERY));
        }
    }

    /// Processes that have sockets.
    pub fn pids(&self) -> impl Iterator<Item = u32> {
        let pids: hashbrown::HashSet<u32> = self.by_inode.values().map(|p| p.pid).collect();
        pids.into_iter()
    }

    /// Whose socket it is, if that can be seen.
    pub fn of(&self, inode: u32) -> Option<&Process> {
        self.by_inode.get(&inode)
    }

    fn read_all(&mut self) {
        self.by_inode.clear();
        self.hidden = 0;
        let Ok(entries) = fs::read_dir("/proc") else { return };
        for entry in entries.flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse::<u32>().ok()) else { continue };
            let Ok(files) = fs::read_dir(entry.path().join("fd")) else {
                self.hidden += 1;
                continue;
            };
            let mut process = None;
            for file in files.flatten() {
                let Ok(target) = fs::read_link(file.path()) else { continue };
                if let Some(inode) = inode(target.as_os_str().as_bytes()) {
                    let process = process.get_or_insert_with(|| about(pid, &mut self.containers));
                    // It died meanwhile: what was known of it before is more.
                    let Some(process) = process.clone() else { break };
                    // A socket that several processes share goes to the youngest: workers inherit from their parent.
                    let old = self.by_inode.entry(inode).or_insert_with(|| process.clone());
                    if old.pid < pid {
                        *old = process;
                    }
                }
            }
        }
    }
}

fn inode(target: &[u8]) -> Option<u32> {
    let digits = target.strip_prefix(b"socket:[")?.strip_suffix(b"]")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// None: there is no such process any more.
fn about(pid: u32, containers: &mut Containers) -> Option<Process> {
    let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).ok();
    let name = String::from_utf8_lossy(&read("comm")?).trim_end().to_owned();
    let (container, container_name) =
        containers.of(&String::from_utf8_lossy(&read("cgroup").unwrap_or_default()));
    Some(Process { pid, name, container, container_name })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::fd::AsRawFd as _;

    #[test]
    fn own_socket_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = fs::read_link(format!("/proc/self/fd/{}", listener.as_raw_fd())).unwrap();
        let inode = inode(target.as_os_str().as_bytes()).unwrap();
        let mut processes = Processes::default();
        processes.look_for([inode]);
        assert_eq!(processes.of(inode).map(|p| p.pid), Some(std::process::id()));
    }

    /// Between the list of its files and its name.
    #[test]
    fn a_process_that_has_died_has_no_name() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert_eq!(about(pid, &mut Containers::default()), None);
        assert!(about(std::process::id(), &mut Containers::default()).is_some_and(|p| !p.name.is_empty()));
    }
}
