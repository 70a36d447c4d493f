//! Requests on a TCP connection under TLS, one after the other.

use super::failure::{broken, stopped_by_the_server};
use crate::Error;
use crate::perf::pattern::Checker;
use crate::perf::protocol;
use crate::perf::protocol::{Request, TLS_RECORD, UNTIL_STOPPED, tcp_header};
use crate::perf::window::{Meter, Window};
use bytes::Bytes;
use rustls::CipherSuite;
use rustls::pki_types::ServerName;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A connection, which stands for one stream.
#[derive(Debug)]
pub(super) struct TcpLink(BufReader<TlsStream<TcpStream>>);

impl TcpLink {
    pub(super) async fn connect(
        tls: &TlsConnector,
        addr: SocketAddr,
        name: ServerName<'static>,
    ) -> io::Result<TcpLink> {
        let stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        let stream = tls.connect(name, stream).await?;
        Ok(TcpLink(BufReader::with_capacity(TLS_RECORD, stream)))
    }

    pub(super) fn cipher(&self) -> Option<CipherSuite> {
        let (_, tls) = self.0.get_ref().get_ref();
        tls.negotiated_cipher_suite().map(|suite| suite.suite())
    }

    /// Whether the server has ended it. Nothing may be expected from it.
    pub(super) fn has_ended(&mut self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        matches!(Pin::new(&mut self.0).poll_fill_buf(&mut cx), Poll::Ready(Ok([]) | Err(_)))
    }

    /// One request, and how many bytes came of the `response` that was asked for.
    pub(super) async fn exchange(&mut self, request: &Request, response: u64) -> Result<u64, Error> {
        self.write(request.pieces()).await.map_err(broken)?;
        let mut received = 0;
        while received < response {
            let some = self.read(response - received).await.map_err(broken)?;
            if some == 0 {
                break;
            }
            received += some;
        }
        Ok(received)
    }

    /// Receives until it is given up, and checks what comes if that is wanted.
    pub(super) async fn download(
        &mut self,
        meter: &Meter,
        mut checker: Option<Checker>,
    ) -> Result<(), Error> {
        self.write([tcp_header(UNTIL_STOPPED, 0)]).await.map_err(broken)?;
        loop {
            if let Some(checker) = &mut checker {
                checker.check(self.0.fill_buf().await.map_err(broken)?)?;
            }
            match self.read(u64::MAX).await.map_err(broken)? {
                0 => return Err(stopped_by_the_server()),
                some => meter.add_bytes(some),
            }
        }
    }

    /// Sends until the time is over, and waits until the server has read everything.
    pub(super) async fn upload(&mut self, window: &Window) -> Result<(), Error> {
        self.write([tcp_header(0, UNTIL_STOPPED)]).await.map_err(broken)?;
        loop {
            let piece = protocol::upload(UNTIL_STOPPED);
            self.0.write_all(&piece).await.map_err(broken)?;
            window.meter.add_bytes(piece.len() as u64);
            if window.is_over() {
                break;
            }
        }
        self.0.shutdown().await.map_err(broken)?;
        // The server ends its side when it has read everything.
        while self.read(u64::MAX).await.map_err(broken)? > 0 {}
        Ok(())
    }

    async fn write(&mut self, pieces: impl IntoIterator<Item = Bytes>) -> io::Result<()> {
        for piece in pieces {
            self.0.write_all(&piece).await?;
        }
        self.0.flush().await
    }

    /// Takes what has come, `most` at the most; 0 at the end.
    async fn read(&mut self, most: u64) -> io::Result<u64> {
        let there = self.0.fill_buf().await?.len();
        let taken = usize::try_from(most).map_or(there, |most| there.min(most));
        self.0.consume(taken);
        Ok(taken as u64)
    }
}
