//! Beginning a connection: versions, Retry, and those who must not be answered too much.

use crate::{at, complete_all, delayed, ms, seeds};
use godwit_link::{LinkConfig, Loss, Probability};
use godwit_sim::apps::{ExchangeClient, ExchangeServer, Policy};
use godwit_sim::scenario::Ending;
use godwit_sim::{Exchange, HostId, Scenario, Simulation};
use godwit_transport::{ConnectionError, TailPolicy, TransportConfig, TransportErrorCode};
use godwit_wire::version;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

#[test]
fn a_handshake_takes_one_round_trip() {
    let mut simulation = Scenario::new(1).both_ways(delayed(10)).build();
    let report = simulation.finish();
    assert_eq!(report.ending, Ending::Complete);
    assert_eq!(report.connected_after, Some(ms(20)));
    assert!(report.packets <= 16, "{} packets", report.packets);
}

#[test]
fn the_handshake_is_confirmed_after_two() {
    let mut scenario = Scenario::new(1).both_ways(delayed(10));
    scenario.close_when_done = false;
    let mut simulation = scenario.build();
    simulation.network.run_until(at(ms(100)), |_| false);
    assert_eq!(simulation.client_app().unwrap().confirmed_at, Some(at(ms(40))));
    assert_eq!(simulation.server_app().unwrap().confirmed.first().unwrap().1, at(ms(30)));
}

/// Acknowledgements are delayed by up to 25 ms, and probe timeouts are longer: over a path that is shorter than all of
/// them any of them would show. As many at once as a load generator has under way.
#[test]
fn no_handshake_without_loss_waits_for_a_timer() {
    for delay in [Duration::from_micros(20), Duration::from_micros(500), ms(30)] {
        let mut scenario = Scenario::new(1).both_ways(LinkConfig::delayed(delay));
        scenario.close_when_done = false;
        let mut simulation = scenario.build();
        let (network, server) = (&mut simulation.network, simulation.server);
        let mut clients = vec![simulation.client];
        clients.extend((3..10).map(|number| scenario.add_client(network, server, number).unwrap().0));
        network.run_until(at(ms(1_000)), |_| false);
        for client in clients {
            let app = network.app::<ExchangeClient>(client).unwrap();
            let times = (app.connected_at, app.confirmed_at);
            assert_eq!(times, (Some(at(2 * delay)), Some(at(4 * delay))), "{delay:?}");
        }
        let confirmed = &network.app::<ExchangeServer>(server).unwrap().confirmed;
        assert_eq!(confirmed.len(), 8);
        assert!(confirmed.iter().all(|(_, when)| *when == at(3 * delay)), "{confirmed:?}");
    }
}

/// Bad luck must not look like a defect: no time-out before many probes are lost in a row.
fn patient(transport: &mut TransportConfig) {
    transport.handshake_timeout = Duration::from_secs(300);
    transport.max_idle_timeout = Duration::from_secs(300);
}

#[test]
fn handshakes_survive_heavy_loss() {
    complete_all(
        seeds(40, 2_000),
        |seed| {
            let loss = Loss::Independent(Probability::percent(25.0));
            let mut link = delayed(20);
            link.loss = loss;
            Scenario::new(seed)
                .both_ways(link)
                .transport(patient)
                .plan(vec![Exchange::request(100, 1_000)], 1)
        },
        |_| {},
    );
}

#[test]
fn retry_costs_a_round_trip() {
    let mut scenario = Scenario::new(2).both_ways(delayed(10)).plan(vec![Exchange::request(100, 5_000)], 1);
    scenario.policy = Policy::Retry;
    let mut simulation = scenario.build();
    let report = simulation.finish();
    assert_eq!(report.ending, Ending::Complete, "{report:#?}");
    assert_eq!(report.connected_after, Some(ms(40)));
    assert_eq!(simulation.server_app().unwrap().retried, 1);
    assert_eq!(report.client_stats.packets_received_by_type.retry, 1);
    assert_eq!(report.client_stats.packets_received, report.server_stats.packets_sent + 1);
}

