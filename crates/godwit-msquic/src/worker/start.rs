//! Starting the workers, each on a thread of its own.

use super::current;
use super::defence;
use super::delivery;
use super::pool::{Pool, Worker};
use super::state::State;
use crate::abi::Status;
use godwit_engine::ThreadDriver;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// The workers with threads of their own, once there are.
static WITH_THREADS: OnceLock<&'static Pool> = OnceLock::new();

/// What a thread begins with, when all threads are there.
type Begin = (&'static Worker, ThreadDriver<State>);

/// Starts the workers, unless there are some, and has something opened that they are for. Nobody takes them away in between.
///
/// # Errors
/// [`Status::OUT_OF_MEMORY`] if the system has no more threads or descriptors. Then nothing is left of the attempt.
pub(crate) fn start<R>(open: impl FnOnce() -> R) -> Result<R, Status> {
    let _changing = current::changing();
    let pool = match current::pool().or(WITH_THREADS.get().copied()) {
        Some(pool) => pool,
        None => with_threads().map_err(|_| Status::OUT_OF_MEMORY)?,
    };
    current::set(Some(pool));
    current::on_started();
    Ok(open())
}

/// Makes workers with threads.
fn with_threads() -> io::Result<&'static Pool> {
    let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let pool = Pool::new(count.min(Pool::MOST_WORKERS));
    let drivers: io::Result<Vec<_>> =
        pool.workers().iter().map(|worker| ThreadDriver::new(&worker.shard)).collect();
    let drivers = drivers?;
    let threads = spawn_all(pool.workers().len(), |number, body| {
        std::thread::Builder::new().name(format!("godwit-{number}")).spawn(body)
    })?;
    let pool: &'static Pool = Box::leak(Box::new(pool));
    let _ = WITH_THREADS.set(pool);
    defence::note(pool.workers().iter().filter_map(Worker::begin));
    for ((worker, driver), thread) in pool.workers().iter().zip(drivers).zip(threads) {
        let _ = thread.send((worker, driver));
    }
    Ok(pool)
}

/// Starts so many threads, which wait for what they are to begin with. If one cannot be started, the others end.
fn spawn_all<E>(
    count: usize,
    mut spawn: impl FnMut(usize, Box<dyn FnOnce() + Send>) -> Result<JoinHandle<()>, E>,
) -> Result<Vec<Sender<Begin>>, E> {
    let mut begun = Vec::new();
    for number in 0..count {
        let (begin, to_begin) = channel();
        match spawn(number, Box::new(move || wait_and_work(&to_begin))) {
            Ok(thread) => begun.push((begin, thread)),
            Err(error) => {
                for (begin, thread) in begun {
                    drop(begin);
                    let _ = thread.join();
                }
                return Err(error);
            }
        }
    }
    Ok(begun.into_iter().map(|(begin, _)| begin).collect())
}

/// A worker's thread. It ends only if there is nothing to begin with.
fn wait_and_work(to_begin: &Receiver<Begin>) {
    let Ok((worker, driver)) = to_begin.recv() else { return };
    let run = AssertUnwindSafe(|| worker.as_current(|| driver.run(|| delivery::deliver(worker))));
    let ended = catch_unwind(run);
    // Whoever waits for something of this thread would wait for ever.
    eprintln!("godwit: a worker's thread has ended, and the program with it: {ended:?}");
    std::process::abort();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn where_one_thread_cannot_be_had_there_are_none() {
        let living = Arc::new(AtomicUsize::new(0));
        let outcome = spawn_all(4, |number, body| {
            if number == 3 {
                return Err("no more threads");
            }
            living.fetch_add(1, Ordering::Relaxed);
            let living = Arc::clone(&living);
            Ok(std::thread::spawn(move || {
                body();
                living.fetch_sub(1, Ordering::Relaxed);
            }))
        });
        assert_eq!(outcome.err(), Some("no more threads"));
        assert_eq!(living.load(Ordering::Relaxed), 0, "those that were started have ended");
    }
}
