//! A bar for each program in one measurement, the best of them first, with a line from the least to the most of its runs.

use std::fmt::{self, Write};

use super::history::{Better, Figure};
use super::numbers::with_spread;
use super::site::Site;
use super::trend::colour;
use crate::chart::{self, WIDTHS};
use crate::page::escaped;

/// The most letters of a name for which there is room, in narrow drawings and in wide ones.
const ROOM: (usize, usize) = (24, 34);

/// Draws these figures, which are of one kind.
pub(super) fn draw(out: &mut String, site: &Site<'_>, about: &str, figures: &[&Figure]) -> fmt::Result {
    let longest = figures.iter().map(|figure| figure.most).fold(0.0, f64::max);
    if longest <= 0.0 {
        return Ok(());
    }
    let mut figures = figures.to_vec();
    figures.sort_by(|one, other| match one.better {
        Better::More => other.median.total_cmp(&one.median),
        Better::Less => one.median.total_cmp(&other.median),
    });
    for (class, width) in WIDTHS {
        let narrow = class == "narrow";
        // On a phone a program's name stands above its bar.
        let (left, right, row) = if narrow { (0.0, 0.0, 52.0) } else { (250.0, 200.0, 34.0) };
        chart::begin(out, class, width, row * figures.len() as f64, about)?;
        let scale = (width - left - right - 6.0) / longest;
        for (place, figure) in figures.iter().enumerate() {
            let top = row * place as f64;
            let (words, bar) = if narrow { (top + 16.0, top + 24.0) } else { (top + 21.0, top + 7.0) };
            name(out, figure, words, if narrow { ROOM.0 } else { ROOM.1 })?;
            chart::label(out, "end", (width, words), &with_spread(figure))?;
            let length = |value: f64| left + value * scale;
            write!(
                out,
                "<rect class=\"fill {}\" x=\"{left}\" y=\"{bar:.1}\" width=\"{:.1}\" height=\"18\" rx=\"3\"/>",
                colour(site.look_of(&figure.program)),
                (length(figure.median) - left).max(1.0)
            )?;
            let middle = bar + 9.0;
            chart::line(out, "whisker", (length(figure.least), middle), (length(figure.most), middle))?;
        }
        out.write_str(chart::END)?;
    }
    Ok(())
}

fn name(out: &mut String, figure: &Figure, y: f64, room: usize) -> fmt::Result {
    let mut name: String = figure.program.chars().take(room).collect();
    if name.len() < figure.program.len() {
        name.push('\u{2026}');
    }
    let class = if figure.ours { "ink strong" } else { "ink" };
    write!(
        out,
        "<text class=\"{class}\" x=\"0\" y=\"{y:.1}\">{}<title>{}</title></text>",
        escaped(&name),
        escaped(&figure.program)
    )
}
