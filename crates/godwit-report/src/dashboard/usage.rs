//! How emulated networks are used: over commits, as the history has it, and network by network, as tables have it.
//!
//! Time is virtual in these networks, so that all machines reach the same and have one line.

use std::fmt::{self, Write};

use super::history::Usage;
use super::look::{self, Place, file_address};
use super::networks::{Network, NetworkTable, Requests, Rows, mean};
use super::numbers::{number, part};
use super::read::Recorded;
use super::site::Site;
use super::trend::{Chart, Line, MOST_COMMITS, colour, key_list, outline};
use crate::chart::{self, WIDTHS};
use crate::page::{END_SECTION, escaped, section};

/// The most profiles whose way over commits is drawn.
const MOST_PROFILES: usize = 50;
/// The most commits of a table; all of them are in the files.
const MOST_ROWS: usize = 100;
/// Tables of fewer networks are not taken apart by what makes a network: too few would be left.
const ENOUGH: usize = 200;
/// The most values of one factor that are shown.
const MOST_VALUES: usize = 20;

pub(super) fn write(out: &mut String, site: &Site<'_>) -> fmt::Result {
    look::begin(out, "Godwit: emulated networks", Place::Networks)?;
    let about = "How much of a link's rate arrives, and how long requests take, in networks that are emulated in virtual time. \
                 Every machine reaches the same.";
    look::head(out, "Virtual time", "open", "Emulated networks", about)?;
    let files: Vec<&Recorded> =
        site.history.files().iter().filter(|file| !file.measurement.wan.is_empty()).collect();
    if site.networks.is_empty() && files.is_empty() {
        out.write_str(
            "<section><p>No file of the history says what is reached in emulated networks, and no tables were \
             given.</p></section>",
        )?;
    }
    for group in groups(site.networks) {
        one_group(out, &group)?;
    }
    requests(out, site.networks)?;
    over_commits(out, site, &files)?;
    look::end(out)
}

/// Networks of one table, and its name.
type Table<'a> = (&'a str, &'a [Network]);

/// Tables of the same networks, which can be compared.
fn groups(tables: &[NetworkTable]) -> Vec<Vec<Table<'_>>> {
    let mut groups: Vec<Vec<Table<'_>>> = Vec::new();
    for table in tables {
        let Rows::Networks(networks) = &table.rows else { continue };
        let same = |group: &&mut Vec<Table<'_>>| {
            group.first().is_some_and(|(_, others)| {
                others.len() == networks.len()
                    && others.iter().zip(networks).all(|(one, other)| one.factors == other.factors)
            })
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push((table.label(), networks)),
            None => groups.push(vec![(table.label(), networks)]),
        }
    }
    for group in &mut groups {
        // The default is what counts.
        group.sort_by_key(|(name, _)| *name != "default");
    }
    groups
}

fn one_group(out: &mut String, tables: &[Table<'_>]) -> fmt::Result {
    let Some((_, first)) = tables.first() else { return Ok(()) };
    let number = first.len();
    section(
        out,
        &format!("Use of {number} networks, by congestion controller"),
        "Each controller's networks from the one that it uses least to the one that it uses most.",
    )?;
    key_list(out, tables.iter().enumerate().map(|(look, (name, _))| (*name, look, look == 0)))?;
    curves(out, tables, number)?;
    let columns = ["controller", "mean", "worst network", "a tenth is below", "half is below"];
    look::table(out, &format!("Use of {number} networks"), "", &columns)?;
    for (name, networks) in tables {
        let used = sorted(networks);
        let at = |share: f64| used.get((used.len() as f64 * share) as usize).copied().unwrap_or(0.0);
        writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escaped(name),
            bar(mean(used.iter().copied())),
            part(at(0.0)),
            part(at(0.1)),
            part(at(0.5))
        )?;
    }
    out.write_str(look::END_TABLE)?;
    if let Some((name, networks)) = tables.first().filter(|(_, networks)| networks.len() >= ENOUGH) {
        factors(out, name, networks)?;
    }
    out.write_str(END_SECTION)
}

fn sorted(networks: &[Network]) -> Vec<f64> {
    let mut used: Vec<f64> = networks.iter().map(|network| network.used).collect();
    used.sort_by(f64::total_cmp);
    used
}

