//! A chart of figures over commits: a line for each program, with its spread as a band.

use std::fmt::{self, Write};

use super::look::{commit_address, file_address};
use super::numbers::number;
use super::read::Recorded;
use super::scale::Scale;
use super::site::Site;
use crate::chart::{self, WIDTHS};
use crate::page::escaped;

/// The most commits of a chart: the newest. Points of more could not be told apart.
pub(super) const MOST_COMMITS: usize = 120;

/// The shapes of points. There are as many as colours, less one, so that two lines that share a colour differ in shape.
const SHAPES: usize = 6;
const COLOURS: usize = 7;

/// A program's figures over commits.
pub(super) struct Line {
    pub(super) name: String,
    /// Which colour and shape.
    pub(super) look: usize,
    pub(super) ours: bool,
    /// Least, median and most at each commit of the chart.
    pub(super) points: Vec<Option<[f64; 3]>>,
}

pub(super) struct Chart<'a> {
    /// What is drawn, in a sentence.
    pub(super) about: String,
    pub(super) unit: &'a str,
    pub(super) files: &'a [&'a Recorded],
    pub(super) lines: Vec<Line>,
}

impl Chart<'_> {
    /// The axis, and what has to be said of it.
    pub(super) fn scale(&self) -> Scale {
        Scale::of(self.lines.iter().flat_map(|line| line.points.iter().flatten().flatten().copied()))
    }

    pub(super) fn draw(&self, out: &mut String, site: &Site<'_>) -> fmt::Result {
        let scale = self.scale();
        keys(out, &self.lines)?;
        for (class, width) in WIDTHS {
            let frame = Frame::new(class == "narrow", width, self.files.len());
            chart::begin(out, class, width, frame.height, &self.about)?;
            for (mark, text) in scale.marks() {
                let y = frame.up(scale.place(mark));
                chart::line(out, "grid", (frame.left, y), (width - frame.right, y))?;
                chart::label(out, "end", (frame.left - 8.0, y + 4.5), &text)?;
            }
            self.commits(out, &frame)?;
            // Ours comes last and lies above the others.
            for ours in [false, true] {
                for line in self.lines.iter().filter(|line| line.ours == ours) {
                    band(out, line, &frame, &scale)?;
                    strokes(out, line, &frame, &scale)?;
                    self.points(out, site, line, &frame, &scale)?;
                }
            }
            out.write_str(chart::END)?;
        }
        Ok(())
    }

    /// Commits below the chart, as links to their files: as many as there is room for.
    fn commits(&self, out: &mut String, frame: &Frame) -> fmt::Result {
        let room = ((frame.width - frame.left - frame.right) / 84.0).floor().max(1.0) as usize;
        let each = self.files.len().div_ceil(room).max(1);
        // The newest has its name in any case.
        let named = |place: &usize| (self.files.len() - 1 - place).is_multiple_of(each);
        for (place, file) in self.files.iter().enumerate().filter(|(place, _)| named(place)) {
            let (x, y) = (frame.across(place), frame.bottom + 20.0);
            let measurement = &file.measurement;
            write!(out, "<a href=\"{}\" tabindex=\"-1\">", escaped(&file_address(file)))?;
            chart::label(out, "middle", (x, y), measurement.short())?;
            out.write_str("</a>")?;
            chart::label(out, "middle", (x, y + 16.0), measurement.day())?;
        }
        Ok(())
    }

    fn points(
        &self,
        out: &mut String,
        site: &Site<'_>,
        line: &Line,
        frame: &Frame,
        scale: &Scale,
    ) -> fmt::Result {
        for ((place, file), point) in self.files.iter().enumerate().zip(&line.points) {
            let Some([least, median, most]) = point else { continue };
            let address = commit_address(site, file).unwrap_or_else(|| file_address(file));
            let [least, shown, most] = [*least, *median, *most].map(number);
            write!(out, "<a href=\"{}\" tabindex=\"-1\">", escaped(&address))?;
            shape(out, line, (frame.across(place), frame.up(scale.place(*median))), frame.point_size())?;
            let spread = if least == most { String::new() } else { format!(" ({least} to {most})") };
            write!(
                out,
                "<title>{}: {shown} {}{spread} at {} of {}</title></a>",
                escaped(&line.name),
                escaped(self.unit),
                file.measurement.short(),
                escaped(file.measurement.day())
            )?;
        }
        Ok(())
    }
}

