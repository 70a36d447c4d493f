//! One QUIC connection.
//!
//! [`Connection`] is what its user calls: a facade. [`Machine`] is behind it, and is wiring. Its inputs are a datagram
//! (`input`, and `frames` for what is in it), the passing of time (`timers`) and the calls of the application; its
//! outputs are datagrams (`output`), a deadline and events. What happens in between belongs to components with one
//! concern each: `Spaces` (packet numbers and keys), `PathSet` (addresses, congestion), `Lifecycle`, `Negotiation`, and
//! the [`parts`] that own the frames. Acknowledgement, loss and packets concern a path, which they are given by its
//! number.
//!
//! Invariants: nothing unauthenticated changes state; an error on the wire closes this connection and no other; after
//! `Drained` nothing is sent or said any more.
//!
//! RFC 9000 sections 5 to 14, RFC 9001 section 4, RFC 9002.

mod ack_frequency;
mod acks;
mod announcements;
mod anomalies;
mod approval;
pub(crate) mod boundary;
mod close;
mod close_packets;
mod datagrams;
mod departures;
mod early;
mod events;
mod evidence;
mod facade;
mod farewell;
mod frames;
mod fresh_cid;
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
mod repeats;
mod retransmission_timer;
mod sealing;
mod space;
mod stats;
mod telling;
mod timers;
mod timestamps;
mod tokens;
mod unencrypted;
mod versions;

#[cfg(test)]
mod tests;

pub(crate) use boundary::BegunInitials;
pub use evidence::{Evidence, Progress};
pub use facade::Connection;
pub use migration::MigrateError;
pub use stats::{ConnectionStats, PacketCounts};
pub(crate) use versions::choose as choose_version;

use crate::cid::{CidIdentifier, LocalCids, RemoteCids};
use crate::handshake::{Handshake, NewKeys};
use crate::path::{PathKey, PathSet, Told};
use crate::resumption::Network;
use crate::{ConnectError, Event, TransportConfig, WireError};
use boundary::{ClientArgs, EndpointEvent, ServerArgs};
use departures::Departures;
use early::Early;
use events::Events;
use farewell::Farewell;
use godwit_base::{Rng, Time};
use godwit_recovery::{Outcome, PathRecovery, PathSettings};
use godwit_tls::keys;
use godwit_tls::resumption::BothKinds;
use godwit_wire::{ConnectionId, Direction, ResetToken, Side, StreamId, TransportErrorCode};
use header_bits::HeaderBits;
use lifecycle::Lifecycle;
use migration::Migration;
use negotiation::Negotiation;
use observing::Observation;
use parts::{Parts, RecoveryToken};

pub(crate) use parts::SendingMemory;
use repeats::Repeats;
use space::Spaces;
use stats::Counters;
use std::sync::Arc;
use timers::Timers;
use versions::Versions;

/// What a connection is made of. [`Connection`] is how its user sees it.
#[derive(Debug)]
pub(crate) struct Machine {
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
    departures: Departures,
    events: Events,
    farewell: Farewell,
    versions: Versions,
    header_bits: HeaderBits,
    migration: Migration,
    repeats: Repeats,
    observation: Observation,
    stats: Counters,
    /// Memory for what an acknowledgement or a loss brings back.
    outcomes: Vec<(Outcome, RecoveryToken)>,
}

/// What a connection begins with, by its side.
struct Setup {
    side: Side,
    version: u32,
    config: Arc<TransportConfig>,
    negotiation: Negotiation,
    keys: keys::LevelKeys,
    paths: PathSet,
    parts: Parts,
    versions: Versions,
    network: Network,
}

/// Bytes by which an IPv6 header is longer than one of IPv4.
const IPV6_LONGER_HEADER: u16 = 20;

impl Machine {
    /// Bytes that are held for the peer, as far as it decides how many they are.
    #[inline]
    pub(crate) fn held(&self) -> u64 {
        let data = self.parts.streams.held().saturating_add(self.parts.datagrams.held());
        data.saturating_add(self.spaces.data.space.recovery.held())
    }

    /// Less is to be held for the peer, for there is not enough for its network, or that is over.
    pub(crate) fn hold_little(&mut self, little: bool) {
        self.parts.streams.hold_little(little);
    }

