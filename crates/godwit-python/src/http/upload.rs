//! Request bodies that Python produces while they are sent, piece by piece, as fast as the server takes them.
//!
//! A body that nobody ends is not taken for a whole one: the request fails.

use crate::bridge;
use crate::data::shared;
use crate::errors::Failure;
use bytes::Bytes;
use http_body::{Body, Frame};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use std::io;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Pieces that wait to be sent.
const WAITING: usize = 1;

enum Piece {
    Data(Bytes),
    End,
}

/// The end of such a body that Python fills.
#[pyclass(frozen)]
pub(crate) struct Upload {
    pieces: Sender<Piece>,
    /// Until a request takes it.
    source: Mutex<Option<Source>>,
}

impl Upload {
    /// The other end; it is there once.
    pub(crate) fn take_source(&self) -> Option<Source> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn send_piece<'py>(&self, py: Python<'py>, piece: Piece) -> PyResult<Bound<'py, PyAny>> {
        let pieces = self.pieces.clone();
        bridge::future(py, async move { Ok::<_, Failure>(pieces.send(piece).await.is_ok()) })
    }
}

#[pymethods]
impl Upload {
    #[new]
    fn new() -> Self {
        let (pieces, received) = channel(WAITING);
        Upload { pieces, source: Mutex::new(Some(Source { pieces: received, over: false })) }
    }

    /// A future that is ready when there is room for more; False if nobody wants more.
    fn send<'py>(&self, py: Python<'py>, data: PyBackedBytes) -> PyResult<Bound<'py, PyAny>> {
        self.send_piece(py, Piece::Data(shared(data)))
    }

    /// That was all. As `send`.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.send_piece(py, Piece::End)
    }
}

/// The end that is sent.
pub(crate) struct Source {
    pieces: Receiver<Piece>,
    over: bool,
}

impl Body for Source {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.over {
            return Poll::Ready(None);
        }
        let piece = ready!(self.pieces.poll_recv(cx));
        Poll::Ready(match piece {
            Some(Piece::Data(data)) => Some(Ok(Frame::data(data))),
            Some(Piece::End) => {
                self.over = true;
                None
            }
            None => {
                self.over = true;
                Some(Err(io::Error::other("what produces it was given up before its end")))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.over
    }
}
