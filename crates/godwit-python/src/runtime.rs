//! The threads on which everything goes on that Python waits for: one tokio runtime for the whole process, begun when
//! something first needs it.
//!
//! It is never ended: its threads wait without costing anything, touch nothing of Python, and go with the process.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::OnceLock;
use tokio::runtime::{Builder, Handle, Runtime};

/// More threads do not make one program's requests faster.
const MOST_THREADS: usize = 4;

static STARTED: OnceLock<Started> = OnceLock::new();

struct Started {
    runtime: Runtime,
    /// In whose threads it is.
    process: u32,
}

/// Where to spawn.
///
/// # Errors
/// If there can be no threads, or if they have stayed behind in the process that this one was forked from.
pub(crate) fn handle() -> PyResult<&'static Handle> {
    let started = match STARTED.get() {
        Some(started) => started,
        None => {
            let started = start()?;
            STARTED.get_or_init(|| started)
        }
    };
    if started.process != std::process::id() {
        return Err(PyRuntimeError::new_err(
            "godwit was in use before this process was forked, and its threads are not in here; start processes with \
             the method \"spawn\" or \"forkserver\", or use godwit only after the fork",
        ));
    }
    Ok(started.runtime.handle())
}

fn start() -> PyResult<Started> {
    let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(MOST_THREADS));
    let runtime = Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("godwit")
        .enable_all()
        .build()
        .map_err(|error| PyRuntimeError::new_err(format!("cannot start godwit's threads: {error}")))?;
    Ok(Started { runtime, process: std::process::id() })
}

/// A value whose end may need the runtime: Python drops it on a thread of its own.
pub(crate) struct Owned<T>(Option<T>);

impl<T> Owned<T> {
    pub(crate) fn new(value: T) -> Self {
        Owned(Some(value))
    }

    /// The value; `None` only while it is being dropped.
    pub(crate) fn get(&self) -> Option<&T> {
        self.0.as_ref()
    }

    /// The same to change.
    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        self.0.as_mut()
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        let _inside = STARTED.get().map(|started| started.runtime.enter());
        self.0 = None;
    }
}
