//! How many connections there may be to one upstream, and who is next when there are as many.
//!
//! There are two queues: a request that needs HTTP/1.1 or a new connection (it is *selective*) cannot use the
//! connections that are there, and would hold up others that can.
//!
//! Invariants: a permit is held from before a connection is made until its socket is closed, tunnels included;
//! those who wait in a queue are served in the order of their coming, and only the first of them looks for a connection.

use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::{Mutex, MutexGuard, Notify, OwnedSemaphorePermit, Semaphore};

/// The right to have a connection.
pub(crate) type Permit = OwnedSemaphorePermit;

/// The connections that there may be to one upstream. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Permits {
    free: Arc<Semaphore>,
    queues: Arc<Queues>,
}

/// Those who wait.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    ordinary: Queue,
    selective: Queue,
}

#[derive(Debug, Default)]
struct Queue {
    first: Mutex<()>,
    /// Wakes the first.
    freed: Notify,
}

impl Queues {
    /// A connection that exists has become of use to somebody else.
    pub(crate) fn on_freed(&self) {
        self.ordinary.freed.notify_one();
        self.selective.freed.notify_one();
    }

    fn queue(&self, selective: bool) -> &Queue {
        if selective { &self.selective } else { &self.ordinary }
    }
}

impl Permits {
    /// For `most` connections, at least one.
    pub(crate) fn new(most: usize) -> Self {
        let free = Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS)));
        Permits { free, queues: Arc::default() }
    }

    /// Whether somebody waits already, who comes first then.
    pub(crate) fn is_waited_for(&self, selective: bool) -> bool {
        self.queues.queue(selective).first.try_lock().is_err()
    }

    /// Whether there are as many connections as there may be.
    pub(crate) fn is_full(&self) -> bool {
        self.free.available_permits() == 0
    }

    /// A permit for another connection if there is one, and nobody waits for it.
    pub(crate) fn try_enter(&self) -> Option<Permit> {
        Arc::clone(&self.free).try_acquire_owned().ok()
    }

    /// Becomes the first of those who wait.
    pub(crate) async fn be_first(&self, selective: bool) -> MutexGuard<'_, ()> {
        self.queues.queue(selective).first.lock().await
    }

    /// A permit for another connection.
    pub(crate) async fn permit(&self) -> Option<Permit> {
        // It is never closed.
        Arc::clone(&self.free).acquire_owned().await.ok()
    }

    /// Waits for [`Permits::permit`], or (`None`) for a connection that may be of use. Only the first may wait, and
    /// what was told before is not missed.
    pub(crate) async fn wait(
        &self,
        selective: bool,
        permit: Pin<&mut impl Future<Output = Option<Permit>>>,
    ) -> Option<Permit> {
        tokio::select! {
            biased;
            permit = permit => permit,
            () = self.queues.queue(selective).freed.notified() => None,
        }
    }

    /// For waking those who wait.
    pub(crate) fn queues(&self) -> &Arc<Queues> {
        &self.queues
    }
}
