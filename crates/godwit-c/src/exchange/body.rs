//! What is sent of an exchange, as a body for whatever protocol takes it.

use super::{Exchange, Side};
use crate::abi;
use crate::failure::Failure;
use crate::outbox::Piece;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// The body of a request or response that the application sends.
pub(crate) struct SentBody {
    exchange: Arc<Exchange>,
    /// Bytes still to come, where the application has said how many there are.
    declared: Option<u64>,
}

impl SentBody {
    pub(crate) fn new(exchange: Arc<Exchange>, declared: Option<u64>) -> SentBody {
        SentBody { exchange, declared }
    }

    /// Whether all of it was taken.
    fn is_done(&self) -> bool {
        self.exchange.outbox.is_done()
    }
}

impl Body for SentBody {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        loop {
            return Poll::Ready(match ready!(self.exchange.outbox.poll(cx)) {
                Err(failure) => Some(Err(failure)),
                Ok(None) => None,
                Ok(Some(Piece::Trailers(trailers))) => Some(Ok(Frame::trailers(trailers))),
                Ok(Some(Piece::Bytes(bytes, report))) => {
                    if let Some(report) = report {
                        report.sent();
                    }
                    if bytes.is_empty() {
                        continue;
                    }
                    self.declared = self.declared.map(|left| left.saturating_sub(bytes.len() as u64));
                    Some(Ok(Frame::data(bytes)))
                }
            });
        }
    }

    fn is_end_stream(&self) -> bool {
        self.is_done()
    }

    fn size_hint(&self) -> SizeHint {
        match (self.declared, self.exchange.outbox.waiting()) {
            (Some(left), _) => SizeHint::with_exact(left),
            (None, (waiting, true)) => SizeHint::with_exact(waiting),
            (None, _) => SizeHint::default(),
        }
    }
}

impl Drop for SentBody {
    /// Whoever took it takes nothing more of it.
    fn drop(&mut self) {
        let exchange = &self.exchange;
        let gone = || Failure::new(abi::ERROR_RESET, "the other side takes nothing more of the body");
        match &exchange.side {
            Side::Server { .. } if self.is_done() => exchange.tell_last(exchange.event(abi::EVENT_FINISHED)),
            Side::Server { .. } => exchange.fail(&gone(), String::new()),
            Side::Client { .. } if self.is_done() => {}
            Side::Client { .. } => exchange.outbox.abandon(&gone()),
        }
    }
}
