use crate::cmd;
use crate::failure::{Exit, Usage, say};
use crate::output::{self, Output};
use crate::predict::args::{Format, Predict, Tap};
#[cfg(target_os = "linux")]
use crate::predict::from_scenario;
use crate::predict::{answer, capture, like, question, sweep};
use std::io::Write;
use std::path::PathBuf;
use tcpwhy_library::model::{Answer, Question};
use tcpwhy_report::predict::{Prediction, text};

/// Asks the model and says what it answers.
pub(crate) fn run(args: &Predict) -> anyhow::Result<Exit> {
    cmd::tidy_up()?;
    let inputs: Vec<PathBuf> = args.scenario.iter().chain(&args.like).cloned().collect();
    output::refuse_overwriting(&[args.output.as_deref(), args.write.as_deref()], &inputs)?;
    if let Some(ranges) = &args.sweep {
        let done = sweep::run(args, ranges).map_err(Usage)?;
        let mut out = Output::open(args.output.as_deref(), args.format != Format::Table)?;
        let written = match args.format {
            Format::Table => done.table(&mut out),
            Format::Csv => done.csv(&mut out),
            Format::Svg => done.svg(&mut out),
        };
        out.finish(written.map_err(Into::into))?;
        return Ok(Exit::Done);
    }
    if let Some(file) = &args.like {
        return match like::ask(args, file)? {
            Ok(((question, found, prediction), exit)) => {
                write_capture(args, &question, &found)?;
                write(args, &prediction)?;
                Ok(exit)
            }
            Err(exit) => Ok(exit),
        };
    }
    let mut asked = match &args.scenario {
        #[cfg(target_os = "linux")]
        Some(file) => from_scenario::asked(file)?,
        #[cfg(not(target_os = "linux"))]
        Some(_) => bail!(Usage("scenarios of the lab are read on Linux only".into())),
        None => question::from_args(args).map_err(Usage)?,
    };
    let (found, prediction) = answer::of_runs(&mut asked).map_err(|why| Usage(why.to_string()))?;
    write_capture(args, &asked.question, &found)?;
    write(args, &prediction)
}

/// The packets of the run, where they are wanted.
fn write_capture(args: &Predict, question: &Question, found: &Answer) -> anyhow::Result<()> {
    let Some(path) = &args.write else { return Ok(()) };
    let mut out = Output::beside(path, "--write")?;
    let written = capture::write(&mut out, question, found, u8::from(args.tap == Tap::Server));
    let packets = *written.as_ref().unwrap_or(&0);
    out.finish(written.map(drop).map_err(Into::into))?;
    say(&format!("{packets} packets at the {} are in {}", args.tap.name(), path.display()));
    Ok(())
}

fn write(args: &Predict, prediction: &Prediction) -> anyhow::Result<Exit> {
    let mut out = Output::open(args.output.as_deref(), args.json)?;
    let width = out.width.unwrap_or(100).clamp(72, 140);
    let written = if args.json {
        serde_json::to_writer_pretty(&mut out, prediction)
            .map_err(anyhow::Error::from)
            .and_then(|()| Ok(out.write_all(b"\n")?))
    } else {
        text(&mut out, prediction, width, args.verbose).map_err(Into::into)
    };
    out.finish(written)?;
    Ok(Exit::Done)
}
