//! The curves of the report, as SVG: how long requests take, up to the slowest.
//!
//! Each chart is drawn twice, for wide and for narrow windows, at about the size at which it is shown. Both axes are
//! stretched: times by their logarithm, shares of requests by how many are slower.

use godwit_report::chart::{self, Axis, mark};

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
    axis: Axis,
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
        self.bottom - (self.bottom - self.top) * self.axis.place(ms)
    }
}

/// Both protocols' times of one kind, from the fastest to the slowest that can be told.
pub(super) fn curves(out: &mut String, row: &Row<'_>) {
    let reach = row.h2.reach().max(row.h3.reach());
    let known: Vec<f64> = [row.h2, row.h3].iter().flat_map(|side| ends(side)).collect();
    let low = known.iter().copied().fold(f64::INFINITY, f64::min);
    if reach <= 0.5 || low <= 0.0 || !low.is_finite() {
        out.push_str("<p class=\"small\">Too few to draw.</p>");
        return;
    }
    let axis = Axis::of(known.iter().copied());
    for (class, width, height) in SIZES {
        let frame = Frame {
            left: 62.0,
            right: width - 22.0,
            top: 14.0,
            bottom: height - 32.0,
            axis,
            far: stretched(reach),
        };
        let about = "Times from the fastest to the slowest; the figures are in the table";
        let _ = chart::begin(out, class, width, height, about);
        axes(out, &frame, reach, class == "narrow");
        for (line, side) in [("la", row.h2), ("lb", row.h3)] {
            curve(out, &frame, line, side);
        }
        out.push_str(chart::END);
    }
}

/// The fastest and the slowest time that is drawn, in milliseconds.
fn ends(distribution: &Distribution) -> Vec<f64> {
    let ends = [distribution.at(0.0), distribution.at(distribution.reach())];
    ends.into_iter().flatten().map(|time| (time.as_secs_f64() * 1e3).max(0.01)).collect()
}

fn axes(out: &mut String, frame: &Frame, reach: f64, narrow: bool) {
    let Frame { left, right, top, bottom, .. } = *frame;
    for tick in frame.axis.marks() {
        let y = frame.up(tick);
        let _ = chart::line(out, "grid", (left, y), (right, y));
        let _ = chart::label(out, "end", (left - 8.0, y + 4.5), &mark(tick));
    }
    // On a phone the first label would touch the next one.
    let shown = |share: f64| share <= reach && !(narrow && share == 0.0);
    for (share, label) in MARKS.iter().filter(|(share, _)| shown(*share)) {
        let x = frame.across(*share);
        let anchor = if *share == 0.0 { "start" } else { "middle" };
        let _ = chart::line(out, "grid", (x, top), (x, bottom));
        let _ = chart::label(out, anchor, (x, bottom + 21.0), label);
    }
}

fn curve(out: &mut String, frame: &Frame, class: &str, distribution: &Distribution) {
    let reach = stretched(distribution.reach());
    let points = (0..=STEPS).filter_map(|step| {
        let share = 1.0 - 10_f64.powf(-reach * f64::from(step) / f64::from(STEPS));
        let time = distribution.at(share)?;
        Some((frame.across(share), frame.up(time.as_secs_f64() * 1e3)))
    });
    let _ = chart::curve(out, class, points);
}

#[cfg(test)]
mod tests {
    use super::*;

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
