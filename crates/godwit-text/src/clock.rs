//! The clocks that programs and their libraries read. What is below the engine is handed its time instead.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The monotonic clock.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "a program reads the clock")]
pub fn instant_now() -> Instant {
    Instant::now()
}

/// The wall clock in seconds since 1970.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "a program reads the clock")]
pub fn unix_now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
