//! Words that are nearly known: what a person who mistyped one may have meant.

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use std::ffi::OsStr;
use tcpwhy_base::{CAUSES, Cause};

/// The word among `known` that `word` is most like; none if it is like none of them. Transposed letters count
/// as one slip; one slip is allowed for every three letters. A part of a word will do, if it is long enough
/// to mean something.
pub(crate) fn near<'a>(word: &str, known: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let word = word.to_lowercase();
    let slips = |k: &str| strsim::damerau_levenshtein(&word, k);
    let closest = known.clone().min_by_key(|k| slips(k)).filter(|k| slips(k) <= word.len().div_ceil(3));
    closest.filter(|_| !word.is_empty()).or_else(|| {
        let long = word.len() >= 3;
        known.clone().find(|k| long && (k.contains(word.as_str()) || word.contains(k)))
    })
}

/// A cause by its id, with - for _ as well; a near miss is offered.
pub(crate) fn cause(id: &str) -> Result<Cause, String> {
    let id = id.trim().replace('-', "_");
    Cause::from_id(&id).ok_or_else(|| match near(&id, CAUSES.iter().map(|c| c.id)) {
        Some(near) => format!("no such cause; did you mean {near}?"),
        None => "no such cause; `tcpwhy causes` lists them".into(),
    })
}

/// Causes as arguments: [`cause`], and shells complete them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CauseParser;

impl TypedValueParser for CauseParser {
    type Value = Cause;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Cause, clap::Error> {
        let text = value.to_string_lossy();
        cause(&text).map_err(|why| {
            let place = arg.map_or(String::new(), |a| format!(" for '{a}'"));
            let message = format!("invalid value '{text}'{place}: {why}");
            command.clone().error(ErrorKind::ValueValidation, message)
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(CAUSES.iter().map(|c| PossibleValue::new(c.id))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_forgive() {
        assert_eq!(cause("nagle-delayed-ack"), Ok(Cause::NagleDelayedAck));
        assert_eq!(cause(" nagle "), Ok(Cause::Nagle));
        let meant = |word: &str| cause(word).unwrap_err();
        assert!(meant("nagel").contains("did you mean nagle?"));
        assert!(meant("slow_strat").contains("did you mean slow_start?"));
        assert!(meant("window").contains("did you mean"));
        for nothing in ["", "x", "ab", "gremlins"] {
            assert!(meant(nothing).contains("tcpwhy causes"), "{nothing}");
        }
    }

    #[test]
    fn one_slip_for_three_letters() {
        let known = ["predict", "explain", "lab"];
        let meant = |word| near(word, known.into_iter());
        assert_eq!(
            (meant("predcit"), meant("preidct"), meant("LAB")),
            (Some("predict"), Some("predict"), Some("lab"))
        );
        assert_eq!((meant("expalin"), meant("plain")), (Some("explain"), Some("explain")));
        assert_eq!((meant("capture"), meant("la"), meant("")), (None, Some("lab"), None));
    }
}
