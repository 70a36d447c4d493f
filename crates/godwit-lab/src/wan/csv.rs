//! Results as comma-separated values.
//!
//! The columns up to `Usage` are MsQuic's, in its units: `Loss` and `Reorder` are denominators, `RateKbps` is bytes that
//! arrived in order over the time, `Usage` that in percent of the link's rate. Then come the seconds that were
//! simulated, the spread of `Usage` over the seeds (standard deviation), what the queue dropped in percent of what was
//! sent, losses that were none per thousand packets sent, in how many trials the connection broke, the first seed, the
//! number of seeds, how long packets waited in the queue in the mean, in milliseconds, and `Usage` with the first seed
//! alone. New columns come last. If requests were made beside the flow, the median and the 99th percentile follow of how
//! many milliseconds they took, over all seeds.

use std::fmt::Write;

use super::latencies::Latencies;
use super::sweep::Tried;

/// The names of the columns.
pub(super) const HEAD: &str = "NetMbps,RttMs,QueueRatio,QueuePkts,Loss,Reorder,DelayMs,RateKbps,Usage,Seconds,\
                               Spread,Waste,SpuriousPerThousand,Broken,Seed,Seeds,QueueDelayMs,\
                               FirstUsage";

/// And of those that come with requests beside the flow.
const BESIDE: &str = ",RequestP50Ms,RequestP99Ms";

/// The table, with a line of names on top.
pub fn csv(tried: &[Tried]) -> String {
    let beside = tried.iter().flat_map(|one| &one.outcomes).any(|outcome| !outcome.beside.is_empty());
    let mut text = format!("{HEAD}{}\n", if beside { BESIDE } else { "" });
    for one in tried {
        let cell = &one.cell;
        let usage = one.mean(|outcome| outcome.usage);
        let rate = usage / 100.0 * f64::from(cell.rate) * 1000.0;
        let seconds = one.mean(|outcome| outcome.duration.as_secs_f64());
        let spread = one.mean(|outcome| (outcome.usage - usage).powi(2)).sqrt();
        let waste = one.mean(super::Outcome::waste);
        let spurious = one.mean(|outcome| {
            1000.0 * outcome.sender.spurious_losses as f64 / outcome.sender.packets_sent.max(1) as f64
        });
        let broken = one.outcomes.iter().filter(|outcome| outcome.broken.is_some()).count();
        let (seed, seeds) = (one.outcomes.first().map_or(0, |outcome| outcome.seed), one.outcomes.len());
        let wait = one.mean(|outcome| outcome.link.mean_queue_delay().as_secs_f64() * 1e3);
        let first = one.outcomes.first().map_or(0.0, |outcome| outcome.usage);
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "{},{},{},{},{},{},{},{rate:.0},{usage:.2},{seconds},{spread:.2},{waste:.2},{spurious:.2},{broken},\
             {seed},{seeds},{wait:.2},{first:.2}",
            cell.rate, cell.rtt, cell.queue_ratio, cell.queue, cell.loss, cell.reorder, cell.delay
        );
        if beside {
            let latencies = Latencies::of_all(one.outcomes.iter().map(|outcome| &outcome.beside));
            for rank in [500, 990] {
                match latencies.is_empty() {
                    true => text.push(','),
                    false => {
                        let _ = write!(text, ",{:.1}", latencies.per_mille(rank).as_secs_f64() * 1e3);
                    }
                }
            }
        }
        text.push('\n');
    }
    text
}
