//! Starting the workers.

use super::defence;
use super::delivery;
use super::pool::{POOL, Pool, Worker};
use crate::abi::Status;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

/// Only one thread makes the pool.
static STARTING: Mutex<()> = Mutex::new(());

/// Starts the workers, unless they have been.
///
/// # Errors
/// [`Status::OUT_OF_MEMORY`] if the system has no more threads or descriptors.
pub(crate) fn start() -> Result<&'static Pool, Status> {
    let _starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(pool) = POOL.get() {
        return Ok(pool);
    }
    let (pool, drivers) = Pool::new().map_err(|_| Status::OUT_OF_MEMORY)?;
    let pool = POOL.get_or_init(|| pool);
    let look = |worker: &Worker| worker.visit(|cx, state| state.look_at_defence(cx));
    defence::note(pool.workers().iter().filter_map(look));
    for (worker, driver) in pool.workers().iter().zip(drivers) {
        let body = move || {
            worker.take_thread();
            let run = AssertUnwindSafe(|| driver.run(|| delivery::deliver(worker)));
            let ended = catch_unwind(run);
            // Whoever waits for something of this thread would wait for ever.
            eprintln!("godwit: a worker's thread has ended, and the program with it: {ended:?}");
            std::process::abort();
        };
        let name = format!("godwit-{}", worker.number());
        std::thread::Builder::new().name(name).spawn(body).map_err(|_| Status::OUT_OF_MEMORY)?;
    }
    Ok(pool)
}
