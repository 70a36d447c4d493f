//! What an ACK frame, and a pass of loss detection, add up to before the paths are told.
//!
//! A frame may acknowledge packets that were sent on several paths. Those of the path in use are summed up apart, because
//! nearly always there are no others.

use crate::PathRecovery;
use crate::mtu::Arrived;
use crate::path::Paths;
use crate::sent::SentPacket;
use crate::summary::AckSummary;
use godwit_base::Time;
use std::time::Duration;

/// An ACK frame: when it came, and what it says beyond its ranges.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AckArrival {
    pub(crate) now: Time,
    pub(crate) largest: u64,
    pub(crate) delay: Duration,
}

/// What one ACK frame adds up to, path by path.
#[derive(Debug)]
pub(crate) struct AckTallies {
    pub(crate) summary: AckSummary,
    /// Of the path in use.
    pub(crate) first: AckTally,
    pub(crate) others: Vec<AckTally>,
    prior_largest: Option<u64>,
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
    /// The largest packet on this path newly acknowledged: number and time of sending.
    pub(crate) largest_sample: Option<(u64, Time)>,
    /// The round-trip time sample taken.
    pub(crate) rtt_sample: Option<Duration>,
    pub(crate) mtu_probe_acked: Option<u16>,
    /// The newest packets newly acknowledged on this path, by size.
    pub(crate) arrived: Arrived,
    pub(crate) spurious: SpuriousTally,
    full_above: u16,
    sampling: bool,
    ecn_since: Time,
    recovery_start: Option<Time>,
    congestion_event: u32,
}

impl AckTallies {
    pub(crate) fn new(in_use: &PathRecovery, prior_largest: Option<u64>) -> Self {
        AckTallies {
            summary: AckSummary::default(),
            first: AckTally::new(in_use),
            others: Vec::new(),
            prior_largest,
        }
    }

    /// A packet is acknowledged that was in flight until now. True if its path takes delivery-rate samples.
    #[inline]
    pub(crate) fn on_acked(&mut self, paths: &mut impl Paths, number: u64, packet: &SentPacket) -> bool {
        self.count(number, packet);
        let Some(tally) = self.tally(paths, packet.path) else { return false };
        tally.count(packet);
        if tally.largest_sample.is_none_or(|(largest, _)| largest < number) {
            tally.largest_sample = Some((number, packet.sent_at));
        }
        if packet.in_flight {
            let bytes = u64::from(packet.bytes);
            tally.bytes = tally.bytes.saturating_add(bytes);
            if tally.recovery_start.is_none_or(|start| packet.sent_at > start) {
                tally.growth_bytes = tally.growth_bytes.saturating_add(bytes);
            }
            tally.ack_eliciting = tally.ack_eliciting.saturating_add(u64::from(packet.ack_eliciting));
        }
        tally.sampling
    }

    /// A packet is acknowledged that was declared lost at `at`, and charged to the reduction `event` of the window. True if
    /// its path takes delivery-rate samples.
    pub(crate) fn on_spurious(
        &mut self,
        paths: &mut impl Paths,
        number: u64,
        packet: &SentPacket,
        at: Time,
        event: u32,
    ) -> bool {
        self.count(number, packet);
        self.summary.spurious = self.summary.spurious.saturating_add(1);
        let behind = self.prior_largest.unwrap_or(0).saturating_sub(number);
        let Some(tally) = self.tally(paths, packet.path) else { return false };
        tally.count(packet);
        if !packet.mtu_probe && event != 0 {
            let spurious = &mut tally.spurious;
            spurious.packets = spurious.packets.saturating_add(1);
            if event == tally.congestion_event {
                spurious.of_current_event = spurious.of_current_event.saturating_add(1);
            }
            spurious.distance = spurious.distance.max(behind);
            spurious.verdict_after = spurious.verdict_after.max(at.saturating_since(packet.sent_at));
        }
        tally.sampling
    }

    #[inline]
    fn count(&mut self, number: u64, packet: &SentPacket) {
        let summary = &mut self.summary;
        summary.newly_acked = summary.newly_acked.saturating_add(1);
        summary.newly_acked_ack_eliciting |= packet.ack_eliciting;
        summary.largest_newly_acked = summary.largest_newly_acked.max(Some(number));
        let (ecn, marked) = (&mut summary.ecn, u64::from(packet.marked));
        if packet.path == self.first.path {
            ecn.packets = ecn.packets.wrapping_add(marked);
            ecn.proof |= packet.marked & (packet.sent_at >= self.first.ecn_since);
        } else {
            ecn.elsewhere = ecn.elsewhere.wrapping_add(marked);
        }
    }

    /// That of the path with this id, if there still is such a path.
    #[inline]
    fn tally(&mut self, paths: &mut impl Paths, path: u16) -> Option<&mut AckTally> {
        if path == self.first.path { Some(&mut self.first) } else { self.other(paths, path) }
    }

    #[cold]
    fn other(&mut self, paths: &mut impl Paths, path: u16) -> Option<&mut AckTally> {
        let at = match self.others.iter().position(|tally| tally.path == path) {
            Some(at) => at,
            None => {
                self.others.push(AckTally::new(paths.find(path)?));
                self.others.len().saturating_sub(1)
            }
        };
        self.others.get_mut(at)
    }
}

impl AckTally {
    #[inline]
    fn new(path: &PathRecovery) -> Self {
        AckTally {
            path: path.id(),
            packets: 0,
            ack_eliciting: 0,
            bytes: 0,
            growth_bytes: 0,
            largest_sample: None,
            rtt_sample: None,
            mtu_probe_acked: None,
            arrived: Arrived::default(),
            spurious: SpuriousTally::default(),
            full_above: path.full_above(),
            sampling: path.is_sampling(),
            ecn_since: path.ecn().since(),
            recovery_start: path.recovery_start(),
            congestion_event: path.congestion_event(),
        }
    }

    #[inline]
    fn count(&mut self, packet: &SentPacket) {
        self.packets = self.packets.saturating_add(1);
        if packet.mtu_probe {
            self.mtu_probe_acked = Some(packet.bytes);
        }
        let Arrived { full, lesser } = &mut self.arrived;
        let newest = if packet.bytes > self.full_above { full } else { lesser };
        *newest = (*newest).max(Some(packet.sent_at));
    }
}

/// What late acknowledgements say about reordering on the path.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SpuriousTally {
    pub(crate) packets: u32,
    /// How many of them were charged to the current reduction of the window.
    pub(crate) of_current_event: u32,
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
