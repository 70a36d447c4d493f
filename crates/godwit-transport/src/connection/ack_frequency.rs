//! How often acknowledgements are sent, as either end requests (draft-ietf-quic-ack-frequency).
//!
//! As sender of data: once per round trip it is looked at how many packets the window holds. Where they are many,
//! the peer is asked for about thirty acknowledgements per round trip, and to delay them for no more than an eighth
//! of it; where they are few, or the window is just being found, for the usual. Still fewer would be felt where the
//! window is less than the path could hold: what has arrived and is not acknowledged takes its room. Where the way back
//! may be too thin even for those, and it is tried with four in a round trip whether the path is faster then, that is
//! asked for at once. As receiver: the newest request of the peer holds.
//!
//! IMMEDIATE_ACK goes with the packets after a probe timeout and with probes of the MTU. At the end of a flight it
//! gains nothing: loss detection waits for an eighth of a round trip anyway.
//!
//! Invariants: a request is sent only to a peer that declared min_ack_delay, and asks for no delay below that or above
//! the peer's own; one request is on its way at most. So the probe timeout can go on with the delay that the peer
//! declared (RFC 9002 section 6.2.1): a shorter one would turn every pause of the peer's scheduler into a timeout.

use crate::WireError;
use crate::packet::PacketBuilder;
use crate::part::Part;
use godwit_base::Time;
use godwit_recovery::{AckPolicy, PathRecovery};
use godwit_wire::{Frame, TransportErrorCode};
use std::time::Duration;

/// The min_ack_delay that we declare, unless our max_ack_delay is less: what coarse timers can keep.
const OUR_MIN_DELAY: Duration = Duration::from_millis(1);
/// A delay of 2^14 ms or more is invalid (RFC 9000 section 18.2).
const INVALID_DELAY: Duration = Duration::from_millis(1 << 14);
/// Packets that ask for an immediate acknowledgement after a probe timeout.
const IMMEDIATE_PROBES: u8 = 2;

/// The requests of both ends.
#[derive(Debug, Default)]
pub(crate) struct AckFrequency {
    /// The peer's part; `None` if it cannot be asked.
    peer: Option<Peer>,
    next_look: Time,
    /// The window when it was last looked at, in bytes.
    window: u64,
    /// Whether it was being tried then what few acknowledgements do.
    tries_few: bool,
    /// Packets that are to carry an IMMEDIATE_ACK frame.
    immediate: u8,
    /// Our own min_ack_delay, if the peer may ask us.
    offered: Option<Duration>,
    /// One more than the sequence number of the newest request of the peer; 0 if there was none.
    obeyed: u64,
}

/// A peer that can be asked.
#[derive(Debug, Clone, Copy)]
struct Peer {
    min: Duration,
    max: Duration,
    requested: AckPolicy,
    state: State,
    /// The sequence number of the next frame.
    next: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The peer has the request.
    Known,
    /// It waits to be sent.
    Pending,
    /// It is on its way.
    InFlight,
}

impl AckFrequency {
    /// The min_ack_delay to declare, if the peer may ask us for fewer acknowledgements.
    pub(crate) fn min_delay(enabled: bool, max_ack_delay: Duration) -> Option<Duration> {
        enabled.then(|| OUR_MIN_DELAY.min(max_ack_delay))
    }

    /// The peer's transport parameters are known; `offered` is what we declared ourselves. Requests go to the peer
    /// only if it may make requests, too.
    pub(crate) fn on_peer_parameters(
        &mut self,
        offered: Option<Duration>,
        min: Option<Duration>,
        max: Duration,
    ) {
        self.offered = offered;
        self.peer = min.filter(|_| offered.is_some()).map(|min| Peer {
            min,
            max,
            requested: AckPolicy::usual(max),
            state: State::Known,
            next: 0,
        });
    }

    /// The peer understands IMMEDIATE_ACK.
    pub(crate) const fn is_available(&self) -> bool {
        self.peer.is_some()
    }

    /// Packets were acknowledged: once per round trip it is looked at what would be best.
    #[inline]
    pub(crate) fn on_acked_packets(&mut self, now: Time, path: &PathRecovery) {
        self.immediate = 0;
        if now >= self.next_look || self.tries_few != path.tries_few_acks() {
            self.look(now, path);
        }
    }

    fn look(&mut self, now: Time, path: &PathRecovery) {
        let rtt = path.rtt().smoothed();
        self.next_look = now + rtt;
        let before = std::mem::replace(&mut self.window, path.window());
        let Some(peer) = self.peer.as_mut().filter(|peer| peer.state != State::InFlight) else { return };
        self.tries_few = path.tries_few_acks();
        let grows = path.controller().is_slow_start() && path.window() > before.saturating_add(before / 4);
        let policy = path.best_ack_policy(peer.min..=peer.max, grows);
        if peer.requested.differs(&policy) {
            peer.requested = policy;
            peer.state = State::Pending;
        }
    }

