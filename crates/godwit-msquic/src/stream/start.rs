//! Starting streams: each gets the next id of its kind at once, and is known to the transport when the peer permits it.

use super::{Start, Stream};
use crate::abi::{Status, StreamShutdownFlags, StreamStartFlags};
use crate::worker::{State, StreamNews};
use godwit_base::slab::Key;
use godwit_engine::ShardCx;
use godwit_transport::{ConnKey, Direction, Side, StreamId};

impl State {
    /// Starts a stream.
    ///
    /// # Errors
    /// Why it cannot be started. That is told, too.
    pub(crate) fn start_stream(
        &mut self,
        cx: &mut ShardCx<'_>,
        key: Key,
        flags: StreamStartFlags,
    ) -> Result<(), Status> {
        let outcome = self.try_start(cx, key, flags);
        let status = outcome.err().unwrap_or(Status::SUCCESS);
        if let Some(stream) = self.streams.get(key) {
            let accepted = stream.start == Start::Open;
            let id = stream.id.map_or(u64::MAX, StreamId::as_u64);
            self.tell_stream(key, StreamNews::StartComplete { status, id, accepted });
        }
        if outcome.is_ok() {
            // It may have been given up before: the peer hears of that now.
            self.say_shutdown(cx, key);
            self.settle_stream(key);
        }
        match outcome {
            Ok(()) => {
                self.pump(cx, key);
                self.copy_unsent(key);
            }
            Err(_) if flags.contains(StreamStartFlags::SHUTDOWN_ON_FAIL) => {
                let flags = StreamShutdownFlags::ABORT.union(StreamShutdownFlags::IMMEDIATE);
                self.shut_stream_down(cx, key, flags, 0);
            }
            Err(_) => {}
        }
        outcome
    }

    fn try_start(&mut self, cx: &mut ShardCx<'_>, key: Key, flags: StreamStartFlags) -> Result<(), Status> {
        let stream = self.streams.get_mut(key).ok_or(Status::INVALID_STATE)?;
        let connection = self.connections.get_mut(stream.connection).ok_or(Status::INVALID_STATE)?;
        if connection.closed_locally || stream.start != Start::No {
            return Err(Status::INVALID_STATE);
        }
        if connection.closed_remotely {
            return Err(Status::ABORTED);
        }
        let (direction, conn) = (stream.direction, connection.key);
        let numbers = connection.numbers_mut(direction);
        let transport = conn.and_then(|conn| cx.endpoint_mut().connection_mut(conn));
        let opened = match transport {
            Some(transport) if numbers.waiting.is_empty() => transport.open(direction),
            _ => None,
        };
        if opened.is_none() && flags.contains(StreamStartFlags::FAIL_BLOCKED) {
            return Err(Status::STREAM_LIMIT_REACHED);
        }
        let index = numbers.next;
        numbers.next = index.saturating_add(1);
        if opened.is_none() {
            numbers.waiting.push_back(key);
            if let Some(conn) = conn.filter(|_| connection.is_connected) {
                // The peer hears of each that waits, at once: it may permit more each time.
                cx.endpoint_mut().with(conn, |transport| transport.want_to_open(direction));
            }
        }
        let side = if connection.is_server { Side::Server } else { Side::Client };
        let id = opened.unwrap_or_else(|| StreamId::new(side, direction, index));
        connection.streams.name(id, key);
        stream.id = Some(id);
        stream.start_flags = flags;
        stream.start = if opened.is_some() { Start::Open } else { Start::Blocked };
        if let Some(conn) = conn {
            if opened.is_some() {
                self.on_opened(cx, key);
            }
            // The peer hears of a stream that it does not permit, too.
            cx.endpoint_mut().touch(conn);
        }
        Ok(())
    }

    /// The transport knows the stream now.
    fn on_opened(&mut self, cx: &mut ShardCx<'_>, key: Key) {
        self.apply_priority(cx, key);
        self.announce(cx, key);
        self.tell_ideal_send_buffer(cx, key);
    }

    /// A stream that is to be seen at once is told to the peer before there is data on it.
    fn announce(&mut self, cx: &mut ShardCx<'_>, key: Key) {
        let Some(stream) = self.streams.get(key) else { return };
        let conn = self.connections.get(stream.connection).and_then(|connection| connection.key);
        if stream.start_flags.contains(StreamStartFlags::IMMEDIATE)
            && let Some((conn, id)) = conn.zip(stream.open_id())
        {
            let _ = cx.endpoint_mut().with(conn, |transport| transport.announce(id));
        }
    }

