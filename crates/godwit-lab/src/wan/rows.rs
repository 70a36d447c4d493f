//! Every network of a sweep in a row, as MsQuic's script prints them, with what others have reached in it.

use std::fmt;

use super::baseline::Baseline;
use super::cell::Cell;
use super::sweep::Tried;

/// The networks in rows, in the order in which they were tried.
#[derive(Clone, Debug)]
pub struct Rows<'a> {
    tried: &'a [Tried],
    baseline: &'a Baseline,
}

impl<'a> Rows<'a> {
    /// These, beside what was reached in them before.
    #[must_use]
    pub fn new(tried: &'a [Tried], baseline: &'a Baseline) -> Self {
        Rows { tried, baseline }
    }
}

/// Kilobits per second.
fn rate(cell: &Cell, usage: f64) -> f64 {
    usage * 10.0 * f64::from(cell.rate)
}

impl fmt::Display for Rows<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:76} MsQuic's use, percent", "")?;
        writeln!(
            f,
            "NetMbps RttMs QueuePkts  Loss Reorder DelayMs RateKbps Usage Waste  WaitMs    cubic    bbr    TCP"
        )?;
        for one in self.tried {
            let Cell { rate: megabits, rtt, queue, loss, reorder, delay, .. } = one.cell;
            let usage = one.mean(|outcome| outcome.usage);
            let kilobits = rate(&one.cell, usage);
            let waste = one.mean(super::Outcome::waste);
            let wait = one.mean(|outcome| outcome.link.mean_queue_delay().as_secs_f64() * 1e3);
            write!(f, "{megabits:>7} {rtt:>5} {queue:>9} {loss:>5} {reorder:>7} {delay:>7} ")?;
            write!(f, "{kilobits:>8.0} {usage:>5.1} {waste:>5.1} {wait:>7.1} ")?;
            match self.baseline.of(&one.cell) {
                Some(known) => writeln!(f, "{:>8.1} {:>6.1} {:>6.1}", known.cubic, known.bbr, known.tcp)?,
                None => writeln!(f, "{:>8} {:>6} {:>6}", "-", "-", "-")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::{Matrix, Sweep};
    use super::*;

    #[test]
    fn there_is_a_row_for_each_network_beside_msquics() {
        let mut sweep = Sweep::default();
        sweep.trial.duration = Duration::from_millis(200);
        let unknown = Cell::with_queue_ratio(10, 20, 1.0).unwrap();
        let known = Matrix::Msquic50x5.cells()[0];
        let tried = sweep.run(&[known, unknown], |_, _| {});
        let table = Rows::new(&tried, &Baseline::msquic()).to_string();
        let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        let [_, head, first, second] = lines.as_slice() else { panic!("{table}") };
        assert_eq!((head.len(), first.len(), second.len()), (13, 13, 13), "{table}");
        assert_eq!((&first[..3], &second[10..]), (&["50", "5", "5"][..], &["-", "-", "-"][..]), "{table}");
        let usage = tried[0].mean(|outcome| outcome.usage);
        assert_eq!(first[6..8], [format!("{:.0}", usage * 500.0), format!("{usage:.1}")]);
        assert!(usage > 10.0, "{table}");
    }
}
