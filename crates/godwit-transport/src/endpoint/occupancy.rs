//! Which networks have the places of an endpoint's connections.
//!
//! A client that has finished its handshake has a place for as long as it likes, and an endpoint has so many. How they are
//! shared says [`godwit_base::SourceNetworks`]. Nobody is asked to leave.
//!
//! Invariant: those connections count that were accepted and are still in a slot, each for the source in its slot.

use super::Endpoint;
use super::slot::ConnectionSlot;
use super::source::Source;
use godwit_wire::Side;

impl Endpoint {
    /// Whether there is a place for a client from `source`.
    pub(super) fn has_place_for(&self, source: Source) -> bool {
        let free = self.config.max_connections.saturating_sub(self.slots.len());
        free > 0 && self.places.leaves_enough(source, free)
    }

    /// A connection is in its slot; `source` says where the client comes from, if it is one of ours.
    pub(super) fn on_place_taken(&mut self, source: Option<Source>) {
        if let Some(source) = source {
            self.places.enter(source);
        }
    }

    /// A connection has been taken out of its slot.
    pub(super) fn on_place_free(&mut self, slot: &ConnectionSlot) {
        let accepted = slot.connection.side() == Side::Server;
        if let Some(source) = slot.source.filter(|_| accepted) {
            self.places.leave(source);
        }
    }
}
