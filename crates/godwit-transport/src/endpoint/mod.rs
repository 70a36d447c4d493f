//! The endpoint: a set of connections behind a set of sockets (RFC 9000 sections 5.2, 6, 8.1, 10.3).
//!
//! It finds the connection for each datagram, answers those that belong to none, holds incoming
//! handshakes until the application decides, and passes on timers, events and what is to be sent. It
//! does no I/O: [`Endpoint::receive`], [`Endpoint::on_timeout`] and calls on connections go in;
//! [`Endpoint::transmit`], [`Endpoint::deadline`], [`Endpoint::next_incoming`] and
//! [`Endpoint::next_event`] come out.
//!
//! Invariant: after every input, each connection that was touched is in the queue of those to be asked for
//! datagrams, in the queue of those to be asked for events, and among those whose timers are set when a deadline is next
//! asked for or looked at: once, and not after every input.

mod accept;
mod admission;
mod beginning;
mod demux;
mod discards;
mod first_initial;
mod foreign;
mod half_open;
mod holdings;
mod incoming;
mod ledger;
mod negotiate;
mod networks;
mod occupancy;
mod older_generations;
mod receive;
mod reflectors;
mod run;
mod sample;
mod send;
mod slot;
mod source;
mod stateless_reset;
mod stray;
mod table;

pub use accept::AcceptError;
pub use foreign::{Foreign, ForeignBatch};
pub use incoming::{GoneIncoming, Incoming};
pub use older_generations::Begun;

use crate::cid::{CidCodec, CidIdentifier, ServerId, Shown};
use crate::config::{ClientConfig, EndpointConfig, ServerConfig};
use crate::connection::SendingMemory;
use crate::connection::boundary::{ClientArgs, EndpointEvent};
use crate::keyed_hash::KeyedHash;
use crate::path::PathKey;
use crate::resumption::Recalled;
use crate::{ConnectError, Connection, EarlyDataStatus, Event};
use bytes::Bytes;
use demux::Demux;
use godwit_base::slab::Key;
use godwit_base::{Rng, Slab, SocketId, Time, TimerQueue, WallTime};
use godwit_recovery::SavedState;
use godwit_tls::secrets::ServerSecrets;
use godwit_wire::{ConnectionId, Side};
use half_open::HalfOpen;
use holdings::Holdings;
use incoming::IncomingSet;
use ledger::Ledger;
use networks::Networks;
use older_generations::OlderGenerations;
pub use send::BatchWriters;
use send::Outbox;
use slot::ConnectionSlot;
use source::Source;
use std::collections::VecDeque;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// A connection of an [`Endpoint`]. Keys are never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnKey(Key);

impl ConnKey {
    /// The key in one number.
    pub const fn as_u64(self) -> u64 {
        self.0.as_u64()
    }

    /// The key that [`ConnKey::as_u64`] was made of; any other number most likely finds nothing.
    pub const fn from_u64(number: u64) -> Self {
        ConnKey(Key::from_u64(number))
    }

    /// A small number that no other connection has at the same time: it can index a table.
    pub const fn index(self) -> usize {
        self.0.index()
    }
}

/// A handshake of an [`Endpoint`] that waits to be accepted. Keys are never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IncomingKey(Key);

/// Connections and handshakes behind a set of sockets.
pub struct Endpoint {
    config: EndpointConfig,
    server: Option<Arc<ServerConfig>>,
    rng: Box<dyn Rng + Send>,
    codec: CidCodec,
    demux: Demux,
    slots: Slab<ConnectionSlot>,
    timers: TimerQueue<ConnKey>,
    incoming: IncomingSet,
    queues: Queues,
    outbox: Outbox,
    foreign: ForeignBatch,
    older_generations: OlderGenerations,
    half_open: HalfOpen,
    places: Ledger,
    holdings: Holdings,
    networks: Networks,
    resets: stateless_reset::Limiters,
    clock: Clock,
    accepting: bool,
    /// A path was left since it was last asked.
    paths_left: bool,
}

