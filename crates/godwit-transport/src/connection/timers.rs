//! When the connection must be called again, and what happens then.

use super::Machine;
use super::lifecycle::State;
use super::outcome::collect;
use crate::part::Silence;
use crate::path::{Path, PathId};
use crate::{ConnectionError, TransportConfig};
use godwit_base::Time;
use godwit_recovery::{SpaceId, TimerInputs, TimerKind};
use godwit_wire::Side;
use std::num::NonZeroU32;
use std::time::Duration;

/// How long a connection keeps the memory of its last packets. Long enough that a round trip does not count as idleness,
/// short enough that of a rush of new connections the first leave room for the last.
const RELEASE_MEMORY_AFTER: Duration = Duration::from_millis(250);

/// Bytes of streams that make a transfer of which it is strange that it stops.
const STALL_AFTER: u64 = 16 << 10;

/// Datagrams that follow a probe timeout at once, whatever the window says (RFC 9002 section 6.2.4).
const PROBES: u8 = 2;

/// When so much of the idle timeout is left, in parts of it, the peer is probed once more, however long the next probe
/// timeout takes.
const LAST_PROBE: u32 = 6;

/// More packets than a flight of the handshake has.
const WHOLE_FLIGHT: u8 = 16;

/// The deadlines that no component keeps.
#[derive(Debug)]
pub(super) struct Timers {
    /// Its beginning restarts the idle timer.
    silence: Silence,
    idle_timeout: Option<Duration>,
    /// The application's own limit on silence.
    idle_limit: Option<Milliseconds>,
    /// The application's own limit on silence where an answer is due.
    answer_timeout: Option<Milliseconds>,
    /// How long nothing is sent before what is sent next goes to another id of the peer's.
    fresh_cid_after: Option<Milliseconds>,
    /// When something was sent last. None if what is sent next goes to another id than that did, for silence.
    last_sent: Option<Time>,
    /// When the handshake is given up; or, at a client that has completed it, for how long at most to wait for the server
    /// to confirm it.
    handshake: Option<Time>,
    /// When the pacer permits the next packet.
    pacing: Option<Time>,
    /// How long before that it is to be made ready, in microseconds; 65 ms at most.
    pacing_lead: u16,
    /// Bytes of streams that had come when the peer was last asked why no more came.
    stalled_at: u64,
    /// Nothing has happened since memory was given back.
    memory_released: bool,
    /// The peer has been probed for the last time in this silence.
    last_probe_sent: bool,
}

/// Some time, 49 days at most. So it fits beside others: there may be many connections.
#[derive(Debug, Clone, Copy)]
struct Milliseconds(NonZeroU32);

impl Milliseconds {
    /// A millisecond at least.
    fn of(time: Duration) -> Self {
        let milliseconds = u32::try_from(time.as_micros().div_ceil(1000)).unwrap_or(u32::MAX);
        Milliseconds(NonZeroU32::new(milliseconds).unwrap_or(NonZeroU32::MIN))
    }

    fn time(self) -> Duration {
        Duration::from_millis(self.0.get().into())
    }
}

impl Timers {
    pub(super) fn new(now: Time, config: &TransportConfig) -> Self {
        Timers {
            silence: Silence { since: now, awaits_answer: false },
            idle_timeout: super::nonzero(config.max_idle_timeout),
            idle_limit: None,
            answer_timeout: None,
            fresh_cid_after: config.fresh_cid_after.map(Milliseconds::of),
            last_sent: Some(now),
            handshake: Some(now + config.handshake_timeout),
            pacing: None,
            pacing_lead: 0,
            stalled_at: 0,
            memory_released: false,
            last_probe_sent: false,
        }
    }

    /// The idle timeout that both ends agreed on.
    pub(super) fn set_idle(&mut self, timeout: Option<Duration>) {
        self.idle_timeout = timeout;
    }

    pub(super) fn set_idle_limit(&mut self, limit: Option<Duration>) {
        self.idle_limit = limit.map(Milliseconds::of);
    }

