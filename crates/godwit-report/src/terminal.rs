//! A report for a terminal: at most 100 columns, and colours only where they are wanted.

use std::fmt::Write;

use crate::analysis::{Class, Comparison, Difference, Distribution, Gravity, LABELS, Point, Report, Verdict};
use crate::units::{change, count, counted, latency, share};

/// The widest line.
pub const COLUMNS: usize = 100;
const LABEL: usize = 16;
const SAMPLES: usize = 14;
const CELL: usize = 10;

/// How a piece of text stands out.
#[derive(Clone, Copy)]
enum Paint {
    Bold,
    Dim,
    Green,
    Red,
    Yellow,
}

struct Page {
    text: String,
    coloured: bool,
}

/// The report as text, with ANSI colours if they are wanted.
pub fn render(report: &Report, coloured: bool) -> String {
    let mut page = Page { text: String::new(), coloured };
    page.head(report);
    if let Some(arms) = &report.arms {
        page.comparison(&arms.comparison, ["not offered", "offered"]);
        page.comparison(&arms.reused, ["not offered", "offered"]);
    }
    for comparison in &report.comparisons {
        page.comparison(comparison, [report.control, "HTTP/3"]);
    }
    if report.protocols.len() > 2 {
        page.title("Each protocol");
        page.heading();
        for row in &report.protocols {
            page.distribution(row.protocol.label(), &row.distribution);
        }
    }
    for breakdown in &report.breakdowns {
        page.title(breakdown.title);
        page.heading();
        for class in &breakdown.classes {
            page.class(class, report.control);
        }
    }
    page.hours(report);
    page.why_not(report);
    page.notes(report);
    page.text
}