fn curves(out: &mut String, tables: &[Table<'_>], number: usize) -> fmt::Result {
    for (class, width) in WIDTHS {
        let (left, right, top, height) =
            if class == "narrow" { (52.0, 24.0, 12.0, 260.0) } else { (64.0, 34.0, 14.0, 340.0) };
        let bottom = height - 34.0;
        let across = |share: f64| left + (width - left - right) * share;
        let up = |used: f64| bottom - (bottom - top) * used.clamp(0.0, 1.0);
        let about = format!("Use of {number} networks by controller; the figures are in the table below");
        chart::begin(out, class, width, height, &about)?;
        for quarter in [0.0, 0.25, 0.5, 0.75, 1.0] {
            chart::line(out, "grid", (left, up(quarter)), (width - right, up(quarter)))?;
            chart::label(out, "end", (left - 8.0, up(quarter) + 4.5), &format!("{:.0} %", quarter * 100.0))?;
            let networks = (number as f64 * quarter).round();
            chart::label(out, "middle", (across(quarter), bottom + 22.0), &format!("{networks}"))?;
        }
        for (look, (_, networks)) in tables.iter().enumerate().rev() {
            let used = sorted(networks);
            // A thousand points would be more than the eye sees.
            let each = used.len().div_ceil(200).max(1);
            let last = used.len().saturating_sub(1);
            let points = used
                .iter()
                .enumerate()
                .filter(|(place, _)| place.is_multiple_of(each) || *place == last)
                .map(|(place, used)| (across(place as f64 / last.max(1) as f64), up(*used)));
            let ours = if look == 0 { " ours" } else { "" };
            chart::curve(out, &format!("{}{ours}", colour(look)), points)?;
            for eighth in 0..=8_usize {
                let place = last * eighth / 8;
                let Some(used) = used.get(place) else { continue };
                let at = (across(place as f64 / last.max(1) as f64), up(*used));
                write!(out, "<path class=\"point {}\" d=\"{}\"/>", colour(look), outline(look, at, 5.0))?;
            }
        }
        out.write_str(chart::END)?;
    }
    Ok(())
}

/// What the use depends on: its mean over all networks with the same rate, the same round-trip time and so on.
fn factors(out: &mut String, name: &str, networks: &[Network]) -> fmt::Result {
    write!(out, "<h3>What the use depends on: {}</h3><div class=\"pairs\">", escaped(name))?;
    let names = ["rate", "round-trip time", "queue", "packets lost", "packets late", "late by"];
    for (place, title) in names.into_iter().enumerate() {
        let value = |network: &Network| network.factors.get(place).copied().unwrap_or(0.0);
        let mut values: Vec<f64> = networks.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        out.write_str("<div>")?;
        look::table(out, &format!("Use by {title}"), "", &[title, "networks", "mean use", "worst"])?;
        for one in values.into_iter().take(MOST_VALUES) {
            let used: Vec<f64> =
                networks.iter().filter(|network| value(network) == one).map(|network| network.used).collect();
            let worst = used.iter().copied().fold(f64::INFINITY, f64::min);
            writeln!(
                out,
                "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td></tr>",
                factor(place, one),
                used.len(),
                bar(mean(used.iter().copied())),
                part(worst)
            )?;
        }
        out.write_str(look::END_TABLE)?;
        out.write_str("</div>")?;
    }
    out.write_str("</div>")
}

/// A value of [`Network::FACTORS`] in words.
fn factor(place: usize, value: f64) -> String {
    match place {
        0 => format!("{value} Mbit/s"),
        1 | 5 => format!("{value} ms"),
        2 => format!("{value} × rate × RTT"),
        _ if value == 0.0 => "none".to_owned(),
        _ => format!("1 in {value}"),
    }
}

/// A part of a whole, drawn and in words.
fn bar(used: f64) -> String {
    let width = used.clamp(0.0, 1.0) * 100.0;
    format!(
        "<span class=\"bar\" aria-hidden=\"true\"><i style=\"width:{width:.1}%\"></i></span>{}",
        part(used)
    )
}

fn requests(out: &mut String, tables: &[NetworkTable]) -> fmt::Result {
    let requests = |table: &NetworkTable| matches!(table.rows, Rows::Requests(_));
    if !tables.iter().any(requests) {
        return Ok(());
    }
    section(
        out,
        "Requests over networks that lose much",
        "Milliseconds that a request takes. Less is better.",
    )?;
    let columns = ["network", "requests", "P50, ms", "P95, ms", "P99, ms"];
    look::table(out, "Requests over networks that lose much", "", &columns)?;
    for table in tables {
        let Rows::Requests(rows) = &table.rows else { continue };
        for Requests { kind, number: count, ms } in rows {
            write!(
                out,
                "<tr><th scope=\"row\">{}, {}</th><td>{}</td>",
                escaped(table.label()),
                escaped(kind),
                crate::units::count(*count)
            )?;
            ms.iter().try_for_each(|ms| write!(out, "<td>{}</td>", number(*ms)))?;
            out.write_str("</tr>\n")?;
        }
    }
    out.write_str(look::END_TABLE)?;
    out.write_str(END_SECTION)
}

fn over_commits(out: &mut String, site: &Site<'_>, files: &[&Recorded]) -> fmt::Result {
    let mut profiles: Vec<&str> = Vec::new();
    for usage in files.iter().rev().flat_map(|file| &file.measurement.wan) {
        if !profiles.contains(&usage.profile.as_str()) && profiles.len() < MOST_PROFILES {
            profiles.push(&usage.profile);
        }
    }
    for profile in profiles {
        one_profile(out, site, profile, files)?;
    }
    Ok(())
}

fn usage_in<'a>(file: &'a Recorded, profile: &str) -> Option<&'a Usage> {
    file.measurement.wan.iter().find(|usage| usage.profile == profile)
}

