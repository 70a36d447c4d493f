//! The two halves of an exchange. Each is used by one task, which it wakes; dropping one before its end
//! gives up what it stands for.

use super::error::Error;
use super::link::Link;
use super::outgoing::Outgoing;
use super::protocol::{Protocol, READ_AT_ONCE};
use super::stream::Piece;
use crate::handler::register;
use godwit_http3::{BodyRead, ErrorCode, ReadError};
use godwit_wire::{Side, StreamId};
use http::Response;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::task::AbortHandle;

/// The receiving half: a request's body at a server, the response at a client.
///
/// Dropped before the end it stops a request's body, or gives up the whole exchange at a client.
#[derive(Debug)]
pub(super) struct RecvHalf {
    link: Arc<Link>,
    id: StreamId,
    done: bool,
    /// At a client: the task that sends the request's body.
    pub(super) upload: Option<AbortHandle>,
}

/// What came before a response's body.
#[derive(Debug)]
pub(super) enum Head {
    Informational(Response<()>),
    /// The final response, and whether that is all.
    Final(Response<()>, bool),
}

impl RecvHalf {
    /// A half that [`Protocol::streams`] counts.
    pub(super) fn new(link: Arc<Link>, id: StreamId) -> Self {
        RecvHalf { link, id, done: false, upload: None }
    }

    /// The next response of an exchange, at a client.
    pub(super) fn poll_head(&mut self, cx: &Context<'_>) -> Poll<Result<Head, Error>> {
        let id = self.id;
        let poll = self.link.look(|protocol, _| {
            let failure = protocol.failure(id);
            let Some(stream) = protocol.streams.get_mut(id) else {
                return Poll::Ready(Err(failure.unwrap_or_else(Error::cancelled)));
            };
            if let Some(response) = stream.informational.as_mut().and_then(|queue| queue.pop_front()) {
                return Poll::Ready(Ok(Head::Informational(response)));
            }
            if let Some((response, end)) = stream.response.take() {
                return Poll::Ready(Ok(Head::Final(response, end)));
            }
            if let Some(error) = failure {
                return Poll::Ready(Err(error));
            }
            let replaced = register(&mut stream.reader, cx.waker());
            protocol.wakes.extend(replaced);
            Poll::Pending
        });
        self.done |= matches!(poll, Poll::Ready(Ok(Head::Final(_, true)) | Err(_)));
        poll
    }

    /// The next of the body.
    pub(super) fn poll_piece(&mut self, cx: &Context<'_>) -> Poll<Option<Result<Piece, Error>>> {
        if self.done {
            return Poll::Ready(None);
        }
        let id = self.id;
        let poll = self.link.with(|protocol, io| {
            if let Some(poll) = read_left(protocol, id) {
                return Poll::Ready(poll);
            }
            if let Some(error) = protocol.failure(id) {
                return Poll::Ready(Some(Err(error)));
            }
            match protocol.h3.read_body(io, id, READ_AT_ONCE) {
                Ok(BodyRead::Data(data)) => Poll::Ready(Some(Ok(Piece::Data(data)))),
                Ok(BodyRead::Trailers(trailers)) => Poll::Ready(Some(Ok(Piece::Trailers(trailers)))),
                Ok(BodyRead::End) => Poll::Ready(None),
                Ok(BodyRead::Blocked) => {
                    if let Some(stream) = protocol.streams.get_mut(id) {
                        let replaced = register(&mut stream.reader, cx.waker());
                        protocol.wakes.extend(replaced);
                    }
                    Poll::Pending
                }
                Err(error) => {
                    let whole = !matches!(error, ReadError::Reset { local: false, .. });
                    let error = Error::from_read(error);
                    if whole || protocol.side == Side::Client {
                        protocol.abandon(io, id, ErrorCode::H3_REQUEST_CANCELLED, error.clone());
                    }
                    Poll::Ready(Some(Err(error)))
                }
            }
        });
        self.done |= matches!(poll, Poll::Ready(None | Some(Err(_))));
        poll
    }

    /// True once there is nothing more to read.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }
}

/// Reads what had arrived when the connection ended; the inner `None` is the end.
fn read_left(protocol: &mut Protocol, id: StreamId) -> Option<Option<Result<Piece, Error>>> {
    let left = protocol.streams.get_mut(id)?.left.as_mut()?;
    match left.pieces.pop_front() {
        Some(piece) => Some(Some(Ok(piece))),
        None if left.complete => Some(None),
        None => None,
    }
}

