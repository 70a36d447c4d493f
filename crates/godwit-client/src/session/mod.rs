//! A server's connection, whatever its protocol: requests go in, responses come out, and errors tell whether the
//! request may be sent again.

mod body;
mod error;
mod pool;

use std::sync::Arc;

use godwit::http3;
use http::header::{HOST, HeaderName, PROXY_AUTHORIZATION};
use http::uri::{Authority, PathAndQuery, Uri};
use http::{HeaderValue, Request, Response, Version};
use hyper::client::conn::http2;

pub(crate) use body::{Fallback, Polled, ResponseBody};
pub(crate) use error::ExchangeError;
pub(crate) use pool::{Lease, Pool};

use crate::body::RequestBody;
use crate::connect::tcp::TcpFacts;
use crate::route::Link;
use crate::target::Origin;
use crate::vigil::{Vigil, Watched};

/// The name of the server that was meant, for one that is reached as somebody's alternative (RFC 7838 section 5).
const ALT_USED: HeaderName = HeaderName::from_static("alt-used");

/// A proxy that is asked for whole URLs.
pub(crate) struct Forwarder {
    /// The server of the URL, whatever `Host` says.
    pub(crate) origin: Origin,
    pub(crate) authorization: Option<HeaderValue>,
}

/// A share in a connection.
pub(crate) enum Session {
    /// One of several connections, for one request at a time.
    Http1(Lease, Option<Forwarder>),
    Http2(http2::SendRequest<RequestBody>, Arc<TcpFacts>),
    Http3 {
        client: http3::Client,
        /// Where it goes, if the server's `Alt-Svc` said so.
        alt_used: Option<HeaderValue>,
        vigil: Arc<Vigil>,
    },
}

impl Session {
    pub(crate) fn version(&self) -> Version {
        match self {
            Session::Http1(..) => Version::HTTP_11,
            Session::Http2(..) => Version::HTTP_2,
            Session::Http3 { .. } => Version::HTTP_3,
        }
    }

    /// The connection.
    pub(crate) fn link(&self) -> Link {
        match self {
            Session::Http1(lease, _) => Link::Tcp(Arc::clone(lease.facts())),
            Session::Http2(_, facts) => Link::Tcp(Arc::clone(facts)),
            Session::Http3 { client, .. } => Link::Quic(client.connection().clone()),
        }
    }

    /// Has the connection watched, if it is one that may fall silent.
    pub(crate) fn watched(&self) -> Option<Watched> {
        match self {
            Session::Http3 { client, vigil, .. } => Some(vigil.begin(&client.connection())),
            _ => None,
        }
    }

    /// Sends a request with an absolute URI, and waits for the head of the response.
    ///
    /// # Errors
    /// If it cannot be sent, or no response comes.
    pub(crate) async fn send(
        self,
        mut request: Request<RequestBody>,
    ) -> Result<Response<ResponseBody>, ExchangeError> {
        match self {
            Session::Http1(lease, forwarder) => {
                name_host(&mut request);
                match forwarder {
                    None => to_origin_form(&mut request),
                    Some(Forwarder { origin, authorization }) => {
                        to_absolute_form(&mut request, &origin);
                        let headers = request.headers_mut();
                        authorization.and_then(|value| headers.insert(PROXY_AUTHORIZATION, value));
                    }
                }
                Ok(lease.send(request).await?.map(ResponseBody::over_tcp))
            }
            Session::Http2(mut sender, _) => {
                *request.version_mut() = Version::HTTP_2;
                let give_up = request.body_mut().until_given_up();
                let response = match sender.ready().await {
                    Ok(()) => sender.try_send_request(request).await.map_err(|mut error| {
                        let unsent = error.take_message().is_some();
                        ExchangeError::tcp(error.into_error(), unsent)
                    }),
                    Err(error) => Err(ExchangeError::tcp(error, true)),
                };
                Ok(response?.map(|body| ResponseBody::over_http2(body, give_up)))
            }
            Session::Http3 { client, alt_used, .. } => {
                alt_used.and_then(|value| request.headers_mut().insert(ALT_USED, value));
                if !request.method().is_safe() {
                    // What must not happen twice waits until nobody can send it again. If there is no connection in the
                    // end, the request says so.
                    let _ = client.connection().connected().await;
                }
                client
                    .send(request)
                    .await
                    .map(|response| response.map(ResponseBody::over_http3))
                    .map_err(ExchangeError::Http3)
            }
        }
    }
}

/// HTTP/1.1 names the server in `Host` (RFC 9112 section 3.2).
fn name_host(request: &mut Request<RequestBody>) {
    let authority = request.uri().authority().map(|authority| HeaderValue::try_from(authority.as_str()));
    if let Some(Ok(host)) = authority {
        request.headers_mut().insert(HOST, host);
    }
}

/// In the request line stands the whole URL, as it was given (RFC 9112 section 3.2.2).
fn to_absolute_form(request: &mut Request<RequestBody>, origin: &Origin) {
    let mut parts = request.uri().clone().into_parts();
    parts.authority = Authority::try_from(origin.authority()).ok().or(parts.authority);
    if let Ok(uri) = Uri::from_parts(parts) {
        *request.uri_mut() = uri;
    }
}

/// In the request line stands only the path (RFC 9112 section 3.2.1).
fn to_origin_form(request: &mut Request<RequestBody>) {
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
}
