//! The sent packets of one packet number space (RFC 9002 section 6 and appendix A).
//!
//! Inputs: [`SpaceRecovery::on_packet_sent`], [`SpaceRecovery::on_ack_received`],
//! [`SpaceRecovery::on_loss_timer`]. Output: tokens with their [`Outcome`], through the callback of the call
//! that decided it.
//!
//! Invariants: the packets of a path are declared lost in order of their numbers, because both thresholds are monotonic
//! in it; so the lowest whose fate is open only ever rises, and a path looks at each packet once. A packet is handed
//! out once as acknowledged, or once as lost and then at most once as spurious.

use crate::delivery::Newest;
use crate::ecn::{EcnAcked, EcnFailure, EcnLedger};
use crate::flight::Flight;
use crate::path::Paths;
use crate::sent::{SentPacket, SentRing, State};
pub use crate::summary::{AckError, AckSummary, LossSummary, Outcome, SentInfo, SpaceId};
use crate::tallies::AckTallies;
use crate::tally::{AckArrival, AckTally};
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
    ecn: EcnLedger,
    /// Whether two packets carried the same, if that makes both ambiguous.
    pub(crate) same: Option<fn(&T, &T) -> bool>,
}

/// Half of the distances between packet numbers left out are below this at first, and below twice as much after each.
const FIRST_SKIP: u64 = 256;
/// Skips grow rarer up to this: each costs the peer a range and an early acknowledgement, and us what the peer may
/// acknowledge blindly, a twelfth of this with a risk of one in nine.
const MAX_SKIP_INTERVAL: u64 = 1 << 13;
/// Packets remembered at most. What is in flight is bounded by the window; this bounds packets that only
/// acknowledge, which a peer can provoke without ever acknowledging anything itself.
const MAX_TRACKED: usize = 1 << 18;
/// Packets remembered when no more data is sent: a quarter is left for acknowledgements.
const MAX_TRACKED_WITH_DATA: usize = MAX_TRACKED - MAX_TRACKED / 4;

