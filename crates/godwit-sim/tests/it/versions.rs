//! Which version a connection ends up with (RFC 9368, RFC 9369).

use crate::{at, complete, complete_all, delayed, ms, seeds};
use godwit_link::{Loss, Probability, Reorder};
use godwit_sim::apps::{ExchangeClient, ExchangeServer, Policy};
use godwit_sim::scenario::Ending;
use godwit_sim::{Exchange, Scenario, Simulation};
use godwit_transport::{ConnectionError, TransportErrorCode};
use godwit_wire::header::{self, Packet, PacketType};
use godwit_wire::version;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

/// The long headers that went over the wires: versions, and types where there is one.
type Seen = BTreeSet<(u32, Option<PacketType>)>;

fn run(scenario: &Scenario) -> (Ending, Option<Duration>, Seen, [Option<u32>; 2]) {
    let seen = Rc::new(RefCell::new(Seen::new()));
    let mut simulation = scenario.build();
    let record = Rc::clone(&seen);
    simulation.network.fabric().set_filter(Some(Box::new(move |packet| {
        let mut rest = &packet.bytes[..];
        while let Ok(parsed) = header::parse(rest, 8) {
            let (kind, end) = match parsed {
                Packet::Long { version, packet_type, end, .. } => ((version, Some(packet_type)), end),
                Packet::VersionNegotiation { .. } => ((version::NEGOTIATION, None), rest.len()),
                _ => break,
            };
            record.borrow_mut().insert(kind);
            rest = &rest[end..];
        }
        true
    })));
    simulation.run_to_completion();
    let versions = versions(&mut simulation);
    let report = simulation.finish();
    let seen = seen.borrow().clone();
    (report.ending, report.connected_after, seen, versions)
}

/// What both ends call the version of the connection.
fn versions(simulation: &mut Simulation) -> [Option<u32>; 2] {
    let client = simulation.network.act(simulation.client, |app: &mut ExchangeClient, cx| {
        app.conn.and_then(|conn| cx.endpoint.connection(conn)).map(|conn| conn.version())
    });
    let server = simulation.network.act(simulation.server, |app: &mut ExchangeServer, cx| {
        app.accepted.last().and_then(|conn| cx.endpoint.connection(*conn)).map(|conn| conn.version())
    });
    [client.flatten(), server.flatten()]
}

fn exchange(seed: u64) -> Scenario {
    let mut scenario =
        Scenario::new(seed).both_ways(delayed(10)).plan(vec![Exchange::two_way(50_000, 50_000)], 1);
    scenario.close_when_done = false;
    scenario.limit = Duration::from_secs(60);
    scenario
}

#[test]
fn both_versions_work() {
    for number in [version::V1, version::V2] {
        let mut scenario = exchange(3);
        scenario.version = number;
        let (ending, connected, seen, versions) = run(&scenario);
        assert_eq!((ending, connected), (Ending::Complete, Some(ms(20))));
        assert!(seen.iter().all(|(version, _)| *version == number), "{seen:x?}");
        assert_eq!(versions, [Some(number); 2]);
    }
}

#[test]
fn versions_from_before_the_standard_work_where_both_ends_ask_for_them() {
    for number in [version::DRAFT_29, version::MSQUIC_1] {
        for policy in [Policy::Accept, Policy::Retry] {
            let mut scenario = exchange(3);
            (scenario.version, scenario.policy) = (number, policy);
            scenario.server_versions = vec![number];
            let (ending, _, seen, versions) = run(&scenario);
            assert_eq!((ending, versions), (Ending::Complete, [Some(number); 2]));
            assert!(seen.iter().all(|(version, _)| *version == number), "{seen:x?}");
        }
    }
}

