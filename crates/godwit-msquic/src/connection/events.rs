//! What the transport tells of connections, and what the application is told of that.

use super::{Connection, End, INTERNAL_ERROR, TlsUse};
use crate::abi::{PerformanceCounter, Setting, Status, StreamOpenFlags, StreamShutdownFlags};
use crate::counters;
use crate::credential::{Peer, PeerCertificate};
use crate::worker::{ConnectionNews, State};
use bytes::Bytes;
use godwit_base::slab::Key;
use godwit_engine::ShardCx;
use godwit_transport::{ConnKey, Direction, Event};
use rustls::pki_types::UnixTime;
use std::time::Duration;

impl State {
    /// Something happened on a connection.
    pub(crate) fn on_transport_event(&mut self, cx: &mut ShardCx<'_>, conn: ConnKey, event: Event) {
        self.some_are_over |= matches!(event, Event::Drained);
        let Some(key) = self.place(conn) else { return };
        match event {
            Event::Connected => self.on_connected(cx, key, conn),
            Event::ApprovalWanted => self.on_approval_wanted(cx, key, conn),
            Event::StreamOpened { direction } => self.on_streams_of_peer(cx, key, conn, direction),
            Event::StreamsAvailable { direction } => self.open_waiting(cx, key, direction),
            Event::EvidenceChanged => self.on_evidence(cx, key, conn),
            Event::StreamLimitRaised { direction } => {
                self.open_waiting(cx, key, direction);
                // How many there are at first is no news to a server, and for a client it goes with that it is connected.
                if self.connections.get(key).is_some_and(|connection| connection.is_connected) {
                    self.tell_connection(key, ConnectionNews::StreamsAvailable);
                }
            }
            Event::StreamsWanted { direction } => {
                let bidirectional = direction == Direction::Bidirectional;
                self.tell_connection(key, ConnectionNews::PeerNeedsStreams { bidirectional });
            }
            Event::Readable { id } => {
                if let Some(stream) = self.stream_of(key, id) {
                    self.on_readable(stream);
                    self.hear_reset(cx, stream);
                }
            }
            Event::Writable { id } => {
                if let Some(stream) = self.stream_of(key, id) {
                    self.pump(cx, stream);
                }
            }
            Event::StreamDataLost { id } => self.with_stream(key, id, Self::on_data_lost),
            Event::Acknowledged => self.on_acknowledged(cx, key, conn),
            Event::IdealBufferChanged => self.tell_ideal_send_buffers(cx, key),
            Event::Finished { id } => self.with_stream(key, id, Self::on_finished),
            Event::ResetAcknowledged { id } => self.with_stream(key, id, Self::on_reset_acknowledged),
            Event::Stopped { id, code } => {
                if let Some(stream) = self.stream_of(key, id) {
                    self.on_stopped_by_peer(cx, stream, code);
                }
            }
            Event::DatagramsReadable => self.tell_connection(key, ConnectionNews::DatagramsReceived),
            Event::DatagramOutcomes => self.on_datagram_outcomes(cx, key, conn),
            Event::PathChanged => self.on_path_changed(cx, key, conn),
            Event::Closed { reason } => self.on_closed(cx, key, &reason),
            Event::CloseAcknowledged => self.on_close_acknowledged(key),
            Event::Drained => self.on_drained(key),
            _ => {}
        }
    }

    fn with_stream(&mut self, key: Key, id: godwit_transport::StreamId, act: impl FnOnce(&mut Self, Key)) {
        if let Some(stream) = self.stream_of(key, id) {
            act(self, stream);
        }
    }

