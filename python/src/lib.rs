//! The Python module: arguments to the library, its answers to Arrow tables, errors to exceptions. Knows no rules of TCP.

mod arrow;
mod model;
mod page;
mod run;
mod source;

use arrow::Table;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use source::Source;
use std::sync::Arc;
use tcpwhy_capture::Filter;
use tcpwhy_library::{Detail, Explain};
use tcpwhy_tables::Table as Which;

create_exception!(tcpwhy, TcpwhyError, PyException, "What tcpwhy could not do.");
create_exception!(tcpwhy, CaptureError, TcpwhyError, "The input is no capture.");

/// What was found: four tables, and what could not be read.
#[pyclass(module = "tcpwhy", frozen)]
struct Result {
    tables: [Py<Table>; 4],
    sources: Vec<Source>,
    filter: Option<String>,
    /// Frames that were read.
    #[pyo3(get)]
    packets: u64,
    /// Inputs that are damaged or could not be read: name and sentence.
    #[pyo3(get)]
    problems: Vec<(String, String)>,
}

#[pymethods]
impl Result {
    /// A row for each connection.
    #[getter]
    fn connections(&self, py: Python<'_>) -> Py<Table> {
        self.tables[0].clone_ref(py)
    }

    /// A row for each request and its response.
    #[getter]
    fn exchanges(&self, py: Python<'_>) -> Py<Table> {
        self.tables[1].clone_ref(py)
    }

    /// A row for each stretch of time with one cause.
    #[getter]
    fn spans(&self, py: Python<'_>) -> Py<Table> {
        self.tables[2].clone_ref(py)
    }

    /// A row for each cause and side of a capture.
    #[getter]
    fn findings(&self, py: Python<'_>) -> Py<Table> {
        self.tables[3].clone_ref(py)
    }

    /// The page of `tcpwhy FILE --html`, of one capture. It is read again for its packets.
    fn to_html(&self, py: Python<'_>) -> PyResult<String> {
        let [source] = self.sources.as_slice() else {
            return Err(PyValueError::new_err("a page is of one capture: call explain() with that one"));
        };
        let (source, filter) = (source.clone(), filter(self.filter.as_deref())?);
        run::interruptible(py, move |stop| page::html(&source, filter, stop))?
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        if self.sources.len() != 1 {
            return Ok(format!("<pre>{}</pre>", tcpwhy_report::html::Escaped(&self.__repr__(py))));
        }
        let page = self.to_html(py)?;
        let page = tcpwhy_report::html::Escaped(&page).to_string();
        Ok(format!(
            r#"<iframe srcdoc="{page}" style="width:100%;height:48em;border:0" sandbox="allow-scripts"></iframe>"#
        ))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let rows = |n: usize| self.tables[n].bind(py).get().rows();
        format!(
            "<tcpwhy.Result: {} connections, {} exchanges, {} spans, {} findings, {} problems>",
            rows(0),
            rows(1),
            rows(2),
            rows(3),
            self.problems.len()
        )
    }
}

fn filter(text: Option<&str>) -> PyResult<Option<Filter>> {
    text.map(|t| Filter::parse(t).map_err(|e| PyValueError::new_err(e.to_string()))).transpose()
}

/// A number that no `u32` holds is a wrong value; what is no number at all stays a wrong type.
fn threads(n: &Bound<'_, PyAny>) -> PyResult<u32> {
    let most = u32::MAX;
    let not = || {
        PyValueError::new_err(format!(
            "threads is a whole number from 0 (one for each core) to {most}, not {n}"
        ))
    };
    n.extract().map_err(|e: PyErr| if is_too_large(&e, n) { not() } else { e })
}

/// Likewise; part k of n, with k below n.
fn part(of: &Bound<'_, PyAny>) -> PyResult<(u32, u32)> {
    let not = || PyValueError::new_err(format!("part is (k, n) with k from 0 on and below n, not {of}"));
    match of.extract() {
        Ok((k, n)) if k < n => Ok((k, n)),
        Ok(_) => Err(not()),
        Err(e) if is_too_large(&e, of) => Err(not()),
        Err(e) => Err(e),
    }
}

fn is_too_large(e: &PyErr, of: &Bound<'_, PyAny>) -> bool {
    e.is_instance_of::<PyOverflowError>(of.py())
}