    /// A probe timeout: the answer must not wait.
    pub(crate) fn on_pto(&mut self) {
        if self.peer.is_some() {
            self.immediate = IMMEDIATE_PROBES;
        }
    }

    fn on_fate(&mut self, sequence: u64, state: State) {
        if let Some(peer) = &mut self.peer
            && peer.state == State::InFlight
            && sequence.saturating_add(1) == peer.next
        {
            peer.state = state;
        }
    }

    /// The peer's request: what to do from now on, unless a later one is known already.
    pub(crate) fn on_ack_frequency(
        &mut self,
        sequence: u64,
        threshold: u64,
        delay: u64,
        reordering: u64,
    ) -> Result<Option<AckPolicy>, WireError> {
        let violation = |reason| WireError::new(TransportErrorCode::PROTOCOL_VIOLATION, reason);
        let Some(least) = self.offered else {
            return Err(violation("ACK_FREQUENCY without min_ack_delay"));
        };
        let max_ack_delay = Duration::from_micros(delay);
        if max_ack_delay < least || max_ack_delay >= INVALID_DELAY {
            return Err(violation("ACK_FREQUENCY with an invalid delay"));
        }
        let count = sequence.saturating_add(1);
        if count <= self.obeyed {
            return Ok(None);
        }
        self.obeyed = count;
        let threshold = u32::try_from(threshold).unwrap_or(u32::MAX);
        Ok(Some(AckPolicy { threshold, max_ack_delay, reordering }))
    }

    /// The peer wants an acknowledgement now.
    pub(crate) fn on_immediate_ack(&self) -> Result<(), WireError> {
        if self.offered.is_some() {
            return Ok(());
        }
        Err(WireError::new(TransportErrorCode::PROTOCOL_VIOLATION, "IMMEDIATE_ACK without min_ack_delay"))
    }
}

/// The ACK_FREQUENCY frame with this sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestToken(u64);

impl Part for AckFrequency {
    type Token = RequestToken;

    #[inline]
    fn wants_to_send(&self) -> bool {
        self.immediate > 0 || self.peer.is_some_and(|peer| peer.state == State::Pending)
    }

    fn write_frames<T: From<RequestToken>>(&mut self, packet: &mut PacketBuilder<'_, T>) {
        if self.immediate > 0 && packet.put_once(&Frame::ImmediateAck).is_ok() {
            self.immediate = self.immediate.saturating_sub(1);
        }
        let Some(peer) = self.peer.as_mut().filter(|peer| peer.state == State::Pending) else { return };
        let frame = Frame::AckFrequency {
            sequence: peer.next,
            threshold: u64::from(peer.requested.threshold),
            max_ack_delay: micros(peer.requested.max_ack_delay),
            reordering: peer.requested.reordering,
        };
        if packet.put(&frame, RequestToken(peer.next)).is_ok() {
            peer.next = peer.next.saturating_add(1);
            peer.state = State::InFlight;
        }
    }

    /// The peer has this request.
    fn on_acked(&mut self, RequestToken(sequence): RequestToken) {
        self.on_fate(sequence, State::Known);
    }

