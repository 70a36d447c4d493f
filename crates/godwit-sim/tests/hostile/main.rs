//! Hostile datagrams into both roles: no panic, no growth of memory.
//!
//! Half and more of them are changed *before* they are sealed with the right keys, so that they get past
//! packet protection. The number is 200,000, or what GODWIT_HOSTILE says, or a million with GODWIT_FULL.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "tests")]

mod frames;
mod provider;
mod rig;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn target() -> u64 {
    let set = std::env::var("GODWIT_HOSTILE").ok().and_then(|text| text.parse().ok());
    let full = std::env::var_os("GODWIT_FULL").map(|_| 1_000_000);
    set.or(full).unwrap_or(200_000)
}

fn live() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}

#[test]
fn hostile_datagrams_do_no_harm() {
    let target = target();
    let mut rig = rig::Rig::new(42);
    // Everything that grows once has grown after this.
    let hostile = |rig: &rig::Rig| rig.count.mangled + provider::lies();
    while hostile(&rig) < target / 5 {
        rig.life();
    }
    assert!(provider::lies() > 0, "what is sealed is changed before");
    let (before, mut shown) = (live(), 0);
    while hostile(&rig) < target || provider::lies() * 2 < target {
        rig.life();
        if hostile(&rig) * 10 / target > shown {
            shown = hostile(&rig) * 10 / target;
            eprintln!("{:?}, {} lies sealed, {} bytes live", rig.count, provider::lies(), live());
        }
    }
    let after = live();
    println!("{:?}, {} lies sealed, {before} bytes live before, {after} after", rig.count, provider::lies());
    assert!(after as f64 <= before as f64 * 1.05 + 16_384.0, "memory grew from {before} to {after} bytes");
    assert!(provider::lies() >= rig.count.mangled, "at least half of what is hostile is sealed");
    assert!(rig.count.established * 2 > rig.count.connections, "most connections were worth attacking");
}
