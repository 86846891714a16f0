use crate::args::Compare;
use crate::failure::{Exit, Usage, say};
use crate::output::{self, Output};
use crate::{cmd, load, shown, units, words};
use anyhow::bail;
use std::path::Path;
use std::slice;
use std::str::FromStr;
use tcpwhy_analysis::{Change, Comparison, Detail};
use tcpwhy_base::{Cause, Nanos};
use tcpwhy_report::compare;

/// What must not grow, and by how much it may: `median>5%`, `p95>10ms`, `retransmission_timeout>1ms`.
#[derive(Clone, Debug)]
pub(crate) struct Growth {
    what: What,
    by: By,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    Median,
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
            "p95" => What::P95,
            id => What::Cause(
                words::cause(id).map_err(|why| format!("{id:?} is neither median nor p95, and {why}"))?,
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
    /// What to say if it grew by more, and not by chance.
    fn held(&self, c: &Comparison) -> Option<String> {
        let none = Change::default();
        let change = match self.what {
            What::Median | What::P95 => &c.all,
            What::Cause(cause) => c.causes.iter().find(|x| x.0 == cause).map_or(&none, |x| &x.1),
        };
        let (before, after) = match self.what {
            What::Median => (change.before.median, change.after.median),
            What::P95 => (change.before.p95, change.after.p95),
            What::Cause(_) => (change.before.mean, change.after.mean),
        };
        let limit = match self.by {
            By::Share(share) => Nanos((before.0 as f64 * share) as i64),
            By::Time(time) => time,
        };
        let sure = self.what == What::P95 || change.is_sure();
        (sure && after - before > limit)
            .then(|| format!("{} holds: {before} before, {after} after", self.text))
    }
}

/// Says whether what lies between two captures made a difference.
pub(crate) fn run(args: &Compare) -> anyhow::Result<Exit> {
    let inputs = [args.before.clone(), args.after.clone()];
    if inputs.iter().any(|p| p.as_os_str() == "-") {
        bail!(Usage("compare needs two files: write standard input to one first".into()));
    }
    output::refuse_overwriting(&[args.output.as_deref(), args.html.as_deref()], &inputs)?;
    let stop = cmd::stop_signal()?;
    let page = args.html.as_deref().map(|path| cmd::extra(path, "--html")).transpose()?;
    let mut sides = Vec::with_capacity(2);
    for path in &inputs {
        match load::load(slice::from_ref(path), Detail::All, args.quiet, &stop)? {
            Ok(loaded) => sides.push(loaded),
            Err(exit) => return Ok(exit),
        }
    }
    let Some(comparison) = tcpwhy_analysis::compare(&sides[0].analysis, &sides[1].analysis) else {
        bail!(Usage(format!(
            "{} and {} share no server, by address or by port: {}",
            shown(&inputs[0]),
            shown(&inputs[1]),
            servers(&sides)
        )));
    };
    let names = inputs.each_ref().map(|p| p.display().to_string());
    let names = [names[0].as_str(), names[1].as_str()];
    let mut out = Output::open(args.output.as_deref(), args.json)?;
    let written = if args.json {
        compare::json(&mut out, &comparison, names)
    } else {
        let shown = names.map(shown::name);
        compare::text(&mut out, &comparison, [&shown[0], &shown[1]])
    };
    let said = out.finish(written.map_err(Into::into));
    if let Some(mut page) = page {
        let written = compare::page(&mut page, &comparison, names);
        page.finish(written.map_err(Into::into))?;
    }
    said?;
    let held: Vec<String> = args.fail_if.iter().filter_map(|g| g.held(&comparison)).collect();
    held.iter().for_each(|reason| say(reason));
    if !args.fail_if.is_empty() && comparison.shapes.is_empty() {
        say("--fail-if cannot be judged: no exchange of the one has a counterpart of its size in the other");
        return Ok(Exit::Unreadable);
    }
    Ok(match held.is_empty() {
        false => Exit::Held,
        true if sides.iter().any(|s| s.damaged) => Exit::Damaged,
        true => Exit::Done,
    })
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// `:80 there, :443 here`.
fn servers(sides: &[load::Loaded]) -> String {
    let of = |s: &load::Loaded| {
        let mut ports: Vec<u16> = s.analysis.connections.iter().map(|c| c.server.port).collect();
        ports.sort_unstable();
        ports.dedup();
        let ports: Vec<String> = ports.iter().take(3).map(|p| format!(":{p}")).collect();
        if ports.is_empty() { "none".to_owned() } else { ports.join(" ") }
    };
    format!("the one has {}, the other {}", of(&sides[0]), of(&sides[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_parsed() {
        let of = |t: &str| t.parse::<Growth>().map(|g| (g.what, g.by));
        assert_eq!(of("median>5%"), Ok((What::Median, By::Share(0.05))));
        assert_eq!(of("p95>10ms"), Ok((What::P95, By::Time(Nanos::millis(10)))));
        assert_eq!(of("nagle"), Ok((What::Cause(Cause::Nagle), By::Time(Nanos::ZERO))));
        assert!(of("speed>5%").is_err() && of("median>x%").is_err());
    }
}
