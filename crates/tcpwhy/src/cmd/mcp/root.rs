//! The folder whose captures may be read, and nothing else.

use crate::shown;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Names in a sentence about a file that is not there.
const NAMED: usize = 20;
/// So many folders below the root are looked into for names, one within the other, and so many entries in
/// all.
const DEEP: usize = 4;
const LOOKED_AT: usize = 10_000;
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

    /// `captures here: a.pcap, b.pcapng, of_today/c.pcap`: those of the top first, then of the folders in it.
    fn list(&self) -> String {
        let Named { mut names, all } = self.names();
        let more = names.len().saturating_sub(NAMED);
        names.truncate(NAMED);
        let names = shown::name(&names.join(", ")).into_owned();
        let beyond = if all { "" } else { "; not all folders were looked into" };
        match (names.is_empty(), more) {
            (true, _) => format!("there are no captures here{beyond}"),
            (false, 0) => format!("captures here: {names}{beyond}"),
            (false, more) => format!("captures here: {names} and {more} more{beyond}"),
        }
    }

    /// The captures by their names below the root, level by level.
    fn names(&self) -> Named {
        let mut found = Named { names: Vec::new(), all: true };
        let mut level = vec![PathBuf::new()];
        let mut left = LOOKED_AT;
        for _ in 0..=DEEP {
            let (mut names, mut below) = (Vec::new(), Vec::new());
            for folder in &level {
                for entry in fs::read_dir(self.0.join(folder)).into_iter().flatten().flatten() {
                    if left == 0 {
                        found.all = false;
                        break;
                    }
                    left -= 1;
                    let name = folder.join(entry.file_name());
                    // A link to a folder may lead round in a circle.
                    if entry.file_type().is_ok_and(|t| t.is_dir()) {
                        below.push(name);
                    } else if let Some(text) = name.to_str()
                        && is_capture(text)
                        // What a link leads out to would be refused.
                        && entry.path().canonicalize().is_ok_and(|there| there.starts_with(&self.0))
                    {
                        names.push(text.to_owned());
                    }
                }
            }
            names.sort_unstable();
            found.names.extend(names);
            below.sort_unstable();
            level = below;
        }
        found.all &= level.is_empty();
        found
    }
}

/// Captures that were found.
struct Named {
    names: Vec<String>,
    /// Every folder was looked into.
    all: bool,
}

/// By its name, also of one that is packed.
fn is_capture(name: &str) -> bool {
    let name = name.rsplit(std::path::MAIN_SEPARATOR).next().unwrap_or(name);
    let mut parts = name.rsplit('.');
    parts.next().is_some_and(|e| ENDINGS.contains(&e))
        || name.contains('.') && parts.next().is_some_and(|e| ENDINGS.contains(&e))
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

    /// What can be opened in a folder below is named, too, as it has to be asked for; what is too much or too
    /// deep is said to be there.
    #[test]
    fn captures_of_folders_below_are_named() {
        let folder = std::env::temp_dir().join(format!("tcpwhy-below-{}", std::process::id()));
        let put = |name: &str| {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        };
        put("z.pcap");
        put("t1/cap.server.pcap.gz");
        put("t1/cap.client.pcap");
        put("t1/notes.txt");
        std::os::unix::fs::symlink(&folder, folder.join("t1/round")).unwrap();
        let root = Root::open(&folder).unwrap();
        let said = root.file("none").unwrap_err();
        let opened = root.file("t1/cap.client.pcap");
        put("1/2/3/4/deep.pcap");
        let deep = root.file("none").unwrap_err();
        put("1/2/3/4/5/deeper.pcap");
        let deeper = root.file("none").unwrap_err();
        (0..30).for_each(|n| put(&format!("many/{n:02}.pcap")));
        let many = root.file("none").unwrap_err();
        fs::remove_dir_all(&folder).unwrap();
        assert!(opened.is_ok());
        let three = "captures here: z.pcap, t1/cap.client.pcap, t1/cap.server.pcap.gz";
        assert!(said.ends_with(three), "{said}");
        assert!(deep.ends_with(&format!("{three}, 1/2/3/4/deep.pcap")), "{deep}");
        let cut = "; not all folders were looked into";
        assert!(deeper.ends_with(&format!("{three}, 1/2/3/4/deep.pcap{cut}")), "{deeper}");
        assert!(
            many.contains("z.pcap, many/00.pcap") && many.ends_with(&format!(" and 14 more{cut}")),
            "{many}"
        );
    }
}
