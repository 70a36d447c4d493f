//! The receiving half of a stream.

use crate::access::{Access, ConnectionHandle};
use crate::code::ApplicationCode;
use crate::error::{ReadError, ReadToEndError};
use bytes::Bytes;
use godwit_transport::{self as transport, ReadChunk};
use godwit_wire::StreamId;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::task::coop;

/// Bytes read at once, with the shard held.
const READ_AT_ONCE: usize = 256 << 10;

/// The receiving half of a stream.
///
/// What is not read holds the peer back: it may only send as much as flow control permits. Dropping a stream
/// before its end tells the peer to stop sending, with code 0.
#[derive(Debug)]
pub struct RecvStream {
    shared: Arc<ConnectionHandle>,
    id: StreamId,
    end: Option<End>,
    early: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Finished,
    Reset(u64),
    Stopped,
}

/// What takes in data.
trait Sink {
    /// Bytes it takes at present.
    fn room(&self) -> usize;

    /// Takes at most that much.
    fn put(&mut self, data: Bytes);
}

impl RecvStream {
    pub(crate) fn new(shared: Arc<ConnectionHandle>, id: StreamId, early: bool) -> Self {
        RecvStream { shared, id, end: None, early }
    }

    /// At a server: whether the client opened the stream with 0-RTT data. Until the handshake is complete it may
    /// be somebody who repeats what they have recorded: what is asked for must be something that may happen
    /// twice, or has to wait for [`crate::Connection::connected`].
    pub fn is_early(&self) -> bool {
        self.early
    }

    /// The stream's id.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Reads some bytes into `buffer` and returns how many; `None` at the end of the stream.
    ///
    /// Nothing is lost if this is dropped before it is ready.
    ///
    /// # Errors
    /// If the peer gave up on the stream, or the connection is over.
    pub async fn read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, ReadError> {
        let mut buffer = ReadBuf::new(buffer);
        if buffer.capacity() == 0 {
            return Ok(Some(0));
        }
        let more = poll_fn(|cx| self.poll_fill(cx, &mut buffer)).await?;
        Ok(more.then_some(buffer.filled().len()))
    }

    /// Reads at most `max` bytes (at least 1) without copying them; `None` at the end of the stream.
    ///
    /// Nothing is lost if this is dropped before it is ready.
    ///
    /// # Errors
    /// If the peer gave up on the stream, or the connection is over.
    pub async fn read_chunk(&mut self, max: usize) -> Result<Option<Bytes>, ReadError> {
        poll_fn(|cx| self.poll_read_chunk(cx, max)).await
    }

