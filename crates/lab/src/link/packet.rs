//! Packets that the link makes itself.

/// The address of the router that says "fragmentation needed".
const ROUTER: [u8; 4] = [10, 77, 255, 254];

/// ICMP type 3, code 4 (RFC 1191) about a packet that was too large, to its sender. None for what is no IPv4.
pub(crate) fn fragmentation_needed(packet: &[u8], mtu: u64) -> Option<Vec<u8>> {
    returned(packet, 4, u16::try_from(mtu).unwrap_or(u16::MAX))
}

/// ICMP type 3 (RFC 792) about a packet that cannot reach where it was to go: code 0 no such network, 3
/// nobody at the port.
pub(crate) fn unreachable(packet: &[u8], code: u8) -> Option<Vec<u8>> {
    returned(packet, code, 0)
}

fn returned(packet: &[u8], code: u8, mtu: u16) -> Option<Vec<u8>> {
    let header = usize::from(*packet.first()? & 15) * 4;
    // What is quoted: the header and the first eight bytes behind it.
    let quoted = packet.get(..header + 8)?;
    let mut icmp = vec![3, code, 0, 0, 0, 0];
    icmp.extend(mtu.to_be_bytes());
    icmp.extend(quoted);
    let sum = checksum(&icmp).to_be_bytes();
    icmp.get_mut(2..4)?.copy_from_slice(&sum);
    let mut answer = vec![0x45, 0xc0];
    answer.extend(u16::try_from(20 + icmp.len()).ok()?.to_be_bytes());
    answer.extend([0, 0, 0, 0, 64, 1, 0, 0]);
    answer.extend(ROUTER);
    answer.extend(packet.get(12..16)?);
    let sum = checksum(&answer).to_be_bytes();
    answer.get_mut(10..12)?.copy_from_slice(&sum);
    answer.extend(icmp);
    Some(answer)
}

/// The Internet checksum (RFC 1071).
pub(crate) fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| {
        let [high, low] = [pair.first(), pair.get(1)].map(|b| b.copied().unwrap_or(0));
        u32::from(u16::from_be_bytes([high, low]))
    });
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn icmp() {
        // The example of RFC 1071, section 3.
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
        let mut packet = vec![0; 1500];
        packet[0] = 0x45;
        packet[12..16].copy_from_slice(&[10, 77, 0, 2]);
        let icmp = fragmentation_needed(&packet, 1300).unwrap();
        assert_eq!((checksum(&icmp[..20]), checksum(&icmp[20..])), (0, 0));
        assert_eq!((icmp.len(), &icmp[16..20], &icmp[26..28]), (56, &[10, 77, 0, 2][..], &[5, 20][..]));
        assert_eq!(fragmentation_needed(&[0x45; 20], 1300), None);
    }
}
