//! Moves by the client's own will, to another socket, another network or the server's preferred address, and
//! moves of all kinds under load.

use crate::{at, delayed, judge_all, ms, outage, seeds};
use godwit_base::{SocketId, Time};
use godwit_link::{DuplexConfig, EcnHandling, LinkConfig, Loss, Probability, Rate, Translation};
use godwit_sim::fabric::Filtered;
use godwit_sim::scenario::Ending;
use godwit_sim::{Exchange, ExchangeClient, HostId, Network, Report, Scenario, Simulation, WireId};
use godwit_transport::{
    CongestionAlgorithm, ConnectionStats, EcnFailure, EcnState, MigrateError, TransportConfig,
};
use godwit_transport::{PathInfo, PathState};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

const MIB: u64 = 1 << 20;

fn link(megabits: u64, delay_ms: u64) -> LinkConfig {
    let rate = Rate::megabits(megabits);
    LinkConfig::limited(rate, ms(delay_ms), 2 * rate.bytes_in(ms(2 * delay_ms)).max(15_000))
}

fn migrate(network: &mut Network, client: HostId, socket: SocketId) -> Result<(), MigrateError> {
    let moved = network.act(client, |app: &mut ExchangeClient, cx| {
        let now = cx.now;
        app.conn.and_then(|conn| cx.endpoint.with(conn, |conn| conn.migrate(now, socket, None)))
    });
    moved.flatten().unwrap()
}

fn paths(simulation: &mut Simulation) -> Vec<PathInfo> {
    let paths = simulation.network.act(simulation.client, |app: &mut ExchangeClient, cx| {
        let conn = app.conn.and_then(|conn| cx.endpoint.connection(conn));
        conn.map(|conn| conn.paths().collect::<Vec<_>>())
    });
    paths.flatten().unwrap()
}

/// What became of the client's path with this number, in order.
fn states(simulation: &Simulation, path: u32) -> Vec<(Time, PathState)> {
    let news = &simulation.client_app().unwrap().path_news;
    news.iter().filter(|(_, update)| update.id.0 == path).map(|(at, update)| (*at, update.state)).collect()
}

/// A second socket of the client, on a network of its own.
fn second_network(simulation: &mut Simulation, link: LinkConfig) -> (SocketId, WireId) {
    let Simulation { network, client, server, .. } = simulation;
    let wire = network.add_wire(*client, *server, DuplexConfig::symmetric(link)).unwrap();
    let first = network.fabric().address(*client).unwrap();
    let address = SocketAddr::new([172, 16, 0, 2].into(), first.port());
    let socket = network.fabric().add_socket(*client, address, wire).unwrap();
    (socket, wire)
}

/// Notes which connection ids of 8 bytes 1-RTT packets carry between which sockets.
type Seen = Rc<RefCell<BTreeMap<(HostId, SocketId, SocketAddr), BTreeSet<Vec<u8>>>>>;

fn watch_ids(network: &mut Network) -> Seen {
    let seen = Seen::default();
    let notes = Rc::clone(&seen);
    network.fabric().set_filter(Some(Box::new(move |packet: Filtered<'_>| {
        if packet.bytes.first().is_some_and(|first| first & 0x80 == 0) {
            let id = packet.bytes[1..9].to_vec();
            notes.borrow_mut().entry((packet.from, packet.socket, packet.remote)).or_default().insert(id);
        }
        true
    })));
    seen
}

fn assert_no_id_on_two_paths(seen: &Seen) {
    let seen = seen.borrow();
    let mut owners: BTreeMap<&[u8], (HostId, SocketId, SocketAddr)> = BTreeMap::new();
    for (path, ids) in seen.iter() {
        for id in ids {
            let other = owners.insert(id, *path);
            assert_eq!(other, None, "{path:?} and {other:?} share an id");
        }
    }
}

