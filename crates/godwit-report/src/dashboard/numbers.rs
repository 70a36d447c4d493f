//! Figures as they stand on pages: as many digits as they are worth, with their unit.

use super::history::Figure;
use crate::units::count;

/// `15,611`, `432`, `81.3`, `4.05`, `0.871`.
pub(super) fn number(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        value if value < 0.000_95 => format!("{value:.1e}"),
        value if value < 0.9995 => format!("{value:.3}"),
        value if value < 9.995 => format!("{value:.2}"),
        value if value < 99.95 => format!("{value:.1}"),
        // A larger figure would not have been taken.
        value => count(value.round() as u64),
    }
}

/// A step of an axis: `15,000`, `0.5`.
pub(super) fn step(value: f64) -> String {
    if value >= 1000.0 { count(value.round() as u64) } else { format!("{}", (value * 1e6).round() / 1e6) }
}

/// `15,611 (14,771–16,989)`: a median with its spread.
pub(super) fn with_spread(figure: &Figure) -> String {
    format!("{} ({})", number(figure.median), spread(figure))
}

/// `14,771–16,989`: the least and the most of all runs.
pub(super) fn spread(figure: &Figure) -> String {
    format!("{}\u{2013}{}", number(figure.least), number(figure.most))
}

/// How much more or less something is than one: `12 % more`, `3.1 % less`, `2.4 times as much`.
pub(super) fn beside_one(ratio: f64) -> String {
    let percent = (ratio - 1.0).abs() * 100.0;
    let way = if ratio > 1.0 { "more" } else { "less" };
    match ratio {
        ratio if ratio >= 2.0 => format!("{} times as much", number(ratio)),
        _ if percent < 9.95 => format!("{percent:.1} % {way}"),
        _ => format!("{percent:.0} % {way}"),
    }
}

/// How many times as good something is: `1.85`, and `0.003` where two digits would say nothing.
pub(super) fn times(times: f64) -> String {
    if times < 0.095 { number(times) } else { format!("{times:.2}") }
}

/// A part of a whole in percent: `87.1 %`.
pub(super) fn part(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_what_a_figure_is_worth() {
        let numbers = [0.0, 0.0001, 0.8712, 0.9996, 4.049, 9.996, 81.34, 99.96, 432.4, 15_611.3];
        let texts = ["0", "1.0e-4", "0.871", "1.00", "4.05", "10.0", "81.3", "100", "432", "15,611"];
        assert_eq!(numbers.map(number), texts);
        assert_eq!([0.5, 2000.0, 0.1 + 0.2, 25.0].map(step), ["0.5", "2,000", "0.3", "25"]);
    }

    #[test]
    fn ratios_are_said_in_words() {
        let words = ["85 % more", "12 % less", "3.1 % less", "2.40 times as much"];
        assert_eq!([1.85, 0.88, 0.969, 2.4].map(beside_one), words);
        assert_eq!([1.853, 0.8, 0.0033].map(times), ["1.85", "0.80", "0.003"]);
        assert_eq!(part(0.8713), "87.1 %");
    }
}
