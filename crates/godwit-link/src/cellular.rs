//! A generator of traces like those of mobile networks: rates that wander from level to level, and silences of which some
//! are long.
//!
//! Each second the rate stays at its level or goes to a neighbouring one. Opportunities come in small groups at random
//! distances. Silences come at random, with lengths of a heavy tail: one that lasts for a while lasts twice as long with a
//! probability that does not depend on how long it has lasted (a power law). All arithmetic is in integers: the same
//! seed gives the same trace everywhere.
//!
//! The presets are fitted to published recordings (Winstein, Sivaraman and Balakrishnan 2013, and later ones by the same
//! method): the quantiles of the rate per second, and how many silences exceed 200 ms and one second.

use crate::probability::exponential;
use crate::{Opportunities, Probability, Rate};
use godwit_base::{Rng, SeededRng};
use std::time::Duration;

/// Bits of a packet that an opportunity delivers, as rates are counted here: 1500 bytes.
const PACKET_BITS: u64 = 12_000;
const SECOND: u64 = 1_000_000_000;
const MILLISECOND: u64 = 1_000_000;

/// What a mobile network is like.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cellular {
    /// The levels of the rate, from the lowest; each is as frequent as the others. IP packets of 1500 bytes are counted.
    pub levels: Vec<Rate>,
    /// How often the rate leaves its level at the end of a second.
    pub restlessness: Probability,
    /// Opportunities that come together, on average; at least one.
    pub group: u32,
    /// From the end of one silence to the beginning of the next, on average. `None`: there are no silences but those that
    /// low rates make.
    pub silence_every: Option<Duration>,
    /// The length of the shortest silence.
    pub silence_least: Duration,
    /// How often a silence is twice as long as it would be otherwise.
    pub silence_persistence: Probability,
}

/// Silences end after so many doublings.
const MOST_DOUBLINGS: u32 = 4;

impl Cellular {
    fn of(kilobits: &[u64], silence_every_ms: u64, persistence: f64) -> Self {
        Cellular {
            levels: kilobits.iter().map(|kilobits| Rate::bits_per_second(kilobits * 1_000)).collect(),
            restlessness: Probability::new(0.5),
            group: 4,
            silence_every: Some(Duration::from_millis(silence_every_ms)),
            silence_least: Duration::from_millis(200),
            silence_persistence: Probability::new(persistence),
        }
    }

    /// An LTE phone in a car, towards it: 0.3 to 11 Mbit/s, a silence every six seconds, one in twenty above a second.
    pub fn lte_driving_down() -> Self {
        Self::of(&[300, 1_700, 3_200, 4_700, 6_300, 8_300, 11_300], 5_500, 0.26)
    }

    /// The same phone, from it: up to 5 Mbit/s, and four of ten silences last above a second.
    pub fn lte_driving_up() -> Self {
        Self::of(&[400, 1_300, 2_000, 2_700, 3_400, 4_100, 5_200], 4_500, 0.69)
    }

    /// An LTE phone at rest, towards it: 1 to 11 Mbit/s, with few silences.
    pub fn lte_down() -> Self {
        Self::of(&[1_000, 2_500, 3_900, 5_000, 6_300, 8_300, 11_000], 30_000, 0.5)
    }

    /// The same phone, from it.
    pub fn lte_up() -> Self {
        Self::of(&[1_300, 3_300, 5_000, 6_400, 7_800, 9_300, 11_500], 35_000, 0.55)
    }

    /// A UMTS phone in a car: 0.2 to 2.5 Mbit/s, with silences of up to several seconds.
    pub fn umts_driving() -> Self {
        Self::of(&[200, 500, 900, 1_300, 1_700, 2_100, 2_600], 10_000, 0.55)
    }

    /// A trace of this length, at least a second.
    pub fn generate(&self, length: Duration, seed: u64) -> Opportunities {
        let mut rng = SeededRng::new(seed);
        let end = u64::try_from(length.as_nanos())
            .unwrap_or(u64::MAX)
            .clamp(SECOND, u64::from(u32::MAX) * MILLISECOND);
        let (mut level_rng, mut silence_rng) = (split(&mut rng), split(&mut rng));
        let mut level = level_rng.below(self.levels.len() as u64) as usize;
        let mut level_until = SECOND;
        let mut silence = self.next_silence(0, &mut silence_rng);
        let (mut at, mut millis) = (0_u64, Vec::new());
        while at < end {
            at = at.saturating_add(self.gap(level, &mut rng));
            while at >= level_until {
                level = self.next_level(level, &mut level_rng);
                level_until += SECOND;
            }
            while let Some((from, until)) = silence
                && (from..end).contains(&at)
            {
                at = at.max(until);
                silence = self.next_silence(until, &mut silence_rng);
            }
            let usual = self.levels.get(level).map_or(1, |rate| self.group_at(rate.as_bits_per_second()));
            let group = if at < end { 1 + rng.below(2 * usual - 1) } else { 1 };
            millis.extend((0..group).map(|_| (at.min(end) / MILLISECOND) as u32));
        }
        // It ends with an opportunity at its end, so that it has the length that was asked for.
        Opportunities::new(millis).unwrap_or_else(Opportunities::one_a_second)
    }

