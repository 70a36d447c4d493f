//! Who takes part: connections of one kind, each from a client port of its own and so over a link of its own.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use godwit::http3;
use godwit::{ClientConfig, Endpoint};
use godwit_text::instant_now;
use http::{Request, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Either, Full};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use socket2::SockRef;
use tokio::net::TcpSocket;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use super::settings::NAME;

/// A kind of connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Contender {
    /// HTTP/2 over TLS 1.3 and the kernel's TCP with CUBIC.
    TcpCubic,
    /// The same with BBR.
    TcpBbr,
    /// HTTP/3 over Godwit, whose client has never been in the network.
    Http3,
    /// The same, but the client has been there: it knows the round-trip time. The handshake is a full one.
    Http3Known,
}

impl Contender {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Contender::TcpCubic => "tcp-cubic",
            Contender::TcpBbr => "tcp-bbr",
            Contender::Http3 => "http3",
            Contender::Http3Known => "http3-known",
        }
    }

    /// What its TCP is told to use, if it has one: the kernel's name.
    pub(super) const fn control(self) -> Option<&'static str> {
        match self {
            Contender::TcpCubic => Some("cubic"),
            Contender::TcpBbr => Some("bbr"),
            Contender::Http3 | Contender::Http3Known => None,
        }
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for Contender {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        use Contender::{Http3, Http3Known, TcpBbr, TcpCubic};
        let all = [TcpCubic, TcpBbr, Http3, Http3Known];
        let known = all.into_iter().find(|contender| contender.name() == name);
        known.ok_or_else(|| "expected tcp-cubic, tcp-bbr, http3 or http3-known".to_owned())
    }
}

/// What connections are made with.
#[derive(Clone)]
pub(super) enum Dialer {
    Tcp { tls: TlsConnector, control: &'static str, server: SocketAddr },
    Quic { config: ClientConfig, server: SocketAddr },
}

type Outgoing = Either<Full<Bytes>, Endless>;

/// An open connection.
pub(super) enum Session {
    Tcp(SendRequest<Outgoing>),
    Quic(http3::Client, Endpoint),
}

impl Dialer {
    /// Connects from this address.
    pub(super) async fn connect(&self, local: SocketAddr) -> io::Result<Session> {
        match self {
            Dialer::Tcp { tls, control, server } => {
                let socket = TcpSocket::new_v4()?;
                socket.set_reuseaddr(true)?;
                SockRef::from(&socket).set_tcp_congestion(control.as_bytes())?;
                socket.bind(local)?;
                let stream = socket.connect(*server).await?;
                stream.set_nodelay(true)?;
                let name = ServerName::try_from(NAME).map_err(io::Error::other)?;
                let stream = tls.connect(name, stream).await?;
                let builder = http2::Builder::new(TokioExecutor::new());
                let (sender, connection) =
                    builder.handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
                tokio::spawn(connection);
                Ok(Session::Tcp(sender))
            }
            Dialer::Quic { config, server } => {
                let endpoint = Endpoint::client(local)?;
                let client = http3::Client::connect(&endpoint, config, *server, NAME).await;
                Ok(Session::Quic(client.map_err(io::Error::other)?, endpoint))
            }
        }
    }
}

impl Session {
    /// Sends bytes without end, until then.
    pub(super) async fn upload(&self, path: &str, until: Instant) -> io::Result<()> {
        self.post(path, Either::Right(Endless { until })).await.map(drop)
    }

    /// Asks with a body of so many bytes, and reads the answer to its end.
    pub(super) async fn ask(&self, path: &str, bytes: usize) -> io::Result<usize> {
        self.post(path, Either::Left(Full::new(Bytes::from(vec![b'q'; bytes])))).await
    }

    async fn post(&self, path: &str, body: Outgoing) -> io::Result<usize> {
        let request = Request::post(format!("https://{NAME}{path}")).body(body).map_err(io::Error::other)?;
        let (status, len) = match self {
            Session::Tcp(sender) => {
                let mut sender = sender.clone();
                sender.ready().await.map_err(io::Error::other)?;
                let response = sender.send_request(request).await.map_err(io::Error::other)?;
                let status = response.status();
                let body = response.into_body().collect().await.map_err(io::Error::other)?;
                (status, body.to_bytes().len())
            }
            Session::Quic(client, _) => {
                let response = client.send(request).await.map_err(io::Error::other)?;
                let status = response.status();
                let body = response.into_body().collect().await.map_err(io::Error::other)?;
                (status, body.to_bytes().len())
            }
        };
        if status == StatusCode::OK { Ok(len) } else { Err(io::Error::other(format!("status {status}"))) }
    }

    pub(super) fn close(&self) {
        if let Session::Quic(client, endpoint) = self {
            client.close();
            endpoint.close(http3::ErrorCode::H3_NO_ERROR, b"");
        }
    }
}

/// A body that goes on until its time is over.
pub(super) struct Endless {
    until: Instant,
}

impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        const BLOCK: &[u8] = &[b'u'; 64 << 10];
        let over = instant_now() >= self.until;
        Poll::Ready((!over).then(|| Ok(Frame::data(Bytes::from_static(BLOCK)))))
    }
}

impl fmt::Debug for Dialer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Dialer::Tcp { server, .. } | Dialer::Quic { server, .. }) = self;
        write!(formatter, "Dialer({server})")
    }
}

/// Runs all of them, at the same time, and returns what came of each, in their order.
pub(super) async fn all<F>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for (at, future) in futures.into_iter().enumerate() {
        tasks.spawn(async move { (at, future.await) });
    }
    let mut done = tasks.join_all().await;
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, output)| output).collect()
}

/// Runs a future for so long at most.
pub(super) async fn within<T>(limit: Duration, future: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    match tokio::time::timeout(limit, future).await {
        Ok(outcome) => outcome,
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// A dialer's parts that all connections share.
pub(super) fn connector(tls: rustls::ClientConfig) -> TlsConnector {
    TlsConnector::from(Arc::new(tls))
}