fn one_profile(out: &mut String, site: &Site<'_>, profile: &str, files: &[&Recorded]) -> fmt::Result {
    let files: Vec<&Recorded> =
        files.iter().filter(|file| usage_in(file, profile).is_some()).copied().collect();
    let shown = files.get(files.len().saturating_sub(MOST_COMMITS)..).unwrap_or_default();
    let line = |name: &str, look: usize, of: &dyn Fn(&Usage) -> Option<f64>| Line {
        name: name.to_owned(),
        look,
        ours: true,
        points: shown
            .iter()
            .map(|file| usage_in(file, profile).and_then(of).map(|value| [value; 3]))
            .collect(),
    };
    let about = format!("{profile}, over commits; the figures are in the table below");
    let percent = |usage: &Usage| usage.used.map(|used| used * 100.0);
    let charts = [
        (
            "%",
            "Part of the rate that is used, in percent: more is better",
            vec![line("used, %", 0, &percent)],
        ),
        (
            "ms",
            "What requests take, in ms: less is better",
            vec![line("P50, ms", 0, &|usage| usage.p50_ms), line("P99, ms", 1, &|usage| usage.p99_ms)],
        ),
    ];
    write!(out, "<section><h2>{}, over commits</h2>", escaped(profile))?;
    // One commit makes no line.
    let is_drawn = shown.len() > 1;
    for (unit, title, lines) in charts {
        if !is_drawn || lines.iter().all(|line| line.points.iter().all(Option::is_none)) {
            continue;
        }
        let chart = Chart { about: about.clone(), unit, files: shown, lines };
        write!(out, "<p class=\"small\">{title}; {}.</p>", chart.scale().remark())?;
        chart.draw(out, site)?;
    }
    look::all_values(out, is_drawn)?;
    let columns = ["commit", "of", "networks", "used", "P50, ms", "P99, ms", "file"];
    look::table(out, &format!("{profile}, over commits"), "", &columns)?;
    for file in files.iter().rev().take(MOST_ROWS) {
        let Some(usage) = usage_in(file, profile) else { continue };
        row(out, site, file, usage)?;
    }
    out.write_str(look::END_TABLE)?;
    out.write_str("</details>")?;
    out.write_str(END_SECTION)
}

fn row(out: &mut String, site: &Site<'_>, file: &Recorded, usage: &Usage) -> fmt::Result {
    let dash = || "\u{2013}".to_owned();
    out.write_str("<tr><th scope=\"row\">")?;
    look::commit(out, site, file)?;
    writeln!(
        out,
        "</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"left\"><a href=\"{}\">{}</a></td></tr>",
        escaped(file.measurement.day()),
        usage.networks.map_or_else(dash, crate::units::count),
        usage.used.map_or_else(dash, part),
        usage.p50_ms.map_or_else(dash, number),
        usage.p99_ms.map_or_else(dash, number),
        escaped(&file_address(file)),
        escaped(&file.name)
    )
}
