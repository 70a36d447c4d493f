//! The curves of the report, as SVG: how long requests take, up to the slowest.
//!
//! Each chart is drawn twice, for wide and for narrow windows, at about the size at which it is shown. Both axes are
//! stretched: times by their logarithm, shares of requests by how many are slower.

use std::fmt::Write;

use super::samples::{Distribution, Row};

/// Width and height of the drawing for wide and for narrow windows, in its own units.
const SIZES: [(&str, f64, f64); 2] = [("wide", 1000.0, 380.0), ("narrow", 358.0, 280.0)];
/// Shares of requests that are marked, and what they are called.
const MARKS: [(f64, &str); 5] =
    [(0.0, "fastest"), (0.5, "P50"), (0.9, "P90"), (0.99, "P99"), (0.999, "P99.9")];
/// Points of a curve.
const STEPS: u32 = 160;

/// Where things are drawn.
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    low: f64,
    high: f64,
    /// The last share that is drawn, stretched.
    far: f64,
}

/// Shares nearer to 1 get more room: every tenth of the requests as much as the nine tenths before it.
fn stretched(share: f64) -> f64 {
    -(1.0 - share).max(1e-9).log10()
}

impl Frame {
    fn across(&self, share: f64) -> f64 {
        self.left + (self.right - self.left) * stretched(share) / self.far
    }

    fn up(&self, ms: f64) -> f64 {
        let place = (ms / self.low).ln() / (self.high / self.low).ln();
        self.bottom - (self.bottom - self.top) * place.clamp(0.0, 1.0)
    }
}

/// Both protocols' times of one kind, from the fastest to the slowest that can be told.
pub(super) fn curves(out: &mut String, row: &Row<'_>) {
    let reach = row.h2.reach().max(row.h3.reach());
    let known: Vec<f64> = [row.h2, row.h3].iter().flat_map(|side| ends(side)).collect();
    let (low, high) =
        (known.iter().copied().fold(f64::INFINITY, f64::min), known.iter().copied().fold(0.0, f64::max));
    if reach <= 0.5 || low <= 0.0 || !low.is_finite() {
        out.push_str("<p class=\"small\">Too few to draw.</p>");
        return;
    }
    let ticks = ticks(low, high);
    let (low, high) =
        (low.min(*ticks.first().unwrap_or(&low)), high.max(*ticks.last().unwrap_or(&high)) * 1.02);
    for (class, width, height) in SIZES {
        let frame = Frame {
            left: 62.0,
            right: width - 22.0,
            top: 14.0,
            bottom: height - 32.0,
            low,
            high,
            far: stretched(reach),
        };
        let _ = write!(
            out,
            "<svg class=\"{class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"Times from the fastest \
             to the slowest; the figures are in the table\">"
        );
        axes(out, &frame, &ticks, reach, class == "narrow");
        for (line, side) in [("la", row.h2), ("lb", row.h3)] {
            curve(out, &frame, line, side);
        }
        out.push_str("</svg>");
    }
}

/// The fastest and the slowest time that is drawn, in milliseconds.
fn ends(distribution: &Distribution) -> Vec<f64> {
    let ends = [distribution.at(0.0), distribution.at(distribution.reach())];
    ends.into_iter().flatten().map(|time| (time.as_secs_f64() * 1e3).max(0.01)).collect()
}

/// Round times to mark: 1, 2, 5, 10 and so on, from the last one below to the first one above.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let all: Vec<f64> =
        (-2..=6).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power))).collect();
    let first = all.iter().rposition(|tick| *tick <= low).unwrap_or(0);
    let last = all.iter().position(|tick| *tick >= high).unwrap_or(all.len() - 1);
    all.get(first..=last).unwrap_or_default().to_vec()
}

fn axes(out: &mut String, frame: &Frame, ticks: &[f64], reach: f64, narrow: bool) {
    let Frame { left, right, top, bottom, .. } = *frame;
    for tick in ticks {
        let y = frame.up(*tick);
        let label = if *tick >= 1000.0 { format!("{} s", tick / 1e3) } else { format!("{tick} ms") };
        let _ =
            write!(out, "<line class=\"grid\" x1=\"{left}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>");
        let _ =
            write!(out, "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>", left - 8.0, y + 4.5);
    }
    // On a phone the first label would touch the next one.
    let shown = |share: f64| share <= reach && !(narrow && share == 0.0);
    for (share, label) in MARKS.iter().filter(|(share, _)| shown(*share)) {
        let x = frame.across(*share);
        let anchor = if *share == 0.0 { "start" } else { "middle" };
        let _ =
            write!(out, "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{top}\" y2=\"{bottom}\"/>");
        let _ = write!(
            out,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{label}</text>",
            bottom + 21.0
        );
    }
}

fn curve(out: &mut String, frame: &Frame, class: &str, distribution: &Distribution) {
    let reach = stretched(distribution.reach());
    let mut points = String::new();
    for step in 0..=STEPS {
        let share = 1.0 - 10_f64.powf(-reach * f64::from(step) / f64::from(STEPS));
        if let Some(time) = distribution.at(share) {
            let _ = write!(points, "{:.1},{:.1} ", frame.across(share), frame.up(time.as_secs_f64() * 1e3));
        }
    }
    let _ = write!(out, "<polyline class=\"l {class}\" points=\"{}\"/>", points.trim_end());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_surround_the_values() {
        assert_eq!(ticks(30.0, 130.0), [20.0, 50.0, 100.0, 200.0]);
        assert_eq!(ticks(20.0, 20.0), [20.0]);
    }

    #[test]
    fn curves_stay_within_the_drawing() {
        let fast = Distribution::new((1..=20_000).map(|number| number * 7).collect());
        let slow = Distribution::new((1..=500).map(|number| number * 9_000).collect());
        let mut out = String::new();
        curves(&mut out, &Row { key: "all", name: "all", h2: &slow, h3: &fast });
        assert_eq!(out.matches("<polyline").count(), 4);
        assert!(!out.contains("NaN") && !out.contains("inf") && !out.contains("=\"-"), "{out}");
        let mut none = String::new();
        let empty = Distribution::default();
        curves(&mut none, &Row { key: "all", name: "all", h2: &empty, h3: &empty });
        assert!(none.contains("Too few"));
    }
}
