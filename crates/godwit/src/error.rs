//! What can go wrong, said so that a person can act on it and a program can tell the cases apart.
//!
//! That something would have to wait is never an error.

use bytes::Bytes;
use godwit_engine::Stopped;
use godwit_transport::TransportErrorCode;
use rustls::CertificateError;
use std::sync::Arc;
use std::{fmt, io};

/// Why a connection is over.
///
/// Cloning is cheap. [`ConnectionError::kind`] tells the cases apart; the text is for people.
#[derive(Clone)]
pub struct ConnectionError(Arc<Ending>);

#[derive(Debug)]
struct Ending {
    reason: EndReason,
    tls: Option<rustls::Error>,
    /// Whether the handshake had been complete.
    connected: bool,
}

/// What ended it.
#[derive(Debug, Clone)]
pub(crate) enum EndReason {
    /// It was never accepted here.
    NotAccepted(godwit_transport::AcceptError),
    /// The endpoint has ended.
    Stopped(Stopped),
    /// The connection itself.
    Transport(godwit_transport::ConnectionError),
}

/// The cases of a [`ConnectionError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConnectionErrorKind {
    /// This end closed it.
    ClosedLocally,
    /// The peer's application closed it, with a code and a reason.
    ClosedByPeer,
    /// The endpoint has ended: its driver was dropped, its socket failed, or all is done.
    EndpointStopped,
    /// The handshake did not finish in time.
    HandshakeTimedOut,
    /// Nothing was heard of the peer for the idle timeout.
    IdleTimedOut,
    /// The peer's transport closed it because of an error.
    PeerProtocol,
    /// This end's transport closed it because of an error of the peer.
    Protocol,
    /// The server does not take the connection, or this end did not accept it.
    Refused,
    /// The peer has lost its state (stateless reset, RFC 9000 section 10.3).
    Reset,
    /// The TLS handshake failed, at either end: certificates, application protocols, parameters.
    Tls,
    /// Both ends have no QUIC version in common.
    VersionMismatch,
}

impl ConnectionError {
    pub(crate) fn new(reason: EndReason, tls: Option<rustls::Error>, connected: bool) -> Self {
        ConnectionError(Arc::new(Ending { reason, tls, connected }))
    }

    /// Which case it is.
    pub fn kind(&self) -> ConnectionErrorKind {
        use ConnectionErrorKind as Kind;
        use godwit_transport::AcceptError;
        use godwit_transport::ConnectionError as Transport;
        match &self.0.reason {
            EndReason::NotAccepted(AcceptError::Gone) => Kind::HandshakeTimedOut,
            EndReason::NotAccepted(AcceptError::Config(_)) => Kind::Tls,
            EndReason::NotAccepted(_) => Kind::Refused,
            EndReason::Stopped(_) => Kind::EndpointStopped,
            EndReason::Transport(reason) => match reason {
                Transport::ClosedLocally => Kind::ClosedLocally,
                Transport::Transport(_) if self.0.tls.is_some() => Kind::Tls,
                Transport::Transport(error) if error.code.alert().is_some() => Kind::Tls,
                Transport::Transport(_) => Kind::Protocol,
                Transport::PeerTransport { code, .. } if code.alert().is_some() => Kind::Tls,
                Transport::PeerTransport { code: TransportErrorCode::CONNECTION_REFUSED, .. } => {
                    Kind::Refused
                }
                Transport::PeerTransport { .. } => Kind::PeerProtocol,
                Transport::PeerApplication { .. } => Kind::ClosedByPeer,
                Transport::Reset => Kind::Reset,
                Transport::TimedOut if self.0.connected => Kind::IdleTimedOut,
                Transport::TimedOut => Kind::HandshakeTimedOut,
                Transport::VersionMismatch => Kind::VersionMismatch,
                _ => Kind::Protocol,
            },
        }
    }

    /// The code with which the peer's application closed the connection.
    pub fn application_code(&self) -> Option<u64> {
        match &self.0.reason {
            EndReason::Transport(godwit_transport::ConnectionError::PeerApplication { code, .. }) => {
                Some(*code)
            }
            _ => None,
        }
    }

    /// The transport error code (RFC 9000 section 20.1) that either end sent.
    pub fn transport_code(&self) -> Option<u64> {
        match &self.0.reason {
            EndReason::Transport(godwit_transport::ConnectionError::PeerTransport { code, .. }) => {
                Some(code.0)
            }
            EndReason::Transport(godwit_transport::ConnectionError::Transport(error)) => Some(error.code.0),
            _ => None,
        }
    }

    /// The TLS alert with which the peer closed the connection (RFC 9001 section 4.8).
    #[cfg(feature = "http3")]
    pub(crate) fn peer_alert(&self) -> Option<u8> {
        match &self.0.reason {
            EndReason::Transport(godwit_transport::ConnectionError::PeerTransport { code, .. }) => {
                code.alert()
            }
            _ => None,
        }
    }

