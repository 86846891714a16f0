//! A server whose requests wait for each other (rule 161).

use std::fmt::Write;
use tcpwhy_base::{Endpoint, Nanos};

/// Requests to one server that waited for their turn: it worked on few of them at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InTurn {
    /// Who answered.
    pub server: Endpoint,
    /// How many requests.
    pub requests: u64,
    /// On so many it worked at a time.
    pub at_once: u32,
    /// So many were there at once, at the most.
    pub most: u32,
    /// How long one takes by itself; the median.
    pub each: Nanos,
    /// How long they waited for others, summed.
    pub waited: Nanos,
}

impl InTurn {
    pub(crate) fn new(
        server: Endpoint,
        (requests, most): (usize, usize),
        at_once: usize,
        (each, waited): (Nanos, Nanos),
    ) -> InTurn {
        let requests = requests as u64;
        let [most, at_once] = [most, at_once].map(|n| u32::try_from(n).unwrap_or(u32::MAX));
        InTurn { server, requests, at_once, most, each, waited }
    }

    /// ` For 34.6 s of it requests to 10.0.0.2:80 waited for others before them ...`
    pub(crate) fn sentence(&self) -> String {
        let InTurn { server, at_once, most, each, waited, .. } = self;
        let mut text = format!(
            " For {waited} of it requests to {server} waited for others before them, up to {most} at once: answers came in \
             turn, as where a server works on "
        );
        _ = match at_once {
            1 => write!(text, "one at a time"),
            n => write!(text, "{n} at a time"),
        };
        _ = write!(text, ", {each} each.");
        text
    }
}
