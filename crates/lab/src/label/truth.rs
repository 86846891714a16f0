//! What was written down of a run, as far as labels are told from it.

use crate::link::Record;
use crate::scenario::Scenario;
use crate::{Event, Exchange, LabError, Lost, Run, Sample};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};
use tcpwhy_base::Ends;
use tcpwhy_capture::Reader;

/// A run without its captures; of a kept one, `meta.json`.
#[derive(Debug, Deserialize)]
pub(super) struct Truth {
    pub(super) scenario: Scenario,
    pub(super) events: Vec<Event>,
    pub(super) samples: Vec<Sample>,
    pub(super) lost: Vec<Lost>,
    pub(super) exchanges: Vec<Exchange>,
    pub(super) client_counters: BTreeMap<String, i64>,
    pub(super) server_counters: BTreeMap<String, i64>,
    pub(super) cut_off: bool,
    pub(super) disturbed: bool,
}

impl Truth {
    /// Of a run that has just been made.
    pub(super) fn of(run: &Run) -> Truth {
        Truth {
            scenario: run.scenario.clone(),
            events: run.events.clone(),
            samples: run.samples.clone(),
            lost: run.traffic.lost.clone(),
            exchanges: run.exchanges.clone(),
            client_counters: run.traffic.client_counters.clone(),
            server_counters: run.traffic.server_counters.clone(),
            cut_off: run.cut_off,
            disturbed: run.traffic.disturbed,
        }
    }

    /// The truth and the captures of a kept run.
    pub(super) fn read(directory: &Path) -> Result<(Truth, Ends<Vec<Record>>), LabError> {
        let path = directory.join("meta.json");
        let text = fs::read_to_string(&path).map_err(LabError::failed(path.display().to_string()))?;
        let truth = serde_json::from_str(&text)
            .map_err(|e| LabError::Failed { what: "the truth of a run".into(), why: e.into() })?;
        let mut captures = Ends::<Vec<Record>>::default();
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
