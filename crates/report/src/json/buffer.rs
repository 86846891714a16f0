use super::writer;
use serde::Serialize;
use std::io;

/// Bytes on their way out, and room for more behind them, which is made once and used again.
#[derive(Debug, Default)]
pub struct Buffer {
    bytes: Vec<u8>,
    len: usize,
}

impl Buffer {
    /// By so much the room grows at least.
    const STEP: usize = 64 << 10;
    /// What one object finds no more room in is left to `serde_json`.
    const LARGEST: usize = 16 << 20;

    /// What is to be written.
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// How many bytes that are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Nothing is to be written.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All of it has been written.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Appends bytes as they are.
    #[inline]
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        loop {
            let room = self.bytes.get_mut(self.len..).unwrap_or_default();
            if let Some(to) = room.get_mut(..bytes.len()) {
                to.copy_from_slice(bytes);
                self.len += bytes.len();
                return;
            }
            self.grow(bytes.len());
        }
    }

    /// Appends `value`. What finds too little room is begun anew with more.
    pub(super) fn append(&mut self, value: &impl Serialize) -> io::Result<()> {
        loop {
            let room = self.bytes.get_mut(self.len..).unwrap_or_default();
            let whole = room.len();
            if let Ok(rest) = writer::write(room, value) {
                self.len += whole - rest.len();
                return Ok(());
            }
            if whole >= Buffer::LARGEST {
                self.extend(&serde_json::to_vec(value)?);
                return Ok(());
            }
            self.grow(4 * whole);
        }
    }

    /// A byte of what is to be written, to be changed.
    pub(super) fn byte_mut(&mut self, at: usize) -> Option<&mut u8> {
        self.bytes.get_mut(..self.len)?.get_mut(at)
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, room: usize) {
        self.bytes.resize(self.len + room.max(Buffer::STEP), 0);
    }
}
