//! What is kept of a connection for its handles.

use super::raw::{RawHandler, StreamNews};
use super::waiters::{Topic, Waiters, register};
use crate::error::{ConnectionError, EndReason};
use crate::paths::PathEvent;
use bytes::Bytes;
use godwit_engine::ShardCx;
use godwit_transport::EarlyDataStatus;
use godwit_transport::PathUpdate;
use godwit_transport::{ConnKey, Connection, DatagramOutcome, Event};
use godwit_transport::{ConnectionStats, Evidence};
use godwit_transport::{ReadChunk, ReadError, WriteError};
use godwit_wire::{Direction, Side, StreamId};
use rustls::pki_types::CertificateDer;
use rustls::{CipherSuite, NamedGroup};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::net::{IpAddr, SocketAddr};
use std::task::Waker;

/// Bytes taken at once when what is left of a closed connection is collected.
const LEFT_CHUNK: usize = 1 << 20;

/// A connection as its handles see it.
#[derive(Debug)]
pub(crate) struct ConnState {
    pub(crate) conn: ConnKey,
    pub(crate) connected: bool,
    /// The application may say whether it approves of the peer.
    pub(crate) approvable: bool,
    /// Why it is over, if it is.
    pub(crate) ended: Option<ConnectionError>,
    pub(crate) waiters: Waiters,
    pub(crate) raw: Option<Box<dyn RawHandler>>,
    streams: HashMap<StreamId, StreamState, BuildHasherDefault<IdHasher>>,
    /// Streams that the peer had opened and nobody accepted when the connection ended.
    backlog: Vec<StreamId>,
    /// Datagrams that nobody had read when the connection ended.
    pub(crate) datagrams: VecDeque<Bytes>,
    /// What had become of others by then.
    pub(crate) outcomes: VecDeque<DatagramOutcome>,
    summary: Option<Box<Summary>>,
    remote: SocketAddr,
    /// News of paths that nobody has asked for, oldest first; at most [`PATH_EVENTS`].
    path_events: VecDeque<PathEvent>,
}

/// News of paths that are kept while nobody asks.
const PATH_EVENTS: usize = 32;

/// A stream for which there are handles.
#[derive(Debug, Default)]
struct StreamState {
    handles: u8,
    reader: Option<Waker>,
    writer: Option<Waker>,
    /// The peer does not want more, and said this.
    stopped: Option<u64>,
    /// The peer has acknowledged everything.
    acknowledged: bool,
    left: Option<Left>,
}

/// What had arrived of a stream when its connection ended.
#[derive(Debug)]
struct Left {
    chunks: VecDeque<Bytes>,
    end: Option<Result<(), u64>>,
}

/// What is still asked of a connection that is over.
#[derive(Debug, Clone)]
pub(crate) struct Summary {
    pub(crate) remote: SocketAddr,
    #[cfg_attr(not(feature = "http3"), expect(dead_code, reason = "nobody asks"))]
    pub(crate) peer_validated: bool,
    #[cfg_attr(not(feature = "http3"), expect(dead_code, reason = "nobody asks"))]
    pub(crate) peer_answered: bool,
    pub(crate) local: Option<IpAddr>,
    pub(crate) alpn: Option<Vec<u8>>,
    pub(crate) server_name: Option<String>,
    pub(crate) resumed: bool,
    pub(crate) early_data: EarlyDataStatus,
    pub(crate) certificates: Vec<CertificateDer<'static>>,
    pub(crate) cipher_suite: Option<CipherSuite>,
    pub(crate) key_exchange_group: Option<NamedGroup>,
    pub(crate) stats: ConnectionStats,
    pub(crate) version: u32,
    pub(crate) evidence: Evidence,
}

impl Summary {
    fn of(connection: &Connection) -> Self {
        Summary {
            remote: connection.remote(),
            peer_validated: connection.is_peer_validated(),
            peer_answered: connection.has_peer_answered(),
            local: connection.local(),
            alpn: connection.alpn().map(<[u8]>::to_vec),
            server_name: connection.server_name().map(str::to_owned),
            resumed: connection.is_resumed(),
            early_data: connection.early_data_status(),
            certificates: connection.peer_certificates().to_vec(),
            cipher_suite: connection.cipher_suite(),
            key_exchange_group: connection.key_exchange_group(),
            stats: connection.stats(),
            version: connection.version(),
            evidence: connection.evidence(),
        }
    }
}

impl ConnState {
    pub(super) fn new(conn: ConnKey, remote: SocketAddr) -> Self {
        ConnState {
            conn,
            connected: false,
            approvable: false,
            ended: None,
            waiters: Waiters::default(),
            raw: None,
            streams: HashMap::default(),
            backlog: Vec::new(),
            datagrams: VecDeque::new(),
            outcomes: VecDeque::new(),
            summary: None,
            remote,
            path_events: VecDeque::new(),
        }
    }

