//! Connections of bytes, for those who speak HTTP on them by themselves: TCP by happy eyeballs, with TLS where it is
//! wanted. A reverse proxy reaches its upstreams by it.

use std::fmt;
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::ClientConfig;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::connect::race_addresses;
use crate::trust::{Anybody, Roots};

/// The most addresses of one name that are tried.
const MAX_ADDRESSES: usize = 16;

/// Makes connections to one server.
#[derive(Clone, Debug)]
pub struct Dialer {
    host: String,
    port: u16,
    tls: Option<(ServerName<'static>, Tls)>,
}

/// How servers are verified. Clones share TLS sessions.
#[derive(Clone, Debug)]
pub struct Tls {
    /// With either protocol.
    any: Arc<ClientConfig>,
    /// HTTP/1.1 alone, for upgrades.
    http1: Arc<ClientConfig>,
}

/// A new connection.
#[derive(Debug)]
#[non_exhaustive]
pub struct Dialed {
    /// Its bytes.
    pub stream: Stream,
    /// The server chose HTTP/2 (ALPN).
    pub is_http2: bool,
}

/// TCP, or TLS over it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Stream {
    /// Bytes as they travel.
    Plain(TcpStream),
    /// Encrypted bytes.
    Tls(Box<TlsStream<TcpStream>>),
}

/// Why there is no connection.
#[derive(Debug)]
#[non_exhaustive]
pub enum DialError {
    /// The name has no address that could be found.
    Unknown {
        /// The name.
        host: String,
        /// What was tried, if it was tried.
        error: Option<io::Error>,
    },
    /// An address, the last one, took no connection.
    Tcp {
        /// The address.
        address: SocketAddr,
        /// What came of it.
        error: io::Error,
    },
    /// The TLS handshake failed.
    Tls(io::Error),
}

impl fmt::Display for DialError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DialError::Unknown { host, error: Some(error) } => {
                write!(formatter, "the name {host} is not known: {error}")
            }
            DialError::Unknown { host, error: None } => write!(formatter, "the name {host} has no address"),
            DialError::Tcp { address, error } => write!(formatter, "connecting to {address} failed: {error}"),
            DialError::Tls(error) => write!(formatter, "TLS failed: {error}"),
        }
    }
}

impl std::error::Error for DialError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            DialError::Unknown { error, .. } => error.as_ref().map(|error| error as _),
            DialError::Tcp { error, .. } | DialError::Tls(error) => Some(error),
        }
    }
}

impl Tls {
    /// Believes these (see [`crate::trust`]).
    ///
    /// # Errors
    /// If there are none, or the cryptography has no version of TLS.
    pub fn new(roots: impl Into<Roots>) -> Result<Tls, rustls::Error> {
        Tls::verified_by(roots.into().verifier()?)
    }

    /// Accepts any certificate: whoever is on the path can pretend to be the server.
    ///
    /// # Errors
    /// As [`Tls::new`].
    pub fn danger_accept_any_certificate() -> Result<Tls, rustls::Error> {
        Tls::verified_by(Arc::new(Anybody::new(godwit_tls::provider())))
    }

    fn verified_by(verifier: Arc<dyn ServerCertVerifier>) -> Result<Tls, rustls::Error> {
        let builder = ClientConfig::builder_with_provider(godwit_tls::provider());
        let builder = builder.with_safe_default_protocol_versions()?.dangerous();
        let config = builder.with_custom_certificate_verifier(verifier).with_no_client_auth();
        let (mut any, mut http1) = (config.clone(), config);
        any.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        http1.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Tls { any: Arc::new(any), http1: Arc::new(http1) })
    }
}

impl Dialer {
    /// Connections without TLS. `host` is a name or an address without brackets.
    pub fn plain(host: impl Into<String>, port: u16) -> Dialer {
        Dialer { host: host.into(), port, tls: None }
    }

    /// Connections with TLS, to a server whose certificate is for `name`.
    pub fn secure(host: impl Into<String>, port: u16, name: ServerName<'static>, tls: Tls) -> Dialer {
        Dialer { host: host.into(), port, tls: Some((name, tls)) }
    }

    /// A connection, for HTTP/1.1 if `http1` says so and otherwise for what the server prefers.
    ///
    /// # Errors
    /// If there is none.
    pub async fn dial(&self, http1: bool) -> Result<Dialed, DialError> {
        let tcp = self.tcp().await?;
        // What cannot be set is no reason to fail.
        let _ = tcp.set_nodelay(true);
        let Some((name, tls)) = &self.tls else {
            return Ok(Dialed { stream: Stream::Plain(tcp), is_http2: false });
        };
        let config = if http1 { &tls.http1 } else { &tls.any };
        let stream = TlsConnector::from(Arc::clone(config)).connect(name.clone(), tcp).await;
        let stream = stream.map_err(DialError::Tls)?;
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        Ok(Dialed { stream: Stream::Tls(Box::new(stream)), is_http2 })
    }

    async fn tcp(&self) -> Result<TcpStream, DialError> {
        if let Ok(address) = self.host.parse::<IpAddr>() {
            let address = SocketAddr::new(address, self.port);
            return TcpStream::connect(address).await.map_err(|error| DialError::Tcp { address, error });
        }
        let unknown = |error| DialError::Unknown { host: self.host.clone(), error };
        let found = tokio::net::lookup_host((self.host.as_str(), self.port)).await;
        let found: Vec<_> = found.map_err(|error| unknown(Some(error)))?.take(MAX_ADDRESSES).collect();
        let mut failures = Vec::new();
        match race_addresses(&found, TcpStream::connect, &mut failures).await {
            Some(stream) => Ok(stream),
            None => Err(match failures.pop() {
                Some((address, error)) => DialError::Tcp { address, error },
                None => unknown(None),
            }),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, data),
            Stream::Tls(stream) => Pin::new(stream).poll_write(cx, data),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, data),
            Stream::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, data),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Tls(stream) => stream.is_write_vectored(),
        }
    }
}
