//! 0-RTT (RFC 9001 sections 4.6, 5.6 and 5.7), and packets that came before they could be opened.
//!
//! A client that resumes a session whose server permits it seals stream data with keys of that session before it
//! has heard anything, within the limits that the server declared last time (RFC 9000 section 7.4.1). If the
//! server does not accept it, all of it is sent again in 1-RTT packets under the limits that the server declares
//! now, and streams keep their ids.
//!
//! A server gives such streams to its application before the handshake is complete. What stops replays is that
//! TLS lets each session be used once.
//!
//! Packets that the network brought too early (1-RTT before the handshake is complete, Handshake before its keys are
//! known, 0-RTT before the ClientHello is) would cost a probe timeout if they were dropped; a few are kept.

use super::Machine;
use super::input::Datagram;
use crate::WireError;
use crate::path::PathId;
use crate::resumption::EarlyDataStatus;
use godwit_base::Time;
use godwit_recovery::SpaceId;
use godwit_tls::keys::EarlyKeys;
use godwit_wire::transport_parameters::TransportParameters;
use godwit_wire::{Side, TransportErrorCode};
use std::mem;
use std::time::Duration;

/// What happens before the handshake is complete.
#[derive(Debug, Default)]
pub(super) struct Early {
    packets: Vec<(Datagram, Vec<u8>)>,
    status: EarlyDataStatus,
    zero_rtt: Option<Box<ZeroRtt>>,
}

/// The keys of 0-RTT packets, while they exist.
#[derive(Debug)]
struct ZeroRtt {
    keys: EarlyKeys,
    /// The version in which they are sent, whatever becomes of the connection's.
    version: u32,
    /// At a client: what the server declared on the connection that gave the session.
    remembered: TransportParameters,
    /// At a server, once a 1-RTT packet has come: when the keys are dropped.
    expires: Option<Time>,
}

impl Early {
    /// Packets kept at most: what anyone on the path can make us hold is 12 datagrams.
    const MAX: usize = 12;
    /// And so many bytes: 12 datagrams as large as an Ethernet frame.
    const MAX_BYTES: usize = 18_000;

    /// Keeps a packet until it can be opened.
    pub(super) fn keep(&mut self, origin: &Datagram, packet: &[u8]) {
        let kept: usize = self.packets.iter().map(|(_, packet)| packet.len()).sum();
        if self.packets.len() < Self::MAX && kept.saturating_add(packet.len()) <= Self::MAX_BYTES {
            self.packets.push((*origin, packet.to_vec()));
        }
    }

    /// Everything kept, once.
    pub(super) fn take(&mut self) -> Vec<(Datagram, Vec<u8>)> {
        mem::take(&mut self.packets)
    }

    /// What became of 0-RTT.
    pub(super) const fn status(&self) -> EarlyDataStatus {
        self.status
    }

    /// True if streams may be used before the handshake is complete.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.status, EarlyDataStatus::Offered | EarlyDataStatus::Accepted)
    }

    /// At a client: the keys with which 0-RTT packets are sealed now, and their version.
    pub(super) fn sealing(&self) -> Option<(&EarlyKeys, u32)> {
        let zero_rtt = self.zero_rtt.as_deref()?;
        matches!(zero_rtt.keys, EarlyKeys::Seal { .. }).then_some((&zero_rtt.keys, zero_rtt.version))
    }

    /// At a server: the keys with which 0-RTT packets are opened now.
    pub(super) fn opening(&self, now: Time) -> Option<&EarlyKeys> {
        let zero_rtt = self.zero_rtt.as_deref()?;
        let expired = zero_rtt.expires.is_some_and(|expires| expires <= now);
        (!expired && matches!(zero_rtt.keys, EarlyKeys::Open { .. })).then_some(&zero_rtt.keys)
    }

    fn offer(&mut self, keys: EarlyKeys, version: u32, remembered: TransportParameters) {
        self.status = EarlyDataStatus::Offered;
        self.zero_rtt = Some(Box::new(ZeroRtt { keys, version, remembered, expires: None }));
    }

    /// No 0-RTT packet is sent any more; what was sent will turn out to be rejected.
    pub(super) fn stop(&mut self) {
        self.zero_rtt = None;
    }

    fn accept(&mut self, keys: EarlyKeys, version: u32) {
        self.status = EarlyDataStatus::Accepted;
        let remembered = TransportParameters::default();
        self.zero_rtt = Some(Box::new(ZeroRtt { keys, version, remembered, expires: None }));
    }

    /// A 0-RTT packet could not be opened: at a server that has read the ClientHello, because the session it names
    /// is not known or has been used.
    pub(super) fn on_unopened(&mut self, side: Side) {
        if side == Side::Server && self.status == EarlyDataStatus::NotTried {
            self.status = EarlyDataStatus::Rejected;
        }
    }

    /// A 1-RTT packet has been opened: 0-RTT packets may still come for a while, because the network reorders
    /// (RFC 9001 section 4.9.3).
    #[inline]
    pub(super) fn on_one_rtt(&mut self, now: Time, pto: Duration) {
        if let Some(zero_rtt) = &mut self.zero_rtt
            && zero_rtt.expires.is_none()
        {
            zero_rtt.expires = Some(now + pto.saturating_mul(3));
        }
    }

    /// Time has passed.
    pub(super) fn on_timeout(&mut self, now: Time) {
        if self.zero_rtt.as_ref().and_then(|zero_rtt| zero_rtt.expires).is_some_and(|at| at <= now) {
            self.zero_rtt = None;
        }
    }
}

