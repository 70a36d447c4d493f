//! A session store that outlives the process: one file, which any number of processes share.
//!
//! Every call opens the file ([`access`]), and those that change anything exchange it as a whole: the new state is
//! written beside it and takes its name in one step. A lock on a second file (`flock`) is held meanwhile, so that a
//! ticket or token that one process takes is gone from the file before anybody uses it, and no other process finds
//! it. What the file says is in [`format`], what is kept of it and how much in [`content`].
//!
//! Nothing here fails: a file that cannot be used holds nothing, and what cannot be written is not kept. Then there is
//! one line in the log, and in [`FileSessionStore::problem`]. A ticket that could not be removed from the file is not
//! used.

mod access;
mod content;
mod format;
#[cfg(test)]
mod tests;

use super::{Remembered, SessionKey, SessionStore, SessionTicket};
use access::Access;
use bytes::Bytes;
use content::Content;
use rustls::NamedGroup;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Keeps sessions in a file, for at most 256 servers (in one network each) and in at most 2 MiB; those not used for the
/// longest time go first. Give it to [`crate::ClientConfigBuilder::sessions`].
///
/// **Whoever can read the file can read and change connections that are made with its tickets**, so it is its owner's
/// alone (mode 0600), and its folder should be, too. A file of any other kind is left as it is, and nothing is kept.
///
/// Every call reads the file, and most write it: for programs that make some connections, such as command lines, and
/// applications that start again. Another process is waited for by 100 ms at most. What survives a crash of the
/// machine is what the file system had written.
#[derive(Debug)]
pub struct FileSessionStore {
    access: Access,
    problem: Mutex<Option<String>>,
}

impl FileSessionStore {
    /// The store in this file, which need not exist. Beside it there will be another whose name has `.lock` at the
    /// end.
    pub fn open(path: impl AsRef<Path>) -> Self {
        let store = FileSessionStore { access: Access::new(path.as_ref()), problem: Mutex::default() };
        if let Err(problem) = store.access.check() {
            store.report(problem);
        }
        store
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.access.path()
    }

    /// What was wrong with the file at first, in one line; while it is, nothing is kept.
    pub fn problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

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
        self.change(|content, now| content.put_ticket(key, &ticket, now));
    }

    fn take_ticket(&self, key: &SessionKey, early: bool) -> Option<SessionTicket> {
        if !self.has_ticket(key) {
            return None;
        }
        self.change(|content, now| content.take_ticket(key, early, now))
    }

    fn has_ticket(&self, key: &SessionKey) -> bool {
        self.look(|content| content.has_ticket(key).then_some(())).is_some()
    }

    fn put_token(&self, key: &SessionKey, token: Bytes) {
        self.change(|content, now| content.put_token(key, token, now));
    }

    fn take_token(&self, key: &SessionKey) -> Option<Bytes> {
        self.look(|content| content.has_token(key).then_some(()))?;
        self.change(|content, now| content.take_token(key, now))
    }

    fn remember(&self, key: &SessionKey, change: &mut dyn FnMut(&mut Remembered)) {
        self.change(|content, now| content.remember(key, change, now));
    }

    fn remembered(&self, key: &SessionKey) -> Option<Remembered> {
        self.look(|content| content.remembered(key))
    }

    fn put_group(&self, key: &SessionKey, group: NamedGroup) {
        if self.group(key) != Some(group) {
            self.change(|content, now| content.put_group(key, group, now));
        }
    }

    fn group(&self, key: &SessionKey) -> Option<NamedGroup> {
        self.look(|content| content.group(key))
    }
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
