//! Two endpoints with real connections, and a wire between them that a test can tamper with.

#![allow(clippy::arithmetic_side_effects, reason = "tests")]

mod balancing;
mod ending;
mod hello;
mod identifying;
mod runs;
mod sending;
mod tickets;

use super::*;
use crate::ConnectionError;
use godwit_base::{RecvBatch, RecvMeta, SeededRng, SendBatch, SocketId};
use godwit_tls::deterministic;
use godwit_tls::secrets::ServerSecrets;
use godwit_wire::{Direction, version};
use std::net::SocketAddr;
use std::time::Duration;

const SERVER: &str = "203.0.113.1:443";
const CLIENT: &str = "192.0.2.1:4000";

struct Pair {
    client: Endpoint,
    server: Endpoint,
    now: Time,
    /// Where the server sees the client. Datagrams to other addresses are lost.
    client_address: SocketAddr,
    /// Number of datagrams carried.
    carried: u64,
    /// A hash of all their bytes.
    hash: u64,
    /// Datagrams of the client that are lost, counted from 0 on.
    lost: Vec<u64>,
    /// Datagrams that the client has sent.
    sent: u64,
}

fn endpoint_config(seed: u64) -> EndpointConfig {
    EndpointConfig {
        max_connections: 100,
        max_incoming: 100,
        ..EndpointConfig::new(Arc::new(ServerSecrets::from_rng(&mut SeededRng::new(seed))))
    }
}

fn server(retry: bool, seed: u64) -> Endpoint {
    let tls = deterministic::server_config(&[b"test"]);
    let config = ServerConfig { retry, ..ServerConfig::new(tls, Arc::default()) };
    Endpoint::new(endpoint_config(1), Some(Arc::new(config)), Box::new(SeededRng::new(seed)))
}

fn client_config(version: u32) -> ClientConfig {
    let tls = deterministic::client_config(&[b"test"]);
    ClientConfig { version, ..ClientConfig::new(tls, Arc::default()) }
}

fn path_to(remote: SocketAddr) -> PathKey {
    PathKey { socket: SocketId(0), local: None, remote }
}

impl Pair {
    fn new(retry: bool) -> Self {
        deterministic::seed(5);
        Pair {
            client: Endpoint::new(endpoint_config(2), None, Box::new(SeededRng::new(3))),
            server: server(retry, 4),
            now: Time::from_nanos(1_000_000_000),
            client_address: CLIENT.parse().unwrap(),
            carried: 0,
            hash: 0,
            lost: Vec::new(),
            sent: 0,
        }
    }

    fn connect(&mut self) -> ConnKey {
        let path = path_to(SERVER.parse().unwrap());
        let config = client_config(version::V1);
        self.client.connect(self.now, &config, path, deterministic::SERVER_NAME, None).unwrap()
    }

    /// Carries what `from_client` tells, 5 ms one way.
    fn carry(&mut self, from_client: bool) {
        let (from, to) = if from_client {
            (&mut self.client, &mut self.server)
        } else {
            (&mut self.server, &mut self.client)
        };
        let (mut out, mut batch) = (SendBatch::new(1 << 20), RecvBatch::new(1024, 1500));
        let server: SocketAddr = SERVER.parse().unwrap();
        loop {
            let more = from.transmit(self.now, &mut out);
            for (meta, bytes) in out.datagrams() {
                let (source, destination) =
                    if from_client { (self.client_address, server) } else { (server, self.client_address) };
                if meta.remote != destination {
                    continue;
                }
                if from_client {
                    self.sent += 1;
                    if self.lost.contains(&(self.sent - 1)) {
                        continue;
                    }
                }
                self.carried += 1;
                for byte in bytes {
                    self.hash = self.hash.wrapping_mul(0x100_0000_01b3) ^ u64::from(*byte);
                }
                let meta = RecvMeta {
                    socket: SocketId(0),
                    local: None,
                    remote: source,
                    ecn: meta.ecn,
                    len: 0,
                    stride: 1,
                };
                assert!(batch.push_datagram(meta, bytes));
            }
            out.clear();
            if !more {
                break;
            }
        }
        let wall = WallTime::from_unix_micros(deterministic::NOW * 1_000_000 + self.now.as_micros());
        to.receive(self.now + Duration::from_millis(5), wall, &mut batch);
    }