    /// Closes because too much is held, and holds it no longer: until the connection is over it would for some time.
    pub(crate) fn close_for_memory(&mut self, now: Time) {
        self.close_with(now, internal("too much is held for the peer, or for its network"));
        self.parts.streams.forget_data();
    }

    /// Bytes that an honest peer of a connection that is to hold little may have it hold yet.
    pub(crate) fn may_yet_hold(&self) -> u64 {
        self.parts.streams.may_yet_hold()
    }

    /// Begins a connection to a server. The first packets wait to be sent.
    pub(crate) fn client(now: Time, args: ClientArgs<'_>, rng: &mut dyn Rng) -> Result<Self, ConnectError> {
        let config = args.config.transport.clone();
        let grease = rng.next_u64();
        let versions = Versions::client(&args, grease, rng.next_u64());
        let (tls, memory, version) = (&args.config.tls, args.memory, args.version);
        let known_token = || memory.as_ref().and_then(|memory| memory.take_token());
        let token = args.token.or_else(known_token).unwrap_or_default();
        let mut negotiation = Negotiation::client(args.local_cid, args.initial_dcid, token);
        let parameters = negotiation.parameters(&config, version, versions.available());
        let parameters = negotiation::encode(&parameters, grease)?;
        let tls = memory.as_ref().map_or_else(|| tls.as_ref().clone(), |memory| memory.tls(tls));
        let mut handshake = Handshake::client(tls, version, args.server_name, parameters)?;
        handshake.set_memory(memory.clone());
        if !args.config.tickets {
            handshake.without_tickets();
        } else if args.config.late_tickets {
            handshake.read_all_tickets();
        }
        let remote_cids = RemoteCids::new(args.initial_dcid, config.active_cid_limit);
        let local_cids = LocalCids::new(args.local_cid, args.reset_token);
        let mut settings = path_settings(&config, &args.path);
        let mut network = Network::default();
        if let Some(memory) = &memory {
            network = memory.network();
            settings.saved = memory.saved();
        }
        begin_with(&mut settings, &config, network);
        negotiation.memory = memory;
        let mut recovery = PathRecovery::new(now, &settings);
        recovery.set_peer_validated(false);
        let paths = PathSet::new(Side::Client, args.path, recovery, true);
        let keys = initial_keys(version, &args.initial_dcid, Side::Client)?;
        let parts = Parts::new(Side::Client, &config, handshake, local_cids, remote_cids);
        let side = Side::Client;
        let setup = Setup { side, version, config, negotiation, keys, paths, parts, versions, network };
        let mut connection = Machine::begin(now, setup, rng);
        if let Some(NewKeys::ZeroRtt(keys)) = connection.parts.handshake.next_keys() {
            connection.on_early_keys(*keys);
        }
        Ok(connection)
    }

    /// Answers a client whose first datagram will be given to [`Machine::receive`] next.
    pub(crate) fn server(now: Time, args: ServerArgs<'_>, rng: &mut dyn Rng) -> Result<Self, ConnectError> {
        let config = args.config.transport.clone();
        let negotiation =
            Negotiation::server(args.local_cid, args.original_dcid, args.retry_scid, args.peer_scid);
        let mut parameters = negotiation.parameters(&config, args.version, args.versions);
        parameters.stateless_reset_token = Some(args.reset_token);
        parameters.preferred_address = args.preferred;
        let parameters = negotiation::encode(&parameters, rng.next_u64())?;
        let tls = match &args.config.tickets {
            Some(tickets) => BothKinds::install(&args.config.tls, tickets.clone()),
            None => args.config.tls.clone(),
        };
        let mut handshake = Handshake::server(tls, args.version, parameters)?;
        if args.config.withhold_tickets {
            handshake.withhold_tickets();
        }
        let mut settings = path_settings(&config, &args.path);
        settings.saved = args.saved;
        begin_with(&mut settings, &config, args.network);
        let recovery = PathRecovery::new(now, &settings);
        let keys = match args.initial_keys {
            Some(keys) => keys,
            None => initial_keys(args.version, &args.client_dcid, Side::Server)?,
        };
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
        let (side, version) = (Side::Server, args.version);
        let mut paths = PathSet::new(side, args.path, recovery, args.validated);
        if args.retry_scid.is_some() {
            paths.on_address_validated();
        }
        paths.active_mut().told = Told::after(args.saved);
        let network = args.network;
        let setup = Setup { side, version, config, negotiation, keys, paths, parts, versions, network };
        Ok(Machine::begin(now, setup, rng))
    }

