//! Bodies as they arrive, and simple ones to send.

use super::error::Error;
use super::exchange::RecvHalf;
use super::stream::Piece;
use bytes::Bytes;
use godwit_body::FramePoll;
use http_body::{Frame, SizeHint};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// The body of a request at a server, or of a response at a client: data and, at the end, trailers.
///
/// It is read from the transport as it is asked for; what is not asked for holds the peer back. Dropped
/// before its end, it stops a request's body, or gives up the exchange at a client.
///
/// It can also be made of bytes, to be sent.
#[derive(Debug, Default)]
pub struct Body(Inner);

#[derive(Debug, Default)]
enum Inner {
    #[default]
    Empty,
    Bytes(Bytes),
    /// What somebody says elsewhere, until they have done.
    Said(mpsc::Receiver<Bytes>),
    Arriving {
        half: RecvHalf,
        /// What is left of the announced length.
        left: Option<u64>,
    },
}

impl Body {
    /// A body of no bytes.
    pub fn empty() -> Self {
        Body::default()
    }

    /// A body of what is said at the other end of a channel.
    pub(super) fn said(receiver: mpsc::Receiver<Bytes>) -> Self {
        Body(Inner::Said(receiver))
    }

    /// A body that arrives, and has this many bytes if that is known.
    pub(super) fn arriving(half: RecvHalf, left: Option<u64>) -> Self {
        Body(Inner::Arriving { half, left })
    }

    /// The next data; `None` at the end. Trailers are skipped: to see them, use
    /// [`http_body::Body::poll_frame`] or `http_body_util::BodyExt`.
    ///
    /// Nothing is lost if this is dropped before it is ready.
    ///
    /// # Errors
    /// If the exchange was given up or the connection is over.
    pub async fn data(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            match poll_fn(|cx| self.poll_piece(cx)).await.transpose()? {
                None => return Ok(None),
                Some(Piece::Data(data)) => return Ok(Some(data)),
                Some(Piece::Trailers(_)) => {}
            }
        }
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Piece, Error>>> {
        match &mut self.0 {
            Inner::Empty => Poll::Ready(None),
            Inner::Said(receiver) => {
                receiver.poll_recv(cx).map(|piece| piece.map(|data| Ok(Piece::Data(data))))
            }
            Inner::Bytes(bytes) => {
                let data = std::mem::take(bytes);
                self.0 = Inner::Empty;
                Poll::Ready(Some(Ok(Piece::Data(data))))
            }
            Inner::Arriving { half, left } => {
                let poll = half.poll_piece(cx);
                if let (Poll::Ready(Some(Ok(Piece::Data(data)))), Some(left)) = (&poll, left) {
                    *left = left.saturating_sub(data.len() as u64);
                }
                poll
            }
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> FramePoll<Error> {
        self.poll_piece(cx).map_ok(|piece| match piece {
            Piece::Data(data) => Frame::data(data),
            Piece::Trailers(trailers) => Frame::trailers(trailers),
        })
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Inner::Empty => true,
            Inner::Bytes(_) | Inner::Said(_) => false,
            Inner::Arriving { half, .. } => half.is_done(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Empty => SizeHint::with_exact(0),
            Inner::Bytes(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Inner::Said(_) => SizeHint::default(),
            Inner::Arriving { half, .. } if half.is_done() => SizeHint::with_exact(0),
            Inner::Arriving { left, .. } => left.map_or_else(SizeHint::default, SizeHint::with_exact),
        }
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        if bytes.is_empty() { Body::empty() } else { Body(Inner::Bytes(bytes)) }
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Bytes::from(text).into()
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Self {
        Bytes::from_static(text.as_bytes()).into()
    }
}

impl From<&'static [u8]> for Body {
    fn from(bytes: &'static [u8]) -> Self {
        Bytes::from_static(bytes).into()
    }
}