/// Which connections are waiting for what. Each is in a queue once at most.
#[derive(Debug, Default)]
struct Queues {
    /// They may have something to send.
    ready: VecDeque<ConnKey>,
    /// They may have events.
    eventful: VecDeque<ConnKey>,
    /// Incoming handshakes that wait no more, if somebody wants to know of them.
    gone: Option<VecDeque<GoneIncoming>>,
    /// They have got datagrams of the present batch.
    touched: Vec<ConnKey>,
    /// One of them is a client whose handshake the present run has completed.
    finished: bool,
    /// They have come about since something was sent last, and have a flight of TLS to send: [`MOST_FIRST_FLIGHTS`] at most.
    first_flights: Vec<ConnKey>,
    /// Their deadlines may have changed since their timers were set.
    untimed: Vec<ConnKey>,
    /// Their deadlines have passed; empty between calls.
    expired: Vec<ConnKey>,
    /// They wrote into the batch filled last, each from the run with this number.
    in_batch: Vec<(ConnKey, usize)>,
    /// Memory for the packets being written; nothing is left in it between calls.
    writing: SendingMemory,
    /// When that was.
    batch_at: Time,
    /// When each run of it leaves. None if the data path keeps no departure times.
    departures: Option<Vec<Option<Time>>>,
    /// Clients that try to connect, in the order in which they began. Some may be done.
    attempts: VecDeque<ConnKey>,
}

/// First flights that may leave before their turn. While a socket is full, nothing empties the list: those beyond leave as all
/// else does.
const MOST_FIRST_FLIGHTS: usize = 64;

impl Queues {
    /// A connection has come about that has a flight of TLS to send.
    fn push_first_flight(&mut self, key: ConnKey) {
        if self.first_flights.len() < MOST_FIRST_FLIGHTS {
            self.first_flights.push(key);
        }
    }
}

/// The time of day, as of the last batch.
#[derive(Debug, Default)]
struct Clock {
    wall: WallTime,
    at: Time,
}

impl Clock {
    fn set(&mut self, now: Time, wall: WallTime) {
        *self = Clock { wall, at: now };
    }

    fn advance(&mut self, now: Time) {
        let passed = now.saturating_since(self.at);
        self.set(self.at.max(now), self.wall + passed);
    }
}

impl Endpoint {
    /// Ids made for a connection at one request.
    const MAX_CIDS_AT_ONCE: usize = 8;

    /// An endpoint without connections. Without a server configuration it accepts none.
    pub fn new(
        config: EndpointConfig,
        server: Option<Arc<ServerConfig>>,
        mut rng: Box<dyn Rng + Send>,
    ) -> Self {
        let hash = KeyedHash::new(&mut *rng);
        Endpoint {
            codec: codec_of(&config),
            demux: Demux::new(hash),
            slots: Slab::new(),
            timers: TimerQueue::new(),
            incoming: IncomingSet::new(config.max_incoming),
            half_open: HalfOpen::new(config.max_handshakes),
            places: Ledger::new(config.max_connections),
            holdings: Holdings::new(hash, config.memory_limit.clone()),
            queues: Queues::default(),
            outbox: Outbox::new(),
            foreign: ForeignBatch::new(),
            older_generations: OlderGenerations::new(hash),
            networks: Networks::new(hash),
            resets: stateless_reset::Limiters::default(),
            clock: Clock::default(),
            accepting: true,
            paths_left: false,
            config,
            server,
            rng,
        }
    }

    /// Begins a connection to `path.remote`. `token` comes from an earlier connection to the same server. If the
    /// store of sessions has tickets for that server of another version spoken here only, it begins with that one.
    ///
    /// # Errors
    /// If the endpoint holds as many connections as it may, or the configuration or name cannot be used.
    pub fn connect(
        &mut self,
        now: Time,
        config: &ClientConfig,
        path: PathKey,
        server_name: &str,
        token: Option<Bytes>,
    ) -> Result<ConnKey, ConnectError> {
        if self.slots.len() >= self.config.max_connections {
            return Err(ConnectError::TooManyConnections);
        }
        let recalled = Recalled::of(config, config.offered(&self.config.versions), server_name);
        self.connect_recalled(now, (config, recalled), path, server_name, token)
    }

