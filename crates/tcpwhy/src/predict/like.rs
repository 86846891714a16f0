//! `--like`: path, sizes and settings of a connection in a capture.

use super::answer;
use super::args::Predict;
use super::question::Asked;
use crate::failure::{Exit, Usage, say};
use crate::input::{self, Ordered};
use crate::select;
use anyhow::bail;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use tcpwhy_base::Nanos;
use tcpwhy_library::Connection;
use tcpwhy_library::captures::Captures;
use tcpwhy_library::extract;
use tcpwhy_library::model::{Answer, Question};
use tcpwhy_report::predict::Prediction;

/// What was asked of the model, its answer, and what is said of both.
type Answered = (Question, Answer, Prediction);

/// Analyses the capture, takes the workload out of the connection, asks the model; `Exit` is that of a
/// capture that was damaged or was not. `Err`: the exit code, where nothing could be read.
pub(crate) fn ask(args: &Predict, file: &Path) -> anyhow::Result<Result<(Answered, Exit), Exit>> {
    let files = [file.to_path_buf()];
    let Ordered { inputs, unreadable, .. } = input::in_order(&files, false, &AtomicBool::default())?;
    let (mut analysis, read) = Captures::new(&inputs).explain(&mut |_, _| ())?;
    unreadable.iter().chain(&read.unreadable).chain(&read.damaged).for_each(|p| say(p));
    if read.opened == 0 {
        return Ok(Err(Exit::Unreadable));
    }
    let exit = if read.damaged.is_empty() && unreadable.is_empty() { Exit::Done } else { Exit::Damaged };
    if let Some(which) = &args.connection {
        select::connections(&mut analysis, which).map_err(Usage)?;
    }
    let Some(c) = longest(&analysis.connections) else {
        bail!(Usage(format!("{}: no TCP connection to take a workload from", file.display())));
    };
    let many = analysis.connections.len();
    let mut asked = match extract(c, first_exchange(c)) {
        Ok(x) => {
            let mut assumed = x.assumed;
            let (a, b) = x.exchanges;
            let which = if a == b { format!("exchange {a}") } else { format!("exchanges {a} to {b}") };
            assumed.insert(0, format!("From {which} of connection {}: {} > {}.", c.id, c.client, c.server));
            if many > 1 {
                assumed.push(format!("The capture has {many} connections; --connection chooses another."));
            }
            let asked = Asked { question: x.question, assumed, connection: "capture", sizes: [None, None] };
            (asked, x.observed, x.end)
        }
        Err(why) => bail!(Usage(format!(
            "{}: connection {} cannot be replayed: {why}; choose another with --connection, or describe it with --rtt and --request",
            file.display(),
            c.id
        ))),
    };
    asked.0.question.max_events = tcpwhy_library::model::MAX_EVENTS;
    let Ok(found) = asked.0.question.ask() else { bail!(Usage("the model refused the question".into())) };
    // Compared as it passes the tap: the sum of its exchanges, and the setup.
    let at_tap = asked.0.question.stories(&found, asked.2);
    let spans = at_tap.iter().flat_map(|s| {
        let exchanges = s.exchanges.iter().map(|x| x.end - x.start);
        s.setup.iter().map(|x| x.end - x.start).chain(exchanges)
    });
    let modelled = spans.fold(Nanos::ZERO, |t, x| t + x);
    let mut prediction = answer::prediction(&asked.0, &found);
    let observed = answer::observed_of(modelled, asked.1);
    if !observed.trustworthy {
        answer::without_changes(&mut prediction);
    }
    prediction.observed = Some(observed);
    Ok(Ok(((asked.0.question, found, prediction), exit)))
}

/// The connection with most time in exchanges.
fn longest(all: &[Box<Connection>]) -> Option<&Connection> {
    all.iter()
        .filter(|c| !c.exchanges.is_empty())
        .max_by_key(|c| c.budget.total())
        .or(all.first())
        .map(|c| &**c)
}

/// The longest exchange: what is asked about.
fn first_exchange(c: &Connection) -> u32 {
    c.exchanges.iter().max_by_key(|x| (x.end - x.start, std::cmp::Reverse(x.id))).map_or(0, |x| x.id)
}
