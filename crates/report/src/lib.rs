//! From the result of an analysis to bytes: JSON for programs, text for people. Takes connections, findings and
//! what the reader said about the input; gives whole documents, written piece by piece. Has its own serialisable
//! types, so that the JSON stays a promise when the inside changes. Knows no packets, opens no files.
//!
//! A capture, explained in text and in JSON:
//!
//! ```
//! use tcpwhy_analysis::{Analyzer, Config, Detail};
//! use tcpwhy_base::Segment;
//! use tcpwhy_capture::{Dissector, Reader, Verdict};
//! use tcpwhy_report::{Capture, json, text};
//!
//! let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../captures/zeek__smtp_bdat.pcap");
//! let mut reader = Reader::open(path.as_ref())?;
//! let mut analyzer = Analyzer::new(Config { detail: Detail::All });
//! let mut capture = Capture { files: vec!["smtp.pcap".into()], ..Capture::default() };
//! let (mut dissector, mut segment) = (Dissector::new(), Segment::EMPTY);
//! while let Some(frame) = reader.next()? {
//!     let (start, end) = capture.span.unwrap_or((frame.time, frame.time));
//!     capture.span = Some((start.min(frame.time), end.max(frame.time)));
//!     if dissector.dissect(&frame, 0, &mut segment) == Verdict::Tcp {
//!         analyzer.push(&segment);
//!     }
//! }
//! let analysis = analyzer.finish();
//! capture.packets = reader.frames();
//! capture.tcp_packets = dissector.counts().tcp;
//! capture.connections = analysis.connections.len() as u64;
//!
//! let (mut said, mut document) = (Vec::new(), Vec::new());
//! text::overview(&mut said, &analysis, &capture, &text::Layout::default())?;
//! json::write(&mut document, &analysis, &capture, 1)?;
//! assert!(String::from_utf8_lossy(&said).contains("32 requests to 127.0.0.1:25 in 1.25 s"));
//! let document: serde_json::Value = serde_json::from_slice(&document)?;
//! assert_eq!(document["findings"][0]["cause"], "client_think");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod capture;
pub mod causes;
pub mod check;
pub mod compare;
mod figures;
pub mod folded;
pub mod html;
pub mod json;
pub mod otlp;
pub mod perfetto;
pub mod predict;
pub mod run;
#[cfg(test)]
mod sample;
mod schema;
pub mod svg;
pub mod text;
mod warnings;
pub mod watch;

pub use answer::{Answer, Part, headline, sureness, tcp_time, worst};
pub use capture::{Capture, Warning, rfc3339, time_of_day};
pub use figures::count;
pub use text::bytes;
pub use warnings::quality_warnings;
