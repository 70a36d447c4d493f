//! What an ACK frame adds up to, path by path.
//!
//! A frame may acknowledge packets that were sent on several paths. Those of the path in use are summed up apart,
//! because nearly always there are no others.

use crate::mtu::Arrived;
use crate::path::{PathRecovery, Paths};
use crate::sent::SentPacket;
use crate::summary::AckSummary;
use crate::tally::{AckTally, SpuriousTally};
use godwit_base::Time;

/// What one ACK frame adds up to, path by path.
#[derive(Debug)]
pub(crate) struct AckTallies {
    pub(crate) summary: AckSummary,
    /// Of the path in use.
    pub(crate) first: AckTally,
    pub(crate) others: Vec<AckTally>,
    prior_largest: Option<u64>,
}

impl AckTallies {
    pub(crate) fn new(in_use: &PathRecovery, prior_largest: Option<u64>) -> Self {
        AckTallies { summary: AckSummary::default(), first: begin(in_use), others: Vec::new(), prior_largest }
    }

    /// A packet is acknowledged that was in flight until now.
    #[inline]
    pub(crate) fn on_acked(&mut self, paths: &mut impl Paths, number: u64, packet: &SentPacket) {
        self.count(number, packet);
        let Some(tally) = self.tally(paths, packet.path) else { return };
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
            tally.count_delivered(number, bytes);
        }
    }

    /// A packet is acknowledged that was declared lost at `at`, and charged to the reduction `event` of the window.
    pub(crate) fn on_spurious(
        &mut self,
        paths: &mut impl Paths,
        number: u64,
        packet: &SentPacket,
        at: Time,
        event: u32,
    ) {
        self.count(number, packet);
        self.summary.spurious = self.summary.spurious.saturating_add(1);
        let behind = self.prior_largest.unwrap_or(0).saturating_sub(number);
        let Some(tally) = self.tally(paths, packet.path) else { return };
        tally.count(packet);
        tally.count_delivered(number, u64::from(packet.bytes));
        if !packet.mtu_probe && event != 0 && !packet.ambiguous {
            let spurious = &mut tally.spurious;
            spurious.packets = spurious.packets.saturating_add(1);
            spurious.bytes = spurious.bytes.saturating_add(u64::from(packet.bytes));
            let events_ago =
                usize::try_from(tally.congestion_event.wrapping_sub(event)).unwrap_or(usize::MAX);
            let of_event = match events_ago.checked_sub(1) {
                None => Some(&mut spurious.of_current_event),
                Some(earlier) => spurious.of_earlier.get_mut(earlier),
            };
            if let Some(count) = of_event {
                *count = count.saturating_add(1);
            }
            spurious.distance = spurious.distance.max(behind);
            spurious.verdict_after = spurious.verdict_after.max(at.saturating_since(packet.sent_at));
        }
    }

    #[inline]
    fn count(&mut self, number: u64, packet: &SentPacket) {
        let summary = &mut self.summary;
        // There are no more than are remembered, which 32 bits can count.
        summary.newly_acked = summary.newly_acked.wrapping_add(1);
        summary.newly_acked_ack_eliciting =
            summary.newly_acked_ack_eliciting.wrapping_add(u32::from(packet.ack_eliciting));
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
                self.others.push(begin(paths.find(path)?));
                self.others.len().saturating_sub(1)
            }
        };
        self.others.get_mut(at)
    }
}

/// Nothing has been acknowledged on this path yet.
#[inline]
fn begin(path: &PathRecovery) -> AckTally {
    AckTally {
        path: path.id(),
        packets: 0,
        ack_eliciting: 0,
        bytes: 0,
        growth_bytes: 0,
        delivered: 0,
        newest_delivered: None,
        largest_sample: None,
        rtt_sample: None,
        ambiguous: false,
        mtu_probe_acked: None,
        arrived: Arrived::default(),
        spurious: SpuriousTally::default(),
        full_above: path.full_above(),
        ecn_since: path.ecn().since(),
        recovery_start: path.recovery_start(),
        congestion_event: path.congestion_event(),
    }
}
