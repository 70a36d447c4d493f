//! Clients: many requests at once on one connection.

use super::BoxError;
use super::body::Body;
use super::datagram_flow::DatagramFlow;
use super::error::{Error, ErrorKind};
use super::exchange::{Head, RecvHalf, SendHalf};
use super::link::Link;
use super::minimum_rate::RateGuard;
use super::outgoing::{Outgoing, content_length, has_no_content, set_content_length};
use super::remembered_settings;
use super::send_body::send_body;
use super::stream::Stream;
use crate::{ClientConfig, Connection, EarlyDataStatus, Endpoint};
use bytes::Bytes;
use godwit_http3::{Config, ErrorCode, Protocol, SendError};
use godwit_wire::StreamId;
use http::header::{CONTENT_LENGTH, HOST};
use http::{HeaderValue, Method, Request, Response};
use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower::Service;

/// A connection to an HTTP/3 server, for any number of requests at once.
///
/// Cloning gives another handle of the same connection. It is closed when the last handle is gone and no
/// response is being read any more.
#[derive(Debug, Clone)]
pub struct Client {
    pub(super) link: Arc<Link>,
    /// For requests that do not name the server themselves.
    host: HeaderValue,
}

/// What to do with informational (1xx) responses: put it into a request's extensions. Without it they are
/// ignored.
#[derive(Clone)]
pub struct OnInformational(Arc<dyn Fn(Response<()>) + Send + Sync>);

impl OnInformational {
    /// Calls `act` with each.
    pub fn new(act: impl Fn(Response<()>) + Send + Sync + 'static) -> Self {
        OnInformational(Arc::new(act))
    }
}

impl fmt::Debug for OnInformational {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnInformational")
    }
}

impl Client {
    /// Connects to the server at `addr`, whose certificate must be valid for `name`. If `config` names no
    /// application protocol, [`super::ALPN`] is offered.
    ///
    /// # Errors
    /// If the connection cannot be established, or the server does not speak HTTP/3.
    pub async fn connect(
        endpoint: &Endpoint,
        config: &ClientConfig,
        addr: SocketAddr,
        name: &str,
    ) -> Result<Self, Error> {
        Self::connect_with(endpoint, config, (addr, name), Config::default()).await
    }

