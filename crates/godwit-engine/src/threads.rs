//! Several shards: each on a thread with a runtime of its own, so that an application's tasks run on the thread whose
//! connections they use; or on runtimes that an application has already.

use crate::driver::{Driver, DriverConfig};
use crate::handle::ShardHandle;
use crate::handler::Handler;
use crate::shard::Shard;
use crate::stopped::Stopped;
use godwit_os::affinity;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use tokio::runtime;
use tokio::task::LocalSet;

/// Shards that run on threads of their own, or on runtimes of the application's.
#[derive(Debug)]
pub struct Shards<H: Handler> {
    handles: Vec<ShardHandle<H>>,
    threads: Vec<JoinHandle<Result<(), Stopped>>>,
}

impl<H: Handler> Shards<H> {
    /// A handle of each shard, in order.
    pub fn handles(&self) -> &[ShardHandle<H>] {
        &self.handles
    }

    /// Closes all connections of all shards and lets their threads end.
    pub fn close(&self, code: u64, reason: &[u8]) {
        self.handles.iter().for_each(|handle| handle.close(code, reason));
    }

    /// Waits until every thread has ended; not for shards on the application's runtimes. The handles held here are given
    /// up, so that shards whose other handles are gone as well end when they are idle.
    ///
    /// # Errors
    /// The first reason, other than having finished, for which a shard ended.
    pub fn join(self) -> Result<(), Stopped> {
        drop(self.handles);
        let mut outcome = Ok(());
        for thread in self.threads {
            let ended = thread.join().unwrap_or(Err(Stopped::Abandoned));
            outcome = outcome.and(ended);
        }
        outcome
    }
}

/// Runs `count` shards, each on a thread of its own with a single-threaded tokio runtime.
///
/// `make` is called here, once per shard in order, so that what goes wrong with sockets is known at once.
/// `application` is called on the shard's thread with a handle of it; the future it returns runs beside the
/// driver and may use `tokio::task::spawn_local`. It is dropped when the driver ends.
///
/// With `pin`, shard i runs on core `pin[i % pin.len()]`; where that is not possible it runs unpinned, and
/// a warning is logged.
///
/// # Errors
/// What `make` says, or that no thread, no runtime or no registration could be had.
pub fn run_shards<H, M, A, F>(
    count: usize,
    pin: Option<Vec<usize>>,
    config: &DriverConfig,
    mut make: M,
    application: A,
) -> io::Result<Shards<H>>
where
    H: Handler,
    M: FnMut(usize) -> io::Result<Shard<H>>,
    A: Fn(usize, ShardHandle<H>) -> F + Send + Sync + 'static,
    F: Future<Output = ()> + 'static,
{
    let application = Arc::new(application);
    let mut shards = Shards { handles: handles(count, &mut make)?, threads: Vec::new() };
    for (number, handle) in shards.handles.iter().enumerate() {
        let core = pin.as_ref().and_then(|cores| cores.get(number.checked_rem(cores.len())?).copied());
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let guard = runtime.enter();
        let driver = Driver::new(handle, config.clone())?;
        drop(guard);
        let (handle, application) = (handle.clone(), Arc::clone(&application));
        let body = move || {
            pin_to(core);
            let local = LocalSet::new();
            local.spawn_local(application(number, handle));
            // It is a task as the application's are: what the runtime waits for itself, it looks at other sources of events
            // before it goes on with.
            let driver = local.spawn_local(driver);
            local.block_on(&runtime, driver).unwrap_or(Err(Stopped::Abandoned))
        };
        shards.threads.push(thread::Builder::new().name(format!("godwit-shard-{number}")).spawn(body)?);
    }
    Ok(shards)
}

/// Runs a shard on each of `runtimes`, which have I/O and time. Several shards may have the same, and a runtime with one
/// thread keeps all that a shard does on that thread.
///
/// `make` is called here, once per shard in order, so that what goes wrong with sockets is known at once.
///
/// # Errors
/// What `make` says, or that no registration could be had.
pub fn run_shards_on<H, M>(
    runtimes: &[runtime::Handle],
    config: &DriverConfig,
    mut make: M,
) -> io::Result<Shards<H>>
where
    H: Handler,
    M: FnMut(usize) -> io::Result<Shard<H>>,
{
    let handles = handles(runtimes.len(), &mut make)?;
    for (handle, runtime) in handles.iter().zip(runtimes) {
        let driver = {
            let _entered = runtime.enter();
            Driver::new(handle, config.clone())?
        };
        runtime.spawn(async move {
            if let Err(error) = driver.await {
                tracing::error!(%error, "a shard has ended");
            }
        });
    }
    Ok(Shards { handles, threads: Vec::new() })
}

/// Makes shards, which know one another if they are of a group.
fn handles<H: Handler>(
    count: usize,
    make: &mut impl FnMut(usize) -> io::Result<Shard<H>>,
) -> io::Result<Vec<ShardHandle<H>>> {
    let mut handles = Vec::new();
    for number in 0..count {
        let shard = make(number)?;
        let group = shard.group.clone();
        let handle = ShardHandle::new(shard);
        if let Some(group) = group {
            handle.join_group(&group, number);
        }
        handles.push(handle);
    }
    Ok(handles)
}

fn pin_to(core: Option<usize>) {
    if let Some(core) = core
        && let Err(error) = affinity::pin_current_thread(core)
    {
        tracing::warn!(core, %error, "cannot pin the shard to its core");
    }
}
