//! What a connection leaves behind of the network that it went over, for those that follow.

use crate::path::{Fate, Told};
use godwit_recovery::{PathRecovery, RttEstimator};
use std::time::Duration;

/// A first estimate from memory is not below this: what a server needs for a handshake is not part of the
/// round-trip time.
const LEAST_INITIAL_RTT: Duration = Duration::from_millis(25);
/// What is assumed of a path of which nothing is known (RFC 9002 section 6.2.2, `kInitialRtt`).
const UNKNOWN_RTT: Duration = Duration::from_millis(333);
/// Nor is it above this, whatever somebody who delays his acknowledgements makes of it.
const MOST_INITIAL_RTT: Duration = Duration::from_secs(5);
/// What all packets lost would be.
const WHOLE: u64 = 1 << 16;
/// The variation of a known round-trip time is a tenth of it until it is known as well, and never above: connections over
/// which much is lost measure how long they have waited for probes. The probe timeout is then 1.4 round trips at most,
const MOST_VARIATION: u16 = 6554;
/// and 1.125 at least.
const LEAST_VARIATION: u16 = 2048;

/// What is known of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Network {
    /// The typical round-trip time; zero if unknown.
    pub(crate) rtt: Duration,
    /// The share of packets lost, in parts of 65,536.
    pub(crate) loss: u16,
    /// The variation of the round-trip time, in parts of 65,536 of it; zero if unknown.
    pub(crate) variation: u16,
}

/// What one connection has found of a network. Connections are at the same time: what one has found joins what is known
/// when it is told, and not what was known when that connection began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Found {
    /// As in [`Network`], of this connection alone. The loss is that of packets of which nothing was told before; none if
    /// they are too few.
    pub(crate) rtt: Duration,
    pub(crate) loss: Option<u16>,
    pub(crate) variation: u16,
    /// The connection has just begun.
    pub(crate) so_far: bool,
}

impl Found {
    /// What a path has shown of a connection that is idle or has ended; `None` if it has shown nothing.
    pub(crate) fn on(path: &PathRecovery, told: &mut Told) -> Option<Self> {
        let found = Self::so_far(path)?;
        Some(Found { loss: told.go_on(path.stats()).and_then(share), so_far: false, ..found })
    }

    /// The same of one that has just begun: what it has lost is told with what it will have sent then.
    pub(crate) fn so_far(path: &PathRecovery) -> Option<Self> {
        let (rtt, variation) = (typical_rtt(path.rtt()), variation(path.rtt()));
        (path.stats().bytes_acked > 0).then_some(Found { rtt, loss: None, variation, so_far: true })
    }

    /// What is known with it, after what was known before.
    pub(crate) fn after(&self, before: Network) -> Network {
        let known = self.so_far && before.variation != 0;
        Network {
            rtt: self.rtt,
            loss: self.loss.map_or(before.loss, |loss| smoothed(before.loss, loss)),
            variation: if known { before.variation } else { varied(before.variation, self.variation) },
        }
    }
}

impl Network {
    /// With what estimate of the round-trip time to begin, if one is known.
    pub(crate) fn initial_rtt(&self) -> Option<Duration> {
        Some(self.rtt).filter(|rtt| !rtt.is_zero()).map(|rtt| rtt.clamp(LEAST_INITIAL_RTT, MOST_INITIAL_RTT))
    }

    /// With what variation of that estimate to begin.
    pub(crate) fn initial_variation(&self, rtt: Duration) -> Duration {
        let share = if self.variation == 0 { MOST_VARIATION } else { self.variation.max(LEAST_VARIATION) };
        rtt.saturating_mul(u32::from(share)) / 65_536
    }

    /// Whether one packet in two hundred, or more, was lost of late.
    pub(crate) const fn is_lossy(&self) -> bool {
        self.loss as u64 >= WHOLE / 200
    }
}

/// The share of packets lost, of all that were sent.
fn share(packets: Fate) -> Option<u16> {
    let share = u64::from(packets.lost).saturating_mul(WHOLE).checked_div(packets.sent.into())?;
    Some(u16::try_from(share).unwrap_or(u16::MAX))
}