#[test]
fn they_are_not_spoken_otherwise() {
    let mut scenario = exchange(3);
    scenario.version = version::DRAFT_29;
    let (ending, connected, seen, versions) = run(&scenario);
    // The client offers the others as well.
    assert_eq!((ending, connected), (Ending::Complete, Some(ms(40))));
    assert!(seen.contains(&(version::NEGOTIATION, None)));
    assert_eq!(versions, [Some(version::V1); 2]);
}

#[test]
fn a_client_that_begins_with_a_reserved_version_is_told_the_others() {
    let mut scenario = exchange(3);
    scenario.version = 0x1a2a_3a4a;
    let (ending, connected, seen, versions) = run(&scenario);
    assert_eq!((ending, connected), (Ending::Complete, Some(ms(40))));
    assert!(seen.contains(&(version::NEGOTIATION, None)));
    assert_eq!(versions, [Some(version::V1); 2]);
}

#[test]
fn a_server_moves_its_clients_without_losing_time() {
    for (from, to) in [(version::V1, version::V2), (version::V2, version::V1)] {
        for policy in [Policy::Accept, Policy::Retry] {
            let mut scenario = exchange(4);
            (scenario.version, scenario.upgrade_to, scenario.policy) = (from, Some(to), policy);
            let (ending, connected, seen, versions) = run(&scenario);
            let round_trips = if policy == Policy::Retry { 2 } else { 1 };
            assert_eq!((ending, connected), (Ending::Complete, Some(ms(20 * round_trips))));
            assert_eq!(versions, [Some(to); 2]);
            assert!(seen.contains(&(from, Some(PacketType::Initial))));
            assert!(seen.contains(&(to, Some(PacketType::Handshake))));
            assert!(!seen.contains(&(from, Some(PacketType::Handshake))), "{seen:x?}");
        }
    }
}

#[test]
fn a_server_that_stays_is_the_default() {
    let (ending, _, seen, versions) = run(&exchange(5));
    assert_eq!((ending, versions), (Ending::Complete, [Some(version::V1); 2]));
    assert!(seen.iter().all(|(version, _)| *version == version::V1), "{seen:x?}");
}

#[test]
fn the_move_survives_loss_reordering_and_key_updates() {
    complete_all(
        seeds(30, 1_000),
        |seed| {
            let mut link = delayed(20);
            link.loss = Loss::Independent(Probability::percent(10.0));
            link.reorder = Some(Reorder { probability: Probability::percent(10.0), extra: ms(15) });
            let mut scenario = Scenario::new(seed)
                .both_ways(link)
                .transport(|transport| {
                    transport.handshake_timeout = Duration::from_secs(60);
                    transport.key_update_after = Some(20);
                })
                .plan(vec![Exchange::two_way(100_000, 100_000)], 1);
            scenario.upgrade_to = Some(version::V2);
            if seed % 3 == 0 {
                scenario.policy = Policy::Retry;
            }
            scenario
        },
        |report| assert!(report.client_stats.key_updates > 0),
    );
}

#[test]
fn a_client_begins_again_in_a_version_that_the_server_speaks() {
    for (ours, theirs) in [(version::V1, version::V2), (version::V2, version::V1)] {
        let mut scenario = exchange(6);
        scenario.version = ours;
        scenario.server_versions = vec![theirs];
        let (ending, connected, seen, versions) = run(&scenario);
        assert_eq!((ending, connected), (Ending::Complete, Some(ms(40))), "{seen:x?}");
        assert_eq!(versions, [Some(theirs); 2]);
        assert!(seen.contains(&(version::NEGOTIATION, None)));
        let mut simulation = scenario.build();
        simulation.run_to_completion();
        assert_eq!(simulation.stats().0.packets_received_by_type.version_negotiation, 1);
    }
}

#[test]
fn beginning_again_survives_loss() {
    complete_all(
        seeds(20, 500),
        |seed| {
            let mut link = delayed(20);
            link.loss = Loss::Independent(Probability::percent(15.0));
            let mut scenario = Scenario::new(seed)
                .both_ways(link)
                .transport(|transport| transport.handshake_timeout = Duration::from_secs(60))
                .plan(vec![Exchange::request(100, 5_000)], 1);
            scenario.server_versions = vec![version::V2];
            scenario
        },
        |_| {},
    );
}

