//! What the tests share.
#![allow(dead_code, reason = "each test file uses a part")]

use std::io::{self, Read};
use tcpwhy_base::Segment;
use tcpwhy_capture::{Dissector, Reader, Verdict};

/// Bytes that arrive `step` at a time.
pub(crate) struct Drip {
    pub(crate) data: Vec<u8>,
    pub(crate) at: usize,
    pub(crate) step: usize,
}

impl Read for Drip {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.step.min(buf.len()).min(self.data.len() - self.at);
        buf[..n].copy_from_slice(&self.data[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

/// What a capture holds.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) frames: u64,
    pub(crate) segments: Vec<Segment>,
    /// Why reading stopped before the end, if it did.
    pub(crate) error: Option<String>,
}

impl Seen {
    /// For comparing.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.segments.iter().map(|s| format!("{s:?}")).collect()
    }
}

/// Reads and dissects a capture that arrives `step` bytes at a time.
pub(crate) fn read(data: &[u8], step: usize) -> Seen {
    let mut seen = Seen::default();
    let mut reader = match Reader::new(Box::new(Drip { data: data.to_vec(), at: 0, step })) {
        Ok(reader) => reader,
        Err(e) => return Seen { error: Some(e.to_string()), ..seen },
    };
    let mut dissector = Dissector::new();
    let mut segment = Segment::EMPTY;
    loop {
        match reader.next() {
            Ok(Some(frame)) => {
                if dissector.dissect(&frame, 0, &mut segment) == Verdict::Tcp {
                    seen.segments.push(segment);
                }
            }
            Ok(None) => break,
            Err(e) => {
                seen.error = Some(e.to_string());
                break;
            }
        }
    }
    seen.frames = reader.frames();
    seen
}