/// Where things are in a chart.
struct Frame {
    width: f64,
    height: f64,
    left: f64,
    right: f64,
    bottom: f64,
    commits: usize,
}

impl Frame {
    const TOP: f64 = 14.0;

    fn new(narrow: bool, width: f64, commits: usize) -> Frame {
        let (left, right, height) = if narrow { (58.0, 36.0, 280.0) } else { (74.0, 44.0, 380.0) };
        Frame { width, height, left, right, bottom: height - 46.0, commits }
    }

    /// Commits stand side by side, whatever time lies between them. A single one stands in the middle.
    fn across(&self, place: usize) -> f64 {
        let room = self.width - self.left - self.right - 20.0;
        let part = if self.commits > 1 { place as f64 / (self.commits - 1) as f64 } else { 0.5 };
        self.left + 10.0 + room * part
    }

    /// Points of neighbours do not cover each other.
    fn point_size(&self) -> f64 {
        if self.commits > 1 { ((self.across(1) - self.across(0)) * 0.4).clamp(1.8, 5.0) } else { 5.0 }
    }

    fn up(&self, part: f64) -> f64 {
        self.bottom - (self.bottom - Frame::TOP) * part
    }
}

/// Runs of commits that follow one another and all have a figure.
fn unbroken(points: &[Option<[f64; 3]>]) -> Vec<Vec<(usize, [f64; 3])>> {
    let mut runs: Vec<Vec<(usize, [f64; 3])>> = vec![Vec::new()];
    for (place, point) in points.iter().enumerate() {
        match (point, runs.last_mut()) {
            (Some(point), Some(run)) => run.push((place, *point)),
            _ => runs.push(Vec::new()),
        }
    }
    runs.retain(|run| !run.is_empty());
    runs
}

fn band(out: &mut String, line: &Line, frame: &Frame, scale: &Scale) -> fmt::Result {
    let ours = if line.ours { " ours" } else { "" };
    for run in unbroken(&line.points) {
        let at = |place: usize, value: f64| (frame.across(place), frame.up(scale.place(value)));
        let upper = run.iter().map(|(place, [_, _, most])| at(*place, *most));
        let lower = run.iter().rev().map(|(place, [least, _, _])| at(*place, *least));
        let mut corners: Vec<(f64, f64)> = upper.chain(lower).collect();
        // One commit has no width: its band is a bar.
        if let [(x, top), (_, bottom)] = corners.as_slice() {
            let (x, top, bottom) = (*x, *top, *bottom);
            corners = vec![(x - 3.0, top), (x + 3.0, top), (x + 3.0, bottom), (x - 3.0, bottom)];
        }
        write!(out, "<polygon class=\"band{ours} s{}\" points=\"", line.look % COLOURS)?;
        for (x, y) in corners {
            write!(out, "{x:.1},{y:.1} ")?;
        }
        out.write_str("\"/>")?;
    }
    Ok(())
}

/// Where commits between two points have no figure, the line between them is faint.
fn strokes(out: &mut String, line: &Line, frame: &Frame, scale: &Scale) -> fmt::Result {
    let class = format!("s{}{}", line.look % COLOURS, if line.ours { " ours" } else { "" });
    let at =
        |(place, [_, median, _]): &(usize, [f64; 3])| (frame.across(*place), frame.up(scale.place(*median)));
    let runs = unbroken(&line.points);
    for pair in runs.windows(2) {
        let [one, other] = pair else { continue };
        if let (Some(from), Some(to)) = (one.last(), other.first()) {
            chart::line(out, &format!("l {class} faint dash"), at(from), at(to))?;
        }
    }
    for run in runs.iter().filter(|run| run.len() > 1) {
        chart::curve(out, &class, run.iter().map(at))?;
    }
    Ok(())
}

