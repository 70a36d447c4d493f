//! What both ends can be told.

use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::key_exchange::KeyExchange;
use crate::Error;
use godwit::{Backend, CongestionAlgorithm, DepartureTimes, Spin};
use rustls::CipherSuite;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Streams, requests or handshakes at the same time, over all connections: each has a task.
const MOST_AT_ONCE: u64 = 1_000_000;

/// Refuses more than can be done at the same time: so many on each connection.
pub(super) fn check_at_once(connections: u32, on_each: u32) -> Result<(), Error> {
    if u64::from(connections) * u64::from(on_each) > MOST_AT_ONCE {
        let problem =
            format!("{connections} x {on_each} at the same time; at most {MOST_AT_ONCE} are possible");
        return Err(Error::new(problem));
    }
    Ok(())
}

/// A certificate chain and its key.
pub type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// What protects packets: a cipher suite of TLS 1.3 (RFC 8446 appendix B.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cipher {
    /// TLS_AES_128_GCM_SHA256.
    Aes128,
    /// TLS_AES_256_GCM_SHA384.
    Aes256,
    /// TLS_CHACHA20_POLY1305_SHA256.
    Chacha20,
}

impl Cipher {
    pub(super) fn suite(self) -> CipherSuite {
        match self {
            Cipher::Aes128 => CipherSuite::TLS13_AES_128_GCM_SHA256,
            Cipher::Aes256 => CipherSuite::TLS13_AES_256_GCM_SHA384,
            Cipher::Chacha20 => CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
        }
    }
}

impl FromStr for Cipher {
    type Err = String;

    fn from_str(text: &str) -> Result<Cipher, String> {
        match text {
            "aes128" => Ok(Cipher::Aes128),
            "aes256" => Ok(Cipher::Aes256),
            "chacha20" => Ok(Cipher::Chacha20),
            _ => Err("expected aes128, aes256 or chacha20".to_owned()),
        }
    }
}

/// What the transport can be told.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Tuning {
    /// The largest UDP payload to try; 1200 is no search for a larger one.
    pub mtu: u16,
    /// Congestion control.
    pub congestion: CongestionAlgorithm,
    /// The only cipher suite to accept; without it, any of TLS 1.3, of which AES-128-GCM is preferred.
    pub cipher: Option<Cipher>,
    /// By which groups keys are agreed on.
    pub key_exchange: KeyExchange,
    /// Tell where a client's processor time goes, which takes some of it: see [`super::Breakdown`].
    pub breakdown: bool,
    /// How to reach the network.
    pub datapath: Backend,
    /// After how long without packets to show that this end is still there; without it, never.
    pub keep_alive: Option<Duration>,
    /// Whether the kernel holds packets back until they are to leave.
    pub departure_times: DepartureTimes,
    /// Whether to look for datagrams before going to sleep.
    pub spin: Spin,
    /// Threads that protect packets beside those that send them, 64 at most.
    pub sealing_threads: u8,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            mtu: 1472,
            congestion: CongestionAlgorithm::Cubic,
            cipher: None,
            key_exchange: KeyExchange::Hybrid,
            breakdown: false,
            datapath: Backend::Native,
            keep_alive: None,
            departure_times: DepartureTimes::Off,
            spin: Spin::Off,
            sealing_threads: 0,
        }
    }
}

/// A server's options.
#[derive(Debug)]
#[non_exhaustive]
pub struct ServerOptions {
    /// Address to listen on, and the port of UDP and TCP; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The certificate; without one, one is made up for this run.
    pub identity: Option<Identity>,
    /// Threads, each with a socket and connections of its own.
    pub shards: u8,
    /// Give out session tickets, for clients that resume; without them all handshakes are full.
    pub tickets: bool,
    /// Cores to pin the threads to, in turn.
    pub pin: Vec<usize>,
    /// The transport's.
    pub tuning: Tuning,
}

impl Default for ServerOptions {
    fn default() -> ServerOptions {
        ServerOptions {
            listen: (Ipv6Addr::UNSPECIFIED, 4433).into(),
            identity: None,
            shards: 1,
            tickets: false,
            pin: Vec::new(),
            tuning: Tuning::default(),
        }
    }
}

/// What a client measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scenario {
    /// Bytes that arrive.
    Download,
    /// Bytes that the server has confirmed.
    Upload,
    /// Requests, each on a stream of its own.
    Requests,
    /// The same, and what is asked is how long each takes.
    Latency,
    /// Connections.
    Handshakes,
    /// Memory of connections on which nothing happens.
    Idle,
}

/// A client's options.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClientOptions {
    /// The server: a name or address, and a port.
    pub target: String,
    /// What to measure.
    pub scenario: Scenario,
    /// For how long.
    pub duration: Duration,
    /// Connections at the same time.
    pub connections: u32,
    /// Streams, or requests, at the same time on each connection.
    pub streams: u32,
    /// Bytes of a request, without its header of 8 bytes.
    pub request: u64,
    /// Bytes of a response.
    pub response: u64,
    /// Bytes of the longest response, where they differ: in turn they have 16 lengths from the one to the other.
    pub longest_response: Option<u64>,
    /// Requests at the same time over all connections, each on the connection whose turn it is, in place of `streams` on each.
    /// Over QUIC only.
    pub in_flight: Option<u32>,
    /// Requests that are begun in a second, by the clock, over all connections; without it, each as soon as another is
    /// answered.
    pub rate: Option<f64>,
    /// Handshakes at the same time.
    pub concurrency: u32,
    /// Over TCP and TLS in place of QUIC; each stream is then a connection.
    pub tcp: bool,
    /// Hold every byte of a download against what `godwit perf server` sends at its place, and fail at the first that differs.
    pub verify: bool,
    /// Resume sessions with tickets of earlier handshakes.
    pub resumed: bool,
    /// Tell how much memory connections take.
    pub memory: bool,
    /// The same of this process of this machine, for a server that runs here.
    pub memory_of: Option<u32>,
    /// Accept only certificates that go back to one in this PEM file; without it, any.
    pub authority: Option<PathBuf>,
    /// The transport's.
    pub tuning: Tuning,
}

impl ClientOptions {
    /// Refuses more than can be done at the same time.
    pub(super) fn check_at_once(&self) -> Result<(), Error> {
        match (self.scenario, self.in_flight) {
            (Scenario::Handshakes, _) => check_at_once(1, self.concurrency),
            (Scenario::Idle, _) => check_at_once(self.connections, 1),
            (_, Some(in_flight)) => check_at_once(1, in_flight),
            _ => check_at_once(self.connections, self.streams),
        }
    }

    /// The usual options for a server and a scenario.
    #[must_use]
    pub fn new(target: impl Into<String>, scenario: Scenario) -> ClientOptions {
        ClientOptions {
            target: target.into(),
            scenario,
            duration: Duration::from_secs(5),
            connections: 1,
            streams: 1,
            request: 512,
            response: 8192,
            longest_response: None,
            in_flight: None,
            rate: None,
            concurrency: 8,
            tcp: false,
            verify: false,
            resumed: false,
            memory: scenario == Scenario::Idle,
            memory_of: None,
            authority: None,
            tuning: Tuning::default(),
        }
    }
}
