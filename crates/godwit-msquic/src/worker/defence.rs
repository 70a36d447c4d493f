//! Whether clients have to prove their addresses, because there is so much to do at a worker or because it was set so. Listeners
//! that ask for it are told when that begins at the first worker, and when it ends at the last.

use super::current::pool;
use super::pool::{Worker, handshakes_before_retry, retry_always};
use super::state::State;
use crate::abi::{DosModeChanged, ListenerEvent};
use crate::listener::LISTENERS;
use godwit_engine::ShardCx;
use std::sync::atomic::{AtomicUsize, Ordering};

/// At how many workers.
static DEFENDING: AtomicUsize = AtomicUsize::new(0);

/// A worker has begun to demand proof, or ceased to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Begun,
    Ended,
}

/// Whether any worker demands proof.
pub(crate) fn is_on() -> bool {
    DEFENDING.load(Ordering::Relaxed) > 0
}

/// Takes note of what has changed at workers, and tells listeners. No lock may be held.
pub(super) fn note(changes: impl IntoIterator<Item = Change>) {
    let before = is_on();
    for change in changes {
        match change {
            Change::Begun => DEFENDING.fetch_add(1, Ordering::Relaxed),
            Change::Ended => DEFENDING.fetch_sub(1, Ordering::Relaxed),
        };
    }
    let now = is_on();
    if now != before {
        for listener in LISTENERS.all().iter().filter(|listener| listener.dos_mode_events()) {
            listener.call_in_partition(move || event(now));
        }
    }
}

/// Has every client prove its address, or those only that come when there is much to do.
pub(crate) fn set_retries_always(always: bool) {
    retry_always(always);
    let changes = pool().map_or(&[][..], |pool| pool.workers()).iter().filter_map(|worker| {
        worker.visit(|cx, state| {
            cx.endpoint_mut().set_handshakes_before_retry(handshakes_before_retry());
            state.look_at_defence(cx)
        })
    });
    note(changes);
}

/// What listeners are told.
pub(crate) fn event(is_on: bool) -> ListenerEvent {
    ListenerEvent::dos_mode_changed(DosModeChanged::default().with_dos_mode_enabled(is_on))
}

impl Worker {
    /// A worker is about to begin: it learns what was set before. What there is to note.
    pub(super) fn begin(&self) -> Option<Change> {
        self.visit(|cx, state| {
            state.use_chosen_secrets(cx);
            state.look_at_defence(cx)
        })
    }
}

impl State {
    /// What changes when the worker is there no more.
    pub(super) fn end_defence(&mut self) -> Option<Change> {
        std::mem::take(&mut self.is_defending).then_some(Change::Ended)
    }

    /// What has changed since the last look.
    pub(super) fn look_at_defence(&mut self, cx: &ShardCx<'_>) -> Option<Change> {
        let now = cx.endpoint().demands_proof();
        let changed = std::mem::replace(&mut self.is_defending, now) != now;
        changed.then_some(if now { Change::Begun } else { Change::Ended })
    }
}
