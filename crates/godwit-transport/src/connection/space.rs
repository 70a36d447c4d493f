//! Packet number spaces (RFC 9000 section 12.3): what is sent and received under one set of numbers, and
//! the keys that go with it.
//!
//! Initial and Handshake are values that exist as long as their keys: a packet, a timer or an
//! acknowledgement of a dropped space finds nothing to act on.

use super::acks::AckOnlyRun;
use super::parts::RecoveryToken;
use super::tokens::overlap;
use crate::handshake::Level;
use godwit_recovery::{AckTracker, Laboratory, SpaceId, SpaceRecovery};
use godwit_tls::keys::{LevelKeys, OneRtt};
use godwit_wire::header::PacketType;
use std::time::Duration;

/// Sent packets, received packets and probes owed, of one space.
#[derive(Debug)]
pub(crate) struct Space {
    /// The packets sent.
    pub(crate) recovery: SpaceRecovery<RecoveryToken>,
    /// The packets received.
    pub(crate) acks: AckTracker,
    /// Packets that may go out whatever the congestion window says (RFC 9002 section 6.2.4).
    pub(crate) probes: u8,
}

impl Space {
    fn new(id: SpaceId, mut acks: AckTracker, laboratory: &Laboratory) -> Self {
        let mut recovery = SpaceRecovery::new(id);
        acks.set_most_ranges(laboratory.most_ack_ranges);
        if laboratory.ambiguous_repeats {
            recovery.make_repeats_ambiguous(overlap);
        }
        Space { recovery, acks, probes: 0 }
    }
}

/// The Initial or Handshake space.
#[derive(Debug)]
pub(crate) struct HandshakeSpace {
    pub(crate) space: Space,
    pub(crate) keys: LevelKeys,
}

impl HandshakeSpace {
    fn new(id: SpaceId, keys: LevelKeys, laboratory: &Laboratory) -> Box<Self> {
        Box::new(HandshakeSpace { space: Space::new(id, AckTracker::immediate(), laboratory), keys })
    }
}

/// The space of 1-RTT packets. Its numbers exist from the start, its keys come with the handshake.
pub(crate) struct DataSpace {
    pub(crate) space: Space,
    pub(crate) ack_only: AckOnlyRun,
    /// None as long as there are none, and where both ends do without.
    pub(crate) keys: Option<Box<OneRtt>>,
    /// In place of the keys, once both ends have agreed on that.
    pub(crate) unencrypted: Option<Unencrypted>,
}

/// What 1-RTT packets have in place of keys where both ends do without.
#[derive(Debug, Default)]
pub(crate) struct Unencrypted {
    /// The key phase bit of the newest packet received.
    pub(super) phase: bool,
    /// The peer has acknowledged a packet of application data.
    pub(super) acknowledged: bool,
}

impl DataSpace {
    /// Whether 1-RTT packets can be sent and read.
    #[inline]
    pub(crate) const fn is_ready(&self) -> bool {
        self.keys.is_some() || self.unencrypted.is_some()
    }
}

impl std::fmt::Debug for DataSpace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DataSpace").field("space", &self.space).finish_non_exhaustive()
    }
}

/// The three spaces.
#[derive(Debug)]
pub(crate) struct Spaces {
    pub(crate) initial: Option<Box<HandshakeSpace>>,
    pub(crate) handshake: Option<Box<HandshakeSpace>>,
    pub(crate) data: DataSpace,
}

impl Spaces {
    pub(crate) fn new(initial: LevelKeys, max_ack_delay: Duration, laboratory: &Laboratory) -> Self {
        Spaces {
            initial: Some(HandshakeSpace::new(SpaceId::Initial, initial, laboratory)),
            handshake: None,
            data: DataSpace {
                space: Space::new(SpaceId::Data, AckTracker::delayed(max_ack_delay), laboratory),
                ack_only: AckOnlyRun::default(),
                keys: None,
                unencrypted: None,
            },
        }
    }

    pub(crate) fn on_handshake_keys(&mut self, keys: LevelKeys, laboratory: &Laboratory) {
        self.handshake = Some(HandshakeSpace::new(SpaceId::Handshake, keys, laboratory));
    }

    /// The space `id`, unless it has been dropped (or, for Handshake, does not exist yet).
    pub(crate) fn get_mut(&mut self, id: SpaceId) -> Option<&mut Space> {
        match id {
            SpaceId::Initial => self.initial.as_mut().map(|initial| &mut initial.space),
            SpaceId::Handshake => self.handshake.as_mut().map(|handshake| &mut handshake.space),
            SpaceId::Data => Some(&mut self.data.space),
        }
    }

    /// The Initial or Handshake space with its keys.
    pub(crate) fn handshake_space_mut(&mut self, id: SpaceId) -> Option<&mut HandshakeSpace> {
        match id {
            SpaceId::Initial => self.initial.as_deref_mut(),
            SpaceId::Handshake => self.handshake.as_deref_mut(),
            SpaceId::Data => None,
        }
    }

    /// When an acknowledgement is due at the latest.
    pub(crate) fn ack_deadline(&self) -> Option<godwit_base::Time> {
        let handshakes = [self.initial.as_deref(), self.handshake.as_deref()].into_iter().flatten();
        let delayed = handshakes.filter_map(|space| space.space.acks.ack_deadline());
        let data = self.data.space.acks.ack_deadline().filter(|_| self.data.is_ready());
        delayed.chain(data).min()
    }
}

/// The space in which packets of this type are numbered; Retry packets have no number.
pub(crate) const fn space_of(packet_type: PacketType) -> Option<SpaceId> {
    match packet_type {
        PacketType::Initial => Some(SpaceId::Initial),
        PacketType::Handshake => Some(SpaceId::Handshake),
        PacketType::ZeroRtt | PacketType::OneRtt => Some(SpaceId::Data),
        PacketType::Retry => None,
    }
}

/// The type of the packets of the Initial and Handshake spaces.
pub(super) const fn long_type(id: SpaceId) -> PacketType {
    match id {
        SpaceId::Initial => PacketType::Initial,
        SpaceId::Handshake | SpaceId::Data => PacketType::Handshake,
    }
}

/// The encryption level of a space's CRYPTO frames.
pub(super) const fn level_of(space: SpaceId) -> Level {
    match space {
        SpaceId::Initial => Level::Initial,
        SpaceId::Handshake => Level::Handshake,
        SpaceId::Data => Level::OneRtt,
    }
}
