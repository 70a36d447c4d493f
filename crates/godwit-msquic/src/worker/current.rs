//! Which workers there are at present: none before the first registration, those with threads of their own from then on, or
//! those that the application polls.
//!
//! Workers with threads are made once and never end: who opens the library again finds them. Those of the application's are given
//! up with its threads. What they were stays in memory, empty, for a handle of theirs may still be looked up somewhere.

use super::pool::Pool;
use crate::registration::are_any_left;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Null, or leaked.
static CURRENT: AtomicPtr<Pool> = AtomicPtr::new(null_mut());

/// A registration has been opened since the library was.
static HAS_STARTED: AtomicBool = AtomicBool::new(false);

/// Handles of all workers that there were are of earlier generations.
static NEXT_GENERATION: AtomicU32 = AtomicU32::new(0);

/// Held by who changes which workers there are.
static CHANGING: Mutex<()> = Mutex::new(());

/// How many have the library open.
static OPENED: AtomicUsize = AtomicUsize::new(0);

/// The workers, if there are any.
pub(crate) fn pool() -> Option<&'static Pool> {
    // SAFETY: what is put there is never freed.
    unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
}

/// Whether a socket has been asked for: from then on some things cannot be set.
pub(crate) fn is_in_use() -> bool {
    pool().is_some_and(Pool::has_sockets)
}

/// Whether a registration has been opened: from then on it is decided who works. Where the application's threads do, it is
/// decided until the last registration is closed.
pub(crate) fn has_started() -> bool {
    HAS_STARTED.load(Ordering::Acquire) && (are_any_left() || !pool().is_some_and(Pool::is_polled))
}

/// Nobody else changes which workers there are as long as this is held.
pub(super) fn changing() -> MutexGuard<'static, ()> {
    CHANGING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// These are the workers from now on, or there are none. Handles of those that there were stand for nothing at others.
pub(super) fn set(next: Option<&'static Pool>) {
    let place = next.map_or(null_mut(), |pool| (&raw const *pool).cast_mut());
    if std::ptr::eq(place, CURRENT.load(Ordering::Acquire)) {
        return;
    }
    if let Some(before) = pool() {
        NEXT_GENERATION.fetch_max(before.next_generation(), Ordering::AcqRel);
    }
    if let Some(next) = next {
        next.begin_generations_at(NEXT_GENERATION.load(Ordering::Acquire));
    }
    CURRENT.store(place, Ordering::Release);
}

/// A registration is opened.
pub(super) fn on_started() {
    HAS_STARTED.store(true, Ordering::Release);
}

/// The workers are gone, and there is no registration: all can be decided again.
pub(super) fn on_ended() {
    HAS_STARTED.store(false, Ordering::Release);
}

/// The library is opened once more.
pub(crate) fn on_opened() {
    OPENED.fetch_add(1, Ordering::AcqRel);
}

/// The library is closed once. With the last time, if nothing was left open, it is as at the beginning.
pub(crate) fn on_closed() {
    let less = |opened: usize| opened.checked_sub(1);
    let before = OPENED.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
    if before != Ok(1) {
        return;
    }
    let _changing = changing();
    // Whoever opens one holds this as well.
    if !are_any_left() {
        set(None);
        on_ended();
    }
}
