//! All that there is to tell, in order, from which what is for one connection or stream can be taken at once, however much there
//! is for others.
//!
//! Everything has a number. What is for a connection, its streams included, is chained by numbers, and so is what is for a stream.
//! What was taken out of turn leaves its place empty until everything before it is gone.
//!
//! Invariant: a chain begins with the first place that is still there of those that are its own, and what is for one stream is
//! taken in order.

use super::news::News;
use godwit_base::slab::Key;
use std::collections::VecDeque;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct NewsQueue {
    places: VecDeque<Place>,
    /// The number of the first place.
    first: u64,
    connections: Chains,
    streams: Chains,
}

#[derive(Debug)]
struct Place {
    news: Option<News>,
    connection: Link,
    stream: Link,
}

/// Whose chain a place is in, and the number of the next one there.
#[derive(Debug, Default, Clone, Copy)]
struct Link {
    of: Option<Key>,
    next: Option<u64>,
}

/// Chains by the small numbers of keys.
#[derive(Debug, Default)]
struct Chains(Vec<Chain>);

#[derive(Debug, Default, Clone, Copy)]
struct Chain {
    of: Option<Key>,
    ends: Option<(u64, u64)>,
}

impl Chains {
    fn find(&self, key: Key) -> Option<u64> {
        let chain = self.0.get(key.index()).filter(|chain| chain.of == Some(key))?;
        chain.ends.map(|(first, _)| first)
    }

    /// Puts a number at the end. The number that was there.
    fn append(&mut self, key: Key, number: u64) -> Option<u64> {
        if self.0.len() <= key.index() {
            self.0.resize(key.index().saturating_add(1), Chain::default());
        }
        let chain = self.0.get_mut(key.index())?;
        // Another one that had the place before is gone.
        let ends = chain.ends.filter(|_| chain.of == Some(key));
        *chain = Chain { of: Some(key), ends: Some((ends.map_or(number, |(first, _)| first), number)) };
        ends.map(|(_, last)| last)
    }

    /// The chain begins with what follows `number`, if it began with that.
    fn leave(&mut self, number: u64, link: Link) {
        let Some(key) = link.of else { return };
        let Some(chain) = self.0.get_mut(key.index()).filter(|chain| chain.of == Some(key)) else { return };
        if let Some((first, last)) = chain.ends.filter(|(first, _)| *first == number) {
            chain.ends = link.next.filter(|_| first != last).map(|next| (next, last));
        }
    }
}

impl NewsQueue {
    /// Puts something at the end.
    pub(crate) fn push(&mut self, news: News) {
        let number = self.first.wrapping_add(self.places.len() as u64);
        let (connection, stream) = match &news {
            News::Incoming(_) => (None, None),
            News::Connection(connection, _) => (Some(*connection), None),
            News::Stream(connection, stream, _) => (Some(*connection), Some(*stream)),
        };
        if let Some(before) = connection.and_then(|key| self.connections.append(key, number))
            && let Some(place) = self.at(before)
        {
            place.connection.next = Some(number);
        }
        if let Some(before) = stream.and_then(|key| self.streams.append(key, number))
            && let Some(place) = self.at(before)
        {
            place.stream.next = Some(number);
        }
        let link = |of| Link { of, next: None };
        self.places.push_back(Place { news: Some(news), connection: link(connection), stream: link(stream) });
    }

    /// Takes what comes first.
    pub(crate) fn pop(&mut self) -> Option<News> {
        self.drop_empty_places();
        let news = self.take(self.first);
        self.drop_empty_places();
        news
    }

    /// Takes what comes first for this connection or one of its streams.
    pub(crate) fn pop_of_connection(&mut self, connection: Key) -> Option<News> {
        loop {
            let number = self.connections.find(connection)?;
            let link = self.at(number)?.connection;
            let news = self.take(number);
            self.connections.leave(number, link);
            if news.is_some() {
                self.drop_empty_places();
                return news;
            }
        }
    }

    /// Takes what comes first for this stream.
    pub(crate) fn pop_of_stream(&mut self, stream: Key) -> Option<News> {
        let news = self.streams.find(stream).and_then(|number| self.take(number));
        self.drop_empty_places();
        news
    }

    /// Drops what is for this connection itself.
    pub(crate) fn forget_connection(&mut self, connection: Key) {
        let mut next = self.connections.find(connection);
        while let Some(number) = next {
            let Some(place) = self.at(number) else { break };
            next = place.connection.next;
            if matches!(place.news, Some(News::Connection(..))) {
                self.take(number);
            }
        }
        self.drop_empty_places();
    }

    fn at(&mut self, number: u64) -> Option<&mut Place> {
        let index = usize::try_from(number.wrapping_sub(self.first)).ok()?;
        self.places.get_mut(index)
    }

