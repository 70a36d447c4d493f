//! Uploads of some seconds over chosen networks: how much of the link each contender uses.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use godwit_text::instant_now;
use tokio::sync::Semaphore;

use super::contender::{Contender, all};
use super::settings::TRANSFERS;
use super::testbed::Testbed;
use crate::wan::{Cell, Matrix};

/// The fastest link that is tried, and what may be under way at a time, in Mbit/s: more would measure the machine.
const FASTEST: u32 = 200;
const AT_ONCE: u32 = 200;
/// Networks of the matrix that are looked at for the choice: the first of its spread-out order.
const CONSIDERED: usize = 60;

/// Which transfers are made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Transfers {
    /// The networks.
    pub cells: Vec<Cell>,
    /// Who takes part.
    pub contenders: Vec<Contender>,
    /// How long each lasts, from the first packet of its handshake.
    pub duration: Duration,
    /// How often each is made.
    pub times: u64,
}

impl Default for Transfers {
    fn default() -> Self {
        Transfers {
            cells: Transfers::chosen(30),
            contenders: vec![Contender::TcpCubic, Contender::TcpBbr, Contender::Http3],
            duration: Duration::from_secs(10),
            times: 1,
        }
    }
}

/// A network and how much of it was used, in percent, by contender in the order of [`Transfers::contenders`]: the medians.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Transferred {
    /// Who took part.
    pub contenders: Vec<Contender>,
    /// By network; `None` for who never connected.
    pub used: Vec<(Cell, Vec<Option<f64>>)>,
}

impl Transfers {
    /// So many networks of MsQuic's 1230, spread over them, none faster than a small machine can be.
    #[must_use]
    pub fn chosen(count: usize) -> Vec<Cell> {
        let spread = Matrix::Smoke.cells();
        let slow = spread.into_iter().take(CONSIDERED).filter(|cell| cell.rate <= FASTEST);
        slow.take(count).collect()
    }

    /// Makes them. `progress` is told how many of how many are done.
    pub async fn run(
        &self,
        testbed: &Arc<Testbed>,
        progress: impl Fn(usize, usize) + Send + Sync + 'static,
    ) -> Transferred {
        let (room, done) = (Arc::new(Semaphore::new(AT_ONCE as usize)), Arc::new(AtomicUsize::new(0)));
        let progress = Arc::new(progress);
        let mut jobs = Vec::new();
        for (at, cell) in self.cells.iter().enumerate() {
            for time in 0..self.times {
                jobs.extend(self.contenders.iter().map(|contender| (at, *cell, time, *contender)));
            }
        }
        let of = jobs.len();
        let transfers = jobs.into_iter().map(|(at, cell, time, contender)| {
            let (room, done, progress) = (Arc::clone(&room), Arc::clone(&done), Arc::clone(&progress));
            let (testbed, duration) = (Arc::clone(testbed), self.duration);
            async move {
                // The semaphore is fair: they go in the order of the list.
                let permit = room.acquire_many(cell.rate.min(AT_ONCE)).await;
                let usage = upload(&testbed, contender, &cell, duration, at as u64 * 1000 + time).await;
                drop(permit);
                progress(done.fetch_add(1, Ordering::Relaxed) + 1, of);
                Some((at, contender, usage.ok()?))
            }
        });
        let outcomes: Vec<(usize, Contender, f64)> = all(transfers).await.into_iter().flatten().collect();
        let median = |at: usize, contender: Contender| {
            let same = outcomes.iter().filter(|outcome| (outcome.0, outcome.1) == (at, contender));
            let mut usages: Vec<f64> = same.map(|outcome| outcome.2).collect();
            usages.sort_by(f64::total_cmp);
            usages.get(usages.len() / 2).copied()
        };
        let row = |(at, cell): (usize, &Cell)| {
            (*cell, self.contenders.iter().map(|contender| median(at, *contender)).collect())
        };
        Transferred {
            contenders: self.contenders.clone(),
            used: self.cells.iter().enumerate().map(row).collect(),
        }
    }
}

