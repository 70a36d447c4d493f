//! The types of the fields of events.

use godwit_base::event::{Bytes, Value, Visitor};
use godwit_base::{event_group, event_words};
use godwit_recovery::PathRecovery;
use godwit_wire::header::PacketType;
use godwit_wire::transport_parameters::TransportParameters;
use godwit_wire::{ConnectionId, StreamId, TransportErrorCode};
use std::net::IpAddr;
use std::time::Duration;

event_words! {
    /// One of the two ends.
    pub enum Initiator {
        /// This end.
        Local = "local",
        /// The peer.
        Remote = "remote",
    }

    /// Why a connection was closed.
    pub enum CloseTrigger {
        /// The application wanted it.
        Application = "application",
        /// Something went wrong.
        Error = "error",
        /// Nothing was heard for too long.
        IdleTimeout = "idle_timeout",
        /// The peer lost its state.
        StatelessReset = "stateless_reset",
        /// There is no version that both ends speak.
        VersionMismatch = "version_mismatch",
    }

    /// How far a connection is in its life.
    pub enum ConnectionState {
        /// The first packet was sent or received.
        Attempted = "attempted",
        /// The handshake is complete (RFC 9001 section 4.1.1).
        HandshakeComplete = "handshake_complete",
        /// The handshake is confirmed (RFC 9001 section 4.1.2).
        HandshakeConfirmed = "handshake_confirmed",
        /// This end has closed (RFC 9000 section 10.2.1).
        Closing = "closing",
        /// The peer has closed (RFC 9000 section 10.2.2).
        Draining = "draining",
        /// Over.
        Closed = "closed",
    }

    /// The type of a packet.
    pub enum PacketName {
        /// Initial.
        Initial = "initial",
        /// Handshake.
        Handshake = "handshake",
        /// 0-RTT.
        ZeroRtt = "0RTT",
        /// 1-RTT.
        OneRtt = "1RTT",
        /// Retry.
        Retry = "retry",
        /// Version Negotiation.
        VersionNegotiation = "version_negotiation",
    }

    /// Why a packet was dropped.
    pub enum DropTrigger {
        /// It is not authentic.
        DecryptionFailure = "decryption_failure",
        /// It came before.
        Duplicate = "duplicate",
        /// It breaks a rule for packets of its type.
        Invalid = "invalid",
        /// There is no key for it, or none any more.
        KeyUnavailable = "key_unavailable",
        /// Nothing is expected from where it came.
        Rejected = "rejected",
        /// It is of another version.
        Unsupported = "unsupported",
    }

    /// What a stream's half is.
    pub enum StreamState {
        /// Not used yet.
        Idle = "idle",
        /// In use.
        Open = "open",
        /// Over.
        Closed = "closed",
    }

    /// A stream's half.
    pub enum StreamSide {
        /// The one that sends.
        Sending = "sending",
        /// The one that receives.
        Receiving = "receiving",
    }

    /// How far a move to another path is.
    pub enum MigrationState {
        /// Packets came from a new address, or one is being tried.
        ProbingStarted = "probing_started",
        /// The path is forgotten.
        ProbingAbandoned = "probing_abandoned",
        /// The path works.
        ProbingSuccessful = "probing_successful",
        /// The connection sends on the new path.
        MigrationStarted = "migration_started",
        /// The new path did not answer: back to the one before.
        MigrationAbandoned = "migration_abandoned",
        /// The new path works and is the active one.
        MigrationComplete = "migration_complete",
    }

    /// A key.
    pub enum KeyName {
        /// The server's Initial key.
        ServerInitial = "server_initial_secret",
        /// The client's Initial key.
        ClientInitial = "client_initial_secret",
        /// The server's Handshake key.
        ServerHandshake = "server_handshake_secret",
        /// The client's Handshake key.
        ClientHandshake = "client_handshake_secret",
        /// The server's 1-RTT key.
        ServerOneRtt = "server_1rtt_secret",
        /// The client's 1-RTT key.
        ClientOneRtt = "client_1rtt_secret",
    }

    /// What changed a key.
    pub enum KeyTrigger {
        /// The handshake.
        Tls = "tls",
        /// A key update of the peer.
        RemoteUpdate = "remote_update",
        /// A key update of this end.
        LocalUpdate = "local_update",
    }

    /// Why a packet was declared lost.
    pub enum LossTrigger {
        /// Too long ago (RFC 9002 section 6.1.2).
        TimeThreshold = "time_threshold",
    }

    /// What is known of ECN on a path.
    pub enum EcnName {
        /// A probe is to be sent.
        Testing = "testing",
        /// A probe has been sent.
        Unknown = "unknown",
        /// Marks do not pass, or mean nothing.
        Failed = "failed",
        /// Packets are marked.
        Capable = "capable",
    }

    /// What congestion control does.
    pub enum CongestionState {
        /// It looks for the path's capacity.
        SlowStart = "slow_start",
        /// It stays close to the path's capacity.
        CongestionAvoidance = "congestion_avoidance",
    }
}

