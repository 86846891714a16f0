use std::fmt;
use std::io;
use thiserror::Error;

/// Why a capture could not be read, or not to its end. Every message names the next step.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file could not be opened.
    #[error("cannot open {path}: {source}; check the name and the permissions")]
    Open {
        /// As given.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// The system failed to deliver bytes.
    #[error(
        "reading {path} failed after packet {frames}, at byte {offset}: {source}; copy the file to a local \
         disk and try again"
    )]
    Io {
        /// As given.
        path: String,
        /// How many packets were delivered before.
        frames: u64,
        /// Where, in the unpacked bytes.
        offset: u64,
        /// What the system said.
        source: io::Error,
    },
    /// The input is something else than a capture.
    #[error("not a pcap or pcapng capture: {0}")]
    NotCapture(Looks),
    /// Damage: what was before it has been delivered, and the reader stops here.
    #[error("{}", damaged(.what, *.frame, *.offset))]
    Damaged {
        /// What is wrong.
        what: Damage,
        /// The number of the packet that could not be read (1-based).
        frame: u64,
        /// Where its record begins, in the unpacked bytes.
        offset: u64,
    },
}

/// How a capture is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Damage {
    /// The input ends inside a packet or block.
    Cut,
    /// A record or block claims an impossible number of bytes.
    Length(u32),
    /// The two lengths around a pcapng block differ: the first and the last.
    Trailer(u32, u32),
    /// A pcapng packet names an interface that its section has not described.
    Interface(u32),
    /// A pcapng section describes more interfaces than any host has.
    Interfaces,
    /// A pcapng section header has neither byte order.
    ByteOrder,
    /// The compressed stream is damaged; what the decoder said.
    Packed(String),
}

fn damaged(what: &Damage, frame: u64, offset: u64) -> String {
    let again = "copy it again from where it was captured";
    match what {
        Damage::Cut => format!(
            "the file is cut in the middle of packet {frame}, which begins at byte {offset}; everything before \
             was read; stop the capture program before copying, or {again}"
        ),
        Damage::Length(n) => format!(
            "damaged at byte {offset}: packet {frame} claims {n} bytes; everything before was read; {again}"
        ),
        Damage::Trailer(first, last) => format!(
            "damaged at byte {offset}, before packet {frame}: a block claims {first} bytes at its start and \
             {last} at its end; everything before was read; {again}"
        ),
        Damage::Interface(id) => format!(
            "damaged at byte {offset}: packet {frame} came from interface {id}, which the file does not \
             describe; everything before was read; {again}"
        ),
        Damage::Interfaces => format!(
            "damaged at byte {offset}, before packet {frame}: a section describes more than 65536 interfaces; \
             everything before was read; {again}"
        ),
        Damage::ByteOrder => format!(
            "damaged at byte {offset}, before packet {frame}: a section begins without its byte-order mark; \
             everything before was read; {again}"
        ),
        Damage::Packed(said) => format!(
            "the compressed data is damaged or cut ({said}) at packet {frame}, byte {offset} once unpacked; \
             what could be unpacked before was read; {again}"
        ),
    }
}

/// What the first bytes of an input that is no capture look like.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Looks {
    /// No bytes at all.
    Empty,
    /// Too few bytes for a file header.
    Short,
    /// Zero bytes.
    Zeros,
    /// An HTML page.
    Html,
    /// JSON.
    Json,
    /// Text.
    Text,
    /// A file type known by its magic: its name and what to do.
    Known(&'static str, &'static str),
    /// This packing, and inside it something else.
    Inside(&'static str, Box<Looks>),
    /// None of these: the first four bytes.
    Other([u8; 4]),
}

