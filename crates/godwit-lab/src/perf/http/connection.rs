//! Connections to the server, of any version, and one exchange on them.

use super::options::{HttpOptions, HttpVersion};
use crate::Error;
use crate::perf::settings;
use bytes::Bytes;
use godwit::http3;
use godwit::{ClientConfig, Endpoint};
use godwit_client::Origin;
use godwit_client::dial::{Dialer, Tls};
use godwit_client::trust::Roots;
use godwit_text::plain_error as plain;
use http::header::HOST;
use http::{HeaderValue, Request, StatusCode, Uri};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// The content of a request.
type Content = Full<Bytes>;

/// Bytes of one response, and of all on a connection, that may be on their way with HTTP/2.
const STREAM_WINDOW: u32 = 8 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;

/// How long a connection may take to be made.
const CONNECTING: Duration = Duration::from_secs(10);

/// Makes connections to the server.
#[derive(Debug)]
pub(super) struct Connector {
    origin: Origin,
    way: Way,
}

#[derive(Debug)]
enum Way {
    Tcp { dialer: Dialer, version: HttpVersion },
    Quic { endpoint: Endpoint, config: Box<ClientConfig>, server: SocketAddr },
}

/// A connection, or a handle of one that several tasks use.
#[derive(Debug)]
pub(super) enum Sender {
    Http1(http1::SendRequest<Content>),
    Http2(http2::SendRequest<Content>),
    Http3(http3::Client),
}

/// What came of an exchange.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    /// Of the content.
    pub(super) bytes: u64,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) why: String,
    /// The server has not acted on it: it can be made again.
    pub(super) again: bool,
    /// Nothing more can be sent on the connection.
    pub(super) connection_over: bool,
}

impl Connector {
    pub(super) fn new(options: &HttpOptions) -> Result<Connector, Error> {
        let origin = options.url.origin().clone();
        let way = match options.version {
            HttpVersion::Http3 => quic(options, &origin)?,
            version => Way::Tcp { dialer: dialer(options, &origin)?, version },
        };
        Ok(Connector { origin, way })
    }

    pub(super) async fn connect(&self) -> Result<Sender, Error> {
        let connected = tokio::time::timeout(CONNECTING, self.try_to_connect()).await;
        connected.unwrap_or_else(|_| {
            let waited = CONNECTING.as_secs();
            Err(Error::new(format!("cannot connect to {}: no answer within {waited} s", self.origin)))
        })
    }

    async fn try_to_connect(&self) -> Result<Sender, Error> {
        let failed = |why: &dyn fmt::Display| Error::new(format!("cannot connect to {}: {why}", self.origin));
        match &self.way {
            Way::Quic { endpoint, config, server } => {
                let client = http3::Client::connect(endpoint, config, *server, &self.origin.host).await;
                client.map(Sender::Http3).map_err(|error| failed(&error))
            }
            Way::Tcp { dialer, version } => {
                let http1 = *version == HttpVersion::Http1;
                let dialed = dialer.dial(http1).await.map_err(|error| failed(&error))?;
                if !http1 && self.origin.secure && !dialed.is_http2 {
                    return Err(failed(&"the server does not offer HTTP/2; try --h1"));
                }
                let io = TokioIo::new(dialed.stream);
                let sender = if http1 { http_1(io).await } else { http_2(io).await };
                sender.map_err(|error| failed(&in_words(&error)))
            }
        }
    }

    /// Ends what is left, so that the server knows.
    pub(super) async fn close(&self) {
        if let Way::Quic { endpoint, .. } = &self.way {
            endpoint.close(http3::ErrorCode::H3_NO_ERROR, b"");
            let _ = tokio::time::timeout(crate::perf::client::CLOSING, endpoint.wait_idle()).await;
        }
    }
}

type Io = TokioIo<godwit_client::dial::Stream>;

async fn http_1(io: Io) -> Result<Sender, hyper::Error> {
    let (sender, connection) = http1::handshake(io).await?;
    // How it ends is seen by its requests.
    tokio::spawn(connection);
    Ok(Sender::Http1(sender))
}

async fn http_2(io: Io) -> Result<Sender, hyper::Error> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(STREAM_WINDOW).initial_connection_window_size(CONNECTION_WINDOW);
    let (sender, connection) = builder.handshake(io).await?;
    tokio::spawn(connection);
    Ok(Sender::Http2(sender))
}

fn dialer(options: &HttpOptions, origin: &Origin) -> Result<Dialer, Error> {
    if !origin.secure {
        return Ok(Dialer::plain(origin.host.clone(), origin.port));
    }
    let unusable = |error: &dyn fmt::Display| Error::new(format!("TLS cannot be used: {error}"));
    let tls = match &options.authority {
        Some(file) => {
            let unreadable = |why: &dyn fmt::Display| {
                Error::file("the authority", file, why, "give a file of certificates in PEM")
            };
            let mut roots = Roots::none();
            let pem = godwit_text::read_file(file).map_err(|error| unreadable(&plain(&error)))?;
            roots.add_pem(&pem).map_err(|error| unreadable(&error))?;
            Tls::new(roots)
        }
        None => Tls::danger_accept_any_certificate(),
    };
    let name = ServerName::try_from(origin.host.clone()).map_err(|error| unusable(&error))?;
    let tls = tls.map_err(|error| unusable(&error))?;
    Ok(Dialer::secure(origin.host.clone(), origin.port, name, tls))
}

