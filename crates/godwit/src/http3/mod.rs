//! HTTP/3 (RFC 9114): a server for `tower` services and a client, over `http` and `http-body` types.
//!
//! ```no_run
//! # async fn example(certificate: &[u8], key: &[u8]) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! use godwit::http3::{self, Body};
//! use http::{Request, Response};
//!
//! let config = godwit::ServerConfig::from_pem(certificate, key).alpn([http3::ALPN]).build()?;
//! let endpoint = godwit::Endpoint::server(config, "[::]:443".parse()?)?;
//! let hello = tower::service_fn(|request: Request<Body>| async move {
//!     Ok::<_, std::convert::Infallible>(Response::new(Body::from(format!("Hello, {}!\n", request.uri().path()))))
//! });
//! http3::Server::new().serve(&endpoint, hello).await;
//! # Ok(())
//! # }
//! ```
//!
//! Bodies are streamed in both directions, with trailers: what is not read stays in the transport, whose
//! flow control holds the peer back, and what is sent waits for room. Content is never copied on the way
//! between the application and the transport.
//!
//! # Inside
//! A connection is in raw mode: the protocol's state (`protocol`) lives beside the QUIC connection under
//! the shard's lock, which is the only lock there is, and is moved on in the turn in which something
//! arrives. The two halves of an exchange (`exchange`) read and write under that lock, from whatever task
//! they are in, and are woken one by one. There is no task between them and the transport. Nothing of the
//! application runs, and no handle is dropped, while the lock is held.

mod admission;
mod body;
mod client;
mod connection_info;
mod connection_watch;
mod datagram_flow;
mod delivery;
mod early_requests;
mod error;
mod exchange;
mod informational;
mod io;
mod link;
mod minimum_rate;
mod outgoing;
mod protocol;
mod proxied;
mod remembered_settings;
mod request_task;
mod send_body;
mod server;
mod server_event;
mod service;
mod stream;
mod stream_queue;
mod tunnels;
pub mod udp_tunnel;
mod unless_ready;
mod watching;
pub mod webtransport;

pub use body::Body;
pub use client::{Client, OnInformational};
pub use connection_info::{ConnectionInfo, ConnectionWatch};
pub use datagram_flow::DatagramFlow;
pub use delivery::Delivery;
pub use early_requests::EarlyRequests;
pub use error::{Error, ErrorKind};
pub use godwit_body::{IdleConnections, Informational};
pub use godwit_http3::capsule;
pub use godwit_http3::{Config, DatagramError, ErrorCode, Protocol};
pub use server::Server;
pub use server_event::ServerEvent;
pub use service::HttpService;

/// The name of HTTP/3 in ALPN (RFC 9114 section 3.1), for [`crate::ServerConfigBuilder::alpn`] and
/// [`crate::ClientConfigBuilder::alpn`].
pub const ALPN: &[u8] = b"h3";

/// An error of any type, as services and bodies have them.
type BoxError = Box<dyn std::error::Error + Send + Sync>;
