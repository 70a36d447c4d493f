//! Two polled endpoints without a runtime: over UDP, over memory, and over a data path that is written here.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use godwit::datapath::{
    Capabilities, Counters, Datapath, DatapathFactory, Ecn, Hub, Progress, Received, RecvBatch, RecvMeta,
    SendBatch, Sent, SocketId,
};
use godwit::polled::{ConnKey, Event, PolledEndpoint, PolledEvent, ReadChunk};
use godwit::{ClientConfig, Direction, EndpointBuilder, ServerConfig, StreamId};
use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const LEN: usize = 500_000;

fn configs() -> (ServerConfig, ClientConfig) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let server =
        ServerConfig::from_pem(certificate.as_bytes(), key.as_bytes()).alpn(["transfer"]).build().unwrap();
    let client = ClientConfig::with_roots_pem(certificate.as_bytes()).alpn(["transfer"]).build().unwrap();
    (server, client)
}

/// What one of the two has to do.
#[derive(Default)]
struct Task {
    stream: Option<(ConnKey, StreamId)>,
    to_send: usize,
    received: usize,
    finished: bool,
    closed: bool,
}

impl Task {
    fn on_event(&mut self, endpoint: &mut PolledEndpoint, event: PolledEvent) {
        match event {
            PolledEvent::Incoming(client) => drop(endpoint.accept(client).unwrap()),
            PolledEvent::Connection(key, Event::Connected) if self.to_send > 0 => {
                let id = endpoint.connection(key).unwrap().open(Direction::Bidirectional).unwrap();
                self.stream = Some((key, id));
                self.write(endpoint);
            }
            PolledEvent::Connection(_, Event::Writable { .. }) => self.write(endpoint),
            PolledEvent::Connection(key, Event::StreamOpened { direction }) => {
                let id = endpoint.connection(key).unwrap().accept(direction).unwrap();
                self.stream = Some((key, id));
                self.read(endpoint);
            }
            PolledEvent::Connection(_, Event::Readable { .. }) => self.read(endpoint),
            PolledEvent::Connection(_, Event::Closed { .. }) => self.closed = true,
            _ => {}
        }
    }

    fn write(&mut self, endpoint: &mut PolledEndpoint) {
        let Some((key, id)) = self.stream else { return };
        let mut connection = endpoint.connection(key).unwrap();
        while self.to_send > 0 {
            match connection.write(id, vec![7; self.to_send.min(10_000)].into()).unwrap() {
                0 => return,
                written => self.to_send -= written,
            }
        }
        let _ = connection.finish(id);
    }

    fn read(&mut self, endpoint: &mut PolledEndpoint) {
        let Some((key, id)) = self.stream else { return };
        let mut connection = endpoint.connection(key).unwrap();
        loop {
            match connection.read(id, 1 << 16).unwrap() {
                ReadChunk::Data(data) => {
                    assert!(data.iter().all(|byte| *byte == 7));
                    self.received += data.len();
                }
                ReadChunk::Finished => {
                    self.finished = true;
                    connection.close(0, b"thanks");
                    return;
                }
                ReadChunk::Blocked => return,
            }
        }
    }
}

/// Sends `LEN` bytes from a client to a server.
#[expect(clippy::disallowed_methods, reason = "whoever polls reads the clock")]
fn transfer(server: EndpointBuilder, client: EndpointBuilder) {
    let (server_config, client_config) = configs();
    let mut server = server.server(server_config).build_polled().unwrap();
    let mut client = client.build_polled().unwrap();
    let addr = server.local_addr().unwrap();
    client.connect(&client_config, addr, "localhost").unwrap();
    let (mut receiving, mut sending) = (Task::default(), Task { to_send: LEN, ..Task::default() });
    let begin = Instant::now();
    while !(receiving.finished && sending.closed) {
        assert!(begin.elapsed() < Duration::from_secs(60), "{} bytes have arrived", receiving.received);
        server.poll(Instant::now(), |server, event| receiving.on_event(server, event)).unwrap();
        client.poll(Instant::now(), |client, event| sending.on_event(client, event)).unwrap();
    }
    assert_eq!(receiving.received, LEN);
}

