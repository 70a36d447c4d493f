//! Flow control of data (RFC 9000 sections 4.1 to 4.3), the same for a stream and for the connection.
//!
//! The receiver announces a limit one window beyond what was consumed, whenever half the window is
//! used up. A window that is used up within a few round trips holds the sender back: it doubles, or grows to a multiple if
//! the peer says that it is held back.

use crate::WireError;
use crate::reserve::{OWN_WINDOW, Share};
use godwit_base::Time;
use godwit_wire::TransportErrorCode;
use std::time::Duration;

/// A window beyond the connection's own shrinks that takes so many round trips, and so long, to be half used up.
const SLOW: u32 = 8;
const SLOW_LEAST: Duration = Duration::from_secs(1);
/// Whoever has sent nothing for so long may have less when more comes.
const SILENCE: Duration = Duration::from_secs(5);
/// By how much a window grows of a peer that says that it is held back. Its congestion window has doubled when it says so
/// again, or has found the rate of the path: each step that was too short costs a round trip. What it may make us hold at
/// most stays the same, and it holds no more of it than it has sent.
const STEP: u64 = 32;
/// Below this a round-trip time says more about batching and wake-ups than about the path.
const RTT_FLOOR: Duration = Duration::from_millis(1);

/// Since when it is measured how fast the window is used.
#[derive(Debug, Clone, Copy)]
enum Epoch {
    Never,
    /// Nothing has come since a limit was announced.
    Announced(Time),
    Running(Time),
    /// The same after a long silence.
    Returned,
    /// The window has grown then because the peer said that it is held back: once for every limit.
    Raised(Time),
}

/// What the peer may send.
#[derive(Debug, Clone)]
pub(super) struct ReceiveWindow {
    /// Highest offset received, or the sum of them over all streams.
    received: u64,
    /// Bytes that were read or discarded.
    consumed: u64,
    /// The announced limit on `received`.
    limit: u64,
    size: u64,
    max: u64,
    epoch: Epoch,
}

impl ReceiveWindow {
    /// A window of `size` bytes that may grow to `max`.
    pub(super) const fn new(size: u64, max: u64) -> Self {
        ReceiveWindow { received: 0, consumed: 0, limit: size, size, max, epoch: Epoch::Never }
    }

    /// Highest offset received, or the sum of them.
    pub(super) const fn received(&self) -> u64 {
        self.received
    }

    /// Bytes that were read or discarded.
    pub(super) const fn consumed(&self) -> u64 {
        self.consumed
    }

    /// The limit to announce.
    pub(super) const fn limit(&self) -> u64 {
        self.limit
    }

    /// The present size of the window in bytes.
    pub(super) const fn size(&self) -> u64 {
        self.size
    }

    /// The window may grow to `max` from now on. One that is larger stays as it is.
    pub(super) fn set_max(&mut self, max: u64) {
        self.max = max;
    }

    /// What is announced from now on is no more than `size` ahead of what is consumed, and grows no further. What was
    /// announced stays.
    pub(super) fn shrink(&mut self, size: u64) {
        self.size = self.size.min(size);
        self.max = self.max.min(size);
    }

    /// What the peer may send still.
    pub(super) const fn permitted(&self) -> u64 {
        self.limit.saturating_sub(self.received)
    }

    /// Whether `bytes` more keep to the limit; FLOW_CONTROL_ERROR if not.
    pub(super) fn check(&self, bytes: u64) -> Result<(), WireError> {
        if bytes > self.limit.saturating_sub(self.received) {
            return Err(WireError::new(
                TransportErrorCode::FLOW_CONTROL_ERROR,
                "data beyond the flow-control limit",
            ));
        }
        Ok(())
    }

    /// Counts `bytes` that [`ReceiveWindow::check`] let pass.
    pub(super) fn on_received(&mut self, now: Time, bytes: u64) {
        self.received = self.received.saturating_add(bytes);
        match self.epoch {
            Epoch::Never => self.epoch = Epoch::Running(now),
            Epoch::Announced(at) if now.saturating_since(at) > SILENCE => self.epoch = Epoch::Returned,
            Epoch::Announced(at) => self.epoch = Epoch::Running(at),
            Epoch::Running(_) | Epoch::Returned | Epoch::Raised(_) => {}
        }
    }

    /// Counts `bytes` that the application has read. Returns true if a new limit is to be announced.
    pub(super) fn on_consumed(&mut self, now: Time, rtt: Duration, bytes: u64) -> bool {
        self.consumed = self.consumed.saturating_add(bytes);
        if !self.announcement_due() {
            return false;
        }
        let took = self.took(now);
        // Half a window in two round trips is a whole one in four.
        if took < rtt.max(RTT_FLOOR).saturating_mul(2) {
            self.size = self.size.saturating_mul(2).min(self.max).max(self.size);
        }
        self.epoch = Epoch::Announced(now);
        self.announce();
        true
    }

    /// Counts `bytes` that nobody will read. Returns true if a new limit is to be announced.
    #[cfg(test)]
    pub(super) fn on_discarded(&mut self, bytes: u64) -> bool {
        self.consumed = self.consumed.saturating_add(bytes);
        let due = self.announcement_due();
        if due {
            self.announce();
        }
        due
    }

