//! What loss recovery keeps per network path: RTT, congestion window, pacer, MTU, ECN, PTO back-off.
//!
//! Invariants: `bytes_in_flight` is the sum of the in-flight packets sent on this path and neither acknowledged,
//! lost nor discarded; a reduction of the window happens at most once per round trip (RFC 9002 section 7.3.2)
//! and is undone when every packet it was made for turns out to have arrived.

mod reduction;
mod settings;

pub use settings::{PathSettings, PathStats};

use crate::ack_policy::{AckPolicy, Amount};
use crate::congestion::{Acked, CeMarks, Controller, ControllerStart, Lost, Pacing, SavedState, Sent};
use crate::delivery::{DeliverySampler, Newest, Snapshot};
use crate::ecn::{EcnAcked, EcnValidation};
use crate::flight::Flights;
use crate::loss::ReorderTolerance;
use crate::mtu::{Arrived, MtuCounters, MtuSearch};
use crate::pacer::Pacer;
use crate::prr::Prr;
use crate::refused::Refused;
use crate::resume::{CarefulResume, Step};
use crate::rtt::RttEstimator;
use crate::sent::SentPacket;
use crate::sparse::SparseAcks;
use crate::summary::{LossSummary, SpaceId};
use crate::tally::AckTally;
use godwit_base::Time;
use reduction::CongestionEvent;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The PTO doubles at most this often.
const MAX_BACKOFF: u16 = 16;
/// So many PTOs in a row may be kept from doubling; further ones make up for it, so that a dead path is left alone.
const CAPPED_PTOS: u16 = 4;
/// After this many PTOs in a row a black hole for large packets is suspected.
const BLACK_HOLE_PTOS: u16 = 3;
/// While data waits, an MTU probe takes at most this part of the window: one in eight lets a probe of Ethernet's size
/// leave with the first flight.
const PROBE_SHARE: u64 = 8;
/// And leaves only behind so many packets: what is short goes first.
const PACKETS_BEFORE_PROBE: u64 = 4;
/// Where round trips are shorter, a few acknowledgements in each are many, and queues are too short for what comes in lumps.
const SHORT: Duration = Duration::from_millis(8);

/// The paths on which the packets of a space may have been sent.
///
/// A path alone is one, too.
pub trait Paths {
    /// The path in use: new packets are sent on it.
    fn in_use(&mut self) -> &mut PathRecovery;

    /// Calls `f` with every other path.
    fn each_other(&mut self, f: &mut impl FnMut(&mut PathRecovery));

    /// The path with this id; `None` if it is no more.
    fn find(&mut self, id: u16) -> Option<&mut PathRecovery>;
}

impl Paths for PathRecovery {
    #[inline]
    fn in_use(&mut self) -> &mut PathRecovery {
        self
    }

    fn each_other(&mut self, _f: &mut impl FnMut(&mut PathRecovery)) {}

    fn find(&mut self, id: u16) -> Option<&mut PathRecovery> {
        (self.id == id).then_some(self)
    }
}

/// Knowledge about whether the sender used its window, which decides whether the window may grow (RFC 9002
/// section 7.8).
#[derive(Debug, Clone, Copy, Default)]
struct Usage {
    /// When the window was last full.
    filled_at: Option<Time>,
    /// When data last waited for the pacer.
    paced_at: Option<Time>,
}

/// Loss recovery state of one path.
#[derive(Debug)]
pub struct PathRecovery {
    id: u16,
    /// What of each space is under way on it.
    pub(crate) flights: Flights,
    in_use: bool,
    pub(crate) rtt: RttEstimator,
    pub(crate) reorder: ReorderTolerance,
    controller: Controller,
    pacer: Pacer,
    mtu: MtuSearch,
    pub(crate) ecn: EcnValidation,
    in_flight: u64,
    event: CongestionEvent,
    /// While a reduction is being recovered.
    prr: Option<Box<Prr>>,
    /// Until what an earlier connection left is used or useless.
    resume: Option<Box<CarefulResume>>,
    usage: Usage,
    pto_count: u16,
    /// Those of them and before when nothing but packets of the Data space was in flight, since one of these was acknowledged.
    data_pto_count: u16,
    last_activity: Time,
    peer_max_ack_delay: Duration,
    peer_validated: bool,
    stats: PathStats,
    refused: Option<Box<Refused>>,
    /// Only for a controller that asks for samples.
    sampler: Option<Box<DeliverySampler>>,
    /// What is taken away: see [`Laboratory`](crate::Laboratory).
    unpaced: bool,
    retransmission_timer: bool,
    /// Whether fewer acknowledgements make the path faster.
    sparse: SparseAcks,
}

