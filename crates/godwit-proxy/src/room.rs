//! How many connections there may be to one upstream, and who is next when there are as many.
//!
//! There are two lines: whoever is picky cannot use the connections that are there, and would hold up others who can.
//!
//! Invariants: a permit is held from before a connection is made until its socket is closed, tunnels included;
//! those who wait in a line are served in the order of their coming, and only the first of them looks for a connection.

use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::{Mutex, MutexGuard, Notify, OwnedSemaphorePermit, Semaphore};

/// The right to have a connection.
pub(crate) type Permit = OwnedSemaphorePermit;

/// Room for connections to one upstream.
#[derive(Debug)]
pub(crate) struct Room {
    permits: Arc<Semaphore>,
    lines: Arc<Lines>,
}

/// Those who wait.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    ordinary: Line,
    picky: Line,
}

#[derive(Debug, Default)]
struct Line {
    first: Mutex<()>,
    /// Tells the first.
    freed: Notify,
}

impl Lines {
    /// A connection that exists has become of use to somebody else.
    pub(crate) fn on_freed(&self) {
        self.ordinary.freed.notify_one();
        self.picky.freed.notify_one();
    }

    fn line(&self, picky: bool) -> &Line {
        if picky { &self.picky } else { &self.ordinary }
    }
}

impl Room {
    /// For `most` connections, at least one.
    pub(crate) fn new(most: usize) -> Self {
        let permits = Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS)));
        Room { permits, lines: Arc::default() }
    }

    /// Whether somebody waits already, who comes first then.
    pub(crate) fn is_waited_for(&self, picky: bool) -> bool {
        self.lines.line(picky).first.try_lock().is_err()
    }

    /// Whether there are as many connections as there may be.
    pub(crate) fn is_full(&self) -> bool {
        self.permits.available_permits() == 0
    }

    /// Room for another connection if there is some, and nobody waits for it.
    pub(crate) fn try_enter(&self) -> Option<Permit> {
        Arc::clone(&self.permits).try_acquire_owned().ok()
    }

    /// Becomes the first of those who wait.
    pub(crate) async fn be_first(&self, picky: bool) -> MutexGuard<'_, ()> {
        self.lines.line(picky).first.lock().await
    }

    /// Room for another connection.
    pub(crate) async fn permit(&self) -> Option<Permit> {
        // It is never closed.
        Arc::clone(&self.permits).acquire_owned().await.ok()
    }

    /// Waits for [`Room::permit`], or (`None`) for a connection that may be of use. Only the first may wait, and
    /// what was told before is not missed.
    pub(crate) async fn wait(
        &self,
        picky: bool,
        permit: Pin<&mut impl Future<Output = Option<Permit>>>,
    ) -> Option<Permit> {
        tokio::select! {
            biased;
            permit = permit => permit,
            () = self.lines.line(picky).freed.notified() => None,
        }
    }

    /// For telling those who wait.
    pub(crate) fn lines(&self) -> &Arc<Lines> {
        &self.lines
    }
}
