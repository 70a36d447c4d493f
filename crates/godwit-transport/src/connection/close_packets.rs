//! The last datagram: CONNECTION_CLOSE at every level whose keys exist (RFC 9000 section 10.2.3).

use super::Machine;
use super::acks;
use super::boundary::Transmitted;
use super::lifecycle::CloseFrame;
use super::parts::Sending;
use super::space::{level_of, long_type};
use crate::Side;
use crate::packet::DatagramBuilder;
use godwit_base::{Ecn, SendBatch};
use godwit_recovery::SpaceId;
use godwit_wire::constants::MIN_INITIAL_DATAGRAM;
use godwit_wire::{Frame, TransportErrorCode};

/// Bytes of explanation sent at most.
const MAX_REASON: usize = 256;
/// A Finished message with what little may precede it, which leaves room for a close in the same datagram.
const SHORT_HANDSHAKE: u64 = 256;
/// Ranges of packets that are acknowledged with it at most, for the same reason.
const FEW_RANGES: usize = 8;

impl Machine {
    pub(super) fn transmit_close(&mut self, turn: &mut Sending<'_>, batch: &mut SendBatch) -> Transmitted {
        let Some(frame) = self.lifecycle.pending_close().cloned() else { return Transmitted::Idle };
        let Some(room) = batch.reserve(MIN_INITIAL_DATAGRAM) else { return Transmitted::More };
        turn.ecn = Ecn::NotEct;
        let credit = usize::try_from(self.paths.path(turn.path).send_credit()).unwrap_or(usize::MAX);
        let len = match room.get_mut(..MIN_INITIAL_DATAGRAM.min(credit)) {
            Some(datagram) => self.build_close(turn, &frame, datagram),
            None => 0,
        };
        self.lifecycle.on_close_sent();
        self.commit_alone(turn, batch, len);
        Transmitted::Idle
    }

    fn build_close(&mut self, turn: &mut Sending<'_>, frame: &CloseFrame, room: &mut [u8]) -> usize {
        turn.begin_run();
        let mut datagram = DatagramBuilder::new(room, 0);
        if self.ends_handshake(frame) {
            self.write_last_handshake(turn, &mut datagram);
            self.write_close_packet(turn, SpaceId::Data, frame, &mut datagram);
            return self.send_alone(turn, &mut datagram);
        }
        for space in [SpaceId::Initial, SpaceId::Handshake, SpaceId::Data] {
            self.write_close_packet(turn, space, frame, &mut datagram);
        }
        if self.spaces.initial.is_some() {
            datagram.pad_to(MIN_INITIAL_DATAGRAM);
        }
        self.send_alone(turn, &mut datagram)
    }

    /// Whether a client closes that is connected and has not said so: with the end of its handshake before it, the
    /// server learns that it was, and what the application says. Not if that would not fit, or has been sent in part, or
    /// waits for the application's approval: then the server may be unable to read more than a close at the level of the handshake.
    fn ends_handshake(&self, frame: &CloseFrame) -> bool {
        let by_choice = matches!(frame, CloseFrame::Application { .. });
        by_choice
            && self.side == Side::Client
            && !self.withholds_crypto(SpaceId::Handshake)
            && self.spaces.data.is_ready()
            && self.parts.handshake.is_unsent_within(SHORT_HANDSHAKE)
    }

    /// The end of the handshake, and which packets of the server's have come: from that it learns how long a round trip takes.
    fn write_last_handshake(
        &mut self,
        turn: &mut Sending<'_>,
        datagram: &mut DatagramBuilder<'_>,
    ) -> Option<()> {
        let mut packet = self.begin_long(turn, datagram, long_type(SpaceId::Handshake), self.version)?;
        self.parts.handshake.write_crypto(level_of(SpaceId::Handshake), &mut packet);
        if let Some(space) = self.spaces.get_mut(SpaceId::Handshake)
            && space.acks.ranges().nth(FEW_RANGES).is_none()
        {
            acks::write(&mut space.acks, &mut packet, &mut self.stats.acks_sent, None);
        }
        let packet = packet.finish()?;
        datagram.add(packet);
        Some(())
    }

    fn write_close_packet(
        &mut self,
        turn: &mut Sending<'_>,
        id: SpaceId,
        frame: &CloseFrame,
        datagram: &mut DatagramBuilder<'_>,
    ) -> Option<()> {
        let mut packet = match id {
            SpaceId::Data => self.begin_short(turn, datagram)?,
            SpaceId::Initial | SpaceId::Handshake => {
                self.begin_long(turn, datagram, long_type(id), self.version)?
            }
        };
        packet.put_quietly(&frame_for(frame, id == SpaceId::Data)).ok()?;
        let packet = packet.finish()?;
        datagram.add(packet);
        Some(())
    }
}

/// Initial and Handshake packets must not carry what the application says (RFC 9000 section 10.2.3).
fn frame_for(frame: &CloseFrame, one_rtt: bool) -> Frame<'_> {
    match frame {
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
    }
}

fn cut(reason: &[u8]) -> &[u8] {
    reason.get(..MAX_REASON).unwrap_or(reason)
}
