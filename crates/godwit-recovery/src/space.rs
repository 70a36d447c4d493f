//! The sent packets of one packet number space (RFC 9002 section 6 and appendix A).
//!
//! Inputs: [`SpaceRecovery::on_packet_sent`], [`SpaceRecovery::on_ack_received`],
//! [`SpaceRecovery::on_loss_timer`]. Output: tokens with their [`Outcome`], through the callback of the call
//! that decided it.
//!
//! Invariants: packets are declared lost in order of their numbers, because both thresholds are monotonic in
//! it; so `cursor`, the lowest packet whose fate is open, only ever rises and each packet is looked at once. A
//! packet is handed out once as acknowledged, or once as lost and then at most once as spurious.

use crate::ecn::{EcnAcked, EcnFailure, EcnLedger};
use crate::loss::PersistentRun;
use crate::mtu::Arrived;
use crate::path::Paths;
use crate::sent::{SentPacket, SentRing, State};
pub use crate::summary::{AckError, AckSummary, LossSummary, Outcome, SentInfo, SpaceId};
use crate::summary::{AckTally, SpuriousTally};
use crate::{EcnCounts, PathRecovery};
use godwit_base::{Rng, Time};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Sent packets and loss detection of one packet number space.
#[derive(Debug)]
pub struct SpaceRecovery<T> {
    id: SpaceId,
    pub(crate) sent: SentRing<T>,
    next: u64,
    /// The packet number to leave out next; only the Data space leaves any out.
    skip_at: Option<u64>,
    skip_interval: u64,
    pub(crate) largest_acked: Option<u64>,
    /// The highest packet number acknowledged of those sent on the active path: what overtakes on another path
    /// does not make a packet late.
    pub(crate) overtaken_by: Option<u64>,
    /// The lowest packet number not yet acknowledged or declared lost.
    pub(crate) cursor: u64,
    pub(crate) loss_time: Option<Time>,
    pub(crate) ack_eliciting_in_flight: u64,
    last_ack_eliciting: Option<Time>,
    pub(crate) persistent: PersistentRun,
    ecn: EcnLedger,
}

/// The first packet number left out lies below this plus [`FIRST_SKIP_SPREAD`].
const FIRST_SKIP: u64 = 64;
const FIRST_SKIP_SPREAD: u64 = 256;
/// Skips grow rarer up to this distance: each costs the peer a range and an early acknowledgement.
const MAX_SKIP_INTERVAL: u64 = 1 << 16;
/// Packets remembered at most. What is in flight is bounded by the window; this bounds packets that only
/// acknowledge, which a peer can provoke without ever acknowledging anything itself.
const MAX_TRACKED: usize = 1 << 17;
/// Packets remembered when no more data is sent: a quarter is left for acknowledgements.
const MAX_TRACKED_WITH_DATA: usize = MAX_TRACKED - MAX_TRACKED / 4;

impl<T: Copy> SpaceRecovery<T> {
    /// An empty space whose first packet number is 0.
    pub fn new(id: SpaceId) -> Self {
        SpaceRecovery {
            id,
            sent: SentRing::new(),
            next: 0,
            skip_at: None,
            skip_interval: FIRST_SKIP,
            largest_acked: None,
            overtaken_by: None,
            cursor: 0,
            loss_time: None,
            ack_eliciting_in_flight: 0,
            last_ack_eliciting: None,
            persistent: PersistentRun::default(),
            ecn: EcnLedger::default(),
        }
    }

    /// Begins with the packet number `first`: those below were used elsewhere, for packets that nobody waits to be
    /// acknowledged. To be called before anything is sent.
    pub fn begin_at(&mut self, first: u64) {
        debug_assert!(self.next == 0 && self.largest_acked.is_none(), "only the first packet can be chosen");
        self.next = first;
        self.cursor = first;
        self.sent.begin_at(first);
    }

    /// Gives back memory that is not in use.
    pub fn shrink(&mut self) {
        self.sent.shrink();
    }

    /// Which space this is.
    pub const fn id(&self) -> SpaceId {
        self.id
    }

