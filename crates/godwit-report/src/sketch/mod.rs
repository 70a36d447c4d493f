//! A DDSketch of latencies: counters in bins whose width grows with the value, so that every quantile has a
//! relative error of at most 1 %, however far out in the tail it lies.
//!
//! Values are whole microseconds, from 0 to [`MAX_MICROS`]; larger ones count as that. The bins are therefore
//! finite in number ([`bins::COUNT`]) and nothing ever needs to be collapsed. Merging adds counters: it is exact,
//! and neither order nor grouping matters.

mod bins;
mod coding;
#[cfg(test)]
mod tests;

pub use bins::{COUNT as BINS, MAX_MICROS, bin_of, value_of};
pub(crate) use coding::{read_varint, write_varint};

/// The relative error of a quantile.
pub const RELATIVE_ERROR: f64 = 0.01;

/// Counters of latencies, by bins of 1 % relative error.
///
/// Memory is 8 bytes for each bin between the lowest and the highest value seen, none while it is empty.
#[derive(Clone, Debug, Default)]
pub struct Sketch {
    /// The bin of the first counter.
    offset: u16,
    counts: Vec<u64>,
}

/// Room on both sides whenever the range of bins grows.
const SPARE: usize = 16;

impl Sketch {
    /// A sketch of nothing.
    pub const fn new() -> Sketch {
        Sketch { offset: 0, counts: Vec::new() }
    }

    /// Counts one value in microseconds.
    pub fn record(&mut self, micros: u64) {
        self.add(bin_of(micros), 1);
    }

    /// Adds `count` to the counter of a bin; bins above the last count as that.
    #[inline]
    pub fn add(&mut self, bin: u16, count: u64) {
        let place = usize::from(bin.wrapping_sub(self.offset));
        match self.counts.get_mut(place) {
            Some(counter) => *counter = counter.saturating_add(count),
            None => self.add_outside(bin, count),
        }
    }

    #[cold]
    fn add_outside(&mut self, bin: u16, count: u64) {
        if count == 0 {
            return;
        }
        let bin = usize::from(bin).min(BINS - 1);
        self.cover(bin.saturating_sub(SPARE), (bin + 1 + SPARE).min(BINS));
        if let Some(counter) = self.counts.get_mut(bin - usize::from(self.offset)) {
            *counter = counter.saturating_add(count);
        }
    }

    /// Makes room for the bins from `first` to before `end`.
    fn cover(&mut self, first: usize, end: usize) {
        let offset = usize::from(self.offset);
        if self.counts.is_empty() {
            self.offset = first as u16;
            self.counts.resize(end - first, 0);
            return;
        }
        let end = end.max(offset + self.counts.len());
        if first < offset {
            let mut counts = Vec::with_capacity(end - first);
            counts.resize(offset - first, 0);
            counts.extend_from_slice(&self.counts);
            self.counts = counts;
            self.offset = first as u16;
        }
        let length = end - usize::from(self.offset);
        if length > self.counts.len() {
            self.counts.reserve_exact(length - self.counts.len());
            self.counts.resize(length, 0);
        }
    }

    /// Adds everything that `other` counted.
    pub fn merge(&mut self, other: &Sketch) {
        let (Some(first), Some(last)) = (other.bins().next(), other.bins().next_back()) else { return };
        self.cover(usize::from(first.0), usize::from(last.0) + 1);
        for (bin, count) in other.bins() {
            self.add(bin, count);
        }
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().fold(0, |sum, &count| sum.saturating_add(count))
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.counts.iter().all(|&count| count == 0)
    }

    /// The bins with something in them, and how much, from low to high.
    pub fn bins(&self) -> impl DoubleEndedIterator<Item = (u16, u64)> + '_ {
        let counters = self.counts.iter().enumerate().filter(|&(_, &count)| count > 0);
        counters.map(|(place, &count)| (self.offset.saturating_add(place as u16), count))
    }

    /// The value in microseconds below which the share `q` (0 to 1) of the values lies: the one of rank
    /// `floor(q * (count - 1))`, with a relative error of 1 % at most. `None` if nothing was counted.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let last = self.count().checked_sub(1)?;
        // So many that the product is not exact may come out of a file: it can be above the last rank.
        let rank = ((q.clamp(0.0, 1.0) * last as f64).floor() as u64).min(last);
        let mut seen = 0_u64;
        for (bin, count) in self.bins() {
            seen = seen.saturating_add(count);
            if seen > rank {
                return Some(value_of(bin));
            }
        }
        None
    }
}

/// Two sketches are equal when they counted the same, whatever room they hold.
impl PartialEq for Sketch {
    fn eq(&self, other: &Sketch) -> bool {
        self.bins().eq(other.bins())
    }
}

impl Eq for Sketch {}
