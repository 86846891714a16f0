//! `--ci`: the answer in the forms that the usual CI systems show.

use crate::output::Output;
use anyhow::Context as _;
use std::env;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use tcpwhy_report::run::Run;

/// What there is to say.
pub(super) struct Said<'a> {
    pub(super) run: &'a Run,
    /// The verdict, one sentence.
    pub(super) headline: &'a str,
    /// All conditions, held or not, as they were given.
    pub(super) conditions: &'a [String],
    /// The answer as text.
    pub(super) text: &'a str,
}

/// Writes `junit.xml` and `summary.md` into `folder`; where a known CI system runs this, adds to what it shows.
pub(super) fn write(folder: &Path, said: &Said<'_>) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let summary = summary(said);
    for (name, text) in [("junit.xml", &junit(said)), ("summary.md", &summary)] {
        let mut out = Output::beside(&folder.join(name), "--ci")?;
        let written = out.write_all(text.as_bytes());
        out.finish(written.map_err(Into::into))?;
    }
    if let Some(path) = env::var_os("GITHUB_STEP_SUMMARY") {
        let append = || File::options().create(true).append(true).open(&path)?.write_all(summary.as_bytes());
        append().with_context(|| format!("cannot write {}", Path::new(&path).display()))?;
    }
    for line in annotations(said, |name| env::var_os(name).is_some()) {
        // Nowhere is left to report a standard error that cannot be written.
        let _ = writeln!(std::io::stderr().lock(), "{line}");
    }
    Ok(())
}

/// A line for each failure in the words of the system, and one for the verdict; none where no such system is known.
fn annotations(said: &Said<'_>, is_set: impl Fn(&str) -> bool) -> Vec<String> {
    let mut lines = Vec::new();
    let all = said.run.failed.iter().map(|f| (true, f.as_str()));
    for (grave, text) in all.chain([(false, said.headline)]) {
        if is_set("GITHUB_ACTIONS") {
            let kind = if grave { "error" } else { "notice" };
            let text = text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
            lines.push(format!("::{kind} title=tcpwhy::{text}"));
        } else if is_set("TF_BUILD") && grave {
            lines.push(format!("##vso[task.logissue type=error]tcpwhy: {}", text.replace('\n', " ")));
        } else if is_set("TEAMCITY_VERSION") && grave {
            let mut quoted = String::new();
            for c in text.chars() {
                match c {
                    '|' | '\'' | '[' | ']' => quoted.extend(['|', c]),
                    '\n' => quoted.push_str("|n"),
                    c if c.is_ascii() => quoted.push(c),
                    c => {
                        let _ = write!(quoted, "|0x{:04x}", u32::from(c));
                    }
                }
            }
            lines.push(format!("##teamcity[buildProblem description='tcpwhy: {quoted}']"));
        }
    }
    lines
}

/// JUnit's XML: the command, and each condition, is a test.
fn junit(said: &Said<'_>) -> String {
    let run = said.run;
    let seconds = run.runs.iter().map(|r| r.duration_ns).sum::<i64>() as f64 / 1e9;
    let worst = run.runs.iter().find(|r| r.exit_code != Some(0));
    let mut cases = vec![(
        xml(&run.command),
        worst.map(|r| match (r.exit_code, r.signal) {
            (Some(code), _) => format!("returned {code}"),
            (None, signal) => format!("was ended by signal {}", signal.unwrap_or(0)),
        }),
    )];
    for condition in said.conditions {
        let held = run.failed.iter().find(|f| f.starts_with(&format!("{condition} ")));
        cases.push((xml(condition), held.cloned()));
    }
    for failed in run.failed.iter().filter(|f| f.starts_with("--")) {
        let name = failed.split(':').take(2).collect::<Vec<_>>().join(":");
        cases.push((xml(&name), Some(failed.clone())));
    }
    let failures = cases.iter().filter(|c| c.1.is_some()).count();
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"tcpwhy\" tests=\"{}\" failures=\"{failures}\" time=\"{seconds:.3}\">\n",
        cases.len()
    );
    for (n, (name, failure)) in cases.iter().enumerate() {
        let time = if n == 0 { format!(" time=\"{seconds:.3}\"") } else { String::new() };
        let _ = write!(out, "  <testcase classname=\"tcpwhy\" name=\"{name}\"{time}");
        let _ = match failure {
            Some(why) => writeln!(out, ">\n    <failure message=\"{}\"/>\n  </testcase>", xml(why)),
            None => writeln!(out, "/>"),
        };
    }
    let _ = write!(out, "  <system-out>{}</system-out>\n</testsuite>\n", xml(said.text));
    out
}

