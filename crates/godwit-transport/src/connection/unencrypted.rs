//! 1-RTT packets without protection, where both ends have asked for that
//! ([`TransportConfig::danger_without_encryption`](crate::TransportConfig::danger_without_encryption)).
//!
//! No standard has it; what is on the wire is MsQuic's way. A short header is as RFC 9000 section 17.3.1 has it before
//! header protection is applied, the frames follow as they are, and no tag follows these. The key phase bit stands for
//! nothing: who changes it expects to see it changed in the answer, and does. Our packet numbers have four bytes: of fewer, a
//! packet that comes very late is taken for another, which nothing but a tag shows.
//!
//! Invariants: there are never both keys and [`Unencrypted`]; it comes only when the handshake is complete, which proves the
//! transport parameters of both ends, so that a server says nothing in plaintext because somebody between the ends has
//! asked for it; it is never left again. Nothing tells a stranger's packet from the peer's: what makes no sense is a
//! violation of the protocol, and no packet with an id of this connection is taken for a stateless reset (one that says
//! NEW_CONNECTION_ID again may end with a reset token as well).

use super::Machine;
use super::input::{Datagram, NO_PHASE, Opened, PacketInfo, RESERVED_SHORT, SPIN};
use super::parts::{Packet, Sending};
use super::space::Unencrypted;
use crate::observe::{DropTrigger, PacketName};
use crate::packet::DatagramBuilder;
use godwit_base::Time;
use godwit_recovery::SpaceId;
use godwit_wire::header::PacketType;
use godwit_wire::packet_number::TruncatedPacketNumber;
use godwit_wire::{ConnectionId, Reader};

/// The key phase bit of a short header (RFC 9001 section 5.4.1).
const KEY_PHASE: u8 = 0x04;

impl Machine {
    /// The handshake is complete, and both ends have said that they do without.
    #[cold]
    pub(super) fn go_without_encryption(&mut self) {
        self.spaces.data.keys = None;
        self.spaces.data.unencrypted = Some(Unencrypted::default());
        // Observers are to see that there are none.
        self.observe_discarded(SpaceId::Data);
    }

    /// Whether the peer has acknowledged a packet that was sent since the keys, or their absence, began.
    pub(super) fn is_one_rtt_acknowledged(&self) -> bool {
        let data = &self.spaces.data;
        data.keys.as_ref().is_some_and(|keys| keys.is_acknowledged())
            || data.unencrypted.as_ref().is_some_and(|unencrypted| unencrypted.acknowledged)
    }

    /// The peer has acknowledged a packet of application data, and there are no keys.
    #[cold]
    pub(super) fn on_unencrypted_ack(&mut self) {
        if let Some(unencrypted) = &mut self.spaces.data.unencrypted {
            unencrypted.acknowledged = true;
        }
    }

    /// Begins a 1-RTT packet that stays as it is written.
    #[cold]
    #[inline(never)]
    pub(super) fn begin_unencrypted<'p>(
        &mut self,
        turn: &'p mut Sending<'_>,
        datagram: &'p mut DatagramBuilder<'_>,
    ) -> Option<Packet<'p>> {
        let phase = self.spaces.data.unencrypted.as_ref()?.phase;
        let number = self.spaces.data.space.recovery.next_packet_number(&mut *turn.rng);
        let numbers = (number, TruncatedPacketNumber::longest(number));
        self.write_short_header(turn, datagram, numbers, (phase, 0))
    }

    /// A short header packet, and there are no keys. Its bytes are as they came.
    #[cold]
    pub(super) fn on_unencrypted_packet(
        &mut self,
        now: Time,
        origin: &Datagram,
        dcid: ConnectionId,
        pn_offset: usize,
        bytes: &[u8],
    ) {
        match self.read_unencrypted(origin, dcid, pn_offset, bytes) {
            Some(read) => {
                self.early.on_one_rtt(now, self.paths.active().recovery.pto());
                self.process(now, origin, read);
            }
            None => self.observe_dropped(Some(PacketName::OneRtt), bytes.len(), DropTrigger::Invalid),
        }
    }

    /// Reads a packet as it stands. None if it ends before its number does.
    fn read_unencrypted<'a>(
        &mut self,
        origin: &Datagram,
        dcid: ConnectionId,
        pn_offset: usize,
        bytes: &'a [u8],
    ) -> Option<Opened<'a>> {
        let first = *bytes.first()?;
        let len = usize::from(first & 0x03).saturating_add(1);
        let truncated = TruncatedPacketNumber::decode(&mut Reader::new(bytes.get(pn_offset..)?), len).ok()?;
        let payload = bytes.get(pn_offset.saturating_add(len)..)?;
        let next = self.spaces.data.space.acks.next_expected();
        let number = truncated.expand(next);
        if let Some(unencrypted) = &mut self.spaces.data.unencrypted
            && number >= next
        {
            unencrypted.phase = first & KEY_PHASE != 0;
        }
        let info = PacketInfo {
            space: SpaceId::Data,
            packet_type: PacketType::OneRtt,
            number,
            dcid,
            path: origin.protected_as(&self.paths),
            keys: NO_PHASE,
            len: bytes.len(),
        };
        Some(Opened { info, reserved: first & RESERVED_SHORT, spin: first & SPIN != 0, payload })
    }
}
