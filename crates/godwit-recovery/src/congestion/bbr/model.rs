//! What is known of the path.

use super::bound::Bound;
use super::filter::MaxFilter;
use super::{in_time, nanos, part, time_of};
use crate::congestion::{Acked, Lost, RateSample};
use godwit_base::Time;
use std::time::Duration;

/// Losses of more than this part of a round's packets are congestion, in percent (`LossThresh`).
const LOSS_THRESHOLD: u64 = 2;
/// The same in a round without a sign of a queue: radio links lose packets that nothing pushed out.
const LOSS_WITHOUT_QUEUE: u64 = 12;
/// And so many packets of it.
const LOST_WITHOUT_QUEUE: u32 = 5;
/// So many packets lost in a round are no chance; fewer only if the round before had losses, too.
const LOST_PACKETS: u32 = 3;
/// What losses leave of a bound, in percent (`Beta`).
const BETA: u64 = 70;
/// What losses leave of the bounds where others keep the queue filled, in percent: as much as they leave CUBIC.
const GIVE_WAY: u64 = 70;
/// Rounds of which the shortest round trip is kept.
const RECENT_ROUNDS: u32 = 4;
/// So many round trips tell how they vary.
const RTTS_OF_JITTER: u32 = 4;
/// Round trips vary much if it is by more than this part of the lowest.
const JITTERY: u32 = 32;
/// Two packets, about.
const PAIR: u64 = 3000;
/// What marks leave, in percent.
const MARKED: u64 = 85;
/// The lowest round-trip time is of the last ten seconds (`MinRTTFilterLen`).
const MIN_RTT_FILTER: Duration = Duration::from_secs(10);
/// Rounds after which acknowledgements in lumps are forgotten (`ExtraAckedFilterLen`).
const EXTRA_ROUNDS: u32 = 10;

/// The model.
#[derive(Debug, Clone)]
pub(super) struct Model {
    rates: MaxFilter,
    rate_short: Bound,
    /// What may be in flight by losses of the present cycle.
    pub(super) inflight_short: Bound,
    /// What may be in flight by the losses of probes.
    pub(super) inflight_limit: Bound,
    /// In nanoseconds; `u64::MAX` until there is one.
    min_rtt: u64,
    min_rtt_at: Time,
    /// When a round trip about as short as the lowest was seen last.
    short_at: Time,
    pub(super) rounds: u32,
    /// The sample at hand begins a round.
    pub(super) round_start: bool,
    next_round_at: u64,
    delivered: u64,
    delivered_in_round: u64,
    /// Packets and bytes lost in this round.
    lost_packets: u32,
    lost_bytes: u64,
    /// Packets lost in the round before.
    pub(super) lost_before: u32,
    /// The longest round trip of this round, and the shortest, in nanoseconds.
    longest_rtt: u64,
    shortest_rtt: u64,
    /// The shortest round trips of the last rounds, some at a time, in nanoseconds.
    recent_rtts: [u64; 2],
    recent_round: u32,
    /// The round trips of this round, together, in nanoseconds, and how many they are.
    rtts: u64,
    rtt_count: u32,
    /// By how much the average round trip of a round was longer than its shortest, at least, in the same rounds as
    /// `recent_rtts`, in nanoseconds.
    spreads: [u64; 2],
    latest_rate: u64,
    latest_inflight: u64,
    extra: [u64; 2],
    extra_round: u32,
    epoch: Time,
    epoch_bytes: u64,
    /// Losses do not lower the bounds now.
    pub(super) probing: bool,
    /// The round in which the sender had given back what queue it had made.
    pub(super) drained_in: Option<u32>,
    /// Since then, no packet of the last round was spared a queue.
    pub(super) behind_queue: bool,
}

impl Model {
    pub(super) fn new(now: Time) -> Self {
        Model {
            rates: MaxFilter::default(),
            rate_short: Bound::NONE,
            inflight_short: Bound::NONE,
            inflight_limit: Bound::NONE,
            min_rtt: u64::MAX,
            min_rtt_at: now,
            short_at: now,
            rounds: 0,
            round_start: false,
            next_round_at: 0,
            delivered: 0,
            delivered_in_round: 0,
            lost_packets: 0,
            lost_bytes: 0,
            lost_before: 0,
            longest_rtt: 0,
            shortest_rtt: u64::MAX,
            recent_rtts: [u64::MAX; 2],
            recent_round: 0,
            rtts: 0,
            rtt_count: 0,
            spreads: [u64::MAX; 2],
            latest_rate: 0,
            latest_inflight: 0,
            extra: [0; 2],
            extra_round: 0,
            epoch: now,
            epoch_bytes: 0,
            probing: true,
            drained_in: None,
            behind_queue: false,
        }
    }

    /// The rate to send at, before gains.
    pub(super) fn rate(&self) -> u64 {
        self.rate_short.limit(self.rates.get())
    }

    pub(super) fn max_rate(&self) -> u64 {
        self.rates.get()
    }

