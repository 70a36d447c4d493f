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
//! They are counted twice. Of a **network** the hosts count, each once however often it tries: one alone can make
//! handshakes fail, and must not take HTTP/3 from its neighbours. (A host is an IPv4 address or an IPv6 /56, which one
//! customer has.) Of a **host** every handshake counts, but not more than one in a minute that did not finish,
//! for what others do in its name or beside it behind a NAT.
//!
//! If of at least [`FEWEST`] of the last one to two [`WINDOW`]s less than half were finished, the network or the host is
//! not told for [`FIRST_BREAK`], and each time that happens again for twice as long, up to [`LONGEST_BREAK`]. It is
//! told earlier if four in five of those that come then are finished, of however few: clients remember for long what
//! they were told, so there are attempts even then.
//!
//! At most [`CAPACITY`] networks of each of two generations are known, and as many hosts of which something has failed:
//! when one is full, the older one is forgotten, and who is forgotten is told. Time is how long the program has run; it
//! is given.

use std::collections::HashMap;
use std::hash::Hash;
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

/// A host by its network, and by its number there.
type Host = (IpAddr, u8);

#[derive(Debug, Default)]
pub(super) struct Networks {
    networks: Known<IpAddr, Record<Hosts>>,
    hosts: Known<Host, Record<Tries>>,
}

impl Networks {
    /// Takes in what became of a handshake of a client at this address.
    pub(super) fn on_handshake(&mut self, address: IpAddr, now: Duration, outcome: Handshake) {
        let host = host(address);
        let (network, number) = host;
        self.networks.entry(network).on_handshake(number, now, outcome);
        if outcome != Handshake::Finished || self.hosts.get(&host).is_some() {
            self.hosts.entry(host).on_handshake(number, now, outcome);
        }
    }

    /// Whether HTTP/3 fails from where this address is.
    pub(super) fn fails(&self, address: IpAddr, now: Duration) -> bool {
        let host = host(address);
        self.networks.get(&host.0).is_some_and(|network| network.is_broken(now))
            || self.hosts.get(&host).is_some_and(|host| host.is_broken(now))
    }

    /// From how many networks it fails.
    pub(super) fn failing(&self, now: Duration) -> usize {
        self.networks.all().filter(|network| network.is_broken(now)).count()
    }
}

/// The host that has an address.
fn host(address: IpAddr) -> Host {
    let address = address.to_canonical();
    let number = match address {
        IpAddr::V4(address) => address.octets()[3],
        IpAddr::V6(address) => address.octets()[6],
    };
    (ClientNetwork::prefix(address), number)
}

/// What is known, the older half apart.
#[derive(Debug)]
struct Known<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
}

impl<K, V> Default for Known<K, V> {
    fn default() -> Self {
        Known { young: HashMap::new(), old: HashMap::new() }
    }
}

impl<K: Copy + Eq + Hash, V: Default> Known<K, V> {
    fn get(&self, key: &K) -> Option<&V> {
        self.young.get(key).or_else(|| self.old.get(key))
    }

    fn all(&self) -> impl Iterator<Item = &V> {
        self.young.values().chain(self.old.values())
    }

    fn entry(&mut self, key: K) -> &mut V {
        if self.young.len() >= CAPACITY && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        let old = &mut self.old;
        self.young.entry(key).or_insert_with(|| old.remove(&key).unwrap_or_default())
    }
}

/// What is known of a network or of a host.
#[derive(Debug, Default)]
struct Record<C> {
    /// When the count of `this` began.
    begun: Duration,
    this: C,
    last: C,
    /// When the next counts that did not finish.
    next_failure: Duration,
    /// It is not told before this.
    broken_until: Option<Duration>,
    breaks: u32,
}

/// How handshakes are counted.
trait Count: Copy + Default {
    /// Of those that do not finish one counts in so much time.
    const FAILURE_EVERY: Duration;

    /// One of the host with this number has ended.
    fn add(&mut self, number: u8, outcome: Handshake);

    /// How many there were in this window and the last.
    fn sums(this: Self, last: Self) -> Sums;
}

struct Sums {
    finished: u32,
    failed: u32,
    unanswered: u32,
}

impl<C: Count> Record<C> {
    fn on_handshake(&mut self, number: u8, now: Duration, outcome: Handshake) {
        if outcome != Handshake::Finished {
            if now < self.next_failure {
                return;
            }
            self.next_failure = now.saturating_add(C::FAILURE_EVERY);
        }
        let age = now.saturating_sub(self.begun);
        if age >= WINDOW {
            self.last = if age < WINDOW * 2 { self.this } else { C::default() };
            self.this = C::default();
            self.begun = now;
        }
        self.this.add(number, outcome);
        self.judge(now);
    }

    fn judge(&mut self, now: Duration) {
        let Sums { finished, failed, unanswered } = C::sums(self.this, self.last);
        let mut all = finished.saturating_add(failed);
        if finished == 0 {
            all = all.saturating_add(unanswered);
        }
        let (broken, enough) = (self.is_broken(now), all >= FEWEST);
        if !broken && enough && finished.saturating_mul(2) < all {
            let wait = FIRST_BREAK.saturating_mul(1 << self.breaks.min(8)).min(LONGEST_BREAK);
            self.broken_until = Some(now.saturating_add(wait));
            self.breaks = self.breaks.saturating_add(1);
            (self.begun, self.this, self.last) = (now, C::default(), C::default());
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

/// Which hosts of a network have finished handshakes, and which have not.
#[derive(Clone, Copy, Debug, Default)]
struct Hosts {
    finished: Numbers,
    failed: Numbers,
    unanswered: Numbers,
}

impl Count for Hosts {
    const FAILURE_EVERY: Duration = Duration::ZERO;

    fn add(&mut self, number: u8, outcome: Handshake) {
        let hosts = match outcome {
            Handshake::Finished => &mut self.finished,
            Handshake::Failed => &mut self.failed,
            Handshake::Unanswered => &mut self.unanswered,
        };
        hosts.insert(number);
    }

    fn sums(this: Self, last: Self) -> Sums {
        Sums {
            finished: this.finished.or(last.finished).count(),
            failed: this.failed.or(last.failed).count(),
            unanswered: this.unanswered.or(last.unanswered).count(),
        }
    }
}

/// A set of numbers of hosts.
#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    low: u128,
    high: u128,
}

impl Numbers {
    fn insert(&mut self, number: u8) {
        let half = if number < 128 { &mut self.low } else { &mut self.high };
        *half |= 1 << (number & 127);
    }

    fn or(self, other: Numbers) -> Numbers {
        Numbers { low: self.low | other.low, high: self.high | other.high }
    }

    fn count(self) -> u32 {
        self.low.count_ones() + self.high.count_ones()
    }
}

/// How many handshakes of a host there were.
#[derive(Clone, Copy, Debug, Default)]
struct Tries {
    finished: u32,
    failed: u32,
    unanswered: u32,
}

impl Count for Tries {
    const FAILURE_EVERY: Duration = Duration::from_secs(60);

    fn add(&mut self, _: u8, outcome: Handshake) {
        let count = match outcome {
            Handshake::Finished => &mut self.finished,
            Handshake::Failed => &mut self.failed,
            Handshake::Unanswered => &mut self.unanswered,
        };
        *count = count.saturating_add(1);
    }

    fn sums(this: Self, last: Self) -> Sums {
        Sums {
            finished: this.finished.saturating_add(last.finished),
            failed: this.failed.saturating_add(last.failed),
            unanswered: this.unanswered.saturating_add(last.unanswered),
        }
    }
}

#[cfg(test)]
mod tests;