event_group! {
    /// What names a packet.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct PacketHeader {
        /// Its type.
        packet_type: PacketName,
        /// Its number, if it has one that could be read.
        packet_number: Option<u64>,
        /// Of a 1-RTT packet: how often the keys had been updated.
        key_phase: Option<u64>,
    }

    /// Sizes in bytes.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct RawInfo {
        /// Of the whole.
        length: Option<usize>,
        /// Without headers and trailers.
        payload_length: Option<usize>,
    }
}

impl RawInfo {
    /// The size of the whole.
    pub const fn length(bytes: usize) -> Self {
        RawInfo { length: Some(bytes), payload_length: None }
    }

    /// The size of the contents.
    pub const fn payload(bytes: usize) -> Self {
        RawInfo { length: None, payload_length: Some(bytes) }
    }
}

impl PacketName {
    /// The name of a type.
    pub const fn of(packet_type: PacketType) -> Self {
        match packet_type {
            PacketType::Initial => PacketName::Initial,
            PacketType::ZeroRtt => PacketName::ZeroRtt,
            PacketType::Handshake => PacketName::Handshake,
            PacketType::Retry => PacketName::Retry,
            PacketType::OneRtt => PacketName::OneRtt,
        }
    }
}

impl PacketHeader {
    /// A header of which only the type is known.
    pub const fn of_type(packet_type: PacketName) -> Self {
        PacketHeader { packet_type, packet_number: None, key_phase: None }
    }

    /// A header with its number.
    pub const fn numbered(packet_type: PacketName, number: u64) -> Self {
        PacketHeader { packet_number: Some(number), ..Self::of_type(packet_type) }
    }
}

/// A connection id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cid(pub ConnectionId);

impl Value for Cid {
    fn visit(&self, name: &str, visitor: &mut dyn Visitor) {
        visitor.bytes(name, self.0.as_bytes());
    }
}

/// A stream's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream(pub StreamId);

impl Value for Stream {
    fn visit(&self, name: &str, visitor: &mut dyn Visitor) {
        visitor.number(name, self.0.as_u64());
    }
}

/// A version number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version(pub u32);

impl Value for Version {
    fn visit(&self, name: &str, visitor: &mut dyn Visitor) {
        visitor.bytes(name, &self.0.to_be_bytes());
    }
}

/// Version numbers, in order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions<'a>(pub &'a [u32]);

impl Value for Versions<'_> {
    fn visit(&self, name: &str, visitor: &mut dyn Visitor) {
        visitor.list(name, &|visitor| self.0.iter().for_each(|number| Version(*number).visit("", visitor)));
    }
}

/// The name of an application protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alpn<'a>(pub &'a [u8]);

impl Value for Alpn<'_> {
    fn visit(&self, name: &str, visitor: &mut dyn Visitor) {
        visitor.group(name, &|visitor| {
            Bytes(self.0).visit("byte_value", visitor);
            std::str::from_utf8(self.0).ok().visit("string_value", visitor);
        });
    }
}

/// Bytes that are most likely text. What is not UTF-8 in them is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextBytes<'a>(pub &'a [u8]);

impl Value for TextBytes<'_> {
    fn visit(&self, name: &str, visitor: &mut dyn Visitor) {
        visitor.text(name, &String::from_utf8_lossy(self.0));
    }
}

/// A transport error code by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorName(pub TransportErrorCode);

impl Value for ErrorName {
    fn visit(&self, name: &str, visitor: &mut dyn Visitor) {
        match (self.0.alert(), self.0.name()) {
            (Some(alert), _) => visitor.text(name, &format!("crypto_error_0x1{alert:02x}")),
            (None, Some(error)) => visitor.text(name, &error.to_ascii_lowercase()),
            (None, None) => visitor.text(name, "unknown"),
        }
    }
}

/// One end of a path, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TupleEndpoint {
    /// The address.
    pub address: Option<IpAddr>,
    /// The port.
    pub port: Option<u16>,
    /// The connection id in packets to this end.
    pub cid: Option<ConnectionId>,
}

impl Value for TupleEndpoint {
    fn visit(&self, name: &str, visitor: &mut dyn Visitor) {
        let (ip_name, port_name) = match self.address {
            Some(IpAddr::V6(_)) => ("ip_v6", "port_v6"),
            _ => ("ip_v4", "port_v4"),
        };
        visitor.group(name, &|visitor| {
            self.address.visit(ip_name, visitor);
            self.port.visit(port_name, visitor);
            if let Some(cid) = self.cid {
                visitor.list("connection_ids", &|visitor| Cid(cid).visit("", visitor));
            }
        });
    }
}

/// Transport parameters: each shows itself as a field of the event. Reset tokens are secrets and stay out.
#[derive(Debug, Clone, Copy)]
pub struct Parameters<'a>(pub &'a TransportParameters);

