//! Why connections end, and why calls are refused.

use bytes::Bytes;
use godwit_wire::TransportErrorCode;
use std::fmt;
use std::panic::Location;

/// A violation by the peer (or a failure of ours) that closes the connection with a CONNECTION_CLOSE
/// frame of type 0x1c (RFC 9000 section 11.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireError {
    /// The code the peer is told.
    pub code: TransportErrorCode,
    /// The type of the frame that caused it, or 0.
    pub frame_type: u64,
    /// What was wrong, for people.
    pub reason: &'static str,
    /// Where in our code it was decided.
    pub at: &'static Location<'static>,
}

impl WireError {
    /// A violation. The caller's place in the source is recorded.
    #[track_caller]
    pub const fn new(code: TransportErrorCode, reason: &'static str) -> Self {
        WireError { code, frame_type: 0, reason, at: Location::caller() }
    }

    /// The same, naming the frame that caused it.
    #[must_use]
    pub const fn in_frame(mut self, frame_type: u64) -> Self {
        self.frame_type = frame_type;
        self
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.reason)
    }
}

impl std::error::Error for WireError {}

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
