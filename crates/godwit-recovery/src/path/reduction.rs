//! Reductions of a path's window: when losses and marks make one, and when it is undone (RFC 9002 sections 7.3.2 and
//! 7.6, RFC 9438 section 4.9).

use super::PathRecovery;
use crate::prr::{Delivery, Prr};
use crate::sent::SentPacket;
use crate::summary::LossSummary;
use crate::tally::{EARLIER, LossTally, SpuriousTally};
use godwit_base::Time;

/// Lost packets of this many PTO periods make persistent congestion (RFC 9002 section 7.6.1,
/// `kPersistentCongestionThreshold`).
const PERSISTENT_CONGESTION_THRESHOLD: u32 = 3;

/// The reduction of the window that losses are charged to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CongestionEvent {
    /// Counts reductions; 0 is none yet.
    pub(super) number: u32,
    /// Packets charged to it and not acknowledged after all.
    outstanding: u32,
    /// It can be undone: it was made for loss, and not for persistent congestion or ECN.
    reversible: bool,
    /// Packets sent until then belong to it.
    pub(super) start: Option<Time>,
    /// `start` of the event before.
    previous_start: Option<Time>,
    /// Those before it, the newest first: packets that are still charged to them, or `None` if they cannot be undone.
    earlier: [Option<u32>; EARLIER],
}

impl CongestionEvent {
    /// The earlier ones of the next, with so many packets more charged to this one.
    fn earlier_then(&self, packets: u32) -> [Option<u32>; EARLIER] {
        let this = self.reversible.then(|| self.outstanding.saturating_add(packets));
        let mut earlier = [this; EARLIER];
        for (to, from) in earlier.iter_mut().skip(1).zip(self.earlier) {
            *to = from;
        }
        earlier
    }
}

impl PathRecovery {
    /// Which reduction of the window a packet found lost now is charged to, and whether that is the next one: a
    /// packet sent before the last reduction has had its answer. 0 if the loss does not mean congestion here.
    pub(crate) fn event_of_loss(&self, lost: &SentPacket) -> (u32, bool) {
        let CongestionEvent { number, start, .. } = self.event;
        if !lost.in_flight || lost.mtu_probe || self.was_refused(lost) {
            (0, false)
        } else if start.is_some_and(|start| lost.sent_at <= start) {
            (number, false)
        } else {
            (number.wrapping_add(1).max(1), true)
        }
    }

    /// The peer reported CE marks for packets, the newest of which was sent at `sent_at` (RFC 9002 section 7.1).
    pub fn on_congestion_experienced(&mut self, now: Time, sent_at: Time) {
        self.on_congestion(now, sent_at, None);
        // Should the losses of this round trip turn out spurious, the marks are still reason enough.
        self.event.reversible = false;
    }

    /// A retransmission timer went off ([`Laboratory::retransmission_timer`](crate::Laboratory::retransmission_timer)),
    /// and all that was under way was given up: the window falls to its least, for a path from which nothing has come
    /// since the timer before too (RFC 5681 section 3.1).
    pub fn on_retransmission_timeout(&mut self, now: Time) {
        if self.pto_count <= 1 {
            self.on_congestion(now, now, Some(&LossTally::default()));
        }
        self.prr = None;
        self.resume = None;
        self.controller.on_persistent_congestion();
    }

    /// The path's share of one pass of loss detection.
    pub(crate) fn on_lost(&mut self, now: Time, tally: &LossTally, summary: &mut LossSummary) {
        self.on_bytes_left(tally.bytes);
        self.stats.packets_lost = self.stats.packets_lost.saturating_add(u64::from(tally.packets));
        self.stats.bytes_lost = self.stats.bytes_lost.saturating_add(tally.bytes);
        let Some(newest) = tally.newest else { return };
        summary.congestion = self.on_congestion(now, newest, Some(tally));
        let limit = self.pto().saturating_mul(PERSISTENT_CONGESTION_THRESHOLD);
        if tally.longest_run > limit {
            summary.persistent_congestion = true;
            self.stats.persistent_congestion = self.stats.persistent_congestion.saturating_add(1);
            self.event.reversible = false;
            self.event.earlier = [None; EARLIER];
            self.event.start = None;
            self.prr = None;
            self.resume = None;
            self.rtt.on_persistent_congestion();
            self.controller.on_persistent_congestion();
        }
    }

