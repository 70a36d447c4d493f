//! A session store that outlives the process: one file, which any number of processes share.
//!
//! Every call opens the file ([`access`]), and those that change anything exchange it as a whole: the new state is
//! written beside it and takes its name in one step. A lock on a second file (`flock`) is held meanwhile, so that a
//! ticket or token that one process takes is gone from the file before anybody uses it, and no other process finds
//! it. What the file says is in [`format`], what is kept of it and how much in [`content`].
//!
//! Connections have something to keep while their shard is locked, and a disk may take its time: so all of that is done by
//! a thread of the store's own ([`thread`]), and only what is asked for, which is before a connection begins, is waited
//! for.
//!
//! Nothing here fails: a file that cannot be used holds nothing, and what cannot be written is not kept. Then there is
//! one line in the log, and in [`FileSessionStore::problem`]. A ticket that could not be removed from the file is not
//! used.

mod access;
mod content;
mod format;
#[cfg(test)]
mod tests;
mod thread;

use super::{Remembered, SessionKey, SessionStore, SessionTicket};
use access::Access;
use bytes::Bytes;
use content::Content;
use rustls::NamedGroup;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use thread::{Change, Thread};

/// Servers of which is known here what is remembered of them.
const MOST_KNOWN: usize = 256;

/// Keeps sessions in a file, for at most 256 servers (in one network each) and in at most 2 MiB; those not used for the
/// longest time go first. Give it to [`crate::ClientConfigBuilder::sessions`].
///
/// **Whoever can read the file can read and change connections that are made with its tickets**, so it is its owner's
/// alone (mode 0600), and its folder should be, too. A file of any other kind is left as it is, and nothing is kept.
///
/// What is kept reads and writes the file: for programs that make some connections, such as command lines, and applications
/// that start again. A thread does so, for which nobody waits who keeps something: what there is too much of at a time is
/// not kept. Who asks waits for the thread, and it for another process, by 100 ms at most. Whoever has the last of the
/// store waits until all is written, as [`FileSessionStore::flush`] does. What survives a crash of the machine is what the
/// file system had written.
#[derive(Debug)]
pub struct FileSessionStore {
    keeper: Arc<Keeper>,
    thread: Thread,
    /// What is changed has to be known, and the file is not read for that.
    known: Mutex<BTreeMap<SessionKey, Remembered>>,
}

/// Who reads and writes the file.
#[derive(Debug)]
struct Keeper {
    access: Access,
    problem: Mutex<Option<String>>,
}

