//! A client endpoint and a server endpoint that send each other hostile datagrams.

use crate::provider;
use bytes::Bytes;
use godwit_base::{Ecn, RecvBatch, RecvMeta, Rng, SeededRng, SendBatch, SocketId, Time, WallTime};
use godwit_transport::PathKey;
use godwit_transport::ReadChunk;
use godwit_transport::tls::deterministic;
use godwit_transport::tls::secrets::ServerSecrets;
use godwit_transport::{
    ClientConfig, ConnKey, Direction, Endpoint, EndpointConfig, Event, ServerConfig, TransportConfig,
};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

const CLIENT: &str = "10.0.0.1:1";
const SERVER: &str = "10.0.0.2:443";

/// Counters of one run.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Count {
    /// Datagrams delivered.
    pub(crate) datagrams: u64,
    /// Of those, copies changed after they were sealed, and noise.
    pub(crate) mangled: u64,
    /// Connections begun.
    pub(crate) connections: u64,
    /// Of those, how many finished the handshake at the server.
    pub(crate) established: u64,
}

pub(crate) struct Rig {
    now: Time,
    client: Endpoint,
    server: Endpoint,
    config: ClientConfig,
    rng: SeededRng,
    out: SendBatch,
    input: RecvBatch,
    seen: Vec<Vec<u8>>,
    pub(crate) count: Count,
}

impl Rig {
    pub(crate) fn new(seed: u64) -> Self {
        deterministic::seed(seed);
        provider::seed(seed);
        let mut transport = TransportConfig::default();
        transport.max_idle_timeout = Duration::from_secs(5);
        transport.handshake_timeout = Duration::from_secs(3);
        let transport = Arc::new(transport);
        let (client_tls, server_tls) = provider::configs();
        let server = ServerConfig::new(server_tls, transport.clone());
        let secrets = |n| Arc::new(ServerSecrets::from_rng(&mut SeededRng::new(n)));
        let config = |n| {
            let mut config = EndpointConfig::new(secrets(n));
            config.max_connections = 64;
            config
        };
        Rig {
            now: Time::from_nanos(1_000_000_000),
            client: Endpoint::new(config(1), None, Box::new(SeededRng::new(seed))),
            server: Endpoint::new(config(2), Some(Arc::new(server)), Box::new(SeededRng::new(seed ^ 1))),
            config: ClientConfig::new(client_tls, transport),
            rng: SeededRng::new(seed ^ 2),
            out: SendBatch::new(1 << 18),
            input: RecvBatch::new(256, 2048),
            seen: Vec::new(),
            count: Count::default(),
        }
    }

    /// One connection from its first packet to its end, with lies and mangled copies throughout.
    pub(crate) fn life(&mut self) {
        let path = PathKey { socket: SocketId(0), local: None, remote: address(SERVER) };
        let name = deterministic::SERVER_NAME;
        let Ok(client) = self.client.connect(self.now, &self.config, path, name, None) else {
            return self.drain();
        };
        self.count.connections += 1;
        // Most handshakes succeed, so that there is something to attack afterwards.
        provider::lie(if self.rng.below(10) == 0 { 30 } else { 0 });
        let mut server = None;
        for _ in 0..6 {
            self.exchange(&mut server, 1);
        }
        provider::lie(90);
        if server
            .is_some_and(|key| self.server.connection(key).is_some_and(|server| !server.is_handshaking()))
        {
            self.count.established += 1;
        }
        for _ in 0..120 {
            if !self.provoke(client, server) {
                break;
            }
            let copies = u64::from(self.rng.below(4) == 0);
            self.exchange(&mut server, copies);
        }
        provider::lie(0);
        self.drain();
    }

    /// Both ends say something, so that there is something to change. False once both have closed.
    fn provoke(&mut self, client: ConnKey, server: Option<ConnKey>) -> bool {
        let mut open = false;
        for (endpoint, key) in [(&mut self.client, Some(client)), (&mut self.server, server)] {
            let Some(key) = key else { continue };
            let (now, len) = (self.now, 100 + self.rng.below(900) as usize);
            let direction = Direction::Bidirectional;
            endpoint.with(key, |connection| {
                open |= connection.is_open();
                connection.ping();
                let id = godwit_transport::StreamId::new(connection.side(), direction, 0);
                if connection.write(id, Bytes::from(vec![1; len])).is_err()
                    && let Some(id) = connection.open(direction)
                {
                    let _ = connection.write(id, Bytes::from_static(b"x"));
                }
                while let Some(id) = connection.accept(direction) {
                    while let Ok(ReadChunk::Data(_)) = connection.read(now, id, usize::MAX) {}
                }
            });
        }
        open
    }

