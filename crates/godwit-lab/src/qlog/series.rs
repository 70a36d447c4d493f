//! Values over time in a fixed number of bins: when time goes beyond the last one, bins are joined two by two.

use std::time::Duration;

/// Bins at most.
const BINS: usize = 1024;
/// The width of a bin at first.
const FINEST: Duration = Duration::from_millis(1);

/// What happened in a span of time. Figures that did not change in it are absent.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Bin {
    /// Bytes: the largest.
    pub(super) window: Option<u64>,
    /// Bytes: the largest.
    pub(super) in_flight: Option<u64>,
    /// Milliseconds: the largest smoothed round-trip time.
    pub(super) rtt: Option<f64>,
    /// Bytes of packets.
    pub(super) sent: u64,
    pub(super) received: u64,
    /// Packets.
    pub(super) lost: u64,
}

impl Bin {
    fn join(self, later: Bin) -> Bin {
        Bin {
            window: self.window.max(later.window),
            in_flight: self.in_flight.max(later.in_flight),
            rtt: [self.rtt, later.rtt].into_iter().flatten().reduce(f64::max),
            sent: self.sent + later.sent,
            received: self.received + later.received,
            lost: self.lost + later.lost,
        }
    }
}

/// The bins so far.
#[derive(Debug)]
pub(super) struct Series {
    width: Duration,
    bins: Vec<Bin>,
}

impl Series {
    pub(super) fn new() -> Series {
        Series { width: FINEST, bins: Vec::new() }
    }

    /// Adds to the bin of this time.
    pub(super) fn add(&mut self, time: Duration, bin: Bin) {
        let mut number = self.number(time);
        while number >= BINS {
            self.bins = self
                .bins
                .chunks(2)
                .map(|pair| pair.iter().copied().fold(Bin::default(), Bin::join))
                .collect();
            self.width *= 2;
            number = self.number(time);
        }
        if self.bins.len() <= number {
            self.bins.resize(number + 1, Bin::default());
        }
        if let Some(place) = self.bins.get_mut(number) {
            *place = place.join(bin);
        }
    }

    fn number(&self, time: Duration) -> usize {
        usize::try_from(time.as_nanos() / self.width.as_nanos()).unwrap_or(usize::MAX)
    }

    pub(super) fn width(&self) -> Duration {
        self.width
    }

    pub(super) fn bins(&self) -> &[Bin] {
        &self.bins
    }

    /// The same in fewer bins, for curves that say something about rates.
    pub(super) fn coarse(&self, most: usize) -> (Duration, Vec<Bin>) {
        let step = self.bins.len().div_ceil(most.max(1)).max(1);
        let join = |chunk: &[Bin]| chunk.iter().copied().fold(Bin::default(), Bin::join);
        let width = self.width * u32::try_from(step).unwrap_or(u32::MAX);
        (width, self.bins.chunks(step).map(join).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_traces_need_no_more_room() {
        let mut series = Series::new();
        for second in 0..5_000 {
            let bin = Bin { sent: 1, window: Some(second), ..Bin::default() };
            series.add(Duration::from_secs(second), bin);
        }
        assert!(series.bins().len() <= BINS && series.width() > Duration::from_secs(4));
        assert_eq!(series.bins().iter().map(|bin| bin.sent).sum::<u64>(), 5_000);
        assert_eq!(series.bins().iter().filter_map(|bin| bin.window).max(), Some(4_999));
        let (width, coarse) = series.coarse(100);
        assert!(coarse.len() <= 100 && width > series.width());
        assert_eq!(coarse.iter().map(|bin| bin.sent).sum::<u64>(), 5_000);
    }
}
