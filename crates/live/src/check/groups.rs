//! Memory of control groups: what their limits take from the sockets of their processes.

use super::{Audit, Fault};
use hashbrown::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use tcpwhy_base::{Cause, Nanos};

/// What is charged at a time, at least; larger pages only make it later.
const PAGE: u64 = 4096;

/// What a control group says of its memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Its path in its hierarchy.
    pub path: String,
    /// Bytes that it may hold,
    pub limit: u64,
    /// and holds.
    pub used: u64,
    /// Of them, or of a limit of their own: in sockets.
    pub sockets: u64,
    /// The limit is one of sockets alone (the first version's `memory.kmem.tcp`).
    pub of_sockets: bool,
    /// How often the limit was met.
    pub met: u64,
    /// There is not a page left.
    pub full: bool,
    /// How often sockets were told to take less (`sock_throttled`).
    pub throttled: u64,
}

/// A group over the time: as it was first, as it is, and when it met its limit first and last.
#[derive(Clone, Debug)]
pub(super) struct Limited {
    first: Group,
    last: Group,
    /// How often it was looked at when not a page was left.
    full: u64,
    when: Option<(Nanos, Nanos)>,
}

/// Groups with a limit, of these processes, and those above them.
pub fn groups(pids: impl IntoIterator<Item = u32>) -> Vec<Group> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut paths = HashSet::new();
    for pid in pids {
        paths.extend(fs::read_to_string(format!("/proc/{pid}/cgroup")).ok());
    }
    read(&mounts, paths.iter().map(String::as_str))
}

fn read<'a>(mounts: &str, of: impl Iterator<Item = &'a str>) -> Vec<Group> {
    let (first, second) = (mounted(mounts, "cgroup", "memory"), mounted(mounts, "cgroup2", ""));
    let mut done = HashSet::new();
    let mut out = Vec::new();
    for line in of.flat_map(str::lines) {
        let mut parts = line.splitn(3, ':');
        let (_, Some(hierarchy), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let is_first = hierarchy.split(',').any(|c| c == "memory");
        let Some(root) = (if is_first { &first } else { &second }) else { continue };
        if !is_first && !hierarchy.is_empty() {
            continue;
        }
        // Limits hold for all that is below.
        let mut at = path.trim_end_matches('/');
        while !at.is_empty() && done.insert((is_first, at.to_owned())) {
            let folder = root.join(at.trim_start_matches('/'));
            out.extend(if is_first { of_first(&folder, at) } else { of_second(&folder, at) });
            at = at.rsplit_once('/').map_or("", |(above, _)| above);
        }
    }
    out
}

/// Where a kind of hierarchy is mounted: the line's fifth word; its kind and options stand behind a dash.
fn mounted(mounts: &str, kind: &str, option: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let fits = after.next() == Some(kind)
            && (option.is_empty() || after.nth(1)?.split(',').any(|o| o == option));
        fits.then(|| before.split(' ').nth(4).map(PathBuf::from))?
    })
}

fn number(folder: &Path, file: &str) -> Option<u64> {
    fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok()
}

