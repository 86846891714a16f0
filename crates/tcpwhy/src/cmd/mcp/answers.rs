//! The tools at work: the same answers as the commands give, as plain text of bounded size.

use super::protocol::Said;
use super::root::Root;
use super::tools::PREDICT;
use crate::args::{Args, Command, Explain};
use crate::cmd::{causes, explain};
use crate::input::{self, Ordered};
use crate::load::{self, Loaded};
use crate::predict::{answer, like, question};
use crate::progress::Progress;
use crate::shown;
use crate::source::Source;
use clap::Parser as _;
use serde_json::{Map, Value};
use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tcpwhy_library::Detail;
use tcpwhy_report::text::Layout;
use tcpwhy_report::{compare, predict};

/// Bytes of an answer as JSON writes it. With what is around it a message stays below 20 kB.
const MOST: usize = 18_000;
/// Columns: lines that are read by a program need no narrow ones.
const WIDTH: usize = 100;

/// What a tool answers. A fault of ours ends the answer, not the program.
pub(super) fn call(name: &str, arguments: &Map<String, Value>, root: &Root, stop: &Arc<AtomicBool>) -> Said {
    let asked = Asked { arguments, root, stop };
    let said = catch_unwind(AssertUnwindSafe(|| asked.answer(name)));
    let said =
        said.unwrap_or_else(|_| Err("tcpwhy failed on this: please report it with the capture".into()));
    said.map(|text| bounded(&text)).map_err(|text| bounded(&text))
}

struct Asked<'a> {
    arguments: &'a Map<String, Value>,
    root: &'a Root,
    stop: &'a Arc<AtomicBool>,
}

