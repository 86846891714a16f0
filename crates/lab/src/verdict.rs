//! A measured figure against what was published and what theory says.

use crate::LabError;
use crate::measure::Unit;
use crate::scenario::{Control, Expect, Scenario, Stated};
use serde::Serialize;

/// How a figure stands to what was expected of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is the published figure, within the tolerance.
    AsPublished,
    /// It is not the published figure, but the one that the scenario expects, and the scenario says why.
    Explained,
    /// Nothing was published; it is what the scenario expects.
    AsExpected,
    /// It is something else.
    NotAsExpected,
    /// It is something else, but the machine disturbed the run.
    Disturbed,
    /// The scenario expects nothing of this, or was changed.
    NotJudged,
}

impl Verdict {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::AsPublished => "as published",
            Verdict::Explained => "deviates, explained",
            Verdict::AsExpected => "as expected",
            Verdict::NotAsExpected => "NOT as expected",
            Verdict::Disturbed => "DISTURBED",
            Verdict::NotJudged => "not judged",
        }
    }
}

/// The figures that a measured one is compared with.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Figures {
    /// What was published, for the published size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<f64>,
    /// What theory says, for the size that was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub theory: Option<f64>,
    /// What the scenario expects of a current kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<f64>,
    /// What the scenario expects of the other pattern that a run may fall into.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub or: Option<f64>,
}

impl Scenario {
    /// The figures that are expected. `path_ms` is the calibrated round trip of the path without delay, `against` the
    /// figure of the run that the expectation is stated against; without it nothing that needs it is known yet.
    pub fn figures(&self, path_ms: f64, against: Option<f64>) -> Result<Figures, LabError> {
        let Some(expect) = &self.expect else { return Ok(Figures::default()) };
        let mut names = self.names(path_ms);
        if expect.against.is_some() {
            let Some(figure) = against else { return Ok(Figures::default()) };
            names.insert("against", figure);
        }
        let reckon = |formula: &crate::Formula| formula.value(&names).map_err(LabError::Scenario);
        let stated = |s: &Option<Stated>| s.as_ref().and_then(|s| s.value.as_ref()).map(reckon).transpose();
        let published = stated(&expect.published)?;
        let theory = stated(&expect.theory)?;
        let expected = match &expect.value {
            Some(formula) => Some(reckon(formula)?),
            None => theory.or(published.map(|p| p / expect.scale)),
        };
        let or = expect.or.as_ref().map(reckon).transpose()?;
        Ok(Figures { published, theory, expected, or })
    }
}

impl Scenario {
    /// The figure that a control of its expectation has, and by how much it may differ. `self` is the scenario with
    /// the control's keys set, `measured` the figure without them.
    pub fn control_figure(
        &self,
        control: &Control,
        path_ms: f64,
        measured: f64,
    ) -> Result<(f64, f64), LabError> {
        let mut names = self.names(path_ms);
        names.insert("measured", measured);
        let value = control.value.value(&names).map_err(LabError::Scenario)?;
        Ok((value, value.abs() * control.tolerance + control.slack))
    }
}

impl Expect {
    /// By how much a figure may differ from `from`.
    pub fn allowed(&self, from: f64) -> f64 {
        from.abs() * self.tolerance + self.slack
    }

    /// Judges a measured figure. `changed`: the experiment is not the published one, because keys were set.
    /// Of such a one nothing is expected: it may still be what a formula says, but it cannot be wrong.
    pub fn judge(&self, measured: f64, figures: &Figures, changed: bool, disturbed: bool) -> Verdict {
        let near = |figure: f64, measured: f64| (measured - figure).abs() <= self.allowed(figure);
        let published = figures.published.filter(|_| !changed).map(|p| near(p, measured * self.scale));
        let or = figures.or.is_some_and(|o| near(o, measured));
        let expected = figures.expected.map(|e| or || near(e, measured));
        // A figure that was put down as a number does not follow what was set.
        let fixed = self.value.as_ref().or(self.theory.as_ref().and_then(|t| t.value.as_ref()));
        if changed && !fixed.is_some_and(crate::Formula::is_formula) {
            return Verdict::NotJudged;
        }
        match (published, expected) {
            (Some(true), _) => Verdict::AsPublished,
            (Some(false), Some(true)) if self.deviation.is_some() => Verdict::Explained,
            // Published in words only, and contradicted by what is measured.
            (None, Some(true)) if self.deviation.is_some() => Verdict::Explained,
            (None, Some(true)) => Verdict::AsExpected,
            (None, None) => Verdict::NotJudged,
            _ if changed => Verdict::NotJudged,
            _ if disturbed => Verdict::Disturbed,
            _ => Verdict::NotAsExpected,
        }
    }

