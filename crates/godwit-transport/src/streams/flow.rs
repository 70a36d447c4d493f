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
mod tests {
    use super::*;
    use crate::WindowReserve;

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

    const MIB: u64 = 1 << 20;

    fn shared(reserve: &WindowReserve) -> (ReceiveWindow, Share) {
        let mut share = Share::default();
        share.attach(reserve);
        (ReceiveWindow::new(16 * MIB, 192 * MIB), share)
    }

    /// The peer sends all it may and it is read, half a window at a time, so many times and so fast.
    fn fill(window: &mut ReceiveWindow, share: &mut Share, now: &mut Time, times: u32, took: Duration) {
        for _ in 0..times {
            window.on_received(*now, window.limit().saturating_sub(window.received()));
            *now += took;
            window.on_consumed_of_all(*now, RTT, window.size().div_ceil(2), share);
        }
    }

    #[test]
    fn beyond_its_own_the_window_of_a_connection_grows_only_if_it_is_used_up_at_once() {
        let reserve = WindowReserve::new(320 * MIB);
        let (mut window, mut share) = shared(&reserve);
        let mut now = at(0);
        fill(&mut window, &mut share, &mut now, 9, RTT * 3 / 2);
        let own = "its own, which half a window in two round trips is enough for";
        assert_eq!((window.size(), reserve.taken()), (32 * MIB, 0), "{own}");
        fill(&mut window, &mut share, &mut now, 9, RTT / 2);
        assert_eq!(window.size(), 192 * MIB);
        assert!(reserve.taken() >= 96 * MIB && reserve.taken() <= 160 * MIB, "{reserve:?}");
        drop(share);
        assert_eq!(reserve.taken(), 0);
    }

    #[test]
    fn who_idles_holds_what_was_announced_and_no_more_once_that_is_used() {
        let reserve = WindowReserve::new(320 * MIB);
        let (mut window, mut share) = shared(&reserve);
        let mut now = at(0);
        fill(&mut window, &mut share, &mut now, 9, RTT / 2);
        let size = window.size();
        // Almost to where more would be announced.
        let left = window.limit() - window.consumed() - size / 2 - 1;
        assert!(!window.on_consumed_of_all(now, RTT, left, &mut share));
        assert!(reserve.taken() <= (size / 2 - OWN_WINDOW) + MIB, "{reserve:?}");
        // It comes back after a while: what it uses is not announced anew, down to its own.
        for _ in 0..6 {
            now += Duration::from_secs(60);
            window.on_received(now, 0);
            window.on_consumed_of_all(now, RTT, window.size() / 2 + 1, &mut share);
        }
        assert_eq!((window.size(), reserve.taken()), (OWN_WINDOW, 0));
    }

    #[test]
    fn what_idle_peers_hold_leaves_something_for_others() {
        let reserve = WindowReserve::new(320 * MIB);
        let mut idle = Vec::new();
        for _ in 0..1000 {
            let (mut window, mut share) = shared(&reserve);
            fill(&mut window, &mut share, &mut at(0), 9, RTT / 2);
            assert!(reserve.taken() <= reserve.size());
            let announced = window.limit() - window.consumed();
            assert!(announced <= OWN_WINDOW + share.receive(u64::MAX, announced), "all of it is counted");
            idle.push((window, share));
        }
        idle.truncate(2);
        let (mut window, mut share) = shared(&reserve);
        fill(&mut window, &mut share, &mut at(0), 9, RTT / 2);
        assert!(window.size() >= OWN_WINDOW + 32 * MIB, "{} {reserve:?}", window.size());
    }

    #[test]
    fn bytes_nobody_reads_give_back_too() {
        let reserve = WindowReserve::new(320 * MIB);
        let (mut window, mut share) = shared(&reserve);
        fill(&mut window, &mut share, &mut at(0), 9, RTT / 2);
        let taken = reserve.taken();
        assert!(!window.on_discarded_of_all(2 * MIB, &mut share));
        assert!(reserve.taken() <= taken - MIB, "{reserve:?}");
    }

    #[test]
    fn the_maximum_can_change() {
        let mut window = ReceiveWindow::new(1000, 1000);
        window.set_max(4000);
        window.on_received(at(0), 1000);
        assert!(window.on_consumed(at(100), RTT, 500));
        assert_eq!(window.size(), 2000);
        window.set_max(100);
        assert!(window.on_consumed(at(101), RTT, 1000));
        assert_eq!((window.size(), window.limit()), (2000, 3500), "what was announced stays");
    }

    #[test]
    fn a_peer_that_says_it_is_held_back_gets_more_once_for_each_limit() {
        let mut window = ReceiveWindow::new(1000, 1 << 20);
        window.on_received(at(0), 700);
        window.consumed = 700;
        assert!(!window.on_blocked(at(0), 1000), "it is not");
        window.on_received(at(0), 100);
        assert!(window.on_blocked(at(0), 1000));
        assert_eq!((window.size(), window.limit()), (32_000, 32_700));
        window.on_received(at(1), 31_900);
        assert!(!window.on_blocked(at(1), 32_700), "nobody reads");
        window.consumed = 32_700;
        assert!(!window.on_blocked(at(1), 32_700), "once for each limit");
        assert!(window.on_consumed(at(900), RTT, 0));
        window.on_received(at(901), 32_000);
        window.consumed += 32_000;
        assert!(window.on_blocked(at(901), 64_700));
        assert_eq!(window.size(), 1_024_000);
    }

    #[test]
    fn what_is_shared_only_doubles_for_who_is_held_back() {
        let reserve = WindowReserve::new(320 * MIB);
        let (mut window, mut share) = shared(&reserve);
        for size in [32, 64, 128, 192] {
            window.on_received(at(0), window.limit() - window.received());
            window.consumed = window.received();
            assert!(window.on_blocked_of_all(at(0), window.limit(), &mut share));
            assert_eq!(window.size(), size * MIB);
            window.epoch = Epoch::Announced(at(0));
        }
        window.on_received(at(0), window.limit().saturating_sub(window.received()));
        window.consumed = window.received();
        assert!(!window.on_blocked_of_all(at(0), window.limit(), &mut share), "it is as large as it may be");
        assert_eq!(reserve.taken(), 160 * MIB);
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