impl Machine {
    /// TLS has given the keys of 0-RTT packets.
    pub(super) fn on_early_keys(&mut self, keys: EarlyKeys) {
        match keys {
            EarlyKeys::Open { .. } => {
                self.early.accept(keys, self.version);
            }
            EarlyKeys::Seal { .. } if self.config.approval.is_some() => {}
            EarlyKeys::Seal { .. } => {
                let remembered = self.parts.handshake.remembered_parameters();
                let remembered =
                    remembered.and_then(|encoded| TransportParameters::decode(encoded, Side::Server).ok());
                // Without limits nothing could be sent; TLS copes with an offer that is not used.
                let Some(remembered) = remembered else { return };
                self.parts.streams.set_peer_limits(&remembered);
                self.early.offer(keys, self.version, remembered);
            }
        }
    }

    /// At a client: whether it has offered 0-RTT that nothing has ended yet.
    pub(super) fn is_early_open(&self) -> bool {
        self.early.status() == EarlyDataStatus::Offered
    }

    /// The server wants another ClientHello: no 0-RTT packet is sent any more.
    pub(super) fn watch_hello_retry(&mut self) {
        if self.is_early_open() && self.early.zero_rtt.is_some() && self.parts.handshake.is_hello_retried() {
            self.early.zero_rtt = None;
        }
    }

    /// At a client whose handshake is complete: whether 0-RTT was accepted, and what follows. `parameters` are
    /// those that the server declares now.
    pub(super) fn settle_early(
        &mut self,
        now: Time,
        parameters: &TransportParameters,
    ) -> Result<(), WireError> {
        if !self.is_early_open() {
            return Ok(());
        }
        let zero_rtt = self.early.zero_rtt.take();
        if self.parts.handshake.is_early_data_accepted() {
            self.early.status = EarlyDataStatus::Accepted;
            if zero_rtt.is_some_and(|zero_rtt| shrinks(&zero_rtt.remembered, parameters)) {
                let reason = "accepted 0-RTT with lower limits than remembered";
                return Err(WireError::new(TransportErrorCode::PROTOCOL_VIOLATION, reason));
            }
            return Ok(());
        }
        self.early.status = EarlyDataStatus::Rejected;
        self.abandon_early(now);
        self.parts.streams.on_early_rejected(parameters);
        Ok(())
    }

    /// What was sent in 0-RTT packets has not been received and never will be: it is forgotten, except for the
    /// frames that are not the streams' data, which begins anew.
    pub(super) fn abandon_early(&mut self, now: Time) {
        let outcomes = &mut self.outcomes;
        let paths = &mut self.paths.recovery();
        self.spaces.data.space.recovery.abandon_all(paths, now, &mut |outcome, token| {
            outcomes.push((outcome, token));
        });
        self.dispatch_outcomes(SpaceId::Data);
    }

    /// 0-RTT packets that were sent may have been lost with the Initial packet that is repeated now: what they
    /// carried goes with it.
    pub(super) fn repeat_early(&mut self, path: PathId) {
        let recovery = &self.paths.path(path).recovery;
        if self.early.sealing().is_some() && recovery.has_ack_eliciting_in_flight(SpaceId::Data) {
            self.spaces.data.space.probes = 1;
            self.repeat_oldest(path, SpaceId::Data, 1);
        }
    }
}

/// Whether limits that 0-RTT data may have made use of are lower than before (RFC 9000 section 7.4.1, RFC 9221
/// section 3).
fn shrinks(remembered: &TransportParameters, now: &TransportParameters) -> bool {
    let limits = |parameters: &TransportParameters| {
        [
            parameters.active_cid_limit,
            parameters.initial_max_data,
            parameters.initial_max_stream_data_bidi_local,
            parameters.initial_max_stream_data_bidi_remote,
            parameters.initial_max_stream_data_uni,
            parameters.initial_max_streams_bidi,
            parameters.initial_max_streams_uni,
            parameters.max_datagram_frame_size,
        ]
    };
    limits(remembered).into_iter().zip(limits(now)).any(|(before, after)| after < before)
}
