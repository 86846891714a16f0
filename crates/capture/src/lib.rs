//! Captures in, TCP segments out. A [`Reader`] turns bytes (pcap, pcapng, packed or not, file or pipe) into
//! [`Frame`]s, a [`Dissector`] turns frames into [`tcpwhy_base::Segment`]s, a [`Filter`] chooses among
//! segments, and a [`Writer`] writes frames that Wireshark opens.
//!
//! Everything here reads bytes that nobody vouches for: nothing may panic, loop or grow without bound.
//! What the crate refuses to do: it knows no connections, resolves no names, decrypts nothing, and after
//! damage it does not guess where the next packet begins.

mod bytes;
mod dissector;
mod encap;
mod error;
mod filter;
mod fragments;
mod input;
mod ip;
mod link;
mod options;
mod pcap;
mod pcapng;
mod reader;
mod record;
mod snoop;
mod tcp;
mod tunnel;
mod walk;
mod wifi;
mod writer;

pub use dissector::{Counts, Dissector};
pub use error::{Damage, Looks, ReadError};
pub use filter::{Filter, FilterError};
pub use reader::{Frame, Reader};
pub use walk::Verdict;
pub use writer::Writer;
