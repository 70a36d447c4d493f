//! Charts as SVG. Each is drawn twice, for wide and for narrow windows, at about the size at which it is shown.

use std::fmt::{self, Write};

use super::escaped;
use crate::analysis::{Breakdown, Class, Comparison, Distribution, LABELS, Point};
use crate::units::latency;

/// Width of the drawing for wide and for narrow windows, in its own units.
const WIDTHS: [(&str, f64); 2] = [("wide", 1000.0), ("narrow", 358.0)];

/// A logarithmic axis of latencies.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    /// An axis that holds all values, with whole steps of 1, 2, 5 at its ends.
    fn of(values: impl Iterator<Item = f64> + Clone) -> Axis {
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
    fn marks(&self) -> Vec<f64> {
        let inside = |step: &f64| *step >= self.low * 0.999 && *step <= self.high * 1.001;
        let all: Vec<f64> = Axis::steps().filter(inside).collect();
        if all.len() <= 9 {
            return all;
        }
        all.into_iter().filter(|step| (step.log10() - step.log10().round()).abs() < 1e-6).collect()
    }

    /// Where a value lies, 0 at the low end and 1 at the high one.
    fn place(&self, ms: f64) -> f64 {
        ((ms / self.low).ln() / (self.high / self.low).ln()).clamp(0.0, 1.0)
    }
}

/// A latency on an axis: `50 ms`, `2 s`.
fn mark(ms: f64) -> String {
    if ms >= 1000.0 { format!("{} s", ms / 1000.0) } else { format!("{ms} ms") }
}

fn known(distributions: [&Distribution; 2]) -> Vec<f64> {
    let points = distributions.iter().flat_map(|distribution| &distribution.points);
    points.filter_map(|point| point.ms).collect()
}

/// The percentiles of both groups, as lines over P50 to P99.99.
pub(super) fn percentiles(out: &mut String, comparison: &Comparison) -> fmt::Result {
    let axis = Axis::of(known([&comparison.control, &comparison.http3]).into_iter());
    for (class, width) in WIDTHS {
        let narrow = class == "narrow";
        let (left, right, top, height) =
            if narrow { (66.0, 12.0, 12.0, 300.0) } else { (64.0, 24.0, 16.0, 420.0) };
        let bottom = height - 34.0;
        let across = |place: usize| left + 16.0 + (width - left - right - 32.0) * place as f64 / 6.0;
        let up = |ms: f64| bottom - (bottom - top) * axis.place(ms);
        write!(
            out,
            "<svg class=\"{class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
             aria-label=\"Latency by percentile; the figures are in the first table\">"
        )?;
        for step in axis.marks() {
            let y = up(step);
            write!(
                out,
                "<line class=\"grid\" x1=\"{left}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>",
                width - right
            )?;
            write!(
                out,
                "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                left - 8.0,
                y + 4.5,
                mark(step)
            )?;
        }
        for (place, label) in LABELS.iter().enumerate() {
            // Seven labels do not fit on a phone.
            if !narrow || matches!(place, 0 | 2 | 4 | 6) {
                let text = (across(place), bottom + 22.0);
                write!(
                    out,
                    "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
                    text.0, text.1
                )?;
            }
        }
        for (line, fill, side) in [("la", "fa", &comparison.control), ("lb", "fb", &comparison.http3)] {
            curve(out, line, fill, &side.points, &across, &up)?;
        }
        out.write_str("</svg>")?;
    }
    Ok(())
}

fn curve(
    out: &mut String,
    line: &str,
    fill: &str,
    points: &[Point; 7],
    across: &impl Fn(usize) -> f64,
    up: &impl Fn(f64) -> f64,
) -> fmt::Result {
    let places: Vec<_> = points
        .iter()
        .enumerate()
        .filter_map(|(place, point)| Some((place, point.ms?, point.reliable)))
        .collect();
    for pair in places.windows(2) {
        let [(from, low, _), (to, high, reliable)] = pair else { continue };
        let faint = if *reliable { "" } else { " faint dash" };
        let ends = [across(*from), up(*low), across(*to), up(*high)];
        let [x1, y1, x2, y2] = ends;
        write!(
            out,
            "<line class=\"l {line}{faint}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        )?;
    }
    for (place, ms, reliable) in places {
        let faint = if reliable { "" } else { " faint" };
        write!(
            out,
            "<circle class=\"{fill}{faint}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"4.5\"><title>{}: {}</title></circle>",
            across(place),
            up(ms),
            LABELS.get(place).unwrap_or(&""),
            latency(ms)
        )?;
    }
    Ok(())
}

/// Two bars for each class: its P99 in both groups.
pub(super) fn bars(out: &mut String, breakdown: &Breakdown) -> fmt::Result {
    let longest = breakdown.classes.iter().flat_map(|class| [p99(&class.control), p99(&class.http3)]);
    let longest = longest.filter_map(|point| point.ms).fold(0.0, f64::max);
    if longest <= 0.0 {
        return Ok(());
    }
    for (class, width) in WIDTHS {
        let narrow = class == "narrow";
        // On a phone a class's name stands above its bars.
        let (left, row) = if narrow { (0.0, 74.0) } else { (130.0, 54.0) };
        let height = row * breakdown.classes.len() as f64;
        write!(
            out,
            "<svg class=\"{class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
             aria-label=\"P99 by class; the figures are in the tables\">"
        )?;
        for (place, group) in breakdown.classes.iter().enumerate() {
            let top = row * place as f64;
            let (y, first) = if narrow { (top + 18.0, top + 26.0) } else { (top + 29.0, top + 4.0) };
            write!(out, "<text class=\"ink\" x=\"0\" y=\"{y:.1}\">{}</text>", escaped(&group.label))?;
            let length = (width - left - 90.0) / longest;
            bar_pair(out, group, left, first, length)?;
        }
        out.write_str("</svg>")?;
    }
    Ok(())
}

fn bar_pair(out: &mut String, class: &Class, left: f64, top: f64, length: f64) -> fmt::Result {
    for (fill, side, y) in [("fa", &class.control, top), ("fb", &class.http3, top + 22.0)] {
        let point = p99(side);
        let Some(ms) = point.ms else { continue };
        let long = (ms * length).max(2.0);
        let faint = if point.reliable { "" } else { " faint" };
        write!(
            out,
            "<rect class=\"{fill}{faint}\" x=\"{left}\" y=\"{y:.1}\" width=\"{long:.1}\" height=\"18\" rx=\"3\"/>"
        )?;
        let tilde = if point.reliable { "" } else { "~" };
        write!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\">{tilde}{}</text>",
            left + long + 8.0,
            y + 14.0,
            latency(ms)
        )?;
    }
    Ok(())
}

fn p99(distribution: &Distribution) -> Point {
    distribution.points.get(4).copied().unwrap_or_default()
}
