//! A turn in two halves, for who keeps a shard going and fetches what happened.
//!
//! [`Shard::take_in`] lets time pass and receives, [`Shard::next_happening`] says what that has caused, and
//! [`Shard::send_out`] sends, what the caller did in between included. A shard used like this needs no
//! [`crate::Handler`]; it may be a `Shard<()>`.

use crate::handler::ShardCx;
use crate::{Shard, Turn};
use godwit_base::{SocketId, Time};
use godwit_datapath::Datapath;
use godwit_transport::endpoint::IncomingKey;
use godwit_transport::{ConnKey, Endpoint, Event};
use std::io;

/// Something that happened on a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Happening {
    /// A client wants to connect. It waits, for a limited time, for a decision.
    Incoming(IncomingKey),
    /// Something happened on a connection.
    Event(ConnKey, Event),
}

impl<H> Shard<H> {
    /// The first half of a turn: what is due by `now` happens, and one batch is received from each socket.
    /// True if more may be waiting.
    ///
    /// # Errors
    /// If a socket has become unusable.
    pub fn take_in(&mut self, now: Time) -> io::Result<bool> {
        self.begin_turn_at(now);
        let more = self.receive_from_all()?;
        self.hand_on();
        Ok(more)
    }

    /// The next thing that happened, until there is nothing more. A connection that is over can be looked at, and
    /// what it has received read, until this is called again.
    pub fn next_happening(&mut self) -> Option<Happening> {
        if let Some(incoming) = self.endpoint.next_incoming() {
            return Some(Happening::Incoming(incoming));
        }
        self.endpoint.next_event().map(|(conn, event)| Happening::Event(conn, event))
    }

    /// The second half: sends a fair share of what there is to send. [`Turn::more`] is about sending alone; sending
    /// may have caused events.
    ///
    /// # Errors
    /// If a socket has become unusable.
    pub fn send_out(&mut self) -> io::Result<Turn> {
        let transmit = self.transmit()?;
        Ok(self.end_turn(transmit, false))
    }

    /// Calls `visit` with the shard's inside in the middle of a turn: the clock is not read.
    pub fn in_turn<R>(&mut self, visit: impl FnOnce(&mut ShardCx<'_>) -> R) -> R {
        self.succession.told(self.now());
        visit(&mut self.split().0)
    }

    /// The endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The endpoint, to call into its connections.
    pub fn endpoint_mut(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    /// The sockets, to be waited for.
    pub fn sockets(&self) -> impl Iterator<Item = (SocketId, &dyn Datapath)> {
        self.sockets.iter().map(|socket| (socket.id(), &**socket))
    }
}
