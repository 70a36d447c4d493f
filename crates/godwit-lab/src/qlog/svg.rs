//! The drawing: window and bytes in flight, round-trip time, and rates, one above the other over the same time.

use godwit_report::chart;

use super::analysis::Analysis;
use super::series::Bin;

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 985.0;
const PANEL: f64 = 200.0;
const GAP: f64 = 60.0;
const TOP: f64 = 40.0;
/// Bins in the panel of rates: few enough that each holds several packets.
const RATES: usize = 120;
/// Lines across a panel, and over time.
const TICKS: u32 = 4;

const STYLE: &str = "svg{background:#fff;font:13px sans-serif;fill:#222}.grid{stroke:#ddd}.l{fill:none;stroke-width:1.5}\
    .a{stroke:#1565c0}.b{stroke:#ef6c00}.c{stroke:#2e7d32}.x{stroke:#c62828;stroke-width:1}\
    .ta{fill:#1565c0}.tb{fill:#ef6c00}.tc{fill:#2e7d32}.tx{fill:#c62828}";

/// A curve: class, name, points of time in seconds and value.
type Curve<'a> = (&'a str, &'a str, Vec<(f64, f64)>);

/// The whole document.
pub(super) fn draw(analysis: &Analysis) -> String {
    let length = analysis.length.as_secs_f64().max(1e-3);
    let height = TOP + 3.0 * (PANEL + GAP);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"Window, bytes in flight, round-trip time and rate over time\"><style>{STYLE}</style>"
    );
    let width = analysis.series.width().as_secs_f64();
    let of = |bins: &[Bin], width: f64, value: &dyn Fn(&Bin) -> Option<f64>| -> Vec<(f64, f64)> {
        let middle = |number: usize| ((number as f64 + 0.5) * width).min(length);
        bins.iter().enumerate().filter_map(|(number, bin)| Some((middle(number), value(bin)?))).collect()
    };
    let bins = analysis.series.bins();
    let kib = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64 / 1024.0);
    let bytes = [
        ("a", "congestion window", of(bins, width, &|bin| kib(bin.window))),
        ("b", "bytes in flight", of(bins, width, &|bin| kib(bin.in_flight))),
    ];
    panel(&mut out, 0, "KiB", length, &bytes);
    losses(&mut out, bins, width, length);
    panel(&mut out, 1, "ms", length, &[("c", "smoothed round-trip time", of(bins, width, &|bin| bin.rtt))]);
    let (coarse_width, coarse) = analysis.series.coarse(RATES);
    let coarse_width = coarse_width.as_secs_f64();
    let rate = |bytes: u64| Some(bytes as f64 * 8e-6 / coarse_width);
    let rates = [
        ("a", "sent", of(&coarse, coarse_width, &|bin| rate(bin.sent))),
        ("b", "received", of(&coarse, coarse_width, &|bin| rate(bin.received))),
    ];
    panel(&mut out, 2, "Mbit/s", length, &rates);
    out.push_str("</svg>\n");
    out
}

fn across(time: f64, length: f64) -> f64 {
    LEFT + (RIGHT - LEFT) * (time / length).clamp(0.0, 1.0)
}

/// Upper edge of a panel.
fn top(number: u32) -> f64 {
    TOP + f64::from(number) * (PANEL + GAP)
}

/// The least of 1, 2, 5, 10 … that is no smaller.
fn round_up(value: f64) -> f64 {
    let power = 10_f64.powf(value.max(1e-3).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power);
    steps.into_iter().find(|step| *step >= value).unwrap_or(value)
}

fn panel(out: &mut String, number: u32, unit: &str, length: f64, curves: &[Curve<'_>]) {
    let (upper, lower) = (top(number), top(number) + PANEL);
    let most = curves.iter().flat_map(|(.., points)| points).map(|(_, value)| *value).fold(0.0, f64::max);
    let most = round_up(most);
    for tick in 0..=TICKS {
        let share = f64::from(tick) / f64::from(TICKS);
        let (y, x) = (lower - PANEL * share, LEFT + (RIGHT - LEFT) * share);
        let (value, time) = (most * share, length * share);
        let _ = chart::line(out, "grid", (LEFT, y), (RIGHT, y));
        let _ = chart::label(out, "end", (LEFT - 6.0, y + 4.0), &short(value));
        let _ = chart::label(out, "middle", (x, lower + 18.0), &format!("{} s", short(time)));
    }
    let _ = chart::label(out, "start", (LEFT, upper - 10.0), unit);
    let mut x = LEFT + 70.0;
    for (class, name, points) in curves {
        let y = upper - 10.0;
        out.push_str(&format!("<text class=\"t{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{name}</text>"));
        x += 12.0 * name.len() as f64;
        let place = |(time, value): &(f64, f64)| (across(*time, length), lower - PANEL * value / most);
        let _ = chart::curve(out, class, points.iter().map(place));
    }
}

/// A mark in the first panel for every bin with losses.
fn losses(out: &mut String, bins: &[Bin], width: f64, length: f64) {
    let lower = top(0) + PANEL;
    let mut any = false;
    for (number, _) in bins.iter().enumerate().filter(|(_, bin)| bin.lost > 0) {
        any = true;
        let x = across((number as f64 + 0.5) * width, length);
        let _ = chart::line(out, "x", (x, lower - 12.0), (x, lower));
    }
    if any {
        let (x, y) = (RIGHT, top(0) - 10.0);
        out.push_str(&format!("<text class=\"tx\" x=\"{x}\" y=\"{y}\" text-anchor=\"end\">losses</text>"));
    }
}

/// A number with as many digits as tell it from its neighbours.
fn short(value: f64) -> String {
    let digits = if value >= 100.0 || value == 0.0 {
        0
    } else if value >= 1.0 {
        1
    } else {
        3
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
