#![allow(clippy::arithmetic_side_effects, reason = "tests")]

use super::*;
use crate::packet::testing::payload_at;
use crate::part::NoToken;
use godwit_base::{SeededRng, SocketId};
use godwit_recovery::PathSettings;
use proptest::prelude::*;

const PTO: Duration = Duration::from_millis(100);
const ACTIVE: PathId = PathId(0);

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

fn key(host: u8, port: u16) -> PathKey {
    PathKey { socket: SocketId(0), local: None, remote: ([192, 0, 2, host], port).into() }
}

fn server() -> PathSet {
    let mut set = PathSet::new(Side::Server, key(1, 1), recovery(1), false);
    set.on_datagram(&key(1, 1), 1200);
    set.on_address_validated();
    set.allow_migration();
    set
}

fn events(set: &mut PathSet) -> Vec<PathEvent> {
    std::iter::from_fn(|| set.next_event()).collect()
}

fn abandoned(id: PathId, key: PathKey, recovery: u16) -> PathEvent {
    PathEvent::Abandoned { id, key, recovery }
}

/// A packet with data comes from a new address.
fn move_to(set: &mut PathSet, now: Time, to: PathKey, len: usize) -> PathId {
    assert_eq!(set.on_datagram(&to, len), Arrival::New);
    let id = set.adopt(at(0), to, len, |_| recovery(2)).unwrap();
    set.on_non_probing(now, id, true, PTO);
    id
}

/// The challenge that is due on `id`, and whether its datagram is to be expanded.
fn challenge(set: &mut PathSet, now: Time, id: PathId) -> Option<([u8; 8], bool)> {
    let mut rng = SeededRng::new(now.as_nanos() + u64::from(id.0));
    let (payload, expand) = probe(set, now, id, &mut rng);
    let data = payload.strip_prefix(&[0x1a])?;
    Some((data.try_into().unwrap(), expand))
}

/// What is written on path `id`, and whether its datagram is to be expanded.
fn probe(set: &mut PathSet, now: Time, id: PathId, rng: &mut SeededRng) -> (Vec<u8>, bool) {
    let (payload, tokens, expand) = payload_at::<NoToken, _>(now, id, rng, 1200, |packet| {
        set.write_probe(packet);
        packet.is_expanded()
    });
    assert!(tokens.is_empty(), "nothing of it is sent again");
    (payload, expand)
}

#[test]
fn a_servers_first_path_earns_three_times_what_came() {
    let mut set = PathSet::new(Side::Server, key(1, 1), recovery(1), false);
    assert!(!set.active().can_send(1));
    assert_eq!(set.on_datagram(&key(1, 1), 1200), Arrival::Known(ACTIVE));
    assert!(set.active().can_send(3600) && !set.active().can_send(3601));
    set.active_mut().on_sent(3000);
    assert_eq!(set.active().send_credit(), 600);
    set.on_address_validated();
    assert!(set.active().can_send(usize::MAX));
    assert!(PathSet::new(Side::Server, key(1, 1), recovery(1), true).active().can_send(usize::MAX));
    assert!(PathSet::new(Side::Client, key(1, 1), recovery(1), false).active().can_send(usize::MAX));
}

#[test]
fn strangers_are_ignored_by_clients_and_before_confirmation() {
    let mut set = PathSet::new(Side::Server, key(1, 1), recovery(1), false);
    assert_eq!(set.on_datagram(&key(2, 1), 1200), Arrival::Ignored);
    let mut set = PathSet::new(Side::Client, key(1, 1), recovery(1), false);
    set.allow_migration();
    assert_eq!(set.on_datagram(&key(2, 1), 1200), Arrival::Ignored);
    let local = Some([10, 0, 0, 1].into());
    assert_eq!(set.on_datagram(&PathKey { local, ..key(1, 1) }, 1200), Arrival::Known(ACTIVE));
    let socket = SocketId(1);
    assert_eq!(set.on_datagram(&PathKey { socket, ..key(1, 1) }, 1200), Arrival::Ignored);
}

