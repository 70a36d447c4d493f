//! Listeners: who is shown the clients that want one of their protocols at their address.

mod bindings;
mod partition;
mod stopping;

pub(crate) use bindings::{Asked, NoListener, choose, close_unused_bindings};

use crate::abi::{
    Address, ListenerCallbackHandler, ListenerEvent, ListenerStatistics, PerformanceCounter, Status,
};
use crate::context::Context;
use crate::counters;
use crate::handle::Kind;
use crate::objects::Table;
use crate::registration::Registration;
use bytes::Bytes;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::ThreadId;

/// All listeners.
pub(crate) static LISTENERS: Table<Listener> = Table::new(Kind::Listener);

/// A listener.
pub(crate) struct Listener {
    registration: Arc<Registration>,
    handle: OnceLock<NumberOfHandle>,
    state: Mutex<State>,
    changed: Condvar,
    accepted: AtomicU64,
    rejected: AtomicU64,
}

/// A handle as a number, which may go to other threads.
type NumberOfHandle = usize;

struct State {
    handler: ListenerCallbackHandler,
    context: Context,
    alpn: Vec<Bytes>,
    phase: Phase,
    is_closed: bool,
    /// The threads on which it is being called.
    calls: Vec<ThreadId>,
    dos_mode_events: bool,
    /// What it is told to be at: what was asked for, with the port that it has got. It stays when it is stopped.
    told_address: Address,
    /// By which processes tell their datagrams apart: the offset, and the bytes.
    cibir: Vec<u8>,
    /// The worker that all of its connections are to be at.
    partition: Option<u16>,
}

impl State {
    /// Whether a call is under way on another thread than these.
    fn is_called_elsewhere(&self, threads: &[ThreadId]) -> bool {
        self.calls.iter().any(|call| !threads.contains(call))
    }
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    Stopped,
    Started,
    /// It is to be told as stopped when no callback is under way any more.
    Stopping,
    /// The same, and the worker of its partition is to do that.
    LeftToWorker,
    /// A thread tells that it has stopped.
    Telling(ThreadId),
}

impl Listener {
    /// A listener that is not started.
    pub(crate) fn new(
        registration: Arc<Registration>,
        handler: ListenerCallbackHandler,
        context: Context,
    ) -> Self {
        registration.on_child_opened();
        let partition = registration.partition().map(u16::from);
        let state = State {
            handler,
            context,
            alpn: Vec::new(),
            phase: Phase::Stopped,
            is_closed: false,
            calls: Vec::new(),
            dos_mode_events: false,
            told_address: Address::unspecified(0),
            cibir: Vec::new(),
            partition,
        };
        Listener {
            registration,
            handle: OnceLock::new(),
            state: Mutex::new(state),
            changed: Condvar::new(),
            accepted: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
        }
    }

    /// Its handle, once it has one.
    pub(crate) fn set_handle(&self, handle: crate::abi::Handle) {
        let _ = self.handle.set(handle.addr());
    }

    /// The registration that it was opened in.
    pub(crate) const fn registration(&self) -> &Arc<Registration> {
        &self.registration
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn context(&self) -> Context {
        self.state().context
    }

    pub(crate) fn set_context(&self, context: Context) {
        self.state().context = context;
    }

    pub(crate) fn set_handler(&self, handler: ListenerCallbackHandler, context: Context) {
        let mut state = self.state();
        (state.handler, state.context) = (handler, context);
    }

    /// Where it listens, or did last.
    pub(crate) fn told_address(&self) -> Address {
        self.state().told_address
    }

    pub(crate) fn cibir(&self) -> Vec<u8> {
        self.state().cibir.clone()
    }

    pub(crate) fn set_cibir(&self, id: Vec<u8>) {
        self.state().cibir = id;
    }

    /// The worker that all of its connections are to be at, if that was said of it.
    pub(crate) fn partition(&self) -> Option<u16> {
        self.state().partition.filter(|_| self.registration.partition().is_none())
    }

    /// Says at which worker all of its connections are to be.
    ///
    /// # Errors
    /// [`Status::INVALID_PARAMETER`] if that was said before, also of the registration, or it is started.
    pub(crate) fn set_partition(&self, worker: u16) -> Result<(), Status> {
        let mut state = self.state();
        if state.partition.is_some() || !matches!(state.phase, Phase::Stopped) {
            return Err(Status::INVALID_PARAMETER);
        }
        state.partition = Some(worker);
        Ok(())
    }

    /// Whether it wants to hear of defences that begin and end.
    pub(crate) fn dos_mode_events(&self) -> bool {
        self.state().dos_mode_events
    }

    pub(crate) fn set_dos_mode_events(&self, wanted: bool) {
        self.state().dos_mode_events = wanted;
    }

    /// How many connections it has accepted and rejected, and what was dropped at its address.
    pub(crate) fn statistics(&self) -> ListenerStatistics {
        ListenerStatistics {
            total_accepted_connections: self.accepted.load(Ordering::Relaxed),
            total_rejected_connections: self.rejected.load(Ordering::Relaxed),
            binding_recv_dropped_packets: bindings::dropped_at(self),
        }
    }

    pub(crate) fn on_accepted(&self) {
        self.accepted.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn on_rejected(&self) {
        self.rejected.fetch_add(1, Ordering::Relaxed);
        counters::count(PerformanceCounter::CONN_APP_REJECT);
    }

    /// Shows the application a client, if the listener is still started.
    pub(crate) fn call(self: &Arc<Self>, event: &mut ListenerEvent) -> Status {
        let thread = std::thread::current().id();
        let mut state = self.state();
        if !matches!(state.phase, Phase::Started) {
            return Status::CONNECTION_REFUSED;
        }
        state.calls.push(thread);
        let whom = (state.handler, state.context);
        drop(state);
        let status = self.invoke(whom, event);
        self.end_call(thread);
        status
    }

    fn invoke(
        &self,
        (handler, context): (ListenerCallbackHandler, Context),
        event: &mut ListenerEvent,
    ) -> Status {
        let Some(handler) = handler else { return Status::NOT_SUPPORTED };
        let handle = std::ptr::without_provenance_mut(self.handle.get().copied().unwrap_or_default());
        // SAFETY: the application has given this function for this kind of handle. What the event points to lives until it
        // returns.
        unsafe { handler(handle, context.pointer(), event) }
    }

    /// Begins to listen.
    ///
    /// # Errors
    /// [`Status::INVALID_STATE`] if it does already, [`Status::ALPN_IN_USE`] if another listens there for one of these
    /// protocols, or why the address cannot be had.
    pub(crate) fn start(self: &Arc<Self>, alpn: Vec<Bytes>, address: Option<&Address>) -> Result<(), Status> {
        let mut state = self.state();
        if !matches!(state.phase, Phase::Stopped) {
            return Err(Status::INVALID_STATE);
        }
        let bound = bindings::add(self, &alpn, address, state.partition)?;
        state.alpn = alpn;
        let asked = address.copied().unwrap_or(Address::unspecified(0));
        state.told_address = asked.with_port(bound.port());
        state.phase = Phase::Started;
        Ok(())
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.registration.on_child_closed();
    }
}
