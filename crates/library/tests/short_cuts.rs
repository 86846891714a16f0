//! What is told of plain packets and exchanges in fewer steps is what all steps tell, of every capture of the
//! tree; and so is what is told of connections that lay idle as bytes.

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

/// How an answer comes about.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// With all short cuts.
    Short,
    /// Without any.
    Long,
    /// Each connection lies idle after each packet.
    Resting,
}

fn answer(segments: &[Segment], detail: Detail, way: Way) -> String {
    let crowd = if way == Way::Long { usize::MAX } else { 0 };
    let analyzer = Analyzer::new(Config { detail }).crowded_from(crowd);
    let mut analyzer = match way {
        Way::Short => analyzer,
        Way::Long => analyzer.by_the_long_way(),
        Way::Resting => analyzer.rests_always(),
    };
    if way == Way::Resting {
        segments.iter().for_each(|segment| analyzer.push(segment));
    } else {
        analyzer.push_all(segments);
    }
    format!("{:?}", analyzer.finish())
}

/// Each capture of the tree, with its segments.
fn captures() -> Vec<(PathBuf, Vec<Segment>)> {
    let mut files = Vec::new();
    files_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures"), &mut files);
    let captures: Vec<_> =
        files.into_iter().filter_map(|path| segments(&path).map(|segments| (path, segments))).collect();
    assert!(captures.len() >= 50, "{} captures", captures.len());
    captures
}

fn are_explained_alike(way: Way, details: &[Detail]) {
    for (path, segments) in captures() {
        for &detail in details {
            let alike = answer(&segments, detail, Way::Short) == answer(&segments, detail, way);
            assert!(alike, "{}", path.display());
        }
    }
}

#[test]
fn captures_are_explained_alike_with_and_without_short_cuts() {
    are_explained_alike(Way::Long, &[Detail::All, Detail::Worst(5), Detail::None]);
}

#[test]
fn captures_are_explained_alike_where_connections_lie_idle_as_bytes() {
    are_explained_alike(Way::Resting, &[Detail::All]);
}
