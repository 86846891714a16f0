use crate::args::Compare;
use crate::failure::{Exit, Usage, say};
use crate::load::{self, Found};
use crate::output::{self, Output};
use crate::{cmd, shown, spool, taps};
use anyhow::bail;
use std::path::Path;
use std::slice;
use tcpwhy_library::Detail;
use tcpwhy_report::compare;

/// Says whether what lies between two captures made a difference.
pub(crate) fn run(args: &Compare) -> anyhow::Result<Exit> {
    let inputs = [args.before.clone(), args.after.clone()];
    if inputs.iter().any(|p| p.as_os_str() == "-") {
        bail!(Usage("compare needs two files: write standard input to one first".into()));
    }
    output::refuse_overwriting(&[args.output.as_deref(), args.html.as_deref()], &inputs)?;
    let stop = cmd::stop_signal()?;
    let mut found = Vec::with_capacity(2);
    for path in &inputs {
        found.push(Found::among(slice::from_ref(path), true, args.quiet, &stop)?);
    }
    if found.iter().any(|f| spool::interrupted(&f.spools)) {
        say("interrupted: nothing was written");
        return Ok(Exit::Interrupted);
    }
    if let [[before], [after]] = [&found[0].inputs[..], &found[1].inputs[..]]
        && taps::are_two([before, after], &stop)
    {
        let [before, after] = inputs.each_ref().map(|p| shown(p));
        bail!(Usage(format!(
            "{before} and {after} hold the same connections, seen from two ends, and nothing that could have changed between them: \
             `tcpwhy explain {before} {after}` explains them as one"
        )));
    }
    let page = args.html.as_deref().map(|path| Output::beside(path, "--html")).transpose()?;
    let mut sides = Vec::with_capacity(2);
    for found in found {
        match load::load_found(found, Detail::All, args.quiet, &stop)? {
            Ok(mut loaded) => {
                if args.names {
                    loaded.name()?;
                }
                sides.push(loaded);
            }
            Err(exit) => return Ok(exit),
        }
    }
    let Some(comparison) = tcpwhy_library::compare_answers(&sides[0].analysis, &sides[1].analysis) else {
        // The command is right, and so may both captures be: there is nothing to judge.
        bail!(
            "{} and {} share no server, by address or by port: {}",
            shown(&inputs[0]),
            shown(&inputs[1]),
            servers(&sides)
        );
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
    // What is compared by the server alone may be other requests.
    if !args.fail_if.is_empty() && comparison.shapes.iter().all(|s| s.0.is_of_any_size()) {
        say("--fail-if cannot be judged: no exchange of the one has a counterpart of its size in the other");
        return Ok(Exit::Unreadable);
    }
    let held: Vec<String> = args.fail_if.iter().filter_map(|g| g.held(&comparison)).collect();
    held.iter().for_each(|reason| say(reason));
    let unknown: Vec<String> = args.fail_if.iter().filter_map(|g| g.cannot_be_judged(&comparison)).collect();
    unknown.iter().for_each(|reason| say(reason));
    Ok(match held.is_empty() {
        false => Exit::Held,
        true if !unknown.is_empty() => Exit::Unreadable,
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
