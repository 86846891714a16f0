//! Threads: in other network namespaces, and what they cost.

use crate::LiveError;
#[cfg(feature = "bpf")]
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
#[cfg(feature = "bpf")]
use rustix::thread::{UnshareFlags, unshare_unsafe};
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

/// Runs `what` in the network namespace behind a file such as `/proc/PID/ns/net`: in a thread that is gone
/// afterwards, so that this one stays where it is. Without a file, here.
pub fn within<T: Send>(
    namespace: Option<&Path>,
    what: impl FnOnce() -> Result<T, LiveError> + Send,
) -> Result<T, LiveError> {
    let Some(path) = namespace else { return what() };
    let name = || format!("cannot enter the network namespace {}", path.display());
    let file = File::open(path).map_err(|why| unopened(path, &why))?;
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).map_err(|e| {
                LiveError::Missing {
                    what: name(),
                    why: io::Error::from(e).to_string(),
                    advice: "this takes CAP_SYS_ADMIN and the file of a network namespace: run it as root",
                }
            })?;
            what()
        });
        let panicked = |_| Err(LiveError::Failed { what: name(), why: io::Error::other("panicked") });
        thread.join().unwrap_or_else(panicked)
    })
}

fn unopened(path: &Path, why: &io::Error) -> LiveError {
    LiveError::Missing {
        what: format!("cannot open {}", path.display()),
        why: why.to_string(),
        advice: "name the file of a network namespace: /proc/PID/ns/net of a process in it, or one of /run/netns",
    }
}

/// The number of a network namespace: of the one behind a file, or of this thread's.
pub fn namespace_number(namespace: Option<&Path>) -> Result<u32, LiveError> {
    let path = namespace.unwrap_or(Path::new("/proc/thread-self/ns/net"));
    let file = std::fs::metadata(path).map_err(|why| unopened(path, &why))?;
    u32::try_from(file.ino()).map_err(|_| unopened(path, &io::Error::other("no network namespace")))
}

/// Runs `what` where tracefs is mounted. Hosts without systemd and many containers do not mount it, and a
/// tracepoint's number stands nowhere else: there this mounts it in a mount namespace that only one thread
/// sees and that ends with it.
#[cfg(feature = "bpf")]
pub(crate) fn with_tracefs<T: Send>(what: impl FnOnce() -> T + Send) -> Result<T, String> {
    /// Where it belongs (the kernel's `Documentation/trace/ftrace.rst`).
    const TRACEFS: &str = "/sys/kernel/tracing";
    if Path::new(TRACEFS).join("events").is_dir() || Path::new("/sys/kernel/debug/tracing/events").is_dir() {
        return Ok(what());
    }
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            own_mounts()
                .and_then(|()| mount("tracefs", TRACEFS, "tracefs", MountFlags::empty(), None))
                .map_err(|e| format!("tracefs is not mounted, and cannot be: {}", io::Error::from(e)))?;
            Ok(what())
        });
        thread.join().unwrap_or_else(|_| Err("panicked".to_owned()))
    })
}

/// A mount namespace for this thread alone, whose mounts nobody else gets.
#[cfg(feature = "bpf")]
#[expect(unsafe_code, reason = "the safe function is deprecated for the sake of UnshareFlags::FILES")]
fn own_mounts() -> rustix::io::Result<()> {
    // SAFETY: the table of open files stays shared, so no thread loses sight of a descriptor.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
}

/// A file below `/proc` that speaks of this thread's network namespace, as text.
pub fn proc_text(name: &str) -> Option<String> {
    std::fs::read_to_string(Path::new("/proc").join(name)).ok()
}

/// Processor time that this thread has used: what looking costs, however busy the machine is with something else.
pub fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

/// Processor time that this process has used.
pub fn process_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_namespace_is_refused() {
        let error = within(Some(Path::new("/dev/null")), || Ok(())).unwrap_err().to_string();
        assert!(error.contains("/dev/null"), "{error}");
        assert!(within(Some(Path::new("/nowhere")), || Ok(())).is_err());
        assert!(within(None, || Ok(7)).is_ok_and(|n| n == 7));
    }
}
