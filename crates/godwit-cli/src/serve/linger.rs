//! A TCP connection that is closed without losing what was sent last.
//!
//! When a socket is closed while something that the client has sent lies unread (an HTTP/2 window update will do),
//! the kernel resets the connection and throws away what it has not yet delivered. So the end goes in two steps:
//! this side says that it has finished, and reads on until the client has, or [`PATIENCE`] runs out
//! (RFC 9112 section 9.6).

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;

const PATIENCE: Duration = Duration::from_secs(1);

/// A connection with its permit to exist. Dropped, it lingers in a task of its own before both are given back.
#[derive(Debug)]
pub(super) struct Lingering(Option<(TcpStream, OwnedSemaphorePermit)>);

impl Lingering {
    pub(super) fn new(stream: TcpStream, permit: OwnedSemaphorePermit) -> Lingering {
        Lingering(Some((stream, permit)))
    }

    /// The connection, which is there until the drop.
    pub(super) fn stream(&self) -> io::Result<&TcpStream> {
        self.0.as_ref().map(|(stream, _)| stream).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    fn stream_mut(self: Pin<&mut Self>) -> io::Result<Pin<&mut TcpStream>> {
        let held = self.get_mut().0.as_mut();
        held.map(|(stream, _)| Pin::new(stream)).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl Drop for Lingering {
    fn drop(&mut self) {
        if let (Some((stream, permit)), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current())
        {
            runtime.spawn(async move {
                let _ = tokio::time::timeout(PATIENCE, read_out(stream)).await;
                drop(permit);
            });
        }
    }
}

async fn read_out(mut stream: TcpStream) -> io::Result<()> {
    stream.shutdown().await?;
    let mut unwanted = [0; 4096];
    while stream.read(&mut unwanted).await? > 0 {}
    Ok(())
}

impl AsyncRead for Lingering {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream_mut()?.poll_read(cx, buffer)
    }
}

impl AsyncWrite for Lingering {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        self.stream_mut()?.poll_write(cx, buffer)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream_mut()?.poll_write_vectored(cx, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream_mut()?.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream_mut()?.poll_shutdown(cx)
    }
}
