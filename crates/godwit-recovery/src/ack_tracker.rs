//! The received packets of one space, and when to acknowledge them (RFC 9000 sections 12.3 and 13.2).
//!
//! The decision falls once per batch of datagrams, in [`AckTracker::on_batch_end`]: a batch of any number of
//! packets is answered by one ACK frame. Packets are remembered as at most [`MAX_RANGES`] ranges; what falls out
//! at the lower end is taken for received, so that nothing is ever processed twice.

use godwit_base::{Ecn, IntervalSet, Time};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Ranges remembered and reported at most.
pub const MAX_RANGES: usize = 128;
/// Ack-eliciting packets that make an acknowledgement due (RFC 9000 section 13.2.2).
const PACKETS_PER_ACK: u32 = 2;

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
    max_ack_delay: Duration,
    /// Ack-eliciting packets since the last ACK frame.
    pending: u32,
    /// When the first of them came.
    pending_since: Option<Time>,
    /// Something out of order or marked CE was among them.
    urgent: bool,
    due: bool,
    /// A packet came since the last ACK frame.
    news: bool,
    immediate: bool,
    ecn: EcnCounts,
}

impl AckTracker {
    /// Gives back memory that is not in use.
    pub fn shrink(&mut self) {
        self.received.shrink_to_fit();
    }

    /// Acknowledges every batch at once: for Initial and Handshake packets (RFC 9000 section 13.2.1).
    pub fn immediate() -> Self {
        AckTracker { immediate: true, ..AckTracker::delayed(Duration::ZERO) }
    }

    /// Acknowledges after two ack-eliciting packets, or `max_ack_delay` after the first.
    pub fn delayed(max_ack_delay: Duration) -> Self {
        AckTracker {
            received: IntervalSet::new(),
            forgotten_below: 0,
            reported_below: 0,
            largest: None,
            largest_ack_eliciting: None,
            max_ack_delay,
            pending: 0,
            pending_since: None,
            urgent: false,
            due: false,
            news: false,
            immediate: false,
            ecn: EcnCounts::default(),
        }
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
        self.reported_below = self.reported_below.min(packet_number);
        self.news = true;
        self.count_ecn(ecn);
        if ack_eliciting {
            self.pending = self.pending.saturating_add(1);
            self.pending_since = self.pending_since.or(Some(now));
            self.urgent |= ecn == Ecn::Ce || self.is_out_of_order(packet_number);
            self.largest_ack_eliciting = self.largest_ack_eliciting.max(Some(packet_number));
        }
        if self.largest.is_none_or(|(largest, _)| packet_number > largest) {
            self.largest = Some((packet_number, now));
        }
        Received { duplicate: false }
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

    fn count_ecn(&mut self, ecn: Ecn) {
        let count = match ecn {
            Ecn::NotEct => return,
            Ecn::Ect0 => &mut self.ecn.ect0,
            Ecn::Ect1 => &mut self.ecn.ect1,
            Ecn::Ce => &mut self.ecn.ce,
        };
        *count = count.saturating_add(1);
    }

    /// A batch of datagrams is over: decides whether it is to be acknowledged at once.
    pub fn on_batch_end(&mut self, _now: Time) {
        self.due |= self.pending > 0 && (self.immediate || self.urgent || self.pending >= PACKETS_PER_ACK);
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
        self.pending_since.map(|since| since + self.max_ack_delay)
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
        ranges.map(|range| range.start..=range.end.saturating_sub(1))
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
    pub fn on_ack_sent(&mut self, _now: Time) {
        self.pending = 0;
        self.pending_since = None;
        self.urgent = false;
        self.due = false;
        self.news = false;
    }

    /// An ACK frame whose largest packet number was `largest` has itself been acknowledged: what it reported
    /// need not be reported again (RFC 9000 section 13.2.4).
    pub fn on_ack_acked(&mut self, largest: u64) {
        // The highest range is always reported, so that there is something to report.
        let highest = self.received.last().map_or(0, |range| range.start);
        self.reported_below = self.reported_below.max(largest.saturating_add(1).min(highest));
    }
}

#[cfg(test)]
mod tests;
