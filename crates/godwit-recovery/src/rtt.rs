//! Round-trip time estimation (RFC 9002 section 5).
//!
//! Invariant: before the first sample the smoothed RTT is the configured initial one, and its variation half
//! of that; afterwards both come from samples only. An estimate that an earlier connection over the same network has left
//! ([`RttEstimator::known`]) counts as a sample, if those that follow bear it out.

use godwit_base::Time;
use std::time::Duration;

/// Timer granularity (RFC 9002 section 6.1.2, `kGranularity`).
pub(crate) const GRANULARITY: Duration = Duration::from_millis(1);

/// The estimate of one path's round-trip time.
#[derive(Debug, Clone)]
pub struct RttEstimator {
    smoothed: Duration,
    /// From that and the variation; asked for with every packet.
    pto: Duration,
    latest: Nanos,
    min: Nanos,
    variation: Nanos,
    first_sample_at: Option<Time>,
    /// What is assumed before the first sample has been measured, by another connection.
    known: bool,
    /// The next sample is the least there is.
    restart_min: bool,
    /// What four times the variation counts for at least, in microseconds.
    least_margin: u32,
}

/// A duration in half the space: there is an estimator for each path of each connection.
#[derive(Debug, Clone, Copy)]
struct Nanos(u64);

impl Nanos {
    fn of(duration: Duration) -> Self {
        Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }

    const fn get(self) -> Duration {
        Duration::from_nanos(self.0)
    }
}

/// A known round-trip time is borne out by a first sample that is not so many times as long, or as short.
const BORNE_OUT: u32 = 2;

impl RttEstimator {
    /// An estimator that assumes `initial` until the first sample.
    pub fn new(initial: Duration) -> Self {
        RttEstimator {
            smoothed: initial,
            latest: Nanos::of(initial),
            min: Nanos::of(initial),
            variation: Nanos::of(initial / 2),
            pto: pto(initial, initial / 2, GRANULARITY),
            first_sample_at: None,
            known: false,
            restart_min: false,
            least_margin: micros(GRANULARITY),
        }
    }

    /// An estimator that goes on where an earlier connection over the same network ended, with its smoothed RTT and its
    /// variation.
    ///
    /// RFC 9002 section 6.2.2 permits the one to be used as the initial RTT. Beyond that, and other than in section 5.3,
    /// its variation is not taken to be half of it, and the first sample is weighed in like any other unless it is less
    /// than half or more than twice of what is known. So the first packets are not repeated after three round trips, but
    /// after one and four times the variation.
    pub fn known(smoothed: Duration, variation: Duration) -> Self {
        let pto = pto(smoothed, variation, GRANULARITY);
        let variation = Nanos::of(variation);
        RttEstimator { variation, pto, known: true, ..RttEstimator::new(smoothed) }
    }

    /// Takes the sample `latest`, of which the peer says `ack_delay` was its own. The caller has capped
    /// `ack_delay` at the peer's max_ack_delay once the handshake is confirmed, and passes zero for Initial
    /// packets.
    pub fn on_sample(&mut self, now: Time, latest: Duration, ack_delay: Duration) {
        self.latest = Nanos::of(latest);
        if self.first_sample_at.is_none() {
            self.first_sample_at = Some(now);
            self.min = Nanos::of(latest);
            if self.is_borne_out(latest) {
                self.weigh_in(latest, ack_delay);
            } else {
                self.smoothed = latest;
                self.variation = Nanos::of(latest / 2);
            }
        } else {
            if std::mem::take(&mut self.restart_min) {
                self.min = Nanos::of(latest);
            }
            self.weigh_in(latest, ack_delay);
        }
        self.pto = pto(self.smoothed, self.variation.get(), self.least_margin());
    }

    /// Timers have at least this beyond the round-trip time, in place of the granularity of RFC 9002.
    pub(crate) fn with_least_margin(self, least_margin: Duration) -> Self {
        let pto = pto(self.smoothed, self.variation.get(), least_margin);
        RttEstimator { pto, least_margin: micros(least_margin), ..self }
    }

    pub(crate) fn least_margin(&self) -> Duration {
        Duration::from_micros(self.least_margin.into())
    }

    /// Whether it began with what an earlier connection had measured.
    pub(crate) const fn is_known(&self) -> bool {
        self.known
    }

    fn is_borne_out(&self, sample: Duration) -> bool {
        self.known
            && sample <= self.smoothed.saturating_mul(BORNE_OUT)
            && sample.saturating_mul(BORNE_OUT) >= self.smoothed
    }

    /// Persistent congestion was established: the path may be another, so that the least RTT is that of the next sample
    /// (RFC 9002 section 5.2).
    pub(crate) const fn on_persistent_congestion(&mut self) {
        self.restart_min = true;
    }

    fn weigh_in(&mut self, latest: Duration, ack_delay: Duration) {
        let min = self.min.get().min(latest);
        self.min = Nanos::of(min);
        // The peer's delay is believed only as far as it leaves the sample plausible.
        let believed = if latest >= min.saturating_add(ack_delay) { ack_delay } else { Duration::ZERO };
        let adjusted = latest.saturating_sub(believed);
        let deviation = self.smoothed.abs_diff(adjusted);
        self.variation = Nanos::of(weigh(self.variation.get(), 3, deviation, 4));
        self.smoothed = weigh(self.smoothed, 7, adjusted, 8);
    }