#[test]
fn a_forged_list_of_versions_cannot_choose_for_both_ends() {
    // The server speaks both, and the client likes version 1 better; somebody claims that there is only 2.
    let scenario = exchange(7);
    let mut simulation = scenario.build();
    let ids = Rc::new(RefCell::new(None));
    let note = Rc::clone(&ids);
    simulation.network.fabric().set_filter(Some(Box::new(move |packet| {
        if let Ok(Packet::Long { dcid, scid, .. }) = header::parse(&packet.bytes[..], 8) {
            note.borrow_mut().get_or_insert((dcid, scid));
        }
        true
    })));
    simulation.network.run_until(at(ms(1)), |_| false);
    let (dcid, scid) = ids.borrow().unwrap();
    let mut forged = vec![0xc0, 0, 0, 0, 0];
    for cid in [scid, dcid] {
        forged.push(cid.len() as u8);
        forged.extend_from_slice(cid.as_bytes());
    }
    forged.extend_from_slice(&version::V2.to_be_bytes());
    simulation.network.inject(simulation.client, scenario.server_address(), &forged);
    let report = simulation.finish();
    let Some(ConnectionError::Transport(error)) = report.client_closed else { panic!("{report:#?}") };
    assert_eq!(error.code, TransportErrorCode::VERSION_NEGOTIATION_ERROR, "{error}");
}

#[test]
fn packets_vary_in_what_has_no_meaning() {
    let quic_bits = |client: bool, server: bool| {
        let mut scenario = exchange(8);
        (scenario.client.grease_quic_bit, scenario.server.grease_quic_bit) = (client, server);
        let mut simulation = scenario.build();
        let zeros = Rc::new(RefCell::new([0, 0]));
        let (count, from_client) = (Rc::clone(&zeros), simulation.client);
        simulation.network.fabric().set_filter(Some(Box::new(move |packet| {
            if packet.bytes[0] & 0x40 == 0 {
                count.borrow_mut()[usize::from(packet.from != from_client)] += 1;
            }
            true
        })));
        assert_eq!(simulation.finish().ending, Ending::Complete);
        zeros.borrow().map(|zeros| zeros > 5)
    };
    assert_eq!(quic_bits(true, true), [true, true]);
    assert_eq!(quic_bits(true, false), [false, true], "only the client takes such packets");
    assert_eq!(quic_bits(false, true), [true, false]);
}

#[test]
fn the_spin_bit_shows_round_trips() {
    let mut scenario = exchange(9).plan(vec![Exchange::request(100, 2_000_000)], 1);
    scenario = scenario.transport(|transport| {
        transport.spin_bit = true;
        transport.grease_quic_bit = false;
    });
    let mut simulation = scenario.build();
    let edges = Rc::new(RefCell::new((None, Vec::new())));
    let (record, server) = (Rc::clone(&edges), simulation.server);
    simulation.network.fabric().set_filter(Some(Box::new(move |packet| {
        let (last, times) = &mut *record.borrow_mut();
        if packet.from == server && packet.bytes[0] & 0x80 == 0 {
            let spin = packet.bytes[0] & 0x20 != 0;
            if last.replace(spin).is_some_and(|last| last != spin) {
                times.push(packet.now);
            }
        }
        true
    })));
    let report = simulation.finish();
    assert_eq!(report.ending, Ending::Complete);
    let times = &edges.borrow().1;
    let round_trips = report.duration.as_millis() / 20;
    assert!(times.len() as u128 + 4 >= round_trips, "{} edges in {round_trips} round trips", times.len());
    // It cannot be faster than the path.
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= ms(19)), "{times:?}");
    complete(&Scenario::new(10).both_ways(delayed(10)));
}
