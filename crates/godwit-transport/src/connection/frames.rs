//! Each frame to the component that owns it (RFC 9000 section 19).

use super::Machine;
use super::input::PacketInfo;
use super::outcome::collect;
use crate::{ConnectionError, WireError};
use bytes::Bytes;
use godwit_base::Time;
use godwit_recovery::{EcnCounts, Paths, SpaceId};
use godwit_wire::frame::Ack;
use godwit_wire::{Frame, Side, TransportErrorCode};

impl Machine {
    /// Acts on one frame. Whether the packet type permits the frame has been checked.
    pub(super) fn on_frame(
        &mut self,
        now: Time,
        info: &PacketInfo,
        frame: Frame<'_>,
    ) -> Result<(), WireError> {
        match frame {
            Frame::Padding(_) => Ok(()),
            Frame::Ack(ack) => self.on_ack(now, info, &ack),
            // By the shortest way: most frames are of this type.
            Frame::Stream { id, offset, data, fin } => {
                self.parts.streams.on_stream(now, id, offset, data, fin)
            }
            frame => self.on_rarer_frame(now, info, frame),
        }
    }

    /// Acts on a frame of which a peer that does something else needs few.
    #[inline(never)]
    fn on_rarer_frame(&mut self, now: Time, info: &PacketInfo, frame: Frame<'_>) -> Result<(), WireError> {
        if info.space == SpaceId::Data {
            self.parts.anomalies.on_frame(&frame);
        }
        match frame {
            Frame::Ping => Ok(()),
            Frame::Crypto { offset, data } => self.on_crypto(now, info, offset, data),
            Frame::NewConnectionId { sequence, retire_prior_to, cid, reset_token } => {
                self.parts.remote_cids.on_new_connection_id(sequence, retire_prior_to, cid, reset_token)?;
                self.on_new_ids();
                self.announce_reset_tokens();
                self.pursue_move(now);
                Ok(())
            }
            Frame::RetireConnectionId { sequence } => self.on_retire_connection_id(info, sequence),
            Frame::PathChallenge { data } => {
                let pto = self.pto();
                self.paths.on_path_challenge(now, info.path, data, pto);
                Ok(())
            }
            Frame::PathResponse { data } => {
                let pto = self.pto();
                self.paths.on_path_response(now, data, pto);
                Ok(())
            }
            Frame::NewToken { token } => self.on_new_token(token),
            Frame::HandshakeDone => self.on_handshake_done(now),
            Frame::ConnectionClose { code, frame_type, reason } => {
                let reason = Bytes::copy_from_slice(reason);
                self.on_peer_close(now, ConnectionError::PeerTransport { code, frame_type, reason });
                Ok(())
            }
            Frame::ApplicationClose { code, reason } => {
                let reason = Bytes::copy_from_slice(reason);
                self.on_peer_close(now, ConnectionError::PeerApplication { code, reason });
                Ok(())
            }
            Frame::ImmediateAck => {
                self.parts.ack_frequency.on_immediate_ack()?;
                self.spaces.data.space.acks.on_immediate_ack();
                Ok(())
            }
            Frame::AckFrequency { sequence, threshold, max_ack_delay, reordering } => {
                if let Some(policy) = self.parts.ack_frequency.on_ack_frequency(
                    sequence,
                    threshold,
                    max_ack_delay,
                    reordering,
                )? {
                    self.spaces.data.space.acks.set_policy(policy);
                }
                Ok(())
            }
            Frame::Timestamp { micros } => self.parts.clocks.on_timestamp(info.number, micros),
            // The others concern one part alone.
            frame => self.parts.on_frame(now, &frame),
        }
    }

    /// An acknowledgement. Every path hears of the packets that were sent on it; ECN counts and what the window permits
    /// concern the one in use.
    fn on_ack(&mut self, now: Time, info: &PacketInfo, ack: &Ack<'_>) -> Result<(), WireError> {
        super::stats::increment(&mut self.stats.acks_received);
        let delay = self.negotiation.ack_delay(info.space, ack.delay, self.lifecycle.is_confirmed());
        let Some(space) = self.spaces.get_mut(info.space) else { return Ok(()) };
        let outcomes = &mut self.outcomes;
        let mut paths = self.paths.recovery();
        let summary = space
            .recovery
            .on_ack_received(&mut paths, now, ack.largest, delay, ack.ranges.iter(), &mut |outcome, token| {
                collect(outcomes, outcome, token);
            })
            .map_err(|_| {
                WireError::new(
                    TransportErrorCode::PROTOCOL_VIOLATION,
                    "acknowledged a packet that was not sent",
                )
            })?;
        if info.space == SpaceId::Data {
            self.parts.anomalies.on_ack(ack, summary.newly_acked, summary.newly_acked_ack_eliciting);
        }
        let counts = ack.ecn.map(|counts| EcnCounts { ect0: counts.ect0, ect1: counts.ect1, ce: counts.ce });
        let recovery = paths.in_use();
        space.recovery.on_ecn_counts(recovery, now, summary.ecn, counts);
        if summary.newly_acked_ack_eliciting > 0 {
            space.probes = 0;
            self.events.on_acknowledged();
        }
        if info.space != SpaceId::Initial && self.side == Side::Client {
            // The server has our Handshake packets and so our address is validated (RFC 9002 section 6.2.2.1).
            recovery.set_peer_validated(true);
        }
        if info.space == SpaceId::Data {
            match self.spaces.data.keys.as_mut() {
                Some(keys) => keys.on_ack_received(ack.largest, info.keys)?,
                None => self.on_unencrypted_ack(),
            }
        }
        if info.space == SpaceId::Data && summary.newly_acked_ack_eliciting > 0 {
            self.parts.ack_frequency.on_acked_packets(now, &self.paths.active().recovery);
        }
        // Before room comes free: whoever waits for it is told by what may be held from now on.
        self.parts.streams.on_congestion_window(self.paths.active().recovery.window());
        if info.space == SpaceId::Data {
            self.tell_path();
        }
        if let Some(rtt) = summary.rtt_sample.filter(|_| info.space == SpaceId::Data) {
            self.parts.clocks.on_rtt_sample(now, info.number, self.paths.active_id(), rtt, delay);
        }
        if summary.before_departure {
            self.on_early_departure();
        }
        self.observe_lost(info.space, None);
        self.observe_recovery(self.paths.active_id());
        self.dispatch_outcomes(info.space);
        Ok(())
    }

    fn on_retire_connection_id(&mut self, info: &PacketInfo, sequence: u64) -> Result<(), WireError> {
        if let Some(cid) = self.parts.local_cids.on_retire(sequence, info.dcid.as_bytes())? {
            self.events.push_endpoint(super::boundary::EndpointEvent::RetiredCid(cid));
        }
        self.request_cids();
        Ok(())
    }

    fn on_new_token(&mut self, token: &[u8]) -> Result<(), WireError> {
        if self.side == Side::Server {
            return Err(WireError::new(TransportErrorCode::PROTOCOL_VIOLATION, "NEW_TOKEN from a client"));
        }
        self.negotiation.on_new_token(token);
        Ok(())
    }

    fn on_handshake_done(&mut self, now: Time) -> Result<(), WireError> {
        if self.side == Side::Server {
            return Err(WireError::new(
                TransportErrorCode::PROTOCOL_VIOLATION,
                "HANDSHAKE_DONE from a client",
            ));
        }
        // 1-RTT packets are opened only once TLS is complete, so this cannot come early.
        self.on_confirmed(now);
        Ok(())
    }
}
