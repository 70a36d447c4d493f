//! A TCP connection that is closed without losing what was sent last.
//!
//! When a socket is closed while something that the client has sent lies unread (an HTTP/2 window update will do),
//! the kernel resets the connection and throws away what it has not yet delivered. So the end goes in two steps:
//! this side says that it has finished, and reads on until the client has too, or until it has acknowledged nothing
//! more for [`SILENCE`] (RFC 9112 section 9.6).
//!
//! Every byte passes here, so this is also where [`Progress`] learns of them.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use godwit_os::tcp::tcp_info;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::client::tcp::{Meter, Metered};
use super::connection_limits::Admission;
use godwit_body::Progress;

/// How long to wait for a client that acknowledges nothing more.
const SILENCE: Duration = Duration::from_secs(1);
/// How often to wait for so long, for one that does.
const MOST_WAITS: usize = 300;

/// A connection with its permits to exist. Dropped, it lingers in a task of its own before they are given back.
#[derive(Debug)]
pub(super) struct ClientStream {
    held: Option<Held>,
    pace: Arc<Progress>,
    /// Dropped with this, it tells who waits for that.
    gone: Option<oneshot::Sender<()>>,
}

#[derive(Debug)]
struct Held {
    stream: Metered,
    _permits: (OwnedSemaphorePermit, Admission),
}

impl ClientStream {
    pub(super) fn new(stream: TcpStream, permits: (OwnedSemaphorePermit, Admission)) -> ClientStream {
        let stream = Metered::new(stream);
        ClientStream { held: Some(Held { stream, _permits: permits }), pace: Arc::default(), gone: None }
    }

    /// Ready when this has been dropped, by whoever has it then.
    pub(super) fn gone(&mut self) -> impl Future<Output = ()> + use<> {
        let (sender, gone) = oneshot::channel();
        self.gone = Some(sender);
        async move {
            let _ = gone.await;
        }
    }

    /// The connection, which is there until the drop.
    pub(super) fn stream(&self) -> io::Result<&TcpStream> {
        self.held.as_ref().map(|held| &*held.stream).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// For asking about the connection later.
    pub(super) fn meter(&self) -> io::Result<&Arc<Meter>> {
        self.held.as_ref().map(|held| held.stream.meter()).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    pub(super) fn pace(&self) -> &Arc<Progress> {
        &self.pace
    }

    fn stream_mut(&mut self) -> io::Result<Pin<&mut Metered>> {
        let held = self.held.as_mut();
        held.map(|held| Pin::new(&mut held.stream)).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    fn note_write(&self, poll: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &poll {
            Poll::Ready(Ok(written)) => self.pace.on_written(*written),
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.pace.on_full(),
        }
        poll
    }
}

impl Drop for ClientStream {
    fn drop(&mut self) {
        let Some(held) = self.held.take() else { return };
        if self.pace.is_aborted() {
            // What the kernel holds for this client is thrown away with it.
            let _ = socket2::SockRef::from(&*held.stream).set_linger(Some(Duration::ZERO));
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(read_out(held));
        }
    }
}

async fn read_out(mut held: Held) {
    let stream = &mut held.stream;
    if stream.shutdown().await.is_err() {
        return;
    }
    let mut acknowledged = 0;
    for _ in 0..MOST_WAITS {
        let over = async {
            let mut unwanted = [0; 4096];
            while stream.read(&mut unwanted).await.is_ok_and(|read| read > 0) {}
        };
        if tokio::time::timeout(SILENCE, over).await.is_ok() {
            return;
        }
        match tcp_info(&**stream) {
            Some(info) if info.bytes_acked > acknowledged => acknowledged = info.bytes_acked,
            _ => return,
        }
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let outcome = ready!(self.stream_mut()?.poll_read(cx, buffer));
        self.pace.on_read(buffer.filled().len().saturating_sub(before));
        Poll::Ready(outcome)
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        let poll = self.stream_mut()?.poll_write(cx, buffer);
        self.note_write(poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = self.stream_mut()?.poll_write_vectored(cx, buffers);
        self.note_write(poll)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream_mut()?.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream_mut()?.poll_shutdown(cx)
    }
}
