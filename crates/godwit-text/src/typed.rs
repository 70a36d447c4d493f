//! Quantities as they are typed on a command line, with what is wrong with them in a sentence.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::units::{DURATION, Notation, UnitError};

/// The longest run that is accepted.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// A year: beyond it nobody means it, and clocks must not overflow.
const MOST_SECONDS: f64 = 31_536_000.0;

/// How long something shall run: a number with `ms`, `s` or `m`, above zero and up to a day.
///
/// # Errors
/// If it is something else.
pub fn duration(text: &str) -> Result<Duration, String> {
    let nanos = Notation { fractions: true, ..DURATION }.read(text).map_err(|error| match error {
        UnitError::NoUnit { .. } => {
            format!("a duration needs a unit: did you mean {text}s? (ms, s or m)")
        }
        UnitError::TooLarge => "expected a duration from 1ms to 24h".to_owned(),
        _ => "expected a duration such as 500ms, 5s or 1m".to_owned(),
    })?;
    match u64::try_from(nanos).map(Duration::from_nanos) {
        Ok(duration) if duration >= Duration::from_millis(1) && duration <= LONGEST => Ok(duration),
        _ => Err("expected a duration from 1ms to 24h".to_owned()),
    }
}

/// Sizes of transfers are powers of two: `k` is 1024.
const BYTES: Notation = Notation {
    units: &[
        ("", 1),
        ("B", 1),
        ("k", 1 << 10),
        ("K", 1 << 10),
        ("KiB", 1 << 10),
        ("M", 1 << 20),
        ("MiB", 1 << 20),
        ("G", 1 << 30),
        ("GiB", 1 << 30),
    ],
    fractions: false,
    names: "B, k, M or G",
};

/// A number of bytes: a whole number, optionally with `k`/`KiB`, `M`/`MiB` or `G`/`GiB` (powers of 1024).
///
/// # Errors
/// If it is something else.
pub fn bytes(text: &str) -> Result<u64, String> {
    let bytes =
        BYTES.read(text).map_err(|_| "expected a number of bytes such as 512, 8k or 1M".to_owned())?;
    u64::try_from(bytes).map_err(|_| "that is more than 2^64 bytes".to_owned())
}

/// Seconds, above zero and up to a year: `10`, `2.5`.
///
/// # Errors
/// If it is something else.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| *seconds > 0.0 && *seconds <= MOST_SECONDS);
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "expected a number of seconds above 0, such as 10 or 2.5".to_owned())
}

/// Milliseconds within a range: `350`, `0.5`, `20ms`.
///
/// # Errors
/// If it is something else.
pub fn milliseconds(text: &str, range: RangeInclusive<f64>) -> Result<Duration, String> {
    let number = number(text.strip_suffix("ms").unwrap_or(text), &range);
    number.map(|millis| Duration::from_secs_f64(millis / 1e3)).ok_or_else(|| {
        format!("expected milliseconds from {} to {}, for example 350", range.start(), range.end())
    })
}

/// Percent within a range, as a share of one: `3.5`, `3.5%`.
///
/// # Errors
/// If it is something else.
pub fn percent(text: &str, range: RangeInclusive<f64>) -> Result<f64, String> {
    let number = number(text.strip_suffix('%').unwrap_or(text), &range);
    number.map(|percent| percent / 100.0).ok_or_else(|| {
        format!("expected a percentage from {} to {}, for example 3.5", range.start(), range.end())
    })
}

/// Megabits per second, as bits: `50`, `0.4`.
///
/// # Errors
/// If it is something else, or more than 100,000.
pub fn megabits(text: &str) -> Result<u64, String> {
    let number = number(text, &(1e-6..=1e5));
    // In the range of u64.
    number.map(|megabits| (megabits * 1e6) as u64).ok_or_else(|| "expected Mbit/s up to 100000".to_owned())
}

fn number(text: &str, range: &RangeInclusive<f64>) -> Option<f64> {
    text.trim().parse().ok().filter(|number| range.contains(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("5s"), Ok(Duration::from_secs(5)));
        assert_eq!(duration("0.85s"), Ok(Duration::from_millis(850)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        for wrong in ["5", "", "s", "-1s", "0s", "0.1ms", "25h", "1e6s", "1e9s", "NaNs", "127.0.0.1:4433"] {
            assert!(duration(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn sizes_are_whole_numbers() {
        for (text, value) in [("0", 0), ("512", 512), ("8k", 8192), ("64KiB", 65_536), ("1M", 1 << 20)] {
            assert_eq!(bytes(text), Ok(value));
        }
        for wrong in ["", "k", "-1", "1.5k", "8kb", "99999999999G"] {
            assert!(bytes(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn seconds_are_positive_numbers() {
        assert_eq!(seconds("2.5"), Ok(Duration::from_millis(2500)));
        for wrong in ["0", "-1", "", "ten", "inf", "NaN", "1e300"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn figures_of_links_stay_in_their_ranges() {
        assert_eq!(milliseconds("350", 1.0..=5000.0), Ok(Duration::from_millis(350)));
        assert_eq!(milliseconds("20ms", 1.0..=5000.0), Ok(Duration::from_millis(20)));
        assert_eq!(percent("3.5", 0.0..=30.0), Ok(0.035));
        assert_eq!(percent("0%", 0.0..=30.0), Ok(0.0));
        assert_eq!((megabits("50"), megabits("0.4")), (Ok(50_000_000), Ok(400_000)));
        for wrong in ["", "0", "-1", "6000", "NaN", "fast"] {
            assert!(milliseconds(wrong, 1.0..=5000.0).unwrap_err().contains("from 1 to 5000"), "{wrong}");
        }
        for wrong in ["", "-1", "31", "NaN", "much"] {
            assert!(percent(wrong, 0.0..=30.0).unwrap_err().contains("from 0 to 30"), "{wrong}");
        }
        for wrong in ["", "0", "-1", "1e6", "NaN", "fast"] {
            assert!(megabits(wrong).is_err(), "{wrong}");
        }
    }
}
