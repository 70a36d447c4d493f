//! The upright axis of a chart: even steps where figures are alike, a logarithm where they are not.

use super::numbers;
use crate::chart::Axis;

/// Figures that are this many times apart do not fit on an axis of even steps.
const FAR_APART: f64 = 30.0;
/// What the logarithmic axis has room for.
const LOGARITHMIC: (f64, f64) = (0.01, 1e8);
/// The most marks of an axis of even steps.
const MARKS: f64 = 6.0;

#[derive(Clone, Copy, Debug)]
pub(super) enum Scale {
    Even { low: f64, high: f64, step: f64 },
    Logarithmic(Axis),
}

impl Scale {
    /// A scale that holds all values. It begins at zero, unless what is of interest would be lost in the upper half.
    pub(super) fn of(values: impl Iterator<Item = f64> + Clone) -> Scale {
        let low = values.clone().fold(f64::INFINITY, f64::min);
        let high = values.clone().fold(0.0, f64::max);
        if low >= LOGARITHMIC.0 && high <= LOGARITHMIC.1 && high / low > FAR_APART {
            return Scale::logarithmic(values);
        }
        let low = if low.is_finite() { low } else { 0.0 };
        let high = if high > 0.0 { high } else { 1.0 };
        let from = if low > high * 0.6 { (low - (high - low) * 0.5).max(0.0) } else { 0.0 };
        // All alike: some room around them.
        let from = if high - from < high * 0.02 { high * 0.95 } else { from };
        let step = even_step((high - from) / MARKS);
        Scale::Even { low: (from / step).floor() * step, high: (high / step).ceil() * step, step }
    }

    pub(super) fn logarithmic(values: impl Iterator<Item = f64> + Clone) -> Scale {
        Scale::Logarithmic(Axis::of(values))
    }

    /// Where a value lies, 0 below and 1 above.
    pub(super) fn place(&self, value: f64) -> f64 {
        match self {
            Scale::Even { low, high, .. } => ((value - low) / (high - low)).clamp(0.0, 1.0),
            Scale::Logarithmic(axis) => axis.place(value.max(1e-9)),
        }
    }

    pub(super) fn marks(&self) -> Vec<(f64, String)> {
        let marks = match *self {
            Scale::Even { low, high, step } => {
                let number = ((high - low) / step).round().clamp(1.0, 2.0 * MARKS) as u32;
                (0..=number).map(|mark| low + step * f64::from(mark)).collect()
            }
            Scale::Logarithmic(axis) => axis.marks(),
        };
        marks.into_iter().map(|mark| (mark, numbers::step(mark))).collect()
    }

    /// What a reader has to know of it.
    pub(super) fn remark(&self) -> &'static str {
        match self {
            Scale::Even { low, .. } if *low > 0.0 => "the axis does not begin at zero",
            Scale::Even { .. } => "the axis begins at zero",
            Scale::Logarithmic(_) => "logarithmic axis",
        }
    }
}

/// The least of 1, 2, 5, 10 and so on that is as large.
fn even_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.max(1e-9).log10().floor());
    let digit = [1.0, 2.0, 5.0].into_iter().find(|digit| digit * power >= least * 0.999);
    digit.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(values: &[f64]) -> Vec<String> {
        Scale::of(values.iter().copied()).marks().into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn steps_are_even_and_hold_all_values() {
        assert_eq!(marks(&[8000.0, 15_000.0]), ["0", "5,000", "10,000", "15,000"]);
        assert_eq!(marks(&[0.86, 0.9]), ["0.84", "0.85", "0.86", "0.87", "0.88", "0.89", "0.9"]);
        assert_eq!(marks(&[]).first().map(String::as_str), Some("0"));
        assert_eq!(marks(&[0.0]).first().map(String::as_str), Some("0"));
        let scale = Scale::of([5.0, 5.0].into_iter());
        assert!(scale.place(5.0) > 0.0 && scale.marks().len() > 1, "{scale:?}");
    }

    #[test]
    fn what_is_far_apart_gets_a_logarithm_and_all_is_said() {
        assert_eq!(Scale::of([1.0, 100.0].into_iter()).remark(), "logarithmic axis");
        assert_eq!(Scale::of([90.0, 100.0].into_iter()).remark(), "the axis does not begin at zero");
        assert_eq!(Scale::of([10.0, 100.0].into_iter()).remark(), "the axis begins at zero");
    }

    #[test]
    fn no_values_make_it_endless() {
        for value in [1e-12, 1e-3, 1.0, 7.3e14, 1e15] {
            for values in [vec![value], vec![value, value * 1.01], vec![0.0, value], vec![value, 1e15]] {
                let scale = Scale::of(values.iter().copied());
                assert!((1..=40).contains(&scale.marks().len()), "{values:?}: {scale:?}");
                assert!(values.iter().all(|value| scale.place(*value).is_finite()), "{values:?}");
            }
        }
    }
}