    /// The packet number for the next packet. The same is given until [`SpaceRecovery::on_packet_sent`].
    ///
    /// In the Data space a number is left out now and then, so that a peer that acknowledges what it did not
    /// receive is caught (RFC 9000 section 21.4).
    pub fn next_packet_number(&mut self, rng: &mut (impl Rng + ?Sized)) -> u64 {
        if self.id != SpaceId::Data {
            return self.next;
        }
        match self.skip_at {
            None => self.skip_at = Some(FIRST_SKIP.saturating_add(rng.below(FIRST_SKIP_SPREAD))),
            Some(at) if self.next >= at => {
                self.skip_interval = self.skip_interval.saturating_mul(2).min(MAX_SKIP_INTERVAL);
                let distance = self.skip_interval.saturating_add(rng.below(self.skip_interval));
                self.sent.push(SentPacket::skipped(), &[]);
                self.next = self.next.saturating_add(1);
                self.skip_at = Some(self.next.saturating_add(distance));
            }
            Some(_) => {}
        }
        self.next
    }

    /// Records a packet and what it carried. Its number must be what
    /// [`SpaceRecovery::next_packet_number`] gave last; another is ignored.
    pub fn on_packet_sent(&mut self, path: &mut PathRecovery, info: SentInfo, tokens: &[T]) {
        debug_assert_eq!(
            info.packet_number, self.next,
            "packet numbers are sent in the order they are given"
        );
        if info.packet_number != self.next {
            return;
        }
        self.next = self.next.saturating_add(1);
        if self.sent.len() >= MAX_TRACKED {
            self.forget_front();
        }
        let snapshot = if info.in_flight { path.snapshot(info.now, info.bytes) } else { None };
        self.sent.push_with(SentPacket::new(&info, path.id()), snapshot, tokens);
        if info.marked {
            self.ecn.on_marked_sent();
            path.ecn.on_marked_sent(info.now);
        }
        if info.in_flight {
            path.on_in_flight_sent(info.now, info.bytes, info.ack_eliciting);
            if info.mtu_probe {
                path.on_mtu_probe_sent(info.bytes);
            }
            if info.ack_eliciting {
                self.ack_eliciting_in_flight = self.ack_eliciting_in_flight.saturating_add(1);
                self.last_ack_eliciting = Some(info.now);
            }
        } else {
            path.on_other_sent(info.bytes);
        }
    }

    /// False if so many packets are unacknowledged that data should wait as it does for the window, so that
    /// what is left of the memory serves acknowledgements.
    pub fn has_room_for_data(&self) -> bool {
        self.sent.len() < MAX_TRACKED_WITH_DATA
    }

    /// True if so many packets are unacknowledged that no more should be sent until the peer acknowledges
    /// some. Only a peer that provokes acknowledgements and never sends any gets a connection there; closing
    /// the connection is right.
    pub fn is_full(&self) -> bool {
        self.sent.len() >= MAX_TRACKED
    }

    /// Makes room at the cap by forgetting the oldest packet, if nothing depends on it.
    fn forget_front(&mut self) {
        let disposable = self.sent.front().is_some_and(|packet| !packet.is_outstanding_in_flight());
        if disposable {
            self.sent.pop_front();
            self.cursor = self.cursor.max(self.sent.base());
        }
    }

