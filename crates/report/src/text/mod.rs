//! Text for people: the verdict first, then what was found, then what the capture cannot show, then the
//! connections. Colours are written always; who opens the output takes them out where they do not belong.

mod connection;
mod findings;
mod overview;
pub(crate) mod style;
mod table;
#[cfg(test)]
mod tests;
mod timeline;
mod why_not;

pub use crate::summary::worst;
pub use connection::connection;
pub use findings::{rank, saving};
pub use overview::{overview, verdict};
pub use style::{bytes, percent, range, wrap};
pub use timeline::{exchange, flags as flag_letters};
pub use why_not::why_not;

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
    /// Times of day instead of time since the start.
    pub absolute: bool,
    /// The command that was given, without options: `tcpwhy explain FILE`.
    pub command: String,
    /// Short names of the inputs, if there are several: frames are named with theirs.
    pub files: Vec<String>,
    /// Frames in the inputs before each.
    pub frames_before: Vec<u64>,
    /// List the exchanges of all connections that are left in detail (they were asked for).
    pub list_exchanges: bool,
}

impl Default for Layout {
    fn default() -> Layout {
        Layout {
            width: 80,
            verbose: false,
            quiet: false,
            top: 10,
            absolute: false,
            command: "tcpwhy explain FILE".into(),
            files: Vec::new(),
            frames_before: Vec::new(),
            list_exchanges: false,
        }
    }
}
