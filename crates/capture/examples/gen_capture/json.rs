//! The reader at the end of the pipe.

use std::io::{self, Read};

/// A scan of a JSON document: nesting and strings are followed to the end, the totals are taken from "capture".
#[derive(Default)]
struct Scan {
    depth: i64,
    quoted: bool,
    escaped: bool,
    /// The string that was last begun near the top, the key it was, the section that is open.
    text: Vec<u8>,
    key: Vec<u8>,
    section: Vec<u8>,
    number: String,
    packets: Option<u64>,
    connections: Option<u64>,
}

impl Scan {
    fn take(&mut self, c: u8) {
        if self.quoted {
            return self.within_string(c);
        }
        match c {
            b'"' => {
                self.quoted = true;
                self.text.clear();
            }
            b'{' | b'[' => {
                if self.depth == 1 {
                    self.section.clone_from(&self.key);
                }
                self.depth += 1;
            }
            b':' if self.depth <= 2 => {
                self.key.clone_from(&self.text);
                self.number.clear();
            }
            b'0'..=b'9' if self.in_capture() => self.number.push(char::from(c)),
            b'}' | b']' | b',' => {
                if self.in_capture() {
                    self.note_total();
                }
                if c != b',' {
                    self.depth -= 1;
                }
            }
            _ => {}
        }
    }

    fn within_string(&mut self, c: u8) {
        if self.escaped {
            self.escaped = false;
        } else if c == b'\\' {
            self.escaped = true;
        } else if c == b'"' {
            self.quoted = false;
        } else if self.depth <= 2 && self.text.len() < 32 {
            self.text.push(c);
        }
    }

    fn in_capture(&self) -> bool {
        self.depth == 2 && self.section == b"capture"
    }

    fn note_total(&mut self) {
        if !self.number.is_empty() {
            match self.key.as_slice() {
                b"packets" => self.packets = self.number.parse().ok(),
                b"connections" => self.connections = self.number.parse().ok(),
                _ => {}
            }
            self.number.clear();
        }
    }
}

/// Scans standard input and says how long it is and what it says of itself.
pub(crate) fn read() -> io::Result<()> {
    let (mut input, mut block) = (io::stdin().lock(), vec![0u8; 1 << 18]);
    let (mut scan, mut bytes) = (Scan::default(), 0u64);
    loop {
        let n = input.read(&mut block)?;
        if n == 0 {
            break;
        }
        bytes += n as u64;
        block[..n].iter().for_each(|&c| scan.take(c));
    }
    if scan.depth != 0 || scan.quoted || bytes == 0 {
        eprintln!("the JSON is cut off");
        std::process::exit(1);
    }
    let show = |n: Option<u64>| n.map_or("null".to_owned(), |n| n.to_string());
    let (packets, connections) = (show(scan.packets), show(scan.connections));
    println!("{{\"bytes\": {bytes}, \"packets\": {packets}, \"connections\": {connections}}}");
    Ok(())
}
