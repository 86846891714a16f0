//! Frames to a pcap or pcapng stream that tcpdump and Wireshark open. Always little-endian and nanoseconds.

use crate::reader::Frame;
use crate::record::MAX_RECORD;
use crate::socket_events::{self, ENTERPRISE, EVENT};
use std::io::{self, Write};
use tcpwhy_base::{Nanos, SocketEvent};

/// Writes frames. The numbers of the frames are not stored: readers count.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    kind: Kind,
    /// One block is put together here, so that each packet is one write.
    block: Vec<u8>,
}

#[derive(Debug)]
enum Kind {
    Pcap(u32),
    /// The link types of the interfaces described so far.
    Pcapng(Vec<u16>),
}

impl<W: Write> Writer<W> {
    /// A classic file: one link type, times from 1970 to 2106, no comments.
    pub fn pcap(mut out: W, link_type: u32) -> io::Result<Writer<W>> {
        // Magic for nanoseconds, version 2.4, two unused words, snap length, link type.
        for word in [0xa1b2_3c4d, 0x0004_0002, 0, 0, MAX_RECORD, link_type] {
            out.write_all(&u32::to_le_bytes(word))?;
        }
        Ok(Writer { out, kind: Kind::Pcap(link_type), block: Vec::new() })
    }

    /// A pcapng file: any mixture of link types, comments, times from 1970 on.
    pub fn pcapng(out: W) -> io::Result<Writer<W>> {
        let mut writer = Writer { out, kind: Kind::Pcapng(Vec::new()), block: Vec::new() };
        writer.begin(0x0a0d_0d0a);
        writer.word(0x1a2b_3c4d);
        // Version 1.0, section length unknown.
        writer.word(1);
        writer.block.extend([0xff; 8]);
        // shb_userappl
        writer.option(4, b"tcpwhy");
        writer.word(0);
        writer.end()?;
        Ok(writer)
    }

    /// Writes one frame. A pcap takes only its own link type and refuses a comment.
    pub fn write(&mut self, frame: &Frame<'_>, comment: Option<&str>) -> io::Result<()> {
        self.write_of(frame, comment, None)
    }

    /// Writes one frame, with the numbers of the process and the thread that it is of (option
    /// `epb_processid_threadid`); a pcap has no place for those.
    pub fn write_of(
        &mut self,
        frame: &Frame<'_>,
        comment: Option<&str>,
        process: Option<(u32, u32)>,
    ) -> io::Result<()> {
        let caplen = u32::try_from(frame.data.len()).ok().filter(|&n| n <= MAX_RECORD);
        let caplen = caplen.ok_or_else(|| refuse("a packet above 256 MiB"))?;
        let time = u64::try_from(frame.time.0).map_err(|_| refuse("a time before 1970"))?;
        match &mut self.kind {
            Kind::Pcap(link_type) => {
                if *link_type != frame.link_type {
                    return Err(refuse("a second link type in a pcap; write pcapng"));
                }
                if comment.is_some() {
                    return Err(refuse("a comment in a pcap; write pcapng"));
                }
                let secs = u32::try_from(time / 1_000_000_000)
                    .map_err(|_| refuse("a time after 2106 in a pcap; write pcapng"))?;
                self.block.clear();
                for word in [secs, (time % 1_000_000_000) as u32, caplen, frame.len] {
                    self.word(word);
                }
                self.block.extend(frame.data);
                self.out.write_all(&self.block)
            }
            Kind::Pcapng(_) => {
                let interface = self.interface(frame.link_type)?;
                self.begin(6);
                for word in [interface, (time >> 32) as u32, time as u32, caplen, frame.len] {
                    self.word(word);
                }
                self.block.extend(frame.data);
                self.pad();
                if let Some(comment) = comment {
                    // opt_comment
                    self.option(1, comment.as_bytes());
                }
                if let Some((process, thread)) = process {
                    let mut both = [0; 8];
                    both[..4].copy_from_slice(&process.to_le_bytes());
                    both[4..].copy_from_slice(&thread.to_le_bytes());
                    self.option(8, &both);
                }
                if comment.is_some() || process.is_some() {
                    self.word(0);
                }
                self.end()
            }
        }
    }

