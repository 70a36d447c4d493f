//! The page about one figure: over commits, a chart and a table for each machine.

use std::fmt::{self, Write};

use super::bars;
use super::history::Figure;
use super::look::{self, Place, file_address};
use super::numbers::{number, times, with_spread};
use super::read::Recorded;
use super::site::{FigurePage, Setup, Site, Subject};
use super::trend::{Chart, Line, MOST_COMMITS};
use super::verdict::Comparison;
use crate::page::{END_SECTION, escaped};

/// The most commits of a table; all of them are in the files.
const MOST_ROWS: usize = 500;

pub(super) fn write(out: &mut String, site: &Site<'_>, page: &FigurePage<'_>) -> fmt::Result {
    let subject = &page.subject;
    look::begin(out, &format!("Godwit: {}", subject.title()), Place::Figure)?;
    let about = format!("In {}; {}.", subject.unit, subject.direction());
    look::head(out, "One figure over commits", "open", &subject.title(), &about)?;
    for setup in &site.setups {
        let files: Vec<&Recorded> = setup.files.iter().filter(|file| has(file, subject)).copied().collect();
        if !files.is_empty() {
            one_setup(out, site, subject, setup, &files)?;
        }
    }
    look::end(out)
}

fn has(file: &Recorded, subject: &Subject<'_>) -> bool {
    file.measurement.figures.iter().any(|figure| Subject::of(figure) == *subject)
}

fn one_setup(
    out: &mut String,
    site: &Site<'_>,
    subject: &Subject<'_>,
    setup: &Setup<'_>,
    files: &[&Recorded],
) -> fmt::Result {
    write!(out, "<section><h2>{}</h2>", escaped(&setup.title()))?;
    look::conditions(out, setup)?;
    if let Some(newest) = files.last() {
        at_newest(out, site, subject, newest)?;
    }
    let programs = programs(site, subject, files);
    // One commit makes no line.
    if files.len() > 1 {
        over_commits(out, site, subject, files, &programs)?;
    }
    values(out, site, subject, files, &programs)?;
    if let Some(newest) = files.last() {
        runs(out, subject, newest)?;
    }
    out.write_str(END_SECTION)
}

/// All programs in the newest measurement.
fn at_newest(out: &mut String, site: &Site<'_>, subject: &Subject<'_>, file: &Recorded) -> fmt::Result {
    let this = |figure: &&Figure| Subject::of(figure) == *subject;
    let figures: Vec<&Figure> = file.measurement.figures.iter().filter(this).collect();
    write!(out, "<h3>At ")?;
    look::commit(out, site, file)?;
    write!(
        out,
        "</h3><p class=\"small\">{}, {}, the best first. Lines and brackets: least to most of all runs.</p>",
        escaped(subject.unit),
        subject.direction()
    )?;
    let about = format!(
        "{} in {} at {}; the figures are in the table below",
        subject.title(),
        subject.unit,
        file.measurement.short()
    );
    bars::draw(out, site, &about, &figures)
}

fn over_commits(
    out: &mut String,
    site: &Site<'_>,
    subject: &Subject<'_>,
    files: &[&Recorded],
    programs: &[(&str, bool)],
) -> fmt::Result {
    let shown = files.get(files.len().saturating_sub(MOST_COMMITS)..).unwrap_or(files);
    let lines = programs.iter().map(|(name, ours)| line(site, subject, name, *ours, shown)).collect();
    let about = format!(
        "{} in {} over {} measurements; the figures are in the table below",
        subject.title(),
        subject.unit,
        shown.len()
    );
    let chart = Chart { about, unit: subject.unit, files: shown, lines };
    write!(
        out,
        "<h3>Over commits</h3><p class=\"small\">{}, {}; {}. Bands: least to most of all runs.",
        escaped(subject.unit),
        subject.direction(),
        chart.scale().remark()
    )?;
    if shown.len() < files.len() {
        write!(out, " Only the newest {} of {} commits are drawn.", shown.len(), files.len())?;
    }
    out.write_str("</p>")?;
    chart.draw(out, site)
}

