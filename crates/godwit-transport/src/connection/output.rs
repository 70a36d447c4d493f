//! The way out: frames to packets, packets to datagrams, datagrams to runs of equal size.
//!
//! The order inside a packet is: acknowledgements, path probes, what the [parts](super::parts) have to say in the order
//! of their table, datagrams and stream data. A run ends with the first datagram that is not full, so that a run is
//! what one segmentation-offload send takes. Header protection is applied to all 1-RTT packets of a run at once.

use super::Machine;
use super::acks;
use super::boundary::Transmitted;
use super::lifecycle::State;
use super::parts::{Packet, RecoveryToken, Sending, SendingMemory};
use super::sealing::meta_for;
use super::space::{Space, level_of, long_type};
use crate::packet::{DatagramBuilder, Turn};
use crate::unprotected::UnprotectedRuns;
use godwit_base::{Ecn, Rng, SendBatch, Time};
use godwit_recovery::{BASE_MTU, Outcome, SpaceId};
use godwit_wire::Side;
use godwit_wire::constants::MIN_INITIAL_DATAGRAM;
use godwit_wire::header::PacketType;

/// Runs built for one connection before others get their turn.
const RUNS_PER_TURN: usize = 4;

/// What a 1-RTT packet is sent for; an acknowledgement, if nothing else.
#[derive(Debug, Clone, Copy)]
struct Reason {
    /// There is more to say than acknowledgements, and window and pacer permit it.
    permitted: bool,
    /// The path is to be validated.
    probing: bool,
}

impl Machine {
    /// As [`Machine::transmit_apart`], with memory of its own and nothing left unprotected.
    #[cfg(test)]
    pub(crate) fn transmit(&mut self, now: Time, batch: &mut SendBatch, rng: &mut dyn Rng) -> Transmitted {
        self.transmit_apart(now, batch, rng, None, &mut SendingMemory::default())
    }

    /// Writes what is to be sent now into `batch`. Large runs are left unprotected where they can go into `apart`. `memory`
    /// serves while that takes.
    pub(crate) fn transmit_apart(
        &mut self,
        now: Time,
        batch: &mut SendBatch,
        rng: &mut dyn Rng,
        apart: Option<&mut UnprotectedRuns>,
        memory: &mut SendingMemory,
    ) -> Transmitted {
        self.observe_time(now);
        self.freshen_cid(now);
        let sent_before = self.stats.datagrams_sent;
        let path = self.paths.active_id();
        let mut buffers = std::mem::take(memory);
        buffers.clear();
        let dcid = *self.parts.remote_cids.active();
        let departs = self.departures.after(now);
        let at = departs.unwrap_or(now);
        let ecn = Ecn::NotEct;
        let mut turn = Turn { now: at, departs, path, dcid, ecn, rng, buffers, apart, together: false };
        let transmitted = match self.lifecycle.state() {
            State::Handshaking | State::Unapproved | State::Established | State::Confirmed => {
                self.before_sending(now);
                let transmitted = self.transmit_all(&mut turn, batch);
                if transmitted != Transmitted::More {
                    self.parts.datagrams.on_blocked();
                }
                self.after_sending(now, transmitted);
                if self.stats.datagrams_sent != sent_before {
                    self.timers.on_sent(now);
                }
                transmitted
            }
            State::Closing { .. } | State::Draining { .. } => self.transmit_close(&mut turn, batch),
            State::Drained => Transmitted::Idle,
        };
        *memory = turn.buffers;
        transmitted
    }

    fn transmit_all(&mut self, turn: &mut Sending<'_>, batch: &mut SendBatch) -> Transmitted {
        if self.transmit_path_probes(turn, batch) == Transmitted::More {
            return Transmitted::More;
        }
        if self.paths.path(turn.path).recovery.ecn().wants_probe()
            && self.transmit_ecn_probe(turn, batch) == Transmitted::More
        {
            return Transmitted::More;
        }
        turn.ecn = self.paths.path(turn.path).recovery.ecn().mark();
        if self.lifecycle.is_confirmed() && self.transmit_mtu_probe(turn, batch, true) == Transmitted::More {
            return Transmitted::More;
        }
        for _ in 0..RUNS_PER_TURN {
            let segment = usize::from(self.paths.path(turn.path).recovery.mtu());
            let number = batch.run_count();
            let Some(room) = batch.reserve(segment) else { return Transmitted::More };
            let len = self.build_run(turn, segment, room);
            if len > 0 && self.leave_to_protect(turn, number) {
                let meta = meta_for(self.paths.path(turn.path).key(), self.paths.dscp(), turn);
                batch.commit(len, segment.min(len), meta);
                self.stats.on_sent(len, segment);
            }
            if !self.lifecycle.is_open() {
                // It closed while it was writing: that is to be said.
                return self.transmit_close(turn, batch);
            }
            if len == 0 && !self.leave_later(turn) {
                return self.transmit_mtu_probe(turn, batch, false);
            }
        }
        Transmitted::More
    }