#[test]
fn a_client_moves_to_another_network_while_data_goes_on() {
    for plan in [Exchange::download(24 * MIB), Exchange::upload(24 * MIB)] {
        let mut simulation = Scenario::new(1).both_ways(link(20, 40)).plan(vec![plan], 1).build();
        let seen = watch_ids(&mut simulation.network);
        let (socket, _) = second_network(&mut simulation, link(50, 5));
        simulation.network.run_until(at(ms(1_000)), |_| false);
        migrate(&mut simulation.network, simulation.client, socket).unwrap();
        let before = simulation.stats();
        simulation.network.run_until(at(ms(1_012)), |_| false);
        let after = simulation.stats();
        let received = |stats: ConnectionStats| stats.datagrams_received;
        assert!(received(after.0).max(received(after.1)) > received(before.0).max(received(before.1)));
        simulation.network.run_until(at(ms(3_000)), |_| false);
        let now = paths(&mut simulation);
        assert_eq!(now.len(), 1, "the old path is forgotten: {now:?}");
        assert!(now[0].active && now[0].validated && now[0].key.socket == socket, "{now:?}");
        assert!(now[0].rtt < ms(70), "the round-trip time is that of the new network: {now:?}");
        let report = simulation.finish();
        assert_eq!(report.ending, Ending::Complete, "{plan:?}: {report:#?}");
        let told = states(&simulation, 1);
        assert_eq!(told[0], (at(ms(1_000)), PathState::Probing));
        assert!(told[1..].iter().all(|(time, _)| *time < at(ms(1_015))), "one round trip: {told:?}");
        assert_eq!(told.last().unwrap().1, PathState::Active);
        assert_eq!(states(&simulation, 0).last().unwrap().1, PathState::Abandoned);
        assert_eq!(simulation.client_app().unwrap().path_changes, 1);
        assert_eq!(simulation.server_app().unwrap().path_changes, 1);
        assert_no_id_on_two_paths(&seen);
    }
}

#[test]
fn the_old_network_may_be_gone_already() {
    let mut dead = link(20, 20);
    dead.outages = vec![outage(ms(1_000), ms(900_000))];
    for plan in [Exchange::download(4 * MIB), Exchange::upload(4 * MIB)] {
        let mut simulation = Scenario::new(2).both_ways(dead.clone()).plan(vec![plan], 1).build();
        let (socket, _) = second_network(&mut simulation, link(20, 20));
        simulation.network.run_until(at(ms(1_100)), |_| false);
        migrate(&mut simulation.network, simulation.client, socket).unwrap();
        let report = simulation.finish();
        assert_eq!(report.ending, Ending::Complete, "{plan:?}: {report:#?}");
        assert!(report.duration < Duration::from_secs(4), "{:?}", report.duration);
    }
}

#[test]
fn a_network_that_leads_nowhere_is_not_moved_to() {
    let mut simulation =
        Scenario::new(3).both_ways(link(20, 20)).plan(vec![Exchange::two_way(12 * MIB, 12 * MIB)], 1).build();
    let mut dead = link(20, 20);
    dead.outages = vec![outage(ms(0), ms(900_000))];
    let (socket, _) = second_network(&mut simulation, dead);
    simulation.network.run_until(at(ms(500)), |_| false);
    let before = simulation.stats().0.packets_lost;
    migrate(&mut simulation.network, simulation.client, socket).unwrap();
    simulation.network.run_until(at(ms(4_000)), |_| false);
    let told: Vec<_> = states(&simulation, 1).into_iter().map(|(_, state)| state).collect();
    assert_eq!(told, [PathState::Probing, PathState::Abandoned]);
    assert!(simulation.stats().0.packets_lost - before < 200, "lost probes are not congestion");
    let report = simulation.finish();
    assert_eq!(report.ending, Ending::Complete, "{report:#?}");
    assert_eq!(simulation.client_app().unwrap().path_changes, 0);
}

#[test]
fn a_slow_path_that_is_tried_changes_nothing_about_the_fast_one() {
    // The answer comes 600 ms late; a fast path that is tried from a slow one is the case before.
    for (active, tried) in [(5, 300), (150, 2)] {
        let mut simulation =
            Scenario::new(4).both_ways(link(20, active)).plan(vec![Exchange::download(6 * MIB)], 1).build();
        let (socket, wire) = second_network(&mut simulation, link(20, tried));
        simulation.network.run_until(at(ms(1_500)), |_| false);
        migrate(&mut simulation.network, simulation.client, socket).unwrap();
        // Called off at once: the path is still tried once.
        migrate(&mut simulation.network, simulation.client, SocketId(0)).unwrap();
        let report = simulation.finish();
        assert_eq!(report.ending, Ending::Complete, "{report:#?}");
        assert_eq!(simulation.client_app().unwrap().path_changes, 0);
        let least = ms(2 * active);
        for min in [report.client_stats.min_rtt, report.server_stats.min_rtt] {
            assert!(min >= least && min < least + ms(5), "{min:?} for a path of {least:?}");
        }
        assert_eq!(simulation.network.fabric().duplex(wire).unwrap().up.counters().lost, 0);
    }
}