impl fmt::Display for Looks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Looks::Empty => {
                f.write_str("it is empty; check that the capture program saw packets and was stopped")
            }
            Looks::Short => f.write_str("it ends inside the file header; copy it again"),
            Looks::Zeros => {
                f.write_str("it begins with zero bytes, as after a crash or a broken download; copy it again")
            }
            Looks::Html => {
                f.write_str("it is an HTML page, perhaps a login or error page; download the capture itself")
            }
            Looks::Json => f.write_str("it is JSON; give the capture that it was made from"),
            Looks::Text => {
                f.write_str("it is text; record packets with `tcpdump -w FILE`, not by saving what it prints")
            }
            Looks::Known(name, next) => write!(f, "it is {name}; {next}"),
            Looks::Inside(packing, inner) => write!(f, "packed with {packing}, and inside: {inner}"),
            Looks::Other([a, b, c, d]) => write!(
                f,
                "it begins with {a:02x} {b:02x} {c:02x} {d:02x}; if Wireshark opens it, convert it with \
                 `editcap -F pcap IN OUT`"
            ),
        }
    }
}

/// Magic numbers of what people hand over instead of a capture.
const KNOWN: &[(&[u8], &str, &str)] = &[
    (b"BZh", "a bzip2 file", "unpack it with bunzip2"),
    (b"\xfd7zXZ", "an xz file", "unpack it with unxz"),
    (b"PK\x03\x04", "a zip archive", "unpack it and give the capture inside"),
    (b"7z\xbc\xaf", "a 7z archive", "unpack it and give the capture inside"),
    (b"\x7fELF", "a program", "give the capture file"),
    (b"snoop\0\0\0", "a snoop capture of an unknown version", "convert it with `editcap -F pcap IN OUT`"),
    (b"GMBU", "a Microsoft Network Monitor capture", "convert it with `editcap -F pcap IN OUT`"),
    (b"RTSS", "a Microsoft Network Monitor capture", "convert it with `editcap -F pcap IN OUT`"),
    (b"\x1c\x00\x01\xac", "an IXIA capture", "convert it with `editcap -F pcap IN OUT`"),
    (b"\x1c\x00\x01\xab", "an IXIA capture", "convert it with `editcap -F pcap IN OUT`"),
    (b"XCP\0", "a NetXRay or Sniffer capture", "convert it with `editcap -F pcap IN OUT`"),
    (b"TRSNIFF", "a Sniffer capture", "convert it with `editcap -F pcap IN OUT`"),
    (
        b"\x1f\x8b",
        "a gzip file",
        "unpack it with gunzip (twice packed, or this program was built without gzip)",
    ),
    (b"\x28\xb5\x2f\xfd", "a zstd file", "unpack it with `zstd -d` (twice packed, or built without zstd)"),
    (b"\x04\x22\x4d\x18", "an lz4 file", "unpack it with `lz4 -d` (twice packed, or built without lz4)"),
];

impl Looks {
    /// Judges the first bytes of an input (as many as there are, at most a few hundred).
    pub(crate) fn judge(head: &[u8]) -> Looks {
        if head.is_empty() {
            return Looks::Empty;
        }
        if let Some(&(_, name, next)) = KNOWN.iter().find(|(magic, ..)| head.starts_with(magic)) {
            return Looks::Known(name, next);
        }
        if head.iter().all(|&b| b == 0) {
            return Looks::Zeros;
        }
        let text =
            head.iter().all(|&b| matches!(b, b'\t' | b'\r' | b'\n' | 0x0c | 0x1b | 0x20..=0x7e | 0x80..));
        let begins = head.trim_ascii_start().to_ascii_lowercase();
        match begins.first() {
            Some(b'<')
                if text && [&b"<!doctype"[..], b"<html", b"<head"].iter().any(|m| begins.starts_with(m)) =>
            {
                Looks::Html
            }
            Some(b'{' | b'[') if text => Looks::Json,
            Some(b) if text && b.is_ascii() => Looks::Text,
            _ => head.first_chunk().map_or(Looks::Short, |&first| Looks::Other(first)),
        }
    }
}