    pub(super) fn set_answer_timeout(&mut self, timeout: Option<Duration>) {
        self.answer_timeout = timeout.map(Milliseconds::of);
    }

    pub(super) fn set_fresh_cid_after(&mut self, silence: Option<Duration>) {
        self.fresh_cid_after = silence.map(Milliseconds::of);
    }

    /// Something was sent.
    #[inline]
    pub(super) const fn on_sent(&mut self, now: Time) {
        self.last_sent = Some(now);
    }

    /// What is sent next goes to another id of the peer's for the silence before it.
    pub(super) const fn on_fresh_cid(&mut self) {
        self.last_sent = None;
    }

    /// Whether what is sent now ends a silence so long that it is to go to another id of the peer's. Where that was taken already,
    /// and nothing may be sent yet, it does.
    #[inline]
    pub(super) fn wants_fresh_cid(&self, now: Time) -> bool {
        self.fresh_cid_after.zip(self.last_sent).is_some_and(|(silence, sent)| now >= sent + silence.time())
    }

    pub(super) fn set_handshake(&mut self, at: Time) {
        self.handshake = Some(at);
    }

    pub(super) fn on_handshake_over(&mut self) {
        self.handshake = None;
    }

    pub(super) fn on_received(&mut self, now: Time) {
        self.silence = Silence { since: now, awaits_answer: false };
        (self.memory_released, self.last_probe_sent) = (false, false);
    }

    pub(super) fn on_ack_eliciting_sent(&mut self, now: Time) {
        if !self.silence.awaits_answer {
            self.silence = Silence { since: now, awaits_answer: true };
            self.memory_released = false;
        }
    }

    /// Whether the time came that the pacer told, and nobody was woken for it yet.
    pub(super) fn has_passed_pacing(&self, now: Time) -> bool {
        self.pacing.is_some_and(|at| at < now)
    }

    pub(super) fn set_pacing(&mut self, at: Option<Time>) {
        self.pacing = at;
    }

    /// When the pacer permits the next packet, as far as it was asked.
    pub(super) const fn pacing(&self) -> Option<Time> {
        self.pacing
    }

    /// Has the next packets made ready so long before they may leave.
    pub(super) fn set_pacing_lead(&mut self, lead: Duration) {
        self.pacing_lead = u16::try_from(lead.as_micros()).unwrap_or(u16::MAX);
    }

    fn idle(&self, pto: Duration) -> Option<Time> {
        // At least three probe timeouts, so that a lost packet does not end the connection (section 10.1).
        self.idle_timeout.map(|timeout| self.silence.since + timeout.max(pto.saturating_mul(3)))
    }

    fn last_probe(&self, pto: Duration) -> Option<Time> {
        let waits = self.silence.awaits_answer && !self.last_probe_sent;
        let timeout = self.idle_timeout.filter(|timeout| waits && *timeout / LAST_PROBE > pto)?;
        Some(self.silence.since + timeout.saturating_sub(timeout / LAST_PROBE))
    }

    /// When the application's limit on silence is reached. Not while a lost packet may be the reason.
    fn idle_limit(&self, pto: Duration) -> Option<Time> {
        self.idle_limit.map(|limit| self.silence.since + limit.time().max(pto.saturating_mul(3)))
    }

    /// Whether an idle connection has given back what only traffic needs.
    pub(super) const fn is_memory_released(&self) -> bool {
        self.memory_released
    }

    fn memory_release(&self) -> Option<Time> {
        if self.memory_released { None } else { Some(self.silence.since + RELEASE_MEMORY_AFTER) }
    }
}

/// What follows when a deadline was seen to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    MaySend,
    /// Nothing is to leave because of it: what was written and waits for company waits on.
    Rests,
}

