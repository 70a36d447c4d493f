//! Work that needs no task of its own where it need not wait.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio_util::sync::ReusableBoxFuture;

/// For so long work of one batch is done before others have their turn.
const TURN: Duration = Duration::from_micros(500);

/// Pieces of work that came together.
pub(super) struct Batch {
    arrived: Instant,
    /// Whether whoever holds the batch does what is ready: where a runtime has several threads they may work side by side.
    alone: bool,
    /// Where the last piece was done that was ready: the next is done there.
    place: Option<ReusableBoxFuture<'static, ()>>,
}

impl Batch {
    /// What has come by now.
    pub(super) fn new() -> Self {
        Batch::arrived_at(now())
    }

    fn arrived_at(arrived: Instant) -> Self {
        let alone = Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread;
        Batch { arrived, alone, place: None }
    }

    /// When it had come.
    pub(super) fn arrived(&self) -> Instant {
        self.arrived
    }

    /// Has a piece of it done: at once if it need not wait for anything, and otherwise in a task of its own. It has one in any
    /// case when those before it have taken long, so that others have their turn. A panic ends nothing but the piece.
    pub(super) fn spawn_unless_ready(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        let mut place = match self.place.take() {
            Some(mut place) => {
                place.set(work);
                place
            }
            None => ReusableBoxFuture::new(work),
        };
        if self.alone && self.arrived.elapsed() < TURN {
            // Its task will look again: nobody need be woken. A panic has been reported where it was.
            let mut cx = Context::from_waker(Waker::noop());
            match catch_unwind(AssertUnwindSafe(|| place.poll(&mut cx))) {
                Ok(Poll::Pending) => {}
                Ok(Poll::Ready(())) => {
                    self.place = Some(place);
                    return;
                }
                Err(_) => return,
            }
        }
        drop(tokio::spawn(place));
    }
}

/// The clock of all times that are called `arrived`.
#[expect(clippy::disallowed_methods, reason = "above the engine there are clocks")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tokio::sync::Notify;

    #[tokio::test]
    async fn what_need_not_wait_is_done_at_once_unless_others_took_long() {
        let done = Arc::new(AtomicU32::new(0));
        let work = || {
            let count = Arc::clone(&done);
            async move {
                count.fetch_add(1, Ordering::Relaxed);
            }
        };
        // A time that is long past, and one to come.
        let (past, future) = (now().checked_sub(TURN).unwrap_or_else(now), now() + Duration::from_secs(60));
        let mut batch = Batch::arrived_at(future);
        (0..3).for_each(|_| batch.spawn_unless_ready(work()));
        assert_eq!(done.load(Ordering::Relaxed), 3);
        Batch::arrived_at(past).spawn_unless_ready(work());
        assert_eq!(done.load(Ordering::Relaxed), 3, "it has a task");
        while done.load(Ordering::Relaxed) < 4 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn what_waits_goes_on_and_a_panic_is_the_works_own() {
        let (go, over) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let mut batch = Batch::arrived_at(now() + Duration::from_secs(60));
        for panics in [true, false] {
            let (go, over) = (Arc::clone(&go), Arc::clone(&over));
            let work = async move {
                assert!(!panics, "as is expected here");
                go.notified().await;
                over.notify_one();
            };
            batch.spawn_unless_ready(work);
        }
        // Who had only been looked at once waits by then, or will find a permit.
        go.notify_waiters();
        go.notify_one();
        over.notified().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn several_threads_share_the_work() {
        let here = std::thread::current().id();
        let (sender, there) = tokio::sync::oneshot::channel();
        let work = async move { sender.send(std::thread::current().id()).unwrap() };
        Batch::new().spawn_unless_ready(work);
        assert_ne!(there.await.unwrap(), here);
    }
}
