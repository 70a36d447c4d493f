//! What a protocol in raw mode is to the handler of its shard.
#![cfg_attr(not(feature = "http3"), expect(dead_code, reason = "so far HTTP/3 is the only such protocol"))]

use godwit_base::Time;
use godwit_engine::ShardCx;
use godwit_transport::{ConnKey, Event};
use godwit_wire::StreamId;
use std::any::Any;
use std::fmt;
use std::task::Waker;

/// A protocol's state for one connection. It must neither hold nor use handles of the connection's shard,
/// except weak ones: it is called with the lock held.
pub(crate) trait RawHandler: Any + fmt::Debug + Send {
    /// Something happened. [`Event::Closed`] is the last; the connection may be gone by then.
    fn on_event(&mut self, cx: &mut RawCx<'_, '_>, event: &Event);

    /// The endpoint's driver has ended: the connection makes no progress any more.
    fn on_stopped(&mut self, cx: &mut RawCx<'_, '_>);
}

/// A connection in raw mode, under the lock.
pub(crate) struct RawCx<'a, 'b> {
    shard: &'a mut ShardCx<'b>,
    conn: ConnKey,
    touched: bool,
    /// Boxed, as there is hardly ever anything.
    pub(crate) streams: Option<Box<StreamNews>>,
}

/// What a protocol wants done with streams that it gives to handles.
#[derive(Debug, Default)]
pub(crate) struct StreamNews {
    /// Streams that get handles, and how many.
    pub(crate) adopted: Vec<(StreamId, u8)>,
    /// Streams that the protocol has given up: whoever waits for them is to look.
    pub(crate) given_up: Vec<StreamId>,
}

impl StreamNews {
    /// Whether there is nothing to be done.
    pub(crate) fn is_empty(&self) -> bool {
        self.adopted.is_empty() && self.given_up.is_empty()
    }
}

impl<'a, 'b> RawCx<'a, 'b> {
    pub(crate) fn new(shard: &'a mut ShardCx<'b>, conn: ConnKey) -> Self {
        RawCx { shard, conn, touched: false, streams: None }
    }

    /// Whether the connection was asked for, and may have something to send.
    pub(crate) fn is_touched(&self) -> bool {
        self.touched
    }

    /// The time now.
    pub(crate) fn now(&self) -> Time {
        self.shard.now()
    }

    /// The connection, to be called for whatever is needed. `None` once it is over and forgotten.
    pub(crate) fn connection(&mut self) -> Option<&mut godwit_transport::Connection> {
        self.touched = true;
        self.shard.endpoint_mut().connection_mut(self.conn)
    }

    /// Wakes a task once the lock is released.
    pub(crate) fn wake(&mut self, waker: Waker) {
        self.shard.wake(waker);
    }
}

/// Gives an event to a protocol.
pub(crate) fn on_event(
    handler: &mut dyn RawHandler,
    shard: &mut ShardCx<'_>,
    conn: ConnKey,
    event: &Event,
) -> Option<Box<StreamNews>> {
    let mut cx = RawCx::new(shard, conn);
    handler.on_event(&mut cx, event);
    let RawCx { touched, streams, .. } = cx;
    if touched {
        shard.endpoint_mut().touch(conn);
    }
    streams
}

/// Tells a protocol that it is over.
pub(crate) fn on_stopped(handler: &mut dyn RawHandler, shard: &mut ShardCx<'_>, conn: ConnKey) {
    handler.on_stopped(&mut RawCx::new(shard, conn));
}
