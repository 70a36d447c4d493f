//! TCP to one address, with TLS where the URL says https, and HTTP/2 or HTTP/1.1 on it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use godwit_text::instant_now;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{AlertDescription, Error as TlsError, ProtocolVersion};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::interim::Guarded;
use super::refusal::Refusal;
use super::tunnel::Tunnel;
use crate::body::RequestBody;
use crate::causes::find;

/// Servers are told this often that somebody still waits for their answer.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// How long the answer to a ping may take, on HTTP/2.
const PONG: Duration = Duration::from_secs(20);
/// Bytes of one response that may be on their way, on HTTP/2: as much as with HTTP/3.
const STREAM_WINDOW: u32 = 8 << 20;
/// The same for the whole connection.
const CONNECTION_WINDOW: u32 = 16 << 20;
/// From this time on the first packet has been sent twice, where the kernel does not tell (RFC 6298 section 2: after
/// one second, and clocks have some slack).
const SENT_TWICE: Duration = Duration::from_millis(900);

/// A connection.
pub(crate) struct TcpLink {
    pub(crate) sender: Sender,
    pub(crate) facts: Arc<TcpFacts>,
    /// The network lost packets while the connection was made: then it is no wonder if UDP's are lost too.
    pub(crate) was_difficult: bool,
}

/// What is known of a connection.
#[derive(Debug)]
pub(crate) struct TcpFacts {
    /// The server, or the proxy before it.
    pub(crate) remote: SocketAddr,
    /// From the first packet to its answer.
    pub(crate) rtt: Duration,
    /// `None` for http, as the certificates are none.
    pub(crate) tls_version: Option<ProtocolVersion>,
    pub(crate) certificates: Vec<CertificateDer<'static>>,
}

/// Where requests go in, in the protocol of the connection.
pub(crate) enum Sender {
    Http1(http1::SendRequest<RequestBody>),
    Http2(http2::SendRequest<RequestBody>),
}

/// Which protocols the server is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    Http1,
    Http2,
    Either,
}

impl Offer {
    pub(crate) fn alpn(self) -> Vec<Vec<u8>> {
        let names: &[&[u8]] = match self {
            Offer::Http1 => &[b"http/1.1"],
            Offer::Http2 => &[b"h2"],
            Offer::Either => &[b"h2", b"http/1.1"],
        };
        names.iter().map(|name| name.to_vec()).collect()
    }
}

/// `tls` is `None` for http. With a `tunnel`, `address` is that of a proxy.
pub(crate) async fn connect(
    address: SocketAddr,
    name: String,
    tls: Option<Arc<rustls::ClientConfig>>,
    offer: Offer,
    tunnel: Option<Tunnel>,
) -> Result<TcpLink, Refusal> {
    let begun = instant_now();
    let stream = TcpStream::connect(address).await.map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused => Refusal::TcpRefused,
        _ => Refusal::Tcp(error),
    })?;
    let rtt = begun.elapsed();
    let sent_again = godwit_os::tcp::tcp_info(&stream).map(|info| info.retransmitted > 0);
    let mut was_difficult = sent_again.unwrap_or(rtt >= SENT_TWICE);
    let _ = stream.set_nodelay(true);
    let stream = match tunnel {
        Some(tunnel) => tunnel.open(stream).await?,
        None => stream,
    };
    let mut facts = TcpFacts { remote: address, rtt, tls_version: None, certificates: Vec::new() };
    let sender = match tls {
        None if offer == Offer::Http2 => http2(stream).await?,
        None => http1(stream).await?,
        Some(config) => {
            let name = ServerName::try_from(name)
                .map_err(|error| Refusal::Tls(io::Error::new(io::ErrorKind::InvalidInput, error)))?;
            let stream = TlsConnector::from(config).connect(name, stream).await;
            let stream = stream.map_err(|error| match find(&error) {
                Some(TlsError::AlertReceived(AlertDescription::NoApplicationProtocol))
                    if offer == Offer::Http2 =>
                {
                    Refusal::NotHttp2
                }
                _ => Refusal::Tls(error),
            })?;
            let (tcp, session) = stream.get_ref();
            was_difficult |= godwit_os::tcp::tcp_info(tcp).is_some_and(|info| info.retransmitted > 0);
            facts.tls_version = session.protocol_version();
            facts.certificates = session
                .peer_certificates()
                .unwrap_or_default()
                .iter()
                .map(|one| one.clone().into_owned())
                .collect();
            let is_h2 = session.alpn_protocol() == Some(b"h2");
            match (is_h2, offer) {
                (true, _) => http2(stream).await?,
                (false, Offer::Http2) => return Err(Refusal::NotHttp2),
                (false, _) => http1(stream).await?,
            }
        }
    };
    Ok(TcpLink { sender, facts: Arc::new(facts), was_difficult })
}

async fn http1(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Result<Sender, Refusal> {
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(Refusal::Hyper)?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "HTTP/1.1 connection ended");
        }
    });
    Ok(Sender::Http1(sender))
}

async fn http2(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Result<Sender, Refusal> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(PONG)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    let (sender, connection) =
        builder.handshake(TokioIo::new(Guarded::new(stream))).await.map_err(Refusal::Hyper)?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "HTTP/2 connection ended");
        }
    });
    Ok(Sender::Http2(sender))
}
