//! `--otlp`: the spans into a file, a line for each batch, or to a collector, a POST for each (OTLP/HTTP with JSON).

use crate::failure::say;
use crate::output::Output;
use crate::shown;
use anyhow::bail;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;
use tcpwhy_library::captures::Analysis;
use tcpwhy_report::{Capture, otlp};
use ureq::http::Uri;

/// Where the trace service is, if the address does not say (OTLP specification, "OTLP/HTTP Request").
const PATH: &str = "/v1/traces";
/// A collector that takes longer to answer is taken for dead; exporters of OpenTelemetry wait as long.
const PATIENCE: Duration = Duration::from_secs(10);
/// As much of an answer as is looked at.
const ANSWER: u64 = 64 << 10;

/// Where spans go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Otlp {
    File(PathBuf),
    Collector(String),
}

impl FromStr for Otlp {
    type Err = String;

    fn from_str(text: &str) -> Result<Otlp, String> {
        let Some((scheme, _)) = text.split_once("://") else { return Ok(Otlp::File(text.into())) };
        match scheme.to_ascii_lowercase().as_str() {
            "http" => {}
            "https" => {
                return Err(
                    "TLS is not spoken here: send to a collector on this machine (http://localhost:4318), \
                            or write a file and post it with curl --data-binary @FILE"
                        .into(),
                );
            }
            _ => return Err("a collector's address begins with http://".into()),
        }
        let uri: Uri = text.parse().map_err(|e| format!("no address of a collector: {e}"))?;
        if uri.host().is_none_or(str::is_empty) {
            return Err("the address names no host: http://localhost:4318".into());
        }
        let path = if matches!(uri.path(), "" | "/") { PATH } else { "" };
        Ok(Otlp::Collector(format!("{}{path}", text.trim_end_matches('/'))))
    }
}

impl Otlp {
    /// The file, if it is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Otlp::File(path) => Some(path),
            Otlp::Collector(_) => None,
        }
    }
}

/// An open file, or a collector that will be called.
pub(crate) enum Sink {
    File(Output),
    Collector(String),
}

impl Sink {
    pub(crate) fn open(to: &Otlp) -> anyhow::Result<Sink> {
        Ok(match to {
            Otlp::File(path) => Sink::File(Output::beside(path, "--otlp")?),
            Otlp::Collector(url) => Sink::Collector(url.clone()),
        })
    }

    /// Writes or sends all spans.
    pub(crate) fn write(self, analysis: &Analysis, capture: &Capture, quiet: bool) -> anyhow::Result<()> {
        match self {
            Sink::File(mut out) => {
                let written = otlp::batches(analysis, capture, |bytes, _| -> anyhow::Result<()> {
                    out.write_all(bytes)?;
                    out.write_all(b"\n")?;
                    Ok(())
                });
                out.finish(written)
            }
            Sink::Collector(url) => {
                let sent = send(&url, analysis, capture)?;
                if !quiet {
                    say(&format!("{sent} spans are at {}", shown::name(&url)));
                }
                Ok(())
            }
        }
    }
}

fn send(url: &str, analysis: &Analysis, capture: &Capture) -> anyhow::Result<usize> {
    // What is set for browsers is no way to a collector; and an answer of 307 would send captures elsewhere.
    let config = ureq::Agent::config_builder()
        .proxy(None)
        .max_redirects(0)
        .http_status_as_error(false)
        .timeout_global(Some(PATIENCE))
        .build();
    let agent = ureq::Agent::new_with_config(config);
    let mut sent = 0;
    otlp::batches(analysis, capture, |bytes, n| {
        if let Err(why) = post(&agent, url, bytes) {
            let url = shown::name(url);
            let which = if sent == 0 { "the spans".into() } else { format!("the rest, after {sent} spans") };
            bail!("--otlp: {url} did not take {which}: {why:#}; --otlp FILE writes the spans for later");
        }
        sent += n;
        anyhow::Ok(())
    })?;
    Ok(sent)
}

fn post(agent: &ureq::Agent, url: &str, bytes: &[u8]) -> anyhow::Result<()> {
    let request = agent.post(url).header("content-type", "application/json");
    let mut answer = match request.send(bytes) {
        Ok(answer) => answer,
        Err(ureq::Error::Io(e)) => bail!("{e}"),
        Err(e) => bail!("{e}"),
    };
    let status = answer.status();
    let said = answer.body_mut().with_config().limit(ANSWER).read_to_string().unwrap_or_default();
    if status.is_success() {
        return refused(&said).map_or(Ok(()), |why| bail!("{why}"));
    }
    let hint = match status.as_u16() {
        404 | 405 => ": is it the address of the OTLP/HTTP receiver (port 4318, /v1/traces)?",
        413 => ": it takes smaller requests only",
        415 => ": it does not take JSON",
        429 | 502 | 503 | 504 => ": it is busy; try again later",
        _ => "",
    };
    let said = shown::name(said.lines().next().unwrap_or_default().trim()).into_owned();
    let said: String = said.chars().take(200).collect();
    let said = if said.is_empty() { said } else { format!(" ({said})") };
    bail!("it answered {status}{hint}{said}")
}

/// An answer of success may say that spans were left out (`ExportTracePartialSuccess`).
fn refused(answer: &str) -> Option<String> {
    let answer: serde_json::Value = serde_json::from_str(answer).ok()?;
    let partial = answer.get("partialSuccess")?;
    let count = match partial.get("rejectedSpans")? {
        serde_json::Value::String(n) => n.parse().ok()?,
        n => n.as_i64()?,
    };
    let why = partial.get("errorMessage").and_then(|m| m.as_str()).unwrap_or("it does not say why");
    (count > 0).then(|| format!("it left out {count} of them: {}", shown::name(why)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_addresses() {
        let of = |text: &str| text.parse::<Otlp>();
        let at = |url: &str| Ok(Otlp::Collector(url.into()));
        assert_eq!(of("spans.jsonl"), Ok(Otlp::File("spans.jsonl".into())));
        assert_eq!(of("http:/x"), Ok(Otlp::File("http:/x".into())));
        assert_eq!(of("http://localhost:4318"), at("http://localhost:4318/v1/traces"));
        assert_eq!(of("http://localhost:4318/"), at("http://localhost:4318/v1/traces"));
        assert_eq!(of("HTTP://[::1]:4318/custom"), at("HTTP://[::1]:4318/custom"));
        for bad in ["https://collector.example", "ftp://x", "http://", "http://:4318", "http://a b/"] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_success_may_be_half_of_one() {
        assert_eq!(refused(""), None);
        assert_eq!(refused("{\"partialSuccess\":{}}"), None);
        assert_eq!(refused("{\"partialSuccess\":{\"rejectedSpans\":\"0\"}}"), None);
        let some = refused("{\"partialSuccess\":{\"rejectedSpans\":\"3\",\"errorMessage\":\"too old\"}}");
        assert_eq!(some.as_deref(), Some("it left out 3 of them: too old"));
    }
}
