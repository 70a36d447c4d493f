//! The sending half of a stream.

use crate::access::{Access, ConnectionHandle};
use crate::code::ApplicationCode;
use crate::error::{ConnectionError, WriteError};
use crate::handler::Topic;
use bytes::Bytes;
use godwit_transport::{self as transport, ResetAtError};
use godwit_wire::StreamId;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;
use tokio::task::coop;

/// Bytes copied at once, with the shard held.
const COPY_AT_ONCE: usize = 64 << 10;

/// The sending half of a stream.
///
/// What is written is kept until the peer has acknowledged it; writing waits while the connection keeps as
/// much as it may. Dropping a stream that was not finished resets it with code 0.
#[derive(Debug)]
pub struct SendStream {
    shared: Arc<ConnectionHandle>,
    id: StreamId,
    /// `finish` or `reset` was called: dropping is nothing to tell the peer about.
    over: bool,
}

impl SendStream {
    pub(crate) fn new(shared: Arc<ConnectionHandle>, id: StreamId) -> Self {
        SendStream { shared, id, over: false }
    }

    /// The stream's id.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Writes some of `data`, and returns how much. Waits until at least one byte is taken.
    ///
    /// Nothing has been written if this is dropped before it is ready.
    ///
    /// # Errors
    /// If the stream takes no more data.
    pub async fn write(&mut self, data: &[u8]) -> Result<usize, WriteError> {
        poll_fn(|cx| self.poll_write_slice(cx, data)).await
    }

    /// Writes all of `data`.
    ///
    /// An unknown part has been written if this is dropped before it is ready.
    ///
    /// # Errors
    /// If the stream takes no more data.
    pub async fn write_all(&mut self, mut data: &[u8]) -> Result<(), WriteError> {
        while !data.is_empty() {
            let written = self.write(data).await?;
            data = data.get(written..).unwrap_or_default();
        }
        Ok(())
    }

    /// Writes all of `data` without copying it.
    ///
    /// An unknown part has been written if this is dropped before it is ready.
    ///
    /// # Errors
    /// If the stream takes no more data.
    pub async fn write_chunk(&mut self, mut data: Bytes) -> Result<(), WriteError> {
        poll_fn(|cx| self.poll_write_chunk(cx, &mut data)).await
    }

    /// Takes bytes off the front of `data` until there are none; without copying.
    ///
    /// # Errors
    /// If the stream takes no more data.
    pub fn poll_write_chunk(
        &mut self,
        cx: &mut Context<'_>,
        data: &mut Bytes,
    ) -> Poll<Result<(), WriteError>> {
        if data.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let progress = ready!(coop::poll_proceed(cx));
        let id = self.id;
        let poll = self.shared.access(|access| {
            let room = match room(access, id) {
                Ok(room) => room,
                Err(error) => return Poll::Ready(Err(error)),
            };
            if room > 0 {
                let piece = if data.len() <= room { std::mem::take(data) } else { data.split_to(room) };
                push(access, id, piece);
            }
            if data.is_empty() {
                return Poll::Ready(Ok(()));
            }
            wait(access, id, cx);
            Poll::Pending
        });
        if poll.is_ready() {
            progress.made_progress();
        }
        poll
    }

    fn poll_write_slice(&mut self, cx: &mut Context<'_>, data: &[u8]) -> Poll<Result<usize, WriteError>> {
        if data.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let progress = ready!(coop::poll_proceed(cx));
        let id = self.id;
        let poll = self.shared.access(|access| match room(access, id) {
            Err(error) => Poll::Ready(Err(error)),
            Ok(0) => {
                wait(access, id, cx);
                Poll::Pending
            }
            Ok(room) => {
                let len = data.len().min(room).min(COPY_AT_ONCE);
                push(access, id, Bytes::copy_from_slice(data.get(..len).unwrap_or_default()));
                Poll::Ready(Ok(len))
            }
        });
        if poll.is_ready() {
            progress.made_progress();
        }
        poll
    }

