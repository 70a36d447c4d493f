//! One QUIC connection.
//!
//! [`Connection`] is wiring. Inputs are a datagram (`input`), the passing of time (`timers`) and calls
//! of the application (`streams`, `close`); outputs are datagrams (`output`), a deadline and
//! events. What happens in between belongs to components with one concern each: `Handshake` (TLS),
//! `Spaces` (packet numbers and keys), `PathSet` (addresses, congestion), `LocalCids` and `RemoteCids`,
//! `Streams`, `Control` and `Lifecycle`.
//!
//! Invariants: nothing unauthenticated changes state; an error on the wire closes this connection and
//! no other; after `Drained` nothing is sent or told any more.
//!
//! RFC 9000 sections 5 to 14, RFC 9001 section 4, RFC 9002.

mod ack_frequency;
mod acks;
mod announcements;
mod approval;
pub(crate) mod boundary;
mod close;
mod close_packets;
mod datagrams;
mod early;
mod events;
mod evidence;
mod frames;
mod handshaking;
mod header_bits;
mod input;
mod lifecycle;
mod migration;
mod negotiation;
mod observing;
mod outcome;
mod output;
mod parts;
mod paths;
mod ping;
mod probes;
mod sealing;
mod settings;
mod space;
mod stats;
mod timers;
mod versions;

#[cfg(test)]
mod tests;

pub(crate) use boundary::BegunInitials;
pub use evidence::{Evidence, Progress};
pub use migration::MigrateError;
pub use stats::{ConnectionStats, PacketCounts};
pub(crate) use versions::choose as choose_version;

use crate::cid::{LocalCids, RemoteCids};
use crate::handshake::{Handshake, NewKeys};
use crate::packet::Buffers;
use crate::path::{PathKey, PathSet};
use crate::streams::{ReadChunk, ReadError, ResetAtError, UnknownStream, WriteError};
use crate::{ConnectError, Event, TransportConfig, WireError};
use boundary::{ClientArgs, EndpointEvent, ServerArgs};
use bytes::Bytes;
use early::Early;
use events::Events;
use godwit_base::{Rng, Time};
use godwit_recovery::{Outcome, PathRecovery, PathSettings};
use godwit_tls::ExportError;
use godwit_tls::keys;
use godwit_tls::resumption::BothKinds;
use godwit_wire::{ConnectionId, Direction, ResetToken, Side, StreamId, TransportErrorCode};
use header_bits::HeaderBits;
use lifecycle::Lifecycle;
use migration::Migration;
use negotiation::Negotiation;
use observing::Observation;
use parts::{Parts, RecoveryToken};
use space::Spaces;
use stats::Counters;
use std::net::SocketAddr;
use std::sync::Arc;
use timers::Timers;
use versions::Versions;

/// A connection, of either side.
#[derive(Debug)]
pub struct Connection {
    side: Side,
    version: u32,
    config: Arc<TransportConfig>,
    lifecycle: Lifecycle,
    negotiation: Negotiation,
    spaces: Spaces,
    paths: PathSet,
    parts: Parts,
    early: Early,
    timers: Timers,
    events: Events,
    versions: Versions,
    header_bits: HeaderBits,
    migration: Migration,
    observation: Observation,
    stats: Counters,
    /// Memory for the packets being written.
    buffers: Buffers<RecoveryToken>,
    /// Memory for what an acknowledgement or a loss brings back.
    outcomes: Vec<(Outcome, RecoveryToken)>,
}

/// Bytes by which an IPv6 header is longer than one of IPv4.
const IPV6_LONGER_HEADER: u16 = 20;

