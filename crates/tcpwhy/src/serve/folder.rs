//! The captures that are served: those in the folder, and those that were dropped on the page; and the results that the
//! lab left beside its captures. Names are looked up among what was found, never joined to a path, so no name reaches a
//! file outside.

use crate::lab_result;
use crate::temporary::Temporary;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// Listed at most; a folder with more is not one that somebody looks through.
const MOST: usize = 2_000;
/// Folders within folders.
const DEPTH: usize = 4;

/// A capture that can be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) path: PathBuf,
    pub(crate) size: u64,
    pub(crate) changed: Option<SystemTime>,
    pub(crate) dropped: bool,
}

/// A capture with its name.
pub(crate) type Named = (String, Entry);

/// Between the names of two captures of the same connections.
const AND: &str = " + ";

/// What a look into the folder found, by name.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) captures: BTreeMap<String, Entry>,
    pub(crate) results: BTreeMap<String, Entry>,
}

/// The captures by name.
pub(crate) struct Folder {
    root: Option<PathBuf>,
    /// Files that were named: one, or two that are opened as one.
    single: Vec<(String, PathBuf)>,
    dropped: Mutex<BTreeMap<String, PathBuf>>,
    /// Where dropped files and pages are kept; goes with the server.
    store: Temporary,
}

impl Folder {
    /// Of a file, two files, a folder, or nothing but what will be dropped.
    pub(crate) fn new(paths: &[PathBuf], store: Temporary) -> std::io::Result<Folder> {
        let mut folder = Folder { root: None, single: Vec::new(), dropped: Mutex::default(), store };
        for given in paths {
            let path = given.canonicalize()?;
            if path.is_dir() {
                folder.root = Some(path);
                continue;
            }
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            folder.single.push((name, path));
        }
        if let [(first, one), (second, other)] = &mut folder.single[..]
            && first == second
        {
            // As two hosts call the captures of the same job.
            *first = one.display().to_string();
            *second = other.display().to_string();
        }
        Ok(folder)
    }

    /// The name of the two files that are opened as one, if there are two.
    pub(crate) fn both(&self) -> Option<String> {
        let [(first, _), (second, _)] = &self.single[..] else { return None };
        Some(format!("{first}{AND}{second}"))
    }

    /// Every capture that can be shown now.
    pub(crate) fn list(&self) -> BTreeMap<String, Entry> {
        self.look().captures
    }

    /// Everything that can be shown now.
    pub(crate) fn look(&self) -> Found {
        let mut out = Found::default();
        for (name, path) in &self.single {
            out.captures.extend(entry(path, false).map(|e| (name.clone(), e)));
        }
        if let Some(root) = &self.root {
            walk(root, root, DEPTH, &mut out);
        }
        let dropped = self.dropped.lock().unwrap_or_else(PoisonError::into_inner);
        let dropped = dropped.iter().filter_map(|(name, path)| Some((name.clone(), entry(path, true)?)));
        out.captures.extend(dropped);
        out
    }

    /// The captures that a name stands for: one, or two that are shown as one.
    pub(crate) fn find(&self, name: &str) -> Option<Vec<Named>> {
        let found = self.list();
        let one = |name: &str| Some((name.to_owned(), found.get(name)?.clone()));
        if let Some(one) = one(name) {
            return Some(vec![one]);
        }
        // Names may hold what stands between them.
        name.match_indices(AND).find_map(|(at, _)| {
            let (first, second) = (name.get(..at)?, name.get(at + AND.len()..)?);
            Some(vec![one(first)?, one(second)?])
        })
    }

    /// What is served, for people; none if there is nothing but what is dropped.
    pub(crate) fn place(&self) -> Option<String> {
        let named: Vec<&PathBuf> = self.root.iter().chain(self.single.iter().map(|(_, path)| path)).collect();
        let shown = named.iter().map(|p| p.display().to_string()).collect::<Vec<_>>();
        (!shown.is_empty()).then(|| shown.join(AND))
    }

    /// A path for a file that is being dropped.
    pub(crate) fn path_for(&self, number: u64) -> PathBuf {
        self.store.path().join(format!("dropped-{number}"))
    }

    /// Where what belongs to this server is kept.
    pub(crate) fn store(&self) -> &Path {
        self.store.path()
    }

    /// Removes everything that was dropped, also if threads still hold this.
    pub(crate) fn remove_store(&self) {
        self.store.remove();
    }

