//! The second pass over a capture: its packets by connection, for graphs, ladders and annotated copies.
//!
//! The analysis keeps no packets, so that its memory does not grow with them. What draws packets reads the capture
//! again and knows then which connections are worth it, how many packets each has, and where the findings lie.
//!
//! Takes the connections of an [`Analysis`](tcpwhy_analysis::Analysis) and a
//! [`Reader`](tcpwhy_capture::Reader) of each input, in the order of the first pass; gives every frame with
//! its [`Packet`], if it belongs to one of the connections: counted from the first sequence number of its
//! direction, with marks. Opens no files, draws nothing.
//!
//! Which packets of a capture are retransmissions:
//!
//! ```
//! use tcpwhy_analysis::{Analyzer, Config, Detail};
//! use tcpwhy_base::{Nanos, Segment};
//! use tcpwhy_capture::{Dissector, Reader, Verdict};
//! use tcpwhy_trace::{Pass, marks};
//!
//! let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../captures/zeek__tcp_retransmit-fast009.pcap");
//! let mut reader = Reader::open(path.as_ref())?;
//! let mut analyzer = Analyzer::new(Config { detail: Detail::All });
//! let (mut dissector, mut segment) = (Dissector::new(), Segment::EMPTY);
//! while let Some(frame) = reader.next()? {
//!     if dissector.dissect(&frame, 0, &mut segment) == Verdict::Tcp {
//!         analyzer.push(&segment);
//!     }
//! }
//! let analysis = analyzer.finish();
//!
//! let mut again = Vec::new();
//! let all = (Nanos(i64::MIN), Nanos::MAX);
//! Pass::new(&analysis.connections, None).read(&mut Reader::open(path.as_ref())?, 0, all, |met| {
//!     let packet = met.packet.map(|(_connection, packet)| packet);
//!     again.extend(packet.filter(|p| p.marks & marks::RETRANSMITTED != 0).map(|p| p.frame));
//!     Ok::<_, std::convert::Infallible>(true)
//! })?;
//! assert_eq!(again, [32, 34, 36]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod names;
mod packet;
mod pass;
mod stretch;
mod thin;
mod tracker;

pub use names::{Found, Names};
pub use packet::{Packet, Track, marks};
pub use pass::{Met, Pass};
pub use stretch::Stretch;
pub use thin::Tracks;
