//! The clock of the log.

use std::time::{SystemTime, UNIX_EPOCH};

/// The wall clock in milliseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "a program reads the clock")]
pub(super) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
