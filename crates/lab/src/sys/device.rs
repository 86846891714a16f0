//! Settings of network devices that have a request of their own.

use super::{check, set};
use std::ffi::{c_int, c_ulong};
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `linux/ethtool.h`: set whether a device computes checksums.
const ETHTOOL_STXCSUM: u32 = 0x17;

fn request(name: &str) -> io::Result<(OwnedFd, libc::ifreq)> {
    // SAFETY: takes integers, and the descriptor is ours alone; an all-zero ifreq is valid.
    let (fd, mut request) = unsafe {
        let fd = check(libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0))?;
        (OwnedFd::from_raw_fd(fd), zeroed::<libc::ifreq>())
    };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)) {
        *to = from as libc::c_char;
    }
    Ok((fd, request))
}

fn ask(fd: &OwnedFd, what: c_ulong, request: &mut libc::ifreq) -> io::Result<c_int> {
    // SAFETY: all requests that are made here read or write one ifreq, which outlives the call.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), what as _, std::ptr::from_mut(request)) })
}

/// Switches a device on; `neighbours`: it looks for link addresses (ARP).
pub(crate) fn switch_on(name: &str, neighbours: bool) -> io::Result<()> {
    let (fd, mut request) = request(name)?;
    ask(&fd, libc::SIOCGIFFLAGS, &mut request)?;
    // SAFETY: the kernel has just filled this member.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    let more = libc::IFF_UP | if neighbours { 0 } else { libc::IFF_NOARP };
    request.ifr_ifru.ifru_flags = flags | more as libc::c_short;
    ask(&fd, libc::SIOCSIFFLAGS, &mut request).map(drop)
}

/// The largest packet of a device.
pub(crate) fn set_mtu(name: &str, mtu: u32) -> io::Result<()> {
    let (fd, mut request) = request(name)?;
    request.ifr_ifru.ifru_mtu = mtu as c_int;
    ask(&fd, libc::SIOCSIFMTU, &mut request).map(drop)
}

/// Packets leave a device with their checksums, and not larger than its MTU: segmentation by the device needs its
/// checksums (`netdev_fix_features`).
pub(crate) fn no_offload(name: &str) -> io::Result<()> {
    let (fd, mut request) = request(name)?;
    // struct ethtool_value: the command and its argument.
    let mut value = [ETHTOOL_STXCSUM, 0];
    request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
    ask(&fd, libc::SIOCETHTOOL, &mut request).map(drop)
}

/// The number of a device.
pub(crate) fn index(name: &str) -> io::Result<u32> {
    let (fd, mut request) = request(name)?;
    ask(&fd, libc::SIOCGIFINDEX, &mut request)?;
    // SAFETY: the kernel has just filled this member.
    Ok(unsafe { request.ifr_ifru.ifru_ifindex } as u32)
}

/// A socket to ask the kernel for devices, addresses, routes and rules.
pub(crate) fn netlink() -> io::Result<OwnedFd> {
    // SAFETY: takes integers; the descriptor is ours alone.
    let fd = unsafe {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        OwnedFd::from_raw_fd(check(libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE))?)
    };
    // Answers without a copy of the question.
    set(std::os::fd::AsFd::as_fd(&fd), libc::SOL_NETLINK, libc::NETLINK_CAP_ACK, &1)?;
    Ok(fd)
}
