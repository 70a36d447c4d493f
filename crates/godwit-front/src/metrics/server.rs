//! The listener for operators: `/metrics`, `/healthz`, `/readyz`, over plain HTTP/1.1.
//!
//! `/healthz` answers 200 as long as the process serves at all; `/readyz` answers 503 before the ports are bound and
//! while the server finishes, so that balancers send new clients elsewhere. There are few clients here and all of
//! them are trusted: [`MOST`] connections at a time, and [`TIMEOUT`] for a request.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::{Metrics, text};

const MOST: usize = 64;
const TIMEOUT: Duration = Duration::from_secs(10);
const EXHAUSTED: Duration = Duration::from_millis(100);

/// A bound listener, for [`Server::serve`].
#[derive(Debug)]
pub(crate) struct Server {
    listener: Arc<TcpListener>,
    address: SocketAddr,
}

impl Server {
    /// # Errors
    /// If the listener does not tell its address.
    pub(crate) fn on(listener: Arc<TcpListener>) -> io::Result<Server> {
        Ok(Server { address: listener.local_addr()?, listener })
    }

    /// As bound: the port is never 0.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What an operator should know, if strangers may reach it.
    pub(crate) fn warning(&self) -> Option<String> {
        is_public(self.address.ip()).then(|| {
            format!(
                "warning: whoever reaches {} can read the metrics there (names of sites, addresses of upstreams, how \
                 much is served); write metrics = \"127.0.0.1:{}\", or keep others out by a firewall",
                self.address,
                self.address.port()
            )
        })
    }

    /// Answers for ever. Dropping the future closes the listener; connections end by themselves.
    pub(crate) async fn serve(self, metrics: Arc<Metrics>) {
        let room = Arc::new(Semaphore::new(MOST));
        loop {
            let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
            let stream = match self.listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection for metrics");
                    tokio::time::sleep(EXHAUSTED).await;
                    continue;
                }
            };
            let metrics = Arc::clone(&metrics);
            tokio::spawn(async move {
                let answer = service_fn(|request: Request<hyper::body::Incoming>| {
                    let response = answer(&metrics, request.method(), request.uri().path());
                    async move { Ok::<_, Infallible>(response) }
                });
                let mut http = http1::Builder::new();
                // Whoever does not read takes a place only for a while.
                http.timer(TokioTimer::new()).header_read_timeout(TIMEOUT).keep_alive(false);
                let served = http.serve_connection(TokioIo::new(stream), answer);
                if let Ok(Err(error)) = tokio::time::timeout(TIMEOUT * 2, served).await {
                    tracing::debug!(%error, "a connection for metrics failed");
                }
                drop(permit);
            });
        }
    }
}

/// Whether an address may be one of the Internet: every address of a machine may. Those of private and shared networks
/// (RFC 1918, 4193, 6598) and of a single link are not.
fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [first, second, ..] = address.octets();
            let is_shared = first == 100 && second & 0xc0 == 64;
            !(address.is_loopback() || address.is_private() || address.is_link_local() || is_shared)
        }
        IpAddr::V6(address) => {
            let is_inside = address.is_unique_local() || address.is_unicast_link_local();
            !(address.is_loopback() || is_inside)
        }
    }
}

/// Also for a port that serves other things: the health page's answer.
pub(crate) fn answer(metrics: &Arc<Metrics>, method: &Method, path: &str) -> Response<Full<Bytes>> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        let mut response = page(StatusCode::METHOD_NOT_ALLOWED, "only GET\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match path {
        "/metrics" => {
            let mut response = page(StatusCode::OK, text::text(metrics));
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(text::CONTENT_TYPE));
            response
        }
        "/healthz" => page(StatusCode::OK, "ok\n"),
        "/readyz" if metrics.is_ready() => page(StatusCode::OK, "ready\n"),
        "/readyz" => page(StatusCode::SERVICE_UNAVAILABLE, "not ready\n"),
        _ => page(StatusCode::NOT_FOUND, "/metrics, /healthz and /readyz are here\n"),
    }
}

fn page(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn metrics_that_strangers_may_read_are_warned_of() {
        let on = async |address: &str| {
            let listener = TcpListener::bind(address).await.unwrap();
            Server::on(Arc::new(listener)).unwrap()
        };
        assert_eq!(on("127.0.0.1:0").await.warning(), None);
        let public = on("0.0.0.0:0").await;
        let warning = public.warning().unwrap();
        assert!(warning.contains(&format!("0.0.0.0:{}", public.address().port())), "{warning}");
    }

    #[test]
    fn networks_of_ones_own_are_not_public() {
        for address in [
            "127.0.0.2",
            "::1",
            "10.1.2.3",
            "172.31.0.1",
            "192.168.0.1",
            "169.254.1.1",
            "100.64.0.1",
            "100.127.0.1",
            "fd00::1",
            "fe80::1",
            "::ffff:10.0.0.1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in
            ["0.0.0.0", "::", "192.0.2.1", "172.32.0.1", "100.128.0.1", "2001:db8::1", "::ffff:192.0.2.1"]
        {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }
}
