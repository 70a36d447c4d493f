//! What events are about: a handle, its tag, and what it belongs to.
//!
//! When something is closed, nothing more is told of it or of what belongs to it, and the tasks that work for it end.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::watch;

/// What events are about.
pub(crate) struct About {
    pub(crate) handle: u64,
    tag: AtomicU64,
    pub(crate) parent: Option<Arc<About>>,
    closed: watch::Sender<bool>,
}

impl About {
    /// One that belongs to `parent`.
    pub(crate) fn new(handle: u64, tag: u64, parent: Option<Arc<About>>) -> Arc<About> {
        let closed = watch::Sender::new(false);
        Arc::new(About { handle, tag: AtomicU64::new(tag), parent, closed })
    }

    pub(crate) fn tag(&self) -> u64 {
        self.tag.load(Ordering::Relaxed)
    }

    pub(crate) fn set_tag(&self, tag: u64) {
        self.tag.store(tag, Ordering::Relaxed);
    }

    /// Nothing more is told of it.
    pub(crate) fn close(&self) {
        self.closed.send_replace(true);
    }

    /// Whether it, or what it belongs to, was closed.
    pub(crate) fn is_closed(&self) -> bool {
        *self.closed.borrow() || self.parent.as_ref().is_some_and(|parent| parent.is_closed())
    }

    /// Waits until that is so.
    pub(crate) fn until_closed(self: &Arc<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let (mut closed, parent) = (self.closed.subscribe(), self.parent.clone());
        Box::pin(async move {
            let own = async move {
                // The sender is in what is waited for.
                let _ = closed.wait_for(|closed| *closed).await;
            };
            match parent {
                None => own.await,
                Some(parent) => tokio::select! {
                    () = own => {}
                    () = parent.until_closed() => {}
                },
            }
        })
    }

    /// Does this until it is done, or the subject is closed: then `None`.
    pub(crate) async fn unless_closed<T>(self: &Arc<Self>, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.until_closed() => None,
            done = work => Some(done),
        }
    }
}
