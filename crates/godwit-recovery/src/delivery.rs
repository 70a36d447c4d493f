//! Delivery-rate samples for congestion controllers that ask for them (draft-cheng-iccrg-delivery-rate-estimation,
//! draft-ietf-ccwg-bbr section 4.1).
//!
//! With every packet in flight goes a [`Snapshot`] of what had been delivered when it was sent. When the packet is
//! acknowledged, what has been delivered since, over the time that sending or acknowledging it took, whichever is
//! longer, is a sample of the rate at which the path delivers.
//!
//! Paths whose controller asks for no samples have no sampler, and their packets no snapshots.

use godwit_base::Time;
use std::time::Duration;

/// The rate at which a path delivered, as one ACK frame shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateSample {
    /// Bytes delivered in `interval`.
    pub delivered: u64,
    /// The time in which they were, or the time in which they were sent, if that is longer.
    pub interval: Duration,
    /// Bytes per second.
    pub rate: u64,
    /// The sender had nothing more to send when it sent the newest of these packets: the path may deliver faster.
    pub app_limited: bool,
    /// Bytes that had been delivered on the path when the newest of these packets was sent.
    pub prior_delivered: u64,
    /// Bytes that have been delivered on the path until now.
    pub total_delivered: u64,
    /// Bytes in flight when the newest of these packets was sent, with it.
    pub in_flight: u64,
    /// Bytes found lost since the newest of these packets was sent.
    pub lost: u64,
    /// How long the newest of these packets took to be acknowledged.
    pub rtt: Duration,
}

/// What had been delivered when a packet was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Snapshot {
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    /// With the packet.
    pub(crate) in_flight: u64,
    lost: u64,
    pub(crate) app_limited: bool,
}

#[cfg(test)]
impl Snapshot {
    /// One that differs from others by what was delivered.
    pub(crate) const fn of(delivered: u64) -> Self {
        let (delivered_at, first_sent_at) = (Time::ZERO, Time::ZERO);
        Snapshot { delivered, delivered_at, first_sent_at, in_flight: 0, lost: 0, app_limited: false }
    }
}

/// The newest packet that an ACK frame acknowledges.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Newest {
    pub(crate) sent_at: Time,
    pub(crate) snapshot: Snapshot,
}

/// What a path has delivered.
#[derive(Debug, Default)]
pub(crate) struct DeliverySampler {
    delivered: u64,
    /// When `delivered` last rose, or sending began anew.
    delivered_at: Time,
    /// When the packet was sent from which the present sample of the sending rate begins.
    first_sent_at: Time,
    /// Found lost, what has arrived all the same included: packets have snapshots of it, so that it only grows.
    lost: u64,
    /// What is sent until so much has been delivered, was sent by a sender with nothing more to send; 0 is nothing.
    app_limited_until: u64,
}

impl DeliverySampler {
    /// A packet of `bytes` is sent, with `in_flight` before it.
    pub(crate) fn on_sent(&mut self, now: Time, bytes: u64, in_flight: u64) -> Snapshot {
        if in_flight == 0 {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        Snapshot {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            in_flight: in_flight.saturating_add(bytes),
            lost: self.lost,
            app_limited: self.app_limited_until > 0,
        }
    }

    /// The sender ran out of data with so much in flight.
    pub(crate) fn on_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = self.delivered.saturating_add(in_flight).max(1);
    }

    /// So many bytes arrived.
    pub(crate) fn on_delivered(&mut self, bytes: u64) {
        self.delivered = self.delivered.saturating_add(bytes);
    }

    /// A packet was found lost. Returns what has been lost since it was sent, with it.
    pub(crate) fn on_lost(&mut self, bytes: u64, snapshot: Snapshot) -> u64 {
        self.lost = self.lost.saturating_add(bytes);
        self.lost.saturating_sub(snapshot.lost)
    }

