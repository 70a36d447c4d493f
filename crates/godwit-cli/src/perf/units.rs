//! Durations and sizes as they are typed on the command line.

use std::time::Duration;

/// The longest run that is accepted.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// A duration: a number with `ms`, `s` or `m`, above zero and up to a day.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text);
    let seconds = match unit {
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "" => return Err(format!("a duration needs a unit: did you mean {text}s? (ms, s or m)")),
        _ => return Err("expected a duration such as 500ms, 5s or 1m".to_owned()),
    };
    let value: f64 = number.parse().map_err(|_| "expected a duration such as 500ms, 5s or 1m".to_owned())?;
    match Duration::try_from_secs_f64(value * seconds) {
        Ok(duration) if duration >= Duration::from_millis(1) && duration <= LONGEST => Ok(duration),
        _ => Err("expected a duration from 1ms to 24h".to_owned()),
    }
}

/// A number of bytes: a whole number, optionally with `k`/`KiB`, `M`/`MiB` or `G`/`GiB` (powers of 1024).
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || "expected a number of bytes such as 512, 8k or 1M".to_owned();
    let (number, unit) = split(text);
    let shift = match unit {
        "" | "B" => 0,
        "k" | "K" | "KiB" => 10,
        "M" | "MiB" => 20,
        "G" | "GiB" => 30,
        _ => return Err(wrong()),
    };
    let value: u64 = number.parse().map_err(|_| wrong())?;
    value.checked_mul(1 << shift).ok_or_else(|| "that is more than 2^64 bytes".to_owned())
}

/// Where the letters begin.
fn split(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len()))
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
        for wrong in ["5", "", "s", "-1s", "0s", "0.1ms", "25h", "5 s", "1e9s", "NaNs", "127.0.0.1:4433"] {
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
}
