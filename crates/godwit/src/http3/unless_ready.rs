//! Work that needs no task of its own where it need not wait.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::runtime::{Handle, RuntimeFlavor};

/// Has `work` done: by whoever calls this if it need not wait for anything, and otherwise in a task of its own. A runtime with
/// several threads has one for it in any case, for they may work side by side. A panic ends nothing but the work.
pub(super) fn spawn_unless_ready(work: impl Future<Output = ()> + Send + 'static) {
    let mut work: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(work);
    if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
        // Its task will look again: nobody need be woken. A panic has been reported where it was.
        let mut cx = Context::from_waker(Waker::noop());
        match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(&mut cx))) {
            Ok(Poll::Pending) => {}
            Ok(Poll::Ready(())) | Err(_) => return,
        }
    }
    drop(tokio::spawn(work));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tokio::sync::Notify;

    #[tokio::test]
    async fn what_need_not_wait_is_done_at_once() {
        let done = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&done);
        spawn_unless_ready(async move { count.store(1, Ordering::Relaxed) });
        assert_eq!(done.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn what_waits_goes_on_and_a_panic_is_the_works_own() {
        let (go, over) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        for panics in [true, false] {
            let (go, over) = (Arc::clone(&go), Arc::clone(&over));
            spawn_unless_ready(async move {
                assert!(!panics, "as is expected here");
                go.notified().await;
                over.notify_one();
            });
        }
        go.notify_waiters();
        // Who had only been looked at once waits by then, or will find a permit.
        go.notify_one();
        over.notified().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn several_threads_share_the_work() {
        let here = std::thread::current().id();
        let (sender, there) = tokio::sync::oneshot::channel();
        spawn_unless_ready(async move { sender.send(std::thread::current().id()).unwrap() });
        assert_ne!(there.await.unwrap(), here);
    }
}