    /// The sample of the ACK frame that came `now`, whose bytes have been told. `None` if it is none:
    /// acknowledgements that come together tell a rate that no path has, within less than its lowest round-trip time.
    pub(crate) fn sample(&mut self, now: Time, newest: Newest, min_rtt: Duration) -> Option<RateSample> {
        let Newest { sent_at, snapshot } = newest;
        self.delivered_at = now;
        self.first_sent_at = sent_at;
        if self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        let sending = sent_at.saturating_since(snapshot.first_sent_at);
        let interval = sending.max(now.saturating_since(snapshot.delivered_at));
        if interval.is_zero() || interval < min_rtt {
            return None;
        }
        let delivered = self.delivered.saturating_sub(snapshot.delivered);
        let rate = u128::from(delivered).saturating_mul(1_000_000_000).checked_div(interval.as_nanos());
        Some(RateSample {
            delivered,
            interval,
            rate: u64::try_from(rate.unwrap_or(0)).unwrap_or(u64::MAX),
            app_limited: snapshot.app_limited,
            prior_delivered: snapshot.delivered,
            total_delivered: self.delivered,
            in_flight: snapshot.in_flight,
            lost: self.lost.saturating_sub(snapshot.lost),
            rtt: now.saturating_since(sent_at),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn at(millis: u32) -> Time {
        Time::ZERO + millis * MS
    }

    /// Ten packets of 1000 bytes, one each millisecond, acknowledged 50 ms later as fast as `ack_every` says.
    fn flight(sampler: &mut DeliverySampler, ack_every: u32) -> Vec<RateSample> {
        let snapshots: Vec<_> = (0..10).map(|i| sampler.on_sent(at(i), 1000, u64::from(i) * 1000)).collect();
        (0..10_u32)
            .filter_map(|i| {
                sampler.on_delivered(1000);
                let newest = Newest { sent_at: at(i), snapshot: snapshots[i as usize] };
                sampler.sample(at(50 + i * ack_every), newest, 50 * MS)
            })
            .collect()
    }

    #[test]
    fn the_rate_is_that_of_the_slower_of_sending_and_acknowledging() {
        let samples = flight(&mut DeliverySampler::default(), 2);
        let last = samples.last().unwrap();
        // All ten since sending began, in the 68 ms until the last was acknowledged.
        assert_eq!((last.delivered, last.interval, last.rate), (10_000, 68 * MS, 147_058));
        assert_eq!((last.in_flight, last.prior_delivered, last.rtt), (10_000, 0, 59 * MS));
        assert!(samples.iter().all(|sample| !sample.app_limited));
    }

    #[test]
    fn acknowledgements_that_come_together_tell_no_rate() {
        let mut sampler = DeliverySampler::default();
        let first = sampler.on_sent(at(0), 1000, 0);
        sampler.on_delivered(1000);
        let newest = Newest { sent_at: at(0), snapshot: first };
        assert!(sampler.sample(at(10), newest, 50 * MS).is_none());
    }

    #[test]
    fn what_was_sent_for_want_of_data_is_marked_until_it_is_delivered() {
        let mut sampler = DeliverySampler::default();
        let before = sampler.on_sent(at(0), 1000, 0);
        sampler.on_app_limited(1000);
        let after = sampler.on_sent(at(1), 1000, 1000);
        assert!(!before.app_limited && after.app_limited);
        sampler.on_delivered(2000);
        let newest = Newest { sent_at: at(1), snapshot: after };
        assert!(sampler.sample(at(50), newest, 49 * MS).unwrap().app_limited);
        assert!(!sampler.on_sent(at(60), 1000, 0).app_limited);
    }

    #[test]
    fn losses_since_a_packet_was_sent_are_counted() {
        let mut sampler = DeliverySampler::default();
        let one = sampler.on_sent(at(0), 1000, 0);
        let two = sampler.on_sent(at(1), 500, 1000);
        assert_eq!((sampler.on_lost(1000, one), sampler.on_lost(500, two)), (1000, 1500));
        let three = sampler.on_sent(at(2), 100, 0);
        assert_eq!(sampler.on_lost(100, three), 100);
    }
}
