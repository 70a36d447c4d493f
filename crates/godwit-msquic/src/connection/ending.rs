//! The end of connections: what ends one, in which order that is told, and when nothing of it is left.
//!
//! First the cause is told, unless it is the application itself. Then each stream is told what it still has to hear and that
//! it is over. That the connection is over comes last: at once where nobody is waited for, else when the peer has answered or
//! has had its time for that.

use super::INTERNAL_ERROR;
use crate::abi::{ConnectionShutdownFlags, PerformanceCounter, Setting, Status};
use crate::counters;
use crate::worker::{ConnectionNews, Gate, State};
use bytes::Bytes;
use godwit_base::slab::Key;
use godwit_engine::ShardCx;
use godwit_transport::{ConnectionError, TransportErrorCode};
use std::sync::Arc;

/// Why a connection ends.
#[derive(Debug, Clone)]
pub(crate) enum End {
    /// The application ends it, and tells the peer.
    Application { code: u64 },
    /// The application ends it without a word.
    Silent { code: u64 },
    /// The application closes the handle, and so ends it without a word.
    HandleClosed,
    /// This end has to give it up.
    Transport { status: Status, code: u64 },
    /// The peer's application has ended it.
    PeerApplication { code: u64, reason: Bytes },
    /// The peer's transport has ended it.
    PeerTransport { code: u64, reason: Bytes },
}

impl End {
    fn is_of_peer(&self) -> bool {
        matches!(self, End::PeerApplication { .. } | End::PeerTransport { .. })
    }

    fn is_of_application(&self) -> bool {
        matches!(self, End::Application { .. } | End::Silent { .. } | End::PeerApplication { .. })
    }

    fn status_and_code(&self) -> (Status, u64) {
        match self {
            End::Application { code } | End::Silent { code } | End::PeerApplication { code, .. } => {
                (Status::of_transport_error(*code), *code)
            }
            End::Transport { status, code } => (*status, *code),
            End::HandleClosed => (Status::ABORTED, INTERNAL_ERROR),
            End::PeerTransport { code, .. } => (Status::of_transport_error(*code), *code),
        }
    }

    /// What is told of it, if anything.
    fn news(&self) -> Option<ConnectionNews> {
        match self {
            End::Application { .. } | End::Silent { .. } | End::HandleClosed => None,
            End::PeerApplication { code, .. } => Some(ConnectionNews::ShutdownByPeer { code: *code }),
            End::Transport { .. } | End::PeerTransport { .. } => {
                let (status, code) = self.status_and_code();
                Some(ConnectionNews::ShutdownByTransport { status, code })
            }
        }
    }
}

impl State {
    /// The application shuts a connection down.
    pub(crate) fn shut_down(
        &mut self,
        cx: &mut ShardCx<'_>,
        key: Key,
        flags: ConnectionShutdownFlags,
        code: u64,
    ) {
        let Some(connection) = self.connections.get(key) else { return };
        let unstarted = !connection.is_started && !connection.is_server;
        let silent = flags.contains(ConnectionShutdownFlags::SILENT) || unstarted;
        let end = if silent { End::Silent { code } } else { End::Application { code } };
        self.end(cx, key, &end);
    }