/// Explains a capture: a path, bytes, an open binary file, or a list of them. Of a list, inputs that cannot be read are told in
/// `problems`, and the others are done. `filter` as in tcpdump (host, net, port, and, or, not); `threads` for lists, 0 is one for
/// each core. `part` is `(k, n)`: only the connections of part k of n (from 0 on), so that n workers share a large capture.
#[pyfunction]
#[pyo3(signature = (source, *, filter = None, threads = 0, part = (0, 1)))]
fn explain(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    filter: Option<String>,
    #[pyo3(from_py_with = threads)] threads: u32,
    #[pyo3(from_py_with = self::part)] part: (u32, u32),
) -> PyResult<Result> {
    let (sources, is_list) = Source::all(source)?;
    let wanted = self::filter(filter.as_deref())?;
    let asked = sources.clone();
    let mut done = run::interruptible(py, move |stop| {
        let mut explain =
            Explain::new().part(part.0, part.1).without_settings().stopped_by(Arc::clone(&stop));
        if let Some(filter) = wanted {
            explain = explain.filter(filter);
        }
        run::explain(&asked, &explain, threads as usize, &stop)
    })?;
    if !is_list && let Some((_, error)) = done.failed.pop() {
        return Err(source::exception(error));
    }
    let mut problems = done.damaged;
    problems.extend(done.failed.into_iter().map(|(name, e)| (name, e.to_string())));
    let rows = done.rows;
    let [a, b, c, d] = py.detach(|| Which::ALL.map(|which| Table::of(which, &rows)));
    let tables = [Py::new(py, a?)?, Py::new(py, b?)?, Py::new(py, c?)?, Py::new(py, d?)?];
    Ok(Result { tables, sources, filter, packets: done.packets, problems })
}

/// Whether what lies between two captures made a difference: the document of `tcpwhy compare --json`.
#[pyfunction]
fn compare<'py>(
    py: Python<'py>,
    before: &Bound<'py, PyAny>,
    after: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let sources = [Source::one(before)?, Source::one(after)?];
    let text = run::interruptible(py, move |stop| -> PyResult<String> {
        let mut sides = Vec::with_capacity(2);
        for source in &sources {
            sides.push(page::explained(source, None, Detail::All, &stop)?);
        }
        let [before, after] = [0, 1].map(|i| (&sides[i].connections[..], &sides[i].totals));
        let comparison = tcpwhy_library::compare_with_totals(before, after)
            .ok_or_else(|| TcpwhyError::new_err("the captures share no server, by address or by port"))?;
        let names = [sources[0].name(), sources[1].name()];
        let mut json = Vec::new();
        tcpwhy_report::compare::json(&mut json, &comparison, [&names[0], &names[1]])
            .map_err(|e| TcpwhyError::new_err(e.to_string()))?;
        Ok(String::from_utf8_lossy(&json).into_owned())
    })??;
    py.import("json")?.call_method1("loads", (text,))
}

/// How long a request takes that was not made yet, from a model of two TCP endpoints and the path between them. Times in seconds,
/// sizes in bytes (a list: several writes), `bandwidth` in bit/s; `nodelay` is `client`, `server`, `both` or `none`.
#[pyfunction]
#[pyo3(signature = (rtt, *, response, request = None, bandwidth = None, queue = None, mtu = 1500, server_time = 0.0,
    requests = 1, nodelay = "client"))]
#[expect(clippy::too_many_arguments, reason = "keywords of Python")]
fn predict<'py>(
    py: Python<'py>,
    rtt: f64,
    response: model::Writes,
    request: Option<model::Writes>,
    bandwidth: Option<u64>,
    queue: Option<u64>,
    mtu: u64,
    server_time: f64,
    requests: u32,
    nodelay: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let path = model::Path { rtt, bandwidth, queue, mtu };
    let work = model::Work { request, response, server_time, requests };
    let question = model::question(&path, work, nodelay)?;
    let asked = question.clone();
    let answer = py.detach(move || tcpwhy_library::predict(&asked));
    let answer = answer.map_err(|e| PyValueError::new_err(e.to_string()))?;
    model::told(py, &question, &answer)
}

#[pymodule]
fn _tcpwhy(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add("TcpwhyError", m.py().get_type::<TcpwhyError>())?;
    m.add("CaptureError", m.py().get_type::<CaptureError>())?;
    m.add_class::<Result>()?;
    m.add_class::<Table>()?;
    m.add_function(wrap_pyfunction!(explain, m)?)?;
    m.add_function(wrap_pyfunction!(compare, m)?)?;
    m.add_function(wrap_pyfunction!(predict, m)?)
}
