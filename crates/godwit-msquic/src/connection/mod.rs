//! Connections, as the application holds them.
//!
//! A client's is a handle until it is started; a server's stands for a handshake that waits for its configuration. Both have a
//! connection of the transport from then on, and none any more when that is over. Whatever happens, a handle is told of its
//! end at most once, and last.

mod accept;
mod datagrams;
mod ending;
mod events;
mod lookups;
mod outstanding_datagrams;
mod resumption;
pub(crate) mod shared_sockets;
mod start;
mod stream_table;

pub(crate) use accept::Offer;
pub(crate) use ending::End;
pub(crate) use resumption::ReceivedTickets;
pub(crate) use start::{IDEAL_SEND_BUFFER, Server, start};

use crate::abi::{ConnectionCallbackHandler, PerformanceCounter, Setting, SettingValues, Status};
use crate::configuration::{Configuration, Own};
use crate::context::Context;
use crate::counters;
use crate::parameters::OfConnection;
use crate::registration::Registration;
use crate::settings;
use crate::worker::Gate;
use bytes::Bytes;
use godwit_base::SocketId;
use godwit_base::slab::Key;
use godwit_transport::{ConnKey, ConnectionStats, Direction, IncomingKey};
pub(crate) use outstanding_datagrams::Datagram;
use outstanding_datagrams::Datagrams;
use resumption::Resumption;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use stream_table::StreamTable;

/// The transport's code for whatever goes wrong here (RFC 9000 section 20.1).
const INTERNAL_ERROR: u64 = 0x1;

/// A connection.
pub(crate) struct Connection {
    pub(crate) registration: Arc<Registration>,
    pub(crate) configuration: Option<Arc<Configuration>>,
    pub(crate) is_server: bool,
    pub(crate) handler: ConnectionCallbackHandler,
    pub(crate) context: Context,
    /// The application holds a handle, which it will close.
    pub(crate) is_owned: bool,
    /// The transport's, from when it is started until it is over.
    pub(crate) key: Option<ConnKey>,
    /// At a server: the handshake that waits for a configuration.
    pub(crate) incoming: Option<IncomingKey>,
    /// A client was told to start.
    pub(crate) is_started: bool,
    /// The handshake is complete, and that was told.
    pub(crate) is_connected: bool,
    pub(crate) closed_locally: bool,
    pub(crate) closed_remotely: bool,
    pub(crate) closed_by_application: bool,
    /// What there is to say of its end, and that it is over, has been told.
    pub(crate) is_over: bool,
    /// Nobody waits for the peer to learn of it.
    pub(crate) is_acknowledged: bool,
    pub(crate) close_status: Status,
    pub(crate) close_code: u64,
    /// What the own application or the peer says about the end.
    pub(crate) close_reason: Bytes,
    /// The handle is closed, and nothing is left to tell.
    pub(crate) is_forgotten: bool,
    /// Who waits until a closed handle has been told everything.
    pub(crate) closing: Option<Arc<Gate>>,
    /// Settings of this connection only.
    pub(crate) settings: SettingValues,
    pub(crate) resumption: Resumption,
    pub(crate) streams: StreamTable,
    numbers: [StreamNumbers; 2],
    pub(crate) local: Option<SocketAddr>,
    pub(crate) remote: Option<SocketAddr>,
    pub(crate) server_name: Option<Box<str>>,
    pub(crate) alpn: Bytes,
    /// How long TLS is of use.
    pub(crate) tls_use: TlsUse,
    /// A socket that only this connection uses, or its share in one (see [`shared_sockets`]).
    pub(crate) own_socket: Option<SocketId>,
    pub(crate) shares_socket: bool,
    /// What became of it, once the transport has forgotten it.
    pub(crate) last_stats: Option<Box<ConnectionStats>>,
    pub(crate) datagrams: Datagrams,
    /// Both ends can reset streams so that what was sent before arrives.
    pub(crate) can_reset_reliably: bool,
    /// What else was set of it.
    pub(crate) parameters: OfConnection,
}

