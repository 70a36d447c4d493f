//! Why an exchange failed, and whether its request may be sent again.

use std::io;
use std::sync::Arc;

use godwit::http3;
use http::Method;

use crate::causes::find;
use crate::connect::interim::TooMany;

/// Why a request failed or a response broke off.
#[derive(Debug)]
pub(crate) enum ExchangeError {
    Http3(http3::Error),
    Tcp {
        error: hyper::Error,
        /// The server has certainly not acted on the request.
        unprocessed: bool,
    },
    /// The response does not come, only what may come before it.
    TooManyInterim,
    /// The coding of the body cannot be undone: what is wrong with it.
    Coding(String),
}

/// Whether a request may be sent again although the server may have acted on it (RFC 9110 section 9.2.2).
pub(super) fn is_idempotent(method: &Method) -> bool {
    method.is_safe() || [Method::PUT, Method::DELETE].contains(method)
}

impl ExchangeError {
    /// `unsent`: the request has not left this end.
    pub(super) fn tcp(error: hyper::Error, unsent: bool) -> ExchangeError {
        let unprocessed = unsent || is_refused(&error);
        ExchangeError::Tcp { error, unprocessed }
    }

    /// The error of the protocol.
    pub(crate) fn into_cause(self) -> Option<Arc<dyn std::error::Error + Send + Sync>> {
        match self {
            ExchangeError::Http3(error) => Some(Arc::new(error)),
            ExchangeError::Tcp { error, .. } => Some(Arc::new(error)),
            ExchangeError::TooManyInterim | ExchangeError::Coding(_) => None,
        }
    }

    /// Whether it is the way to the server that failed. A server that closes in the midst of a response has had a reason.
    pub(crate) fn is_lost_connection(&self) -> bool {
        match self {
            ExchangeError::Http3(error) => error.kind() == http3::ErrorKind::Connection,
            ExchangeError::Tcp { error, .. } => {
                let is_broken = |error: &io::Error| {
                    // Of what this end has had enough of, HTTP/2 keeps no more than the words.
                    error.kind() != io::ErrorKind::UnexpectedEof
                        && !error.to_string().contains(&TooMany.to_string())
                };
                error.is_timeout() || find::<io::Error>(error).is_some_and(is_broken)
            }
            ExchangeError::TooManyInterim | ExchangeError::Coding(_) => false,
        }
    }

    pub(crate) fn is_unprocessed(&self) -> bool {
        match self {
            ExchangeError::Http3(error) => error.is_retryable(),
            ExchangeError::Tcp { unprocessed, .. } => *unprocessed,
            ExchangeError::TooManyInterim | ExchangeError::Coding(_) => false,
        }
    }
}

/// Whether an HTTP/2 server said that it did nothing (RFC 9113 sections 6.8 and 8.7).
fn is_refused(error: &hyper::Error) -> bool {
    find::<h2::Error>(error).is_some_and(|error| {
        let remote = error.is_remote();
        let reason = error.reason();
        remote
            && (reason == Some(h2::Reason::REFUSED_STREAM)
                || (error.is_go_away() && reason == Some(h2::Reason::NO_ERROR)))
    })
}
