//! What an earlier run reached, as [`csv`](super::csv()) wrote it, and whether a later one falls behind that.
//!
//! The same program reaches the same to the last digit, so that every difference is one of the program. But one that does
//! nothing wrong may shift when a packet is lost, and a network in which packets are lost by chance is then used a little
//! more or less: a network in which much less is reached is only suspected. It is tried again with ten seeds, those of the
//! record among them if it was made with as many, and called worse if the mean still is as far below the record and that
//! is twice as much as chance explains. Likewise all networks are tried with all seeds of the record, if it has more than
//! the run, before the mean over all of them is said to have fallen: until then only first seeds are compared.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use super::baseline::{self, Key};
use super::cell::Cell;
use super::csv;
use super::sweep::{Sweep, Tried};
use crate::Error;

/// How far the mean over all networks may fall, in points.
const MEAN: f64 = 0.3;
/// How far what is reached in one network may.
const ONE: f64 = 3.0;
/// How often a network is tried that is suspected.
const SEEDS: u32 = 10;
/// So many standard errors are more than chance.
const ERRORS: f64 = 2.0;

const REMEDY: &str = "make it anew with --csv, of the same matrix";

/// Figures by network.
#[derive(Clone, Debug)]
pub struct Record(HashMap<Key, Recorded>);

/// Figures of one network.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Recorded {
    /// The mean over the seeds.
    usage: f64,
    /// With the first seed.
    first: f64,
    /// Of `usage` over the seeds: the standard deviation.
    spread: f64,
    seed: u64,
    seeds: u32,
}

/// Two runs, compared.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Comparison {
    /// The mean use of all links, in percent: with the seeds of the run, or with those of the record if it has more and
    /// the mean seemed to have fallen.
    pub mean: f64,
    /// The same of the record, over the same networks.
    pub recorded: f64,
    /// The networks that were tried again.
    pub suspects: usize,
    /// Those in which less is reached than was.
    pub worse: Vec<Fall>,
}

/// A network in which less is reached than was, in percent of the link's rate.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Fall {
    /// The network.
    pub cell: Cell,
    /// The mean over all seeds.
    pub usage: f64,
    /// What the record says.
    pub recorded: f64,
}

impl Record {
    /// What a file says, in which all of these networks must be found, tried like `sweep` does, but for the number of
    /// seeds.
    ///
    /// # Errors
    /// If the file cannot be read, or is not of these networks, or of other durations or seeds.
    pub fn read(file: &Path, sweep: &Sweep, cells: &[Cell]) -> Result<Record, Error> {
        let wrong = |problem: &str| Error::file("cannot compare with", file, problem, REMEDY);
        let bytes = godwit_text::read_file(file).map_err(|error| wrong(&godwit_text::plain_error(&error)))?;
        Record::parse(&String::from_utf8_lossy(&bytes), sweep, cells).map_err(|problem| wrong(&problem))
    }

    fn parse(text: &str, sweep: &Sweep, cells: &[Cell]) -> Result<Record, String> {
        let mut lines = text.lines();
        match lines.next() {
            None => return Err("it is empty".to_owned()),
            // Columns may follow that are not compared.
            Some(head)
                if head
                    .strip_prefix(csv::HEAD)
                    .is_some_and(|more| more.is_empty() || more.starts_with(',')) => {}
            Some(_) => return Err("its first line is not that of figures of networks".to_owned()),
        }
        let mut rows = HashMap::new();
        for (number, line) in (2..).zip(lines) {
            let (key, seconds, recorded) = row(line)
                .ok_or_else(|| format!("line {number} is not a network with figures that can be"))?;
            if rows.insert(key, (seconds, recorded)).is_some() {
                return Err(format!("the network of line {number} has another line"));
            }
        }
        let mut record = HashMap::new();
        for cell in cells {
            let key = baseline::key(cell);
            let (seconds, recorded) =
                rows.get(&key).ok_or_else(|| format!("{} is not in it", Named(cell)))?;
            if *seconds != sweep.duration(cell).as_secs_f64() {
                return Err(format!("{} was simulated for {seconds} s", Named(cell)));
            }
            if recorded.seed != sweep.seed {
                return Err(format!("its first seed is {}, not {}", recorded.seed, sweep.seed));
            }
            record.insert(key, *recorded);
        }
        Ok(Record(record))
    }

