//! HTTP/3 (RFC 9114) and QPACK (RFC 9204) without sockets, threads or async.
//!
//! A [`Connection`] sits on a [`Transport`]: a few synchronous calls on streams named by their ids. It is
//! told what happened to streams (`on_*`), answers with [`Event`]s, and is called to send messages and
//! to read bodies. Bodies are pulled, never pushed: what the application does not read stays in the
//! transport, whose flow control then holds the peer back. Body bytes are slices of what the transport
//! gave and are never copied.
//!
//! Everything that a peer can fill has a cap, see [`Config`].
//!
//! # Order of the modules
//!
//! From the bottom: `error`, `config`, `budget`, `transport`, `request_map`, `qpack`, `frame`, `capsule`, `settings`,
//! `origin`, `webtransport`, `message`, `event`, `connection`. Each may use those before it.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod budget;
pub mod capsule;
mod config;
mod connection;
mod error;
mod event;
pub mod frame;
mod message;
mod origin;
pub mod qpack;
mod request_map;
mod settings;
mod transport;
pub mod webtransport;

pub use config::Config;
pub use connection::{BodyRead, Connection};
pub use error::{DatagramError, Error, ErrorCode, ReadError, SendError};
pub use event::Event;
pub use godwit_base::Time;
pub use godwit_wire::{Direction, Side, StreamId};
pub use message::Protocol;
pub use request_map::RequestMap;
pub use settings::Settings;
pub use transport::{Read, StreamError, Transport};
