//! Who needs the connections to a server, and since when nobody does: then they are closed after a while.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use godwit_text::instant_now;

/// The requests to one server, from their beginning until their responses have been read or dropped.
#[derive(Debug)]
pub(crate) struct Usage(Mutex<State>);

#[derive(Debug)]
struct State {
    under_way: usize,
    /// When the last one began or ended.
    changed: Instant,
}

/// One request. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct InUse(Arc<Usage>);

impl Usage {
    pub(crate) fn new() -> Arc<Usage> {
        Arc::new(Usage(Mutex::new(State { under_way: 0, changed: instant_now() })))
    }

    /// A request begins.
    pub(crate) fn begin(self: &Arc<Usage>) -> InUse {
        self.lock().under_way += 1;
        InUse(Arc::clone(self))
    }

    /// For how long there has been no request; `None` while there is one.
    pub(crate) fn idle(&self) -> Option<Duration> {
        let state = self.lock();
        (state.under_way == 0).then(|| state.changed.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.under_way = state.under_way.saturating_sub(1);
        state.changed = instant_now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_idle_that_somebody_needs() {
        let usage = Usage::new();
        assert!(usage.idle().is_some());
        let (first, second) = (usage.begin(), usage.begin());
        assert_eq!(usage.idle(), None);
        drop(first);
        assert_eq!(usage.idle(), None);
        drop(second);
        assert!(usage.idle().is_some());
    }
}
