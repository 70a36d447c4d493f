//! The clocks the program reads, and dates as text. Times are seconds since 1970 UTC, leap seconds not counted.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

const DAY: i64 = 86_400;
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/// The first of January 1970 was a Thursday.
const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];

#[expect(clippy::disallowed_methods, reason = "a program reads the clock")]
pub(crate) fn instant_now() -> Instant {
    Instant::now()
}

/// The wall clock in seconds since 1970.
#[expect(clippy::disallowed_methods, reason = "a program reads the clock")]
pub(crate) fn unix_now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// `2026-11-21`.
pub(crate) fn date(unix: i64) -> String {
    let (year, month, day) = civil(unix.div_euclid(DAY));
    format!("{year:04}-{month:02}-{day:02}")
}

/// `Sat, 21 Nov 2026 20:52:47 GMT` (IMF-fixdate, RFC 9110 section 5.6.7).
pub(crate) fn http_date(unix: i64) -> String {
    let (days, second) = (unix.div_euclid(DAY), unix.rem_euclid(DAY));
    let (year, month, day) = civil(days);
    let weekday = WEEKDAYS[usize::try_from(days.rem_euclid(7)).unwrap_or(0)];
    let month = MONTHS[usize::try_from(month - 1).unwrap_or(0)];
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
}

/// Seconds since 1970 of an HTTP date in any of the three forms of RFC 9110 section 5.6.7.
pub(crate) fn parse_http_date(text: &str) -> Option<i64> {
    let since = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_secs()).ok()
}

/// The Gregorian year, month (1 to 12) and day of a count of days since 1970-01-01.
///
/// Counts in years that begin in March, so that the leap day comes last: 400 such years have 146097 days.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
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
}