impl Asked<'_> {
    fn answer(&self, name: &str) -> Said {
        match name {
            "explain" => self
                .only(&["file", "connection", "names", "top", "verbose"])?
                .explain(&["connection", "top"], &[]),
            "exchange" => {
                let asked = self.only(&["file", "connection", "exchange", "names"])?;
                asked.explain(&["connection", "exchange"], &["connection", "exchange"])
            }
            "why_not" => self.only(&["file", "cause"])?.why_not(),
            "predict" => self.predict(),
            "compare" => self.only(&["before", "after", "names"])?.compare(),
            _ => self.only(&["id"])?.causes(),
        }
    }

    /// Refuses arguments that nobody knows: they would be meant and ignored.
    fn only(&self, known: &[&str]) -> Result<&Self, String> {
        match self.arguments.keys().find(|k| !known.contains(&k.as_str())) {
            Some(other) => Err(format!(
                "there is no argument {:.40}; there are {}",
                shown::name(other),
                known.join(", ")
            )),
            None => Ok(self),
        }
    }

    /// A value as it would be typed.
    fn value(&self, name: &str) -> Result<Option<String>, String> {
        match self.arguments.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.len() <= 4096 => Ok(Some(text.clone())),
            Some(Value::Number(n)) => Ok(Some(n.to_string())),
            Some(_) => Err(format!("{name} is a text or a number")),
        }
    }

    fn needed(&self, name: &str) -> Result<String, String> {
        self.value(name)?.ok_or_else(|| format!("{name} is missing"))
    }

    fn flag(&self, name: &str) -> Result<bool, String> {
        match self.arguments.get(name) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(yes)) => Ok(*yes),
            Some(_) => Err(format!("{name} is true or false")),
        }
    }

    fn file(&self, name: &str) -> Result<PathBuf, String> {
        self.root.file(&self.needed(name)?)
    }

    /// The capture in `path`, analysed.
    fn load(&self, path: &Path, detail: Detail) -> Result<Loaded, String> {
        let Ordered { inputs, unreadable, .. } =
            input::in_order(std::slice::from_ref(&path.to_path_buf()), false, self.stop)
                .map_err(|e| self.relative(&format!("{e:#}")))?;
        if let Some(problem) = unreadable.into_iter().next() {
            return Err(self.relative(&problem));
        }
        if let Some(Err(problem)) = inputs.first().map(|i| i.open().map(drop)) {
            return Err(self.relative(&problem));
        }
        let loaded = load::load_inputs(inputs, Vec::new(), detail, None, &mut Progress::new(true), self.stop);
        match loaded {
            Ok(Ok(loaded)) => Ok(loaded),
            Ok(Err(_)) => {
                Err("it could not be read as a capture of TCP; what is wrong is on standard error".into())
            }
            Err(e) => Err(self.relative(&format!("{e:#}"))),
        }
    }

    /// Without the folders above the root, which are nobody's business.
    fn relative(&self, text: &str) -> String {
        self.root.without(text)
    }

    /// `explain` and `exchange`: the options of the command.
    fn explain(&self, options: &[&str], needed: &[&str]) -> Said {
        let path = self.file("file")?;
        for name in needed {
            self.needed(name)?;
        }
        let mut words: Vec<OsString> = vec!["tcpwhy".into(), "explain".into()];
        for name in options {
            if let Some(value) = self.value(name)? {
                words.push(format!("--{name}={value}").into());
            }
        }
        for name in ["names", "verbose"] {
            if self.flag(name)? {
                words.push(format!("--{name}").into());
            }
        }
        words.extend(["--".into(), path.clone().into()]);
        let Command::Explain(args) = parsed(words)? else {
            return Err("these are no arguments of explain".into());
        };
        let detail = if args.exchange.is_some() { Detail::All } else { Detail::Worst(1_000) };
        self.said(&args, self.load(&path, detail)?)
    }

    fn why_not(&self) -> Said {
        let path = self.file("file")?;
        let cause = format!("--why-not={}", self.needed("cause")?);
        let words = vec!["tcpwhy".into(), "explain".into(), cause.into(), "--".into(), path.clone().into()];
        let Command::Explain(args) = parsed(words)? else {
            return Err("these are no arguments of explain".into());
        };
        self.said(&args, self.load(&path, Detail::Worst(1_000))?)
    }

    fn said(&self, args: &Explain, loaded: Loaded) -> Said {
        let Loaded { inputs, mut analysis, mut capture, .. } = loaded;
        capture.files = capture.files.iter().map(|name| self.relative(name)).collect();
        let source =
            Source { inputs: &inputs, frames_before: &capture.frames_before, window: None, filter: None };
        let file = capture.files.first().map_or_else(String::new, |f| shown::argument(f.as_ref()));
        let layout = Layout {
            width: WIDTH,
            verbose: args.verbose,
            frames_before: capture.frames_before.clone(),
            command: format!("tcpwhy explain {file}"),
            ..Layout::default()
        }
        .with_rows(args.top);
        let mut out = Vec::new();
        let written = explain::narrow(args, &mut analysis).and_then(|()| {
            tcpwhy_library::replay(&mut analysis);
            explain::name(args, &source, &mut analysis)?;
            explain::say_it(&mut out, args, &source, &analysis, &capture, &layout)
        });
        written.map_err(|e| self.relative(&format!("{e:#}")))?;
        let warnings: Vec<String> = capture.warnings.iter().map(|w| format!("note: {}\n", w.text)).collect();
        Ok(plain(&out) + &warnings.concat())
    }

    fn predict(&self) -> Said {
        let known: Vec<&str> = PREDICT.iter().map(|p| p.0).chain(["tls", "like"]).collect();
        self.only(&known)?;
        let mut words: Vec<OsString> = vec!["tcpwhy".into(), "predict".into()];
        for (name, _) in PREDICT {
            if let Some(value) = self.value(name)? {
                words.push(format!("--{name}={value}").into());
            }
        }
        if self.flag("tls")? {
            words.push("--tls".into());
        }
        let file = self.value("like")?.map(|name| self.root.file(&name)).transpose()?;
        if let Some(path) = &file {
            let mut option = OsString::from("--like=");
            option.push(path);
            words.push(option);
        }
        let Command::Predict(args) = parsed(words)? else {
            return Err("these are no arguments of predict".into());
        };
        let prediction = match &file {
            Some(path) => match like::ask(&args, path).map_err(|e| self.relative(&format!("{e:#}")))? {
                Ok(((_, _, prediction), _)) => prediction,
                Err(_) => return Err("the capture could not be read".into()),
            },
            None => {
                let mut asked = question::from_args(&args)?;
                answer::of_runs(&mut asked).map_err(|why| why.to_string())?.1
            }
        };
        let mut out = Vec::new();
        predict::text(&mut out, &prediction, WIDTH, false).map_err(|e| e.to_string())?;
        Ok(plain(&out))
    }

    fn compare(&self) -> Said {
        let names = self.flag("names")?;
        let mut sides = Vec::with_capacity(2);
        for name in ["before", "after"] {
            let mut loaded = self.load(&self.file(name)?, Detail::All)?;
            if names {
                let found = loaded.source().names(&loaded.analysis, false);
                found.map_err(|e| self.relative(&format!("{e:#}")))?.tell(&mut loaded.analysis, true);
            }
            sides.push(loaded);
        }
        let Some(found) = tcpwhy_library::compare_answers(&sides[0].analysis, &sides[1].analysis) else {
            return Err("the two captures share no server, by address or by port".into());
        };
        let files = [self.needed("before")?, self.needed("after")?];
        let mut out = Vec::new();
        compare::text(&mut out, &found, [&shown::name(&files[0]), &shown::name(&files[1])])
            .map_err(|e| e.to_string())?;
        Ok(plain(&out))
    }

    fn causes(&self) -> Said {
        let mut words: Vec<OsString> = vec!["tcpwhy".into(), "causes".into()];
        words.extend(self.value("id")?.into_iter().flat_map(|id| ["--".into(), id.into()]));
        let Command::Causes(args) = parsed(words)? else {
            return Err("these are no arguments of causes".into());
        };
        Ok(plain(causes::text(args.id, WIDTH).as_bytes()))
    }
}

