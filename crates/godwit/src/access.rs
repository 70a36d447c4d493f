//! How handles reach the state of their connection, and how they wait.

use crate::handler::{Api, ConnState, Ticket, Topic, Waiters};
use godwit_base::slab::Key;
use godwit_engine::{ShardCx, ShardHandle};
use godwit_transport::{ConnKey, Connection};
use godwit_wire::Side;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// What all handles of a connection and its streams share. When the last of them is dropped, the connection
/// is closed.
#[derive(Debug)]
pub(crate) struct ConnectionHandle {
    pub(crate) shard: ShardHandle<Api>,
    pub(crate) conn: ConnKey,
    pub(crate) side: Side,
    state: Key,
}

impl ConnectionHandle {
    /// The first handle of a connection that [`Api::insert`] has just taken in.
    pub(crate) fn new(shard: ShardHandle<Api>, conn: ConnKey, side: Side, state: Key) -> Arc<Self> {
        Arc::new(ConnectionHandle { shard, conn, side, state })
    }

    /// Calls `look` with the connection, under the shard's lock. Handles must not be used in it, nor
    /// dropped.
    #[expect(clippy::expect_used, reason = "only the last handle takes the state away")]
    pub(crate) fn access<R>(&self, look: impl FnOnce(&mut Access<'_, '_>) -> R) -> R {
        self.shard.with_if(|shard, api| {
            let state =
                api.conns.get_mut(self.state).expect("a connection's state lives as long as its handles");
            let mut access = Access { state, shard, consequences: false };
            let result = look(&mut access);
            (result, access.consequences)
        })
    }

    /// Waits until `attempt` succeeds, trying whenever something of `topic` happens.
    #[expect(clippy::expect_used, reason = "only the last handle takes the state away")]
    pub(crate) fn until<T, F>(
        &self,
        topic: Topic,
        mut attempt: F,
    ) -> impl Future<Output = T> + Send + use<'_, T, F>
    where
        F: FnMut(&mut Access<'_, '_>) -> Option<T> + Send + Unpin,
    {
        let key = self.state;
        WaitUntil {
            shard: &self.shard,
            place: Some(key),
            topic,
            ticket: None,
            attempt: move |shard: &mut ShardCx<'_>, api: &mut Api| {
                let state =
                    api.conns.get_mut(key).expect("a connection's state lives as long as its handles");
                let mut access = Access { state, shard, consequences: false };
                let result = attempt(&mut access);
                (result, access.consequences)
            },
        }
    }
}

impl ConnectionHandle {
    /// Tries `attempt`; where that finds nothing, the task is woken when something of `topic` happens, for as long as
    /// `ticket` is kept. Others do not depend on whether it looks then.
    pub(crate) fn poll<T>(
        &self,
        ticket: &mut Option<Ticket>,
        topic: Topic,
        cx: &Context<'_>,
        attempt: impl FnOnce(&mut Access<'_, '_>) -> Option<T>,
    ) -> Poll<T> {
        self.access(|access| match attempt(access) {
            Some(result) => {
                if let Some(ticket) = ticket.take() {
                    access.state.waiters.leave(ticket, access.shard);
                }
                // There may be one for the next as well.
                access.state.waiters.wake_one(topic, access.shard);
                Poll::Ready(result)
            }
            None => {
                access.state.waiters.wait_doubtfully(ticket, topic, cx.waker(), access.shard);
                Poll::Pending
            }
        })
    }

    /// Waits no longer.
    pub(crate) fn leave(&self, tickets: impl IntoIterator<Item = Ticket>) {
        self.access(|access| {
            for ticket in tickets {
                access.state.waiters.leave(ticket, access.shard);
            }
        });
    }
}

impl Drop for ConnectionHandle {
    fn drop(&mut self) {
        let (conn, key) = (self.conn, self.state);
        let state = self.shard.with(|shard, api| {
            let state = api.remove(key);
            if state.as_ref().is_some_and(|state| state.ended.is_none()) {
                let now = shard.now();
                shard.endpoint_mut().with(conn, |connection| connection.close(now, 0, b""));
            }
            state
        });
        // Outside of the lock: it holds wakers, and whatever a raw handler is made of.
        drop(state);
    }
}

/// A connection under the shard's lock.
pub(crate) struct Access<'a, 'b> {
    pub(crate) state: &'a mut ConnState,
    pub(crate) shard: &'a mut ShardCx<'b>,
    consequences: bool,
}

impl Access<'_, '_> {
    /// The connection, unless it is over. After changes, [`Access::touch`].
    pub(crate) fn connection(&mut self) -> Option<&mut Connection> {
        self.shard.endpoint_mut().connection_mut(self.state.conn)
    }

    /// The connection was changed: it may have something to send.
    pub(crate) fn touch(&mut self) {
        self.consequences = true;
        self.shard.endpoint_mut().touch(self.state.conn);
    }
}

/// Waits for something that happens to a connection, or (without one) to the endpoint.
pub(crate) struct WaitUntil<'a, F> {
    shard: &'a ShardHandle<Api>,
    place: Option<Key>,
    topic: Topic,
    ticket: Option<Ticket>,
    attempt: F,
}

impl<'a, T, F> WaitUntil<'a, F>
where
    F: FnMut(&mut ShardCx<'_>, &mut Api) -> (Option<T>, bool) + Unpin,
{
    /// Waits for something that happens to the endpoint. `attempt` also says whether it changed something.
    pub(crate) fn endpoint(shard: &'a ShardHandle<Api>, topic: Topic, attempt: F) -> Self {
        WaitUntil { shard, place: None, topic, ticket: None, attempt }
    }
}

impl<T, F> Future for WaitUntil<'_, F>
where
    F: FnMut(&mut ShardCx<'_>, &mut Api) -> (Option<T>, bool) + Unpin,
{
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let this = &mut *self;
        this.shard.with_if(|shard, api| {
            let (result, consequences) = (this.attempt)(shard, api);
            let Some(waiters) = waiters(api, this.place) else { return (Poll::Pending, consequences) };
            let poll = match result {
                Some(result) => {
                    if let Some(ticket) = this.ticket.take() {
                        waiters.leave(ticket, shard);
                    }
                    // There may be one for the next as well.
                    waiters.wake_one(this.topic, shard);
                    Poll::Ready(result)
                }
                None => {
                    waiters.wait(&mut this.ticket, this.topic, cx.waker(), shard);
                    Poll::Pending
                }
            };
            (poll, consequences)
        })
    }
}

impl<F> Drop for WaitUntil<'_, F> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        self.shard.with_if(|shard, api| {
            if let Some(waiters) = waiters(api, self.place)
                && waiters.leave(ticket, shard)
            {
                waiters.wake_one(self.topic, shard);
            }
            ((), false)
        });
    }
}

fn waiters(api: &mut Api, place: Option<Key>) -> Option<&mut Waiters> {
    match place {
        Some(key) => api.conns.get_mut(key).map(|state| &mut state.waiters),
        None => Some(&mut api.waiters),
    }
}