    /// Datagrams both ways, each with `copies` mangled ones.
    fn exchange(&mut self, server: &mut Option<ConnKey>, copies: u64) {
        for from_client in [true, false] {
            let from = if from_client { &mut self.client } else { &mut self.server };
            self.out.clear();
            send_until_at_rest(from, self.now, &mut self.out);
            self.deliver(from_client, copies);
            while let Some(incoming) = self.server.next_incoming() {
                *server = self.server.accept(self.now, incoming, None).ok().or(*server);
            }
        }
        self.events();
        self.now += Duration::from_millis(20);
        self.client.on_timeout(self.now);
        self.server.on_timeout(self.now);
    }

    fn deliver(&mut self, from_client: bool, copies: u64) {
        let remote = if from_client { CLIENT } else { SERVER };
        self.input.clear();
        let mut sent = 0;
        let datagrams: Vec<Vec<u8>> = self.out.datagrams().map(|(_, bytes)| bytes.to_vec()).collect();
        for datagram in datagrams {
            sent += u64::from(self.push(remote, &datagram));
            for _ in 0..copies {
                let mangled = self.mangle(&datagram);
                let delivered = u64::from(self.push(remote, &mangled));
                self.count.mangled += delivered;
                sent += delivered;
            }
            if self.seen.len() < 64 {
                self.seen.push(datagram);
            } else {
                let at = self.rng.below(64) as usize;
                self.seen[at] = datagram;
            }
        }
        self.count.datagrams += sent;
        let to = if from_client { &mut self.server } else { &mut self.client };
        to.receive(self.now, WallTime::default(), &mut self.input);
    }

    fn push(&mut self, remote: &str, bytes: &[u8]) -> bool {
        let meta = RecvMeta {
            socket: SocketId(0),
            local: None,
            // Now and then from somewhere else.
            remote: if self.rng.below(200) == 0 { address("10.9.9.9:9") } else { address(remote) },
            ecn: Ecn::from_tos(self.rng.below(4) as u8),
            len: 0,
            stride: 1,
        };
        self.input.push_datagram(meta, bytes)
    }

    /// A changed copy of a datagram, one of long ago, or noise.
    fn mangle(&mut self, datagram: &[u8]) -> Vec<u8> {
        let mut bytes = datagram.to_vec();
        match self.rng.below(7) {
            0 => bytes.truncate(1 + self.rng.below(bytes.len() as u64) as usize),
            1 => {
                let old = self.rng.below(self.seen.len().max(1) as u64) as usize;
                bytes = self.seen.get(old).cloned().unwrap_or(bytes);
            }
            2 => {
                bytes.resize(1 + self.rng.below(1400) as usize, 0);
                self.rng.fill(&mut bytes);
            }
            3 => {
                // Garbage coalesced behind a true packet.
                let tail = self.rng.below(100) as usize;
                bytes.resize(bytes.len() + tail, 0xc3);
            }
            4 => {
                let header = bytes.len().min(30);
                let at = self.rng.below(header as u64) as usize;
                bytes[at] = self.rng.next_u64() as u8;
            }
            _ => {
                for _ in 0..=self.rng.below(4) {
                    let at = self.rng.below(bytes.len() as u64) as usize;
                    bytes[at] ^= 1 << self.rng.below(8);
                }
            }
        }
        bytes
    }

    fn events(&mut self) {
        while let Some((_, event)) = self.client.next_event() {
            // Nothing is expected of a connection that is lied to.
            drop::<Event>(event);
        }
        while self.server.next_event().is_some() {}
    }

    /// Everything ends, and the endpoints must let go of it all.
    pub(crate) fn drain(&mut self) {
        for _ in 0..400 {
            if self.client.connections() + self.server.connections() == 0 && self.server.is_idle() {
                break;
            }
            let deadlines = [self.client.deadline(), self.server.deadline()];
            self.now = deadlines
                .into_iter()
                .flatten()
                .min()
                .unwrap_or(self.now)
                .max(self.now + Duration::from_millis(1));
            self.client.on_timeout(self.now);
            self.server.on_timeout(self.now);
            self.out.clear();
            self.client.transmit(self.now, &mut self.out);
            self.out.clear();
            self.server.transmit(self.now, &mut self.out);
            while let Some(incoming) = self.server.next_incoming() {
                self.server.ignore(incoming);
            }
            self.events();
        }
        assert_eq!(self.client.connections(), 0, "the client lets go of every connection");
        assert_eq!(self.server.connections(), 0, "the server lets go of every connection");
    }
}

/// Takes what an endpoint has to send. Whatever it was told, it must then wait for time to pass or for something
/// to arrive: an endpoint that wants to be called again at once, for nothing, would keep a processor busy.
fn send_until_at_rest(endpoint: &mut Endpoint, now: Time, out: &mut SendBatch) {
    for _ in 0..32 {
        let more = endpoint.transmit(now, out);
        let due = endpoint.deadline().filter(|deadline| *deadline <= now);
        if !more && due.is_none() {
            return;
        }
        endpoint.on_timeout(now);
    }
    let full = out.reserve(1500).is_none();
    assert!(full, "an endpoint does not come to rest: {:?} at {now:?}", endpoint.deadline());
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}
