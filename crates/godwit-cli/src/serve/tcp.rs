//! HTTP/1.1 and HTTP/2 over TLS.
//!
//! Limits: [`MAX_CONNECTIONS`] at a time (more wait in the kernel's queue), [`HANDSHAKE`] for TLS, [`IDLE`] for a
//! request's headers and between requests of HTTP/1.1; HTTP/2 connections are pinged.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::linger::Lingering;
use super::front::Front;
use crate::certificates::{Identity, provider};
use crate::error::Failure;

/// At most, however many descriptors there are.
const MAX_CONNECTIONS: u32 = 4096;
const MAX_STREAMS: u32 = 256;
const HANDSHAKE: Duration = Duration::from_secs(10);
const IDLE: Duration = Duration::from_secs(60);
const PING: Duration = Duration::from_secs(30);
/// How long to wait when the system has no descriptor or memory for another connection.
const EXHAUSTED: Duration = Duration::from_millis(100);

/// What somebody gets who speaks HTTP without TLS to this port.
const PLAIN_HTTP: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\nconnection: close\r\n\
    content-length: 56\r\n\r\nThis port speaks HTTPS: begin the address with https://\n";

/// The TLS side of TCP: HTTP/2 if the client knows it, else HTTP/1.1.
pub(super) fn tls(identity: &Identity) -> Result<TlsAcceptor, Failure> {
    let mut config = rustls::ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            let (chain, key) = (identity.chain.clone(), identity.key.clone_key());
            builder.with_no_client_auth().with_single_cert(chain, key)
        })
        .map_err(|error| Failure::new(format!("cannot use the certificate: {error}")))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// All TCP connections of the program.
pub(super) struct Server {
    shared: Arc<Shared>,
    /// Turns true when the server is to finish.
    stop: watch::Sender<bool>,
}

struct Shared {
    tls: TlsAcceptor,
    /// A permit for each connection, kept until its socket is closed.
    room: Arc<Semaphore>,
    most: u32,
}

impl Server {
    pub(super) fn new(tls: TlsAcceptor) -> Server {
        let most = most_connections(std::fs::read_to_string("/proc/self/limits").ok().as_deref());
        let room = Arc::new(Semaphore::new(most as usize));
        Server { shared: Arc::new(Shared { tls, room, most }), stop: watch::Sender::new(false) }
    }

    /// Answers the listener's connections from a task of its own, until [`Server::drain`].
    pub(super) fn serve(&self, listener: TcpListener, front: Front) {
        let (shared, mut stop) = (Arc::clone(&self.shared), self.stop.subscribe());
        let connections_stop = stop.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = accept(&listener, &shared, &front, &connections_stop) => {}
                _ = stop.wait_for(|stop| *stop) => {}
            }
        });
    }

    /// Takes no more connections, lets requests in progress finish and waits for them.
    pub(super) async fn drain(&self) {
        self.stop.send_replace(true);
        let _ = self.shared.room.acquire_many(self.shared.most).await;
    }
}

/// Half of the descriptors that the process may have: the others are for files, for HTTP/3 too. `limits` is what
/// Linux says of the process; elsewhere the usual 1024 are assumed.
fn most_connections(limits: Option<&str>) -> u32 {
    const USUAL: u32 = 1024;
    let of_line = |line: &str| match line.strip_prefix("Max open files")?.split_whitespace().next()? {
        "unlimited" => Some(u32::MAX),
        number => number.parse().ok(),
    };
    let descriptors = limits.and_then(|limits| limits.lines().find_map(of_line)).unwrap_or(USUAL);
    (descriptors / 2).clamp(1, MAX_CONNECTIONS)
}

async fn accept(listener: &TcpListener, shared: &Arc<Shared>, front: &Front, stop: &watch::Receiver<bool>) {
    loop {
        let Ok(permit) = Arc::clone(&shared.room).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let (shared, front, stop) = (Arc::clone(shared), front.clone(), stop.clone());
                let stream = Lingering::new(stream, permit);
                tokio::spawn(async move { connection(stream, &shared.tls, front, stop).await });
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept a TCP connection");
                tokio::time::sleep(EXHAUSTED).await;
            }
        }
    }
}

/// Whether it was the connection that failed rather than the listener.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

async fn connection(stream: Lingering, tls: &TlsAcceptor, front: Front, mut stop: watch::Receiver<bool>) {
    let _ = stream.stream().and_then(|stream| stream.set_nodelay(true));
    let shaken = tokio::select! {
        shaken = tokio::time::timeout(HANDSHAKE, handshake(stream, tls)) => shaken,
        _ = stop.wait_for(|stop| *stop) => return,
    };
    match shaken {
        Ok(Ok(Some(stream))) => {
            if let Err(error) = requests(stream, front, stop).await {
                tracing::debug!(%error, "TCP connection failed");
            }
        }
        Ok(Ok(None)) => tracing::debug!("plain HTTP on the HTTPS port"),
        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => tracing::debug!("TLS handshake took too long"),
    }
}

/// `None` if the client does not begin with TLS but with a letter, as every HTTP method does: that is nearly
/// always `http://` in place of `https://`, and the answer says so.
async fn handshake(mut stream: Lingering, tls: &TlsAcceptor) -> io::Result<Option<TlsStream<Lingering>>> {
    let mut first = [0];
    stream.stream()?.peek(&mut first).await?;
    if !first[0].is_ascii_uppercase() {
        return tls.accept(stream).await.map(Some);
    }
    stream.write_all(PLAIN_HTTP).await?;
    stream.shutdown().await?;
    Ok(None)
}

async fn requests(
    stream: TlsStream<Lingering>,
    front: Front,
    mut stop: watch::Receiver<bool>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let speaks_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(IDLE);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING);
    // ALPN has settled it: without this the builder would wait for the first bytes with no time limit.
    let builder = if speaks_h2 { builder.http2_only() } else { builder.http1_only() };
    let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(front));
    let mut connection = pin!(connection);
    tokio::select! {
        outcome = connection.as_mut() => return outcome,
        _ = stop.wait_for(|stop| *stop) => connection.as_mut().graceful_shutdown(),
    }
    connection.await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_files() {
        let limits = |files: &str| {
            format!("Limit  Soft Limit  Hard Limit  Units\nMax open files   {files}   1048576   files\n")
        };
        assert_eq!(most_connections(Some(&limits("100"))), 50);
        assert_eq!(most_connections(Some(&limits("20000"))), MAX_CONNECTIONS);
        assert_eq!(most_connections(Some(&limits("unlimited"))), MAX_CONNECTIONS);
        assert_eq!(most_connections(Some("nonsense")), 512);
        assert_eq!(most_connections(None), 512);
    }

    #[test]
    fn the_answer_to_plain_http_has_the_length_it_says() {
        let text = std::str::from_utf8(PLAIN_HTTP).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with(&format!("content-length: {}", body.len())), "{} bytes", body.len());
    }
}
