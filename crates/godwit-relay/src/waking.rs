//! How long it takes until a thread that sleeps for a packet runs again: what a router takes off the time at which it
//! reads one that woke it, for it came that much earlier.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use godwit_base::Time;
use nix::poll::{PollFd, PollFlags, ppoll};

use crate::Clock;

/// How often it is tried.
const TIMES: usize = 25;
/// Between two tries: the sleep has to be one.
const PAUSE: Duration = Duration::from_micros(300);
/// More than this is not made up for, whatever was measured: the machine was busy.
const MOST: Duration = Duration::from_micros(150);

/// The median of some tries on the calling thread; zero where it cannot be found out.
pub(crate) fn typical() -> Duration {
    let Ok((mut ours, mut theirs)) = UnixStream::pair() else { return Duration::ZERO };
    let clock = Clock::start();
    let body = move || {
        for _ in 0..TIMES {
            std::thread::sleep(PAUSE);
            let now = clock.now().as_nanos().to_ne_bytes();
            if theirs.write_all(&now).is_err() {
                return;
            }
        }
    };
    let Ok(thread) = std::thread::Builder::new().name("waker".to_owned()).spawn(body) else {
        return Duration::ZERO;
    };
    let mut measured: Vec<Duration> = (0..TIMES).filter_map(|_| once(&mut ours, clock)).collect();
    drop(ours);
    let _ = thread.join();
    measured.sort_unstable();
    measured.get(measured.len() / 2).copied().unwrap_or_default().min(MOST)
}

/// Sleeps until something comes, which says when it was sent.
fn once(ours: &mut UnixStream, clock: Clock) -> Option<Duration> {
    ppoll(&mut [PollFd::new(ours.as_fd(), PollFlags::POLLIN)], None, None).ok()?;
    let woken = clock.now();
    let mut sent = [0; 8];
    ours.read_exact(&mut sent).ok()?;
    Some(woken.saturating_since(Time::from_nanos(u64::from_ne_bytes(sent))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waking_takes_some_time_and_is_not_overestimated() {
        let waking = typical();
        assert!(waking > Duration::ZERO && waking <= MOST, "{waking:?}");
    }
}