impl PathRecovery {
    /// A path that begins at `now`.
    pub fn new(now: Time, settings: &PathSettings) -> Self {
        let mtu = MtuSearch::new(settings.initial_mtu, settings.max_mtu);
        let start = ControllerStart {
            saved: settings.saved,
            ..ControllerStart::new(now, mtu.mtu(), settings.initial_rtt)
        };
        let controller = Controller::begin(&settings.congestion, &start);
        let resumed = settings.saved.filter(|_| controller.wants_resume());
        let resume = CarefulResume::new(resumed, controller.window());
        let samples = controller.detailed().is_some_and(|custom| custom.wants_rate_samples());
        let ect = settings.congestion.ect();
        PathRecovery {
            id: settings.id,
            flights: Flights::default(),
            in_use: true,
            rtt: settings::first_estimate(settings),
            reorder: ReorderTolerance::new(),
            controller,
            pacer: Pacer::new(),
            mtu,
            ecn: EcnValidation::new(settings.ecn).marking(ect),
            in_flight: 0,
            event: CongestionEvent::default(),
            prr: None,
            resume,
            usage: Usage::default(),
            pto_count: 0,
            data_pto_count: 0,
            last_activity: now,
            peer_max_ack_delay: Duration::from_millis(25),
            peer_validated: true,
            stats: PathStats::default(),
            refused: None,
            sampler: samples.then(Box::default),
            unpaced: settings.laboratory.unpaced,
            retransmission_timer: settings.laboratory.retransmission_timer.is_some(),
            sparse: SparseAcks::new(now),
        }
    }

    /// The id from the settings.
    pub const fn id(&self) -> u16 {
        self.id
    }

    /// Whether new packets are sent on this path, as they are by default. On one that is not in use any more, what is
    /// still under way is late after anything sent later, on whatever path, was acknowledged.
    pub const fn set_in_use(&mut self, in_use: bool) {
        self.in_use = in_use;
    }

    pub(crate) const fn is_in_use(&self) -> bool {
        self.in_use
    }

    /// Packets of a space that were sent on this path with lower numbers have been acknowledged or declared lost.
    pub const fn decided(&self, space: SpaceId) -> u64 {
        self.flights.of(space).cursor
    }

    /// When the next packet of a space is to be declared lost by the time threshold.
    pub(crate) const fn loss_time(&self, space: SpaceId) -> Option<Time> {
        self.flights.of(space).loss_time
    }

    /// True if an ack-eliciting packet of a space is neither acknowledged nor lost.
    pub const fn has_ack_eliciting_in_flight(&self, space: SpaceId) -> bool {
        self.flights.of(space).ack_eliciting > 0
    }

    /// How many ack-eliciting packets of a space are neither acknowledged nor lost.
    pub const fn ack_eliciting_in_flight(&self, space: SpaceId) -> u64 {
        self.flights.of(space).ack_eliciting
    }

    /// The peer's max_ack_delay (RFC 9000 section 18.2), 25 ms until it is known.
    pub fn set_peer_max_ack_delay(&mut self, delay: Duration) {
        self.peer_max_ack_delay = delay;
    }

    /// What the peer's delay adds to the timer.
    pub(crate) const fn peer_max_ack_delay(&self) -> Duration {
        if self.retransmission_timer { Duration::ZERO } else { self.peer_max_ack_delay }
    }

    /// Whether the peer is known to have validated our address (RFC 9002 appendix A.8): true by default; a
    /// client sets it false at the start and true with the first Handshake acknowledgement or at confirmation.
    pub fn set_peer_validated(&mut self, validated: bool) {
        self.peer_validated = validated;
    }

