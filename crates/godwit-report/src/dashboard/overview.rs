//! The first page: how every figure of the newest commit fares, those that lose first.

use std::collections::BTreeSet;
use std::fmt::{self, Write};

use super::history::{Counts, Failure, Figure};
use super::look::{self, Place, file_address};
use super::numbers::{beside_one, number, part, spread, times};
use super::read::Recorded;
use super::site::{FigurePage, Setup, Site, Subject};
use super::spark;
use super::verdict::{Comparison, Outcome};
use crate::page::{END_SECTION, escaped, section};

/// The most failures that are shown.
const MOST_FAILURES: usize = 20;

pub(super) fn write(out: &mut String, site: &Site<'_>) -> fmt::Result {
    let Some(newest) = site.newest() else { return Ok(()) };
    let measurement = &newest.measurement;
    // A commit may have been measured on several machines, and on one of them again.
    let setups: Vec<(&Setup<'_>, &Recorded)> = site
        .setups
        .iter()
        .filter_map(|setup| Some((setup, *setup.files.last()?)))
        .filter(|(_, file)| file.measurement.commit == measurement.commit)
        .collect();
    look::begin(out, "Godwit: measurements", Place::Overview)?;
    let all: Vec<Vec<Comparison<'_>>> =
        setups.iter().map(|(_, file)| Comparison::all(&file.measurement)).collect();
    let (class, headline) = headline(&all);
    let over = format!("Commit {} of {}: {}", measurement.short(), measurement.day(), measurement.title);
    let files = site.history.files().len();
    let plural = if files == 1 { "measurement" } else { "measurements" };
    let about = format!("Measured {}. {files} {plural} in all.", moment(&measurement.measured));
    look::head(out, &over, class, &headline, &about)?;
    for (_, file) in &setups {
        failures(out, file)?;
    }
    for ((setup, file), rows) in setups.iter().zip(&all) {
        figures(out, site, setup, file, rows)?;
    }
    absent(out, site, &setups)?;
    beside(out, site)?;
    how_to_read(out)?;
    look::end(out)
}

/// `2026-11-26 21:23 UTC`.
fn moment(time: &str) -> String {
    let part = |from: usize, to: usize| time.get(from..to).unwrap_or_default();
    format!("{} {} UTC", part(0, 10), part(11, 16))
}

fn headline(all: &[Vec<Comparison<'_>>]) -> (&'static str, String) {
    let number = |wanted: Outcome| all.iter().flatten().filter(|row| row.outcome() == wanted).count();
    let (loses, wins, even) = (number(Outcome::Loses), number(Outcome::Wins), number(Outcome::Even));
    let compared = loses + wins + even;
    let figures = if compared == 1 { "figure" } else { "figures" };
    match (compared, loses) {
        (0, _) => ("open", "No figure has another program to compare with.".to_owned()),
        (_, 0) => {
            ("good", format!("Against the best of the others, Godwit loses none of {compared} {figures}."))
        }
        _ => {
            ("bad", format!("Against the best of the others, Godwit loses {loses} of {compared} {figures}."))
        }
    }
}

/// What could not be measured is as bad as what loses.
fn failures(out: &mut String, file: &Recorded) -> fmt::Result {
    if file.measurement.failures.is_empty() {
        return Ok(());
    }
    section(out, "Failed", "What could not be measured.")?;
    out.write_str("<ul class=\"notes\">")?;
    for Failure { scenario, program, why } in file.measurement.failures.iter().take(MOST_FAILURES) {
        let [scenario, program, why] = [scenario, program, why].map(|text| escaped(text));
        write!(out, "<li class=\"warning\"><b>{program}</b>, {scenario}: {why}</li>")?;
    }
    out.write_str("</ul>")?;
    out.write_str(END_SECTION)
}

fn figures(
    out: &mut String,
    site: &Site<'_>,
    setup: &Setup<'_>,
    file: &Recorded,
    rows: &[Comparison<'_>],
) -> fmt::Result {
    section(out, "Every figure", &setup.title())?;
    look::conditions(out, setup)?;
    out.write_str("<p class=\"small\">Commit ")?;
    look::commit(out, site, file)?;
    writeln!(
        out,
        ", measured {} &middot; <a href=\"{}\">the file</a></p>",
        escaped(&moment(&file.measurement.measured)),
        escaped(&file_address(file))
    )?;
    let columns = ["figure", "verdict", "Godwit", "best of the others", "over commits"];
    look::table(out, "Every figure of the newest commit", "look", &columns)?;
    for row in rows {
        figure(out, site, setup, row)?;
    }
    out.write_str(look::END_TABLE)?;
    out.write_str(END_SECTION)
}

fn figure(out: &mut String, site: &Site<'_>, setup: &Setup<'_>, row: &Comparison<'_>) -> fmt::Result {
    let subject = Subject::of(row.ours);
    let (class, verdict) = verdict(row);
    let address = site.page_of(&subject).map_or("", |page| page.file.as_str());
    write!(
        out,
        "<tr role=\"row\" class=\"{class}\"><th scope=\"row\" role=\"rowheader\"><a href=\"{address}\">{}</a><br>\
         <span class=\"small\">{}, {}</span></th><td role=\"cell\" class=\"left wide {class}\">{verdict}</td>",
        escaped(&subject.title()),
        escaped(subject.unit),
        subject.direction()
    )?;
    write!(out, "<td role=\"cell\" data-label=\"Godwit\">{}</td>", median(row.ours))?;
    out.write_str("<td role=\"cell\" data-label=\"best of the others\">")?;
    match row.best {
        Some(best) => out.write_str(&median(best))?,
        None => out.write_str("none")?,
    }
    if let Some(beside) = row.beside {
        let (program, number) = (escaped(&beside.program), number(beside.median));
        write!(out, "<span class=\"small beside\">beside: {number}, {program}</span>")?;
    }
    out.write_str("</td><td role=\"cell\" class=\"left wide\" data-label=\"over commits\">")?;
    let medians: Vec<f64> = setup
        .files
        .iter()
        .filter_map(|file| subject.in_file(&file.measurement, &row.ours.program))
        .map(|figure| figure.median)
        .collect();
    spark::draw(out, site.look_of(&row.ours.program), subject.unit, &medians)?;
    out.write_str("</td></tr>\n")
}

/// A median, and below it whose it is and the spread of all runs.
fn median(figure: &Figure) -> String {
    let (median, program, spread) = (number(figure.median), escaped(&figure.program), spread(figure));
    format!("{median}<br><span class=\"small\">{program} &middot; {spread}</span>")
}

/// The class of a row, and what is said.
fn verdict(row: &Comparison<'_>) -> (&'static str, String) {
    let by = row.ratio().map(|ratio| format!(": {}", beside_one(ratio))).unwrap_or_default();
    let (class, word) = match row.outcome() {
        Outcome::Loses => ("loses", format!("<b>loses{by}</b>")),
        Outcome::Wins => ("wins", format!("<b>wins{by}</b>")),
        Outcome::Even => ("even", "<b>even</b>".to_owned()),
        Outcome::Alone => return ("alone", "nothing to compare with".to_owned()),
    };
    let times = row.times_as_good().map(|ratio| format!("{} times as good", times(ratio)));
    let chance = row.overlaps().then(|| "runs overlap: may be chance".to_owned());
    let about: Vec<String> = times.into_iter().chain(chance).collect();
    (class, format!("{word}<br><span class=\"small\">{}</span>", about.join("<br>")))
}

/// Figures that stand in no table above: those that Godwit has no part in or only at one end, and those that exist, but not
/// of this commit.
fn absent(out: &mut String, site: &Site<'_>, setups: &[(&Setup<'_>, &Recorded)]) -> fmt::Result {
    let figures = setups.iter().flat_map(|(_, file)| &file.measurement.figures);
    let (mut measured, mut ours) = (BTreeSet::new(), BTreeSet::new());
    for figure in figures {
        measured.insert(Subject::of(figure));
        if figure.ours {
            ours.insert(Subject::of(figure));
        }
    }
    let left = site.figures.iter().filter(|page| !ours.contains(&page.subject));
    let (beside, absent): (Vec<_>, Vec<_>) = left.partition(|page| measured.contains(&page.subject));
    links(out, "Beside", "Figures that have none of Godwit alone.", &beside)?;
    links(out, "Not measured at this commit", "Figures of other commits.", &absent)
}

fn links(out: &mut String, title: &str, about: &str, pages: &[&FigurePage<'_>]) -> fmt::Result {
    if pages.is_empty() {
        return Ok(());
    }
    section(out, title, about)?;
    out.write_str("<ul>")?;
    for page in pages {
        write!(out, "<li><a href=\"{}\">{}</a></li>", page.file, escaped(&page.subject.title()))?;
    }
    out.write_str("</ul>")?;
    out.write_str(END_SECTION)
}

/// What does not depend on the machine: the newest of each, and how it has gone.
fn beside(out: &mut String, site: &Site<'_>) -> fmt::Result {
    let counts = site.history.files().iter().rev().find(|file| !file.measurement.gate.is_empty());
    let usage = site.history.files().iter().rev().find(|file| !file.measurement.wan.is_empty());
    if counts.is_none() && usage.is_none() {
        return Ok(());
    }
    section(
        out,
        "The same on every machine",
        "Instructions of fixed paths, and what is reached in networks that are emulated in virtual time.",
    )?;
    let columns = ["what", "newest", "against the measurement before", "over commits"];
    look::table(out, "What is the same on every machine", "look", &columns)?;
    for path in counts.iter().flat_map(|file| file.measurement.gate.keys()) {
        let of = |file: &Recorded| file.measurement.gate.get(path).map(|counts: &Counts| counts.instructions);
        row(out, site, Place::Counts, path, "instructions", &of, &number)?;
    }
    for usage in usage.iter().flat_map(|file| &file.measurement.wan) {
        let of = |file: &Recorded| {
            let mut all = file.measurement.wan.iter();
            let same = all.find(|one| one.profile == usage.profile)?;
            if usage.used.is_some() { same.used } else { same.p99_ms }
        };
        match usage.used {
            Some(_) => row(out, site, Place::Networks, &usage.profile, "of the rate used", &of, &part)?,
            None => row(out, site, Place::Networks, &usage.profile, "ms, P99", &of, &number)?,
        }
    }
    out.write_str(look::END_TABLE)?;
    out.write_str(END_SECTION)
}

fn row(
    out: &mut String,
    site: &Site<'_>,
    place: Place,
    name: &str,
    unit: &str,
    of: &dyn Fn(&Recorded) -> Option<f64>,
    text: &dyn Fn(f64) -> String,
) -> fmt::Result {
    let values: Vec<f64> = site.history.files().iter().filter_map(of).collect();
    let Some(last) = values.last() else { return Ok(()) };
    let before = values.len().checked_sub(2).and_then(|place| values.get(place));
    let change = match before {
        Some(before) if before == last => "the same".to_owned(),
        Some(before) if *before > 0.0 => beside_one(last / before),
        _ => "\u{2013}".to_owned(),
    };
    write!(
        out,
        "<tr role=\"row\"><th scope=\"row\" role=\"rowheader\"><a href=\"{}\">{}</a></th>\
         <td role=\"cell\" data-label=\"newest\">{} {unit}</td>\
         <td role=\"cell\" data-label=\"against the measurement before\">{change}</td>\
         <td role=\"cell\" class=\"left\" data-label=\"over commits\">",
        place.file(),
        escaped(name),
        text(*last)
    )?;
    spark::draw(out, 0, unit, &values)?;
    out.write_str("</td></tr>\n")
}

fn how_to_read(out: &mut String) -> fmt::Result {
    out.write_str(
        "<section><h2>How to read this</h2><dl>\
         <dt>loses, wins</dt><dd>Godwit's median against the best median of all other programs, measured in the same run. \
         What loses stands first.</dd>\
         <dt>runs overlap</dt><dd>Some run of the one lies among those of the other: repeated, the order might be another.</dd>\
         <dt>times as good</dt><dd>The ratio of the medians, so that above 1 Godwit wins, whether more is better or less.</dd>\
         <dt>beside</dt><dd>The best of what is of another kind, such as TCP: it says what a machine can do, and is not counted.</dd>\
         <dt>over commits</dt><dd>Medians of the last 30 commits that were measured on the same machine under the same conditions. Figures of \
         different machines are never compared.</dd></dl></section>\n",
    )
}
