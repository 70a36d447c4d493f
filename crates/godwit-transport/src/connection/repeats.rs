//! Small flights, and probes, sent again before anybody knows whether they were lost: see [`TailPolicy`].
//!
//! A flight begins when something is sent while nothing that has to be acknowledged is under way, and ends when nothing
//! else waits to be sent, within a round trip. What of it somebody waits for (handshake messages and stream data) is sent again after a while,
//! as if it were lost, if it is not acknowledged by then: as far as window, pacer and the limit before address validation
//! permit. Data that keeps coming is no flight, and what keeps being sent by the packet soon has no allowance left.
//!
//! After a probe timeout the rest of a small flight follows the probes, as far as the window permits, and a little later
//! what it held back, or what the probes carried once more: a datagram each time, whatever the window says (RFC 9002
//! section 6.2.4).

use super::Machine;
use super::boundary::Transmitted;
use super::parts::RecoveryToken;
use super::tokens::range;
use crate::resumption::Network;
use crate::tail::TailPolicy;
use godwit_base::Time;
use godwit_recovery::{BASE_MTU, PathRecovery, SpaceId};
use std::time::Duration;

/// Packets of a space that are looked at.
const MOST_PACKETS: u64 = 24;
/// What is no more than so many datagrams is sent again whole after a probe timeout, as far as the window permits.
const WHOLE: u8 = 4;
/// After so much silence there is an allowance again, of so many datagrams.
const REST: Duration = Duration::from_secs(1);
const AFTER_REST: u8 = 2;
/// One datagram may be sent again for so many that were sent.
const EARNED_BY: u32 = 300;
/// Where a quarter of the round trip is less, a probe timeout is not long to wait for.
const LEAST_SPACING: Duration = Duration::from_millis(5);
const SPACES: [SpaceId; 3] = [SpaceId::Initial, SpaceId::Handshake, SpaceId::Data];

/// What is to be sent again, and when.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    /// When the next time comes.
    at: Option<Time>,
    /// The last flight began then.
    flight: Option<Time>,
    /// The datagrams that had been sent when the allowance last grew; wraps.
    counted: u32,
    /// Handshake messages and stream data sent when the last flight was looked at, in bytes; wraps.
    awaited: u32,
    /// The share of packets lost in this network before, and how the round-trip time varied: [`Network`].
    loss: u16,
    variation: u16,
    /// How often it is still to be sent again.
    left: u8,
    /// Datagrams that may be sent again.
    allowance: u8,
    /// It is what was sent after a probe timeout.
    probes: bool,
}

impl Repeats {
    pub(super) fn new(policy: &TailPolicy, network: Network) -> Self {
        let Network { loss, variation, .. } = network;
        Repeats { loss, variation, allowance: policy.allowance, ..Repeats::default() }
    }

    /// What was known of the network at first.
    pub(super) fn network(&self) -> Network {
        Network { loss: self.loss, variation: self.variation, ..Network::default() }
    }

    /// A flight begins.
    fn begin(&mut self, now: Time, sent: u64, policy: &TailPolicy) {
        let sent = low(sent);
        let earned = sent.wrapping_sub(self.counted).checked_div(EARNED_BY).unwrap_or(0);
        if earned > 0 {
            self.counted = sent;
            self.allowance = self.allowance.saturating_add(u8::try_from(earned).unwrap_or(u8::MAX));
        }
        if self.flight.is_some_and(|last| now >= last + REST) {
            self.allowance = self.allowance.max(AFTER_REST);
        }
        self.allowance = self.allowance.min(policy.allowance);
        (self.flight, self.left, self.probes) = (Some(now), policy.copies, false);
    }

    /// Uses up the allowance for so many datagrams. False if it is not enough.
    fn pay(&mut self, datagrams: u8) -> bool {
        let left = self.allowance.checked_sub(datagrams);
        self.allowance = left.unwrap_or(self.allowance);
        left.is_some()
    }
}

/// The lower half of a counter.
const fn low(count: u64) -> u32 {
    (count & 0xffff_ffff) as u32
}

/// What of a flight would be sent again.
#[derive(Debug, Default)]
struct Awaited {
    tokens: Vec<(SpaceId, u64, RecoveryToken)>,
}

impl Awaited {
    /// How many it fills.
    fn datagrams(&self) -> u8 {
        let datagrams = u8::try_from(self.bytes().div_ceil(u64::from(BASE_MTU))).unwrap_or(u8::MAX);
        datagrams.max(u8::from(!self.tokens.is_empty()))
    }

    /// Its bytes, those counted once that are under way more than once.
    fn bytes(&self) -> u64 {
        let mut parts: Vec<_> = self.tokens.iter().filter_map(|(_, _, token)| range(token)).collect();
        parts.sort_unstable();
        let (mut bytes, mut stream, mut until) = (0_u64, None, 0);
        for (of, from, to) in parts {
            if stream.replace(of) != Some(of) {
                until = 0;
            }
            bytes = bytes.saturating_add(to.saturating_sub(from.max(until)));
            until = until.max(to);
        }
        bytes
    }

    /// What was sent last of it.
    fn tail(mut self) -> Self {
        let newest =
            self.tokens.iter().map(|(space, number, _)| (*space, *number)).max_by_key(|(space, number)| {
                // Of packets sent together, the spaces come one after the other.
                (SPACES.iter().position(|other| other == space), *number)
            });
        self.tokens.retain(|(space, number, _)| Some((*space, *number)) == newest);
        self
    }
}