#[test]
fn a_server_may_forbid_moves_and_only_clients_make_them() {
    let mut scenario = Scenario::new(5).both_ways(delayed(10)).plan(vec![Exchange::download(MIB)], 1);
    scenario.server.migration.allowed = false;
    let mut simulation = scenario.build();
    let (socket, _) = second_network(&mut simulation, delayed(10));
    simulation.network.run_until(at(ms(100)), |_| false);
    assert_eq!(migrate(&mut simulation.network, simulation.client, socket), Err(MigrateError::Unsupported));
    let refused = simulation.network.act(simulation.server, |app: &mut godwit_sim::ExchangeServer, cx| {
        let now = cx.now;
        cx.endpoint.with(app.accepted[0], |conn| conn.migrate(now, SocketId(0), None))
    });
    assert_eq!(refused.flatten(), Some(Err(MigrateError::NotClient)));
    assert_eq!(simulation.finish().ending, Ending::Complete);
}

#[test]
fn a_wish_from_before_the_handshake_is_followed_after_it() {
    let mut simulation = Scenario::new(6).both_ways(delayed(20)).plan(vec![Exchange::upload(MIB)], 1).build();
    let (socket, _) = second_network(&mut simulation, delayed(10));
    simulation.network.run_until(at(ms(10)), |_| false);
    migrate(&mut simulation.network, simulation.client, socket).unwrap();
    let report = simulation.finish();
    assert_eq!(report.ending, Ending::Complete, "{report:#?}");
    let confirmed = simulation.client_app().unwrap().confirmed_at.unwrap();
    assert!(states(&simulation, 1)[0].0 >= confirmed);
    assert_eq!(simulation.server_app().unwrap().path_changes, 1);
}

/// A scenario whose server prefers another address.
fn preferring(seed: u64, listens: bool) -> (Scenario, Simulation, SocketAddr) {
    let preferred = "10.0.0.9:4433".parse().unwrap();
    let mut scenario = Scenario::new(seed).both_ways(link(20, 20)).plan(vec![Exchange::two_way(MIB, MIB)], 1);
    scenario.server.migration.preferred_address = (Some(preferred), None);
    // Which does not speak of the preferred one.
    scenario.server.migration.allowed = false;
    let mut simulation = scenario.build();
    if listens {
        let Simulation { network, server, wire, .. } = &mut simulation;
        network.fabric().add_socket(*server, preferred.into(), *wire).unwrap();
    }
    (scenario, simulation, preferred.into())
}

#[test]
fn the_servers_preferred_address_is_moved_to() {
    let (_, mut simulation, preferred) = preferring(7, true);
    let seen = watch_ids(&mut simulation.network);
    let report = simulation.finish();
    assert_eq!(report.ending, Ending::Complete, "{report:#?}");
    let told = states(&simulation, 1);
    assert_eq!(told.last().unwrap().1, PathState::Active, "{told:?}");
    let news = &simulation.client_app().unwrap().path_news;
    assert!(news.iter().any(|(_, update)| update.key.remote == preferred));
    assert_eq!(simulation.server_app().unwrap().path_changes, 1);
    let from_preferred = (simulation.server, SocketId(1));
    assert!(seen.borrow().keys().any(|(host, socket, _)| (*host, *socket) == from_preferred));
    assert_no_id_on_two_paths(&seen);
}

