//! Numbers of netlink and `sock_diag` (`linux/netlink.h`, `linux/sock_diag.h`, `linux/inet_diag.h`), and how
//! numbers stand in messages: here and not from `libc`, since answers are read, and that is tested, on every
//! system.

/// `struct nlmsghdr`, in bytes.
pub(crate) const HEADER: usize = 16;
pub(crate) const NLMSG_ERROR: u16 = 2;
pub(crate) const NLMSG_DONE: u16 = 3;
pub(crate) const TCPDIAG_GETSOCK: u16 = 18;
pub(crate) const SOCK_DIAG_BY_FAMILY: u16 = 20;
pub(crate) const INET_DIAG_INFO: u16 = 2;
pub(crate) const INET_DIAG_CONG: u16 = 4;
pub(crate) const INET_DIAG_SKMEMINFO: u16 = 7;

/// What only who asks needs.
#[cfg(target_os = "linux")]
pub(crate) mod flags {
    /// `NLM_F_REQUEST`
    pub(crate) const REQUEST: u16 = 1;
    /// `NLM_F_DUMP`: all there are.
    pub(crate) const DUMP: u16 = 0x100 | 0x200;
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}
