//! The time of a relay: what the link model counts in, told by the system's clock.

use std::time::Instant;

use godwit_base::Time;

/// A clock that began when the relay did.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    began: Instant,
}

impl Clock {
    /// Begins now.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "a relay of real packets reads the clock")]
    pub fn start() -> Clock {
        Clock { began: Instant::now() }
    }

    /// How late it is.
    #[must_use]
    pub fn now(self) -> Time {
        Time::ZERO + self.began.elapsed()
    }
}
