//! What a worker's shard has beside connections of the transport: those of the application, its streams, and what there is to
//! tell about both.

use super::gate::{Gate, Opening};
pub(crate) use super::news::TurnOf;
use super::news::{ConnectionNews, News, StreamNews};
use super::news_queue::NewsQueue;
use super::urgent::Urgent;
use super::waiting::Waiting;
use crate::abi::Setting;
use crate::connection::{Connection, ReceivedTickets};
use crate::stream::{GivenBack, Loan, SpareMemory, Stream};
use godwit_base::slab::Key;
use godwit_base::{Slab, SocketId};
use godwit_engine::{Handler, ShardCx};
use godwit_transport::{ConnKey, Event, IncomingKey, StreamId};
use std::collections::HashMap;
use std::sync::Arc;

/// Something to do once.
pub(crate) type Errand = Box<dyn FnOnce() + Send>;

/// The handler of a worker's shard.
pub(crate) struct State {
    /// The worker's number.
    pub(crate) number: u8,
    pub(crate) connections: Slab<Connection>,
    pub(crate) streams: Slab<Box<Stream>>,
    pub(crate) spare: SpareMemory,
    /// Handshakes that were shown to a listener, and wait for a configuration.
    pub(crate) incoming: HashMap<IncomingKey, Key>,
    /// By the small numbers of the transport's connections: which of the application's it is.
    places: Vec<Option<(ConnKey, Key)>>,
    pub(crate) news: NewsQueue,
    /// What is told before that.
    pub(super) urgent: Urgent,
    /// Who waits until this worker has caught up.
    pub(super) waiting: Waiting,
    pub(crate) given_back: Arc<GivenBack>,
    /// Empty: memory for those that are taken.
    pub(crate) ended_loans: Vec<Loan>,
    /// Connections whose handles are closed, until no callback is under way.
    pub(crate) departed: Vec<Connection>,
    pub(crate) received_tickets: Arc<ReceivedTickets>,
    /// Clients have to prove their addresses, as far as that was noted.
    pub(super) is_defending: bool,
    /// The period that the keys of tokens are of, once they are those that were set.
    pub(super) token_period: Option<u64>,
    /// What is to be done on this worker's thread, with the shard free.
    pub(crate) errands: Vec<Errand>,
    /// Sockets of connections that are over.
    pub(crate) unused_sockets: Vec<SocketId>,
    /// Connections are over: a socket that listeners have left may be needed no more.
    pub(crate) some_are_over: bool,
}

impl State {
    pub(super) fn new(number: u8) -> Self {
        State {
            number,
            connections: Slab::new(),
            streams: Slab::new(),
            spare: SpareMemory::default(),
            incoming: HashMap::new(),
            places: Vec::new(),
            news: NewsQueue::default(),
            urgent: Urgent::default(),
            waiting: Waiting::default(),
            given_back: Arc::default(),
            ended_loans: Vec::new(),
            departed: Vec::new(),
            received_tickets: Arc::default(),
            is_defending: false,
            token_period: None,
            errands: Vec::new(),
            unused_sockets: Vec::new(),
            some_are_over: false,
        }
    }

    /// A generation that is greater than those of all handles given so far.
    pub(super) fn next_generation(&self) -> u32 {
        self.connections.next_generation().max(self.streams.next_generation())
    }

    /// Handles that are given from now on are of this generation or later ones.
    pub(super) fn begin_generations_at(&mut self, first: u32) {
        self.connections.begin_generations_at(first);
        self.streams.begin_generations_at(first);
    }

    /// The application's connection of one of the transport's.
    pub(crate) fn place(&self, conn: ConnKey) -> Option<Key> {
        let (of, key) = (*self.places.get(conn.index())?)?;
        (of == conn).then_some(key)
    }

    pub(crate) fn set_place(&mut self, conn: ConnKey, key: Key) {
        let index = conn.index();
        if self.places.len() <= index {
            self.places.resize(index.saturating_add(1), None);
        }
        if let Some(place) = self.places.get_mut(index) {
            *place = Some((conn, key));
        }
    }

