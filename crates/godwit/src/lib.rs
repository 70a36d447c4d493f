//! QUIC and HTTP/3 for asynchronous Rust, on tokio.
//!
//! An [`Endpoint`] is a UDP socket with connections on it. A [`Connection`] has any number of streams, each
//! with a [`SendStream`], a [`RecvStream`], or both. Streams implement tokio's `AsyncRead` and
//! `AsyncWrite`.
//!
//! ```
//! use godwit::{ClientConfig, Endpoint, ServerConfig};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
//! # let (certificate, key) = (made.cert.pem().into_bytes(), made.signing_key.serialize_pem().into_bytes());
//! // A server that sends back what it gets. `certificate` and `key` are in PEM format.
//! let config = ServerConfig::from_pem(&certificate, &key).alpn(["echo"]).build()?;
//! let server = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
//! let addr = server.local_addr()?;
//! tokio::spawn(async move {
//!     while let Some(incoming) = server.accept().await {
//!         let connection = incoming.await?;
//!         let (mut send, mut recv) = connection.accept_bi().await?;
//!         tokio::io::copy(&mut recv, &mut send).await?;
//!         send.finish()?;
//!         connection.closed().await;
//!     }
//!     Ok::<_, std::io::Error>(())
//! });
//!
//! // A client that trusts that certificate.
//! let client = Endpoint::client("127.0.0.1:0".parse()?)?;
//! let config = ClientConfig::with_roots_pem(&certificate).alpn(["echo"]).build()?;
//! let connection = client.connect(&config, addr, "localhost")?.await?;
//! let (mut send, mut recv) = connection.open_bi().await?;
//! send.write_all(b"hello").await?;
//! send.finish()?;
//! assert_eq!(recv.read_to_end(1024).await?, b"hello");
//! # Ok(())
//! # }
//! ```
//!
//! # How it behaves
//!
//! - Everything that waits can be cancelled by dropping its future; where that loses something, the
//!   documentation of the method says so.
//! - Dropping is saying no: an [`Incoming`] is refused, a [`SendStream`] that was not finished is reset, a
//!   [`RecvStream`] before its end is stopped, a connection without handles is closed, each with code 0.
//! - What had arrived before the peer closed the connection can still be accepted and read.
//! - [`polled`] is an endpoint without tokio, for applications with an event loop of their own.
//! - Handles may be used from any thread. They are fastest on the thread that drives the endpoint: see
//!   [`EndpointBuilder::run_shards`] for servers on many cores.
//!
//! # Features
//!
//! - `tokio` (default): [`Endpoint`], [`Connection`] and streams as asynchronous handles. Without it there is the
//!   [`polled`] API alone, and no runtime among the dependencies.
//! - `http3` (default): [`http3`], servers and clients.
//! - `hand-over`: exchanging the process for a newer one while its connections live (Linux).
//! - `aws-lc-rs` (default) or `ring`: the library of cryptography. There must be one of them, and where both are on it
//!   is aws-lc-rs. ring is quicker to build; it has no post-quantum key exchange, and masks the headers of packets one
//!   by one.
//!
//! # Order of the modules
//!
//! From the bottom: `datapath`, `code`, `error`, `resumption`, `config`, `qlog`, `stats`, `paths`, `socket_groups`,
//! `generations`, `polled`, `builder`; with `tokio` `handler`, `access`, `send_stream`, `recv_stream`, `connection`,
//! `datagrams`, `poller`, `settings`, `raw`, `target`, `connecting`, `incoming`, `parked`, `drain`, `endpoint`, `shards`,
//! `builder::running`, `hand_over`; with `http3` `http3`.
#![forbid(unsafe_code)]
#![cfg_attr(not(feature = "tokio"), allow(dead_code, reason = "some of it is for handles and drivers alone"))]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![deny(clippy::indexing_slicing)]

