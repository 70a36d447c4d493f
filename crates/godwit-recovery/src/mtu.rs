//! Finding the largest datagram that passes a path (DPLPMTUD: RFC 8899, RFC 9000 section 14.3).
//!
//! The ceiling is probed first, because most paths carry it (a ceiling far above Ethernet's MTU after the sizes
//! that are common below it); if that fails, the search halves the interval between what is known to pass and
//! what is not. Losing a probe never means congestion. When full-size packets keep vanishing while smaller ones
//! sent later pass, the path may have become narrower: back to the base, and the search begins with the size that may
//! no longer pass.
//!
//! Invariants: 1200 <= `mtu` <= `max`; one probe is in flight at most; a packet that arrives tells that its size
//! passed when it was sent, so that losses of earlier packets are no sign of a black hole.

use godwit_base::Time;
use std::time::Duration;

/// The size every QUIC path must carry (RFC 9000 section 14).
pub const BASE_MTU: u16 = godwit_wire::constants::MIN_DATAGRAM as u16;
/// A size is given up after this many lost probes (RFC 8899 section 5.1.2, `MAX_PROBES`).
const MAX_PROBES: u8 = 3;
/// The search ends when at most this many bytes could be gained.
const PRECISION: u16 = 16;
/// Time between lost probes of one size: losses come in bursts.
const RETRY_AFTER: Duration = Duration::from_millis(100);
/// Full-size packets lost in a row that make a black hole: at 10 % random loss that is once in a million packets.
const BLACK_HOLE_LOSSES: u8 = 6;
/// Packets that miss the MTU by less than this count as of full size: frames do not always fill a packet.
const FULL_WITHIN: u16 = 64;
/// Sizes worth trying before a ceiling more than twice as large: an Ethernet frame and a jumbo frame over IPv4.
const COMMON_SIZES: [u16; 2] = [1472, 8972];
/// A search begins anew this long after the last ended (RFC 8899 section 5.1.1, `PMTU_RAISE_TIMER`).
const SEARCH_AGAIN_AFTER: Duration = Duration::from_secs(600);

/// Where the search stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not begun: the handshake is not complete, or there is nothing above the base to find.
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
    /// The size that passed before a silence, as long as it is not known whether it still does; else 0.
    doubted: u16,
    state: State,
    signs: BlackHoleSigns,
    counters: MtuCounters,
}

/// What an MTU search has done on its path. All figures only rise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct MtuCounters {
    /// Probes sent.
    pub probes_sent: u64,
    /// Probes declared lost. So are, in the end, those that the local system refused to send.
    pub probes_lost: u64,
    /// Times the path turned out to carry less than before. A silence, or losses, after which the size from before passes
    /// again are none, although the MTU was the base meanwhile.
    pub black_holes: u64,
}

/// The newest packets acknowledged of full and of lesser size, by the time they were sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Arrived {
    pub(crate) full: Option<Time>,
    pub(crate) lesser: Option<Time>,
}

/// What speaks for a black hole.
#[derive(Debug, Clone, Copy, Default)]
struct BlackHoleSigns {
    arrived: Arrived,
    /// Full-size packets lost that were sent after the newest that arrived.
    lost: u8,
    /// When the first of those was sent.
    lost_since: Option<Time>,
}

impl MtuSearch {
    /// A search between `initial`, which is assumed to pass, and `max`. It does not begin by itself.
    pub fn new(initial: u16, max: u16) -> Self {
        let mtu = initial.max(BASE_MTU);
        MtuSearch {
            mtu,
            max: max.max(mtu),
            ceiling: max.max(mtu),
            doubted: 0,
            state: State::Idle,
            signs: BlackHoleSigns::default(),
            counters: MtuCounters::default(),
        }
    }

    /// The size known or assumed to pass.
    pub const fn mtu(&self) -> u16 {
        self.mtu
    }

    /// What the search has done.
    pub const fn counters(&self) -> MtuCounters {
        self.counters
    }