    /// Runs for `time`; accepts whoever comes.
    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.carry(true);
            while let Some(key) = self.server.next_incoming() {
                self.server.accept(self.now + Duration::from_millis(5), key, None).unwrap();
            }
            self.carry(false);
            self.now += Duration::from_millis(5);
            for endpoint in [&mut self.client, &mut self.server] {
                if endpoint.deadline().is_some_and(|deadline| deadline <= self.now) {
                    endpoint.on_timeout(self.now);
                }
            }
        }
    }

    fn run_millis(&mut self, millis: u64) {
        self.run(Duration::from_millis(millis));
    }
}

fn events(endpoint: &mut Endpoint) -> Vec<Event> {
    std::iter::from_fn(|| endpoint.next_event()).map(|(_, event)| event).collect()
}

/// Opens a stream and writes a little: something that must arrive.
fn say(endpoint: &mut Endpoint, key: ConnKey) {
    endpoint
        .with(key, |connection| {
            let id = connection.open(Direction::Unidirectional).unwrap();
            connection.write(id, Bytes::from_static(&[b'x'; 1])).unwrap();
            connection.finish(id).unwrap();
        })
        .unwrap();
}

fn heard(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event, Event::StreamOpened { .. })).count()
}

#[test]
fn a_stream_without_data_is_seen_once_it_is_announced() {
    let mut pair = Pair::new(false);
    let key = pair.connect();
    pair.run_millis(200);
    let open = |client: &mut Connection| client.open(Direction::Bidirectional).unwrap();
    let id = pair.client.with(key, open).unwrap();
    events(&mut pair.server);
    pair.run_millis(200);
    assert!(events(&mut pair.server).is_empty(), "nothing is known of it yet");
    pair.client.with(key, |client| client.announce(id).unwrap());
    pair.run_millis(200);
    let direction = Direction::Bidirectional;
    assert_eq!(events(&mut pair.server), [Event::StreamOpened { direction }]);
    pair.client.with(key, |client| client.announce(id).unwrap());
    pair.run_millis(200);
    assert!(events(&mut pair.server).is_empty(), "it is known");
}

#[test]
fn endpoints_shake_hands() {
    for retry in [false, true] {
        let mut pair = Pair::new(retry);
        pair.connect();
        pair.run_millis(200);
        let (client, server) = (events(&mut pair.client), events(&mut pair.server));
        assert!(client.contains(&Event::Connected) && client.contains(&Event::Confirmed), "{client:?}");
        assert!(server.contains(&Event::Connected) && server.contains(&Event::Confirmed), "{server:?}");
        let ids = pair.server.slots.iter().next().unwrap().1.cids.len();
        assert!(ids > 1, "further connection ids were made: {ids}");
        assert_ne!(pair.carried, 0);
    }
}

#[test]
fn what_the_network_says_concerns_attempts_to_connect_only() {
    let mut pair = Pair::new(false);
    let reports = |pair: &Pair, key| pair.client.connection(key).unwrap().evidence().unreachable_reports;
    let told = |pair: &mut Pair| {
        pair.client.on_unreachable(
            SocketId(0),
            SERVER.parse().unwrap(),
            &[],
            std::io::ErrorKind::HostUnreachable,
        );
        pair.client.on_unreachable(
            SocketId(0),
            CLIENT.parse().unwrap(),
            &[],
            std::io::ErrorKind::HostUnreachable,
        );
    };
    let (first, second) = (pair.connect(), pair.connect());
    told(&mut pair);
    assert_eq!((reports(&pair, first), reports(&pair, second)), (1, 1));
    pair.run_millis(200);
    let third = pair.connect();
    told(&mut pair);
    assert_eq!([first, second, third].map(|key| reports(&pair, key)), [1, 1, 1]);
    assert_eq!(pair.client.queues.attempts, [third], "no others are looked at");
    assert!(pair.server.queues.attempts.is_empty());
}

