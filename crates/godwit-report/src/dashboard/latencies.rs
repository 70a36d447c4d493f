//! How latencies are distributed: of all programs, in the newest measurement of each machine.

use std::fmt::{self, Write};

use super::history::{Figure, Latency, Measurement};
use super::look::{self, Place};
use super::numbers::number;
use super::read::Recorded;
use super::scale::Scale;
use super::site::{Setup, Site};
use super::trend::{colour, key_list, outline};
use crate::chart::{self, WIDTHS};
use crate::page::{END_SECTION, escaped};

/// The most scenarios of a machine.
const MOST_SCENARIOS: usize = 50;

pub(super) fn write(out: &mut String, site: &Site<'_>) -> fmt::Result {
    look::begin(out, "Godwit: latencies", Place::Latencies)?;
    let about = "What so many of a hundred do not exceed. Lower is better; both axes are stretched towards the slowest.";
    look::head(out, "Distributions", "open", "Latencies", about)?;
    let mut any = false;
    for setup in &site.setups {
        let mut files = setup.files.iter().rev().map(|file| (*file, distributions(&file.measurement)));
        if let Some((file, latencies)) = files.find(|(_, latencies)| !latencies.is_empty()) {
            any = true;
            one_setup(out, site, setup, file, &latencies)?;
        }
    }
    if !any {
        out.write_str("<section><p>No file of the history holds a distribution of latencies.</p></section>")?;
    }
    look::end(out)
}

/// Every distribution of a file. Where there is none for a scenario, figures that are percentiles make one.
fn distributions(measurement: &Measurement) -> Vec<Latency> {
    let mut all = measurement.latencies.clone();
    for figure in &measurement.figures {
        let Some(percentile) = percentile(&figure.figure) else { continue };
        let Figure { scenario, program, unit, median, .. } = figure;
        if measurement.latencies.iter().any(|latency| latency.scenario == *scenario) {
            continue;
        }
        let same = |latency: &&mut Latency| {
            latency.scenario == *scenario && latency.program == *program && latency.unit == *unit
        };
        match all.iter_mut().find(same) {
            Some(latency) => latency.percentiles.push((percentile, *median)),
            None => all.push(Latency {
                scenario: scenario.clone(),
                program: program.clone(),
                unit: unit.clone(),
                percentiles: vec![(percentile, *median)],
            }),
        }
    }
    for latency in &mut all {
        latency.percentiles.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    }
    all
}

/// `p99.9` is one.
fn percentile(figure: &str) -> Option<f64> {
    let number = figure.strip_prefix(['p', 'P'])?;
    number.parse().ok().filter(|percentile| (0.0..=100.0).contains(percentile))
}

fn one_setup(
    out: &mut String,
    site: &Site<'_>,
    setup: &Setup<'_>,
    file: &Recorded,
    latencies: &[Latency],
) -> fmt::Result {
    let mut scenarios: Vec<(&str, &str)> = Vec::new();
    for latency in latencies {
        let scenario = (latency.scenario.as_str(), latency.unit.as_str());
        if !scenarios.contains(&scenario) {
            scenarios.push(scenario);
        }
    }
    for (scenario, unit) in scenarios.into_iter().take(MOST_SCENARIOS) {
        let same = |latency: &&Latency| latency.scenario == scenario && latency.unit == unit;
        let mut latencies: Vec<&Latency> = latencies.iter().filter(same).collect();
        latencies.sort_by_key(|latency| site.look_of(&latency.program));
        write!(
            out,
            "<section><h2>{}</h2><p class=\"small\">In {}, at commit ",
            escaped(scenario),
            escaped(unit)
        )?;
        look::commit(out, site, file)?;
        write!(out, "; {}</p>", escaped(&setup.title()))?;
        look::conditions(out, setup)?;
        let curves: Vec<Curve<'_>> = latencies.iter().map(|latency| Curve::new(site, latency)).collect();
        draw(out, scenario, unit, &curves)?;
        table(out, scenario, &curves)?;
        out.write_str(END_SECTION)?;
    }
    Ok(())
}

struct Curve<'a> {
    program: &'a str,
    look: usize,
    ours: bool,
    percentiles: &'a [(f64, f64)],
}