    /// A connection ends, or what has begun to end it goes on.
    pub(crate) fn end(&mut self, cx: &mut ShardCx<'_>, key: Key, end: &End) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let is_silent = matches!(end, End::Silent { .. } | End::HandleClosed);
        let side =
            if end.is_of_peer() { &mut connection.closed_remotely } else { &mut connection.closed_locally };
        let again = std::mem::replace(side, true);
        let is_first = connection.closed_locally != connection.closed_remotely && !again;
        if is_first {
            (connection.close_status, connection.close_code) = end.status_and_code();
            connection.closed_by_application = end.is_of_application();
            if let End::PeerApplication { reason, .. } | End::PeerTransport { reason, .. } = end {
                connection.close_reason = reason.clone();
            }
        }
        let (conn, reason) = (connection.key, connection.close_reason.clone());
        let (is_owned, incoming) = (connection.is_owned, connection.incoming.take());
        if let Some(incoming) = incoming {
            if matches!(end, End::Application { .. }) {
                // Before the handshake is complete, the peer is told no code of the application's (RFC 9000 section 10.2.3).
                let code = TransportErrorCode::APPLICATION_ERROR;
                cx.endpoint_mut().refuse_with(incoming, code, "the application does not want the connection");
            } else if let End::Transport { code, .. } = end
                && *code != INTERNAL_ERROR
            {
                cx.endpoint_mut().refuse_with(
                    incoming,
                    TransportErrorCode(*code),
                    "the connection was given up",
                );
            } else {
                cx.endpoint_mut().refuse(incoming);
            }
            self.incoming.remove(&incoming);
        }
        let now = cx.now();
        if let (Some(conn), false) = (conn, end.is_of_peer()) {
            cx.endpoint_mut().with(conn, |transport| match end {
                End::Application { code } => transport.close(now, *code, &reason),
                End::Silent { .. } | End::HandleClosed => transport.discard(now),
                _ => transport.abort(now, "the connection was given up"),
            });
        }
        if is_first {
            if let Some(news) = end.news().filter(|_| is_owned) {
                self.tell_connection(key, news);
            }
            for stream in self.streams_of(key) {
                self.end_stream(cx, stream);
            }
            self.end_datagrams(key);
        }
        let Some(connection) = self.connections.get(key) else { return };
        // There is nobody to wait for: the peer knows, or is not to know, or there is none.
        let refused = !connection.is_connected && !connection.is_server && end.is_of_peer();
        let acknowledged = is_silent || refused || !connection.is_open_anywhere();
        if acknowledged || connection.key.is_none() || end.is_of_peer() || !is_owned {
            self.complete(key, acknowledged);
        }
    }

    /// It is over: that is told, once.
    pub(crate) fn complete(&mut self, key: Key, acknowledged: bool) {
        let Some(connection) = self.connections.get_mut(key).filter(|it| !it.is_over) else { return };
        if connection.has_begun() && !connection.is_connected {
            counters::count(PerformanceCounter::CONN_HANDSHAKE_FAIL);
        }
        if connection.close_status == Status::PROTOCOL_ERROR {
            counters::count(PerformanceCounter::CONN_PROTOCOL_ERRORS);
        }
        connection.is_acknowledged = acknowledged;
        let is_owned = connection.is_owned;
        self.tell_connection(key, ConnectionNews::ShutdownComplete);
        if let Some(connection) = self.connections.get_mut(key) {
            connection.is_over = true;
        }
        if !is_owned {
            self.forget_connection(key);
        }
    }

    /// The transport's connection has ended.
    pub(crate) fn on_closed(&mut self, cx: &mut ShardCx<'_>, key: Key, reason: &ConnectionError) {
        // What the application has said to all connections of the registration came before, if it has: only those of other workers
        // have heard it first, and may have caused this.
        let said_to_all = self.connections.get(key).and_then(|connection| connection.registration.shutdown());
        if let Some((flags, code)) = said_to_all {
            self.shut_down(cx, key, flags, code);
        }
        let Some(connection) = self.connections.get_mut(key) else { return };
        if let Some(transport) = connection.key.and_then(|conn| cx.endpoint().connection(conn)) {
            connection.last_stats = Some(Box::new(transport.stats()));
            connection.parameters.on_closed(transport);
        }
        let waits = connection.last_stats.as_ref().is_some_and(|stats| stats.bytes_in_flight > 0);
        // Before the handshake is complete, the shorter of two times is over.
        let limits = [Setting::DisconnectTimeoutMs, Setting::HandshakeIdleTimeoutMs];
        let [answer, handshake] = limits.map(|limit| connection.setting(limit));
        let waits = waits && (connection.is_connected || handshake == 0 || answer < handshake);
        let end = match reason {
            ConnectionError::ClosedLocally => {
                // This end has told everything there is to tell when it closed, and waits for the peer's answer.
                return;
            }
            ConnectionError::Transport(error) => {
                let code = error.code.0;
                let status = self.tls_failure(cx, key).unwrap_or(Status::of_transport_error(code));
                // The peer may answer yet.
                return self.end(cx, key, &End::Transport { status, code });
            }
            ConnectionError::PeerTransport { code, reason, .. } => {
                End::PeerTransport { code: code.0, reason: reason.clone() }
            }
            ConnectionError::PeerApplication { code, reason } => {
                End::PeerApplication { code: *code, reason: reason.clone() }
            }
            ConnectionError::TimedOut => {
                // What was sent and never acknowledged tells a peer that is gone from one that has nothing to say.
                let status = if waits { Status::CONNECTION_TIMEOUT } else { Status::CONNECTION_IDLE };
                End::Transport { status, code: INTERNAL_ERROR }
            }
            ConnectionError::VersionMismatch => End::Transport {
                status: Status::VER_NEG_ERROR,
                code: TransportErrorCode::VERSION_NEGOTIATION_ERROR.0,
            },
            _ => End::Transport { status: Status::ABORTED, code: INTERNAL_ERROR },
        };
        let is_of_peer = end.is_of_peer();
        self.end(cx, key, &end);
        // There is nobody left to wait for.
        self.complete(key, !is_of_peer);
    }

