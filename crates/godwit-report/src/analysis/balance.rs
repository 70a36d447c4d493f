//! How alike the two groups are in what was not drawn by lot.

use serde::Serialize;

use super::is_http3;
use crate::dimension::{Cell, Family, HOURS, Reuse, Size};
use crate::summary::Table;

/// A standardised difference above this is commonly taken as unequal.
const LIMIT: f64 = 0.1;

/// How alike the groups are in one respect.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Balance {
    /// In what.
    pub what: &'static str,
    /// The class in which they differ most, in words that follow "were" or "came".
    pub class: String,
    /// The share of that class in the control.
    pub control: f64,
    /// The share of that class in HTTP/3's requests.
    pub http3: f64,
    /// The difference of the shares in units of their standard deviation.
    pub standardised: f64,
    /// Whether that is too much for a comparison of the groups as they came.
    pub unequal: bool,
}

/// What of their requests two groups are compared by, and its classes.
struct Comparable {
    what: &'static str,
    classes: Vec<String>,
    class_of: fn(Cell) -> usize,
}

fn comparables() -> [Comparable; 4] {
    [
        Comparable {
            what: "place on the connection",
            classes: Reuse::ALL
                .iter()
                .map(|reuse| match reuse {
                    Reuse::First => "first on their connection".to_owned(),
                    Reuse::Reused => "on a reused connection".to_owned(),
                    Reuse::Unknown => "at an unknown place on the connection".to_owned(),
                })
                .collect(),
            class_of: |cell| cell.reuse.index(),
        },
        Comparable {
            what: "response size",
            classes: Size::ALL.iter().map(|size| format!("{} in size", size.label())).collect(),
            class_of: |cell| cell.size.index(),
        },
        Comparable {
            what: "IP version",
            classes: Family::ALL.iter().map(|family| format!("over {}", family.label())).collect(),
            class_of: |cell| cell.family.index(),
        },
        Comparable {
            what: "hour",
            classes: (0..HOURS).map(|hour| format!("in the hour from {hour:02}:00 UTC")).collect(),
            class_of: |cell| usize::from(cell.hour),
        },
    ]
}

/// The balance in every respect; empty if a group is.
pub(super) fn all(table: &Table) -> Vec<Balance> {
    comparables().into_iter().filter_map(|comparable| one(table, &comparable)).collect()
}

fn one(table: &Table, comparable: &Comparable) -> Option<Balance> {
    let mut counts = vec![[0.0; 2]; comparable.classes.len()];
    let mut totals = [0.0; 2];
    for (cell, sketch) in Cell::all().zip(&table.cells).filter(|(_, sketch)| !sketch.is_empty()) {
        let group = usize::from(is_http3(cell));
        let count = sketch.count() as f64;
        let class = counts.get_mut((comparable.class_of)(cell));
        for counts in class.into_iter().chain([&mut totals]) {
            counts
                .iter_mut()
                .enumerate()
                .filter(|(place, _)| *place == group)
                .for_each(|(_, sum)| *sum += count);
        }
    }
    let [all_control, all_http3] = totals;
    if all_control <= 0.0 || all_http3 <= 0.0 {
        return None;
    }
    let shares = counts.iter().map(|[control, http3]| (control / all_control, http3 / all_http3));
    let worst = shares
        .map(|(control, http3)| (standardised(control, http3), control, http3))
        .zip(&comparable.classes);
    // Of two classes that differ alike, the first one tells more.
    let rank = |standardised: f64| (standardised * 1e6) as u64;
    let worst = worst.rev().max_by_key(|((standardised, ..), _)| rank(*standardised));
    let ((standardised, control, http3), class) = worst?;
    let unequal = standardised > LIMIT;
    Some(Balance { what: comparable.what, class: class.clone(), control, http3, standardised, unequal })
}

fn standardised(one: f64, other: f64) -> f64 {
    let variance = (one * (1.0 - one) + other * (1.0 - other)) / 2.0;
    if variance > 0.0 {
        (one - other).abs() / variance.sqrt()
    } else if (one - other).abs() > 0.5 {
        // All against none. Any number above the limit will do that can be written down.
        99.0
    } else {
        0.0
    }
}