    /// Reduces the window, unless the newest packet concerned was sent before the last reduction. There is
    /// no tally for ECN.
    fn on_congestion(&mut self, now: Time, newest: Time, losses: Option<&LossTally>) -> bool {
        let tally = losses.copied().unwrap_or_default();
        if self.event.start.is_some_and(|start| newest <= start) {
            self.event.outstanding = self.event.outstanding.saturating_add(tally.packets);
            return false;
        }
        self.event = CongestionEvent {
            number: self.event.number.wrapping_add(1).max(1),
            outstanding: tally.packets_since_reduction,
            reversible: tally.packets_since_reduction > 0,
            start: Some(now),
            previous_start: self.event.start,
            earlier: self.event.earlier_then(tally.packets.saturating_sub(tally.packets_since_reduction)),
        };
        self.stats.congestion_events = self.stats.congestion_events.saturating_add(1);
        self.reorder.on_loss_event();
        match losses {
            Some(_) => self.controller.on_congestion(now),
            None => self.controller.on_ce_congestion(now),
        }
        if let Some(resume) = &mut self.resume {
            match resume.on_congestion() {
                Some(window) => {
                    self.controller.set_window(window, Some(window));
                    self.event.reversible = false;
                }
                None => self.resume = None,
            }
        }
        // What has just been found lost was in flight until now.
        let in_flight = self.in_flight.saturating_add(tally.bytes);
        let spreads = self.in_flight > 0 && self.controller.wants_prr();
        self.prr = spreads.then(|| Box::new(Prr::begin(in_flight, u64::from(self.mtu()))));
        true
    }

    /// An ACK frame acknowledges so many bytes, the newest of them sent at `sent_at`, and shows these losses: what may
    /// leave while a reduction is being recovered, which is over when something is acknowledged that was sent since.
    pub(super) fn reduce_proportionally(&mut self, sent_at: Time, delivered: u64, lost: &LossSummary) {
        if self.event.start.is_none_or(|start| sent_at > start) {
            self.prr = None;
        }
        let (in_flight, ssthresh, mtu) = (self.in_flight, self.controller.window(), u64::from(self.mtu()));
        let Some(prr) = &mut self.prr else { return };
        if lost.congestion {
            prr.on_first_ack(delivered);
        }
        prr.on_ack(&Delivery { delivered, in_flight, ssthresh, mtu, safe: lost.packets == 0 });
    }

    /// Packets believed lost were acknowledged: widens the thresholds, and undoes the reduction of the window
    /// if nothing is left of its reason (RFC 9438 section 4.9).
    pub(crate) fn on_spurious(&mut self, tally: SpuriousTally) {
        if tally.packets == 0 {
            return;
        }
        self.stats.spurious_losses = self.stats.spurious_losses.saturating_add(u64::from(tally.packets));
        self.reorder.on_spurious(&tally, &self.rtt);
        if let Some(custom) = self.controller.detailed_mut() {
            custom.on_late(tally.packets, tally.bytes);
        }
        self.undo_earlier(&tally);
        let event = &mut self.event;
        if tally.of_current_event == 0 {
            return;
        }
        event.outstanding = event.outstanding.saturating_sub(tally.of_current_event);
        if event.outstanding == 0 && event.reversible {
            event.reversible = false;
            event.start = event.previous_start;
            self.prr = None;
            self.stats.congestion_undone = self.stats.congestion_undone.saturating_add(1);
            self.controller.on_spurious_congestion();
        }
    }

    /// The same for reductions that others have followed: where packets keep coming late, the next ones are charged to
    /// another reduction before the first ones have come, and without this none of them would ever be undone.
    fn undo_earlier(&mut self, tally: &SpuriousTally) {
        let charged = self.event.earlier.iter_mut().zip(tally.of_earlier).enumerate();
        for (at, (outstanding, late)) in charged {
            let Some(packets) = outstanding.as_mut().filter(|_| late > 0) else { continue };
            *packets = packets.saturating_sub(late);
            if *packets == 0 {
                *outstanding = None;
                if self.controller.on_spurious_earlier(at.saturating_add(1)) {
                    self.stats.congestion_undone = self.stats.congestion_undone.saturating_add(1);
                }
            }
        }
    }
}
