//! What both ends must agree on before and during the handshake: connection ids, Retry, versions,
//! transport parameters (RFC 9000 sections 6, 7.2, 7.3, 7.4 and 17.2.5).

use super::Machine;
use super::ack_frequency::AckFrequency;
use super::evidence::Attempt;
use crate::cid::RemoteCids;
use crate::resumption::ServerMemory;
use crate::{TransportConfig, WireError};
use bytes::Bytes;
use godwit_base::Time;
use godwit_recovery::{PathRecovery, SpaceId};
use godwit_tls::keys;
use godwit_wire::transport_parameters::{Timestamps, TransportParameters, VersionInformation, VersionList};
use godwit_wire::{ConnectionId, Side, TransportErrorCode, Writer};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of the longest token that leaves room for the rest of a client's Initial packet.
const MAX_TOKEN: usize = 1024;

/// The ids and parameters that authenticate the handshake.
#[derive(Debug)]
pub(super) struct Negotiation {
    side: Side,
    /// Our Source Connection ID in long headers.
    pub(super) local_cid: ConnectionId,
    /// The Destination Connection ID of the client's very first packet.
    pub(super) original_dcid: ConnectionId,
    retry_scid: Option<ConnectionId>,
    /// The peer's Source Connection ID, from its first packet.
    peer_scid: Option<ConnectionId>,
    /// The token in our Initial packets.
    pub(super) token: Bytes,
    peer: Option<Peer>,
    /// Both ends have said that they do without protection of 1-RTT packets. It is proved only when the handshake is complete.
    pub(super) without_encryption: bool,
    /// At a client with a session store: what is kept for its server.
    pub(super) memory: Option<Arc<ServerMemory>>,
    /// CRYPTO data has been read since the handshake was last advanced.
    pub(super) crypto_progress: bool,
    /// At a client: the handshake has become complete, and nobody has asked since.
    pub(super) finished: bool,
    /// At a client: the application is to approve of the server before its Finished message is sent.
    pub(super) withholds_finished: bool,
    /// At a client: what is known of the attempt to connect.
    pub(super) attempt: Attempt,
}

/// What is remembered of the peer's transport parameters.
#[derive(Debug, Clone, Copy)]
struct Peer {
    ack_delay_exponent: u8,
    max_ack_delay: Duration,
    max_udp_payload_size: u16,
}

impl Negotiation {
    pub(super) fn client(local_cid: ConnectionId, initial_dcid: ConnectionId, token: Bytes) -> Self {
        Negotiation {
            side: Side::Client,
            local_cid,
            original_dcid: initial_dcid,
            retry_scid: None,
            peer_scid: None,
            token: Some(token).filter(|token| token.len() <= MAX_TOKEN).unwrap_or_default(),
            peer: None,
            without_encryption: false,
            memory: None,
            crypto_progress: false,
            finished: false,
            withholds_finished: false,
            attempt: Attempt::default(),
        }
    }

    pub(super) fn server(
        local_cid: ConnectionId,
        original_dcid: ConnectionId,
        retry_scid: Option<ConnectionId>,
        peer_scid: ConnectionId,
    ) -> Self {
        let client = Self::client(local_cid, original_dcid, Bytes::new());
        Negotiation { side: Side::Server, retry_scid, peer_scid: Some(peer_scid), ..client }
    }

    /// An authentic long-header packet named `scid` as the peer's id. False if that is not the id of the
    /// packets before: the packet is to be dropped (RFC 9000 section 7.2).
    pub(super) fn on_peer_cid(&mut self, scid: ConnectionId, remote: &mut RemoteCids) -> bool {
        match self.peer_scid {
            Some(known) => known == scid,
            None => {
                self.peer_scid = Some(scid);
                remote.set_first(scid);
                true
            }
        }
    }

    /// True once a packet of the server has been accepted: Retry and Version Negotiation come too late.
    pub(super) fn has_heard_server(&self) -> bool {
        self.peer_scid.is_some()
    }

    /// True at a client that was sent a Retry, and at a server whose client answers one.
    pub(super) fn was_retried(&self) -> bool {
        self.retry_scid.is_some()
    }

    /// The id from which Initial keys follow at a client: that of its first packet, or of the first after a
    /// Retry.
    pub(super) fn initial_keys_cid(&self) -> ConnectionId {
        self.retry_scid.unwrap_or(self.original_dcid)
    }

    /// True at a client that has heard nothing yet, for a Version Negotiation packet with these ids.
    pub(super) fn awaits_versions(&self, dcid: ConnectionId, scid: ConnectionId) -> bool {
        let ours = dcid == self.local_cid && scid == self.original_dcid;
        let welcome = self.side == Side::Client && !self.has_heard_server() && self.retry_scid.is_none();
        ours && welcome
    }