    /// Compares what `sweep` has reached in networks of the record, and tries again those that are suspected.
    pub fn compare(
        &self,
        sweep: &Sweep,
        tried: &[Tried],
        progress: impl Fn(usize, usize) + Sync,
    ) -> Comparison {
        // Like with like: all seeds of both, or the first of both.
        let all = |before: &Recorded| sweep.seeds >= before.seeds;
        let compared: Vec<(Cell, f64, f64)> = tried
            .iter()
            .filter_map(|one| Some((one, self.of(&one.cell)?)))
            .map(|(one, before)| match all(&before) {
                true => (one.cell, usage(one), before.usage),
                false => (one.cell, first_usage(one), before.first),
            })
            .collect();
        let suspects: Vec<Cell> = compared
            .iter()
            .filter(|(_, now, before)| is_below(*now, *before, ONE))
            .map(|(cell, ..)| *cell)
            .collect();
        let again = Sweep { seeds: SEEDS.max(sweep.seeds), ..sweep.clone() }.run(&suspects, &progress);
        let worse = again.iter().filter_map(|one| self.fall(one)).collect();
        let mut comparison = Comparison {
            mean: mean(compared.iter().map(|(_, now, _)| *now)),
            recorded: mean(compared.iter().map(|(.., before)| *before)),
            suspects: suspects.len(),
            worse,
        };
        let seeds = self.0.values().map(|before| before.seeds).min().unwrap_or(0);
        if comparison.mean_fell() && seeds > sweep.seeds {
            let cells: Vec<Cell> = compared.iter().map(|(cell, ..)| *cell).collect();
            let all = Sweep { seeds, ..sweep.clone() }.run(&cells, &progress);
            comparison.mean = mean(all.iter().map(usage));
            let recorded: Vec<f64> = self.0.values().map(|before| before.usage).collect();
            comparison.recorded = mean(recorded.into_iter());
        }
        comparison
    }

    fn of(&self, cell: &Cell) -> Option<Recorded> {
        self.0.get(&baseline::key(cell)).copied()
    }

    /// Whether a network that was tried with many seeds has become worse.
    fn fall(&self, now: &Tried) -> Option<Fall> {
        let before = self.of(&now.cell)?;
        let usage = usage(now);
        let seeds = now.outcomes.len() as f64;
        let variance = now.mean(|outcome| (outcome.usage - usage).powi(2)) * seeds / (seeds - 1.0).max(1.0);
        // Of a record with one seed the spread is not known: it is taken for that of now.
        let variance_before = if before.seeds > 1 { before.spread.powi(2) } else { variance };
        let error = (variance / seeds + variance_before / f64::from(before.seeds.max(1))).sqrt();
        (is_below(usage, before.usage, ONE) && is_below(usage, before.usage, ERRORS * error))
            .then_some(Fall { cell: now.cell, usage, recorded: before.usage })
    }
}

fn usage(one: &Tried) -> f64 {
    one.mean(|outcome| outcome.usage)
}

fn first_usage(one: &Tried) -> f64 {
    one.outcomes.first().map_or(f64::NAN, |outcome| outcome.usage)
}

/// Not a number is not as much as any.
fn is_below(now: f64, before: f64, by: f64) -> bool {
    now.is_nan() || before - now > by
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len().max(1) as f64;
    values.sum::<f64>() / count
}

/// The columns that [`csv`](super::csv()) writes, of which those are taken that are compared.
fn row(line: &str) -> Option<(Key, f64, Recorded)> {
    let fields: Vec<&str> = line.split(',').collect();
    let (key, fields) = (baseline::key_of(&fields)?, fields.get(8..)?);
    let [usage, seconds, spread, _waste, _spurious, _broken, seed, seeds, _delay, first, ..] = fields else {
        return None;
    };
    let [usage, seconds, spread, first] = [usage, seconds, spread, first].map(|text: &&str| figure(text));
    let (seed, seeds) = (seed.parse().ok()?, seeds.parse().ok().filter(|seeds| *seeds > 0)?);
    Some((key, seconds?, Recorded { usage: usage?, first: first?, spread: spread?, seed, seeds }))
}

/// What can be compared with: whatever is less than "not a number", or than what is below nothing, would pass.
pub(super) fn figure(text: &str) -> Option<f64> {
    text.parse().ok().filter(|figure: &f64| figure.is_finite() && *figure >= 0.0)
}

impl Comparison {
    /// True if nothing is worse than it was.
    pub fn holds(&self) -> bool {
        !self.mean_fell() && self.worse.is_empty()
    }

    fn mean_fell(&self) -> bool {
        is_below(self.mean, self.recorded, MEAN)
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Comparison { mean, recorded, suspects, worse } = self;
        writeln!(
            f,
            "mean {mean:.2}, in the record {recorded:.2}; suspected {suspects}, worse {}",
            worse.len()
        )?;
        if self.mean_fell() {
            writeln!(f, "WORSE: the mean has fallen by {:.2} points", recorded - mean)?;
        }
        for Fall { cell, usage, recorded } in worse {
            writeln!(f, "WORSE: {}: {usage:.1} %, in the record {recorded:.1}", Named(cell))?;
        }
        Ok(())
    }
}

/// A network in words.
struct Named<'a>(&'a Cell);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cell { rate, rtt, queue, loss, reorder, delay, .. } = self.0;
        write!(f, "{rate} Mbit/s, RTT {rtt} ms, queue {queue}")?;
        if *loss > 0 {
            write!(f, ", loss 1/{loss}")?;
        }
        if *reorder > 0 {
            write!(f, ", reorder 1/{reorder} by {delay} ms")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
