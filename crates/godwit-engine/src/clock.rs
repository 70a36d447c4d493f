//! The only place where the clock is read.

use godwit_base::{Time, WallTime};
use godwit_os::clock;
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How far the process's first reading is from [`Time::ZERO`], so that going back a little from it is
/// possible.
const HEAD_START: Duration = Duration::from_secs(3600);
/// How long the distance between both clocks is believed to stay the same.
const WALL_VALID: Duration = Duration::from_secs(1);

/// Maps the system's clocks to [`Time`] and [`WallTime`].
///
/// All clocks of a process have the same epoch, so that times of different shards compare.
#[derive(Debug, Clone)]
pub struct Clock {
    epoch: Instant,
    /// The epoch as all processes of the system name it.
    since_boot: Duration,
    wall: Option<(Time, WallTime)>,
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock {
    /// A clock.
    pub fn new() -> Self {
        static EPOCH: OnceLock<(Instant, Duration)> = OnceLock::new();
        let (epoch, since_boot) = *EPOCH.get_or_init(read_epoch);
        Clock { epoch, since_boot, wall: None }
    }

    /// The time now.
    pub fn now(&self) -> Time {
        self.time(read_monotonic())
    }

    /// Our name for an instant that the caller has read from the system's clock.
    pub fn time(&self, instant: Instant) -> Time {
        Time::ZERO + HEAD_START + instant.saturating_duration_since(self.epoch)
    }

    /// The wall time at `now`, a time that was read just now. The system's calendar is looked at once a
    /// second at most.
    pub fn wall(&mut self, now: Time) -> WallTime {
        if let Some((at, wall)) = self.wall
            && at <= now
            && now.saturating_since(at) < WALL_VALID
        {
            return wall + now.saturating_since(at);
        }
        let wall = read_calendar();
        self.wall = Some((now, wall));
        wall
    }

    /// What every process of the system calls `time`: how long the system had been up.
    pub(crate) fn since_boot(&self, time: Time) -> Duration {
        self.since_boot + time.saturating_since(Time::ZERO + HEAD_START)
    }

    /// What the system's monotonic clock shows at [`Time::ZERO`], in nanoseconds: with a system that was started a short
    /// time ago, less than nothing.
    pub(crate) fn zero_on_system_clock(&self) -> i64 {
        let nanos = |duration: Duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
        nanos(self.since_boot).saturating_sub(nanos(HEAD_START))
    }

    /// What is called `time` here, by how long the system had been up.
    pub(crate) fn at_boot_time(&self, since_boot: Duration) -> Time {
        match since_boot.checked_sub(self.since_boot) {
            Some(since) => Time::ZERO + HEAD_START + since,
            None => Time::ZERO,
        }
    }

    /// The system's name for `time`.
    pub fn instant(&self, time: Time) -> Instant {
        let since = time.saturating_since(Time::ZERO + HEAD_START);
        // Beyond what the system can tell lies "never": a year is far enough.
        self.epoch.checked_add(since).unwrap_or_else(|| self.epoch + Duration::from_secs(365 * 86_400))
    }
}

/// Both names of one point in time. Who is interrupted between the readings tries again.
fn read_epoch() -> (Instant, Duration) {
    let read = || {
        let before = clock::since_boot();
        let instant = read_monotonic();
        (clock::since_boot().saturating_sub(before), instant, before)
    };
    let readings = [read(), read(), read()].into_iter();
    let (_, instant, before) = readings.min_by_key(|(gap, ..)| *gap).unwrap_or_else(read);
    (instant, before)
}

#[expect(clippy::disallowed_methods, reason = "the engine is where the clock is read")]
pub(crate) fn read_monotonic() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "the engine is where the clock is read")]
pub(crate) fn read_calendar() -> WallTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    WallTime::from_unix_micros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_of_a_process_agree_and_do_not_go_back() {
        let (one, other) = (Clock::new(), Clock::new());
        let times = [one.now(), other.now(), one.now()];
        assert!(times.is_sorted());
        assert!(times[0] > Time::ZERO + HEAD_START - Duration::from_nanos(1));
        assert!(one.instant(times[2]) >= one.instant(times[0]));
        let _ = one.instant(Time::MAX);
        assert_eq!(one.time(other.instant(times[2])), times[2]);
    }

    #[test]
    fn times_are_told_to_other_processes_and_back() {
        let clock = Clock::new();
        let now = clock.now();
        assert_eq!(clock.at_boot_time(clock.since_boot(now)), now);
        assert_eq!(clock.at_boot_time(Duration::ZERO), Time::ZERO);
    }

    #[test]
    fn departure_times_are_told_by_the_systems_clock() {
        let clock = Clock::new();
        let now = clock.now();
        let told = now.as_nanos().checked_add_signed(clock.zero_on_system_clock());
        assert_eq!(told.map(Duration::from_nanos), Some(clock.since_boot(now)));
    }

    #[test]
    fn wall_time_moves_with_the_monotonic_clock() {
        let mut clock = Clock::new();
        let now = clock.now();
        let first = clock.wall(now);
        assert_eq!(clock.wall(now + Duration::from_millis(500)), first + Duration::from_millis(500));
        // After 2020 and before 2100: the unit is right.
        assert!((1_577_836_800_000_000..4_102_444_800_000_000).contains(&first.as_unix_micros()));
    }
}