/// The value of a line that begins with a word.
fn line(folder: &Path, file: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(folder.join(file)).ok()?;
    text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

fn of_second(folder: &Path, path: &str) -> Option<Group> {
    let events =
        if folder.join("memory.events.local").exists() { "memory.events.local" } else { "memory.events" };
    Some(Group {
        path: path.into(),
        // "max" is no number: no limit.
        limit: number(folder, "memory.max")?,
        used: number(folder, "memory.current")?,
        sockets: line(folder, "memory.stat", "sock").unwrap_or(0),
        of_sockets: false,
        met: line(folder, events, "max").unwrap_or(0),
        // Its limit also holds what can be thrown away: being there is no fault yet.
        full: false,
        throttled: line(folder, events, "sock_throttled").unwrap_or(0),
    })
}

/// Only the limit for sockets is one of TCP's; without it they are not counted at all.
fn of_first(folder: &Path, path: &str) -> Option<Group> {
    let limit = number(folder, "memory.kmem.tcp.limit_in_bytes")?;
    let used = number(folder, "memory.kmem.tcp.usage_in_bytes")?;
    let none = limit >= i64::MAX as u64 / 2;
    (!none).then(|| Group {
        path: path.into(),
        limit,
        used,
        sockets: used,
        of_sockets: true,
        met: number(folder, "memory.kmem.tcp.failcnt").unwrap_or(0),
        full: used + PAGE > limit,
        throttled: 0,
    })
}

impl Audit {
    /// Takes what control groups say of their memory.
    pub fn memory_of(&mut self, groups: Vec<Group>, time: Nanos) {
        let now = time - self.start;
        for group in groups {
            let seen = self.groups.entry((group.of_sockets, group.path.clone()));
            let seen = seen.or_insert_with(|| Limited {
                first: group.clone(),
                last: group.clone(),
                full: 0,
                when: None,
            });
            seen.full += u64::from(group.full);
            if group.met > seen.last.met || group.throttled > seen.last.throttled || group.full {
                seen.when = Some((seen.when.map_or(now, |w| w.0), now));
            }
            let sockets = seen.last.sockets.max(group.sockets);
            seen.last = Group { sockets, ..group };
        }
    }
}

/// `mem_cgroup_charge_skmem`: a socket whose group has no memory left gets none, and its connection is under
/// pressure, however much the host has.
pub(super) fn limits(groups: &HashMap<(bool, String), Limited>) -> impl Iterator<Item = Fault> {
    groups.values().filter_map(|l| {
        let (g, when) = (&l.last, l.when?);
        let (met, throttled) = (g.met - l.first.met.min(g.met), g.throttled - l.first.throttled.min(g.throttled));
        if g.sockets == 0 {
            return None;
        }
        let evidence = if g.of_sockets {
            format!(
                "the sockets of this control group may hold {} bytes (memory.kmem.tcp.limit_in_bytes) and held up to {}: at {} looks \
                 there was not a page left for more",
                g.limit, g.sockets, l.full
            )
        } else {
            format!(
                "this control group may hold {} bytes (memory.max), and its sockets held up to {} of them: the limit was met {met} \
                 times, and sockets were told {throttled} times to take less (memory.events)",
                g.limit, g.sockets
            )
        };
        Some(Fault {
            id: "memory-limit",
            subject: g.path.clone(),
            cause: Cause::MemoryPressure,
            when,
            evidence,
            figures: vec![
                ("limit_bytes", g.limit),
                ("sockets_bytes", g.sockets),
                ("met", met),
                ("looks_full", l.full),
                ("throttled", throttled),
            ],
            fixes: Cause::MemoryPressure.info().fixes.to_vec(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both versions, from files as the kernel writes them.
    #[test]
    fn a_limit_that_is_met_is_told() {
        let root = std::env::temp_dir().join(format!("tcpwhy-groups-{}", std::process::id()));
        let put = |file: &str, text: &str| {
            let file = root.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        let mounts = format!(
            "30 1 0:1 / {0}/v1 rw - cgroup cgroup rw,memory\n31 1 0:2 / {0}/v2 rw,nosuid - cgroup2 cgroup2 rw\n",
            root.display()
        );
        put("v2/a/memory.max", "1000000\n");
        put("v2/a/memory.current", "999000\n");
        put("v2/a/memory.stat", "anon 5\nsock 4096\nshmem 0\n");
        put("v2/a/b/memory.max", "max\n");
        put("v2/a/b/memory.current", "999000\n");
        put("v1/c/memory.kmem.tcp.limit_in_bytes", "65536\n");
        put("v1/c/memory.kmem.tcp.usage_in_bytes", "61440\n");
        put("v1/c/memory.kmem.tcp.failcnt", "0\n");
        put("v1/d/memory.kmem.tcp.limit_in_bytes", "9223372036854771712\n");
        put("v1/d/memory.kmem.tcp.usage_in_bytes", "0\n");
        let mut audit = Audit::default();
        for (n, met) in [3, 3, 8].into_iter().enumerate() {
            put(
                "v2/a/memory.events",
                &format!("low 0\nhigh 0\nmax {met}\noom 0\nsock_throttled {}\n", met * 2),
            );
            if met > 3 {
                put("v1/c/memory.kmem.tcp.usage_in_bytes", "73728\n");
            }
            let found = read(&mounts, ["0::/a/b\n", "4:memory:/c\n0::/\n", "4:cpu,memory:/d\n"].into_iter());
            assert_eq!(found.iter().map(|g| g.path.as_str()).collect::<Vec<_>>(), ["/a", "/c"]);
            assert_eq!(limits(&audit.groups).count(), 0, "nothing is new");
            audit.memory_of(found, Nanos::secs(n as i64));
        }
        let mut faults: Vec<Fault> = limits(&audit.groups).collect();
        faults.sort_by_key(|f| f.subject.clone());
        let said: Vec<_> = faults.iter().map(|f| (f.subject.as_str(), f.figures.clone(), f.when)).collect();
        let at = (Nanos::secs(2), Nanos::secs(2));
        let figures = |limit, sockets, met, full, throttled| {
            let names = ["limit_bytes", "sockets_bytes", "met", "looks_full", "throttled"];
            names.into_iter().zip([limit, sockets, met, full, throttled]).collect::<Vec<_>>()
        };
        let wanted =
            [("/a", figures(1_000_000, 4096, 5, 0, 10), at), ("/c", figures(65_536, 73_728, 0, 1, 0), at)];
        assert_eq!(said, wanted);
        fs::remove_dir_all(root).unwrap();
    }
}
