//! Two live endpoints, and a middle that knows all keys and speaks for both of them: it leaves frames out, says them twice,
//! changes their numbers, and adds frames of every kind, in Initial, Handshake, 0-RTT and 1-RTT packets, in both
//! directions. Whatever is said, nobody panics, both ends are done within bounded time and a bounded number of steps, what
//! they hold meanwhile is bounded, and nothing is left of it.
//!
//! 100 seeds; a thousand with `GODWIT_FULL=1`, so many times a thousand with a higher number. `GODWIT_SEED` is one alone.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "tests")]

mod frames;
mod heap;
mod initial;
mod life;
mod middle;
mod said;
mod talker;

use middle::Counts;

/// What two endpoints with their simulated network may hold at once, with at most two connections of each that are
/// open, closing or draining. Their windows, buffers and queues (see [`life`]) come to 2 MiB.
const MOST_HELD: usize = 4 << 20;

/// Nothing is left but what the thread keeps for all seeds alike, which grows to its size in a few of them.
const LEFT: usize = 64 << 10;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn whatever_is_said_ends_within_bounds() {
    let seeds = match number("GODWIT_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("GODWIT_FULL").map_or(100, |times| 1000 * times),
    };
    // What grows once has grown after these.
    for seed in 0..3 {
        life::live(1 << 40 | seed);
    }
    let before = heap::live();
    let (mut counts, mut most_held, mut established, mut early) = (Counts::default(), 0, 0, 0);
    let asked = seeds.end - seeds.start;
    for seed in seeds {
        let lived = life::live(seed);
        assert!(
            lived.most_held <= MOST_HELD,
            "seed {seed}: {} bytes were held, {MOST_HELD} may be",
            lived.most_held
        );
        counts.add(&lived.counts);
        most_held = most_held.max(lived.most_held);
        established += lived.established;
        early += lived.early;
        let left = heap::live().saturating_sub(before);
        assert!(left <= LEFT, "seed {seed}: {left} bytes are left");
    }
    println!(
        "{counts:?}\n{established} handshakes, {early} of them with 0-RTT; {most_held} bytes held at most"
    );
    if asked >= 100 {
        counts.assert_everything_was_said();
        assert!(established > asked, "most connections are worth lying to");
        assert!(early > asked / 20, "0-RTT was offered");
    }
}
