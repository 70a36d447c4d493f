//! Two connections back to back, without an endpoint and without a network.
#![allow(clippy::arithmetic_side_effects, reason = "tests")]

mod acknowledging;
mod adversary;
mod apart;
mod approval;
mod clocks;
mod counting;
mod departing;
mod ending;
mod error_codes;
mod failing;
mod holding;
mod laboratory;
mod limits;
mod losing;
mod premature;
mod repeating;
mod rotating;
mod turmoil;
mod unencrypted;
mod useless;

use super::*;
use crate::ReadChunk;
use crate::config::{ClientConfig, ServerConfig};
use crate::path::PathKey;
use crate::resumption::ServerMemory;
use bytes::Bytes;
use godwit_base::{Ecn, SeededRng, SendBatch, SocketId};
use godwit_tls::deterministic;
use std::net::SocketAddr;
use std::time::Duration;

/// With a congestion controller that reduces its window at every loss.
fn reducing() -> TransportConfig {
    TransportConfig {
        congestion: godwit_recovery::congestion::Algorithm::Cubic.into(),
        ..TransportConfig::default()
    }
}

struct Pair {
    now: Time,
    client: Connection,
    server: Connection,
    rng: SeededRng,
    batch: SendBatch,
    client_path: PathKey,
    server_path: PathKey,
    delay: Duration,
}

fn cid(n: u8) -> ConnectionId {
    ConnectionId::new(&[n; 8]).unwrap()
}

fn path(local: &str, remote: &str) -> PathKey {
    let local: SocketAddr = local.parse().unwrap();
    PathKey { socket: SocketId(0), local: Some(local.ip()), remote: remote.parse().unwrap() }
}

impl Pair {
    fn new(transport: TransportConfig) -> Self {
        Self::with(transport.clone(), transport)
    }

    fn with(client: TransportConfig, server: TransportConfig) -> Self {
        let client = ClientConfig::new(deterministic::client_config(&[b"test"]), Arc::new(client));
        let server = ServerConfig::new(deterministic::server_config(&[b"test"]), Arc::new(server));
        Self::begun(&client, &Arc::new(server))
    }

    /// A client that has sent nothing yet, and the server that will answer it.
    fn begun(config: &ClientConfig, server: &Arc<ServerConfig>) -> Self {
        deterministic::seed(7);
        let mut rng = SeededRng::new(7);
        let now = Time::from_nanos(1_000_000_000);
        let client_path = path("10.0.0.1:1", "10.0.0.2:443");
        let server_path = path("10.0.0.2:443", "10.0.0.1:1");
        let client_args = ClientArgs {
            version: config.version,
            memory: ServerMemory::new(config, &[], deterministic::SERVER_NAME),
            config,
            server_name: deterministic::SERVER_NAME,
            path: client_path,
            local_cid: cid(1),
            reset_token: ResetToken([1; 16]),
            initial_dcid: cid(9),
            token: None,
            versions: &[1],
        };
        let client = Connection::client(now, client_args, &mut rng).unwrap();
        let server_args = ServerArgs {
            config: server.clone(),
            version: 1,
            initial_keys: None,
            original_version: 1,
            path: server_path,
            local_cid: cid(2),
            reset_token: ResetToken([2; 16]),
            client_dcid: cid(9),
            original_dcid: cid(9),
            retry_scid: None,
            peer_scid: cid(1),
            validated: false,
            saved: None,
            network: Default::default(),
            new_token: None,
            preferred: None,
            versions: &[1],
        };
        let server = Connection::server(now, server_args, &mut rng).unwrap();
        let batch = SendBatch::new(1 << 20);
        Pair { now, client, server, rng, batch, client_path, server_path, delay: Duration::from_millis(5) }
    }

    /// One direction's worth of datagrams, delivered after the delay.
    fn exchange(&mut self, from_client: bool) -> usize {
        let (from, to, path) = if from_client {
            (&mut self.client, &mut self.server, self.server_path)
        } else {
            (&mut self.server, &mut self.client, self.client_path)
        };
        self.batch.clear();
        while from.machine.transmit(self.now, &mut self.batch, &mut self.rng)
            == crate::connection::boundary::Transmitted::More
        {}
        let mut count = 0;
        self.now += self.delay;
        for (_, datagram) in self.batch.datagrams() {
            to.machine.receive(self.now, path, Ecn::NotEct, &mut datagram.to_vec());
            count += 1;
        }
        to.machine.on_batch_end(self.now);
        count
    }

    /// Until nothing is sent any more, or `rounds` have passed.
    fn run(&mut self, rounds: usize) {
        for _ in 0..rounds {
            let sent = self.exchange(true) + self.exchange(false);
            if sent == 0 {
                let deadlines = [self.client.deadline(), self.server.deadline()];
                let Some(next) = deadlines.into_iter().flatten().min() else { break };
                if next > self.now + Duration::from_secs(1) {
                    break;
                }
                self.now = self.now.max(next);
            }
            self.client.on_timeout(self.now);
            self.server.on_timeout(self.now);
        }
    }
}

