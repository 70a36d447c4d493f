//! How many new things may wait for the application to hear of them: what makes peers wait that begin requests, streams and
//! connections faster than the application takes events.
//!
//! What ends before the application has heard of it still has its place, until the event that introduces it is taken or
//! nobody wants it any more. So the memory behind it has a bound, however often a peer begins and breaks off.

use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Places for what the application has not heard of.
pub(crate) struct Introductions {
    places: Arc<Semaphore>,
}

/// One of them, until it is dropped.
pub(crate) struct Place(
    #[expect(dead_code, reason = "it is there to be dropped")] Option<OwnedSemaphorePermit>,
);

impl Introductions {
    /// So many.
    pub(crate) fn new(most: usize) -> Introductions {
        Introductions { places: Arc::new(Semaphore::new(most)) }
    }

    /// Waits for a place. Who comes first has the first.
    pub(crate) async fn place(&self) -> Place {
        // It is never closed.
        Place(Arc::clone(&self.places).acquire_owned().await.ok())
    }
}
