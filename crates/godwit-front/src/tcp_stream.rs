//! A TCP connection that is closed without losing what was sent last.
//!
//! When a socket is closed while something that the client has sent lies unread (an HTTP/2 window update will do),
//! the kernel resets the connection and throws away what it has not yet delivered. So the end goes in two steps:
//! this side says that it has finished, and reads on until the client has too, or until it has acknowledged nothing
//! more for [`SILENCE`] (RFC 9112 section 9.6).
//!
//! Every byte passes here, so this is also where [`Progress`] learns of them, and where a client that sends without a
//! pause is made to let others have their turn.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
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
/// Bytes after which others get their turn. The libraries above read as long as there is something, and what they read may
/// be thousands of frames.
const TURN: usize = 64 << 10;

/// A connection with its permits to exist. Dropped, it lingers in a task of its own before they are given back.
#[derive(Debug)]
pub(super) struct ClientStream {
    held: Option<Held>,
    pace: Arc<Progress>,
    /// Bytes read since there was nothing to read, or others had their turn.
    read_in_turn: usize,
    /// Dropped with this, it tells who waits for that.
    gone: Option<oneshot::Sender<()>>,
}

#[derive(Debug)]
struct Held {
    stream: Metered,
    /// In this order: whoever finds room among the permits is not turned away for those who leave.
    _permits: (Admission, OwnedSemaphorePermit),
}

impl ClientStream {
    pub(super) fn new(stream: TcpStream, permits: (Admission, OwnedSemaphorePermit)) -> ClientStream {
        let stream = Metered::new(stream);
        let held = Some(Held { stream, _permits: permits });
        ClientStream { held, pace: Arc::default(), read_in_turn: 0, gone: None }
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
        if self.read_in_turn >= TURN {
            self.read_in_turn = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let poll = self.stream_mut()?.poll_read(cx, buffer);
        let read = buffer.filled().len().saturating_sub(before);
        self.read_in_turn = if poll.is_pending() { 0 } else { self.read_in_turn.saturating_add(read) };
        self.pace.on_read(read);
        poll
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

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::net::Ipv4Addr;
    use std::task::Waker;

    use tokio::net::TcpSocket;
    use tokio::sync::Semaphore;

    use super::super::connection_limits::ConnectionLimits;
    use super::*;

    const SENT: usize = 3 * TURN;

    /// A client that has sent so much, all of it in the kernel's buffer.
    async fn client_has_sent() -> (TcpStream, ClientStream) {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(1 << 20).unwrap();
        socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let listener = socket.listen(1).unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, remote) = listener.accept().await.unwrap();
        client.write_all(&vec![b'x'; SENT]).await.unwrap();
        let mut peeked = vec![0; SENT];
        while stream.peek(&mut peeked).await.unwrap() < 2 * TURN {
            tokio::task::yield_now().await;
        }
        let permit = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let admission = ConnectionLimits::new(1, 1, 1).admit(remote.ip()).unwrap();
        (client, ClientStream::new(stream, (admission, permit)))
    }

    /// Bytes that are read until there are no more for now.
    fn read_on(stream: &mut ClientStream, cx: &mut Context<'_>) -> usize {
        let (mut bytes, mut read) = ([0; 4096], 0);
        loop {
            let mut buffer = ReadBuf::new(&mut bytes);
            match Pin::new(&mut *stream).poll_read(cx, &mut buffer) {
                Poll::Ready(outcome) => outcome.unwrap(),
                Poll::Pending => return read,
            }
            read += buffer.filled().len();
        }
    }

    #[tokio::test]
    async fn who_sends_much_lets_others_have_their_turn() {
        let (_client, mut stream) = client_has_sent().await;
        let in_one_turn = read_on(&mut stream, &mut Context::from_waker(Waker::noop()));
        assert!((TURN..TURN + 4096).contains(&in_one_turn), "{in_one_turn}");
        // It goes on by itself: nothing more comes from the client.
        let mut left = SENT - in_one_turn;
        poll_fn(|cx| {
            left -= read_on(&mut stream, cx);
            if left == 0 { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        assert_eq!(stream.pace.bytes_read(), SENT as u64);
    }
}
