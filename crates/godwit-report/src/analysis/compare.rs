//! HTTP/3 beside the TCP protocols: as they came, in equal mixes, and by place on the connection.

use serde::Serialize;

use super::bootstrap;
use super::distribution::{Distribution, Weights};
use super::is_http3;
use crate::dimension::{Cell, Family, HOURS, Protocol, Reuse, Size, UserCell};
use crate::sketch::Sketch;
use crate::summary::Table;

/// What a difference amounts to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Verdict {
    /// The second group is faster: the band lies below 0.
    Lower,
    /// The second group is slower: the band lies above 0.
    Higher,
    /// The band holds 0.
    NotResolved,
    /// There are too few groups of users for a band.
    NoBand,
    /// There are too few samples beyond the percentile.
    TooFew,
}

/// How much a percentile of the second group differs from the first's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Difference {
    /// In per cent of the first group's.
    pub percent: f64,
    /// The band that holds all of the comparison's differences together in 95 of 100 samples of users.
    pub band: Option<(f64, f64)>,
    /// What it amounts to.
    pub verdict: Verdict,
}

/// Two groups of requests.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Comparison {
    /// What is compared.
    pub title: &'static str,
    /// How to read it.
    pub about: String,
    /// The group without HTTP/3, or without the offer of it.
    pub control: Distribution,
    /// The group with HTTP/3, or with the offer of it.
    pub http3: Distribution,
    /// By percentile.
    pub differences: [Option<Difference>; 7],
}

/// Two groups of one class of requests.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Class {
    /// The class.
    pub label: String,
    /// Without HTTP/3.
    pub control: Distribution,
    /// With HTTP/3.
    pub http3: Distribution,
    /// By percentile.
    pub differences: [Option<Difference>; 7],
}

impl Class {
    pub(super) fn of(label: &str, control: &Sketch, http3: &Sketch) -> Class {
        let (control, http3) = (Distribution::of(control), Distribution::of(http3));
        let differences = differences(&control, &http3, None);
        Class { label: label.to_owned(), control, http3, differences }
    }
}

/// Differences by percentile; `widths` are half the bands' widths as logarithms.
pub(super) fn differences(
    control: &Distribution,
    http3: &Distribution,
    widths: Option<[f64; 7]>,
) -> [Option<Difference>; 7] {
    let mut differences = [None; 7];
    let points = control.points.iter().zip(&http3.points);
    for (place, (slot, (control, http3))) in differences.iter_mut().zip(points).enumerate() {
        let (Some(from), Some(to)) = (control.ms, http3.ms) else { continue };
        if from <= 0.0 {
            continue;
        }
        let ratio = to / from;
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        let reliable = control.reliable && http3.reliable;
        let width = widths.and_then(|widths| widths.get(place).copied()).filter(|_| reliable);
        let band = width.map(|width| (percent(ratio * (-width).exp()), percent(ratio * width.exp())));
        let verdict = match band {
            _ if !reliable => Verdict::TooFew,
            None => Verdict::NoBand,
            Some((_, high)) if high < 0.0 => Verdict::Lower,
            Some((low, _)) if low > 0.0 => Verdict::Higher,
            Some(_) => Verdict::NotResolved,
        };
        *slot = Some(Difference { percent: percent(ratio), band, verdict });
    }
    differences
}

/// The percentiles that both groups can carry.
pub(super) fn carried(control: &Distribution, http3: &Distribution) -> [bool; 7] {
    let mut carried = [false; 7];
    for (slot, (control, http3)) in carried.iter_mut().zip(control.points.iter().zip(&http3.points)) {
        *slot = control.reliable && http3.reliable;
    }
    carried
}

/// The comparisons of a report, those with requests in both groups.
pub(super) fn all(table: &Table) -> Vec<Comparison> {
    let raw = plain(table, "All requests as they came", "Not like for like: see the notes.", |_| true);
    let first = plain(
        table,
        "First requests on a connection",
        "After a handshake, in slow start. A browser's first visit to a site is never HTTP/3.",
        |reuse| reuse == Reuse::First,
    );
    let reused =
        plain(table, "Later requests on a connection", "The connection was there already.", |reuse| {
            reuse == Reuse::Reused
        });
    let comparisons = [like_for_like(table), Some(raw), Some(first), Some(reused)];
    let both = |comparison: &Comparison| comparison.control.samples > 0 && comparison.http3.samples > 0;
    comparisons.into_iter().flatten().filter(both).collect()
}

