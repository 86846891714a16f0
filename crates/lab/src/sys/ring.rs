//! A packet socket whose packets the kernel writes into memory that is shared with it (`packet(7)`, `PACKET_RX_RING`,
//! version 2). What waits there does not count against `net.core.rmem_max`, which an unprivileged user cannot raise.

use super::{check, set};
use std::ffi::c_int;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use tcpwhy_base::Nanos;

/// The memory of a ring.
const RING: usize = 16 << 20;
/// Its memory is given in pieces of this size: what the kernel finds in one piece even after weeks of running.
const BLOCK: usize = 64 << 10;
/// Not in the crate libc: what leaves by the socket's own device is not wanted (Linux 4.20).
const PACKET_IGNORE_OUTGOING: c_int = 23;

/// All packets that come in by one device.
#[derive(Debug)]
pub(crate) struct Ring {
    fd: OwnedFd,
    start: NonNull<u8>,
    /// Bytes for each packet, the kernel's header included.
    slot: usize,
    slots: usize,
    at: usize,
}

// SAFETY: the memory belongs to this value alone, and `next` takes it exclusively.
unsafe impl Send for Ring {}

/// A packet in the ring.
#[derive(Debug)]
pub(crate) struct Captured<'a> {
    /// Its beginning, from the link header on: as much as a slot holds.
    pub(crate) data: &'a [u8],
    /// Its whole length.
    pub(crate) len: u32,
    /// When the kernel saw it, since the Unix epoch.
    pub(crate) time: Nanos,
}

impl Ring {
    /// Of the device with this index, in this thread's network namespace; `slot` (a power of two) bytes for each packet.
    pub(crate) fn new(device: u32, slot: usize) -> io::Result<Ring> {
        // Bound to a protocol only below: nothing may come in before the ring stands.
        // SAFETY: takes integers; the descriptor is ours alone.
        let fd = unsafe {
            let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
            OwnedFd::from_raw_fd(check(libc::socket(libc::AF_PACKET, kind, 0))?)
        };
        let option = |name, value: &c_int| set(fd.as_fd(), libc::SOL_PACKET, name, value);
        option(libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as c_int))?;
        option(PACKET_IGNORE_OUTGOING, &1)?;
        let slots = RING / slot;
        let block = BLOCK.max(slot);
        let request = libc::tpacket_req {
            tp_block_size: block as u32,
            tp_block_nr: (RING / block) as u32,
            tp_frame_size: slot as u32,
            tp_frame_nr: slots as u32,
        };
        set(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        // SAFETY: a new mapping at an address that the kernel chooses, of the size that the ring was asked for.
        let start = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), RING, access, libc::MAP_SHARED, fd.as_raw_fd(), 0)
        };
        let start = NonNull::new(start.cast::<u8>()).filter(|_| start != libc::MAP_FAILED);
        let start = start.ok_or_else(io::Error::last_os_error)?;
        let ring = Ring { fd, start, slot, slots, at: 0 };
        // SAFETY: an all-zero address is valid, and it outlives the call.
        unsafe {
            let mut address: libc::sockaddr_ll = zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
            address.sll_ifindex = device as c_int;
            let size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            check(libc::bind(ring.fd.as_raw_fd(), (&raw const address).cast(), size))?;
        }
        Ok(ring)
    }

    /// The next packet, if there is one. It goes back to the kernel when the next is asked for.
    pub(crate) fn next<T>(&mut self, take: impl FnOnce(Captured<'_>) -> T) -> Option<T> {
        // SAFETY: `at` is below the number of slots, all of which lie within the mapping and begin with a header, aligned
        // as the kernel laid it out. Status is the only word that both sides write, and it is read and written as one.
        let status = unsafe {
            let header = self.start.as_ptr().add(self.at * self.slot).cast::<libc::tpacket2_hdr>();
            &*(&raw const (*header).tp_status).cast::<AtomicU32>()
        };
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the slot is ours until its status is given back, which is done last; offset and length are checked
        // against the slot, whatever the shared memory says.
        let taken = unsafe {
            let slot = self.start.as_ptr().add(self.at * self.slot);
            let header = slot.cast::<libc::tpacket2_hdr>().read();
            let from = usize::from(header.tp_mac).min(self.slot);
            let len = (header.tp_snaplen as usize).min(self.slot - from);
            let data = std::slice::from_raw_parts(slot.add(from), len);
            let time = Nanos(i64::from(header.tp_sec) * 1_000_000_000 + i64::from(header.tp_nsec));
            take(Captured { data, len: header.tp_len, time })
        };
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.at = (self.at + 1) % self.slots;
        Some(taken)
    }

    /// Packets that did not fit since this was last asked.
    pub(crate) fn drops(&self) -> io::Result<u64> {
        let mut both = [0; size_of::<libc::tpacket_stats>()];
        super::option(self.fd.as_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut both)?;
        // Packets, then drops.
        let [.., a, b, c, d] = both;
        Ok(u64::from(u32::from_ne_bytes([a, b, c, d])))
    }

    /// Sends a frame by the device.
    pub(crate) fn send(&self, frame: &[u8]) -> io::Result<usize> {
        super::send(self.fd.as_fd(), frame, false)
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, of which no reference is left.
        unsafe { libc::munmap(self.start.as_ptr().cast(), RING) };
    }
}
