//! What is to be read: paths and bytes, from what Python has for them.

use crate::{CaptureError, TcpwhyError};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyList, PyTuple};
use std::io::{self, BufReader, Cursor, Read};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tcpwhy_capture::{ReadError, Reader};

/// An input.
#[derive(Clone)]
pub(crate) enum Source {
    Path(PathBuf),
    Bytes(Arc<[u8]>),
    /// An object with `read`, until it was read.
    Stream(Arc<Mutex<Option<Py<PyAny>>>>, String),
}

/// Bytes that are asked of an object at a time: each time the interpreter's lock is taken.
const CHUNK: usize = 1 << 20;

/// What has `read(n)`, such as an open file of any file system.
struct Object(Py<PyAny>);

impl Read for Object {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        Python::attach(|py| {
            let given = self.0.bind(py).call_method1("read", (to.len(),)).map_err(io::Error::other)?;
            let given = given
                .cast::<PyBytes>()
                .map_err(|_| io::Error::other("read() gave no bytes: open the file in binary mode"))?;
            let bytes = given.as_bytes();
            let n = bytes.len().min(to.len());
            to[..n].copy_from_slice(&bytes[..n]);
            Ok(n)
        })
    }
}

impl Source {
    /// A path, bytes, or what can be read.
    pub(crate) fn one(object: &Bound<'_, PyAny>) -> PyResult<Source> {
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Source::Bytes(bytes.as_bytes().into()));
        }
        if let Ok(bytes) = object.cast::<PyByteArray>() {
            return Ok(Source::Bytes(bytes.to_vec().into()));
        }
        if object.hasattr("read")? {
            let name = object.getattr("name").and_then(|name| name.extract());
            let name = name.unwrap_or_else(|_| "stream".to_owned());
            return Ok(Source::Stream(Arc::new(Mutex::new(Some(object.clone().unbind()))), name));
        }
        object.extract().map(Source::Path).map_err(|_| {
            let what = object.get_type().name().map_or_else(|_| "this".into(), |name| name.to_string());
            PyTypeError::new_err(format!(
                "a capture is a path, bytes or an open binary file (or a list of those), not {what}"
            ))
        })
    }

    /// One, or those of a list; and whether it was a list.
    pub(crate) fn all(object: &Bound<'_, PyAny>) -> PyResult<(Vec<Source>, bool)> {
        if !object.is_instance_of::<PyList>() && !object.is_instance_of::<PyTuple>() {
            return Ok((vec![Source::one(object)?], false));
        }
        let all: Vec<Source> = object.try_iter()?.map(|item| Source::one(&item?)).collect::<PyResult<_>>()?;
        if all.is_empty() {
            return Err(PyValueError::new_err("the list holds no capture"));
        }
        Ok((all, true))
    }

    pub(crate) fn name(&self) -> String {
        match self {
            Source::Path(path) => path.display().to_string(),
            Source::Bytes(_) => "bytes".into(),
            Source::Stream(_, name) => name.clone(),
        }
    }

    pub(crate) fn open(&self) -> Result<Reader, ReadError> {
        match self {
            Source::Path(path) => Reader::open(path),
            Source::Bytes(bytes) => Reader::new(Box::new(Cursor::new(Arc::clone(bytes)))),
            Source::Stream(stream, name) => {
                let taken = stream.lock().unwrap_or_else(PoisonError::into_inner).take();
                let object = taken.ok_or_else(|| ReadError::Open {
                    path: name.clone(),
                    source: io::Error::other(
                        "an open file can be read once: name its path for pages and comparisons",
                    ),
                })?;
                Reader::new(Box::new(BufReader::with_capacity(CHUNK, Object(object))))
            }
        }
    }
}

/// What Python has for an error: of the system its own kinds, such as FileNotFoundError.
pub(crate) fn exception(error: ReadError) -> PyErr {
    match error {
        ReadError::Open { path, source } | ReadError::Io { path, source, .. } => {
            match source.raw_os_error() {
                Some(number) => {
                    let text = source.to_string();
                    let text = text.split(" (os error").next().unwrap_or(&text).to_owned();
                    pyo3::exceptions::PyOSError::new_err((number, text, path))
                }
                None => TcpwhyError::new_err(format!("{path}: {source}")),
            }
        }
        other => CaptureError::new_err(other.to_string()),
    }
}