#[test]
fn a_preferred_address_that_does_not_answer_or_is_not_wanted_is_left_alone() {
    let (_, mut simulation, _) = preferring(8, false);
    let report = simulation.finish();
    assert_eq!(report.ending, Ending::Complete, "{report:#?}");
    assert_eq!(simulation.client_app().unwrap().path_changes, 0);
    let (mut scenario, _, preferred) = preferring(9, true);
    scenario.client.migration.follow_preferred_address = false;
    let mut simulation = scenario.build();
    let Simulation { network, server, wire, .. } = &mut simulation;
    network.fabric().add_socket(*server, preferred, *wire).unwrap();
    assert_eq!(simulation.finish().ending, Ending::Complete);
    assert_eq!(simulation.client_app().unwrap().path_news, []);
}

/// How a transfer ends that moves to another network after a second.
fn move_between(first: LinkConfig, second: LinkConfig, ecn: bool) -> (Report, Simulation) {
    let plan = vec![Exchange::two_way(8 * MIB, 8 * MIB)];
    let scenario = Scenario::new(11).both_ways(first).plan(plan, 1);
    let with = |transport: &mut TransportConfig| {
        transport.ecn = ecn;
        // One whose transfers take the same time however few bits are different.
        transport.congestion = CongestionAlgorithm::Cubic.into();
        (transport.initial_stream_window, transport.initial_connection_window) = (16 << 20, 32 << 20);
    };
    let mut simulation = scenario.transport(with).build();
    let (socket, _) = second_network(&mut simulation, second);
    simulation.network.run_until(at(ms(1_000)), |_| false);
    migrate(&mut simulation.network, simulation.client, socket).unwrap();
    let report = simulation.finish();
    assert_eq!(report.ending, Ending::Complete, "{report:#?}");
    assert_eq!(simulation.server_app().unwrap().path_changes, 1);
    (report, simulation)
}

#[test]
fn marks_prove_themselves_anew_on_every_network() {
    use EcnHandling::{Bleach, Drop, Pass, Remark};
    let failed = EcnState::Failed;
    for (first, second, ending) in [
        (Pass, Pass, EcnState::Capable),
        (Pass, Bleach, failed(EcnFailure::Bleached)),
        (Pass, Remark, failed(EcnFailure::Remarked)),
        (Pass, Drop, failed(EcnFailure::BlackHole)),
        (Bleach, Pass, EcnState::Capable),
        (Drop, Pass, EcnState::Capable),
    ] {
        let with = |ecn| {
            let mut link = link(20, 30);
            link.ecn = ecn;
            link
        };
        let (report, _) = move_between(with(first), with(second), true);
        let states = (report.client_stats.ecn, report.server_stats.ecn);
        assert_eq!(states, (ending, ending), "{first:?}, then {second:?}");
        let (without, _) = move_between(with(first), with(second), false);
        let allowed = without.duration + ms(60);
        assert!(report.duration <= allowed, "{:?} where {allowed:?} is allowed", report.duration);
        let ptos = |report: &Report| report.client_stats.ptos + report.server_stats.ptos;
        assert!(ptos(&report) <= ptos(&without), "{first:?}, then {second:?}: {report:#?}");
    }
}

#[test]
fn every_network_has_an_mtu_of_its_own() {
    let with = |mtu| {
        let mut link = link(20, 30);
        link.mtu = Some(mtu);
        link
    };
    for (first, second, found) in [(1_500, 1_280, 1_280 - 28), (1_280, 1_500, 1_500 - 28)] {
        let (report, _) = move_between(with(first), with(second), true);
        for stats in [report.client_stats, report.server_stats] {
            assert!(stats.mtu <= found && stats.mtu + 16 > found, "{} after {first}: {found}", stats.mtu);
            assert_eq!(stats.mtu_search.black_holes, 0, "nothing too large is sent there: {stats:?}");
        }
    }
}