/// Each on a thread of its own, waiting for nothing but the other.
#[cfg(unix)]
#[test]
#[expect(clippy::disallowed_methods, reason = "whoever polls reads the clock")]
fn waiting_until_there_is_something_to_poll_for() {
    let (server_config, client_config) = configs();
    let mut server = on("127.0.0.1:0").server(server_config).build_polled().unwrap();
    let mut client = on("127.0.0.1:0").build_polled().unwrap();
    client.connect(&client_config, server.local_addr().unwrap(), "localhost").unwrap();
    let receiving = std::thread::spawn(move || {
        let mut receiving = Task::default();
        loop {
            let wait =
                server.poll(Instant::now(), |server, event| receiving.on_event(server, event)).unwrap();
            if receiving.finished {
                return receiving.received;
            }
            server.wait(&wait).unwrap();
        }
    });
    let mut sending = Task { to_send: LEN, ..Task::default() };
    while !sending.closed {
        let wait = client.poll(Instant::now(), |client, event| sending.on_event(client, event)).unwrap();
        if !sending.closed {
            client.wait(&wait).unwrap();
        }
    }
    assert_eq!(receiving.join().unwrap(), LEN);
}

fn on(addr: &str) -> EndpointBuilder {
    EndpointBuilder::new().bind(addr.parse().unwrap())
}

#[test]
fn over_udp() {
    transfer(on("127.0.0.1:0"), on("127.0.0.1:0"));
}

#[test]
fn over_memory() {
    let hub = Hub::new(64);
    transfer(on("192.0.2.1:443").datapaths(hub.clone()), on("192.0.2.2:1000").datapaths(hub));
}

#[test]
fn over_a_data_path_of_our_own() {
    let (left, right) = (Pipe::default(), Pipe::default());
    let carried = left.clone();
    let server = Wire { receives: left.clone(), sends: right.clone() };
    let client = Wire { receives: right, sends: left };
    transfer(on("192.0.2.1:443").datapaths(server), on("192.0.2.2:1000").datapaths(client));
    assert!(carried.lock().unwrap().carried >= LEN, "it went through here");
}

/// Datagrams under way, with where they come from.
type Pipe = Arc<Mutex<Line>>;

#[derive(Debug, Default)]
struct Line {
    datagrams: VecDeque<(SocketAddr, Vec<u8>)>,
    carried: usize,
}

/// A wire between two endpoints. It makes its one end whatever the address.
#[derive(Debug, Clone)]
struct Wire {
    receives: Pipe,
    sends: Pipe,
}

impl DatapathFactory for Wire {
    fn bind(&self, id: SocketId, addr: SocketAddr) -> io::Result<Box<dyn Datapath>> {
        Ok(Box::new(End { id, addr, wire: self.clone(), counters: Counters::default() }))
    }
}

#[derive(Debug)]
struct End {
    id: SocketId,
    addr: SocketAddr,
    wire: Wire,
    counters: Counters,
}

impl Datapath for End {
    fn receive(&mut self, batch: &mut RecvBatch) -> io::Result<Received> {
        let mut line = self.wire.receives.lock().unwrap();
        let mut runs = 0;
        while let Some(slot) = batch.free_slots().first_mut() {
            let Some((remote, datagram)) = line.datagrams.pop_front() else { break };
            slot[..datagram.len()].copy_from_slice(&datagram);
            let (len, local) = (datagram.len(), Some(self.addr.ip()));
            batch.push(RecvMeta { socket: self.id, local, remote, ecn: Ecn::NotEct, len, stride: len });
            runs += 1;
        }
        self.counters.datagrams_received += runs as u64;
        Ok(Received::new(runs, !line.datagrams.is_empty()))
    }

    fn send(&mut self, batch: &SendBatch, progress: &mut Progress) -> io::Result<Sent> {
        let mut line = self.wire.sends.lock().unwrap();
        while let Some((_, segment, run)) = progress.next_run(batch, self.id) {
            if line.datagrams.len() > 1000 {
                return Ok(Sent::Blocked);
            }
            for datagram in run.chunks(segment) {
                line.carried += datagram.len();
                line.datagrams.push_back((self.addr, datagram.to_vec()));
                self.counters.datagrams_sent += 1;
            }
            progress.finish_run();
        }
        Ok(Sent::Done)
    }

    fn id(&self) -> SocketId {
        self.id
    }

    fn local_addr(&self) -> SocketAddr {
        self.addr
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new("wire")
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    fn socket(&self) -> Option<&UdpSocket> {
        None
    }
}
