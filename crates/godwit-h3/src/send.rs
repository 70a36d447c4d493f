//! Streams to the peer.

use crate::error::{code, known, misused, of_writing, stream_id};
use bytes::{Buf, Bytes};
use godwit::WriteError;
use h3::error::Code;
use h3::quic::{self, StreamErrorIncoming, StreamId, WriteBuf};
use std::task::{Context, Poll, ready};

/// Bytes copied at once.
const COPY_AT_ONCE: usize = 64 << 10;

/// A stream to the peer, or the half of a bidirectional one that leads there.
///
/// `h3` hands over whole frames, of which it shows the bytes and not who owns them. So they are copied, once: the head of
/// a frame and what follows as one piece, where they fit into 64 KiB, and no sooner than there is room. Where bytes come
/// without a frame ([`quic::SendStreamUnframed`]) and as [`Bytes`], there is no copy at all.
///
/// Dropped before it was finished or reset, it is finished. If a frame is not whole yet, or the thread is panicking, it
/// is reset in place of that, so that the peer does not take a part for all: with H3_REQUEST_CANCELLED, in a panic with
/// H3_INTERNAL_ERROR.
pub struct SendStream<B: Buf> {
    stream: godwit::SendStream,
    /// What is left of the frame, behind `piece`.
    frame: Option<WriteBuf<B>>,
    /// What was copied and is not written, for there was less room than had been told.
    piece: Bytes,
    /// It was finished or reset.
    over: bool,
}

impl<B: Buf> SendStream<B> {
    pub(crate) fn new(stream: godwit::SendStream) -> Self {
        SendStream { stream, frame: None, piece: Bytes::new(), over: false }
    }

    /// Ready when all of the frame was written.
    fn poll_written(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        loop {
            ready!(self.stream.poll_write_chunk(cx, &mut self.piece)).map_err(of_writing)?;
            let Some(frame) = self.frame.as_mut().filter(|frame| frame.has_remaining()) else {
                self.frame = None;
                return Poll::Ready(Ok(()));
            };
            // Nothing is copied for a peer that takes nothing.
            let room = ready!(self.stream.poll_writable(cx)).map_err(of_writing)?;
            self.piece = frame.copy_to_bytes(frame.remaining().min(room).min(COPY_AT_ONCE));
        }
    }

    fn is_written(&self) -> bool {
        self.piece.is_empty() && self.frame.as_ref().is_none_or(|frame| !frame.has_remaining())
    }
}

impl<B: Buf> quic::SendStream<B> for SendStream<B> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.poll_written(cx)
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        if !self.is_written() {
            return Err(misused("a frame was to be sent before the last one was written: poll_ready first"));
        }
        self.frame = Some(data.into());
        Ok(())
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        ready!(self.poll_written(cx))?;
        self.over = true;
        Poll::Ready(match self.stream.finish() {
            // All was written. A server that has answered may want no more of a request, not even its end.
            Ok(()) | Err(WriteError::Stopped(_)) => Ok(()),
            Err(error) => Err(of_writing(error)),
        })
    }

    fn reset(&mut self, reset_code: u64) {
        self.over = true;
        self.frame = None;
        self.piece = Bytes::new();
        self.stream.reset(code(reset_code));
    }

    fn send_id(&self) -> StreamId {
        stream_id(self.stream.id())
    }
}

impl<B: Buf> quic::SendStreamUnframed<B> for SendStream<B> {
    fn poll_send<D: Buf>(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut D,
    ) -> Poll<Result<usize, StreamErrorIncoming>> {
        ready!(self.poll_written(cx))?;
        if !buf.has_remaining() {
            return Poll::Ready(Ok(0));
        }
        let room = ready!(self.stream.poll_writable(cx)).map_err(of_writing)?;
        let len = buf.remaining().min(room).min(COPY_AT_ONCE);
        self.piece = buf.copy_to_bytes(len);
        // What does not fit after all goes before what comes next.
        if let Poll::Ready(written) = self.poll_written(cx) {
            written?;
        }
        Poll::Ready(Ok(len))
    }
}

impl<B: Buf> Drop for SendStream<B> {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        if std::thread::panicking() {
            self.stream.reset(known(Code::H3_INTERNAL_ERROR));
        } else if self.is_written() {
            // What is over needs no end.
            let _ = self.stream.finish();
        } else {
            self.stream.reset(known(Code::H3_REQUEST_CANCELLED));
        }
    }
}