/// Short connections have few packets and most of them lose none: what has been seen once is forgotten slowly.
fn smoothed(before: u16, now: u16) -> u16 {
    if now > before {
        before.saturating_add(now.abs_diff(before).div_ceil(4))
    } else {
        before.saturating_sub(now.abs_diff(before).div_ceil(16))
    }
}

/// How much round-trip times vary.
fn variation(rtt: &RttEstimator) -> u16 {
    let share = rtt.variation().as_nanos().saturating_mul(u128::from(WHOLE));
    let share = share.checked_div(rtt.smoothed().as_nanos()).unwrap_or_default();
    u16::try_from(share).unwrap_or(u16::MAX).min(MOST_VARIATION)
}

/// The same after what was known before: what made them vary once is forgotten slowly.
fn varied(before: u16, now: u16) -> u16 {
    let before = if before == 0 { MOST_VARIATION } else { before };
    if now > before {
        before.saturating_add(now.abs_diff(before).div_ceil(8))
    } else {
        before.saturating_sub(now.abs_diff(before).div_ceil(4))
    }
    .max(1)
}

/// The round-trip time to expect of the next connection. A short connection over which much is lost has few samples,
/// and most of them contain the peer's wait for a probe: they are seconds too long. So what is above the first guess
/// without memory must be what even the best sample took, or the next connection would repeat its first packet later
/// than with no memory at all.
fn typical_rtt(rtt: &RttEstimator) -> Duration {
    rtt.smoothed().min(rtt.min().max(UNKNOWN_RTT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use godwit_base::Time;

    #[test]
    fn what_a_lossy_connection_measured_does_not_slow_the_next_one() {
        let remembered = |samples: &[u64]| {
            let mut rtt = RttEstimator::new(UNKNOWN_RTT);
            for sample in samples {
                rtt.on_sample(Time::ZERO, Duration::from_millis(*sample), Duration::ZERO);
            }
            typical_rtt(&rtt).as_millis()
        };
        assert_eq!(remembered(&[30]), 30);
        assert_eq!(remembered(&[200, 280]), 210, "queues are expected again");
        assert_eq!(remembered(&[3000, 40]), 333, "an acknowledgement had been lost");
        assert_eq!(remembered(&[600, 680]), 600, "a path that is long indeed");
    }

    #[test]
    fn one_lossy_connection_is_remembered_for_some_and_not_for_ever() {
        let lossy = |loss| Network { loss, ..Network::default() }.is_lossy();
        let mut loss = smoothed(0, 65_535 / 12);
        for _ in 0..16 {
            assert!(lossy(loss));
            loss = smoothed(loss, 0);
        }
        for _ in 0..32 {
            loss = smoothed(loss, 0);
        }
        assert!(!lossy(loss));
        assert!(!lossy(smoothed(0, 65_535 / 1000)), "one packet of a thousand is nothing");
    }

    #[test]
    fn connections_at_the_same_time_do_not_undo_what_each_other_found() {
        let found =
            |loss| Found { rtt: UNKNOWN_RTT, loss, variation: LEAST_VARIATION, so_far: loss.is_none() };
        // All of them began when nothing was known.
        let lossy = found(Some(2000)).after(Network::default());
        assert!(lossy.is_lossy());
        let clean = (0..4).fold(lossy, |known, _| found(Some(0)).after(known));
        assert!(clean.is_lossy(), "{clean:?}");
        // One that goes on has only shown its round-trip time.
        assert_eq!(found(None).after(lossy), lossy);
    }

    #[test]
    fn estimates_keep_within_reason() {
        let initial = |rtt| Network { rtt, ..Network::default() }.initial_rtt();
        assert_eq!(initial(Duration::ZERO), None);
        assert_eq!(initial(Duration::from_micros(80)), Some(LEAST_INITIAL_RTT));
        assert_eq!(initial(Duration::MAX), Some(MOST_INITIAL_RTT));
    }
}
