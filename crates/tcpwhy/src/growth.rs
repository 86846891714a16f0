//! `compare --fail-if`: what must not grow from one capture to the other.

use crate::{units, words};
use std::str::FromStr;
use tcpwhy_base::{Cause, Nanos};
use tcpwhy_library::{parts::Change, parts::Comparison};

/// What must not grow, and by how much it may: `median>5%`, `mean>5%`, `p95>10ms`, `handshake>1ms`.
#[derive(Clone, Debug)]
pub(crate) struct Growth {
    what: What,
    by: By,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    Median,
    Mean,
    P95,
    Cause(Cause),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum By {
    Share(f64),
    Time(Nanos),
}

impl FromStr for Growth {
    type Err = String;

    fn from_str(text: &str) -> Result<Growth, String> {
        let (what, by) = text.split_once('>').unwrap_or((text, "0ns"));
        let what = match what.trim().replace('-', "_").as_str() {
            "median" => What::Median,
            "mean" => What::Mean,
            "p95" => What::P95,
            id => What::Cause(
                words::cause(id)
                    .map_err(|why| format!("{id:?} is neither median, mean nor p95, and {why}"))?,
            ),
        };
        let by = match by.trim().strip_suffix('%') {
            Some(p) => match p.trim().parse::<f64>() {
                Ok(p) if p >= 0.0 && p.is_finite() => By::Share(p / 100.0),
                _ => return Err(format!("{by:?} is no share: write >5%")),
            },
            None => By::Time(units::duration(by.trim())?),
        };
        Ok(Growth { what, by, text: text.trim().into() })
    }
}

impl Growth {
    /// Why nothing can be said of it, if nothing can: what a few exchanges have in the middle may be chance.
    pub(crate) fn cannot_be_judged(&self, c: &Comparison) -> Option<String> {
        c.all.too_few().then(|| {
            let (before, after) = (c.all.before.count, c.all.after.count);
            format!(
                "--fail-if '{}' cannot be judged: too few exchanges, {before} before and {after} after",
                self.text
            )
        })
    }

    /// What to say if it grew by more, and not by chance.
    pub(crate) fn held(&self, c: &Comparison) -> Option<String> {
        let none = Change::default();
        let change = match self.what {
            What::Median | What::P95 => &c.all,
            What::Mean => &c.mean,
            What::Cause(cause) => c.causes.iter().find(|x| x.0 == cause).map_or(&none, |x| &x.1),
        };
        let (before, after) = match self.what {
            What::Median => (change.before.median, change.after.median),
            What::P95 => (change.before.p95, change.after.p95),
            What::Mean | What::Cause(_) => (change.before.mean, change.after.mean),
        };
        let limit = match self.by {
            By::Share(share) => Nanos((before.0 as f64 * share) as i64),
            By::Time(time) => time,
        };
        let sure = if self.what == What::P95 { change.is_sure_of_p95() } else { change.is_sure() };
        (sure && after - before > limit)
            .then(|| format!("{} holds, so this fails: {before} before, {after} after", self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_parsed() {
        let of = |t: &str| t.parse::<Growth>().map(|g| (g.what, g.by));
        assert_eq!(of("median>5%"), Ok((What::Median, By::Share(0.05))));
        assert_eq!(of("p95>10ms"), Ok((What::P95, By::Time(Nanos::millis(10)))));
        assert_eq!(of("mean > 1ms"), Ok((What::Mean, By::Time(Nanos::millis(1)))));
        assert_eq!(of("nagle"), Ok((What::Cause(Cause::Nagle), By::Time(Nanos::ZERO))));
        assert!(of("speed>5%").is_err() && of("median>x%").is_err());
    }
}
