//! A file that is dropped on the page.

use super::door::Place;
use super::{Shared, http};
use crate::input::Input;
use std::fs::{self, File};
use std::io::{self, Read as _, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Files that arrive at once.
const AT_ONCE: usize = 4;
/// All dropped files together: so many times the largest one.
const TIMES: u64 = 4;
/// Slower than this nobody sends: bytes a second, after the first while.
const PACE: u64 = 64 << 10;
const WHILE: u64 = 30;

/// Room for files that are dropped.
pub(super) struct Room {
    /// Bytes of one file.
    limit: u64,
    taken: AtomicU64,
    arriving: AtomicUsize,
    number: AtomicU64,
}

impl Room {
    pub(super) fn new(limit: u64) -> Room {
        Room { limit, taken: AtomicU64::new(0), arriving: AtomicUsize::new(0), number: AtomicU64::new(0) }
    }

    /// Bytes that one file may have.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// Sets so many bytes aside, if they are left.
    fn take(&self, bytes: u64) -> bool {
        let most = self.limit.saturating_mul(TIMES);
        let more = |taken: u64| taken.checked_add(bytes).filter(|&t| t <= most);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    fn give_back(&self, bytes: u64) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Shared {
    pub(super) fn upload(&self, out: &mut impl Write, request: &mut http::Request) -> io::Result<()> {
        let name = request.query.get("name").cloned().unwrap_or_default();
        let Some(length) = request.length() else {
            return http::say(out, 411, "the length of the file is missing");
        };
        if length > self.room.limit {
            let most = tcpwhy_report::text::bytes(self.room.limit);
            let why = format!(
                "{name} is larger than is taken here ({most}): start tcpwhy serve with the file or its folder instead"
            );
            return http::say(out, 413, &why);
        }
        let Some(_place) = Place::of(&self.room.arriving, AT_ONCE) else {
            return http::later(out, 5, false, "other files are arriving: try again in some seconds");
        };
        if !self.room.take(length) {
            let most = tcpwhy_report::text::bytes(self.room.limit.saturating_mul(TIMES));
            let why = format!(
                "{name} does not fit: all dropped files together may have {most}. Start tcpwhy serve anew, with the file or \
                 its folder"
            );
            return http::say(out, 507, &why);
        }
        match self.keep(&name, length, request) {
            Ok(name) => {
                http::head(out, 200, "application/json", &[])?;
                out.write_all(serde_json::json!({ "name": name }).to_string().as_bytes())
            }
            Err((status, why)) => {
                self.room.give_back(length);
                http::say(out, status, &why)
            }
        }
    }

    /// Takes the file in; the name under which it is listed, or why it is not.
    fn keep(&self, name: &str, length: u64, request: &mut http::Request) -> Result<String, (u16, String)> {
        let path = self.folder.path_for(self.room.number.fetch_add(1, Ordering::Relaxed));
        request.body.get_mut().within(Duration::from_secs(WHILE + length / PACE));
        let kept = (|| {
            let mut file = File::create_new(&path)?;
            let n = io::copy(&mut (&mut request.body).take(length), &mut file)?;
            if n == length {
                Ok(())
            } else {
                Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it was cut off on its way"))
            }
        })();
        let input = Input { path: path.clone(), name: name.to_owned() };
        let checked = kept
            .map_err(|e| (status_of(&e), format!("{name} could not be kept: {e}")))
            .and_then(|()| input.open().map(drop).map_err(|why| (415, why)));
        match checked {
            Ok(()) => Ok(self.folder.add(name, path)),
            Err(why) => {
                let _ = fs::remove_file(&path);
                Err(why)
            }
        }
    }
}

/// Whether who sent it was too slow or broke off (RFC 9110, 15.5.9 and 15.5.1), or the disk had no room (RFC
/// 4918, 11.5).
fn status_of(why: &io::Error) -> u16 {
    match why.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => 408,
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => 400,
        _ => 507,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sends_too_slowly_does_not_fill_the_disk() {
        let of = |kind: io::ErrorKind| status_of(&kind.into());
        assert_eq!((of(io::ErrorKind::TimedOut), of(io::ErrorKind::UnexpectedEof)), (408, 400));
        assert_eq!(of(io::ErrorKind::StorageFull), 507);
    }

    #[test]
    fn room_for_all_together() {
        let room = Room::new(100);
        assert!(room.take(100) && room.take(100) && room.take(100) && room.take(99));
        assert!(!room.take(2) && !room.take(u64::MAX));
        room.give_back(1);
        assert!(room.take(2) && !room.take(1));
    }
}
