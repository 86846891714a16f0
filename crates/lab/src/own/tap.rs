//! Packets on their way to whoever analyses them: a capture, written into a pipe while it is made.

use crate::sys::ring::Ring;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tcpwhy_base::Nanos;
use tcpwhy_capture::{Frame, Writer};

/// Ethernet, as `lo` has it too.
const ETHERNET: u32 = 1;
/// Raw IP.
const RAW: u32 = 101;
/// Bytes kept of each packet.
const SNAP: usize = 128;
/// Between two looks into the ring. To be woken for each packet would cost what is measured; the ring holds a
/// hundred times what may pass meanwhile.
const LOOK: Duration = Duration::from_millis(3);
/// Batches that may wait for the reader: a few megabytes.
const WAITING: usize = 128;
const BATCH: usize = 32 << 10;

/// Writes what passes `lo` until `stop`; how many packets were missed.
pub(crate) fn of_loopback(mut ring: Ring, to: File, stop: &AtomicBool) -> io::Result<u64> {
    let mut out = Writer::pcap(BufWriter::with_capacity(64 << 10, to), ETHERNET)?;
    loop {
        // Asked for before the last look: what was there then is taken.
        let last = stop.load(Relaxed);
        while let Some(written) = ring.next(|packet| {
            let data = packet.data.get(..SNAP).unwrap_or(packet.data);
            let frame = Frame { len: packet.len, ..Frame::new(packet.time, ETHERNET, data) };
            out.write(&frame, None)
        }) {
            written?;
        }
        if last {
            out.finish()?;
            return ring.drops();
        }
        thread::sleep(LOOK);
    }
}

/// Takes the link's packets without ever making it wait.
#[derive(Debug)]
pub(crate) struct Tap {
    batch: Vec<u8>,
    packets: u64,
    send: SyncSender<Vec<u8>>,
    missed: u64,
}

/// The thread that writes what a [`Tap`] takes.
pub(crate) type Writing = JoinHandle<io::Result<()>>;

impl Tap {
    pub(crate) fn new(to: File) -> io::Result<(Tap, Writing)> {
        let (send, receive) = sync_channel(WAITING);
        let writing = thread::Builder::new().name("own-tap".into()).spawn(move || write_all(&receive, to))?;
        // There is room for this one.
        let _ = send.send(Writer::pcap(Vec::new(), RAW)?.finish()?);
        Ok((Tap { batch: Vec::new(), packets: 0, send, missed: 0 }, writing))
    }

    /// A packet, from its IP header on.
    pub(crate) fn take(&mut self, time: Nanos, packet: &[u8]) {
        let data = packet.get(..SNAP).unwrap_or(packet);
        // As `Writer::pcap` writes it: seconds, nanoseconds, both lengths.
        let (s, ns) = ((time.0 / 1_000_000_000) as u32, (time.0 % 1_000_000_000) as u32);
        for word in [s, ns, data.len() as u32, packet.len() as u32] {
            self.batch.extend(word.to_le_bytes());
        }
        self.batch.extend(data);
        self.packets += 1;
        if self.batch.len() > BATCH {
            self.hand_over();
        }
    }

    /// How many packets were missed.
    pub(crate) fn finish(mut self) -> u64 {
        let last = std::mem::take(&mut self.batch);
        // At the end there is time to wait.
        let _ = self.send.send(last);
        self.missed
    }

    fn hand_over(&mut self) {
        let empty = Vec::with_capacity(2 * BATCH);
        let batch = std::mem::replace(&mut self.batch, empty);
        if let Err(TrySendError::Full(_)) = self.send.try_send(batch) {
            self.missed += self.packets;
        }
        self.packets = 0;
    }
}

fn write_all(from: &Receiver<Vec<u8>>, mut to: File) -> io::Result<()> {
    from.iter().try_for_each(|batch| to.write_all(&batch))
}
