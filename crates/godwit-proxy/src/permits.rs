//! How many connections there may be to one upstream, and who is next when there are as many.
//!
//! There are two queues: a request that needs HTTP/1.1 or a new connection (it is *selective*) cannot use the
//! connections that are there, and would hold up others that can.
//!
//! Invariants: a permit is held from before a connection is made until its socket is closed, tunnels included;
//! those who wait in a queue are served in the order of their coming, and only the first of them looks for a connection.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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
    /// Those who have not been served at once, the first among them.
    waiting: AtomicUsize,
    /// Wakes the first.
    freed: Notify,
}

/// The first of those who wait in a queue, or who would.
pub(crate) struct First<'a> {
    queue: &'a Queue,
    /// Once it waits.
    waiting: Option<Waiting<'a>>,
    _first: MutexGuard<'a, ()>,
}

/// Counts as waiting.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn in_queue(queue: &'a Queue) -> Self {
        queue.waiting.fetch_add(1, Ordering::Relaxed);
        Waiting(&queue.waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl First<'_> {
    /// Waits for [`Permits::permit`], or (`None`) for a connection that may be of use. What was told before is not missed.
    pub(crate) async fn wait(
        &mut self,
        permit: Pin<&mut impl Future<Output = Option<Permit>>>,
    ) -> Option<Permit> {
        self.waiting.get_or_insert_with(|| Waiting::in_queue(self.queue));
        tokio::select! {
            biased;
            permit = permit => permit,
            () = self.queue.freed.notified() => None,
        }
    }
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
        self.queues.queue(selective).waiting.load(Ordering::Relaxed) > 0
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
    pub(crate) async fn be_first(&self, selective: bool) -> First<'_> {
        let queue = self.queues.queue(selective);
        if let Ok(first) = queue.first.try_lock() {
            return First { queue, waiting: None, _first: first };
        }
        // It counts until it is served, lest somebody who comes later be served before.
        let waiting = Some(Waiting::in_queue(queue));
        First { queue, waiting, _first: queue.first.lock().await }
    }

    /// A permit for another connection.
    pub(crate) async fn permit(&self) -> Option<Permit> {
        // It is never closed.
        Arc::clone(&self.free).acquire_owned().await.ok()
    }

    /// For waking those who wait.
    pub(crate) fn queues(&self) -> &Arc<Queues> {
        &self.queues
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Waker};

    #[test]
    fn who_is_served_at_once_is_not_waited_for_and_who_waits_is_until_it_is_served() {
        let (all, mut cx) = (Permits::new(1), Context::from_waker(Waker::noop()));
        let entered = all.try_enter().unwrap();
        let enter = async || {
            let (mut first, mut permit) = (all.be_first(false).await, pin!(all.permit()));
            loop {
                if let Some(permit) = first.wait(permit.as_mut()).await {
                    return (permit, first);
                }
            }
        };
        let looks = pin!(all.be_first(false)).poll(&mut cx);
        assert!(looks.is_ready() && !all.is_waited_for(false), "it has not waited yet");
        drop(looks);
        let (mut one, mut other) = (Box::pin(enter()), Box::pin(enter()));
        assert!(one.as_mut().poll(&mut cx).is_pending() && other.as_mut().poll(&mut cx).is_pending());
        assert!(all.is_waited_for(false) && !all.is_waited_for(true));
        drop(entered);
        drop(one.as_mut().poll(&mut cx).map(|(permit, _)| permit));
        drop(one);
        assert!(all.is_waited_for(false), "the other is next, whoever comes meanwhile");
        let served = other.as_mut().poll(&mut cx);
        assert!(served.is_ready());
        drop((served, other));
        assert!(!all.is_waited_for(false));
    }
}
