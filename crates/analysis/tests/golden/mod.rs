//! Answers that are compared with a file, and seeds that are the same in every run unless others are asked for.

#![allow(dead_code, reason = "each test crate uses a part of it")]

use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use tcpwhy_base::Nanos;

/// The text is that of `golden/NAME.txt`; with `UPDATE=1` it becomes that.
#[track_caller]
pub(crate) fn compare(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(format!("{name}.txt"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, text).expect("the folder can be written");
        return;
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    let (old, new): (Vec<&str>, Vec<&str>) = (known.lines().collect(), text.lines().collect());
    let gone = old.iter().filter(|l| !new.contains(l)).map(|l| format!("- {l}\n"));
    let come = new.iter().filter(|l| !old.contains(l)).map(|l| format!("+ {l}\n"));
    let diff: String = gone.chain(come).take(80).collect();
    let place = path.display();
    assert!(known == text, "{place} differs; UPDATE=1 writes it anew, and its diff is to be read:\n{diff}");
}

/// Milliseconds to the microsecond.
pub(crate) fn millis(t: Nanos) -> String {
    format!("{:.3}", t.0 as f64 / 1e6)
}

/// The seed is the fixed one.
pub(crate) fn is_fixed(variable: &str) -> bool {
    std::env::var_os("RANDOM_SEEDS").is_none() && std::env::var_os(variable).is_none()
}

/// The seed in the environment, or with `RANDOM_SEEDS` a new one, or always the same.
pub(crate) fn seed_of(variable: &str) -> u64 {
    let given = std::env::var(variable).ok().and_then(|s| s.parse().ok());
    let random = || std::env::var_os("RANDOM_SEEDS").map(|_| RandomState::new().hash_one(0) % 1_000_000_000);
    given.or_else(random).unwrap_or(1)
}