    pub(crate) const fn is_peer_validated(&self) -> bool {
        self.peer_validated
    }

    /// The controller, for inspection.
    pub const fn controller(&self) -> &Controller {
        &self.controller
    }

    /// The RTT estimate.
    pub const fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// Takes `rtt` in place of the initial guess, as long as there is no sample: validating a path tells about
    /// how long it is, but not precisely enough for a sample (RFC 9002 section 6.2.2). Nor is it better than what an
    /// earlier connection has measured.
    pub fn set_initial_rtt(&mut self, rtt: Duration) {
        if self.rtt.first_sample_at().is_none() && !self.rtt.is_known() {
            let estimate = RttEstimator::new(rtt.max(crate::rtt::GRANULARITY));
            self.rtt = estimate.with_least_margin(self.rtt.least_margin());
        }
    }

    /// The probe timeout with the peer's max_ack_delay, without back-off: the unit of many of QUIC's periods.
    #[inline]
    pub fn pto(&self) -> Duration {
        self.rtt.pto().saturating_add(self.peer_max_ack_delay)
    }

    /// How many later packets must be acknowledged before one is declared lost (RFC 9002 section 6.1.1).
    pub fn packet_threshold(&self) -> u64 {
        self.reorder.packet_threshold()
    }

    /// How often the peer had best acknowledge, with a delay in this range; `growing` says that the window is just being
    /// found.
    pub fn best_ack_policy(&self, delays: RangeInclusive<Duration>, growing: bool) -> AckPolicy {
        let amount = self.sparse.wanted();
        if growing && amount == Amount::Usual {
            return AckPolicy::usual(*delays.end());
        }
        let packets = self.window().checked_div(u64::from(self.mtu())).unwrap_or(0);
        let rtt = self.rtt.smoothed();
        AckPolicy::best(amount, packets, rtt, self.packet_threshold(), delays)
    }

    /// Whether it is being tried if acknowledgements hold up what they acknowledge: when that begins and when it ends,
    /// [`PathRecovery::best_ack_policy`] has changed.
    pub fn tries_few_acks(&self) -> bool {
        self.sparse.wanted() == Amount::Few
    }

    /// The congestion window in bytes.
    pub fn window(&self) -> u64 {
        self.controller.window()
    }

    /// Bytes in flight on this path.
    pub const fn bytes_in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Probe timeouts since the last acknowledgement.
    pub const fn pto_count(&self) -> u32 {
        self.pto_count as u32
    }

    /// The counters.
    pub const fn stats(&self) -> &PathStats {
        &self.stats
    }

    /// The UDP payload size that passes this path.
    pub const fn mtu(&self) -> u16 {
        self.mtu.mtu()
    }

    /// The size of an MTU probe to send now, if one is due: a packet of its own of exactly this size, recorded
    /// with `mtu_probe`. Its fate reaches the search by itself. Probes are subject to the window. `busy` says that
    /// data waits to be sent: then a probe must not take more than an eighth of the window, and leaves behind at least four
    /// full packets.
    pub fn next_mtu_probe(&mut self, now: Time, busy: bool) -> Option<u16> {
        let size = self.mtu.next_probe(now)?;
        let affordable = !busy
            || (u64::from(size).saturating_mul(PROBE_SHARE) <= self.controller.window()
                && self.in_flight >= u64::from(self.mtu()).saturating_mul(PACKETS_BEFORE_PROBE));
        (affordable && self.can_send(usize::from(size))).then_some(size)
    }

    /// The local system refused to send a datagram of `size`; `max` is the largest that it does send to this
    /// remote, if it tells.
    pub fn on_datagram_refused(&mut self, now: Time, size: u16, max: Option<u16>) {
        let before = self.mtu.mtu();
        self.mtu.on_refused(now, size, max);
        if self.mtu.mtu() != before {
            self.controller.on_mtu_changed(self.mtu.mtu());
        }
    }

    /// What was sent at `sent_at` the local system did not send, and not for want of room: its loss does not mean
    /// congestion.
    pub fn on_refused(&mut self, sent_at: Time) {
        self.refused.get_or_insert_default().on_refused(sent_at);
    }

