//! Why connections end, and why calls are refused.

use bytes::Bytes;
use godwit_wire::{TransportErrorCode, WireError};
use std::fmt;

/// Why a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionError {
    /// This end's application closed it.
    ClosedLocally,
    /// This end found an error.
    Transport(WireError),
    /// The peer's transport closed it.
    PeerTransport {
        /// The peer's code.
        code: TransportErrorCode,
        /// The frame type it blames, or 0.
        frame_type: u64,
        /// Its explanation, as it came (not necessarily UTF-8).
        reason: Bytes,
    },
    /// The peer's application closed it.
    PeerApplication {
        /// The application's code.
        code: u64,
        /// Its explanation, as it came (not necessarily UTF-8).
        reason: Bytes,
    },
    /// The peer has lost its state (stateless reset, RFC 9000 section 10.3).
    Reset,
    /// Nothing was heard for the idle timeout, or the handshake did not finish in time.
    TimedOut,
    /// The server speaks none of our versions.
    VersionMismatch,
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectionError::ClosedLocally => f.write_str("closed by this end"),
            ConnectionError::Transport(error) => write!(f, "closed by this end: {error}"),
            ConnectionError::PeerTransport { code, reason, .. } => {
                write!(f, "closed by the peer: {code}")?;
                explain(f, reason)
            }
            ConnectionError::PeerApplication { code, reason } => {
                write!(f, "closed by the peer's application with code {code:#x}")?;
                explain(f, reason)
            }
            ConnectionError::Reset => f.write_str("the peer lost its state (stateless reset)"),
            ConnectionError::TimedOut => f.write_str("timed out"),
            ConnectionError::VersionMismatch => f.write_str("the server speaks none of our QUIC versions"),
        }
    }
}

fn explain(f: &mut fmt::Formatter<'_>, reason: &[u8]) -> fmt::Result {
    if reason.is_empty() { Ok(()) } else { write!(f, ": {}", String::from_utf8_lossy(reason).escape_debug()) }
}

impl std::error::Error for ConnectionError {}

/// Why a connection could not be begun.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectError {
    /// The endpoint holds as many connections as it may.
    TooManyConnections,
    /// The server's name is neither a DNS name nor an IP address.
    InvalidServerName(String),
    /// The TLS configuration cannot be used for QUIC.
    Tls(String),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::TooManyConnections => f.write_str("the endpoint is at its limit of connections"),
            ConnectError::InvalidServerName(name) => write!(f, "not a DNS name or IP address: {name:?}"),
            ConnectError::Tls(why) => write!(f, "TLS configuration: {why}"),
        }
    }
}

impl std::error::Error for ConnectError {}