    /// Fills `room` with datagrams of `segment` bytes, the last one possibly shorter. Returns how many
    /// bytes were written.
    fn build_run(&mut self, turn: &mut Sending<'_>, segment: usize, room: &mut [u8]) -> usize {
        if self.spaces.data.space.recovery.is_full() {
            // Only a peer that provokes packets and never acknowledges any gets a connection here.
            self.close_with(turn.now, super::internal("too many unacknowledged packets"));
            return 0;
        }
        let path = self.paths.path(turn.path);
        let most = if path.is_validated() { SendBatch::MAX_SEGMENTS } else { 1 };
        let mut len: usize = 0;
        turn.begin_run();
        turn.together = turn.apart.is_some() && self.can_protect_together();
        for _ in 0..most {
            let Some(datagram) = room.get_mut(len..).and_then(|rest| rest.get_mut(..segment)) else { break };
            let written = self.build_datagram(turn, datagram, len);
            len = len.saturating_add(written);
            if written < segment {
                break;
            }
        }
        if len > 0 {
            self.paths.path_mut(turn.path).on_sent(len);
            if !turn.together {
                self.mask_run(turn, room);
            } else if !self.protect_small_run(turn, room) {
                len = 0;
            }
            self.observe_recovery(turn.path);
        }
        turn.together = false;
        len
    }

    /// Writes one datagram and seals its packets. `base` is its offset in the run.
    fn build_datagram(&mut self, turn: &mut Sending<'_>, datagram: &mut [u8], base: usize) -> usize {
        let path = self.paths.path(turn.path);
        if !path.can_send_anything() {
            return 0;
        }
        let credit = usize::try_from(path.send_credit()).unwrap_or(usize::MAX);
        let mut room = datagram.len().min(credit);
        if self.spaces.data.space.probes == 1 {
            // The last of the probes fits any path: if it arrives and larger packets do not, the path has become
            // narrower (RFC 8899 section 4.3).
            room = room.min(usize::from(BASE_MTU));
        }
        let Some(bytes) = datagram.get_mut(..room) else { return 0 };
        turn.buffers.tokens.clear();
        let confirmed = self.lifecycle.is_confirmed();
        // There is nothing but 1-RTT packets once the handshake is confirmed. Every turn ends with the finding that
        // nothing is left to say: that is found out before a datagram is begun.
        let mut reason = if confirmed { self.reason_for_short(turn, room) } else { None };
        if confirmed && reason.is_none() {
            return 0;
        }
        let mut datagram = DatagramBuilder::new(bytes, base);
        if !confirmed {
            self.write_long(turn, SpaceId::Initial, &mut datagram);
            self.write_long(turn, SpaceId::Handshake, &mut datagram);
            if !self.spaces.data.is_ready() {
                self.write_early(turn, &mut datagram);
            }
            reason = self.reason_for_short(turn, datagram.room());
        }
        if let Some(reason) = reason {
            self.write_short(turn, reason, &mut datagram);
        }
        if !datagram.complete() {
            self.take_back(turn, &mut datagram);
            return 0;
        }
        self.seal_datagram(turn, &mut datagram)
    }

    /// The datagram cannot be sent after all: what its packets carried is to be sent later.
    fn take_back(&mut self, turn: &Sending<'_>, datagram: &mut DatagramBuilder<'_>) {
        for packet in datagram.parts().0 {
            for token in turn.buffers.tokens.get(packet.tokens.clone()).unwrap_or_default() {
                match *token {
                    // It was not lost: it has never left.
                    RecoveryToken::Stream(token) => self.parts.streams.repeat_quietly(token),
                    token => self.parts.on_outcome(Outcome::Lost, token),
                }
            }
        }
    }

    /// An Initial or Handshake packet, if there is a reason for one.
    fn write_long(
        &mut self,
        turn: &mut Sending<'_>,
        id: SpaceId,
        datagram: &mut DatagramBuilder<'_>,
    ) -> Option<()> {
        let level = level_of(id);
        self.spaces.get_mut(id)?;
        let permitted = self.paths.path(turn.path).recovery.can_send(datagram.frame_room());
        let (roomy, withheld) = (self.has_room_to_elicit(id, datagram.capacity()), self.withholds_crypto(id));
        if roomy && self.spaces.get_mut(id)?.probes > 0 && !self.parts.handshake.has_crypto(level) {
            // Each probe says the oldest again, not only the first: a PING alone does not help a peer that
            // still misses the handshake message.
            self.repeat_oldest(turn.path, id, 1);
        }
        let space = self.spaces.get_mut(id)?;
        let probing = roomy && space.probes > 0;
        let crypto = roomy && self.parts.handshake.has_crypto(level) && (permitted || probing) && !withheld;
        if !space.acks.ack_due(turn.now) && !crypto && !probing {
            return None;
        }
        let mut packet = self.begin_long(turn, datagram, long_type(id), self.version)?;
        let space = self.spaces.get_mut(id)?;
        acks::write(&mut space.acks, &mut packet, &mut self.stats.acks_sent, None);
        if crypto {
            self.parts.handshake.write_crypto(level, &mut packet);
        }
        if probing {
            packet.pay_probe(&mut space.probes);
        }
        // Clients expand every datagram with an Initial packet, servers those that elicit an
        // acknowledgement (RFC 9000 section 14.1).
        if id == SpaceId::Initial && (self.side == Side::Client || packet.is_ack_eliciting()) {
            packet.expand();
        }
        let packet = packet.finish()?;
        datagram.add(packet);
        Some(())
    }

