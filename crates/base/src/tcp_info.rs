//! Where the fields of the kernel's `struct tcp_info` stand. The structure only ever grew, so that a field is a name, a
//! place and a size, and an older kernel simply lacks the last ones.

/// One field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// As in `linux/tcp.h` without `tcpi_`; times carry their unit.
    pub name: &'static str,
    /// First byte.
    pub at: usize,
    /// Bytes: 1, 2, 4 or 8.
    pub size: usize,
}

impl Field {
    /// The value in a structure as the kernel gave it; none if this kernel's is too short for the field.
    pub fn of(self, info: &[u8]) -> Option<u64> {
        let bytes = info.get(self.at..self.at + self.size)?;
        let mut wide = [0; 8];
        wide.get_mut(..self.size)?.copy_from_slice(bytes);
        // The kernel writes in the byte order of this machine.
        Some(if cfg!(target_endian = "little") {
            u64::from_le_bytes(wide)
        } else {
            u64::from_be_bytes(wide) >> (64 - 8 * self.size)
        })
    }
}

/// The field with this name, for constants: an unknown name does not compile.
pub const fn field(name: &str) -> Field {
    let mut n = 0;
    while n < FIELDS.len() {
        if same(FIELDS[n].name.as_bytes(), name.as_bytes()) {
            return FIELDS[n];
        }
        n += 1;
    }
    assert!(n < FIELDS.len(), "no such field of tcp_info");
    FIELDS[0]
}

const fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut n = 0;
    while n < a.len() {
        if a[n] != b[n] {
            return false;
        }
        n += 1;
    }
    true
}

const fn f(name: &'static str, at: usize, size: usize) -> Field {
    Field { name, at, size }
}

/// All fields, in their order.
pub const FIELDS: [Field; 58] = [
    f("state", 0, 1),
    f("ca_state", 1, 1),
    f("retransmits", 2, 1),
    f("probes", 3, 1),
    f("backoff", 4, 1),
    f("options", 5, 1),
    f("wscale", 6, 1),
    f("flags", 7, 1),
    f("rto_us", 8, 4),
    f("ato_us", 12, 4),
    f("snd_mss", 16, 4),
    f("rcv_mss", 20, 4),
    f("unacked", 24, 4),
    f("sacked", 28, 4),
    f("lost", 32, 4),
    f("retrans", 36, 4),
    f("last_data_sent_ms", 44, 4),
    f("last_ack_sent_ms", 48, 4),
    f("last_data_recv_ms", 52, 4),
    f("last_ack_recv_ms", 56, 4),
    f("pmtu", 60, 4),
    f("rcv_ssthresh", 64, 4),
    f("rtt_us", 68, 4),
    f("rttvar_us", 72, 4),
    f("snd_ssthresh", 76, 4),
    f("snd_cwnd", 80, 4),
    f("advmss", 84, 4),
    f("reordering", 88, 4),
    f("rcv_rtt_us", 92, 4),
    f("rcv_space", 96, 4),
    f("total_retrans", 100, 4),
    f("pacing_rate", 104, 8),
    f("max_pacing_rate", 112, 8),
    f("bytes_acked", 120, 8),
    f("bytes_received", 128, 8),
    f("segs_out", 136, 4),
    f("segs_in", 140, 4),
    f("notsent_bytes", 144, 4),
    f("min_rtt_us", 148, 4),
    f("data_segs_in", 152, 4),
    f("data_segs_out", 156, 4),
    f("delivery_rate", 160, 8),
    f("busy_us", 168, 8),
    f("rwnd_limited_us", 176, 8),
    f("sndbuf_limited_us", 184, 8),
    f("delivered", 192, 4),
    f("delivered_ce", 196, 4),
    f("bytes_sent", 200, 8),
    f("bytes_retrans", 208, 8),
    f("dsack_dups", 216, 4),
    f("reord_seen", 220, 4),
    f("rcv_ooopack", 224, 4),
    f("snd_wnd", 228, 4),
    f("rcv_wnd", 232, 4),
    f("rehash", 236, 4),
    f("total_rto", 240, 2),
    f("total_rto_recoveries", 242, 2),
    f("total_rto_time_ms", 244, 4),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_stand_behind_one_another_and_are_aligned() {
        for pair in FIELDS.windows(2) {
            assert!(pair[0].at + pair[0].size <= pair[1].at, "{} and {}", pair[0].name, pair[1].name);
        }
        assert!(FIELDS.iter().all(|f| f.at % f.size == 0));
    }

    #[test]
    fn a_short_structure_lacks_the_last_fields() {
        let info: Vec<u8> = (0..=255).collect();
        assert_eq!(field("snd_cwnd").of(&info), Some(u64::from(u32::from_ne_bytes([80, 81, 82, 83]))));
        assert_eq!(field("snd_cwnd").of(&info[..83]), None);
        assert_eq!(field("state").of(&info[..1]), Some(0));
    }
}
