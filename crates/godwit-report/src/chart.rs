//! What every chart is drawn with, as SVG. Charts on pages are drawn twice, for wide and for narrow windows, at about
//! the size at which they are shown.

use std::fmt::{self, Write};

use crate::page::escaped;

/// Width of the drawing for wide and for narrow windows, in its own units.
pub const WIDTHS: [(&str, f64); 2] = [("wide", 1000.0), ("narrow", 358.0)];

/// A logarithmic axis of latencies.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    /// An axis that holds all values, with whole steps of 1, 2, 5 at its ends.
    #[must_use]
    pub fn of(values: impl Iterator<Item = f64> + Clone) -> Axis {
        let low = values.clone().fold(f64::INFINITY, f64::min).clamp(0.01, 1e7);
        let high = values.fold(0.0, f64::max).clamp(0.02, 1e8);
        let below = Axis::steps().rfind(|&step| step <= low).unwrap_or(0.01);
        let above = Axis::steps().find(|&step| step >= high && step > below).unwrap_or(1e8);
        Axis { low: below, high: above }
    }

    /// 0.01, 0.02, 0.05, 0.1 and so on.
    fn steps() -> impl DoubleEndedIterator<Item = f64> + Clone {
        (-2..=8).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power)))
    }

    /// The steps that are marked: all of them, or the powers of ten where those would be too many.
    #[must_use]
    pub fn marks(&self) -> Vec<f64> {
        let inside = |step: &f64| *step >= self.low * 0.999 && *step <= self.high * 1.001;
        let all: Vec<f64> = Axis::steps().filter(inside).collect();
        if all.len() <= 9 {
            return all;
        }
        all.into_iter().filter(|step| (step.log10() - step.log10().round()).abs() < 1e-6).collect()
    }

    /// Where a value lies, 0 at the low end and 1 at the high one.
    #[must_use]
    pub fn place(&self, ms: f64) -> f64 {
        ((ms / self.low).ln() / (self.high / self.low).ln()).clamp(0.0, 1.0)
    }
}

/// A latency on an axis: `50 ms`, `2 s`.
#[must_use]
pub fn mark(ms: f64) -> String {
    if ms >= 1000.0 { format!("{} s", ms / 1000.0) } else { format!("{ms} ms") }
}

/// Opens a drawing on a page; its class is that of one of the [`WIDTHS`].
///
/// # Errors
/// If it cannot be written.
pub fn begin(out: &mut impl Write, class: &str, width: f64, height: f64, label: &str) -> fmt::Result {
    write!(
        out,
        "<svg class=\"{class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">",
        escaped(label)
    )
}

/// Closes a drawing.
pub const END: &str = "</svg>";

/// A straight line.
///
/// # Errors
/// If it cannot be written.
pub fn line(out: &mut impl Write, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> fmt::Result {
    write!(out, "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>")
}

/// A label whose `start`, `middle` or `end` stands at a place.
///
/// # Errors
/// If it cannot be written.
pub fn label(out: &mut impl Write, anchor: &str, (x, y): (f64, f64), text: &str) -> fmt::Result {
    write!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>", escaped(text))
}

/// A line through many points.
///
/// # Errors
/// If it cannot be written.
pub fn curve(out: &mut impl Write, class: &str, points: impl IntoIterator<Item = (f64, f64)>) -> fmt::Result {
    write!(out, "<polyline class=\"l {class}\" points=\"")?;
    for (number, (x, y)) in points.into_iter().enumerate() {
        let between = if number == 0 { "" } else { " " };
        write!(out, "{between}{x:.1},{y:.1}")?;
    }
    out.write_str("\"/>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_surround_the_values() {
        let marks = |low: f64, high: f64| Axis::of([low, high].into_iter()).marks();
        assert_eq!(marks(30.0, 130.0), [20.0, 50.0, 100.0, 200.0]);
        assert_eq!(marks(20.0, 20.0), [20.0, 50.0]);
    }

    #[test]
    fn labels_are_safe() {
        let mut out = String::new();
        label(&mut out, "end", (1.0, 2.04), "<a>").unwrap();
        assert_eq!(out, "<text x=\"1.0\" y=\"2.0\" text-anchor=\"end\">&lt;a&gt;</text>");
        out.clear();
        curve(&mut out, "la", [(0.0, 1.0), (2.0, 3.0)]).unwrap();
        assert_eq!(out, "<polyline class=\"l la\" points=\"0.0,1.0 2.0,3.0\"/>");
    }
}
