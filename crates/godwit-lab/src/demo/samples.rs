//! What is measured: times of requests, by protocol and kind, and what may be said of them.
//!
//! Requests that fail or are still unanswered at the end count with the time they had waited: to leave them out would
//! flatter whoever keeps people waiting longest.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use godwit_text::instant_now;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Protocol {
    H2,
    H3,
}

impl Protocol {
    pub(super) const BOTH: [Protocol; 2] = [Protocol::H2, Protocol::H3];

    pub(super) fn name(self) -> &'static str {
        match self {
            Protocol::H2 => "HTTP/2",
            Protocol::H3 => "HTTP/3",
        }
    }
}

/// What a time belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// The first request of a visit, from the moment the connection is begun.
    First,
    /// A later small request on the same connection.
    Later,
    /// A page with everything on it: many requests that count as one.
    Page,
}

/// The percentiles that are told, in parts of 1000.
pub(super) const PERMILLES: [u32; 3] = [500, 950, 990];
/// How many samples a percentile needs above it to be told.
const ABOVE: usize = 10;

type Key = (Protocol, Kind);

#[derive(Debug, Default)]
struct State {
    /// In microseconds, in the order in which they came.
    times: BTreeMap<Key, Vec<u32>>,
    failed: BTreeMap<Protocol, Failures>,
    unfinished: BTreeMap<Protocol, usize>,
    visits: BTreeMap<Protocol, usize>,
}

/// Requests that failed.
#[derive(Clone, Debug, Default)]
pub(super) struct Failures {
    pub(super) count: usize,
    /// What the first one said.
    pub(super) example: String,
}

/// Takes down times; a handle of what all visitors share.
#[derive(Clone, Debug, Default)]
pub(super) struct Recorder(Arc<Mutex<State>>);

impl Recorder {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something begins now.
    pub(super) fn begin(&self, protocol: Protocol, kind: Kind) -> Running {
        Running { recorder: self.clone(), key: (protocol, kind), began: instant_now(), over: false }
    }

    /// A visit has come to its end.
    pub(super) fn on_visit(&self, protocol: Protocol) {
        *self.state().visits.entry(protocol).or_default() += 1;
    }

    pub(super) fn figures(&self) -> Figures {
        let state = self.state();
        let of = |protocol| {
            let times = |kind| state.times.get(&(protocol, kind)).cloned().unwrap_or_default();
            let (first, later) = (times(Kind::First), times(Kind::Later));
            let all = [first.as_slice(), later.as_slice()].concat();
            let [first, later, all, page] = [first, later, all, times(Kind::Page)].map(Distribution::new);
            Measured {
                first,
                later,
                all,
                page,
                failed: state.failed.get(&protocol).cloned().unwrap_or_default(),
                unfinished: state.unfinished.get(&protocol).copied().unwrap_or_default(),
                visits: state.visits.get(&protocol).copied().unwrap_or_default(),
            }
        };
        Figures { h2: of(Protocol::H2), h3: of(Protocol::H3) }
    }
}

/// Something that is being timed. Dropped before its end, it counts as unfinished.
#[derive(Debug)]
pub(super) struct Running {
    recorder: Recorder,
    key: Key,
    began: Instant,
    over: bool,
}

impl Running {
    pub(super) fn done(mut self) {
        self.over = true;
        self.note(&mut self.recorder.state());
    }

    pub(super) fn failed(mut self, why: &str) {
        self.over = true;
        let mut state = self.recorder.state();
        self.note(&mut state);
        let failures = state.failed.entry(self.key.0).or_default();
        failures.count += 1;
        if failures.example.is_empty() {
            why.clone_into(&mut failures.example);
        }
    }

    fn note(&self, state: &mut State) {
        let micros = u32::try_from(self.began.elapsed().as_micros()).unwrap_or(u32::MAX);
        state.times.entry(self.key).or_default().push(micros);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.over {
            let mut state = self.recorder.state();
            self.note(&mut state);
            *state.unfinished.entry(self.key.0).or_default() += 1;
        }
    }
}

/// Times, sorted.
#[derive(Clone, Debug, Default)]
pub(super) struct Distribution {
    micros: Vec<u32>,
}

impl Distribution {
    pub(super) fn new(mut micros: Vec<u32>) -> Distribution {
        micros.sort_unstable();
        Distribution { micros }
    }

    pub(super) fn count(&self) -> usize {
        self.micros.len()
    }

    /// The time that so many of 1000 samples do not exceed; `None` where there are too few samples to tell.
    pub(super) fn permille(&self, permille: u32) -> Option<Duration> {
        let above = self.count() * (1000 - permille.min(1000)) as usize / 1000;
        if above < ABOVE {
            return None;
        }
        self.at(f64::from(permille) / 1000.0)
    }

    /// Between which two times the percentile of all that might have been measured lies, in 95 of 100 cases: a few
    /// ranks to either side of it (the binomial distribution's).
    fn interval(&self, permille: u32) -> Option<(Duration, Duration)> {
        let (share, count) = (f64::from(permille) / 1000.0, self.count() as f64);
        let off = 1.96 * (share * (1.0 - share) / count.max(1.0)).sqrt();
        Some((self.at((share - off).max(0.0))?, self.at((share + off).min(1.0))?))
    }

