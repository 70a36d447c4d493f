//! Connections.

use crate::access::{Access, ConnectionHandle};
use crate::code::ApplicationCode;
use crate::error::ConnectionError;
use crate::handler::{Summary, Topic};
use crate::paths::{PathEvent, PathStats};
use crate::recv_stream::RecvStream;
use crate::send_stream::SendStream;
use bytes::Bytes;
use godwit_transport::EarlyDataStatus;
use godwit_transport::ExportError;
use godwit_transport::tls::resumption::Remembered;
use godwit_transport::{ConnectionStats, MigrateError};
use godwit_wire::{Direction, Side, StreamId};
use rustls::pki_types::CertificateDer;
use rustls::{CipherSuite, NamedGroup};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// A QUIC connection.
///
/// Cloning gives another handle of the same connection. When the last handle is gone, those of its streams
/// included, the connection is closed with code 0: what the peer has not acknowledged by then may be lost.
#[derive(Debug, Clone)]
pub struct Connection {
    pub(crate) shared: Arc<ConnectionHandle>,
}

impl Connection {
    pub(crate) fn from_shared(shared: Arc<ConnectionHandle>) -> Self {
        Connection { shared }
    }

    #[cfg(feature = "http3")]
    pub(crate) fn into_shared(self) -> Arc<ConnectionHandle> {
        self.shared
    }

