use crate::args::Causes;
use crate::closed;
use crate::failure::Exit;
use crate::output::Output;
use crate::pages::{class, page};
use anstyle::Style;
use anyhow::Context as _;
use std::fmt::Write as _;
use std::io::Write as _;
use tcpwhy_base::{CAUSES, Cause, Class};
use tcpwhy_report::text::markdown::render;

/// Lists the causes, as text or JSON, or prints the page of one.
pub(crate) fn run(args: &Causes) -> anyhow::Result<Exit> {
    if args.json {
        closed::is_open().context("cannot write standard output")?;
        tcpwhy_report::causes::json(&mut std::io::stdout().lock())?;
        return Ok(Exit::Done);
    }
    let mut out = Output::open(None, false)?;
    let text = text(args.id, out.width.unwrap_or(80).clamp(40, 100));
    let written = out.write_all(text.as_bytes());
    out.finish(written.map_err(Into::into))?;
    Ok(Exit::Done)
}

/// The page of a cause in so many columns, or the list.
pub(crate) fn text(id: Option<Cause>, width: usize) -> String {
    match id {
        None => list(),
        Some(cause) => render(&page(cause.info()), width),
    }
}

fn list() -> String {
    let mut text = String::new();
    for of in [Class::Tcp, Class::Application, Class::Inherent, Class::Unknown] {
        let bold = Style::new().bold();
        let _ = writeln!(text, "{bold}{}{bold:#}", class(of));
        for cause in CAUSES.iter().filter(|c| c.class == of) {
            let live = if cause.live_only { " (only on a live host)" } else { "" };
            let _ = writeln!(text, "  {:<24}{}{live}", cause.id, cause.what);
        }
        text.push('\n');
    }
    text.push_str("tcpwhy causes ID says how one is recognised and what to do about it\n");
    text
}
