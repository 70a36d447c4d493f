//! What the application is told after the end, if it wants to be: that the peer has answered its close, and that nothing is
//! left of the connection (RFC 9000 section 10.2).

use super::lifecycle::Lifecycle;
use crate::Event;

/// What has been told so far.
#[derive(Debug, Default)]
pub(super) struct Farewell {
    watched: bool,
    told_answer: bool,
    told_drained: bool,
}

impl Farewell {
    /// Somebody wants to be told.
    pub(super) const fn watch(&mut self) {
        self.watched = true;
    }

    /// What is to be told next of a connection whose end has been told.
    pub(super) fn next(&mut self, lifecycle: &Lifecycle) -> Option<Event> {
        if !self.watched {
            return None;
        }
        if lifecycle.is_close_acknowledged() && !std::mem::replace(&mut self.told_answer, true) {
            return Some(Event::CloseAcknowledged);
        }
        if lifecycle.is_drained() && !std::mem::replace(&mut self.told_drained, true) {
            return Some(Event::Drained);
        }
        None
    }
}
