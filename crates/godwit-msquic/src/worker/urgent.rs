//! What is told before all else: that work was done which the application wanted done before other work.
//!
//! What was asked for is done at once in any case; what waits is to be told of it. Where the connection that was told something
//! last has more of this kind, that comes first.
//!
//! Invariant: a stream is told everything in order. Nothing goes ahead of what waits to be told to the same stream.

use super::news::{News, StreamNews, TurnOf};
use super::news_queue::NewsQueue;
use crate::abi::StreamStartFlags;
use godwit_base::slab::Key;

/// What goes ahead. There is rarely any.
#[derive(Debug, Default)]
pub(super) struct Urgent {
    queue: Option<Box<NewsQueue>>,
    /// The connection that was told something last, or one of its streams was.
    told: Option<Key>,
}

impl Urgent {
    /// Something else is told now.
    pub(super) fn on_told(&mut self, news: &News) {
        self.told = match news {
            News::Incoming(_) => None,
            News::Connection(connection, _) | News::Stream(connection, ..) => Some(*connection),
        };
    }

    /// Puts something behind what goes ahead already.
    pub(super) fn push(&mut self, news: News) {
        self.queue.get_or_insert_default().push(news);
    }

    /// Whether there is something for this stream.
    pub(super) fn has_for_stream(&self, stream: Key) -> bool {
        self.queue.as_ref().is_some_and(|queue| queue.has_for_stream(stream))
    }

    /// The next thing to tell to whose turn it is.
    pub(super) fn pop(&mut self, whose: TurnOf) -> Option<News> {
        let queue = self.queue.as_mut()?;
        let next = match whose {
            TurnOf::All => {
                let of_told = self.told.and_then(|connection| queue.pop_of_connection(connection));
                of_told.or_else(|| queue.pop())
            }
            TurnOf::Connection(connection) => queue.pop_of_connection(connection),
            TurnOf::Stream(stream) => queue.pop_of_stream(stream),
        };
        if next.is_none() && matches!(whose, TurnOf::All) {
            self.queue = None;
        }
        next
    }
}

impl StreamNews {
    /// Whether this is told of work that the application wants done before other work. A stream may be started like that, and sends
    /// may be.
    pub(super) const fn is_urgent(&self, start: StreamStartFlags) -> bool {
        match self {
            Self::SendComplete { is_urgent, .. } => *is_urgent,
            Self::StartComplete { .. } | Self::IdealSendBufferSize(_) => {
                start.contains(StreamStartFlags::PRIORITY_WORK)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::Status;
    use crate::context::Context;
    use godwit_base::Slab;

    fn started(connection: Key, stream: Key) -> News {
        let news = StreamNews::StartComplete { status: Status::SUCCESS, id: 0, accepted: true };
        News::Stream(connection, stream, news)
    }

    fn sent(connection: Key, stream: Key) -> News {
        let news = StreamNews::SendComplete { canceled: false, context: Context::NONE, is_urgent: true };
        News::Stream(connection, stream, news)
    }

    fn of(news: Option<News>) -> Option<(Key, bool)> {
        match news? {
            News::Stream(_, stream, news) => Some((stream, matches!(news, StreamNews::SendComplete { .. }))),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_connection_that_is_told_something_goes_on() {
        let (mut connections, mut streams) = (Slab::new(), Slab::new());
        let [first, second, third] = [0, 1, 2].map(|_| (connections.insert(()), streams.insert(())));
        let mut urgent = Urgent::default();
        urgent.on_told(&started(first.0, first.1));
        for (connection, stream) in [second, third] {
            urgent.push(started(connection, stream));
            urgent.push(sent(connection, stream));
        }
        urgent.push(sent(first.0, first.1));
        let mut order = Vec::new();
        while let Some(news) = urgent.pop(TurnOf::All) {
            urgent.on_told(&news);
            order.extend(of(Some(news)));
        }
        let two = |stream| [(stream, false), (stream, true)];
        assert_eq!(order, [&[(first.1, true)][..], &two(second.1), &two(third.1)].concat());
        assert!(urgent.queue.is_none(), "nothing is left of it");
    }

    #[test]
    fn one_stream_is_told_its_own() {
        let (mut connections, mut streams) = (Slab::new(), Slab::new());
        let connection = connections.insert(());
        let [first, second] = [0, 1].map(|_| streams.insert(()));
        let mut urgent = Urgent::default();
        urgent.push(started(connection, first));
        urgent.push(started(connection, second));
        assert!(urgent.has_for_stream(second));
        assert_eq!(of(urgent.pop(TurnOf::Stream(second))), Some((second, false)));
        assert!(!urgent.has_for_stream(second) && urgent.has_for_stream(first));
        assert_eq!(of(urgent.pop(TurnOf::Connection(connection))), Some((first, false)));
        assert!(urgent.pop(TurnOf::All).is_none());
    }
}