    /// The time at a share of the samples, from 0 to 1.
    pub(super) fn at(&self, share: f64) -> Option<Duration> {
        let last = self.count().checked_sub(1)?;
        let rank = (share * self.count() as f64).ceil() as usize;
        let micros = self.micros.get(rank.saturating_sub(1).min(last))?;
        Some(Duration::from_micros(u64::from(*micros)))
    }

    /// The largest share, from 0 to 1, that may be told of.
    pub(super) fn reach(&self) -> f64 {
        if self.count() <= ABOVE { 0.0 } else { 1.0 - ABOVE as f64 / self.count() as f64 }
    }
}

/// What one protocol's visitors met.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub(super) first: Distribution,
    pub(super) later: Distribution,
    pub(super) all: Distribution,
    pub(super) page: Distribution,
    pub(super) failed: Failures,
    pub(super) unfinished: usize,
    pub(super) visits: usize,
}

/// Both protocols beside each other.
#[derive(Clone, Debug)]
pub struct Figures {
    pub(super) h2: Measured,
    pub(super) h3: Measured,
}

/// A row of the tables: its key in JSON, what it is called, and both distributions.
pub(super) struct Row<'a> {
    pub(super) key: &'static str,
    pub(super) name: &'static str,
    pub(super) h2: &'a Distribution,
    pub(super) h3: &'a Distribution,
}

/// How HTTP/3 compares with HTTP/2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Faster,
    Slower,
    /// The difference is small, or it may be chance.
    Open,
}

/// A change below this is none, in percent.
pub(super) const SAME: f64 = 3.0;

impl Row<'_> {
    /// Which is faster at a percentile, where both may tell and it is not likely to be chance.
    pub(super) fn verdict(&self, permille: u32) -> Verdict {
        let (Some(change), Some((h2_low, h2_high)), Some((h3_low, h3_high))) =
            (self.change(permille), self.h2.interval(permille), self.h3.interval(permille))
        else {
            return Verdict::Open;
        };
        match change {
            change if change <= -SAME && h3_high < h2_low => Verdict::Faster,
            change if change >= SAME && h3_low > h2_high => Verdict::Slower,
            _ => Verdict::Open,
        }
    }

    /// HTTP/3's time less HTTP/2's in percent of that, at a percentile that both may tell.
    pub(super) fn change(&self, permille: u32) -> Option<f64> {
        let (h2, h3) = (self.h2.permille(permille)?, self.h3.permille(permille)?);
        Some((h3.as_secs_f64() / h2.as_secs_f64().max(1e-6) - 1.0) * 100.0)
    }
}

impl Figures {
    pub(super) fn of(&self, protocol: Protocol) -> &Measured {
        match protocol {
            Protocol::H2 => &self.h2,
            Protocol::H3 => &self.h3,
        }
    }

    pub(super) fn rows(&self) -> [Row<'_>; 4] {
        let (h2, h3) = (&self.h2, &self.h3);
        [
            Row { key: "all", name: "small requests", h2: &h2.all, h3: &h3.all },
            Row { key: "first", name: "  first of a visit", h2: &h2.first, h3: &h3.first },
            Row { key: "later", name: "  later ones", h2: &h2.later, h3: &h3.later },
            Row { key: "page", name: "the whole page", h2: &h2.page, h3: &h3.page },
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_need_their_samples() {
        let of = |count: u32| Distribution::new((1..=count).rev().collect());
        let told = |count, permille| of(count).permille(permille).map(|time| time.as_micros());
        assert_eq!((told(19, 500), told(20, 500)), (None, Some(10)));
        assert_eq!((told(199, 950), told(200, 950)), (None, Some(190)));
        assert_eq!((told(999, 990), told(1000, 990)), (None, Some(990)));
        assert_eq!(of(0).at(0.5), None);
        assert!((of(1000).reach() - 0.99).abs() < 1e-9);
    }

    #[test]
    fn a_difference_that_may_be_chance_is_left_open() {
        let of = |count: u32, factor: u32| {
            Distribution::new((1..=count).map(|n| n * factor * 4000 / count).collect())
        };
        let verdict =
            |h2: Distribution, h3: Distribution| Row { key: "", name: "", h2: &h2, h3: &h3 }.verdict(500);
        assert_eq!(verdict(of(50, 10), of(50, 9)), Verdict::Open);
        assert_eq!(verdict(of(5000, 10), of(5000, 9)), Verdict::Faster);
        assert_eq!(verdict(of(5000, 9), of(5000, 10)), Verdict::Slower);
        assert_eq!(verdict(of(5000, 100), of(5000, 99)), Verdict::Open);
        assert_eq!(verdict(of(10, 10), of(10, 1)), Verdict::Open);
    }

    #[test]
    fn what_fails_or_never_ends_counts_with_its_wait() {
        let recorder = Recorder::default();
        recorder.begin(Protocol::H2, Kind::First).done();
        recorder.begin(Protocol::H2, Kind::Later).failed("reset");
        drop(recorder.begin(Protocol::H2, Kind::Later));
        drop(recorder.begin(Protocol::H2, Kind::Page));
        let figures = recorder.figures();
        let h2 = figures.of(Protocol::H2);
        assert_eq!((h2.first.count(), h2.later.count(), h2.all.count(), h2.page.count()), (1, 2, 3, 1));
        assert_eq!((h2.failed.count, h2.failed.example.as_str(), h2.unfinished), (1, "reset", 2));
        assert_eq!(figures.of(Protocol::H3).all.count(), 0);
    }
}
