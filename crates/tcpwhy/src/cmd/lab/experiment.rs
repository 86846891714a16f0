//! One experiment as often as it takes, and its figure.

use super::patterns::Seen;
use crate::{lab_result, shown};
use serde::Serialize;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tcpwhy_lab::{
    Calibration, Control, Expect, Figures, LabError, Lateness, Measure, Run, Scenario, Unit, Verdict, median,
    run_until,
};
use tcpwhy_report::predict::Pattern;

/// So often is a disturbed run made again before its figure is judged.
const ATTEMPTS: u32 = 3;

/// What one experiment gave.
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    pub(super) name: String,
    pub(super) title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) source: Option<String>,
    /// Of a sweep: the key and its value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) at: Option<String>,
    pub(super) verdict: Verdict,
    #[serde(flatten)]
    pub(super) figures: Figures,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) measure: Option<String>,
    pub(super) unit: Unit,
    /// The keys that were set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) changed: Vec<String>,
    /// What is expected of the experiment as it is without them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) unchanged: Option<f64>,
    /// The figure of the run that the expectation is stated against.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) against: Option<f64>,
    /// Median of `runs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) measured: Option<f64>,
    /// `measured`, for the published size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) scaled: Option<f64>,
    pub(super) runs: Vec<f64>,
    /// What the requests of several runs fall into, the usual pattern first; empty where all go as they usually go.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) requests: Vec<Pattern>,
    /// By how much the figure may differ from the one expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) allowed: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) published_text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) theory_text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) deviation: Option<String>,
    /// How that reason was checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) control: Option<Checked>,
    /// Why it was not made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) skipped: Option<String>,
    pub(super) disturbed: bool,
    pub(super) attempts: u32,
    pub(super) lateness: Lateness,
    pub(super) steal: f64,
    pub(super) busy: f64,
    pub(super) lost_up: u64,
    pub(super) lost_down: u64,
    pub(super) cut_off: bool,
    /// The last run, for a closer look.
    #[serde(skip)]
    pub(super) last: Option<Box<Run>>,
}

/// The experiment without what the reason blames.
#[derive(Debug, Serialize)]
pub(super) struct Checked {
    /// What was different.
    pub(super) set: String,
    pub(super) measured: Option<f64>,
    pub(super) expected: f64,
    pub(super) confirmed: bool,
}

/// What is made beside an experiment.
pub(super) struct Beside<'a> {
    pub(super) control: Option<(&'a Control, &'a Scenario)>,
    pub(super) against: Option<&'a Scenario>,
    /// The experiment without the keys that were set: it gives a figure to compare with and is not run.
    pub(super) unchanged: Option<&'a Scenario>,
}

/// How experiments are made.
pub(super) struct Setting<'a> {
    pub(super) calibration: &'a Calibration,
    pub(super) stop: &'a AtomicBool,
    pub(super) runs: Option<u32>,
    /// Keys that were set, as `key=value`: the experiment is then not the published one.
    pub(super) set: &'a [String],
    pub(super) full: bool,
}

