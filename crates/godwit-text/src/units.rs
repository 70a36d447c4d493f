//! Quantities with units, read and written.
//!
//! A number stands directly before its unit or with one blank between. What units there are, and whether parts of one
//! may be told, is a [`Notation`]; the usual ones are [`DURATION`] and [`SIZE`].

use std::fmt;
use std::time::Duration;

/// How a kind of quantity is told.
#[derive(Clone, Copy, Debug)]
pub struct Notation {
    /// The units' names, and how many of the smallest part of the quantity each has.
    pub units: &'static [(&'static str, u64)],
    /// Whether `0.5` is a number.
    pub fractions: bool,
    /// What an error says that the units are.
    pub names: &'static str,
}

/// What is wrong with a quantity. As text it is the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnitError {
    /// It does not begin with a number.
    NoNumber,
    /// No such number is of use.
    TooLarge,
    /// The number is there, the unit is not.
    NoUnit {
        /// The number.
        number: String,
    },
    /// A part of a unit where only whole ones are told.
    Fraction,
    /// The number is there, and something that is no unit.
    UnknownUnit {
        /// What came.
        unit: String,
        /// The units there are.
        names: &'static str,
    },
    /// A duration beyond a year.
    OverAYear,
    /// Nothing, where there must be something.
    Nothing,
    /// A rate that does not end with `/s`.
    NotPerSecond,
}

impl fmt::Display for UnitError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnitError::NoNumber => formatter.write_str("begin with a number"),
            UnitError::TooLarge => formatter.write_str("use a smaller number"),
            UnitError::NoUnit { number } => write!(formatter, "add a unit, for example \"{number}s\""),
            UnitError::Fraction => formatter.write_str("use a whole number of a smaller unit"),
            UnitError::UnknownUnit { unit, names } => write!(formatter, "{unit:?} is no unit: use {names}"),
            UnitError::OverAYear => formatter.write_str("a year is the most"),
            UnitError::Nothing => formatter.write_str("use more than nothing"),
            UnitError::NotPerSecond => formatter.write_str("end it with \"/s\""),
        }
    }
}

impl std::error::Error for UnitError {}

const NANOS_PER_MS: u64 = 1_000_000;

/// Durations, in nanoseconds.
pub const DURATION: Notation = Notation {
    units: &[
        ("ms", NANOS_PER_MS),
        ("s", 1000 * NANOS_PER_MS),
        ("m", 60_000 * NANOS_PER_MS),
        ("min", 60_000 * NANOS_PER_MS),
        ("h", 3_600_000 * NANOS_PER_MS),
        ("d", 86_400_000 * NANOS_PER_MS),
    ],
    fractions: false,
    names: "ms, s, m, h or d",
};