fn plain(table: &Table, title: &'static str, about: &str, wanted: impl Fn(Reuse) -> bool) -> Comparison {
    let control = Distribution::of(&table.gather(|cell| !is_http3(cell) && wanted(cell.reuse)));
    let http3 = Distribution::of(&table.gather(|cell| is_http3(cell) && wanted(cell.reuse)));
    let weigh = |cell: UserCell| match (wanted(cell.reuse), cell.protocol) {
        (false, _) => [0.0, 0.0],
        (true, Protocol::Http3) => [0.0, 1.0],
        (true, _) => [1.0, 0.0],
    };
    let widths = bootstrap::half_widths(table, carried(&control, &http3), weigh);
    let differences = differences(&control, &http3, widths);
    Comparison { title, about: about.to_owned(), control, http3, differences }
}

const STRATA: usize = Size::COUNT * Family::COUNT * Reuse::COUNT * HOURS;

fn stratum(cell: Cell) -> usize {
    let index = cell.size.index() * Family::COUNT + cell.family.index();
    (index * Reuse::COUNT + cell.reuse.index()) * HOURS + usize::from(cell.hour)
}

fn coarse(size: Size, reuse: Reuse) -> usize {
    size.index() * Reuse::COUNT + reuse.index()
}

/// HTTP/3's requests weighted so that they have the control's mix of size, IP version, place on the connection
/// and hour. Kinds of requests that only one group has are left out of both.
fn like_for_like(table: &Table) -> Option<Comparison> {
    let mut counts = vec![[0_u64; 2]; STRATA];
    let mut coarse_counts = [[0_u64; 2]; Size::COUNT * Reuse::COUNT];
    for (cell, sketch) in Cell::all().zip(&table.cells).filter(|(_, sketch)| !sketch.is_empty()) {
        let group = usize::from(is_http3(cell));
        let fine = counts.get_mut(stratum(cell));
        let coarse = coarse_counts.get_mut(coarse(cell.size, cell.reuse));
        for count in fine.into_iter().chain(coarse).filter_map(|counts| counts.get_mut(group)) {
            *count = count.saturating_add(sketch.count());
        }
    }
    let (mut control, mut http3) = (Weights::new(), Weights::new());
    let mut sums = Sums::default();
    for (cell, sketch) in Cell::all().zip(&table.cells).filter(|(_, sketch)| !sketch.is_empty()) {
        let Some([of_control, of_http3]) = weights(&counts, stratum(cell)) else { continue };
        if is_http3(cell) {
            http3.add(sketch, of_http3);
            sums.add_http3(sketch.count(), of_http3);
        } else {
            control.add(sketch, of_control);
            sums.control = sums.control.saturating_add(sketch.count());
        }
    }
    if control.is_empty() || http3.is_empty() {
        return None;
    }
    let control = Distribution::weighted(&control, sums.control, sums.control as f64);
    let http3 = Distribution::weighted(&http3, sums.http3, sums.weight * sums.weight / sums.squares);
    let weigh = |cell: UserCell| match weights(&coarse_counts, coarse(cell.size, cell.reuse)) {
        Some([_, of_http3]) if cell.protocol == Protocol::Http3 => [0.0, of_http3],
        Some([of_control, _]) => [of_control, 0.0],
        None => [0.0, 0.0],
    };
    let widths = bootstrap::half_widths(table, carried(&control, &http3), weigh);
    let differences = differences(&control, &http3, widths);
    let all: u64 = counts.iter().map(|[control, _]| control).sum();
    let about = format!(
        "HTTP/3's requests weighted to the other group's mix of size, IP version, place on the connection and hour; \
         {} of that group have a counterpart.",
        crate::units::share(sums.control as f64 / all.max(1) as f64)
    );
    Some(Comparison { title: "Like for like", about, control, http3, differences })
}

#[derive(Default)]
struct Sums {
    control: u64,
    http3: u64,
    weight: f64,
    squares: f64,
}

impl Sums {
    fn add_http3(&mut self, count: u64, weight: f64) {
        self.http3 = self.http3.saturating_add(count);
        self.weight += weight * count as f64;
        self.squares += weight * weight * count as f64;
    }
}

/// The weights of the control's and of HTTP/3's requests of one kind; `None` if a group has none of it.
fn weights(counts: &[[u64; 2]], place: usize) -> Option<[f64; 2]> {
    match counts.get(place)? {
        [0, _] | [_, 0] => None,
        [control, http3] => Some([1.0, *control as f64 / *http3 as f64]),
    }
}
