//! What a server does with a stream.
//!
//! [`Exchange`] and [`Upload`] are written as state machines rather than `async` functions so that they can be
//! moved after the first poll: the connection's task polls them once, and only what then has to wait becomes a
//! task.

use super::Totals;
use crate::perf::protocol::{BAD_REQUEST, Header, filling};
use bytes::Bytes;
use godwit::{RecvStream, SendStream};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// A request and its answer: read to the end, then as many bytes back as the header asks for.
pub(super) struct Exchange {
    send: SendStream,
    recv: RecvStream,
    header: Header,
    state: State,
    totals: Arc<Totals>,
}

enum State {
    Receiving,
    /// What is being written, and what comes after it.
    Sending {
        piece: Bytes,
        /// Where it ends in the answer.
        position: u64,
        remaining: u64,
    },
    Over,
}

impl Exchange {
    pub(super) fn new(send: SendStream, recv: RecvStream, totals: Arc<Totals>) -> Exchange {
        Totals::add(&totals.streams, 1);
        Exchange { send, recv, header: Header::default(), state: State::Receiving, totals }
    }

    fn receive(&mut self, cx: &mut Context<'_>) -> Poll<State> {
        loop {
            match ready!(self.recv.poll_read_chunk(cx, usize::MAX)) {
                Ok(Some(data)) => {
                    self.header.feed(&data);
                    Totals::add(&self.totals.received, data.len() as u64);
                }
                Ok(None) => break,
                // The client has given up, or the connection is over.
                Err(_) => return Poll::Ready(State::Over),
            }
        }
        let Some(remaining) = self.header.response() else {
            self.send.reset(BAD_REQUEST);
            return Poll::Ready(State::Over);
        };
        Poll::Ready(State::Sending { piece: Bytes::new(), position: 0, remaining })
    }
}

impl Future for Exchange {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        loop {
            match &mut this.state {
                State::Receiving => this.state = ready!(this.receive(cx)),
                State::Sending { piece, position, remaining } if piece.is_empty() => {
                    if *remaining == 0 {
                        // A client that wants no more has said so already.
                        let _ = this.send.finish();
                        this.state = State::Over;
                        continue;
                    }
                    *piece = filling(*position, *remaining);
                    *position += piece.len() as u64;
                    *remaining -= piece.len() as u64;
                }
                State::Sending { piece, .. } => {
                    let len = piece.len();
                    let written = this.send.poll_write_chunk(cx, piece);
                    Totals::add(&this.totals.sent, (len - piece.len()) as u64);
                    if ready!(written).is_err() {
                        // Stopped by the client, as downloads are: the stream was reset with that.
                        this.state = State::Over;
                    }
                }
                State::Over => return Poll::Ready(()),
            }
        }
    }
}

/// A unidirectional stream: read to its end.
pub(super) struct Upload {
    recv: RecvStream,
    totals: Arc<Totals>,
}

impl Upload {
    pub(super) fn new(recv: RecvStream, totals: Arc<Totals>) -> Upload {
        Totals::add(&totals.streams, 1);
        Upload { recv, totals }
    }
}

impl Future for Upload {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        while let Ok(Some(data)) = ready!(self.recv.poll_read_chunk(cx, usize::MAX)) {
            Totals::add(&self.totals.received, data.len() as u64);
        }
        Poll::Ready(())
    }
}
