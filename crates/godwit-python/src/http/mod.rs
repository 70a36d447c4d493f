//! The HTTP client: one Rust client behind each of Python's.
//!
//! `client` sends requests, `upload` is a body that Python produces while it is sent, `response` what comes back.

mod client;
mod response;
mod upload;

use pyo3::prelude::*;

/// Adds the classes to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<client::HttpClient>()?;
    module.add_class::<response::HttpResponse>()?;
    module.add_class::<upload::Upload>()
}
