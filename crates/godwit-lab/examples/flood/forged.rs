//! Floods of those who need not be where they say they are: first packets from anywhere in 127/8, and noise.

use crate::Task;
use crate::rate::Rate;
use godwit_base::{Ecn, RecvBatch, RecvMeta, Rng, SeededRng, SendBatch, SocketId, Time, WallTime};
use godwit_tls::danger::AcceptAnyCertificate;
use godwit_tls::secrets::ServerSecrets;
use godwit_transport::{ClientConfig, Endpoint, EndpointConfig, PathKey, TransportConfig};
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;

/// A flood: how often it did what it does.
type Flood = fn(Task) -> Result<u64, String>;

pub(crate) const KINDS: [(&str, Flood); 8] = [
    ("initials", |task| flood(task, |hello, socket| hello.iter().for_each(|part| send(socket, part)))),
    ("partial-hellos", |task| {
        flood(task, |hello, socket| hello.iter().take(1).for_each(|part| send(socket, part)))
    }),
    ("early-data", |task| flood(task, early_data)),
    ("half-open", half_open),
    ("short-packets", |task| noise(task, 0x40)),
    ("stateless-resets", resets),
    ("unknown-versions", |task| noise(task, 0xc0)),
    ("garbage", |task| noise(task, 0)),
];

/// How many addresses at a time.
const SOURCES: usize = 256;

fn send(socket: &UdpSocket, bytes: &[u8]) {
    // A full queue of the system is as good as a lost packet.
    let _ = socket.send(bytes);
    crate::sent(1);
}

/// A partial hello, and behind it as much early data as a datagram holds, all of it charged before anybody is known.
fn early_data(hello: &[Vec<u8>], socket: &UdpSocket) {
    let Some(first) = hello.first() else { return };
    send(socket, first);
    let Some(dcid) = first.get(6..6 + usize::from(first[5])) else { return };
    let mut packet = vec![0xd0, 0, 0, 0, 1, first[5]];
    packet.extend_from_slice(dcid);
    packet.push(0);
    packet.extend_from_slice(&(0x8000_0000_u32 | 39_900).to_be_bytes());
    packet.resize(40_000, 7);
    (0..15).for_each(|_| send(socket, &packet));
}

/// Says a new hello from a new address each time.
fn flood(task: Task, say: impl Fn(&[Vec<u8>], &UdpSocket)) -> Result<u64, String> {
    let mut rng = SeededRng::new(1);
    let (mut hellos, mut sources) = (Hellos::new(task)?, Vec::new());
    let mut rate = Rate::new(task);
    while rate.wait() {
        if sources.len() >= SOURCES {
            sources.clear();
        }
        sources.push(source(task, &mut rng)?);
        if let Some(source) = sources.last() {
            say(&hellos.next()?, source);
        }
    }
    Ok(rate.done())
}

/// One address that can hear: it takes Retry packets, and never finishes a handshake.
fn half_open(task: Task) -> Result<u64, String> {
    let mut hellos = Hellos::new(task)?;
    let socket = source(task, &mut SeededRng::new(3))?;
    let mut rate = Rate::new(task);
    let mut buffer = vec![0; 65_536];
    while rate.wait() {
        hellos.next()?.iter().for_each(|part| send(&socket, part));
        while let Ok(len) = socket.recv(&mut buffer) {
            // The two bits behind the fixed bit say that it is a Retry packet (RFC 9000, section 17.2.5).
            if buffer.first().is_some_and(|first| first & 0xf0 == 0xf0) {
                hellos.answer(&buffer[..len])?.iter().for_each(|part| send(&socket, part));
            }
        }
    }
    Ok(rate.done())
}

/// Packets of 1200 random bytes behind a first byte; with a first byte of 0 that is random as well.
fn noise(task: Task, first: u8) -> Result<u64, String> {
    let mut rng = SeededRng::new(2);
    let (mut sources, mut bytes) = (Vec::new(), [0; 1200]);
    let mut rate = Rate::new(task);
    while rate.wait() {
        if sources.len() < SOURCES {
            sources.push(source(task, &mut rng)?);
        }
        rng.fill(&mut bytes);
        if first != 0 {
            bytes[0] = first;
        }
        let at = rng.below(sources.len() as u64) as usize;
        if let Some(source) = sources.get(at) {
            send(source, &bytes);
        }
    }
    Ok(rate.done())
}

