//! What waits to be told to the application and to the endpoint.

use super::boundary::EndpointEvent;
use crate::path::PathUpdate;
use crate::{ConnectionError, Event};
use std::collections::VecDeque;

/// Two short queues. Both are bounded by what the state machine can say once: events of streams stay
/// with the streams until they are asked for.
#[derive(Debug, Default)]
pub(crate) struct Events {
    application: VecDeque<Event>,
    endpoint: VecDeque<EndpointEvent>,
    /// The endpoint is to be asked for connection ids, once however often the peer gives reason to.
    wants_cids: bool,
    closed: bool,
    drained_announced: bool,
    /// The application wants to know of acknowledgements.
    acknowledgements_watched: bool,
}

impl Events {
    /// Events from which on the oldest news of paths make room for newer ones.
    const MOST_WITH_PATHS: usize = 32;

    pub(crate) fn push(&mut self, event: Event) {
        // Told twice before anyone listens is told once: a peer can change its path as often as it likes.
        if !self.closed && self.application.back() != Some(&event) {
            self.application.push_back(event);
        }
    }

    /// The application is told of acknowledgements from now on.
    pub(crate) const fn watch_acknowledgements(&mut self) {
        self.acknowledgements_watched = true;
    }

    /// Packets were acknowledged. That is told once until it is fetched: a peer acknowledges as often as it likes.
    pub(crate) fn on_acknowledged(&mut self) {
        if self.acknowledgements_watched && !self.application.contains(&Event::Acknowledged) {
            self.push(Event::Acknowledged);
        }
    }

    /// News of a path: as a peer can change its path as often as it likes, the newest count.
    pub(crate) fn push_path(&mut self, update: PathUpdate) {
        let is_path = |event: &Event| matches!(event, Event::Path(_));
        if self.application.len() >= Self::MOST_WITH_PATHS
            && let Some(at) = self.application.iter().position(is_path)
        {
            self.application.remove(at);
        }
        self.push(Event::Path(update));
    }

    pub(crate) fn push_endpoint(&mut self, event: EndpointEvent) {
        self.endpoint.push_back(event);
    }

    /// The number of connection ids has fallen.
    pub(crate) fn want_cids(&mut self) {
        self.wants_cids = true;
    }

    /// True once after [`Events::want_cids`].
    pub(crate) fn take_wants_cids(&mut self) -> bool {
        std::mem::take(&mut self.wants_cids)
    }

    /// The last event of all.
    pub(crate) fn on_closed(&mut self, reason: ConnectionError) {
        self.push(Event::Closed { reason });
        self.closed = true;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// True once: the endpoint is told only once that the connection is over.
    pub(crate) fn take_drained(&mut self) -> bool {
        !std::mem::replace(&mut self.drained_announced, true)
    }

    /// Gives back memory that is not in use.
    pub(crate) fn shrink(&mut self) {
        self.application.shrink_to_fit();
        self.endpoint.shrink_to_fit();
    }

    pub(crate) fn next(&mut self) -> Option<Event> {
        self.application.pop_front()
    }

    pub(crate) fn next_endpoint(&mut self) -> Option<EndpointEvent> {
        self.endpoint.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgements_are_told_who_asks_and_once() {
        let mut events = Events::default();
        events.on_acknowledged();
        assert_eq!(events.next(), None);
        events.watch_acknowledgements();
        for _ in 0..2 {
            events.on_acknowledged();
            events.push(Event::DatagramsReadable);
        }
        assert_eq!(events.next(), Some(Event::Acknowledged));
        assert_eq!(events.next(), Some(Event::DatagramsReadable));
        assert_eq!(events.next(), None);
        events.on_acknowledged();
        assert_eq!(events.next(), Some(Event::Acknowledged));
    }
}