    /// As [`RecvStream::read_chunk`]; if it is not ready, the task is woken when it is.
    ///
    /// # Errors
    /// If the peer gave up on the stream, or the connection is over.
    pub fn poll_read_chunk(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Result<Option<Bytes>, ReadError>> {
        let mut sink = One { max: max.max(1), chunk: None };
        let more = ready!(self.poll_fill(cx, &mut sink))?;
        Poll::Ready(Ok(if more { sink.chunk } else { None }))
    }

    /// Reads what has arrived into the front of `chunks`, without copying, and returns how many were
    /// filled; `None` at the end of the stream.
    ///
    /// Nothing is lost if this is dropped before it is ready.
    ///
    /// # Errors
    /// If the peer gave up on the stream, or the connection is over.
    pub async fn read_chunks(&mut self, chunks: &mut [Bytes]) -> Result<Option<usize>, ReadError> {
        if chunks.is_empty() {
            return Ok(Some(0));
        }
        let mut sink = Many { chunks, filled: 0 };
        let more = poll_fn(|cx| self.poll_fill(cx, &mut sink)).await?;
        Ok(more.then_some(sink.filled))
    }

    /// Reads everything up to the end of the stream.
    ///
    /// What was read is lost if this is dropped before it is ready.
    ///
    /// # Errors
    /// If there are more than `limit` bytes, the peer gave up on the stream, or the connection is over.
    pub async fn read_to_end(&mut self, limit: usize) -> Result<Vec<u8>, ReadToEndError> {
        let mut sink = Collect { limit, data: Vec::new() };
        while poll_fn(|cx| self.poll_fill(cx, &mut sink)).await? {
            if sink.data.len() > limit {
                return Err(ReadToEndError::TooLong);
            }
        }
        Ok(sink.data)
    }

    /// Tells the peer that nothing more of this stream will be read, with the application's `code`.
    /// What has arrived is thrown away. Without effect once the end was reached.
    pub fn stop(&mut self, code: impl Into<ApplicationCode>) {
        let code = code.into().value();
        if self.end.is_none() {
            self.end = Some(End::Stopped);
            let id = self.id;
            self.shared.access(|access| stop(access, id, code));
        }
    }

    /// Fills `sink` with what has arrived. False at the end of the stream.
    fn poll_fill(&mut self, cx: &mut Context<'_>, sink: &mut impl Sink) -> Poll<Result<bool, ReadError>> {
        match self.end {
            Some(End::Finished) => return Poll::Ready(Ok(false)),
            Some(End::Reset(code)) => return Poll::Ready(Err(ReadError::Reset(code))),
            Some(End::Stopped) => return Poll::Ready(Err(ReadError::Stopped)),
            None => {}
        }
        let progress = ready!(coop::poll_proceed(cx));
        let (id, end) = (self.id, &mut self.end);
        let poll = self.shared.access(|access| {
            let filled = fill(access, id, sink, end);
            if filled.is_pending() {
                access.state.register_reader(id, cx.waker(), access.shard);
            }
            filled
        });
        if poll.is_ready() {
            progress.made_progress();
        }
        poll
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        let (id, reading) = (self.id, self.end.is_none());
        self.shared.access(|access| {
            access.state.remove_half(id, access.shard);
            if reading && access.state.ended.is_none() {
                stop(access, id, 0);
            }
        });
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        self.poll_fill(cx, buffer).map_ok(|_| ()).map_err(io::Error::from)
    }
}

/// Reads until the sink is full, there is nothing, or it is another's turn.
fn fill(
    access: &mut Access<'_, '_>,
    id: StreamId,
    sink: &mut impl Sink,
    end: &mut Option<End>,
) -> Poll<Result<bool, ReadError>> {
    let mut taken = 0;
    let outcome = loop {
        let room = sink.room().min(READ_AT_ONCE);
        if room == 0 || taken >= READ_AT_ONCE {
            break Poll::Ready(Ok(true));
        }
        match read(access, id, room) {
            Ok(ReadChunk::Data(data)) => {
                taken += data.len();
                sink.put(data);
            }
            Ok(ReadChunk::Blocked) if taken > 0 => break Poll::Ready(Ok(true)),
            Ok(ReadChunk::Blocked) => break Poll::Pending,
            Ok(ReadChunk::Finished) => {
                *end = Some(End::Finished);
                break Poll::Ready(Ok(taken > 0));
            }
            Err(ReadError::Reset(code)) => {
                *end = Some(End::Reset(code));
                break Poll::Ready(if taken > 0 { Ok(true) } else { Err(ReadError::Reset(code)) });
            }
            Err(error) => break Poll::Ready(if taken > 0 { Ok(true) } else { Err(error) }),
        }
    };
    if outcome.is_ready() && access.state.ended.is_none() {
        // The peer may be permitted to send more.
        access.touch();
    }
    outcome
}

fn read(access: &mut Access<'_, '_>, id: StreamId, max: usize) -> Result<ReadChunk, ReadError> {
    let outcome = if let Some(error) = &access.state.ended {
        let error = ReadError::ConnectionLost(error.clone());
        access.state.read_left(id, max).ok_or(error)?
    } else {
        let now = access.shard.now();
        access.connection().map_or(Ok(ReadChunk::Blocked), |connection| connection.read(now, id, max))
    };
    outcome.map_err(|error| match error {
        transport::ReadError::Reset(code) => ReadError::Reset(code),
        _ => ReadError::Stopped,
    })
}

fn stop(access: &mut Access<'_, '_>, id: StreamId, code: u64) {
    // A stream that is unknown is over.
    let _ = access.connection().map(|connection| connection.stop_sending(id, code));
    access.touch();
}

impl Sink for ReadBuf<'_> {
    fn room(&self) -> usize {
        self.remaining()
    }

    fn put(&mut self, data: Bytes) {
        self.put_slice(&data);
    }
}

/// One chunk.
struct One {
    max: usize,
    chunk: Option<Bytes>,
}

impl Sink for One {
    fn room(&self) -> usize {
        if self.chunk.is_none() { self.max } else { 0 }
    }

    fn put(&mut self, data: Bytes) {
        self.chunk = Some(data);
    }
}

/// As many chunks as there are places.
struct Many<'a> {
    chunks: &'a mut [Bytes],
    filled: usize,
}

impl Sink for Many<'_> {
    fn room(&self) -> usize {
        if self.filled < self.chunks.len() { usize::MAX } else { 0 }
    }

    fn put(&mut self, data: Bytes) {
        if let Some(place) = self.chunks.get_mut(self.filled) {
            *place = data;
            self.filled += 1;
        }
    }
}

/// Everything up to a limit, and one byte more by which one knows that there is more.
struct Collect {
    limit: usize,
    data: Vec<u8>,
}

impl Sink for Collect {
    fn room(&self) -> usize {
        self.limit.saturating_add(1).saturating_sub(self.data.len())
    }

    fn put(&mut self, data: Bytes) {
        self.data.extend_from_slice(&data);
    }
}
