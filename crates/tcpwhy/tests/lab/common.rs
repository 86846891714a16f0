//! The program run on scenarios, one run at a time.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) const BIN: &str = env!("CARGO_BIN_EXE_tcpwhy");

/// What a run said and how it ended.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        Ran {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ran {
    /// It failed with this code and one sentence that has these words.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        let said = format!("{}{}", self.out, self.err);
        for word in words {
            assert!(said.contains(word), "{word:?} is not in {said:?}");
        }
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {}{}", self.out, self.err))
    }
}

/// `tcpwhy lab` with these arguments.
pub(crate) fn lab(arguments: &[&str]) -> Ran {
    Command::new(BIN).arg("lab").args(arguments).output().unwrap().into()
}

/// A directory that goes with the test.
pub(crate) struct Dir(pub(crate) PathBuf);

impl Dir {
    pub(crate) fn new() -> Dir {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("tcpwhy-test-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Dir(path)
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().into()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs disturb each other, and what is left is looked for in the whole system: one at a time. None, after saying
/// why, where the machine cannot.
pub(crate) fn alone() -> Option<MutexGuard<'static, ()>> {
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    // A process belongs to its effective user.
    let root = fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0);
    if !root {
        return skip("the lab needs root");
    }
    if !Path::new("/dev/net/tun").exists() {
        return skip("the lab needs /dev/net/tun");
    }
    Some(guard)
}

/// Says it, and writes it down to be counted.
pub(crate) fn skip<T>(why: &str) -> Option<T> {
    crate::skips::skip("lab", why, env!("CARGO_TARGET_TMPDIR"));
    None
}
