//! The received packets of one space, and when to acknowledge them (RFC 9000 sections 12.3 and 13.2).
//!
//! The decision falls once per batch of datagrams, in [`AckTracker::on_batch_end`]: a batch of any number of
//! packets is answered by one ACK frame. Packets are remembered as at most [`MAX_RANGES`] ranges; what falls out
//! at the lower end is taken for received, so that nothing is ever processed twice.

use crate::AckPolicy;
use godwit_base::{Ecn, IntervalSet, Time};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Ranges remembered, and reported, at most.
pub(crate) const MAX_RANGES: usize = 128;
pub(crate) const MAX_REPORTED: u8 = 128;

/// Packets received per ECN codepoint (RFC 9000 section 13.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EcnCounts {
    /// With ECT(0).
    pub ect0: u64,
    /// With ECT(1).
    pub ect1: u64,
    /// With CE.
    pub ce: u64,
}

impl EcnCounts {
    /// True if no packet was marked, so that an ACK frame without counts will do.
    pub const fn is_empty(&self) -> bool {
        self.ect0 == 0 && self.ect1 == 0 && self.ce == 0
    }
}

/// What was found about a received packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// It was received before, or is too old to tell: ignore it.
    pub duplicate: bool,
}

/// Packets that came when an ACK frame with a higher largest number had left.
#[derive(Debug, Clone, Copy)]
struct Late {
    /// The lowest of them.
    lowest: u64,
    /// ACK frames whose largest number is above this report all of them.
    reported: u64,
}

/// The received packets of one space.
#[derive(Debug)]
pub struct AckTracker {
    received: IntervalSet,
    /// Packets below were received, or are too old to tell.
    forgotten_below: u64,
    /// Packets below need not be reported: the peer knows that we have them.
    reported_below: u64,
    largest: Option<(u64, Time)>,
    largest_ack_eliciting: Option<u64>,
    policy: AckPolicy,
    /// One more than the highest packet number in the last ACK frame; 0 is none.
    reported_end: u64,
    /// Packets that came after the ACK frames which a glance at their number would take to have reported them: the
    /// older ones of a closed group, and those that came since.
    late: [Option<Late>; 2],
    /// The packet before was marked CE.
    congested: bool,
    /// Ack-eliciting packets since the last ACK frame.
    pending: u32,
    /// When the first of them came.
    pending_since: Option<Time>,
    /// Something out of order or marked CE was among them.
    urgent: bool,
    due: bool,
    /// A packet came since the last ACK frame.
    news: bool,
    /// When the last ACK frame left.
    acked_at: Option<Time>,
    ecn: EcnCounts,
    /// Ranges reported at most.
    most_ranges: u8,
}

impl AckTracker {
    /// Gives back memory that is not in use.
    pub fn shrink(&mut self) {
        self.received.shrink_to_fit();
    }

    /// Acknowledges without delay: for Initial and Handshake packets (RFC 9000 section 13.2.1).
    pub fn immediate() -> Self {
        AckTracker::delayed(Duration::ZERO)
    }

    /// Acknowledges after two ack-eliciting packets, or `max_ack_delay` after the first.
    pub fn delayed(max_ack_delay: Duration) -> Self {
        AckTracker {
            received: IntervalSet::new(),
            forgotten_below: 0,
            reported_below: 0,
            largest: None,
            largest_ack_eliciting: None,
            policy: AckPolicy::usual(max_ack_delay),
            reported_end: 0,
            late: [None; 2],
            congested: false,
            pending: 0,
            pending_since: None,
            urgent: false,
            due: false,
            news: false,
            acked_at: None,
            ecn: EcnCounts::default(),
            most_ranges: MAX_REPORTED,
        }
    }

    /// Reports no more ranges than this at a time: [`Laboratory::most_ack_ranges`](crate::Laboratory::most_ack_ranges).
    pub const fn set_most_ranges(&mut self, ranges: u8) {
        self.most_ranges = ranges;
    }

    /// Whether all packets with lower numbers were received, but for those of which nobody can tell any more.
    pub fn has_all_below(&self, packet_number: u64) -> bool {
        let from = self.forgotten_below;
        from >= packet_number
            || self.received.first().is_some_and(|range| range.start <= from && range.end >= packet_number)
    }

