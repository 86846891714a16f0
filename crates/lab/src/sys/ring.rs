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

/// Packets as they pass: those that come in by one device, or all of a network namespace.
#[derive(Debug)]
pub struct Ring {
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
pub struct Captured<'a> {
    /// Its beginning, from the link header on, or from the network header where there is none: as much as a slot holds.
    pub data: &'a [u8],
    /// Its whole length.
    pub len: u32,
    /// When the kernel saw it, since the Unix epoch.
    pub time: Nanos,
    /// Where.
    pub device: Device,
}

/// By which device a packet passed, and which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// Number of the device.
    pub index: u32,
    /// Kind of its hardware (`ARPHRD_...`).
    pub hardware: u16,
    /// What the packet carries (`ETH_P_...`).
    pub protocol: u16,
    /// To or from whom it was (`PACKET_HOST`, ... `PACKET_OUTGOING`).
    pub way: u8,
    /// The link address that it came from, and how many bytes of it count.
    pub from: ([u8; 8], u8),
}

impl Device {
    /// It leaves by loopback, by which it will come in at once.
    pub fn will_come_back(&self) -> bool {
        self.hardware == libc::ARPHRD_LOOPBACK && self.way == libc::PACKET_OUTGOING
    }
}

impl Ring {
    /// Of the device with this index, in this thread's network namespace; `slot` (a power of two) bytes for
    /// each packet.
    pub(crate) fn new(device: u32, slot: usize) -> io::Result<Ring> {
        let ring = Ring::open(libc::SOCK_RAW, slot)?;
        set(ring.fd.as_fd(), libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &(1 as c_int))?;
        ring.bind(device)
    }

    /// Of all devices, both ways, from the network header on, in this thread's network namespace; `slot` (a
    /// power of two) bytes for each packet.
    pub fn of_all_devices(slot: usize) -> io::Result<Ring> {
        Ring::open(libc::SOCK_DGRAM, slot)?.bind(0)
    }

    fn open(kind: c_int, slot: usize) -> io::Result<Ring> {
        // Bound to a protocol only later: nothing may come in before the ring stands.
        // SAFETY: takes integers; the descriptor is ours alone.
        let fd = unsafe {
            let kind = kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
            OwnedFd::from_raw_fd(check(libc::socket(libc::AF_PACKET, kind, 0))?)
        };
        let version = libc::tpacket_versions::TPACKET_V2 as c_int;
        set(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
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
        Ok(Ring { fd, start, slot, slots, at: 0 })
    }

    /// From now on packets come in.
    fn bind(self, device: u32) -> io::Result<Ring> {
        // SAFETY: an all-zero address is valid, and it outlives the call.
        unsafe {
            let mut address: libc::sockaddr_ll = zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
            address.sll_ifindex = device as c_int;
            let size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            check(libc::bind(self.fd.as_raw_fd(), (&raw const address).cast(), size))?;
        }
        Ok(self)
    }

    /// The next packet, if there is one. It goes back to the kernel when the next is asked for.
    pub fn next<T>(&mut self, take: impl FnOnce(Captured<'_>) -> T) -> Option<T> {
        // SAFETY: `at` is below the number of slots, all of which lie within the mapping and begin with a
        // header, aligned as the kernel laid it out. Status is the only word that both sides write, and it is
        // read and written as one.
        let status = unsafe {
            let header = self.start.as_ptr().add(self.at * self.slot).cast::<libc::tpacket2_hdr>();
            &*(&raw const (*header).tp_status).cast::<AtomicU32>()
        };
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the slot is ours until its status is given back, which is done last; offset and length are
        // checked against the slot, whatever the shared memory says. A slot has room for a header and an
        // address (`TPACKET2_HDRLEN`).
        let taken = unsafe {
            let slot = self.start.as_ptr().add(self.at * self.slot);
            let header = slot.cast::<libc::tpacket2_hdr>().read();
            let from = usize::from(header.tp_mac).min(self.slot);
            let len = (header.tp_snaplen as usize).min(self.slot - from);
            let data = std::slice::from_raw_parts(slot.add(from), len);
            let time = Nanos(i64::from(header.tp_sec) * 1_000_000_000 + i64::from(header.tp_nsec));
            // Behind the header, aligned (`TPACKET_ALIGN`).
            let behind = size_of::<libc::tpacket2_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT);
            let address = slot.add(behind).cast::<libc::sockaddr_ll>().read();
            let device = Device {
                index: address.sll_ifindex as u32,
                hardware: address.sll_hatype,
                protocol: u16::from_be(address.sll_protocol),
                way: address.sll_pkttype,
                from: (address.sll_addr, address.sll_halen),
            };
            take(Captured { data, len: header.tp_len, time, device })
        };
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.at = (self.at + 1) % self.slots;
        Some(taken)
    }

    /// Packets that did not fit since this was last asked.
    pub fn drops(&self) -> io::Result<u64> {
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
