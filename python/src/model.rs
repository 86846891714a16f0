//! A question to the model from keywords, with what `tcpwhy predict` assumes where nothing is said.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use tcpwhy_base::{Nanos, Side, Step, Turn, Workload};
use tcpwhy_library::model::{Answer, Question, Scenario};

/// A request where only the response is named.
const REQUEST: u64 = 300;

/// Bytes of a message: written with one call, or with several.
#[derive(FromPyObject)]
pub(crate) enum Writes {
    One(u64),
    Several(Vec<u64>),
}

impl Writes {
    fn steps(self) -> Vec<Step> {
        match self {
            Writes::One(n) => vec![Step::Write(n)],
            Writes::Several(list) => list.into_iter().map(Step::Write).collect(),
        }
    }
}

pub(crate) struct Path {
    pub(crate) rtt: f64,
    pub(crate) bandwidth: Option<u64>,
    pub(crate) queue: Option<u64>,
    pub(crate) mtu: u64,
}

pub(crate) struct Work {
    pub(crate) request: Option<Writes>,
    pub(crate) response: Writes,
    pub(crate) server_time: f64,
    pub(crate) requests: u32,
}

fn seconds(what: &str, s: f64) -> PyResult<Nanos> {
    if (0.0..=60.0).contains(&s) {
        Ok(Nanos((s * 1e9).round() as i64))
    } else {
        Err(PyValueError::new_err(format!("{what} is in seconds, from 0 to 60, not {s}")))
    }
}

pub(crate) fn question(path: &Path, work: Work, nodelay: &str) -> PyResult<Question> {
    let rtt = seconds("rtt", path.rtt)?;
    // One round trip's worth at the rate, but a hundred full packets at least.
    let worth = |rate: u64| (u128::from(rate) * rtt.0 as u128 / 8_000_000_000) as u64;
    let queue = path.queue.or(path.bandwidth.map(|rate| worth(rate).max(100 * path.mtu)));
    let mut scenario = Scenario::with_path(rtt, path.bandwidth, queue, path.mtu);
    let turn = Turn {
        before: Nanos::ZERO,
        request: work.request.unwrap_or(Writes::One(REQUEST)).steps(),
        think: seconds("server_time", work.server_time)?,
        response: work.response.steps(),
    };
    scenario.workload = Workload::serial(turn, work.requests.max(1));
    let set = match nodelay {
        "none" => [false, false],
        "client" => [true, false],
        "server" => [false, true],
        "both" => [true, true],
        other => {
            return Err(PyValueError::new_err(format!(
                "nodelay is none, client, server or both, not {other}"
            )));
        }
    };
    for (host, on) in scenario.hosts.iter_mut().zip(set) {
        host.nodelay = on;
        host.stack.phase = Nanos(host.stack.profile.clock.tick() / 2);
    }
    Ok(Question { scenario, skip: 0, max_events: tcpwhy_model::MAX_EVENTS })
}

/// `total_ns`, `latencies_ns`, `complete`, and `causes`: time by cause and side, most first.
pub(crate) fn told<'py>(
    py: Python<'py>,
    question: &Question,
    answer: &Answer,
) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("total_ns", answer.total.0)?;
    out.set_item("latencies_ns", answer.turns.iter().map(|t| t.0).collect::<Vec<_>>())?;
    out.set_item("complete", answer.complete)?;
    let causes = PyList::empty(py);
    for (cause, side, time) in question.budget(answer) {
        let row = PyDict::new(py);
        row.set_item("cause", cause.id())?;
        row.set_item("side", side.map(Side::name))?;
        row.set_item("time_ns", time.0)?;
        causes.append(row)?;
    }
    out.set_item("causes", causes)?;
    Ok(out)
}
