//! Informational responses (1xx) over HTTP/1.1, which the HTTP library has no way to send but for 100 (Continue).
//!
//! They are written here, below it. When the library flushes it has nothing more to write for the moment; and while a request
//! is at its service nothing of its answer has been made: so what is written in a flush then stands between messages
//! (RFC 9112 section 6), behind the answer to the request before and ahead of this one's. Over HTTP/2 they would need a frame
//! of a stream whose number the library does not tell; they are left out there.
//!
//! Invariants: what has been begun is written to its end before anything else is; nothing is written for a request that is
//! answered, whoever still holds what speaks for it; the client's slowness is bounded, as what it does not take is left out.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use godwit_body::Informational;
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING, UPGRADE};
use http::{Response, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that may wait for a client to take them.
const MOST: usize = 16 << 10;

/// The informational responses of one connection. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interim(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Which request of the connection it is.
    request: u64,
    /// It is at its service, and nothing of its answer has been made.
    open: bool,
    /// Whole responses.
    waiting: BytesMut,
    /// The connection's task.
    waker: Option<Waker>,
}

/// A request at its service. Dropped, it is answered.
pub(crate) struct AtService<'a>(&'a Interim);

impl Interim {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next request is at its service.
    pub(crate) fn begin(&self) -> AtService<'_> {
        let mut state = self.state();
        state.request = state.request.wrapping_add(1);
        state.open = true;
        AtService(self)
    }

    /// Where those of the request go that is at its service.
    pub(crate) fn sink(&self) -> Informational {
        let (interim, request) = (self.clone(), self.state().request);
        Informational::new(move |response| Ok(interim.send(request, &response)?))
    }

    fn send(&self, request: u64, response: &Response<()>) -> Result<(), &'static str> {
        let status = response.status();
        if !status.is_informational() || status == StatusCode::SWITCHING_PROTOCOLS {
            return Err("only informational responses other than 101 can go ahead of the final one");
        }
        if status == StatusCode::CONTINUE {
            // The library says so itself when the body is asked for.
            return Ok(());
        }
        let head = encode(response);
        let mut state = self.state();
        if !state.open || state.request != request {
            return Err("the final response has begun");
        }
        if state.waiting.len().saturating_add(head.len()) > MOST {
            // The client takes none for now.
            return Ok(());
        }
        state.waiting.put_slice(&head);
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        Ok(())
    }
}

impl AtService<'_> {
    /// Gives the connection a chance to write what waits before the answer comes. It is not waited for any longer: a client
    /// that takes nothing gets its answer in its time.
    pub(crate) async fn let_out(&self) {
        let mut yielded = false;
        std::future::poll_fn(|cx| {
            if yielded || self.0.state().waiting.is_empty() {
                return Poll::Ready(());
            }
            yielded = true;
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
}

impl Drop for AtService<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.open = false;
        state.waiting.clear();
    }
}

/// As HTTP/1.1 has it, without what would speak of a body or of the connection.
fn encode(response: &Response<()>) -> BytesMut {
    let status = response.status();
    let mut head = BytesMut::with_capacity(256);
    head.put_slice(b"HTTP/1.1 ");
    head.put_slice(status.as_str().as_bytes());
    head.put_u8(b' ');
    head.put_slice(status.canonical_reason().unwrap_or_default().as_bytes());
    head.put_slice(b"\r\n");
    for (name, value) in response.headers() {
        if [CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING, UPGRADE].contains(name) {
            continue;
        }
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            head.put_slice(part);
        }
    }
    head.put_slice(b"\r\n");
    head
}

/// A stream of HTTP/1.1 on which informational responses are written between what the HTTP library writes.
pub(super) struct InterimStream<S> {
    stream: S,
    interim: Interim,
    /// What is being written of them.
    begun: Bytes,
}

impl<S: AsyncWrite + Unpin> InterimStream<S> {
    pub(super) fn new(stream: S, interim: Interim) -> InterimStream<S> {
        InterimStream { stream, interim, begun: Bytes::new() }
    }

    fn poll_begun(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.begun.is_empty() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.begun))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.begun.advance(written);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for InterimStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for InterimStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_begun(cx))?;
        Pin::new(&mut self.stream).poll_write(cx, buffer)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_begun(cx))?;
        Pin::new(&mut self.stream).poll_write_vectored(cx, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// The library has written all that it has.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_begun(cx))?;
        let mut state = self.interim.state();
        if state.open {
            if state.waker.as_ref().is_none_or(|waker| !waker.will_wake(cx.waker())) {
                state.waker = Some(cx.waker().clone());
            }
            let waiting = state.waiting.split().freeze();
            drop(state);
            self.begun = waiting;
            ready!(self.poll_begun(cx))?;
        } else {
            drop(state);
        }
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_begun(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