impl Page {
    fn paint(&self, paint: Paint, text: &str) -> String {
        let code = match paint {
            Paint::Bold => "1",
            Paint::Dim => "2",
            Paint::Green => "32",
            Paint::Red => "31",
            Paint::Yellow => "33",
        };
        if self.coloured { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn line(&mut self, text: &str) {
        self.text.push_str(text.trim_end());
        self.text.push('\n');
    }

    fn title(&mut self, text: &str) {
        let title = self.paint(Paint::Bold, text);
        self.line("");
        self.line(&title);
    }

    fn paragraph(&mut self, first: &str, indent: &str, text: &str) {
        let mut line = first.to_owned();
        let mut empty = true;
        for word in text.split_whitespace() {
            if !empty && visible(&line) + 1 + word.chars().count() > COLUMNS {
                self.line(&line);
                line = indent.to_owned();
                empty = true;
            }
            if !empty {
                line.push(' ');
            }
            line.push_str(word);
            empty = false;
        }
        self.line(&line);
    }

    fn head(&mut self, report: &Report) {
        let mut title = format!("HTTP/3 and {}: {}", report.control, report.metric.label());
        if let Some((from, to)) = &report.period {
            let _ = write!(title, ", {from} to {to} UTC");
        }
        let title = self.paint(Paint::Bold, &title);
        self.line(&title);
        let mut text = counted(report.lines, "line", "lines");
        for (place, (number, what)) in report.left_out.named(report.broken).enumerate() {
            let start = if place == 0 { "; left out: " } else { ", " };
            let _ = write!(text, "{start}{} {what}", count(number));
        }
        self.paragraph("", "", &text);
        self.line("");
        self.paragraph("", "", &report.headline);
    }

    fn heading(&mut self) {
        let mut line = format!("{:LABEL$}{:>SAMPLES$}", "", "requests");
        for label in LABELS {
            let _ = write!(line, "{label:>CELL$}");
        }
        let line = self.paint(Paint::Dim, &line);
        self.line(&line);
    }

    fn distribution(&mut self, label: &str, distribution: &Distribution) {
        let mut line = format!("{label:LABEL$}{:>SAMPLES$}", count(distribution.samples));
        for point in &distribution.points {
            line.push_str(&self.point(*point));
        }
        self.line(&line);
    }

    fn point(&self, point: Point) -> String {
        match point.ms {
            None => format!("{:>CELL$}", "-"),
            Some(ms) if point.reliable => format!("{:>CELL$}", latency(ms)),
            Some(ms) => self.paint(Paint::Dim, &format!("{:>CELL$}", format!("~{}", latency(ms)))),
        }
    }

    fn difference(&self, difference: Option<Difference>) -> String {
        let Some(Difference { percent, verdict, .. }) = difference else { return " ".repeat(CELL) };
        let text = format!("{:>CELL$}", change(percent));
        match verdict {
            Verdict::Lower => self.paint(Paint::Green, &text),
            Verdict::Higher => self.paint(Paint::Red, &text),
            Verdict::NoBand => text,
            Verdict::NotResolved => self.paint(Paint::Dim, &text),
            Verdict::TooFew => self.paint(Paint::Dim, &format!("{:>CELL$}", format!("~{}", change(percent)))),
        }
    }

    fn differences(&mut self, differences: &[Option<Difference>; 7]) {
        let mut line = format!("{:LABEL$}{:>SAMPLES$}", "  difference", "");
        for difference in differences {
            line.push_str(&self.difference(*difference));
        }
        self.line(&line);
    }

    fn comparison(&mut self, comparison: &Comparison, names: [&str; 2]) {
        self.title(comparison.title);
        self.paragraph("", "", &comparison.about);
        self.heading();
        let [control, http3] = names;
        self.distribution(&format!("  {control}"), &comparison.control);
        self.distribution(&format!("  {http3}"), &comparison.http3);
        self.differences(&comparison.differences);
        let ends = |pick: fn((f64, f64)) -> f64| {
            comparison
                .differences
                .map(|difference| difference.and_then(|difference| difference.band).map(pick))
        };
        self.band("  at least", ends(|(low, _)| low));
        self.band("  at most", ends(|(_, high)| high));
        self.verdicts(comparison);
    }

    fn band(&mut self, label: &str, ends: [Option<f64>; 7]) {
        if ends.iter().all(Option::is_none) {
            return;
        }
        let mut line = format!("{label:LABEL$}{:>SAMPLES$}", "");
        for end in ends {
            let _ = write!(line, "{:>CELL$}", end.map(change).unwrap_or_default());
        }
        let line = self.paint(Paint::Dim, line.trim_end());
        self.line(&line);
    }

    fn verdicts(&mut self, comparison: &Comparison) {
        let mut line = " ".repeat(LABEL + SAMPLES);
        let mut any = false;
        for difference in &comparison.differences {
            let word = match difference.map(|difference| difference.verdict) {
                Some(Verdict::Lower) => "faster",
                Some(Verdict::Higher) => "slower",
                Some(Verdict::NotResolved) => "unclear",
                _ => "",
            };
            any |= !word.is_empty();
            let _ = write!(line, "{word:>CELL$}");
        }
        if any {
            let line = self.paint(Paint::Dim, line.trim_end());
            self.line(&line);
        }
    }

    fn class(&mut self, class: &Class, control: &str) {
        let mut label = class.label.clone();
        label.truncate(COLUMNS);
        self.line(&label);
        self.distribution(&format!("  {control}"), &class.control);
        self.distribution("  HTTP/3", &class.http3);
        if class.differences.iter().any(Option::is_some) {
            self.differences(&class.differences);
        }
    }

    /// One line for each hour: the medians and the P99.
    fn hours(&mut self, report: &Report) {
        if report.hours.classes.len() < 2 {
            return;
        }
        self.title(report.hours.title);
        let control = report.control;
        let heading = format!(
            "{:8}{:>14}{:>14}{:>12}{:>10}{:>10}{:>12}{:>10}{:>10}",
            "", control, "HTTP/3", "P50", "HTTP/3", "", "P99", "HTTP/3", ""
        );
        let heading = self.paint(Paint::Dim, &heading);
        self.line(&heading);
        for class in &report.hours.classes {
            let (samples, others) = (count(class.control.samples), count(class.http3.samples));
            let mut line = format!("{:8}{samples:>14}{others:>14}", class.label);
            for place in [0, 4] {
                let of =
                    |distribution: &Distribution| distribution.points.get(place).copied().unwrap_or_default();
                let difference = class.differences.get(place).copied().flatten();
                line.push_str("  ");
                line.push_str(&self.point(of(&class.control)));
                line.push_str(&self.point(of(&class.http3)));
                line.push_str(&self.difference(difference));
            }
            self.line(&line);
        }
    }

    fn why_not(&mut self, report: &Report) {
        let all: u64 = report.why_not.iter().map(|(_, count)| count).sum();
        if all == 0 {
            return;
        }
        self.title("Why requests did not come by HTTP/3");
        for (why, number) in &report.why_not {
            let part = share(*number as f64 / all as f64);
            self.line(&format!("{:LABEL$}{:>SAMPLES$}{part:>CELL$}", why.label(), count(*number)));
        }
    }

    fn notes(&mut self, report: &Report) {
        self.title("Before you believe it");
        for note in &report.notes {
            let mark = match note.gravity {
                Gravity::Warning => self.paint(Paint::Yellow, "!"),
                Gravity::Remark => "-".to_owned(),
            };
            self.paragraph(&format!("{mark} "), "  ", &note.text);
        }
        self.paragraph(
            "- ",
            "  ",
            "A value with ~ has fewer than 30 requests beyond it. \"At least\" and \"at most\" hold for all percentiles \
             of a table together, with 95 % confidence, when users are drawn anew; values are within 1 %.",
        );
    }
}

/// The columns of a line that holds colours.
fn visible(line: &str) -> usize {
    let mut columns = 0;
    let mut escape = false;
    for character in line.chars() {
        match character {
            '\x1b' => escape = true,
            'm' if escape => escape = false,
            _ if escape => {}
            _ => columns += 1,
        }
    }
    columns
}
