//! What this machine's link costs and can, before anything is measured over it.

use crate::experiment::run_until;
use crate::measure::{Measure, Statistic, Subject};
use crate::scenario::Scenario;
use crate::{LabError, Lateness};
use serde::Serialize;
use std::sync::atomic::AtomicBool;

/// What was found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Calibration {
    /// Round trip of one byte without any delay: two crossings of the devices and four wake-ups.
    pub path_ms: f64,
    /// Throughput of one connection at MTU 1500 without a rate.
    pub rate_mbit: f64,
    /// Throughput of one connection without a rate, with segments of 64 KB that pass whole.
    pub rate_offload_mbit: f64,
    /// How late the link delivered while the round trip was measured.
    pub lateness: Lateness,
    /// The machine disturbed the calibration too.
    pub disturbed: bool,
}

const TRIPS: &str = "title = 'round trip'\nsample_ms = 0\n[client]\nnodelay = true\n[server]\nnodelay = true\n\
                     [workload]\nrequests = 300\nrequest = [1]\nresponse = [1]\n";
const BULK: &str =
    "title = 'rate'\nsample_ms = 0\nlimit_s = 20\n[workload]\nrequest = [1]\nresponse = [80000000]\n";

/// Measures the link without delay and without a rate. Takes about three seconds.
pub fn calibrate(stop: &AtomicBool) -> Result<Calibration, LabError> {
    let mut best: Option<(f64, Lateness, bool)> = None;
    // What the hypervisor takes away only ever adds: the least disturbed of up to three counts.
    for _ in 0..3 {
        let run = run_until(&Scenario::parse(TRIPS, &[])?, stop)?;
        let trip = run.figure(&Measure::Of(Subject::Exchange, Statistic::Median)).unwrap_or(0.0);
        let (lateness, disturbed) = (run.traffic.lateness, run.traffic.disturbed);
        if best.as_ref().is_none_or(|b| trip < b.0) {
            best = Some((trip, lateness, disturbed));
        }
        if !disturbed {
            break;
        }
    }
    let (path_ms, lateness, disturbed) = best.unwrap_or_default();
    let rate = |set: &[String]| -> Result<f64, LabError> {
        let run = run_until(&Scenario::parse(BULK, set)?, stop)?;
        Ok(run.figure(&Measure::Throughput).unwrap_or(0.0))
    };
    let rate_mbit = rate(&[])?;
    let rate_offload_mbit = rate(&["link.offload=true".to_owned()])?;
    Ok(Calibration { path_ms, rate_mbit, rate_offload_mbit, lateness, disturbed })
}

impl Calibration {
    /// A rate of the scenario that this machine cannot give.
    pub fn exceeded(&self, scenario: &Scenario) -> Option<f64> {
        let hops = scenario.ways.iter().flat_map(|way| &way.hops).map(|hop| &hop.link);
        let rates = scenario.shared.links.iter().chain(hops).filter_map(|link| link.rate);
        rates.map(|rate| rate as f64 / 1e6).filter(|&rate| rate > self.rate_mbit).reduce(f64::max)
    }
}
