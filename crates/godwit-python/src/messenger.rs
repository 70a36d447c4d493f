//! The thread that brings results to event loops. It is the only one that takes the interpreter's lock on its own
//! account, so that none of the runtime's ever waits for it; and what has become ready by the time it has the lock
//! goes to its loop in one piece.
//!
//! It ends when the interpreter does, which waits for it: a thread that asks for the lock later would be lost.

use crate::errors::Failure;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyCFunction;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

/// What makes a value in Python of a result.
pub(crate) type Unpack = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// A result on its way.
pub(crate) struct Letter {
    pub(crate) event_loop: Py<PyAny>,
    pub(crate) future: Py<PyAny>,
    pub(crate) result: Unpack,
}

static MESSENGER: Mutex<Messenger> = Mutex::new(Messenger::NotYet);

enum Messenger {
    NotYet,
    Works {
        letters: Sender<Letter>,
        thread: JoinHandle<()>,
        process: u32,
    },
    /// The interpreter ends.
    Ended,
}

/// Hands a result over. Nobody waits for it any longer when the interpreter ends.
pub(crate) fn send(letter: Letter) {
    let mut messenger = MESSENGER.lock().unwrap_or_else(PoisonError::into_inner);
    let here = std::process::id();
    match &*messenger {
        Messenger::Works { letters, process, .. } if *process == here => drop(letters.send(letter)),
        Messenger::Ended => {}
        Messenger::NotYet | Messenger::Works { .. } => {
            let (letters, received) = channel();
            let thread = std::thread::Builder::new()
                .name("godwit-messages".to_owned())
                .spawn(move || deliver(&received));
            // Without a thread there is no memory for anything else either.
            if let Ok(thread) = thread {
                let _ = letters.send(letter);
                *messenger = Messenger::Works { letters, thread, process: here };
            }
        }
    }
}

/// Brings what comes, until nobody sends any more.
fn deliver(letters: &Receiver<Letter>) {
    while let Ok(first) = letters.recv() {
        let attached = Python::try_attach(|py| {
            let mut bundles: Vec<Bundle> = Vec::new();
            for letter in std::iter::once(first).chain(letters.try_iter()) {
                let result = (letter.result)(py);
                let known = bundles.iter_mut().find(|bundle| bundle.event_loop.is(&letter.event_loop));
                match known {
                    Some(bundle) => bundle.results.push((letter.future, result)),
                    None => bundles.push(Bundle {
                        event_loop: letter.event_loop,
                        results: vec![(letter.future, result)],
                    }),
                }
            }
            for bundle in bundles {
                bundle.deliver(py);
            }
        });
        if attached.is_none() {
            return;
        }
    }
}

/// Results for one event loop.
struct Bundle {
    event_loop: Py<PyAny>,
    results: Results,
}

/// Futures, and what they get.
type Results = Vec<(Py<PyAny>, PyResult<Py<PyAny>>)>;

impl Bundle {
    fn deliver(self, py: Python<'_>) {
        let Ok(settle) = Bound::new(py, Settle(Mutex::new(self.results))) else { return };
        // A loop that is closed has nobody who waits.
        let _ = self.event_loop.call_method1(py, "call_soon_threadsafe", (settle,));
    }
}

/// What the event loop calls to put results into their futures.
#[pyclass(frozen)]
struct Settle(Mutex<Results>);

#[pymethods]
impl Settle {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        let results = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for (future, result) in results {
            settle(future.bind(py), result)?;
        }
        Ok(())
    }
}

/// Puts a result into a future, unless that was cancelled.
pub(crate) fn settle(future: &Bound<'_, PyAny>, result: PyResult<Py<PyAny>>) -> PyResult<()> {
    if future.call_method0("done")?.extract()? {
        return Ok(());
    }
    match result {
        Ok(value) => future.call_method1("set_result", (value,))?,
        Err(error) => future.call_method1("set_exception", (error.into_value(future.py()),))?,
    };
    Ok(())
}

/// Turns the result of work into what a letter holds.
pub(crate) fn unpack<T>(result: Result<T, Failure>) -> Unpack
where
    T: for<'py> IntoPyObject<'py> + Send + 'static,
{
    Box::new(move |py| match result {
        Ok(value) => value.into_bound_py_any(py).map(Bound::unbind),
        Err(failure) => Err(failure.into_exception(py)),
    })
}

/// Has the interpreter end the messenger before it ends itself.
pub(crate) fn end_with_the_interpreter(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let end = PyCFunction::new_closure(py, None, None, |arguments, _| {
        let py = arguments.py();
        let before = {
            let mut messenger = MESSENGER.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *messenger, Messenger::Ended)
        };
        if let Messenger::Works { letters, thread, process } = before
            && process == std::process::id()
        {
            drop(letters);
            // It may be waiting for the lock that is held here.
            let _ = py.detach(|| thread.join());
        }
    })?;
    py.import("atexit")?.call_method1("register", (end,))?;
    Ok(())
}