    /// How many datagrams at this socket belonged to nobody and were good for nothing, as far as is remembered: what is malformed,
    /// forged, too short, or comes from where nobody begins a connection (RFC 9308 section 8.1).
    pub fn discarded_at(&self, socket: SocketId) -> u64 {
        self.demux.discards.at(socket)
    }

    /// How many Retry packets it has sent.
    pub const fn retries_sent(&self) -> u64 {
        self.outbox.retries()
    }

    /// The versions that it speaks, the preferred first.
    pub fn versions(&self) -> &[u32] {
        &self.config.versions
    }

    /// Speaks these versions from now on, the preferred first. Servers move clients that began with another one to
    /// `upgrade_to`, if they offer it and it can be moved to.
    pub fn set_versions(&mut self, versions: Vec<u32>, upgrade_to: Option<u32>) {
        (self.config.versions, self.config.upgrade_to) = (versions, upgrade_to);
    }

    /// As [`Endpoint::connect`], with what was recalled of the server before: where the endpoint is locked, a store of
    /// sessions that takes its time keeps nobody waiting then.
    ///
    /// # Errors
    /// The same.
    pub fn connect_recalled(
        &mut self,
        now: Time,
        (config, recalled): (&ClientConfig, Recalled),
        path: PathKey,
        server_name: &str,
        token: Option<Bytes>,
    ) -> Result<ConnKey, ConnectError> {
        if self.slots.len() >= self.config.max_connections {
            return Err(ConnectError::TooManyConnections);
        }
        self.clock.advance(now);
        let identifier = config.transport.cibir.identifier();
        let local_cid = self.fresh_cid(&Shown { server_id: None, identifier });
        let mut initial_dcid = [0; CidCodec::MIN_LEN];
        self.rng.fill(&mut initial_dcid);
        let Recalled(memory) = recalled;
        let args = ClientArgs {
            config,
            version: memory.as_ref().map_or(config.version, |memory| memory.version()),
            memory,
            server_name,
            path,
            local_cid,
            reset_token: self.config.secrets.reset_token(&local_cid),
            initial_dcid: ConnectionId::new(&initial_dcid).unwrap_or_default(),
            token,
            versions: config.offered(&self.config.versions),
        };
        let mut connection = Connection::client(now, args, &mut *self.rng)?;
        connection.share_windows(&self.config.window_reserve);
        connection.machine.start_observing(now, self.clock.wall, &self.config);
        let key = self.insert(connection, local_cid, None, None);
        self.on_attempt(key);
        self.touch(key);
        // What is said early goes with the ClientHello.
        if self.connection(key).is_some_and(|client| client.early_data_status() == EarlyDataStatus::NotTried)
        {
            self.queues.push_first_flight(key);
        }
        Ok(key)
    }

    /// A client begins to connect. Those before it that are done are not looked after any more.
    fn on_attempt(&mut self, key: ConnKey) {
        let mut attempts = std::mem::take(&mut self.queues.attempts);
        let is_done = |key: &mut ConnKey| self.connection(*key).is_none_or(|client| !client.is_handshaking());
        while attempts.pop_front_if(is_done).is_some() {}
        attempts.push_back(key);
        self.queues.attempts = attempts;
    }

    /// Tells the time of day before anything is received, which tells it too: connections that begin until then have it
    /// in their traces.
    pub fn set_time(&mut self, now: Time, wall: WallTime) {
        self.clock.set(now, wall);
    }

    /// A connection, to be looked at.
    pub fn connection(&self, key: ConnKey) -> Option<&Connection> {
        self.slots.get(key.0).map(|slot| &*slot.connection)
    }

    /// A connection, to be changed. Call [`Endpoint::touch`] afterwards, or use [`Endpoint::with`].
    pub fn connection_mut(&mut self, key: ConnKey) -> Option<&mut Connection> {
        self.slots.get_mut(key.0).map(|slot| &mut *slot.connection)
    }

