//! Instructions and allocations of fixed paths over commits. They are counted, not timed, and of our own code alone, so
//! that all machines have one line.

use std::collections::BTreeSet;
use std::fmt::{self, Write};

use super::history::Counts;
use super::look::{self, Place, file_address};
use super::numbers::{beside_one, number};
use super::read::Recorded;
use super::site::Site;
use super::trend::{Chart, Line, MOST_COMMITS};
use crate::page::{END_SECTION, escaped};

/// The most paths that are shown.
const MOST_PATHS: usize = 50;
/// The most commits of a table; all of them are in the files.
const MOST_ROWS: usize = 100;

pub(super) fn write(out: &mut String, site: &Site<'_>) -> fmt::Result {
    look::begin(out, "Godwit: instruction counts", Place::Counts)?;
    let about = "Instructions of Godwit's own code and allocations, for each call of the paths that decide speed. Fewer are \
                 better. They do not depend on how busy a machine is, nor on which one it is.";
    look::head(out, "Fixed paths", "open", "Instruction counts", about)?;
    let files: Vec<&Recorded> =
        site.history.files().iter().filter(|file| !file.measurement.gate.is_empty()).collect();
    let paths: BTreeSet<&str> =
        files.iter().flat_map(|file| file.measurement.gate.keys()).map(String::as_str).collect();
    if paths.is_empty() {
        out.write_str("<section><p>No file of the history holds counts.</p></section>")?;
    }
    for path in paths.into_iter().take(MOST_PATHS) {
        one_path(out, site, path, &files)?;
    }
    look::end(out)
}

fn one_path(out: &mut String, site: &Site<'_>, path: &str, files: &[&Recorded]) -> fmt::Result {
    let files: Vec<&Recorded> =
        files.iter().filter(|file| file.measurement.gate.contains_key(path)).copied().collect();
    let shown = files.get(files.len().saturating_sub(MOST_COMMITS)..).unwrap_or_default();
    let at = |file: &&Recorded| file.measurement.gate.get(path).copied();
    let instructions = |counts: Counts| [counts.instructions; 3];
    let points = shown.iter().map(|file| at(file).map(instructions)).collect();
    let lines = vec![Line { name: "instructions a call".to_owned(), look: 0, ours: true, points }];
    let about = format!("{path}: instructions a call over commits; the figures are in the table below");
    let chart = Chart { about, unit: "instructions", files: shown, lines };
    write!(out, "<section><h2>{}</h2>", escaped(path))?;
    // One commit makes no line.
    let is_drawn = shown.len() > 1;
    if is_drawn {
        write!(out, "<p class=\"small\">Fewer are better; {}.</p>", chart.scale().remark())?;
        chart.draw(out, site)?;
    }
    look::all_values(out, is_drawn)?;
    let columns = [
        "commit",
        "of",
        "instructions",
        "against the one before",
        "allocations",
        "file",
        "what the commit does",
    ];
    look::table(out, &format!("Counts of {path}"), "", &columns)?;
    for (place, file) in files.iter().enumerate().rev().take(MOST_ROWS) {
        let before = place.checked_sub(1).and_then(|place| files.get(place)).and_then(at);
        if let Some(counts) = at(file) {
            row(out, site, file, counts, before)?;
        }
    }
    out.write_str(look::END_TABLE)?;
    out.write_str("</details>")?;
    out.write_str(END_SECTION)
}

fn row(
    out: &mut String,
    site: &Site<'_>,
    file: &Recorded,
    counts: Counts,
    before: Option<Counts>,
) -> fmt::Result {
    let change = match before {
        Some(before) if before.instructions == counts.instructions => "the same".to_owned(),
        Some(before) if before.instructions > 0.0 => beside_one(counts.instructions / before.instructions),
        _ => "\u{2013}".to_owned(),
    };
    out.write_str("<tr><th scope=\"row\">")?;
    look::commit(out, site, file)?;
    writeln!(
        out,
        "</th><td>{}</td><td>{}</td><td>{change}</td><td>{}</td><td class=\"left\"><a href=\"{}\">{}</a></td>\
         <td class=\"wrap\">{}</td></tr>",
        escaped(file.measurement.day()),
        number(counts.instructions),
        number(counts.allocations),
        escaped(&file_address(file)),
        escaped(&file.name),
        escaped(&file.measurement.title)
    )
}