impl Setting<'_> {
    /// Makes one experiment.
    pub(super) fn make(
        &self,
        name: &str,
        scenario: &Scenario,
        at: Option<String>,
        beside: Beside<'_>,
        keep: Option<&Path>,
    ) -> Result<Outcome, LabError> {
        let figures = scenario.figures(self.calibration.path_ms, None)?;
        let mut outcome = Outcome::new(name, scenario, at, figures);
        outcome.changed =
            self.set.iter().map(|s| s.split('=').next().unwrap_or(s).trim().to_owned()).collect();
        if let Some(unchanged) = beside.unchanged {
            outcome.unchanged = unchanged.figures(self.calibration.path_ms, None)?.expected;
        }
        if let Some(rate) = self.calibration.exceeded(scenario) {
            outcome.skipped = Some(format!(
                "{rate} Mbit/s asked for, but the link of this machine gives {:.0} Mbit/s at most",
                self.calibration.rate_mbit
            ));
            return Ok(outcome);
        }
        let expect = self.expect(scenario);
        let expect = expect.as_ref();
        let wanted = self.runs.unwrap_or(expect.map_or(1, |e| e.runs)).max(1);
        if let Some(other) = beside.against {
            outcome.against = self.figure_of(other, wanted)?;
            outcome.figures = scenario.figures(self.calibration.path_ms, outcome.against)?;
        }
        let mut seen = Seen::default();
        while (outcome.attempts as usize) < wanted as usize {
            outcome.attempts += 1;
            let mut last = None;
            for attempt in 1..=ATTEMPTS {
                let run = match run_until(scenario, self.stop) {
                    Ok(run) => run,
                    Err(e @ LabError::Missing { .. }) => {
                        outcome.skipped = Some(shown::text(&e.to_string()).into_owned());
                        return Ok(outcome);
                    }
                    Err(e) => return Err(e),
                };
                // The figure is right all the same, or a disturbance cannot be the reason.
                let good = expect.is_none_or(|e| {
                    let judged =
                        run.figure(&e.measure).map(|f| e.judge(f, &outcome.figures, self.is_changed(), true));
                    judged.is_some_and(|verdict| verdict != Verdict::Disturbed)
                });
                let enough = good || !run.traffic.disturbed || attempt == ATTEMPTS;
                last = Some(run);
                if enough || self.stop.load(Relaxed) {
                    break;
                }
            }
            let Some(run) = last else { break };
            outcome.take(&run, scenario);
            // Lost packets make as many patterns as there are draws.
            if wanted > 1 && run.traffic.lost.is_empty() {
                seen.take(&run);
            }
            outcome.last = Some(Box::new(run));
            if self.stop.load(Relaxed) {
                break;
            }
        }
        outcome.requests = seen.patterns(scenario);
        outcome.judge(expect, self.is_changed());
        if outcome.verdict == Verdict::Explained
            && let Some((control, scenario)) = beside.control
            && !self.stop.load(Relaxed)
        {
            self.check(&mut outcome, control, scenario)?;
        }
        if let (Some(directory), Some(run)) = (keep, &outcome.last) {
            lab_result::forget(directory);
            run.write(directory).map_err(|why| LabError::Failed {
                what: format!("write into {}", directory.display()),
                why,
            })?;
        }
        Ok(outcome)
    }

    fn is_changed(&self) -> bool {
        !self.set.is_empty()
    }

    /// The median of so many runs, each made again while it is disturbed.
    fn figure_of(&self, scenario: &Scenario, wanted: u32) -> Result<Option<f64>, LabError> {
        let measure = scenario.expect.as_ref().map_or(Measure::Elapsed, |e| e.measure.clone());
        let mut figures = Vec::new();
        for _ in 0..wanted {
            for attempt in 1..=ATTEMPTS {
                let run = run_until(scenario, self.stop)?;
                if !run.traffic.disturbed || attempt == ATTEMPTS || self.stop.load(Relaxed) {
                    figures.extend(run.figure(&measure));
                    break;
                }
            }
            if self.stop.load(Relaxed) {
                break;
            }
        }
        Ok(median(&figures))
    }

    /// Takes away what the reason of a deviation blames: if the figure does not follow, it was not the reason.
    fn check(&self, outcome: &mut Outcome, control: &Control, scenario: &Scenario) -> Result<(), LabError> {
        let (expected, allowed) =
            scenario.control_figure(control, self.calibration.path_ms, outcome.measured.unwrap_or(0.0))?;
        let measure = scenario.expect.as_ref().map_or(Measure::Elapsed, |e| e.measure.clone());
        let mut checked = Checked { set: control.words(), measured: None, expected, confirmed: false };
        let mut disturbed = false;
        for _ in 1..=ATTEMPTS {
            let run = run_until(scenario, self.stop)?;
            checked.measured = run.figure(&measure);
            checked.confirmed = checked.measured.is_some_and(|m| (m - expected).abs() <= allowed);
            disturbed = run.traffic.disturbed;
            if checked.confirmed || !disturbed || self.stop.load(Relaxed) {
                break;
            }
        }
        if !checked.confirmed && !self.stop.load(Relaxed) {
            outcome.verdict = if disturbed { Verdict::Disturbed } else { Verdict::NotAsExpected };
        }
        outcome.control = Some(checked);
        Ok(())
    }

    /// What is expected; at the published size nothing is scaled.
    fn expect(&self, scenario: &Scenario) -> Option<Expect> {
        let expect = scenario.expect.clone()?;
        let scale = if self.full && !expect.full.is_empty() { 1.0 } else { expect.scale };
        Some(Expect { scale, ..expect })
    }
}

