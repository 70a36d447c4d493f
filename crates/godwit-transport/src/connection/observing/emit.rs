//! What the hooks do when somebody watches.

use super::{Kind, Machine};
use crate::config::EndpointConfig;
use crate::connection::input::PacketInfo;
use crate::connection::lifecycle::{CloseFrame, State};
use crate::observe::{
    Alpn, Changes, Cid, CloseTrigger, CongestionState, ConnectionState, DropTrigger, EcnName, ErrorName,
    FrameList, Initiator, KeyName, KeyTrigger, LossTrigger, MigrationState, ObserverInfo, PacketHeader,
    PacketName, Parameters, RawInfo, Recovery, Stream, StreamSide, StreamState, TextBytes, TransportEvent,
    TupleEndpoint, Version, Versions, stream_type,
};
use crate::packet::{Counts, WrittenPacket};
use crate::path::{PathEvent, PathId, PathKey};
use crate::{ConnectionError, WireError};
use godwit_base::{Time, WallTime};
use godwit_recovery::{EcnState, SpaceId};
use godwit_tls::keys::KeysUsed;
use godwit_wire::constants::DEFAULT_ACK_DELAY_EXPONENT;
use godwit_wire::header::PacketType;
use godwit_wire::transport_parameters::TransportParameters;
use godwit_wire::{ConnectionId, Direction, Side, StreamId, TransportErrorCode};

impl Machine {
    #[cold]
    pub(super) fn emit_start(&mut self, now: Time, wall: WallTime, config: &EndpointConfig) {
        let info = ObserverInfo {
            side: self.side,
            original_dcid: self.negotiation.original_dcid,
            remote: self.paths.active().key().remote,
            wall: Some(wall).filter(|wall| *wall != WallTime::default()),
        };
        let Some(observer) = config.observe.observer(&info) else { return };
        self.observation.start(now, observer, *self.parts.remote_cids.active());
        if self.observation.wants(Kind::StreamStateUpdated.mask()) {
            self.parts.streams.keep_journal();
        }
        let (local, remote) = self.tuple(self.paths.active().key());
        self.observation.emit(&TransportEvent::ConnectionStarted { local, remote });
        self.emit_state(ConnectionState::Attempted);
        self.emit_version();
        let available = self.versions.available();
        let parameters = self.negotiation.parameters(&self.config, self.version, available);
        self.emit_parameters(Initiator::Local, &parameters);
        self.emit_keys(SpaceId::Initial);
        self.emit_recovery(self.paths.active_id());
    }

    /// The versions this end speaks, and the one in use, which may have changed.
    #[cold]
    pub(super) fn emit_version(&mut self) {
        let available = self.versions.available();
        let versions = Some(Versions(available));
        let (server_versions, client_versions) = match self.side {
            Side::Server => (versions, None),
            Side::Client => (None, versions),
        };
        let chosen_version = Some(Version(self.version));
        let event = TransportEvent::VersionInformation { server_versions, client_versions, chosen_version };
        self.observation.emit(&event);
    }

    /// What happened to streams since the last time is told as well.
    #[cold]
    pub(super) fn emit_time(&mut self, now: Time) {
        if let Some(watch) = &mut self.observation.watch {
            watch.now = watch.now.max(now);
        }
        for (id, opened) in self.parts.streams.take_journal() {
            self.emit_stream(id, opened);
        }
    }

    fn emit_stream(&mut self, stream: StreamId, opened: bool) {
        let (old, new) = match opened {
            true => (StreamState::Idle, StreamState::Open),
            false => (StreamState::Open, StreamState::Closed),
        };
        let both = stream.direction() == Direction::Bidirectional;
        let ours = stream.initiator() == self.side;
        for (stream_side, exists) in
            [(StreamSide::Sending, ours || both), (StreamSide::Receiving, !ours || both)]
        {
            if exists {
                self.observation.emit(&TransportEvent::StreamStateUpdated {
                    stream_id: Stream(stream),
                    stream_type: stream_type(stream),
                    old,
                    new,
                    stream_side,
                });
            }
        }
    }

    #[cold]
    pub(super) fn emit_sent(&mut self, packet: &WrittenPacket, datagram: &[u8]) {
        self.emit_key_phase(KeyTrigger::LocalUpdate);
        self.emit_remote_cid();
        let (packet_type, key_phase) = match packet.space {
            SpaceId::Initial => (PacketName::Initial, None),
            SpaceId::Handshake => (PacketName::Handshake, None),
            SpaceId::Data if packet.length.is_some() => (PacketName::ZeroRtt, None),
            SpaceId::Data => (PacketName::OneRtt, self.key_phase()),
        };
        let payload = datagram.get(packet.payload()).unwrap_or_default();
        self.observation.emit(&TransportEvent::PacketSent {
            header: PacketHeader { packet_type, packet_number: Some(packet.number), key_phase },
            frames: FrameList::new(payload, DEFAULT_ACK_DELAY_EXPONENT),
            raw: RawInfo::length(packet.len()),
            is_mtu_probe_packet: (packet.counts == Counts::MtuProbe).then_some(true),
        });
    }

