//! What the kernel says of a socket. The structure only ever grew, so that a field is a name, a place and a size,
//! and an older kernel simply lacks the last ones.

use crate::sys;
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::SerializeMap};
use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;

/// `struct tcp_info` of `linux/tcp.h`: name, offset, bytes.
const FIELDS: [(&str, usize, usize); 60] = [
    ("state", 0, 1),
    ("ca_state", 1, 1),
    ("retransmits", 2, 1),
    ("probes", 3, 1),
    ("backoff", 4, 1),
    ("options", 5, 1),
    ("wscale", 6, 1),
    ("flags", 7, 1),
    ("rto_us", 8, 4),
    ("ato_us", 12, 4),
    ("snd_mss", 16, 4),
    ("rcv_mss", 20, 4),
    ("unacked", 24, 4),
    ("sacked", 28, 4),
    ("lost", 32, 4),
    ("retrans", 36, 4),
    ("last_data_sent_ms", 44, 4),
    ("last_ack_sent_ms", 48, 4),
    ("last_data_recv_ms", 52, 4),
    ("last_ack_recv_ms", 56, 4),
    ("pmtu", 60, 4),
    ("rcv_ssthresh", 64, 4),
    ("rtt_us", 68, 4),
    ("rttvar_us", 72, 4),
    ("snd_ssthresh", 76, 4),
    ("snd_cwnd", 80, 4),
    ("advmss", 84, 4),
    ("reordering", 88, 4),
    ("rcv_rtt_us", 92, 4),
    ("rcv_space", 96, 4),
    ("total_retrans", 100, 4),
    ("pacing_rate", 104, 8),
    ("max_pacing_rate", 112, 8),
    ("bytes_acked", 120, 8),
    ("bytes_received", 128, 8),
    ("segs_out", 136, 4),
    ("segs_in", 140, 4),
    ("notsent_bytes", 144, 4),
    ("min_rtt_us", 148, 4),
    ("data_segs_in", 152, 4),
    ("data_segs_out", 156, 4),
    ("delivery_rate", 160, 8),
    ("busy_us", 168, 8),
    ("rwnd_limited_us", 176, 8),
    ("sndbuf_limited_us", 184, 8),
    ("delivered", 192, 4),
    ("delivered_ce", 196, 4),
    ("bytes_sent", 200, 8),
    ("bytes_retrans", 208, 8),
    ("dsack_dups", 216, 4),
    ("reord_seen", 220, 4),
    ("rcv_ooopack", 224, 4),
    ("snd_wnd", 228, 4),
    ("rcv_wnd", 232, 4),
    ("rehash", 236, 4),
    ("total_rto", 240, 2),
    ("total_rto_recoveries", 242, 2),
    ("total_rto_time_ms", 244, 4),
    // Of SO_MEMINFO: bytes queued and their limits, kernel overhead counted.
    ("sk_wmem_queued", MEMINFO + 20, 4),
    ("sk_sndbuf", MEMINFO + 12, 4),
];
const MEMINFO: usize = 256;

/// A socket's state at one moment, as bytes of the kernel.
#[derive(Clone)]
pub struct TcpInfo {
    bytes: [u8; MEMINFO + 36],
    len: usize,
}

impl TcpInfo {
    pub(crate) fn of(fd: BorrowedFd<'_>) -> Option<TcpInfo> {
        let mut bytes = [0; MEMINFO + 36];
        let (info, memory) = bytes.split_at_mut(MEMINFO);
        let len = sys::option(fd, libc::IPPROTO_TCP, libc::TCP_INFO, info).ok()?;
        sys::option(fd, libc::SOL_SOCKET, libc::SO_MEMINFO, memory).ok()?;
        Some(TcpInfo { bytes, len })
    }

    /// A field by its name, as in [`names`](Self::names); none if this kernel lacks it.
    pub fn get(&self, name: &str) -> Option<u64> {
        let &(_, at, size) = FIELDS.iter().find(|(n, ..)| *n == name)?;
        self.value(at, size)
    }

    /// All names.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FIELDS.iter().map(|&(name, ..)| name)
    }

    fn value(&self, at: usize, size: usize) -> Option<u64> {
        if at < MEMINFO && at + size > self.len {
            return None;
        }
        let bytes = self.bytes.get(at..at + size)?;
        let mut wide = [0; 8];
        wide.get_mut(..size)?.copy_from_slice(bytes);
        Some(u64::from_le_bytes(wide))
    }
}

impl std::fmt::Debug for TcpInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let fields = FIELDS.iter().filter_map(|&(name, at, size)| Some((name, self.value(at, size)?)));
        f.debug_map().entries(fields).finish()
    }
}

impl Serialize for TcpInfo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, at, size) in FIELDS {
            if let Some(value) = self.value(at, size) {
                map.serialize_entry(name, &value)?;
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for TcpInfo {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TcpInfo, D::Error> {
        let values = BTreeMap::<String, u64>::deserialize(deserializer)?;
        let mut info = TcpInfo { bytes: [0; MEMINFO + 36], len: 0 };
        for (name, at, size) in FIELDS {
            let place = info.bytes.get_mut(at..at + size);
            if let (Some(value), Some(place)) = (values.get(name), place) {
                place.copy_from_slice(value.to_le_bytes().get(..size).unwrap_or_default());
                if at < MEMINFO {
                    info.len = info.len.max(at + size);
                }
            }
        }
        Ok(info)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_back() {
        let mut info = TcpInfo { bytes: [0; MEMINFO + 36], len: 150 };
        for (n, byte) in info.bytes.iter_mut().enumerate() {
            *byte = n as u8;
        }
        let text = serde_json::to_string(&info).unwrap();
        let back: TcpInfo = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&back).unwrap(), text);
        assert_eq!((back.get("snd_cwnd"), back.get("min_rtt_us")), (info.get("snd_cwnd"), None));
    }
}