    /// Calls `change` with a connection and sees to it that what follows is sent.
    pub fn with<R>(&mut self, key: ConnKey, change: impl FnOnce(&mut Connection) -> R) -> Option<R> {
        let result = change(self.connection_mut(key)?);
        self.touch(key);
        Some(result)
    }

    /// A connection was changed through [`Endpoint::connection_mut`]: it may have something to send,
    /// another deadline, and events.
    pub fn touch(&mut self, key: ConnKey) {
        if let Some(slot) = self.slots.get_mut(key.0)
            && !slot.ready
        {
            slot.ready = true;
            self.queues.ready.push_back(key);
        }
        self.settle(key);
    }

    /// The next event of any connection.
    pub fn next_event(&mut self) -> Option<(ConnKey, Event)> {
        while let Some(key) = self.queues.eventful.front().copied() {
            if let Some(slot) = self.slots.get_mut(key.0) {
                if let Some(event) = slot.connection.next_event() {
                    return Some((key, event));
                }
                slot.eventful = false;
                if slot.drained
                    && let Some(slot) = self.slots.remove(key.0)
                {
                    self.on_place_free(&slot);
                    self.on_gone(&slot);
                }
            }
            self.queues.eventful.pop_front();
        }
        None
    }

    /// When to call [`Endpoint::on_timeout`].
    pub fn deadline(&mut self) -> Option<Time> {
        self.set_timers();
        let connections = self.timers.next_deadline();
        let incoming = self.incoming.deadline();
        connections.into_iter().chain(incoming).min()
    }

    /// Time has passed.
    pub fn on_timeout(&mut self, now: Time) {
        self.clock.advance(now);
        self.set_timers();
        while let Some((key, incoming)) = self.incoming.pop_expired(now) {
            self.forget_incoming(key, &incoming);
        }
        // First all that are due, then their turns: a deadline that stays in the past must not hold us here.
        let mut expired = std::mem::take(&mut self.queues.expired);
        expired.extend(std::iter::from_fn(|| self.timers.pop_expired(now)));
        for key in expired.drain(..) {
            let slot = self.slots.get_mut(key.0);
            if slot.is_none_or(|slot| slot.connection.machine.on_timeout(now)) {
                self.touch(key);
            } else {
                self.settle(key);
            }
        }
        self.queues.expired = expired;
    }

    /// Closes every connection with an application's error code, and refuses new ones from now on.
    pub fn close_all(&mut self, now: Time, code: u64, reason: &[u8]) {
        self.reject_new();
        let keys: Vec<ConnKey> = self.slots.iter().map(|(key, _)| ConnKey(key)).collect();
        for key in keys {
            self.with(key, |connection| connection.close(now, code, reason));
        }
    }

    /// True if clients wait to be accepted, or have said a part of what it takes to decide.
    pub fn has_incoming(&self) -> bool {
        !self.incoming.is_empty()
    }

    /// Accepts connections with these settings from now on; without any, accepting needs settings of its own.
    /// Connections that exist keep theirs.
    pub fn set_server_config(&mut self, config: Option<Arc<ServerConfig>>) {
        self.server = config;
    }

    /// The secrets that its tokens follow from.
    pub const fn secrets(&self) -> &Arc<ServerSecrets> {
        &self.config.secrets
    }

    /// Has tokens follow from other secrets from now on. Connection ids are made with the first ones.
    pub fn set_secrets(&mut self, secrets: Arc<ServerSecrets>) {
        self.config.secrets = secrets;
    }

    /// Sets the number that connection ids show to load balancers. As they may have another length with it, there must be
    /// neither connections nor handshakes yet; with either, only another number can take the place of the one that there is.
    pub fn set_server_id(&mut self, server_id: Option<ServerId>) {
        self.config.server_id = server_id;
        if self.slots.is_empty() && self.incoming.is_empty() {
            self.codec = codec_of(&self.config);
        }
    }

    /// Sets the identifier in connection ids that are given out before it is known which settings hold.
    pub const fn set_cid_identifier(&mut self, identifier: Option<CidIdentifier>) {
        self.config.cid_identifier = identifier;
    }

