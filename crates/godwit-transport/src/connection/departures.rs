//! Packets that are made ready before they leave, where the system holds them back until then.
//!
//! A host wakes late, and whoever waits for the pacer is woken for every few packets. Where the data path keeps departure
//! times ([`SendMeta::release`](godwit_base::SendMeta)), what the pacer permits within a short time is written at once,
//! each run with its time. For all that the connection does with such a packet, from the delay of the acknowledgement in
//! it to loss detection, the present is the time at which it leaves.
//!
//! Invariant: packets leave in the order of their numbers. Once a packet is to leave at some time, none that is written
//! after it leaves before, whatever it is: what overtakes looks like reordering to the peer, and then like loss.
//!
//! Whether the times are kept cannot be known for certain: the system may change under a program. An acknowledgement of a
//! packet that has not left yet proves that they are not, and nothing is made ready early by that connection from then on. That
//! is rarely seen, as what is made ready early is so by half a round trip at most: whoever has the times kept has to know.

use super::Machine;
use super::parts::Sending;
use crate::path::PathKey;
use godwit_base::Time;
use std::time::Duration;

/// When packets leave that have been written.
#[derive(Debug)]
pub(super) struct Departures {
    /// The latest departure so far.
    last: Time,
    /// What leaves until then may be written now. In the past if nothing is written early, and none if the times have
    /// proved not to be kept.
    until: Option<Time>,
}

impl Default for Departures {
    fn default() -> Self {
        Departures { last: Time::ZERO, until: Some(Time::ZERO) }
    }
}

impl Departures {
    /// When that is to leave which is written now, if not at once.
    #[inline]
    pub(super) fn after(&self, now: Time) -> Option<Time> {
        if self.last > now { Some(self.last) } else { None }
    }
}

impl Machine {
    /// What the pacer permits soon may be written in the present turn: to be called before [`Machine::transmit`], each
    /// time, where the data path keeps departure times.
    pub(crate) fn look_ahead(&mut self, now: Time) {
        // The handshake is no more than a few packets, of several packet number spaces. And what goes to the same host
        // passes no interface that would hold it back.
        if self.departures.until.is_none()
            || !self.lifecycle.is_confirmed()
            || stays_here(self.paths.active().key())
        {
            self.leave_at_once();
            return;
        }
        let horizon = self.paths.active().recovery.look_ahead();
        self.departures.until = Some(now + horizon);
        // With half of it left there is something to be written, and time to wake up.
        self.timers.set_pacing_lead(horizon / 2);
        if self.timers.has_passed_pacing(now) {
            self.on_pacing(now);
        }
        // What remains set was said of this turn.
        self.timers.set_pacing(None);
    }

    /// Nothing is written early any more: see [`Machine::look_ahead`].
    pub(crate) fn leave_at_once(&mut self) {
        self.departures.until = self.departures.until.map(|_| Time::ZERO);
        self.timers.set_pacing_lead(Duration::ZERO);
    }

    /// The peer has what was to leave later.
    #[cold]
    pub(super) fn on_early_departure(&mut self) {
        self.departures = Departures { until: None, ..Departures::default() };
        self.leave_at_once();
    }

    /// Goes on to when the pacer permits the next packets, if that is soon enough for them to be written now.
    #[inline]
    pub(super) fn leave_later(&mut self, turn: &mut Sending<'_>) -> bool {
        if self.departures.until.is_none_or(|until| until <= turn.now) { false } else { self.go_on(turn) }
    }

    fn go_on(&mut self, turn: &mut Sending<'_>) -> bool {
        let next = self.timers.pacing().filter(|at| *at > turn.now && Some(*at) <= self.departures.until);
        let Some(at) = next else { return false };
        (turn.now, turn.departs) = (at, Some(at));
        // Either something leaves then, or there is nothing that could be overtaken.
        self.departures.last = at;
        true
    }
}

/// Whether datagrams on this path do not leave the host.
fn stays_here(path: &PathKey) -> bool {
    let remote = path.remote.ip();
    remote.is_loopback() || path.local == Some(remote)
}