    #[cold]
    pub(super) fn emit_received(&mut self, info: &PacketInfo, payload: &[u8]) {
        let updated = info.keys == KeysUsed::Updated;
        self.emit_key_phase(if updated { KeyTrigger::RemoteUpdate } else { KeyTrigger::LocalUpdate });
        self.emit_local_cid(info.dcid);
        let key_phase = self.key_phase().filter(|_| info.packet_type == PacketType::OneRtt);
        let key_phase = match info.keys {
            KeysUsed::Previous => key_phase.map(|phase| phase.saturating_sub(1)),
            KeysUsed::Current | KeysUsed::Updated => key_phase,
        };
        let packet_type = PacketName::of(info.packet_type);
        let exponent = self.negotiation.peer_ack_delay_exponent().unwrap_or(DEFAULT_ACK_DELAY_EXPONENT);
        self.observation.emit(&TransportEvent::PacketReceived {
            header: PacketHeader { packet_type, packet_number: Some(info.number), key_phase },
            frames: Some(FrameList::new(payload, exponent)),
            raw: RawInfo::length(info.len),
        });
    }

    #[cold]
    pub(super) fn emit_unnumbered(&mut self, packet_type: PacketName, len: usize) {
        self.observation.emit(&TransportEvent::PacketReceived {
            header: PacketHeader::of_type(packet_type),
            frames: None,
            raw: RawInfo::length(len),
        });
    }

    #[cold]
    pub(super) fn emit_dropped(&mut self, packet_type: Option<PacketName>, len: usize, trigger: DropTrigger) {
        self.observation.emit(&TransportEvent::PacketDropped {
            header: packet_type.map(PacketHeader::of_type),
            raw: RawInfo::length(len),
            trigger,
        });
    }

    #[cold]
    pub(super) fn emit_lost(&mut self, space: SpaceId, trigger: Option<LossTrigger>) {
        for id in self.paths.ids().into_iter().flatten() {
            let path = &self.paths.path(id).recovery;
            let (recovery, decided) = (path.id(), path.decided(space));
            self.emit_lost_on(recovery, decided, space, trigger);
        }
    }

    #[cold]
    pub(super) fn emit_path_gone(&mut self, recovery: u16) {
        self.emit_lost_on(recovery, u64::MAX, SpaceId::Data, None);
        if let Some(watch) = &mut self.observation.watch {
            watch.lost_from.retain(|(path, _)| *path != recovery);
        }
    }

    fn emit_lost_on(&mut self, path: u16, decided: u64, space: SpaceId, trigger: Option<LossTrigger>) {
        let packet_type = match space {
            SpaceId::Initial => PacketName::Initial,
            SpaceId::Handshake => PacketName::Handshake,
            SpaceId::Data => PacketName::OneRtt,
        };
        let (Some(of_space), Some(watch)) = (self.spaces.get_mut(space), &mut self.observation.watch) else {
            return;
        };
        if watch.lost_from.iter().all(|(known, _)| *known != path) {
            watch.lost_from.push((path, [0; 3]));
        }
        let known = watch.lost_from.iter_mut().find(|(known, _)| *known == path);
        let Some(from) = known.and_then(|(_, spaces)| spaces.get_mut(space as usize)) else { return };
        let start = std::mem::replace(from, decided);
        for (number, mtu_probe) in of_space.recovery.lost_on(path, start, decided) {
            self.observation.emit(&TransportEvent::PacketLost {
                header: PacketHeader::numbered(packet_type, number),
                is_mtu_probe_packet: mtu_probe.then_some(true),
                trigger,
            });
        }
    }

    #[cold]
    pub(super) fn emit_recovery(&mut self, path: PathId) {
        if path != self.paths.active_id() {
            return;
        }
        let path = &self.paths.path(path).recovery;
        let now = Recovery::of(path);
        let state = match path.controller().is_slow_start() {
            true => CongestionState::SlowStart,
            false => CongestionState::CongestionAvoidance,
        };
        let mtu = path.mtu();
        let ecn = ecn_name(path.ecn().state());
        let Some(watch) = &mut self.observation.watch else { return };
        let before = std::mem::replace(&mut watch.recovery, now);
        let old_state = watch.congestion.replace(state);
        let old_mtu = watch.mtu.replace(mtu);
        let old_ecn = std::mem::replace(&mut watch.ecn, ecn);
        if before != now {
            let metrics = Changes { before, now };
            self.observation.emit(&TransportEvent::RecoveryMetricsUpdated { metrics });
        }
        if let Some(old) = old_state.filter(|old| *old != state) {
            self.observation.emit(&TransportEvent::CongestionStateUpdated { old, new: state });
        }
        if old_mtu != Some(mtu) {
            self.observation.emit(&TransportEvent::MtuUpdated { old: old_mtu, new: mtu });
        }
        if let Some(new) = ecn.filter(|_| old_ecn != ecn) {
            self.observation.emit(&TransportEvent::EcnStateUpdated { old: old_ecn, new });
        }
    }