    fn on_connected(&mut self, cx: &mut ShardCx<'_>, key: Key, conn: ConnKey) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Some(transport) = cx.endpoint().connection(conn) else { return };
        connection.is_connected = true;
        connection.parameters.on_connected(cx.now(), transport);
        connection.alpn = Bytes::copy_from_slice(transport.alpn().unwrap_or_default());
        let (resumed, alpn) = (transport.is_resumed(), connection.alpn.clone());
        if resumed {
            counters::count(PerformanceCounter::CONN_RESUMED);
        }
        if let (Some(ip), Some(local)) = (transport.local(), &mut connection.local) {
            local.set_ip(ip);
        }
        let (streams, is_server): (Vec<_>, _) = (connection.streams.all().collect(), connection.is_server);
        let wants_reliable = connection.setting(Setting::ReliableResetEnabled) != 0;
        let wants_times = connection.setting(Setting::OneWayDelayEnabled) != 0;
        let timestamps = transport.timestamps();
        connection.can_reset_reliably = wants_reliable && transport.can_reset_at();
        let negotiated = connection.can_reset_reliably;
        if wants_reliable {
            self.tell_connection(key, ConnectionNews::ReliableResetNegotiated { negotiated });
        }
        if wants_times {
            let (sends, receives) = (timestamps.send, timestamps.receive);
            self.tell_connection(key, ConnectionNews::OneWayDelayNegotiated { sends, receives });
        }
        if !is_server {
            // As long as the peer permits none, that is what the application expects.
            if self.streams_available(cx, key) != Some((0, 0)) {
                self.tell_connection(key, ConnectionNews::StreamsAvailable);
            }
            self.tell_datagram_state(cx, key);
        }
        self.tell_connection(key, ConnectionNews::Connected { resumed, alpn });
        if is_server {
            self.tell_datagram_state(cx, key);
        }
        for direction in [Direction::Bidirectional, Direction::Unidirectional] {
            self.open_waiting(cx, key, direction);
            self.on_streams_of_peer(cx, key, conn, direction);
        }
        for stream in streams {
            self.pump(cx, stream);
        }
        self.send_early_datagrams(cx, key, conn);
    }

    /// The application is told that the connection is there, or has been told.
    pub(crate) fn limit_tls(&mut self, key: Key, to: TlsUse) {
        let is_limited = |it: &&mut Connection| it.is_server && !it.resumes();
        if let Some(connection) = self.connections.get_mut(key).filter(is_limited) {
            connection.tls_use = to;
        }
    }

    /// Who has asked for it is told what congestion control knows now.
    fn on_acknowledged(&mut self, cx: &mut ShardCx<'_>, key: Key, conn: ConnKey) {
        self.discard_suspects(cx, key, conn);
        let wanted = |it: &Connection| it.is_open() && it.setting(Setting::NetStatsEventEnabled) != 0;
        if self.connections.get(key).is_some_and(wanted) {
            self.tell_connection(key, ConnectionNews::NetworkStatistics);
        }
    }

    /// An attempt that the network says leads nowhere is not waited for.
    fn on_evidence(&mut self, cx: &mut ShardCx<'_>, key: Key, conn: ConnKey) {
        let evidence = cx.endpoint().connection(conn).map(|transport| transport.evidence());
        if evidence.is_some_and(|evidence| evidence.unreachable.is_some()) {
            self.end(cx, key, &End::Transport { status: Status::UNREACHABLE, code: INTERNAL_ERROR });
            self.complete(key, true);
        }
    }

    fn on_approval_wanted(&mut self, cx: &mut ShardCx<'_>, key: Key, conn: ConnKey) {
        if self.connections.get(key).is_some_and(|connection| connection.is_owned) {
            self.tell_connection(key, ConnectionNews::PeerCertificate);
        } else {
            let now = cx.now();
            cx.endpoint_mut().with(conn, |transport| transport.refuse_peer(now));
        }
    }

    /// The callback, or a later call, has said whether the peer's certificate will do.
    pub(crate) fn approve(&mut self, cx: &mut ShardCx<'_>, key: Key, alert: Option<u8>) {
        let Some(conn) = self.connections.get(key).and_then(|connection| connection.key) else { return };
        let now = cx.now();
        cx.endpoint_mut().with(conn, |transport| match alert {
            None => transport.approve(now),
            Some(alert) => transport.refuse_peer_with(now, alert),
        });
    }

