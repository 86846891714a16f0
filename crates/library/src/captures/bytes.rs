//! A capture in memory, for tests.

use super::Capture;
use std::io::Cursor;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tcpwhy_capture::Reader;

pub(super) struct Bytes(pub(super) Vec<u8>);

impl Capture for Bytes {
    fn open(&self) -> Result<Reader, String> {
        Reader::new(Box::new(Cursor::new(self.0.clone()))).map_err(|e| e.to_string())
    }

    fn open_following(&self, _: &Arc<AtomicBool>) -> Result<Reader, String> {
        self.open()
    }
}
