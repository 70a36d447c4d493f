//! Datagrams that try something out, each for itself: whether the peer answers on a path other than the active one (RFC
//! 9000 section 8.2), whether a path carries ECN marks (section 13.4), and which size of datagrams passes it (RFC 8899).
//!
//! What they show is judged elsewhere, by [`crate::path`] and by loss recovery.

use super::Machine;
use super::boundary::Transmitted;
use super::parts::Sending;
use crate::packet::{Counts, DatagramBuilder};
use crate::path::PathId;
use godwit_base::{Ecn, SendBatch};
use godwit_wire::Frame;
use godwit_wire::constants::MIN_DATAGRAM;

/// Room for an ECN probe with the longest header, in bytes.
const ECN_PROBE_ROOM: usize = 64;

impl Machine {
    /// PATH_CHALLENGE and PATH_RESPONSE frames for paths other than the active one, each in a datagram of
    /// its own.
    pub(super) fn transmit_path_probes(
        &mut self,
        turn: &mut Sending<'_>,
        batch: &mut SendBatch,
    ) -> Transmitted {
        if self.paths.next_probe(0).is_none() {
            return Transmitted::Idle;
        }
        let (path, dcid) = (turn.path, turn.dcid);
        let transmitted = self.transmit_other_paths(turn, batch);
        (turn.path, turn.dcid) = (path, dcid);
        transmitted
    }

    #[cold]
    fn transmit_other_paths(&mut self, turn: &mut Sending<'_>, batch: &mut SendBatch) -> Transmitted {
        let mut skipped = 0;
        while let Some(id) = self.paths.next_probe(skipped) {
            if !self.spaces.data.is_ready() {
                break;
            }
            let credit = usize::try_from(self.paths.path(id).send_credit()).unwrap_or(usize::MAX);
            let Some(room) = batch.reserve(MIN_DATAGRAM) else { return Transmitted::More };
            let Some(room) = room.get_mut(..MIN_DATAGRAM.min(credit)) else { break };
            let len = self.build_path_probe(turn, id, room);
            if len == 0 {
                skipped = skipped.saturating_add(1);
            }
            self.commit_alone(turn, batch, len);
        }
        Transmitted::Idle
    }

    fn build_path_probe(&mut self, turn: &mut Sending<'_>, id: PathId, room: &mut [u8]) -> usize {
        turn.begin_run();
        if !self.parts.remote_cids.assign(id) {
            // The same id on two paths would tell every observer that they belong together (section 9.5).
            return 0;
        }
        // What is known of marks concerns the active path.
        (turn.path, turn.dcid, turn.ecn) = (id, *self.parts.remote_cids.for_path(id), Ecn::NotEct);
        let mut datagram = DatagramBuilder::new(room, 0);
        let Some(mut packet) = self.begin_short(turn, &mut datagram) else { return 0 };
        self.paths.write_probe(&mut packet);
        // What happens on another path says nothing about the active one: the packet counts neither for its
        // window nor for its probe timeout, and its frames are never resent as they are.
        packet.set_counts(Counts::Not);
        let Some(packet) = packet.finish() else { return 0 };
        datagram.add(packet);
        datagram.complete();
        self.send_alone(turn, &mut datagram)
    }

    /// A packet with ECT(0) of which nobody waits for the contents: it says nothing but PING. It is sent only when the
    /// handshake is confirmed: before, there is little to mark and much to lose.
    #[cold]
    pub(super) fn transmit_ecn_probe(
        &mut self,
        turn: &mut Sending<'_>,
        batch: &mut SendBatch,
    ) -> Transmitted {
        if !self.lifecycle.is_confirmed() || !self.paths.path(turn.path).is_validated() {
            return Transmitted::Idle;
        }
        let Some(room) = batch.reserve(ECN_PROBE_ROOM) else { return Transmitted::More };
        let Some(room) = room.get_mut(..ECN_PROBE_ROOM) else { return Transmitted::Idle };
        turn.ecn = self.paths.path(turn.path).recovery.ecn().ect();
        // Its loss is no congestion, and nothing has to be sent again in its place.
        let len = self.build_probe(turn, &Frame::Ping, Counts::Not, room);
        self.commit_alone(turn, batch, len);
        if len > 0 {
            self.observe_recovery(turn.path);
        }
        Transmitted::Idle
    }

    /// A packet of the size that the path-MTU search wants to try, alone in its datagram. The search may begin when the
    /// handshake is complete (RFC 9000 section 14.3). `busy` says that data may be waiting.
    pub(super) fn transmit_mtu_probe(
        &mut self,
        turn: &mut Sending<'_>,
        batch: &mut SendBatch,
        busy: bool,
    ) -> Transmitted {
        if self.lifecycle.is_handshaking() || !self.paths.path(turn.path).is_validated() {
            return Transmitted::Idle;
        }
        let recovery = &mut self.paths.path_mut(turn.path).recovery;
        let Some(size) = recovery.next_mtu_probe(turn.now, busy) else {
            return Transmitted::Idle;
        };
        let Some(room) = batch.reserve(usize::from(size)) else { return Transmitted::More };
        let Some(room) = room.get_mut(..usize::from(size)) else { return Transmitted::Idle };
        // Whether a probe arrived should be known before others are delayed for it.
        let available = self.parts.ack_frequency.is_available();
        let frame = if available { Frame::ImmediateAck } else { Frame::Ping };
        let len = self.build_probe(turn, &frame, Counts::MtuProbe, room);
        self.commit_alone(turn, batch, len);
        Transmitted::Idle
    }

    /// A datagram with one frame; an MTU probe fills all of `room`.
    fn build_probe(
        &mut self,
        turn: &mut Sending<'_>,
        frame: &Frame<'_>,
        counts: Counts,
        room: &mut [u8],
    ) -> usize {
        turn.begin_run();
        let size = room.len();
        let mut datagram = DatagramBuilder::new(room, 0);
        let Some(mut packet) = self.begin_short(turn, &mut datagram) else { return 0 };
        packet.set_counts(counts);
        if packet.put_once(frame).is_err() {
            return 0;
        }
        let Some(packet) = packet.finish() else { return 0 };
        datagram.add(packet);
        if counts == Counts::MtuProbe {
            datagram.pad_to(size);
        }
        self.send_alone(turn, &mut datagram)
    }
}
