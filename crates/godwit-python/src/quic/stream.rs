//! The two halves of streams.
//!
//! A half is locked for as long as one look at it takes, so that it can be given up while something waits for it; who
//! waits is woken then. Those who wait for the same half take turns.

use super::settings::code;
use crate::bridge;
use crate::data::{Data, Nothing, shared};
use crate::errors::Failure;
use bytes::Bytes;
use godwit::{RecvStream, SendStream};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::{Mutex as Turns, Notify};

/// One half, shared with whoever waits for it.
struct Half<T> {
    stream: Mutex<T>,
    turns: Turns<()>,
    given_up: Notify,
}

impl<T> Half<T> {
    fn new(stream: T) -> Arc<Self> {
        Arc::new(Half { stream: Mutex::new(stream), turns: Turns::new(()), given_up: Notify::new() })
    }

    fn lock(&self) -> MutexGuard<'_, T> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `look` is ready, and has it look again when the half is given up.
    async fn until<R>(&self, mut look: impl FnMut(&mut T, &mut Context<'_>) -> Poll<R>) -> R {
        let mut given_up = pin!(self.given_up.notified());
        given_up.as_mut().enable();
        let mut over = false;
        poll_fn(|cx| {
            let ready = look(&mut self.lock(), cx);
            if ready.is_ready() || over || given_up.as_mut().poll(cx).is_pending() {
                return ready;
            }
            over = true;
            look(&mut self.lock(), cx)
        })
        .await
    }
}

/// The half that sends.
#[pyclass(frozen)]
pub(crate) struct SendHalf {
    half: Arc<Half<SendStream>>,
    id: u64,
}

impl SendHalf {
    pub(crate) fn new(stream: SendStream) -> Self {
        SendHalf { id: stream.id().as_u64(), half: Half::new(stream) }
    }
}

#[pymethods]
impl SendHalf {
    #[getter]
    fn id(&self) -> u64 {
        self.id
    }

    /// A future that is ready when all of the data has been taken, to be sent as the peer permits.
    fn write<'py>(&self, py: Python<'py>, data: PyBackedBytes) -> PyResult<Bound<'py, PyAny>> {
        let (half, mut data) = (Arc::clone(&self.half), shared(data));
        bridge::future(py, async move {
            let _turn = half.turns.lock().await;
            half.until(|stream, cx| stream.poll_write_chunk(cx, &mut data)).await?;
            Ok(Nothing)
        })
    }

    /// There is nothing more to come. After all that is being written.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let half = Arc::clone(&self.half);
        bridge::future(py, async move {
            let _turn = half.turns.lock().await;
            half.lock().finish()?;
            Ok(Nothing)
        })
    }

    /// Gives it up: what was not delivered never will be.
    fn reset(&self, number: u64) -> PyResult<()> {
        let code = code(number)?;
        self.half.lock().reset(code);
        self.half.given_up.notify_waiters();
        Ok(())
    }

    /// Which of the streams goes first when not all can: a lower urgency does.
    fn set_priority(&self, urgency: u8, incremental: bool) {
        self.half.lock().set_priority(urgency, incremental);
    }
}

/// The half that receives.
#[pyclass(frozen)]
pub(crate) struct ReceiveHalf {
    half: Arc<Half<RecvStream>>,
    id: u64,
}

impl ReceiveHalf {
    pub(crate) fn new(stream: RecvStream) -> Self {
        ReceiveHalf { id: stream.id().as_u64(), half: Half::new(stream) }
    }
}

/// What has arrived, at most `most` bytes; `None` at the end.
async fn read(half: &Half<RecvStream>, most: usize) -> Result<Option<Bytes>, Failure> {
    Ok(half.until(|stream, cx| stream.poll_read_chunk(cx, most)).await?)
}

#[pymethods]
impl ReceiveHalf {
    #[getter]
    fn id(&self) -> u64 {
        self.id
    }

    /// A future of what has arrived, at most `most` bytes; None at the end.
    fn read<'py>(&self, py: Python<'py>, most: usize) -> PyResult<Bound<'py, PyAny>> {
        let half = Arc::clone(&self.half);
        bridge::future(py, async move {
            let _turn = half.turns.lock().await;
            Ok(read(&half, most).await?.map(Data::from))
        })
    }

    /// A future of all that comes until the end, at most `most` bytes.
    fn read_to_end<'py>(&self, py: Python<'py>, most: usize) -> PyResult<Bound<'py, PyAny>> {
        let half = Arc::clone(&self.half);
        bridge::future(py, async move {
            let _turn = half.turns.lock().await;
            let (mut pieces, mut room) = (Vec::new(), most);
            // One byte more tells whether it is longer.
            while let Some(piece) = read(&half, room.saturating_add(1)).await? {
                room = room.checked_sub(piece.len()).ok_or_else(|| Failure::too_long(most))?;
                pieces.push(piece);
            }
            Ok(Data::pieces(pieces))
        })
    }

    /// Wants nothing more of it.
    fn stop(&self, number: u64) -> PyResult<()> {
        let code = code(number)?;
        self.half.lock().stop(code);
        self.half.given_up.notify_waiters();
        Ok(())
    }
}
