//! The networks from which HTTP/3 fails: their clients are not told of it, others are.
//!
//! A network is an IPv4 /24 or an IPv6 /48. What is counted of it are handshakes of clients whose address is known to be
//! theirs, so that packets with forged addresses count for nothing:
//! - those that were **finished**;
//! - those that **failed** after the client had shown that it receives at its address;
//! - those that went **unanswered**: the client was told over TCP, first packets of QUIC came in its name and led to
//!   nothing, and it came again by TCP. The client is real, its packets may not be. Therefore these count only while
//!   nobody at all of the network finishes a handshake: where HTTP/3 works, forged packets take it from nobody.
//!
//! If of at least [`FEWEST`] handshakes of the last one to two [`WINDOW`]s less than half were finished, the network is
//! not told for [`FIRST_BREAK`], and each time that happens again for twice as long, up to [`LONGEST_BREAK`]. It is
//! told earlier if four in five of those that come then are finished, of however few: clients remember for long what
//! they were told, so there are attempts even then.
//!
//! At most [`CAPACITY`] networks of each of two generations are known: when one is full, the older one is forgotten, and
//! a network that is forgotten is told. Time is how long the program has run; it is given.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use godwit_body::ClientNetwork;

const CAPACITY: usize = 4096;
const FEWEST: u32 = 5;
const WINDOW: Duration = Duration::from_secs(600);
const FIRST_BREAK: Duration = Duration::from_secs(300);
const LONGEST_BREAK: Duration = Duration::from_secs(3600);

/// What became of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handshake {
    /// It was finished.
    Finished,
    /// It failed, and the client's address is its own.
    Failed,
    /// It led to nothing, and the client came by TCP.
    Unanswered,
}

#[derive(Debug, Default)]
pub(super) struct Networks {
    young: HashMap<IpAddr, Network>,
    old: HashMap<IpAddr, Network>,
}

#[derive(Debug, Default)]
struct Network {
    /// When the count of `this` began.
    begun: Duration,
    this: Count,
    last: Count,
    /// It is not told before this.
    broken_until: Option<Duration>,
    breaks: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    finished: u32,
    failed: u32,
    unanswered: u32,
}

impl Networks {
    /// Takes in what became of a handshake of a client at this address.
    pub(super) fn on_handshake(&mut self, address: IpAddr, now: Duration, outcome: Handshake) {
        let network = self.entry(ClientNetwork::prefix(address), now);
        network.count(now, outcome);
        network.judge(now);
    }

    /// Whether HTTP/3 fails from where this address is.
    pub(super) fn fails(&self, address: IpAddr, now: Duration) -> bool {
        let address = ClientNetwork::prefix(address);
        let known = self.young.get(&address).or_else(|| self.old.get(&address));
        known.is_some_and(|network| network.is_broken(now))
    }

    /// From how many networks it fails.
    pub(super) fn failing(&self, now: Duration) -> usize {
        self.young.values().chain(self.old.values()).filter(|network| network.is_broken(now)).count()
    }

    fn entry(&mut self, address: IpAddr, now: Duration) -> &mut Network {
        if self.young.len() >= CAPACITY && !self.young.contains_key(&address) {
            self.old = std::mem::take(&mut self.young);
        }
        let old = &mut self.old;
        self.young.entry(address).or_insert_with(|| {
            old.remove(&address).unwrap_or_else(|| Network { begun: now, ..Network::default() })
        })
    }
}

impl Network {
    fn count(&mut self, now: Duration, outcome: Handshake) {
        let age = now.saturating_sub(self.begun);
        if age >= WINDOW {
            self.last = if age < WINDOW * 2 { self.this } else { Count::default() };
            self.this = Count::default();
            self.begun = now;
        }
        let count = match outcome {
            Handshake::Finished => &mut self.this.finished,
            Handshake::Failed => &mut self.this.failed,
            Handshake::Unanswered => &mut self.this.unanswered,
        };
        *count = count.saturating_add(1);
    }

