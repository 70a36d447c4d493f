//! What an ACK frame, and a pass of loss detection, add up to on a path before it is told.
//!
//! Plain records; what a frame says of several paths is told apart in [`crate::tallies`].

use crate::congestion::REMEMBERED;
use crate::mtu::Arrived;
use crate::sent::SentPacket;
use godwit_base::Time;
use std::time::Duration;

/// An ACK frame: when it came, and what it says beyond its ranges.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AckArrival {
    pub(crate) now: Time,
    pub(crate) largest: u64,
    pub(crate) delay: Duration,
}

/// What one ACK frame adds up to on one path.
#[derive(Debug)]
pub(crate) struct AckTally {
    /// The id of the path.
    pub(crate) path: u16,
    /// Packets newly acknowledged, those once believed lost included.
    pub(crate) packets: u32,
    /// Ack-eliciting packets that leave the path's flight.
    pub(crate) ack_eliciting: u64,
    /// Bytes that leave the path's flight.
    pub(crate) bytes: u64,
    /// Those of them sent since the last reduction of the window: only they can make it grow.
    pub(crate) growth_bytes: u64,
    /// Bytes that have arrived, those once believed lost included, and the number of the newest packet of them: for
    /// delivery-rate samples.
    pub(crate) delivered: u64,
    pub(crate) newest_delivered: Option<u64>,
    /// The largest packet on this path newly acknowledged: number and time of sending.
    pub(crate) largest_sample: Option<(u64, Time)>,
    /// The round-trip time sample taken.
    pub(crate) rtt_sample: Option<Duration>,
    /// There would be one, but for [`Laboratory::ambiguous_repeats`](crate::Laboratory::ambiguous_repeats).
    pub(crate) ambiguous: bool,
    pub(crate) mtu_probe_acked: Option<u16>,
    /// The newest packets newly acknowledged on this path, by size.
    pub(crate) arrived: Arrived,
    pub(crate) spurious: SpuriousTally,
    /// What the path was like before: packets above this size tell of its MTU,
    pub(crate) full_above: u16,
    /// marks count that were sent since then,
    pub(crate) ecn_since: Time,
    /// and its window was last reduced then, for the event with this number.
    pub(crate) recovery_start: Option<Time>,
    pub(crate) congestion_event: u32,
}

impl AckTally {
    /// A packet has arrived that counts, or counted, as in flight.
    #[inline]
    pub(crate) fn count_delivered(&mut self, number: u64, bytes: u64) {
        self.delivered = self.delivered.saturating_add(bytes);
        self.newest_delivered = self.newest_delivered.max(Some(number));
    }

    /// A packet is newly acknowledged.
    #[inline]
    pub(crate) fn count(&mut self, packet: &SentPacket) {
        // No more than are remembered.
        self.packets = self.packets.wrapping_add(1);
        if packet.mtu_probe {
            self.mtu_probe_acked = Some(packet.bytes);
        }
        let Arrived { full, lesser } = &mut self.arrived;
        let newest = if packet.bytes > self.full_above { full } else { lesser };
        *newest = (*newest).max(Some(packet.sent_at));
    }
}

/// Reductions before the current one that losses can still be charged to.
pub(crate) const EARLIER: usize = REMEMBERED - 1;

/// What late acknowledgements say about reordering on the path.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SpuriousTally {
    pub(crate) packets: u32,
    pub(crate) bytes: u64,
    /// How many of them were charged to the current reduction of the window,
    pub(crate) of_current_event: u32,
    /// and to those before it, the newest first.
    pub(crate) of_earlier: [u32; EARLIER],
    /// The farthest a packet came behind the largest acknowledged one, in packets.
    pub(crate) distance: u64,
    /// The longest time between sending and the wrong verdict.
    pub(crate) verdict_after: Duration,
}

/// What one pass of loss detection tells the path.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LossTally {
    /// Bytes that leave the path's flight.
    pub(crate) bytes: u64,
    /// Packets that mean congestion.
    pub(crate) packets: u32,
    /// Those of them sent after the last reduction of the window.
    pub(crate) packets_since_reduction: u32,
    /// When the newest of those was sent.
    pub(crate) newest: Option<Time>,
    /// The time spanned by the longest run of lost packets.
    pub(crate) longest_run: Duration,
}