    /// Of what it measures.
    pub fn unit(&self) -> Unit {
        self.measure.unit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(expect: &str, measured: f64, set: &[&str]) -> Verdict {
        let text = format!(
            "title = 't'\n[link]\nrtt_ms = 20\n[workload]\nrequest = [1]\n[expect]\nmeasure = 'elapsed'\n{expect}\n"
        );
        let set: Vec<String> = set.iter().map(|s| (*s).to_owned()).collect();
        let scenario = Scenario::parse(&text, &set).unwrap();
        let figures = scenario.figures(0.0, None).unwrap();
        scenario.expect.unwrap().judge(measured, &figures, !set.is_empty(), false)
    }

    #[test]
    fn verdicts() {
        let plain = "published = { value = 40 }\ntheory = { value = '2 * rtt' }";
        assert_eq!(judge(plain, 41.0, &[]), Verdict::AsPublished);
        assert_eq!(judge(plain, 60.0, &[]), Verdict::NotAsExpected);
        let other = format!("{plain}\nvalue = 60");
        assert_eq!(judge(&other, 60.0, &[]), Verdict::NotAsExpected, "nobody says why");
        assert_eq!(judge(&format!("{other}\ndeviation = 'so'"), 60.0, &[]), Verdict::Explained);
        assert_eq!(judge("theory = { value = 'rtt' }", 20.5, &[]), Verdict::AsExpected);
        let two = "theory = { value = 'rtt' }\nor = 5";
        assert_eq!(judge(two, 5.1, &[]), Verdict::AsExpected);
        assert_eq!(judge(two, 12.0, &[]), Verdict::NotAsExpected);
        assert_eq!(judge("published = { value = 400 }\nscale = 10", 41.0, &[]), Verdict::AsPublished);
    }

    #[test]
    fn a_share_of_another_run_can_be_too_low_and_too_high() {
        let text = "title = 't'\nworkload.request = [1]\n[expect]\nmeasure = 'elapsed'\nvalue = '2 * against'\n\
                    tolerance = 0.25\nagainst = { set = { 'workload.requests' = 2 } }\n";
        let scenario = Scenario::parse(text, &[]).unwrap();
        assert_eq!(scenario.figures(0.0, None).unwrap().expected, None);
        let figures = scenario.figures(0.0, Some(10.0)).unwrap();
        let expect = scenario.expect.unwrap();
        let of = |ms| expect.judge(ms, &figures, false, false);
        assert_eq!(
            [of(14.0), of(20.0), of(26.0)],
            [Verdict::NotAsExpected, Verdict::AsExpected, Verdict::NotAsExpected]
        );
        assert!(Scenario::parse(&text.replace("against = {", "deviation = 'x' #"), &[]).is_err());
    }

    #[test]
    fn what_was_changed_is_compared_with_formulas_only() {
        let plain = "published = { value = 40 }\ntheory = { value = '2 * rtt' }";
        assert_eq!(judge(plain, 80.0, &["link.rtt_ms=40"]), Verdict::AsExpected);
        assert_eq!(judge(plain, 40.0, &["link.rtt_ms=40"]), Verdict::NotJudged);
        assert_eq!(judge("published = { value = 40 }", 80.0, &["link.rtt_ms=40"]), Verdict::NotJudged);
    }
}
