//! The link of each visit.
//!
//! A visit over HTTP/2 and its twin over HTTP/3 are known by the same client port, and from that follow the chances
//! of their links: both meet the same weather. Time on a link counts from its first packet, from a starting point
//! that is drawn too, so that not every visit begins in fair weather.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use godwit_base::{Rng, SeededRng, Time};
use godwit_link::{Duplex, DuplexConfig, IpVersion, Link, Outcome};

use super::preset::Conditions;
use crate::output::instant_now;

/// Headers of IPv4 and UDP, which the link model adds to what it is told.
const UDP_HEADERS: usize = 28;
/// Visits begin at a point of the link's time below this.
const WEATHER: Duration = Duration::from_secs(600);

/// How links are made.
#[derive(Clone, Debug)]
pub(super) struct Links {
    config: DuplexConfig,
    seed: u64,
}

impl Links {
    pub(super) fn new(conditions: &Conditions, seed: u64) -> Links {
        Links { config: conditions.link(), seed }
    }

    /// The link of the visit that comes from `port`, first used now.
    pub(super) fn of(&self, port: u16, now: Time) -> VisitLink {
        let mut rng = SeededRng::new(self.seed ^ (u64::from(port) << 32));
        let start = Duration::from_nanos(rng.below(WEATHER.as_nanos() as u64));
        let duplex = Duplex::new(self.config.clone(), rng.next_u64());
        VisitLink { duplex, first: now, start: Time::ZERO + start }
    }
}

/// Which way a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// From the client to the server.
    Up,
    Down,
}

/// Both directions of one visit's link, in the relay's time.
#[derive(Debug)]
pub(super) struct VisitLink {
    duplex: Duplex,
    first: Time,
    start: Time,
}

impl VisitLink {
    /// When an IP packet of `bytes` that is sent now arrives; `None` if it does not.
    pub(super) fn send(&mut self, way: Way, now: Time, bytes: usize, tally: &Tally) -> Option<Time> {
        let link: &mut Link = match way {
            Way::Up => &mut self.duplex.up,
            Way::Down => &mut self.duplex.down,
        };
        let on_link = self.start + now.saturating_since(self.first);
        let outcome = link.send(on_link, bytes.saturating_sub(UDP_HEADERS), IpVersion::V4);
        tally.packets.fetch_add(1, Ordering::Relaxed);
        match outcome {
            Outcome::Delivered { first, .. } => Some(self.first + first.at.saturating_since(self.start)),
            Outcome::Dropped(_) => {
                tally.dropped.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    }
}

/// What a relay has done, for both protocols together.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) packets: AtomicU64,
    pub(super) dropped: AtomicU64,
    pub(super) delivered: AtomicU64,
    /// Deliveries that came more than [`Tally::LATE`] after their time: the machine was busy.
    pub(super) late: AtomicU64,
}

impl Tally {
    pub(super) const LATE: Duration = Duration::from_millis(5);

    /// A packet that was due at `due` is delivered now.
    pub(super) fn on_delivery(&self, due: Time, now: Time) {
        self.delivered.fetch_add(1, Ordering::Relaxed);
        if now.saturating_since(due) > Tally::LATE {
            self.late.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The relay's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    began: Instant,
}

impl Clock {
    pub(super) fn start() -> Clock {
        Clock { began: instant_now() }
    }

    pub(super) fn now(self) -> Time {
        Time::ZERO + self.began.elapsed()
    }

    /// Waits until then, or for ever.
    pub(super) async fn sleep_until(self, at: Option<Time>) {
        match at {
            Some(at) => {
                let at = self.began + at.saturating_since(Time::ZERO);
                tokio::time::sleep_until(at.into()).await;
            }
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::preset::Preset;

    #[test]
    fn twins_meet_the_same_weather() {
        let links = Links::new(&Preset::Wifi.conditions(), 7);
        let tally = Tally::default();
        let fate = |port, began: u64| {
            let mut link = links.of(port, Time::from_nanos(began));
            let send = |step: u64| {
                let now = Time::from_nanos(began + step * 1_000_000);
                link.send(Way::Down, now, 1500, &tally).map(|at| at.saturating_since(now))
            };
            (0..5_000).map(send).collect::<Vec<_>>()
        };
        assert_eq!(fate(10_000, 0), fate(10_000, 5_000_000_000));
        assert_ne!(fate(10_000, 0), fate(10_001, 0));
        let lost =
            tally.dropped.load(Ordering::Relaxed) as f64 / tally.packets.load(Ordering::Relaxed) as f64;
        assert!((0.003..0.03).contains(&lost), "{lost}");
    }
}
