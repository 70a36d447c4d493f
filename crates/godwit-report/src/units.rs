//! Numbers as people read them. Minus signs are plain hyphens, so that every terminal shows them.

/// A latency: `0.45 ms`, `12.3 ms`, `350 ms`, `1.25 s`, `12.3 s`.
pub(crate) fn latency(ms: f64) -> String {
    match ms {
        ms if ms < 9.995 => format!("{ms:.2} ms"),
        ms if ms < 99.95 => format!("{ms:.1} ms"),
        ms if ms < 999.5 => format!("{ms:.0} ms"),
        ms if ms < 9995.0 => format!("{:.2} s", ms / 1e3),
        ms if ms < 99_950.0 => format!("{:.1} s", ms / 1e3),
        ms => format!("{:.0} s", ms / 1e3),
    }
}

/// A count with its thousands apart: `12,345,678`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share of a whole: `0.4 %`, `31 %`.
pub(crate) fn share(part: f64) -> String {
    let percent = part * 100.0;
    if percent > 0.0 && percent < 9.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

/// A difference: `-31 %`, `+2.1 %`.
pub(crate) fn change(percent: f64) -> String {
    if percent.abs() < 9.95 { format!("{percent:+.1} %") } else { format!("{percent:+.0} %") }
}

/// The two ends of a band: `-37 to -31 %`.
pub(crate) fn band(low: f64, high: f64) -> String {
    if low.abs() < 9.95 && high.abs() < 9.95 {
        format!("{low:+.1} to {high:+.1} %")
    } else {
        format!("{low:+.0} to {high:+.0} %")
    }
}

/// A time made of its digits: `2026-11-21 23:21`.
pub(crate) fn minute(digits: u64) -> String {
    let text = format!("{digits:014}");
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    format!("{}-{}-{} {}:{}", part(0, 4), part(4, 6), part(6, 8), part(8, 10), part(10, 12))
}

/// `one`, or the number and the plural.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_plain() {
        let latencies = [
            (0.0, "0.00 ms"),
            (9.994, "9.99 ms"),
            (12.34, "12.3 ms"),
            (99.96, "100 ms"),
            (999.6, "1.00 s"),
            (12_340.0, "12.3 s"),
            (123_400.0, "123 s"),
        ];
        for (ms, text) in latencies {
            assert_eq!(latency(ms), text);
        }
        assert_eq!(
            [count(0), count(999), count(1000), count(12_345_678)],
            ["0", "999", "1,000", "12,345,678"]
        );
        assert_eq!([share(0.0), share(0.0042), share(0.31)], ["0 %", "0.4 %", "31 %"]);
        assert_eq!([change(-31.2), change(2.14)], ["-31 %", "+2.1 %"]);
        assert_eq!(band(-37.4, 4.0), "-37 to +4 %");
        assert_eq!(minute(20_261_121_232_141), "2026-11-21 23:21");
    }
}
