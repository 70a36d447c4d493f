//! The queue: its descriptor, waits and wakes.

use super::rig::*;
use crate::abi::{self, Plain};
use crate::handles::{godwit_close, godwit_set_tag};
use crate::queue::*;
use godwit_os::readiness::{Interest, wait_for};
use std::os::fd::BorrowedFd;
use std::time::Duration;

fn is_readable(desk: &Desk) -> bool {
    let mut descriptor = -1;
    ok(|error| unsafe { godwit_queue_descriptor(desk.queue, &mut descriptor, error) });
    // SAFETY: it is the queue's, which stays.
    let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let mut ready = Vec::new();
    wait_for([Interest { descriptor, writable: false }], Some(Duration::ZERO), &mut ready).unwrap();
    ready[0].readable
}

#[test]
fn it_is_readable_while_there_is_something_to_take() {
    let desk = Desk::new();
    assert!(!is_readable(&desk));
    assert!(desk.try_keep(0).is_none());
    ok(|error| unsafe { godwit_queue_wake(desk.queue, error) });
    assert!(is_readable(&desk));
    assert!(desk.try_keep(-1).is_none(), "the wake ends a wait without limit");
    assert!(!is_readable(&desk));
    assert!(desk.try_keep(1).is_none(), "the time is over");
}

#[test]
fn what_waits_in_it_is_taken_in_order_and_by_as_much_as_there_is_room() {
    let http = Http::new(0);
    let exchange = http.ask("/one", 1, |_| {});
    let request = http.back.until(abi::EVENT_REQUEST);
    assert_eq!((request.tag, request.parent, &*request.text), (77, http.server, "/one"));
    ok(|error| unsafe { godwit_set_tag(request.handle, 78, error) });
    ok(|error| unsafe { godwit_set_tag(exchange, 2, error) });
    respond(request.handle, |_| {});
    let finished = http.back.until(abi::EVENT_FINISHED);
    assert_eq!((finished.handle, finished.tag), (request.handle, 78));
    while !is_readable(&http.front) {
        std::thread::yield_now();
    }
    let mut kinds = Vec::new();
    while kinds.last() != Some(&abi::EVENT_END) {
        let (mut events, mut count) = ([abi::Event::zeroed(); 4], 0);
        let place = &raw mut events;
        ok(|error| unsafe { godwit_queue_wait(http.front.queue, place.cast(), 4, -1, &mut count, error) });
        for event in &mut events[..count as usize] {
            assert_eq!((event.handle, event.tag), (exchange, 2));
            kinds.push(event.kind);
            release(event);
        }
    }
    assert_eq!(kinds, [abi::EVENT_RESPONSE, abi::EVENT_END]);
    assert!(!is_readable(&http.front));
}

#[test]
fn a_wait_ends_when_the_queue_is_closed() {
    let mut queue = 0;
    ok(|error| unsafe { godwit_queue_create(std::ptr::null(), &mut queue, error) });
    let waiting = std::thread::spawn(move || {
        let (mut event, mut count) = (abi::Event::zeroed(), 7);
        let status = unsafe { godwit_queue_wait(queue, &mut event, 1, -1, &mut count, std::ptr::null_mut()) };
        (status, count)
    });
    // Whether it waits already or does so only afterwards, it ends.
    std::thread::yield_now();
    ok(|error| unsafe { godwit_close(queue, error) });
    let (status, _) = waiting.join().unwrap();
    assert_eq!(status, abi::ERROR_HANDLE);
}