/// Text within XML 1.0, which has no place for control characters.
fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Markdown: the verdict, what failed, figures; the whole answer folded.
fn summary(said: &Said<'_>) -> String {
    let (run, figures) = (said.run, &said.run.figures);
    let mut out = format!("### tcpwhy: {}\n\n", said.headline.replace('<', "&lt;"));
    for failed in &run.failed {
        let _ = writeln!(out, "- **{}**", failed.replace('<', "&lt;").replace('*', "\\*"));
    }
    let _ = write!(
        out,
        "\n| | |\n|---|---|\n| command | `{}` |\n| exit code | {} |\n| connections | {} |\n| requests | {} |\n| bytes | {} |\n",
        run.command.replace('`', "'").replace('|', "\\|"),
        run.exit_code,
        figures.connections,
        figures.requests,
        figures.bytes
    );
    if let Some(trips) = figures.round_trips_in_a_row {
        let _ = writeln!(out, "| round trips in a row | {trips} |");
    }
    for (cause, n) in &figures.stalls {
        let _ = writeln!(out, "| stalls by {cause} | {n} |");
    }
    let text = said.text.replace("```", "'''");
    let _ =
        write!(out, "\n<details><summary>The whole answer</summary>\n\n```text\n{text}\n```\n\n</details>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use tcpwhy_report::run::{Figures, Once};

    fn run() -> Run {
        Run {
            command: "sh -c 'a < b && c'".into(),
            runs: vec![Once { duration_ns: 1_500_000_000, exit_code: Some(0), signal: None }],
            exit_code: 4,
            failed: vec![
                "tcp>5% holds: 1 s, 50 % of the time".into(),
                "--baseline: requests: 9, and 1 before".into(),
            ],
            figures: Figures { requests: 9, ..Figures::default() },
            ..Run::default()
        }
    }

    #[test]
    fn junit_counts_the_command_and_each_condition() {
        let run = run();
        let conditions = ["tcp>5%".to_owned(), "nagle>1%".to_owned()];
        let said = Said { run: &run, headline: "slow", conditions: &conditions, text: "a\u{1b}[1m<b>" };
        let xml = junit(&said);
        assert!(xml.contains("tests=\"4\" failures=\"2\" time=\"1.500\""), "{xml}");
        assert!(xml.contains("name=\"sh -c 'a &lt; b &amp;&amp; c'\" time=\"1.500\"/>"), "{xml}");
        assert!(xml.contains("name=\"nagle&gt;1%\"/>"), "{xml}");
        assert!(xml.contains("name=\"--baseline: requests\">"), "{xml}");
        assert!(!xml.contains('\u{1b}'));
        assert!(summary(&said).contains("- **tcp>5% holds"));
    }

    #[test]
    fn annotations_are_those_of_the_system() {
        let run = run();
        let said = Said { run: &run, headline: "half | slow", conditions: &[], text: "" };
        assert!(annotations(&said, |_| false).is_empty());
        let github = annotations(&said, |name| name == "GITHUB_ACTIONS");
        assert_eq!(github[0], "::error title=tcpwhy::tcp>5%25 holds: 1 s, 50 %25 of the time");
        assert_eq!(github[2], "::notice title=tcpwhy::half | slow");
        assert_eq!(annotations(&said, |name| name == "TEAMCITY_VERSION").len(), 2);
        assert_eq!(annotations(&said, |name| name == "TF_BUILD").len(), 2);
    }
}
