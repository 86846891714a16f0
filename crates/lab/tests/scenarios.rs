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
        expectation(&scenario, &path.display().to_string());
        titles.insert((scenario.title, path));
    }
    assert!(titles.len() >= 150, "{} scenarios", titles.len());
}

/// Every scenario says what it expects; where that is not the published figure, it says why.
#[expect(clippy::panic, clippy::unwrap_used, reason = "a test")]
fn expectation(scenario: &Scenario, name: &str) {
    let expect = scenario.expect.as_ref().unwrap_or_else(|| panic!("{name}: nothing is expected"));
    let figures = scenario.figures(0.1, Some(1.0)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let expected = figures.expected.unwrap_or_else(|| panic!("{name}: no figure is expected"));
    assert!(expected.is_finite() && expected >= 0.0, "{name}: {expected}");
    if let Some(published) = figures.published {
        let differs = (expected * expect.scale - published).abs() > expect.allowed(published);
        assert!(
            !differs || expect.deviation.is_some(),
            "{name}: {expected} is not {published}, and nothing says why"
        );
    }
    // At the published size it must be a scenario too.
    let text = std::fs::read_to_string(name).unwrap();
    let full = Scenario::parse_with(&text, expect.full.clone(), &[]);
    assert!(full.is_ok(), "{name} --full: {full:?}");
}
