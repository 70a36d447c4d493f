//! What a worker has that is polled by the application, and which thread does that.

use super::state::State;
use godwit_engine::PolledDriver;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// What such a worker has.
#[derive(Debug)]
pub(super) struct Polled {
    /// Until the application takes its threads away.
    driver: Mutex<Option<PolledDriver<State>>>,
    /// The [mark](this_thread) of the thread that has polled it last; 0 before the first time.
    poller: AtomicUsize,
}

/// A number that no other thread has that lives.
fn this_thread() -> usize {
    thread_local! {
        static MARK: u8 = const { 0 };
    }
    MARK.with(|mark| (&raw const *mark).addr())
}

impl Polled {
    pub(super) const fn new(driver: PolledDriver<State>) -> Self {
        Polled { driver: Mutex::new(Some(driver)), poller: AtomicUsize::new(0) }
    }

    /// This thread is the one to poll it from now on.
    pub(super) fn take_over(&self) {
        self.poller.store(this_thread(), Ordering::Relaxed);
    }

    /// The driver, unless it is being polled.
    pub(super) fn idle(&self) -> Option<MutexGuard<'_, Option<PolledDriver<State>>>> {
        match self.driver.try_lock() {
            Ok(driver) => Some(driver),
            Err(TryLockError::Poisoned(driver)) => Some(driver.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// As [`Self::idle`], if this thread is the one to poll it.
    pub(super) fn idle_here(&self) -> Option<MutexGuard<'_, Option<PolledDriver<State>>>> {
        let poller = self.poller.load(Ordering::Relaxed);
        if poller == 0 || poller == this_thread() { self.idle() } else { None }
    }

    /// Takes the driver away, when nobody polls.
    pub(super) fn take(&self) -> Option<PolledDriver<State>> {
        self.driver.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