    /// From one group of opportunities to the next.
    fn gap(&self, level: usize, rng: &mut SeededRng) -> u64 {
        let rate = self.levels.get(level).map_or(1, |rate| rate.as_bits_per_second());
        let mean = PACKET_BITS * self.group_at(rate) * SECOND / rate;
        // A second at most, so that a low level does not outlast itself.
        rng.below(2 * mean).min(SECOND)
    }

    /// Opportunities that come together at this rate: fewer than usual where they would take long to gather.
    fn group_at(&self, rate: u64) -> u64 {
        (rate / (50 * PACKET_BITS)).clamp(1, u64::from(self.group.max(1)))
    }

    /// A level or its neighbour. At either end it stays instead of going beyond, so that all levels are equally frequent.
    fn next_level(&self, level: usize, rng: &mut SeededRng) -> usize {
        if !self.restlessness.draw(rng) {
            return level;
        }
        let next = if rng.below(2) == 0 { level.saturating_sub(1) } else { level + 1 };
        next.min(self.levels.len().saturating_sub(1))
    }

    fn next_silence(&self, after: u64, rng: &mut SeededRng) -> Option<(u64, u64)> {
        let wait = u64::try_from(exponential(rng, self.silence_every?).as_nanos()).unwrap_or(u64::MAX);
        let from = after.saturating_add(wait);
        let least = u64::try_from(self.silence_least.as_nanos()).unwrap_or(u64::MAX);
        let mut length = least.saturating_add(rng.below(least));
        for _ in 0..MOST_DOUBLINGS {
            if !self.silence_persistence.draw(rng) {
                break;
            }
            length = length.saturating_mul(2);
        }
        Some((from, from.saturating_add(length)))
    }
}

fn split(rng: &mut SeededRng) -> SeededRng {
    SeededRng::new(rng.next_u64())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rate in each second in Mbit/s, sorted; and the silences above 200 ms and above one second in two minutes.
    fn statistics(trace: &Opportunities, seconds: usize) -> (Vec<f64>, [f64; 2]) {
        let mut rates = vec![0.0; seconds];
        for at in trace.millis() {
            if let Some(rate) = rates.get_mut(*at as usize / 1_000) {
                *rate += 0.012;
            }
        }
        rates.sort_by(f64::total_cmp);
        let gaps = trace.millis().windows(2).map(|pair| pair[1] - pair[0]);
        let above = |limit| gaps.clone().filter(|gap| *gap > limit).count() as f64 * 120.0 / seconds as f64;
        (rates, [above(200), above(1_000)])
    }

    #[test]
    #[cfg_attr(miri, ignore = "needs hours of a trace")]
    fn presets_have_the_statistics_that_they_are_fitted_to() {
        // Mean, 5th, 50th and 95th percentile in Mbit/s; silences above 200 ms and 1 s in two minutes.
        for (name, preset, mean, [p5, p50, p95], [long, longer]) in [
            ("lte_driving_down", Cellular::lte_driving_down(), 4.56, [0.35, 3.73, 11.08], [22.0, 1.0]),
            ("lte_driving_up", Cellular::lte_driving_up(), 1.91, [0.02, 1.56, 4.78], [19.0, 8.0]),
            ("lte_down", Cellular::lte_down(), 5.03, [0.96, 4.26, 10.81], [4.3, 0.9]),
            ("lte_up", Cellular::lte_up(), 5.95, [1.15, 5.65, 11.38], [3.4, 0.9]),
        ] {
            let seconds = 7_200;
            let trace = preset.generate(Duration::from_secs(seconds), 1);
            let (rates, [above_200, above_1000]) = statistics(&trace, seconds as usize);
            let at = |percent: usize| rates[rates.len() * percent / 100];
            let average = rates.iter().sum::<f64>() / rates.len() as f64;
            let found = [average, at(5), at(50), at(95), above_200, above_1000];
            let expected = [mean, p5, p50, p95, long, longer];
            let near = found
                .iter()
                .zip(expected)
                .all(|(found, expected)| (found - expected).abs() < 0.2 * expected + 0.4);
            assert!(near, "{name}: {found:.2?} and not {expected:.2?}");
        }
    }

    #[test]
    fn a_trace_has_its_length_and_follows_from_its_seed() {
        let preset = Cellular::umts_driving();
        let trace = preset.generate(Duration::from_secs(30), 5);
        assert_eq!(trace.millis().last(), Some(&30_000));
        assert_eq!(trace, preset.generate(Duration::from_secs(30), 5));
        assert_ne!(trace, preset.generate(Duration::from_secs(30), 6));
    }

    #[test]
    fn odd_values_do_no_harm() {
        let none = Cellular { levels: Vec::new(), group: 0, silence_every: None, ..Cellular::lte_up() };
        assert!(none.generate(Duration::ZERO, 1).millis().len() <= 3);
        let silent = Cellular {
            silence_every: Some(Duration::ZERO),
            silence_persistence: Probability::ALWAYS,
            ..Cellular::lte_up()
        };
        assert_eq!(silent.generate(Duration::from_secs(5), 1).millis().last(), Some(&5_000));
    }
}
