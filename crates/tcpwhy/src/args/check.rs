//! `tcpwhy check`.

use crate::units;
use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Args, Command, ValueHint};
use std::ffi::OsStr;
use std::path::PathBuf;
use tcpwhy_base::Nanos;
use tcpwhy_live::check::IDS;

/// What the exit codes mean here.
pub(crate) const EXIT_CODES: &str = "\
Exit codes: 0 done, whatever was found; 2 usage, 3 the kernel could not be asked, 4 a --fail-if held, 130 interrupted (^C; what \
was found until then is printed).";

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// How long to look (500ms to 24h)
    #[arg(long, value_name = "TIME", value_parser = watch, default_value = "10s")]
    pub(crate) watch: Nanos,
    /// Of another network namespace: a file such as /proc/PID/ns/net or /run/netns/NAME (needs root)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) netns: Option<PathBuf>,

    /// Faults that are known: ID, or ID@SUBJECT for that of one listener, connection or destination
    #[arg(long, value_name = "ID[,ID]", value_delimiter = ',', value_parser = Faults(known), hide_possible_values = true, help_heading = "Questions")]
    pub(crate) acknowledge: Vec<Known>,
    /// The same from a file, one a line; what stands behind # is why
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Questions")]
    pub(crate) acknowledged: Option<PathBuf>,
    /// End with code 4 if there is such a fault that is not acknowledged: ID, or any
    #[arg(long, value_name = "ID", value_delimiter = ',', value_parser = Faults(id_or_any), hide_possible_values = true, help_heading = "Questions")]
    pub(crate) fail_if: Vec<String>,

    /// One JSON document (docs/schema/check-1.json)
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// All fixes, and what cannot be seen
    #[arg(short, long, help_heading = "Output")]
    pub(crate) verbose: bool,
}

/// Faults as arguments, and shells complete their ids.
#[derive(Clone, Copy)]
struct Faults<T>(fn(&str) -> Result<T, String>);

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Faults<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, clap::Error> {
        let text = value.to_string_lossy();
        self.0(&text).map_err(|why| {
            let place = arg.map_or(String::new(), |a| format!(" for '{a}'"));
            let message = format!("invalid value '{text}'{place}: {why}");
            command.clone().error(ErrorKind::ValueValidation, message)
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        // `any` is no fault that is known of.
        let all = IDS.iter().copied().chain(["any"]).filter(|id| self.0(id).is_ok());
        Some(Box::new(all.map(PossibleValue::new)))
    }
}

/// A fault that somebody knows of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    id: String,
    /// None: whatever it is about.
    subject: Option<String>,
}

impl Known {
    /// Whether it is this one.
    pub(crate) fn is(&self, id: &str, subject: &str) -> bool {
        self.id == id && self.subject.as_deref().is_none_or(|s| s == subject)
    }
}

/// `ID` or `ID@SUBJECT`.
pub(crate) fn known(text: &str) -> Result<Known, String> {
    let (id, subject) = text.split_once('@').map_or((text, None), |(id, s)| (id, Some(s.to_owned())));
    Ok(Known { id: named(id.trim())?, subject })
}

fn id_or_any(text: &str) -> Result<String, String> {
    if text == "any" { Ok(text.into()) } else { named(text) }
}

fn named(id: &str) -> Result<String, String> {
    if IDS.contains(&id) {
        return Ok(id.into());
    }
    Err(format!("there is no such fault; there are {}", IDS.join(", ")))
}

fn watch(text: &str) -> Result<Nanos, String> {
    let time = units::duration(text)?;
    if (Nanos::millis(500)..=Nanos::secs(86_400)).contains(&time) {
        Ok(time)
    } else {
        Err("look for 500ms to 24h".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_known_by_id_and_subject() {
        let one = known("listener-behind@[::]:80").unwrap();
        assert!(one.is("listener-behind", "[::]:80") && !one.is("listener-behind", "0.0.0.0:80"));
        assert!(known("listener-behind").unwrap().is("listener-behind", "anything"));
        assert!(known("listener").is_err() && id_or_any("any").is_ok() && id_or_any("all").is_err());
    }
}