/// Sizes, in bytes; a number alone is one of bytes.
pub const SIZE: Notation = Notation {
    units: &[
        ("", 1),
        ("B", 1),
        ("kB", 1000),
        ("KB", 1000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
    ],
    fractions: false,
    names: "B, kB, MB, GB, KiB, MiB or GiB",
};

/// Longer durations are mistakes.
const LONGEST: Duration = Duration::from_secs(366 * 86_400);

impl Notation {
    /// How many of the smallest part `text` says.
    ///
    /// # Errors
    /// If it is no number with one of the units, or too large.
    pub fn read(&self, text: &str) -> Result<u128, UnitError> {
        let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (whole, mut rest) = text.split_at(digits(text));
        if whole.is_empty() {
            return Err(UnitError::NoNumber);
        }
        let number: u64 = whole.parse().map_err(|_| UnitError::TooLarge)?;
        let mut fraction = "";
        if let Some(behind) = rest.strip_prefix('.') {
            if !self.fractions {
                return Err(UnitError::Fraction);
            }
            (fraction, rest) = behind.split_at(digits(behind));
        }
        let unit = rest.trim_start();
        let Some((_, factor)) = self.units.iter().find(|(name, _)| *name == unit) else {
            return Err(match unit {
                "" => UnitError::NoUnit { number: whole.to_owned() },
                unit => UnitError::UnknownUnit { unit: unit.to_owned(), names: self.names },
            });
        };
        let factor = u128::from(*factor);
        // Digits beyond the smallest part are of no use.
        let mut place = factor;
        let parts = fraction.bytes().map(|digit| {
            place /= 10;
            u128::from(digit.saturating_sub(b'0')).saturating_mul(place)
        });
        Ok(u128::from(number).saturating_mul(factor).saturating_add(parts.sum()))
    }
}

/// A duration such as `250ms`, `5s`, `2m`, `1h` or `1d`: more than nothing, a year at most.
///
/// # Errors
/// If it is something else.
pub fn duration(text: &str) -> Result<Duration, UnitError> {
    match duration_or_zero(text)? {
        Duration::ZERO => Err(UnitError::Nothing),
        duration => Ok(duration),
    }
}

/// The same, which may be nothing (`0s`).
///
/// # Errors
/// If it is something else.
pub fn duration_or_zero(text: &str) -> Result<Duration, UnitError> {
    let nanos = u64::try_from(DURATION.read(text)?).map_err(|_| UnitError::OverAYear)?;
    Some(Duration::from_nanos(nanos)).filter(|duration| *duration <= LONGEST).ok_or(UnitError::OverAYear)
}

/// A size such as `64KiB`, `10MB` or `512`, in bytes.
///
/// # Errors
/// If it is something else.
pub fn size(text: &str) -> Result<u64, UnitError> {
    u64::try_from(SIZE.read(text)?).map_err(|_| UnitError::TooLarge)
}

/// Bytes in a second, such as `10MB/s`.
///
/// # Errors
/// If it is something else, or nothing.
pub fn rate(text: &str) -> Result<u64, UnitError> {
    match size(text.strip_suffix("/s").ok_or(UnitError::NotPerSecond)?)? {
        0 => Err(UnitError::Nothing),
        rate => Ok(rate),
    }
}

/// A size in binary units, with three digits at most: `0 B`, `208 KiB`, `7 MiB`, `1.5 GiB`.
#[must_use]
pub fn write_size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = "B";
    for next in UNITS {
        if value < 1000.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    if value >= 99.95 || (value - value.round()).abs() < 0.05 {
        format!("{value:.0} {unit}")
    } else {
        format!("{value:.1} {unit}")
    }
}

/// A duration as people write it: `0.31ms`, `12ms`, `4.1s`.
#[must_use]
pub fn write_duration(elapsed: Duration) -> String {
    // In whole numbers: lines of logs have one each.
    let micros = elapsed.as_nanos().saturating_add(500) / 1000;
    match micros {
        0..9_950 => {
            let hundredths = micros.saturating_add(5) / 10;
            format!("{}.{:02}ms", hundredths / 100, hundredths % 100)
        }
        9_950..999_500 => format!("{}ms", micros.saturating_add(500) / 1000),
        _ => {
            let tenths = micros.saturating_add(50_000) / 100_000;
            format!("{}.{}s", tenths / 10, tenths % 10)
        }
    }
}

/// Writes a duration of seconds to years with the two largest units that it has, such as `30 d`, `1 h 30 min`, `5 s`.
/// What is less than a second is left out, and the rest of what is shown is rounded down.
pub fn write_long_duration(duration: Duration) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3600, "h"), (60, "min"), (1, "s")];
    let mut rest = duration.as_secs();
    let mut words: Vec<String> = Vec::new();
    for (length, name) in UNITS {
        let (count, left) = (rest / length, rest % length);
        rest = left;
        if count > 0 {
            words.push(format!("{count} {name}"));
        }
        if words.len() == 2 || (count == 0 && !words.is_empty()) {
            break;
        }
    }
    if words.is_empty() { "0 s".to_owned() } else { words.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_units() {
        for (text, milliseconds) in
            [("250ms", 250), ("5s", 5000), ("2m", 120_000), ("1 h", 3_600_000), ("1d", 86_400_000)]
        {
            assert_eq!(duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for (text, remedy) in [
            ("5", "add a unit, for example \"5s\""),
            ("", "begin with a number"),
            ("-5s", "begin with a number"),
            ("1.5s", "smaller unit"),
            ("5sec", "\"sec\" is no unit"),
            ("0s", "more than nothing"),
            ("400d", "a year"),
            ("99999999999999999999s", "smaller number"),
            ("18446744073709551615d", "a year"),
        ] {
            assert!(duration(text).unwrap_err().to_string().contains(remedy), "{text}: {:?}", duration(text));
        }
        assert_eq!(duration_or_zero("0s"), Ok(Duration::ZERO));
    }

    #[test]
    fn sizes_and_rates() {
        for (text, bytes) in [("17", 17), ("64KiB", 65_536), ("10MB", 10_000_000), ("1 GiB", 1 << 30)] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "KiB", "1.5MB", "1 mb", "99999999999GiB", "-1"] {
            assert!(size(text).is_err(), "{text}");
        }
        assert_eq!(rate("256B/s"), Ok(256));
        assert!(rate("256B").unwrap_err().to_string().contains("/s"));
        assert_eq!(rate("0B/s"), Err(UnitError::Nothing));
    }

    #[test]
    fn parts_of_a_unit_where_they_may_be_told() {
        let notation = Notation { fractions: true, ..DURATION };
        for (text, nanos) in [
            ("0.85s", 850_000_000),
            ("1.5 ms", 1_500_000),
            ("2m", 120_000_000_000),
            ("1.s", 1_000_000_000),
            ("0.0000000001s", 0),
        ] {
            assert_eq!(notation.read(text), Ok(nanos), "{text}");
        }
        for wrong in ["", "s", ".5s", "-1s", "1.5", "1.5.5s", "1e9s", "NaNs", "127.0.0.1:4433"] {
            assert!(notation.read(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn sizes_are_short() {
        let cases = [
            (0, "0 B"),
            (999, "999 B"),
            (212_992, "208 KiB"),
            (1536, "1.5 KiB"),
            (7_340_032, "7 MiB"),
            (1_610_612_736, "1.5 GiB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(write_size(bytes), text);
        }
    }

    #[test]
    fn durations_are_short() {
        let cases = [(310, "0.31ms"), (12_400, "12ms"), (999_600, "1.0s"), (4_120_000, "4.1s")];
        for (micros, text) in cases {
            assert_eq!(write_duration(Duration::from_micros(micros)), text);
        }
    }

    #[test]
    fn long_durations_have_two_units() {
        for (text, seconds) in [
            ("0 s", 0),
            ("5 s", 5),
            ("1 min", 60),
            ("1 min 1 s", 61),
            ("1 h 30 min", 5400),
            ("1 h", 3601),
            ("1 d", 86_400),
            ("30 d", 2_592_000),
            ("2 d 3 h", 2 * 86_400 + 3 * 3600 + 59 * 60),
        ] {
            assert_eq!(write_long_duration(Duration::from_secs(seconds)), text);
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_that_is_typed_ends_the_program(text in "\\PC*", number in "[0-9]{1,30}(\\.[0-9]{0,40})?") {
            let notation = Notation { fractions: true, ..DURATION };
            for text in [text, format!("{number}d"), format!("{number} GiB")] {
                let _ = (notation.read(&text), duration(&text), size(&text), rate(&text));
            }
        }
    }
}
