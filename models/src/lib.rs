//! Models of the places where threads leave something for one another and wake one another: loom runs each with every
//! order of the threads' steps, and with everything that the memory model lets them see. A wake-up that is lost in one of
//! them is a model that never ends, which loom reports as a deadlock.
//!
//! The modules under test are the very files of the crates; only their `sync` is another. Run with `cargo xtask loom`.
#![cfg(test)]

mod sync;
#[expect(dead_code, reason = "the drivers of the models never go")]
#[path = "../../crates/godwit-engine/src/wake.rs"]
mod wake;

mod driver;
