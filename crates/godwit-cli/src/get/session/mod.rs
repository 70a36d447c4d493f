//! A server's connection, whatever its protocol: requests go in, responses come out, and errors tell whether the
//! request may be sent again.

mod interim;
mod pool;

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use godwit::http3;
use http::header::{HOST, HeaderName};
use http::uri::{PathAndQuery, Uri};
use http::{HeaderValue, Method, Request, Response, Version};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http2;

pub(super) use interim::{Guarded, TooMany};
pub(super) use pool::{Lease, Pool};

use super::upload::Upload;

/// The name of the server that was meant, for one that is reached as somebody's alternative (RFC 7838 section 5).
const ALT_USED: HeaderName = HeaderName::from_static("alt-used");

/// A share in a connection.
pub(super) enum Session {
    /// One of several connections, for one request at a time.
    Http1(Lease),
    Http2(http2::SendRequest<Upload>),
    Http3 {
        client: http3::Client,
        /// Where it goes, if the server's `Alt-Svc` said so.
        alt_used: Option<HeaderValue>,
    },
}

/// Why a request failed or a response broke off.
#[derive(Debug)]
pub(super) enum Error {
    Http3(http3::Error),
    Tcp {
        error: hyper::Error,
        /// The server has certainly not acted on the request.
        unprocessed: bool,
    },
    /// The response does not come, only what may come before it.
    TooManyInterim,
}

/// The body of a response.
pub(super) enum Answer {
    Http3(http3::Body),
    Tcp(Incoming),
}

impl Session {
    pub(super) fn version(&self) -> Version {
        match self {
            Session::Http1(_) => Version::HTTP_11,
            Session::Http2(_) => Version::HTTP_2,
            Session::Http3 { .. } => Version::HTTP_3,
        }
    }

    /// Sends a request with an absolute URI, and waits for the head of the response.
    ///
    /// # Errors
    /// If it cannot be sent, or no response comes.
    pub(super) async fn send(self, mut request: Request<Upload>) -> Result<Response<Answer>, Error> {
        match self {
            Session::Http1(lease) => {
                to_origin_form(&mut request);
                Ok(lease.send(request).await?.map(Answer::Tcp))
            }
            Session::Http2(mut sender) => {
                *request.version_mut() = Version::HTTP_2;
                let response = match sender.ready().await {
                    Ok(()) => sender.try_send_request(request).await.map_err(|mut error| {
                        let unsent = error.take_message().is_some();
                        Error::tcp(error.into_error(), unsent)
                    }),
                    Err(error) => Err(Error::tcp(error, true)),
                };
                Ok(response?.map(Answer::Tcp))
            }
            Session::Http3 { client, alt_used } => {
                alt_used.and_then(|value| request.headers_mut().insert(ALT_USED, value));
                if !request.method().is_safe() {
                    // What must not happen twice waits until nobody can send it again. If there is no connection in the
                    // end, the request says so.
                    let _ = client.connection().connected().await;
                }
                client.send(request).await.map(|response| response.map(Answer::Http3)).map_err(Error::Http3)
            }
        }
    }
}

/// HTTP/1.1 names the server in `Host`, and in the request line only the path (RFC 9112 section 3.2.1).
fn to_origin_form(request: &mut Request<Upload>) {
    let authority = request.uri().authority().map(|authority| HeaderValue::try_from(authority.as_str()));
    if let Some(Ok(host)) = authority {
        request.headers_mut().insert(HOST, host);
    }
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
}

/// Whether a request may be sent again although the server may have acted on it (RFC 9110 section 9.2.2).
fn is_idempotent(method: &Method) -> bool {
    method.is_safe() || [Method::PUT, Method::DELETE].contains(method)
}

impl Error {
    /// `unsent`: the request has not left this end.
    fn tcp(error: hyper::Error, unsent: bool) -> Error {
        let unprocessed = unsent || is_refused(&error);
        Error::Tcp { error, unprocessed }
    }

    /// Whether nothing more was heard on the connection.
    pub(super) fn is_lost_connection(&self) -> bool {
        matches!(self, Error::Http3(error) if error.kind() == http3::ErrorKind::Connection)
    }

    pub(super) fn is_unprocessed(&self) -> bool {
        match self {
            Error::Http3(error) => error.is_retryable(),
            Error::Tcp { unprocessed, .. } => *unprocessed,
            Error::TooManyInterim => false,
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

/// The first error of a type among what caused `error`.
pub(super) fn find<'a, E: std::error::Error + 'static>(
    error: &'a (dyn std::error::Error + 'static),
) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        // An I/O error hides what it is made of.
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = match inner {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        match self.get_mut() {
            Answer::Http3(body) => Pin::new(body).poll_frame(cx).map_err(Error::Http3),
            Answer::Tcp(body) => Pin::new(body).poll_frame(cx).map_err(|error| Error::tcp(error, false)),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Answer::Http3(body) => body.is_end_stream(),
            Answer::Tcp(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Answer::Http3(body) => body.size_hint(),
            Answer::Tcp(body) => body.size_hint(),
        }
    }
}
