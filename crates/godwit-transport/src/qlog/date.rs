//! The time of day in words (RFC 3339).

use godwit_base::WallTime;

const MICROS_PER_SECOND: u64 = 1_000_000;
const SECONDS_PER_DAY: u64 = 86_400;
/// Days between 1970 and the first year with five digits, for which the format has no room.
const LAST_DAY: u64 = 2_932_896;

/// Such as `2026-02-28T12:34:56.789Z`; `None` after the year 9999.
pub(super) fn rfc3339(wall: WallTime) -> Option<String> {
    let micros = wall.as_unix_micros();
    let (seconds, millis) = (micros / MICROS_PER_SECOND, micros % MICROS_PER_SECOND / 1000);
    let (days, second) = (seconds / SECONDS_PER_DAY, seconds % SECONDS_PER_DAY);
    if days > LAST_DAY {
        return None;
    }
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second % 3600 / 60, second % 60);
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z"))
}

/// Year, month and day of a day counted from 1970-01-01.
///
/// Years are taken to begin in March, so that the leap day is the last of a year, and counted in cycles of
/// 400 years, after which the calendar repeats.
#[expect(clippy::arithmetic_side_effects, reason = "`days` is below three million")]
fn civil(days: u64) -> (u64, u64, u64) {
    const CYCLE: u64 = 146_097;
    // From the first of March of the year 0.
    let days = days + 719_468;
    let (cycle, day) = (days / CYCLE, days % CYCLE);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // Months from March on have 31, 30, 31, 30, 31 days, and again: 153 in five.
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let january_or_february = u64::from(month >= 10);
    let month = (month + 2) % 12 + 1;
    (cycle * 400 + year + january_or_february, month, day_of_month)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]

    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, date) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, "2000-02-28T23:59:59.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_772_282_096, "2026-02-28T12:34:56.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
            (253_402_300_799, "9999-12-31T23:59:59.000Z"),
        ] {
            let wall = WallTime::from_unix_micros(seconds * MICROS_PER_SECOND);
            assert_eq!(rfc3339(wall).as_deref(), Some(date));
        }
        assert_eq!(rfc3339(WallTime::from_unix_micros(253_402_300_800 * MICROS_PER_SECOND)), None);
        let millis = WallTime::from_unix_micros(1_234_567);
        assert_eq!(rfc3339(millis).as_deref(), Some("1970-01-01T00:00:01.234Z"));
        assert_eq!(rfc3339(WallTime::from_unix_micros(u64::MAX)), None);
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let mut expected = (1970, 1, 1);
        for day in 0..=LAST_DAY {
            assert_eq!(civil(day), expected);
            let (year, month, day) = expected;
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = match month {
                2 => 28 + u64::from(leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            expected = match (month, day) {
                (12, 31) => (year + 1, 1, 1),
                (month, day) if day == length => (year, month + 1, 1),
                _ => (year, month, day + 1),
            };
        }
    }
}