/// The part of the link that is used, in percent.
async fn upload(
    testbed: &Testbed,
    who: Contender,
    cell: &Cell,
    duration: Duration,
    number: u64,
) -> io::Result<f64> {
    let dialer = testbed.dialer(who, TRANSFERS).ok_or(io::ErrorKind::NotFound)?;
    let lane = testbed.lane(who, &cell.link(), testbed.seed.wrapping_add(number));
    let arrived = testbed.uploads.of(u64::from(lane.local.port()));
    let before = arrived.load(Ordering::Relaxed);
    let path = format!("{}{}", super::service::UPLOAD, lane.local.port());
    let until = instant_now() + duration;
    let upload = async {
        let session = dialer.connect(lane.local).await?;
        let outcome = session.upload(&path, until).await;
        session.close();
        outcome
    };
    tokio::select! {
        outcome = upload => outcome?,
        () = tokio::time::sleep_until(until.into()) => {}
    }
    let bytes = arrived.load(Ordering::Relaxed).saturating_sub(before);
    Ok(100.0 * bytes as f64 / cell.capacity(duration).max(1) as f64)
}

impl Transferred {
    /// The mean over all networks that everybody connected in, by contender.
    #[must_use]
    pub fn means(&self) -> Vec<f64> {
        let whole: Vec<Vec<f64>> =
            self.used.iter().filter_map(|(_, used)| used.iter().copied().collect()).collect();
        let mean =
            |at: usize| whole.iter().filter_map(|row| row.get(at)).sum::<f64>() / whole.len().max(1) as f64;
        (0..self.contenders.len()).map(mean).collect()
    }
}

impl fmt::Display for Transferred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " Mbit/s  RTT ms  queue    loss  reorder  delay")?;
        for contender in &self.contenders {
            write!(f, " {contender:>11}")?;
        }
        writeln!(f)?;
        for (cell, used) in &self.used {
            let Cell { rate, rtt, queue, loss, reorder, delay, .. } = cell;
            write!(f, "{rate:>7} {rtt:>7} {queue:>6} {loss:>7} {reorder:>8} {delay:>6}")?;
            for usage in used {
                match usage {
                    Some(usage) => write!(f, " {usage:>11.1}")?,
                    None => write!(f, " {:>11}", "-")?,
                }
            }
            writeln!(f)?;
        }
        write!(f, "{:<45}", "mean, percent of the link")?;
        for mean in self.means() {
            write!(f, " {mean:>11.1}")?;
        }
        writeln!(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_is_spread_over_what_a_small_machine_can_carry() {
        let chosen = Transfers::chosen(30);
        assert_eq!(chosen.len(), 30);
        for rtt in [5, 50, 200, 500] {
            assert!(chosen.iter().any(|cell| cell.rtt == rtt), "none of {rtt} ms");
        }
        for rate in [5, 10, 20, 50, 100, 200] {
            assert!(chosen.iter().any(|cell| cell.rate == rate), "none of {rate} Mbit/s");
        }
        assert!(chosen.iter().all(|cell| cell.rate <= FASTEST));
        for loss in [0, 1000, 10_000] {
            assert!(chosen.iter().any(|cell| cell.loss == loss), "none of 1/{loss}");
        }
    }

    #[test]
    fn means_are_of_networks_that_everybody_connected_in() {
        let cell = Transfers::chosen(1)[0];
        let used = vec![
            (cell, vec![Some(10.0), Some(20.0)]),
            (cell, vec![None, Some(90.0)]),
            (cell, vec![Some(30.0), Some(40.0)]),
        ];
        let transferred = Transferred { contenders: vec![Contender::TcpBbr, Contender::Http3], used };
        assert_eq!(transferred.means(), [20.0, 30.0]);
        assert!(transferred.to_string().contains("          -        90.0"), "{transferred}");
    }
}
