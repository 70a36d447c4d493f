//! A tunnel through a proxy: CONNECT over HTTP/1.1 (RFC 9110 section 9.3.6), after which the connection is one to the
//! server that was named.

use bytes::Bytes;
use http::header::{HOST, PROXY_AUTHORIZATION};
use http::{HeaderValue, Method, Request};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::refusal::Refusal;

/// What a proxy is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Tunnel {
    /// The server, with its port.
    pub(crate) to: String,
    pub(crate) authorization: Option<HeaderValue>,
}

impl Tunnel {
    /// Makes the tunnel over a connection to the proxy.
    pub(crate) async fn open(&self, stream: TcpStream) -> Result<TcpStream, Refusal> {
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(Refusal::Hyper)?;
        tokio::spawn(async move {
            if let Err(error) = connection.with_upgrades().await {
                tracing::debug!(%error, "the connection to a proxy ended");
            }
        });
        let mut request = Request::builder().method(Method::CONNECT).uri(&self.to).header(HOST, &self.to);
        if let Some(authorization) = &self.authorization {
            request = request.header(PROXY_AUTHORIZATION, authorization);
        }
        let request = request.body(Empty::<Bytes>::new()).map_err(|_| Refusal::NoTunnel(None))?;
        let response = sender.send_request(request).await.map_err(Refusal::Hyper)?;
        if !response.status().is_success() {
            return Err(Refusal::NoTunnel(Some(response.status())));
        }
        let upgraded = hyper::upgrade::on(response).await.map_err(Refusal::Hyper)?;
        let parts = upgraded.downcast::<TokioIo<TcpStream>>().map_err(|_| Refusal::NoTunnel(None))?;
        // The client speaks first: what came before is nobody's.
        if parts.read_buf.is_empty() { Ok(parts.io.into_inner()) } else { Err(Refusal::NoTunnel(None)) }
    }
}