    pub(crate) fn forget_place(&mut self, conn: ConnKey) {
        if let Some(place) =
            self.places.get_mut(conn.index()).filter(|it| it.is_some_and(|(of, _)| of == conn))
        {
            *place = None;
        }
    }

    /// The stream with this id on a connection.
    pub(crate) fn stream_of(&self, connection: Key, id: StreamId) -> Option<Key> {
        self.connections.get(connection)?.streams.with_id(id)
    }

    /// The peer has begun a stream.
    pub(crate) fn on_stream_of_peer(&mut self, connection: Key, id: StreamId) {
        let Some(owner) = self.connections.get_mut(connection) else { return };
        let mut stream = self.spare.place(Stream::of_peer(connection, id));
        stream.receiving.show_several(owner.setting(Setting::StreamMultiReceiveEnabled) != 0);
        let key = self.streams.insert_with(|key| {
            stream.number = owner.streams.add(key);
            stream
        });
        owner.streams.name(id, key);
        // What has come on it is told in the order in which it came, with that of other streams.
        self.tell_connection(connection, ConnectionNews::PeerStreamStarted(key));
    }

    /// Puts something for a connection in the queue.
    pub(crate) fn tell_connection(&mut self, key: Key, news: ConnectionNews) {
        let is_over = self.connections.get(key).is_none_or(|connection| connection.is_over);
        if !is_over || matches!(news, ConnectionNews::HandleClosed) {
            self.news.push(News::Connection(key, news));
        }
    }

    /// Puts something for a stream in the queue.
    pub(crate) fn tell_stream(&mut self, key: Key, news: StreamNews) {
        // Nothing comes behind the last thing but that the handle is closed.
        let is_for_handle = matches!(news, StreamNews::HandleClosed);
        if let Some(stream) = self.streams.get(key).filter(|stream| !stream.is_complete || is_for_handle) {
            let goes_ahead = news.is_urgent(stream.start_flags) && !self.news.has_for_stream(key);
            let news = News::Stream(stream.connection, key, news);
            if goes_ahead { self.urgent.push(news) } else { self.news.push(news) }
        }
    }

    /// The next thing to tell to whose turn it is.
    pub(super) fn next_news(&mut self, whose: TurnOf) -> Option<News> {
        let urgent = self.urgent.pop(whose);
        let next = urgent.or_else(|| match whose {
            TurnOf::All => self.news.pop(),
            TurnOf::Connection(key) => self.news.pop_of_connection(key),
            TurnOf::Stream(key) => self.news.pop_of_stream(key),
        })?;
        self.urgent.on_told(&next);
        Some(next)
    }

    /// Whether there is something to tell to this stream.
    pub(crate) fn has_news_for_stream(&self, stream: Key) -> bool {
        self.news.has_for_stream(stream) || self.urgent.has_for_stream(stream)
    }

    /// A gate that opens when everything has been done that the connection was asked for so far.
    pub(crate) fn gate_behind(&mut self, connection: Key) -> Arc<Gate> {
        let (gate, opening) = Opening::new();
        self.tell_connection(connection, ConnectionNews::CaughtUp(opening));
        gate
    }

    /// Nothing is left to tell about a stream.
    pub(crate) fn forget_stream(&mut self, key: Key) {
        let Some(mut stream) = self.streams.remove(key) else { return };
        if let Some(connection) = self.connections.get_mut(stream.connection) {
            connection.streams.remove(stream.number, stream.id);
        }
        if let Some(gate) = stream.closing.take() {
            gate.open();
        }
        self.remove_forgotten(stream.connection);
        self.spare.keep(stream);
    }
}

impl Handler for State {
    fn on_event(&mut self, cx: &mut ShardCx<'_>, conn: ConnKey, event: Event) {
        self.on_transport_event(cx, conn, event);
    }

    fn on_incoming(&mut self, _: &mut ShardCx<'_>, incoming: IncomingKey) {
        self.news.push(News::Incoming(incoming));
    }
}