impl Value for Parameters<'_> {
    fn visit(&self, _: &str, visitor: &mut dyn Visitor) {
        let TransportParameters {
            original_destination_cid,
            max_idle_timeout,
            stateless_reset_token: _,
            max_udp_payload_size,
            initial_max_data,
            initial_max_stream_data_bidi_local,
            initial_max_stream_data_bidi_remote,
            initial_max_stream_data_uni,
            initial_max_streams_bidi,
            initial_max_streams_uni,
            ack_delay_exponent,
            max_ack_delay,
            disable_active_migration,
            preferred_address: _,
            active_cid_limit,
            initial_source_cid,
            retry_source_cid,
            max_datagram_frame_size,
            grease_quic_bit,
            reset_stream_at,
            min_ack_delay,
            disable_1rtt_encryption,
            timestamps,
            cibir_encoding: _,
            version_information: _,
        } = self.0;
        original_destination_cid.map(Cid).visit("original_destination_connection_id", visitor);
        initial_source_cid.map(Cid).visit("initial_source_connection_id", visitor);
        retry_source_cid.map(Cid).visit("retry_source_connection_id", visitor);
        disable_active_migration.visit("disable_active_migration", visitor);
        max_idle_timeout.visit("max_idle_timeout", visitor);
        max_udp_payload_size.visit("max_udp_payload_size", visitor);
        ack_delay_exponent.visit("ack_delay_exponent", visitor);
        max_ack_delay.visit("max_ack_delay", visitor);
        active_cid_limit.visit("active_connection_id_limit", visitor);
        initial_max_data.visit("initial_max_data", visitor);
        initial_max_stream_data_bidi_local.visit("initial_max_stream_data_bidi_local", visitor);
        initial_max_stream_data_bidi_remote.visit("initial_max_stream_data_bidi_remote", visitor);
        initial_max_stream_data_uni.visit("initial_max_stream_data_uni", visitor);
        initial_max_streams_bidi.visit("initial_max_streams_bidi", visitor);
        initial_max_streams_uni.visit("initial_max_streams_uni", visitor);
        max_datagram_frame_size.visit("max_datagram_frame_size", visitor);
        grease_quic_bit.then_some(true).visit("grease_quic_bit", visitor);
        reset_stream_at.then_some(true).visit("reset_stream_at", visitor);
        min_ack_delay.visit("min_ack_delay", visitor);
        disable_1rtt_encryption.then_some(true).visit("disable_1rtt_encryption", visitor);
        let timestamps = Some(timestamps.number()).filter(|number| *number != 0);
        timestamps.visit("enable_timestamp", visitor);
    }
}

/// What loss recovery and congestion control of a path say. `None` is not known yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Recovery {
    /// The lowest round-trip time of late.
    pub min_rtt: Option<Duration>,
    /// The smoothed round-trip time.
    pub smoothed_rtt: Option<Duration>,
    /// The latest sample of the round-trip time.
    pub latest_rtt: Option<Duration>,
    /// The mean deviation of the round-trip time.
    pub rtt_variance: Option<Duration>,
    /// Probe timeouts since the last acknowledgement.
    pub pto_count: Option<u32>,
    /// The congestion window in bytes.
    pub congestion_window: Option<u64>,
    /// Bytes in flight.
    pub bytes_in_flight: Option<u64>,
    /// The slow start threshold in bytes, once there is one.
    pub ssthresh: Option<u64>,
}

impl Recovery {
    /// What `path` says now.
    pub fn of(path: &PathRecovery) -> Self {
        let rtt = path.rtt();
        let sampled = rtt.first_sample_at().is_some();
        let known = |value: Duration| sampled.then_some(value);
        Recovery {
            min_rtt: known(rtt.min()),
            smoothed_rtt: known(rtt.smoothed()),
            latest_rtt: known(rtt.latest()),
            rtt_variance: known(rtt.variation()),
            pto_count: Some(path.pto_count()),
            congestion_window: Some(path.window()),
            bytes_in_flight: Some(path.bytes_in_flight()),
            ssthresh: path.controller().slow_start_threshold(),
        }
    }
}

/// A new state of [`Recovery`] beside the one told last: what differs shows itself, each as a field of the
/// event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changes {
    /// What was told last.
    pub before: Recovery,
    /// What is so now.
    pub now: Recovery,
}

impl Value for Changes {
    fn visit(&self, _: &str, visitor: &mut dyn Visitor) {
        fn changed<T: Value + PartialEq>(
            name: &str,
            before: Option<T>,
            now: Option<T>,
            visitor: &mut dyn Visitor,
        ) {
            if before != now {
                now.visit(name, visitor);
            }
        }
        let (before, now) = (&self.before, &self.now);
        changed("min_rtt", before.min_rtt, now.min_rtt, visitor);
        changed("smoothed_rtt", before.smoothed_rtt, now.smoothed_rtt, visitor);
        changed("latest_rtt", before.latest_rtt, now.latest_rtt, visitor);
        changed("rtt_variance", before.rtt_variance, now.rtt_variance, visitor);
        changed("pto_count", before.pto_count, now.pto_count, visitor);
        changed("congestion_window", before.congestion_window, now.congestion_window, visitor);
        changed("bytes_in_flight", before.bytes_in_flight, now.bytes_in_flight, visitor);
        changed("ssthresh", before.ssthresh, now.ssthresh, visitor);
    }
}