    /// What there is to know of the connection, over or not.
    pub(crate) fn summary(&self, connection: Option<&Connection>) -> Summary {
        match (&self.summary, connection) {
            (Some(summary), _) => (**summary).clone(),
            (None, Some(connection)) => Summary::of(connection),
            (None, None) => Summary {
                remote: self.remote,
                peer_validated: false,
                peer_answered: false,
                local: None,
                alpn: None,
                server_name: None,
                resumed: false,
                early_data: EarlyDataStatus::NotTried,
                certificates: Vec::new(),
                cipher_suite: None,
                key_exchange_group: None,
                stats: ConnectionStats::default(),
                version: 0,
                evidence: Evidence::default(),
            },
        }
    }

    /// A handle of a half of a stream comes into being. A bidirectional stream has two.
    pub(crate) fn add_stream(&mut self, id: StreamId, halves: u8) {
        self.streams.entry(id).or_default().handles += halves;
    }

    /// A handle of a half is gone.
    pub(crate) fn remove_half(&mut self, id: StreamId, shard: &mut ShardCx<'_>) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.handles = stream.handles.saturating_sub(1);
            if stream.handles == 0 {
                [stream.reader.take(), stream.writer.take()]
                    .into_iter()
                    .flatten()
                    .for_each(|it| shard.wake(it));
                self.streams.remove(&id);
            }
        }
    }

    pub(crate) fn register_reader(&mut self, id: StreamId, waker: &Waker, shard: &mut ShardCx<'_>) {
        let replaced = self.streams.get_mut(&id).and_then(|stream| register(&mut stream.reader, waker));
        replaced.into_iter().for_each(|waker| shard.wake(waker));
    }

    pub(crate) fn register_writer(&mut self, id: StreamId, waker: &Waker, shard: &mut ShardCx<'_>) {
        let replaced = self.streams.get_mut(&id).and_then(|stream| register(&mut stream.writer, waker));
        replaced.into_iter().for_each(|waker| shard.wake(waker));
    }

    /// The code with which the peer said that it reads no more of a stream.
    pub(crate) fn stop_code(&self, id: StreamId) -> Option<u64> {
        self.streams.get(&id).and_then(|stream| stream.stopped)
    }

    /// Whether the peer has acknowledged all of a stream.
    pub(crate) fn is_acknowledged(&self, id: StreamId) -> bool {
        self.streams.get(&id).is_some_and(|stream| stream.acknowledged)
    }

    /// Reads what was left when the connection ended; `None` if that is nothing.
    pub(crate) fn read_left(&mut self, id: StreamId, max: usize) -> Option<Result<ReadChunk, ReadError>> {
        let left = self.streams.get_mut(&id)?.left.as_mut()?;
        if let Some(chunk) = left.chunks.front_mut() {
            let data = chunk.split_to(chunk.len().min(max));
            if chunk.is_empty() {
                left.chunks.pop_front();
            }
            return Some(Ok(ReadChunk::Data(data)));
        }
        Some(match left.end? {
            Ok(()) => Ok(ReadChunk::Finished),
            Err(code) => Err(ReadError::Reset(code)),
        })
    }

    /// The next stream that was never accepted before the connection ended.
    pub(crate) fn accept_left(&mut self, direction: Direction) -> Option<StreamId> {
        let at = self.backlog.iter().position(|id| id.direction() == direction)?;
        Some(self.backlog.remove(at))
    }

    /// There is news of a path, in raw mode or not.
    pub(super) fn on_path(&mut self, shard: &mut ShardCx<'_>, update: &PathUpdate) {
        if self.path_events.len() >= PATH_EVENTS {
            self.path_events.pop_front();
        }
        self.path_events.push_back(PathEvent::of(shard, update));
        self.waiters.wake_one(Topic::Path, shard);
    }

    /// The oldest news of a path that nobody has heard.
    pub(crate) fn next_path_event(&mut self) -> Option<PathEvent> {
        self.path_events.pop_front()
    }

    /// The handshake is complete, in raw mode or not: a connection with 0-RTT may be in it before.
    pub(super) fn on_connected(&mut self, shard: &mut ShardCx<'_>) {
        self.connected = true;
        self.waiters.wake_all(Topic::Connected, shard);
        self.waiters.wake_all(Topic::Evidence, shard);
    }

    /// A protocol in raw mode has given streams to handles, or has given some up.
    pub(crate) fn on_stream_news(&mut self, shard: &mut ShardCx<'_>, news: StreamNews) {
        news.adopted.into_iter().for_each(|(id, halves)| self.add_stream(id, halves));
        for id in news.given_up {
            if let Some(stream) = self.streams.get_mut(&id) {
                let wakers = [stream.reader.take(), stream.writer.take()];
                wakers.into_iter().flatten().for_each(|waker| shard.wake(waker));
                self.waiters.wake_all(Topic::SendOver(id), shard);
            }
        }
    }

    /// Something happened to a stream, in raw mode or not.
    pub(super) fn on_stream_event(&mut self, shard: &mut ShardCx<'_>, event: &Event) {
        if self.streams.is_empty() {
            return;
        }
        match event {
            Event::Readable { id } => {
                let reader = self.streams.get_mut(id).and_then(|stream| stream.reader.take());
                reader.into_iter().for_each(|waker| shard.wake(waker));
            }
            Event::Writable { id } => {
                let writer = self.streams.get_mut(id).and_then(|stream| stream.writer.take());
                writer.into_iter().for_each(|waker| shard.wake(waker));
            }
            Event::Finished { id } => self.on_send_over(shard, *id, None),
            Event::Stopped { id, code } => self.on_send_over(shard, *id, Some(*code)),
            _ => {}
        }
    }

    /// Something happened. Not for connections in raw mode.
    pub(super) fn on_event(&mut self, shard: &mut ShardCx<'_>, event: &Event) {
        match event {
            Event::ApprovalWanted => {
                self.approvable = true;
                self.waiters.wake_all(Topic::Connected, shard);
            }
            Event::StreamOpened { direction } => self.waiters.wake_one(Topic::Accept(*direction), shard),
            Event::StreamsAvailable { direction } => self.waiters.wake_one(Topic::Open(*direction), shard),
            Event::DatagramsReadable => self.waiters.wake_one(Topic::Datagram, shard),
            Event::DatagramOutcomes => self.waiters.wake_one(Topic::DatagramOutcome, shard),
            Event::DatagramsWritable => self.waiters.wake_one(Topic::DatagramRoom, shard),
            Event::EvidenceChanged => self.waiters.wake_all(Topic::Evidence, shard),
            Event::IdealBufferChanged => self.waiters.wake_all(Topic::IdealBuffer, shard),
            event => self.on_stream_event(shard, event),
        }
    }

    fn on_send_over(&mut self, shard: &mut ShardCx<'_>, id: StreamId, stopped: Option<u64>) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        match stopped {
            Some(code) => stream.stopped = Some(code),
            None => stream.acknowledged = true,
        }
        stream.writer.take().into_iter().for_each(|waker| shard.wake(waker));
        self.waiters.wake_all(Topic::SendOver(id), shard);
    }

    /// The connection is over. What has arrived can still be read, unless this end closed it.
    pub(super) fn on_closed(&mut self, shard: &mut ShardCx<'_>, reason: EndReason) {
        if self.ended.is_some() {
            return;
        }
        let (now, conn) = (shard.now(), self.conn);
        let mut tls = None;
        if let Some(connection) = shard.endpoint_mut().connection_mut(conn) {
            tls = connection.tls_failure().cloned();
            self.summary = Some(Box::new(Summary::of(connection)));
            let locally =
                matches!(reason, EndReason::Transport(godwit_transport::ConnectionError::ClosedLocally));
            if self.raw.is_none() {
                self.outcomes = std::iter::from_fn(|| connection.next_datagram_outcome()).collect();
            }
            if !locally && self.raw.is_none() {
                self.datagrams = std::iter::from_fn(|| connection.read_datagram()).collect();
                self.collect_backlog(connection);
            }
            if !locally {
                self.collect_left(connection, now);
            }
        }
        self.ended = Some(ConnectionError::new(reason, tls, self.connected));
        let wakers =
            self.streams.values_mut().flat_map(|stream| [stream.reader.take(), stream.writer.take()]);
        wakers.flatten().for_each(|waker| shard.wake(waker));
        self.waiters.wake_everyone(shard);
    }

    fn collect_backlog(&mut self, connection: &mut Connection) {
        for direction in [Direction::Bidirectional, Direction::Unidirectional] {
            while let Some(id) = connection.accept(direction) {
                self.streams.entry(id).or_default();
                self.backlog.push(id);
            }
        }
    }

    fn collect_left(&mut self, connection: &mut Connection, now: godwit_base::Time) {
        let side = connection.side();
        for (&id, stream) in &mut self.streams {
            if receives(side, id) {
                stream.left = Some(Left::of(connection, now, id));
            }
            match connection.write_room(id) {
                Err(WriteError::Stopped(code)) => stream.stopped = Some(code),
                Err(WriteError::UnknownStream) => stream.acknowledged = stream.stopped.is_none(),
                _ => {}
            }
        }
    }
}

impl Left {
    fn of(connection: &mut Connection, now: godwit_base::Time, id: StreamId) -> Self {
        let mut left = Left { chunks: VecDeque::new(), end: None };
        loop {
            match connection.read(now, id, LEFT_CHUNK) {
                Ok(ReadChunk::Data(data)) => left.chunks.push_back(data),
                Ok(ReadChunk::Finished) => left.end = Some(Ok(())),
                Err(ReadError::Reset(code)) => left.end = Some(Err(code)),
                Ok(ReadChunk::Blocked) | Err(_) => return left,
            }
            if left.end.is_some() {
                return left;
            }
        }
    }
}

/// Whether an end of this side reads from a stream.
fn receives(side: Side, id: StreamId) -> bool {
    id.direction() == Direction::Bidirectional || id.initiator() != side
}

/// Stream ids come in sequence, and how many there are at once is limited: a multiplication spreads them.
#[derive(Debug, Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}