impl Machine {
    /// Something may be sent now.
    #[inline]
    pub(super) fn before_sending(&mut self, now: Time) {
        let policy = &self.config.tail;
        let path = &self.paths.active().recovery;
        let quiet = || SPACES.into_iter().all(|space| !path.has_ack_eliciting_in_flight(space));
        if policy.copies > 0 && quiet() {
            self.repeats.begin(now, self.stats.datagrams_sent, policy);
        }
    }

    /// What could be sent has been.
    #[inline]
    pub(super) fn after_sending(&mut self, now: Time, transmitted: Transmitted) {
        if self.config.tail.copies == 0 || self.repeats.probes {
            return;
        }
        let data = self.parts.streams.data_sent();
        let awaited = low(data.wrapping_add(self.parts.handshake.bytes_sent()));
        if awaited == self.repeats.awaited {
            return;
        }
        self.repeats.awaited = awaited;
        // Data that waits makes the flight longer, if for the pacer; but before an acknowledgement can have come.
        let rtt = self.paths.active().recovery.rtt().smoothed();
        let goes_on = self.repeats.flight.is_some_and(|begun| now < begun + rtt);
        if transmitted == Transmitted::More || self.parts.want_to_send() || !goes_on || self.repeats.left == 0
        {
            self.repeats.at = None;
        } else {
            self.repeat_later(now);
        }
    }

    fn repeat_later(&mut self, now: Time) {
        let rtt = self.paths.active().recovery.rtt().smoothed();
        let spacing = self.config.tail.spacing.min(rtt / 4);
        self.repeats.at = (spacing >= LEAST_SPACING).then(|| now + spacing);
    }

    /// A probe timeout has fired.
    pub(super) fn repeat_probes(&mut self, now: Time) {
        (self.repeats.left, self.repeats.probes) = (self.config.tail.spaced_probes, true);
        if self.repeats.left > 0 {
            self.repeat_later(now);
        }
    }

    pub(super) fn repeats_deadline(&self, _pto: Duration) -> Option<Time> {
        self.repeats.at
    }

    /// It is time to send again what is not acknowledged.
    pub(super) fn on_repeats_due(&mut self, now: Time) {
        self.repeats.at = None;
        let Some(awaited) = self.due_again() else { return };
        // What the window held back at the probe timeout goes first.
        let held_back = self.repeats.probes && self.parts.want_to_send();
        if self.repeats.probes {
            let datagrams = if held_back { 1 } else { awaited.datagrams() };
            self.repeats.left = self.repeats.left.saturating_sub(datagrams);
            self.permit(&awaited);
        } else {
            self.repeats.left = self.repeats.left.saturating_sub(1);
            if !self.repeats.pay(awaited.datagrams()) {
                return;
            }
        }
        for (_, _, token) in awaited.tokens.into_iter().filter(|_| !held_back) {
            match token {
                RecoveryToken::Stream(token) if !self.repeats.probes => {
                    self.parts.streams.repeat_quietly(token);
                }
                token => self.parts.repeat(token),
            }
        }
        if self.repeats.left > 0 {
            self.repeat_later(now);
        }
    }

    /// What is sent again now, if anything is.
    fn due_again(&mut self) -> Option<Awaited> {
        let awaited = self.awaited();
        if awaited.tokens.is_empty() || !self.paths.active().can_send_anything() {
            return None;
        }
        let (policy, lossy) = (&self.config.tail, self.repeats.network().is_lossy());
        let most = if lossy { policy.repeated_flight_if_lossy } else { policy.repeated_flight };
        if self.repeats.probes {
            return Some(if awaited.datagrams() > self.repeats.left { awaited.tail() } else { awaited });
        }
        if awaited.datagrams() <= most {
            return Some(awaited);
        }
        (lossy && policy.repeated_tail).then(|| awaited.tail())
    }

    /// Whether all that somebody waits for is sent again after a probe timeout, and not two packets of it only.
    pub(super) fn repeats_whole(&mut self) -> bool {
        self.config.tail.whole_flights && self.awaited_datagrams() <= WHOLE
    }

    /// How many datagrams are under way that somebody waits for, those counted once that were sent again.
    pub(super) fn awaited_datagrams(&mut self) -> u8 {
        self.awaited().datagrams()
    }

    /// One packet of each space concerned may leave whatever the window says.
    fn permit(&mut self, awaited: &Awaited) {
        for id in SPACES {
            if awaited.tokens.iter().any(|(space, ..)| *space == id)
                && let Some(space) = self.spaces.get_mut(id)
            {
                space.probes = space.probes.max(1);
            }
        }
    }

    /// What is under way that somebody waits for.
    fn awaited(&mut self) -> Awaited {
        let mut awaited = Awaited::default();
        let path = self.paths.active_id();
        for id in SPACES {
            let recovery: &PathRecovery = &self.paths.path(path).recovery;
            let Some(space) = self.spaces.get_mut(id) else { continue };
            space.recovery.newest_tokens(recovery, MOST_PACKETS, &mut |number, token| {
                if range(&token).is_some() {
                    awaited.tokens.push((id, number, token));
                }
            });
        }
        awaited
    }
}
