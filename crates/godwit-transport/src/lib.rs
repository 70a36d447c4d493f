//! The sans-I/O QUIC connection and endpoint (RFC 9000, 9001, 9002; version 2 of RFC 9369).
//!
//! Datagrams go in with the time at which they came, datagrams come out into a batch, and a deadline
//! says when to call again. There are no sockets, no threads, no clock and no randomness of its own
//! here: the same inputs give the same bytes.
//!
//! A [`Connection`] is a facade over a machine, and the machine is wiring over components that own one concern each
//! (`handshake`, `streams`, `cid`, `path`, and `godwit-recovery` for loss and congestion). Those that own frames have
//! one interface, `part`, and stand in one table, `connection/parts`: frames of the peer reach them from
//! `connection/frames`, they write their own into packets, and hear of acknowledgements and losses.
//!
//! # Order of the modules
//!
//! From the bottom: `address_token`, `congestion`, `error`, `observe`, `path::id`, `unprotected`, `packet`, `qlog`, `path`,
//! `event`, `part`, `cid`, `datagrams`, `tail`, `reserve`, `keyed_hash`, `memory_limit`, `used_tokens`, `config`, `resumption`,
//! `streams`, `handshake`, `connection`, `endpoint`. Each may use those before it.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod address_token;
mod cid;
mod config;
pub mod congestion;
mod connection;
mod datagrams;
mod endpoint;
mod error;
mod event;
mod handshake;
mod keyed_hash;
mod memory_limit;
pub mod observe;
mod packet;
mod part;
mod path;
pub mod qlog;
mod reserve;
mod resumption;
mod streams;
mod tail;
mod unprotected;
mod used_tokens;

pub use cid::{Cibir, CidCodec, CidIdentifier, ServerId};
pub use config::{ClientConfig, EndpointConfig, MigrationConfig, ServerConfig, TransportConfig};
pub use connection::{Connection, ConnectionStats, Evidence, MigrateError, PacketCounts, Progress};
pub use datagrams::{DatagramConfig, DatagramOutcome, DatagramOverflow, DatagramStats, SendDatagramError};
pub use endpoint::{
    AcceptError, BatchWriters, Begun, ConnKey, Endpoint, Foreign, ForeignBatch, GoneIncoming, Incoming,
    IncomingKey,
};
pub use error::{ConnectError, ConnectionError};
pub use event::Event;
pub use godwit_recovery::congestion::{Algorithm as CongestionAlgorithm, CongestionControl};
pub use godwit_recovery::{EcnCounts, EcnFailure, EcnState, EcnStats, Laboratory, MtuCounters};
pub use godwit_tls as tls;
pub use godwit_tls::ExportError;
pub use godwit_wire::{ConnectionId, Direction, Side, StreamId, TransportErrorCode, WireError};
pub use handshake::HandshakeBytes;
pub use memory_limit::MemoryLimit;
pub use path::{PathId, PathInfo, PathKey, PathState, PathUpdate};
pub use reserve::WindowReserve;
pub use resumption::{EarlyDataStatus, Recalled};
pub use streams::{ReadChunk, ReadError, Readable, ResetAtError, StreamLimits, UnknownStream, WriteError};
pub use tail::TailPolicy;
pub use unprotected::{NotProtected, UnprotectedRuns};
pub use used_tokens::UsedTokens;
