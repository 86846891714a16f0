//! Reading integers out of slices without a way to panic.

/// The big-endian 16 bits at `at`, if they were captured.
#[inline]
pub(crate) fn be16(d: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*d.get(at..)?.first_chunk()?))
}

/// The big-endian 32 bits at `at`, if they were captured.
#[inline]
pub(crate) fn be32(d: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*d.get(at..)?.first_chunk()?))
}

/// The little-endian 16 bits at `at`, if they were captured.
#[inline]
pub(crate) fn le16(d: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*d.get(at..)?.first_chunk()?))
}

/// The little-endian 32 bits at `at`, if they were captured.
#[inline]
pub(crate) fn le32(d: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*d.get(at..)?.first_chunk()?))
}

/// The byte order of a capture file or section: that of the machine that wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
}

impl Order {
    #[inline]
    pub(crate) fn u16(self, b: [u8; 2]) -> u16 {
        match self {
            Order::Little => u16::from_le_bytes(b),
            Order::Big => u16::from_be_bytes(b),
        }
    }

    #[inline]
    pub(crate) fn u32(self, b: [u8; 4]) -> u32 {
        match self {
            Order::Little => u32::from_le_bytes(b),
            Order::Big => u32::from_be_bytes(b),
        }
    }

    #[inline]
    pub(crate) fn u64(self, b: [u8; 8]) -> u64 {
        match self {
            Order::Little => u64::from_le_bytes(b),
            Order::Big => u64::from_be_bytes(b),
        }
    }

    /// The 32 bits at `at`; 0 where there are none, for callers that have checked the length.
    #[inline]
    pub(crate) fn at(self, d: &[u8], at: usize) -> u32 {
        d.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |b| self.u32(*b))
    }
}
