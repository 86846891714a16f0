//! The inputs: files as they are named, and what is in folders.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tcpwhy_library::{ReadError, Reader};

/// An input, and where its name is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) path: PathBuf,
    /// It was found in a folder: it may be something else than a capture.
    pub(crate) found: bool,
}

impl Item {
    /// Something else that lay in the folder, and does not call itself a capture.
    pub(crate) fn is_foreign(&self) -> bool {
        self.found
            && !self.is_called_capture()
            && matches!(Reader::open(&self.path), Err(ReadError::NotCapture(_)))
    }

    /// `a.pcap`, `a.pcapng.gz`, `a.pcap1` (a ring of tcpdump), `a.pcap.1`: whoever wrote it meant a capture,
    /// though it may be none. `a.pcap.json` is something about one.
    fn is_called_capture(&self) -> bool {
        let name = self.path.file_name().map(|n| n.to_string_lossy().to_lowercase()).unwrap_or_default();
        let packed = |part: &&str| ["gz", "zst", "lz4", "xz", "bz2"].contains(part);
        let number = |part: &&str| part.bytes().all(|b| b.is_ascii_digit());
        let kind = name.split('.').skip(1).filter(|part| !packed(part) && !number(part)).last();
        kind.is_some_and(|kind| kind.starts_with("pcap") || kind == "cap")
    }
}

/// In the order in which they are named, those of a folder by name; of each path one. `out`, if it is a
/// folder, and what is in it are no inputs.
pub(crate) fn among(paths: &[PathBuf], out: Option<&Path>) -> Vec<Item> {
    let out = out.and_then(|out| out.canonicalize().ok());
    let mut items = Vec::new();
    for path in paths {
        if path.is_dir() {
            walk(path, out.as_deref(), &mut items);
        } else {
            items.push(Item { path: path.clone(), found: false });
        }
    }
    let place = |item: &Item| item.path.canonicalize().unwrap_or_else(|_| item.path.clone());
    // Whoever also names one that lies in a folder means it.
    let named: HashSet<PathBuf> = items.iter().filter(|item| !item.found).map(place).collect();
    let mut seen = HashSet::new();
    items.retain_mut(|item| {
        let place = place(item);
        item.found &= !named.contains(&place);
        seen.insert(place)
    });
    items
}

/// Links to folders are not followed, so that there is an end; hidden files are not meant to be found. A
/// folder that may not be read is an item itself: whoever opens it says so.
fn walk(folder: &Path, out: Option<&Path>, items: &mut Vec<Item>) {
    if out.is_some() && folder.canonicalize().ok().as_deref() == out {
        return;
    }
    let listed = fs::read_dir(folder);
    if listed.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::PermissionDenied) {
        items.push(Item { path: folder.into(), found: true });
    }
    let mut list: Vec<fs::DirEntry> = listed.into_iter().flatten().flatten().collect();
    list.sort_by_key(fs::DirEntry::file_name);
    for entry in list {
        let (path, name) = (entry.path(), entry.file_name());
        if name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk(&path, out, items),
            // In a folder that can be listed and no more, what a link leads to is not known.
            Ok(kind) if kind.is_file() || path.is_file() => items.push(Item { path, found: true }),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_calls_itself_a_capture() {
        let called = |name: &str| Item { path: name.into(), found: true }.is_called_capture();
        for name in ["a.pcap", "a.PCAPNG.gz", "a.b.cap", "a.pcap1", "a.pcap.1", "a.pcap.20261126.zst"] {
            assert!(called(name), "{name}");
        }
        for name in ["a.pcap.json", "a.pcap.sha256", "pcap", "a.txt", "1.gz", "README.md"] {
            assert!(!called(name), "{name}");
        }
    }
}
