//! A monotonic time that all processes of a system name alike.

use std::time::Duration;

/// The time since the system was started, which is the same for all processes of the system; sleep is not counted. Zero
/// where the system does not tell.
#[cfg(unix)]
pub fn since_boot() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one `timespec`, borrowed here exclusively.
    let rc = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    match (rc, seconds, nanos) {
        (0, Ok(seconds), Ok(nanos)) => Duration::new(seconds, nanos),
        _ => Duration::ZERO,
    }
}

/// The time since the system was started: this one does not tell.
#[cfg(not(unix))]
pub fn since_boot() -> Duration {
    Duration::ZERO
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn the_system_has_been_up_for_a_while() {
        let first = since_boot();
        assert!(first > Duration::ZERO && since_boot() >= first);
    }
}