#[test]
fn moves_succeed_whatever_is_lost() {
    judge_all(seeds(20, 500), |seed| {
        let loss = Loss::Independent(Probability::percent(5.0));
        let lossy = |megabits, delay| {
            let mut link = link(megabits, delay);
            link.loss = loss;
            link
        };
        let plan = vec![Exchange::two_way(MIB, MIB)];
        let mut simulation = Scenario::new(seed).both_ways(lossy(10, 15)).plan(plan, 1).build();
        let seen = watch_ids(&mut simulation.network);
        let (other, _) = second_network(&mut simulation, lossy(5, 30));
        for (time, socket) in [(300, other), (700, SocketId(0)), (1_000, other), (1_100, SocketId(0))] {
            simulation.network.run_until(at(ms(time)), |_| false);
            let moved = migrate(&mut simulation.network, simulation.client, socket);
            moved.map_err(|error| format!("seed {seed}: {error}"))?;
        }
        let report = simulation.finish();
        assert_no_id_on_two_paths(&seen);
        let whole = report.ending == Ending::Complete && report.uploaded == MIB && report.downloaded == MIB;
        if whole { Ok(()) } else { Err(format!("{report:#?}")) }
    });
}

/// Changes the address of one of the clients: behind its translator, or by its own will.
fn change_address(network: &mut Network, (client, wire): (HostId, WireId), round: u32) {
    match round % 4 {
        0 => network.fabric().rebind(wire, Translation::Port),
        1 => network.fabric().rebind(wire, Translation::Address),
        _ => {
            let own = network.fabric().address(client).unwrap();
            let address = SocketAddr::new(own.ip(), own.port() + 100 + round as u16);
            let socket = network.fabric().add_socket(client, address, wire).unwrap();
            migrate(network, client, socket).unwrap();
        }
    }
}

#[test]
fn a_thousand_streams_on_fifty_connections_survive_twenty_changes_of_address() {
    const CLIENTS: u16 = 50;
    const STREAMS: usize = 20;
    const BYTES: u64 = 220_000;
    let plan = vec![Exchange::two_way(BYTES, BYTES); STREAMS];
    let mut scenario = Scenario::new(10).both_ways(link(2, 10)).plan(plan, STREAMS);
    scenario.client.keep_alive = Some(Duration::from_secs(1));
    let mut simulation = scenario.build();
    let mut clients = vec![(simulation.client, simulation.wire)];
    for number in 1..CLIENTS {
        let server = simulation.server;
        // So far apart that their translators never give out the same address.
        clients.push(scenario.add_client(&mut simulation.network, server, 100 * number).unwrap());
    }
    let network = &mut simulation.network;
    let seen = watch_ids(network);
    let (mut live, mut updates) = (0, 0);
    for round in 0..20_u32 {
        network.run_until(at(ms(500 + u64::from(round) * 250)), |_| false);
        for (number, client) in clients.iter().enumerate() {
            change_address(network, *client, round + number as u32);
            network.act(client.0, |app: &mut ExchangeClient, cx| {
                live += STREAMS - app.completed.len();
                let (conn, now) = (app.conn.unwrap(), cx.now);
                if round % 4 == 0 {
                    let updated = cx.endpoint.with(conn, |conn| {
                        conn.ping();
                        conn.update_keys(now)
                    });
                    updates += u32::from(updated == Some(true));
                }
            });
        }
    }
    let all = 20 * usize::from(CLIENTS) * STREAMS;
    assert!(live >= all * 9 / 10, "{live} of {all} streams were live");
    // Where the last one is not acknowledged yet, because it went to an address that was left, none begins.
    assert!(updates >= 3 * u32::from(CLIENTS), "{updates} updates of keys");
    let done = |network: &mut Network| {
        let app = |client: &HostId| network.app::<ExchangeClient>(*client).unwrap();
        clients.iter().all(|(client, _)| app(client).closed.is_some())
    };
    network.run_until(at(Duration::from_secs(120)), done);
    for (client, _) in &clients {
        let app = network.app::<ExchangeClient>(*client).unwrap();
        assert_eq!(
            (&app.failure, app.completed.len(), app.verified),
            (&None, STREAMS, STREAMS as u64 * BYTES)
        );
    }
    let server = simulation.server_app().unwrap();
    assert_eq!(server.failures, []);
    // A server that is out of ids may keep one when all that its client changed is the address (RFC 9000 section 9.5).
    seen.borrow_mut().retain(|(host, ..), _| *host != simulation.server);
    assert_no_id_on_two_paths(&seen);
    assert_eq!(server.verified, u64::from(CLIENTS) * STREAMS as u64 * BYTES);
    assert!(server.path_changes >= 8 * u32::from(CLIENTS), "{} moves", server.path_changes);
}
