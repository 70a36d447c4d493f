//! Monotonic time as a number of nanoseconds, and wall time for what outlives a process.
//!
//! Both are plain values that are passed in. All arithmetic saturates, so that a hostile delay on the
//! wire cannot overflow.

use std::fmt;
use std::num::NonZeroU64;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// A point on a monotonic clock, in nanoseconds since an epoch that only the driver knows.
///
/// An `Option<Time>` is no larger: connections, of which a server has many, hold dozens of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(
    /// One more than the nanoseconds.
    NonZeroU64,
);

impl Time {
    /// The epoch itself: the earliest time there is.
    pub const ZERO: Time = Time(NonZeroU64::MIN);
    /// The latest time there is (about 584 years after the epoch).
    pub const MAX: Time = Time(NonZeroU64::MAX);

    /// The time `nanos` nanoseconds after the epoch, or the latest there is.
    pub const fn from_nanos(nanos: u64) -> Self {
        Time(NonZeroU64::MIN.saturating_add(nanos))
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0.get().saturating_sub(1)
    }

    /// Whole microseconds since the epoch.
    pub const fn as_micros(self) -> u64 {
        self.as_nanos() / 1_000
    }

    /// How long ago `earlier` was, or zero if it lies in the future.
    pub const fn saturating_since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.get().saturating_sub(earlier.0.get()))
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    /// Saturates at [`Time::MAX`].
    fn add(self, rhs: Duration) -> Time {
        Time(self.0.saturating_add(nanos(rhs)))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, rhs: Duration) {
        *self = *self + rhs;
    }
}

impl Sub<Duration> for Time {
    type Output = Time;

    /// Saturates at [`Time::ZERO`].
    fn sub(self, rhs: Duration) -> Time {
        Time::from_nanos(self.as_nanos().saturating_sub(nanos(rhs)))
    }
}

impl Sub<Time> for Time {
    type Output = Duration;

    /// The same as [`Time::saturating_since`].
    fn sub(self, rhs: Time) -> Duration {
        self.saturating_since(rhs)
    }
}

impl Default for Time {
    fn default() -> Self {
        Time::ZERO
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Time").field(&self.as_nanos()).finish()
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A point in calendar time, in microseconds since the Unix epoch.
///
/// Address tokens and session tickets carry it, because they may be read by another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct WallTime(u64);

impl WallTime {
    /// The wall time `micros` microseconds after the Unix epoch.
    pub const fn from_unix_micros(micros: u64) -> Self {
        WallTime(micros)
    }

    /// Microseconds since the Unix epoch.
    pub const fn as_unix_micros(self) -> u64 {
        self.0
    }

    /// How long ago `earlier` was, or zero if it lies in the future.
    pub const fn saturating_since(self, earlier: WallTime) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for WallTime {
    type Output = WallTime;

    /// Saturates at the latest time that can be told.
    fn add(self, rhs: Duration) -> WallTime {
        WallTime(self.0.saturating_add(u64::try_from(rhs.as_micros()).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_may_be_missing_is_no_larger() {
        assert_eq!(size_of::<Option<Time>>(), size_of::<u64>());
        assert_eq!((Time::default(), Time::from_nanos(7).as_nanos()), (Time::ZERO, 7));
        assert_eq!(format!("{:?}", Time::from_nanos(7)), "Time(7)");
        assert_eq!(Time::from_nanos(u64::MAX), Time::MAX);
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Time::MAX + Duration::from_secs(1), Time::MAX);
        assert_eq!(Time::ZERO - Duration::from_secs(1), Time::ZERO);
        assert_eq!(Time::from_nanos(5) - Time::from_nanos(9), Duration::ZERO);
        assert_eq!(Time::from_nanos(1) + Duration::MAX, Time::MAX);
    }
}
