//! Which container a process belongs to: its number is in the name of its control group, its name in what the
//! runtime keeps about it. Only files are read; whether they may be is up to their owners (root's, mostly).

use hashbrown::HashMap;
use serde_json::Value;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// No runtime keeps more about its containers than this.
const LARGEST: u64 = 4 << 20;

/// The number (the first twelve digits) and the name of a container, as far as they are known.
pub(crate) type Container = (Option<String>, Option<String>);

/// Containers come and go as long as a host is watched: so many names are kept.
const KEPT: usize = 4096;

/// Containers by their numbers; each is looked up once.
#[derive(Debug)]
pub(crate) struct Containers {
    root: PathBuf,
    names: HashMap<String, Option<String>>,
}

impl Default for Containers {
    fn default() -> Containers {
        Containers { root: "/".into(), names: HashMap::new() }
    }
}

impl Containers {
    /// From the text of `/proc/PID/cgroup`.
    pub(crate) fn of(&mut self, groups: &str) -> Container {
        let words = groups.split(|c: char| !c.is_ascii_alphanumeric());
        let mut ids = words.filter(|w| w.len() == 64 && w.bytes().all(|b| b.is_ascii_hexdigit()));
        let Some(id) = ids.next_back() else { return (None, by_group(groups)) };
        if self.names.len() >= KEPT {
            self.names.clear();
        }
        let root = &self.root;
        let name = self.names.entry(id.into()).or_insert_with(|| by_number(root, id, groups)).clone();
        (Some(id.chars().take(12).collect()), name)
    }
}

/// Some runtimes have no numbers: LXC calls a group `lxc.payload.NAME` or `lxc/NAME`, systemd-nspawn
/// `machine-NAME.scope`.
fn by_group(groups: &str) -> Option<String> {
    let mut before = "";
    for part in groups.split(['/', '\n']) {
        let machine = || part.strip_prefix("machine-")?.strip_suffix(".scope");
        let name = part.strip_prefix("lxc.payload.").or((before == "lxc").then_some(part)).or_else(machine);
        if let Some(name) = name.and_then(|n| plain(&n.replace("\\x2d", "-"))) {
            return Some(name);
        }
        before = part;
    }
    None
}

fn by_number(root: &Path, id: &str, groups: &str) -> Option<String> {
    let docker = || {
        let about = json(&root.join("var/lib/docker/containers").join(id).join("config.v2.json"))?;
        plain(about.get("Name")?.as_str()?.trim_start_matches('/'))
    };
    docker().or_else(|| containerd(root, id)).or_else(|| libpod(root, id, groups))
}

/// containerd (Kubernetes, nerdctl) and CRI-O keep the container's description, with who it is for.
fn containerd(root: &Path, id: &str) -> Option<String> {
    let tasks = root.join("run/containerd/io.containerd.runtime.v2.task");
    let folders = std::fs::read_dir(tasks).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = folders.map(|f| f.path().join(id).join("config.json")).collect();
    files.push(root.join("run/containers/storage/overlay-containers").join(id).join("userdata/config.json"));
    files.iter().find_map(|file| {
        let about = json(file)?;
        let notes = about.get("annotations")?;
        let note = |name: &str| notes.get(name)?.as_str().and_then(plain);
        let pod = note("io.kubernetes.cri.sandbox-name").or_else(|| note("io.kubernetes.pod.name"));
        let name = note("io.kubernetes.cri.container-name").or_else(|| note("io.kubernetes.container.name"));
        match (pod, name) {
            (Some(pod), Some(name)) => Some(format!("{pod}/{name}")),
            (pod, name) => name.or(pod).or_else(|| note("nerdctl/name")),
        }
    })
}

/// Podman's list, of root or of the user in whose slice it runs.
fn libpod(root: &Path, id: &str, groups: &str) -> Option<String> {
    let mut stores = vec![root.join("var/lib/containers/storage")];
    stores.extend(home(root, groups).map(|home| home.join(".local/share/containers/storage")));
    stores.iter().find_map(|store| {
        let lists = ["containers.json", "volatile-containers.json"];
        lists.iter().find_map(|list| {
            let all = json(&store.join("overlay-containers").join(list))?;
            let of = all.as_array()?.iter().find(|c| c.get("id").and_then(Value::as_str) == Some(id))?;
            plain(of.get("names")?.get(0)?.as_str()?)
        })
    })
}

