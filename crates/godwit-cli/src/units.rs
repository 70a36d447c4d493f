//! Durations and sizes as they are typed on the command line.

use std::time::Duration;

use godwit_text::units::{DURATION, Notation, UnitError};

/// The longest run that is accepted.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// A duration: a number with `ms`, `s` or `m`, above zero and up to a day.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
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
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let bytes =
        BYTES.read(text).map_err(|_| "expected a number of bytes such as 512, 8k or 1M".to_owned())?;
    u64::try_from(bytes).map_err(|_| "that is more than 2^64 bytes".to_owned())
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
}
