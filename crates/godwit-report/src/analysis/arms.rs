//! A staged roll-out: users were drawn by lot, so that its sides can be compared without "like for like".
//!
//! The sides are compared as drawn (intention to treat): all requests of users to whom HTTP/3 was offered with all
//! of those to whom it was not, whatever protocol they came by.

use serde::Serialize;

use super::bootstrap;
use super::compare::{Comparison, carried, differences};
use super::distribution::Distribution;
use super::is_http3;
use crate::dimension::{Arm, BUCKETS, Reuse, UserCell};
use crate::summary::Table;

/// Both sides of a roll-out.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Arms {
    /// Users without the offer, and users with it.
    pub comparison: Comparison,
    /// The same for later requests on a connection, where HTTP/3 was possible.
    pub reused: Comparison,
    /// The share of requests by HTTP/3 among users with the offer.
    pub really_http3: f64,
    /// The share of requests by HTTP/3 among users without it.
    pub stray_http3: f64,
    /// Whether the sides are as large as they should be.
    pub ratio: Ratio,
}

/// The size of the side with the offer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Ratio {
    /// Its share of the requests.
    pub share: f64,
    /// How much that may be off by chance (two standard errors, by groups of users).
    pub margin: f64,
    /// The share that was wanted, if it is known.
    pub expected: Option<f64>,
    /// Whether the share contradicts what was wanted.
    pub wrong: bool,
}

const WHOLE: &str =
    "All requests of users with the offer of HTTP/3 and of users without it, whatever they came by.";
const LATER: &str =
    "The same without first requests. How long a connection lives may itself depend on the protocol.";

/// Three standard errors: one false alarm in some hundred reports.
const ALARM: f64 = 3.0;

pub(super) fn compare(table: &Table, expected: Option<f64>) -> Option<Arms> {
    let count = |arm: Arm, http3: bool| {
        table.gather(|cell| cell.arm == arm && (!http3 || is_http3(cell))).count() as f64
    };
    let (on, off) = (count(Arm::On, false), count(Arm::Off, false));
    if on <= 0.0 || off <= 0.0 {
        return None;
    }
    Some(Arms {
        comparison: side_by_side(table, "By offer, as drawn by lot", WHOLE, |_| true),
        reused: side_by_side(table, "By offer, later requests on a connection", LATER, |reuse| {
            reuse == Reuse::Reused
        }),
        really_http3: count(Arm::On, true) / on,
        stray_http3: count(Arm::Off, true) / off,
        ratio: ratio(table, expected),
    })
}

fn side_by_side(table: &Table, title: &'static str, about: &str, wanted: fn(Reuse) -> bool) -> Comparison {
    let control = Distribution::of(&table.gather(|cell| cell.arm == Arm::Off && wanted(cell.reuse)));
    let http3 = Distribution::of(&table.gather(|cell| cell.arm == Arm::On && wanted(cell.reuse)));
    let weigh = |cell: UserCell| match cell.arm {
        Arm::Off if wanted(cell.reuse) => [1.0, 0.0],
        Arm::On if wanted(cell.reuse) => [0.0, 1.0],
        _ => [0.0, 0.0],
    };
    let widths = bootstrap::half_widths(table, carried(&control, &http3), weigh);
    let differences = differences(&control, &http3, widths);
    Comparison { title, about: about.to_owned(), control, http3, differences }
}

/// The share of the side with the offer and its standard error, from the scatter between groups of users.
fn ratio(table: &Table, expected: Option<f64>) -> Ratio {
    let mut groups = vec![[0.0; 2]; BUCKETS];
    for (cell, sketch) in UserCell::all().zip(&table.users).filter(|(_, sketch)| !sketch.is_empty()) {
        let Some([on, all]) = groups.get_mut(usize::from(cell.bucket)) else { continue };
        let count = sketch.count() as f64;
        match cell.arm {
            Arm::On => (*on, *all) = (*on + count, *all + count),
            Arm::Off => *all += count,
            Arm::None => {}
        }
    }
    let on: f64 = groups.iter().map(|[on, _]| on).sum();
    let all: f64 = groups.iter().map(|[_, all]| all).sum();
    let share = on / all.max(1.0);
    let number = groups.iter().filter(|[_, all]| *all > 0.0).count().max(2) as f64;
    let squares: f64 = groups.iter().map(|[on, all]| (on - share * all).powi(2)).sum();
    let error = (squares * number / (number - 1.0)).sqrt() / all.max(1.0);
    let wrong = expected.is_some_and(|expected| (share - expected).abs() > ALARM * error && number >= 20.0);
    Ratio { share, margin: 2.0 * error, expected, wrong }
}
