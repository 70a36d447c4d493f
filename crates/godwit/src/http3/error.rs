//! What can go wrong with a request, a body or a connection.

use super::BoxError;
use crate::{ConnectError, ConnectionError, ConnectionErrorKind};
use godwit_http3::{ErrorCode, ReadError, SendError};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Why a request failed, a body broke off, or a connection is over.
///
/// Cloning is cheap. [`Error::kind`] tells the cases apart; the text is for people.
#[derive(Clone)]
pub struct Error(Arc<Inner>);

struct Inner {
    kind: ErrorKind,
    what: Cow<'static, str>,
    code: Option<ErrorCode>,
    source: Option<BoxError>,
}

/// The cases of an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The body that was to be sent failed. The source is its error.
    Body,
    /// This end gave up the exchange.
    Cancelled,
    /// The connection could not be established. The source says why.
    Connect,
    /// The connection is over. The source says why.
    Connection,
    /// The server is shutting down and takes no new requests: use another connection.
    GoingAway,
    /// The message cannot be sent over HTTP/3, or its headers are larger than the peer accepts.
    Message,
    /// The peer does not speak HTTP/3.
    NotHttp3,
    /// The peer broke the rules of HTTP/3; [`Error::code`] says in which way.
    Protocol,
    /// The peer gave up the exchange; [`Error::code`] says why.
    Reset,
}

impl Error {
    fn new(kind: ErrorKind, what: impl Into<Cow<'static, str>>) -> Self {
        Self::build(kind, what.into(), None, None)
    }

    fn build(
        kind: ErrorKind,
        what: Cow<'static, str>,
        code: Option<ErrorCode>,
        source: Option<BoxError>,
    ) -> Self {
        Error(Arc::new(Inner { kind, what, code, source }))
    }

    /// Which case it is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The HTTP/3 error code (RFC 9114 section 8.1) that either end sent.
    pub fn code(&self) -> Option<ErrorCode> {
        self.0.code
    }

    /// True if the server has certainly not acted on the request: it can be sent again, on another
    /// connection, whatever its method.
    pub fn is_retryable(&self) -> bool {
        matches!(self.0.kind, ErrorKind::GoingAway | ErrorKind::Connect | ErrorKind::NotHttp3)
            || self.is_rejected()
    }

    fn is_rejected(&self) -> bool {
        self.0.kind == ErrorKind::Reset && self.0.code == Some(ErrorCode::H3_REQUEST_REJECTED)
    }

    /// The connection cannot be begun.
    pub(super) fn connect(error: ConnectError) -> Self {
        let what = format!("cannot connect: {error}").into();
        Self::build(ErrorKind::Connect, what, None, Some(error.into()))
    }

    /// The handshake failed.
    pub(super) fn handshake(error: ConnectionError) -> Self {
        const NO_APPLICATION_PROTOCOL: u64 = 0x178;
        if error.transport_code() == Some(NO_APPLICATION_PROTOCOL) {
            let what = "the server does not speak HTTP/3 (no application protocol in common)";
            return Self::build(ErrorKind::NotHttp3, what.into(), None, Some(error.into()));
        }
        let what = format!("cannot connect: {error}").into();
        Self::build(ErrorKind::Connect, what, None, Some(error.into()))
    }

    /// The handshake ended in another protocol.
    pub(super) fn other_protocol(alpn: Option<&[u8]>) -> Self {
        let chosen = alpn.map_or("none".into(), |alpn| alpn.escape_ascii().to_string());
        Self::new(
            ErrorKind::NotHttp3,
            format!("the connection is not for HTTP/3: the application protocol is {chosen}"),
        )
    }

    /// The connection is over.
    pub(super) fn connection(error: ConnectionError) -> Self {
        let code = error.application_code().and_then(ErrorCode::new);
        let what = match (code, error.kind()) {
            (Some(code), _) => {
                let reason = error.peer_reason().map(|reason| String::from_utf8_lossy(reason));
                match reason.filter(|reason| !reason.is_empty()) {
                    Some(reason) => {
                        format!("the peer closed the connection: {code} ({})", reason.escape_debug())
                    }
                    None => format!("the peer closed the connection: {code}"),
                }
            }
            (None, ConnectionErrorKind::ClosedLocally) => "the connection was closed by this end".to_owned(),
            (None, _) => format!("the connection is lost: {error}"),
        };
        Self::build(ErrorKind::Connection, what.into(), code, Some(error.into()))
    }