/// The home of the user whose `user-UID.slice` it is.
fn home(root: &Path, groups: &str) -> Option<PathBuf> {
    let (_, rest) = groups.split_once("/user-")?;
    let (uid, _) = rest.split_once(".slice")?;
    let users = text(&root.join("etc/passwd"))?;
    let line = users.lines().find(|l| l.split(':').nth(2) == Some(uid))?;
    let home = line.split(':').nth(5)?.trim_start_matches('/');
    (!home.is_empty()).then(|| root.join(home))
}

/// A name as runtimes allow it; nothing else is shown.
fn plain(name: &str) -> Option<String> {
    let fine = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    (!name.is_empty() && name.len() <= 253 && name.chars().all(fine)).then(|| name.to_owned())
}

fn json(file: &Path) -> Option<Value> {
    serde_json::from_str(&text(file)?).ok()
}

fn text(file: &Path) -> Option<String> {
    let mut out = String::new();
    File::open(file).ok()?.take(LARGEST).read_to_string(&mut out).ok()?;
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each runtime's files, in a directory of their own.
    #[test]
    fn names_are_those_that_runtimes_keep() {
        let root = std::env::temp_dir().join(format!("tcpwhy-containers-{}", std::process::id()));
        let put = |file: &str, text: &str| {
            let file = root.join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        };
        let id = |n: u8| format!("{n:02x}").repeat(32);
        let tasks = "run/containerd/io.containerd.runtime.v2.task";
        put(&format!("var/lib/docker/containers/{}/config.v2.json", id(1)), r#"{"Name": "/web"}"#);
        let note = r#"{"annotations": {"io.kubernetes.cri.sandbox-name": "shop-7", "io.kubernetes.cri.container-name": "web"}}"#;
        put(&format!("{tasks}/k8s.io/{}/config.json", id(2)), note);
        put(
            &format!("{tasks}/default/{}/config.json", id(3)),
            r#"{"annotations": {"nerdctl/name": "cache"}}"#,
        );
        let store = "storage/overlay-containers/containers.json";
        put(
            &format!("var/lib/containers/{store}"),
            &format!(r#"[{{"id": "x"}}, {{"id": "{}", "names": ["db"]}}]"#, id(4)),
        );
        put(
            &format!("home/ann/.local/share/containers/{store}"),
            &format!(r#"[{{"id": "{}", "names": ["own"]}}]"#, id(5)),
        );
        put("etc/passwd", "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n");
        put(&format!("var/lib/docker/containers/{}/config.v2.json", id(6)), r#"{"Name": "/a\u001b[2J"}"#);
        put(&format!("var/lib/docker/containers/{}/config.v2.json", id(7)), "{");
        let mut containers = Containers { root: root.clone(), names: HashMap::new() };
        for (group, name) in [
            (format!("0::/system.slice/docker-{}.scope\n", id(1)), Some("web")),
            (format!("0::/kubepods/pod12/{}", id(2)), Some("shop-7/web")),
            (format!("4:memory:/default/{}", id(3)), Some("cache")),
            (format!("0::/machine.slice/libpod-{}.scope", id(4)), Some("db")),
            (
                format!("0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{}.scope", id(5)),
                Some("own"),
            ),
            (format!("0::/docker/{}", id(6)), None),
            (format!("0::/docker/{}", id(7)), None),
            (format!("0::/docker/{}", id(8)), None),
        ] {
            let number = group.split(|c: char| !c.is_ascii_alphanumeric()).find(|w| w.len() == 64).unwrap();
            let found = containers.of(&group);
            assert_eq!((found.0.as_deref(), found.1.as_deref()), (number.get(..12), name), "{group}");
        }
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn some_runtimes_name_the_group() {
        for (group, name) in [
            ("0::/lxc.payload.build/system.slice/nginx.service", Some("build")),
            ("4:memory:/lxc/build\n0::/", Some("build")),
            ("0::/machine.slice/machine-old\\x2dweb.scope/payload", Some("old-web")),
            ("0::/user.slice/user-0.slice", None),
        ] {
            assert_eq!(Containers::default().of(group), (None, name.map(str::to_owned)), "{group}");
        }
    }
}
