//! The same work for the same server again and again: every byte arrives, and nothing is left behind.
//!
//! A round is one big file, many small ones on one connection, and many connections at the same moment, all
//! fetched by `godwit get` in processes of their own from an HTTP/3 file server in this one, whose heap is
//! counted. What is live when the server is idle again must not grow from round to round.
//!
//! With GODWIT_BARS=1 the sizes are those the project promises: 1 GiB, 1,000 files of 10 kB and 200 connections
//! of 1 MiB, five times over.

mod soak_support;

use soak_support::client::{self, Running};
use soak_support::files::Site;
use soak_support::server::FileServer;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const SMALL_FILE: u64 = 10_000;
const PARALLEL_FILE: u64 = 1 << 20;

/// How much a round carries, and how many there are.
struct Sizes {
    big: u64,
    small_files: usize,
    connections: usize,
    rounds: usize,
    /// Live bytes that may be added to the 5 %: few bytes are much of little.
    slack: usize,
}

impl Sizes {
    fn chosen() -> Sizes {
        if std::env::var_os("GODWIT_BARS").is_some_and(|value| value == "1") {
            Sizes { big: 1 << 30, small_files: 1000, connections: 200, rounds: 5, slack: 0 }
        } else {
            Sizes { big: 32 << 20, small_files: 100, connections: 20, rounds: 3, slack: 64 << 10 }
        }
    }
}

#[test]
fn rounds_of_transfers_arrive_whole_and_leave_no_memory_behind() {
    let sizes = Sizes::chosen();
    let site = Site::new(sizes.big, (sizes.small_files, SMALL_FILE), (sizes.connections, PARALLEL_FILE));
    let server = FileServer::start(site.root(), sizes.connections);
    let mut lives = Vec::with_capacity(sizes.rounds);
    for number in 1..=sizes.rounds {
        let seconds = round(&server, &site, &sizes);
        let live = settled(&server);
        println!(
            "round {number}: {} MiB in {:.1} s, {} files of 10 kB on one connection in {:.1} s, \
             {} connections of 1 MiB in {:.1} s; {live} bytes live",
            sizes.big >> 20,
            seconds[0],
            sizes.small_files,
            seconds[1],
            sizes.connections,
            seconds[2],
        );
        lives.push(live);
    }
    let (first, last) = (lives[0], lives[sizes.rounds - 1]);
    assert!(last <= first + first / 20 + sizes.slack, "live bytes grew from {first} to {last}: {lives:?}");
}

/// Fetches everything once and compares every digest. Returns the seconds of each of the three parts.
fn round(server: &FileServer, site: &Site, sizes: &Sizes) -> [f64; 3] {
    let received = site.receiving();
    let folder = received.path();

    let (big, big_seconds) = timed(|| {
        let got = folder.join("big");
        Running::start(client::get(server).arg("-o").arg(&got).arg(server.url(&site.big.path)))
            .expect_success();
        got
    });
    site.big.assert_equal(&big);
    assert_eq!(server.connections_seen(), 1, "one file");
    std::fs::remove_file(big).unwrap();

    let small = folder.join("small");
    std::fs::create_dir(&small).unwrap();
    let list = folder.join("list");
    let urls: String = site.small.iter().map(|file| server.url(&file.path) + "\n").collect();
    std::fs::write(&list, urls).unwrap();
    let ((), small_seconds) = timed(|| {
        let mut command = client::get(server);
        command.arg("--url-file").arg(&list).arg("--output-dir").arg(&small);
        Running::start(&mut command).expect_success();
    });
    for file in &site.small {
        file.assert_equal(&small.join(file.name()));
    }
    assert_eq!(std::fs::read_dir(&small).unwrap().count(), sizes.small_files);
    assert_eq!(server.connections_seen(), 1, "many files");

    // The server answers the first only when all have asked: so many connections there are at one time.
    let ((), parallel_seconds) = timed(|| {
        let start = |file: &soak_support::files::Served| {
            let (to, from) = (folder.join(file.name()), server.url(&file.path));
            Running::start(client::get(server).arg("-o").arg(to).arg(from))
        };
        let running: Vec<Running> = site.parallel.iter().map(start).collect();
        running.into_iter().for_each(Running::expect_success);
    });
    for file in &site.parallel {
        file.assert_equal(&folder.join(file.name()));
    }
    assert_eq!(server.connections_seen(), sizes.connections, "a file on each connection");
    [big_seconds, small_seconds, parallel_seconds]
}

#[expect(clippy::disallowed_methods, reason = "to be shown: nothing depends on it")]
fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let value = work();
    (value, start.elapsed().as_secs_f64())
}

/// Live bytes once all connections are gone, and with them the tasks and threads that served them.
fn settled(server: &FileServer) -> usize {
    const PAUSE: Duration = Duration::from_millis(50);
    /// Two minutes: far longer than a connection that is not left behind can take.
    const PATIENCE: usize = 2400;
    const CALM: usize = 20;
    let idle = (0..PATIENCE).any(|_| {
        std::thread::sleep(PAUSE);
        server.connections() == 0
    });
    assert!(idle, "{} connections are left though their clients have ended", server.connections());
    let (mut last, mut calm) = (live(), 0);
    for _ in 0..PATIENCE {
        std::thread::sleep(PAUSE);
        let now = live();
        calm = if now == last { calm + 1 } else { 0 };
        last = now;
        if calm == CALM {
            break;
        }
    }
    last
}

fn live() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}