#[test]
fn a_rebound_port_keeps_what_is_known_of_the_network() {
    let mut set = server();
    let id = move_to(&mut set, at(0), key(1, 2), 500);
    assert_eq!(events(&mut set), [PathEvent::Migrated { from: ACTIVE, to: id }]);
    assert_eq!((set.active().id(), mark(&set.active().recovery)), (id, 1));
    assert_eq!(set.active().send_credit(), 1500);
    let (data, expand) = challenge(&mut set, at(1), id).unwrap();
    assert!(expand);
    assert!(challenge(&mut set, at(1), id).is_none(), "once");
    assert!(challenge(&mut set, at(1), ACTIVE).is_some(), "the old address is challenged too");
    set.on_path_response(at(50), data, PTO);
    assert_eq!(events(&mut set), [PathEvent::Validated(id)]);
    assert!(set.active().is_validated());
    // The old address is dead and is given up at leisure.
    set.on_timeout(at(10_000), PTO);
    assert_eq!(events(&mut set), [abandoned(ACTIVE, key(1, 1), 2)]);
    assert_eq!(set.deadline(), None);
}

#[test]
fn another_host_starts_afresh_and_silence_leads_back() {
    let mut set = server();
    let id = move_to(&mut set, at(0), key(2, 1), 1000);
    assert_eq!(mark(&set.active().recovery), 2);
    events(&mut set);
    let (old, _) = challenge(&mut set, at(0), ACTIVE).unwrap();
    set.on_path_response(at(20), old, PTO);
    assert_eq!(events(&mut set), [PathEvent::Validated(ACTIVE)]);
    assert_eq!(set.active().id(), id, "that the old address answers proves nothing of the new");
    let mut attempts = 0;
    let mut now = at(0);
    while set.active().id() == id {
        attempts += usize::from(challenge(&mut set, now, id).is_some());
        now = set.deadline().unwrap();
        set.on_timeout(now, PTO);
    }
    assert!((3..=8).contains(&attempts), "{attempts} attempts");
    assert!(now >= at(2997), "no sooner than section 8.2.4 allows: {now:?}");
    assert_eq!(events(&mut set), [PathEvent::FellBack { from: id, to: ACTIVE }, abandoned(id, key(2, 1), 2)]);
    assert_eq!(mark(&set.active().recovery), 1);
}

#[test]
fn a_small_challenge_proves_the_address_only() {
    let mut set = server();
    let id = move_to(&mut set, at(0), key(2, 1), 100);
    let (data, expand) = challenge(&mut set, at(0), id).unwrap();
    assert!(!expand);
    events(&mut set);
    set.on_path_response(at(30), data, PTO);
    assert!(set.active().is_validated());
    assert_eq!(events(&mut set), []);
    let (data, expand) = challenge(&mut set, at(30), id).unwrap();
    assert!(expand);
    set.on_path_response(at(60), data, PTO);
    assert_eq!(events(&mut set), [PathEvent::Validated(id)]);
}

#[test]
fn both_addresses_dead() {
    let mut set = server();
    let id = move_to(&mut set, at(0), key(2, 1), 1200);
    set.on_timeout(at(9_000), PTO);
    let seen = events(&mut set);
    assert_eq!(seen[1], PathEvent::FellBack { from: id, to: ACTIVE }, "the last that was known to work");
    assert!(challenge(&mut set, at(9_000), ACTIVE).is_some());
    set.on_timeout(at(20_000), PTO);
    assert_eq!(events(&mut set), [PathEvent::NoPath]);
    assert_eq!(set.active().id(), ACTIVE);
}

#[test]
fn reordered_and_probing_packets_move_nothing() {
    let mut set = server();
    assert_eq!(set.on_datagram(&key(2, 1), 1200), Arrival::New);
    let id = set.adopt(at(0), key(2, 1), 1200, |_| recovery(2)).unwrap();
    set.on_non_probing(at(0), id, false, PTO);
    set.on_path_challenge(at(0), id, [7; 8], PTO);
    assert_eq!(set.active().id(), ACTIVE);
    assert_eq!(set.next_probe(0), Some(id));
    let (written, expand) = probe(&mut set, at(0), id, &mut SeededRng::new(1));
    assert!(expand);
    assert_eq!(written[..10], [0x1b, 7, 7, 7, 7, 7, 7, 7, 7, 0x1a], "an answer and a question");
    assert_eq!(set.next_probe(0), None);
}

#[test]
fn the_newest_challenges_are_answered() {
    let mut set = server();
    for n in 0..10 {
        set.on_path_challenge(at(0), ACTIVE, [n; 8], PTO);
    }
    set.on_path_challenge(at(0), ACTIVE, [9; 8], PTO);
    let (written, _) = probe(&mut set, at(0), ACTIVE, &mut SeededRng::new(1));
    let frames: Vec<u8> = written.chunks(9).map(|frame| frame[1]).collect();
    assert_eq!(frames, [6, 7, 8, 9]);
}

