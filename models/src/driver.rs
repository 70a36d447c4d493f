//! The driver of a shard against those who have something for it.

use crate::wake::{DriverWake, Mailbox};
use loom::future::block_on;
use loom::model::Builder;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use std::future::poll_fn;
use std::task::{Context, Poll};

/// What the driver and the others share, as `Shared` of the engine does.
struct Shared {
    wake: DriverWake,
    inbox: Mailbox<Vec<u32>>,
    handles: AtomicUsize,
}

impl Shared {
    fn new(handles: usize) -> Arc<Self> {
        let handles = AtomicUsize::new(handles);
        Arc::new(Shared { wake: DriverWake::new(), inbox: Mailbox::new(Vec::new()), handles })
    }

    /// As another shard does it: the wake-up comes when nothing of its own is locked.
    fn hand_over(&self, item: u32) {
        let put = self.inbox.put(
            |inbox| {
                inbox.push(item);
                true
            },
            &self.wake,
        );
        assert!(put.taken);
        if let Some(driver) = put.driver {
            driver.wake();
        }
    }

    /// As the last handle does it when it is dropped.
    fn drop_handle(&self) {
        if self.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.wake.schedule();
        }
    }
}

/// Runs `model` with every order of its threads' steps in which a thread is interrupted at most twice while it could go
/// on: what is wrong with so few steps shows with that, and all orders would take hours.
fn every_order(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(model);
}

/// A poll of the driver: takes what there is to `taken`, and is over once there are `until`.
fn poll(shared: &Shared, cx: &Context<'_>, taken: &mut Vec<u32>, until: usize) -> Poll<()> {
    shared.wake.register(cx.waker());
    let mut batch = Vec::new();
    shared.inbox.take(&mut batch);
    taken.append(&mut batch);
    if taken.len() >= until { Poll::Ready(()) } else { Poll::Pending }
}

fn drive(shared: &Shared, taken: &mut Vec<u32>, until: usize) {
    block_on(poll_fn(|cx| poll(shared, cx, taken, until)));
}

#[test]
fn what_one_shard_hands_over_is_taken() {
    every_order(|| {
        let shared = Shared::new(1);
        let other = thread::spawn({
            let shared = Arc::clone(&shared);
            move || (1..=2).for_each(|item| shared.hand_over(item))
        });
        let mut taken = Vec::new();
        drive(&shared, &mut taken, 2);
        assert_eq!(taken, [1, 2]);
        other.join().unwrap();
    });
}

#[test]
fn what_two_shards_hand_over_at_once_is_taken() {
    every_order(|| {
        let shared = Shared::new(1);
        for item in 1..=2 {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.hand_over(item));
        }
        let mut taken = Vec::new();
        drive(&shared, &mut taken, 2);
        taken.sort_unstable();
        assert_eq!(taken, [1, 2]);
    });
}

#[test]
fn a_driver_that_moves_to_another_task_is_woken_there() {
    every_order(|| {
        let shared = Shared::new(1);
        let other = thread::spawn({
            let shared = Arc::clone(&shared);
            move || (1..=2).for_each(|item| shared.hand_over(item))
        });
        // Each has a waker of its own.
        let mut taken = Vec::new();
        drive(&shared, &mut taken, 1);
        drive(&shared, &mut taken, 2);
        assert_eq!(taken, [1, 2]);
        other.join().unwrap();
    });
}

#[test]
fn a_driver_hears_that_the_last_handle_is_gone() {
    every_order(|| {
        let shared = Shared::new(2);
        for _ in 0..2 {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.drop_handle());
        }
        until_no_handle_is_left(&shared);
    });
}

#[test]
fn who_finds_the_driver_scheduled_by_others_is_heard_all_the_same() {
    every_order(|| {
        let shared = Shared::new(1);
        // It has nothing to say, and raises the flag.
        thread::spawn({
            let shared = Arc::clone(&shared);
            move || shared.wake.schedule()
        });
        thread::spawn({
            let shared = Arc::clone(&shared);
            move || shared.drop_handle()
        });
        until_no_handle_is_left(&shared);
    });
}

/// Polls as a driver does that ends when nobody has a handle. Nothing but the flag orders what it sees.
fn until_no_handle_is_left(shared: &Shared) {
    block_on(poll_fn(|cx| {
        shared.wake.register(cx.waker());
        if shared.handles.load(Ordering::Acquire) == 0 { Poll::Ready(()) } else { Poll::Pending }
    }));
}

#[test]
fn who_is_told_of_nobody_to_wake_may_rely_on_the_next_poll() {
    every_order(|| {
        let shared = Shared::new(1);
        // Before there is a driver.
        shared.hand_over(1);
        assert!(shared.wake.whom().is_none());
        let mut taken = Vec::new();
        drive(&shared, &mut taken, 1);
        assert_eq!(taken, [1]);
    });
}