#[test]
fn what_is_lost_after_a_retry_is_repeated_as_soon_as_the_retry_came() {
    let mut scenario = Scenario::new(2).both_ways(delayed(50));
    scenario.policy = Policy::Retry;
    let plain = TailPolicy::rfc_9002();
    let mut simulation = scenario.transport(|transport| transport.tail = plain).build();
    let (client, mut sent) = (simulation.client, 0);
    simulation.network.fabric().set_filter(Some(Box::new(move |packet| {
        sent += u32::from(packet.from == client);
        sent != 2
    })));
    let report = simulation.finish();
    // Two round trips, and three of 100 ms until the second Initial packet is sent again: not three of 333 ms.
    assert_eq!((report.ending, report.connected_after), (Ending::Complete, Some(ms(500))));
}

#[test]
fn retry_survives_loss_and_either_version() {
    complete_all(
        seeds(20, 500),
        |seed| {
            let mut link = delayed(20);
            link.loss = Loss::Independent(Probability::percent(10.0));
            let mut scenario = Scenario::new(seed)
                .both_ways(link)
                .transport(patient)
                .plan(vec![Exchange::request(100, 5_000)], 1);
            scenario.policy = Policy::Retry;
            scenario.version = if seed % 2 == 0 { version::V1 } else { version::V2 };
            scenario
        },
        |_| {},
    );
}

#[test]
fn a_server_without_a_common_version_is_given_up() {
    let mut scenario = Scenario::new(5).both_ways(delayed(10)).plan(vec![Exchange::request(10, 10)], 1);
    scenario.server_versions = vec![0xff00_1234];
    let report = scenario.run();
    assert_eq!(report.ending, Ending::Broken(Some(ConnectionError::VersionMismatch)), "{report:#?}");
    assert!(report.at_rest || report.duration < ms(100));
}

#[test]
fn a_forged_version_negotiation_does_no_harm_later() {
    // Once a packet of the server has been processed, Version Negotiation is ignored.
    let mut simulation =
        Scenario::new(6).both_ways(delayed(10)).plan(vec![Exchange::request(10, 10)], 1).build();
    let scenario = Scenario::new(6);
    simulation.network.run_until(at(ms(25)), |_| false);
    let mut forged = vec![0x80, 0, 0, 0, 0, 8];
    forged.extend_from_slice(&[7; 8]);
    forged.extend_from_slice(&[8, 9, 9, 9, 9, 9, 9, 9, 9, 0xff, 0, 0, 1]);
    simulation.network.inject(simulation.client, scenario.server_address(), &forged);
    assert_eq!(simulation.finish().ending, Ending::Complete);
}

#[test]
fn unproved_addresses_get_three_times_what_they_sent() {
    // Only the client's first datagram arrives for five seconds.
    let mut simulation = Scenario::new(7)
        .both_ways(delayed(10))
        .transport(|transport| transport.handshake_timeout = Duration::from_secs(30))
        .plan(vec![Exchange::request(10, 10)], 1)
        .build();
    let (client, server) = (simulation.client, simulation.server);
    let bytes = Rc::new(RefCell::new((0_usize, 0_usize)));
    let count = Rc::clone(&bytes);
    simulation.network.fabric().set_filter(Some(Box::new(move |packet| {
        let (up, down) = &mut *count.borrow_mut();
        if packet.from == client && *up > 0 && packet.now < at(Duration::from_secs(5)) {
            return false;
        }
        if packet.from == client {
            *up += packet.bytes.len();
        } else if packet.from == server && packet.now < at(Duration::from_secs(5)) {
            *down += packet.bytes.len();
            assert!(*down <= 3 * *up, "{down} bytes for {up}");
        }
        true
    })));
    let report = simulation.finish();
    assert_eq!(report.ending, Ending::Complete, "{report:#?}");
    // The server tried more than once, and within its bounds.
    assert!(bytes.borrow().1 > 1_200, "{} bytes", bytes.borrow().1);
}