/// A point in the shape of its line.
fn shape(out: &mut String, line: &Line, at: (f64, f64), size: f64) -> fmt::Result {
    write!(out, "<path class=\"point s{}\" d=\"{}\"/>", line.look % COLOURS, outline(line.look, at, size))
}

/// Circle, square, diamond, triangle up, triangle down, cross.
pub(super) fn outline(look: usize, (x, y): (f64, f64), size: f64) -> String {
    let corners: &[(f64, f64)] = match look % SHAPES {
        0 => {
            let (left, across) = (x - size, 2.0 * size);
            return format!(
                "M{left:.1},{y:.1}a{size},{size} 0 1 0 {across},0a{size},{size} 0 1 0 -{across},0z"
            );
        }
        1 => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
        2 => &[(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)],
        3 => &[(0.0, -1.2), (1.15, 0.9), (-1.15, 0.9)],
        4 => &[(0.0, 1.2), (1.15, -0.9), (-1.15, -0.9)],
        _ => &[
            (-0.4, -1.2),
            (0.4, -1.2),
            (0.4, -0.4),
            (1.2, -0.4),
            (1.2, 0.4),
            (0.4, 0.4),
            (0.4, 1.2),
            (-0.4, 1.2),
            (-0.4, 0.4),
            (-1.2, 0.4),
            (-1.2, -0.4),
            (-0.4, -0.4),
        ],
    };
    let points =
        corners.iter().map(|(right, down)| format!("{:.1},{:.1}", x + right * size, y + down * size));
    format!("M{}z", points.collect::<Vec<_>>().join("L"))
}

/// What the lines stand for.
fn keys(out: &mut String, lines: &[Line]) -> fmt::Result {
    let lines = lines.iter().filter(|line| line.points.iter().any(Option::is_some));
    key_list(out, lines.map(|line| (line.name.as_str(), line.look, line.ours)))
}

/// The same of other charts: name, look, and whether it is ours.
pub(super) fn key_list<'a>(
    out: &mut String,
    lines: impl Iterator<Item = (&'a str, usize, bool)>,
) -> fmt::Result {
    out.write_str("<ul class=\"keys\">")?;
    for (name, look, ours) in lines {
        let class = if ours { " ours" } else { "" };
        let (colour, d) = (look % COLOURS, outline(look, (15.0, 7.0), 5.0));
        write!(
            out,
            "<li><svg class=\"key\" viewBox=\"0 0 30 14\" aria-hidden=\"true\"><line class=\"l{class} s{colour}\" x1=\"1\" \
             y1=\"7\" x2=\"29\" y2=\"7\"/><path class=\"point s{colour}\" d=\"{d}\"/></svg>{}</li>",
            escaped(name)
        )?;
    }
    out.write_str("</ul>")
}

/// The colour of a line, as a class.
pub(super) fn colour(look: usize) -> String {
    format!("s{}", look % COLOURS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_broken_where_there_is_nothing() {
        let point = Some([1.0, 2.0, 3.0]);
        let runs = unbroken(&[None, point, point, None, None, point]);
        let places: Vec<Vec<usize>> =
            runs.iter().map(|run| run.iter().map(|(place, _)| *place).collect()).collect();
        assert_eq!(places, [vec![1, 2], vec![5]]);
    }

    #[test]
    fn looks_differ_beyond_their_colours() {
        let look = |number: usize| (number % COLOURS, outline(number, (0.0, 0.0), 5.0));
        for one in 0..COLOURS * SHAPES {
            for other in 0..one {
                assert_ne!(look(one), look(other), "{one} and {other}");
            }
        }
    }
}