    /// The peer's explanation, as it came: not necessarily UTF-8.
    pub fn peer_reason(&self) -> Option<&Bytes> {
        match &self.0.reason {
            EndReason::Transport(
                godwit_transport::ConnectionError::PeerApplication { reason, .. }
                | godwit_transport::ConnectionError::PeerTransport { reason, .. },
            ) => Some(reason),
            _ => None,
        }
    }

    /// What TLS found wrong at this end.
    pub fn tls(&self) -> Option<&rustls::Error> {
        self.0.tls.as_ref()
    }
}

impl fmt::Debug for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionError")
            .field("kind", &self.kind())
            .field("text", &self.to_string())
            .finish()
    }
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = match &self.0.reason {
            EndReason::NotAccepted(why) => return write!(f, "not accepted: {why}"),
            EndReason::Stopped(why) => return fmt::Display::fmt(why, f),
            EndReason::Transport(reason) => reason,
        };
        if let Some(tls) = &self.0.tls {
            return explain_tls(f, tls);
        }
        match (self.kind(), reason) {
            (ConnectionErrorKind::HandshakeTimedOut, _) => {
                f.write_str("the handshake did not finish in time (no answer, or packets are lost)")
            }
            (ConnectionErrorKind::IdleTimedOut, _) => {
                f.write_str("nothing was heard of the peer for too long")
            }
            (ConnectionErrorKind::Refused, _) => f.write_str("the server refused the connection"),
            (
                ConnectionErrorKind::Tls,
                godwit_transport::ConnectionError::PeerTransport { code, reason, .. },
            ) => explain_alert(f, code.alert().unwrap_or_default(), reason),
            _ => fmt::Display::fmt(reason, f),
        }
    }
}

impl std::error::Error for ConnectionError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match (&self.0.tls, &self.0.reason) {
            (Some(tls), _) => Some(tls),
            (None, EndReason::Stopped(why)) => why.source(),
            _ => None,
        }
    }
}

/// What TLS found wrong here.
fn explain_tls(f: &mut fmt::Formatter<'_>, error: &rustls::Error) -> fmt::Result {
    let certificate = "the peer's certificate was not accepted";
    match error {
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            write!(f, "{certificate}: no authority that is trusted here has issued it")
        }
        rustls::Error::InvalidCertificate(CertificateError::BadSignature) => {
            write!(f, "{certificate}: the authority of that name which is trusted here has another key")
        }
        rustls::Error::InvalidCertificate(error) => write!(f, "{certificate}: {error}"),
        rustls::Error::NoApplicationProtocol => {
            f.write_str("both ends have no application protocol (ALPN) in common")
        }
        rustls::Error::NoCertificatesPresented => f.write_str("the peer presented no certificate"),
        error => write!(f, "TLS handshake: {error}"),
    }
}

/// What the peer's TLS said in its alert (RFC 8446 section 6.2).
fn explain_alert(f: &mut fmt::Formatter<'_>, alert: u8, reason: &[u8]) -> fmt::Result {
    let known = match alert {
        40 => "the peer found no common TLS parameters",
        42..=46 | 48 | 51 => "the peer did not accept this end's certificate",
        70 => "the peer does not speak this version of TLS",
        112 => "the server does not know the name it was asked for",
        116 => "the server asks for a certificate",
        120 => "both ends have no application protocol (ALPN) in common",
        _ => "the TLS handshake failed at the peer",
    };
    write!(f, "{known} (TLS alert {alert})")?;
    if reason.is_empty() { Ok(()) } else { write!(f, ": {}", String::from_utf8_lossy(reason).escape_debug()) }
}

/// Why a connection could not be begun.
#[derive(Debug, Clone)]
pub struct ConnectError(pub(crate) ConnectFailure);

#[derive(Debug, Clone)]
pub(crate) enum ConnectFailure {
    Closed,
    NoSocket(std::net::SocketAddr),
    Stopped(Stopped),
    Transport(godwit_transport::ConnectError),
}

/// The cases of a [`ConnectError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConnectErrorKind {
    /// The endpoint was closed, or has ended.
    EndpointStopped,
    /// The server's name is neither a DNS name nor an IP address.
    InvalidServerName,
    /// The remote address has port 0, or no socket of the endpoint reaches its address family.
    InvalidRemoteAddress,
    /// The TLS configuration cannot be used for QUIC.
    Tls,
    /// The endpoint holds as many connections as it may.
    TooManyConnections,
}

impl ConnectError {
    /// Which case it is.
    pub fn kind(&self) -> ConnectErrorKind {
        use godwit_transport::ConnectError as Transport;
        match &self.0 {
            ConnectFailure::Closed | ConnectFailure::Stopped(_) => ConnectErrorKind::EndpointStopped,
            ConnectFailure::NoSocket(_) => ConnectErrorKind::InvalidRemoteAddress,
            ConnectFailure::Transport(Transport::InvalidServerName(_)) => ConnectErrorKind::InvalidServerName,
            ConnectFailure::Transport(Transport::TooManyConnections) => ConnectErrorKind::TooManyConnections,
            ConnectFailure::Transport(_) => ConnectErrorKind::Tls,
        }
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ConnectFailure::Closed => f.write_str("the endpoint was closed"),
            ConnectFailure::NoSocket(addr) => write!(f, "cannot reach {addr} from this endpoint's sockets"),
            ConnectFailure::Stopped(why) => fmt::Display::fmt(why, f),
            ConnectFailure::Transport(error) => fmt::Display::fmt(error, f),
        }
    }
}