    /// Begins the search, when the handshake is complete (RFC 9000 section 14.3). Later calls do nothing.
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
        if let State::Searching { probe, lost, in_flight, .. } = &mut self.state
            && *probe > max
        {
            // The probe that may be in flight tells nothing about another size.
            (*probe, *lost, *in_flight) = (max, 0, false);
            if *probe <= self.mtu {
                self.state = State::Complete { again_at: None };
            }
        }
    }

    /// The local system refused to send a datagram of `size`; `max` is the largest that it does send on this route,
    /// if it tells. No probe has to be lost to find out. Routes change: larger sizes are tried again later.
    pub fn on_refused(&mut self, now: Time, size: u16, max: Option<u16>) {
        if let Some(max) = max.filter(|max| *max < size) {
            self.on_route_narrow(now, max.max(BASE_MTU));
        } else if size <= self.mtu {
            self.ceiling = size.saturating_sub(1);
            self.fall_back(now, None);
        } else if matches!(self.state, State::Searching { probe, .. } if probe == size) {
            self.ceiling = size.saturating_sub(1);
            self.search(self.halfway(), now);
        }
    }

    fn on_route_narrow(&mut self, now: Time, max: u16) {
        self.ceiling = self.ceiling.min(max);
        if self.mtu > max {
            self.mtu = max;
            self.signs = BlackHoleSigns::default();
        }
        match self.state {
            State::Searching { probe, .. } if probe <= max => {}
            State::Searching { .. } | State::Complete { .. } => self.search(self.ceiling, now),
            State::Idle => {}
        }
    }

    fn begin(&mut self, now: Time) {
        self.ceiling = self.max;
        self.search(self.leap(), now);
    }

    /// The size to try while nothing has failed: the ceiling, or what is common far below it.
    fn leap(&self) -> u16 {
        let common = COMMON_SIZES.into_iter().find(|size| *size > self.mtu);
        common.filter(|size| size.saturating_mul(2) < self.max).unwrap_or(self.max)
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
    pub(crate) fn on_probe_sent(&mut self, size: u16) {
        self.counters.probes_sent = self.counters.probes_sent.saturating_add(1);
        if let State::Searching { probe, in_flight, .. } = &mut self.state
            && *probe == size
        {
            *in_flight = true;
        }
    }

    /// A probe arrived: the path carries `size`.
    pub(crate) fn on_probe_acked(&mut self, now: Time, size: u16) {
        if size <= self.mtu || size > self.max {
            return;
        }
        self.mtu = size;
        if size >= self.doubted {
            self.doubted = 0;
        }
        self.ceiling = self.ceiling.max(size);
        self.signs = BlackHoleSigns::default();
        if matches!(self.state, State::Searching { probe, .. } if probe <= size) {
            let next = if self.ceiling == self.max { self.leap() } else { self.halfway() };
            self.search(next, now);
        }
    }

    /// A probe was lost. After three of one size the search goes on below it.
    pub(crate) fn on_probe_lost(&mut self, now: Time, size: u16) {
        self.counters.probes_lost = self.counters.probes_lost.saturating_add(1);
        let State::Searching { probe, lost, not_before, in_flight } = &mut self.state else { return };
        if *probe != size {
            return;
        }
        *lost = lost.saturating_add(1);
        *in_flight = false;
        *not_before = now + RETRY_AFTER;
        if *lost >= MAX_PROBES {
            if size == self.doubted {
                self.on_black_hole();
            }
            self.ceiling = size.saturating_sub(1);
            self.search(self.halfway(), now);
        }
    }

    /// The size in the middle between what passes and what does not; the MTU itself if that is near enough.
    fn halfway(&self) -> u16 {
        let gap = self.ceiling.saturating_sub(self.mtu);
        if gap < PRECISION { self.mtu } else { self.mtu.saturating_add(gap.div_ceil(2)) }
    }

    /// Packets above this size count as of full size. Nothing does while the MTU is the base.
    pub(crate) fn full_above(&self) -> u16 {
        if self.mtu > BASE_MTU { self.mtu.saturating_sub(FULL_WITHIN).max(BASE_MTU) } else { u16::MAX }
    }

    /// Packets arrived; before the losses that the same ACK frame shows.
    pub(crate) fn on_packets_acked(&mut self, arrived: Arrived) {
        let signs = &mut self.signs;
        signs.arrived.full = signs.arrived.full.max(arrived.full);
        signs.arrived.lesser = signs.arrived.lesser.max(arrived.lesser);
        if signs.lost_since.is_some_and(|since| arrived.full >= Some(since)) {
            (signs.lost, signs.lost_since) = (0, None);
        }
    }

    /// A packet that is no probe was lost. True if that makes a black hole, so that the MTU is the base again.
    pub(crate) fn on_packet_lost(&mut self, now: Time, size: u16, sent_at: Time) -> bool {
        // What is larger than the MTU was sent before it fell, and tells nothing of the sizes that are sent now.
        let full = size > self.full_above() && size <= self.mtu;
        let signs = &mut self.signs;
        if !full || signs.arrived.full >= Some(sent_at) {
            return false;
        }
        signs.lost = signs.lost.saturating_add(1);
        let since = *signs.lost_since.get_or_insert(sent_at);
        if signs.lost < BLACK_HOLE_LOSSES || signs.arrived.lesser < Some(since) {
            return false;
        }
        // A queue that overflows drops large packets in a row as well, and lets small ones pass.
        self.doubt(now);
        true
    }

    /// Nothing at all arrived for several probe timeouts. True if the MTU is the base again for it. The size that
    /// passed before is tried again first: most silences have other causes.
    pub fn on_silence(&mut self, now: Time) -> bool {
        if self.mtu <= BASE_MTU {
            return false;
        }
        self.doubt(now);
        true
    }

    /// Back to the base until it is known whether the size that has passed so far still does.
    fn doubt(&mut self, now: Time) {
        self.ceiling = self.max;
        self.doubted = self.mtu;
        self.fall_back(now, Some(self.mtu));
    }

    fn on_black_hole(&mut self) {
        self.doubted = 0;
        self.counters.black_holes = self.counters.black_holes.saturating_add(1);
    }

    /// Back to the base; the search goes on with `next`, or below the ceiling.
    fn fall_back(&mut self, now: Time, next: Option<u16>) {
        self.signs = BlackHoleSigns::default();
        self.mtu = BASE_MTU;
        if self.state != State::Idle {
            self.search(next.unwrap_or_else(|| self.halfway()), now);
        }
    }
}

#[cfg(test)]
mod tests;
