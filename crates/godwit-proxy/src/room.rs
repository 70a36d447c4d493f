//! How many connections there may be to one upstream, and who is next when there are as many.
//!
//! Invariants: a permit is held from before a connection is made until its socket is closed, tunnels included;
//! those who wait are served in the order of their coming, and only the first of them looks for a connection.

use std::sync::Arc;
use tokio::sync::{Mutex, MutexGuard, Notify, OwnedSemaphorePermit, Semaphore};

/// The right to have a connection.
pub(crate) type Permit = OwnedSemaphorePermit;

/// Room for connections to one upstream.
#[derive(Debug)]
pub(crate) struct Room {
    permits: Arc<Semaphore>,
    /// Told when a connection that exists has become of use to somebody else.
    freed: Arc<Notify>,
    first: Mutex<()>,
}

impl Room {
    /// For `most` connections, at least one.
    pub(crate) fn new(most: usize) -> Self {
        let permits = Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS)));
        Room { permits, freed: Arc::default(), first: Mutex::default() }
    }

    /// Whether somebody waits already, who comes first then.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.first.try_lock().is_err()
    }

    /// Whether there are as many connections as there may be.
    pub(crate) fn is_full(&self) -> bool {
        self.permits.available_permits() == 0
    }

    /// Becomes the first of those who wait.
    pub(crate) async fn be_first(&self) -> MutexGuard<'_, ()> {
        self.first.lock().await
    }

    /// Waits for room for another connection, or (`None`) for one that may be of use. Only the first may wait,
    /// and what was told before is not missed.
    pub(crate) async fn wait(&self) -> Option<Permit> {
        tokio::select! {
            biased;
            // It is never closed.
            permit = Arc::clone(&self.permits).acquire_owned() => permit.ok(),
            () = self.freed.notified() => None,
        }
    }

    /// A connection may be of use to somebody else.
    pub(crate) fn on_freed(&self) {
        self.freed.notify_one();
    }

    /// For telling the same from elsewhere.
    pub(crate) fn freed(&self) -> Arc<Notify> {
        Arc::clone(&self.freed)
    }
}
