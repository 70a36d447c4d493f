//! How values look in Python, and how those of Python are taken without a copy.

use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::convert::Infallible;
use std::time::Duration;

use crate::errors::Failure;

/// `bytes` for Python, made of pieces that are put together only there.
pub(crate) struct Data(Vec<Bytes>);

impl Data {
    pub(crate) fn pieces(pieces: Vec<Bytes>) -> Self {
        Data(pieces)
    }
}

impl From<Bytes> for Data {
    fn from(piece: Bytes) -> Self {
        Data(vec![piece])
    }
}

impl<'py> IntoPyObject<'py> for Data {
    type Target = PyBytes;
    type Output = Bound<'py, PyBytes>;
    type Error = Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Infallible> {
        Ok(match self.0.as_slice() {
            [one] => PyBytes::new(py, one),
            pieces => PyBytes::new(py, &pieces.concat()),
        })
    }
}

/// `None` for Python.
pub(crate) struct Nothing;

impl<'py> IntoPyObject<'py> for Nothing {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Infallible> {
        Ok(py.None().into_bound(py))
    }
}

/// Python's bytes, shared with it for as long as they are needed.
pub(crate) fn shared(bytes: PyBackedBytes) -> Bytes {
    Bytes::from_owner(bytes)
}

/// Seconds as Python writes them.
///
/// # Errors
/// If it is no length of time.
pub(crate) fn seconds(name: &str, value: f64) -> Result<Duration, Failure> {
    Duration::try_from_secs_f64(value).map_err(|_| {
        Failure::settings(format!("{name}: {value} is no length of time; give seconds, 0 or more, or None"))
    })
}
