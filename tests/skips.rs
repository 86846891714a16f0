//! A test that cannot run here says so where `scripts/test.py` counts it: a line in `target/test-skips/`, and one on
//! standard error past what the harness keeps to itself.

use std::io::Write;
use std::path::Path;

/// `name` is what was not tested, `target` the package's `CARGO_TARGET_TMPDIR`.
pub(crate) fn skip(name: &str, why: &str, target: &str) {
    let line = format!("{name}: {}\n", why.trim().replace('\n', "; "));
    let _ = write!(std::io::stderr(), "SKIP {line}");
    let folder = Path::new(target).with_file_name("test-skips");
    let file = folder.join(format!("{}.txt", env!("CARGO_PKG_NAME")));
    let open = || std::fs::OpenOptions::new().create(true).append(true).open(&file);
    let written = std::fs::create_dir_all(&folder).and_then(|()| open()?.write_all(line.as_bytes()));
    assert!(written.is_ok(), "a skip that cannot be written down must not pass for a test: {written:?}");
}
