//! A line as small as a word: how a figure has gone over the last commits.

use std::fmt::{self, Write};

use super::numbers::number;
use super::trend::colour;
use crate::page::escaped;

/// The most commits of it.
pub(super) const COMMITS: usize = 30;
const WIDTH: f64 = 132.0;
const HEIGHT: f64 = 30.0;

/// Draws medians of one machine, the oldest first. Fewer than two make no line.
pub(super) fn draw(out: &mut String, look: usize, unit: &str, values: &[f64]) -> fmt::Result {
    let values = values.get(values.len().saturating_sub(COMMITS)..).unwrap_or(values);
    let ([first, .., last], true) = (values, values.len() > 1) else {
        return out.write_str("<span class=\"small\">first one</span>");
    };
    let (low, high) = values
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(*value), high.max(*value)));
    // What hardly changes shall not look as if it did: a tenth of the figure is the least height.
    let height = (high - low).max(high * 0.1).max(f64::MIN_POSITIVE);
    let middle = (high + low) / 2.0;
    let across = |place: usize| 4.0 + (WIDTH - 12.0) * place as f64 / (values.len() - 1) as f64;
    let up = |value: f64| HEIGHT / 2.0 - (value - middle) / height * (HEIGHT - 10.0);
    let points: Vec<(f64, f64)> =
        values.iter().enumerate().map(|(place, value)| (across(place), up(*value))).collect();
    write!(
        out,
        "<svg class=\"spark\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{} commits: from {} to {} {}, at least \
         {}, at most {}\">",
        values.len(),
        number(*first),
        number(*last),
        escaped(unit),
        number(low),
        number(high)
    )?;
    crate::chart::curve(out, &colour(look), points.iter().copied())?;
    if let Some((x, y)) = points.last() {
        write!(out, "<circle class=\"point {}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"/>", colour(look))?;
    }
    out.write_str(crate::chart::END)
}
