//! The threads that answer requests, one for each core: shards.
//!
//! Each has a runtime of its own, on which its connections live from the first byte to the last, with whatever answers
//! them. One shard alone is no thread of its own: it is the runtime on which the server was bound. Where there are
//! several, that runtime answers nobody; it accepts TCP connections and hands them out ([`super::spread`]), heeds signals
//! and serves figures, whatever the shards are busy with.

use std::io;
use std::num::NonZeroU8;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;

use godwit_os::processor::ThreadClock;
use godwit_os::shard;
use godwit_text::plain_error;
use tokio::runtime::{Builder, Handle, RuntimeFlavor};
use tokio::sync::oneshot;

use crate::FrontError;

/// Threads that wait for files and the like, of all shards together; but [`FEWEST_BLOCKING`] for each.
const BLOCKING: usize = 512;
const FEWEST_BLOCKING: usize = 16;
/// The stack of a shard, of which only what is used takes memory. The environment (`RUST_MIN_STACK`) has no say: it is about
/// threads that do less.
const STACK: usize = 4 << 20;

/// The shards. Clones are the same; with the last one they end, and what they do is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Shards(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    runtimes: Vec<Handle>,
    clocks: Vec<Option<ThreadClock>>,
    /// Dropped, they end their threads.
    _ends: Vec<oneshot::Sender<()>>,
}

/// A shard's runtime and clock, and what ends it when it is dropped.
type Started = (Handle, Option<ThreadClock>, oneshot::Sender<()>);

impl Shards {
    /// Starts so many. To be called within a tokio runtime.
    ///
    /// # Errors
    /// If there is no runtime, or no thread is to be had.
    pub(crate) fn start(count: NonZeroU8) -> Result<Shards, FrontError> {
        let own = Handle::try_current().map_err(|error| FrontError::new(error.to_string()))?;
        if count == NonZeroU8::MIN {
            let is_one_thread = own.runtime_flavor() == RuntimeFlavor::CurrentThread;
            let clock = is_one_thread.then(ThreadClock::of_this_thread).flatten();
            return Ok(Shards(Arc::new(Inner {
                runtimes: vec![own],
                clocks: vec![clock],
                _ends: Vec::new(),
            })));
        }
        let blocking = (BLOCKING / usize::from(count.get())).max(FEWEST_BLOCKING);
        let mut inner = Inner { runtimes: Vec::new(), clocks: Vec::new(), _ends: Vec::new() };
        for number in 0..count.get() {
            let (runtime, clock, end) = start(number, blocking, STACK).map_err(|error| {
                let problem = plain_error(&error);
                FrontError::new(format!(
                    "cannot start {count} threads: {problem}; choose fewer with --shards, or `shards` in the configuration"
                ))
            })?;
            inner.runtimes.push(runtime);
            inner.clocks.push(clock);
            inner._ends.push(end);
        }
        Ok(Shards(Arc::new(inner)))
    }

    /// The runtime of each.
    pub(crate) fn runtimes(&self) -> &[Handle] {
        &self.0.runtimes
    }

    /// What tells how much processor time each has used; `None` where that is not known.
    pub(crate) fn clocks(&self) -> &[Option<ThreadClock>] {
        &self.0.clocks
    }

    /// Runtimes for `count` shards of an endpoint, which may be as many as an older process has: each of them in turn.
    pub(crate) fn for_endpoint(&self, count: usize) -> Vec<Handle> {
        self.0.runtimes.iter().cycle().take(count).cloned().collect()
    }

    /// Ready when each of them has done what it had to do at the time of the call.
    pub(crate) async fn answer(&self) {
        for runtime in &self.0.runtimes {
            let _ = runtime.spawn(async {}).await;
        }
    }
}

/// Starts one. Its runtime is made on its own thread: one that there is already, and no thread for it, could not be dropped
/// on the caller's, which has another.
fn start(number: u8, blocking: usize, stack: usize) -> io::Result<Started> {
    let (end, ended) = oneshot::channel::<()>();
    let (tell, told) = mpsc::sync_channel(1);
    let body = move || {
        shard::enter(number);
        let runtime = match Builder::new_current_thread().enable_all().max_blocking_threads(blocking).build()
        {
            Ok(runtime) => runtime,
            Err(error) => return drop(tell.send(Err(error))),
        };
        let _ = tell.send(Ok((runtime.handle().clone(), ThreadClock::of_this_thread())));
        let _ = runtime.block_on(ended);
        // Nobody waits for a disk that does not answer.
        runtime.shutdown_background();
    };
    thread::Builder::new().name(format!("shard-{number}")).stack_size(stack).spawn(body)?;
    let (runtime, clock) = told.recv().map_err(io::Error::other)??;
    Ok((runtime, clock, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_shard_is_the_runtime_that_there_is_and_several_have_threads() {
        let of = |runtime: &Handle| runtime.spawn(async { (thread::current().id(), shard::current()) });
        let one = Shards::start(NonZeroU8::MIN).unwrap();
        assert_eq!(of(&one.runtimes()[0]).await.unwrap(), (thread::current().id(), None));
        let three = Shards::start(NonZeroU8::new(3).unwrap()).unwrap();
        let mut seen = Vec::new();
        for (number, runtime) in (0..).zip(three.runtimes()) {
            let (thread, shard) = of(runtime).await.unwrap();
            assert_eq!(shard, Some(number));
            seen.push(thread);
        }
        assert!(!seen.contains(&thread::current().id()));
        seen.dedup();
        assert_eq!(seen.len(), 3);
        let five: Vec<_> = three.for_endpoint(5).iter().map(Handle::id).collect();
        assert_eq!((five[0], five[1], five.len()), (five[3], five[4], 5));
        three.answer().await;
        let task = three.runtimes()[1].spawn(std::future::pending::<()>());
        drop(three);
        assert!(task.await.unwrap_err().is_cancelled(), "with the last of them they end");
    }

    #[tokio::test]
    async fn without_a_thread_for_it_a_shard_fails_with_an_error() {
        assert!(start(0, 1, usize::MAX / 4).is_err(), "so much stack there is not");
        assert!(start(0, 1, STACK).is_ok());
    }
}
