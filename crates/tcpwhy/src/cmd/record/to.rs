//! Where a recording goes: to a file at once, or into a ring.

use super::ring::Ring;
use super::tape::Tape;
use std::io::{self, Write};

/// Where a recording goes.
#[derive(Debug)]
pub(super) enum To {
    File(Tape),
    Ring(Ring),
}

impl Write for To {
    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        match self {
            To::File(tape) => tape.write(block),
            To::Ring(ring) => {
                ring.push(block);
                Ok(block.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            To::File(tape) => tape.flush(),
            To::Ring(_) => Ok(()),
        }
    }
}
