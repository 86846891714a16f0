//! Control groups that bound the memory of one host's sockets. They are the only thing with a name that the lab
//! makes outside of its namespaces; those of a run that was killed are removed by the next.

use crate::LabError;
use crate::scenario::Scenario;
use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};
use tcpwhy_base::{End, Ends};

/// Where version 1 of the memory controller is: version 2 has no bound for the memory of TCP alone.
const ROOT: &str = "/sys/fs/cgroup/memory";
const LIMIT: &str = "memory.kmem.tcp.limit_in_bytes";
/// Of our groups; the process number follows.
const PREFIX: &str = "tcpwhy-lab-";

/// The groups of client and server, where their memory is bounded.
#[derive(Debug)]
pub(crate) struct Groups(Ends<Option<Group>>);

#[derive(Debug)]
struct Group(PathBuf);

impl Groups {
    pub(crate) fn new(scenario: &Scenario) -> Result<Groups, LabError> {
        let group = |bytes: Option<u64>| bytes.map(Group::new).transpose();
        let bound = |end| group(scenario.host(end).stack.tcp_memory);
        Ok(Groups(Ends::new(bound(End::Client)?, bound(End::Server)?)))
    }

    /// Moves the calling thread, and those that it will start, into the group of its host.
    pub(crate) fn join(&self, end: End) -> Result<(), LabError> {
        let Some(Group(path)) = &self.0[end] else { return Ok(()) };
        let thread =
            fs::read_link("/proc/thread-self").map_err(LabError::failed("read /proc/thread-self"))?;
        let id = thread.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let tasks = path.join("tasks");
        fs::write(&tasks, id).map_err(LabError::failed(format!("write to {}", tasks.display())))
    }
}

impl Group {
    fn new(bytes: u64) -> Result<Group, LabError> {
        let missing = |why: &dyn ToString| {
            LabError::missing(
                "a bound for the memory of TCP",
                why.to_string(),
                format!("this needs version 1 of the memory controller with {LIMIT}, mounted at {ROOT}"),
            )
        };
        if !Path::new(ROOT).join(LIMIT).exists() {
            return Err(missing(&"this kernel has none"));
        }
        // In another container another process may have this number.
        let chance = RandomState::new().hash_one(PREFIX);
        let name = format!("{PREFIX}{}-{chance:016x}", std::process::id());
        let path = Path::new(ROOT).join(name);
        fs::create_dir(&path).map_err(|e| missing(&e))?;
        let group = Group(path);
        fs::write(group.0.join(LIMIT), bytes.to_string()).map_err(|e| missing(&e))?;
        Ok(group)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The next start tries again.
        let _ = fs::remove_dir(&self.0);
    }
}

/// Removes groups of runs that were killed: nothing is in them any more.
pub(crate) fn remove_orphans() {
    for entry in fs::read_dir(ROOT).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|n| n.strip_prefix(PREFIX)).and_then(|n| n.split('-').next());
        let gone = process
            .and_then(|p| p.parse::<u32>().ok())
            .is_some_and(|p| !Path::new(&format!("/proc/{p}")).exists());
        let bounded = fs::read_to_string(entry.path().join(LIMIT)).is_ok();
        if gone && bounded {
            // Refused if something is in it after all.
            let _ = fs::remove_dir(entry.path());
        }
    }
}