    /// Sets the length of the connection ids, as [`EndpointConfig::cid_len`] does. Nothing happens if there are connections or
    /// handshakes.
    pub fn set_cid_len(&mut self, cid_len: usize) {
        if self.slots.is_empty() && self.incoming.is_empty() {
            self.config.cid_len = cid_len;
            self.codec = codec_of(&self.config);
        }
    }

    /// Sets how many connections may be half-open before strangers have to prove their address.
    pub const fn set_handshakes_before_retry(&mut self, handshakes: usize) {
        self.config.handshakes_before_retry = handshakes;
    }

    /// Sets how many connections are held at most. Those that exist stay.
    pub const fn set_max_connections(&mut self, connections: usize) {
        self.config.max_connections = connections;
    }

    /// Refuses new connections from now on, for a graceful shutdown. Handshakes that already wait can
    /// still be accepted.
    pub const fn reject_new(&mut self) {
        self.accepting = false;
    }

    /// True if there is nothing left: no connection, no incoming handshake, nothing to send.
    pub fn is_idle(&self) -> bool {
        self.slots.is_empty() && self.incoming.is_empty() && self.outbox.is_empty()
    }

    /// Number of connections, those included that are closing.
    pub const fn connections(&self) -> usize {
        self.slots.len()
    }

    /// True once after a connection has left a path: a socket may be needed no more.
    pub const fn take_paths_left(&mut self) -> bool {
        std::mem::replace(&mut self.paths_left, false)
    }

    /// The connections of this end's making that are not over: clients'.
    pub fn clients(&self) -> impl Iterator<Item = ConnKey> {
        let clients = self.slots.iter().filter(|(_, slot)| slot.connection.side() == Side::Client);
        clients.filter(|(_, slot)| slot.connection.is_open()).map(|(key, _)| ConnKey(key))
    }

    /// True if any connection that is not over has a path on the socket.
    pub fn uses_socket(&self, socket: SocketId) -> bool {
        self.slots.iter().any(|(_, slot)| slot.connection.uses_socket(socket))
    }

    /// The format of this endpoint's connection ids, for steering.
    #[cfg(test)]
    const fn cid_codec(&self) -> &CidCodec {
        &self.codec
    }

    fn insert(
        &mut self,
        connection: Connection,
        local_cid: ConnectionId,
        source: Option<Source>,
        initial: Option<ConnectionId>,
    ) -> ConnKey {
        let mut slot = ConnectionSlot::new(connection, source, initial);
        slot.cids.push(local_cid);
        let key = ConnKey(self.slots.insert(slot));
        self.on_place_taken(source);
        self.demux.insert_issued(local_cid, key);
        if let Some(dcid) = initial {
            self.demux.insert_initial(dcid, demux::Target::Connection(key));
        }
        key
    }

    /// What the ids of a server's connection show whose client reaches this address.
    fn shown_at(&self, local: Option<IpAddr>) -> Shown {
        let server_id = self.config.server_id.map(|server| server.at(local));
        Shown { server_id, identifier: self.config.cid_identifier }
    }

    /// What the ids of this connection show.
    fn shown_by(&self, connection: &Connection) -> Shown {
        let shown = match connection.side() {
            Side::Server => self.shown_at(connection.machine.path_key().local),
            Side::Client => Shown::default(),
        };
        Shown { identifier: connection.machine.cid_identifier(), ..shown }
    }

    /// An id that nobody uses, which shows this.
    fn fresh_cid(&mut self, shown: &Shown) -> ConnectionId {
        let mut cid = self.codec.issue_with(&mut *self.rng, shown);
        // Even with ids of eight bytes and a million connections the first is taken once in 10^7 times.
        for _ in 0..16 {
            if !self.demux.is_taken(&cid) {
                break;
            }
            cid = self.codec.issue_with(&mut *self.rng, shown);
        }
        cid
    }

