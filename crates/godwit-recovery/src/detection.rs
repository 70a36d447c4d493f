//! Declaring packets lost (RFC 9002 section 6.1).

use crate::loss::PersistentRun;
use crate::path::PathRecovery;
use crate::sent::{SentPacket, State};
use crate::space::SpaceRecovery;
use crate::summary::{LossSummary, Outcome};
use crate::tally::LossTally;
use godwit_base::Time;

impl<T: Copy> SpaceRecovery<T> {
    /// Declares lost, of what was sent on one path, what is below its largest acknowledged packet by the packet
    /// threshold or old by the time threshold, and sets the time of the next loss.
    ///
    /// On a path that is not in use any more, packets are late after anything sent later was acknowledged, on whatever
    /// path: what would overtake them is not sent there. They have the time that packets have on their own path.
    pub(crate) fn detect_lost(
        &mut self,
        path: &mut PathRecovery,
        now: Time,
        outcome: &mut impl FnMut(Outcome, T),
    ) -> LossSummary {
        let mut summary = LossSummary::default();
        let (id, in_use) = (path.id(), path.is_in_use());
        let delay = path.reorder.time_threshold(&path.rtt);
        let threshold = path.reorder.packet_threshold();
        let flight = path.flights.of_mut(self.id());
        flight.loss_time = None;
        let overtaken_by = flight.largest_acked.unwrap_or(0);
        let late_below = if in_use { overtaken_by } else { self.largest_acked.unwrap_or(0) };
        let (mut cursor, mut persistent) = (flight.cursor.max(self.sent.base()), flight.persistent);
        let (mut tally, mut loss_time, mut ack_eliciting) = (LossTally::default(), None, 0_u64);
        while cursor < late_below {
            let number = cursor;
            let Some(packet) = self.sent.get_mut(number) else { break };
            match packet.state {
                State::Acked { run } => {
                    persistent.reset();
                    cursor = cursor.saturating_add(u64::from(run.max(1)));
                    continue;
                }
                State::Sent if packet.path == id => {}
                State::Sent | State::Lost { .. } | State::Skipped => {
                    cursor = cursor.saturating_add(1);
                    continue;
                }
            }
            let due = packet.sent_at + delay;
            if overtaken_by.saturating_sub(number) < threshold && now < due {
                loss_time = Some(due);
                break;
            }
            let lost = *packet;
            let (event, is_next) = path.event_of_loss(&lost);
            packet.state = State::Lost { at: now, event };
            cursor = cursor.saturating_add(1);
            ack_eliciting = ack_eliciting.saturating_add(u64::from(lost.in_flight && lost.ack_eliciting));
            summary.packets = summary.packets.saturating_add(1);
            tally.packets_since_reduction = tally.packets_since_reduction.saturating_add(u32::from(is_next));
            self.account(path, now, (number, &lost), (&mut tally, &mut persistent), &mut summary);
            self.sent.for_each_token(number, |token| outcome(Outcome::Lost, token));
        }
        if cursor >= late_below {
            // What is next is acknowledged. It may be forgotten by the time something is lost after it.
            persistent.reset();
        }
        let flight = path.flights.of_mut(self.id());
        (flight.cursor, flight.persistent, flight.loss_time) = (cursor, persistent, loss_time);
        flight.on_ack_eliciting_left(ack_eliciting);
        if summary.packets > 0 {
            summary.bytes = tally.bytes;
            path.on_lost(now, &tally, &mut summary);
        }
        summary
    }

    /// Charges a lost packet to its path.
    fn account(
        &self,
        path: &mut PathRecovery,
        now: Time,
        (number, lost): (u64, &SentPacket),
        (tally, persistent): (&mut LossTally, &mut PersistentRun),
        summary: &mut LossSummary,
    ) {
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
            tally.longest_run = tally.longest_run.max(persistent.on_lost(lost.sent_at));
        }
    }
}