    /// Takes in an ACK frame: `ranges` descending, `ack_delay` scaled and, once the handshake is confirmed,
    /// capped at the peer's max_ack_delay. Loss detection runs as well.
    ///
    /// It concerns one of `paths`; packets that were sent on others are credited to those.
    ///
    /// The work is bounded by the packets newly acknowledged and the number of ranges, however far the ranges
    /// reach.
    ///
    /// # Errors
    /// If a number is acknowledged that was not sent.
    pub fn on_ack_received(
        &mut self,
        paths: &mut impl Paths,
        now: Time,
        largest: u64,
        ack_delay: Duration,
        ranges: impl Iterator<Item = RangeInclusive<u64>>,
        outcome: &mut impl FnMut(Outcome, T),
    ) -> Result<AckSummary, AckError> {
        if largest >= self.next {
            return Err(AckError { packet_number: largest });
        }
        let mut tally = AckTally::new(now, paths.concerned(), self.largest_acked);
        for range in ranges {
            if *range.end() > largest {
                return Err(AckError { packet_number: *range.end() });
            }
            self.ack_range(paths, range, &mut tally, outcome)?;
        }
        tally.summary.ecn.in_order = self.largest_acked.is_none_or(|before| before < largest);
        tally.summary.ecn.newest_sent_at = tally.largest_sample.map(|(_, sent_at)| sent_at);
        self.largest_acked = Some(self.largest_acked.map_or(largest, |before| before.max(largest)));
        self.overtaken_by = self.overtaken_by.max(tally.largest_sample.map(|(number, _)| number));
        if tally.summary.newly_acked == 0 {
            return Ok(tally.summary);
        }
        if tally.summary.newly_acked_ack_eliciting
            && let Some((number, sent_at)) = tally.largest_sample
            && number == largest
        {
            let sample = now.saturating_since(sent_at);
            paths.concerned().on_rtt_sample(now, sample, ack_delay);
            tally.summary.rtt_sample = Some(sample);
        }
        let path = paths.concerned();
        path.on_spurious(tally.spurious);
        path.on_arrived(tally.arrived);
        let prior_in_flight = path.bytes_in_flight();
        path.on_bytes_left(tally.bytes);
        tally.summary.lost = self.detect_lost(paths, now, outcome);
        let path = paths.concerned();
        path.on_acked(now, &tally, prior_in_flight);
        self.sent.release(now, self.largest_acked, path.retention());
        self.cursor = self.cursor.max(self.sent.base());
        Ok(tally.summary)
    }

    /// Takes in the ECN counts of the ACK frame whose summary said `acked`, and what their absence means (RFC
    /// 9000 section 13.4.2.1). True if the window was reduced for "congestion experienced".
    #[inline]
    pub fn on_ecn_counts(
        &mut self,
        path: &mut PathRecovery,
        now: Time,
        acked: EcnAcked,
        counts: Option<EcnCounts>,
    ) -> bool {
        self.ecn.on_marked_acked(acked.packets, acked.elsewhere);
        if !acked.in_order || counts.is_none() && acked.packets == 0 && acked.elsewhere == 0 {
            return false;
        }
        match self.ecn.check(counts, path.ecn.ect()) {
            Ok(ce) => path.on_ecn_valid(now, &acked, ce),
            // What a path that was left has erased says nothing about this one.
            Err(EcnFailure::Bleached) if acked.packets == 0 && acked.elsewhere > 0 => false,
            Err(why) => {
                path.ecn.on_invalid(why);
                false
            }
        }
    }

    fn ack_range(
        &mut self,
        paths: &mut impl Paths,
        range: RangeInclusive<u64>,
        tally: &mut AckTally,
        outcome: &mut impl FnMut(Outcome, T),
    ) -> Result<(), AckError> {
        let sampling = paths.concerned().is_sampling();
        let end = range.end().saturating_add(1).min(self.sent.end());
        let mut number = (*range.start()).max(self.sent.base());
        while number < end {
            // Every packet of the range that is looked at remembers how far the range reaches, so that the next
            // ACK frame that repeats any part of it steps over the rest at once.
            let reach = u32::try_from(end.saturating_sub(number)).unwrap_or(u32::MAX);
            let Some(packet) = self.sent.get_mut(number) else { break };
            match packet.state {
                State::Acked { run } => {
                    packet.state = State::Acked { run: run.max(reach) };
                    number = number.saturating_add(u64::from(run.max(1)));
                    continue;
                }
                State::Skipped => return Err(AckError { packet_number: number }),
                State::Sent => {
                    tally.on_acked(paths, number, packet);
                    if packet.in_flight && packet.ack_eliciting {
                        self.ack_eliciting_in_flight = self.ack_eliciting_in_flight.saturating_sub(1);
                    }
                    packet.state = State::Acked { run: reach };
                    let tokens = packet.tokens();
                    if sampling {
                        self.sample(paths.concerned(), number, false);
                    }
                    self.sent.for_each_of(tokens, |token| outcome(Outcome::Acked, token));
                }
                State::Lost { at, event } => {
                    tally.on_spurious(paths, number, packet, at, event);
                    packet.state = State::Acked { run: reach };
                    if sampling {
                        self.sample(paths.concerned(), number, true);
                    }
                    self.sent.for_each_token(number, |token| outcome(Outcome::Spurious, token));
                }
            }
            number = number.saturating_add(1);
        }
        Ok(())
    }