    /// Counts bytes that the application has read, for the connection: what its window has beyond its own comes out of the
    /// connection's share. That much is given only to who uses the window up within a round trip, and taken from who does not
    /// use half of it for long. Returns true if a new limit is to be announced.
    pub(super) fn on_consumed_of_all(
        &mut self,
        now: Time,
        rtt: Duration,
        bytes: u64,
        share: &mut Share,
    ) -> bool {
        if !share.is_attached() || self.max <= OWN_WINDOW && !share.receives() {
            return self.on_consumed(now, rtt, bytes);
        }
        self.consumed = self.consumed.saturating_add(bytes);
        if !self.announcement_due() {
            self.give_back(share);
            return false;
        }
        let (took, rtt) = (self.took(now), rtt.max(RTT_FLOOR));
        let wanted = if self.size < OWN_WINDOW && took < rtt.saturating_mul(2) {
            self.size.saturating_mul(2).min(OWN_WINDOW)
        } else if self.size >= OWN_WINDOW && took < rtt.saturating_mul(3) / 2 {
            self.size.saturating_mul(2)
        } else if self.size > OWN_WINDOW && took > rtt.saturating_mul(SLOW).max(SLOW_LEAST) {
            (self.size >> 1).max(OWN_WINDOW)
        } else {
            self.size
        };
        self.epoch = Epoch::Announced(now);
        self.size = share.receive(wanted.min(self.max.max(self.size)), self.outstanding());
        self.announce();
        true
    }

    /// Counts bytes that nobody will read, for the connection.
    pub(super) fn on_discarded_of_all(&mut self, bytes: u64, share: &mut Share) -> bool {
        self.consumed = self.consumed.saturating_add(bytes);
        let due = self.announcement_due();
        if due {
            self.size = share.receive(self.size, self.outstanding());
            self.announce();
        } else {
            self.give_back(share);
        }
        due
    }

    /// How long the part of the window that was used up took.
    fn took(&self, now: Time) -> Duration {
        match self.epoch {
            Epoch::Announced(at) | Epoch::Running(at) | Epoch::Raised(at) => now.saturating_since(at),
            Epoch::Never | Epoch::Returned => Duration::MAX,
        }
    }

    /// The peer says that it is held back by this limit. If it has used all of that, and the application keeps up with it, the
    /// window is too small for the path: to double once in a round trip would hold the peer back for many on a long one.
    /// Returns true if a new limit is to be announced.
    pub(super) fn on_blocked(&mut self, now: Time, limit: u64) -> bool {
        let held_back = self.is_held_back(limit);
        if held_back {
            self.size = self.size.saturating_mul(STEP).min(self.max).max(self.size);
            self.epoch = Epoch::Raised(now);
            self.announce();
        }
        held_back
    }

    /// The same for the connection: what its window has beyond its own only doubles.
    pub(super) fn on_blocked_of_all(&mut self, now: Time, limit: u64, share: &mut Share) -> bool {
        if !share.is_attached() || !self.is_held_back(limit) {
            return self.on_blocked(now, limit);
        }
        let wanted = match self.size {
            OWN_WINDOW.. => self.size.saturating_mul(2),
            _ => self.size.saturating_mul(STEP).min(OWN_WINDOW),
        };
        self.size = share.receive(wanted.min(self.max.max(self.size)), self.outstanding());
        self.epoch = Epoch::Raised(now);
        self.announce();
        true
    }

    fn is_held_back(&self, limit: u64) -> bool {
        // What the peer sent last may come behind, or wait to be read.
        let little = self.size >> 2;
        let raised = matches!(self.epoch, Epoch::Raised(_));
        let used = self.received.saturating_add(little) >= limit;
        !raised && self.size < self.max && used && self.received.saturating_sub(self.consumed) <= little
    }

    /// What was announced and has been used counts no longer.
    #[inline]
    fn give_back(&self, share: &mut Share) {
        if share.receives() {
            let outstanding = self.outstanding();
            share.receive(outstanding, outstanding);
        }
    }

    /// What the peer may make us hold.
    const fn outstanding(&self) -> u64 {
        self.limit.saturating_sub(self.consumed)
    }

    fn announcement_due(&self) -> bool {
        self.limit.saturating_sub(self.consumed) <= self.size >> 1
    }

    fn announce(&mut self) {
        let limit = self.consumed.saturating_add(self.size).min(godwit_wire::constants::VARINT_MAX);
        self.limit = self.limit.max(limit);
    }
}

/// What we may send on the connection.
#[derive(Debug, Clone, Default)]
pub(super) struct SendCredit {
    limit: u64,
    used: u64,
    /// The limit that DATA_BLOCKED was sent for.
    blocked_at: Option<u64>,
}

impl SendCredit {
    /// Bytes that may still be sent.
    pub(super) const fn available(&self) -> u64 {
        self.limit.saturating_sub(self.used)
    }

    /// The peer's limit.
    pub(super) const fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes sent so far, each once.
    #[cfg(test)]
    pub(super) const fn used(&self) -> u64 {
        self.used
    }

    /// Counts bytes sent for the first time.
    pub(super) fn on_sent(&mut self, bytes: u64) {
        self.used = self.used.saturating_add(bytes);
    }

    /// Begins anew with this limit: nothing that was sent counts.
    pub(super) fn restart(&mut self, limit: u64) {
        *self = SendCredit { limit, ..SendCredit::default() };
    }

    /// Raises the limit. Returns true if it was exhausted and no longer is.
    pub(super) fn raise(&mut self, limit: u64) -> bool {
        let was_exhausted = self.available() == 0;
        self.limit = self.limit.max(limit);
        was_exhausted && self.available() > 0
    }

    /// True once per exhausted limit: DATA_BLOCKED is to be sent.
    pub(super) fn newly_blocked(&mut self) -> bool {
        let blocked = self.available() == 0 && self.blocked_at != Some(self.limit);
        if blocked {
            self.blocked_at = Some(self.limit);
        }
        blocked
    }
}

#[cfg(test)]
mod tests;
