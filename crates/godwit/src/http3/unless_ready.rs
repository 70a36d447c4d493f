//! Work that needs no task of its own where it need not wait.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tokio::runtime::{Handle, RuntimeFlavor};

/// For so long work of one batch is done before others have their turn.
const TURN: Duration = Duration::from_micros(500);

/// Has `work` done, which came with others at `arrived`: by whoever calls this if it need not wait for anything, and otherwise
/// in a task of its own. It has one in any case when those before it have taken long, so that others have their turn, and where
/// the runtime has several threads, for they may work side by side. A panic ends nothing but the work.
pub(super) fn spawn_unless_ready(work: impl Future<Output = ()> + Send + 'static, arrived: Instant) {
    let mut work: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(work);
    if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread && arrived.elapsed() < TURN {
        // Its task will look again: nobody need be woken. A panic has been reported where it was.
        let mut cx = Context::from_waker(Waker::noop());
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(&mut cx))) {
            Ok(Poll::Pending) => {}
            Ok(Poll::Ready(())) | Err(_) => return,
        }
    }
    drop(tokio::spawn(work));
}

/// The clock of all times that are called `arrived`.
#[expect(clippy::disallowed_methods, reason = "above the engine there are clocks")]
pub(super) fn now() -> Instant {
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
        spawn_unless_ready(work(), future);
        assert_eq!(done.load(Ordering::Relaxed), 1);
        spawn_unless_ready(work(), past);
        assert_eq!(done.load(Ordering::Relaxed), 1, "it has a task");
        while done.load(Ordering::Relaxed) < 2 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn what_waits_goes_on_and_a_panic_is_the_works_own() {
        let (go, over) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        for panics in [true, false] {
            let (go, over) = (Arc::clone(&go), Arc::clone(&over));
            let work = async move {
                assert!(!panics, "as is expected here");
                go.notified().await;
                over.notify_one();
            };
            spawn_unless_ready(work, now() + Duration::from_secs(60));
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
        spawn_unless_ready(work, now());
        assert_ne!(there.await.unwrap(), here);
    }
}
