//! What programs have set of the library and of connections that has no place of its own.

use super::cibir;
use super::versions::{Choice, OfClient, OfServer};
use crate::abi::{Address, HandshakeInfo, Status};
use crate::credential::{SecretsWriter, handshake_info};
use bytes::Bytes;
use godwit_base::Time;
use godwit_transport::{CidIdentifier, Connection as Transport, ConnectionId, Direction, StreamLimits};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the library is told once for all, or tells.
#[derive(Debug, Default)]
pub(super) struct OfLibrary {
    pub(super) versions: Choice,
    /// In 65,535ths of the machine's memory.
    pub(super) retry_memory: Option<u16>,
    pub(super) load_balancing: Option<u16>,
    pub(super) fixed_server_id: Option<u32>,
    /// `QUIC_GLOBAL_EXECUTION_CONFIG`, as it came.
    pub(super) execution: Vec<u8>,
    /// Some `QUIC_XDP_MAP_CONFIG`, as they came.
    pub(super) xdp_maps: Vec<u8>,
}

static OF_LIBRARY: Mutex<OfLibrary> = Mutex::new(OfLibrary {
    versions: Choice { versions: None, negotiated: None },
    retry_memory: None,
    load_balancing: None,
    fixed_server_id: None,
    execution: Vec::new(),
    xdp_maps: Vec::new(),
});

/// What was set of the library.
pub(super) fn of_library() -> MutexGuard<'static, OfLibrary> {
    OF_LIBRARY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Points in time of a connection, in microseconds since the workers were started; 0 for what has not been.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Times {
    pub(super) begun: u64,
    pub(super) connected: u64,
}

/// What a client does with versions of whom these have said something, the nearest first: its connection, its configuration.
/// The library's lists are for servers alone; whether versions are negotiated, it says for all.
pub(crate) fn versions_of_client(levels: [&Choice; 2]) -> OfClient {
    Choice::of_client(levels, of_library().versions.negotiated.unwrap_or_default())
}

/// What servers do with versions, at all workers.
pub(crate) fn versions_of_servers() -> OfServer {
    OfServer::of(&of_library().versions)
}

/// The number of the next connection.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// What a connection is told, beside settings and addresses.
#[derive(Debug)]
pub(crate) struct OfConnection {
    /// By which it is known in statistics.
    pub(super) number: u64,
    pub(super) versions: Choice,
    /// The own address as it was set, which may leave the family open.
    pub(super) local: Option<Address>,
    /// The number of the interface that a client uses; 0 for any.
    pub(super) interface: u32,
    pub(super) times: Times,
    /// The version that was in use when the transport forgot the connection, if it began.
    pub(super) last_version: u32,
    /// By what id the client called the server first, once the transport forgets it.
    pub(super) original_id: Option<ConnectionId>,
    pub(super) is_resumed: bool,
    /// What TLS had agreed on.
    pub(super) agreed: Option<Result<HandshakeInfo, Status>>,
    /// How many streams there might be when it ended, for both directions and for one.
    last_limits: Option<[StreamLimits; 2]>,
    /// Why the own end closes, where that was said; it may be empty.
    pub(super) has_close_reason: bool,
    pub(super) round_robin: bool,
    /// 1-RTT packets are to be plaintext; once it is connected, whether they are.
    pub(super) disable_encryption: bool,
    pub(super) dscp: u8,
    pub(crate) close_async: bool,
    /// The offset, and the bytes.
    pub(super) cibir: Vec<u8>,
    pub(super) keep_alive_padding: u16,
    pub(super) test_parameter: Option<(u32, Bytes)>,
    /// Where secrets are written.
    pub(crate) secrets: Option<SecretsWriter>,
}

impl OfConnection {
    /// Of a connection of which nothing was said.
    pub(crate) fn new() -> Self {
        OfConnection {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            versions: Choice::default(),
            local: None,
            interface: 0,
            times: Times::default(),
            last_version: 0,
            original_id: None,
            is_resumed: false,
            agreed: None,
            last_limits: None,
            has_close_reason: false,
            round_robin: false,
            disable_encryption: false,
            dscp: 0,
            close_async: false,
            cibir: Vec::new(),
            keep_alive_padding: 0,
            test_parameter: None,
            secrets: None,
        }
    }

    /// How the network is to treat what is sent.
    pub(crate) const fn dscp(&self) -> u8 {
        self.dscp
    }

    /// Whether 1-RTT packets are to be plaintext, if the peer wants that as well.
    pub(crate) const fn disables_encryption(&self) -> bool {
        self.disable_encryption
    }

    /// Has its connection ids show what those of its listener do.
    pub(crate) fn set_cibir_of_listener(&mut self, id: Vec<u8>) {
        self.cibir = id;
    }

    /// What connection ids of both ends have in them.
    pub(crate) fn identifier(&self) -> Option<CidIdentifier> {
        cibir::identifier(&self.cibir)
    }

    /// The transport has a connection for it.
    pub(crate) const fn on_begun(&mut self, now: Time) {
        self.times.begun = now.as_micros().saturating_add(1);
    }

    /// The handshake is complete.
    pub(crate) fn on_connected(&mut self, now: Time, transport: &Transport) {
        self.times.connected = now.as_micros().saturating_add(1);
        self.is_resumed = transport.is_resumed();
        self.disable_encryption = transport.is_unencrypted();
    }

    /// The transport will forget the connection.
    pub(crate) fn on_closed(&mut self, transport: &Transport) {
        self.last_version = transport.version();
        self.original_id = Some(*transport.original_dcid());
        self.agreed = agreed(transport);
        let both = [Direction::Bidirectional, Direction::Unidirectional];
        self.last_limits = Some(both.map(|direction| transport.stream_limits(direction)));
    }

    /// The transport has had a connection for it.
    pub(super) const fn has_been_begun(&self) -> bool {
        self.times.begun != 0
    }

    /// How many streams there might be in a direction when it ended.
    pub(super) fn last_limits(&self, direction: Direction) -> Option<StreamLimits> {
        let [bidirectional, unidirectional] = self.last_limits?;
        Some(if direction == Direction::Bidirectional { bidirectional } else { unidirectional })
    }

    /// What was said of its versions.
    pub(crate) const fn versions(&self) -> &Choice {
        &self.versions
    }
}

/// What TLS has agreed on, once it has, or why it cannot be told.
pub(super) fn agreed(transport: &Transport) -> Option<Result<HandshakeInfo, Status>> {
    let suite = transport.cipher_suite()?;
    Some(handshake_info(suite, transport.key_exchange_group()))
}
