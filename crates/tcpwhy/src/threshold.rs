//! `--fail-if`: a cause or a class, and the share or time above which the program ends with code 4.

use crate::{units, words};
use std::fmt;
use std::str::FromStr;
use tcpwhy_analysis::Analysis;
use tcpwhy_base::{CAUSES, Cause, Class, Nanos};
use tcpwhy_report::Summary;

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
    Class(Class),
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
            "tcp" => What::Class(Class::Tcp),
            "application" => What::Class(Class::Application),
            "inherent" => What::Class(Class::Inherent),
            "unknown" => What::Class(Class::Unknown),
            id => What::Cause(words::cause(id).map_err(|why| {
                format!("{id:?} is no class (tcp, application, inherent, unknown), and {why}")
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
    /// The sentence to say if the condition holds.
    pub(crate) fn held(&self, analysis: &Analysis, summary: &Summary) -> Option<String> {
        let time = match self.what {
            What::Cause(cause) => summary.time(analysis, cause),
            What::Class(class) => {
                let of_class =
                    CAUSES.iter().filter(|c| c.class == class && c.kind == tcpwhy_base::Kind::Span);
                of_class.fold(Nanos::ZERO, |sum, c| sum + summary.time(analysis, c.cause))
            }
        };
        let share = summary.share(time);
        let holds = match self.limit {
            Limit::Share(limit) => share > limit,
            Limit::Time(limit) => time > limit,
        };
        holds.then(|| format!("{self} holds: {time}, {:.1} % of the time", share * 100.0))
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
        assert_eq!(parsed("tcp > 200ms"), Ok((What::Class(Class::Tcp), Limit::Time(Nanos::millis(200)))));
        assert_eq!(parsed("refused"), Ok((What::Cause(Cause::Refused), Limit::Time(Nanos::ZERO))));
        for wrong in ["", "tcp>", "tcp>5", "tcp>500%", "gremlins>5%", "tcp<5%", "tcp>=5%"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
        assert!(parsed("nagel>5%").unwrap_err().contains("did you mean nagle?"));
        assert!(parsed("tcp<5%").unwrap_err().contains("tcp>5%"));
    }
}
