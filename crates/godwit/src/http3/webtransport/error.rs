//! Why a session is over, could not be had, or one of its streams is not read or written any more.

use crate::http3::{Body, Error, ErrorCode};
use crate::{ReadError, WriteError};
use godwit_http3::webtransport::from_http3;
use http::Response;
use std::{fmt, io};

/// Why a session is over.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum SessionError {
    /// The peer closed it. Without a word of why, the code is 0 and the reason empty.
    Closed {
        /// The application's code.
        code: u32,
        /// For people.
        reason: String,
    },
    /// This end closed it.
    ClosedLocally,
    /// Its exchange broke off, or the connection is over.
    Lost(Error),
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SessionError::Closed { code, reason } if reason.is_empty() => {
                write!(f, "the peer closed the session with code {code}")
            }
            SessionError::Closed { code, reason } => {
                write!(f, "the peer closed the session with code {code} ({})", reason.escape_debug())
            }
            SessionError::ClosedLocally => f.write_str("the session was closed by this end"),
            SessionError::Lost(error) => write!(f, "the session is lost: {error}"),
        }
    }
}

impl std::error::Error for SessionError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        if let SessionError::Lost(error) = self { Some(error) } else { None }
    }
}

/// Why a client has no session.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectError {
    /// The server answered otherwise.
    Refused(Box<Response<Body>>),
    /// The request failed, or could not be sent: the server has no WebTransport, or this end does not permit it.
    Failed(Error),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::Refused(response) => {
                write!(f, "the server refused the session with status {}", response.status())
            }
            ConnectError::Failed(error) => write!(f, "no session: {error}"),
        }
    }
}

impl std::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        if let ConnectError::Failed(error) = self { Some(error) } else { None }
    }
}

/// Why a stream of a session cannot be read or written.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum StreamError {
    /// The peer gave up sending, with this code; `None` if it was none of an application.
    Reset(Option<u32>),
    /// The peer reads no more, and gave this code; `None` if it was none of an application.
    Stopped(Option<u32>),
    /// This end has finished, reset or stopped it.
    Over,
    /// There is more to read than was wanted.
    TooLong,
    /// The session is over.
    Session(SessionError),
}

impl StreamError {
    /// What reading said, where the session is over if `end` is there.
    pub(super) fn from_read(error: ReadError, end: Option<SessionError>) -> Self {
        match (error, end) {
            (_, Some(end)) => StreamError::Session(end),
            (ReadError::Reset(code), None) => match is_gone(code) {
                Some(end) => StreamError::Session(end),
                None => StreamError::Reset(from_http3(code)),
            },
            (ReadError::ConnectionLost(error), None) => {
                StreamError::Session(SessionError::Lost(Error::connection(error)))
            }
            (ReadError::Stopped, None) => StreamError::Over,
        }
    }

    /// What writing said.
    pub(super) fn from_write(error: WriteError, end: Option<SessionError>) -> Self {
        match (error, end) {
            (_, Some(end)) => StreamError::Session(end),
            (WriteError::Stopped(code), None) => match is_gone(code) {
                Some(end) => StreamError::Session(end),
                None => StreamError::Stopped(from_http3(code)),
            },
            (WriteError::ConnectionLost(error), None) => {
                StreamError::Session(SessionError::Lost(Error::connection(error)))
            }
            (WriteError::Finished | WriteError::Reset, None) => StreamError::Over,
        }
    }
}

/// The peer says that the session of a stream is over.
fn is_gone(code: u64) -> Option<SessionError> {
    let gone = code == ErrorCode::WT_SESSION_GONE.value();
    gone.then(|| SessionError::Lost(Error::reset(ErrorCode::WT_SESSION_GONE, false)))
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StreamError::Reset(Some(code)) => write!(f, "the peer reset the stream with code {code}"),
            StreamError::Reset(None) => f.write_str("the peer reset the stream without a code"),
            StreamError::Stopped(Some(code)) => write!(f, "the peer stopped reading with code {code}"),
            StreamError::Stopped(None) => f.write_str("the peer stopped reading without a code"),
            StreamError::Over => f.write_str("the stream was ended by this end"),
            StreamError::TooLong => f.write_str("the stream is longer than the limit"),
            StreamError::Session(error) => fmt::Display::fmt(error, f),
        }
    }
}

impl std::error::Error for StreamError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        if let StreamError::Session(error) = self { error.source() } else { None }
    }
}

impl From<StreamError> for io::Error {
    fn from(error: StreamError) -> Self {
        let kind = match &error {
            StreamError::Reset(_) => io::ErrorKind::ConnectionReset,
            StreamError::Stopped(_) => io::ErrorKind::BrokenPipe,
            StreamError::Over => io::ErrorKind::NotConnected,
            StreamError::TooLong => io::ErrorKind::InvalidData,
            StreamError::Session(_) => io::ErrorKind::ConnectionAborted,
        };
        io::Error::new(kind, error)
    }
}
