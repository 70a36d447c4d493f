//! Keeping a shard going on a thread that does nothing else, without a runtime.
//!
//! As in the driver on tokio, a turn begins by registering for wake-ups, so that whatever is changed after that ends the
//! next wait. The application is called on the same thread with the shard's lock free, in the two places of a turn where
//! events are delivered: what it does there through handles, on this thread as on any other, is sent in the same turn.
//!
//! A socket is received from when waiting has shown that there is something, and until there is nothing more.

use crate::clock::Clock;
use crate::handle::{Ending, ShardHandle, Shared};
use crate::handler::Handler;
use crate::shard::Shard;
use crate::stopped::Stopped;
use crate::turn::{self, TurnHost};
use godwit_base::{SocketId, Time};
use godwit_os::readiness::{Interest, Ready, wait_for};
use godwit_os::readiness_set::ReadinessSet;
use godwit_os::wake_event::WakeEvent;
use godwit_transport::ForeignBatch;
use godwit_transport::tls::make_key_share_ready;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, MutexGuard};
use std::task::Waker;
use std::time::Duration;
use std::{fmt, io};

mod polled;

pub use polled::PolledDriver;

/// Keeps a shard going on the thread that [runs](ThreadDriver::run) it.
#[must_use = "a shard does nothing while its driver does not run"]
pub struct ThreadDriver<H: Handler> {
    shared: Arc<Shared<H>>,
    event: Arc<WakeEvent>,
    waker: Waker,
    wakes: Vec<Waker>,
    foreign: ForeignBatch,
    clock: Clock,
    /// What is waited for, and the version of the shard's sockets that it is of.
    sockets: Vec<(SocketId, OwnedFd)>,
    sockets_version: Option<u64>,
    /// Where somebody else waits for all of that.
    set: Option<Arc<ReadinessSet>>,
    /// What the last wait has shown: the event first, then sockets.
    ready: Vec<Ready>,
    /// Sockets that may have something to receive, and those that have an error.
    readable: Vec<SocketId>,
    failing: Vec<SocketId>,
}

/// How long it takes until sockets are looked at again that cannot be waited for.
const FOLLOW_AGAIN: Duration = Duration::from_millis(20);

/// What follows a turn.
#[derive(Debug, Clone, Copy)]
enum Next {
    /// Another one: there is more to do.
    Turn,
    /// A wait for a socket, for somebody who uses a handle, or for this time; and for room in a socket.
    Wait(Option<Time>, Option<SocketId>),
    /// The shard is at its end.
    End,
}

impl<H: Handler> ThreadDriver<H> {
    /// A driver for the shard of `handle`.
    ///
    /// # Errors
    /// If there are no more descriptors.
    pub fn new(handle: &ShardHandle<H>) -> io::Result<Self> {
        let event = Arc::new(WakeEvent::new()?);
        Ok(ThreadDriver {
            shared: Arc::clone(handle.shared()),
            waker: Waker::from(Arc::clone(&event)),
            event,
            wakes: Vec::new(),
            foreign: ForeignBatch::new(),
            clock: Clock::new(),
            sockets: Vec::new(),
            sockets_version: None,
            set: None,
            ready: Vec::new(),
            readable: Vec::new(),
            failing: Vec::new(),
        })
    }

    /// Runs until the shard is at its end. `deliver` is called whenever the shard's handler may have heard of something,
    /// with no lock held, and says whether it did anything.
    ///
    /// # Errors
    /// Why the shard has ended, unless it was told to.
    pub fn run(mut self, mut deliver: impl FnMut() -> bool) -> Result<(), Stopped> {
        let outcome = self.run_to_the_end(&mut deliver);
        let why = match &outcome {
            Ok(()) => Stopped::Finished,
            Err(why) => why.clone(),
        };
        self.shared.stop(why);
        deliver();
        outcome
    }

    fn run_to_the_end(&mut self, deliver: &mut impl FnMut() -> bool) -> Result<(), Stopped> {
        let failed = |error| Stopped::Socket(Arc::new(error));
        loop {
            match self.turn(deliver).map_err(failed)? {
                Next::Turn => {}
                Next::Wait(until, room) => self.wait(until, room).map_err(failed)?,
                Next::End => return Ok(()),
            }
        }
    }

    /// One turn: everything that can be done without waiting.
    fn turn(&mut self, deliver: &mut impl FnMut() -> bool) -> io::Result<Next> {
        self.shared.register_driver(&self.waker);
        let shared = Arc::clone(&self.shared);
        let mut host = ThreadTurn { driver: self, shared: &shared, guard: None, deliver };
        host.shard().begin_turn();
        let turn = turn::run(&mut host)?;
        host.follow_sockets();
        let ending = match shared.ending() {
            Ending::Now => true,
            Ending::WhenIdle => host.shard().is_idle(),
            Ending::None => false,
        };
        Ok(match (ending, turn.more) {
            (true, _) => Next::End,
            (false, true) => Next::Turn,
            (false, false) => Next::Wait(turn.deadline, turn.blocked),
        })
    }

    /// Waits for a socket, a wake-up or the time `until`, and notes what can be received.
    fn wait(&mut self, until: Option<Time>, room: Option<SocketId>) -> io::Result<()> {
        // The other end's turn is the time to make ready what is needed for the next handshake.
        let _ = make_key_share_ready();
        let time = self.time_until(until);
        self.look(time, room)
    }

    /// How long may be waited until then.
    fn time_until(&mut self, until: Option<Time>) -> Option<Duration> {
        let time = until.map(|until| until.saturating_since(self.clock.now()));
        if self.sockets_version.is_some() {
            return time;
        }
        Some(time.map_or(FOLLOW_AGAIN, |time| time.min(FOLLOW_AGAIN)))
    }

