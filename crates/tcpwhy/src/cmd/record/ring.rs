//! The last blocks of a recording, in memory that is bounded, until somebody wants them in a file.

use super::tape::Tape;
use std::collections::VecDeque;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tcpwhy_base::Nanos;

/// Beside its bytes, what the memory of a block costs.
const EACH: usize = 32;

/// Types of blocks: those that describe what follows are kept for good.
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;

/// Blocks, and what they take.
#[derive(Debug, Default)]
struct Blocks {
    all: VecDeque<Box<[u8]>>,
    bytes: usize,
}

impl Blocks {
    fn push(&mut self, block: &[u8]) {
        self.bytes += block.len() + EACH;
        self.all.push_back(block.into());
    }

    /// The oldest goes; whether there was one.
    fn pop(&mut self) -> bool {
        let old = self.all.pop_front();
        self.bytes -= old.as_ref().map_or(0, |old| old.len() + EACH);
        old.is_some()
    }

    fn append(&mut self, later: &mut Blocks) {
        self.bytes += std::mem::take(&mut later.bytes);
        self.all.append(&mut later.all);
    }
}

/// Blocks of pcapng, the oldest of which go. But where packets come faster than they can be recorded, events
/// of the kernel go on without them, and events alone explain nothing: those behind the last packet take no
/// more than half.
#[derive(Debug)]
pub(super) struct Ring {
    head: Vec<u8>,
    /// Up to the last packet, and behind it.
    blocks: Blocks,
    behind: Blocks,
    most: usize,
    /// Something has left it.
    full: bool,
    /// How many files there are that hold some of it.
    pub(super) saved: u32,
}

/// It could not be saved whole.
#[derive(Debug)]
pub(super) struct Unsaved {
    path: PathBuf,
    /// Bytes of whole blocks in it; 0: there is no packet, and no such file.
    kept: u64,
    /// Files that were saved before.
    before: u32,
    why: io::Error,
}

impl Unsaved {
    pub(super) fn kind(&self) -> io::ErrorKind {
        self.why.kind()
    }
}

impl fmt::Display for Unsaved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write {}: {}", self.path.display(), self.why)?;
        if self.kept > 0 {
            write!(f, "; its first {} KB were written and can be read", self.kept.div_ceil(1000))?;
        }
        if self.before > 0 {
            f.write_str("; what was saved before is whole")?;
        }
        Ok(())
    }
}

impl std::error::Error for Unsaved {}

impl Ring {
    /// Of at most so many bytes.
    pub(super) fn new(most: u64) -> Ring {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        Ring {
            head: Vec::new(),
            blocks: Blocks::default(),
            behind: Blocks::default(),
            most,
            full: false,
            saved: 0,
        }
    }

    /// Takes in a block.
    pub(super) fn push(&mut self, block: &[u8]) {
        if matches!(word(block, 0), Some(SECTION | INTERFACE)) {
            self.head.extend(block);
            return;
        }
        if word(block, 0) == Some(PACKET) {
            self.blocks.append(&mut self.behind);
            self.blocks.push(block);
        } else {
            self.behind.push(block);
        }
        while self.bytes() > self.most {
            let gone = self.behind.bytes <= self.most / 2 && self.blocks.pop();
            if !gone && !self.behind.pop() {
                break;
            }
            self.full = true;
        }
    }

    fn bytes(&self) -> usize {
        self.blocks.bytes + self.behind.bytes
    }

    /// When the oldest packet was seen, if older ones have left.
    pub(super) fn left_until(&self) -> Option<Nanos> {
        self.since().filter(|_| self.full)
    }

    /// When the oldest packet was seen.
    pub(super) fn since(&self) -> Option<Nanos> {
        let packet = self.blocks.all.iter().find(|b| word(b, 0) == Some(PACKET))?;
        let time = u64::from(word(packet, 12)?) << 32 | u64::from(word(packet, 16)?);
        i64::try_from(time).ok().map(Nanos)
    }

