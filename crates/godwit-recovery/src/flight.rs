//! What of each packet number space is under way on one path.
//!
//! The packets of a space may have been sent on several paths: after a connection has moved, those that it sent before
//! are still on their way. Each path decides on its own packets, in the order of their numbers and by its own
//! round-trip time, so that what is decided, what is awaited and until when is kept with the path.

use crate::loss::PersistentRun;
use crate::summary::SpaceId;
use godwit_base::Time;

/// The packets of one space on one path.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Flight {
    /// The path's packets with lower numbers have been acknowledged or declared lost.
    pub(crate) cursor: u64,
    /// When the next of them is to be declared lost by the time threshold.
    pub(crate) loss_time: Option<Time>,
    /// The highest packet number acknowledged of those sent on this path: what overtakes on another path does not make a
    /// packet late.
    pub(crate) largest_acked: Option<u64>,
    pub(crate) ack_eliciting: u64,
    last_ack_eliciting: Option<Time>,
    pub(crate) persistent: PersistentRun,
}

impl Flight {
    /// Nothing is under way; packets to come have at least this number.
    pub(crate) fn begin_at(cursor: u64) -> Self {
        Flight { cursor, ..Flight::default() }
    }

    #[inline]
    pub(crate) fn on_ack_eliciting_sent(&mut self, now: Time) {
        self.ack_eliciting = self.ack_eliciting.saturating_add(1);
        self.last_ack_eliciting = Some(now);
    }

    #[inline]
    pub(crate) fn on_ack_eliciting_left(&mut self, packets: u64) {
        self.ack_eliciting = self.ack_eliciting.saturating_sub(packets);
    }

    /// When the last ack-eliciting packet was sent, if any is unacknowledged: the start of the PTO.
    pub(crate) const fn last_ack_eliciting(&self) -> Option<Time> {
        if self.ack_eliciting > 0 { self.last_ack_eliciting } else { None }
    }
}

/// The flights of the three spaces.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Flights {
    data: Flight,
    initial: Flight,
    handshake: Flight,
}

impl Flights {
    #[inline]
    pub(crate) const fn of(&self, space: SpaceId) -> &Flight {
        match space {
            SpaceId::Data => &self.data,
            SpaceId::Initial => &self.initial,
            SpaceId::Handshake => &self.handshake,
        }
    }

    #[inline]
    pub(crate) const fn of_mut(&mut self, space: SpaceId) -> &mut Flight {
        match space {
            SpaceId::Data => &mut self.data,
            SpaceId::Initial => &mut self.initial,
            SpaceId::Handshake => &mut self.handshake,
        }
    }
}
