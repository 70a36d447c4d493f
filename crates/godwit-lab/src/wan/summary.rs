//! What many networks say together.

use std::fmt;

use super::baseline::Baseline;
use super::cell::Cell;
use super::latencies::Latencies;
use super::sweep::Tried;

/// Networks shown one by one.
const WORST: usize = 20;
/// A network counts as behind MsQuic if it is used by so many points less.
const BEHIND: f64 = 2.0;

/// Figures over all networks of a sweep, in percent of the links' rates where nothing else is said.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Summary {
    /// Networks.
    pub cells: usize,
    /// The mean.
    pub mean: f64,
    /// The tenth percentile, the median, the ninetieth.
    pub percentiles: [f64; 3],
    /// What the queues dropped in percent of what was sent, on average.
    pub waste: f64,
    /// The better of MsQuic's controllers on average, over the networks that it was measured in.
    pub msquic: Option<f64>,
    /// Networks used at least two points less than by the better of MsQuic's controllers.
    pub behind: usize,
    /// Means by name: of networks with one loss, one queue, one round-trip time, one rate.
    pub groups: Vec<(String, f64)>,
    /// The networks used least, with how much.
    pub worst: Vec<(Cell, f64)>,
    /// The median and the 99th percentile of how many round trips requests beside the flow took, and the same in
    /// milliseconds, each on average over the networks; none if none were made.
    pub beside: Option<[f64; 4]>,
    /// Trials in which the connection broke.
    pub broken: usize,
}

impl Summary {
    /// Sums up.
    pub fn of(tried: &[Tried], baseline: &Baseline) -> Self {
        let mut used: Vec<(Cell, f64)> =
            tried.iter().map(|one| (one.cell, one.mean(|outcome| outcome.usage))).collect();
        let compared: Vec<(f64, f64)> =
            used.iter().filter_map(|(cell, usage)| Some((*usage, baseline.of(cell)?.best()))).collect();
        let groups = groups(&used);
        let all = mean(used.iter().map(|(_, usage)| *usage)).unwrap_or(0.0);
        used.sort_by(|left, right| left.1.total_cmp(&right.1));
        let percentile = |percent: usize| {
            let at = used.len().saturating_sub(1).saturating_mul(percent) / 100;
            used.get(at).map_or(0.0, |(_, usage)| *usage)
        };
        Summary {
            cells: tried.len(),
            mean: all,
            percentiles: [percentile(10), percentile(50), percentile(90)],
            waste: mean(tried.iter().map(|one| one.mean(super::Outcome::waste))).unwrap_or(0.0),
            msquic: mean(compared.iter().map(|(_, msquic)| *msquic)),
            behind: compared.iter().filter(|(usage, msquic)| usage + BEHIND < *msquic).count(),
            groups,
            beside: beside(tried),
            worst: used.iter().take(WORST).copied().collect(),
            broken: tried
                .iter()
                .flat_map(|one| &one.outcomes)
                .filter(|outcome| outcome.broken.is_some())
                .count(),
        }
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0_u32);
    for value in values {
        sum += value;
        count = count.saturating_add(1);
    }
    (count > 0).then(|| sum / f64::from(count))
}

fn beside(tried: &[Tried]) -> Option<[f64; 4]> {
    let of = |one: &Tried| {
        let latencies = Latencies::of_all(one.outcomes.iter().map(|outcome| &outcome.beside));
        let [p50, p99] = [500, 990].map(|rank| latencies.per_mille(rank).as_secs_f64() * 1e3);
        let rtt = f64::from(one.cell.rtt.max(1));
        (!latencies.is_empty()).then_some([p50 / rtt, p99 / rtt, p50, p99])
    };
    let (mut sums, mut count) = ([0.0; 4], 0_u32);
    for one in tried.iter().filter_map(of) {
        sums.iter_mut().zip(one).for_each(|(sum, figure)| *sum += figure);
        count = count.saturating_add(1);
    }
    (count > 0).then(|| sums.map(|sum| sum / f64::from(count)))
}

/// The means of networks that have something in common.
fn groups(used: &[(Cell, f64)]) -> Vec<(String, f64)> {
    let names: [fn(&Cell) -> String; 5] = [
        |cell| match cell.loss {
            0 => "no loss".to_owned(),
            loss => format!("loss 1/{loss}"),
        },
        |cell| match cell.reorder {
            0 => "no reordering".to_owned(),
            reorder => format!("reorder 1/{reorder} by {} ms", cell.delay),
        },
        |cell| format!("queue {} BDP", cell.queue_ratio),
        |cell| format!("RTT {} ms", cell.rtt),
        |cell| format!("{} Mbit/s", cell.rate),
    ];
    let mut groups: Vec<(String, f64)> = Vec::new();
    for name in names {
        for (cell, _) in used {
            let group = name(cell);
            if !groups.iter().any(|(known, _)| *known == group) {
                let alike = used.iter().filter(|(other, _)| name(other) == group);
                groups.extend(mean(alike.map(|(_, usage)| *usage)).map(|mean| (group, mean)));
            }
        }
    }
    groups
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [low, median, high] = self.percentiles;
        writeln!(f, "{} networks, use of the link in percent", self.cells)?;
        writeln!(f, "mean {:.1}, P10 {low:.1}, P50 {median:.1}, P90 {high:.1}", self.mean)?;
        writeln!(f, "dropped by queues {:.1} % of what was sent", self.waste)?;
        if let Some(msquic) = self.msquic {
            let behind = self.behind;
            writeln!(
                f,
                "MsQuic, the better of CUBIC and BBR: mean {msquic:.1}; ahead of us in {behind} networks"
            )?;
        }
        if let Some([p50, p99, median, late]) = self.beside {
            writeln!(
                f,
                "requests beside it: P50 {p50:.2}, P99 {p99:.2} round trips ({median:.0}, {late:.0} ms on average)"
            )?;
        }
        if self.broken > 0 {
            writeln!(f, "broken connections: {}", self.broken)?;
        }
        writeln!(f)?;
        for (name, mean) in &self.groups {
            writeln!(f, "{name:<26} {mean:5.1}")?;
        }
        writeln!(f, "\nthe {} used least", self.worst.len())?;
        writeln!(f, " Mbit/s  RTT ms  queue    loss  reorder  delay   use %")?;
        for (cell, usage) in &self.worst {
            let Cell { rate, rtt, queue, loss, reorder, delay, .. } = cell;
            writeln!(f, "{rate:>7} {rtt:>7} {queue:>6} {loss:>7} {reorder:>8} {delay:>6} {usage:>7.1}")?;
        }
        Ok(())
    }
}
