//! Waiting for what another thread does.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Closed at first, and open for ever once somebody has opened it.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    /// Lets all pass who wait, and all who come.
    pub(crate) fn open(&self) {
        *self.is_open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.opened.notify_all();
    }

    /// Waits until it is open.
    pub(crate) fn wait(&self) {
        let is_open = self.is_open.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.opened.wait_while(is_open, |is_open| !*is_open);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

/// Opens a gate when it is dropped, whatever becomes of what it belongs to.
#[derive(Debug)]
pub(crate) struct Opening(Arc<Gate>);

impl Opening {
    /// A gate, and what opens it.
    pub(super) fn new() -> (Arc<Gate>, Self) {
        let gate = Arc::<Gate>::default();
        (Arc::clone(&gate), Opening(gate))
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.0.open();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_waits_passes_once_it_is_open() {
        let gate = Gate::default();
        std::thread::scope(|scope| {
            scope.spawn(|| gate.wait());
            gate.open();
        });
        gate.wait();
    }
}