    /// The peer has answered this end's close.
    pub(crate) fn on_close_acknowledged(&mut self, key: Key) {
        if let Some(connection) = self.connections.get_mut(key) {
            connection.closed_remotely = true;
            self.complete(key, true);
        }
    }

    /// The transport forgets the connection.
    pub(crate) fn on_drained(&mut self, key: Key) {
        if let Some(connection) = self.connections.get_mut(key) {
            if let Some(conn) = connection.key.take() {
                self.forget_place(conn);
            }
            self.complete(key, false);
        }
    }

    /// What TLS says about why it failed.
    fn tls_failure(&self, cx: &ShardCx<'_>, key: Key) -> Option<Status> {
        let conn = self.connections.get(key)?.key?;
        let failure = cx.endpoint().connection(conn)?.tls_failure()?;
        Some(crate::credential::status_of_tls_failure(failure))
    }

    /// The application closes the handle. What it has not been told is told before the gate opens that is returned.
    pub(crate) fn close_connection(&mut self, cx: &mut ShardCx<'_>, key: Key) -> Option<Arc<Gate>> {
        let connection = self.connections.get_mut(key).filter(|connection| connection.closing.is_none())?;
        let gate = Arc::new(Gate::default());
        connection.closing = Some(Arc::clone(&gate));
        if !connection.is_over {
            if connection.closed_locally {
                self.complete(key, true);
            } else {
                self.end(cx, key, &End::HandleClosed);
            }
        }
        self.tell_connection(key, ConnectionNews::HandleClosed);
        Some(gate)
    }

    /// Nothing is left to tell about a connection. It stays as long as there are handles of its streams.
    pub(crate) fn forget_connection(&mut self, key: Key) {
        // Where the transport discards it, that is all that is heard of it.
        self.some_are_over = true;
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.is_forgotten = true;
        if let Some(gate) = &connection.closing {
            gate.open();
        }
        if let Some(conn) = connection.key.take() {
            self.forget_place(conn);
        }
        self.news.forget_connection(key);
        for stream in self.streams_of(key) {
            if self.streams.get(stream).is_some_and(|stream| !stream.is_owned) {
                self.forget_stream(stream);
            }
        }
        self.remove_forgotten(key);
    }

    /// All streams of a connection, which may go meanwhile.
    fn streams_of(&self, key: Key) -> Vec<Key> {
        self.connections.get(key).map(|connection| connection.streams.all().collect()).unwrap_or_default()
    }

    /// Removes a connection whose handle is closed, with the last of its streams.
    pub(crate) fn remove_forgotten(&mut self, key: Key) {
        let is_last = |it: &&mut crate::connection::Connection| it.is_forgotten && it.streams.is_empty();
        let Some(connection) = self.connections.get_mut(key).filter(is_last) else { return };
        self.unused_sockets.extend(connection.own_socket.take());
        // The registration may be waiting for this one; the callback in which it was closed has to end first.
        self.departed.extend(self.connections.remove(key));
    }
}