    /// The endpoint has ended.
    pub(super) fn endpoint_stopped() -> Self {
        Self::new(ErrorKind::Connection, "the connection is lost: its endpoint has ended")
    }

    /// This end closed the connection because of an error of the peer.
    pub(super) fn protocol(error: godwit_http3::Error) -> Self {
        let what = format!("the peer violated HTTP/3: {error}").into();
        Self::build(ErrorKind::Protocol, what, Some(error.code), Some(error.into()))
    }

    /// An exchange was abandoned; `local` if this end did it because of an error in what came.
    pub(super) fn reset(code: ErrorCode, local: bool) -> Self {
        let (kind, what) = match local {
            true => (ErrorKind::Protocol, format!("the message is invalid: {code}")),
            false if code == ErrorCode::H3_REQUEST_REJECTED => (
                ErrorKind::Reset,
                format!("the server has not processed the request ({code}): it can be sent again"),
            ),
            false => (ErrorKind::Reset, format!("the peer gave up the exchange: {code}")),
        };
        Self::build(kind, what.into(), Some(code), None)
    }

    /// The peer does not want the rest of what is sent.
    pub(super) fn stopped(code: ErrorCode) -> Self {
        let what = format!("the peer wants no more of the message: {code}").into();
        Self::build(ErrorKind::Reset, what, Some(code), None)
    }

    /// This end does not want the exchange any more.
    pub(super) fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "the exchange was given up by this end")
    }

    /// This end does not wait any longer for the peer to take what is sent.
    pub(super) fn too_slow() -> Self {
        Self::new(ErrorKind::Cancelled, "the peer took too little of the message for too long")
    }

    /// The body to be sent failed.
    pub(super) fn body(error: BoxError) -> Self {
        let what = format!("the body to be sent failed: {error}").into();
        Self::build(ErrorKind::Body, what, None, Some(error))
    }

    /// The peer said something in a tunnel that breaks the rules there.
    pub(super) fn capsule(error: BoxError) -> Self {
        let what = format!("the peer violated the capsule protocol: {error}").into();
        Self::build(ErrorKind::Protocol, what, Some(ErrorCode::H3_MESSAGE_ERROR), Some(error))
    }

    /// The server takes no more requests.
    pub(super) fn going_away() -> Self {
        let what =
            "the server is shutting down and takes no new requests: it can be sent on another connection";
        Self::new(ErrorKind::GoingAway, what)
    }

    pub(super) fn from_read(error: ReadError) -> Self {
        match error {
            ReadError::Reset { code, local } => Self::reset(code, local),
            ReadError::Closed => Self::new(ErrorKind::Connection, "the connection is closed"),
            _ => Self::cancelled(),
        }
    }

    pub(super) fn from_send(error: SendError) -> Self {
        match error {
            SendError::Closed => Self::new(ErrorKind::Connection, "the connection is closed"),
            SendError::GoingAway => Self::going_away(),
            SendError::Stopped(code) => Self::stopped(code),
            SendError::UnknownStream => Self::cancelled(),
            _ => Self::build(ErrorKind::Message, error.to_string().into(), None, Some(error.into())),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Error");
        out.field("kind", &self.0.kind).field("text", &self.0.what);
        if let Some(code) = &self.0.code {
            out.field("code", code);
        }
        out.finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.what)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

impl From<Error> for std::io::Error {
    fn from(error: Error) -> Self {
        use std::io::ErrorKind as Io;
        let kind = match error.kind() {
            ErrorKind::Message => Io::InvalidInput,
            ErrorKind::Protocol => Io::InvalidData,
            ErrorKind::Reset => Io::ConnectionReset,
            ErrorKind::Connect | ErrorKind::GoingAway | ErrorKind::NotHttp3 => Io::ConnectionRefused,
            ErrorKind::Connection => Io::ConnectionAborted,
            ErrorKind::Body | ErrorKind::Cancelled => Io::Other,
        };
        std::io::Error::new(kind, error)
    }
}
