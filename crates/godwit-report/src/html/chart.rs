//! The charts of the report.

use std::fmt::{self, Write};

use crate::analysis::{Breakdown, Class, Comparison, Distribution, LABELS, Point};
use crate::chart::{self, Axis, WIDTHS, mark};
use crate::page::escaped;
use crate::units::latency;

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
        let about = "Latency by percentile; the figures are in the first table";
        chart::begin(out, class, width, height, about)?;
        for step in axis.marks() {
            let y = up(step);
            chart::line(out, "grid", (left, y), (width - right, y))?;
            chart::label(out, "end", (left - 8.0, y + 4.5), &mark(step))?;
        }
        for (place, label) in LABELS.iter().enumerate() {
            // Seven labels do not fit on a phone.
            if !narrow || matches!(place, 0 | 2 | 4 | 6) {
                chart::label(out, "middle", (across(place), bottom + 22.0), label)?;
            }
        }
        for (line, fill, side) in [("la", "fa", &comparison.control), ("lb", "fb", &comparison.http3)] {
            curve(out, line, fill, &side.points, &across, &up)?;
        }
        out.write_str(chart::END)?;
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
        let (from, to) = ((across(*from), up(*low)), (across(*to), up(*high)));
        chart::line(out, &format!("l {line}{faint}"), from, to)?;
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
        chart::begin(out, class, width, height, "P99 by class; the figures are in the tables")?;
        for (place, group) in breakdown.classes.iter().enumerate() {
            let top = row * place as f64;
            let (y, first) = if narrow { (top + 18.0, top + 26.0) } else { (top + 29.0, top + 4.0) };
            write!(out, "<text class=\"ink\" x=\"0\" y=\"{y:.1}\">{}</text>", escaped(&group.label))?;
            let length = (width - left - 90.0) / longest;
            bar_pair(out, group, left, first, length)?;
        }
        out.write_str(chart::END)?;
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