    /// Whether a packet did not leave this host, or not as it was to.
    pub(crate) fn was_refused(&self, packet: &SentPacket) -> bool {
        self.refused.as_ref().is_some_and(|refused| refused.covers(packet.sent_at))
    }

    /// What the MTU search has done.
    pub const fn mtu_counters(&self) -> MtuCounters {
        self.mtu.counters()
    }

    /// Packets above this size, in bytes, tell whether the path still carries its MTU.
    pub(crate) fn full_above(&self) -> u16 {
        self.mtu.full_above()
    }

    /// The MTU search, to start it, or to tell it of a local limit.
    pub const fn mtu_search_mut(&mut self) -> &mut MtuSearch {
        &mut self.mtu
    }

    /// Whether the path carries ECN marks. A probe for that is a datagram of its own, recorded as marked and
    /// as neither in flight nor ack-eliciting.
    pub const fn ecn(&self) -> &EcnValidation {
        &self.ecn
    }

    /// The path leads over another network from now on: marks must prove themselves anew.
    pub const fn restart_ecn(&mut self) {
        self.ecn.restart();
    }

    /// True if the window has room for a packet of `bytes`. Probe packets after a PTO need not ask.
    pub fn can_send(&self, bytes: usize) -> bool {
        let (bytes, window) = (to_u64(bytes), self.controller.window());
        match &self.prr {
            Some(prr) => prr.permits(bytes, self.in_flight, window),
            None => self.in_flight.saturating_add(bytes) <= window,
        }
    }

    /// Bytes the window has room for.
    pub fn available(&self) -> u64 {
        let room = self.controller.window().saturating_sub(self.in_flight);
        self.prr.as_ref().map_or(room, |prr| prr.available())
    }

    /// When the pacer lets a packet of `bytes` go, or `None` if it may go now. Ask only with data to send and
    /// room in the window: the answer is remembered as data having waited. ACK-only packets and probes are not
    /// paced.
    pub fn next_send_time(&mut self, now: Time, bytes: usize) -> Option<Time> {
        if self.unpaced {
            return None;
        }
        let pace = self.pace();
        let release = self.pacer.next_send_time(now, to_u64(bytes), &pace);
        if release.is_some() {
            self.usage.paced_at = Some(now);
        }
        release
    }

    /// How long before they leave packets may be made ready, where the system holds them back until then: a short time,
    /// and a few packets.
    pub fn look_ahead(&self) -> Duration {
        self.pace().look_ahead()
    }

    /// The time that [`PathRecovery::next_send_time`] told last had passed so long ago when the sender was woken: its
    /// pacer makes up for it.
    pub const fn on_late(&mut self, late: Duration) {
        self.pacer.on_late(late);
    }

    /// Asked for twice with every packet.
    #[inline(always)]
    fn pace(&self) -> crate::pacer::Pace {
        let (window, smoothed_rtt, mtu) = (self.controller.window(), self.rtt.smoothed(), self.mtu.mtu());
        let own = match &self.resume {
            Some(resume) => self.pacing_of(resume),
            None => self.controller.pacing(),
        };
        crate::pacer::Pace { window, smoothed_rtt, slow_start: self.controller.is_slow_start(), mtu, own }
    }

    #[cold]
    fn pacing_of(&self, resume: &CarefulResume) -> Option<Pacing> {
        let resumed = resume.pacing(self.controller.window(), self.rtt.smoothed(), self.mtu.mtu());
        resumed.or_else(|| self.controller.pacing())
    }

    /// When [`PathRecovery::on_congestion_deadline`] is to be called: for congestion controllers with a deadline of
    /// their own.
    #[inline]
    pub fn congestion_deadline(&self) -> Option<Time> {
        self.controller.detailed().and_then(|custom| custom.deadline())
    }

    /// The congestion controller's deadline has come.
    pub fn on_congestion_deadline(&mut self, now: Time) {
        if let Some(custom) = self.controller.detailed_mut() {
            custom.on_deadline(now);
        }
    }

    /// What is left to a later connection on this path.
    pub fn export(&self) -> SavedState {
        let own = self.controller.detailed().and_then(|custom| custom.export());
        own.unwrap_or(SavedState { rtt: self.rtt.smoothed(), window: self.window(), rate: 0 })
    }

