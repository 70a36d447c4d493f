//! Dates as text. Times are counted from 1970 UTC, without leap seconds.
//!
//! The Gregorian calendar is `time`'s and the dates of HTTP are `httpdate`'s; all of them end with the year 9999, for
//! which the formats have no room.

use std::time::{Duration, UNIX_EPOCH};

use time::OffsetDateTime;

/// The first second of the year 1, and the last of the year 9999.
const FIRST: i64 = -62_135_596_800;
const LAST: i64 = 253_402_300_799;

/// `2026-11-21`; times that the formats have no room for count as the nearest that they have.
#[must_use]
pub fn date(unix: i64) -> String {
    let date = OffsetDateTime::from_unix_timestamp(unix.clamp(FIRST, LAST));
    let date = date.unwrap_or(OffsetDateTime::UNIX_EPOCH).date();
    format!("{:04}-{:02}-{:02}", date.year(), u8::from(date.month()), date.day())
}

/// `Sat, 21 Nov 2026 20:52:47 GMT` (IMF-fixdate, RFC 9110 section 5.6.7). What is before 1970 counts as 1970.
#[must_use]
pub fn http_date(unix: i64) -> String {
    let since = Duration::from_secs(u64::try_from(unix.min(LAST)).unwrap_or(0));
    httpdate::fmt_http_date(UNIX_EPOCH + since)
}

/// Seconds since 1970 of an HTTP date in any of the three forms of RFC 9110 section 5.6.7.
#[must_use]
pub fn parse_http_date(text: &str) -> Option<i64> {
    let since = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_secs()).ok()
}

/// `2026-11-21T23:21:41.123Z` (RFC 3339) of milliseconds since 1970; `None` after the year 9999.
#[must_use]
pub fn rfc3339(unix_ms: u64) -> Option<String> {
    let (seconds, millis) = (unix_ms / 1000, unix_ms % 1000);
    let at = OffsetDateTime::from_unix_timestamp(i64::try_from(seconds).ok()?).ok()?;
    let (year, month, day) = (at.year(), u8::from(at.month()), at.day());
    let (hour, minute, second) = at.to_hms();
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_match_the_calendar() {
        let cases = [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_795_294_367, "Sat, 21 Nov 2026 20:52:47 GMT"),
            (4_107_542_399, "Sun, 28 Feb 2100 23:59:59 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        ];
        for (unix, text) in cases {
            assert_eq!(http_date(unix), text);
            assert_eq!(parse_http_date(text), Some(unix));
        }
        assert_eq!(date(1_795_294_367), "2026-11-21");
        assert_eq!(date(-1), "1969-12-31");
    }

    #[test]
    fn times_without_room_are_the_last() {
        assert_eq!(http_date(i64::MAX), "Fri, 31 Dec 9999 23:59:59 GMT");
        assert_eq!(http_date(-1), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(date(i64::MAX), "9999-12-31");
        assert_eq!(date(i64::MIN), "0001-01-01");
    }

    #[test]
    fn times_of_day_are_those_of_the_calendar() {
        for (seconds, date) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, "2000-02-28T23:59:59.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_772_282_096, "2026-02-28T12:34:56.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
            (253_402_300_799, "9999-12-31T23:59:59.000Z"),
        ] {
            assert_eq!(rfc3339(seconds * 1000).as_deref(), Some(date));
        }
        assert_eq!(rfc3339(1234).as_deref(), Some("1970-01-01T00:00:01.234Z"));
        assert_eq!(rfc3339(253_402_300_800_000), None);
        assert_eq!(rfc3339(u64::MAX), None);
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for count in 0..=2_932_896 {
            assert_eq!(date(count * 86_400), format!("{year:04}-{month:02}-{day:02}"));
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = match month {
                2 => 28 + u64::from(leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            (year, month, day) = match (month, day) {
                (12, 31) => (year + 1, 1, 1),
                (month, day) if day == length => (year, month + 1, 1),
                (month, day) => (year, month, day + 1),
            };
        }
    }
}