    /// True if a packet with this number must not be processed: it was before, or nobody can tell any more.
    pub fn is_duplicate(&self, packet_number: u64) -> bool {
        match self.largest {
            Some((largest, _)) if packet_number <= largest => {
                packet_number < self.forgotten_below || self.received.contains(packet_number)
            }
            _ => false,
        }
    }

    /// Records a packet that was decrypted, before or after its frames are processed.
    pub fn on_packet_received(
        &mut self,
        packet_number: u64,
        now: Time,
        ack_eliciting: bool,
        ecn: Ecn,
    ) -> Received {
        if packet_number < self.forgotten_below
            || !self.received.insert(packet_number..packet_number.saturating_add(1))
        {
            return Received { duplicate: true };
        }
        if self.received.len() > MAX_RANGES {
            self.received.truncate_lowest(MAX_RANGES);
            self.forgotten_below = self.received.first().map_or(0, |range| range.start);
        }
        if packet_number < self.reported_end {
            self.on_late_packet(packet_number);
        }
        self.news = true;
        self.count_ecn(ecn);
        if ack_eliciting {
            self.pending = self.pending.saturating_add(1);
            self.pending_since = self.pending_since.or(Some(now));
            self.urgent |= (ecn == Ecn::Ce && self.is_mark_urgent())
                || match self.policy.reordering {
                    1 => self.is_out_of_order(packet_number),
                    threshold => self.is_beyond(packet_number, threshold),
                };
            self.largest_ack_eliciting = self.largest_ack_eliciting.max(Some(packet_number));
        }
        self.congested = ecn == Ecn::Ce;
        if self.largest.is_none_or(|(largest, _)| packet_number > largest) {
            self.largest = Some((packet_number, now));
        }
        Received { duplicate: false }
    }

    /// A packet below one that was reported already: it is news until an ACK frame that left later is acknowledged.
    #[cold]
    fn on_late_packet(&mut self, packet_number: u64) {
        self.reported_below = self.reported_below.min(packet_number);
        let reported = self.reported_end.saturating_sub(1);
        // A group that never closed would never be known to be reported where packets come late all the time.
        let [older, newer] = &mut self.late;
        let group = if older.is_none_or(|late| late.reported == reported) { older } else { newer };
        let lowest = group.map_or(packet_number, |late| late.lowest.min(packet_number));
        *group = Some(Late { lowest, reported });
    }

    /// RFC 9000 section 13.2.1: a packet below one already received, or above it with others missing between,
    /// tells of loss or reordering, which the peer wants to know at once.
    fn is_out_of_order(&self, packet_number: u64) -> bool {
        let Some(highest) = self.largest_ack_eliciting else { return false };
        if packet_number.checked_sub(1) == Some(highest) {
            return false;
        }
        let contiguous = self.received.last().is_some_and(|range| range.start <= highest.saturating_add(1));
        packet_number < highest || !contiguous
    }

    /// Of marks in a row only the first is urgent to a peer that wants few acknowledgements.
    const fn is_mark_urgent(&self) -> bool {
        self.policy.threshold <= 1 || !self.congested
    }

    /// A packet is missing that the peer, told of the highest, could declare lost and has not been told of; or this
    /// is one that the peer has been given reason to declare lost (draft-ietf-quic-ack-frequency, section 6.2).
    #[inline]
    fn is_beyond(&self, packet_number: u64, threshold: u64) -> bool {
        // Packets below could be declared lost from what was reported.
        let from = self.reported_end.saturating_sub(threshold);
        let in_order = self.received.last().is_some_and(|range| range.start <= from);
        !(in_order && packet_number >= from) && self.is_beyond_gap(packet_number, threshold, from)
    }

    #[inline(never)]
    fn is_beyond_gap(&self, packet_number: u64, threshold: u64, from: u64) -> bool {
        // Each range must have been reported before it is forgotten, however few acknowledgements are wanted.
        let middle = self.received.from_top(MAX_RANGES / 2);
        if middle.is_some_and(|range| range.start >= self.reported_end) {
            return true;
        }
        if threshold == 0 || packet_number < from {
            return threshold > 0;
        }
        let highest = self.largest_ack_eliciting.max(Some(packet_number)).unwrap_or(0);
        // The lowest missing number from there on lies behind a range that ends above it.
        let mut smallest_missing = None;
        let mut above: Option<u64> = None;
        for range in self.received.iter().rev() {
            if let Some(start) = above
                && start > from
            {
                smallest_missing = Some(range.end.max(from));
            }
            if range.start <= from {
                break;
            }
            above = Some(range.start);
        }
        smallest_missing.is_some_and(|missing| highest.saturating_sub(missing) >= threshold)
    }

