//! What the first page is told while it is open: captures and results of the lab as they come, and how far reading is.

use super::folder::Found;
use super::{Shared, States, http};
use std::io::{self, Write};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, UNIX_EPOCH};
use tcpwhy_base::Nanos;

/// Between two looks into the folder.
const PERIOD: Duration = Duration::from_millis(250);
/// After so many periods without news a line shows whether the browser has gone.
const QUIET: u32 = 20;

impl Shared {
    /// The captures, as JSON.
    pub(super) fn list(&self, found: &Found) -> String {
        let row = |(name, e): (&String, &super::Entry)| {
            let changed = e.changed.and_then(|t| t.duration_since(UNIX_EPOCH).ok());
            let changed = Nanos::secs(changed.map_or(0, |d| d.as_secs() as i64));
            let changed = tcpwhy_report::rfc3339(changed).replace('T', " ").replace(".000000000Z", "");
            let said = self.judged.of(name, e);
            serde_json::json!({ "name": name, "size": e.size, "changed": changed, "dropped": e.dropped, "said": said })
        };
        serde_json::Value::from_iter(found.captures.iter().map(row)).to_string()
    }

    /// Tells what changes, until the browser or the server ends.
    pub(super) fn events(&self, out: &mut impl Write) -> io::Result<()> {
        http::head(out, 200, "text/event-stream", &[])?;
        let mut told = [String::new(), String::new()];
        let mut progress = States::new();
        let mut quiet = 0;
        while !self.stop.load(Ordering::Relaxed) {
            quiet += 1;
            let found = self.folder.look();
            let now = [self.results.list(&found), self.list(&found)];
            for ((event, now), told) in ["lab", "list"].iter().zip(now).zip(&mut told) {
                if now != *told {
                    write!(out, "event: {event}\ndata: {now}\n\n")?;
                    *told = now;
                    quiet = 0;
                }
            }
            let now = self.progress.lock().unwrap_or_else(PoisonError::into_inner).clone();
            for (name, state) in now.iter().filter(|(n, s)| progress.get(*n) != Some(*s)) {
                let data = serde_json::json!({ "name": name, "packets": state.0, "bytes": state.1, "total": state.2 });
                write!(out, "event: progress\ndata: {data}\n\n")?;
                quiet = 0;
            }
            progress = now;
            if quiet >= QUIET {
                out.write_all(b": still here\n\n")?;
                quiet = 0;
            }
            out.flush()?;
            thread::sleep(PERIOD);
        }
        Ok(())
    }
}