/// How long the TLS of a connection can be asked for what it knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TlsUse {
    /// As long as there is a connection.
    Lasting,
    /// At a server that resumes no sessions, while it tells that it is connected: in the callback, and not beside it.
    InCallback,
    /// No more.
    Over,
}

impl TlsUse {
    /// Whether it can be asked now, by a thread that is or is not the worker's own.
    pub(crate) const fn is_of_use(self, is_of_worker: bool) -> bool {
        match self {
            TlsUse::Lasting => true,
            TlsUse::InCallback => is_of_worker,
            TlsUse::Over => false,
        }
    }
}

/// The streams of one direction that this end starts.
#[derive(Debug, Default)]
pub(crate) struct StreamNumbers {
    /// The next one's index.
    pub(crate) next: u64,
    /// Those that have an index and wait until the peer permits them.
    pub(crate) waiting: VecDeque<Key>,
}

impl Connection {
    /// A connection that nothing has happened on.
    pub(crate) fn new(registration: Arc<Registration>, is_server: bool) -> Self {
        registration.on_child_opened();
        counters::count(PerformanceCounter::CONN_CREATED);
        Connection {
            registration,
            configuration: None,
            is_server,
            handler: None,
            context: Context::NONE,
            is_owned: false,
            key: None,
            incoming: None,
            is_started: false,
            is_connected: false,
            closed_locally: false,
            closed_remotely: false,
            closed_by_application: false,
            is_over: false,
            is_acknowledged: false,
            close_status: Status::SUCCESS,
            close_code: 0,
            close_reason: Bytes::new(),
            is_forgotten: false,
            closing: None,
            settings: SettingValues::default(),
            resumption: Resumption::default(),
            streams: StreamTable::default(),
            numbers: Default::default(),
            local: None,
            remote: None,
            server_name: None,
            alpn: Bytes::new(),
            tls_use: TlsUse::Lasting,
            own_socket: None,
            shares_socket: false,
            last_stats: None,
            datagrams: Datagrams::default(),
            can_reset_reliably: false,
            parameters: OfConnection::new(),
        }
    }

    /// The streams of a direction that this end starts.
    pub(crate) fn numbers_mut(&mut self, direction: Direction) -> &mut StreamNumbers {
        let [bidirectional, unidirectional] = &mut self.numbers;
        match direction {
            Direction::Bidirectional => bidirectional,
            Direction::Unidirectional => unidirectional,
        }
    }

    /// A setting of this connection, which may be of its configuration, or what holds everywhere.
    pub(crate) fn setting(&self, setting: Setting) -> u64 {
        let own = settings::said(&self.settings, setting);
        let configured = || self.configuration.as_ref().map(|it| it.setting(setting));
        own.or_else(configured).unwrap_or_else(|| settings::global(setting))
    }

    /// What it has of its own beside its configuration.
    pub(crate) fn own(&self) -> Own<'_> {
        Own {
            settings: &self.settings,
            secrets: self.parameters.secrets.as_ref(),
            versions: self.parameters.versions(),
            without_encryption: self.parameters.disables_encryption(),
            identifier: self.parameters.identifier(),
        }
    }

    /// Whether what is sent is copied, so that the application gets its memory back at once.
    pub(crate) fn sends_are_buffered(&self) -> bool {
        self.setting(Setting::SendBufferingEnabled) != 0
    }

    /// One end at least has not closed it.
    pub(crate) const fn is_open_anywhere(&self) -> bool {
        !self.closed_locally || !self.closed_remotely
    }

    /// Parameters of the handshake can be set no more: a client was started, a server's has its configuration.
    pub(crate) const fn has_begun(&self) -> bool {
        if self.is_server { self.configuration.is_some() } else { self.is_started }
    }

    /// Neither end has closed it.
    pub(crate) const fn is_open(&self) -> bool {
        !self.closed_locally && !self.closed_remotely
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(stats) = &self.last_stats {
            counters::keep(stats);
        }
        self.registration.on_child_closed();
    }
}
