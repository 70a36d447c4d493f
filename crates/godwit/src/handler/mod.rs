//! The asynchronous API as a shard's handler: it turns what happens into tasks being woken.
//!
//! For every connection with handles there is a [`ConnState`] with those who wait. Handles look and change
//! under the shard's lock; tasks are woken after it is released.

pub(crate) mod raw;
mod state;
mod waiters;

pub(crate) use state::{ConnState, Summary};
#[cfg(feature = "http3")]
pub(crate) use waiters::register;
pub(crate) use waiters::{Ticket, Topic, Waiters};

use crate::error::EndReason;
use crate::generations::Membership;
use godwit_base::Slab;
use godwit_base::slab::Key;
use godwit_engine::{Handler, ShardCx, Stopped};
use godwit_transport::IncomingKey;
use godwit_transport::{ConnKey, Event};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Incoming handshakes that are noted before those that have expired meanwhile are taken out.
const INCOMING_SWEEP: usize = 1024;

/// The handler.
#[derive(Debug)]
pub(crate) struct Api {
    pub(crate) conns: Slab<ConnState>,
    /// By the connection's index in the endpoint.
    by_conn: Vec<Option<(ConnKey, Key)>>,
    incoming: VecDeque<IncomingKey>,
    pub(crate) waiters: Waiters,
    pub(crate) accepting: bool,
    /// Only handshakes that have begun are accepted.
    pub(crate) draining: bool,
    /// No connections are begun any more, either way.
    pub(crate) closed: bool,
    pub(crate) stopped: Option<Stopped>,
    #[cfg_attr(
        not(all(feature = "hand-over", target_os = "linux")),
        expect(dead_code, reason = "there are no other generations")
    )]
    pub(crate) membership: Membership,
}

impl Api {
    pub(crate) fn new(membership: Membership) -> Self {
        Api {
            conns: Slab::new(),
            by_conn: Vec::new(),
            incoming: VecDeque::new(),
            waiters: Waiters::default(),
            accepting: true,
            draining: false,
            closed: false,
            stopped: None,
            membership,
        }
    }

    /// Begins to keep track of a connection.
    pub(crate) fn insert(&mut self, conn: ConnKey, remote: SocketAddr) -> Key {
        let key = self.conns.insert(ConnState::new(conn, remote));
        if self.by_conn.len() <= conn.index() {
            self.by_conn.resize(conn.index() + 1, None);
        }
        if let Some(place) = self.by_conn.get_mut(conn.index()) {
            *place = Some((conn, key));
        }
        key
    }

    /// The last handle of a connection is gone. What is returned is to be dropped outside of the lock.
    pub(crate) fn remove(&mut self, key: Key) -> Option<ConnState> {
        let state = self.conns.remove(key)?;
        self.forget(state.conn);
        Some(state)
    }

    /// The next handshake on which to decide.
    pub(crate) fn next_incoming(&mut self, shard: &ShardCx<'_>) -> Option<IncomingKey> {
        std::iter::from_fn(|| self.incoming.pop_front()).find(|key| shard.endpoint().incoming(*key).is_some())
    }

    /// No connections are begun any more.
    pub(crate) fn close(&mut self, shard: &mut ShardCx<'_>) {
        self.closed = true;
        self.stop_accepting(shard);
    }

    /// Nobody accepts any more: those who wait are refused.
    pub(crate) fn stop_accepting(&mut self, shard: &mut ShardCx<'_>) {
        self.accepting = false;
        for key in self.incoming.drain(..) {
            shard.endpoint_mut().refuse(key);
        }
        self.waiters.wake_all(Topic::Incoming, shard);
    }

    /// No connections are begun any more but those that clients have begun already.
    pub(crate) fn drain(&mut self, shard: &mut ShardCx<'_>) {
        self.draining = true;
        shard.endpoint_mut().reject_new();
        self.waiters.wake_all(Topic::Incoming, shard);
    }

    /// Nobody will have to be accepted any more.
    pub(crate) fn has_accepted_all(&self, shard: &ShardCx<'_>) -> bool {
        !self.accepting || self.draining && !shard.endpoint().has_incoming()
    }

    fn find(&self, conn: ConnKey) -> Option<Key> {
        let (known, key) = (*self.by_conn.get(conn.index())?)?;
        (known == conn).then_some(key)
    }

    fn forget(&mut self, conn: ConnKey) {
        if let Some(place) = self.by_conn.get_mut(conn.index())
            && place.is_some_and(|(known, _)| known == conn)
        {
            *place = None;
        }
    }
}

impl Handler for Api {
    fn on_event(&mut self, shard: &mut ShardCx<'_>, conn: ConnKey, event: Event) {
        let Some(state) = self.find(conn).and_then(|key| self.conns.get_mut(key)) else { return };
        if let Event::Connected = &event {
            state.on_connected(shard);
        }
        if let Event::Path(update) = &event {
            state.on_path(shard, update);
        } else if let Some(protocol) = &mut state.raw {
            let news = raw::on_event(&mut **protocol, shard, conn, &event);
            if let Some(news) = news {
                state.on_stream_news(shard, *news);
            }
            state.on_stream_event(shard, &event);
        } else {
            state.on_event(shard, &event);
        }
        if let Event::Closed { reason } = event {
            state.on_closed(shard, EndReason::Transport(reason));
            self.forget(conn);
        }
    }

    fn on_incoming(&mut self, shard: &mut ShardCx<'_>, incoming: IncomingKey) {
        if !self.accepting {
            shard.endpoint_mut().refuse(incoming);
            return;
        }
        if self.incoming.len() >= INCOMING_SWEEP {
            self.incoming.retain(|key| shard.endpoint().incoming(*key).is_some());
        }
        self.incoming.push_back(incoming);
        self.waiters.wake_one(Topic::Incoming, shard);
    }

    fn on_turn_end(&mut self, shard: &mut ShardCx<'_>) {
        if self.draining && self.has_accepted_all(shard) {
            self.waiters.wake_all(Topic::Incoming, shard);
        }
    }

    fn on_idle(&mut self, shard: &mut ShardCx<'_>) {
        if self.draining {
            self.waiters.wake_all(Topic::Incoming, shard);
        }
        self.waiters.wake_all(Topic::Idle, shard);
    }

    fn on_stopped(&mut self, shard: &mut ShardCx<'_>, why: &Stopped) {
        self.accepting = false;
        self.closed = true;
        self.stopped = Some(why.clone());
        for (_, state) in self.conns.iter_mut() {
            if let Some(protocol) = &mut state.raw
                && state.ended.is_none()
            {
                raw::on_stopped(&mut **protocol, shard, state.conn);
            }
            state.on_closed(shard, EndReason::Stopped(why.clone()));
        }
        self.waiters.wake_everyone(shard);
    }
}
