//! Informational (1xx) responses: what comes before the response proper is not let come for ever.
//!
//! HTTP/3 counts them with the headers of the response (see `godwit-http3`). Over HTTP/1.1 each is told of; over
//! HTTP/2 nobody tells of them, so the frames that carry headers are counted as they come in: one stream has at most
//! the informational ones, the response's and the trailers (RFC 9113 section 8.1).

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, ready};

use http::Request;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

/// The most informational responses before one response.
pub(crate) const MOST: u32 = 100;
/// Streams whose frames are counted at a time; a client has fewer open.
const STREAMS: usize = 1024;
const FRAME_HEADER: usize = 9;
/// The frame that begins headers (RFC 9113 section 6.2).
const HEADERS: u8 = 1;

/// A server sent more than [`MOST`].
#[derive(Debug)]
pub(crate) struct TooMany;

impl fmt::Display for TooMany {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "more than {MOST} informational (1xx) responses came and no other")
    }
}

impl std::error::Error for TooMany {}

/// What a request waits for besides its response, over HTTP/1.1.
pub(crate) struct Count(Arc<(AtomicU32, Notify)>);

impl Count {
    /// Counts what comes for `request`.
    pub(crate) fn of<B>(request: &mut Request<B>) -> Count {
        let count = Arc::new((AtomicU32::new(0), Notify::new()));
        let shared = Arc::clone(&count);
        hyper::ext::on_informational(request, move |_| {
            if shared.0.fetch_add(1, Ordering::Relaxed) >= MOST {
                shared.1.notify_one();
            }
        });
        Count(count)
    }

    /// Waits until there were too many.
    pub(crate) async fn exceeded(&self) {
        self.0.1.notified().await;
    }
}

/// An HTTP/2 connection whose reading fails with [`TooMany`].
pub(crate) struct Guarded<T> {
    stream: T,
    frames: Frames,
}

impl<T> Guarded<T> {
    pub(crate) fn new(stream: T) -> Guarded<T> {
        Guarded { stream, frames: Frames::default() }
    }
}

/// Goes along with a server's frames.
#[derive(Debug, Default)]
struct Frames {
    header: [u8; FRAME_HEADER],
    /// Bytes of it that have come.
    known: usize,
    /// Bytes of the payload that are still to come.
    payload: usize,
    /// How many times headers began on a stream.
    counts: BTreeMap<u32, u32>,
}

impl Frames {
    fn pass(&mut self, mut data: &[u8]) -> Result<(), TooMany> {
        while !data.is_empty() {
            if self.payload > 0 {
                let skipped = self.payload.min(data.len());
                self.payload -= skipped;
                data = data.get(skipped..).unwrap_or_default();
                continue;
            }
            let taken = (FRAME_HEADER - self.known).min(data.len());
            let (piece, rest) = data.split_at(taken);
            for (place, byte) in self.header.iter_mut().skip(self.known).zip(piece) {
                *place = *byte;
            }
            self.known += taken;
            data = rest;
            if self.known == FRAME_HEADER {
                self.known = 0;
                self.on_frame()?;
            }
        }
        Ok(())
    }

    fn on_frame(&mut self) -> Result<(), TooMany> {
        let [a, b, c, kind, _, stream @ ..] = self.header;
        self.payload = u32::from_be_bytes([0, a, b, c]) as usize;
        if kind != HEADERS {
            return Ok(());
        }
        let stream = u32::from_be_bytes(stream) & 0x7fff_ffff;
        if !self.counts.contains_key(&stream) && self.counts.len() >= STREAMS {
            // The oldest has most likely ended.
            self.counts.pop_first();
        }
        let count = self.counts.entry(stream).or_default();
        *count += 1;
        // The response's own, and the trailers.
        if *count > MOST + 2 { Err(TooMany) } else { Ok(()) }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Guarded<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let new = buffer.filled().get(before..).unwrap_or_default();
        Poll::Ready(self.frames.pass(new).map_err(io::Error::other))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Guarded<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, data)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, data)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, stream: u8, payload: usize) -> Vec<u8> {
        let length = u8::try_from(payload).unwrap();
        let mut frame = vec![0, 0, length, kind, 4, 0x80, 0, 0, stream];
        frame.resize(frame.len() + payload, HEADERS);
        frame
    }

    /// The frames in pieces of this size.
    fn pass(frames: &[Vec<u8>], piece: usize) -> bool {
        let mut counted = Frames::default();
        frames.concat().chunks(piece).all(|piece| counted.pass(piece).is_ok())
    }

    #[test]
    fn headers_of_one_stream_are_counted() {
        let most = usize::try_from(MOST).unwrap() + 2;
        for piece in [1, 2, 7, 9, 10, 1000] {
            assert!(pass(&vec![frame(HEADERS, 1, 5); most], piece), "{piece}");
            assert!(!pass(&vec![frame(HEADERS, 1, 0); most + 1], piece), "{piece}");
            assert!(pass(&vec![frame(0, 1, 200); 1000], piece), "{piece}: other frames");
            let spread: Vec<_> = (0..200).map(|stream| frame(HEADERS, stream, 30)).collect();
            assert!(pass(&spread, piece), "{piece}: other streams");
        }
    }
}
