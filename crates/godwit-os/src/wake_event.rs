//! Waking a thread that waits for descriptors.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::task::Wake;

/// A descriptor that can be read once somebody has used it as a [`Waker`](std::task::Waker), until it is
/// [taken](WakeEvent::take).
#[derive(Debug)]
pub struct WakeEvent(OwnedFd);

impl WakeEvent {
    /// One that nobody has used yet.
    ///
    /// # Errors
    /// If there are no more descriptors.
    pub fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?))
    }

    /// Takes the wake-ups there are, if any.
    pub fn take(&self) {
        // It is empty if this fails, and that is what is wanted.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for WakeEvent {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Wake for WakeEvent {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // It fails only if it is full of wake-ups.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readiness::{Interest, wait_for};
    use std::task::Waker;
    use std::time::Duration;

    #[test]
    fn several_wake_ups_end_one_wait() {
        let event = Arc::new(WakeEvent::new().unwrap());
        let waker = Waker::from(Arc::clone(&event));
        waker.wake_by_ref();
        waker.wake();
        let mut ready = Vec::new();
        let mut is_ready = || {
            let interest = Interest { descriptor: event.as_fd(), writable: false };
            wait_for([interest], Some(Duration::ZERO), &mut ready).unwrap();
            ready[0].readable
        };
        assert!(is_ready());
        event.take();
        assert!(!is_ready());
    }
}