impl Outcome {
    /// Nothing measured yet.
    pub(super) fn new(name: &str, scenario: &Scenario, at: Option<String>, figures: Figures) -> Outcome {
        let expect = scenario.expect.as_ref();
        let text = |s: Option<&tcpwhy_lab::Stated>| s.and_then(|s| s.text.clone());
        Outcome {
            name: name.into(),
            title: scenario.title.clone(),
            source: scenario.source.clone(),
            at,
            verdict: Verdict::NotJudged,
            figures,
            measure: expect.map(|e| e.measure.to_string()),
            unit: expect.map_or(Unit::Ms, Expect::unit),
            changed: Vec::new(),
            unchanged: None,
            against: None,
            measured: None,
            scaled: None,
            runs: Vec::new(),
            requests: Vec::new(),
            allowed: None,
            published_text: text(expect.and_then(|e| e.published.as_ref())),
            theory_text: text(expect.and_then(|e| e.theory.as_ref())),
            deviation: expect.and_then(|e| e.deviation.clone()),
            control: None,
            skipped: None,
            disturbed: false,
            attempts: 0,
            lateness: Lateness::default(),
            steal: 0.0,
            busy: 0.0,
            lost_up: 0,
            lost_down: 0,
            cut_off: false,
            last: None,
        }
    }

    /// Published, measured and in theory, all for the published size, so that they can stand side by side.
    pub(super) fn compared(&self) -> [Option<f64>; 3] {
        // The theory is for what was run, the published figure for the published size: so is what stands between them.
        let factor = self.scaled.zip(self.measured).map_or(1.0, |(s, m)| if m == 0.0 { 1.0 } else { s / m });
        let figures = &self.figures;
        let theory = figures.theory.or(figures.expected.filter(|_| figures.published.is_none()));
        [figures.published, self.scaled.or(self.measured), theory.map(|t| t * factor)]
    }

    fn take(&mut self, run: &Run, scenario: &Scenario) {
        let traffic = &run.traffic;
        let measure = scenario.expect.as_ref().map_or(Measure::Elapsed, |e| e.measure.clone());
        self.runs.extend(run.figure(&measure));
        self.disturbed |= traffic.disturbed;
        self.lateness = traffic.lateness.clone();
        (self.steal, self.busy) = (traffic.machine.steal, traffic.machine.busy);
        (self.lost_up, self.lost_down) = (traffic.up.lost.values().sum(), traffic.down.lost.values().sum());
        self.cut_off |= run.cut_off;
    }

    fn judge(&mut self, expect: Option<&Expect>, changed: bool) {
        self.measured = median(&self.runs);
        let Some(expect) = expect else { return };
        self.allowed = self.figures.expected.map(|e| expect.allowed(e));
        let Some(measured) = self.measured else {
            self.verdict = if self.disturbed { Verdict::Disturbed } else { Verdict::NotAsExpected };
            return;
        };
        self.scaled = (expect.scale != 1.0).then_some(measured * expect.scale);
        self.verdict = expect.judge(measured, &self.figures, changed, self.disturbed);
    }
}