/// One address that knows no connection and says packets of all sizes that provoke stateless resets, and the resets too:
/// whoever answered each of them with another would never be done (RFC 9000, section 10.3.3).
fn resets(task: Task) -> Result<u64, String> {
    let mut rng = SeededRng::new(4);
    let socket = source(task, &mut rng)?;
    let mut rate = Rate::new(task);
    let (mut bytes, mut buffer) = ([0; 1200], vec![0; 65_536]);
    while rate.wait() {
        let len = 21 + rng.below(1179) as usize;
        rng.fill(&mut bytes);
        bytes[0] = 0x40 | bytes[0] & 0x3f;
        send(&socket, &bytes[..len]);
        while let Ok(len) = socket.recv(&mut buffer) {
            send(&socket, &buffer[..len]);
        }
    }
    Ok(rate.done())
}

/// A socket somewhere in 127/8, but not where honest clients are.
fn source(task: Task, rng: &mut dyn Rng) -> Result<UdpSocket, String> {
    let number = rng.next_u64().to_be_bytes();
    let address = Ipv4Addr::new(127, number[0] | 1, number[1], number[2].clamp(1, 254));
    let socket = UdpSocket::bind((address, 0)).map_err(|error| format!("{address}: {error}"))?;
    socket.connect(task.server).map_err(|error| error.to_string())?;
    socket.set_nonblocking(true).map_err(|error| error.to_string())?;
    Ok(socket)
}

/// First flights of clients, each whole and different.
struct Hellos {
    endpoint: Endpoint,
    config: ClientConfig,
    path: PathKey,
    now: Time,
    out: SendBatch,
    input: RecvBatch,
    made: u64,
}

impl Hellos {
    fn new(task: Task) -> Result<Self, String> {
        let provider = godwit_tls::provider();
        let verifier = Arc::new(AcceptAnyCertificate::new(Arc::clone(&provider)));
        let mut tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        tls.alpn_protocols = vec![b"h3".to_vec()];
        Ok(Hellos {
            endpoint: endpoint(0),
            config: ClientConfig::new(Arc::new(tls), Arc::new(TransportConfig::default())),
            path: PathKey { socket: SocketId(0), local: None, remote: task.server },
            now: Time::from_nanos(1_000_000_000),
            out: SendBatch::new(1 << 16),
            input: RecvBatch::new(4, 65_536),
            made: 0,
        })
    }

    /// The datagrams of the next client's first flight.
    fn next(&mut self) -> Result<Vec<Vec<u8>>, String> {
        // Clients are forgotten without a word.
        if self.made.is_multiple_of(64) {
            self.endpoint = endpoint(self.made);
        }
        self.made += 1;
        let begun = self.endpoint.connect(self.now, &self.config, self.path, "localhost", None);
        begun.map_err(|error| format!("{error:?}"))?;
        Ok(self.said())
    }

    /// What clients say to a packet.
    fn answer(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, String> {
        let (socket, remote) = (self.path.socket, self.path.remote);
        let meta = RecvMeta { socket, local: None, remote, ecn: Ecn::NotEct, len: 0, stride: 1 };
        self.input.clear();
        self.input.push_datagram(meta, bytes);
        self.endpoint.receive(self.now, WallTime::default(), &mut self.input);
        Ok(self.said())
    }

    fn said(&mut self) -> Vec<Vec<u8>> {
        self.out.clear();
        while self.endpoint.transmit(self.now, &mut self.out) {}
        self.out.datagrams().map(|(_, bytes)| bytes.to_vec()).collect()
    }
}

fn endpoint(seed: u64) -> Endpoint {
    // Connection ids must differ from those of an earlier run that the server still knows.
    let seed = seed ^ u64::from(std::process::id()) << 32;
    let secrets = Arc::new(ServerSecrets::from_rng(&mut SeededRng::new(seed)));
    Endpoint::new(EndpointConfig::new(secrets), None, Box::new(SeededRng::new(seed)))
}
