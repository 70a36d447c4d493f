//! Two endpoints in virtual time, with a wire of 5 ms between them that can lose datagrams.

#![allow(dead_code, reason = "each test program uses a part")]

use bytes::Bytes;
use godwit_base::{RecvBatch, RecvMeta, SeededRng, SendBatch, SocketId, Time, WallTime};
use godwit_transport::PathKey;
use godwit_transport::observe::ObserverFactory;
use godwit_transport::tls::deterministic;
use godwit_transport::tls::resumption::Resumption;
use godwit_transport::tls::secrets::ServerSecrets;
use godwit_transport::{
    ClientConfig, ConnKey, Direction, Endpoint, EndpointConfig, Event, ServerConfig, TransportConfig,
};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

const SERVER: &str = "203.0.113.1:443";
const CLIENT: &str = "192.0.2.1:4000";
const DELAY: Duration = Duration::from_millis(5);

pub(crate) struct Pair {
    pub(crate) client: Endpoint,
    pub(crate) server: Endpoint,
    pub(crate) now: Time,
    /// Every datagram of this number from the client is lost; 0 is none.
    pub(crate) lose_every: u64,
    /// Where the client's datagrams come from, and where those of the server reach it.
    pub(crate) client_address: SocketAddr,
    carried: u64,
    out: SendBatch,
    batch: RecvBatch,
}

/// The settings of both ends.
pub(crate) fn transport() -> TransportConfig {
    TransportConfig::default()
}

impl Pair {
    pub(crate) fn new(observe: &ObserverFactory, transport: TransportConfig) -> Self {
        deterministic::seed(5);
        let config = |seed| {
            let secrets = ServerSecrets::from_rng(&mut SeededRng::new(seed));
            let mut config = EndpointConfig::new(Arc::new(secrets));
            config.observe = observe.clone();
            config
        };
        let server = ServerConfig::new(deterministic::server_config(&[b"test"]), Arc::new(transport));
        Pair {
            client: Endpoint::new(config(1), None, Box::new(SeededRng::new(3))),
            server: Endpoint::new(config(2), Some(Arc::new(server)), Box::new(SeededRng::new(4))),
            now: Time::from_nanos(1_000_000_000),
            lose_every: 0,
            client_address: CLIENT.parse().unwrap(),
            carried: 0,
            out: SendBatch::new(1 << 20),
            batch: RecvBatch::new(1024, 1500),
        }
    }

    pub(crate) fn connect(&mut self, transport: TransportConfig) -> ConnKey {
        self.connect_resuming(transport, Resumption::default())
    }

    pub(crate) fn connect_resuming(&mut self, transport: TransportConfig, resumption: Resumption) -> ConnKey {
        let path = PathKey { socket: SocketId(0), local: None, remote: SERVER.parse().unwrap() };
        let mut config = ClientConfig::new(deterministic::client_config(&[b"test"]), Arc::new(transport));
        config.resumption = resumption;
        self.client.connect(self.now, &config, path, deterministic::SERVER_NAME, None).unwrap()
    }

    /// What one side sends now, to the other.
    pub(crate) fn carry(&mut self, from_client: bool) {
        let server: SocketAddr = SERVER.parse().unwrap();
        let client = self.client_address;
        let (from, to, source) = match from_client {
            true => (&mut self.client, &mut self.server, self.client_address),
            false => (&mut self.server, &mut self.client, server),
        };
        loop {
            let more = from.transmit(self.now, &mut self.out);
            for (meta, bytes) in self.out.datagrams() {
                self.carried += 1;
                if from_client && self.lose_every > 0 && self.carried.is_multiple_of(self.lose_every) {
                    continue;
                }
                if !from_client && meta.remote != client {
                    continue;
                }
                let meta = RecvMeta {
                    socket: SocketId(0),
                    local: None,
                    remote: source,
                    ecn: meta.ecn,
                    len: 0,
                    stride: 1,
                };
                assert!(self.batch.push_datagram(meta, bytes));
            }
            self.out.clear();
            if !more {
                break;
            }
        }
        let wall = WallTime::from_unix_micros(deterministic::NOW * 1_000_000 + self.now.as_micros());
        to.receive(self.now + DELAY, wall, &mut self.batch);
        self.batch.clear();
    }

    /// A round trip, and the timers that are due.
    pub(crate) fn step(&mut self) {
        self.carry(true);
        while let Some(key) = self.server.next_incoming() {
            self.server.accept(self.now + DELAY, key, None).unwrap();
        }
        self.now += DELAY;
        self.carry(false);
        self.now += DELAY;
        for endpoint in [&mut self.client, &mut self.server] {
            if endpoint.deadline().is_some_and(|deadline| deadline <= self.now) {
                endpoint.on_timeout(self.now);
            }
        }
    }

    pub(crate) fn steps(&mut self, count: usize) {
        (0..count).for_each(|_| self.step());
    }

    /// What the server has been told, and its connection.
    pub(crate) fn server_events(&mut self) -> (Option<ConnKey>, Vec<Event>) {
        let events: Vec<(ConnKey, Event)> = std::iter::from_fn(|| self.server.next_event()).collect();
        (events.first().map(|(key, _)| *key), events.into_iter().map(|(_, event)| event).collect())
    }

    /// Sends `data` on a stream of its own.
    pub(crate) fn say(&mut self, key: ConnKey, data: &'static [u8]) {
        let sent = self.client.with(key, |connection| {
            let id = connection.open(Direction::Unidirectional)?;
            let written = connection.write(id, Bytes::from_static(data)).ok()?;
            connection.finish(id).ok()?;
            Some(written)
        });
        assert_eq!(sent, Some(Some(data.len())));
    }
}
