//! The native half of the Python package `godwit`: what its Python half, in the folder `python`, is built on.
//!
//! Every method that waits returns a future of the event loop that runs, and works on threads of its own meanwhile,
//! without the interpreter's lock. The Python half makes coroutines, types and convenience of that; no application
//! uses this module itself.
//!
//! # Inside
//! `runtime` has the threads, `bridge` turns Rust's futures into those of asyncio, by way of `messenger`, the only thread
//! that brings anything to Python. `errors` says which exception something becomes, `data` how values look in Python.
//! `http` is the client over `godwit-client`, `quic` connections and streams over `godwit`.
//!
//! # Invariants
//! No thread of the runtime ever waits for the interpreter's lock, and nothing that waits holds it. When the interpreter
//! ends the messenger has ended before.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod bridge;
mod data;
mod errors;
mod http;
mod messenger;
mod quic;
mod runtime;

use pyo3::prelude::*;

/// What `import godwit._godwit` runs.
///
/// # Errors
/// If the interpreter cannot make the classes.
#[pymodule]
pub fn _godwit(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    messenger::end_with_the_interpreter(module)?;
    http::register(module)?;
    quic::register(module)
}
