//! Raw mode: a protocol that is its own state machine takes over a connection.
//!
//! The protocol's state lives beside the connection, under the shard's lock. Events are given to it on the
//! shard's turn with the connection at hand ([`RawHandler::on_event`]), and everybody else reaches both
//! through [`RawConnection::with`]. Tasks are woken with [`RawCx::wake`], after the lock is released.

use crate::access::ConnectionHandle;
use crate::connection::Connection;
use crate::error::ConnectionError;
use crate::handler::raw::{RawCx, RawHandler, on_event};
use crate::recv_stream::RecvStream;
use crate::send_stream::SendStream;
use godwit_transport::Event;
use godwit_wire::{Direction, StreamId};
use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// A handle of a connection in raw mode, whose protocol is `P`. The connection is closed with code 0 when
/// the last handle is gone.
pub(crate) struct RawConnection<P> {
    shared: Arc<ConnectionHandle>,
    protocol: PhantomData<fn() -> P>,
}

impl<P: RawHandler> RawConnection<P> {
    /// Gives a connection to `protocol`. What happened before is told again where it still matters: that
    /// streams may have been opened, that streams may be opened, or that the connection is over.
    ///
    /// No stream of the connection should have been opened or accepted before.
    pub(crate) fn new(connection: Connection, protocol: P) -> Self {
        let shared = connection.into_shared();
        let raw = RawConnection { shared, protocol: PhantomData };
        raw.shared.access(|access| {
            let conn = access.state.conn;
            access.state.raw = Some(Box::new(protocol));
            let Some(handler) = &mut access.state.raw else { return };
            if access.state.ended.is_some() {
                let mut cx = RawCx::new(access.shard, conn);
                handler.on_stopped(&mut cx);
                return;
            }
            let [bidirectional, unidirectional] = [Direction::Bidirectional, Direction::Unidirectional];
            for event in [
                Event::StreamsAvailable { direction: bidirectional },
                Event::StreamOpened { direction: bidirectional },
                Event::StreamsAvailable { direction: unidirectional },
                Event::StreamOpened { direction: unidirectional },
                Event::DatagramsReadable,
            ] {
                // No stream has a handle yet.
                drop(on_event(&mut **handler, access.shard, conn, &event));
            }
            access.touch();
        });
        raw
    }

    /// Calls `change` with the protocol's state and the connection, and has what follows sent.
    #[expect(clippy::expect_used, reason = "nothing takes the protocol away")]
    pub(crate) fn with<R>(&self, change: impl FnOnce(&mut P, &mut RawCx<'_, '_>) -> R) -> R {
        self.shared.access(|access| {
            let conn = access.state.conn;
            let handler = access.state.raw.as_mut().expect("a connection in raw mode stays in it");
            let protocol: &mut dyn Any = &mut **handler;
            let protocol = protocol.downcast_mut().expect("the protocol was given with the handle's type");
            let mut cx = RawCx::new(access.shard, conn);
            let result = change(protocol, &mut cx);
            let (touched, news) = (cx.is_touched(), cx.streams);
            if let Some(news) = news {
                access.state.on_stream_news(access.shard, *news);
            }
            if touched {
                access.touch();
            }
            result
        })
    }

    /// Why the connection is over, if it is.
    pub(crate) fn ended(&self) -> Option<ConnectionError> {
        self.shared.access(|access| access.state.ended.clone())
    }

    /// The handles of a stream that the protocol has given away ([`StreamNews::adopted`](crate::handler::raw::StreamNews)).
    pub(crate) fn send_stream(&self, id: StreamId) -> SendStream {
        SendStream::new(Arc::clone(&self.shared), id)
    }

    /// The same for its other half.
    pub(crate) fn recv_stream(&self, id: StreamId) -> RecvStream {
        RecvStream::new(Arc::clone(&self.shared), id, false)
    }

    /// An ordinary handle, for everything but streams.
    pub(crate) fn connection(&self) -> Connection {
        Connection::from_shared(Arc::clone(&self.shared))
    }
}

impl<P> Clone for RawConnection<P> {
    fn clone(&self) -> Self {
        RawConnection { shared: Arc::clone(&self.shared), protocol: PhantomData }
    }
}

impl<P> fmt::Debug for RawConnection<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawConnection").field("connection", &self.shared.conn).finish_non_exhaustive()
    }
}