impl FileSessionStore {
    /// The store in this file, which need not exist. Beside it there will be another whose name has `.lock` at the
    /// end.
    pub fn open(path: impl AsRef<Path>) -> Self {
        let keeper = Arc::new(Keeper { access: Access::new(path.as_ref()), problem: Mutex::default() });
        if let Err(problem) = keeper.access.check() {
            keeper.report(problem);
        }
        FileSessionStore { thread: Thread::new(), keeper, known: Mutex::default() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.keeper.access.path()
    }

    /// What was wrong with the file at first, in one line; while it is, nothing is kept.
    pub fn problem(&self) -> Option<String> {
        self.keeper.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until what was given to be kept is in the file, or is known not to get there.
    pub fn flush(&self) {
        self.thread.ask(&self.keeper, |_| ());
    }

    /// Has something kept, without waiting.
    fn tell(&self, change: impl FnOnce(&mut Content, Duration) -> Option<()> + Send + 'static) {
        self.thread.tell(&self.keeper, Box::new(change));
    }
}

impl Keeper {
    /// Looks at what there is.
    fn look<R>(&self, look: impl FnOnce(&Content) -> Option<R>) -> Option<R> {
        let content = self.access.read().map_err(|problem| self.report(problem)).ok()?;
        look(&content)
    }

    /// Changes what there is; what `change` gives is given if the change has been written.
    fn change<R>(&self, change: impl FnOnce(&mut Content, Duration) -> Option<R>) -> Option<R> {
        let now = now();
        let changed = self.access.change(|content| {
            let given = change(content, now)?;
            content.tidy(now);
            Some(given)
        });
        changed.map_err(|problem| self.report(problem)).ok()?
    }

    /// Changes all of that at once.
    fn change_all(&self, changes: Vec<Change>) {
        self.change(|content, now| {
            // Each of them, whether others change anything or not.
            let changed = changes.into_iter().filter_map(|change| change(content, now)).count();
            (changed > 0).then_some(())
        });
    }

    fn report(&self, problem: String) {
        let mut known = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none() {
            tracing::warn!("no sessions are kept: {problem}");
            *known = Some(problem);
        }
    }
}

impl SessionStore for FileSessionStore {
    fn is_persistent(&self) -> bool {
        true
    }

    fn put_ticket(&self, key: &SessionKey, ticket: SessionTicket) {
        let key = key.clone();
        self.tell(move |content, now| content.put_ticket(&key, &ticket, now));
    }

    fn take_ticket(&self, key: &SessionKey, early: bool) -> Option<SessionTicket> {
        let key = key.clone();
        self.thread.ask(&self.keeper, move |keeper| {
            keeper.look(|content| content.has_ticket(&key).then_some(()))?;
            keeper.change(|content, now| content.take_ticket(&key, early, now))
        })?
    }

    fn has_ticket(&self, key: &SessionKey) -> bool {
        let key = key.clone();
        let look =
            move |keeper: &Keeper| keeper.look(|content| content.has_ticket(&key).then_some(())).is_some();
        self.thread.ask(&self.keeper, look).unwrap_or(false)
    }

    fn put_token(&self, key: &SessionKey, token: Bytes) {
        let key = key.clone();
        self.tell(move |content, now| content.put_token(&key, token, now));
    }

    fn take_token(&self, key: &SessionKey) -> Option<Bytes> {
        let key = key.clone();
        self.thread.ask(&self.keeper, move |keeper| {
            keeper.look(|content| content.has_token(&key).then_some(()))?;
            keeper.change(|content, now| content.take_token(&key, now))
        })?
    }

    fn remember(&self, key: &SessionKey, change: &mut dyn FnMut(&mut Remembered)) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known.get(key).cloned().unwrap_or_default();
        let mut after = before.clone();
        change(&mut after);
        if after == before {
            return;
        }
        note(&mut known, key, after.clone());
        drop(known);
        let key = key.clone();
        self.tell(move |content, now| content.remember(&key, &mut |kept| bring(kept, &before, &after), now));
    }

    fn remembered(&self, key: &SessionKey) -> Option<Remembered> {
        let asked = key.clone();
        let found =
            self.thread.ask(&self.keeper, move |keeper| keeper.look(|content| content.remembered(&asked)))?;
        if let Some(remembered) = &found {
            note(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner), key, remembered.clone());
        }
        found
    }

    fn put_group(&self, key: &SessionKey, group: NamedGroup) {
        let key = key.clone();
        self.tell(move |content, now| {
            let news = content.group(&key) != Some(group);
            news.then(|| content.put_group(&key, group, now))?
        });
    }

    fn group(&self, key: &SessionKey) -> Option<NamedGroup> {
        let key = key.clone();
        self.thread.ask(&self.keeper, move |keeper| keeper.look(|content| content.group(&key)))?
    }
}

fn note(known: &mut BTreeMap<SessionKey, Remembered>, key: &SessionKey, remembered: Remembered) {
    if known.len() >= MOST_KNOWN && !known.contains_key(key) {
        known.pop_first();
    }
    known.insert(key.clone(), remembered);
}

/// Brings what has changed, and leaves the rest as others have made it.
fn bring(kept: &mut Remembered, before: &Remembered, after: &Remembered) {
    fn bring_one<T: Clone + PartialEq>(kept: &mut T, before: &T, after: &T) {
        if before != after {
            kept.clone_from(after);
        }
    }
    bring_one(&mut kept.rtt, &before.rtt, &after.rtt);
    bring_one(&mut kept.loss, &before.loss, &after.loss);
    bring_one(&mut kept.variation, &before.variation, &after.variation);
    bring_one(&mut kept.window, &before.window, &after.window);
    bring_one(&mut kept.rate, &before.rate, &after.rate);
    bring_one(&mut kept.application, &before.application, &after.application);
}

/// Since the Unix epoch.
#[expect(clippy::disallowed_methods, reason = "other processes must agree on when a ticket expires")]
fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// `path` with something at its end.
fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}
