//! Careful resume (RFC 9959): a connection over a path that an earlier one has found wide does not begin from nothing.
//!
//! ```text
//! Reconnaissance --initial window arrived--> Unvalidated --first of it arrived--> Validating --last of it--> (normal)
//!       |                                         |                                  |
//!       | loss                                    +--------------- loss -------------+
//!       v                                                          v
//!    (normal)                                                 Safe Retreat --last of it arrived--> (normal)
//! ```
//! Only if the path is as long as it was, and nothing of the initial window is lost, the window jumps, to no more than half
//! of what it was, and what leaves by that leaves evenly in a round trip. `PipeSize` is what has been shown to pass: on a
//! loss or a mark the window becomes half of that, stays there until everything sent on trust has left the path, and
//! slow start ends at it.

use crate::congestion::{Acked, Pacing, SavedState};
use crate::pacer::{NANOS_PER_SECOND, scaled};
use godwit_base::Time;
use std::time::Duration;

/// Windows above this are not resumed to more than half of it, wherever they come from.
const MOST_SAVED_WINDOW: u64 = 16 << 20;
/// A path is another one if its round-trip time is less than what was saved over this (RFC 9959 section 3.2),
const SHORTER: u32 = 2;
/// or more than so many times as long.
const LONGER: u32 = 10;
/// Packets that leave at once after the jump.
const BURST_PACKETS: u64 = 4;

/// Under RFC 9959's names; after `Normal` there is nothing to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The initial window is under way.
    Reconnaissance,
    /// Sending on trust, since then.
    Unvalidated { since: Time },
    /// All that was sent on trust was sent until then.
    Validating { last: Time },
    /// It was too much.
    SafeRetreat { last: Time },
}

/// What is to become of the controller's window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// It may grow as ever.
    None,
    /// It does not grow.
    Hold,
    /// It becomes this, in slow start.
    Window(u64),
    /// Careful resume is over.
    Normal,
    /// So it is, with this window, in slow start.
    Return(u64),
    /// So it is, and slow start ends here.
    Threshold(u64),
}

/// The state of one path.
#[derive(Debug, Clone)]
pub(crate) struct CarefulResume {
    saved_rtt: Duration,
    /// Half of the saved window.
    jump: u64,
    /// The window before the jump.
    before: u64,
    phase: Phase,
    /// What must have arrived first.
    initial_window: u64,
    acked: u64,
    pipe_size: u64,
    last_sent: Time,
    /// There was nothing more to send after that.
    app_limited: bool,
}

impl CarefulResume {
    /// With what was saved, on a path with this initial window; `None` if that is of no use.
    pub(crate) fn new(saved: Option<SavedState>, initial_window: u64) -> Option<Box<Self>> {
        let SavedState { rtt, window, .. } = saved?;
        let jump = window.min(MOST_SAVED_WINDOW) / 2;
        let useful = !rtt.is_zero() && jump > initial_window;
        useful.then(|| {
            Box::new(CarefulResume {
                saved_rtt: rtt,
                jump,
                before: initial_window,
                phase: Phase::Reconnaissance,
                initial_window,
                acked: 0,
                pipe_size: 0,
                last_sent: Time::ZERO,
                app_limited: false,
            })
        })
    }

    /// A packet was sent.
    pub(crate) const fn on_sent(&mut self, now: Time) {
        self.last_sent = now;
        self.app_limited = false;
    }

    /// There is nothing more to send.
    pub(crate) const fn on_app_limited(&mut self) {
        self.app_limited = true;
    }

    /// Packets were acknowledged, and what is left in flight. `window` is the controller's.
    pub(crate) fn on_ack(&mut self, acked: &Acked<'_>, in_flight: u64, window: u64) -> Step {
        self.acked = self.acked.saturating_add(acked.all_bytes);
        if self.phase != Phase::Reconnaissance {
            self.pipe_size = self.pipe_size.saturating_add(acked.all_bytes);
        }
        match self.phase {
            Phase::Reconnaissance => self.reconnoitre(acked, in_flight, window),
            Phase::Unvalidated { since } => {
                let over = acked.largest_sent_at >= since
                    || acked.now.saturating_since(since) > acked.rtt.smoothed();
                if over { self.validate(acked.bytes_in_flight) } else { Step::Hold }
            }
            Phase::Validating { last } if acked.largest_sent_at >= last => Step::Normal,
            Phase::Validating { .. } => Step::None,
            Phase::SafeRetreat { last } if acked.largest_sent_at >= last => Step::Threshold(self.pipe_size),
            Phase::SafeRetreat { .. } => Step::Hold,
        }
    }

    fn reconnoitre(&mut self, acked: &Acked<'_>, in_flight: u64, window: u64) -> Step {
        if self.acked < self.initial_window {
            return Step::None;
        }
        let rtt = acked.rtt.min();
        let shortest = self.saved_rtt.checked_div(SHORTER).unwrap_or_default();
        if rtt < shortest || rtt > self.saved_rtt.saturating_mul(LONGER) || self.jump <= window {
            return Step::Normal;
        }
        // Who has nothing more to send would jump for what comes at some later time, on old evidence.
        if !acked.window_used || self.app_limited {
            return Step::None;
        }
        self.phase = Phase::Unvalidated { since: acked.now };
        self.pipe_size = in_flight;
        self.before = window;
        Step::Window(self.jump)
    }

    /// So much was in flight when the first packet sent on trust arrived. What was not sent need not be trusted.
    fn validate(&mut self, flight_size: u64) -> Step {
        if flight_size <= self.pipe_size {
            // There was not enough data for the jump.
            return Step::Return(self.pipe_size.max(self.before));
        }
        self.phase = Phase::Validating { last: self.last_sent };
        Step::Window(flight_size)
    }

    /// A loss or a mark: the window to retreat to, if that is not the controller's business.
    pub(crate) fn on_congestion(&mut self) -> Option<u64> {
        let last = match self.phase {
            // A second loss in a retreat is one like any other.
            Phase::Reconnaissance | Phase::SafeRetreat { .. } => return None,
            Phase::Validating { last } => last,
            Phase::Unvalidated { .. } => self.last_sent,
        };
        self.phase = Phase::SafeRetreat { last };
        Some(self.pipe_size / 2)
    }

    /// In what the window permits beyond what was shown to pass, packets leave evenly.
    pub(crate) fn pacing(&self, window: u64, rtt: Duration, mtu: u16) -> Option<Pacing> {
        let Phase::Unvalidated { .. } = self.phase else { return None };
        let nanos = u64::try_from(rtt.as_nanos()).ok().filter(|nanos| *nanos > 0)?;
        let burst = u64::from(mtu).saturating_mul(BURST_PACKETS);
        Some(Pacing::new(scaled(window, NANOS_PER_SECOND, nanos), burst))
    }
}

#[cfg(test)]
mod tests;
