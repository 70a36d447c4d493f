//! What this process holds. The test is the only one of its program: nobody else allocates meanwhile.

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;
use std::cell::Cell;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

thread_local! {
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

/// Bytes that are allocated now.
pub(crate) fn live() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}

/// The peak is counted anew from here.
pub(crate) fn begin() {
    PEAK.set(live());
}

/// Takes note of what is held at this moment.
pub(crate) fn look() {
    PEAK.set(PEAK.get().max(live()));
}

/// The most that was held whenever somebody looked.
pub(crate) fn peak() -> usize {
    PEAK.get()
}
