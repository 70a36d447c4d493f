//! The thread of a store, which alone reads and writes the file: in the order in which it is told and asked, and for
//! as long as there is the store. It is started when there is something to do first.
//!
//! All changes that wait side by side are written at once: who asks for something waits for what is being written and for
//! one file more, however much a server has given to be kept.

use super::Keeper;
use super::content::Content;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// What may wait to be written: beyond it nothing is kept.
const QUEUE: usize = 256;

/// A change of what is kept, at this time; it gives nothing if there was nothing to change.
pub(super) type Change = Box<dyn FnOnce(&mut Content, Duration) -> Option<()> + Send>;

enum Job {
    Change(Change),
    Answer(Box<dyn FnOnce(&Keeper) + Send>),
}

#[derive(Debug)]
pub(super) struct Thread {
    running: Mutex<Option<Running>>,
    too_slow: AtomicBool,
}

#[derive(Debug)]
struct Running {
    queue: SyncSender<Job>,
    thread: JoinHandle<()>,
}

impl Thread {
    pub(super) fn new() -> Self {
        Thread { running: Mutex::default(), too_slow: AtomicBool::new(false) }
    }

    /// Has something changed without waiting for it, or for room.
    pub(super) fn tell(&self, keeper: &Arc<Keeper>, change: Change) {
        let Some(queue) = self.queue(keeper) else { return };
        if let Err(TrySendError::Full(_)) = queue.try_send(Job::Change(change))
            && !self.too_slow.swap(true, Ordering::Relaxed)
        {
            let file = keeper.access.path().display();
            tracing::warn!("{file}: slower than what is to be kept: some sessions are not");
        }
    }

    /// Has something done, after all that was told and asked before, and waits for what comes of it.
    pub(super) fn ask<R: Send + 'static>(
        &self,
        keeper: &Arc<Keeper>,
        job: impl FnOnce(&Keeper) -> R + Send + 'static,
    ) -> Option<R> {
        let (answer, answered) = sync_channel(1);
        let job = move |keeper: &Keeper| drop(answer.send(job(keeper)));
        self.queue(keeper)?.send(Job::Answer(Box::new(job))).ok()?;
        answered.recv().ok()
    }

    /// The way to the thread, which is started if there is none.
    fn queue(&self, keeper: &Arc<Keeper>) -> Option<SyncSender<Job>> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = &*running {
            return Some(running.queue.clone());
        }
        let (queue, jobs) = sync_channel::<Job>(QUEUE);
        let keeper_too = Arc::clone(keeper);
        let work = move || work(&keeper_too, &jobs);
        match std::thread::Builder::new().name("godwit-sessions".into()).spawn(work) {
            Ok(thread) => {
                *running = Some(Running { queue: queue.clone(), thread });
                Some(queue)
            }
            Err(error) => {
                keeper.report(format!("there is no thread for them: {error}"));
                None
            }
        }
    }
}

/// Does what is told and asked, until nobody can any more.
fn work(keeper: &Keeper, jobs: &Receiver<Job>) {
    let mut next = None;
    while let Some(job) = next.take().or_else(|| jobs.recv().ok()) {
        match job {
            Job::Answer(answer) => answer(keeper),
            Job::Change(first) => {
                let mut changes = vec![first];
                for job in jobs.try_iter().take(QUEUE) {
                    match job {
                        Job::Change(change) => changes.push(change),
                        answer @ Job::Answer(_) => {
                            next = Some(answer);
                            break;
                        }
                    }
                }
                keeper.change_all(changes);
            }
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        let running = self.running.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Running { queue, thread }) = running {
            drop(queue);
            let _ = thread.join();
        }
    }
}