#[test]
fn a_server_that_says_no_is_believed() {
    let mut scenario = Scenario::new(8).both_ways(delayed(10));
    scenario.policy = Policy::Refuse;
    let report = scenario.run();
    let refused = TransportErrorCode::CONNECTION_REFUSED;
    match report.ending {
        Ending::Broken(Some(ConnectionError::PeerTransport { code, .. })) => assert_eq!(code, refused),
        other => panic!("{other:?}"),
    }
    assert_eq!(report.duration, ms(20));
}

#[test]
fn a_server_that_says_nothing_is_given_up() {
    let mut scenario = Scenario::new(9).both_ways(delayed(10));
    scenario.policy = Policy::Ignore;
    let mut simulation = scenario.build();
    let report = simulation.finish();
    assert_eq!(report.ending, Ending::Broken(Some(ConnectionError::TimedOut)));
    assert!(report.duration >= Duration::from_secs(10) && report.duration < Duration::from_secs(11));
    let rest = simulation.network.run_for(Duration::from_secs(60));
    assert_eq!(rest, godwit_sim::Stop::Idle);
    assert!(simulation.network.app::<ExchangeClient>(simulation.client).unwrap().connected_at.is_none());
}

#[test]
fn a_link_too_narrow_for_quic_is_given_up() {
    let mut link = delayed(10);
    link.mtu = Some(1_200);
    let report = Scenario::new(10).both_ways(link).run();
    assert_eq!(report.ending, Ending::Broken(Some(ConnectionError::TimedOut)));
}

/// Takes out the datagrams of one side whose numbers are given, counting from 0.
fn drop_from(simulation: &mut Simulation, side: HostId, numbers: &'static [u32]) {
    let mut number = 0;
    simulation.network.fabric().set_filter(Some(Box::new(move |packet| {
        let ours = packet.from == side;
        number += u32::from(ours);
        !(ours && numbers.contains(&(number - 1)))
    })));
}

#[test]
fn a_lost_end_of_the_handshake_is_repeated_though_the_window_is_full() {
    // The client's Finished is lost, and what it sends behind it fills the window: the server cannot read
    // it, and so does not acknowledge it, before it has the Finished.
    let scenario = Scenario::new(11).both_ways(delayed(10)).plan(vec![Exchange::upload(200_000)], 1);
    let mut simulation = scenario.build();
    let client = simulation.client;
    drop_from(&mut simulation, client, &[1]);
    let report = simulation.finish();
    assert_eq!(report.ending, Ending::Complete, "{report:#?}");
    assert!(report.duration < ms(600), "{:?}", report.duration);
}

#[test]
fn each_probe_carries_the_whole_message() {
    // The first flight is lost, and the first of the two probes a second later: the other must do.
    let scenario = Scenario::new(12).both_ways(delayed(10)).plan(vec![Exchange::request(10, 10)], 1);
    let mut simulation = scenario.build();
    let client = simulation.client;
    drop_from(&mut simulation, client, &[0, 1]);
    let report = simulation.finish();
    assert_eq!(report.ending, Ending::Complete, "{report:#?}");
    assert!(report.connected_after.unwrap() < ms(1_500), "{:?}", report.connected_after);
}

#[test]
fn a_damaged_retry_token_is_not_held_against_the_client() {
    let mut scenario = Scenario::new(13).both_ways(delayed(10)).plan(vec![Exchange::request(10, 10)], 1);
    scenario.policy = Policy::Retry;
    let mut simulation = scenario.build();
    let client = simulation.client;
    let mut number = 0;
    simulation.network.fabric().set_filter(Some(Box::new(move |packet| {
        number += u32::from(packet.from == client);
        if packet.from == client && number == 2 {
            // Behind the version and the two connection ids: the token.
            packet.bytes[40] ^= 1;
        }
        true
    })));
    assert_eq!(simulation.finish().ending, Ending::Complete);
}
