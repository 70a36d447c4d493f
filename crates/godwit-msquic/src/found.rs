//! Finding what handles of connections and streams stand for, at the worker whose they are.

use crate::abi::Handle;
use crate::connection::Connection;
use crate::handle::{self, Kind};
use crate::worker::{self, State, Worker};
use godwit_base::slab::Key;
use godwit_engine::ShardCx;

/// Something of a worker's that a handle stands for.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    pub(crate) worker: &'static Worker,
    pub(crate) parts: handle::Parts,
}

impl Found {
    /// What a handle of this kind stands for may be at this worker.
    pub(crate) fn of(handle: Handle, kind: Kind) -> Option<Self> {
        let parts = handle::parts(handle).filter(|parts| parts.kind == kind)?;
        Some(Found { worker: worker::pool()?.worker(parts.worker)?, parts })
    }

    /// Calls `visit` with the stream, if it is there and its handle is not closed, or this is a callback in which it is being
    /// closed.
    pub(crate) fn stream<R>(self, visit: impl FnOnce(&mut ShardCx<'_>, &mut State, Key) -> R) -> Option<R> {
        let is_current = self.worker.is_current();
        self.worker.visit_as(is_current, |cx, state| {
            let key = handle::find(&state.streams, self.parts.place)?;
            state.streams.get(key).filter(|it| it.is_owned && (!it.is_closed || is_current))?;
            Some(visit(cx, state, key))
        })
    }

    /// Calls `visit` with the connection, if it is there and its handle is not closed, or this is a callback in which it is
    /// being closed.
    pub(crate) fn connection<R>(
        self,
        visit: impl FnOnce(&mut ShardCx<'_>, &mut State, Key) -> R,
    ) -> Option<R> {
        let is_current = self.worker.is_current();
        self.worker.visit_as(is_current, |cx, state| {
            let key = handle::find(&state.connections, self.parts.place)?;
            let is_open = |it: &&Connection| it.is_owned && (it.closing.is_none() || is_current);
            state.connections.get(key).filter(is_open).filter(|it| !it.is_forgotten)?;
            Some(visit(cx, state, key))
        })
    }
}

/// Calls `visit` with the connection that a handle stands for, or that the stream belongs to for which it does.
pub(crate) fn with_connection<R>(
    handle: Handle,
    visit: impl FnOnce(&'static Worker, &mut ShardCx<'_>, &mut State, Key) -> R,
) -> Option<R> {
    if let Some(found) = Found::of(handle, Kind::Connection) {
        return found.connection(|cx, state, key| visit(found.worker, cx, state, key));
    }
    let found = Found::of(handle, Kind::Stream)?;
    let result = found.stream(|cx, state, key| {
        let connection = state.streams.get(key)?.connection;
        state.connections.get(connection)?;
        Some(visit(found.worker, cx, state, connection))
    });
    result.flatten()
}

/// Calls `visit` with the stream that a handle stands for.
pub(crate) fn with_stream<R>(
    handle: Handle,
    visit: impl FnOnce(&mut ShardCx<'_>, &mut State, Key) -> R,
) -> Option<R> {
    Found::of(handle, Kind::Stream)?.stream(visit)
}
