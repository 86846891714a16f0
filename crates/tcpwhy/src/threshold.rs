//! `--fail-if`: a cause or an owner, and the share or time above which the program ends with code 4.

use crate::{units, words};
use std::fmt;
use std::str::FromStr;
use tcpwhy_base::{Cause, Class, Kind, Nanos, Owner};
use tcpwhy_library::captures::Analysis;
use tcpwhy_report::Answer;

/// One condition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Threshold {
    what: What,
    limit: Limit,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Cause(Cause),
    /// All causes of one owner.
    Owner(Owner),
    /// All causes of class I, the price of this path and these sizes.
    Inherent,
}

impl What {
    fn is_meant(self, cause: Cause) -> bool {
        match self {
            What::Cause(what) => cause == what,
            What::Owner(owner) => cause.owner() == owner,
            What::Inherent => cause.class() == Class::Inherent,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    Share(f64),
    Time(Nanos),
}

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Threshold, String> {
        if text.contains(['<', '=']) {
            return Err(format!("{text:?}: a condition is that there is more of something, as in tcp>5%"));
        }
        let (what, limit) = text.split_once('>').unwrap_or((text, "0ns"));
        let what = match what.trim().replace('-', "_").as_str() {
            "tcp" => What::Owner(Owner::Tcp),
            "application" => What::Owner(Owner::Application),
            "path" => What::Owner(Owner::Path),
            "inherent" => What::Inherent,
            // Class U and no owner are the same causes.
            "unknown" | "none" => What::Owner(Owner::None),
            id => What::Cause(words::cause(id).map_err(|why| {
                format!(
                    "{id:?} is no owner (tcp, application, path), neither inherent nor unknown, and {why}"
                )
            })?),
        };
        let limit = limit.trim();
        let limit = match limit.strip_suffix('%') {
            Some(percent) => match percent.trim().parse::<f64>() {
                Ok(p) if (0.0..=100.0).contains(&p) => Limit::Share(p / 100.0),
                _ => return Err(format!("{limit:?} is no share: write >5%")),
            },
            None => Limit::Time(units::duration(limit)?),
        };
        Ok(Threshold { what, limit, text: text.trim().into() })
    }
}

impl Threshold {
    /// The sentence to say if the condition holds. A share is of the time of requests, as text and page show it; a time
    /// also counts what lies between them.
    pub(crate) fn held(&self, analysis: &Analysis, answer: &Answer) -> Option<String> {
        let (requests, idle) = self.time(analysis, answer);
        let share = answer.share(requests);
        let (holds, time) = match self.limit {
            Limit::Share(limit) => (share > limit, requests),
            Limit::Time(limit) => (requests + idle > limit, requests + idle),
        };
        holds.then(|| {
            format!("{self} holds, so this fails: {time}, {:.1} % of the time of requests", share * 100.0)
        })
    }

    /// In requests, and between them.
    fn time(&self, analysis: &Analysis, answer: &Answer) -> (Nanos, Nanos) {
        if let What::Cause(cause) = self.what
            && cause.info().kind == Kind::Finding
        {
            let cost = analysis.findings.iter().filter(|f| f.cause == cause);
            return (cost.fold(Nanos::ZERO, |sum, f| sum + f.of_requests()), Nanos::ZERO);
        }
        let meant = answer.causes.iter().filter(|p| self.what.is_meant(p.cause));
        meant.fold((Nanos::ZERO, Nanos::ZERO), |sum, p| (sum.0 + p.requests, sum.1 + p.idle))
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions() {
        let parsed = |text: &str| text.parse::<Threshold>().map(|t| (t.what, t.limit));
        assert_eq!(
            parsed("nagle_delayed_ack>5%"),
            Ok((What::Cause(Cause::NagleDelayedAck), Limit::Share(0.05)))
        );
        assert_eq!(parsed("tcp > 200ms"), Ok((What::Owner(Owner::Tcp), Limit::Time(Nanos::millis(200)))));
        assert_eq!(parsed("path>0.5%"), Ok((What::Owner(Owner::Path), Limit::Share(0.005))));
        assert_eq!(parsed("unknown>1%"), Ok((What::Owner(Owner::None), Limit::Share(0.01))));
        assert_eq!(parsed("inherent>90%"), Ok((What::Inherent, Limit::Share(0.9))));
        assert_eq!(parsed("refused"), Ok((What::Cause(Cause::Refused), Limit::Time(Nanos::ZERO))));
        for wrong in ["", "tcp>", "tcp>5", "tcp>500%", "gremlins>5%", "tcp<5%", "tcp>=5%"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
        assert!(parsed("nagel>5%").unwrap_err().contains("did you mean nagle?"));
        assert!(parsed("tcp<5%").unwrap_err().contains("tcp>5%"));
    }
}