    /// Opens a bidirectional stream. Waits if the peer permits no more at present. The peer learns of the
    /// stream when something is written to it.
    ///
    /// Nothing is lost if this is dropped before it is ready.
    ///
    /// # Errors
    /// If the connection is over.
    pub async fn open_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        self.open(Direction::Bidirectional).await.map(|id| self.both_halves(id, false))
    }

    /// Opens a unidirectional stream; otherwise as [`Connection::open_bi`].
    ///
    /// # Errors
    /// If the connection is over.
    pub async fn open_uni(&self) -> Result<SendStream, ConnectionError> {
        self.open(Direction::Unidirectional).await.map(|id| SendStream::new(Arc::clone(&self.shared), id))
    }

    /// Waits for the next bidirectional stream that the peer opens.
    ///
    /// Nothing is lost if this is dropped before it is ready.
    ///
    /// # Errors
    /// If the connection is over, and all streams that the peer had opened have been accepted.
    pub async fn accept_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        self.accept(Direction::Bidirectional).await.map(|(id, early)| self.both_halves(id, early))
    }

    /// Waits for the next unidirectional stream that the peer opens; otherwise as
    /// [`Connection::accept_bi`].
    ///
    /// # Errors
    /// As [`Connection::accept_bi`].
    pub async fn accept_uni(&self) -> Result<RecvStream, ConnectionError> {
        let (id, early) = self.accept(Direction::Unidirectional).await?;
        Ok(RecvStream::new(Arc::clone(&self.shared), id, early))
    }

    /// Closes the connection with the application's `code` and `reason`. Data that is not
    /// acknowledged may be lost: to be sure that the peer has everything, await [`SendStream::stopped`]
    /// first, or an answer.
    pub fn close(&self, code: impl Into<ApplicationCode>, reason: &[u8]) {
        let code = code.into().value();
        self.shared.access(|access| {
            let now = access.shard.now();
            if let Some(connection) = access.connection() {
                connection.close(now, code, reason);
                access.touch();
            }
        });
    }

    /// Waits until the connection is over, for whatever reason.
    pub async fn closed(&self) -> ConnectionError {
        self.shared.until(Topic::Closed, |access| access.state.ended.clone()).await
    }

    /// Why the connection is over, if it is.
    pub fn close_reason(&self) -> Option<ConnectionError> {
        self.shared.access(|access| access.state.ended.clone())
    }

    /// The peer's present address. It changes when the peer moves to another network.
    pub fn remote_address(&self) -> SocketAddr {
        self.ask(|connection| connection.remote(), |summary| summary.remote)
    }

    /// Whether the peer has shown that it receives at its present address.
    #[cfg(feature = "http3")]
    pub(crate) fn is_peer_validated(&self) -> bool {
        self.ask(|connection| connection.is_peer_validated(), |summary| summary.peer_validated)
    }

    /// Whether a client has shown during this connection that it receives at its present address: not by a token alone.
    #[cfg(feature = "http3")]
    pub(crate) fn has_peer_answered(&self) -> bool {
        self.ask(|connection| connection.has_peer_answered(), |summary| summary.peer_answered)
    }

    /// The local address that the peer talks to, where the system tells.
    pub fn local_address(&self) -> Option<IpAddr> {
        self.ask(|connection| connection.local(), |summary| summary.local)
    }

    /// The application protocol that was negotiated.
    pub fn alpn(&self) -> Option<Vec<u8>> {
        self.ask(|connection| connection.alpn().map(<[u8]>::to_vec), |summary| summary.alpn)
    }

    /// At a server: the name that the client asked for (SNI).
    pub fn server_name(&self) -> Option<String> {
        self.ask(|connection| connection.server_name().map(str::to_owned), |summary| summary.server_name)
    }

    /// Whether the handshake resumed a former session (RFC 8446 section 2.2).
    pub fn is_resumed(&self) -> bool {
        self.ask(|connection| connection.is_resumed(), |summary| summary.resumed)
    }

    /// Waits until the handshake is complete, which it is from the start unless the connection comes from
    /// [`crate::Connecting::into_early`]. Then it is known whether 0-RTT was accepted.
    ///
    /// # Errors
    /// If the handshake failed.
    pub async fn connected(&self) -> Result<EarlyDataStatus, ConnectionError> {
        let attempt = |access: &mut Access<'_, '_>| {
            if access.state.connected {
                return Some(Ok(()));
            }
            access.state.ended.clone().map(Err)
        };
        self.shared.until(Topic::Connected, attempt).await?;
        Ok(self.early_data_status())
    }

    /// Whether the handshake is or was complete.
    #[cfg(feature = "http3")]
    pub(crate) fn is_connected(&self) -> bool {
        self.shared.access(|access| access.state.connected)
    }

    /// What became of 0-RTT on this connection.
    pub fn early_data_status(&self) -> EarlyDataStatus {
        self.ask(|connection| connection.early_data_status(), |summary| summary.early_data)
    }

    /// At a client: what earlier connections to the server have left, if anything.
    pub fn remembered(&self) -> Option<Remembered> {
        self.ask(|connection| connection.remembered(), |_| None)
    }

    /// At a client: has `data`, at most 4096 bytes, remembered for later connections to the server. An
    /// application protocol may need what the server told it before it can send 0-RTT requests. A client of HTTP/3 keeps
    /// the server's settings in this place.
    pub fn remember_application_data(&self, data: Bytes) {
        self.ask(|connection| connection.remember_application_data(&data), |_| ());
    }

    /// The peer's certificates, its own first. Empty if it presented none.
    pub fn peer_certificates(&self) -> Vec<CertificateDer<'static>> {
        self.ask(|connection| connection.peer_certificates().to_vec(), |summary| summary.certificates)
    }

    /// The cipher suite that protects packets; unknown before the handshake is complete.
    pub fn cipher_suite(&self) -> Option<CipherSuite> {
        self.ask(|connection| connection.cipher_suite(), |summary| summary.cipher_suite)
    }

    /// The group of the key exchange: [`NamedGroup::X25519MLKEM768`], if the peer has it as well. Unknown before the
    /// handshake is complete.
    pub fn key_exchange_group(&self) -> Option<NamedGroup> {
        self.ask(|connection| connection.key_exchange_group(), |summary| summary.key_exchange_group)
    }

    /// Fills `output` with key material that both ends of this connection can derive and nobody else (RFC 8446
    /// section 7.5, RFC 5705). `label` says for what, at most 249 bytes; `context` may be empty. It is different for
    /// each label, context and length.
    ///
    /// # Errors
    /// If the handshake is not complete, the connection is over, or something is too long.
    pub fn export_keying_material(
        &self,
        label: &[u8],
        context: &[u8],
        output: &mut [u8],
    ) -> Result<(), ExportError> {
        self.shared.access(|access| {
            let connection = access.connection().ok_or(ExportError::NotConnected)?;
            connection.export_keying_material(label, context, output)
        })
    }

    /// The smoothed round-trip time.
    pub fn rtt(&self) -> Duration {
        self.stats().rtt
    }

    /// Counters and estimates.
    pub fn stats(&self) -> ConnectionStats {
        self.ask(|connection| connection.stats(), |summary| summary.stats)
    }

    /// Bytes that should be written to all streams together and not be acknowledged, so that neither the network waits
    /// for the application nor memory is held for nothing: four times the congestion window within the bounds of
    /// [`crate::TransportConfig::send_buffer`]. Up to here writing does not wait.
    pub fn ideal_buffer(&self) -> u64 {
        self.ask(|connection| connection.ideal_buffer_of_all(), |_| 0)
    }

    /// Waits until [`Connection::ideal_buffer`] differs from `known` by more than a quarter, and returns it.
    ///
    /// # Errors
    /// If the connection is over.
    pub async fn ideal_buffer_changed(&self, known: u64) -> Result<u64, ConnectionError> {
        let attempt = move |access: &mut Access<'_, '_>| {
            if let Some(error) = &access.state.ended {
                return Some(Err(error.clone()));
            }
            let connection = access.connection()?;
            let ideal = connection.ideal_buffer_of_all();
            connection.watch_ideal_buffer(known);
            (ideal.abs_diff(known) > known >> 2).then_some(Ok(ideal))
        };
        self.shared.until(Topic::IdealBuffer, attempt).await
    }

    /// The QUIC version in use. A server may have moved the connection to another one than it was begun with.
    pub fn version(&self) -> u32 {
        self.ask(|connection| connection.version(), |summary| summary.version)
    }

    /// Every path of the connection (RFC 9000 section 9), the one that carries it first. Empty once the connection is
    /// over.
    pub fn paths(&self) -> Vec<PathStats> {
        self.shared.access(|access| {
            let connection = access.shard.endpoint().connection(access.state.conn);
            let open = connection.filter(|_| access.state.ended.is_none());
            open.into_iter()
                .flat_map(|connection| connection.paths())
                .map(|info| PathStats::of(access.shard, &info))
                .collect()
        })
    }

    /// Waits for the next news of a path: one that is tried, validated, made the active one, or abandoned. While
    /// nobody asks, the newest 32 are kept.
    ///
    /// Nothing is lost if this is dropped before it is ready.
    ///
    /// # Errors
    /// If the connection is over and everything has been told.
    pub async fn path_event(&self) -> Result<PathEvent, ConnectionError> {
        let attempt = |access: &mut Access<'_, '_>| match access.state.next_path_event() {
            Some(event) => Some(Ok(event)),
            None => access.state.ended.clone().map(Err),
        };
        self.shared.until(Topic::Path, attempt).await
    }

    /// At a client: moves the connection to the local address `local`, which must be that of one of the endpoint's
    /// sockets, or any of the system's own addresses with the port of a socket that is bound to all of them. Port 0
    /// stands for any of the sockets. The path from there is validated first, and the connection moves when the
    /// peer has answered; if it does not, nothing changes. [`Connection::path_event`] tells which. Before the
    /// handshake is confirmed, the request is kept until it is.
    ///
    /// # Errors
    /// If it can never be done, see [`MigrateError`].
    pub fn migrate(&self, local: SocketAddr) -> Result<(), MigrateError> {
        self.shared.access(|access| {
            let now = access.shard.now();
            let remote = access.connection().ok_or(MigrateError::Closed)?.remote();
            let (socket, ip) = access.shard.socket_at(local, remote).ok_or(MigrateError::NoSocket)?;
            let connection = access.connection().ok_or(MigrateError::Closed)?;
            let begun = connection.migrate(now, socket, ip);
            access.touch();
            begun
        })
    }

    /// A number that no other connection of the endpoint has or will have.
    pub fn id(&self) -> u64 {
        self.shared.conn.as_u64()
    }

    /// Which end this is.
    pub fn side(&self) -> Side {
        self.shared.side
    }

    /// Changes the keys that protect packets now (RFC 9001 section 6). False if it is too early: the
    /// handshake is not confirmed, or the last change is not acknowledged yet.
    pub fn force_key_update(&self) -> bool {
        self.shared.access(|access| {
            let now = access.shard.now();
            let updated = access.connection().is_some_and(|connection| {
                connection.ping();
                connection.update_keys(now)
            });
            access.touch();
            updated
        })
    }

    fn ask<R>(
        &self,
        living: impl FnOnce(&godwit_transport::Connection) -> R,
        over: impl FnOnce(Summary) -> R,
    ) -> R {
        self.shared.access(|access| {
            let connection = access.shard.endpoint().connection(access.state.conn);
            match connection {
                Some(connection) if access.state.ended.is_none() => living(connection),
                connection => over(access.state.summary(connection)),
            }
        })
    }

    async fn open(&self, direction: Direction) -> Result<StreamId, ConnectionError> {
        self.shared.until(Topic::Open(direction), move |access| try_open(access, direction)).await
    }

    /// The next stream of the peer's, and whether it came with 0-RTT data.
    async fn accept(&self, direction: Direction) -> Result<(StreamId, bool), ConnectionError> {
        self.shared.until(Topic::Accept(direction), move |access| try_accept(access, direction)).await
    }

    pub(crate) fn both_halves(&self, id: StreamId, early: bool) -> (SendStream, RecvStream) {
        let send = SendStream::new(Arc::clone(&self.shared), id);
        (send, RecvStream::new(Arc::clone(&self.shared), id, early))
    }
}

