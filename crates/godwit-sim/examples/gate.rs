//! The paths that the regression gate measures, run over and over: `gate PATH`.
//!
//! Two endpoints in one process with real cryptography and no network between them. The functions named
//! `measured_*` are what counts; everything else prepares their input. Prints the number of calls and the
//! allocations made in them.

use godwit_base::{RecvBatch, RecvMeta, SeededRng, SendBatch, SocketId, Time, WallTime};
use godwit_transport::path::PathKey;
use godwit_transport::secrets::ServerSecrets;
use godwit_transport::streams::ReadChunk;
use godwit_transport::tls::deterministic;
use godwit_transport::{
    ClientConfig, ConnKey, Direction, Endpoint, EndpointConfig, Event, ServerConfig, StreamId,
    TransportConfig,
};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Packets in the batch that is built and opened.
const PACKETS: usize = 64;
/// Rounds before measuring, so that windows and rings have grown.
const WARM_UP: usize = 300;
/// Rounds measured.
const ROUNDS: usize = 200;

fn main() {
    let path = std::env::args().nth(1).unwrap_or_default();
    let which = ["build-and-seal", "open-and-process", "process-ack"].iter().position(|name| *name == path);
    let Some(which) = which else {
        eprintln!("gate: expected build-and-seal, open-and-process or process-ack, got {path:?}");
        std::process::exit(2);
    };
    let mut rig = Rig::new();
    for _ in 0..WARM_UP {
        rig.round(None);
    }
    let allocations: usize = (0..ROUNDS).map(|_| rig.round(Some(which))).sum();
    println!("calls {ROUNDS}\nallocations {allocations}");
}

#[inline(never)]
fn measured_transmit(endpoint: &mut Endpoint, now: Time, batch: &mut SendBatch) {
    endpoint.transmit(now, batch);
}

#[inline(never)]
fn measured_receive(endpoint: &mut Endpoint, now: Time, batch: &mut RecvBatch) {
    endpoint.receive(now, WallTime::default(), batch);
}

struct Rig {
    now: Time,
    client: Endpoint,
    server: Endpoint,
    sender: ConnKey,
    receiver: ConnKey,
    stream: StreamId,
    out: SendBatch,
    input: RecvBatch,
}

const CLIENT: &str = "10.0.0.1:1";
const SERVER: &str = "10.0.0.2:443";

fn endpoint_config(seed: u64) -> EndpointConfig {
    let secrets = Arc::new(ServerSecrets::from_rng(&mut SeededRng::new(seed)));
    EndpointConfig {
        max_connections: 10,
        max_incoming: 10,
        versions: vec![1],
        ..EndpointConfig::new(secrets)
    }
}

impl Rig {
    fn new() -> Self {
        deterministic::seed(1);
        let transport = Arc::new(TransportConfig {
            initial_stream_window: 16 << 20,
            initial_connection_window: 32 << 20,
            initial_mtu: 1452,
            max_mtu: 1452,
            ..TransportConfig::default()
        });
        let server = ServerConfig::new(deterministic::server_config(&[b"gate"]), transport.clone());
        let client = ClientConfig::new(deterministic::client_config(&[b"gate"]), transport);
        let now = Time::from_nanos(1_000_000_000);
        let mut rig = Rig {
            now,
            client: Endpoint::new(endpoint_config(1), None, Box::new(SeededRng::new(1))),
            server: Endpoint::new(endpoint_config(2), Some(Arc::new(server)), Box::new(SeededRng::new(2))),
            sender: ConnKey::from_u64(0),
            receiver: ConnKey::from_u64(0),
            stream: StreamId::from_u64(0),
            out: SendBatch::new(1 << 18),
            input: RecvBatch::new(64, 1 << 16),
        };
        let path = PathKey { socket: SocketId(0), local: None, remote: address(SERVER) };
        rig.sender = rig
            .client
            .connect(now, &client, path, deterministic::SERVER_NAME, None)
            .expect("the fixed configuration is valid");
        rig.handshake();
        rig
    }

    fn handshake(&mut self) {
        for _ in 0..40 {
            self.move_datagrams(true, None);
            while let Some(incoming) = self.server.next_incoming() {
                self.receiver = self.server.accept(self.now, incoming, None).expect("accepted");
            }
            self.move_datagrams(false, None);
            self.advance();
        }
        while let Some((_, event)) = self.client.next_event() {
            assert!(!matches!(event, Event::Closed { .. }), "{event:?}");
        }
        let open = self.client.with(self.sender, |connection| connection.open(Direction::Unidirectional));
        self.stream = open.flatten().expect("a stream may be opened");
    }

    fn advance(&mut self) {
        self.now += Duration::from_micros(500);
        self.client.on_timeout(self.now);
        self.server.on_timeout(self.now);
    }

    /// Data one way, acknowledgements the other. Returns the allocations of the measured call.
    fn round(&mut self, measured: Option<usize>) -> usize {
        let (now, stream) = (self.now, self.stream);
        let data = bytes::Bytes::from_static(&[7; PACKETS * 1400]);
        self.client.with(self.sender, |connection| connection.write(stream, data));
        let mut allocations = 0;
        allocations += self.send(true, measured == Some(0));
        allocations += self.receive(true, measured == Some(1));
        self.server.with(self.receiver, |connection| {
            while let Ok(ReadChunk::Data(_)) = connection.read(now, stream, usize::MAX) {}
        });
        while self.server.next_event().is_some() || self.client.next_event().is_some() {}
        self.advance();
        allocations += self.send(false, false);
        allocations += self.receive(false, measured == Some(2));
        self.advance();
        allocations
    }

    fn move_datagrams(&mut self, from_client: bool, _: Option<usize>) {
        self.send(from_client, false);
        self.receive(from_client, false);
    }

    fn send(&mut self, from_client: bool, measured: bool) -> usize {
        let from = if from_client { &mut self.client } else { &mut self.server };
        self.out.clear();
        let region = Region::new(ALLOCATOR);
        if measured {
            measured_transmit(from, self.now, &mut self.out);
            return region.change().allocations;
        }
        from.transmit(self.now, &mut self.out);
        0
    }

    fn receive(&mut self, from_client: bool, measured: bool) -> usize {
        let (to, remote) = if from_client { (&mut self.server, CLIENT) } else { (&mut self.client, SERVER) };
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
        let region = Region::new(ALLOCATOR);
        if measured {
            measured_receive(to, self.now, &mut self.input);
            return region.change().allocations;
        }
        to.receive(self.now, WallTime::default(), &mut self.input);
        0
    }
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("a literal address")
}
