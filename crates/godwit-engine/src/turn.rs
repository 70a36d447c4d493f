//! The turn of a shard: the one order in which everything happens, whoever keeps the shard going.
//!
//! 1. What other processes have handed on is taken in, before anything learns of the present time: it was received a
//!    little earlier.
//! 2. What is due happens.
//! 3. A batch is received from each socket, and what is not for this shard is handed on. A client takes in a batch as far as
//!    the end of a handshake only, and the rest in the next turn: what TLS has taken long to make is sent before it works on
//!    another. The present time is learnt of anew when something came: it may be an answer to what was sent since.
//! 4. Events are delivered, and whoever gets them acts on them.
//! 5. A fair share is sent, what was done in the fourth step included.
//! 6. Sending may have caused events, too, such as the end of a connection: these are delivered.
//! 7. It is found out when the next turn has to be.
//!
//! A [`TurnHost`] says what is special: a driver waits for sockets and answers batch by batch, an application that polls
//! gets its events in another way than a handler.

use crate::handler::{Handler, ShardCx};
use crate::shard::{Shard, Transmit, Turn};
use godwit_base::{SocketId, Time};
use godwit_datapath::Datapath;
use godwit_transport::IncomingKey;
use godwit_transport::{ConnKey, Endpoint, Event};
use std::io;

/// Who keeps a shard going.
pub(crate) trait TurnHost {
    /// The shard's handler.
    type Handler;

    /// The shard.
    fn shard(&mut self) -> &mut Shard<Self::Handler>;

    /// Takes in what other processes have handed on. True if there may be more.
    fn take_in(&mut self) -> io::Result<bool> {
        Ok(self.shard().receive_handed_on().more)
    }

    /// Receives from the sockets. True if there may be more.
    fn receive(&mut self) -> io::Result<bool> {
        self.shard().receive_from_each()
    }

    /// Sends a fair share.
    fn send(&mut self) -> io::Result<Transmit> {
        self.shard().transmit()
    }

    /// Gives what has happened to whoever is to hear of it. True if something may have been done about it that is not
    /// seen in deadlines.
    fn deliver_events(&mut self) -> bool;
}

/// Everything that can be done now without waiting, after the clock has been read ([`Shard::begin_turn`]).
#[inline]
pub(crate) fn run(host: &mut impl TurnHost) -> io::Result<Turn> {
    let mut more = host.take_in()?;
    host.shard().run_timers();
    more |= host.receive()?;
    host.shard().hand_on();
    host.deliver_events();
    let transmit = host.send()?;
    more |= host.deliver_events();
    Ok(host.shard().end_turn(transmit, more))
}

/// A shard by itself: its handler is told.
struct Alone<'a, H>(&'a mut Shard<H>);

impl<H: Handler> TurnHost for Alone<'_, H> {
    type Handler = H;

    fn shard(&mut self) -> &mut Shard<H> {
        self.0
    }

    fn deliver_events(&mut self) -> bool {
        self.0.dispatch();
        self.0.watch_idle();
        false
    }
}

impl<H: Handler> Shard<H> {
    /// One turn: everything that can be done now without waiting, except that no more than one batch is received from
    /// each socket.
    ///
    /// # Errors
    /// If a socket has become unusable.
    pub fn turn(&mut self) -> io::Result<Turn> {
        self.begin_turn();
        let turn = run(&mut Alone(self));
        self.wake();
        turn
    }
}

/// A shard in the hands of an application, which fetches what has happened ([`Shard::next_event`]).
struct Polled<'a, T, S, E> {
    owner: &'a mut T,
    shard: S,
    deliver: E,
}

impl<T, H, S, E> TurnHost for Polled<'_, T, S, E>
where
    S: Fn(&mut T) -> &mut Shard<H>,
    E: FnMut(&mut T) -> bool,
{
    type Handler = H;

    fn shard(&mut self) -> &mut Shard<H> {
        (self.shard)(self.owner)
    }

    fn deliver_events(&mut self) -> bool {
        (self.deliver)(self.owner)
    }
}

/// One turn at the time `now` of the shard that `owner` has, where `shard` says. `deliver` fetches what has happened
/// with [`Shard::next_event`], and says whether there was anything: then [`Turn::more`] is true. Such a shard needs no
/// [`Handler`]: it may be a `Shard<()>`.
///
/// # Errors
/// If a socket has become unusable.
pub fn poll_turn<T, H>(
    owner: &mut T,
    shard: impl Fn(&mut T) -> &mut Shard<H>,
    now: Time,
    deliver: impl FnMut(&mut T) -> bool,
) -> io::Result<Turn> {
    shard(owner).begin_turn_at(now);
    let mut polled = Polled { owner, shard, deliver };
    let turn = run(&mut polled);
    polled.shard().wake();
    turn
}

/// Something that happened on a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShardEvent {
    /// A client wants to connect. It waits, for a limited time, for a decision.
    Incoming(IncomingKey),
    /// Something happened on a connection.
    Connection(ConnKey, Event),
}

impl<H> Shard<H> {
    /// The next thing that happened, until there is nothing more. A connection that is over can be looked at, and
    /// what it has received read, until this is called again.
    pub fn next_event(&mut self) -> Option<ShardEvent> {
        if let Some(incoming) = self.endpoint.next_incoming() {
            return Some(ShardEvent::Incoming(incoming));
        }
        self.endpoint.next_event().map(|(conn, event)| ShardEvent::Connection(conn, event))
    }

    /// Calls `visit` with the shard's inside in the middle of a turn: the clock is not read.
    pub fn in_turn<R>(&mut self, visit: impl FnOnce(&mut ShardCx<'_>) -> R) -> R {
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
