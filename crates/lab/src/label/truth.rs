//! What was written down of a run, as far as labels are told from it.

use crate::link::{Reason, Record};
use crate::scenario::Scenario;
use crate::{LabError, Op, Run};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;
use tcpwhy_base::Nanos;
use tcpwhy_capture::Reader;

/// `meta.json`, read back.
#[derive(Debug, Deserialize)]
pub(super) struct Truth {
    pub(super) scenario: Scenario,
    pub(super) events: Vec<Call>,
    pub(super) samples: Vec<State>,
    pub(super) lost: Vec<Loss>,
    pub(super) exchanges: Vec<Asked>,
    pub(super) client_counters: BTreeMap<String, i64>,
    pub(super) server_counters: BTreeMap<String, i64>,
    pub(super) cut_off: bool,
    pub(super) disturbed: bool,
}

/// A call of an application.
#[derive(Debug, Deserialize)]
pub(super) struct Call {
    pub(super) side: End,
    pub(super) port: u16,
    pub(super) op: Op,
    start_ns: i64,
    end_ns: i64,
    pub(super) bytes: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum End {
    Client,
    Server,
}

/// A socket's state at one moment.
#[derive(Debug, Deserialize)]
pub(super) struct State {
    time_ns: i64,
    pub(super) side: End,
    pub(super) port: u16,
    pub(super) info: Info,
}

/// The fields of `tcp_info` that are used.
#[derive(Debug, Deserialize)]
pub(super) struct Info {
    pub(super) snd_cwnd: u64,
    pub(super) snd_ssthresh: u64,
    pub(super) unacked: u64,
    pub(super) snd_mss: u64,
    pub(super) rto_us: u64,
    #[serde(default)]
    pub(super) notsent_bytes: u64,
}

/// A packet that the link lost.
#[derive(Debug, Deserialize)]
pub(super) struct Loss {
    time_ns: i64,
    pub(super) up: bool,
    pub(super) reason: Reason,
    pub(super) port: u16,
    pub(super) relative: Option<u64>,
    pub(super) payload: u64,
}

/// A request as the client's application saw it.
#[derive(Debug, Deserialize)]
pub(super) struct Asked {
    pub(super) port: u16,
    pub(super) complete: bool,
}

impl Truth {
    pub(super) fn of(run: &Run) -> Result<Truth, LabError> {
        serde_json::to_value(run).and_then(serde_json::from_value).map_err(unreadable)
    }

    /// The truth and the captures of a kept run.
    pub(super) fn read(directory: &Path) -> Result<(Truth, [Vec<Record>; 2]), LabError> {
        let open = |name: &str| {
            let path = directory.join(name);
            File::open(&path).map(BufReader::new).map_err(LabError::failed(path.display().to_string()))
        };
        let truth = serde_json::from_reader(open("meta.json")?).map_err(unreadable)?;
        let mut captures = [Vec::new(), Vec::new()];
        for (capture, name) in captures.iter_mut().zip(["cap.client.pcap", "cap.server.pcap"]) {
            let failed = |e| LabError::Failed { what: name.to_owned(), why: io::Error::other(e) };
            let mut reader = Reader::open(&directory.join(name)).map_err(failed)?;
            while let Some(frame) = reader.next().map_err(failed)? {
                capture.push(Record { time: frame.time, len: frame.len, data: frame.data.into() });
            }
        }
        Ok((truth, captures))
    }
}

fn unreadable(e: serde_json::Error) -> LabError {
    LabError::Failed { what: "the truth of a run".into(), why: e.into() }
}

impl Call {
    pub(super) fn start(&self) -> Nanos {
        Nanos(self.start_ns)
    }

    pub(super) fn end(&self) -> Nanos {
        Nanos(self.end_ns)
    }
}

impl State {
    pub(super) fn time(&self) -> Nanos {
        Nanos(self.time_ns)
    }
}

impl Loss {
    pub(super) fn time(&self) -> Nanos {
        Nanos(self.time_ns)
    }
}