    /// What the next connection on this path may resume, if the congestion controller does that: the lowest round-trip time
    /// and the window.
    pub fn resumable(&self) -> Option<SavedState> {
        // What was resumed has not been found until it has passed.
        let found = self.resume.is_none() && self.rtt.first_sample_at().is_some();
        let known = self.controller.wants_resume() && found;
        known.then(|| SavedState { rtt: self.rtt.min(), window: self.window(), rate: 0 })
    }

    /// The sender ran out of data while both window and pacer would have let more go.
    pub fn on_app_limited(&mut self) {
        self.usage.paced_at = None;
        if let Some(resume) = &mut self.resume {
            resume.on_app_limited();
        }
        if let Some(sampler) = &mut self.sampler {
            sampler.on_app_limited(self.in_flight);
        }
    }

    /// A probe timeout fired: the next one takes twice as long. After several in a row the MTU falls back to
    /// 1200, because a path that became narrower swallows the probes as well.
    pub fn on_pto(&mut self, now: Time) {
        self.pto_count = self.pto_count.saturating_add(1);
        if self.has_only_data_in_flight() {
            self.data_pto_count = self.data_pto_count.saturating_add(1);
        }
        self.stats.ptos = self.stats.ptos.saturating_add(1);
        self.last_activity = self.last_activity.max(now);
        self.ecn.on_pto();
        if self.pto_count >= BLACK_HOLE_PTOS && self.mtu.on_silence(now) {
            self.controller.on_mtu_changed(self.mtu.mtu());
        }
    }

    /// Ends the PTO back-off: keys were dropped, the peer validated the address, or asked for a Retry (RFC 9002 section
    /// 6.3).
    pub fn reset_pto_count(&mut self) {
        (self.pto_count, self.data_pto_count) = (0, 0);
    }

    /// Packets of the Data space were acknowledged.
    pub(crate) const fn on_data_acked(&mut self) {
        self.data_pto_count = 0;
    }

    fn has_only_data_in_flight(&self) -> bool {
        let elicits = |id| self.flights.of(id).last_ack_eliciting().is_some();
        elicits(SpaceId::Data) && !elicits(SpaceId::Initial) && !elicits(SpaceId::Handshake)
    }

    /// The peer's ECN counts fit what was sent, with `ce` more packets that met congestion. True if the window
    /// was reduced.
    pub(crate) fn on_ecn_valid(&mut self, now: Time, acked: &EcnAcked, ce: u64) -> bool {
        let congested = self.ecn.on_valid(acked, ce);
        let bytes_in_flight = self.in_flight;
        if let Some(custom) = self.controller.detailed_mut().filter(|_| acked.packets > 0 || ce > 0) {
            custom.on_ecn(&CeMarks { now, marked: acked.packets, ce, bytes_in_flight });
        }
        let Some(sent_at) = acked.newest_sent_at.filter(|_| congested) else { return false };
        let before = self.event.number;
        self.on_congestion_experienced(now, sent_at);
        if self.event.number == before {
            return false;
        }
        if self.ecn.on_reduced() {
            self.prr = None;
            self.controller.on_false_alarm();
        }
        true
    }

    /// How long a lost packet is remembered.
    pub(crate) fn retention(&self) -> Duration {
        self.pto()
    }

    /// `duration` doubled for every PTO since the last acknowledgement; but the first few times it is not made longer
    /// than `most`.
    pub(crate) fn backed_off(&self, duration: Duration, most: Option<Duration>) -> Duration {
        doubled(duration, self.pto_count, most)
    }

    /// The same of a probe of another space in place of one in the Data space: acknowledgements of such probes are no reason
    /// for more of them.
    pub(crate) fn backed_off_for_data(&self, duration: Duration, most: Option<Duration>) -> Duration {
        doubled(duration, self.pto_count.max(self.data_pto_count), most)
    }

    /// When something ack-eliciting was last sent or anything last acknowledged: the start of a client's
    /// anti-deadlock PTO.
    pub(crate) const fn last_activity(&self) -> Time {
        self.last_activity
    }

