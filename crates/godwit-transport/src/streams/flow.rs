//! Flow control of data (RFC 9000 sections 4.1 to 4.3), the same for a stream and for the connection.
//!
//! The receiver announces a limit one window beyond what was consumed, whenever half the window is
//! used up. A window that is used up within a few round trips holds the sender back: it doubles.

use crate::WireError;
use godwit_base::Time;
use godwit_wire::TransportErrorCode;
use std::time::Duration;

/// Below this a round-trip time says more about batching and wake-ups than about the path.
const RTT_FLOOR: Duration = Duration::from_millis(1);

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
    /// When the measurement of how fast the window is used began.
    epoch: Option<Time>,
}

impl ReceiveWindow {
    /// A window of `size` bytes that may grow to `max`.
    pub(super) const fn new(size: u64, max: u64) -> Self {
        ReceiveWindow { received: 0, consumed: 0, limit: size, size, max, epoch: None }
    }

    /// Highest offset received, or the sum of them.
    pub(super) const fn received(&self) -> u64 {
        self.received
    }

    /// Bytes that were read or discarded.
    #[cfg(test)]
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
        if self.epoch.is_none() {
            self.epoch = Some(now);
        }
    }

    /// Counts `bytes` that the application has read. Returns true if a new limit is to be announced.
    pub(super) fn on_consumed(&mut self, now: Time, rtt: Duration, bytes: u64) -> bool {
        self.consumed = self.consumed.saturating_add(bytes);
        if !self.announcement_due() {
            return false;
        }
        // Half a window in two round trips is a whole one in four.
        let fast = rtt.max(RTT_FLOOR).saturating_mul(2);
        if self.epoch.is_some_and(|epoch| now.saturating_since(epoch) < fast) {
            self.size = self.size.saturating_mul(2).min(self.max).max(self.size);
        }
        self.epoch = Some(now);
        self.announce();
        true
    }

    /// Counts `bytes` that nobody will read. Returns true if a new limit is to be announced.
    pub(super) fn on_discarded(&mut self, bytes: u64) -> bool {
        self.consumed = self.consumed.saturating_add(bytes);
        let due = self.announcement_due();
        if due {
            self.announce();
        }
        due
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
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn limit_is_announced_when_half_is_consumed() {
        let mut window = ReceiveWindow::new(1000, 1000);
        window.on_received(at(0), 800);
        assert!(!window.on_consumed(at(1), RTT, 499));
        assert!(window.on_consumed(at(1), RTT, 1));
        assert_eq!(window.limit(), 1500);
        assert!(window.check(700).is_ok());
        assert!(window.check(701).is_err());
    }

    #[test]
    fn window_grows_only_while_it_is_used_up_quickly() {
        let mut window = ReceiveWindow::new(1000, 3000);
        window.on_received(at(0), 1000);
        assert!(window.on_consumed(at(199), RTT, 500));
        assert_eq!((window.size(), window.limit()), (2000, 2500));
        window.on_received(at(199), 1500);
        assert!(window.on_consumed(at(399), RTT, 1000));
        assert_eq!(window.size(), 2000, "200 ms is two round trips: fast enough a sender is not held back");
        assert!(window.on_consumed(at(400), RTT, 1000));
        assert_eq!(window.size(), 3000, "never beyond the maximum");
    }

    #[test]
    fn the_maximum_can_change() {
        let mut window = ReceiveWindow::new(1000, 1000);
        window.set_max(4000);
        window.on_received(at(0), 1000);
        assert!(window.on_consumed(at(1), RTT, 500));
        assert_eq!(window.size(), 2000);
        window.set_max(100);
        assert!(window.on_consumed(at(2), RTT, 1000));
        assert_eq!((window.size(), window.limit()), (2000, 3500), "what was announced stays");
    }

    #[test]
    fn discarded_bytes_are_credited_without_growth() {
        let mut window = ReceiveWindow::new(1000, 4000);
        window.on_received(at(0), 1000);
        assert!(window.on_discarded(1000));
        assert_eq!((window.size(), window.limit()), (1000, 2000));
    }

    #[test]
    fn blocked_is_told_once_per_limit() {
        let mut credit = SendCredit::default();
        assert!(credit.newly_blocked());
        assert!(!credit.newly_blocked());
        assert!(credit.raise(10));
        credit.on_sent(10);
        assert!(credit.newly_blocked());
        assert!(!credit.raise(5));
    }
}
