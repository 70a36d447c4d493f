//! The declaration of what can be seen of a connection.
//!
//! Names and fields are those of the qlog event schema for QUIC (draft-ietf-quic-qlog-quic-events), which
//! other consumers can live with: it is the only vocabulary that tools share.

use super::frames::FrameList;
use super::values::{
    Alpn, Changes, Cid, CloseTrigger, CongestionState, ConnectionState, DropTrigger, EcnName, ErrorName,
    Initiator, KeyName, KeyTrigger, LossTrigger, MigrationState, PacketHeader, Parameters, RawInfo, Stream,
    StreamSide, StreamState, TextBytes, TupleEndpoint, Version, Versions,
};
use godwit_wire::StreamId;

godwit_base::events! {
    /// Something that happened on a connection.
    #[derive(Debug, Clone)]
    pub enum TransportEvent<'a> in "quic", kinds TransportEventKind {
        /// A connection was begun or accepted.
        ConnectionStarted = "connection_started", Base {
            /// This end.
            local: TupleEndpoint,
            /// The other end.
            remote: TupleEndpoint,
        }
        /// A connection was closed, by whomever.
        ConnectionClosed = "connection_closed", Base {
            /// Which end closed it.
            initiator: Option<Initiator>,
            /// The code, if the transport closed it.
            connection_error: Option<ErrorName>,
            /// "unknown", if an application closed it: its codes have no names here.
            application_error: Option<&'a str>,
            /// The application's code.
            error_code: Option<u64>,
            /// The explanation.
            reason: Option<TextBytes<'a>>,
            /// Why.
            trigger: CloseTrigger,
        }
        /// The connection id in packets changed: the one we send to (remote), or the one we receive (local).
        ConnectionIdUpdated = "connection_id_updated", Base {
            /// Whose id it is.
            initiator: Initiator,
            /// The id before.
            old: Cid,
            /// The id from now on.
            new: Cid,
        }
        /// The connection came a step further in its life.
        ConnectionStateUpdated = "connection_state_updated", Base {
            /// Where it is now.
            new: ConnectionState,
        }
        /// A path has these addresses, or is forgotten if it has none.
        TupleAssigned = "tuple_assigned", Base {
            /// The name of the path; empty for that of the handshake.
            tuple_id: &'a str,
            /// The peer.
            tuple_remote: Option<TupleEndpoint>,
            /// This end.
            tuple_local: Option<TupleEndpoint>,
        }
        /// The path lets datagrams of another size through, in bytes of UDP payload.
        MtuUpdated = "mtu_updated", Extra {
            /// The size before.
            old: Option<u16>,
            /// The size now.
            new: u16,
        }
        /// What versions the ends speak, and which was chosen.
        VersionInformation = "version_information", Core {
            /// Those of the server.
            server_versions: Option<Versions<'a>>,
            /// Those of the client.
            client_versions: Option<Versions<'a>>,
            /// The one in use.
            chosen_version: Option<Version>,
        }
        /// The application protocol is known (ALPN).
        AlpnInformation = "alpn_information", Core {
            /// The one in use.
            chosen_alpn: Alpn<'a>,
        }
        /// Transport parameters were declared.
        ParametersSet = "parameters_set", Core {
            /// By which end.
            initiator: Initiator,
            /// What they are.
            parameters: Parameters<'a>,
        }
        /// A packet was sent.
        PacketSent = "packet_sent", Core {
            /// Its type and number.
            header: PacketHeader,
            /// What it carries.
            frames: FrameList<'a>,
            /// Its size.
            raw: RawInfo,
            /// It probes the path's MTU.
            is_mtu_probe_packet: Option<bool>,
        }
        /// An authentic packet was received for the first time; or a Retry or Version Negotiation packet.
        PacketReceived = "packet_received", Core {
            /// Its type and number.
            header: PacketHeader,
            /// What it carries.
            frames: Option<FrameList<'a>>,
            /// Its size.
            raw: RawInfo,
        }
        /// A packet, or a datagram with packets, was not taken in.
        PacketDropped = "packet_dropped", Base {
            /// Its type, if that could be told, and its number if it could be opened.
            header: Option<PacketHeader>,
            /// Its size.
            raw: RawInfo,
            /// Why.
            trigger: DropTrigger,
        }
        /// The state of a stream's half changed.
        StreamStateUpdated = "stream_state_updated", Base {
            /// Which stream.
            stream_id: Stream,
            /// One way or both ways.
            stream_type: &'a str,
            /// The state before.
            old: StreamState,
            /// The state now.
            new: StreamState,
            /// Which half.
            stream_side: StreamSide,
        }
        /// The connection moves to another path, or back.
        MigrationStateUpdated = "migration_state_updated", Extra {
            /// How far it is.
            new: MigrationState,
            /// The name of the path concerned.
            tuple_id: &'a str,
        }
        /// A key came into use.
        KeyUpdated = "key_updated", Base {
            /// Which key.
            key_type: KeyName,
            /// How often the 1-RTT keys have been updated.
            key_phase: Option<u64>,
            /// By what.
            trigger: KeyTrigger,
        }
        /// A key is used no more.
        KeyDiscarded = "key_discarded", Base {
            /// Which key.
            key_type: KeyName,
            /// By what.
            trigger: KeyTrigger,
        }
        /// Round-trip time, window or flight changed; fields that did not are left out.
        RecoveryMetricsUpdated = "recovery_metrics_updated", Core {
            /// The new values.
            metrics: Changes,
        }
        /// Congestion control entered another state.
        CongestionStateUpdated = "congestion_state_updated", Base {
            /// The state before.
            old: CongestionState,
            /// The state now.
            new: CongestionState,
        }
        /// More is known of whether the path carries ECN marks.
        EcnStateUpdated = "ecn_state_updated", Extra {
            /// What was known before.
            old: Option<EcnName>,
            /// What is known now.
            new: EcnName,
        }
        /// A packet was declared lost.
        PacketLost = "packet_lost", Core {
            /// Its type and number.
            header: PacketHeader,
            /// It was a probe of the path's MTU.
            is_mtu_probe_packet: Option<bool>,
            /// Why, if that is known.
            trigger: Option<LossTrigger>,
        }
    }
}

/// "bidirectional" or "unidirectional".
pub(crate) const fn stream_type(id: StreamId) -> &'static str {
    match id.direction() {
        godwit_wire::Direction::Bidirectional => "bidirectional",
        godwit_wire::Direction::Unidirectional => "unidirectional",
    }
}
