//! Using a shard from anywhere.
//!
//! A shard lives behind one lock, which its driver holds during a turn and which is otherwise free: on the
//! shard's own thread taking it costs nothing to speak of. A visit marks the shard as having something to
//! do and wakes the driver, which then sends for all visits together, in large batches. Only the first flight of a
//! handshake leaves at once: TLS has taken long to make it, and would as long again for that of the next visit.

use crate::group::{Inbox, ShardGroup};
use crate::handler::{Handler, ShardCx};
use crate::shard::Shard;
use crate::stopped::Stopped;
use crate::wake::{DriverWake, Mailbox, Put};
use godwit_base::SocketId;
use godwit_datapath::{Capabilities, Counters, Datapath};
use godwit_transport::{Foreign, ForeignBatch};
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::Waker;

/// What the driver is asked to do beside its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Ending {
    /// Nothing.
    None = 0,
    /// To end when the last connection is over.
    WhenIdle = 1,
    /// To end now.
    Now = 2,
}

pub(crate) struct Shared<H> {
    shard: Mutex<Shard<H>>,
    wake: DriverWake,
    ending: AtomicU8,
    handles: AtomicUsize,
    stopped: OnceLock<Stopped>,
    /// Datagrams from other shards that wait to be taken in; what does not fit is dropped.
    inbox: Mailbox<ForeignBatch>,
}

impl<H: Handler> Shared<H> {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Shard<H>> {
        // A handler that panicked takes its driver with it, which then says so: the state itself is sound.
        self.shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the driver run.
    pub(crate) fn schedule(&self) {
        self.wake.schedule();
    }

    /// Called by the driver as it begins: from here on, whoever changes something wakes it again. True if somebody has since it
    /// was called last.
    pub(crate) fn register_driver(&self, waker: &Waker) -> bool {
        self.wake.register(waker)
    }

    /// Called by a driver as it goes.
    pub(crate) fn unregister_driver(&self, waker: &Waker) {
        self.wake.unregister(waker);
    }

    /// Marks the shard as having ended. Only the first reason counts.
    pub(crate) fn stop(&self, why: Stopped) {
        if self.stopped.set(why.clone()).is_err() {
            return;
        }
        let mut shard = self.lock();
        shard.stop(&why);
        let wakes = shard.take_wakes();
        drop(shard);
        wakes.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.get().is_some()
    }

    pub(crate) fn ending(&self) -> Ending {
        match self.ending.load(Ordering::Acquire) {
            2 => Ending::Now,
            1 => Ending::WhenIdle,
            _ if self.handles.load(Ordering::Acquire) == 0 => Ending::WhenIdle,
            _ => Ending::None,
        }
    }

    /// Exchanges what other shards handed over for `into`, which is to be empty.
    pub(crate) fn take_inbox(&self, into: &mut ForeignBatch) {
        self.inbox.take(into);
    }
}

impl<H: Handler> Inbox for Shared<H> {
    fn put(&self, foreign: &Foreign, run: &[u8]) -> Put {
        // What does not fit is lost, as in a full socket.
        self.inbox.put(|inbox| inbox.push_run(*foreign, run), &self.wake)
    }
}

/// A handle of a shard. Cloning it is cheap; when the last one is gone, the driver ends as soon as there
/// are no connections.
pub struct ShardHandle<H: Handler> {
    shared: Arc<Shared<H>>,
}

impl<H: Handler> ShardHandle<H> {
    /// Puts `shard` behind handles, of which this is the first. Nothing happens before a
    /// [`crate::Driver`] runs.
    pub fn new(shard: Shard<H>) -> Self {
        let shared = Shared {
            shard: Mutex::new(shard),
            wake: DriverWake::new(),
            ending: AtomicU8::new(Ending::None as u8),
            handles: AtomicUsize::new(1),
            stopped: OnceLock::new(),
            inbox: Mailbox::new(ForeignBatch::new()),
        };
        ShardHandle { shared: Arc::new(shared) }
    }

    /// Makes this the shard of its number in `group`, which its shard [is in](Shard::in_group): from now on it takes in what
    /// others hand to it.
    pub fn join_group(&self, group: &ShardGroup, number: usize) {
        let inbox: Weak<dyn Inbox> = Arc::downgrade(&self.shared) as _;
        group.join(number, inbox);
    }

