//! A report as one HTML page that needs nothing else: no network, no fonts, no scripts.
//!
//! Everything that comes from logs or names of files is escaped. The page follows the reader's light or dark
//! theme, and its charts come in two widths, so that their letters stay legible on a phone.

mod chart;
mod tables;
#[cfg(test)]
mod tests;

use std::fmt::{self, Write};

use crate::analysis::{Comparison, Gravity, Report, Verdict};
use crate::page::{self, Card, END_SECTION, escaped, legend, section};
use crate::units::{change, count, latency, share};

/// The page.
pub fn page(report: &Report) -> String {
    let mut page = String::with_capacity(64 << 10);
    // Writing to a string does not fail.
    let _ = write_page(&mut page, report);
    page
}

fn write_page(out: &mut String, report: &Report) -> fmt::Result {
    let control = report.control;
    page::begin(out, &format!("HTTP/3 and {control}"))?;
    head(out, report)?;
    if let Some(main) = main_comparison(report) {
        cards(out, main)?;
        section(
            out,
            "Percentiles",
            &format!(
                "{}. Lower is better; both axes are stretched towards the slowest requests.",
                main.title
            ),
        )?;
        let names = names(report, main);
        legend(out, names)?;
        chart::percentiles(out, main)?;
        out.write_str(END_SECTION)?;
    }
    bars(out, report)?;
    notes(out, report)?;
    tables::all(out, report)?;
    how_to_read(out)?;
    out.write_str(page::END)
}

/// The comparison that the headline is about.
fn main_comparison(report: &Report) -> Option<&Comparison> {
    match &report.arms {
        Some(arms) if !arms.ratio.wrong => Some(&arms.comparison),
        _ => report.comparisons.first(),
    }
}

/// What the two groups of a comparison are called.
fn names<'a>(report: &'a Report, comparison: &Comparison) -> [&'a str; 2] {
    if comparison.title.starts_with("By offer") {
        ["not offered", "offered"]
    } else {
        [report.control, "HTTP/3"]
    }
}

fn head(out: &mut String, report: &Report) -> fmt::Result {
    let metric = report.metric.label();
    write!(out, "<header><p class=\"over\">HTTP/3 and {}: {metric}", report.control)?;
    if let Some((from, to)) = &report.period {
        write!(out, " &middot; {} to {} UTC", escaped(from), escaped(to))?;
    }
    let class = match report.verdict {
        Verdict::Lower => "good",
        Verdict::Higher => "bad",
        _ => "open",
    };
    write!(
        out,
        "</p><h1 class=\"{class}\">{}</h1><p class=\"small\">{} lines",
        escaped(&report.headline),
        count(report.lines)
    )?;
    let mut start = "; left out: ";
    for (number, what) in report.left_out.named(report.broken) {
        write!(out, "{start}{} {what}", count(number))?;
        start = ", ";
    }
    out.write_str("</p></header>\n")
}

/// The differences at three percentiles, large.
fn cards(out: &mut String, comparison: &Comparison) -> fmt::Result {
    let mut cards = Vec::new();
    for (place, label) in
        [(0, "P50: the middle"), (4, "P99: the slowest in 100"), (5, "P99.9: the slowest in 1000")]
    {
        let difference = comparison.differences.get(place).copied().flatten();
        let points = [&comparison.control, &comparison.http3]
            .map(|side| side.points.get(place).and_then(|point| point.ms));
        let (Some(difference), [Some(from), Some(to)]) = (difference, points) else { continue };
        let (class, word) = match difference.verdict {
            Verdict::Lower => ("good", "faster"),
            Verdict::Higher => ("bad", "slower"),
            Verdict::NotResolved => ("open", "not resolved"),
            Verdict::NoBand => ("open", "too few users to tell"),
            Verdict::TooFew => ("open", "too few requests"),
        };
        cards.push((class, label, change(difference.percent), word, [latency(from), latency(to)]));
    }
    page::cards(
        out,
        cards.iter().map(|(class, title, change, word, [from, to])| Card {
            class,
            title,
            change,
            word,
            from_to: [from, to],
        }),
    )
}

fn bars(out: &mut String, report: &Report) -> fmt::Result {
    let classes = report.breakdowns.iter().filter(|breakdown| breakdown.classes.len() > 1);
    let mut any = false;
    for breakdown in classes {
        if !any {
            section(
                out,
                "P99 by class",
                "The latency that one request in a hundred exceeds. Faded: fewer than 30 requests beyond it.",
            )?;
            legend(out, [report.control, "HTTP/3"])?;
            any = true;
        }
        write!(out, "<h3>{}</h3>", escaped(breakdown.title))?;
        chart::bars(out, breakdown)?;
    }
    if any {
        out.write_str(END_SECTION)?;
    }
    Ok(())
}

fn notes(out: &mut String, report: &Report) -> fmt::Result {
    section(out, "Before you believe it", "What the figures leave open.")?;
    out.write_str("<ul class=\"notes\">")?;
    for note in &report.notes {
        let (class, word) = match note.gravity {
            Gravity::Warning => ("warning", "<b>Careful:</b> "),
            Gravity::Remark => ("remark", ""),
        };
        write!(out, "<li class=\"{class}\">{word}{}</li>", escaped(&note.text))?;
    }
    out.write_str("</ul>")?;
    let all: u64 = report.why_not.iter().map(|(_, number)| number).sum();
    if all > 0 {
        out.write_str("<h3>Why requests did not come by HTTP/3</h3><table class=\"plain\">")?;
        for (why, number) in &report.why_not {
            let part = share(*number as f64 / all as f64);
            write!(out, "<tr><th>{}</th><td>{}</td><td>{part}</td></tr>", why.label(), count(*number))?;
        }
        out.write_str("</table>")?;
    }
    out.write_str(END_SECTION)
}

fn how_to_read(out: &mut String) -> fmt::Result {
    out.write_str(
        "<section><h2>How to read this</h2><dl>\
         <dt>P99</dt><dd>99 of 100 requests were faster than this, one was slower. A page with 100 requests meets it \
         every time: the tail is what users feel.</dd>\
         <dt>Last-mile latency</dt><dd>From the arrival of the request until the client had the response, less the \
         time that the upstream took. It is what the protocol can change.</dd>\
         <dt>Like for like</dt><dd>HTTP/3's requests are weighted until they have the other group's mix of response \
         size, IP version, place on the connection and hour. Other differences between the users remain.</dd>\
         <dt>Band</dt><dd>If other users of the same kind had come, all differences of the table together would lie \
         in their bands 95 times of 100. Users were drawn in 200 groups, because the requests of one user are \
         alike. A band that holds 0 shows no difference: not resolved.</dd>\
         <dt>~ or faded</dt><dd>Fewer than 30 requests lie beyond the percentile: do not rely on it.</dd>\
         <dt>Accuracy</dt><dd>Values are within 1 % of the exact percentiles of the log.</dd>\
         </dl></section>\n",
    )
}