impl Drop for RecvHalf {
    fn drop(&mut self) {
        let (id, done) = (self.id, self.done);
        let gone = self.link.with(|protocol, io| {
            match protocol.side {
                _ if done => {}
                Side::Client => {
                    protocol.abandon(io, id, ErrorCode::H3_REQUEST_CANCELLED, Error::cancelled());
                }
                Side::Server => protocol.h3.stop_sending(io, id, ErrorCode::H3_NO_ERROR),
            }
            protocol.release(id)
        });
        drop(gone);
        if let Some(upload) = self.upload.take().filter(|_| !done) {
            upload.abort();
        }
    }
}

/// The sending half: a request's body at a client, the response at a server.
///
/// Dropped before the end it gives up the whole exchange.
#[derive(Debug)]
pub(super) struct SendHalf {
    link: Arc<Link>,
    id: StreamId,
    done: bool,
}

impl SendHalf {
    /// A half that [`Protocol::streams`] counts.
    pub(super) fn new(link: Arc<Link>, id: StreamId) -> Self {
        SendHalf { link, id, done: false }
    }

    /// Sends what `outgoing` holds. Ready when all of it is taken, or with why it is not wanted. After the
    /// end or the trailers the half is done.
    pub(super) fn poll_send(&mut self, cx: &Context<'_>, outgoing: &mut Outgoing) -> Poll<Result<(), Error>> {
        let id = self.id;
        // Dropped after the access: it holds extensions of the application.
        let head = outgoing.head.take();
        let poll = self.link.with(|protocol, io| {
            if let Some(error) = refused(protocol, id) {
                return Poll::Ready(Err(error));
            }
            match outgoing.write(protocol, io, id, head.as_ref()) {
                Ok(true) => return Poll::Ready(Ok(())),
                Ok(false) => {}
                Err(error) => return Poll::Ready(Err(Error::from_send(error))),
            }
            if let Some(stream) = protocol.streams.get_mut(id) {
                let replaced = register(&mut stream.writer, cx.waker());
                protocol.wakes.extend(replaced);
            }
            Poll::Pending
        });
        self.done |= outgoing.is_complete();
        poll
    }

    /// Ready when the stream takes something more, or with why it is not wanted.
    pub(super) fn poll_room(&mut self, cx: &Context<'_>, outgoing: &mut Outgoing) -> Poll<Result<(), Error>> {
        let id = self.id;
        self.link.with(|protocol, io| {
            if let Some(error) = refused(protocol, id) {
                return Poll::Ready(Err(error));
            }
            // What was taken before comes first: the stream tells when it takes more.
            if !protocol.h3.has_pending(id) && io.has_room(id) {
                return Poll::Ready(Ok(()));
            }
            outgoing.sent_by_all = io.stream_bytes_sent();
            if let Some(stream) = protocol.streams.get_mut(id) {
                let replaced = register(&mut stream.writer, cx.waker());
                protocol.wakes.extend(replaced);
            }
            Poll::Pending
        })
    }

    /// Ready when the peer, or the end of the connection, has made it pointless to send more.
    pub(super) fn poll_refused(&mut self, cx: &Context<'_>) -> Poll<Error> {
        let id = self.id;
        self.link.look(|protocol, _| {
            if let Some(error) = refused(protocol, id) {
                return Poll::Ready(error);
            }
            if let Some(stream) = protocol.streams.get_mut(id) {
                let replaced = register(&mut stream.writer, cx.waker());
                protocol.wakes.extend(replaced);
            }
            Poll::Pending
        })
    }

    /// Gives up the exchange, with this code for the peer and this error for the other half.
    pub(super) fn abandon(&mut self, code: ErrorCode, error: &Error) {
        let id = self.id;
        self.done = true;
        self.link.with(|protocol, io| protocol.abandon(io, id, code, error.clone()));
    }

    /// Nothing more is to be sent; the other direction goes on.
    pub(super) fn leave(&mut self) {
        self.done = true;
    }
}

/// Why nothing more should be sent, if so.
fn refused(protocol: &Protocol, id: StreamId) -> Option<Error> {
    let stopped = protocol.streams.get(id).and_then(|stream| stream.stopped);
    protocol.failure(id).or_else(|| stopped.map(Error::stopped))
}

impl Drop for SendHalf {
    fn drop(&mut self) {
        let (id, done) = (self.id, self.done);
        let gone = self.link.with(|protocol, io| {
            if !done {
                let code = match protocol.side {
                    Side::Client => ErrorCode::H3_REQUEST_CANCELLED,
                    Side::Server => ErrorCode::H3_INTERNAL_ERROR,
                };
                protocol.abandon(io, id, code, Error::cancelled());
            }
            protocol.release(id)
        });
        drop(gone);
    }
}