    pub(crate) const fn recovery_start(&self) -> Option<Time> {
        self.event.start
    }

    pub(crate) const fn congestion_event(&self) -> u32 {
        self.event.number
    }

    /// A packet in flight is about to be sent: what is to be remembered with it for delivery-rate samples.
    #[inline]
    pub(crate) fn snapshot(&mut self, now: Time, bytes: usize) -> Option<Snapshot> {
        let sampler = self.sampler.as_mut()?;
        Some(sampler.on_sent(now, to_u64(bytes), self.in_flight))
    }

    /// Whether packets have snapshots.
    #[inline]
    pub(crate) const fn is_sampling(&self) -> bool {
        self.sampler.is_some()
    }

    /// Packets of this path arrived, of so many bytes.
    pub(crate) fn on_delivered(&mut self, bytes: u64) {
        if let Some(sampler) = &mut self.sampler {
            sampler.on_delivered(bytes);
        }
    }

    pub(crate) fn on_in_flight_sent(&mut self, now: Time, bytes: usize, ack_eliciting: bool) {
        self.on_other_sent(bytes);
        let bytes = to_u64(bytes);
        self.in_flight = self.in_flight.saturating_add(bytes);
        let bytes_in_flight = self.in_flight;
        self.controller.on_sent(&Sent { now, bytes, bytes_in_flight, ack_eliciting });
        let pace = self.pace();
        self.pacer.on_sent(now, bytes, &pace);
        // In slow start half a window counts as used: it doubles in a round trip, and so may the data.
        let used = if pace.slow_start {
            self.in_flight.saturating_mul(2)
        } else {
            self.in_flight.saturating_add(u64::from(pace.mtu))
        };
        if self.prr.is_some() || self.resume.is_some() {
            self.on_episode_sent(now, bytes);
        }
        if used > pace.window {
            self.usage.filled_at = Some(now);
        }
        if ack_eliciting {
            self.last_activity = self.last_activity.max(now);
        }
    }

    /// The same for what is there only at times.
    #[cold]
    fn on_episode_sent(&mut self, now: Time, bytes: u64) {
        if let Some(prr) = &mut self.prr {
            prr.on_sent(bytes);
            self.usage.filled_at = Some(now);
        }
        if let Some(resume) = &mut self.resume {
            resume.on_sent(now);
        }
    }

    pub(crate) fn on_other_sent(&mut self, bytes: usize) {
        self.stats.packets_sent = self.stats.packets_sent.saturating_add(1);
        self.stats.bytes_sent = self.stats.bytes_sent.saturating_add(to_u64(bytes));
    }

    pub(crate) fn on_bytes_left(&mut self, bytes: u64) {
        debug_assert!(self.in_flight >= bytes, "more bytes leave than were in flight");
        self.in_flight = self.in_flight.saturating_sub(bytes);
        if self.in_flight == 0 {
            self.prr = None;
        }
    }

    pub(crate) fn on_rtt_sample(&mut self, now: Time, sample: Duration, ack_delay: Duration) {
        self.rtt.on_sample(now, sample, ack_delay);
    }

    /// Packets arrived, before the losses that the same ACK frame shows.
    pub(crate) fn on_arrived(&mut self, arrived: Arrived) {
        self.mtu.on_packets_acked(arrived);
    }

