//! Every bundled scenario can be read and says what it shows.

use std::collections::BTreeSet;
use std::path::Path;
use tcpwhy_lab::Scenario;

#[test]
fn all_can_be_read() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut titles = BTreeSet::new();
    for entry in std::fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let scenario = Scenario::parse(&text, &[]).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert!(!scenario.title.is_empty(), "{}", path.display());
        titles.insert((scenario.title, path));
    }
    assert!(titles.len() >= 70, "{} scenarios", titles.len());
}
