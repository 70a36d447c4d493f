//! Registrations: what an application opens first, and everything else in.

use crate::abi::ConnectionShutdownFlags;
use crate::context::Context;
use crate::handle::Kind;
use crate::objects::Table;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// All registrations.
pub(crate) static REGISTRATIONS: Table<Registration> = Table::new(Kind::Registration);

/// How many are left: with a handle, or with children.
static LEFT: AtomicUsize = AtomicUsize::new(0);

/// Whether any registration is left. One whose handle is closed is, as long as it has children.
pub(crate) fn are_any_left() -> bool {
    LEFT.load(Ordering::Acquire) > 0
}

/// Whatever is opened in it counts as its child, until it is closed and nothing of it is left.
#[derive(Debug, Default)]
pub(crate) struct Registration {
    state: Mutex<Children>,
    context: Mutex<Option<Context>>,
    changed: Condvar,
    /// The worker that all of its connections are to be at.
    partition: Option<u8>,
}

/// Who is told that a registration is closed.
pub(crate) type Closed = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Children {
    count: usize,
    /// The registration has a handle.
    has_handle: bool,
    /// The registration is among those that are left.
    is_counted: bool,
    /// Connections that are begun now are to be shut down like this at once.
    shutdown: Option<(ConnectionShutdownFlags, u64)>,
    /// Who is told when there are no more.
    closed: Option<Closed>,
}

impl Children {
    /// Counts the registration among those that are left, or no more.
    fn count_registration(&mut self) {
        let is_left = self.has_handle || self.count > 0;
        if std::mem::replace(&mut self.is_counted, is_left) == is_left {
            return;
        }
        if is_left {
            LEFT.fetch_add(1, Ordering::AcqRel);
        } else {
            LEFT.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl std::fmt::Debug for Children {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Children").field("count", &self.count).finish_non_exhaustive()
    }
}

impl Registration {
    /// One that is to have a handle, all of whose connections are to be at one worker, or at any.
    pub(crate) fn open(partition: Option<u8>) -> Arc<Self> {
        let registration = Registration { partition, ..Registration::default() };
        registration.set_has_handle(true);
        Arc::new(registration)
    }

    /// The worker that all of its connections are to be at, if they are to be at one.
    pub(crate) const fn partition(&self) -> Option<u8> {
        self.partition
    }

    /// Its handle is closed.
    pub(crate) fn on_handle_closed(&self) {
        self.set_has_handle(false);
    }

    fn set_has_handle(&self, has_handle: bool) {
        let mut children = self.children();
        children.has_handle = has_handle;
        children.count_registration();
    }

    pub(crate) fn context(&self) -> Option<Context> {
        *self.context.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_context(&self, context: Context) {
        *self.context.lock().unwrap_or_else(PoisonError::into_inner) = Some(context);
    }

    fn children(&self) -> MutexGuard<'_, Children> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something was opened in it.
    pub(crate) fn on_child_opened(&self) {
        let mut children = self.children();
        children.count = children.count.saturating_add(1);
        children.count_registration();
    }

    /// Something that was opened in it is closed.
    pub(crate) fn on_child_closed(&self) {
        let mut children = self.children();
        children.count = children.count.saturating_sub(1);
        children.count_registration();
        let closed = if children.count == 0 { children.closed.take() } else { None };
        drop(children);
        self.changed.notify_all();
        if let Some(closed) = closed {
            // Whoever is told may open and close what it wants, and this thread may have a shard locked.
            let _ = std::thread::Builder::new().name("godwit-closed".into()).spawn(closed);
        }
    }

    /// Waits until everything that was opened in it is closed.
    pub(crate) fn wait_for_children(&self) {
        let children = self.children();
        let waited = self.changed.wait_while(children, |children| children.count > 0);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Has `closed` called when everything that was opened in it is closed.
    pub(crate) fn when_closed(&self, closed: Closed) {
        let mut children = self.children();
        children.closed = Some(closed);
        children.count = children.count.saturating_add(1);
        drop(children);
        self.on_child_closed();
    }

    /// Has connections that are begun from now on shut down. False if they are already.
    pub(crate) fn begin_shutdown(&self, flags: ConnectionShutdownFlags, code: u64) -> bool {
        let mut children = self.children();
        let is_first = children.shutdown.is_none();
        if is_first {
            children.shutdown = Some((flags, code));
        }
        is_first
    }

    /// How its connections are to be shut down, if they are.
    pub(crate) fn shutdown(&self) -> Option<(ConnectionShutdownFlags, u64)> {
        self.children().shutdown
    }
}

/// Who is told by a function of the application's that a registration is closed.
///
/// # Safety
/// The function can be called with the context.
pub(crate) unsafe fn told_by(
    handler: unsafe extern "C" fn(*mut std::ffi::c_void),
    context: Context,
) -> Closed {
    Box::new(move || {
        // The whole of it moves, not the pointer in it.
        let context = context;
        // SAFETY: the caller promises it.
        unsafe { handler(context.pointer()) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn it_is_closed_when_the_last_child_is() {
        let registration = Registration::default();
        registration.on_child_opened();
        let (told, is_told) = mpsc::channel();
        registration.when_closed(Box::new(move || told.send(()).unwrap()));
        assert!(is_told.try_recv().is_err());
        registration.on_child_closed();
        is_told.recv().unwrap();
        registration.wait_for_children();
    }

    #[test]
    fn it_is_left_as_long_as_it_has_a_handle_or_children() {
        let registration = Registration::open(None);
        let is_counted = || registration.children().is_counted;
        assert!(is_counted() && are_any_left());
        registration.on_child_opened();
        registration.on_handle_closed();
        assert!(is_counted() && are_any_left());
        registration.on_child_closed();
        assert!(!is_counted());
    }

    #[test]
    fn it_is_closed_at_once_without_children() {
        let (told, is_told) = mpsc::channel();
        Registration::default().when_closed(Box::new(move || told.send(()).unwrap()));
        is_told.recv().unwrap();
    }
}