    /// After a connection did something: does what it asks of the endpoint, and puts it into the queue for events and
    /// among those whose timers are to be set.
    fn settle(&mut self, key: ConnKey) {
        while let Some(event) =
            self.slots.get_mut(key.0).and_then(|slot| slot.connection.machine.next_endpoint_event())
        {
            self.on_endpoint_event(key, event);
        }
        let Some(slot) = self.slots.get_mut(key.0) else { return };
        let done = slot.take_no_longer_half_open();
        let held = slot.held_otherwise();
        if !slot.untimed {
            slot.untimed = true;
            self.queues.untimed.push(key);
        }
        if !slot.eventful {
            slot.eventful = true;
            self.queues.eventful.push_back(key);
        }
        if let Some(source) = done {
            self.on_no_longer_half_open(source);
        }
        if let Some(held) = held {
            self.on_held(key, held);
        }
    }

    /// Sets the timers of all connections to their deadlines.
    fn set_timers(&mut self) {
        for key in self.queues.untimed.drain(..) {
            let deadline = self.slots.get_mut(key.0).and_then(|slot| {
                slot.untimed = false;
                if slot.drained { None } else { slot.connection.deadline() }
            });
            self.timers.set(key, deadline);
        }
    }

    fn on_endpoint_event(&mut self, key: ConnKey, event: EndpointEvent) {
        match event {
            EndpointEvent::Drained => {
                if let Some(slot) = self.slots.get_mut(key.0) {
                    slot.drained = true;
                    self.paths_left = true;
                    slot.detach(key, &mut self.demux);
                }
            }
            EndpointEvent::ForgetResetTokens => {
                if let Some(slot) = self.slots.get_mut(key.0) {
                    slot.forget_resets(key, &mut self.demux);
                }
            }
            EndpointEvent::FoundNetwork(found) => {
                if let Some(slot) = self.slots.get(key.0) {
                    let remote = slot.connection.machine.path_key().remote;
                    self.networks.put(remote.ip(), found);
                }
            }
            EndpointEvent::FoundPath(found) => self.give_token(key, found),
            EndpointEvent::PathLeft => self.paths_left = true,
            EndpointEvent::NeedCids(count) => self.issue_cids(key, count),
            EndpointEvent::PeerResetToken { remote, token } => {
                if let Some(slot) = self.slots.get_mut(key.0).filter(|slot| !slot.drained) {
                    slot.add_reset(key, &mut self.demux, remote, token);
                }
            }
            EndpointEvent::RetiredCid(cid) => {
                if let Some(slot) = self.slots.get_mut(key.0) {
                    slot.cids.retain(|known| *known != cid);
                    self.demux.remove_issued(&cid);
                }
            }
        }
    }

    /// Gives a client a new token, with what its connection has found of the path.
    fn give_token(&mut self, key: ConnKey, found: SavedState) {
        let Some(slot) = self.slots.get(key.0) else { return };
        let address = slot.connection.machine.path_key().remote.ip();
        let Some(token) = self.new_token(address, Some(found)) else { return };
        if let Some(slot) = self.slots.get_mut(key.0) {
            slot.connection.machine.give_token(token);
        }
    }

    fn issue_cids(&mut self, key: ConnKey, count: usize) {
        let Some(shown) = self.slots.get(key.0).map(|slot| self.shown_by(&slot.connection)) else { return };
        for _ in 0..count.min(Self::MAX_CIDS_AT_ONCE) {
            let cid = self.fresh_cid(&shown);
            let Some(slot) = self.slots.get_mut(key.0).filter(|slot| !slot.drained) else { return };
            if !slot.connection.machine.add_local_cid(cid, self.config.secrets.reset_token(&cid)) {
                return;
            }
            slot.cids.push(cid);
            self.demux.insert_issued(cid, key);
        }
    }
}

/// The format of the connection ids.
fn codec_of(config: &EndpointConfig) -> CidCodec {
    let key = config.secrets.cid_key();
    let codec = CidCodec::new(key, config.cid_len, config.shard, config.generation);
    if config.server_id.is_some() { codec.with_server_ids() } else { codec }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("connections", &self.slots.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod pair_tests;
#[cfg(test)]
mod tests;
