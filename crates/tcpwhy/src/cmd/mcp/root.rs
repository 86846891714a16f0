//! The folder whose captures may be read, and nothing else.

use crate::shown;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Names in a sentence about a file that is not there.
const NAMED: usize = 20;
/// What captures are called.
const ENDINGS: [&str; 4] = ["pcap", "pcapng", "cap", "snoop"];

/// Why there is no list of captures, and what to do.
fn why(e: &io::Error) -> String {
    match e.kind() {
        io::ErrorKind::NotFound => "there is no such folder; name the one that holds the captures".into(),
        io::ErrorKind::NotADirectory => "a part of that path is a file; name a folder".into(),
        io::ErrorKind::PermissionDenied => {
            "its captures cannot be listed: permission denied; run as a user who may read it, or name another folder".into()
        }
        _ => format!("its captures cannot be listed: {e}; name another folder"),
    }
}

#[derive(Debug)]
pub(super) struct Root(PathBuf);

impl Root {
    pub(super) fn open(folder: &Path) -> anyhow::Result<Root> {
        let refused = |e: &io::Error| anyhow::anyhow!("--root {}: {}", folder.display(), why(e));
        let there = folder.canonicalize().map_err(|e| refused(&e))?;
        anyhow::ensure!(
            there.is_dir(),
            "--root {}: it is a file; name the folder that holds it",
            folder.display()
        );
        fs::read_dir(&there).map_err(|e| refused(&e))?;
        Ok(Root(there))
    }

    /// The file as it is named below the root, wherever links lead. What lies outside is refused in the same
    /// words whether it is there or not.
    pub(super) fn file(&self, name: &str) -> Result<PathBuf, String> {
        let shown = shown::name(name);
        let outside = || format!("{shown} is not within the folder of captures; {}", self.list());
        let path = self.0.join(name);
        let Ok(there) = path.canonicalize() else {
            let climbs = path.components().any(|c| matches!(c, std::path::Component::ParentDir));
            let within = path.starts_with(&self.0) && !climbs;
            return Err(if within { format!("there is no {shown}; {}", self.list()) } else { outside() });
        };
        if !there.starts_with(&self.0) {
            return Err(outside());
        }
        // To open a pipe or a device may take for ever, or do something.
        if !fs::metadata(&there).is_ok_and(|m| m.is_file()) {
            return Err(format!("{shown} is no file; {}", self.list()));
        }
        Ok(there)
    }

    /// `captures here: a.pcap, b.pcapng`.
    fn list(&self) -> String {
        let is_capture = |name: &String| {
            let mut parts = name.rsplit('.');
            parts.next().is_some_and(|e| ENDINGS.contains(&e))
                || name.contains('.') && parts.next().is_some_and(|e| ENDINGS.contains(&e))
        };
        let all = fs::read_dir(&self.0).into_iter().flatten().flatten();
        // What a link leads out to would be refused.
        let within = all.filter(|e| e.path().canonicalize().is_ok_and(|there| there.starts_with(&self.0)));
        let mut names: Vec<String> =
            within.filter_map(|e| e.file_name().into_string().ok()).filter(is_capture).collect();
        names.sort_unstable();
        let more = names.len().saturating_sub(NAMED);
        names.truncate(NAMED);
        match (names.is_empty(), more) {
            (true, _) => "there are no captures in its top level".into(),
            (false, 0) => format!("captures here: {}", shown::name(&names.join(", "))),
            (false, more) => format!("captures here: {} and {more} more", shown::name(&names.join(", "))),
        }
    }
}

impl Root {
    /// `text` with paths as they are below the root.
    pub(super) fn without(&self, text: &str) -> String {
        let above = format!("{}{}", self.0.display(), std::path::MAIN_SEPARATOR);
        text.replace(&above, "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a link leads out to is refused, and not offered either.
    #[test]
    fn links_out_of_the_folder_are_not_offered() {
        let folder = std::env::temp_dir().join(format!("tcpwhy-root-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("own.pcap"), "x").unwrap();
        std::os::unix::fs::symlink("/etc/hostname", folder.join("out.pcap")).unwrap();
        let root = Root::open(&folder).unwrap();
        let refused = root.file("out.pcap").unwrap_err();
        let own = root.file("own.pcap");
        fs::remove_dir_all(&folder).unwrap();
        assert!(refused.ends_with("captures here: own.pcap"), "{refused}");
        assert!(own.is_ok());
    }
}
