//! What the link must know of a packet to choose it: enough of IPv4 and TCP.

/// A TCP segment inside an IPv4 packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) source_port: u16,
    pub(crate) target_port: u16,
    pub(crate) seq: u32,
    pub(crate) syn: bool,
    pub(crate) fin: bool,
    pub(crate) payload: u32,
}

/// None for what is not whole TCP over IPv4.
pub(crate) fn see(packet: &[u8]) -> Option<Seen> {
    let first = *packet.first()?;
    if first >> 4 != 4 || *packet.get(9)? != 6 {
        return None;
    }
    let ip_header = usize::from(first & 15) * 4;
    let total = usize::from(u16::from_be_bytes([*packet.get(2)?, *packet.get(3)?]));
    let tcp = packet.get(ip_header..total)?;
    let half = |at: usize| Some(u16::from_be_bytes([*tcp.get(at)?, *tcp.get(at + 1)?]));
    let seq = u32::from(half(4)?) << 16 | u32::from(half(6)?);
    let tcp_header = usize::from(*tcp.get(12)? >> 4) * 4;
    let flags = *tcp.get(13)?;
    Some(Seen {
        source_port: half(0)?,
        target_port: half(2)?,
        seq,
        syn: flags & 2 != 0,
        fin: flags & 1 != 0,
        payload: tcp.len().checked_sub(tcp_header)? as u32,
    })
}
