//! Finding the largest datagram that passes a path (DPLPMTUD: RFC 8899, RFC 9000 section 14.3).
//!
//! The ceiling is probed first, because most paths carry it; if that fails, the search halves the interval
//! between what is known to pass and what is not. Losing a probe never means congestion. When full-size packets
//! keep vanishing while smaller ones pass, the path is taken to have become narrower: back to the base, and the
//! search begins anew later.

use godwit_base::Time;
use std::time::Duration;

/// The size every QUIC path must carry (RFC 9000 section 14).
pub const BASE_MTU: u16 = 1200;
/// A size is given up after this many lost probes (RFC 8899 section 5.1.2, `MAX_PROBES`).
const MAX_PROBES: u8 = 3;
/// The search ends when at most this many bytes could be gained.
const PRECISION: u16 = 16;
/// Time between lost probes of one size: losses come in bursts.
const RETRY_AFTER: Duration = Duration::from_millis(100);
/// Full-size packets lost in a row that make a black hole.
const BLACK_HOLE_LOSSES: u8 = 6;
/// A search begins anew this long after the last ended (RFC 8899 section 5.1.1, `PMTU_RAISE_TIMER`).
const SEARCH_AGAIN_AFTER: Duration = Duration::from_secs(600);
/// After a black hole the search waits this long.
const BLACK_HOLE_PAUSE: Duration = Duration::from_secs(60);

/// Where the search stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not begun: the handshake is not confirmed, or there is nothing above the base to find.
    Idle,
    /// Looking for a size below `ceiling` that passes; the next probe has size `probe`, leaves not before
    /// `not_before`, and `lost` of that size were lost.
    Searching { probe: u16, lost: u8, not_before: Time, in_flight: bool },
    /// Done; begins anew at the given time.
    Complete { again_at: Option<Time> },
}

/// The MTU search of one path. Sizes are UDP payload bytes.
#[derive(Debug, Clone)]
pub struct MtuSearch {
    mtu: u16,
    /// The largest size worth trying.
    max: u16,
    /// Sizes above are believed not to pass.
    ceiling: u16,
    state: State,
    /// Packets larger than the base lost since one was acknowledged.
    large_lost: u8,
    /// A packet not larger than the base has been acknowledged since then.
    small_acked: bool,
}

impl MtuSearch {
    /// A search between `initial`, which is assumed to pass, and `max`. It does not begin by itself.
    pub fn new(initial: u16, max: u16) -> Self {
        let mtu = initial.max(BASE_MTU);
        MtuSearch {
            mtu,
            max: max.max(mtu),
            ceiling: max.max(mtu),
            state: State::Idle,
            large_lost: 0,
            small_acked: false,
        }
    }

    /// The size known or assumed to pass.
    pub const fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Begins the search, at confirmation of the handshake. Later calls do nothing.
    pub fn start(&mut self, now: Time) {
        if self.state == State::Idle {
            self.begin(now);
        }
    }

    /// The peer takes no datagrams above `max` (max_udp_payload_size), or the local interface sends none.
    pub fn limit(&mut self, max: u16) {
        let max = max.max(BASE_MTU);
        self.max = self.max.min(max);
        self.ceiling = self.ceiling.min(max);
        self.mtu = self.mtu.min(max);
        if let State::Searching { probe, .. } = &mut self.state {
            *probe = (*probe).min(max);
            if *probe <= self.mtu {
                self.state = State::Complete { again_at: None };
            }
        }
    }

    fn begin(&mut self, now: Time) {
        self.ceiling = self.max;
        self.search(self.max, now);
    }

    fn search(&mut self, probe: u16, not_before: Time) {
        self.state = if probe > self.mtu {
            State::Searching { probe, lost: 0, not_before, in_flight: false }
        } else {
            let reached = self.mtu >= self.max;
            let again_at = (!reached).then(|| not_before + SEARCH_AGAIN_AFTER);
            State::Complete { again_at }
        };
    }

    /// The size of the probe to send now, if any. The next comes when the fate of this one is known; should it
    /// not be sent after all, it is given again.
    pub fn next_probe(&mut self, now: Time) -> Option<u16> {
        if let State::Complete { again_at: Some(at) } = self.state
            && now >= at
        {
            self.begin(now);
        }
        match self.state {
            State::Searching { probe, not_before, in_flight: false, .. } if now >= not_before => Some(probe),
            _ => None,
        }
    }

    /// The probe of this size left.
    pub fn on_probe_sent(&mut self, size: u16) {
        if let State::Searching { probe, in_flight, .. } = &mut self.state
            && *probe == size
        {
            *in_flight = true;
        }
    }

    /// A probe arrived: the path carries `size`.
    pub fn on_probe_acked(&mut self, now: Time, size: u16) {
        if size <= self.mtu || size > self.max {
            return;
        }
        self.mtu = size;
        self.ceiling = self.ceiling.max(size);
        self.large_lost = 0;
        if matches!(self.state, State::Searching { probe, .. } if probe <= size) {
            self.search(self.halfway(), now);
        }
    }

    /// A probe was lost. After three of one size the search goes on below it.
    pub fn on_probe_lost(&mut self, now: Time, size: u16) {
        let State::Searching { probe, lost, not_before, in_flight } = &mut self.state else { return };
        if *probe != size {
            return;
        }
        *lost = lost.saturating_add(1);
        *in_flight = false;
        *not_before = now + RETRY_AFTER;
        if *lost >= MAX_PROBES {
            self.ceiling = size.saturating_sub(1);
            self.search(self.halfway(), now);
        }
    }

    /// The size in the middle between what passes and what does not; the MTU itself if that is near enough.
    fn halfway(&self) -> u16 {
        let gap = self.ceiling.saturating_sub(self.mtu);
        if gap < PRECISION { self.mtu } else { self.mtu.saturating_add(gap.div_ceil(2)) }
    }

    /// A packet that is no probe arrived.
    pub fn on_packet_acked(&mut self, size: u16) {
        if size > BASE_MTU {
            self.large_lost = 0;
            self.small_acked = false;
        } else if self.large_lost > 0 {
            self.small_acked = true;
        }
    }

    /// A packet that is no probe was lost. True if that makes a black hole, so that the MTU is the base again.
    pub fn on_packet_lost(&mut self, now: Time, size: u16) -> bool {
        if size <= BASE_MTU || self.mtu <= BASE_MTU {
            return false;
        }
        self.large_lost = self.large_lost.saturating_add(1);
        if self.large_lost < BLACK_HOLE_LOSSES || !self.small_acked {
            return false;
        }
        self.fall_back(now)
    }

    /// Nothing at all arrived for several probe timeouts. True if the MTU is the base again for it.
    pub fn on_silence(&mut self, now: Time) -> bool {
        self.mtu > BASE_MTU && self.fall_back(now)
    }

    fn fall_back(&mut self, now: Time) -> bool {
        self.large_lost = 0;
        self.small_acked = false;
        self.mtu = BASE_MTU;
        if self.state != State::Idle {
            self.state = State::Complete { again_at: Some(now + BLACK_HOLE_PAUSE) };
        }
        true
    }
}

#[cfg(test)]
mod tests;
