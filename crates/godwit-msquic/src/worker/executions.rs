//! The application's own threads, each of which polls a worker, and waits in its own event loop meanwhile.
//!
//! All that a worker waits for is one descriptor, which is put into the application's queue, an instance of epoll. The data of its
//! events is the address of an entry with a function to call: what is ready is found out by the next poll, so that it has nothing
//! to do.

use super::current;
use super::defence;
use super::polled::Polled;
use super::pool::{Pool, Worker};
use crate::abi::{Handle, Status, SubmissionEntry};
use crate::handle::Kind;
use crate::objects::Table;
use crate::registration::are_any_left;
use godwit_engine::PolledDriver;
use godwit_os::readiness_set::add_to;
use std::ffi::c_void;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

/// One of the application's threads, as it knows it.
pub(crate) struct Execution {
    worker: &'static Worker,
}

/// How often a worker is polled at most, until it has told all peers that their connections end.
const MOST_LAST_POLLS: usize = 64;

static EXECUTIONS: Table<Execution> = Table::new(Kind::Execution);

unsafe extern "C" fn nothing_to_do(_event: *mut c_void) {}

/// Makes as many workers as there are queues, which are waited for there.
///
/// # Errors
/// [`Status::INVALID_STATE`] if a registration has been opened, [`Status::OUT_OF_MEMORY`] if there can be no such workers, or
/// what was given is no queue.
pub(crate) fn create(queues: &[BorrowedFd<'_>]) -> Result<Vec<Handle>, Status> {
    let _changing = current::changing();
    if current::has_started() {
        return Err(Status::INVALID_STATE);
    }
    if queues.len() > Pool::MOST_WORKERS {
        return Err(Status::OUT_OF_MEMORY);
    }
    let pool = Pool::new(queues.len());
    let mut prepared = Vec::new();
    for (worker, queue) in pool.workers().iter().zip(queues) {
        prepared.push(prepare(worker, *queue).map_err(|_| Status::OUT_OF_MEMORY)?);
    }
    end_present();
    let pool: &'static Pool = Box::leak(Box::new(pool));
    current::set(Some(pool));
    defence::note(pool.workers().iter().filter_map(Worker::begin));
    let made = pool.workers().iter().zip(prepared).map(|(worker, driver)| {
        let _ = worker.polled.set(Polled::new(driver));
        EXECUTIONS.insert(Arc::new(Execution { worker })).ok_or(Status::OUT_OF_MEMORY)
    });
    made.collect()
}

/// What is needed to poll a worker, whose descriptor is in the queue then.
fn prepare(worker: &Worker, queue: BorrowedFd<'_>) -> std::io::Result<PolledDriver<super::State>> {
    let driver = PolledDriver::new(&worker.shard)?;
    let descriptor = driver.as_fd().as_raw_fd();
    // Events of the application's queue point there, which it may look at whenever it likes: like the workers it stays for ever.
    let entry = Box::leak(Box::new(SubmissionEntry { descriptor, completion: Some(nothing_to_do) }));
    add_to(queue, driver.as_fd(), (&raw const *entry).expose_provenance() as u64)?;
    Ok(driver)
}

/// The application takes its threads away. As long as a registration is left, or what was opened in one, it cannot.
pub(crate) fn delete() {
    let _changing = current::changing();
    if !are_any_left() {
        end_present();
    }
}

/// The workers that are polled, if there are any, are there no more.
fn end_present() {
    let Some(pool) = current::pool().filter(|pool| pool.is_polled()) else { return };
    current::set(None);
    current::on_ended();
    EXECUTIONS.clear();
    for worker in pool.workers() {
        worker.close_all_sockets();
        defence::note(worker.visit(|_, state| state.end_defence()));
        worker.empty();
    }
}

impl Worker {
    /// Ends what is left of connections, and closes all sockets: also those of connections that are closing or draining, for
    /// nobody looks at them again.
    fn close_all_sockets(&self) {
        let Some(mut driver) = self.polled.get().and_then(Polled::take) else { return };
        self.end_all_connections();
        // Peers are told.
        for _ in 0..MOST_LAST_POLLS {
            if !matches!(driver.poll(&mut || false), Ok(Some(Duration::ZERO))) {
                break;
            }
        }
        // It has the sockets open as well.
        drop(driver);
        self.shard.give_up();
    }
}

/// Does what there is to do for one of the threads. How many milliseconds may be waited then.
pub(crate) fn poll(execution: Handle) -> u32 {
    EXECUTIONS.get(execution).map_or(u32::MAX, |execution| execution.worker.poll())
}