    /// Waits for so long, and notes what can be received.
    fn look(&mut self, time: Option<Duration>, room: Option<SocketId>) -> io::Result<()> {
        let event = Interest { descriptor: self.event.as_fd(), writable: false };
        let sockets = self
            .sockets
            .iter()
            .map(|(id, descriptor)| Interest { descriptor: descriptor.as_fd(), writable: room == Some(*id) });
        wait_for(std::iter::once(event).chain(sockets), time, &mut self.ready)?;
        let mut ready = self.ready.iter();
        if ready.next().is_some_and(|event| event.readable) {
            self.event.take();
        }
        for ((id, _), ready) in self.sockets.iter().zip(ready) {
            if ready.readable && !self.readable.contains(id) {
                self.readable.push(*id);
            }
            if ready.error {
                self.failing.push(*id);
            }
        }
        Ok(())
    }

    /// Waits for the sockets that the shard has now. Those that are new may have something already. Where there are no more
    /// descriptors, all sockets are looked at every now and then until there are.
    fn follow_sockets(&mut self, shard: &Shard<H>) {
        if self.sockets_version == Some(shard.sockets_version) {
            return;
        }
        // The shard may close its own while this thread waits.
        let followed: io::Result<Vec<_>> = shard
            .sockets
            .iter()
            .filter_map(|socket| Some((socket.id(), socket.socket()?.as_fd().try_clone_to_owned())))
            .map(|(id, descriptor)| Ok((id, descriptor?)))
            .collect();
        let followed = followed.and_then(|sockets| self.show(&sockets).map(|()| sockets));
        self.readable = shard.sockets.iter().map(|socket| socket.id()).collect();
        self.sockets_version = followed.is_ok().then_some(shard.sockets_version);
        if let Ok(sockets) = followed {
            self.sockets = sockets;
        }
    }

    /// Has these sockets waited for by somebody else, if there is one, and those that were before no more.
    fn show(&self, sockets: &[(SocketId, OwnedFd)]) -> io::Result<()> {
        let Some(set) = &self.set else { return Ok(()) };
        // What is closed only would stay in the set, for the shard may have the same socket open.
        self.sockets.iter().for_each(|(_, descriptor)| set.remove(descriptor.as_fd()));
        sockets.iter().try_for_each(|(_, descriptor)| set.add(descriptor.as_fd()))
    }
}

/// A turn of the shard in the driver: the lock is held but for when the application is called.
struct ThreadTurn<'a, H: Handler, D> {
    driver: &'a mut ThreadDriver<H>,
    shared: &'a Shared<H>,
    guard: Option<MutexGuard<'a, Shard<H>>>,
    deliver: &'a mut D,
}

impl<H: Handler, D> ThreadTurn<'_, H, D> {
    /// What the shard has closed by the end of the turn is closed here as well: its address is free.
    fn follow_sockets(&mut self) {
        let guard = self.guard.get_or_insert_with(|| self.shared.lock());
        self.driver.follow_sockets(guard);
    }
}

impl<H: Handler, D: FnMut() -> bool> TurnHost for ThreadTurn<'_, H, D> {
    type Handler = H;

    fn shard(&mut self) -> &mut Shard<H> {
        self.guard.get_or_insert_with(|| self.shared.lock())
    }

    fn receive(&mut self) -> io::Result<bool> {
        let guard = self.guard.get_or_insert_with(|| self.shared.lock());
        let (driver, shard) = (&mut *self.driver, &mut **guard);
        self.shared.take_inbox(&mut driver.foreign);
        shard.receive_foreign(&mut driver.foreign);
        driver.follow_sockets(shard);
        driver.receive(shard)
    }

    fn deliver_events(&mut self) -> bool {
        let guard = self.guard.get_or_insert_with(|| self.shared.lock());
        guard.dispatch();
        guard.watch_idle();
        std::mem::swap(&mut guard.wakes, &mut self.driver.wakes);
        self.guard = None;
        self.driver.wakes.drain(..).for_each(Waker::wake);
        let acted = (self.deliver)();
        if acted {
            // It may have taken its time.
            self.shard().begin_turn();
        }
        acted
    }
}

impl<H: Handler> ThreadDriver<H> {
    /// Receives a batch from each socket that may have one. True if there may be more.
    fn receive(&mut self, shard: &mut Shard<H>) -> io::Result<bool> {
        for id in self.failing.drain(..) {
            if let Some(at) = shard.index_of(id, 0) {
                shard.receive_errors_from(at);
            }
        }
        if shard.has_rest() {
            shard.receive_rest();
            return Ok(shard.has_rest() || !self.readable.is_empty());
        }
        let mut at = 0;
        while let Some(id) = self.readable.get(at).copied() {
            let more = match shard.index_of(id, at) {
                Some(index) => shard.receive_from(index)?.more,
                None => false,
            };
            if more {
                at = at.saturating_add(1);
            } else {
                self.readable.remove(at);
            }
            if shard.has_rest() {
                return Ok(true);
            }
        }
        Ok(!self.readable.is_empty())
    }
}

impl<H: Handler> Drop for ThreadDriver<H> {
    fn drop(&mut self) {
        // Who wakes it would have its descriptor open for ever.
        self.shared.unregister_driver(&self.waker);
    }
}

impl<H: Handler> fmt::Debug for ThreadDriver<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadDriver").field("sockets", &self.sockets.len()).finish_non_exhaustive()
    }
}