impl<'a> Curve<'a> {
    fn new(site: &Site<'_>, latency: &'a Latency) -> Curve<'a> {
        let ours = |program: &str| {
            let figures = site.history.files().iter().flat_map(|file| &file.measurement.figures);
            figures.into_iter().any(|figure| figure.ours && figure.program == program)
        };
        let program = latency.program.as_str();
        Curve { program, look: site.look_of(program), ours: ours(program), percentiles: &latency.percentiles }
    }

    fn at(&self, percentile: f64) -> Option<f64> {
        self.percentiles.iter().find(|(known, _)| *known == percentile).map(|(_, value)| *value)
    }
}

/// Every percentile of some curve, in order.
fn percentiles(curves: &[Curve<'_>]) -> Vec<f64> {
    let mut all: Vec<f64> =
        curves.iter().flat_map(|curve| curve.percentiles).map(|(percentile, _)| *percentile).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    all
}

/// How far to the right a percentile is: each further nine is as wide as the one before.
fn stretched(percentile: f64) -> f64 {
    -((100.0 - percentile).max(1e-4) / 100.0).log10()
}

fn draw(out: &mut String, scenario: &str, unit: &str, curves: &[Curve<'_>]) -> fmt::Result {
    let all = percentiles(curves);
    let (Some(first), Some(last)) = (all.first(), all.last()) else { return Ok(()) };
    let (low, high) = (stretched(*first), stretched(*last));
    let values = curves.iter().flat_map(|curve| curve.percentiles).map(|(_, value)| *value);
    let scale = Scale::logarithmic(values);
    key_list(out, curves.iter().map(|curve| (curve.program, curve.look, curve.ours)))?;
    for (class, width) in WIDTHS {
        let (left, right, top, height) =
            if class == "narrow" { (58.0, 24.0, 12.0, 300.0) } else { (74.0, 34.0, 16.0, 400.0) };
        let bottom = height - 34.0;
        let across = |percentile: f64| {
            let part = if high > low { (stretched(percentile) - low) / (high - low) } else { 0.5 };
            left + 12.0 + (width - left - right - 24.0) * part
        };
        let up = |value: f64| bottom - (bottom - top) * scale.place(value);
        let about = format!("{scenario}: {unit} by percentile; the figures are in the table below");
        chart::begin(out, class, width, height, &about)?;
        for (mark, text) in scale.marks() {
            chart::line(out, "grid", (left, up(mark)), (width - right, up(mark)))?;
            chart::label(out, "end", (left - 8.0, up(mark) + 4.5), &text)?;
        }
        labels(out, &all, &across, bottom + 22.0)?;
        for curve in curves {
            let points =
                || curve.percentiles.iter().map(|(percentile, value)| (across(*percentile), up(*value)));
            let class = format!("{}{}", colour(curve.look), if curve.ours { " ours" } else { "" });
            chart::curve(out, &class, points())?;
            for (at, (percentile, value)) in points().zip(curve.percentiles) {
                write!(
                    out,
                    "<path class=\"point {}\" d=\"{}\"><title>{}: P{percentile} {} {}</title></path>",
                    colour(curve.look),
                    outline(curve.look, at, 5.0),
                    escaped(curve.program),
                    number(*value),
                    escaped(unit)
                )?;
            }
        }
        out.write_str(chart::END)?;
    }
    Ok(())
}

/// The names of percentiles, as far as they do not run into each other.
fn labels(out: &mut String, all: &[f64], across: &impl Fn(f64) -> f64, y: f64) -> fmt::Result {
    let mut free = f64::NEG_INFINITY;
    for percentile in all {
        let x = across(*percentile);
        if x >= free {
            chart::label(out, "middle", (x, y), &format!("P{percentile}"))?;
            free = x + 56.0;
        }
    }
    Ok(())
}

fn table(out: &mut String, scenario: &str, curves: &[Curve<'_>]) -> fmt::Result {
    let all = percentiles(curves);
    let names: Vec<String> = all.iter().map(|percentile| format!("P{percentile}")).collect();
    let columns: Vec<&str> = std::iter::once("program").chain(names.iter().map(String::as_str)).collect();
    look::table(out, &format!("Latencies: {scenario}"), "", &columns)?;
    for curve in curves {
        write!(out, "<tr><th scope=\"row\">{}</th>", escaped(curve.program))?;
        for percentile in &all {
            match curve.at(*percentile) {
                Some(value) => write!(out, "<td>{}</td>", number(value))?,
                None => out.write_str("<td>\u{2013}</td>")?,
            }
        }
        out.write_str("</tr>\n")?;
    }
    out.write_str(look::END_TABLE)
}
