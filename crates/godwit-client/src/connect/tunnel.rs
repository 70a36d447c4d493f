//! A tunnel through a proxy: CONNECT over HTTP/1.1 (RFC 9110 section 9.3.6), after which the connection is one to the
//! server that was named.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::header::{HOST, PROXY_AUTHORIZATION};
use http::{HeaderValue, Method, Request};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::interim::Count;
use super::refusal::{NoTunnel, Refusal};

/// What a proxy is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Tunnel {
    /// The server, with its port.
    to: String,
    authorization: Option<HeaderValue>,
    waiting: Arc<AtomicBool>,
}

impl Tunnel {
    pub(crate) fn new(to: String, authorization: Option<HeaderValue>) -> Tunnel {
        Tunnel { to, authorization, waiting: Arc::default() }
    }

    /// Whether a proxy has been asked that has not answered.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Makes the tunnel over a connection to the proxy.
    pub(crate) async fn open(&self, stream: TcpStream) -> Result<TcpStream, Refusal> {
        self.waiting.store(true, Ordering::Relaxed);
        let opened = self.ask(stream).await;
        self.waiting.store(false, Ordering::Relaxed);
        opened.map_err(Refusal::NoTunnel)
    }

    async fn ask(&self, stream: TcpStream) -> Result<TcpStream, NoTunnel> {
        let mut request = Request::builder().method(Method::CONNECT).uri(&self.to).header(HOST, &self.to);
        if let Some(authorization) = &self.authorization {
            request = request.header(PROXY_AUTHORIZATION, authorization);
        }
        let mut request = request.body(Empty::<Bytes>::new()).map_err(|_| NoTunnel::Garbled)?;
        let interim = Count::of(&mut request);
        let (mut sender, mut connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(NoTunnel::Broken)?;
        let response = {
            let mut answer = pin!(sender.send_request(request));
            let mut driven = pin!(poll_fn(|cx| connection.poll_without_shutdown(cx)));
            let mut is_over = false;
            loop {
                tokio::select! {
                    biased;
                    () = interim.exceeded() => return Err(NoTunnel::TooManyInterim),
                    response = &mut answer => break response.map_err(NoTunnel::Broken)?,
                    // The answer tells what became of it.
                    _ = &mut driven, if !is_over => is_over = true,
                }
            }
        };
        if !response.status().is_success() {
            return Err(NoTunnel::Answered(response.status()));
        }
        // Any success will do, also one that could have no body (RFC 9110 section 9.3.6): what follows its head is the
        // tunnel's. The client speaks first: what came before is nobody's.
        let parts = connection.into_parts();
        if parts.read_buf.is_empty() { Ok(parts.io.into_inner()) } else { Err(NoTunnel::Garbled) }
    }
}