/// How many packets are numbered until the next number is left out. It has no memory: whoever has seen a gap, or none for
/// long, knows nothing of the next. As many halves as a coin shows heads, and a part of another.
fn distance(half: u64, rng: &mut (impl Rng + ?Sized)) -> u64 {
    let heads = u64::from(rng.next_u64().leading_zeros());
    heads.saturating_mul(half).saturating_add(rng.below(half))
}

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
            ecn: EcnLedger::default(),
            same: None,
        }
    }

    /// Begins with the packet number `first`: those below were used elsewhere, for packets that nobody waits to be
    /// acknowledged. To be called before anything is sent.
    pub fn begin_at(&mut self, first: u64) {
        debug_assert!(self.next == 0 && self.largest_acked.is_none(), "only the first packet can be chosen");
        self.next = first;
        self.sent.begin_at(first);
    }

    /// Gives back memory that is not in use.
    pub fn shrink(&mut self) {
        self.sent.shrink();
    }

    /// Memory that is held for packets, in bytes, about.
    #[inline]
    pub fn held(&self) -> u64 {
        self.sent.held()
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
            None => self.skip_at = Some(self.next.saturating_add(distance(FIRST_SKIP, rng))),
            Some(at) if self.next >= at => {
                self.skip_interval = self.skip_interval.saturating_mul(2).min(MAX_SKIP_INTERVAL);
                let distance = distance(self.skip_interval, rng);
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
        let number = info.packet_number;
        self.sent.push_with(SentPacket::new(&info, path.id()), snapshot, tokens);
        if let Some(same) = self.same {
            self.hold_against(number, same);
        }
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
                path.flights.of_mut(self.id).on_ack_eliciting_sent(info.now);
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
        }
    }

    /// Takes in an ACK frame: `ranges` descending, `ack_delay` scaled and, once the handshake is confirmed,
    /// capped at the peer's max_ack_delay. Loss detection runs as well.
    ///
    /// Each of `paths` is told of the packets that were sent on it. The round-trip time sample, if there is one, is
    /// that of the path on which the largest of them was sent.
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
        let mut tallies = AckTallies::new(paths.in_use(), self.largest_acked);
        for range in ranges {
            if *range.end() > largest {
                return Err(AckError { packet_number: *range.end() });
            }
            self.ack_range(paths, range, &mut tallies, outcome)?;
        }
        let AckTallies { mut summary, mut first, mut others, .. } = tallies;
        summary.ecn.in_order = self.largest_acked.is_none_or(|before| before < largest);
        summary.ecn.newest_sent_at = first.largest_sample.map(|(_, sent_at)| sent_at);
        self.largest_acked = Some(self.largest_acked.map_or(largest, |before| before.max(largest)));
        if summary.newly_acked == 0 {
            return Ok(summary);
        }
        let ack = AckArrival { now, largest, delay: ack_delay };
        self.settle(paths.in_use(), &ack, &mut first, &mut summary, outcome);
        paths.each_other(&mut |path| match others.iter_mut().find(|tally| tally.path == path.id()) {
            Some(tally) => self.settle(path, &ack, tally, &mut summary, outcome),
            // What came after its packets on another path shows them to be late.
            None => summary.lost.add(&self.detect_lost(path, now, outcome)),
        });
        self.sent.release(now, self.largest_acked, paths.in_use().retention());
        Ok(summary)
    }

    /// What an ACK frame acknowledges on one path, to that path.
    fn settle(
        &mut self,
        path: &mut PathRecovery,
        ack: &AckArrival,
        tally: &mut AckTally,
        summary: &mut AckSummary,
        outcome: &mut impl FnMut(Outcome, T),
    ) {
        let flight = path.flights.of_mut(self.id);
        flight.on_ack_eliciting_left(tally.ack_eliciting);
        flight.largest_acked = flight.largest_acked.max(tally.largest_sample.map(|(number, _)| number));
        if summary.newly_acked_ack_eliciting > 0
            && let Some((number, sent_at)) = tally.largest_sample
            && number == ack.largest
        {
            tally.ambiguous = self.same.is_some() && self.is_ambiguous(number);
            if ack.now < sent_at {
                summary.before_departure = true;
            } else if !tally.ambiguous {
                let sample = ack.now.saturating_since(sent_at);
                path.on_rtt_sample(ack.now, sample, ack.delay);
                tally.rtt_sample = Some(sample);
                summary.rtt_sample = Some(sample);
            }
        }
        path.on_spurious(tally.spurious);
        path.on_arrived(tally.arrived);
        path.on_delivered(tally.delivered);
        let newest = if path.is_sampling() { self.newest_delivered(tally) } else { None };
        let prior_in_flight = path.bytes_in_flight();
        path.on_bytes_left(tally.bytes);
        let lost = self.detect_lost(path, ack.now, outcome);
        summary.mtu_probe_acked = summary.mtu_probe_acked.or(tally.mtu_probe_acked.map(usize::from));
        if tally.packets > 0 {
            if self.id == SpaceId::Data {
                path.on_data_acked();
            }
            path.on_acked(ack.now, tally, newest, &lost, prior_in_flight);
        }
        summary.lost.add(&lost);
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
        tallies: &mut AckTallies,
        outcome: &mut impl FnMut(Outcome, T),
    ) -> Result<(), AckError> {
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
                    tallies.on_acked(paths, number, packet);
                    packet.state = State::Acked { run: reach };
                    let tokens = packet.tokens();
                    self.sent.for_each_of(tokens, |token| outcome(Outcome::Acked, token));
                }
                State::Lost { at, event } => {
                    tallies.on_spurious(paths, number, packet, at, event);
                    packet.state = State::Acked { run: reach };
                    self.sent.for_each_token(number, |token| outcome(Outcome::Spurious, token));
                }
            }
            number = number.saturating_add(1);
        }
        Ok(())
    }

    /// The newest packet that arrived on a path, for its delivery-rate samples.
    fn newest_delivered(&self, tally: &AckTally) -> Option<Newest> {
        let number = tally.newest_delivered?;
        Some(Newest { sent_at: self.sent.get(number)?.sent_at, snapshot: self.sent.snapshot(number)? })
    }

    /// Declares lost what the timer of [`TimerKind::LossTime`](crate::TimerKind::LossTime) announced for this path.
    pub fn on_loss_timer(
        &mut self,
        path: &mut PathRecovery,
        now: Time,
        outcome: &mut impl FnMut(Outcome, T),
    ) -> LossSummary {
        let summary = self.detect_lost(path, now, outcome);
        self.sent.release(now, self.largest_acked, path.retention());
        summary
    }

    /// Packets from number `from` to before `to` that were sent on the path with this id, have been declared lost and
    /// have not come after all, with whether they probed its MTU. They are remembered for one more probe timeout.
    pub fn lost_on(&self, path: u16, from: u64, to: u64) -> impl Iterator<Item = (u64, bool)> {
        (from.max(self.sent.base())..to.min(self.sent.end())).filter_map(move |number| {
            let packet = self.sent.get(number)?;
            let lost = packet.path == path && matches!(packet.state, State::Lost { .. });
            lost.then_some((number, packet.mtu_probe))
        })
    }

    /// Names what the `packets` oldest unacknowledged ack-eliciting packets on a path carried, so that a probe can carry
    /// it again. Nothing is declared lost (RFC 9002 section 6.2.4). Returns how many packets were found.
    pub fn pto_tokens(&self, path: &PathRecovery, packets: usize, token: &mut impl FnMut(T)) -> usize {
        let mut found = 0_usize;
        let mut number = path.decided(self.id).max(self.sent.base());
        while found < packets {
            let Some(packet) = self.sent.get(number) else { break };
            let awaited = packet.state == State::Sent && packet.path == path.id();
            if awaited && packet.ack_eliciting && !packet.mtu_probe {
                found = found.saturating_add(1);
                self.sent.for_each_token(number, &mut *token);
            }
            let step = if let State::Acked { run } = packet.state { u64::from(run.max(1)) } else { 1 };
            number = number.saturating_add(step);
        }
        found
    }

    /// What the last packets on a path carried that are neither acknowledged nor lost, the newest first: number and
    /// token. Looks at no more than so many numbers.
    pub fn newest_tokens(&self, path: &PathRecovery, numbers: u64, token: &mut impl FnMut(u64, T)) {
        let first = self.sent.end().saturating_sub(numbers).max(path.decided(self.id)).max(self.sent.base());
        for number in (first..self.sent.end()).rev() {
            let Some(packet) = self.sent.get(number) else { break };
            if packet.state == State::Sent && packet.path == path.id() && packet.ack_eliciting {
                self.sent.for_each_token(number, |carried| token(number, carried));
            }
        }
    }

    /// When the oldest packet that is remembered was sent.
    pub fn oldest_sent_at(&self) -> Option<Time> {
        self.sent.front().map(|packet| packet.sent_at)
    }

    /// Declares everything unacknowledged lost at once, without a word to congestion control: after a Retry,
    /// or when 0-RTT is rejected (RFC 9002 section 6.3, RFC 9001 section 4.6.2).
    pub fn declare_all_lost(
        &mut self,
        paths: &mut impl Paths,
        now: Time,
        outcome: &mut impl FnMut(Outcome, T),
    ) {
        self.leave(paths);
        self.declare_lost(None, now, outcome);
    }

    /// Nothing of the space is under way any more on any path.
    fn leave(&self, paths: &mut impl Paths) {
        let mut leave = |path: &mut PathRecovery| {
            path.on_bytes_left(self.sent.in_flight_on(path.id()));
            *path.flights.of_mut(self.id) = Flight::begin_at(self.next);
        };
        leave(paths.in_use());
        paths.each_other(&mut leave);
    }

    /// Declares lost what was sent on the path with this id, or on any.
    fn declare_lost(&mut self, path: Option<u16>, now: Time, outcome: &mut impl FnMut(Outcome, T)) {
        for number in self.sent.base()..self.sent.end() {
            let Some(packet) = self.sent.get_mut(number) else { break };
            if packet.state == State::Sent && path.is_none_or(|path| path == packet.path) {
                packet.state = State::Lost { at: now, event: 0 };
                self.sent.for_each_token(number, |token| outcome(Outcome::Lost, token));
            }
        }
    }

    /// The path with this id is no more: what was sent on it and is not acknowledged is declared lost, and nobody's
    /// congestion control hears of it.
    pub fn on_path_gone(&mut self, path: u16, now: Time, outcome: &mut impl FnMut(Outcome, T)) {
        self.declare_lost(Some(path), now, outcome);
    }

    /// As [`SpaceRecovery::declare_all_lost`], and for good: should one of these packets be acknowledged all the
    /// same, nothing comes of it. For 0-RTT that was rejected (RFC 9001 section 4.6.2).
    pub fn abandon_all(&mut self, paths: &mut impl Paths, now: Time, outcome: &mut impl FnMut(Outcome, T)) {
        self.declare_all_lost(paths, now, outcome);
        while self.sent.front().is_some() {
            self.sent.pop_front();
        }
    }

    /// Drops the space with its keys: its bytes leave the flight of every path and the PTO back-off ends (RFC 9002
    /// section 6.2.2 and 6.4). Its memory goes to the space `heir`, if that has none yet.
    pub fn discard(mut self, paths: &mut impl Paths, heir: &mut Self) {
        self.leave(paths);
        heir.sent.inherit(&mut self.sent);
        paths.in_use().reset_pto_count();
        paths.each_other(&mut PathRecovery::reset_pto_count);
    }

    /// The highest packet number the peer acknowledged.
    pub const fn largest_acked(&self) -> Option<u64> {
        self.largest_acked
    }

    /// The packet number relative to which `number` is to be encoded. RFC 9000 section 17.1 asks for twice the range of
    /// what is not acknowledged; this makes it four times, for packets that come later than a whole flight sent after
    /// them: where the round trip takes 5 ms, 10 ms of delay are enough, and the receiver cannot open them.
    pub const fn encoding_base(&self, number: u64) -> Option<u64> {
        match self.largest_acked {
            Some(acked) => Some(acked.saturating_sub(number.saturating_sub(acked))),
            None => None,
        }
    }

    /// The highest packet number sent.
    #[cfg(test)]
    pub(crate) const fn largest_sent(&self) -> Option<u64> {
        self.next.checked_sub(1)
    }
}

#[cfg(test)]
mod tests;