    /// Whether a datagram of at most `len` bytes may carry a packet of `id` that elicits an acknowledgement:
    /// Initial packets that do need one of full size (RFC 9000 section 14.1), and before theirs the client can
    /// read no Handshake messages.
    fn has_room_to_elicit(&self, id: SpaceId, len: usize) -> bool {
        len >= MIN_INITIAL_DATAGRAM
            || (id != SpaceId::Initial && !self.parts.handshake.has_crypto(level_of(SpaceId::Initial)))
    }

    /// Why a 1-RTT packet of at most `bytes` is to be sent, if there is a reason.
    #[inline]
    fn reason_for_short(&mut self, turn: &Sending<'_>, bytes: usize) -> Option<Reason> {
        if !self.spaces.data.is_ready() {
            return None;
        }
        let permitted = self.may_send_data(turn, bytes);
        let probing = self.paths.path(turn.path).may_probe();
        let any = permitted || probing || self.spaces.data.space.acks.ack_due(turn.now);
        any.then_some(Reason { permitted, probing })
    }

    /// A 1-RTT packet.
    fn write_short(
        &mut self,
        turn: &mut Sending<'_>,
        Reason { permitted, probing }: Reason,
        datagram: &mut DatagramBuilder<'_>,
    ) -> Option<()> {
        let mut packet = self.begin_short(turn, datagram)?;
        let stamp = self.parts.clocks.stamp(packet.now());
        acks::write(&mut self.spaces.data.space.acks, &mut packet, &mut self.stats.acks_sent, stamp);
        if probing {
            self.paths.write_probe(&mut packet);
        }
        if permitted {
            self.write_frames(&mut packet);
        }
        self.spaces.data.ack_only.elicit_now_and_then(&mut packet);
        packet.pay_probe(&mut self.spaces.data.space.probes);
        let packet = packet.finish()?;
        datagram.add(packet);
        Some(())
    }

    /// A 0-RTT packet, if there is early data to send.
    fn write_early(&mut self, turn: &mut Sending<'_>, datagram: &mut DatagramBuilder<'_>) -> Option<()> {
        let (_, version) = self.early.sealing()?;
        if !self.may_send_early(turn, datagram.room()) {
            return None;
        }
        let mut packet = self.begin_long(turn, datagram, PacketType::ZeroRtt, version)?;
        self.parts.write_early(&mut packet);
        packet.pay_probe(&mut self.spaces.data.space.probes);
        let packet = packet.finish()?;
        datagram.add(packet);
        Some(())
    }

    /// Whether a 0-RTT packet of at most `bytes` is wanted, and permitted by window and pacer.
    fn may_send_early(&mut self, turn: &Sending<'_>, bytes: usize) -> bool {
        if self.spaces.data.space.probes > 0 {
            return true;
        }
        let recovery = &self.paths.path(turn.path).recovery;
        if !self.parts.streams.interest().any() || !recovery.can_send(bytes) {
            return false;
        }
        self.is_released(turn, bytes)
    }

    /// Whether the pacer lets a packet of at most `bytes` go now. If not, the timer is set.
    #[inline]
    fn is_released(&mut self, turn: &Sending<'_>, bytes: usize) -> bool {
        if self.timers.has_passed_pacing(turn.now) {
            self.on_pacing(turn.now);
        }
        let release = self.paths.path_mut(turn.path).recovery.next_send_time(turn.now, bytes);
        self.timers.set_pacing(release);
        release.is_none()
    }

    /// Everything in a 1-RTT packet but the acknowledgements and path probes.
    #[inline]
    fn write_frames(&mut self, packet: &mut Packet<'_>) {
        let recovery = &self.paths.path(packet.path()).recovery;
        self.parts.write(packet, |parts| super::datagrams::frame_room(recovery, parts.remote_cids.active()));
    }

    /// Whether a packet of at most `bytes` with more than acknowledgements is wanted, and permitted by
    /// window and pacer.
    #[inline]
    fn may_send_data(&mut self, turn: &Sending<'_>, bytes: usize) -> bool {
        let Space { recovery: sent, probes, .. } = &self.spaces.data.space;
        if *probes > 0 {
            return true;
        }
        let recovery = &mut self.paths.path_mut(turn.path).recovery;
        if !self.parts.want_to_send() {
            recovery.on_app_limited();
            return false;
        }
        if !recovery.can_send(bytes) || !sent.has_room_for_data() {
            return false;
        }
        self.is_released(turn, bytes)
    }
}
