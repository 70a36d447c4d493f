//! Hosts and their networks, of which one is looked at.

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
    /// So many hosts, the first of which has this number.
    fn add(&mut self, now: u64, outcome: Handshake, first: u8, count: u32) {
        for number in (first..).take(count as usize) {
            self.0.on_handshake([192, 0, 2, number].into(), at(now), outcome);
        }
    }

    /// One host, so many times.
    fn one(&mut self, now: u64, outcome: Handshake, count: u32) {
        (0..count).for_each(|_| self.add(now, outcome, 7, 1));
    }

    fn fails(&self, now: u64) -> bool {
        self.0.fails(ip("192.0.2.200"), at(now))
    }

    fn fails_for_one(&self, now: u64) -> bool {
        self.0.fails(ip("192.0.2.7"), at(now))
    }
}

#[test]
fn handshakes_that_fail_withdraw_from_their_network_alone() {
    let mut world = World::default();
    world.add(10, Failed, 1, FEWEST - 1);
    assert!(!world.fails(10), "too few to judge by");
    world.add(10, Failed, 30, 1);
    assert!(world.fails(10) && !world.0.fails(ip("192.0.3.1"), at(10)));
    assert_eq!((world.0.failing(at(10)), world.0.failing(at(310))), (1, 0));
    assert!(!world.fails(310), "another try");
    world.add(400, Failed, 1, FEWEST);
    assert!(world.fails(400 + 599) && !world.fails(400 + 600), "for twice as long");
    (0..FEWEST).for_each(|host| {
        let address = ip(&format!("2001:db8:1:{host}00::1"));
        world.0.on_handshake(address, at(10), Failed);
    });
    let fails = |text| world.0.fails(ip(text), at(10));
    assert!(fails("2001:db8:1:ffff::2") && !fails("2001:db8:2::1"));
}

#[test]
fn one_host_takes_it_from_no_neighbour() {
    for outcome in [Failed, Unanswered] {
        let mut world = World::default();
        for minute in 0..50 {
            world.one(60 * minute, outcome, 100);
            assert!(!world.fails(60 * minute), "{outcome:?}, minute {minute}");
        }
        assert!(world.fails_for_one(60 * 49), "{outcome:?}: for itself it has shown enough");
        assert_eq!(world.0.failing(at(60 * 49)), 0);
    }
    let mut networks = Networks::default();
    (0..=255).for_each(|net| networks.on_handshake(ip(&format!("2001:db8:1:7{net:02x}::1")), at(10), Failed));
    assert!(!networks.fails(ip("2001:db8:1:800::1"), at(10)), "all that one customer has is one host");
}

#[test]
fn what_fails_of_one_host_counts_once_a_minute() {
    let mut world = World::default();
    world.one(10, Failed, 1000);
    world.one(69, Failed, 1000);
    assert!(!world.fails_for_one(69));
    (1..FEWEST.into()).for_each(|minute| world.one(10 + 60 * minute, Failed, 1000));
    assert!(world.fails_for_one(10 + 60 * 4));
    world.one(10 + 60 * 4, Finished, 1);
    assert!(!world.fails_for_one(10 + 60 * 4), "it works again");
}

#[test]
fn half_is_enough_and_four_fifths_bring_it_back() {
    let mut world = World::default();
    world.add(10, Finished, 0, 20);
    world.add(10, Failed, 100, 20);
    assert!(!world.fails(10));
    world.add(11, Failed, 120, 1);
    assert!(world.fails(11));
    world.add(20, Failed, 0, 5);
    world.add(20, Finished, 50, 19);
    assert!(world.fails(20), "19 of 24");
    world.add(20, Finished, 69, 1);
    assert!(!world.fails(20), "20 of 25");
}

#[test]
fn what_may_be_forged_counts_only_where_nothing_is_finished() {
    let mut world = World::default();
    world.add(10, Finished, 1, 1);
    world.add(11, Unanswered, 0, 150);
    assert!(!world.fails(11), "there it works");
    let later = 10 + 2 * WINDOW.as_secs();
    world.add(later, Unanswered, 0, FEWEST);
    assert!(world.fails(later), "it no longer does");
    world.add(later, Finished, 1, 1);
    assert!(!world.fails(later), "it does");
}

#[test]
fn old_handshakes_are_forgotten() {
    let mut world = World::default();
    world.add(10, Failed, 0, FEWEST - 1);
    world.add(1300, Failed, 10, FEWEST - 1);
    assert!(!world.fails(1300));
    world.add(1901, Failed, 20, 1);
    assert!(world.fails(1901), "the window before counts with this one");
}

#[test]
fn networks_and_hosts_are_bounded_in_number() {
    let mut networks = Networks::default();
    let address = |number: usize| {
        let [.., b, c, d] = (number as u64).to_be_bytes();
        IpAddr::from([10 + b, c, d, 1])
    };
    for number in 0..CAPACITY * 4 {
        networks.on_handshake(address(number), at(0), Failed);
        networks.on_handshake(ip("192.0.2.1"), at(0), Finished);
    }
    assert!(networks.networks.all().count() <= 2 * CAPACITY);
    assert!(networks.hosts.all().count() <= 2 * CAPACITY);
    let known = |text| networks.networks.young.contains_key(&ClientNetwork::prefix(ip(text)));
    assert!(known("192.0.2.1"), "what is used is kept");
    assert!(
        networks.hosts.get(&host(ip("192.0.2.1"))).is_none(),
        "hosts of which nothing fails take no room"
    );
}
