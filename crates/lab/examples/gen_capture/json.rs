//! The reader at the end of the pipe. It shares the cores with whoever writes, so that it should take little
//! of their time.

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

/// So many bytes are looked at together, in one word.
const WORD: usize = 8;
/// The highest bit of each byte, which says that it is one that was looked for.
const HIGH: u64 = 0x8080_8080_8080_8080;

/// The places of a byte in a word.
#[inline(always)]
fn places(word: u64, of: u8) -> u64 {
    let differs = word ^ u64::from_ne_bytes([of; WORD]);
    !(((differs & !HIGH) + !HIGH) | differs) & HIGH
}

/// How many places these are.
#[inline(always)]
fn count(places: u64) -> i64 {
    ((places >> 7).wrapping_mul(0x0101_0101_0101_0101) >> 56) as i64
}

impl Scan {
    /// Takes what comes next.
    fn take_all(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<WORD>();
        for word in words {
            if !self.skips(u64::from_le_bytes(*word)) {
                word.iter().for_each(|&c| self.take(c));
            }
        }
        rest.iter().for_each(|&c| self.take(c));
    }

    /// Follows nesting and strings through eight bytes that lie below the sections as a whole. `false`: they
    /// are to be looked at one by one.
    #[inline(always)]
    fn skips(&mut self, word: u64) -> bool {
        if self.escaped || self.depth <= 2 || places(word, b'\\') != 0 {
            return false;
        }
        // Square and curly brackets differ in one bit.
        let either = word | 0x2020_2020_2020_2020;
        let (quotes, opens, closes) = (places(word, b'"'), places(either, b'{'), places(either, b'}'));
        if quotes | opens | closes == 0 {
            return true;
        }
        // Each place is in a string if quotes up to it are odd in number.
        let mut within = quotes ^ quotes << 8;
        within ^= within << 16;
        within ^= within << 32;
        within ^= if self.quoted { HIGH } else { 0 };
        let closes = count(closes & !within);
        if self.depth - closes <= 2 {
            return false;
        }
        self.depth += count(opens & !within) - closes;
        self.quoted = within >> 63 == 1;
        true
    }

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
        scan.take_all(&block[..n]);
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