impl Connection {
    /// Begins a connection to a server. The first packets wait to be sent.
    pub(crate) fn client(now: Time, args: ClientArgs<'_>, rng: &mut dyn Rng) -> Result<Self, ConnectError> {
        let config = args.config.transport.clone();
        let grease = rng.next_u64();
        let versions = Versions::client(&args, grease, rng.next_u64());
        let offered = versions.available();
        let (tls, memory, version) = (&args.config.tls, args.memory, args.version);
        let known_token = || memory.as_ref().and_then(|memory| memory.take_token());
        let token = args.token.or_else(known_token).unwrap_or_default();
        let mut negotiation = Negotiation::client(args.local_cid, args.initial_dcid, token);
        let parameters = negotiation.parameters(&config, version, offered.as_slice());
        let parameters = negotiation::encode(&parameters, grease)?;
        let tls = memory.as_ref().map_or_else(|| tls.as_ref().clone(), |memory| memory.tls(tls));
        let mut handshake = Handshake::client(tls, version, args.server_name, parameters)?;
        handshake.set_memory(memory.clone());
        let remote_cids = RemoteCids::new(args.initial_dcid, config.active_cid_limit);
        let local_cids = LocalCids::new(args.local_cid, args.reset_token);
        let mut settings = path_settings(&config, &args.path);
        if let Some(memory) = &memory {
            settings.initial_rtt = memory.initial_rtt(settings.initial_rtt);
        }
        negotiation.memory = memory;
        let mut recovery = PathRecovery::new(now, &settings);
        recovery.set_peer_validated(false);
        let paths = PathSet::new(Side::Client, args.path, recovery, true);
        let keys = initial_keys(version, &args.initial_dcid, Side::Client)?;
        let mut connection = Connection {
            side: Side::Client,
            version,
            lifecycle: Lifecycle::new(),
            negotiation,
            spaces: Spaces::new(keys, config.max_ack_delay),
            paths,
            parts: Parts::new(Side::Client, &config, handshake, local_cids, remote_cids),
            early: Early::default(),
            timers: Timers::new(now, config.handshake_timeout, nonzero(config.max_idle_timeout)),
            events: Events::default(),
            versions,
            header_bits: HeaderBits::new(Side::Client, config.spin_bit, rng),
            migration: Migration::new(),
            observation: Observation::default(),
            stats: Counters::default(),
            buffers: Buffers::default(),
            outcomes: Vec::new(),
            config,
        };
        if let Some(NewKeys::ZeroRtt(keys)) = connection.parts.handshake.next_keys() {
            connection.on_early_keys(*keys);
        }
        Ok(connection)
    }

    /// Answers a client whose first datagram will be given to [`Connection::receive`] next.
    pub(crate) fn server(now: Time, args: ServerArgs<'_>, rng: &mut dyn Rng) -> Result<Self, ConnectError> {
        let config = args.config.transport.clone();
        let negotiation =
            Negotiation::server(args.local_cid, args.original_dcid, args.retry_scid, args.peer_scid);
        let mut parameters = negotiation.parameters(&config, args.version, args.versions);
        parameters.stateless_reset_token = Some(args.reset_token);
        parameters.preferred_address = args.preferred;
        let parameters = negotiation::encode(&parameters, rng.next_u64())?;
        let tls = match &args.config.tickets {
            Some(tickets) => BothKinds::install(&args.config.tapped(), tickets.clone()),
            None => args.config.tapped(),
        };
        let handshake = Handshake::server(tls, args.version, parameters)?;
        let recovery = PathRecovery::new(now, &path_settings(&config, &args.path));
        let keys = initial_keys(args.version, &args.client_dcid, Side::Server)?;
        let (original, spoken) = (args.original_version, args.versions);
        let versions = Versions::server(original, args.version, &args.client_dcid, spoken);
        let mut local_cids = LocalCids::new(args.local_cid, args.reset_token);
        if let Some(preferred) = args.preferred {
            local_cids.add_preferred(preferred.cid, preferred.reset_token);
        }
        let remote_cids = RemoteCids::new(args.peer_scid, config.active_cid_limit);
        let mut parts = Parts::new(Side::Server, &config, handshake, local_cids, remote_cids);
        if let Some(token) = args.new_token {
            parts.announcements.send_new_token(token);
        }
        Ok(Connection {
            side: Side::Server,
            version: args.version,
            lifecycle: Lifecycle::new(),
            negotiation,
            spaces: Spaces::new(keys, config.max_ack_delay),
            paths: PathSet::new(Side::Server, args.path, recovery, args.validated),
            parts,
            early: Early::default(),
            timers: Timers::new(now, config.handshake_timeout, nonzero(config.max_idle_timeout)),
            events: Events::default(),
            versions,
            header_bits: HeaderBits::new(Side::Server, config.spin_bit, rng),
            migration: Migration::new(),
            observation: Observation::default(),
            stats: Counters::default(),
            buffers: Buffers::default(),
            outcomes: Vec::new(),
            config,
        })
    }

    /// A connection id made by the endpoint, with its reset token, to be announced to the peer. False if
    /// none is wanted.
    pub(crate) fn add_local_cid(&mut self, cid: ConnectionId, token: ResetToken) -> bool {
        self.parts.local_cids.add(cid, token).is_some()
    }

    /// The next thing the application should know.
    pub fn next_event(&mut self) -> Option<Event> {
        if self.lifecycle.is_handshaking()
            && let Some(news) = self.news_of_attempt()
        {
            return Some(news);
        }
        // What streams have to say comes before the end.
        if self.events.is_closed() || !self.is_usable() {
            return self.events.next();
        }
        self.events.next().or_else(|| self.parts.next_event())
    }