    /// Says that this was all. What has been written is still sent; nobody needs to wait for it, but the
    /// connection must not be closed before it has arrived, see [`SendStream::stopped`].
    ///
    /// # Errors
    /// If it was said before, or the stream or the connection is over.
    pub fn finish(&mut self) -> Result<(), WriteError> {
        let id = self.id;
        self.shared.access(|access| {
            room(access, id)?;
            let finished = access.connection().map(|connection| connection.finish(id));
            access.touch();
            finished.unwrap_or(Ok(())).map_err(|error| write_error(access, id, error))
        })?;
        self.over = true;
        Ok(())
    }

    /// Gives up: what has not been sent yet is thrown away, and the peer is told the application's `code`.
    /// Without effect if all was acknowledged or the stream is over.
    pub fn reset(&mut self, code: impl Into<ApplicationCode>) {
        let (id, code) = (self.id, code.into().value());
        self.over = true;
        self.shared.access(|access| {
            // A stream that is unknown is over.
            let _ = access.connection().map(|connection| connection.reset(id, code));
            access.touch();
        });
    }

    /// Gives up as [`SendStream::reset`] does, but still delivers the first `reliable_size` bytes of what was
    /// written: the peer reads those before it learns of the reset. Calling it again can lower the size,
    /// not raise it (draft-ietf-quic-reliable-stream-reset).
    ///
    /// # Errors
    /// If the peer does not support it. The stream goes on then.
    pub fn reset_at(
        &mut self,
        code: impl Into<ApplicationCode>,
        reliable_size: u64,
    ) -> Result<(), ResetAtError> {
        let (id, code) = (self.id, code.into().value());
        let result = self.shared.access(|access| {
            let result = access.connection().map(|connection| connection.reset_at(id, code, reliable_size));
            access.touch();
            result
        });
        match result {
            Some(Err(ResetAtError::Unsupported)) => Err(ResetAtError::Unsupported),
            // A stream that is unknown is over.
            None | Some(_) => {
                self.over = true;
                Ok(())
            }
        }
    }

    /// Waits until the peer needs nothing more of this stream: `Some(code)` if it has said that it reads no
    /// more, `None` if it has acknowledged everything up to the end.
    ///
    /// # Errors
    /// If the connection is over before.
    pub async fn stopped(&self) -> Result<Option<u64>, ConnectionError> {
        let id = self.id;
        let attempt = move |access: &mut Access<'_, '_>| {
            if let Some(code) = access.state.stop_code(id) {
                return Some(Ok(Some(code)));
            }
            if access.state.is_acknowledged(id) {
                return Some(Ok(None));
            }
            access.state.ended.clone().map(Err)
        };
        self.shared.until(Topic::SendOver(id), attempt).await
    }

    /// Sets when this stream is served: streams of lower `urgency` first (0 to 7, at the start 3); among
    /// equal ones in the order in which they were written to, or in turn if `incremental` (RFC 9218). It can be changed
    /// at any time. A stream that is not incremental goes on, once it has begun to send, for as long as it has data:
    /// others of its urgency wait.
    pub fn set_priority(&mut self, urgency: u8, incremental: bool) {
        let id = self.id;
        self.shared.access(|access| {
            // A stream that is unknown is over.
            let _ = access.connection().map(|connection| connection.set_priority(id, urgency, incremental));
            access.touch();
        });
    }

    /// Sets how much this stream sends beside other incremental ones of its urgency: in proportion to its weight, 1 to
    /// 255; 1 at the start. It can be changed at any time, as [`SendStream::set_priority`] can.
    pub fn set_weight(&mut self, weight: u8) {
        let id = self.id;
        self.shared.access(|access| {
            // A stream that is unknown is over.
            let _ = access.connection().map(|connection| connection.set_weight(id, weight));
        });
    }