    /// The peer may permit more streams: those that wait are opened.
    pub(crate) fn open_waiting(&mut self, cx: &mut ShardCx<'_>, connection: Key, direction: Direction) {
        loop {
            let Some(held) = self.connections.get_mut(connection) else { return };
            let Some(conn) = held.key else { return };
            let numbers = held.numbers_mut(direction);
            let Some(key) = numbers.waiting.front().copied() else { return };
            let Some(transport) = cx.endpoint_mut().connection_mut(conn) else { return };
            let Some(id) = transport.open(direction) else {
                // That it waits is known now: an event follows when it may.
                cx.endpoint_mut().touch(conn);
                return;
            };
            numbers.waiting.pop_front();
            cx.endpoint_mut().touch(conn);
            let Some(stream) = self.streams.get_mut(key) else {
                // Its handle was closed meanwhile: the id is used up all the same.
                cx.endpoint_mut().with(conn, |transport| {
                    let _ = transport.reset(id, 0);
                    let _ = transport.stop_sending(id, 0);
                });
                continue;
            };
            stream.start = Start::Open;
            if stream.start_flags.contains(StreamStartFlags::INDICATE_PEER_ACCEPT) {
                self.tell_stream(key, StreamNews::PeerAccepted);
            }
            self.on_opened(cx, key);
            self.say_shutdown(cx, key);
            self.pump(cx, key);
        }
    }

    /// Hands the transport the priority of a stream: higher ones first, and equal ones by turns.
    pub(crate) fn apply_priority(&mut self, cx: &mut ShardCx<'_>, key: Key) {
        let Some(stream) = self.streams.get(key).filter(|it| it.priority != Stream::DEFAULT_PRIORITY) else {
            return;
        };
        let conn = self.connections.get(stream.connection).and_then(|connection| connection.key);
        let Some((conn, id)) = conn.zip(stream.open_id()) else { return };
        let urgency = u8::MAX.saturating_sub((stream.priority >> 8) as u8);
        // A stream that is over has no priority.
        let _ = cx.endpoint_mut().with(conn, |transport| transport.set_priority(id, urgency, true));
    }

    /// A stream of the peer's counts against what that may open until its handle is closed.
    pub(crate) fn hold_place(&mut self, cx: &mut ShardCx<'_>, key: Key) {
        let held = self.streams.get(key).filter(|stream| !stream.is_local && !stream.is_closed);
        if let Some((conn, id)) = held.and_then(|stream| self.named(stream)) {
            // One that is over had its place freed.
            let outcome = cx.endpoint_mut().with(conn, |transport| transport.hold_place(id));
            if let Some(stream) = self.streams.get_mut(key) {
                stream.holds_place |= outcome.is_some_and(|outcome| outcome.is_ok());
            }
        }
    }

    /// Its handle is closed: it counts no longer than it lasts.
    pub(crate) fn release_place(&mut self, cx: &mut ShardCx<'_>, key: Key) {
        let held = self.streams.get(key).filter(|stream| stream.holds_place);
        if let Some((conn, id)) = held.and_then(|stream| self.named(stream)) {
            cx.endpoint_mut().with(conn, |transport| transport.release_place(id));
        }
    }

    /// What the transport calls a stream's connection, and the stream.
    fn named(&self, stream: &Stream) -> Option<(ConnKey, StreamId)> {
        self.connections.get(stream.connection)?.key.zip(stream.open_id())
    }

    /// Says how much should be under way on a stream.
    pub(crate) fn tell_ideal_send_buffer(&mut self, cx: &mut ShardCx<'_>, key: Key) {
        let Some(stream) = self.streams.get(key).filter(|stream| stream.sending.is_open()) else { return };
        let conn = self.connections.get(stream.connection).and_then(|connection| connection.key);
        let Some((conn, id)) = conn.zip(stream.open_id()) else { return };
        let transport = cx.endpoint().connection(conn);
        if let Some(Ok(bytes)) = transport.map(|transport| transport.ideal_buffer(id)) {
            self.tell_stream(key, StreamNews::IdealSendBufferSize(bytes));
        }
    }
}
