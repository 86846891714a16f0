//! Segments as frames of a capture.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use tcpwhy_base::Nanos;
use tcpwhy_capture::{Frame, Writer};

pub(crate) const SECOND: u64 = 1_000_000_000;
pub(crate) const MILLISECOND: u64 = 1_000_000;
pub(crate) const FIN: u8 = 1;
pub(crate) const SYN: u8 = 2;
pub(crate) const PSH: u8 = 8;
pub(crate) const ACK: u8 = 16;
const ETHERNET: u32 = 1;

/// One segment to be written; `up`: from the client.
#[derive(Clone, Copy)]
pub(crate) struct Segment {
    pub(crate) time: u64,
    pub(crate) up: bool,
    pub(crate) flags: u8,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) length: u32,
    pub(crate) sack: Option<(u32, u32)>,
}

/// A capture being written.
pub(crate) struct Output {
    writer: Writer<BufWriter<Box<dyn Write>>>,
    frame: Vec<u8>,
    pub(crate) packets: u64,
    piped: bool,
}

impl Output {
    pub(crate) fn new(path: &str) -> io::Result<Output> {
        let piped = path == "-";
        let to: Box<dyn Write> =
            if piped { Box::new(io::stdout().lock()) } else { Box::new(File::create(path)?) };
        let writer = Writer::pcap(BufWriter::with_capacity(1 << 20, to), ETHERNET)?;
        Ok(Output { writer, frame: Vec::with_capacity(100), packets: 0, piped })
    }

    /// Writes a segment of the connection between `client` and `server` (address and port).
    pub(crate) fn put(&mut self, client: (u32, u16), server: (u32, u16), s: &Segment) -> io::Result<()> {
        let ((source, sport), (target, dport)) = if s.up { (client, server) } else { (server, client) };
        let options = options(s);
        let frame = &mut self.frame;
        frame.clear();
        let (a, b) = if s.up { (2, 1) } else { (1, 2) };
        frame.extend([2, 0, 0, 0, 0, a, 2, 0, 0, 0, 0, b, 8, 0]);
        let length = 40 + options.len() + s.length as usize;
        frame.extend(ip(source, target, length as u16, self.packets as u16, if s.up { 64 } else { 55 }));
        for word in [sport, dport, (s.seq >> 16) as u16, s.seq as u16, (s.ack >> 16) as u16, s.ack as u16] {
            frame.extend(word.to_be_bytes());
        }
        frame.extend([(((20 + options.len()) / 4) << 4) as u8, s.flags]);
        frame.extend(if s.flags & SYN != 0 { 64_240u16 } else { 1_024 }.to_be_bytes());
        frame.extend([0; 4]);
        frame.extend(options);
        let mut frame = Frame::new(Nanos(s.time as i64), ETHERNET, frame);
        frame.len = 14 + length as u32;
        self.packets += 1;
        self.writer.write(&frame, None)
    }

    /// Ends the file and says how many packets it holds.
    pub(crate) fn done(self) -> io::Result<()> {
        self.writer.finish()?;
        if self.piped {
            eprintln!("{}", self.packets);
        } else {
            println!("{}", self.packets);
        }
        Ok(())
    }
}

fn ip(source: u32, target: u32, length: u16, id: u16, ttl: u8) -> [u8; 20] {
    let mut ip = [0; 20];
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&length.to_be_bytes());
    ip[4..6].copy_from_slice(&id.to_be_bytes());
    ip[6] = 0x40;
    (ip[8], ip[9]) = (ttl, 6);
    ip[12..16].copy_from_slice(&source.to_be_bytes());
    ip[16..20].copy_from_slice(&target.to_be_bytes());
    let sum = ip.chunks_exact(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum::<u32>();
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    ip[10..12].copy_from_slice(&(!sum as u16).to_be_bytes());
    ip
}

/// MSS, SACK, time stamps and scale on a SYN; time stamps and perhaps a block on all others.
fn options(s: &Segment) -> Vec<u8> {
    let now = (s.time / MILLISECOND) as u32;
    let echo = if s.flags & ACK != 0 { now.wrapping_sub(1) } else { 0 };
    let mut out = Vec::with_capacity(24);
    out.extend(if s.flags & SYN != 0 { &[2, 4, 5, 180, 4, 2][..] } else { &[1, 1] });
    out.extend([8, 10]);
    out.extend(now.to_be_bytes());
    out.extend(echo.to_be_bytes());
    if s.flags & SYN != 0 {
        out.extend([1, 3, 3, 7]);
    } else if let Some((from, to)) = s.sack {
        out.extend([1, 1, 5, 10]);
        out.extend(from.to_be_bytes());
        out.extend(to.to_be_bytes());
    }
    out
}
