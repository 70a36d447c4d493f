//! Threads that do the work: those that the application asks for, or those of the process.

use crate::abi;
use crate::border::call;
use crate::failure::Failure;
use crate::given;
use crate::handles::{self, Kind, Thing};
use crate::signals::keep_out_sigpipe;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use tokio::runtime::{Builder, Handle};

/// Threads of the process, where nobody asked for others, at most.
const USUAL_THREADS: usize = 4;

/// Threads of the process, once somebody needed them. They stay.
static OF_PROCESS: Mutex<OfProcess> = Mutex::new(OfProcess(None));

/// Threads with the process whose they are: a child that was forked has what says that there are threads, but not them.
struct OfProcess(Option<(u32, tokio::runtime::Runtime)>);

impl OfProcess {
    /// Those of this process, which are started if need be.
    fn of(&mut self, process: u32) -> Result<Handle, Failure> {
        let threads = match self.0.take() {
            Some((owner, threads)) if owner == process => threads,
            before => {
                let threads = start(0)?;
                // Whoever dropped the parent's would wait for threads that are not there.
                std::mem::forget(before);
                threads
            }
        };
        Ok(self.0.insert((process, threads)).1.handle().clone())
    }
}

/// Threads that do the work.
pub(crate) struct Runtime {
    threads: Mutex<Option<tokio::runtime::Runtime>>,
    handle: Handle,
}

impl Thing for Runtime {
    const KIND: Kind = Kind::Runtime;

    /// Ends everything that runs on it.
    fn close(&self) {
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(threads) = threads {
            threads.shutdown_background();
        }
    }

    fn set_tag(&self, _: u64) -> bool {
        false
    }
}

fn start(threads: u32) -> Result<tokio::runtime::Runtime, Failure> {
    let threads = match threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from).min(USUAL_THREADS),
        threads @ 1..=256 => threads as usize,
        threads => return Err(Failure::argument(format!("{threads} threads, expected 256 at most"))),
    };
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(threads).thread_name("godwit").on_thread_start(keep_out_sigpipe).enable_all();
    builder.build().map_err(|error| Failure::system("no threads are to be had", &error))
}

/// The threads that a handle stands for; those of the process for 0.
pub(crate) fn find(runtime: u64) -> Result<Handle, Failure> {
    if runtime != 0 {
        return Ok(handles::get::<Runtime>(runtime)?.handle.clone());
    }
    OF_PROCESS.lock().unwrap_or_else(PoisonError::into_inner).of(std::process::id())
}

/// Has the threads do this, and waits for it: from any thread, also one that has a runtime of its own.
pub(crate) fn run<T: Send + 'static>(
    handle: &Handle,
    work: impl Future<Output = Result<T, Failure>> + Send + 'static,
) -> Result<T, Failure> {
    let (tell, told) = mpsc::sync_channel(1);
    handle.spawn(async move {
        // It is heard, as long as this thread is in here.
        let _ = tell.send(work.await);
    });
    told.recv().unwrap_or_else(|_| Err(Failure::new(abi::ERROR_CLOSED, "the runtime was closed")))
}

// SAFETY: nothing else has this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn godwit_runtime_create(
    options: *const abi::RuntimeOptions,
    runtime: *mut u64,
    error: *mut abi::Error,
) -> i32 {
    let act = || {
        given::place(runtime, "the place for the runtime's handle")?;
        // SAFETY: the caller's promise.
        let options = unsafe { given::take_or_default(options) }?;
        given::flags(options.flags, 0, "a runtime")?;
        let threads = start(options.threads)?;
        let handle = threads.handle().clone();
        let (made, mut number) = (Arc::new(Runtime { threads: Mutex::new(Some(threads)), handle }), 0);
        handles::insert(|handle| {
            number = handle;
            made
        })?;
        // SAFETY: the caller's promise.
        unsafe { given::put(runtime, number, "the place for the runtime's handle") }
    };
    // SAFETY: the caller's promise.
    unsafe { call(error, act) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_has_threads_of_its_own() {
        let mut threads = OfProcess(None);
        let id = |handle: &Handle| handle.id();
        let (first, again) = (threads.of(1).unwrap(), threads.of(1).unwrap());
        assert_eq!(id(&first), id(&again));
        let of_child = threads.of(2).unwrap();
        assert_ne!(id(&first), id(&of_child));
        assert_eq!(run(&of_child, async { Ok(7) }).unwrap(), 7);
    }
}
