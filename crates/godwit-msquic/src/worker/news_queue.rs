//! All that there is to tell, in order, from which what is for one connection or stream can be taken at once, however much there
//! is for others.
//!
//! Everything is in two or three lists: that of all there is, that of its connection, streams included, and that of its stream.
//! Places of what was taken are used again.
//!
//! Invariant: a list has what is in the queue of its own, and nothing else, in the order in which it came.

use super::news::News;
use godwit_base::slab::Key;
use std::num::NonZeroU32;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct NewsQueue {
    places: Places,
    /// The first of the empty places.
    empty: Option<At>,
    all: Ends,
    connections: Lists,
    streams: Lists,
}

/// Where something is, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct At(NonZeroU32);

#[derive(Debug, Default)]
struct Place {
    news: Option<News>,
    /// Of an empty place, the next one.
    all: Neighbours,
    connection: Neighbours,
    stream: Neighbours,
}

/// What comes before and after something in a list.
#[derive(Debug, Default, Clone, Copy)]
struct Neighbours {
    before: Option<At>,
    next: Option<At>,
}

/// The ends of a list.
#[derive(Debug, Default, Clone, Copy)]
struct Ends {
    first: Option<At>,
    last: Option<At>,
}

/// Which list is meant.
type OfList = fn(&mut Place) -> &mut Neighbours;

#[derive(Debug, Default)]
struct Places(Vec<Place>);

/// Lists by the small numbers of keys.
#[derive(Debug, Default)]
struct Lists(Vec<(Option<Key>, Ends)>);

impl Places {
    fn get(&mut self, at: At) -> Option<&mut Place> {
        self.0.get_mut((at.0.get() as usize).wrapping_sub(1))
    }

    /// A new place, if there is a number for it.
    fn add(&mut self) -> Option<At> {
        let at = u32::try_from(self.0.len()).ok().and_then(|index| NonZeroU32::MIN.checked_add(index))?;
        self.0.push(Place::default());
        Some(At(at))
    }

    /// Something comes in last. Its neighbours.
    fn append(&mut self, ends: &mut Ends, list: OfList, at: At) -> Neighbours {
        let before = ends.last.replace(at);
        match before.and_then(|before| self.get(before)) {
            Some(before) => list(before).next = Some(at),
            None => ends.first = Some(at),
        }
        Neighbours { before, next: None }
    }

    /// Something that had these neighbours goes.
    fn unlink(&mut self, ends: &mut Ends, list: OfList, Neighbours { before, next }: Neighbours) {
        match before.and_then(|before| self.get(before)) {
            Some(before) => list(before).next = next,
            None => ends.first = next,
        }
        match next.and_then(|next| self.get(next)) {
            Some(next) => list(next).before = before,
            None => ends.last = before,
        }
    }
}

impl Lists {
    /// What there is for `key` comes first here.
    fn first(&self, key: Key) -> Option<At> {
        self.0.get(key.index()).filter(|(of, _)| *of == Some(key))?.1.first
    }

    /// The list of `key`, which nothing is in if another one had its place before.
    fn list(&mut self, key: Key) -> Option<&mut Ends> {
        if self.0.len() <= key.index() {
            self.0.resize(key.index().saturating_add(1), Default::default());
        }
        let (of, ends) = self.0.get_mut(key.index())?;
        if *of != Some(key) {
            (*of, *ends) = (Some(key), Ends::default());
        }
        Some(ends)
    }

    /// The list of `key`, if its place is not another one's by now.
    fn known(&mut self, key: Key) -> Option<&mut Ends> {
        self.0.get_mut(key.index()).filter(|(of, _)| *of == Some(key)).map(|(_, ends)| ends)
    }
}

/// Whose it is.
const fn owners(news: &News) -> (Option<Key>, Option<Key>) {
    match news {
        News::Incoming(_) => (None, None),
        News::Connection(connection, _) => (Some(*connection), None),
        News::Stream(connection, stream, _) => (Some(*connection), Some(*stream)),
    }
}

impl NewsQueue {
    /// Puts something at the end.
    pub(crate) fn push(&mut self, news: News) {
        let NewsQueue { places, empty, all, connections, streams } = self;
        let Some(at) = empty.or_else(|| places.add()) else { return };
        let (connection, stream) = owners(&news);
        let all = places.append(all, |place| &mut place.all, at);
        let list = connection.and_then(|key| connections.list(key));
        let connection = list.map(|list| places.append(list, |place| &mut place.connection, at));
        let list = stream.and_then(|key| streams.list(key));
        let stream = list.map(|list| places.append(list, |place| &mut place.stream, at));
        if let Some(place) = places.get(at) {
            if *empty == Some(at) {
                *empty = place.all.next;
            }
            let (connection, stream) = (connection.unwrap_or_default(), stream.unwrap_or_default());
            *place = Place { news: Some(news), all, connection, stream };
        }
    }

    /// Takes what comes first.
    pub(crate) fn pop(&mut self) -> Option<News> {
        self.take(self.all.first?)
    }

    /// Takes what comes first for this connection or one of its streams.
    pub(crate) fn pop_of_connection(&mut self, connection: Key) -> Option<News> {
        self.take(self.connections.first(connection)?)
    }

    /// Takes what comes first for this stream.
    pub(crate) fn pop_of_stream(&mut self, stream: Key) -> Option<News> {
        self.take(self.streams.first(stream)?)
    }

    /// Whether there is something for this stream.
    pub(crate) fn has_for_stream(&self, stream: Key) -> bool {
        self.streams.first(stream).is_some()
    }

    /// Drops what is for this connection itself.
    pub(crate) fn forget_connection(&mut self, connection: Key) {
        let mut next = self.connections.first(connection);
        while let Some(at) = next {
            let Some(place) = self.places.get(at) else { break };
            next = place.connection.next;
            if matches!(place.news, Some(News::Connection(..))) {
                self.take(at);
            }
        }
    }

    fn take(&mut self, at: At) -> Option<News> {
        let NewsQueue { places, empty, all, connections, streams } = self;
        let place = places.get(at)?;
        let news = place.news.take()?;
        let (in_all, in_connection, in_stream) = (place.all, place.connection, place.stream);
        place.all.next = empty.replace(at);
        let (connection, stream) = owners(&news);
        places.unlink(all, |place| &mut place.all, in_all);
        // What is left for one whose place is another one's by now is in no list but that of all.
        if let Some(list) = connection.and_then(|key| connections.known(key)) {
            places.unlink(list, |place| &mut place.connection, in_connection);
        }
        if let Some(list) = stream.and_then(|key| streams.known(key)) {
            places.unlink(list, |place| &mut place.stream, in_stream);
        }
        Some(news)
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
                prop_assert_eq!(queue.all.first.is_none(), simple.is_empty());
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
        assert!(queue.all.first.is_none());
    }
}