    /// The smoothed RTT, or the initial one before the first sample.
    pub const fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// The latest sample, or the initial RTT before the first.
    pub const fn latest(&self) -> Duration {
        self.latest.get()
    }

    /// The least sample, or the initial RTT before the first.
    pub const fn min(&self) -> Duration {
        self.min.get()
    }

    /// The mean variation of the samples.
    pub const fn variation(&self) -> Duration {
        self.variation.get()
    }

    /// When the first sample was taken.
    pub const fn first_sample_at(&self) -> Option<Time> {
        self.first_sample_at
    }

    /// The probe timeout without the peer's acknowledgement delay and without back-off (RFC 9002 section
    /// 6.2.1).
    pub const fn pto(&self) -> Duration {
        self.pto
    }

    /// The larger of the smoothed RTT and the latest sample: the base of the time threshold (RFC 9002 section
    /// 6.1.2).
    pub(crate) fn conservative(&self) -> Duration {
        self.smoothed.max(self.latest())
    }
}

fn micros(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)
}

fn pto(smoothed: Duration, variation: Duration, least_margin: Duration) -> Duration {
    smoothed.saturating_add(variation.saturating_mul(4).max(least_margin))
}

/// The weighted mean `(old * weight + new) / total`.
fn weigh(old: Duration, weight: u32, new: Duration, total: u32) -> Duration {
    old.saturating_mul(weight).saturating_add(new).checked_div(total).unwrap_or(old)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]
    use super::*;
    use proptest::prelude::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn first_sample_replaces_the_initial_guess() {
        let mut rtt = RttEstimator::new(333 * MS);
        assert_eq!(rtt.pto(), 999 * MS);
        rtt.on_sample(Time::from_nanos(5), 100 * MS, 20 * MS);
        assert_eq!((rtt.smoothed(), rtt.variation(), rtt.min()), (100 * MS, 50 * MS, 100 * MS));
        assert_eq!(rtt.first_sample_at(), Some(Time::from_nanos(5)));
    }

    #[test]
    fn later_samples_are_weighed_as_in_rfc_9002_section_5_3() {
        let mut rtt = RttEstimator::new(333 * MS);
        rtt.on_sample(Time::ZERO, 80 * MS, Duration::ZERO);
        rtt.on_sample(Time::ZERO, 104 * MS, 8 * MS);
        assert_eq!(rtt.smoothed(), (80 * 7 + 96) * MS / 8);
        assert_eq!(rtt.variation(), (40 * 3 + 16) * MS / 4);
    }

    #[test]
    fn an_ack_delay_that_would_undercut_the_minimum_is_not_believed() {
        let mut rtt = RttEstimator::new(333 * MS);
        rtt.on_sample(Time::ZERO, 80 * MS, Duration::ZERO);
        rtt.on_sample(Time::ZERO, 88 * MS, 25 * MS);
        assert_eq!(rtt.smoothed(), (80 * 7 + 88) * MS / 8);
        rtt.on_sample(Time::ZERO, Duration::MAX, Duration::MAX);
        assert!(rtt.pto() > 80 * MS);
    }

    #[test]
    fn what_is_known_counts_if_it_is_borne_out() {
        let mut rtt = RttEstimator::known(400 * MS, 40 * MS);
        assert_eq!((rtt.smoothed(), rtt.pto()), (400 * MS, 560 * MS));
        rtt.on_sample(Time::ZERO, 480 * MS, Duration::ZERO);
        assert_eq!((rtt.smoothed(), rtt.min()), (410 * MS, 480 * MS));
        assert_eq!(rtt.variation(), (40 * 3 + 80) * MS / 4);
        for wrong in [190 * MS, 810 * MS] {
            let mut rtt = RttEstimator::known(400 * MS, 40 * MS);
            rtt.on_sample(Time::ZERO, wrong, Duration::ZERO);
            assert_eq!((rtt.smoothed(), rtt.variation()), (wrong, wrong / 2));
        }
    }

    #[test]
    fn the_least_is_measured_anew_after_persistent_congestion() {
        let mut rtt = RttEstimator::new(333 * MS);
        rtt.on_sample(Time::ZERO, 80 * MS, Duration::ZERO);
        rtt.on_persistent_congestion();
        assert_eq!(rtt.min(), 80 * MS);
        rtt.on_sample(Time::ZERO, 120 * MS, Duration::ZERO);
        rtt.on_sample(Time::ZERO, 130 * MS, Duration::ZERO);
        assert_eq!(rtt.min(), 120 * MS);
    }

    proptest! {
        #[test]
        fn smoothed_stays_within_the_samples(samples in prop::collection::vec(1u64..1_000_000, 1..50)) {
            let mut rtt = RttEstimator::new(333 * MS);
            for &micros in &samples {
                rtt.on_sample(Time::ZERO, Duration::from_micros(micros), Duration::ZERO);
            }
            let least = Duration::from_micros(*samples.iter().min().unwrap());
            let most = Duration::from_micros(*samples.iter().max().unwrap());
            prop_assert!(rtt.min() == least);
            prop_assert!(rtt.smoothed() + Duration::from_nanos(1) * 50 >= least && rtt.smoothed() <= most);
        }
    }
}
