//! Files and folders for as long as the program runs: with names that nobody can plant, readable by their owner alone,
//! removed at every end but SIGKILL, and after that one by the next run.
//!
//! Each is locked by the process that uses it. A lock goes with its process, also across containers that share a
//! directory and number their processes alike, so what can be locked is an orphan.

use std::fs::{self, File, Metadata};
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What has to go if a signal ends the program.
static ALL: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
/// In a folder, what is locked.
const LOCK: &str = ".lock";
/// Between making and locking there is a moment: what is younger is left alone.
const YOUNG: Duration = Duration::from_secs(60);

/// Removed when it is dropped, or by [`remove_all`].
#[derive(Debug)]
pub(crate) struct Temporary {
    path: PathBuf,
    /// Holds the lock.
    _lock: File,
}

impl Temporary {
    /// A new file in `folder`, called `prefix`, process, random word, `suffix`; `private`: for its owner
    /// alone. Those of killed runs are removed.
    pub(crate) fn file(
        folder: &Path,
        prefix: &str,
        suffix: &str,
        private: bool,
    ) -> io::Result<(File, Temporary)> {
        let path = folder.join(name(prefix, suffix));
        let mut options = File::options();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, if private { 0o600 } else { 0o666 });
        let file = options.open(&path)?;
        let temporary = Temporary::of(path, file.try_clone()?);
        sweep(folder, prefix, suffix, &temporary.path);
        Ok((file, temporary))
    }

    /// A new folder in `folder`, called `prefix`, process, random word, for its owner alone. Those of killed
    /// runs are removed.
    pub(crate) fn folder(folder: &Path, prefix: &str) -> io::Result<Temporary> {
        let path = folder.join(name(prefix, ""));
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path)?;
        let lock = File::create_new(path.join(LOCK))?;
        let temporary = Temporary::of(path, lock);
        sweep(folder, prefix, "", &temporary.path);
        Ok(temporary)
    }

    fn of(path: PathBuf, lock: File) -> Temporary {
        // Where nothing can be locked nothing is taken for an orphan either.
        let _ = lock.try_lock();
        all().push(path.clone());
        Temporary { path, _lock: lock }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it now.
    pub(crate) fn remove(&self) {
        let mut all = all();
        if let Some(i) = all.iter().position(|p| *p == self.path) {
            all.swap_remove(i);
            remove(&self.path);
        }
    }

    /// It has another name now, or its owner removed it: nothing is left to do.
    pub(crate) fn forget(&self) {
        all().retain(|p| *p != self.path);
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Removes everything; for an end by signal.
pub(crate) fn remove_all() {
    all().drain(..).for_each(|path| remove(&path));
}

fn all() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What stays is removed by the next run.
fn remove(path: &Path) {
    if fs::symlink_metadata(path).is_ok_and(|m| m.is_dir()) {
        // A thread may still be writing into it.
        let _ = fs::remove_dir_all(path).or_else(|_| fs::remove_dir_all(path));
    } else {
        let _ = fs::remove_file(path);
    }
}

fn name(prefix: &str, suffix: &str) -> String {
    let word = RandomState::new().hash_one(prefix);
    format!("{prefix}{}-{word:016x}{suffix}", std::process::id())
}

/// Whether [`name`] makes such names.
fn is_ours(name: &str, prefix: &str, suffix: &str) -> bool {
    let middle = name.strip_prefix(prefix).and_then(|n| n.strip_suffix(suffix));
    middle.and_then(|m| m.split_once('-')).is_some_and(|(process, word)| {
        !process.is_empty()
            && process.bytes().all(|b| b.is_ascii_digit())
            && word.len() == 16
            && word.bytes().all(|b| b.is_ascii_hexdigit())
    })
}

/// Removes what runs left that were killed: of the same owner as `own`, and not locked.
fn sweep(folder: &Path, prefix: &str, suffix: &str, own: &Path) {
    let Ok(mine) = fs::symlink_metadata(own) else { return };
    for item in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = item.path();
        if path != own
            && item.file_name().to_str().is_some_and(|n| is_ours(n, prefix, suffix))
            && is_orphan(&path, &mine)
        {
            remove(&path);
        }
    }
}

/// Links are never followed: what is looked at is what `path` itself names.
fn is_orphan(path: &Path, mine: &Metadata) -> bool {
    let Ok(meta) = fs::symlink_metadata(path) else { return false };
    let young = meta.modified().ok().and_then(|t| t.elapsed().ok()).is_none_or(|age| age < YOUNG);
    if young || meta.file_type() != mine.file_type() || !same_owner(&meta, mine) {
        return false;
    }
    let lock = if meta.is_dir() { path.join(LOCK) } else { path.to_owned() };
    match fs::symlink_metadata(&lock) {
        Ok(m) if m.is_file() => File::open(&lock).is_ok_and(|file| file.try_lock().is_ok()),
        // The folder of a run that was killed before it made its lock.
        _ => meta.is_dir(),
    }
}

#[cfg(unix)]
fn same_owner(a: &Metadata, b: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    a.uid() == b.uid()
}

#[cfg(not(unix))]
fn same_owner(_: &Metadata, _: &Metadata) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    #[test]
    fn names() {
        assert!(is_ours(&name("tcpwhy-", ".capture"), "tcpwhy-", ".capture"));
        for other in [
            "tcpwhy-12.capture",
            "tcpwhy--0123456789abcdef.capture",
            "tcpwhy-1-0123456789abcde/.capture",
            "x",
        ] {
            assert!(!is_ours(other, "tcpwhy-", ".capture"), "{other}");
        }
        assert_ne!(name("a", ""), name("a", ""));
    }

    #[test]
    fn orphans_go_and_what_is_in_use_stays() {
        let place = Temporary::folder(&std::env::temp_dir(), "tcpwhy-temporary-").unwrap();
        let at = |n: &str| place.path().join(n);
        let old = |file: &File| file.set_modified(SystemTime::now() - 2 * YOUNG).unwrap();
        let (in_use, kept) = Temporary::file(place.path(), "p-", ".x", true).unwrap();
        old(&in_use);
        for name in ["p-1-0123456789abcdef.x", "p-1-0123456789abcdef.y", "q-1-0123456789abcdef.x", "p-note.x"]
        {
            old(&File::create(at(name)).unwrap());
        }
        File::create(at("p-2-0123456789abcdef.x")).unwrap();
        fs::write(at("target"), "precious").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(at("target"), at("p-3-0123456789abcdef.x")).unwrap();
        let (_file, other) = Temporary::file(place.path(), "p-", ".x", true).unwrap();
        let left = |n: &str| fs::symlink_metadata(at(n)).is_ok();
        assert!(!left("p-1-0123456789abcdef.x"), "an orphan goes");
        assert!(
            left("p-1-0123456789abcdef.y") && left("q-1-0123456789abcdef.x") && left("p-note.x"),
            "not our names"
        );
        assert!(left("p-2-0123456789abcdef.x"), "too young");
        assert!(left("p-3-0123456789abcdef.x") && left("target"), "a link is not ours");
        assert!(kept.path().exists() && other.path().exists(), "in use");
        let path = kept.path().to_owned();
        drop(kept);
        assert!(!path.exists());
        other.forget();
        let path = other.path().to_owned();
        drop(other);
        assert!(path.exists(), "renamed: no longer ours");
    }

    #[test]
    fn folders_that_nobody_uses() {
        let place = Temporary::folder(&std::env::temp_dir(), "tcpwhy-temporary-").unwrap();
        let orphan = place.path().join("s-1-0123456789abcdef");
        fs::create_dir(&orphan).unwrap();
        fs::write(orphan.join(LOCK), "").unwrap();
        fs::write(orphan.join("dropped-0"), "x").unwrap();
        File::open(&orphan).unwrap().set_modified(SystemTime::now() - 2 * YOUNG).unwrap();
        let held = File::open(orphan.join(LOCK)).unwrap();
        held.try_lock().unwrap();
        let first = Temporary::folder(place.path(), "s-").unwrap();
        assert!(orphan.exists(), "in use");
        drop(held);
        let second = Temporary::folder(place.path(), "s-").unwrap();
        assert!(!orphan.exists() && first.path().exists() && second.path().exists());
        #[cfg(unix)]
        assert_eq!(
            std::os::unix::fs::PermissionsExt::mode(&fs::metadata(first.path()).unwrap().permissions())
                & 0o777,
            0o700
        );
    }
}