    /// Takes what is at this number, which its stream's chain begins with, if it is for one.
    fn take(&mut self, number: u64) -> Option<News> {
        let place = self.at(number)?;
        let (news, link) = (place.news.take()?, place.stream);
        self.streams.leave(number, link);
        Some(news)
    }

    fn drop_empty_places(&mut self) {
        while let Some(place) = self.places.pop_front_if(|place| place.news.is_none()) {
            self.connections.leave(self.first, place.connection);
            self.first = self.first.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::news::{ConnectionNews, StreamNews};
    use super::*;
    use godwit_base::Slab;
    use proptest::prelude::*;

    #[derive(Debug, Clone, Copy)]
    enum Step {
        Tell(usize),
        TellConnection(usize),
        Pop,
        PopOfConnection(usize),
        PopOfStream(usize),
        Forget(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0..6_usize).prop_map(Step::Tell),
            2 => (0..3_usize).prop_map(Step::TellConnection),
            2 => Just(Step::Pop),
            1 => (0..3_usize).prop_map(Step::PopOfConnection),
            2 => (0..6_usize).prop_map(Step::PopOfStream),
            1 => (0..3_usize).prop_map(Step::Forget),
        ]
    }

    /// What is told is told by its number.
    fn number_of(news: Option<News>) -> Option<u64> {
        match news? {
            News::Connection(_, ConnectionNews::ShutdownByPeer { code }) => Some(code),
            News::Stream(_, _, StreamNews::PeerSendAborted { code }) => Some(code),
            other => panic!("{other:?}"),
        }
    }

    proptest! {
        #[test]
        fn it_is_as_if_one_looked_through_everything(steps in proptest::collection::vec(step(), 0..200)) {
            let (mut connections, mut streams) = (Slab::new(), Slab::new());
            let connections = [0, 1, 2].map(|name| connections.insert(name));
            let streams = [0, 1, 2, 3, 4, 5].map(|name| streams.insert(name));
            let mut queue = NewsQueue::default();
            // The number, the connection, and the stream if it is for one.
            let mut simple: Vec<(u64, usize, Option<usize>)> = Vec::new();
            let pop = |simple: &mut Vec<(u64, usize, Option<usize>)>, fits: &dyn Fn(usize, Option<usize>) -> bool| {
                let at = simple.iter().position(|(_, connection, stream)| fits(*connection, *stream))?;
                Some(simple.remove(at).0)
            };
            for (code, step) in (0_u64..).zip(steps) {
                match step {
                    Step::Tell(stream) => {
                        let news = StreamNews::PeerSendAborted { code };
                        queue.push(News::Stream(connections[stream / 2], streams[stream], news));
                        simple.push((code, stream / 2, Some(stream)));
                    }
                    Step::TellConnection(connection) => {
                        queue.push(News::Connection(connections[connection], ConnectionNews::ShutdownByPeer { code }));
                        simple.push((code, connection, None));
                    }
                    Step::Pop => prop_assert_eq!(number_of(queue.pop()), pop(&mut simple, &|_, _| true)),
                    Step::PopOfConnection(of) => {
                        let popped = number_of(queue.pop_of_connection(connections[of]));
                        prop_assert_eq!(popped, pop(&mut simple, &|connection, _| connection == of));
                    }
                    Step::PopOfStream(of) => {
                        let popped = number_of(queue.pop_of_stream(streams[of]));
                        prop_assert_eq!(popped, pop(&mut simple, &|_, stream| stream == Some(of)));
                    }
                    Step::Forget(of) => {
                        queue.forget_connection(connections[of]);
                        simple.retain(|(_, connection, stream)| *connection != of || stream.is_some());
                    }
                }
                prop_assert_eq!(queue.places.is_empty(), simple.is_empty());
            }
        }
    }

    #[test]
    fn who_has_the_place_of_another_hears_nothing_that_was_for_that() {
        let (mut connections, mut streams) = (Slab::new(), Slab::new());
        let (connection, first) = (connections.insert(()), streams.insert(()));
        let mut queue = NewsQueue::default();
        let tell = |queue: &mut NewsQueue, stream, code| {
            queue.push(News::Stream(connection, stream, StreamNews::PeerSendAborted { code }));
        };
        tell(&mut queue, first, 1);
        streams.remove(first);
        let second = streams.insert(());
        assert_eq!(second.index(), first.index());
        tell(&mut queue, second, 2);
        assert_eq!(number_of(queue.pop_of_stream(second)), Some(2));
        assert_eq!(number_of(queue.pop_of_stream(second)), None);
        assert_eq!(number_of(queue.pop()), Some(1));
        assert!(queue.places.is_empty());
    }
}