    /// The lowest round-trip time of late; a millisecond until there is one.
    pub(super) fn min_rtt(&self) -> Duration {
        if self.has_rtt() { Duration::from_nanos(self.min_rtt) } else { Duration::from_millis(1) }
    }

    pub(super) const fn has_rtt(&self) -> bool {
        self.min_rtt != u64::MAX
    }

    /// The bandwidth-delay product.
    pub(super) fn product(&self) -> u64 {
        in_time(self.rate(), self.min_rtt())
    }

    /// What is acknowledged beyond the rate at once.
    pub(super) fn extra(&self) -> u64 {
        let [present, before] = self.extra;
        present.max(before)
    }

    pub(super) fn on_rtt(&mut self, now: Time, rtt: Duration) {
        let lowest = Duration::from_nanos(self.min_rtt);
        let took = nanos(rtt);
        self.longest_rtt = self.longest_rtt.max(took);
        self.shortest_rtt = self.shortest_rtt.min(took);
        let [present, _] = &mut self.recent_rtts;
        *present = (*present).min(took);
        self.rtts = self.rtts.saturating_add(took);
        self.rtt_count = self.rtt_count.saturating_add(1);
        if rtt <= lowest || now.saturating_since(self.min_rtt_at) > MIN_RTT_FILTER {
            (self.min_rtt, self.min_rtt_at) = (took, now);
        }
        // A round trip that is hardly longer proves that there is no queue as well.
        if rtt <= lowest.saturating_add((lowest / 16).max(Duration::from_millis(1))) {
            self.short_at = now;
            self.min_rtt_at = now;
        }
    }

    pub(super) fn refresh_min_rtt(&mut self, now: Time) {
        self.short_at = now;
        self.min_rtt_at = now;
    }

    pub(super) fn min_rtt_is_older_than(&self, now: Time, age: Duration) -> bool {
        now.saturating_since(self.short_at) > age
    }

    pub(super) fn on_lost(&mut self, lost: &Lost) {
        self.lost_packets = self.lost_packets.saturating_add(1);
        self.lost_bytes = self.lost_bytes.saturating_add(lost.bytes);
    }

    /// By how much round trips without a queue are longer on average than the shortest of them: they vary within every
    /// round, where a queue changes from round to round.
    pub(super) fn jitter(&self) -> Duration {
        let [present, before] = self.spreads;
        let least = present.min(before);
        Duration::from_nanos(if least == u64::MAX { 0 } else { least })
    }

    /// True if that is much.
    pub(super) fn is_jittery(&self) -> bool {
        self.jitter() > self.min_rtt() / JITTERY
    }

    fn count_jitter(&mut self) {
        if self.rtt_count >= RTTS_OF_JITTER {
            let average = self.rtts.checked_div(u64::from(self.rtt_count)).unwrap_or(0);
            let [present, _] = &mut self.spreads;
            *present = (*present).min(average.saturating_sub(self.shortest_rtt));
        }
        (self.rtts, self.rtt_count) = (0, 0);
    }

    /// A round trip that is longer than this, in nanoseconds, has met a queue, or varies.
    fn long_rtt(&self) -> u64 {
        let lowest = nanos(self.min_rtt());
        lowest.saturating_add(lowest / 8)
    }

    /// What is in flight at the path's rate when there is no queue.
    pub(super) fn flight(&self) -> u64 {
        in_time(self.rate(), self.min_rtt().saturating_add(self.jitter()))
    }

    /// Packets that were declared lost have arrived.
    pub(super) fn on_late(&mut self, packets: u32, bytes: u64) {
        let of_this_round = packets.min(self.lost_packets);
        self.lost_packets = self.lost_packets.saturating_sub(packets);
        self.lost_before = self.lost_before.saturating_sub(packets.saturating_sub(of_this_round));
        self.lost_bytes = self.lost_bytes.saturating_sub(bytes);
    }

    /// True if round trips of this round were longer than the lowest by an eighth.
    pub(super) fn has_queue(&self) -> bool {
        self.longest_rtt > self.long_rtt()
    }

    /// True if no round trip of this round was about as short as the lowest. On a slow link the sender's own two packets
    /// that leave at once make a round trip longer.
    fn has_standing_queue(&self) -> bool {
        let own = nanos(time_of(PAIR, self.rate()));
        let long = self.long_rtt().max(nanos(self.min_rtt()).saturating_add(own));
        self.shortest_rtt != u64::MAX && self.shortest_rtt > long
    }

    /// True if what is lost in this round is more than chance.
    pub(super) fn is_lossy(&self) -> bool {
        let round = self.delivered.saturating_sub(self.next_round_at).max(self.delivered_in_round);
        let sent = round.saturating_add(self.lost_bytes);
        if self.has_queue() {
            let many = self.lost_packets >= LOST_PACKETS || (self.lost_before > 0 && self.lost_packets > 0);
            many && self.lost_bytes > part(sent, LOSS_THRESHOLD)
        } else {
            self.lost_packets >= LOST_WITHOUT_QUEUE && self.lost_bytes > part(sent, LOSS_WITHOUT_QUEUE)
        }
    }