    fn count_ecn(&mut self, ecn: Ecn) {
        let count = match ecn {
            Ecn::NotEct => return,
            Ecn::Ect0 => &mut self.ecn.ect0,
            Ecn::Ect1 => &mut self.ecn.ect1,
            Ecn::Ce => &mut self.ecn.ce,
        };
        *count = count.saturating_add(1);
    }

    /// The peer wants to be acknowledged like this from now on.
    pub fn set_policy(&mut self, policy: AckPolicy) {
        self.policy = policy;
    }

    /// The peer wants the packets of this batch acknowledged at once.
    pub fn on_immediate_ack(&mut self) {
        self.urgent = true;
    }

    /// A batch of datagrams is over: decides whether it is to be acknowledged at once. `rtt` is the smoothed
    /// round-trip time.
    pub fn on_batch_end(&mut self, now: Time, rtt: Duration) {
        self.due |= self.pending > 0
            && (self.urgent
                || self.pending > self.policy.threshold
                || (self.policy.threshold > 1 && self.is_silent(now, rtt)));
    }

    /// No acknowledgement has left for more than a round trip: what a peer that wants few of them sends first after a
    /// pause shows it how the path has become (draft-ietf-quic-ack-frequency, section 6.1).
    fn is_silent(&self, now: Time, rtt: Duration) -> bool {
        self.acked_at.is_some_and(|at| now.saturating_since(at) > rtt)
    }

    /// True if an ACK frame must be sent now, in a packet of its own if need be.
    pub fn ack_due(&self, now: Time) -> bool {
        self.due || self.ack_deadline().is_some_and(|deadline| now >= deadline)
    }

    /// When [`AckTracker::ack_due`] becomes true by the passing of time; `None` if nothing waits.
    pub fn ack_deadline(&self) -> Option<Time> {
        if self.due {
            return self.pending_since;
        }
        self.pending_since.map(|since| since + self.policy.max_ack_delay)
    }

    /// True if a packet came since the last ACK frame, so that one is worth its room in a packet that goes out
    /// anyway.
    pub const fn has_news(&self) -> bool {
        self.news
    }

    /// What to report, highest range first.
    pub fn ranges(&self) -> impl Iterator<Item = RangeInclusive<u64>> + '_ {
        let below = self.reported_below;
        let ranges = self.received.iter().rev().take_while(move |range| range.end > below);
        ranges.take(usize::from(self.most_ranges)).map(|range| range.start..=range.end.saturating_sub(1))
    }

    /// The highest packet number received and when it came: the start of the delay the ACK frame reports.
    pub const fn largest(&self) -> Option<(u64, Time)> {
        self.largest
    }

    /// The packet number that truncated ones are expanded around: one more than the largest received (RFC 9000
    /// appendix A.3).
    #[inline]
    pub fn next_expected(&self) -> u64 {
        self.largest.map_or(0, |(largest, _)| largest.saturating_add(1))
    }

    /// Marks received so far.
    pub const fn ecn_counts(&self) -> EcnCounts {
        self.ecn
    }

    /// An ACK frame with [`AckTracker::ranges`] left.
    pub fn on_ack_sent(&mut self, now: Time) {
        self.acked_at = Some(now);
        self.reported_end = self.next_expected();
        self.pending = 0;
        self.pending_since = None;
        self.urgent = false;
        self.due = false;
        self.news = false;
    }

    /// An ACK frame whose largest packet number was `largest` has itself been acknowledged: what it reported
    /// need not be reported again (RFC 9000 section 13.2.4).
    pub fn on_ack_acked(&mut self, largest: u64) {
        let [older, newer] = &mut self.late;
        while older.is_some_and(|late| largest > late.reported) {
            *older = newer.take();
        }
        let late = older.iter().chain(newer.iter()).map(|late| late.lowest).min().unwrap_or(u64::MAX);
        // The highest range is always reported, so that there is something to report.
        let highest = self.received.last().map_or(0, |range| range.start);
        let below = largest.saturating_add(1).min(highest).min(late);
        self.reported_below = self.reported_below.max(below);
    }
}

#[cfg(test)]
mod tests;
