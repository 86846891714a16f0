//! Any bytes as a capture: the reader ends, counts right, and gives the same frames however the bytes arrive.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io::{self, Read};
use tcpwhy_capture::Reader;

/// Gives `step` bytes at a time.
struct Drip {
    data: Vec<u8>,
    at: usize,
    step: usize,
}

impl Read for Drip {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.step.min(buf.len()).min(self.data.len() - self.at);
        buf[..n].copy_from_slice(&self.data[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}

/// Everything that can be seen of a capture, as text.
fn read(data: &[u8], step: usize) -> Vec<String> {
    let mut seen = Vec::new();
    match Reader::new(Box::new(Drip { data: data.to_vec(), at: 0, step })) {
        Err(e) => seen.push(e.to_string()),
        Ok(mut reader) => {
            loop {
                match reader.next() {
                    // A few bytes unpack to very many.
                    Ok(Some(frame)) if frame.number > 100_000 => return seen,
                    Ok(Some(frame)) => {
                        assert!(frame.data.len() <= frame.len as usize);
                        seen.push(format!("{frame:?}"));
                    }
                    Ok(None) => break,
                    Err(e) => {
                        seen.push(e.to_string());
                        break;
                    }
                }
            }
            assert!(matches!(reader.next(), Ok(None)), "after the end comes nothing");
            seen.push(format!("{} {} {:?}", reader.frames(), reader.offset(), reader.capture_drops()));
        }
    }
    seen
}

fuzz_target!(|data: &[u8]| {
    let (at_once, dripping) = (read(data, usize::MAX), read(data, 1 + data.len() % 7));
    // Where a packed stream is damaged, how much of it could still be unpacked depends on the reads.
    let packed = |seen: &[String]| seen.iter().any(|line| line.contains("compressed data"));
    if !packed(&at_once) && !packed(&dripping) {
        assert_eq!(at_once, dripping);
    }
});