/// Begins a connection whose ClientHello takes two datagrams.
fn connect_at_length(pair: &mut Pair) {
    let protocols: Vec<Vec<u8>> = (0..6).map(|number| vec![number; 250]).collect();
    let mut protocols: Vec<&[u8]> = protocols.iter().map(Vec::as_slice).collect();
    protocols.push(b"test");
    let config = ClientConfig::new(deterministic::client_config(&protocols), Arc::default());
    let path = path_to(SERVER.parse().unwrap());
    pair.client.connect(pair.now, &config, path, deterministic::SERVER_NAME, None).unwrap();
}

#[test]
fn half_a_client_hello_is_acknowledged_and_only_the_other_half_repeated() {
    for (lost, upgrade_to) in [(0, None), (1, None), (0, Some(version::V2)), (1, Some(version::V2))] {
        let mut pair = Pair::new(false);
        pair.server.config.upgrade_to = upgrade_to;
        pair.lost = vec![lost];
        connect_at_length(&mut pair);
        // Without an acknowledgement it would take a second until the client does anything.
        pair.run_millis(300);
        let (client, server) = (events(&mut pair.client), events(&mut pair.server));
        assert!(client.contains(&Event::Confirmed), "{lost} {upgrade_to:?} {client:?}");
        assert!(server.contains(&Event::Confirmed), "{lost} {upgrade_to:?} {server:?}");
        assert!(pair.server.demux.initial_len() <= 1, "nothing is left of the beginning");
        let connection = &pair.server.slots.iter().next().unwrap().1.connection;
        assert_eq!(connection.version(), upgrade_to.unwrap_or(version::V1));
    }
}

#[test]
fn a_client_that_never_completes_its_hello_is_forgotten() {
    let mut pair = Pair::new(false);
    pair.lost = (1..1000).step_by(2).collect();
    connect_at_length(&mut pair);
    pair.carry(true);
    assert!(pair.server.has_incoming());
    pair.lost = (0..1_000_000).collect();
    pair.run(Duration::from_secs(29));
    assert!(pair.server.has_incoming(), "it may be slow");
    pair.run(Duration::from_secs(2));
    assert!(pair.server.is_idle());
    assert_eq!(pair.server.demux.initial_len(), 0);
}

#[test]
fn ids_that_nobody_wants_are_not_made() {
    let mut pair = Pair::new(false);
    pair.connect();
    pair.run_millis(200);
    let ids = |pair: &Pair| pair.server.slots.iter().next().unwrap().1.cids.clone();
    let before = ids(&pair);
    let key = ConnKey(pair.server.slots.iter().next().unwrap().0);
    pair.server.on_endpoint_event(key, EndpointEvent::NeedCids(1_000_000));
    assert_eq!(ids(&pair), before);
    assert!(before.iter().all(|cid| pair.server.demux.is_taken(cid)));
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let hash = || {
        let mut pair = Pair::new(true);
        let key = pair.connect();
        pair.run_millis(100);
        say(&mut pair.client, key);
        pair.run_millis(100);
        (pair.hash, pair.carried)
    };
    assert_eq!(hash(), hash());
}

#[test]
fn closing_ends_in_idleness() {
    let mut pair = Pair::new(false);
    pair.connect();
    pair.connect();
    pair.run_millis(200);
    assert_eq!(pair.server.connections(), 2);
    pair.client.close_all(pair.now, 7, b"enough");
    pair.run_millis(3000);
    let server = events(&mut pair.server);
    let closed = |event: &&Event| {
        matches!(event, Event::Closed { reason: ConnectionError::PeerApplication { code: 7, .. } })
    };
    assert_eq!(server.iter().filter(closed).count(), 2, "{server:?}");
    events(&mut pair.client);
    assert!(pair.client.is_idle() && pair.server.is_idle());
    assert_eq!((pair.client.deadline(), pair.server.deadline()), (None, None));
}