    /// The server gave a token for the next connection to it (RFC 9000 section 8.1.3).
    pub(super) fn on_new_token(&mut self, token: &[u8]) {
        if let Some(memory) = self.memory.as_ref().filter(|_| token.len() <= MAX_TOKEN) {
            memory.put_token(Bytes::copy_from_slice(token));
        }
    }

    /// In what units the peer's ACK frames count delays, once it is known.
    pub(super) fn peer_ack_delay_exponent(&self) -> Option<u8> {
        self.peer.map(|peer| peer.ack_delay_exponent)
    }

    pub(super) fn has_peer_parameters(&self) -> bool {
        self.peer.is_some()
    }

    /// An ACK frame's delay: zero where no delay is permitted, and capped at what the peer declared once
    /// the handshake is confirmed (RFC 9002 section 5.3).
    pub(super) fn ack_delay(&self, space: SpaceId, field: u64, confirmed: bool) -> Duration {
        let Some(peer) = self.peer.filter(|_| space == SpaceId::Data) else { return Duration::ZERO };
        let delay = scale_ack_delay(field, peer.ack_delay_exponent);
        if confirmed { delay.min(peer.max_ack_delay) } else { delay }
    }

    /// A path keeps to what the peer declared for all of them.
    pub(super) fn apply_limits(&self, recovery: &mut PathRecovery) {
        if let Some(peer) = self.peer {
            recovery.set_peer_max_ack_delay(peer.max_ack_delay);
            recovery.mtu_search_mut().limit(peer.max_udp_payload_size);
        }
    }

    /// Compares the ids that the peer declares with those that were seen (RFC 9000 section 7.3).
    fn check(&self, parameters: &TransportParameters) -> Result<(), WireError> {
        let error = |reason| Err(WireError::new(TransportErrorCode::TRANSPORT_PARAMETER_ERROR, reason));
        if parameters.initial_source_cid != self.peer_scid {
            return error("initial_source_connection_id is not the id of the packets");
        }
        if self.side == Side::Client {
            if parameters.original_destination_cid != Some(self.original_dcid) {
                return error("original_destination_connection_id is not the id of the first packet");
            }
            if parameters.retry_source_cid != self.retry_scid {
                return error("retry_source_connection_id does not match the Retry");
            }
        }
        Ok(())
    }

    /// The parameters of this end.
    pub(super) fn parameters(
        &self,
        config: &TransportConfig,
        version: u32,
        versions: &[u32],
    ) -> TransportParameters {
        let server = self.side == Side::Server;
        TransportParameters {
            original_destination_cid: Some(self.original_dcid).filter(|_| server),
            retry_source_cid: self.retry_scid.filter(|_| server),
            initial_source_cid: Some(self.local_cid),
            max_idle_timeout: config.max_idle_timeout,
            initial_max_data: config.initial_connection_window,
            initial_max_stream_data_bidi_local: config.initial_stream_window,
            initial_max_stream_data_bidi_remote: config.initial_stream_window,
            initial_max_stream_data_uni: config.initial_stream_window,
            initial_max_streams_bidi: config.max_bidi_streams,
            initial_max_streams_uni: config.max_uni_streams,
            max_ack_delay: config.max_ack_delay,
            disable_active_migration: !config.migration.allowed,
            min_ack_delay: AckFrequency::min_delay(config.ack_frequency, config.max_ack_delay),
            active_cid_limit: RemoteCids::offered_limit(config.active_cid_limit),
            max_datagram_frame_size: config.datagrams.max_frame_size,
            grease_quic_bit: config.grease_quic_bit,
            reset_stream_at: config.reset_stream_at,
            disable_1rtt_encryption: config.danger_without_encryption,
            cibir_encoding: config.cibir.encoding(),
            timestamps: Timestamps { receive: config.timestamps, send: config.timestamps },
            version_information: Some(VersionInformation {
                chosen: version,
                available: VersionList::new(versions.iter().copied()),
            }),
            ..TransportParameters::default()
        }
    }
}

/// Scales an ACK frame's delay field (RFC 9000 section 19.3), without overflow whatever it holds.
fn scale_ack_delay(field: u64, exponent: u8) -> Duration {
    let micros = u128::from(field) << exponent.min(20);
    Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}

/// Encodes transport parameters for TLS.
pub(super) fn encode(parameters: &TransportParameters, grease: u64) -> Result<Vec<u8>, crate::ConnectError> {
    let mut buffer = [0; TransportParameters::MAX_LEN];
    let mut writer = Writer::new(&mut buffer);
    parameters
        .encode(&mut writer, grease)
        .map_err(|_| crate::ConnectError::Tls("a transport parameter is out of range".into()))?;
    Ok(writer.written().to_vec())
}

