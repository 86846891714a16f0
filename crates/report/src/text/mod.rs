//! Text for people: the verdict first, then what was found, then what the capture cannot show, then the
//! connections. Colours are written always; who opens the output takes them out where they do not belong.

mod bar;
mod connection;
mod findings;
pub mod markdown;
mod overview;
mod replayed;
mod requests;
mod slowest;
pub(crate) mod style;
mod table;
#[cfg(test)]
mod tests;
mod timeline;
mod why_not;

pub(crate) use crate::figures::count;
pub use crate::figures::percent;
pub use connection::connection;
pub(crate) use findings::{guessed, whose};
pub use findings::{listed, named, saving};
pub use overview::overview;
pub use style::{bytes, range, wrap};
pub use timeline::{exchange, flags as flag_letters};
pub use why_not::why_not;

use tcpwhy_base::Nanos;

/// How text is laid out.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Columns.
    pub width: usize,
    /// Everything in full.
    pub verbose: bool,
    /// The verdict and the findings only.
    pub quiet: bool,
    /// Rows in tables.
    pub top: usize,
    /// Rows in that of the slowest exchanges of all connections.
    pub slowest: usize,
    /// Times of day instead of time since the start.
    pub absolute: bool,
    /// The command that was given, without options: `tcpwhy explain FILE`.
    pub command: String,
    /// Short names of the inputs, if there are several: frames are named with theirs.
    pub files: Vec<String>,
    /// Frames in the inputs before each.
    pub frames_before: Vec<u64>,
    /// List the exchanges of all connections that took longer than this; only they are left in detail.
    pub slower_than: Option<Nanos>,
    /// No exchange is left out of the detail for their number.
    pub all_exchanges: bool,
}

impl Layout {
    /// With so many rows in each table, or as many as is usual.
    #[must_use]
    pub fn with_rows(self, rows: Option<usize>) -> Layout {
        Layout { top: rows.unwrap_or(self.top), slowest: rows.unwrap_or(self.slowest), ..self }
    }
}

impl Default for Layout {
    fn default() -> Layout {
        Layout {
            width: 80,
            verbose: false,
            quiet: false,
            top: 10,
            slowest: 3,
            absolute: false,
            command: "tcpwhy explain FILE".into(),
            files: Vec::new(),
            frames_before: Vec::new(),
            slower_than: None,
            all_exchanges: false,
        }
    }
}