#[test]
fn challenges_on_a_path_that_is_not_active_get_an_initial_window_of_answers_in_a_round_trip() {
    let mut set = server();
    let id = move_to(&mut set, at(0), key(2, 1), 1200);
    let (data, _) = challenge(&mut set, at(0), id).unwrap();
    set.on_path_response(at(10), data, PTO);
    set.on_non_probing(at(10), ACTIVE, true, PTO);
    assert!(set.active_id() == ACTIVE && set.get(id).unwrap().is_validated());
    let mut answers = |from: u64, until: u64| {
        let mut datagrams = 0;
        for n in from..until {
            for ask in 0..20_u64 {
                set.on_path_challenge(at(n), id, (n * 20 + ask).to_be_bytes(), PTO);
                while set.next_probe(0) == Some(id) {
                    let (written, _) = probe(&mut set, at(n), id, &mut SeededRng::new(n));
                    datagrams += usize::from(written.first() == Some(&0x1b));
                }
            }
        }
        datagrams
    };
    assert_eq!(answers(20, 120), 10, "2000 questions in one round trip");
    assert_eq!(answers(120, 520), 40, "8000 in four more");
}

#[test]
fn a_client_tries_a_path_before_it_moves() {
    let mut set = PathSet::new(Side::Client, key(1, 1), recovery(1), false);
    let other = PathKey { socket: SocketId(1), ..key(1, 1) };
    let id = set.probe(at(0), other, PTO, |_| recovery(2)).unwrap();
    set.move_when_validated(Some(id));
    assert_eq!(set.next_probe(0), Some(id));
    let (data, expand) = challenge(&mut set, at(0), id).unwrap();
    assert!(expand);
    set.on_path_response(at(9), [0; 8], PTO);
    assert_eq!(events(&mut set), []);
    set.on_path_response(at(9), data, PTO);
    assert_eq!(events(&mut set), [PathEvent::Validated(id), PathEvent::Migrated { from: ACTIVE, to: id }]);
    assert_eq!(set.on_datagram(&other, 50), Arrival::Known(id));
}

#[test]
fn packets_of_one_datagram_are_of_one_path() {
    let mut set = server();
    assert_eq!(set.on_datagram(&key(2, 1), 200), Arrival::New);
    let id = set.adopt(at(0), key(2, 1), 200, |_| recovery(2)).unwrap();
    assert_eq!(set.adopt(at(0), key(2, 1), 200, |_| recovery(3)), Some(id));
    set.on_non_probing(at(0), id, true, PTO);
    assert_eq!(set.adopt(at(0), key(2, 1), 200, |_| recovery(4)), Some(id));
    assert_eq!((set.iter().count(), set.active().send_credit()), (2, 600));
}

proptest! {
    #[test]
    fn forged_addresses_are_bounded(
        steps in prop::collection::vec((0..12_u8, 1..4_u16, 0..1300_usize, any::<bool>(), 0..2000_u64), 0..200)
    ) {
        let mut set = server();
        let mut now = at(0);
        for (host, port, len, data, wait) in steps {
            now += Duration::from_millis(wait);
            let id = match set.on_datagram(&key(host, port), len) {
                Arrival::New => set.adopt(at(0), key(host, port), len, |_| recovery(u16::from(host))).unwrap(),
                Arrival::Known(id) => id,
                Arrival::Ignored => panic!("allowed"),
            };
            if data {
                set.on_non_probing(now, id, true, PTO);
                prop_assert_eq!(set.active().id(), id);
            }
            let answer = challenge(&mut set, now, id);
            if let Some((answer, _)) = answer.filter(|_| port == 1) {
                set.on_path_response(now, answer, PTO);
                prop_assert!(set.get(id).unwrap().is_validated());
            }
            if set.deadline().is_some_and(|deadline| deadline <= now) {
                set.on_timeout(now, PTO);
            }
            prop_assert!(set.deadline().is_none_or(|deadline| deadline > now), "no busy loop");
            prop_assert!(set.others.len() <= PathSet::MAX_OTHERS);
            events(&mut set);
            prop_assert!(set.events.is_empty());
        }
    }
}

// Recovery states that can be told apart.
fn recovery(mark: u16) -> PathRecovery {
    let mut settings = PathSettings::default();
    settings.id = mark;
    PathRecovery::new(Time::ZERO, &settings)
}

fn mark(recovery: &PathRecovery) -> u16 {
    recovery.id()
}
