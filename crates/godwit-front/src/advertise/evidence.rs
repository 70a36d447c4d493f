//! Who was told of HTTP/3, who tried it, and with whom it worked: remembered by hash for as long as there is room.
//!
//! From this follows why a request came by TCP:
//! - **not advertised**: nobody has told this client, or not lately enough for it to remember: a first visit;
//! - **other address**: the same user (by cookie) was told at another address: it has moved to another network, or
//!   uses the other IP version. What is remembered of addresses would say "not advertised";
//! - **no attempt**: it was told, and no QUIC packet came from its address since: UDP is blocked on its side, or it
//!   has HTTP/3 switched off;
//! - **attempt failed**: QUIC packets came since it was told, and no handshake was finished: answers do not reach
//!   it, or not those of full size;
//! - not known, if HTTP/3 works from that address: several clients may share it, and one that has a connection over
//!   TCP may go on using it. Nor is it known while an attempt is young.
//!
//! At most [`CAPACITY`] entries of each of two generations are kept: when one is full, the older one is forgotten. An
//! entry that is used moves to the younger one. Attempts, which anybody can make in others' names, are kept apart: many
//! of them push out nothing that is certain.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use godwit_report::record::WhyNotH3;

const CAPACITY: usize = 32_768;
/// An attempt may still succeed.
const YOUNG: u32 = 3;
/// Of one address not more than one failure is counted in so many seconds.
const COUNTED_FOR: u32 = 60;

/// What can be known of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fact {
    /// It was told of HTTP/3.
    Told,
    /// A first packet of a QUIC connection came, if it is not forged.
    Attempt,
    /// A QUIC handshake was finished.
    Finished,
}

/// When things happened last: seconds since the start, plus one; 0 is never.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    told: u32,
    finished: u32,
    /// An attempt that failed was counted.
    counted: u32,
}

type Generation<V> = HashMap<u64, V, BuildHasherDefault<AsItIs>>;

#[derive(Debug)]
pub(super) struct Evidence(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    seen: Generations<Seen>,
    /// When attempts were made.
    attempts: Generations<u32>,
}

#[derive(Debug, Default)]
struct Generations<V> {
    young: Generation<V>,
    old: Generation<V>,
}

impl Evidence {
    pub(super) fn new() -> Evidence {
        Evidence(Mutex::default())
    }

    /// Notes a fact about whoever has this hash.
    pub(super) fn note(&self, whom: u64, fact: Fact, now: Duration) {
        let now = seconds(now);
        let mut known = self.lock();
        match fact {
            Fact::Told => known.seen.entry(whom).told = now,
            Fact::Attempt => *known.attempts.entry(whom) = now,
            Fact::Finished => known.seen.entry(whom).finished = now,
        }
    }

    /// Whether an attempt from this address has failed ([`Evidence::why`]) that was not counted yet. Then it is.
    pub(super) fn take_failure(&self, address: u64, now: Duration) -> bool {
        let now = seconds(now);
        let mut known = self.lock();
        let attempt = known.attempts.get(address);
        let seen = known.seen.entry(address);
        let news =
            seen.counted == 0 || attempt > seen.counted && now.saturating_sub(seen.counted) >= COUNTED_FOR;
        if news {
            seen.counted = now;
        }
        news
    }

