//! Declaring packets lost (RFC 9002 section 6.1).

use crate::path::Paths;
use crate::sent::{SentPacket, State};
use crate::space::SpaceRecovery;
use crate::summary::{LossSummary, LossTally, Outcome};
use godwit_base::Time;

impl<T: Copy> SpaceRecovery<T> {
    /// Declares lost what is below the largest acknowledged packet by the packet threshold or old by the time
    /// threshold, and sets the time of the next loss.
    pub(crate) fn detect_lost(
        &mut self,
        paths: &mut impl Paths,
        now: Time,
        outcome: &mut impl FnMut(Outcome, T),
    ) -> LossSummary {
        self.loss_time = None;
        let mut summary = LossSummary::default();
        let Some(largest) = self.largest_acked else { return summary };
        let path = paths.concerned();
        let delay = path.reorder.time_threshold(&path.rtt);
        let threshold = path.reorder.packet_threshold();
        let mut tally = LossTally::default();
        while self.cursor < largest {
            let number = self.cursor;
            let Some(packet) = self.sent.get_mut(number) else { break };
            match packet.state {
                State::Acked { run } => {
                    self.persistent.reset();
                    self.cursor = self.cursor.saturating_add(u64::from(run.max(1)));
                    continue;
                }
                State::Sent => {}
                State::Lost { .. } | State::Skipped => {
                    self.cursor = self.cursor.saturating_add(1);
                    continue;
                }
            }
            let due = packet.sent_at + delay;
            let path = paths.concerned();
            // What was sent on a path that was left is compared with whatever came after it.
            let by = if packet.path == path.id() { self.overtaken_by.unwrap_or(0) } else { largest };
            if by <= number {
                break;
            }
            if by.saturating_sub(number) < threshold && now < due {
                self.loss_time = Some(due);
                break;
            }
            let lost = *packet;
            let (event, is_next) = path.event_of_loss(&lost);
            packet.state = State::Lost { at: now, event };
            self.cursor = self.cursor.saturating_add(1);
            if lost.in_flight && lost.ack_eliciting {
                self.ack_eliciting_in_flight = self.ack_eliciting_in_flight.saturating_sub(1);
            }
            summary.packets = summary.packets.saturating_add(1);
            tally.packets_since_reduction = tally.packets_since_reduction.saturating_add(u32::from(is_next));
            self.account(paths, now, (number, &lost), &mut tally, &mut summary);
            self.sent.for_each_token(number, |token| outcome(Outcome::Lost, token));
        }
        if summary.packets > 0 {
            summary.bytes = tally.bytes;
            paths.concerned().on_lost(now, &tally, &mut summary);
        }
        summary
    }

    /// Charges a lost packet to its path.
    fn account(
        &mut self,
        paths: &mut impl Paths,
        now: Time,
        (number, lost): (u64, &SentPacket),
        tally: &mut LossTally,
        summary: &mut LossSummary,
    ) {
        let path = paths.concerned();
        if lost.path != path.id() {
            if let Some(other) = paths.other(lost.path) {
                other.on_lost_aside(lost);
            }
            return;
        }
        let refused = path.was_refused(lost);
        if lost.marked && !refused {
            path.ecn.on_marked_lost(lost.sent_at);
        }
        if !lost.in_flight {
            return;
        }
        tally.bytes = tally.bytes.saturating_add(u64::from(lost.bytes));
        if lost.mtu_probe {
            summary.mtu_probe_lost = Some(usize::from(lost.bytes));
            path.on_mtu_probe_lost(now, lost.bytes);
            return;
        }
        if refused {
            return;
        }
        tally.packets = tally.packets.saturating_add(1);
        tally.newest = tally.newest.max(Some(lost.sent_at));
        let snapshot = if path.is_sampling() { self.sent.snapshot(number) } else { None };
        path.on_packet_lost(now, lost, snapshot);
        // Only packets sent after the first sample count (RFC 9002 section 7.6.2).
        if lost.ack_eliciting && path.rtt.first_sample_at().is_some_and(|first| lost.sent_at > first) {
            tally.longest_run = tally.longest_run.max(self.persistent.on_lost(lost.sent_at));
        }
    }
}