    /// Bytes that should be written and not be acknowledged, so that neither the network waits for the application nor
    /// memory is held for nothing: it follows the congestion window and the peer's limit on the stream. Writing waits
    /// only beyond a bound for all streams of the connection, [`Connection::ideal_buffer`]; who makes data faster than
    /// the network takes it compares this with [`SendStream::buffered`].
    ///
    /// # Errors
    /// If the stream takes no more data.
    ///
    /// [`Connection::ideal_buffer`]: crate::Connection::ideal_buffer
    pub fn ideal_buffer(&self) -> Result<u64, WriteError> {
        let id = self.id;
        self.shared.access(|access| {
            if let Some(error) = &access.state.ended {
                return Err(WriteError::ConnectionLost(error.clone()));
            }
            let ideal = access.connection().map(|connection| connection.ideal_buffer(id));
            ideal
                .unwrap_or(Err(transport::WriteError::UnknownStream))
                .map_err(|error| write_error(access, id, error))
        })
    }

    /// Bytes that are written and that the peer has not acknowledged.
    pub fn buffered(&self) -> u64 {
        let id = self.id;
        self.shared
            .access(|access| access.connection().and_then(|connection| connection.buffered(id)))
            .unwrap_or(0)
    }

    /// Waits until the stream takes more data, and says how many bytes at once.
    ///
    /// # Errors
    /// If the stream takes no more data.
    pub async fn writable(&mut self) -> Result<usize, WriteError> {
        poll_fn(|cx| self.poll_writable(cx)).await
    }

    /// As [`SendStream::writable`]; if it is not ready, the task is woken when it is.
    ///
    /// # Errors
    /// If the stream takes no more data.
    pub fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, WriteError>> {
        let id = self.id;
        self.shared.access(|access| match room(access, id) {
            Ok(0) => {
                wait(access, id, cx);
                Poll::Pending
            }
            room => Poll::Ready(room),
        })
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        let (id, over) = (self.id, self.over);
        self.shared.access(|access| {
            access.state.remove_half(id, access.shard);
            if !over && access.state.ended.is_none() {
                let _ = access.connection().map(|connection| connection.reset(id, 0));
                access.touch();
            }
        });
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_slice(cx, data).map_err(io::Error::from)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Finishes the stream; does not wait for acknowledgements.
    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.over {
            return Poll::Ready(Ok(()));
        }
        Poll::Ready(self.finish().map_err(io::Error::from))
    }
}

/// How much can be written.
fn room(access: &mut Access<'_, '_>, id: StreamId) -> Result<usize, WriteError> {
    if let Some(error) = &access.state.ended {
        return Err(WriteError::ConnectionLost(error.clone()));
    }
    let room = access.connection().map_or(Err(transport::WriteError::UnknownStream), |it| it.write_room(id));
    room.map_err(|error| write_error(access, id, error))
}

/// Writes what there is room for.
fn push(access: &mut Access<'_, '_>, id: StreamId, data: Bytes) {
    let len = data.len();
    let written = access.connection().map(|connection| connection.write(id, data));
    debug_assert_eq!(written, Some(Ok(len)), "there was room");
    access.touch();
}

/// Has the task woken when there is room.
fn wait(access: &mut Access<'_, '_>, id: StreamId, cx: &Context<'_>) {
    // It can be written to, for there was no other answer to how much.
    let _ = access.connection().map(|connection| connection.watch_writable(id));
    access.state.register_writer(id, cx.waker(), access.shard);
}

fn write_error(access: &Access<'_, '_>, id: StreamId, error: transport::WriteError) -> WriteError {
    match error {
        transport::WriteError::Reset => WriteError::Reset,
        transport::WriteError::Stopped(code) => WriteError::Stopped(code),
        transport::WriteError::Finished => WriteError::Finished,
        // It is over, and forgotten by the transport.
        _ => access.state.stop_code(id).map_or(WriteError::Finished, WriteError::Stopped),
    }
}
