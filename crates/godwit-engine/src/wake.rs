//! Waking the driver of a shard, and what others leave for it.
//!
//! Invariant: whatever was changed before [`DriverWake::schedule`] is seen by a poll of the driver that begins with
//! [`DriverWake::register`] and looks at it afterwards, however many change something at once, and whichever task the
//! driver is in. `models/` has every order of these steps tried (`cargo xtask loom`), so this file uses nothing but
//! `sync`.

use crate::sync::{AtomicBool, Mutex, Ordering, PoisonError};
use std::task::Waker;

/// The driver, to be woken unless it is certain to run already.
#[derive(Debug)]
pub(crate) struct DriverWake {
    /// The driver's next poll is already certain.
    scheduled: AtomicBool,
    driver: Mutex<Option<Waker>>,
}

impl DriverWake {
    /// No driver yet: its first poll sees all that has been changed.
    pub(crate) fn new() -> Self {
        DriverWake { scheduled: AtomicBool::new(false), driver: Mutex::new(None) }
    }

    /// Makes the driver run.
    pub(crate) fn schedule(&self) {
        if let Some(waker) = self.whom() {
            waker.wake();
        }
    }

    /// The driver, unless it is certain to run already: it is to be woken, with no lock held.
    pub(crate) fn whom(&self) -> Option<Waker> {
        if self.scheduled.swap(true, Ordering::AcqRel) {
            return None;
        }
        self.driver.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Called by the driver as it begins: from here on, whoever changes something wakes it again. True if somebody has changed
    /// something since it was called last.
    pub(crate) fn register(&self, waker: &Waker) -> bool {
        let mut driver = self.driver.lock().unwrap_or_else(PoisonError::into_inner);
        let replaced = match &mut *driver {
            Some(known) if known.will_wake(waker) => None,
            place => place.replace(waker.clone()),
        };
        drop(driver);
        // What it is the last of may be anything.
        drop(replaced);
        // A swap and no store: what those have changed that found the driver scheduled is seen from here on.
        self.scheduled.swap(false, Ordering::AcqRel)
    }

    /// Called by a driver as it goes: it is woken no more, and nothing of it stays here.
    pub(crate) fn unregister(&self, waker: &Waker) {
        let mut driver = self.driver.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = driver.take_if(|known| known.will_wake(waker));
        drop(driver);
        // What it is the last of may be anything.
        drop(gone);
    }
}

/// What others leave for a shard, until its driver takes it.
#[derive(Debug)]
pub(crate) struct Mailbox<B> {
    batch: Mutex<B>,
}

impl<B> Mailbox<B> {
    /// A mailbox with nothing in it.
    pub(crate) fn new(empty: B) -> Self {
        Mailbox { batch: Mutex::new(empty) }
    }

    /// Has `push` leave something, and says whom to wake for it. `push` says whether there was room.
    pub(crate) fn put(&self, push: impl FnOnce(&mut B) -> bool, wake: &DriverWake) -> Put {
        let mut batch = self.batch.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = push(&mut batch);
        drop(batch);
        Put { taken, driver: wake.whom() }
    }

    /// Exchanges what was left for `into`, which is to be empty.
    pub(crate) fn take(&self, into: &mut B) {
        let mut batch = self.batch.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut *batch, into);
    }
}

/// What became of what was left for another shard.
#[derive(Debug)]
pub(crate) struct Put {
    /// There was room for it.
    pub(crate) taken: bool,
    /// The shard's driver, if that does not run yet: to be woken once our own lock is released, for that may run
    /// anything.
    pub(crate) driver: Option<Waker>,
}
