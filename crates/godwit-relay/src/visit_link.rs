//! The link of each visit.
//!
//! A visit over HTTP/2 and the same visit over HTTP/3 come from the same client port, from which the random choices of
//! their links follow: both meet the same losses and delays. Time on a link counts from its first packet, from a
//! starting point that is drawn too, so that not every visit begins while the link is good.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use godwit_base::{Rng, SeededRng, Time};
use godwit_link::{Duplex, DuplexConfig, IpVersion};

use crate::lane::{Lane, LaneSettings, Way};

/// Headers of IPv4 and UDP, which the link model adds to what it is told.
const UDP_HEADERS: usize = 28;
/// Visits begin at a point of the link's time below this.
const SPAN: Duration = Duration::from_secs(600);

/// How links are made.
#[derive(Clone, Debug)]
pub struct VisitLinks {
    config: DuplexConfig,
    seed: u64,
}

impl VisitLinks {
    /// Links of this kind; their chances follow from the seed.
    #[must_use]
    pub fn new(config: DuplexConfig, seed: u64) -> VisitLinks {
        VisitLinks { config, seed }
    }

    /// The link of the visit that comes from `port`, first used now.
    #[must_use]
    pub fn of(&self, port: u16, now: Time) -> VisitLink {
        let mut rng = SeededRng::new(self.seed ^ (u64::from(port) << 32));
        let start = Duration::from_nanos(rng.below(SPAN.as_nanos() as u64));
        let duplex = Duplex::new(self.config.clone(), rng.next_u64());
        let [up, down] = [duplex.up, duplex.down].map(|link| Lane::new(link, LaneSettings::default()));
        VisitLink { up, down, first: now, start: Time::ZERO + start }
    }
}

/// Both directions of one visit's link, in the relay's time.
#[derive(Debug)]
pub struct VisitLink {
    up: Lane,
    down: Lane,
    first: Time,
    start: Time,
}

impl VisitLink {
    /// When an IP packet of `bytes` that is sent now arrives; `None` if it does not.
    pub fn send(&mut self, way: Way, now: Time, bytes: usize, counters: &RelayCounters) -> Option<Time> {
        let lane = match way {
            Way::Up => &mut self.up,
            Way::Down => &mut self.down,
        };
        let on_link = self.start + now.saturating_since(self.first);
        let arrival = lane.pass(on_link, bytes.saturating_sub(UDP_HEADERS), IpVersion::V4, true);
        counters.packets.fetch_add(1, Ordering::Relaxed);
        if arrival.is_none() {
            counters.dropped.fetch_add(1, Ordering::Relaxed);
        }
        arrival.map(|arrival| self.first + arrival.at.saturating_since(self.start))
    }
}

/// What a relay has done, for both protocols together.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct RelayCounters {
    /// Packets that came to the link.
    pub packets: AtomicU64,
    /// Those that were lost or found the queue full.
    pub dropped: AtomicU64,
    /// Those that have arrived.
    pub delivered: AtomicU64,
    /// Deliveries that came more than [`RelayCounters::LATE`] after their time: the machine was busy.
    pub late: AtomicU64,
}

impl RelayCounters {
    /// Later than this is late.
    pub const LATE: Duration = Duration::from_millis(5);

    /// A packet that was due at `due` is delivered now.
    pub fn on_delivery(&self, due: Time, now: Time) {
        self.delivered.fetch_add(1, Ordering::Relaxed);
        if now.saturating_since(due) > RelayCounters::LATE {
            self.late.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use godwit_link::{GilbertElliott, LinkConfig, Loss, Rate};

    #[test]
    fn visits_of_one_port_meet_the_same_losses() {
        let bursts = GilbertElliott::on_off(Duration::from_millis(990), Duration::from_millis(10));
        let mut link = LinkConfig::limited(Rate::megabits(40), Duration::from_millis(10), 1 << 17);
        link.loss = Loss::Bursts(bursts);
        let links = VisitLinks::new(DuplexConfig::symmetric(link), 7);
        let counters = RelayCounters::default();
        let fate = |port, began: u64| {
            let mut link = links.of(port, Time::from_nanos(began));
            let send = |step: u64| {
                let now = Time::from_nanos(began + step * 1_000_000);
                link.send(Way::Down, now, 1500, &counters).map(|at| at.saturating_since(now))
            };
            (0..5_000).map(send).collect::<Vec<_>>()
        };
        assert_eq!(fate(10_000, 0), fate(10_000, 5_000_000_000));
        assert_ne!(fate(10_000, 0), fate(10_001, 0));
        let lost =
            counters.dropped.load(Ordering::Relaxed) as f64 / counters.packets.load(Ordering::Relaxed) as f64;
        assert!((0.003..0.03).contains(&lost), "{lost}");
    }
}