    /// Lists a dropped file under a name that is not taken yet.
    pub(crate) fn add(&self, wanted: &str, path: PathBuf) -> String {
        let plain: String = wanted
            .rsplit(['/', '\\'])
            .next()
            .unwrap_or("")
            .chars()
            .filter(|c| !c.is_control())
            .take(200)
            .collect();
        let plain = if plain.is_empty() { "dropped".into() } else { plain };
        let taken = self.list();
        let mut name = plain.clone();
        let mut n = 2;
        while taken.contains_key(&name) {
            name = format!("{plain} ({n})");
            n += 1;
        }
        self.dropped.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone(), path);
        name
    }
}

fn entry(path: &Path, dropped: bool) -> Option<Entry> {
    let meta = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some(Entry { path: path.into(), size: meta.len(), changed: meta.modified().ok(), dropped })
}

fn walk(root: &Path, folder: &Path, depth: usize, out: &mut Found) {
    let Ok(list) = fs::read_dir(folder) else { return };
    for item in list.flatten() {
        if out.captures.len().max(out.results.len()) >= MOST {
            return;
        }
        let path = item.path();
        let Ok(kind) = item.file_type() else { continue };
        // Only a link may lead out of the folder: what it leads to is judged.
        let real = match kind.is_symlink() {
            true => path.canonicalize().ok().filter(|real| real.starts_with(root)),
            false => Some(path.clone()),
        };
        let Some(real) = real.filter(|_| !item.file_name().to_string_lossy().starts_with('.')) else {
            continue;
        };
        if real.is_dir() {
            if depth > 0 && kind.is_dir() {
                walk(root, &path, depth - 1, out);
            }
            continue;
        }
        let list = match item.file_name() == lab_result::FILE {
            true => &mut out.results,
            false if looks_like_a_capture(&path) => &mut out.captures,
            false => continue,
        };
        if let Ok(name) = path.strip_prefix(root) {
            let name = name.to_string_lossy().into_owned();
            list.extend(entry(&real, false).map(|e| (name, e)));
        }
    }
}

fn looks_like_a_capture(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let name = [".gz", ".zst", ".lz4"].iter().find_map(|e| name.strip_suffix(e)).unwrap_or(&name);
    [".pcap", ".pcapng", ".cap"].iter().any(|e| name.ends_with(e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_by_name() {
        for (name, yes) in
            [("a.pcap", true), ("a.PCAPNG.gz", true), ("b.cap.zst", true), ("pcap", false), ("a.txt", false)]
        {
            assert_eq!(looks_like_a_capture(Path::new(name)), yes, "{name}");
        }
    }

    #[test]
    fn nothing_outside_is_listed() {
        let base = std::env::temp_dir().join(format!("tcpwhy-folder-{}", std::process::id()));
        let (root, outside) = (base.join("in"), base.join("out"));
        fs::create_dir_all(root.join("sub")).unwrap();
        fs::create_dir_all(&outside).unwrap();
        for file in ["in/a.pcap", "in/sub/b.pcapng", "out/c.pcap", "in/d.txt", "in/sub/lab-result.json"]
            .map(|f| base.join(f))
        {
            fs::write(file, "x").unwrap();
        }
        #[cfg(unix)]
        for (to, link) in
            [(outside.join("c.pcap"), root.join("link.pcap")), (outside.clone(), root.join("way"))]
        {
            std::os::unix::fs::symlink(to, link).unwrap();
        }
        let store = Temporary::folder(&base, "store-").unwrap();
        let store_path = store.path().to_owned();
        let folder = Folder::new(std::slice::from_ref(&root), store).unwrap();
        let found = folder.look();
        assert_eq!(found.captures.into_keys().collect::<Vec<_>>(), ["a.pcap", "sub/b.pcapng"]);
        assert_eq!(found.results.into_keys().collect::<Vec<_>>(), ["sub/lab-result.json"]);
        assert!(folder.find("../out/c.pcap").is_none() && folder.find("/etc/passwd").is_none());
        assert_eq!(folder.add("../x/a.pcap", outside.join("c.pcap")), "a.pcap (2)");
        assert!(folder.find("a.pcap (2)").unwrap()[0].1.dropped);
        // Two captures, also where a name has in it what stands between them.
        let names =
            |name: &str| folder.find(name).map(|all| all.into_iter().map(|c| c.0).collect::<Vec<_>>());
        assert_eq!(names("a.pcap + sub/b.pcapng").unwrap(), ["a.pcap", "sub/b.pcapng"]);
        assert!(names("a.pcap + ../out/c.pcap").is_none() && names("a.pcap + ").is_none());
        folder.remove_store();
        assert!(!store_path.exists(), "also while it is held");
        fs::remove_dir_all(base).unwrap();
    }
}
