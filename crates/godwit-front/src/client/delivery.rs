//! Something that is finished when a response has been delivered.
//!
//! Delivery over QUIC needs no task: a [`Waiting`] is its own waker, and the connection wakes it when the end of
//! the stream is acknowledged. Delivery over TCP is the business of the connection's [`super::tcp::Meter`].

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use godwit::http3::Delivery;

use godwit_text::instant_now;

/// A response whose body is over. Dropped without [`Undelivered::over`], its delivery is not known.
pub(crate) trait Undelivered: Send {
    /// All of it has been handed to the kernel.
    fn on_flushed(&mut self, at: Instant);

    /// The client has acknowledged all of it then, or it is not known whether it has.
    fn over(self: Box<Self>, delivered: Option<Instant>);
}

/// Has `undelivered` wait for `delivery`, without a task.
pub(crate) fn wait(delivery: Delivery, undelivered: Box<dyn Undelivered>) {
    let waiting = Arc::new(Waiting {
        again: AtomicBool::new(false),
        pending: Mutex::new(Some((delivery, undelivered))),
    });
    waiting.wake();
}

struct Waiting {
    /// Somebody has called since the last look.
    again: AtomicBool,
    pending: Mutex<Option<(Delivery, Box<dyn Undelivered>)>>,
}

impl Wake for Waiting {
    /// Looks whether the response was delivered. Whoever finds another at it leaves it to that one: this may be
    /// called while a look is under way, even by the look itself.
    fn wake(self: Arc<Self>) {
        self.again.store(true, Ordering::Release);
        while self.again.load(Ordering::Acquire) {
            let Ok(mut pending) = self.pending.try_lock() else { return };
            self.again.store(false, Ordering::Release);
            let Some((delivery, _)) = pending.as_mut() else { return };
            let waker = Waker::from(Arc::clone(&self));
            if let Poll::Ready(delivered) = Pin::new(delivery).poll(&mut Context::from_waker(&waker)) {
                let over = pending.take();
                drop(pending);
                if let Some((_, undelivered)) = over {
                    undelivered.over(delivered.then(instant_now));
                }
                return;
            }
        }
    }
}