/// The deadlines of an open connection, in the order in which they are seen to when several are due: when each comes,
/// by the probe timeout of the path in use, what happens then, and whether there may be something to send because of it.
/// After one that ends the connection nothing else happens.
macro_rules! timers {
    ($($deadline:ident => $on_due:ident, $then:ident;)*) => {
        impl Machine {
            fn open_deadline(&self) -> Option<Time> {
                let pto = self.pto();
                let mut earliest = None;
                $(earliest = earlier(earliest, self.$deadline(pto));)*
                earliest
            }

            /// Whether there may be something to send now.
            fn see_to_timers(&mut self, now: Time) -> bool {
                let pto = self.pto();
                let mut may_send = false;
                $(
                    if self.$deadline(pto).is_some_and(|at| at <= now) {
                        self.$on_due(now);
                        may_send |= Then::$then == Then::MaySend;
                        if !self.lifecycle.is_open() {
                            return true;
                        }
                    }
                )*
                may_send
            }
        }
    };
}

timers! {
    idle_deadline => on_idle, MaySend;
    answer_deadline => on_idle, MaySend;
    idle_limit_deadline => on_idle_limit, MaySend;
    handshake_deadline => on_handshake_timeout, MaySend;
    memory_deadline => on_memory_due, Rests;
    pacing_deadline => on_pacing, MaySend;
    congestion_deadline => on_congestion_deadline, MaySend;
    path_deadline => on_path_timeout, MaySend;
    part_deadline => on_part_timeout, MaySend;
    stall_deadline => on_stall, MaySend;
    ack_deadline => on_ack_due, MaySend;
    loss_deadline => on_loss_timeout, MaySend;
    last_probe_deadline => on_last_probe, MaySend;
    repeats_deadline => on_repeats_due, MaySend;
}