    /// What is the same for both sides.
    fn begin(now: Time, setup: Setup, rng: &mut dyn Rng) -> Self {
        let Setup { side, version, config, negotiation, keys, paths, parts, versions, network } = setup;
        Machine {
            side,
            version,
            lifecycle: Lifecycle::new(),
            negotiation,
            spaces: Spaces::new(keys, config.max_ack_delay, &config.laboratory),
            paths,
            parts,
            early: Early::default(),
            timers: Timers::new(now, &config),
            departures: Departures::default(),
            events: Events::default(),
            farewell: Farewell::default(),
            versions,
            header_bits: HeaderBits::new(side, config.spin_bit, rng),
            migration: Migration::new(),
            repeats: Repeats::new(&config.tail, network),
            observation: Observation::default(),
            stats: Counters::default(),
            outcomes: Vec::new(),
            config,
        }
    }

    /// A connection id made by the endpoint, with its reset token, to be announced to the peer. False if
    /// none is wanted.
    pub(crate) fn add_local_cid(&mut self, cid: ConnectionId, token: ResetToken) -> bool {
        self.parts.local_cids.add(cid, token).is_some()
    }

    /// A token made by the endpoint, for the client's next connection, in the place of the one before.
    pub(crate) fn give_token(&mut self, token: bytes::Bytes) {
        self.parts.announcements.send_new_token(token);
    }

    /// See [`crate::Connection::next_event`].
    pub(crate) fn next_event(&mut self) -> Option<Event> {
        if self.lifecycle.is_handshaking()
            && let Some(news) = self.news_of_attempt()
        {
            return Some(news);
        }
        // What streams have to say comes before the end.
        if self.events.is_closed() || !self.is_usable() {
            return self.events.next().or_else(|| self.farewell.next(&self.lifecycle));
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

    /// See [`crate::Connection::open`].
    pub(crate) fn open(&mut self, direction: Direction) -> Option<StreamId> {
        let possible = self.lifecycle.is_open() && !self.awaits_approval();
        possible.then(|| self.parts.streams.open(direction)).flatten()
    }

    /// See [`crate::Connection::can_open`].
    pub(crate) fn can_open(&mut self, direction: Direction) -> bool {
        self.lifecycle.is_open() && !self.awaits_approval() && self.parts.streams.can_open(direction)
    }

    /// See [`crate::Connection::accept`].
    pub(crate) fn accept(&mut self, direction: Direction) -> Option<StreamId> {
        if self.wants_approval() { None } else { self.parts.streams.accept(direction) }
    }

    /// What the connection ids of this end have for others to see.
    pub(crate) fn cid_identifier(&self) -> Option<CidIdentifier> {
        self.config.cibir.identifier()
    }

    fn local_cid_len(&self) -> usize {
        self.negotiation.local_cid.len()
    }
}

fn path_settings(config: &TransportConfig, path: &PathKey) -> PathSettings {
    // What fits into a frame over IPv4 is too large for it over IPv6.
    let longer = if path.remote.is_ipv6() { IPV6_LONGER_HEADER } else { 0 };
    let mut settings = PathSettings::default();
    settings.initial_rtt = config.initial_rtt;
    settings.initial_mtu = config.initial_mtu;
    settings.max_mtu = config.max_mtu.saturating_sub(longer);
    settings.congestion = config.congestion.clone();
    settings.ecn = config.ecn;
    settings.laboratory = config.laboratory;
    settings
}

/// What earlier connections over the same network have found.
fn begin_with(settings: &mut PathSettings, config: &TransportConfig, network: Network) {
    if let Some(rtt) = network.initial_rtt() {
        settings.initial_rtt = rtt;
        settings.known_variation = config.tail.known_rtt.then(|| network.initial_variation(rtt));
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