fn events(connection: &mut Connection) -> Vec<Event> {
    std::iter::from_fn(|| connection.next_event()).collect()
}

/// Allocators hand out steps: the next one after this is 5 KiB, and a server has many connections.
#[test]
fn a_connection_fits_into_four_kibibytes() {
    assert!(size_of::<Connection>() <= 4096, "{}", size_of::<Connection>());
}

#[test]
fn handshake_completes_and_is_confirmed() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.run(50);
    let client = events(&mut pair.client);
    assert_eq!(client[..2], [Event::Connected, Event::Confirmed], "{client:?}");
    assert!(events(&mut pair.server).contains(&Event::Confirmed));
    assert_eq!(pair.client.alpn(), Some(&b"test"[..]));
    assert_eq!(pair.server.server_name(), Some(deterministic::SERVER_NAME));
    assert!(pair.client.machine.spaces.initial.is_none() && pair.client.machine.spaces.handshake.is_none());
    assert!(pair.server.machine.spaces.initial.is_none() && pair.server.machine.spaces.handshake.is_none());
    assert_eq!(pair.client.stats().ptos + pair.server.stats().ptos, 0, "nothing was lost");
}

#[test]
fn a_megabyte_crosses() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.run(20);
    let id = pair.client.open(Direction::Bidirectional).unwrap();
    let data: Vec<u8> = (0..1_000_000_u32).map(|n| (n % 251) as u8).collect();
    let (mut written, mut received) = (0, Vec::new());
    for _ in 0..2000 {
        if written < data.len() {
            written += pair.client.write(id, Bytes::copy_from_slice(&data[written..])).unwrap();
            if written == data.len() {
                pair.client.finish(id).unwrap();
            }
        }
        pair.run(1);
        while let Ok(ReadChunk::Data(chunk)) = pair.server.read(pair.now, id, usize::MAX) {
            received.extend_from_slice(&chunk);
        }
        if received.len() == data.len() {
            break;
        }
    }
    assert!(received == data, "{} of {} bytes", received.len(), data.len());
    assert_eq!(pair.client.stats().packets_lost, 0);
    assert_eq!(pair.client.stats().mtu, 1472, "the path-MTU search went to its end");
}

#[test]
fn close_reaches_the_peer_and_drains() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.run(20);
    events(&mut pair.server);
    pair.client.close(pair.now, 42, b"enough");
    pair.run(40);
    let closed = crate::ConnectionError::PeerApplication { code: 42, reason: Bytes::from_static(b"enough") };
    assert_eq!(events(&mut pair.server).last(), Some(&Event::Closed { reason: closed }));
    assert!(pair.client.is_drained() && pair.server.is_drained());
}

#[test]
fn keys_are_updated_long_before_the_limit_of_the_aead() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.run(20);
    let id = pair.client.open(Direction::Unidirectional).unwrap();
    pair.client.machine.spaces.data.keys.as_mut().unwrap().pretend_sealed((1 << 22) - 5);
    for _ in 0..50 {
        let _ = pair.client.write(id, Bytes::from_static(&[7; 5_000])).unwrap();
        pair.run(1);
    }
    assert_eq!((pair.client.stats().key_updates, pair.server.stats().key_updates), (1, 1));
    assert_eq!(pair.client.stats().packets_lost, 0);
}

#[test]
fn a_key_that_is_used_up_ends_the_connection_in_so_many_words() {
    let mut pair = Pair::new(TransportConfig::default());
    pair.run(20);
    events(&mut pair.server);
    let id = pair.client.open(Direction::Unidirectional).unwrap();
    pair.client.machine.spaces.data.keys.as_mut().unwrap().pretend_sealed((1 << 23) - 32);
    pair.client.write(id, Bytes::from_static(b"one more")).unwrap();
    pair.run(5);
    let told = events(&mut pair.server);
    let Some(Event::Closed { reason: crate::ConnectionError::PeerTransport { code, .. } }) = told.last()
    else {
        panic!("{told:?}")
    };
    assert_eq!(*code, godwit_wire::TransportErrorCode::AEAD_LIMIT_REACHED);
}

#[test]
fn keys_are_updated_under_way() {
    let config = TransportConfig { key_update_after: Some(50), ..reducing() };
    let mut pair = Pair::new(config);
    pair.run(20);
    let id = pair.client.open(Direction::Unidirectional).unwrap();
    let mut received = 0;
    for _ in 0..600 {
        let _ = pair.client.write(id, Bytes::from_static(&[7; 10_000])).unwrap();
        pair.run(1);
        while let Ok(ReadChunk::Data(chunk)) = pair.server.read(pair.now, id, usize::MAX) {
            received += chunk.len();
        }
    }
    assert!(received > 1_000_000, "{received}");
    assert!(pair.client.stats().key_updates > 3, "{:?}", pair.client.stats());
    assert!(pair.server.is_open());
}