    /// How many more streams can be opened.
    pub(crate) fn streams_available(&self, cx: &ShardCx<'_>, key: Key) -> Option<(u16, u16)> {
        let transport = cx.endpoint().connection(self.connections.get(key)?.key?)?;
        let available =
            |direction| u16::try_from(transport.stream_limits(direction).available()).unwrap_or(u16::MAX);
        Some((available(Direction::Bidirectional), available(Direction::Unidirectional)))
    }

    /// What the application is told of the peer's certificate.
    pub(crate) fn peer_certificate(&self, cx: &ShardCx<'_>, key: Key) -> Option<PeerCertificate> {
        let connection = self.connections.get(key)?;
        let credential = connection.configuration.as_ref()?.credential()?;
        let transport = cx.endpoint().connection(connection.key?)?;
        let peer = match connection.is_server {
            true => Peer::Client,
            false => Peer::Server(connection.server_name.as_deref()),
        };
        let now = UnixTime::since_unix_epoch(Duration::from_micros(cx.wall().as_unix_micros()));
        Some(credential.peer_certificate(transport.peer_certificates(), peer, now))
    }

    /// The application has been told of a stream of the peer's.
    pub(crate) fn on_stream_shown(
        &mut self,
        cx: &mut ShardCx<'_>,
        stream: Key,
        flags: StreamOpenFlags,
        status: Status,
    ) {
        if let Some(stream) = self.streams.get_mut(stream) {
            stream.is_being_shown = false;
            if flags.contains(StreamOpenFlags::APP_OWNED_BUFFERS) {
                stream.receiving.receive_into_own();
            }
        }
        let refused = status.failed()
            || self.streams.get(stream).is_some_and(|it| it.handler.is_none() && !it.is_closed);
        if refused {
            // It has not taken it: the handle is not the application's.
            let abort = StreamShutdownFlags::ABORT.union(StreamShutdownFlags::IMMEDIATE);
            self.shut_stream_down(cx, stream, abort, 0);
            self.forget_stream(stream);
        } else if flags.contains(StreamOpenFlags::DELAY_ID_FC_UPDATES) {
            self.hold_place(cx, stream);
        }
    }

    fn on_streams_of_peer(&mut self, cx: &mut ShardCx<'_>, key: Key, conn: ConnKey, direction: Direction) {
        let mut any = false;
        while let Some(transport) = cx.endpoint_mut().connection_mut(conn)
            && let Some(id) = transport.accept(direction)
        {
            any = true;
            if self.streams.len() < crate::handle::MOST {
                self.on_stream_of_peer(key, id);
            } else {
                // It could have no handle.
                let _ = transport.reset(id, 0);
                let _ = transport.stop_sending(id, 0);
            }
        }
        if any {
            cx.endpoint_mut().touch(conn);
        }
    }

    fn on_path_changed(&mut self, cx: &mut ShardCx<'_>, key: Key, conn: ConnKey) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Some(transport) = cx.endpoint().connection(conn) else { return };
        let remote = transport.remote();
        if connection.remote != Some(remote) {
            connection.remote = Some(remote);
            self.tell_connection(key, ConnectionNews::PeerAddressChanged);
            return;
        }
        let socket = transport.paths().next().and_then(|path| cx.local_addr(path.key.socket));
        let local = socket.map(|mut local| {
            let known =
                connection.local.filter(|known| local.ip().is_unspecified() && known.port() == local.port());
            if let Some(ip) = transport.local().or(known.map(|known| known.ip())) {
                local.set_ip(ip);
            }
            local
        });
        if local.is_some() && connection.local != local {
            connection.local = local;
            self.tell_connection(key, ConnectionNews::LocalAddressChanged);
        }
    }

    fn tell_ideal_send_buffers(&mut self, cx: &mut ShardCx<'_>, key: Key) {
        let Some(connection) = self.connections.get(key) else { return };
        let sends = |stream: &Key| self.streams.get(*stream).is_some_and(|stream| stream.sending.is_open());
        for stream in connection.streams.all().filter(sends).collect::<Vec<_>>() {
            self.tell_ideal_send_buffer(cx, stream);
        }
    }
}