#[inline]
fn earlier(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

impl Machine {
    /// See [`crate::Connection::deadline`].
    pub(crate) fn deadline(&self) -> Option<Time> {
        match self.lifecycle.state() {
            State::Drained => None,
            State::Closing { .. } | State::Draining { .. } => self.lifecycle.deadline(),
            State::Handshaking | State::Unapproved | State::Established | State::Confirmed => {
                self.open_deadline()
            }
        }
    }

    /// See [`crate::Connection::on_timeout`]. False if there is nothing to send because of it.
    pub(crate) fn on_timeout(&mut self, now: Time) -> bool {
        self.observe_time(now);
        self.lifecycle.on_timeout(now);
        if !self.lifecycle.is_open() {
            return true;
        }
        // Nobody is to be called for these: their keys are of no use any more, whenever they go.
        self.early.on_timeout(now);
        self.see_to_timers(now)
    }

    /// The probe timeout of the path in use: the unit of periods that concern the connection as a whole.
    #[inline]
    pub(super) fn pto(&self) -> Duration {
        self.paths.active().recovery.pto()
    }

    fn idle_deadline(&self, pto: Duration) -> Option<Time> {
        self.timers.idle(pto)
    }

    fn on_idle(&mut self, _now: Time) {
        self.abandon(ConnectionError::TimedOut);
    }

    /// When it is too late for an answer. Not before it could be missed: one that takes a probe timeout may be on its way.
    fn answer_deadline(&self, pto: Duration) -> Option<Time> {
        let timers = &self.timers;
        timers
            .answer_timeout
            .filter(|_| timers.silence.awaits_answer)
            .map(|timeout| timers.silence.since + timeout.time().max(pto))
    }

    fn last_probe_deadline(&self, pto: Duration) -> Option<Time> {
        self.timers.last_probe(pto).filter(|_| self.lifecycle.is_confirmed())
    }

    /// After an outage of twenty seconds, as in a tunnel, the probe timeout is so long that the idle timeout would come
    /// first: at both ends, and in the midst of a transfer. Probes may leave at any time (RFC 9000 section 10.1.2).
    fn on_last_probe(&mut self, _now: Time) {
        self.timers.last_probe_sent = true;
        self.spaces.data.space.probes = PROBES;
        self.repeat_oldest(self.paths.active_id(), SpaceId::Data, PROBES);
    }

    fn idle_limit_deadline(&self, pto: Duration) -> Option<Time> {
        self.timers.idle_limit(pto)
    }

    fn handshake_deadline(&self, _pto: Duration) -> Option<Time> {
        self.timers.handshake
    }

    fn memory_deadline(&self, _pto: Duration) -> Option<Time> {
        self.timers.memory_release()
    }

    /// Most connections of a busy server are idle most of the time. What only traffic needs is given back once nothing
    /// has come or gone for [`RELEASE_MEMORY_AFTER`], so that an idle connection is little more than its keys and its
    /// state.
    fn on_memory_due(&mut self, now: Time) {
        if self.leave_behind_at_rest() {
            // Telling takes memory as well: what is told is fetched, and then it is time again.
            return;
        }
        self.timers.memory_released = true;
        self.outcomes = Vec::new();
        self.events.shrink();
        self.spaces.data.space.recovery.shrink();
        self.spaces.data.space.acks.shrink();
        if let Some(keys) = &mut self.spaces.data.keys {
            keys.forget(now);
        }
        self.parts.release_memory();
    }

    fn pacing_deadline(&self, _pto: Duration) -> Option<Time> {
        self.timers.pacing.map(|at| at - Duration::from_micros(self.timers.pacing_lead.into()))
    }

    /// Timers of hosts go off late, and a turn may have begun before the time came: the pacer is told by how much.
    pub(super) fn on_pacing(&mut self, now: Time) {
        if let Some(at) = self.timers.pacing.take() {
            let active = self.paths.active_id();
            self.paths.path_mut(active).recovery.on_late(now.saturating_since(at));
        }
    }

    fn congestion_deadline(&self, _pto: Duration) -> Option<Time> {
        self.paths.timed().filter_map(|path| path.recovery.congestion_deadline()).min()
    }

    fn on_congestion_deadline(&mut self, now: Time) {
        for path in self.paths.timed_mut() {
            if path.recovery.congestion_deadline().is_some_and(|at| at <= now) {
                path.recovery.on_congestion_deadline(now);
            }
        }
        self.observe_recovery(self.paths.active_id());
    }

    fn path_deadline(&self, _pto: Duration) -> Option<Time> {
        self.paths.deadline()
    }

    fn on_path_timeout(&mut self, now: Time) {
        self.paths.on_timeout(now, self.pto());
        self.follow_paths(now);
    }

    fn part_deadline(&self, _pto: Duration) -> Option<Time> {
        self.parts.deadline(&self.timers.silence)
    }

    fn on_part_timeout(&mut self, now: Time) {
        self.parts.on_timeout(now, &self.timers.silence);
    }

    /// Who only receives has nothing on its way that could be missed, and so no probe timeout: if its address has been
    /// translated to another meanwhile, both ends would wait in silence for the idle timeout. A client that was in the
    /// midst of a transfer asks once.
    #[inline]
    fn stall_deadline(&self, pto: Duration) -> Option<Time> {
        let came = self.parts.streams.stats().bytes_received.saturating_sub(self.timers.stalled_at);
        let stalled = came >= STALL_AFTER && self.side == Side::Client && !self.timers.silence.awaits_answer;
        let asks = stalled && self.config.tail.probed_stalls;
        asks.then(|| self.timers.silence.since + pto.saturating_mul(3))
    }

    fn on_stall(&mut self, _now: Time) {
        self.timers.stalled_at = self.parts.streams.stats().bytes_received;
        if self.parts.streams.in_midst_of_data() {
            self.parts.ping.send();
        }
    }

    /// An acknowledgement that may not be sent yet waits for credit, not for time.
    fn ack_deadline(&self, _pto: Duration) -> Option<Time> {
        self.spaces.ack_deadline().filter(|_| self.paths.active().can_send_anything())
    }

    /// Whoever calls lets the connection send afterwards, and it goes with that.
    fn on_ack_due(&mut self, _now: Time) {}

    fn loss_deadline(&self, _pto: Duration) -> Option<Time> {
        self.paths.timed().filter_map(|path| self.loss_timer(path)).map(|(at, _)| at).min()
    }

    fn on_loss_timeout(&mut self, now: Time) {
        for id in self.paths.ids().into_iter().flatten() {
            let timer = self.loss_timer(self.paths.path(id)).filter(|(at, _)| *at <= now);
            match timer {
                Some((_, TimerKind::LossTime(space))) => self.on_loss_time(now, id, space),
                Some((_, TimerKind::Pto(space))) => self.on_pto(now, id, space),
                None => {}
            }
        }
    }

    /// When loss detection is due on a path, and why.
    pub(super) fn loss_timer(&self, path: &Path) -> Option<(Time, TimerKind)> {
        let inputs = TimerInputs {
            handshake_confirmed: self.lifecycle.is_confirmed(),
            has_handshake_keys: self.spaces.handshake.is_some(),
            awaits_handshake: self.side == Side::Client && self.lifecycle.is_handshaking(),
            // Probes go where new data goes.
            amplification_blocked: !self.paths.active().can_send_anything(),
            most_backed_off: self.config.tail.most_backed_off,
        };
        godwit_recovery::timer(&path.recovery, inputs)
    }

    fn on_loss_time(&mut self, now: Time, path: PathId, id: SpaceId) {
        let Some(space) = self.spaces.get_mut(id) else { return };
        let (outcomes, recovery) = (&mut self.outcomes, &mut self.paths.path_mut(path).recovery);
        space.recovery.on_loss_timer(recovery, now, &mut |outcome, token| collect(outcomes, outcome, token));
        self.observe_lost(id, Some(crate::observe::LossTrigger::TimeThreshold));
        self.observe_recovery(path);
        self.dispatch_outcomes(id);
    }

    /// A probe timeout on a path: two packets go out whatever the window says, with the oldest unacknowledged
    /// content, so that the peer answers and loss can be told (RFC 9002 section 6.2.4). They go where new data goes.
    fn on_pto(&mut self, now: Time, path: PathId, id: SpaceId) {
        // What fits into one datagram is not sent twice at once, but a little later once more, if so.
        let later = self.config.tail.spaced_probes > 0 && self.awaited_datagrams() == 1;
        let probes = if later { 1 } else { PROBES };
        let whole = if id == SpaceId::Data { self.repeats_whole() } else { self.config.tail.whole_flights };
        let packets = if whole { WHOLE_FLIGHT } else { PROBES };
        self.paths.path_mut(path).recovery.on_pto(now);
        super::stats::increment(&mut self.stats.ptos);
        let retransmits = self.retransmits(now, path, id);
        self.observe_recovery(path);
        if retransmits {
            return self.repeat_probes(now);
        }
        if let Some(space) = self.spaces.get_mut(id) {
            space.probes = probes;
        }
        if id == SpaceId::Data && self.config.tail.immediate_ack {
            self.parts.ack_frequency.on_pto();
        }
        self.repeat_oldest(path, id, packets);
        // While keys of both levels exist, both may be what is missing at the other end.
        let recovery = &self.paths.path(path).recovery;
        if id == SpaceId::Initial
            && let Some(handshake) = self.spaces.get_mut(SpaceId::Handshake)
            && recovery.has_ack_eliciting_in_flight(SpaceId::Handshake)
        {
            handshake.probes = probes;
            self.repeat_oldest(path, SpaceId::Handshake, packets);
        }
        if id != SpaceId::Data {
            self.repeat_early(path);
        }
        // A server that has dropped its Handshake keys cannot read a Handshake probe; if our address has
        // changed meanwhile, only a 1-RTT packet tells it.
        if id == SpaceId::Handshake && !self.lifecycle.is_handshaking() {
            self.spaces.data.space.probes = 1;
        }
        self.repeat_probes(now);
    }

    /// What the oldest `packets` unacknowledged packets of a space on a path carried is to be sent again, without
    /// calling them lost.
    pub(super) fn repeat_oldest(&mut self, path: PathId, id: SpaceId, packets: u8) {
        let mut tokens = Vec::new();
        if let Some(space) = self.spaces.get_mut(id) {
            let path = &self.paths.path(path).recovery;
            space.recovery.pto_tokens(path, usize::from(packets), &mut |token| tokens.push(token));
        }
        tokens.into_iter().for_each(|token| self.parts.repeat(token));
    }
}