#[test]
fn a_rebound_client_is_followed() {
    for address in ["192.0.2.1:5000", "198.51.100.9:4000"] {
        let mut pair = Pair::new(false);
        let key = pair.connect();
        pair.run_millis(200);
        events(&mut pair.server);
        pair.client_address = address.parse().unwrap();
        say(&mut pair.client, key);
        pair.run_millis(2000);
        let server = events(&mut pair.server);
        assert_eq!(heard(&server), 1, "{server:?}");
        assert!(server.contains(&Event::PathChanged), "{server:?}");
        let server_key = ConnKey(pair.server.slots.iter().next().unwrap().0);
        say(&mut pair.server, server_key);
        pair.run_millis(500);
        assert_eq!(heard(&events(&mut pair.client)), 1);
    }
}

#[test]
fn a_server_that_forgot_resets_its_clients() {
    let mut pair = Pair::new(false);
    let key = pair.connect();
    pair.run_millis(200);
    events(&mut pair.client);
    pair.server = server(false, 77);
    say(&mut pair.client, key);
    pair.run_millis(1000);
    let client = events(&mut pair.client);
    assert_eq!(client, [Event::Closed { reason: ConnectionError::Reset }]);
    assert!(pair.client.is_idle());
    assert!(pair.server.is_idle());
}

#[test]
fn a_refused_client_learns_it() {
    let mut pair = Pair::new(false);
    pair.server.reject_new();
    pair.connect();
    pair.run_millis(100);
    let client = events(&mut pair.client);
    let refused = |event: &Event| {
        let code = godwit_wire::TransportErrorCode::CONNECTION_REFUSED;
        matches!(event, Event::Closed { reason: ConnectionError::PeerTransport { code: c, .. } } if *c == code)
    };
    assert!(client.iter().any(refused), "{client:?}");
}

#[test]
fn a_client_without_a_common_version_learns_it() {
    let mut pair = Pair::new(false);
    pair.server.config.versions = vec![version::V2];
    let path = path_to(SERVER.parse().unwrap());
    pair.client.config.versions = vec![version::V1];
    let config = client_config(version::V1);
    pair.client.connect(pair.now, &config, path, deterministic::SERVER_NAME, None).unwrap();
    pair.run_millis(100);
    let client = events(&mut pair.client);
    assert_eq!(client, [Event::Closed { reason: ConnectionError::VersionMismatch }]);
    assert!(pair.server.is_idle());
}

#[test]
fn connections_are_limited() {
    let mut pair = Pair::new(false);
    pair.client.config.max_connections = 2;
    pair.connect();
    pair.connect();
    let config = client_config(version::V1);
    let path = path_to(SERVER.parse().unwrap());
    let refused = pair.client.connect(pair.now, &config, path, deterministic::SERVER_NAME, None);
    assert_eq!(refused, Err(ConnectError::TooManyConnections));
}

#[test]
fn a_handshake_is_under_way_until_the_client_has_finished_it() {
    let mut pair = Pair::new(false);
    pair.connect();
    pair.carry(true);
    let under_way = |pair: &Pair| pair.server.handshakes(pair.now).count();
    assert_eq!(under_way(&pair), 1, "it waits to be accepted");
    let key = pair.server.next_incoming().unwrap();
    let conn = pair.server.accept(pair.now, key, None).unwrap();
    assert_eq!(under_way(&pair), 1);
    pair.carry(false);
    pair.carry(true);
    assert!(!pair.server.connection(conn).unwrap().is_handshaking());
    assert_eq!(under_way(&pair), 0);
}
