//! The queue: events wait in it until the application takes them, on any of its threads or from a loop of its own.
//!
//! Its descriptor is readable exactly while there is something to take: both change under one lock.

use crate::abi;
use crate::border::call;
use crate::event::Event;
use crate::failure::Failure;
use crate::given::{self, Places};
use crate::handles::{self, Kind, Thing};
use godwit_os::wake_event::WakeEvent;
use std::collections::VecDeque;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::Wake;
use std::time::{Duration, Instant};

/// Events that wait to be taken.
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    descriptor: Arc<WakeEvent>,
}

#[derive(Default)]
struct Waiting {
    events: VecDeque<Event>,
    /// Waits under way.
    waits: usize,
    /// So many of them are to end; without any, the next one, or none.
    woken: usize,
    closed: bool,
}

impl Waiting {
    /// No more waits can be ended than there are, or the next one.
    fn most_woken(&self) -> usize {
        self.waits.max(1)
    }

    /// Whether one wait is to end; it ends then.
    fn is_woken(&mut self) -> bool {
        let is_woken = self.woken > 0;
        self.woken = self.woken.saturating_sub(1);
        is_woken
    }
}

impl Thing for Queue {
    const KIND: Kind = Kind::Queue;

    /// Takes no more events, and ends all waits.
    fn close(&self) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.closed = true;
        let left = std::mem::take(&mut waiting.events);
        self.descriptor.wake_by_ref();
        self.changed.notify_all();
        drop(waiting);
        drop(left);
    }

    fn set_tag(&self, _: u64) -> bool {
        false
    }
}

impl Queue {
    fn new() -> Result<Queue, Failure> {
        let descriptor =
            WakeEvent::new().map_err(|error| Failure::system("no descriptor is to be had", &error))?;
        Ok(Queue { waiting: Mutex::default(), changed: Condvar::new(), descriptor: Arc::new(descriptor) })
    }

    /// Has an event wait. If the queue is closed it comes back, to be dropped where no lock is held: it may close a handle.
    #[must_use = "it is to be dropped without a lock"]
    pub(crate) fn post(&self, event: Event) -> Option<Event> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.closed {
            return Some(event);
        }
        waiting.events.push_back(event);
        self.descriptor.wake_by_ref();
        self.changed.notify_one();
        None
    }

    /// Ends one wait: another one at each call, as long as there are any.
    fn wake(&self) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.woken = waiting.woken.saturating_add(1).min(waiting.most_woken());
        self.descriptor.wake_by_ref();
        self.changed.notify_one();
    }

    /// Takes up to `most` events, and waits for the first as long as this.
    fn take(&self, most: usize, limit: Option<Duration>) -> Result<Vec<Event>, Failure> {
        #[expect(clippy::disallowed_methods, reason = "a wait of the application's is over by the clock")]
        let now = Instant::now;
        let until = limit.map(|limit| now().checked_add(limit));
        let (mut taken, mut moot) = (Vec::new(), Vec::new());
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.waits = waiting.waits.saturating_add(1);
        loop {
            while let Some(event) = waiting.events.pop_front_if(|_| taken.len() < most) {
                if event.is_moot() { &mut moot } else { &mut taken }.push(event);
            }
            let is_over = waiting.closed || waiting.is_woken() || !taken.is_empty();
            if waiting.events.is_empty() && waiting.woken == 0 && !waiting.closed {
                self.descriptor.take();
            }
            let left = until
                .map(|until| until.map_or(Duration::MAX, |until| until.saturating_duration_since(now())));
            if is_over || left == Some(Duration::ZERO) {
                break;
            }
            waiting = match left {
                None => self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner),
                Some(left) => {
                    let waited = self.changed.wait_timeout(waiting, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        waiting.waits = waiting.waits.saturating_sub(1);
        waiting.woken = waiting.woken.min(waiting.most_woken());
        if !waiting.events.is_empty() || waiting.woken > 0 {
            self.changed.notify_one();
        }
        let is_closed = waiting.closed && taken.is_empty();
        drop(waiting);
        // Their handles may be closed by this.
        drop(moot);
        if is_closed { Err(Failure::new(abi::ERROR_HANDLE, "the queue was closed")) } else { Ok(taken) }
    }
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_queue_create(
    options: *const abi::QueueOptions,
    queue: *mut u64,
    error: *mut abi::Error,
) -> i32 {
    let act = || {
        given::place(queue, "the place for the queue's handle")?;
        // SAFETY: the caller's promise.
        let options = unsafe { given::take_or_default(options) }?;
        given::flags(options.flags, 0, "a queue")?;
        let (made, mut handle) = (Arc::new(Queue::new()?), 0);
        handles::insert(|number| {
            handle = number;
            made
        })?;
        // SAFETY: the caller's promise.
        unsafe { given::put(queue, handle, "the place for the queue's handle") }
    };
    // SAFETY: the caller's promise.
    unsafe { call(error, act) }
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_queue_descriptor(
    queue: u64,
    descriptor: *mut i32,
    error: *mut abi::Error,
) -> i32 {
    let act = || {
        let number = handles::get::<Queue>(queue)?.descriptor.as_fd().as_raw_fd();
        // SAFETY: the caller's promise.
        unsafe { given::put(descriptor, number, "the place for the descriptor") }
    };
    // SAFETY: the caller's promise.
    unsafe { call(error, act) }
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_queue_wait(
    queue: u64,
    events: *mut abi::Event,
    capacity: u64,
    timeout_ms: i64,
    count: *mut u64,
    error: *mut abi::Error,
) -> i32 {
    let act = || {
        let queue = handles::get::<Queue>(queue)?;
        // SAFETY: the caller's promise.
        unsafe { given::put(count, 0, "the place for the number of events") }?;
        // SAFETY: the caller's promise.
        let places = unsafe { Places::of(events, capacity) }?;
        if places.capacity() == 0 {
            return Err(Failure::argument(
                "the array has no room for an event; give it one element at least",
            ));
        }
        let limit = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
        let taken = queue.take(places.capacity(), limit)?;
        let number = taken.len() as u64;
        for (place, event) in taken.into_iter().enumerate() {
            places.put(place, &event.deliver());
        }
        // SAFETY: the caller's promise.
        unsafe { given::put(count, number, "the place for the number of events") }
    };
    // SAFETY: the caller's promise.
    unsafe { call(error, act) }
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_queue_wake(queue: u64, error: *mut abi::Error) -> i32 {
    let act = || {
        handles::get::<Queue>(queue)?.wake();
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { call(error, act) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn each_wake_ends_one_of_the_waits_under_way() {
        const WAITS: usize = 4;
        let queue = Queue::new().unwrap();
        thread::scope(|scope| {
            for _ in 0..WAITS {
                scope.spawn(|| assert!(queue.take(1, None).unwrap().is_empty()));
            }
            while queue.waiting.lock().unwrap().waits < WAITS {
                thread::yield_now();
            }
            (0..WAITS).for_each(|_| queue.wake());
        });
        assert_eq!(queue.waiting.lock().unwrap().woken, 0, "all are used up");
    }

    #[test]
    fn wakes_before_a_wait_are_one() {
        let queue = Queue::new().unwrap();
        (0..3).for_each(|_| queue.wake());
        assert!(queue.take(1, None).unwrap().is_empty());
        let waiting = queue.waiting.lock().unwrap();
        assert_eq!((waiting.woken, waiting.waits), (0, 0));
    }
}