/// Opens a stream, if the peer permits it.
pub(crate) fn try_open(
    access: &mut Access<'_, '_>,
    direction: Direction,
) -> Option<Result<StreamId, ConnectionError>> {
    if let Some(error) = &access.state.ended {
        return Some(Err(error.clone()));
    }
    let opened = access.connection()?.open(direction);
    match opened {
        Some(id) => access.state.add_stream(id, halves(direction)),
        // The peer is told that there could be more.
        None => access.touch(),
    }
    opened.map(Ok)
}

/// The next stream of the peer's, if there is one, and whether it came with 0-RTT data.
pub(crate) fn try_accept(
    access: &mut Access<'_, '_>,
    direction: Direction,
) -> Option<Result<(StreamId, bool), ConnectionError>> {
    let accepted = match &access.state.ended {
        Some(error) => {
            let error = error.clone();
            access.state.accept_left(direction).map(|id| (id, false)).ok_or(error)
        }
        None => {
            let connection = access.connection()?;
            let id = connection.accept(direction)?;
            Ok((id, connection.is_early(id)))
        }
    };
    if let Ok((id, _)) = accepted {
        access.state.add_stream(id, halves(direction));
    }
    Some(accepted)
}

fn halves(direction: Direction) -> u8 {
    if direction == Direction::Bidirectional { 2 } else { 1 }
}
