//! Captures in, TCP segments out. A [`Reader`] turns bytes (pcap, pcapng, packed or not, file or pipe) into
//! [`Frame`]s, a [`Dissector`] turns frames into [`tcpwhy_base::Segment`]s, a [`Filter`] chooses among
//! segments, and a [`Writer`] writes frames that Wireshark opens.
//!
//! Everything here reads bytes that nobody vouches for: nothing may panic, loop or grow without bound.
//! What the crate refuses to do: it knows no connections, resolves no names, decrypts nothing, and after
//! damage it does not guess where the next packet begins.
//!
//! Which packets to port 25 carried payload:
//!
//! ```
//! use tcpwhy_base::Segment;
//! use tcpwhy_capture::{Dissector, Filter, Reader, Verdict};
//!
//! let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../captures/zeek__smtp_bdat.pcap");
//! let mut reader = Reader::open(path.as_ref())?;
//! let (mut dissector, mut segment) = (Dissector::new(), Segment::EMPTY);
//! let wanted = Filter::parse("dst port 25")?;
//!
//! let mut bytes = 0;
//! while let Some(frame) = reader.next()? {
//!     // The segment is written in place: a loop allocates nothing for a packet.
//!     let tcp = dissector.dissect(&frame, 0, &mut segment) == Verdict::Tcp;
//!     if tcp && wanted.matches(&segment) {
//!         bytes += segment.len;
//!     }
//! }
//! assert_eq!((reader.frames(), bytes), (184, 3_811));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod abreast;
mod bytes;
mod dissector;
mod encap;
mod error;
mod filter;
mod fragments;
mod icmp;
mod input;
mod ip;
mod link;
mod options;
mod pcap;
mod pcapng;
mod plain;
mod reader;
mod record;
mod refill;
mod snoop;
mod socket_events;
mod stamps;
mod tcp;
mod tls;
mod tunnel;
mod walk;
mod wifi;
mod writer;

pub use dissector::{Counts, Dissector, headers, payload};
pub use error::{Damage, Looks, ReadError};
pub use filter::{Filter, FilterError};
pub use reader::{Frame, Reader, Taker};
pub use walk::Verdict;
pub use writer::Writer;
