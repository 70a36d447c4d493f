//! A model of what TCP and TLS 1.3 need to be ready for a request: two round trips, and what loss adds.

use std::time::Duration;

use godwit_base::{SeededRng, Time};
use godwit_link::{IpVersion, Link, LinkConfig};

/// A first packet is sent again after this, and then after twice as long each time (RFC 6298 section 2).
const FIRST_TIMEOUT: Duration = Duration::from_secs(1);
/// Other packets are sent again no earlier.
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(200);
/// Nobody tries more often.
const ATTEMPTS: u32 = 7;

/// A connection that is there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    /// From its first packet on.
    pub(super) took: Duration,
    /// Packets that had to be sent again.
    pub(super) retransmitted: u32,
}

/// Both ends, and the link between them.
pub(super) struct Tcp {
    up: Link,
    down: Link,
    retransmitted: u32,
}

impl Tcp {
    pub(super) fn new(link: &LinkConfig, seed: u64) -> Tcp {
        let direction = |seed| Link::new(link.clone(), SeededRng::new(seed));
        Tcp { up: direction(seed ^ 0x7c50), down: direction(seed ^ 0x7c51), retransmitted: 0 }
    }

    /// Connects, from time zero on. `None` if it does not come about.
    pub(super) fn connect(mut self) -> Option<Made> {
        let there = self.round_trip(Duration::ZERO, (60, 60), FIRST_TIMEOUT)?;
        let timeout = (there * 3).max(SHORTEST_TIMEOUT);
        // The server's flight is of three packets, of which the last to come counts.
        let hello = self.deliver(true, there, 600, timeout)?;
        let flight = [1250, 1250, 900].map(|length| self.deliver(false, hello, length, timeout));
        let took = flight.into_iter().collect::<Option<Vec<_>>>()?.into_iter().max()?;
        Some(Made { took, retransmitted: self.retransmitted })
    }

    /// One request and the first byte of its response, on a connection that is there, from time zero on.
    pub(super) fn request(mut self, rtt: Duration) -> Option<Duration> {
        self.round_trip(Duration::ZERO, (200, 1250), (rtt * 2).max(SHORTEST_TIMEOUT))
    }

    /// When the answer to a packet of these lengths is there.
    fn round_trip(
        &mut self,
        from: Duration,
        (up, down): (usize, usize),
        timeout: Duration,
    ) -> Option<Duration> {
        let (mut at, mut wait, mut answer) = (from, timeout, None::<Duration>);
        for attempt in 0..ATTEMPTS {
            self.retransmitted += u32::from(attempt > 0);
            let arrived = send(&mut self.up, at, up).and_then(|there| send(&mut self.down, there, down));
            answer = [answer, arrived].into_iter().flatten().min();
            (at, wait) = (at + wait, wait * 2);
            if answer.is_some_and(|answer| answer <= at) {
                return answer;
            }
        }
        answer
    }

    /// When a packet is there that is sent again until it is.
    fn deliver(&mut self, up: bool, from: Duration, length: usize, timeout: Duration) -> Option<Duration> {
        let (mut at, mut wait) = (from, timeout);
        for attempt in 0..ATTEMPTS {
            self.retransmitted += u32::from(attempt > 0);
            let link = if up { &mut self.up } else { &mut self.down };
            if let Some(there) = send(link, at, length) {
                return Some(there);
            }
            (at, wait) = (at + wait, wait * 2);
        }
        None
    }
}

fn send(link: &mut Link, at: Duration, length: usize) -> Option<Duration> {
    let delivery = link.send(Time::ZERO + at, length, IpVersion::V4).deliveries().next()?;
    Some(delivery.at - Time::ZERO)
}

#[test]
fn two_round_trips_and_what_loss_adds() {
    let link = LinkConfig::delayed(Duration::from_millis(50));
    let made = Tcp::new(&link, 1).connect().unwrap();
    assert_eq!((made.took, made.retransmitted), (Duration::from_millis(200), 0));
    let mut lossy = link;
    lossy.loss = godwit_link::Loss::Independent(godwit_link::Probability::percent(30.0));
    let slowest = (0..50).filter_map(|seed| Tcp::new(&lossy, seed).connect()).max_by_key(|made| made.took);
    assert!(slowest.is_some_and(|made| made.took > Duration::from_secs(1) && made.retransmitted > 1));
}