    /// Takes in a sample. True if a round ended in which too much was lost.
    pub(super) fn on_sample(&mut self, acked: &Acked<'_>, sample: &RateSample) -> bool {
        self.round_start = sample.prior_delivered >= self.next_round_at;
        self.delivered = sample.total_delivered;
        self.latest_rate = self.latest_rate.max(sample.rate);
        self.latest_inflight = self.latest_inflight.max(sample.delivered);
        let mut lossy = false;
        if self.round_start {
            self.delivered_in_round = sample.total_delivered.saturating_sub(sample.prior_delivered);
            lossy = self.is_lossy();
            self.count_jitter();
            let drained = self.drained_in.is_some_and(|round| round < self.rounds);
            self.behind_queue = drained && self.has_standing_queue();
            if self.behind_queue && self.lost_packets > 0 && !self.probing {
                self.give_way();
                // What this gives back is seen a round trip later.
                self.drained_in = Some(self.rounds.saturating_add(1));
            } else if lossy && !self.probing {
                self.lower();
            }
            if self.rounds.saturating_sub(self.recent_round) >= RECENT_ROUNDS {
                let ([rtt, _], [spread, _]) = (self.recent_rtts, self.spreads);
                (self.recent_rtts, self.spreads) = ([u64::MAX, rtt], [u64::MAX, spread]);
                self.recent_round = self.rounds;
            }
            self.rounds = self.rounds.saturating_add(1);
            self.next_round_at = sample.total_delivered;
            self.lost_before = self.lost_packets;
            (self.lost_packets, self.lost_bytes) = (0, 0);
            (self.longest_rtt, self.shortest_rtt) = (0, u64::MAX);
            (self.latest_rate, self.latest_inflight) = (sample.rate, sample.delivered);
        }
        if sample.rate >= self.rates.get() || !sample.app_limited {
            self.rates.update(sample.rate);
        }
        self.count_extra(acked);
        lossy
    }

    /// Losses of a round outside of probes (`BBRAdaptLowerBoundsFromCongestion`).
    fn lower(&mut self) {
        let rate = self.rate_short.get().unwrap_or(self.rates.get());
        self.rate_short = Bound::of(part(rate, BETA).max(self.latest_rate));
        let inflight =
            self.inflight_short.get().unwrap_or(in_time(self.rates.get(), self.min_rtt()).saturating_mul(2));
        self.inflight_short = Bound::of(part(inflight, BETA).max(self.latest_inflight));
    }

    /// Losses while others keep the queue filled: as they do.
    fn give_way(&mut self) {
        self.rate_short = Bound::of(part(self.rate(), GIVE_WAY));
        let inflight = self.inflight_short.get().unwrap_or_else(|| self.full_window());
        self.inflight_short = Bound::of(part(inflight, GIVE_WAY));
    }

    /// The round-trip time with the queue that others keep filled: what was the shortest of the last rounds.
    pub(super) fn standing_rtt(&self) -> Duration {
        let [present, before] = self.recent_rtts;
        let recent = present.min(before);
        if recent == u64::MAX { self.min_rtt() } else { Duration::from_nanos(recent).max(self.min_rtt()) }
    }

    /// What may be in flight without losses: what fills the path with the queue of others, and once the path besides.
    pub(super) fn full_window(&self) -> u64 {
        in_time(self.rate(), self.standing_rtt().saturating_add(self.min_rtt()))
    }

    /// The path marked packets (RFC 3168): less may be in flight until the next probe (RFC 8511).
    pub(super) fn on_marked(&mut self, window: u64) {
        self.rate_short = Bound::of(part(self.rate(), MARKED));
        self.inflight_short = Bound::of(part(self.inflight_short.limit(window), MARKED));
    }

    /// Forgets what losses outside of probes have taught.
    pub(super) fn reset_short(&mut self) {
        self.rate_short = Bound::NONE;
        self.inflight_short = Bound::NONE;
    }

    pub(super) fn advance_rates(&mut self) {
        self.rates.advance();
    }

    fn count_extra(&mut self, acked: &Acked<'_>) {
        let expected = in_time(self.rate(), acked.now.saturating_since(self.epoch));
        if self.epoch_bytes <= expected {
            (self.epoch, self.epoch_bytes) = (acked.now, 0);
        }
        self.epoch_bytes = self.epoch_bytes.saturating_add(acked.all_bytes);
        let expected = in_time(self.rate(), acked.now.saturating_since(self.epoch));
        let extra = self.epoch_bytes.saturating_sub(expected).min(self.product());
        if self.rounds.saturating_sub(self.extra_round) >= EXTRA_ROUNDS / 2 {
            let [present, _] = self.extra;
            self.extra = [0, present];
            self.extra_round = self.rounds;
        }
        let [present, _] = &mut self.extra;
        *present = (*present).max(extra);
    }
}

#[cfg(test)]
mod tests;