/// Every program that has the figure in one of the files, ours first, and whether it is ours.
fn programs<'a>(site: &Site<'_>, subject: &Subject<'_>, files: &[&'a Recorded]) -> Vec<(&'a str, bool)> {
    let figures = files.iter().flat_map(|file| &file.measurement.figures);
    let mut programs: Vec<(&str, bool)> = figures
        .filter(|figure| Subject::of(figure) == *subject)
        .map(|figure| (figure.program.as_str(), figure.ours))
        .collect();
    programs.sort_by_key(|(name, ours)| (!ours, site.look_of(name)));
    programs.dedup_by_key(|(name, _)| *name);
    programs
}

fn line(site: &Site<'_>, subject: &Subject<'_>, name: &str, ours: bool, files: &[&Recorded]) -> Line {
    let spread = |figure: &Figure| [figure.least, figure.median, figure.most];
    let points = files.iter().map(|file| subject.in_file(&file.measurement, name).map(spread)).collect();
    Line { name: name.to_owned(), look: site.look_of(name), ours, points }
}

fn values(
    out: &mut String,
    site: &Site<'_>,
    subject: &Subject<'_>,
    files: &[&Recorded],
    programs: &[(&str, bool)],
) -> fmt::Result {
    let mut columns = vec!["commit", "of", "times as good"];
    columns.extend(programs.iter().map(|(name, _)| *name));
    columns.extend(["what the commit does", "measured", "file"]);
    write!(
        out,
        "<h3>All values, in {}: median (least\u{2013}most), the newest first</h3>",
        escaped(subject.unit)
    )?;
    look::table(out, &format!("All values of {}", subject.title()), "", &columns)?;
    for file in files.iter().rev().take(MOST_ROWS) {
        row(out, site, subject, file, programs)?;
    }
    out.write_str(look::END_TABLE)?;
    if files.len() > MOST_ROWS {
        write!(out, "<p class=\"small\">The oldest {} are left out.</p>", files.len() - MOST_ROWS)?;
    }
    Ok(())
}

fn row(
    out: &mut String,
    site: &Site<'_>,
    subject: &Subject<'_>,
    file: &Recorded,
    programs: &[(&str, bool)],
) -> fmt::Result {
    let measurement = &file.measurement;
    let ours = measurement.figures.iter().find(|figure| figure.ours && Subject::of(figure) == *subject);
    let beside = ours.map(|ours| Comparison::of(measurement, ours));
    // The best is another one where the first was not measured.
    let ratio = beside.and_then(|beside| Some((beside.times_as_good()?, beside.best?)));
    let ratio = ratio.map_or_else(
        || "\u{2013}".to_owned(),
        |(ratio, best)| format!("{} <span class=\"small\">{}</span>", times(ratio), escaped(&best.program)),
    );
    out.write_str("<tr><th scope=\"row\">")?;
    look::commit(out, site, file)?;
    write!(out, "</th><td>{}</td><td class=\"left\">{ratio}</td>", escaped(measurement.day()))?;
    for (name, _) in programs {
        match subject.in_file(measurement, name) {
            Some(figure) => write!(out, "<td>{}</td>", with_spread(figure))?,
            None => out.write_str("<td>\u{2013}</td>")?,
        }
    }
    writeln!(
        out,
        "<td class=\"wrap\">{}</td><td>{}</td><td class=\"left\"><a href=\"{}\">{}</a></td></tr>",
        escaped(&measurement.title),
        escaped(measurement.measured.get(..10).unwrap_or_default()),
        escaped(&file_address(file)),
        escaped(&file.name)
    )
}

/// The newest measurement, run by run.
fn runs(out: &mut String, subject: &Subject<'_>, file: &Recorded) -> fmt::Result {
    write!(
        out,
        "<details><summary>Every run at {}, in {}</summary>",
        file.measurement.short(),
        escaped(subject.unit)
    )?;
    look::table(out, "Every run of the newest measurement", "", &["program", "runs", "in their order"])?;
    for figure in file.measurement.figures.iter().filter(|figure| Subject::of(figure) == *subject) {
        let runs: Vec<String> = figure.runs.iter().copied().map(number).collect();
        writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"wrap\">{}</td></tr>",
            escaped(&figure.program),
            runs.len(),
            runs.join(" &middot; ")
        )?;
    }
    out.write_str(look::END_TABLE)?;
    out.write_str("</details>")
}