#[cfg(feature = "tokio")]
mod access;
mod builder;
mod code;
mod config;
#[cfg(feature = "tokio")]
mod connecting;
#[cfg(feature = "tokio")]
mod connection;
#[cfg(feature = "tokio")]
mod datagrams;
#[cfg(feature = "tokio")]
mod drain;
#[cfg(feature = "tokio")]
mod endpoint;
mod error;
#[cfg_attr(not(all(feature = "hand-over", target_os = "linux")), path = "generations/absent.rs")]
mod generations;
#[cfg(all(feature = "hand-over", target_os = "linux"))]
mod hand_over;
#[cfg(feature = "tokio")]
mod handler;
#[cfg(feature = "http3")]
pub mod http3;
#[cfg(feature = "tokio")]
mod incoming;
#[cfg(feature = "tokio")]
mod parked;
mod paths;
pub mod polled;
#[cfg(feature = "tokio")]
mod poller;
mod qlog;
#[cfg(feature = "http3")]
mod raw;
#[cfg(feature = "tokio")]
mod recv_stream;
pub mod resumption;
#[cfg(feature = "tokio")]
mod send_stream;
#[cfg(feature = "tokio")]
mod settings;
#[cfg(feature = "tokio")]
mod shards;
mod socket_groups;
mod stats;
#[cfg(feature = "tokio")]
mod target;

/// Data paths that users bring, in place of UDP sockets: see [`EndpointBuilder::datapaths`].
///
/// The simplest is a [`Carrier`](datapath::Carrier), which sends and receives single datagrams.
pub mod datapath {
    pub use godwit_base::{Ecn, RecvBatch, RecvMeta, SendBatch, SendMeta, SocketId};
    pub use godwit_datapath::memory::{Hub, MemorySocket};
    pub use godwit_datapath::{
        Capabilities, Carried, Carrier, CarrierFactory, Counters, Datapath, DatapathFactory, Progress,
        Received, Refused, Sent, TooLarge, Unreachable,
    };
}

pub use builder::EndpointBuilder;
pub use code::{ApplicationCode, CodeTooLarge};
pub use config::{
    ClientConfig, ClientConfigBuilder, MigrationConfig, ServerConfig, ServerConfigBuilder, TransportConfig,
};
#[cfg(feature = "tokio")]
pub use connecting::{Approval, Connecting};
#[cfg(feature = "tokio")]
pub use connection::Connection;
#[cfg(feature = "tokio")]
pub use endpoint::Endpoint;
pub use error::{
    ConfigError, ConnectError, ConnectErrorKind, ConnectionError, ConnectionErrorKind, ReadError,
    ReadToEndError, WriteError,
};
pub use godwit_base::Time;
pub use godwit_datapath::{Backend, Capabilities, Counters, DepartureTimes, SocketConfig};
pub use godwit_engine::{HandedOn, Spin, Stopped};
pub use godwit_os::affinity::pin_current_thread;
pub use godwit_transport::EarlyDataStatus;
pub use godwit_transport::ExportError;
pub use godwit_transport::PathState;
pub use godwit_transport::ResetAtError;
pub use godwit_transport::tls::provider as crypto_provider;
pub use godwit_transport::tls::secrets::ServerSecrets;
pub use godwit_transport::{
    CongestionAlgorithm, CongestionControl, Direction, EcnCounts, EcnFailure, EcnState, EcnStats, Laboratory,
    MtuCounters, Side, StreamId, TailPolicy,
};
pub use godwit_transport::{ConnectionStats, Evidence, MigrateError, PacketCounts, Progress};
pub use godwit_transport::{
    DatagramConfig, DatagramOutcome, DatagramOverflow, DatagramStats, SendDatagramError,
};
pub use godwit_transport::{congestion, observe};
#[cfg(all(feature = "hand-over", target_os = "linux"))]
pub use hand_over::{Generation, Inheritance, Predecessor, Successor};
#[cfg(feature = "tokio")]
pub use incoming::Incoming;
pub use paths::{PathEvent, PathStats};
#[cfg(feature = "tokio")]
pub use poller::ConnectionPoller;
pub use qlog::{QlogFolder, QlogNews};
#[cfg(feature = "tokio")]
pub use recv_stream::RecvStream;
#[cfg(feature = "tokio")]
pub use send_stream::SendStream;
#[cfg(feature = "tokio")]
pub use shards::Shards;
pub use stats::{EndpointStats, SocketStats};

/// The rustls that configurations are made with.
pub use rustls;
