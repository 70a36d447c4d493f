//! The paths that the regression gate measures, run over and over: `gate PATH`.
//!
//! Two endpoints in one process with real cryptography and no network between them. The functions named
//! `measured_*` are what counts; everything else prepares their input. Prints the number of calls and the
//! allocations made in them.

mod handshakes;
mod packets;
mod pair;

use handshakes::Kind;
use packets::Step;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// What all measured calls cost, but for the instructions.
struct Cost {
    calls: usize,
    allocations: usize,
}

fn main() {
    let path = std::env::args().nth(1).unwrap_or_default();
    let cost = match path.as_str() {
        "build-and-seal" => packets::measure(Step::Transmit),
        "open-and-process" => packets::measure(Step::Receive),
        "process-ack" => packets::measure(Step::Acknowledge),
        "handshake" => handshakes::measure(Kind::Full),
        "handshake-resumed" => handshakes::measure(Kind::Resumed),
        "handshake-0rtt" => handshakes::measure(Kind::Early),
        _ => {
            eprintln!(
                "gate: expected build-and-seal, open-and-process, process-ack, handshake, handshake-resumed or \
                 handshake-0rtt, got {path:?}"
            );
            std::process::exit(2);
        }
    };
    println!("calls {}\nallocations {}", cost.calls, cost.allocations);
}
