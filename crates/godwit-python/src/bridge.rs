//! Rust's futures as those of asyncio.
//!
//! What is ready at once is given back at once, without another thread. What is not goes on on the runtime; a future
//! that is cancelled in Python ends it there.

use crate::errors::Failure;
use crate::messenger::{self, Letter};
use crate::runtime;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::task::{Context, Poll, Waker};
use tokio::task::AbortHandle;

/// A future of the running event loop that gets what `work` comes to.
///
/// # Errors
/// If no event loop runs in this thread, or godwit's threads cannot be used.
pub(crate) fn future<'py, T>(
    py: Python<'py>,
    work: impl Future<Output = Result<T, Failure>> + Send + 'static,
) -> PyResult<Bound<'py, PyAny>>
where
    T: for<'any> IntoPyObject<'any> + Send + 'static,
{
    let handle = runtime::handle()?;
    let event_loop = running_loop(py)?;
    let future = event_loop.call_method0("create_future")?;
    let mut work = Box::pin(work);
    let first = py.detach(|| {
        let _inside = handle.enter();
        work.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    });
    if let Poll::Ready(result) = first {
        messenger::settle(&future, messenger::unpack(result)(py))?;
        return Ok(future);
    }
    let (event_loop, waiting) = (event_loop.unbind(), future.clone().unbind());
    let task = handle.spawn(async move {
        let result = messenger::unpack(work.await);
        messenger::send(Letter { event_loop, future: waiting, result });
    });
    future.call_method1("add_done_callback", (Abandon(task.abort_handle()),))?;
    Ok(future)
}

/// The event loop that runs in this thread.
fn running_loop(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    static GET: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    GET.import(py, "asyncio", "get_running_loop")?.call0()
}

/// Ends the work of a future that is over: it was cancelled, or there is nothing to end.
#[pyclass(frozen)]
struct Abandon(AbortHandle);

#[pymethods]
impl Abandon {
    fn __call__(&self, _future: &Bound<'_, PyAny>) {
        self.0.abort();
    }
}
