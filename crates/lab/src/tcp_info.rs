//! What the kernel says of a socket: `tcp_info` and its memory, as bytes.

use crate::sys;
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::SerializeMap};
use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use tcpwhy_base::tcp_info::{FIELDS, Field};

/// Bytes that are kept of the structure; what the kernel says of a socket's memory stands behind them.
const MEMINFO: usize = 256;
/// Of SO_MEMINFO: bytes queued and their limits, kernel overhead counted.
const MEMORY: [Field; 2] = [
    Field { name: "sk_wmem_queued", at: MEMINFO + 20, size: 4 },
    Field { name: "sk_sndbuf", at: MEMINFO + 12, size: 4 },
];

/// All that is written down.
fn fields() -> impl Iterator<Item = Field> {
    FIELDS.into_iter().chain(MEMORY)
}

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
        self.value(fields().find(|f| f.name == name)?)
    }

    /// All names.
    pub fn names() -> impl Iterator<Item = &'static str> {
        fields().map(|f| f.name)
    }

    fn value(&self, field: Field) -> Option<u64> {
        let known = if field.at < MEMINFO { self.bytes.get(..self.len)? } else { &self.bytes };
        field.of(known)
    }
}

impl std::fmt::Debug for TcpInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let fields = fields().filter_map(|f| Some((f.name, self.value(f)?)));
        f.debug_map().entries(fields).finish()
    }
}

impl Serialize for TcpInfo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for field in fields() {
            if let Some(value) = self.value(field) {
                map.serialize_entry(field.name, &value)?;
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for TcpInfo {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TcpInfo, D::Error> {
        let values = BTreeMap::<String, u64>::deserialize(deserializer)?;
        let mut info = TcpInfo { bytes: [0; MEMINFO + 36], len: 0 };
        for Field { name, at, size } in fields() {
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