    #[cold]
    pub(super) fn emit_keys(&mut self, space: SpaceId) {
        for key_type in key_names(space) {
            let key_phase = (space == SpaceId::Data).then_some(0);
            let trigger = KeyTrigger::Tls;
            self.observation.emit(&TransportEvent::KeyUpdated { key_type, key_phase, trigger });
        }
    }

    #[cold]
    pub(super) fn emit_discarded(&mut self, space: SpaceId) {
        for key_type in key_names(space) {
            self.observation.emit(&TransportEvent::KeyDiscarded { key_type, trigger: KeyTrigger::Tls });
        }
    }

    #[cold]
    pub(super) fn emit_state(&mut self, new: ConnectionState) {
        self.observation.emit(&TransportEvent::ConnectionStateUpdated { new });
        if new == ConnectionState::HandshakeComplete
            && let Some(alpn) = self.parts.handshake.data().and_then(|data| data.alpn.as_deref())
        {
            self.observation.emit(&TransportEvent::AlpnInformation { chosen_alpn: Alpn(alpn) });
        }
    }

    #[cold]
    pub(super) fn emit_parameters(&mut self, initiator: Initiator, parameters: &TransportParameters) {
        let parameters = Parameters(parameters);
        self.observation.emit(&TransportEvent::ParametersSet { initiator, parameters });
    }

    #[cold]
    pub(super) fn emit_path(&mut self, event: &PathEvent) {
        let (id, new) = match *event {
            PathEvent::Migrated { to, .. } if self.paths.path(to).is_validated() => {
                (to, MigrationState::MigrationComplete)
            }
            PathEvent::Migrated { to, .. } => (to, MigrationState::MigrationStarted),
            PathEvent::FellBack { from, .. } => (from, MigrationState::MigrationAbandoned),
            PathEvent::Validated(id) if id == self.migration.announced_active => {
                (id, MigrationState::MigrationComplete)
            }
            PathEvent::Validated(id) => (id, MigrationState::ProbingSuccessful),
            PathEvent::Abandoned { id, .. } => (id, MigrationState::ProbingAbandoned),
            PathEvent::NoPath => return,
        };
        if matches!(event, PathEvent::Migrated { .. } | PathEvent::Abandoned { .. }) {
            self.emit_tuple(id);
        }
        let name = tuple_name(id);
        self.observation.emit(&TransportEvent::MigrationStateUpdated { new, tuple_id: &name });
    }

    /// The addresses of a path, none if it is gone.
    fn emit_tuple(&mut self, id: PathId) {
        let tuple = self.paths.get(id).map(|path| self.tuple(path.key()));
        let (tuple_local, tuple_remote) = tuple.unzip();
        let tuple_id = tuple_name(id);
        let event = TransportEvent::TupleAssigned { tuple_id: &tuple_id, tuple_remote, tuple_local };
        self.observation.emit(&event);
    }

    #[cold]
    pub(super) fn emit_probing(&mut self, id: PathId) {
        self.emit_tuple(id);
        let new = MigrationState::ProbingStarted;
        self.observation.emit(&TransportEvent::MigrationStateUpdated { new, tuple_id: &tuple_name(id) });
    }

    #[cold]
    pub(super) fn emit_closed(&mut self, reason: &ConnectionError) {
        let code = match self.lifecycle.pending_close() {
            Some(CloseFrame::Application { code, .. }) => Some(*code),
            _ => None,
        };
        self.observation.emit(&closed(reason, code));
        let new = match self.lifecycle.state() {
            State::Closing { .. } => ConnectionState::Closing,
            State::Draining { .. } => ConnectionState::Draining,
            _ => ConnectionState::Closed,
        };
        self.emit_state(new);
    }

    /// How often the 1-RTT keys have been updated, once there are any.
    fn key_phase(&self) -> Option<u64> {
        self.spaces.data.keys.as_ref().map(|keys| keys.updates())
    }

