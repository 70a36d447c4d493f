//! Two endpoints with real cryptography and no network between them: what one writes, the other reads.

use godwit_base::{RecvBatch, RecvMeta, SeededRng, SendBatch, SocketId, Time, WallTime};
use godwit_transport::PathKey;
use godwit_transport::tls::deterministic;
use godwit_transport::tls::secrets::ServerSecrets;
use godwit_transport::{ClientConfig, ConnKey, Endpoint, EndpointConfig, ServerConfig};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

const CLIENT: &str = "10.0.0.1:1";
const SERVER: &str = "10.0.0.2:443";

/// See the module.
pub(super) struct Pair {
    pub(super) now: Time,
    pub(super) client: Endpoint,
    pub(super) server: Endpoint,
    out: SendBatch,
    input: RecvBatch,
}

impl Pair {
    pub(super) fn new(server: ServerConfig) -> Self {
        deterministic::seed(1);
        Pair {
            now: Time::from_nanos(1_000_000_000),
            client: Endpoint::new(endpoint_config(1), None, Box::new(SeededRng::new(1))),
            server: Endpoint::new(endpoint_config(2), Some(Arc::new(server)), Box::new(SeededRng::new(2))),
            out: SendBatch::new(1 << 18),
            input: RecvBatch::new(64, 1 << 16),
        }
    }

    /// Begins a connection at the client.
    pub(super) fn connect(&mut self, config: &ClientConfig) -> ConnKey {
        let path = PathKey { socket: SocketId(0), local: None, remote: address(SERVER) };
        self.client
            .connect(self.now, config, path, deterministic::SERVER_NAME, None)
            .expect("the fixed configuration is valid")
    }

    /// Accepts whoever waits; the last of them.
    pub(super) fn accept(&mut self) -> Option<ConnKey> {
        let mut last = None;
        while let Some(incoming) = self.server.next_incoming() {
            last = self.server.accept(self.now, incoming, None).ok();
        }
        last
    }

    /// Half a millisecond passes.
    pub(super) fn advance(&mut self) {
        self.now += Duration::from_micros(500);
        self.client.on_timeout(self.now);
        self.server.on_timeout(self.now);
    }

    /// Everything that one side has to send now, by `transmit`.
    pub(super) fn send(
        &mut self,
        from_client: bool,
        transmit: impl FnOnce(&mut Endpoint, Time, &mut SendBatch),
    ) {
        let from = if from_client { &mut self.client } else { &mut self.server };
        self.out.clear();
        transmit(from, self.now, &mut self.out);
    }

    /// What was sent last goes to the other side.
    pub(super) fn carry(&mut self, from_client: bool) {
        let remote = if from_client { CLIENT } else { SERVER };
        self.input.clear();
        for (run, bytes) in self.out.runs() {
            let Some(slot) = self.input.free_slots().first_mut() else { break };
            slot[..bytes.len()].copy_from_slice(bytes);
            self.input.push(RecvMeta {
                socket: SocketId(0),
                local: None,
                remote: address(remote),
                ecn: run.meta.ecn,
                len: bytes.len(),
                stride: run.segment,
            });
        }
    }

    /// The other side takes in what was carried to it, by `receive`.
    pub(super) fn receive(
        &mut self,
        from_client: bool,
        receive: impl FnOnce(&mut Endpoint, Time, &mut RecvBatch),
    ) {
        let to = if from_client { &mut self.server } else { &mut self.client };
        receive(to, self.now, &mut self.input);
    }

    /// All three. False if there was nothing to send.
    pub(super) fn exchange(&mut self, from_client: bool) -> bool {
        self.send(from_client, transmit);
        self.carry(from_client);
        self.receive(from_client, receive);
        self.out.runs().next().is_some()
    }
}

pub(super) fn transmit(endpoint: &mut Endpoint, now: Time, batch: &mut SendBatch) {
    endpoint.transmit(now, batch);
}

pub(super) fn receive(endpoint: &mut Endpoint, now: Time, batch: &mut RecvBatch) {
    endpoint.receive(now, WallTime::default(), batch);
}

pub(super) fn secrets(seed: u64) -> ServerSecrets {
    ServerSecrets::from_rng(&mut SeededRng::new(seed))
}

fn endpoint_config(seed: u64) -> EndpointConfig {
    let mut config = EndpointConfig::new(Arc::new(secrets(seed)));
    config.max_connections = 10;
    config.max_incoming = 10;
    config.versions = vec![1];
    config
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("a literal address")
}
