//! The paths of requests that the regression gate measures, run over and over: `gate-requests PATH`.
//!
//! Server, client and what stands behind the server are in one thread, with real sockets on the loopback. The functions
//! named `measured_*` are what counts. Prints the number of calls and the allocations made in them. Time is real here; what
//! could go off by the clock is set to take long, and happens to few of many calls otherwise.

mod relay;
mod requests;
mod rig;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// What all measured calls cost, but for the instructions.
struct Cost {
    calls: usize,
    allocations: usize,
}

impl Cost {
    /// Of what `run` does, which is so many calls.
    fn of(calls: usize, run: impl FnOnce()) -> Cost {
        let region = Region::new(ALLOCATOR);
        run();
        Cost { calls, allocations: region.change().allocations }
    }
}

fn main() {
    let path = std::env::args().nth(1).unwrap_or_default();
    let cost = match path.as_str() {
        "http3-request" => requests::measure(requests::Server::Library),
        "front-request" => requests::measure(requests::Server::Answer),
        "proxied-request" => requests::measure(requests::Server::Proxy),
        "relayed-datagram" => relay::measure(),
        _ => {
            eprintln!(
                "gate-requests: expected http3-request, front-request, proxied-request or relayed-datagram, got {path:?}"
            );
            std::process::exit(2);
        }
    };
    println!("calls {}\nallocations {}", cost.calls, cost.allocations);
}
