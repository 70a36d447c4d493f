//! The streams of a session: those of QUIC, with the error codes of WebTransport.

use super::error::{SessionError, StreamError};
use super::inner::Inner;
use bytes::Bytes;
use godwit_http3::webtransport::to_http3;
use godwit_wire::StreamId;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream that belongs to a session, until all its handles are gone.
#[derive(Debug)]
pub(super) struct Guard {
    session: Arc<Inner>,
    id: StreamId,
    /// Bytes in front of what the application sends, which the peer needs to know whose stream it is.
    head: u64,
}

impl Guard {
    /// A stream that has just been accepted, or opened by this end.
    pub(super) fn new(session: &Arc<Inner>, id: StreamId, own: bool) -> Arc<Self> {
        let head = if own { 2 + godwit_wire::varint_len(session.ends.id.as_u64()) as u64 } else { 0 };
        Arc::new(Guard { session: Arc::clone(session), id, head })
    }

    /// The handles of a bidirectional stream.
    pub(super) fn both(self: &Arc<Self>) -> (SendStream, RecvStream) {
        (SendStream::new(self), RecvStream::new(self))
    }

    fn end(&self) -> Option<SessionError> {
        self.session.ends.end()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let ends = &self.session.ends;
        ends.link.look(|protocol, _| protocol.h3.forget_session_stream(ends.id, self.id));
    }
}

/// The sending half of a stream of a session.
///
/// What is written is kept until the peer has acknowledged it; writing waits while the connection keeps as much as it may.
/// Dropping a stream that was not finished resets it with code 0.
#[derive(Debug)]
pub struct SendStream {
    inner: crate::SendStream,
    guard: Arc<Guard>,
    /// `finish` or `reset` was called.
    over: bool,
}

impl SendStream {
    pub(super) fn new(guard: &Arc<Guard>) -> Self {
        let inner = guard.session.ends.link.send_stream(guard.id);
        SendStream { inner, guard: Arc::clone(guard), over: false }
    }

    /// The stream's id on the connection.
    pub fn id(&self) -> StreamId {
        self.guard.id
    }

    /// Writes all of `data`.
    ///
    /// An unknown part has been written if this is dropped before it is ready.
    ///
    /// # Errors
    /// If the stream takes no more data.
    pub async fn write_all(&mut self, data: &[u8]) -> Result<(), StreamError> {
        self.inner.write_all(data).await.map_err(|error| StreamError::from_write(error, self.guard.end()))
    }

    /// Writes all of `data` without copying it.
    ///
    /// An unknown part has been written if this is dropped before it is ready.
    ///
    /// # Errors
    /// If the stream takes no more data.
    pub async fn write_chunk(&mut self, data: Bytes) -> Result<(), StreamError> {
        self.inner.write_chunk(data).await.map_err(|error| StreamError::from_write(error, self.guard.end()))
    }

    /// Says that this was all. What has been written is still sent, as long as the session lasts.
    ///
    /// # Errors
    /// If the stream or the session is over.
    pub fn finish(&mut self) -> Result<(), StreamError> {
        self.over = true;
        self.inner.finish().map_err(|error| StreamError::from_write(error, self.guard.end()))
    }

    /// Gives up: what has not been sent is thrown away, and the peer is told the application's code.
    pub fn reset(&mut self, code: u32) {
        self.over = true;
        let code = to_http3(code);
        // Without its head the peer would not know whose stream it is, and what the code means.
        if self.inner.reset_at(code, self.guard.head).is_err() {
            self.inner.reset(code);
        }
    }

    /// Waits until the peer needs nothing more of this stream: `None` if it has acknowledged everything up to the end.
    ///
    /// # Errors
    /// [`StreamError::Stopped`] if the peer has said that it reads no more; or if the session is over before.
    pub async fn stopped(&self) -> Result<(), StreamError> {
        match self.inner.stopped().await {
            Ok(None) => Ok(()),
            Ok(Some(code)) => Err(crate::WriteError::Stopped(code)),
            Err(error) => Err(crate::WriteError::ConnectionLost(error)),
        }
        .map_err(|error| StreamError::from_write(error, self.guard.end()))
    }

    /// Sets when this stream is served, as [`crate::SendStream::set_priority`] does.
    pub fn set_priority(&mut self, urgency: u8, incremental: bool) {
        self.inner.set_priority(urgency, incremental);
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        if !self.over {
            self.reset(0);
        }
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    /// Finishes the stream; does not wait for acknowledgements.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.over = true;
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// The receiving half of a stream of a session.
///
/// What is not read holds the peer back. Dropping a stream before its end tells the peer to stop sending, with code 0.
#[derive(Debug)]
pub struct RecvStream {
    inner: crate::RecvStream,
    guard: Arc<Guard>,
    /// The end was reached, or `stop` was called.
    over: bool,
}

impl RecvStream {
    pub(super) fn new(guard: &Arc<Guard>) -> Self {
        let inner = guard.session.ends.link.recv_stream(guard.id);
        RecvStream { inner, guard: Arc::clone(guard), over: false }
    }

    /// The stream's id on the connection.
    pub fn id(&self) -> StreamId {
        self.guard.id
    }

    /// Reads some bytes into `buffer` and returns how many; `None` at the end of the stream.
    ///
    /// Nothing is lost if this is dropped before it is ready.
    ///
    /// # Errors
    /// If the peer gave up on the stream, or the session is over.
    pub async fn read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, StreamError> {
        let read = self.inner.read(buffer).await;
        self.judge(read)
    }

    /// Reads at most `max` bytes (at least 1) without copying them; `None` at the end of the stream.
    ///
    /// Nothing is lost if this is dropped before it is ready.
    ///
    /// # Errors
    /// If the peer gave up on the stream, or the session is over.
    pub async fn read_chunk(&mut self, max: usize) -> Result<Option<Bytes>, StreamError> {
        let read = self.inner.read_chunk(max).await;
        self.judge(read)
    }

    /// Reads everything up to the end of the stream.
    ///
    /// What was read is lost if this is dropped before it is ready.
    ///
    /// # Errors
    /// If there are more than `limit` bytes, the peer gave up on the stream, or the session is over.
    pub async fn read_to_end(&mut self, limit: usize) -> Result<Vec<u8>, StreamError> {
        let mut all = Vec::new();
        while let Some(chunk) = self.read_chunk(limit.saturating_add(1)).await? {
            if chunk.len() > limit.saturating_sub(all.len()) {
                return Err(StreamError::TooLong);
            }
            all.extend_from_slice(&chunk);
        }
        Ok(all)
    }

    /// Tells the peer that nothing more of this stream will be read, with the application's code.
    pub fn stop(&mut self, code: u32) {
        self.over = true;
        self.inner.stop(to_http3(code));
    }

    fn judge<T>(&mut self, read: Result<Option<T>, crate::ReadError>) -> Result<Option<T>, StreamError> {
        self.over |= matches!(read, Ok(None) | Err(_));
        read.map_err(|error| StreamError::from_read(error, self.guard.end()))
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        if !self.over {
            self.stop(0);
        }
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}
