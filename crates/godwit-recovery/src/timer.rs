//! The one loss-detection timer of a path (RFC 9002 section 6.2 and appendix A.8).
//!
//! The timer is not kept: it is computed from what is under way on the path when it is asked for, so that sending
//! and receiving a packet do not pay for it.

use crate::{PathRecovery, SpaceId};
use godwit_base::Time;
use std::time::Duration;

/// Why the timer fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimerKind {
    /// Packets of this space are due to be declared lost: call
    /// [`SpaceRecovery::on_loss_timer`](crate::SpaceRecovery::on_loss_timer).
    LossTime(SpaceId),
    /// A probe is due in this space: call [`PathRecovery::on_pto`], send one or two ack-eliciting packets
    /// there, with what [`SpaceRecovery::pto_tokens`](crate::SpaceRecovery::pto_tokens) names if there is nothing new.
    Pto(SpaceId),
}

/// What the timer depends on beyond the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimerInputs {
    /// The handshake is confirmed (RFC 9001 section 4.1.2); until then the Data space has no PTO.
    pub handshake_confirmed: bool,
    /// Handshake keys exist; a client's anti-deadlock probe is then a Handshake packet.
    pub has_handshake_keys: bool,
    /// This is a client whose handshake is not complete. It probes even if the server has acknowledged everything: its
    /// own acknowledgements may be lost, and a server that waits for them repeats its part ever more slowly.
    pub awaits_handshake: bool,
    /// A server that may not send one more byte to an unvalidated address (RFC 9000 section 8.1) sets no PTO.
    pub amplification_blocked: bool,
    /// The first few probe timeouts in a row are not made longer than this, other than RFC 9002 section 6.2.1 has it;
    /// `None` is as the RFC has it.
    pub most_backed_off: Option<Duration>,
}

/// The spaces, in the order in which they are probed if they are due at once.
const SPACES: [SpaceId; 3] = [SpaceId::Initial, SpaceId::Handshake, SpaceId::Data];

/// When the loss-detection timer is due and why, or `None` if there is nothing to wait for.
pub fn timer(path: &PathRecovery, inputs: TimerInputs) -> Option<(Time, TimerKind)> {
    let loss = SPACES.into_iter().filter_map(|id| Some((path.loss_time(id)?, id))).min();
    if let Some((time, id)) = loss {
        return Some((time, TimerKind::LossTime(id)));
    }
    if inputs.amplification_blocked {
        return None;
    }
    let most = inputs.most_backed_off;
    let mut earliest: Option<(Time, SpaceId)> = None;
    let mut in_flight = false;
    for id in SPACES {
        let Some(since) = path.flights.of(id).last_ack_eliciting() else { continue };
        in_flight = true;
        let ack_delay = match id {
            SpaceId::Data if !inputs.handshake_confirmed => continue,
            SpaceId::Data => path.peer_max_ack_delay(),
            SpaceId::Initial | SpaceId::Handshake => Duration::ZERO,
        };
        let due = (since + path.backed_off(path.rtt().pto().saturating_add(ack_delay), most), id);
        earliest = Some(earliest.map_or(due, |other| other.min(due)));
    }
    if earliest.is_none() {
        let wait = wait_in_place_of_data(path, inputs, in_flight && !inputs.handshake_confirmed);
        let id = if inputs.has_handshake_keys { SpaceId::Handshake } else { SpaceId::Initial };
        earliest = wait.map(|wait| (path.last_activity() + wait, id));
    }
    earliest.map(|(time, id)| (time, TimerKind::Pto(id)))
}

/// How long after the last activity to probe though nothing of the handshake is in flight, if at all.
///
/// A client's server may be waiting for bytes that credit it (RFC 9002 section 6.2.2.1). And data that is in flight before
/// the handshake is confirmed has no PTO of its own, but can fill the window so that a lost handshake message is not
/// repeated: nothing else would ever end that. Such probes are acknowledged, and the data is still not while the peer's
/// application takes its time with the handshake: they back off all the same.
fn wait_in_place_of_data(path: &PathRecovery, inputs: TimerInputs, data_only: bool) -> Option<Duration> {
    let (pto, most) = (path.rtt().pto(), inputs.most_backed_off);
    if inputs.awaits_handshake || !path.is_peer_validated() {
        return Some(path.backed_off(pto, most));
    }
    data_only.then(|| path.backed_off_for_data(pto, most))
}

#[cfg(test)]
mod tests;
