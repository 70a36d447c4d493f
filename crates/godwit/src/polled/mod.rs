//! QUIC without a runtime and without threads: an endpoint that the application polls.
//!
//! A [`PolledEndpoint`] does nothing by itself. The application waits for its sockets ([`PolledEndpoint::sockets`],
//! which are [`AsFd`](std::os::fd::AsFd)) and for the time that the last [`PolledEndpoint::poll`] named, with `epoll`,
//! `poll`, `kqueue` or whatever it waits with anyway; then it polls again. What has happened is told in the course of
//! that call, and what the application does about it is sent before the call returns. Where there is nothing else to wait
//! for, `PolledEndpoint::wait` (Unix) does it, which is fewer system calls.
//!
//! ```
//! use godwit::polled::{Event, PolledEvent};
//! use godwit::{ClientConfig, Endpoint, ServerConfig};
//! use std::time::Instant;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
//! # let (certificate, key) = (made.cert.pem().into_bytes(), made.signing_key.serialize_pem().into_bytes());
//! let config = ServerConfig::from_pem(&certificate, &key).alpn(["hello"]).build()?;
//! let mut server = Endpoint::builder().server(config).bind("127.0.0.1:0".parse()?).build_polled()?;
//! let mut client = Endpoint::builder().bind("127.0.0.1:0".parse()?).build_polled()?;
//! let config = ClientConfig::with_roots_pem(&certificate).alpn(["hello"]).build()?;
//! client.connect(&config, server.local_addr()?, "localhost")?;
//! let (mut connected, mut idle) = (false, false);
//! while !idle {
//!     // A real program waits here, for its sockets or until the time that `poll` named.
//!     server.poll(Instant::now(), |server, event| {
//!         if let PolledEvent::Incoming(client) = event {
//!             let _ = server.accept(client);
//!         }
//!     })?;
//!     client.poll(Instant::now(), |client, event| {
//!         if let PolledEvent::Connection(connection, Event::Connected) = event {
//!             connected = true;
//!             client.connection(connection).expect("it is connected").close(0, b"that was all");
//!         }
//!     })?;
//!     idle = connected && client.is_idle();
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Events carry no data, as they do in [`Event`]: they say what to call. Each is told once, until the application has
//! done what it is about: after [`Event::Readable`] a stream is to be read until [`ReadChunk::Blocked`], after
//! [`Event::StreamOpened`] streams are to be accepted until there is none.

mod connection;
mod endpoint;

pub use connection::PolledConnection;
pub use endpoint::{PolledEndpoint, PolledEvent, PolledSocket, Wait};
pub use godwit_base::SocketId;
pub use godwit_transport::{AcceptError, Incoming, IncomingKey};
pub use godwit_transport::{ConnKey, ConnectionError, Event, TransportErrorCode};
pub use godwit_transport::{PathId, PathKey, PathUpdate};
pub use godwit_transport::{ReadChunk, ReadError, UnknownStream, WriteError};
