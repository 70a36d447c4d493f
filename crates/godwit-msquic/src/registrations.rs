//! Opening registrations, and shutting down all that was opened in one.

use crate::abi::{ConnectionShutdownFlags, ExecutionProfile, Handle, Status};
use crate::listener::LISTENERS;
use crate::registration::{REGISTRATIONS, Registration};
use crate::worker::{self, Worker};
use std::sync::Arc;

/// Opens a registration, and has the workers started if they have not been. Of work that nobody waits for, one worker does all.
///
/// # Errors
/// [`Status::OUT_OF_MEMORY`] if that cannot be done.
pub(crate) fn open(profile: ExecutionProfile) -> Result<Handle, Status> {
    let opened = worker::start(|| {
        let has_one_worker = profile == ExecutionProfile::SCAVENGER;
        let one = worker::pool().filter(|_| has_one_worker).and_then(|pool| pool.next_worker());
        let registration = Registration::open(one.map(Worker::number));
        let handle = REGISTRATIONS.insert(Arc::clone(&registration));
        if handle.is_none() {
            registration.on_handle_closed();
        }
        handle
    })?;
    opened.ok_or(Status::OUT_OF_MEMORY)
}

/// Stops all listeners and shuts all connections down, and those that are begun from now on.
pub(crate) fn shut_down(registration: &Arc<Registration>, flags: ConnectionShutdownFlags, code: u64) {
    if !registration.begin_shutdown(flags, code) {
        return;
    }
    for listener in LISTENERS.all().iter().filter(|it| Arc::ptr_eq(it.registration(), registration)) {
        listener.stop();
    }
    for worker in worker::pool().map_or(&[][..], |pool| pool.workers()) {
        worker.visit(|cx, state| {
            // Those that are not started have nothing to shut down: they are told as soon as they are.
            let ours = state.connections.iter().filter(|(_, it)| {
                Arc::ptr_eq(&it.registration, registration) && (it.is_started || it.is_server)
            });
            for key in ours.map(|(key, _)| key).collect::<Vec<_>>() {
                state.shut_down(cx, key, flags, code);
            }
        });
    }
}
