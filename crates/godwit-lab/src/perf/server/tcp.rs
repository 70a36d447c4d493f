//! The same over TCP and TLS, on the port of the same number.

use super::Totals;
use crate::perf::protocol::{TCP_HEADER, TLS_RECORD, UNTIL_STOPPED, filling};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// The pause after a connection could not be taken: the process may have no descriptor left.
const PAUSE: Duration = Duration::from_millis(50);

/// What takes connections, on every shard.
#[derive(Clone)]
pub(super) struct Tcp {
    listener: Arc<TcpListener>,
    tls: TlsAcceptor,
}

impl Tcp {
    pub(super) fn bind(listen: SocketAddr, tls: rustls::ServerConfig) -> io::Result<Tcp> {
        let listener = TcpListener::bind(listen)?;
        listener.set_nonblocking(true)?;
        Ok(Tcp { listener: Arc::new(listener), tls: TlsAcceptor::from(Arc::new(tls)) })
    }

    pub(super) fn port(&self) -> io::Result<u16> {
        Ok(self.listener.local_addr()?.port())
    }

    /// Takes everybody, on this thread.
    pub(super) async fn accept(self, totals: Arc<Totals>) {
        let listener = self.listener.try_clone().and_then(tokio::net::TcpListener::from_std);
        let listener = match listener {
            Ok(listener) => listener,
            Err(error) => {
                tracing::warn!(%error, "a shard takes no TCP connections");
                return;
            }
        };
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    tokio::spawn(serve(stream, self.tls.clone(), Arc::clone(&totals)));
                }
                Err(error) => {
                    tracing::debug!(%error, "a TCP connection was not taken");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
}

async fn serve(stream: TcpStream, tls: TlsAcceptor, totals: Arc<Totals>) {
    let _ = stream.set_nodelay(true);
    let stream = match tokio::time::timeout(HANDSHAKE, tls.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        _ => {
            tracing::debug!("a handshake over TCP failed");
            return;
        }
    };
    Totals::add(&totals.connections, 1);
    if let Err(error) = answer(BufReader::with_capacity(TLS_RECORD, stream), &totals).await {
        tracing::debug!(%error, "a TCP connection is over");
    }
}

/// Answers one request after the other until the client ends the connection.
async fn answer(mut stream: BufReader<TlsStream<TcpStream>>, totals: &Totals) -> io::Result<()> {
    loop {
        let mut header = [0; TCP_HEADER];
        stream.read_exact(&mut header).await?;
        Totals::add(&totals.streams, 1);
        let [response, upload] = lengths(header);
        receive(&mut stream, upload, totals).await?;
        send(&mut stream, response, totals).await?;
        if upload == UNTIL_STOPPED {
            return stream.shutdown().await;
        }
    }
}

/// The lengths of the answer and of the upload.
fn lengths(header: [u8; TCP_HEADER]) -> [u64; 2] {
    let both = u128::from_be_bytes(header);
    [(both >> 64) as u64, both as u64]
}

async fn receive(
    stream: &mut BufReader<TlsStream<TcpStream>>,
    mut upload: u64,
    totals: &Totals,
) -> io::Result<()> {
    while upload > 0 {
        let there = stream.fill_buf().await?.len();
        if there == 0 {
            let ended = upload == UNTIL_STOPPED;
            return if ended { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
        }
        let taken = usize::try_from(upload).map_or(there, |upload| there.min(upload));
        stream.consume(taken);
        Totals::add(&totals.received, taken as u64);
        if upload != UNTIL_STOPPED {
            upload -= taken as u64;
        }
    }
    Ok(())
}

async fn send(
    stream: &mut BufReader<TlsStream<TcpStream>>,
    mut response: u64,
    totals: &Totals,
) -> io::Result<()> {
    let mut position = 0;
    while response > 0 {
        let piece = filling(position, response);
        stream.write_all(&piece).await?;
        position += piece.len() as u64;
        Totals::add(&totals.sent, piece.len() as u64);
        if response != UNTIL_STOPPED {
            response -= piece.len() as u64;
        }
    }
    stream.flush().await
}
