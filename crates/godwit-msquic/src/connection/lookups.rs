//! Lookups of names, which may take as long as a server of names does not answer.
//!
//! Each has a thread of its own as long as there are few. Beyond that they wait for one another: thousands of connections that
//! are started at once by name do not make thousands of threads. A thread ends when nothing waits.

use std::collections::VecDeque;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Builder;

/// So many may be under way at once.
const MOST: usize = 64;

/// Something that waits for a server of names, and is done with what it answers.
type Lookup = Box<dyn FnOnce() + Send>;

/// Those under way and those that wait.
struct Lookups {
    threads: usize,
    waiting: VecDeque<Lookup>,
}

static LOOKUPS: Mutex<Lookups> = Mutex::new(Lookups { threads: 0, waiting: VecDeque::new() });

fn lookups() -> MutexGuard<'static, Lookups> {
    LOOKUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has it done on another thread.
///
/// # Errors
/// If the system has no thread for it, and there is none that it could wait for.
pub(super) fn begin(lookup: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mut all = lookups();
    all.waiting.push_back(Box::new(lookup));
    if all.threads == MOST {
        return Ok(());
    }
    match Builder::new().name("godwit-resolve".into()).spawn(work) {
        Ok(_) => all.threads = all.threads.saturating_add(1),
        Err(error) if all.threads == 0 => {
            all.waiting.pop_back();
            return Err(error);
        }
        Err(_) => {}
    }
    Ok(())
}

/// Does what waits, until nothing does. Whatever becomes of one lookup, the next is begun.
fn work() {
    while let Some(lookup) = next() {
        let _ = std::panic::catch_unwind(AssertUnwindSafe(lookup));
    }
}

/// What has waited longest. Without any, the thread that asks counts no more.
fn next() -> Option<Lookup> {
    let mut all = lookups();
    let next = all.waiting.pop_front();
    if next.is_none() {
        all.threads = all.threads.saturating_sub(1);
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::sync::{Arc, Barrier};

    #[test]
    fn more_than_there_may_be_threads_are_all_done() {
        let (done, all_done) = channel();
        let answer = Arc::new(Barrier::new(MOST + 1));
        for number in 0..3 * MOST {
            let (done, answer) = (done.clone(), Arc::clone(&answer));
            let lookup = move || {
                if number < MOST {
                    answer.wait();
                }
                done.send(number).unwrap();
            };
            begin(lookup).unwrap();
        }
        // As many as may be are under way, and the others wait for them.
        assert_eq!(lookups().threads, MOST);
        assert!(all_done.try_recv().is_err());
        answer.wait();
        let mut numbers: Vec<_> = all_done.iter().take(3 * MOST).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, Vec::from_iter(0..3 * MOST));
    }
}