/// As the command line is understood; what is wrong with it in one sentence.
fn parsed(words: Vec<OsString>) -> Result<Command, String> {
    Args::try_parse_from(words).map(|args| args.command).map_err(|e| {
        let said = e.render().to_string();
        let first = said
            .split("\n\nUsage")
            .next()
            .unwrap_or_default()
            .split("\n\nFor more")
            .next()
            .unwrap_or_default();
        shown::text(first.trim_start_matches("error: ").trim()).into_owned()
    })
}

/// Without colours.
fn plain(out: &[u8]) -> String {
    String::from_utf8_lossy(&anstream::adapter::strip_bytes(out).into_vec()).into_owned()
}

/// Whole lines, as many as there is room for.
fn bounded(text: &str) -> String {
    let weight = |line: &str| serde_json::to_string(line).map_or(0, |json| json.len());
    let mut room = MOST;
    let mut kept = 0;
    for line in text.split_inclusive('\n') {
        let weight = weight(line);
        if weight > room {
            let more = text.len() - kept;
            return format!(
                "{}[{more} more bytes are left out: ask for one connection or exchange]\n",
                &text[..kept]
            );
        }
        room -= weight;
        kept += line.len();
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_end_with_a_line() {
        assert_eq!(bounded("a\nb"), "a\nb");
        let long: String = (0..5_000).map(|i| format!("line {i} \u{1b}\u{7f} →\n")).collect();
        let cut = bounded(&long);
        assert!(serde_json::to_string(&cut).is_ok_and(|json| json.len() < MOST + 200));
        assert!(
            cut.contains("\n[") && cut.ends_with("left out: ask for one connection or exchange]\n"),
            "{cut}"
        );
        assert!(bounded(&"x".repeat(30_000)).starts_with("[30000 more bytes"));
    }
}