impl std::error::Error for ConnectError {}

/// Why there is nothing to read from a stream.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ReadError {
    /// The connection is over, and everything that had arrived has been read.
    ConnectionLost(ConnectionError),
    /// The peer gave up sending, with this application error code.
    Reset(u64),
    /// This end called `stop`.
    Stopped,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::ConnectionLost(error) => write!(f, "connection lost: {error}"),
            ReadError::Reset(code) => write!(f, "the peer reset the stream with code {code:#x}"),
            ReadError::Stopped => f.write_str("reading was stopped by this end"),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        if let ReadError::ConnectionLost(error) = self { Some(error) } else { None }
    }
}

/// Why [`crate::RecvStream::read_to_end`] failed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ReadToEndError {
    /// The stream could not be read.
    Read(ReadError),
    /// The stream has more bytes than the limit. They are lost.
    TooLong,
}

impl From<ReadError> for ReadToEndError {
    fn from(error: ReadError) -> Self {
        ReadToEndError::Read(error)
    }
}

impl fmt::Display for ReadToEndError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadToEndError::Read(error) => fmt::Display::fmt(error, f),
            ReadToEndError::TooLong => f.write_str("the stream is longer than the limit"),
        }
    }
}

impl std::error::Error for ReadToEndError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        if let ReadToEndError::Read(error) = self { Some(error) } else { None }
    }
}

/// Why nothing can be written to a stream.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum WriteError {
    /// The connection is over.
    ConnectionLost(ConnectionError),
    /// This end called `finish`.
    Finished,
    /// This end called `reset`.
    Reset,
    /// The peer reads no more, and gave this application error code.
    Stopped(u64),
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteError::ConnectionLost(error) => write!(f, "connection lost: {error}"),
            WriteError::Finished => f.write_str("the stream is finished"),
            WriteError::Reset => f.write_str("the stream was reset by this end"),
            WriteError::Stopped(code) => write!(f, "the peer stopped reading with code {code:#x}"),
        }
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        if let WriteError::ConnectionLost(error) = self { Some(error) } else { None }
    }
}

impl From<ConnectionError> for io::Error {
    fn from(error: ConnectionError) -> Self {
        let kind = match error.kind() {
            ConnectionErrorKind::ClosedLocally | ConnectionErrorKind::EndpointStopped => {
                io::ErrorKind::NotConnected
            }
            ConnectionErrorKind::ClosedByPeer => io::ErrorKind::ConnectionAborted,
            ConnectionErrorKind::HandshakeTimedOut | ConnectionErrorKind::IdleTimedOut => {
                io::ErrorKind::TimedOut
            }
            ConnectionErrorKind::Refused => io::ErrorKind::ConnectionRefused,
            ConnectionErrorKind::Reset => io::ErrorKind::ConnectionReset,
            _ => io::ErrorKind::ConnectionAborted,
        };
        io::Error::new(kind, error)
    }
}

impl From<ConnectError> for io::Error {
    fn from(error: ConnectError) -> Self {
        io::Error::new(io::ErrorKind::InvalidInput, error)
    }
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::ConnectionLost(error) => error.into(),
            ReadError::Reset(_) => io::Error::new(io::ErrorKind::ConnectionReset, error),
            ReadError::Stopped => io::Error::new(io::ErrorKind::NotConnected, error),
        }
    }
}

impl From<ReadToEndError> for io::Error {
    fn from(error: ReadToEndError) -> Self {
        match error {
            ReadToEndError::Read(error) => error.into(),
            ReadToEndError::TooLong => io::Error::new(io::ErrorKind::InvalidData, error),
        }
    }
}

impl From<WriteError> for io::Error {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::ConnectionLost(error) => error.into(),
            WriteError::Stopped(_) => io::Error::new(io::ErrorKind::BrokenPipe, error),
            WriteError::Finished | WriteError::Reset => io::Error::new(io::ErrorKind::NotConnected, error),
        }
    }
}

/// Why settings cannot be used.
#[derive(Debug)]
pub struct ConfigError {
    what: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl ConfigError {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        ConfigError { what: what.into(), source: None }
    }

    pub(crate) fn because(
        what: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        ConfigError { what: what.into(), source: Some(source.into()) }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        self.source.as_ref().map_or(Ok(()), |source| write!(f, ": {source}"))
    }
}

impl std::error::Error for ConfigError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl From<ConfigError> for io::Error {
    fn from(error: ConfigError) -> Self {
        io::Error::new(io::ErrorKind::InvalidInput, error)
    }
}
