//! Real captures, explained whole: requests by server, the headline, sums and shares that made-up analyses have few of.

use crate::{plain, same};
use serde_json::Value;
use std::path::Path;
use tcpwhy_analysis::{Analysis, Analyzer, Config, Detail, replay};
use tcpwhy_base::Segment;
use tcpwhy_capture::{Dissector, Reader, Verdict};
use tcpwhy_report::{Capture, json, text};

/// A bundled capture and what is found in it, with predictions.
fn explained(name: &str) -> (Analysis, Capture) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../captures").join(name);
    let mut reader = Reader::open(&path).expect("a bundled capture");
    let mut analyzer = Analyzer::new(Config { detail: Detail::All });
    let mut capture = Capture { files: vec![name.into()], ..Capture::default() };
    let (mut dissector, mut segment) = (Dissector::new(), Segment::EMPTY);
    while let Some(frame) = reader.next().expect("it is not damaged") {
        let (start, end) = capture.span.unwrap_or((frame.time, frame.time));
        capture.span = Some((start.min(frame.time), end.max(frame.time)));
        if dissector.dissect(&frame, 0, &mut segment) == Verdict::Tcp {
            analyzer.push(&segment);
        }
    }
    let mut analysis = analyzer.finish();
    replay::predict(&mut analysis);
    (capture.packets, capture.tcp_packets) = (reader.frames(), dissector.counts().tcp);
    capture.connections = analysis.connections.len() as u64;
    (analysis, capture)
}

/// The first screen, and the summary of the document.
fn told(name: &str, layout: &text::Layout) -> String {
    let (analysis, capture) = explained(name);
    let screen = plain(|out| text::overview(out, &analysis, &capture, layout));
    let document = plain(|out| json::write(out, &analysis, &capture, 1));
    let document: Value = serde_json::from_str(&document).expect("JSON");
    let summary = serde_json::to_string_pretty(&document["summary"]).expect("JSON");
    format!("{screen}\n{summary}\n")
}

#[test]
fn one_server() {
    let layout = text::Layout { command: "tcpwhy explain smtp.pcap".into(), ..text::Layout::default() };
    same("captured_one.txt", &told("zeek__smtp_bdat.pcap", &layout));
}

#[test]
fn several_servers() {
    let layout = text::Layout { top: 2, width: 100, ..text::Layout::default() };
    same("captured_several.txt", &told("zeek__krb_kerberos_tso.pcapng", &layout));
}