    /// Counts a packet that arrived, for delivery-rate samples. `late` says that it had been declared lost.
    fn sample(&self, path: &mut PathRecovery, number: u64, late: bool) {
        if let Some(packet) = self.sent.get(number).filter(|packet| packet.path == path.id())
            && let Some(snapshot) = self.sent.snapshot(number)
        {
            path.on_delivered(number, packet, snapshot, late);
        }
    }

    /// Declares lost what the timer of [`TimerKind::LossTime`](crate::TimerKind::LossTime) announced.
    pub fn on_loss_timer(
        &mut self,
        paths: &mut impl Paths,
        now: Time,
        outcome: &mut impl FnMut(Outcome, T),
    ) -> LossSummary {
        let summary = self.detect_lost(paths, now, outcome);
        self.sent.release(now, self.largest_acked, paths.concerned().retention());
        self.cursor = self.cursor.max(self.sent.base());
        summary
    }

    /// Packets with lower numbers have been acknowledged or declared lost.
    pub const fn decided(&self) -> u64 {
        self.cursor
    }

    /// Packets from number `from` on that have been declared lost, and have not come after all, with whether
    /// they probed the path's MTU. They are remembered for one more probe timeout.
    pub fn lost_from(&self, from: u64) -> impl Iterator<Item = (u64, bool)> {
        (from.max(self.sent.base())..self.cursor).filter_map(|number| {
            let packet = self.sent.get(number)?;
            matches!(packet.state, State::Lost { .. }).then_some((number, packet.mtu_probe))
        })
    }

    /// Names what the `packets` oldest unacknowledged ack-eliciting packets carried, so that a probe can carry
    /// it again. Nothing is declared lost (RFC 9002 section 6.2.4). Returns how many packets were found.
    pub fn pto_tokens(&self, packets: usize, token: &mut impl FnMut(T)) -> usize {
        let mut found = 0_usize;
        let mut number = self.cursor;
        while found < packets {
            let Some(packet) = self.sent.get(number) else { break };
            if packet.state == State::Sent && packet.ack_eliciting && !packet.mtu_probe {
                found = found.saturating_add(1);
                self.sent.for_each_token(number, &mut *token);
            }
            let step = if let State::Acked { run } = packet.state { u64::from(run.max(1)) } else { 1 };
            number = number.saturating_add(step);
        }
        found
    }

    /// Declares everything unacknowledged lost at once, without a word to congestion control: after a Retry,
    /// or when 0-RTT is rejected (RFC 9002 section 6.3, RFC 9001 section 4.6.2).
    pub fn declare_all_lost(
        &mut self,
        path: &mut PathRecovery,
        now: Time,
        outcome: &mut impl FnMut(Outcome, T),
    ) {
        while let Some(packet) = self.sent.get_mut(self.cursor) {
            if packet.state == State::Sent {
                if packet.in_flight && packet.path == path.id() {
                    path.on_bytes_left(u64::from(packet.bytes));
                }
                packet.state = State::Lost { at: now, event: 0 };
                self.sent.for_each_token(self.cursor, |token| outcome(Outcome::Lost, token));
            }
            self.cursor = self.cursor.saturating_add(1);
        }
        self.ack_eliciting_in_flight = 0;
        self.loss_time = None;
        self.persistent.reset();
    }

    /// As [`SpaceRecovery::declare_all_lost`], and for good: should one of these packets be acknowledged all the
    /// same, nothing comes of it. For 0-RTT that was rejected (RFC 9001 section 4.6.2).
    pub fn abandon_all(&mut self, path: &mut PathRecovery, now: Time, outcome: &mut impl FnMut(Outcome, T)) {
        self.declare_all_lost(path, now, outcome);
        while self.sent.front().is_some() {
            self.sent.pop_front();
        }
        self.cursor = self.cursor.max(self.sent.base());
    }

    /// Drops the space with its keys: its bytes leave the path's flight and the PTO back-off ends (RFC 9002
    /// section 6.2.2 and 6.4).
    pub fn discard(self, path: &mut PathRecovery) {
        path.on_bytes_left(self.sent.in_flight_on(path.id()));
        path.reset_pto_count();
    }

    /// When the next packet is to be declared lost by the time threshold.
    pub const fn loss_time(&self) -> Option<Time> {
        self.loss_time
    }