    /// The next thing the endpoint should do.
    pub(crate) fn next_endpoint_event(&mut self) -> Option<EndpointEvent> {
        if let Some(event) = self.events.next_endpoint() {
            return Some(event);
        }
        if self.events.take_wants_cids() {
            let wanted = self.parts.local_cids.wanted();
            if wanted > 0 && self.lifecycle.is_open() {
                return Some(EndpointEvent::NeedCids(wanted));
            }
        }
        (self.lifecycle.is_drained() && self.events.take_drained()).then_some(EndpointEvent::Drained)
    }

    /// Which end this is.
    pub fn side(&self) -> Side {
        self.side
    }

    /// The QUIC version in use.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The peer's present address.
    pub fn remote(&self) -> SocketAddr {
        self.paths.active().key().remote
    }

    /// The local address, if the datapath told it.
    pub fn local(&self) -> Option<std::net::IpAddr> {
        self.paths.active().key().local
    }

    /// True until the connection is closed by either end.
    pub fn is_open(&self) -> bool {
        self.lifecycle.is_open()
    }

    /// True while the handshake is not complete.
    pub fn is_handshaking(&self) -> bool {
        self.lifecycle.is_handshaking()
    }

    /// True if it is over and may be forgotten.
    pub fn is_drained(&self) -> bool {
        self.lifecycle.is_drained()
    }

    /// The application protocol that was negotiated (ALPN).
    pub fn alpn(&self) -> Option<&[u8]> {
        self.parts.handshake.data()?.alpn.as_deref()
    }

    /// Whether the handshake resumed a former session. False before it is complete.
    pub fn is_resumed(&self) -> bool {
        self.parts.handshake.data().is_some_and(|data| data.resumed)
    }

    /// At a server: the name the client asked for (SNI).
    pub fn server_name(&self) -> Option<&str> {
        self.parts.handshake.data()?.server_name.as_deref()
    }

    /// The peer's certificates in DER, its own first; none before the handshake is complete.
    pub fn peer_certificates(&self) -> &[rustls::pki_types::CertificateDer<'static>] {
        self.parts.handshake.data().map_or(&[], |data| &data.peer_certificates)
    }

    /// The cipher suite that protects packets, once the handshake is complete.
    pub fn cipher_suite(&self) -> Option<rustls::CipherSuite> {
        self.parts.handshake.data()?.cipher_suite
    }

    /// The group of the key exchange, once the handshake is complete.
    pub fn key_exchange_group(&self) -> Option<rustls::NamedGroup> {
        self.parts.handshake.data()?.group
    }

    /// Fills `output` with key material that both ends of this connection can derive and nobody else (RFC 8446
    /// section 7.5). `label` says for what, at most 249 bytes; `context` may be empty. Different for each label,
    /// context and length.
    ///
    /// # Errors
    /// See [`ExportError`].
    pub fn export_keying_material(
        &self,
        label: &[u8],
        context: &[u8],
        output: &mut [u8],
    ) -> Result<(), ExportError> {
        self.parts.handshake.export_keying_material(label, context, output)
    }

    /// Why TLS failed, in more words than the peer is told.
    pub fn tls_failure(&self) -> Option<&rustls::Error> {
        self.parts.handshake.failure()
    }

    /// A token for the next connection to this server, if it gave one (RFC 9000 section 8.1.3).
    pub fn take_new_token(&mut self) -> Option<Bytes> {
        self.negotiation.take_new_token()
    }

    /// Sends a PING, so that the peer's idle timer restarts.
    pub fn ping(&mut self) {
        self.parts.ping.send();
    }

    /// Opens a stream; `None` if the peer permits no more now: [`Event::StreamsAvailable`] follows.
    pub fn open(&mut self, direction: Direction) -> Option<StreamId> {
        let possible = self.lifecycle.is_open() && !self.awaits_approval();
        possible.then(|| self.parts.streams.open(direction)).flatten()
    }

    /// Whether [`Connection::open`] would give a stream. If not, [`Event::StreamsAvailable`] follows when it would.
    pub fn can_open(&mut self, direction: Direction) -> bool {
        self.lifecycle.is_open() && !self.awaits_approval() && self.parts.streams.can_open(direction)
    }

    /// The next stream that the peer opened in `direction`.
    pub fn accept(&mut self, direction: Direction) -> Option<StreamId> {
        if self.wants_approval() { None } else { self.parts.streams.accept(direction) }
    }

    /// Queues data to send; returns how much was taken. Less than all, possibly 0, means that the send
    /// buffer is full: [`Event::Writable`] follows.
    pub fn write(&mut self, id: StreamId, data: Bytes) -> Result<usize, WriteError> {
        self.parts.streams.write(id, data)
    }

    /// Has [`Event::Writable`] follow as soon as the stream takes data.
    pub fn watch_writable(&mut self, id: StreamId) -> Result<(), WriteError> {
        self.parts.streams.watch_writable(id)
    }