    /// Writes what there is, behind `first`, into the next file: whole blocks, as many as the disk takes.
    /// Gives its name and size. A file that got no packet is not left.
    pub(super) fn save(&mut self, path: &Path, first: &[u8]) -> Result<(PathBuf, u64), Unsaved> {
        let before = self.saved;
        let (path, mut tape) =
            self.next_file(path).map_err(|(path, why)| Unsaved { path, kept: 0, before, why })?;
        let blocks = self.blocks.all.iter().chain(&self.behind.all).map(|b| &**b);
        let mut all = [self.head.as_slice(), first].into_iter().chain(blocks);
        let written = all.try_for_each(|block| tape.write_all(block)).and_then(|()| tape.flush());
        if let Err(why) = written {
            let mut kept = tape.len();
            if kept > (self.head.len() + first.len()) as u64 {
                self.saved += 1;
            } else {
                kept = 0;
                // The first one has stood there from the start.
                let _ = if before == 0 { tape.clear() } else { fs::remove_file(&path) };
            }
            return Err(Unsaved { path, kept, before, why });
        }
        self.saved += 1;
        Ok((path, tape.len()))
    }

    /// The file that was asked for, then new ones: those of an earlier recording stay.
    fn next_file(&self, path: &Path) -> Result<(PathBuf, Tape), (PathBuf, io::Error)> {
        if self.saved == 0 {
            return match Tape::open(path) {
                Ok(tape) => Ok((path.into(), tape)),
                Err(e) => Err((path.into(), e)),
            };
        }
        let mut number = self.saved;
        loop {
            number = number.saturating_add(1);
            let path = numbered(path, number);
            match File::create_new(&path) {
                Ok(file) => return Ok((path, Tape::of(file))),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && number < u32::MAX => {}
                Err(e) => return Err((path, e)),
            }
        }
    }
}

/// `slow-2.pcapng`, `slow-3.pcapng`.
fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_os_string();
    name.push(format!("-{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

fn word(block: &[u8], at: usize) -> Option<u32> {
    block.get(at..)?.first_chunk().map(|b| u32::from_le_bytes(*b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(kind: u32, n: u8) -> Vec<u8> {
        [&kind.to_le_bytes()[..], &[0; 8], &0u32.to_le_bytes(), &u32::from(n).to_le_bytes(), &[n; 76]]
            .concat()
    }

    #[test]
    fn the_last_blocks_stay_within_the_bytes() {
        let mut ring = Ring::new(1_000);
        ring.push(&block(SECTION, 0));
        for n in 0..200 {
            ring.push(&block(PACKET, n));
            assert!(ring.bytes() <= 1_000);
        }
        // 96 bytes each, and what memory takes.
        assert_eq!((ring.blocks.all.len(), ring.since()), (7, Some(Nanos(193))));
        let folder = std::env::temp_dir().join(format!("tcpwhy-ring-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("a.pcapng");
        let (first, size) = ring.save(&file, b"told").unwrap();
        assert_eq!((first, size), (file.clone(), 96 + 4 + 7 * 96));
        // Of an earlier recording.
        std::fs::write(folder.join("a-2.pcapng"), b"kept").unwrap();
        assert_eq!(ring.save(&file, b"").unwrap().0, folder.join("a-3.pcapng"));
        assert_eq!(std::fs::read(folder.join("a-2.pcapng")).unwrap(), b"kept");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// Packets were lost, and events of the kernel went on.
    #[test]
    fn events_alone_do_not_drive_out_the_packets() {
        const EVENT: u32 = 0x0bad;
        let kinds = |ring: &Ring| {
            let of = |blocks: &Blocks| {
                blocks.all.iter().map(|b| (word(b, 0).unwrap(), word(b, 16).unwrap())).collect::<Vec<_>>()
            };
            (of(&ring.blocks), of(&ring.behind))
        };
        let mut ring = Ring::new(1_000);
        for n in 0..20 {
            ring.push(&block(EVENT, n));
            ring.push(&block(PACKET, n));
        }
        for n in 20..60 {
            ring.push(&block(EVENT, n));
            assert!(ring.bytes() <= 1_000);
        }
        // The last packets with what led to them, and the latest events.
        let (blocks, behind) = kinds(&ring);
        assert_eq!(blocks, [(EVENT, 18), (PACKET, 18), (EVENT, 19), (PACKET, 19)]);
        assert_eq!(behind, [(EVENT, 57), (EVENT, 58), (EVENT, 59)]);
        // With the next packet what is oldest goes again.
        ring.push(&block(PACKET, 60));
        assert_eq!(kinds(&ring).0.first(), Some(&(PACKET, 18)));
        assert_eq!((ring.since(), kinds(&ring).1.len()), (Some(Nanos(18)), 0));
    }
}
