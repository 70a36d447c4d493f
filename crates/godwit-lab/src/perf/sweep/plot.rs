//! The curves as a drawing.

use super::Point;
use super::knee::curves;
use godwit_report::chart::{self, Axis, mark};
use std::fmt::{self, Write};

const WIDTH: f64 = 1000.0;
const LEFT: f64 = 110.0;
const RIGHT: f64 = 970.0;
/// The upper and lower end of the rates, and of P99.
const RATES: (f64, f64) = (50.0, 380.0);
const TIMES: (f64, f64) = (440.0, 720.0);
const HEIGHT: f64 = 800.0;

/// The looks of the lines, one after the other.
const LINES: [&str; 4] = ["a", "b", "c", "d"];

const STYLE: &str = "\
svg{background:#fff}text{fill:#5c6670;font:14px system-ui,sans-serif}.grid{stroke:#d7dce1;stroke-width:1}\
.l{fill:none;stroke-width:3;stroke-linejoin:round}.a{stroke:#c2570c}.b{stroke:#0b62c4}.c{stroke:#0f7a3d}.d{stroke:#8a5a00}\
.knee{fill:none;stroke:#1b1f24;stroke-width:2}";

pub(super) fn drawing(points: &[Point], knee: Option<Point>) -> Result<String, fmt::Error> {
    let mut out = String::new();
    write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-label=\"Requests per second and P99 by streams\"><style>{STYLE}</style>"
    )?;
    let mut streams: Vec<u32> = points.iter().map(|point| point.streams).collect();
    streams.sort_unstable();
    streams.dedup();
    let steps = streams.len().saturating_sub(1).max(1) as f64;
    let across = |point: &Point| {
        let place = streams.iter().position(|&streams| streams == point.streams).unwrap_or(0);
        LEFT + 20.0 + (RIGHT - LEFT - 40.0) * place as f64 / steps
    };
    let step = step(points.iter().map(|point| point.per_second).fold(1.0, f64::max));
    let rate = |point: &Point| RATES.1 - (RATES.1 - RATES.0) * point.per_second / (step * 4.0);
    let axis = Axis::of(points.iter().map(|point| point.p99_us / 1e3));
    let time = |ms: f64| TIMES.1 - (TIMES.1 - TIMES.0) * axis.place(ms);
    for number in 0..=4_u32 {
        let y = RATES.1 - (RATES.1 - RATES.0) * f64::from(number) / 4.0;
        level(&mut out, y, &format!("{}", step * f64::from(number)))?;
    }
    for ms in axis.marks() {
        level(&mut out, time(ms), &mark(ms))?;
    }
    chart::label(&mut out, "start", (LEFT, RATES.0 - 20.0), "requests per second")?;
    chart::label(&mut out, "start", (LEFT, TIMES.0 - 20.0), "P99")?;
    chart::label(&mut out, "middle", (WIDTH / 2.0, HEIGHT - 20.0), "streams on each connection")?;
    for point in curves(points).next().unwrap_or_default() {
        chart::label(&mut out, "middle", (across(point), TIMES.1 + 28.0), &point.streams.to_string())?;
    }
    let mut name = LEFT + 200.0;
    for (curve, class) in curves(points).zip(LINES.into_iter().cycle()) {
        chart::curve(&mut out, class, curve.iter().map(|point| (across(point), rate(point))))?;
        chart::curve(&mut out, class, curve.iter().map(|point| (across(point), time(point.p99_us / 1e3))))?;
        if let Some(first) = curve.first() {
            legend(&mut out, &mut name, class, first.connections)?;
        }
    }
    if let Some(point) = knee {
        for y in [rate(&point), time(point.p99_us / 1e3)] {
            write!(out, "<circle class=\"knee\" cx=\"{:.1}\" cy=\"{y:.1}\" r=\"8\"/>", across(&point))?;
        }
    }
    out.write_str(chart::END)?;
    Ok(out)
}

/// A piece of a line with what it stands for, and where the next one belongs.
fn legend(out: &mut String, x: &mut f64, class: &str, connections: u32) -> fmt::Result {
    let y = RATES.0 - 25.0;
    chart::line(out, &format!("l {class}"), (*x, y), (*x + 30.0, y))?;
    let name = format!("{connections} connection{}", if connections == 1 { "" } else { "s" });
    chart::label(out, "start", (*x + 40.0, y + 5.0), &name)?;
    *x += 170.0;
    Ok(())
}

/// A horizontal line with its value.
fn level(out: &mut String, y: f64, value: &str) -> fmt::Result {
    chart::line(out, "grid", (LEFT, y), (RIGHT, y))?;
    chart::label(out, "end", (LEFT - 10.0, y + 5.0), value)
}

/// A round number of which four reach up to `most`.
fn step(most: f64) -> f64 {
    let quarter = most / 4.0;
    let power = 10_f64.powf(quarter.log10().floor());
    [1.0, 2.0, 2.5, 5.0, 10.0]
        .map(|digit| digit * power)
        .into_iter()
        .find(|step| *step >= quarter)
        .unwrap_or(quarter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_round_and_reach_far_enough() {
        for (most, expected) in [(1.0, 0.25), (399.0, 100.0), (401.0, 200.0), (82_000.0, 25_000.0)] {
            assert!((step(most) - expected).abs() < 1e-9, "{most}: {}", step(most));
        }
    }

    #[test]
    fn every_curve_is_drawn_twice_and_the_knee_marked() {
        let of = |connections, streams| Point {
            connections,
            streams,
            per_second: f64::from(streams) * 1000.0,
            per_second_range: [1.0, 2.0],
            p50_us: 10.0,
            p99_us: 20.0 * f64::from(streams),
        };
        let points: Vec<Point> = [1, 2].into_iter().flat_map(|c| [1, 10, 50].map(|s| of(c, s))).collect();
        let text = drawing(&points, Some(points[1])).unwrap();
        assert_eq!(text.matches("<polyline").count(), 4);
        assert_eq!(text.matches("class=\"knee\"").count(), 2);
        assert!(
            text.starts_with("<svg xmlns=") && text.ends_with("</svg>") && !text.contains("NaN"),
            "{text}"
        );
        assert!(drawing(&[], None).is_ok());
    }
}