    /// Why somebody at this address, or this user, came by TCP. What was told is remembered by clients for `age`.
    pub(super) fn why(
        &self,
        address: u64,
        user: Option<u64>,
        age: Duration,
        now: Duration,
    ) -> Option<WhyNotH3> {
        let (now, age) = (seconds(now), u32::try_from(age.as_secs()).unwrap_or(u32::MAX));
        let known = self.lock();
        let seen = known.seen.get(address);
        let fresh = |told: u32| told > 0 && now.saturating_sub(told) <= age;
        if !fresh(seen.told) {
            let elsewhere = user.is_some_and(|user| fresh(known.seen.get(user).told));
            return Some(if elsewhere { WhyNotH3::OtherAddress } else { WhyNotH3::NotAdvertised });
        }
        let attempt = known.attempts.get(address);
        if seen.finished > 0 && seen.finished >= attempt {
            return None;
        }
        match attempt {
            0 => Some(WhyNotH3::NoAttempt),
            attempt if now.saturating_sub(attempt) < YOUNG => None,
            _ => Some(WhyNotH3::AttemptFailed),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<V: Copy + Default> Generations<V> {
    fn get(&self, whom: u64) -> V {
        self.young.get(&whom).or_else(|| self.old.get(&whom)).copied().unwrap_or_default()
    }

    fn entry(&mut self, whom: u64) -> &mut V {
        if self.young.len() >= CAPACITY && !self.young.contains_key(&whom) {
            self.old = std::mem::take(&mut self.young);
        }
        let old = &mut self.old;
        self.young.entry(whom).or_insert_with(|| old.remove(&whom).unwrap_or_default())
    }
}

fn seconds(since: Duration) -> u32 {
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX).saturating_add(1)
}

/// The keys are keyed hashes already.
#[derive(Debug, Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_reason_follows_from_what_was_seen() {
        let evidence = Evidence::new();
        let why = |now| evidence.why(1, Some(2), DAY, at(now));
        assert_eq!(why(0), Some(WhyNotH3::NotAdvertised), "the first visit");
        evidence.note(1, Fact::Told, at(0));
        assert_eq!(why(0), Some(WhyNotH3::NoAttempt));
        assert_eq!(why(86_401), Some(WhyNotH3::NotAdvertised), "it has forgotten");
        evidence.note(1, Fact::Attempt, at(10));
        assert_eq!(why(11), None, "it may still succeed");
        assert_eq!(why(13), Some(WhyNotH3::AttemptFailed));
        evidence.note(1, Fact::Finished, at(14));
        assert_eq!(why(15), None, "it works from there");
        evidence.note(1, Fact::Attempt, at(100));
        assert_eq!(why(200), Some(WhyNotH3::AttemptFailed), "no longer");
    }

    #[test]
    fn a_user_who_has_moved_is_told_from_a_new_one() {
        let evidence = Evidence::new();
        evidence.note(2, Fact::Told, at(0));
        assert_eq!(evidence.why(1, Some(2), DAY, at(5)), Some(WhyNotH3::OtherAddress));
        assert_eq!(evidence.why(1, Some(3), DAY, at(5)), Some(WhyNotH3::NotAdvertised));
        assert_eq!(evidence.why(1, None, DAY, at(5)), Some(WhyNotH3::NotAdvertised));
    }

    #[test]
    fn what_is_used_is_kept_and_the_rest_forgotten() {
        let evidence = Evidence::new();
        evidence.note(u64::MAX, Fact::Told, at(0));
        for whom in 0..(CAPACITY as u64 * 4) {
            evidence.note(whom, Fact::Told, at(0));
            if whom % 1000 == 0 {
                evidence.note(u64::MAX, Fact::Finished, at(0));
            }
        }
        let Known { seen, .. } = &*evidence.lock();
        assert!(seen.young.len() + seen.old.len() <= 2 * CAPACITY);
        assert!(seen.get(u64::MAX).told > 0);
        assert!(seen.get(0).told == 0);
    }

    #[test]
    fn attempts_in_others_names_push_out_nothing_that_is_certain() {
        let evidence = Evidence::new();
        evidence.note(u64::MAX, Fact::Told, at(0));
        (0..CAPACITY as u64 * 4).for_each(|forged| evidence.note(forged, Fact::Attempt, at(0)));
        assert_eq!(evidence.why(u64::MAX, None, DAY, at(5)), Some(WhyNotH3::NoAttempt));
        let Known { attempts, .. } = &*evidence.lock();
        assert!(attempts.young.len() + attempts.old.len() <= 2 * CAPACITY);
    }

    #[test]
    fn a_failure_counts_once_and_not_again_for_a_while() {
        let evidence = Evidence::new();
        let counts = |now| (0..3).filter(|_| evidence.take_failure(1, at(now))).count();
        evidence.note(1, Fact::Told, at(0));
        evidence.note(1, Fact::Attempt, at(10));
        assert_eq!((counts(20), counts(200)), (1, 0), "once");
        evidence.note(1, Fact::Attempt, at(210));
        assert_eq!(counts(220), 1);
        evidence.note(1, Fact::Attempt, at(230));
        assert_eq!((counts(279), counts(280)), (0, 1));
    }
}