    /// Calls `visit` with the shard's inside, and has the driver deal with the consequences afterwards.
    /// Blocks while another thread is inside. Must not be called from within the shard's handler.
    pub fn with<R>(&self, visit: impl FnOnce(&mut ShardCx<'_>, &mut H) -> R) -> R {
        let mut shard = self.shared.lock();
        let result = shard.with(visit);
        shard.transmit_first_flights();
        let wakes = shard.take_wakes();
        drop(shard);
        wakes.into_iter().for_each(Waker::wake);
        self.shared.schedule();
        result
    }

    /// As [`ShardHandle::with`], but the driver is woken only if `visit` says, with true, that there are
    /// consequences: something to send, an event, another deadline.
    pub fn with_if<R>(&self, visit: impl FnOnce(&mut ShardCx<'_>, &mut H) -> (R, bool)) -> R {
        let mut shard = self.shared.lock();
        let (result, consequences) = shard.with(visit);
        let wakes = shard.take_wakes();
        drop(shard);
        wakes.into_iter().for_each(Waker::wake);
        if consequences {
            self.shared.schedule();
        }
        result
    }

    /// As [`ShardHandle::with`], for looking only: the driver is not woken.
    pub fn peek<R>(&self, look: impl FnOnce(&ShardCx<'_>, &H) -> R) -> R {
        self.shared.lock().with(|cx, handler| look(cx, handler))
    }

    /// Closes every connection with the application's `code` and `reason`, takes no new ones, and ends the
    /// driver when all have been closed in good order.
    pub fn close(&self, code: u64, reason: &[u8]) {
        self.shared.ending.fetch_max(Ending::WhenIdle as u8, Ordering::AcqRel);
        self.with(|cx, _| {
            let now = cx.now();
            cx.endpoint_mut().reject_new();
            cx.endpoint_mut().close_all(now, code, reason);
        });
    }

    /// Ends the driver as soon as the last connection is over, and takes no new ones.
    pub fn finish(&self) {
        self.shared.ending.fetch_max(Ending::WhenIdle as u8, Ordering::AcqRel);
        self.with(|cx, _| cx.endpoint_mut().reject_new());
    }

    /// Ends the driver at once. Peers are told nothing and will time out.
    pub fn stop(&self) {
        self.shared.ending.store(Ending::Now as u8, Ordering::Release);
        self.shared.schedule();
    }

    /// Why the shard has ended, if it has.
    pub fn stopped(&self) -> Option<Stopped> {
        self.shared.stopped.get().cloned()
    }

    /// The addresses the sockets are bound to.
    pub fn local_addrs(&self) -> Vec<SocketAddr> {
        self.shared.lock().local_addrs()
    }

    /// The ids of the sockets.
    pub fn sockets(&self) -> Vec<SocketId> {
        self.shared.lock().sockets.iter().map(|socket| socket.id()).collect()
    }

    /// What each socket has done so far.
    pub fn counters(&self) -> Vec<Counters> {
        self.shared.lock().counters()
    }

    /// What each socket can do at present.
    pub fn capabilities(&self) -> Vec<Capabilities> {
        self.shared.lock().capabilities()
    }

    /// Puts `socket` in the place of the one with the same id: connections go on from another address.
    pub fn replace_socket(&self, socket: Box<dyn Datapath>) {
        self.shared.lock().replace_socket(socket);
        self.shared.schedule();
    }

    /// Closes a socket as soon as no connection uses it any more.
    pub fn retire_socket(&self, socket: SocketId) {
        self.shared.lock().retire_socket(socket);
        self.shared.schedule();
    }

    /// Closes every socket, whatever connections are left, and gives back the memory that turns need. For a shard that no driver
    /// keeps going any more: nothing comes or leaves from here on.
    pub fn give_up(&self) {
        self.shared.lock().give_up();
    }

    /// Whether there is a socket with this id.
    pub fn has_socket(&self, socket: SocketId) -> bool {
        self.shared.lock().has_socket(socket)
    }

    /// A socket is to stay after all, if it is still there. Returns whether it is.
    pub fn keep_socket(&self, socket: SocketId) -> bool {
        self.shared.lock().keep_socket(socket)
    }

    /// Makes a socket that takes the place of others; see [`Shard::rebind`].
    ///
    /// # Errors
    /// What `make` says; then nothing has changed.
    pub fn rebind<E>(
        &self,
        make: impl FnOnce(SocketId) -> Result<Box<dyn Datapath>, E>,
    ) -> Result<SocketAddr, E> {
        let mut shard = self.shared.lock();
        shard.begin_turn();
        let outcome = shard.rebind(make);
        drop(shard);
        self.shared.schedule();
        outcome
    }

    pub(crate) fn shared(&self) -> &Arc<Shared<H>> {
        &self.shared
    }
}

impl<H: Handler> Clone for ShardHandle<H> {
    fn clone(&self) -> Self {
        self.shared.handles.fetch_add(1, Ordering::AcqRel);
        ShardHandle { shared: Arc::clone(&self.shared) }
    }
}

impl<H: Handler> Drop for ShardHandle<H> {
    fn drop(&mut self) {
        if self.shared.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.shared.schedule();
        }
    }
}

impl<H: Handler> fmt::Debug for ShardHandle<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardHandle").field("stopped", &self.stopped()).finish_non_exhaustive()
    }
}
