//! Whether networks that are simulated for less time come out as they would in all of it.

use std::fmt;

use super::cell::Cell;
use super::matrix::Matrix;
use super::sweep::{Sweep, Tried, shortened};

/// How far the means may be apart, in points.
const APART: f64 = 0.5;

/// The networks that a [`Sweep`] simulates for less time, simulated for less and for all of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Shortening {
    /// Each network, and how much of the link was used in percent: in less time, and in all of it.
    pub used: Vec<(Cell, [f64; 2])>,
}

impl Shortening {
    /// The networks of MsQuic's matrix that get less time.
    #[must_use]
    pub fn cells(sweep: &Sweep) -> Vec<Cell> {
        let whole = sweep.trial.duration;
        Matrix::Msquic1230.cells().into_iter().filter(|cell| shortened(cell, whole) < whole).collect()
    }

    /// Tries these networks both ways. `progress` is told how much of how much is done.
    pub fn measure(sweep: &Sweep, cells: &[Cell], progress: impl Fn(usize, usize) + Sync) -> Self {
        let usage = |tried: &Tried| tried.mean(|outcome| outcome.usage);
        let [less, all] = [true, false].map(|shorten| {
            let before = if shorten { 0 } else { 1 };
            let sweep = Sweep { shorten, ..sweep.clone() };
            sweep.run(cells, |done, of| progress(before * of + done, 2 * of))
        });
        let used = less.iter().zip(&all).map(|(less, all)| (less.cell, [usage(less), usage(all)]));
        Shortening { used: used.collect() }
    }

    /// The mean of less time, and that of all of it.
    #[must_use]
    pub fn means(&self) -> [f64; 2] {
        let count = self.used.len().max(1) as f64;
        let sum = |which: fn(&[f64; 2]) -> f64| self.used.iter().map(|(_, used)| which(used)).sum::<f64>();
        [sum(|[less, _]| *less) / count, sum(|[_, all]| *all) / count]
    }

    /// True if the means are within half a point.
    #[must_use]
    pub fn holds(&self) -> bool {
        let [less, all] = self.means();
        !self.used.is_empty() && (less - all).abs() <= APART
    }
}

impl fmt::Display for Shortening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [less, all] = self.means();
        writeln!(
            f,
            "{} networks: mean use {less:.2} % in less time, {all:.2} % in all of it",
            self.used.len()
        )?;
        let apart = |[less, all]: &[f64; 2]| (less - all).abs();
        let furthest = self.used.iter().max_by(|(_, one), (_, other)| apart(one).total_cmp(&apart(other)));
        if let Some((Cell { rate, rtt, queue, loss, reorder, delay, .. }, [less, all])) = furthest {
            writeln!(
                f,
                "furthest apart: {rate} Mbit/s, RTT {rtt} ms, queue {queue}, loss {loss}, reorder {reorder} by \
                 {delay} ms: {less:.1} and {all:.1} %"
            )?;
        }
        if !self.holds() {
            writeln!(f, "WRONG: the means are more than {APART} points apart")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn half_a_point_is_permitted_and_no_more() {
        let cell = Shortening::cells(&Sweep::default())[0];
        let of = |all| Shortening { used: vec![(cell, [90.0, 91.0]), (cell, [80.0, all])] };
        assert!(of(79.9).holds() && !of(79.9).to_string().contains("WRONG"));
        assert!(!of(80.1).holds() && of(80.1).to_string().contains("WRONG"));
        assert!(!of(f64::NAN).holds() && !Shortening { used: Vec::new() }.holds());
    }

    #[test]
    fn the_networks_are_the_fast_ones_near_by() {
        let mut sweep = Sweep::default();
        let cells = Shortening::cells(&sweep);
        assert!(cells.len() == 90 && cells.iter().all(|cell| (cell.rate, cell.rtt <= 50) == (1000, true)));
        sweep.trial.duration = Duration::from_millis(400);
        let both = Shortening::measure(&sweep, &cells[45..46], |_, _| {});
        let [(_, [less, all])] = both.used.as_slice() else { panic!("{both}") };
        assert!(*less > 0.0 && *all > 0.0 && less != all, "{both}");
    }
}