    /// The path's share of an ACK frame, after loss detection.
    pub(crate) fn on_acked(
        &mut self,
        now: Time,
        tally: &AckTally,
        newest: Option<Newest>,
        lost: &LossSummary,
        prior_in_flight: u64,
    ) {
        self.last_activity = self.last_activity.max(now);
        self.ecn.on_acked();
        if self.peer_validated && !tally.ambiguous {
            self.pto_count = 0;
        }
        if let Some(size) = tally.mtu_probe_acked {
            self.mtu.on_probe_acked(now, size);
            self.controller.on_mtu_changed(self.mtu.mtu());
        }
        self.stats.bytes_acked = self.stats.bytes_acked.saturating_add(tally.bytes);
        let min_rtt = self.rtt.min();
        let delivery = self
            .sampler
            .as_mut()
            .zip(newest)
            .and_then(|(sampler, newest)| sampler.sample(now, newest, min_rtt));
        let Some((_, sent_at)) = tally.largest_sample else { return };
        if let Some(refused) = &mut self.refused {
            refused.on_acked(sent_at);
        }
        self.reduce_proportionally(sent_at, tally.bytes, lost);
        let mut acked = Acked {
            now,
            // What led to a reduction was sent before it.
            bytes: if lost.congestion { 0 } else { tally.growth_bytes },
            all_bytes: tally.bytes,
            largest_sent_at: sent_at,
            rtt_sample: tally.rtt_sample,
            rtt: &self.rtt,
            bytes_in_flight: prior_in_flight,
            window_used: self.was_window_used_since(sent_at),
            delivery,
        };
        let (in_flight, window) = (self.in_flight, self.controller.window());
        match self.resume.as_mut().map_or(Step::None, |resume| resume.on_ack(&acked, in_flight, window)) {
            Step::None => {}
            Step::Normal => self.resume = None,
            Step::Return(window) => {
                (acked.bytes, acked.all_bytes) = (0, 0);
                self.controller.set_window(window, None);
                self.resume = None;
            }
            Step::Hold => (acked.bytes, acked.all_bytes) = (0, 0),
            Step::Window(window) => {
                (acked.bytes, acked.all_bytes) = (0, 0);
                self.controller.set_window(window, None);
            }
            Step::Threshold(threshold) => {
                self.controller.set_window(window.min(threshold), Some(threshold));
                self.resume = None;
            }
        }
        self.controller.on_ack(&acked);
        self.try_few_acks(now, min_rtt);
    }

    /// Has some of the controller's probes made with few acknowledgements.
    fn try_few_acks(&mut self, now: Time, min_rtt: Duration) {
        let Some(custom) = self.controller.detailed() else { return };
        if min_rtt < SHORT {
            self.sparse.give_up();
            return;
        }
        let rate = || custom.export().map_or(0, |saved| saved.rate);
        self.sparse.on_acked(now, self.rtt.smoothed(), custom.is_probing(), rate);
    }

    /// True if at `sent_at` or later the window was full, or data waited for the pacer and never ran out.
    fn was_window_used_since(&self, sent_at: Time) -> bool {
        let Usage { filled_at, paced_at } = self.usage;
        filled_at.max(paced_at).is_some_and(|used_at| used_at >= sent_at)
    }

    pub(crate) fn on_mtu_probe_sent(&mut self, size: usize) {
        self.mtu.on_probe_sent(u16::try_from(size).unwrap_or(u16::MAX));
    }

    pub(crate) fn on_mtu_probe_lost(&mut self, now: Time, size: u16) {
        self.mtu.on_probe_lost(now, size);
    }

    /// A packet is lost, and not because it was a probe or did not leave this host.
    pub(crate) fn on_packet_lost(&mut self, now: Time, lost: &SentPacket, snapshot: Option<Snapshot>) {
        let (sent_at, bytes) = (lost.sent_at, u64::from(lost.bytes));
        let sampled = self.sampler.as_mut().zip(snapshot);
        let lost_since = sampled.map(|(sampler, snapshot)| sampler.on_lost(bytes, snapshot));
        if let Some(custom) = self.controller.detailed_mut() {
            let in_flight = snapshot.map(|snapshot| snapshot.in_flight);
            let app_limited = snapshot.map(|snapshot| snapshot.app_limited);
            custom.on_lost(&Lost { now, bytes, sent_at, in_flight, lost_since, app_limited });
        }
        if self.mtu.on_packet_lost(now, lost.bytes, sent_at) {
            self.controller.on_mtu_changed(self.mtu.mtu());
        }
    }
}

fn to_u64(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// See [`PathRecovery::backed_off`].
fn doubled(duration: Duration, doublings: u16, most: Option<Duration>) -> Duration {
    let factor = 1_u32.checked_shl(doublings.min(MAX_BACKOFF).into()).unwrap_or(u32::MAX);
    let whole = duration.saturating_mul(factor);
    match most {
        Some(most) if doublings <= CAPPED_PTOS => whole.min(most.max(duration)),
        _ => whole,
    }
}

#[cfg(test)]
mod tests;