    fn judge(&mut self, now: Duration) {
        let sum = |of: fn(&Count) -> u32| of(&self.this).saturating_add(of(&self.last));
        let finished = sum(|count| count.finished);
        let mut all = finished.saturating_add(sum(|count| count.failed));
        if finished == 0 {
            all = all.saturating_add(sum(|count| count.unanswered));
        }
        let (broken, enough) = (self.is_broken(now), all >= FEWEST);
        if !broken && enough && finished.saturating_mul(2) < all {
            let wait = FIRST_BREAK.saturating_mul(1 << self.breaks.min(8)).min(LONGEST_BREAK);
            self.broken_until = Some(now.saturating_add(wait));
            self.breaks = self.breaks.saturating_add(1);
            (self.begun, self.this, self.last) = (now, Count::default(), Count::default());
        } else if finished.saturating_mul(5) >= all.saturating_mul(4) {
            self.broken_until = None;
            if !broken && enough {
                self.breaks = 0;
            }
        }
    }

    fn is_broken(&self, now: Duration) -> bool {
        self.broken_until.is_some_and(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::Handshake::{Failed, Finished, Unanswered};
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// The networks, of which one is looked at.
    #[derive(Default)]
    struct World(Networks);

    impl World {
        fn add(&mut self, now: u64, outcome: Handshake, count: u32) {
            (0..count).for_each(|_| self.0.on_handshake(ip("192.0.2.1"), at(now), outcome));
        }

        fn fails(&self, now: u64) -> bool {
            self.0.fails(ip("192.0.2.200"), at(now))
        }
    }

    #[test]
    fn handshakes_that_fail_withdraw_from_their_network_alone() {
        let mut world = World::default();
        world.add(10, Failed, FEWEST - 1);
        assert!(!world.fails(10), "too few to judge by");
        world.add(10, Failed, 1);
        assert!(world.fails(10) && !world.0.fails(ip("192.0.3.1"), at(10)));
        assert_eq!((world.0.failing(at(10)), world.0.failing(at(310))), (1, 0));
        assert!(!world.fails(310), "another try");
        world.add(400, Failed, FEWEST);
        assert!(world.fails(400 + 599) && !world.fails(400 + 600), "for twice as long");
        (0..FEWEST).for_each(|host| {
            let address = ip(&format!("2001:db8:1:{host}::1"));
            world.0.on_handshake(address, at(10), Failed);
        });
        let fails = |text| world.0.fails(ip(text), at(10));
        assert!(fails("2001:db8:1:ffff::2") && !fails("2001:db8:2::1"));
    }

    #[test]
    fn half_is_enough_and_four_fifths_bring_it_back() {
        let mut world = World::default();
        world.add(10, Finished, 20);
        world.add(10, Failed, 20);
        assert!(!world.fails(10));
        world.add(11, Failed, 1);
        assert!(world.fails(11));
        world.add(20, Failed, 5);
        world.add(20, Finished, 19);
        assert!(world.fails(20), "19 of 24");
        world.add(20, Finished, 1);
        assert!(!world.fails(20), "20 of 25");
    }

    #[test]
    fn what_may_be_forged_counts_only_where_nothing_is_finished() {
        let mut world = World::default();
        world.add(10, Finished, 1);
        world.add(11, Unanswered, 1000);
        assert!(!world.fails(11), "there it works");
        let later = 10 + 2 * WINDOW.as_secs();
        world.add(later, Unanswered, FEWEST);
        assert!(world.fails(later), "it no longer does");
        world.add(later, Finished, 1);
        assert!(!world.fails(later), "it does");
    }

    #[test]
    fn old_handshakes_are_forgotten() {
        let mut world = World::default();
        world.add(10, Failed, FEWEST - 1);
        world.add(1300, Failed, FEWEST - 1);
        assert!(!world.fails(1300));
        world.add(1901, Failed, 1);
        assert!(world.fails(1901), "the window before counts with this one");
    }

    #[test]
    fn networks_are_bounded_in_number() {
        let mut networks = Networks::default();
        let address = |number: usize| {
            let [.., b, c, d] = (number as u64).to_be_bytes();
            IpAddr::from([10 + b, c, d, 1])
        };
        for number in 0..CAPACITY * 4 {
            networks.on_handshake(address(number), at(0), Failed);
            networks.on_handshake(ip("192.0.2.1"), at(0), Finished);
        }
        assert!(networks.young.len() + networks.old.len() <= 2 * CAPACITY);
        let known = |text| networks.young.contains_key(&ClientNetwork::prefix(ip(text)));
        assert!(known("192.0.2.1"), "what is used is kept");
    }
}
