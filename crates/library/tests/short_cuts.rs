//! What is told of plain packets and exchanges in fewer steps is what all steps tell, of every capture of the tree.

use std::path::{Path, PathBuf};
use tcpwhy_analysis::{Analyzer, Config, Detail};
use tcpwhy_base::Segment;
use tcpwhy_capture::{Dissector, Reader, Verdict};

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files_below(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// Its segments, as far as it can be read; `None`: it is no capture.
fn segments(path: &Path) -> Option<Vec<Segment>> {
    let mut reader = Reader::open(path).ok()?;
    let mut dissector = Dissector::new();
    let mut segments = Vec::new();
    while let Ok(Some(frame)) = reader.next() {
        let mut segment = Segment::EMPTY;
        if dissector.dissect(&frame, 0, &mut segment) == Verdict::Tcp {
            segments.push(segment);
        }
    }
    Some(segments)
}

fn answer(segments: &[Segment], detail: Detail, long_way: bool) -> String {
    let analyzer = Analyzer::new(Config { detail }).crowded_from(if long_way { usize::MAX } else { 0 });
    let mut analyzer = if long_way { analyzer.by_the_long_way() } else { analyzer };
    analyzer.push_all(segments);
    format!("{:?}", analyzer.finish())
}

#[test]
fn captures_are_explained_alike_with_and_without_short_cuts() {
    let mut files = Vec::new();
    files_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures"), &mut files);
    let captures: Vec<_> = files.iter().filter_map(|path| Some((path, segments(path)?))).collect();
    assert!(captures.len() >= 50, "{} captures", captures.len());
    for (path, segments) in captures {
        for detail in [Detail::All, Detail::Worst(5), Detail::None] {
            assert!(
                answer(&segments, detail, false) == answer(&segments, detail, true),
                "{}",
                path.display()
            );
        }
    }
}