impl Machine {
    /// The peer's transport parameters have come with its first flight.
    pub(super) fn on_peer_parameters(&mut self, now: Time, encoded: &[u8]) -> Result<(), WireError> {
        let parameters = TransportParameters::decode(encoded, self.side.peer())
            .map_err(|error| WireError::new(TransportErrorCode::TRANSPORT_PARAMETER_ERROR, error.reason))?;
        self.observe_parameters(&parameters);
        self.negotiation.check(&parameters)?;
        self.config.cibir.check(self.side, parameters.cibir_encoding)?;
        // Somebody on the path may have made one end believe in another version.
        let versions = parameters.version_information.as_ref();
        self.versions.check(self.side, self.version, versions)?;
        self.negotiation.peer = Some(Peer {
            ack_delay_exponent: parameters.ack_delay_exponent,
            max_ack_delay: parameters.max_ack_delay,
            max_udp_payload_size: u16::try_from(parameters.max_udp_payload_size).unwrap_or(u16::MAX),
        });
        self.negotiation.without_encryption =
            self.config.danger_without_encryption && parameters.disable_1rtt_encryption;
        let offered = AckFrequency::min_delay(self.config.ack_frequency, self.config.max_ack_delay);
        let (min, max) = (parameters.min_ack_delay, parameters.max_ack_delay);
        self.parts.ack_frequency.on_peer_parameters(offered, min, max);
        let idle = [self.config.max_idle_timeout, parameters.max_idle_timeout];
        let idle = idle.into_iter().filter(|timeout| !timeout.is_zero()).min();
        self.timers.set_idle(idle);
        self.parts.ping.set_keep_alive(self.config.keep_alive);
        self.negotiation.apply_limits(&mut self.paths.active_mut().recovery);
        self.parts.local_cids.set_peer_limit(parameters.active_cid_limit);
        if let Some(token) = parameters.stateless_reset_token {
            self.parts.remote_cids.set_first_reset_token(token);
        }
        if let Some(preferred) = parameters.preferred_address {
            // Whether or not it is moved to, its id has been issued like any other (RFC 9000 section 5.1.1).
            self.parts.remote_cids.on_new_connection_id(1, 0, preferred.cid, preferred.reset_token)?;
        }
        self.settle_early(now, &parameters)?;
        let preferred =
            parameters.preferred_address.filter(|_| self.config.migration.follow_preferred_address);
        let handshake = self.paths.active().key().remote;
        self.migration.on_peer_parameters(handshake, parameters.disable_active_migration, preferred);
        self.parts.streams.set_peer_limits(&parameters);
        self.parts.datagrams.set_peer_limit(parameters.max_datagram_frame_size);
        self.header_bits.set_grease(parameters.grease_quic_bit);
        self.parts.clocks.on_peer_parameters(now, self.config.timestamps, parameters.timestamps);
        self.announce_reset_tokens();
        Ok(())
    }

    /// A Retry packet: proves nothing but that the server saw our Initial, so it is believed once, before
    /// anything else is heard (RFC 9000 section 17.2.5). A token that no Initial packet has room for cannot be
    /// repeated, so it is dropped.
    pub(super) fn on_retry(
        &mut self,
        now: Time,
        scid: ConnectionId,
        token: &[u8],
        packet: &[u8],
        tag: [u8; 16],
    ) {
        let expected =
            packet.len().checked_sub(tag.len()).and_then(|len| packet.get(..len)).and_then(|packet| {
                keys::retry_integrity_tag(self.version, &self.negotiation.original_dcid, packet)
            });
        let welcome = self.side == Side::Client
            && !self.negotiation.has_heard_server()
            && self.negotiation.retry_scid.is_none()
            && scid != self.negotiation.original_dcid
            && token.len() <= MAX_TOKEN
            && expected == Some(tag);
        let Some(new_keys) = keys::initial(self.version, &scid, self.side).filter(|_| welcome) else {
            return;
        };
        let Some(initial) = self.spaces.initial.as_deref_mut() else { return };
        initial.keys = new_keys;
        // Loss recovery begins anew, and how long the Retry took is a first idea of the round trip (RFC 9002 section 6.3);
        // from the first Initial packet on, as nobody knows which one it answers.
        let since = initial.space.recovery.oldest_sent_at();
        let recovery = &mut self.paths.active_mut().recovery;
        if let Some(since) = since.filter(|_| recovery.pto_count() == 0) {
            recovery.set_initial_rtt(now.saturating_since(since));
        }
        recovery.reset_pto_count();
        // A server that asks for a Retry has kept nothing, 0-RTT packets included.
        for id in [SpaceId::Initial, SpaceId::Data] {
            let Some(space) = self.spaces.get_mut(id) else { continue };
            let (outcomes, mut paths) = (&mut self.outcomes, self.paths.recovery());
            space
                .recovery
                .declare_all_lost(&mut paths, now, &mut |outcome, lost| outcomes.push((outcome, lost)));
            self.dispatch_outcomes(id);
        }
        self.negotiation.retry_scid = Some(scid);
        self.negotiation.token = Bytes::copy_from_slice(token);
        self.parts.remote_cids.set_first(scid);
    }
}
