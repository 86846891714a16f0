//! A link that several transfers filled together (rule 99).

use crate::facts::bit_rate;
use std::net::IpAddr;
use tcpwhy_base::Nanos;

/// A link that several transfers from one host to another filled together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SharedLink {
    /// Who sent.
    pub from: IpAddr,
    /// To whom.
    pub to: IpAddr,
    /// How many requests or answers.
    pub transfers: u64,
    /// From the first byte of the first to the last byte of the last.
    pub range: (Nanos, Nanos),
    /// Their payload.
    pub bytes: u64,
    /// The rate that one of them has measured, bits of payload a second.
    pub bandwidth_bps: u64,
}

impl SharedLink {
    /// What they carried together, bits of payload a second.
    pub fn carried_bps(&self) -> f64 {
        self.bytes as f64 * 8e9 / (self.range.1 - self.range.0).0.max(1) as f64
    }

    /// `6 transfers side by side filled the link (43 Mbit/s together of 48 Mbit/s)`.
    pub fn together(&self) -> String {
        let (carried, all) = (self.carried_bps(), self.bandwidth_bps as f64);
        // A rate is known to an eighth.
        let of = if carried < all { format!(" of {}", bit_rate(all)) } else { String::new() };
        let carried = bit_rate(carried);
        format!("{} transfers side by side filled the link ({carried} together{of})", self.transfers)
    }
}

/// Time that passed while a link was full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkFull {
    /// How long, of all links.
    pub time: Nanos,
    /// The one with most of it.
    pub link: SharedLink,
}