    /// As [`Client::connect`], with limits and switches of the protocol.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub async fn connect_with(
        endpoint: &Endpoint,
        config: &ClientConfig,
        (addr, name): (SocketAddr, &str),
        http3: Config,
    ) -> Result<Self, Error> {
        let offers = !config.as_transport().tls.alpn_protocols.is_empty();
        let connecting = match offers {
            true => endpoint.connect(config, addr, name),
            false => endpoint.connect(&config.offering(super::ALPN), addr, name),
        };
        let connection = connecting.map_err(Error::connect)?.await.map_err(Error::handshake)?;
        Self::on_connection(connection, name, http3)
    }

    /// Speaks HTTP/3 on a connection none of whose streams has been used. `authority` stands for the server
    /// in requests that do not name it; its port is added unless it has one or that is 443.
    ///
    /// A connection of [`crate::Connecting::into_early`] is taken for one for HTTP/3: what is asked for on it before
    /// it [is connected](Connection::connected) leaves in 0-RTT packets, **and may be sent again by whoever has recorded
    /// it**. Until the server's settings have come, requests keep to those that were remembered with the ticket (RFC 9114
    /// section 7.2.4.2): a server that permits less is one that ends the connection with H3_SETTINGS_ERROR.
    ///
    /// # Errors
    /// If the connection is for another protocol, or `authority` cannot be one.
    pub fn on_connection(connection: Connection, authority: &str, config: Config) -> Result<Self, Error> {
        let alpn = connection.alpn();
        let early = alpn.is_none() && connection.early_data_status() == EarlyDataStatus::Offered;
        if alpn.as_deref() != Some(super::ALPN) && !early {
            return Err(Error::other_protocol(alpn.as_deref()));
        }
        let host = host(authority, connection.remote_address().port())
            .ok_or_else(|| Error::from_send(SendError::Malformed("not the name of a server")))?;
        let remembered = early.then(|| remembered_settings::of(&connection)).flatten();
        let link = Link::new(connection, config);
        if let Some(settings) = remembered {
            link.look(|protocol, _| protocol.h3.remember_settings(settings));
        }
        Ok(Client { link, host })
    }

    /// Sends a request and waits for the head of the response; the bodies of both go on in parallel.
    ///
    /// If the server permits no more requests at once, this waits until it does. Dropping the future gives
    /// up the request, as does dropping the response's body before its end (H3_REQUEST_CANCELLED). A URI
    /// without an authority is completed with the server's name.
    ///
    /// A CONNECT with a [`super::Protocol`] in its extensions is an extended one (RFC 9220): it waits for the
    /// server's settings and fails with [`ErrorKind::Message`] if they do not permit it. After a response with
    /// a status of success the request's body is what the client says in the tunnel, and the response's body
    /// what it hears; its extensions have a [`super::DatagramFlow`] if [`Config::enable_datagrams`] is set.
    ///
    /// # Errors
    /// If the request cannot be sent, or no response comes. [`Error::is_retryable`] tells whether the server
    /// may have acted on it.
    pub async fn send<B>(&self, request: Request<B>) -> Result<Response<Body>, Error>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let opening = Opening { link: &self.link, ticket: None };
        let (mut parts, body) = request.into_parts();
        let informational = parts.extensions.remove::<OnInformational>();
        let end = body.is_end_stream();
        if parts.uri.authority().is_none() && !parts.headers.contains_key(HOST) {
            parts.headers.insert(HOST, self.host.clone());
        }
        if !end && parts.method != Method::CONNECT {
            set_content_length(&mut parts.headers, &body);
        } else if end && matches!(parts.method, Method::POST | Method::PUT | Method::PATCH) {
            parts.headers.entry(CONTENT_LENGTH).or_insert(HeaderValue::from_static("0"));
        }
        let no_content = parts.method == Method::HEAD;
        let connect = parts.method == Method::CONNECT;
        let head = Request::from_parts(parts, ());
        let id = opening.begin(&head, end, informational.is_some()).await?;
        let mut recv = RecvHalf::new(Arc::clone(&self.link), id);
        if !end {
            let send = SendHalf::new(Arc::clone(&self.link), id);
            recv.upload = begin_upload(Box::pin(upload(send, body))).await;
        }
        loop {
            match poll_fn(|cx| recv.poll_head(cx)).await? {
                Head::Informational(response) => {
                    informational.iter().for_each(|informational| (informational.0)(response.clone()));
                }
                Head::Final(response, end) => {
                    let (mut parts, ()) = response.into_parts();
                    if connect {
                        DatagramFlow::describe(&self.link, id, &mut parts.extensions);
                    }
                    let tunnel = connect && parts.status.is_success();
                    let bodiless = no_content || tunnel || has_no_content(parts.status);
                    let body = match end {
                        true => Body::empty(),
                        false => Body::arriving(recv, content_length(&parts.headers).filter(|_| !bodiless)),
                    };
                    return Ok(Response::from_parts(parts, body));
                }
            }
        }
    }

    /// True if no request can be sent any more: the connection is over, or the server is going away.
    pub fn is_closed(&self) -> bool {
        self.link.look(|protocol, _| protocol.end.is_some() || protocol.going_away)
    }

    /// For which origins the server says that it answers on this connection, beside that of the name in the handshake (RFC
    /// 9412), each as `https://`, host, and port unless that is 443; `None` if it has said nothing yet. Whoever asks for
    /// one of them here has to see that the server's certificate is for it (RFC 8336 section 2.4).
    pub fn origins(&self) -> Option<Vec<String>> {
        self.link.look(|protocol, _| protocol.h3.origins().map(<[String]>::to_vec))
    }

    /// Closes the connection with H3_NO_ERROR. What is under way is lost.
    pub fn close(&self) {
        self.link.close();
    }

    /// The QUIC connection, for addresses, certificates and counters. Its streams must be left alone.
    pub fn connection(&self) -> Connection {
        self.link.connection()
    }
}

