//! Stateless resets (RFC 9000 section 10.3): the answer to packets of connections we know nothing of.

use super::source::{PLACES, Source};
use godwit_base::{Rng, Time};
use godwit_wire::ResetToken;
use std::time::Duration;

/// The smallest datagram that is answered, with the smallest reset there is: one byte shorter.
pub(super) const SMALLEST_TRIGGER: usize = SMALLEST_RESET + 1;
/// What an answer to a longer datagram has at least: the shortest packet that a connection would send with
/// an id of the greatest length, so that it does not stand out (section 10.3).
const INCONSPICUOUS: usize = 42;
/// Datagrams shorter than this cannot be stateless resets (section 10.3).
pub(super) const SMALLEST_RESET: usize = 21;

/// A stateless reset in answer to a datagram of `trigger` bytes. Always shorter than that, so that two
/// endpoints cannot answer each other for ever (section 10.3.3).
pub(super) fn build(trigger: usize, token: ResetToken, rng: &mut dyn Rng) -> Option<Vec<u8>> {
    const VARIETY: u64 = 8;
    if trigger < SMALLEST_TRIGGER {
        return None;
    }
    let longest = trigger.saturating_sub(1);
    let wanted = INCONSPICUOUS.saturating_add(rng.below(VARIETY) as usize);
    let mut bytes = vec![0; wanted.min(longest)];
    rng.fill(&mut bytes);
    // It must look like a packet with a short header.
    let first = bytes.first_mut()?;
    *first = *first & 0x3f | 0x40;
    *bytes.last_chunk_mut()? = token.0;
    Some(bytes)
}

/// The last 16 bytes of a datagram that may be a stateless reset.
pub(super) fn token_of(datagram: &[u8]) -> Option<[u8; 16]> {
    if datagram.len() < SMALLEST_RESET { None } else { datagram.last_chunk().copied() }
}

/// How many resets may leave: they are cheap to provoke with forged addresses. Each source network has its own share, or
/// those who forge addresses would leave none to others.
#[derive(Debug, Default)]
pub(super) struct Limiters {
    /// By the place of the narrow network; empty until one is needed.
    shares: Vec<Limiter>,
}

impl Limiters {
    /// True if one may be sent there now.
    pub(super) fn take(&mut self, now: Time, source: Source) -> bool {
        if self.shares.is_empty() {
            self.shares = vec![Limiter::new(); PLACES];
        }
        self.shares.get_mut(source.narrow()).is_some_and(|share| share.take(now))
    }
}

/// The share of a network.
#[derive(Debug, Clone)]
struct Limiter {
    tokens: u32,
    since: Time,
}

impl Limiter {
    const BURST: u32 = 50;
    /// One more is allowed after each of these: 100 a second.
    const INTERVAL: Duration = Duration::from_millis(10);

    const fn new() -> Self {
        Limiter { tokens: Self::BURST, since: Time::ZERO }
    }

    /// True if one may be sent now.
    fn take(&mut self, now: Time) -> bool {
        let waited = now.saturating_since(self.since).as_nanos();
        let earned = waited.checked_div(Self::INTERVAL.as_nanos()).unwrap_or(0);
        let earned = u32::try_from(earned).unwrap_or(u32::MAX);
        if self.tokens.saturating_add(earned) >= Self::BURST {
            self.tokens = Self::BURST;
            self.since = now;
        } else {
            self.tokens = self.tokens.saturating_add(earned);
            self.since += Self::INTERVAL.saturating_mul(earned);
        }
        let allowed = self.tokens > 0;
        self.tokens = self.tokens.saturating_sub(1);
        allowed
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "tests")]
mod tests {
    use super::*;
    use crate::keyed_hash::KeyedHash;
    use godwit_base::SeededRng;

    fn from(address: [u8; 4]) -> Source {
        Source::of(KeyedHash::new(&mut SeededRng::new(1)), address.into())
    }

    #[test]
    fn a_reset_is_shorter_than_what_it_answers_and_looks_like_a_packet() {
        let mut rng = SeededRng::new(1);
        for trigger in 0..100 {
            let reset = build(trigger, ResetToken([7; 16]), &mut rng);
            assert_eq!(reset.is_some(), trigger >= SMALLEST_TRIGGER);
            let Some(reset) = reset else { continue };
            assert!(reset.len() < trigger && reset.len() >= SMALLEST_RESET);
            assert_eq!(reset[0] >> 6, 1);
            assert_eq!(token_of(&reset), Some([7; 16]));
        }
        assert_eq!(token_of(&[0; 20]), None);
    }

    #[test]
    fn resets_are_limited() {
        let mut limiters = Limiters::default();
        let mut now = Time::from_nanos(1);
        let somebody = from([192, 0, 2, 1]);
        let mut sent = |now| (0..1000).filter(|_| limiters.take(now, somebody)).count();
        assert_eq!(sent(now), 50);
        now += Duration::from_millis(52);
        assert_eq!(sent(now), 5);
        now += Duration::from_millis(8);
        assert_eq!(sent(now), 1, "what was left of an interval is not lost");
        now += Duration::from_secs(3600);
        assert_eq!(sent(now), 50);
    }

    #[test]
    fn whoever_provokes_resets_for_some_networks_leaves_those_of_others() {
        let mut limiters = Limiters::default();
        let now = Time::from_nanos(1);
        for net in 0..100 {
            while limiters.take(now, from([10, 0, net, 1])) {}
        }
        let left = (0..100).filter(|net| limiters.take(now, from([192, 0, *net, 1]))).count();
        assert!(left > 80, "{left}");
    }
}