    /// Bytes that [`Connection::write`] would take now.
    pub fn write_room(&self, id: StreamId) -> Result<usize, WriteError> {
        self.parts.streams.write_room(id)
    }

    /// Bytes written to a stream that the peer has not acknowledged; `None` if its sending half is over.
    pub fn buffered(&self, id: StreamId) -> Option<u64> {
        self.parts.streams.buffered_on(id)
    }

    /// Ends a stream's sending half after what has been written.
    pub fn finish(&mut self, id: StreamId) -> Result<(), WriteError> {
        self.parts.streams.finish(id)
    }

    /// Abandons a stream's sending half.
    pub fn reset(&mut self, id: StreamId, code: u64) -> Result<(), UnknownStream> {
        self.parts.streams.reset(id, code)
    }

    /// Abandons a stream's sending half, but still delivers the first `reliable_size` bytes of what was written
    /// (draft-ietf-quic-reliable-stream-reset). Calling again can lower the size, not raise it.
    ///
    /// # Errors
    /// If the peer does not support it, or there is no such stream.
    pub fn reset_at(&mut self, id: StreamId, code: u64, reliable_size: u64) -> Result<(), ResetAtError> {
        self.parts.streams.reset_at(id, code, reliable_size)
    }

    /// Reads at most `max` bytes.
    pub fn read(&mut self, now: Time, id: StreamId, max: usize) -> Result<ReadChunk, ReadError> {
        let rtt = self.paths.active().recovery.rtt().smoothed();
        self.parts.streams.read(now, rtt, id, max)
    }

    /// Tells the peer that nothing more of this stream will be read.
    pub fn stop_sending(&mut self, id: StreamId, code: u64) -> Result<(), UnknownStream> {
        self.parts.streams.stop_sending(id, code)
    }

    /// Sets a stream's place in the scheduler: lower urgency first; streams of equal urgency in the order
    /// in which they were written, or in turn if incremental.
    pub fn set_priority(
        &mut self,
        id: StreamId,
        urgency: u8,
        incremental: bool,
    ) -> Result<(), UnknownStream> {
        self.parts.streams.set_priority(id, urgency, incremental)
    }

    /// Sets how much a stream sends beside other incremental ones of its urgency: in proportion to its weight, 1 to
    /// 255; 1 unless set.
    pub fn set_weight(&mut self, id: StreamId, weight: u8) -> Result<(), UnknownStream> {
        self.parts.streams.set_weight(id, weight)
    }

    /// Bytes that should be written to a stream and not be acknowledged, so that neither the network waits for the
    /// application nor memory is held for nothing. It follows the congestion window and the peer's limit on the stream.
    /// With several busy streams, [`Connection::ideal_buffer_of_all`] is the figure for their sum.
    pub fn ideal_buffer(&self, id: StreamId) -> Result<u64, WriteError> {
        self.parts.streams.ideal_buffer(id)
    }

    /// As [`Connection::ideal_buffer`], for all streams together.
    pub fn ideal_buffer_of_all(&self) -> u64 {
        self.parts.streams.ideal_buffer_of_all()
    }

    /// Has [`Event::IdealBufferChanged`] told whenever [`Connection::ideal_buffer_of_all`] differs by more than a quarter
    /// from what it was when it was told last, which at first is `known`.
    pub fn watch_ideal_buffer(&mut self, known: u64) {
        self.parts.streams.watch_ideal_buffer(known);
    }

    /// True if any stream is open.
    pub fn has_active_streams(&self) -> bool {
        self.parts.streams.has_active_streams()
    }

    fn local_cid_len(&self) -> usize {
        self.negotiation.local_cid.len()
    }
}

fn path_settings(config: &TransportConfig, path: &PathKey) -> PathSettings {
    // What fits into a frame over IPv4 is too large for it over IPv6.
    let longer = if path.remote.is_ipv6() { IPV6_LONGER_HEADER } else { 0 };
    PathSettings {
        id: 0,
        initial_rtt: config.initial_rtt,
        initial_mtu: config.initial_mtu,
        max_mtu: config.max_mtu.saturating_sub(longer),
        algorithm: config.congestion,
        ecn: config.ecn,
    }
}

fn initial_keys(version: u32, dcid: &ConnectionId, side: Side) -> Result<keys::LevelKeys, ConnectError> {
    keys::initial(version, dcid, side)
        .ok_or_else(|| ConnectError::Tls(format!("QUIC version {version:#x} is not supported")))
}

fn nonzero(timeout: std::time::Duration) -> Option<std::time::Duration> {
    Some(timeout).filter(|timeout| !timeout.is_zero())
}

/// A failure that no peer can cause.
#[track_caller]
fn internal(reason: &'static str) -> WireError {
    WireError::new(TransportErrorCode::INTERNAL_ERROR, reason)
}