    /// When the last ack-eliciting packet was sent, if any is unacknowledged: the start of the PTO.
    pub const fn last_ack_eliciting_in_flight(&self) -> Option<Time> {
        if self.ack_eliciting_in_flight > 0 { self.last_ack_eliciting } else { None }
    }

    /// True if an ack-eliciting packet is neither acknowledged nor lost.
    pub const fn has_ack_eliciting_in_flight(&self) -> bool {
        self.ack_eliciting_in_flight > 0
    }

    /// The highest packet number the peer acknowledged; packet numbers are encoded relative to it.
    pub const fn largest_acked(&self) -> Option<u64> {
        self.largest_acked
    }

    /// The highest packet number sent.
    pub const fn largest_sent(&self) -> Option<u64> {
        self.next.checked_sub(1)
    }
}

impl AckTally {
    fn new(now: Time, path: &PathRecovery, prior_largest: Option<u64>) -> Self {
        AckTally {
            path: path.id(),
            now,
            summary: AckSummary::default(),
            bytes: 0,
            growth_bytes: 0,
            largest_sample: None,
            arrived: Arrived::default(),
            full_above: path.full_above(),
            ecn_since: path.ecn().since(),
            spurious: SpuriousTally::default(),
            recovery_start: path.recovery_start(),
            prior_largest,
        }
    }

    #[inline]
    fn count(&mut self, number: u64, packet: &SentPacket) {
        let (path, summary) = (self.path, &mut self.summary);
        summary.newly_acked = summary.newly_acked.saturating_add(1);
        summary.newly_acked_ack_eliciting |= packet.ack_eliciting;
        summary.largest_newly_acked = summary.largest_newly_acked.max(Some(number));
        if packet.path != path {
            summary.ecn.elsewhere = summary.ecn.elsewhere.wrapping_add(u64::from(packet.marked));
            return;
        }
        if packet.mtu_probe {
            summary.mtu_probe_acked = Some(usize::from(packet.bytes));
        }
        let Arrived { full, lesser } = &mut self.arrived;
        let newest = if packet.bytes > self.full_above { full } else { lesser };
        *newest = (*newest).max(Some(packet.sent_at));
        let ecn = &mut self.summary.ecn;
        ecn.packets = ecn.packets.wrapping_add(u64::from(packet.marked));
        ecn.proof |= packet.marked & (packet.sent_at >= self.ecn_since);
    }

    #[inline]
    fn on_acked(&mut self, paths: &mut impl Paths, number: u64, packet: &SentPacket) {
        self.count(number, packet);
        if packet.path != self.path {
            return self.on_acked_aside(paths, packet, true);
        }
        if self.largest_sample.is_none_or(|(largest, _)| largest < number) {
            self.largest_sample = Some((number, packet.sent_at));
        }
        if packet.in_flight {
            let bytes = u64::from(packet.bytes);
            self.bytes = self.bytes.saturating_add(bytes);
            if self.recovery_start.is_none_or(|start| packet.sent_at > start) {
                self.growth_bytes = self.growth_bytes.saturating_add(bytes);
            }
        }
    }

    #[cold]
    fn on_acked_aside(&self, paths: &mut impl Paths, packet: &SentPacket, newly: bool) {
        if let Some(path) = paths.other(packet.path) {
            path.on_acked_aside(self.now, packet, newly);
        }
    }

    fn on_spurious(
        &mut self,
        paths: &mut impl Paths,
        number: u64,
        packet: &SentPacket,
        at: Time,
        event: u32,
    ) {
        self.count(number, packet);
        self.summary.spurious = self.summary.spurious.saturating_add(1);
        if packet.path != self.path {
            return self.on_acked_aside(paths, packet, false);
        }
        if packet.mtu_probe || event == 0 {
            return;
        }
        let tally = &mut self.spurious;
        tally.packets = tally.packets.saturating_add(1);
        if event == paths.concerned().congestion_event() {
            tally.of_current_event = tally.of_current_event.saturating_add(1);
        }
        tally.distance = tally.distance.max(self.prior_largest.unwrap_or(0).saturating_sub(number));
        tally.verdict_after = tally.verdict_after.max(at.saturating_since(packet.sent_at));
    }
}

#[cfg(test)]
mod tests;