fn quic(options: &HttpOptions, origin: &Origin) -> Result<Way, Error> {
    if !origin.secure {
        return Err(Error::new(format!("HTTP/3 is always encrypted: write https://{}", origin.authority())));
    }
    let server = crate::perf::client::resolve(&origin.host, origin.port)?;
    let any = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let endpoint = settings::endpoint(options.tuning).bind(any).build();
    let endpoint = endpoint.map_err(|error| Error::new(error.to_string()))?;
    let config = settings::client(options.authority.as_deref(), http3::ALPN, options.tuning, None)?;
    Ok(Way::Quic { endpoint, config: Box::new(config), server })
}

/// A request as the version of the connection has it, to be copied for every exchange.
#[derive(Debug)]
pub(super) struct Prototype(Request<Content>);

impl Prototype {
    pub(super) fn new(options: &HttpOptions) -> Result<Prototype, Error> {
        let failed = |error: &dyn fmt::Display| Error::new(format!("not a possible request: {error}"));
        let target = &options.url;
        let mut uri = target.uri(None).map_err(|error| failed(&error))?;
        if options.version == HttpVersion::Http1 {
            // The server is named by `Host` alone (RFC 9112 section 3.2.1).
            uri = uri.into_parts().path_and_query.map(Uri::from).unwrap_or_default();
        }
        let content = Bytes::from(vec![b'x'; options.content]);
        let mut request = Request::new(Full::new(content));
        (*request.method_mut(), *request.uri_mut()) = (options.method.clone(), uri);
        *request.headers_mut() = options.headers.clone();
        if options.version == HttpVersion::Http1 && !options.headers.contains_key(HOST) {
            let host = HeaderValue::try_from(target.origin().authority()).map_err(|error| failed(&error))?;
            request.headers_mut().insert(HOST, host);
        }
        Ok(Prototype(request))
    }
}

impl Sender {
    /// Another handle of the same connection, if it takes several requests at once.
    pub(super) fn share(&self) -> Option<Sender> {
        match self {
            Sender::Http1(_) => None,
            Sender::Http2(sender) => Some(Sender::Http2(sender.clone())),
            Sender::Http3(client) => Some(Sender::Http3(client.clone())),
        }
    }

    /// Asks, and reads the answer to its end.
    pub(super) async fn exchange(&mut self, request: &Prototype) -> Result<Answer, Failure> {
        let request = request.0.clone();
        match self {
            Sender::Http1(sender) => {
                sender.ready().await.map_err(|error| Failure::unsent(&error))?;
                let response = sender.try_send_request(request).await;
                let response = response.map_err(|mut failed| {
                    let unsent = failed.take_message().is_some();
                    Failure { again: unsent, ..Failure::broken(failed.error()) }
                })?;
                read(response).await.map_err(|error| Failure::broken(&error))
            }
            Sender::Http2(sender) => {
                sender.ready().await.map_err(|error| Failure::unsent(&error))?;
                let response = sender.try_send_request(request).await;
                let response = response.map_err(|mut failed| {
                    let unsent = failed.take_message().is_some();
                    Failure {
                        again: unsent || is_untouched(failed.error()),
                        connection_over: unsent || sender.is_closed(),
                        ..Failure::broken(failed.error())
                    }
                })?;
                let over = sender.is_closed();
                read(response)
                    .await
                    .map_err(|error| Failure { connection_over: over, ..Failure::broken(&error) })
            }
            Sender::Http3(client) => {
                let answer = async { read(client.send(request).await?).await };
                answer.await.map_err(|error: http3::Error| Failure {
                    why: error.to_string(),
                    again: error.is_retryable(),
                    connection_over: client.is_closed(),
                })
            }
        }
    }
}

impl Failure {
    /// Nothing was sent, and nothing will be.
    fn unsent(error: &hyper::Error) -> Failure {
        Failure { again: true, ..Failure::broken(error) }
    }

    fn broken(error: &hyper::Error) -> Failure {
        Failure { why: in_words(error), again: false, connection_over: true }
    }
}

/// Whether an HTTP/2 server says that it has not acted on a request (RFC 9113 section 8.7): it refused the stream, or leaves
/// in good order and has not come to it.
fn is_untouched(error: &hyper::Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<h2::Error>());
    cause.is_some_and(|cause| {
        let leaves = cause.is_go_away() && cause.is_remote();
        cause.reason() == Some(h2::Reason::REFUSED_STREAM)
            || (leaves && cause.reason() == Some(h2::Reason::NO_ERROR))
    })
}

/// An error with what caused it.
fn in_words(error: &hyper::Error) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |error| error.source());
    let mut words = error.to_string();
    causes.for_each(|cause| {
        words.push_str(": ");
        words.push_str(&cause.to_string());
    });
    words
}

async fn read<B>(response: http::Response<B>) -> Result<Answer, B::Error>
where
    B: Body<Data = Bytes> + Unpin,
{
    let (status, mut body, mut bytes) = (response.status(), response.into_body(), 0);
    while let Some(frame) = body.frame().await {
        bytes += frame?.data_ref().map_or(0, |data| data.len() as u64);
    }
    Ok(Answer { status, bytes })
}
