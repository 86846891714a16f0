//! The second pass over a capture: its packets by connection, for graphs, ladders and annotated copies.
//!
//! The analysis keeps no packets, so that its memory does not grow with them. What draws packets reads the capture
//! again and knows then which connections are worth it, how many packets each has, and where the findings lie.
//!
//! Takes the connections of an [`Analysis`](tcpwhy_analysis::Analysis) and a [`Reader`](tcpwhy_capture::Reader) of each
//! input, in the order of the first pass; gives every frame with its [`Packet`], if it belongs to one of the connections:
//! counted from the first sequence number of its direction, with marks. Opens no files, draws nothing.
//!
//! ```
//! use tcpwhy_base::Nanos;
//! use tcpwhy_capture::Reader;
//! use tcpwhy_trace::{Pass, marks};
//!
//! fn repeated(reader: &mut Reader, analysis: &tcpwhy_analysis::Analysis) -> Vec<u64> {
//!     let mut frames = Vec::new();
//!     let all = (Nanos(i64::MIN), Nanos::MAX);
//!     let _ = Pass::new(&analysis.connections, None).read(reader, 0, all, |met| {
//!         let packet = met.packet.map(|(_connection, packet)| packet);
//!         frames.extend(packet.filter(|p| p.marks & marks::RETRANSMITTED != 0).map(|p| p.frame));
//!         Ok::<_, std::convert::Infallible>(true)
//!     });
//!     frames
//! }
//! ```

mod packet;
mod pass;
mod stretch;
mod thin;
mod tracker;

pub use packet::{Packet, Track, marks};
pub use pass::{Met, Pass};
pub use stretch::Stretch;
pub use thin::Tracks;
