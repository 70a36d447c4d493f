//! What it costs to be watched by nobody, or by somebody who wants to know nothing: no memory. (Alone in
//! its program, because the whole program's allocations are counted.)

mod common;

use common::{Pair, transport};
use godwit_base::Time;
use godwit_transport::observe::{Observer, ObserverFactory, TransportEvent, TransportMask};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Wants nothing.
struct Blind;

impl Observer for Blind {
    fn mask(&self) -> TransportMask {
        TransportMask::NONE
    }

    fn on_event(&mut self, _: Time, event: &TransportEvent<'_>) {
        unreachable!("not wanted: {event:?}");
    }
}

/// Allocations of a connection that is set up, and those while it is used.
fn allocations(factory: &ObserverFactory) -> (usize, usize) {
    let mut pair = Pair::new(factory, transport());
    let beginning = Region::new(ALLOCATOR);
    let client = pair.connect(transport());
    pair.steps(60);
    let begun = beginning.change().allocations;
    let use_of_it = Region::new(ALLOCATOR);
    for _ in 0..20 {
        pair.say(client, &[b'x'; 20_000]);
        pair.steps(20);
    }
    (begun, use_of_it.change().allocations)
}

#[test]
fn nobody_watching_costs_no_memory() {
    let none = ObserverFactory::default();
    // The first run fills what the process keeps.
    allocations(&none);
    let (begun, used) = allocations(&none);
    let declined = ObserverFactory::new(|_| None);
    assert_eq!(allocations(&declined), (begun, used));
    // The observer of each end and what is remembered for it; the observer itself has no size.
    let blind = ObserverFactory::new(|_| Some(Box::new(Blind)));
    assert_eq!(allocations(&blind), (begun + 2, used));
}
