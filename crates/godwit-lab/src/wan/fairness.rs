//! How a controller shares a link: two flows of it, and one of it against one of a reference, over links of some rates,
//! round-trip times and queues.

use std::fmt;
use std::time::Duration;

use godwit::TransportConfig;
use godwit_sim::apps::Way;

use super::cell::Cell;
use super::contest::{Contest, Flow, Shares};
use super::spread::spread;

const RATES: [u32; 3] = [10, 50, 100];
const RTTS: [u32; 3] = [20, 50, 100];
const QUEUES: [f64; 4] = [0.5, 1.0, 2.0, 5.0];
/// The second flow begins so long after the first.
const STAGGER: Duration = Duration::from_secs(5);

/// A controller and what it is compared with.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Fairness {
    /// The settings of flows of the controller.
    pub transport: TransportConfig,
    /// Those of the flows that it is to share with: CUBIC's.
    pub reference: TransportConfig,
    /// How long each contest takes; rates are compared in its second half.
    pub duration: Duration,
    /// Whether the data goes from server to client.
    pub download: bool,
    /// What all chances follow from.
    pub seed: u64,
    /// How many contests are run at a time; 0 is as many as there are processors.
    pub threads: usize,
}

/// The contests over one link.
#[derive(Clone, Debug)]
pub struct FairnessRow {
    /// The link.
    pub cell: Cell,
    /// Two flows of the controller.
    pub alike: Shares,
    /// One of it, then one of the reference; their ratio is what the controller takes over what it leaves.
    pub before: Shares,
    /// One of the reference, then one of the controller.
    pub after: Shares,
}

impl FairnessRow {
    /// What the controller has over what the reference has, in the mean (a geometric one) of both orders.
    pub fn ratio(&self) -> f64 {
        (self.before.ratio() / self.after.ratio().max(1e-9)).sqrt()
    }
}

/// All contests of a controller, as a table.
#[derive(Clone, Debug)]
pub struct FairnessTable(pub Vec<FairnessRow>);

impl Fairness {
    /// A minute of each.
    pub fn new(transport: TransportConfig, reference: TransportConfig) -> Self {
        Fairness {
            transport,
            reference,
            duration: Duration::from_secs(60),
            download: false,
            seed: 1,
            threads: 0,
        }
    }

    /// Runs all contests. `progress` is told how many of how many are done.
    pub fn run(&self, progress: impl Fn(usize, usize) + Sync) -> FairnessTable {
        let cells: Vec<Cell> = cells().collect();
        let (own, other) = (&self.transport, &self.reference);
        let pairs = [[own, own], [own, other], [other, own]];
        let jobs: Vec<(&Cell, [&TransportConfig; 2])> =
            cells.iter().flat_map(|cell| pairs.map(|pair| (cell, pair))).collect();
        let shares = spread(&jobs, self.threads, |(cell, pair)| self.contest(cell, *pair), progress);
        let (contests, _) = shares.as_chunks::<3>();
        let rows = cells.iter().zip(contests).map(|(cell, [alike, before, after])| FairnessRow {
            cell: *cell,
            alike: alike.clone(),
            before: before.clone(),
            after: after.clone(),
        });
        FairnessTable(rows.collect())
    }

    fn contest(&self, cell: &Cell, [first, second]: [&TransportConfig; 2]) -> Shares {
        let rtt = Duration::from_millis(u64::from(cell.rtt));
        let flow = |transport: &TransportConfig, starts| Flow { transport: transport.clone(), rtt, starts };
        let flows = vec![flow(first, Duration::ZERO), flow(second, STAGGER)];
        let mut contest = Contest::new(cell.rate, cell.queue, flows);
        (contest.duration, contest.measured_from) = (self.duration, self.duration / 2);
        contest.way = if self.download { Way::Download } else { Way::Upload };
        contest.run(self.seed)
    }
}