    fn repeat(&mut self, RequestToken(sequence): RequestToken) {
        self.on_fate(sequence, State::Pending);
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, reason = "tests")]
    use super::*;
    use godwit_recovery::PathSettings;
    use godwit_recovery::congestion::{
        Acked, CongestionControl, CongestionController, ControllerFactory, ControllerStart,
    };

    const MAX: Duration = Duration::from_millis(25);
    const MIN: Duration = Duration::from_millis(1);

    /// A window of so many packets.
    #[derive(Debug, Clone, Copy)]
    struct Fixed {
        packets: u64,
        slow_start: bool,
    }

    impl ControllerFactory for Fixed {
        fn controller(&self, _start: &ControllerStart) -> Box<dyn CongestionController> {
            Box::new(*self)
        }
    }

    impl CongestionController for Fixed {
        fn on_ack(&mut self, _acked: &Acked<'_>) {}
        fn on_congestion(&mut self, _now: Time) {}
        fn on_persistent_congestion(&mut self) {}
        fn on_spurious_congestion(&mut self) {}
        fn on_mtu_changed(&mut self, _mtu: u16) {}
        fn window(&self) -> u64 {
            self.packets * 1200
        }
        fn slow_start_threshold(&self) -> Option<u64> {
            (!self.slow_start).then_some(0)
        }
    }

    /// A path with this window and a round trip of 80 ms.
    fn path_with(packets: u64, slow_start: bool) -> PathRecovery {
        let congestion = CongestionControl::Custom(std::sync::Arc::new(Fixed { packets, slow_start }));
        let mut settings = PathSettings::default();
        settings.initial_rtt = 80 * MIN;
        settings.congestion = congestion;
        PathRecovery::new(Time::ZERO, &settings)
    }

    fn path(packets: u64) -> PathRecovery {
        path_with(packets, false)
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    fn offered() -> AckFrequency {
        let mut acks = AckFrequency::default();
        acks.on_peer_parameters(Some(MIN), Some(MIN), MAX);
        acks
    }

    fn write(acks: &mut AckFrequency) -> Vec<RequestToken> {
        crate::packet::testing::payload(40, |packet| acks.write_frames(packet)).1
    }

    #[test]
    fn small_windows_and_peers_that_offer_nothing_are_left_alone() {
        let mut acks = offered();
        acks.on_acked_packets(Time::ZERO, &path(95));
        assert!(!acks.wants_to_send() && acks.is_available());
        let mut acks = AckFrequency::default();
        acks.on_peer_parameters(Some(MIN), None, MAX);
        acks.on_pto();
        acks.on_acked_packets(Time::ZERO, &path(1000));
        assert!(!acks.wants_to_send() && !acks.is_available());
    }

    #[test]
    fn large_windows_are_acknowledged_some_times_per_round_trip() {
        let mut acks = offered();
        acks.on_acked_packets(Time::ZERO, &path(320));
        let requested = acks.peer.unwrap().requested;
        assert_eq!(requested, AckPolicy { threshold: 10, max_ack_delay: 10 * MIN, reordering: 3 });
        assert_eq!(write(&mut acks), [RequestToken(0)]);
        acks.on_acked(RequestToken(0));
        // Not before a round trip has passed.
        acks.on_acked_packets(at(79), &path(10));
        assert!(!acks.wants_to_send());
        acks.on_acked_packets(at(80), &path(10));
        assert!(acks.wants_to_send());
        assert_eq!(acks.peer.unwrap().requested, AckPolicy::usual(MAX));
    }

    #[test]
    fn a_window_that_is_being_found_is_acknowledged_as_usual() {
        let mut acks = offered();
        for (round, packets) in [(0, 100), (1, 200), (2, 400)] {
            acks.on_acked_packets(at(round * 80), &path_with(packets, true));
            assert!(!acks.wants_to_send(), "{packets}");
        }
        acks.on_acked_packets(at(240), &path_with(420, true));
        assert!(acks.wants_to_send(), "it hardly grows");
    }

    #[test]
    fn a_request_is_repeated_when_lost_and_stands_when_acknowledged() {
        let mut acks = offered();
        acks.on_acked_packets(Time::ZERO, &path(320));
        write(&mut acks);
        acks.repeat(RequestToken(7));
        assert!(!acks.wants_to_send());
        acks.repeat(RequestToken(0));
        assert_eq!(write(&mut acks), [RequestToken(1)]);
        acks.on_acked(RequestToken(0));
        assert_eq!(acks.peer.unwrap().state, State::InFlight, "what was lost came after all");
        acks.on_acked_packets(at(80), &path(10));
        assert!(!acks.wants_to_send(), "one is on its way");
        acks.on_acked(RequestToken(1));
        acks.on_acked_packets(at(160), &path(320));
        assert!(!acks.wants_to_send(), "the peer has it");
        acks.on_acked_packets(at(240), &path(10));
        assert_eq!(write(&mut acks), [RequestToken(2)]);
    }

    #[test]
    fn no_delay_is_asked_for_that_the_peer_has_not_declared() {
        let peer = |min, max| {
            let mut acks = AckFrequency::default();
            acks.on_peer_parameters(Some(MIN), Some(min), max);
            acks.on_acked_packets(Time::ZERO, &path(1000));
            acks.peer.unwrap().requested.max_ack_delay
        };
        assert_eq!(peer(MIN, MAX), 10 * MIN, "an eighth of the round trip");
        assert_eq!((peer(20 * MIN, MAX), peer(MIN, 5 * MIN)), (20 * MIN, 5 * MIN));
    }

    #[test]
    fn probes_ask_for_an_answer_until_there_is_one() {
        let mut acks = offered();
        acks.on_pto();
        let (payload, ..) =
            crate::packet::testing::payload::<RequestToken, _>(40, |packet| acks.write_frames(packet));
        assert_eq!(payload, [0x1f], "IMMEDIATE_ACK");
        assert!(acks.wants_to_send(), "two probes");
        acks.on_acked_packets(Time::ZERO, &path(10));
        assert!(!acks.wants_to_send());
    }

    #[test]
    fn the_newest_request_of_the_peer_holds_if_it_is_valid() {
        let mut acks = offered();
        let policy = |threshold| AckPolicy { threshold, max_ack_delay: 5 * MIN, reordering: 3 };
        assert_eq!(acks.on_ack_frequency(7, 10, 5_000, 3), Ok(Some(policy(10))));
        assert_eq!(acks.on_ack_frequency(6, 20, 5_000, 3), Ok(None));
        assert_eq!(acks.on_ack_frequency(8, u64::MAX, 5_000, 3), Ok(Some(policy(u32::MAX))));
        for delay in [999, 1 << 14 << 10, u64::MAX] {
            assert!(acks.on_ack_frequency(9, 10, delay, 3).is_err(), "{delay}");
        }
        let mut mute = AckFrequency::default();
        assert!(mute.on_ack_frequency(0, 10, 5_000, 3).is_err() && mute.on_immediate_ack().is_err());
    }
}