    fn emit_key_phase(&mut self, trigger: KeyTrigger) {
        let Some(phase) = self.key_phase() else { return };
        let Some(watch) = &mut self.observation.watch else { return };
        if std::mem::replace(&mut watch.key_phase, phase) == phase {
            return;
        }
        for key_type in key_names(SpaceId::Data) {
            let key_phase = Some(phase);
            self.observation.emit(&TransportEvent::KeyUpdated { key_type, key_phase, trigger });
        }
    }

    fn emit_remote_cid(&mut self) {
        let new = *self.parts.remote_cids.active();
        let Some(watch) = &mut self.observation.watch else { return };
        let old = std::mem::replace(&mut watch.remote_cid, new);
        if old != new {
            let (initiator, old, new) = (Initiator::Remote, Cid(old), Cid(new));
            self.observation.emit(&TransportEvent::ConnectionIdUpdated { initiator, old, new });
        }
    }

    fn emit_local_cid(&mut self, new: ConnectionId) {
        let Some(watch) = &mut self.observation.watch else { return };
        if let Some(old) = watch.local_cid.replace(new).filter(|old| *old != new) {
            let (initiator, old, new) = (Initiator::Local, Cid(old), Cid(new));
            self.observation.emit(&TransportEvent::ConnectionIdUpdated { initiator, old, new });
        }
    }

    /// The two ends of a path: this one and the peer.
    fn tuple(&self, key: &PathKey) -> (TupleEndpoint, TupleEndpoint) {
        let local = TupleEndpoint { address: key.local, port: None, cid: Some(self.negotiation.local_cid) };
        let (address, port) = (Some(key.remote.ip()), Some(key.remote.port()));
        (local, TupleEndpoint { address, port, cid: Some(*self.parts.remote_cids.active()) })
    }
}

/// The path of the handshake has the name that stands for no name.
fn tuple_name(id: PathId) -> String {
    if id == PathId(0) { String::new() } else { id.0.to_string() }
}

/// Nothing is told of a path on which ECN is not wanted.
const fn ecn_name(state: EcnState) -> Option<EcnName> {
    match state {
        EcnState::Testing => Some(EcnName::Testing),
        EcnState::Unknown => Some(EcnName::Unknown),
        EcnState::Capable => Some(EcnName::Capable),
        EcnState::Failed(_) => Some(EcnName::Failed),
        _ => None,
    }
}

const fn key_names(space: SpaceId) -> [KeyName; 2] {
    match space {
        SpaceId::Initial => [KeyName::ClientInitial, KeyName::ServerInitial],
        SpaceId::Handshake => [KeyName::ClientHandshake, KeyName::ServerHandshake],
        SpaceId::Data => [KeyName::ClientOneRtt, KeyName::ServerOneRtt],
    }
}

/// The end of a connection as an event. `code` is that of this end's application, if it closed.
fn closed<'a>(reason: &'a ConnectionError, code: Option<u64>) -> TransportEvent<'a> {
    let plain = |initiator, trigger| TransportEvent::ConnectionClosed {
        initiator: Some(initiator),
        connection_error: None,
        application_error: None,
        error_code: None,
        reason: None,
        trigger,
    };
    let transport = |initiator, error: TransportErrorCode, reason: &'a [u8]| {
        let peaceful = [TransportErrorCode::NO_ERROR, TransportErrorCode::APPLICATION_ERROR].contains(&error);
        TransportEvent::ConnectionClosed {
            initiator: Some(initiator),
            connection_error: Some(ErrorName(error)),
            application_error: None,
            error_code: error.name().is_none().then_some(error.0),
            reason: Some(TextBytes(reason)),
            trigger: if peaceful { CloseTrigger::Application } else { CloseTrigger::Error },
        }
    };
    let application = |initiator, code: Option<u64>, reason| TransportEvent::ConnectionClosed {
        initiator: Some(initiator),
        connection_error: None,
        application_error: Some("unknown"),
        error_code: code,
        reason,
        trigger: CloseTrigger::Application,
    };
    match reason {
        ConnectionError::ClosedLocally => application(Initiator::Local, code, None),
        ConnectionError::Transport(WireError { code, reason, .. }) => {
            transport(Initiator::Local, *code, reason.as_bytes())
        }
        ConnectionError::PeerTransport { code, reason, .. } => transport(Initiator::Remote, *code, reason),
        ConnectionError::PeerApplication { code, reason } => {
            application(Initiator::Remote, Some(*code), Some(TextBytes(reason)))
        }
        ConnectionError::Reset => plain(Initiator::Remote, CloseTrigger::StatelessReset),
        ConnectionError::TimedOut => plain(Initiator::Local, CloseTrigger::IdleTimeout),
        ConnectionError::VersionMismatch => plain(Initiator::Remote, CloseTrigger::VersionMismatch),
    }
}