/// The links, by queue first: that is what sharing depends on most.
fn cells() -> impl Iterator<Item = Cell> {
    let rates = |queue| RATES.into_iter().map(move |rate| (rate, queue));
    QUEUES.into_iter().flat_map(rates).flat_map(|(rate, queue)| {
        RTTS.into_iter().filter_map(move |rtt| Cell::with_queue_ratio(rate, rtt, queue))
    })
}

impl fmt::Display for FairnessTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "                      two alike                        against the reference")?;
        writeln!(
            f,
            "queue  Mbit/s  RTT ms  Jain   use %  drop %  wait ms    share  first  second  use %  drop %  wait ms"
        )?;
        for row in &self.0 {
            let FairnessRow { cell, alike, before, after } = row;
            write!(f, "{:>5}  {:>6}  {:>6}  {:.3}", cell.queue_ratio, cell.rate, cell.rtt, alike.jain())?;
            write!(f, "  {:>5.1}  {:>6.2}  {:>7.1}", alike.usage, alike.waste, millis(alike))?;
            write!(
                f,
                "    {:>5.2}  {:>5.2}  {:>6.2}",
                row.ratio(),
                before.ratio(),
                1.0 / after.ratio().max(1e-9)
            )?;
            writeln!(
                f,
                "  {:>5.1}  {:>6.2}  {:>7.1}",
                f64::midpoint(before.usage, after.usage),
                f64::midpoint(before.waste, after.waste),
                f64::midpoint(millis(before), millis(after))
            )?;
        }
        let mut queue = None;
        for row in &self.0 {
            if queue.replace(row.cell.queue_ratio) != Some(row.cell.queue_ratio) {
                self.sum_up(row.cell.queue_ratio, f)?;
            }
        }
        let broken: Vec<&String> = self.shares().flat_map(|shares| &shares.broken).collect();
        broken.iter().try_for_each(|reason| writeln!(f, "broken: {reason}"))
    }
}

impl FairnessTable {
    fn shares(&self) -> impl Iterator<Item = &Shares> {
        self.0.iter().flat_map(|row| [&row.alike, &row.before, &row.after])
    }

    /// A line for all links with a queue of this many bandwidth-delay products.
    fn sum_up(&self, queue: f64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<&FairnessRow> = self.0.iter().filter(|row| row.cell.queue_ratio == queue).collect();
        let count = rows.len().max(1) as f64;
        let jain = rows.iter().map(|row| row.alike.jain()).sum::<f64>() / count;
        let least = rows.iter().map(|row| row.alike.jain()).fold(1.0, f64::min);
        let ratio = (rows.iter().map(|row| row.ratio().max(1e-9).ln()).sum::<f64>() / count).exp();
        let low = rows.iter().map(|row| row.ratio()).fold(f64::INFINITY, f64::min);
        let high = rows.iter().map(|row| row.ratio()).fold(0.0, f64::max);
        writeln!(
            f,
            "queue of {queue} BDP: Jain {jain:.3} (least {least:.3}), share against the reference {ratio:.2} \
             ({low:.2} to {high:.2})"
        )
    }
}

fn millis(shares: &Shares) -> f64 {
    shares.queue_delay.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cubic_against_itself_is_the_same_in_all_three_contests() {
        let mut fairness = Fairness::new(TransportConfig::default(), TransportConfig::default());
        fairness.duration = Duration::from_secs(20);
        let cell = Cell::with_queue_ratio(10, 20, 1.0).unwrap();
        let own = &fairness.transport;
        let shares = fairness.contest(&cell, [own, own]);
        let row = FairnessRow { cell, alike: shares.clone(), before: shares.clone(), after: shares.clone() };
        assert!((row.ratio() - 1.0).abs() < 1e-9, "{row:?}");
        assert!(shares.jain() > 0.5 && shares.broken.is_empty(), "{shares:?}");
        let text = FairnessTable(vec![row]).to_string();
        assert!(text.contains("queue of 1 BDP: Jain 0.") || text.contains("Jain 1.000"), "{text}");
    }

    #[test]
    fn there_are_36_links() {
        assert_eq!(cells().count(), 36);
    }
}
