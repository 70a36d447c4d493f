//! TCP's retransmission timer in the place of the probe timeout, for measurements in the laboratory only: see
//! [`Laboratory::retransmission_timer`](godwit_recovery::Laboratory::retransmission_timer).
//!
//! A probe asks what has arrived, and changes nothing until the answer is there. A retransmission timer takes all that is
//! under way for lost, sends it again from the beginning as far as the least window goes, and lets the window grow from
//! there (RFC 6298 section 5, RFC 5681 section 3.1).

use super::Machine;
use super::outcome::collect;
use crate::path::PathId;
use godwit_base::Time;
use godwit_recovery::SpaceId;

const SPACES: [SpaceId; 3] = [SpaceId::Initial, SpaceId::Handshake, SpaceId::Data];

impl Machine {
    /// The timer of a path went off: gives up all that is under way, if that is what is to be done, and has one packet sent
    /// in this space, whatever the window says. False if probes are to be sent.
    #[inline]
    pub(super) fn retransmits(&mut self, now: Time, path: PathId, id: SpaceId) -> bool {
        self.config.laboratory.retransmission_timer.is_some() && self.give_up_flight(now, path, id)
    }

    #[cold]
    fn give_up_flight(&mut self, now: Time, path: PathId, id: SpaceId) -> bool {
        let recovery = &self.paths.path(path).recovery;
        if !SPACES.into_iter().any(|space| recovery.has_ack_eliciting_in_flight(space)) {
            return false;
        }
        for space_id in SPACES {
            let Some(space) = self.spaces.get_mut(space_id) else { continue };
            let (outcomes, mut paths) = (&mut self.outcomes, self.paths.recovery());
            let mut collect = |outcome, token| collect(outcomes, outcome, token);
            space.recovery.declare_all_lost(&mut paths, now, &mut collect);
            self.dispatch_outcomes(space_id);
        }
        self.paths.path_mut(path).recovery.on_retransmission_timeout(now);
        if let Some(space) = self.spaces.get_mut(id) {
            space.probes = 1;
        }
        true
    }
}