    /// Writes what a kernel said of a socket. A pcap has no place for it.
    pub fn event(&mut self, event: &SocketEvent) -> io::Result<()> {
        if matches!(self.kind, Kind::Pcap(_)) {
            return Err(refuse("a kernel event in a pcap; write pcapng"));
        }
        let body = socket_events::encode(event).ok_or_else(|| refuse("a time before 1970"))?;
        self.begin(EVENT);
        self.word(ENTERPRISE);
        self.block.extend(body);
        self.end()
    }

    /// Writes how many packets were seen and how many of them lost, for the first interface of a pcapng file.
    pub fn statistics(&mut self, time: Nanos, received: u64, dropped: u64) -> io::Result<()> {
        if !matches!(&self.kind, Kind::Pcapng(interfaces) if !interfaces.is_empty()) {
            return Ok(());
        }
        let time = u64::try_from(time.0).map_err(|_| refuse("a time before 1970"))?;
        self.begin(5);
        for word in [0, (time >> 32) as u32, time as u32] {
            self.word(word);
        }
        // isb_ifrecv, isb_osdrop
        self.option(4, &received.to_le_bytes());
        self.option(7, &dropped.to_le_bytes());
        self.word(0);
        self.end()
    }

    /// Where this writes to.
    pub fn out(&mut self) -> &mut W {
        &mut self.out
    }

    /// Passes on what was written so far.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Flushes, and gives back where was written to.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    /// The number of the interface with this link type, described if need be.
    fn interface(&mut self, link_type: u32) -> io::Result<u32> {
        let link_type = u16::try_from(link_type).map_err(|_| refuse("a link type above 65535"))?;
        let Kind::Pcapng(interfaces) = &mut self.kind else { return Ok(0) };
        if let Some(at) = interfaces.iter().position(|&t| t == link_type) {
            return Ok(at as u32);
        }
        interfaces.push(link_type);
        let at = interfaces.len() as u32 - 1;
        self.begin(1);
        self.word(u32::from(link_type));
        // No snap length.
        self.word(0);
        // if_tsresol: nanoseconds.
        self.option(9, &[9]);
        self.word(0);
        self.end()?;
        Ok(at)
    }

    fn word(&mut self, word: u32) {
        self.block.extend(word.to_le_bytes());
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    /// An option; beyond the 65535 bytes that its length can tell, the value is cut at a character.
    fn option(&mut self, code: u16, value: &[u8]) {
        let mut n = value.len().min(usize::from(u16::MAX));
        while n < value.len() && value.get(n).is_some_and(|b| b & 0xc0 == 0x80) {
            n -= 1;
        }
        self.block.extend(code.to_le_bytes());
        self.block.extend((n as u16).to_le_bytes());
        self.block.extend(value.iter().take(n));
        self.pad();
    }

    /// Begins a block; its length is not known yet.
    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.word(kind);
        self.word(0);
    }

    /// Ends a block: its length stands in front and behind.
    fn end(&mut self) -> io::Result<()> {
        let length = (self.block.len() as u32 + 4).to_le_bytes();
        if let Some(at) = self.block.get_mut(4..8) {
            at.copy_from_slice(&length);
        }
        self.block.extend(length);
        self.out.write_all(&self.block)
    }
}

impl<'a> Frame<'a> {
    /// A frame to write: captured whole, number 0.
    pub fn new(time: Nanos, link_type: u32, data: &'a [u8]) -> Frame<'a> {
        Frame { number: 0, time, bad_time: false, link_type, data, len: data.len() as u32 }
    }
}

fn refuse(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("cannot write {what}"))
}