impl<B> Service<Request<B>> for Client
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Error>> + Send>>;

    /// Ready when the server permits a request now and nobody waits to send one. There is no claim to it: a request that
    /// is begun later may have to wait nevertheless. An error once no more can be sent.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.link.with(|protocol, io| {
            if let Some(error) = &protocol.end {
                return Poll::Ready(Err(error.clone()));
            }
            if protocol.going_away {
                return Poll::Ready(Err(Error::going_away()));
            }
            if protocol.queue.is_first(None) && io.can_begin() {
                return Poll::Ready(Ok(()));
            }
            protocol.queue.watch(cx.waker());
            Poll::Pending
        })
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let client = self.clone();
        Box::pin(async move { client.send(request).await })
    }
}

/// The authority of a server's name and port.
fn host(name: &str, port: u16) -> Option<HeaderValue> {
    let authority = match name.parse::<std::net::Ipv6Addr>() {
        Ok(_) => format!("[{name}]"),
        Err(_) => name.to_owned(),
    };
    let parsed: http::uri::Authority = authority.parse().ok()?;
    let complete = parsed.port().is_some() || port == 443;
    let text = if complete { authority } else { format!("{authority}:{port}") };
    HeaderValue::try_from(text).ok()
}

type Upload = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Sends as much as can be sent at once, and the rest in a task of its own.
async fn begin_upload(mut upload: Upload) -> Option<tokio::task::AbortHandle> {
    let ready = poll_fn(|cx| Poll::Ready(upload.as_mut().poll(cx).is_ready())).await;
    (!ready).then(|| tokio::spawn(upload).abort_handle())
}

async fn upload<B>(mut send: SendHalf, body: B)
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let sent = send_body(
        &mut send,
        Outgoing::default(),
        body,
        ErrorCode::H3_REQUEST_CANCELLED,
        RateGuard::new(None),
    )
    .await;
    if let Err(error) = sent {
        tracing::debug!(%error, "a request's body was not sent to its end");
        match error.kind() {
            // A server may answer without the whole request.
            ErrorKind::Reset => send.leave(),
            _ => send.abandon(ErrorCode::H3_REQUEST_CANCELLED, &error),
        }
    }
}

/// Waits for a stream and begins a request on it. The place among those who wait is given up when this is dropped.
struct Opening<'a> {
    link: &'a Link,
    ticket: Option<u64>,
}

impl Opening<'_> {
    async fn begin(mut self, head: &Request<()>, end: bool, informational: bool) -> Result<StreamId, Error> {
        poll_fn(|cx| self.poll_begin(cx, head, end, informational)).await
    }

    fn poll_begin(
        &mut self,
        cx: &mut Context<'_>,
        head: &Request<()>,
        end: bool,
        informational: bool,
    ) -> Poll<Result<StreamId, Error>> {
        self.link.with(|protocol, io| {
            if let Some(error) = &protocol.end {
                return Poll::Ready(Err(error.clone()));
            }
            let extended = head.extensions().get::<Protocol>().is_some();
            // It depends on them whether it is permitted.
            if extended && protocol.wait_for_settings(cx.waker()) {
                return Poll::Pending;
            }
            if !protocol.queue.is_first(self.ticket) && !protocol.going_away {
                let replaced = protocol.queue.wait(&mut self.ticket, cx.waker());
                protocol.wakes.extend(replaced);
                return Poll::Pending;
            }
            let id = match protocol.h3.send_request(io, head, end) {
                Ok(id) => id,
                Err(SendError::NoStreams) => {
                    let replaced = protocol.queue.wait(&mut self.ticket, cx.waker());
                    protocol.wakes.extend(replaced);
                    return Poll::Pending;
                }
                Err(error) => return Poll::Ready(Err(Error::from_send(error))),
            };
            let mut stream = Stream::new(if end { 1 } else { 2 });
            stream.informational = informational.then(VecDeque::new);
            protocol.streams.insert(id, stream);
            Poll::Ready(Ok(id))
        })
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.link.look(|protocol, _| {
                let next = protocol.queue.leave(Some(ticket));
                protocol.wakes.extend(next);
            });
        }
    }
}
