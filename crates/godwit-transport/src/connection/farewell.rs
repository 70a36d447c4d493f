//! The datagram that says goodbye: CONNECTION_CLOSE at every level whose keys exist (RFC 9000 section
//! 10.2.3).

use super::Connection;
use super::boundary::Transmitted;
use super::lifecycle::CloseFrame;
use super::packet::OpenPacket;
use super::paths::meta_for;
use super::space::space_of;
use crate::keys::TAG_LEN;
use godwit_base::{Ecn, Rng, SendBatch, Time};
use godwit_recovery::SpaceId;
use godwit_wire::constants::MIN_INITIAL_DATAGRAM;
use godwit_wire::header::{LongHeader, PacketType};
use godwit_wire::packet_number::TruncatedPacketNumber;
use godwit_wire::{Frame, NoRoom, TransportErrorCode, Writer};

/// Bytes of explanation sent at most.
const MAX_REASON: usize = 256;

impl Connection {
    pub(super) fn transmit_close(
        &mut self,
        now: Time,
        batch: &mut SendBatch,
        rng: &mut dyn Rng,
    ) -> Transmitted {
        let Some(frame) = self.lifecycle.pending_close().cloned() else { return Transmitted::Idle };
        let Some(room) = batch.reserve(MIN_INITIAL_DATAGRAM) else { return Transmitted::More };
        self.scratch.ecn = Ecn::NotEct;
        let credit = usize::try_from(self.paths.active().send_credit()).unwrap_or(usize::MAX);
        let len = match room.get_mut(..MIN_INITIAL_DATAGRAM.min(credit)) {
            Some(datagram) => self.build_close(now, &frame, datagram, rng),
            None => 0,
        };
        self.lifecycle.on_close_sent();
        if len > 0 {
            self.paths.active_mut().on_sent(len);
            batch.commit(len, len, meta_for(self.paths.active().key(), Ecn::NotEct));
            self.stats.on_sent(len, len);
        }
        Transmitted::Idle
    }

    fn build_close(
        &mut self,
        now: Time,
        frame: &CloseFrame,
        datagram: &mut [u8],
        rng: &mut dyn Rng,
    ) -> usize {
        self.scratch.tokens.clear();
        self.scratch.spans.clear();
        let mut end = 0;
        let mut packets = [const { None }; 3];
        for (slot, space) in packets.iter_mut().zip([SpaceId::Initial, SpaceId::Handshake, SpaceId::Data]) {
            let Some(packet) = self.write_close_packet(now, space, frame, datagram, end, rng) else {
                continue;
            };
            end = packet.end();
            *slot = Some(packet);
        }
        let initial = self.spaces.initial.is_some();
        if let Some(last) = packets.iter_mut().flatten().last()
            && initial
        {
            last.pad_datagram_to(MIN_INITIAL_DATAGRAM, datagram);
            end = last.end();
        }
        for packet in packets.into_iter().flatten() {
            self.seal_and_record(now, &packet, datagram, 0);
        }
        self.mask_run(now, datagram);
        end
    }

    fn write_close_packet(
        &mut self,
        now: Time,
        id: SpaceId,
        frame: &CloseFrame,
        datagram: &mut [u8],
        start: usize,
        rng: &mut dyn Rng,
    ) -> Option<OpenPacket> {
        let limit = datagram.len().checked_sub(TAG_LEN)?;
        let mut writer = Writer::new(datagram.get_mut(start..limit)?);
        let mut packet = match id {
            SpaceId::Data => {
                self.spaces.data.keys.as_ref()?;
                let dcid = *self.remote_cids.active();
                self.begin_short(now, start, &dcid, &mut writer, rng)?
            }
            SpaceId::Initial | SpaceId::Handshake => {
                self.begin_long(long_type(id), self.version, start, &mut writer, rng)?
            }
        };
        write_frame(frame, id == SpaceId::Data, &mut writer).ok()?;
        packet.payload_end = start.saturating_add(writer.len());
        packet.pad_for_sample(datagram);
        Some(packet)
    }

    /// The header of an Initial, 0-RTT or Handshake packet.
    pub(super) fn begin_long(
        &mut self,
        packet_type: PacketType,
        version: u32,
        start: usize,
        writer: &mut Writer<'_>,
        rng: &mut dyn Rng,
    ) -> Option<OpenPacket> {
        let id = space_of(packet_type)?;
        let recovery = &mut self.spaces.get_mut(id)?.recovery;
        let number = recovery.next_packet_number(rng);
        let truncated = TruncatedPacketNumber::new(number, recovery.largest_acked());
        let initial = packet_type == PacketType::Initial;
        let header = LongHeader {
            packet_type,
            version,
            dcid: self.remote_cids.active(),
            scid: &self.negotiation.local_cid,
            token: if initial { &self.negotiation.token } else { &[] },
        };
        let length = header.encode(writer, truncated).ok()?;
        self.extensions.bits.apply(writer.written_mut().first_mut(), rng);
        Some(OpenPacket {
            space: id,
            number,
            start,
            pn_offset: start.saturating_add(length.packet_number_offset()),
            pn_len: truncated.len(),
            payload_end: 0,
            length: Some(length),
            tokens: 0..0,
            ack_eliciting: false,
            padded: false,
            mtu_probe: false,
            path: None,
        })
    }
}

/// The type of the packets of the Initial and Handshake spaces.
pub(super) const fn long_type(id: SpaceId) -> PacketType {
    match id {
        SpaceId::Initial => PacketType::Initial,
        SpaceId::Handshake | SpaceId::Data => PacketType::Handshake,
    }
}

/// Initial and Handshake packets must not carry what the application says (RFC 9000 section 10.2.3).
fn write_frame(frame: &CloseFrame, one_rtt: bool, writer: &mut Writer<'_>) -> Result<(), NoRoom> {
    let frame = match frame {
        CloseFrame::Transport(error) => Frame::ConnectionClose {
            code: error.code,
            frame_type: error.frame_type,
            reason: cut(error.reason.as_bytes()),
        },
        CloseFrame::Application { code, reason } if one_rtt => {
            Frame::ApplicationClose { code: *code, reason: cut(reason) }
        }
        CloseFrame::Application { .. } => {
            Frame::ConnectionClose { code: TransportErrorCode::APPLICATION_ERROR, frame_type: 0, reason: &[] }
        }
    };
    frame.encode(writer)
}

fn cut(reason: &[u8]) -> &[u8] {
    reason.get(..MAX_REASON).unwrap_or(reason)
}
